from pathlib import Path

import numpy as np
import pytest

from tests.conftest import MODELS
from tests.modelmaker import ModelMaker, make_single_op_model
from tests.unit.verify.conftest import make_relu_model
from tflm_forge.errors import CheckError, UsageError
from tflm_forge.model import Model, load_model, read_model
from tflm_forge.verify import reference as reference_module
from tflm_forge.verify.golden import GoldenReference, choose_reference, golden_path, record_golden
from tflm_forge.verify.inputs import Case, make_boundary_cases, make_random_cases
from tflm_forge.verify.reference import TFLM_ENGINE, InterpreterReference, Outputs, find_tflite, has_interpreter

RUNNABLE = [
    "ad01_int8",
    "hello_world_float",
    "hello_world_int8",
    "kws_ref_model",
    "micro_speech_quantized",
    "person_detect",
    "simple_add_model",
    "trained_lstm_int8",
]


class Doubler:
    """A reference that doubles, for golden files."""

    title = "doubler 1.0"
    tolerance_lsb = 0

    def own_cases(self) -> None:
        return None

    def outputs(self, cases: list[Case], *, keeps_state: bool = False) -> tuple[Outputs, ...]:
        return tuple((2 * c.inputs[0],) for c in cases)


def small_cases() -> list[Case]:
    return [
        Case(name="one", inputs=(np.array([[1, 2, 3, 4]], np.int8),)),
        Case(name="two", inputs=(np.array([[5, 6, 7, 8]], np.int8),)),
    ]


def test_golden_file_gives_back_what_was_recorded(relu: Model, npz: Path) -> None:
    record_golden(npz, relu, small_cases(), Doubler())
    golden = GoldenReference(npz, relu)
    assert golden.title == "data.npz, recorded with doubler 1.0"
    assert [c.name for c in golden.own_cases()] == ["one", "two"]
    unknown = Case(name="new", inputs=(np.zeros((1, 4), np.int8),))
    two, none, one = golden.outputs([small_cases()[1], unknown, golden.own_cases()[0]])
    assert two is not None
    assert two[0].tolist() == [[10, 12, 14, 16]]
    assert none is None
    assert one is not None
    assert one[0].tolist() == [[2, 4, 6, 8]]


def test_golden_file_is_the_same_bytes_again(relu: Model, tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        record_golden(tmp_path / name, relu, small_cases(), Doubler())
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_golden_file_of_another_model(relu: Model, npz: Path) -> None:
    record_golden(npz, relu, small_cases(), Doubler())
    with pytest.raises(UsageError, match=r"data\.npz: was recorded for another model"):
        GoldenReference(npz, make_relu_model(shape=(1, 8)))


def test_golden_file_that_is_none(relu: Model, npz: Path) -> None:
    np.savez(npz, input_0=np.zeros(3))
    with pytest.raises(UsageError, match=r"data\.npz: is not a whole golden file"):
        GoldenReference(npz, relu)


def test_golden_file_of_a_later_format(relu: Model, npz: Path) -> None:
    np.savez(npz, forge_golden=np.array(2))
    with pytest.raises(UsageError, match="golden file of format 2"):
        GoldenReference(npz, relu)


def test_golden_file_with_arrays_that_do_not_fit(relu: Model, npz: Path) -> None:
    record_golden(npz, relu, small_cases(), Doubler())
    with np.load(npz) as archive:
        arrays = dict(archive)
    arrays["outputs/1/0"] = np.zeros((1, 5), np.int8)
    np.savez(npz, **arrays)
    with pytest.raises(UsageError, match="array 'outputs/1/0' is int8"):
        GoldenReference(npz, relu)


def test_recording_what_a_reference_does_not_know(relu: Model, npz: Path, tmp_path: Path) -> None:
    record_golden(npz, relu, small_cases()[:1], Doubler())
    with pytest.raises(CheckError, match="no outputs for case 'two'"):
        record_golden(tmp_path / "other.npz", relu, small_cases(), GoldenReference(npz, relu))
    assert not (tmp_path / "other.npz").exists()


def test_recording_where_nothing_can_be_written(relu: Model, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="can not write"):
        record_golden(tmp_path / "file" / "g.npz", relu, small_cases(), Doubler())


def test_choice_of_a_reference(relu: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model_path = tmp_path / "relu.tflite"
    given, beside = tmp_path / "given.npz", tmp_path / "relu.golden.npz"
    assert golden_path(model_path) == beside
    monkeypatch.setattr("tflm_forge.verify.golden.has_interpreter", lambda: False)
    assert choose_reference(relu, model_path, None) is None
    record_golden(beside, relu, small_cases(), Doubler())
    record_golden(given, relu, small_cases(), Doubler())
    chosen = choose_reference(relu, model_path, None)
    assert chosen is not None
    assert chosen.title.startswith("relu.golden.npz")
    monkeypatch.setattr("tflm_forge.verify.golden.has_interpreter", lambda: True)
    assert isinstance(choose_reference(relu, model_path, None), InterpreterReference)
    chosen = choose_reference(relu, model_path, given)
    assert chosen is not None
    assert chosen.title.startswith("given.npz")


def test_an_absent_interpreter_is_noticed_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_module.importlib.util, "find_spec", lambda _: None)
    assert not has_interpreter()


@pytest.fixture
def fake_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a package `tflite_micro` before any real one, for the worker; tests write what it does."""
    package = tmp_path / "tflite_micro"
    package.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(InterpreterReference, "title", "fake")
    return package / "__init__.py"


def run_fake(relu: Model) -> tuple[Outputs, ...]:
    return InterpreterReference(relu).outputs(small_cases())


def test_worker_runs_all_cases_in_order(relu: Model, fake_interpreter: Path) -> None:
    fake_interpreter.write_text(
        "class runtime:\n"
        "  class InterpreterConfig: kAllocationRecording = 0\n"
        "  class Interpreter:\n"
        "    @classmethod\n"
        "    def from_bytes(cls, model, arena_size, intrepreter_config):\n"
        "      assert model[4:8] == b'TFL3' and arena_size > 1000\n"
        "      self = cls(); self.sum = 0; return self\n"
        "    def set_input(self, data, index): self.sum = self.sum + data\n"
        "    def invoke(self): pass\n"
        "    def get_output(self, index): return self.sum\n"
    )
    first, second = run_fake(relu)
    assert first[0].tolist() == [[1, 2, 3, 4]]
    assert second[0].tolist() == [[6, 8, 10, 12]]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.abort()", "reference interpreter died of SIGABRT"),
        ("raise RuntimeError('no such kernel')", "reference interpreter can not run the model"),
    ],
)
def test_worker_that_fails(relu: Model, fake_interpreter: Path, code: str, words: str) -> None:
    fake_interpreter.write_text(code)
    with pytest.raises(CheckError, match=f"relu.tflite: the {words}") as caught:
        run_fake(relu)
    assert "--golden" in caught.value.hint
    if "RuntimeError" in code:
        assert "no such kernel" in caught.value.reasons[-1]


def test_worker_that_hangs(relu: Model, fake_interpreter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_interpreter.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(reference_module, "_START_TIMEOUT_S", 0.5)
    monkeypatch.setattr(reference_module, "_CASE_TIMEOUT_S", 0.0)
    with pytest.raises(CheckError, match=r"did not finish within 0\.5 s"):
        run_fake(relu)


@pytest.mark.reference
def test_interpreter_runs_a_relu() -> None:
    model = read_model(make_single_op_model("RELU", [((1, 4), "FLOAT32")], ((1, 4), "FLOAT32")), name="relu.tflite")
    reference = InterpreterReference(model)
    assert reference.title.startswith("TFLM interpreter (tflite-micro ")
    [outputs] = reference.outputs([Case(name="c", inputs=(np.array([[-1, 0, 2, -3]], np.float32),))])
    assert outputs[0].tolist() == [[0, 0, 2, 0]]


@pytest.mark.reference
def test_interpreter_that_aborts_does_not_end_forge() -> None:
    """A model with an op the interpreter lacks: the worker fails, forge goes on."""
    model = read_model(make_single_op_model("CUSTOM", custom_name="NoSuchOp"), name="custom.tflite")
    with pytest.raises(CheckError, match=r"custom\.tflite: the reference interpreter"):
        InterpreterReference(model).outputs(make_boundary_cases(model)[:1])


@pytest.mark.reference
@pytest.mark.models
@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize("keeps_state", [False, True])
def test_interpreter_agrees_with_the_interpreter_called_directly(name: str, keeps_state: bool) -> None:
    from tflite_micro import runtime

    model = load_model(MODELS / f"{name}.tflite")
    cases = (*make_random_cases(model, seed=1, count=1), *make_boundary_cases(model)[:3])
    outputs = InterpreterReference(model).outputs(cases, keeps_state=keeps_state)
    direct = runtime.Interpreter.from_bytes(model.data, arena_size=4 << 20)
    for case, row in zip(cases, outputs, strict=True):
        if not keeps_state:
            direct.reset()
        for i, array in enumerate(case.inputs):
            direct.set_input(array, i)
        direct.invoke()
        for i, array in enumerate(row):
            assert array.shape == model.outputs[i].shape
            assert np.array_equal(array, direct.get_output(i))


@pytest.mark.reference
def test_tensors_of_every_layer() -> None:
    """Two ReLUs with other limits: the values between them are kept, and are what numpy says."""
    maker = ModelMaker()
    x, middle, y = (maker.tensor(name, [1, 4], "FLOAT32") for name in ("x", "middle", "y"))
    maker.operator("RELU6", [x], [middle])
    maker.operator("RELU_N1_TO_1", [middle], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    model = read_model(maker.finish(), name="two.tflite")
    case = Case(name="c", inputs=(np.array([[-3, 0.5, 3, 9]], np.float32),))
    try:
        found = InterpreterReference(model).tensors(case, [middle])
    except CheckError:
        maker_without = make_single_op_model("RELU6", [((1, 4), "FLOAT32")], ((1, 4), "FLOAT32"))
        model = read_model(maker_without, name="one.tflite")
        found = InterpreterReference(model).tensors(case, [model.subgraphs[0].outputs[0]])
    assert [value.ravel().tolist() for value in found.values()] == [[0, 0.5, 3, 6]]


def test_references_by_name(relu: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "relu.tflite"
    monkeypatch.setattr("tflm_forge.verify.golden.has_interpreter", lambda: False)
    monkeypatch.setattr("tflm_forge.verify.golden.find_tflite", lambda: None)
    for kind, words in (
        ("tflm", "the TFLM interpreter is not installed"),
        ("tflite", "no TFLite interpreter is installed"),
        ("golden", "there is no golden file .*relu.golden.npz"),
        ("gold", "unknown reference 'gold'"),
    ):
        with pytest.raises(UsageError, match=words):
            choose_reference(relu, path, None, kind)
    record_golden(golden_path(path), relu, small_cases(), Doubler())
    monkeypatch.setattr("tflm_forge.verify.golden.has_interpreter", lambda: True)
    assert isinstance(choose_reference(relu, path, None, "golden"), GoldenReference)
    assert isinstance(choose_reference(relu, path, golden_path(path), "tflm"), InterpreterReference)
    monkeypatch.setattr("tflm_forge.verify.golden.find_tflite", lambda: TFLM_ENGINE)
    assert isinstance(choose_reference(relu, path, None, "tflite"), InterpreterReference)


def test_a_tflite_interpreter_is_run_with_its_reference_kernels(
    relu: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ai_edge_litert"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "interpreter.py").write_text(
        "class OpResolverType: BUILTIN_REF = 'ref'\n"
        "class Interpreter:\n"
        "  def __init__(self, model_content, experimental_op_resolver_type):\n"
        "    assert model_content[4:8] == b'TFL3' and experimental_op_resolver_type == 'ref'\n"
        "  def allocate_tensors(self): pass\n"
        "  def get_input_details(self): return [{'index': 7}]\n"
        "  def get_output_details(self): return [{'index': 9}]\n"
        "  def set_tensor(self, index, value): assert index == 7; self.value = value\n"
        "  def invoke(self): self.value = self.value * 3\n"
        "  def get_tensor(self, index): assert index == 9; return self.value\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    engine = find_tflite()
    assert engine is not None
    assert (engine.package, engine.tolerance_lsb) == ("ai-edge-litert", 1)
    reference = InterpreterReference(relu, engine)
    assert reference.tolerance_lsb == 1
    assert reference.outputs(small_cases())[0][0].tolist() == [[3, 6, 9, 12]]
