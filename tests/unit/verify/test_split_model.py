"""The reference of a model with operators of one's own: the interpreter for the rest, Python for those."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tflite

from tests.modelmaker import ModelMaker
from tflm_forge.config import OpTable
from tflm_forge.errors import CheckError
from tflm_forge.model import Model, load_model, read_model
from tflm_forge.verify.inputs import make_random_cases
from tflm_forge.verify.reference import InterpreterReference, OwnReference, find_references

pytestmark = pytest.mark.reference

CUSTOM, RESHAPE, MAX_POOL = (getattr(tflite.BuiltinOperator, n) for n in ("CUSTOM", "RESHAPE", "MAX_POOL_2D"))
TWICE = "def reference(inputs, outputs, options):\n    return [outputs[0].quantize(options['by'] * inputs[0].real())]\n"


def _reference(folder: Path, text: str, name: str, code: int, custom: str = "") -> OwnReference:
    path = folder / "own.py"
    path.write_text(text)
    return OwnReference(name=name, builtin_code=code, custom_name=custom, path=path)


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        (
            "RESHAPE",
            RESHAPE,
            "def reference(inputs, outputs, options):\n    return [inputs[0].values.reshape(outputs[0].shape)]\n",
        ),
        (
            "MAX_POOL_2D",
            MAX_POOL,
            "def reference(inputs, outputs, options):\n    x = inputs[0].values\n    n, h, w, c = x.shape\n"
            "    a, b = options['filterHeight'], options['filterWidth']\n"
            "    return [x.reshape(n, h // a, a, w // b, b, c).max(axis=(2, 4))]\n",
        ),
    ],
)
def test_a_model_cut_in_the_middle_gives_what_the_whole_gives(
    examples: Path, tmp_path: Path, name: str, code: int, text: str
) -> None:
    model = load_model(examples / "digits" / "digits.tflite")
    cases = make_random_cases(model, seed=3, count=4)
    own = _reference(tmp_path, text, name, code)
    whole, cut = InterpreterReference(model), InterpreterReference(model, references=(own,))
    for want, have in zip(whole.outputs(cases), cut.outputs(cases), strict=True):
        np.testing.assert_array_equal(have[0], want[0])
    wanted = [operator.outputs[0] for operator in model.subgraphs[0].operators]
    every, found = whole.tensors(cases[0], wanted), cut.tensors(cases[0], wanted)
    assert sorted(found) == sorted(wanted)
    for index in wanted:
        np.testing.assert_array_equal(found[index].ravel(), every[index].ravel())
    assert "own.py" in cut.title
    assert [path.name for path in tmp_path.iterdir()] == ["own.py"]


def _chain(ops: Sequence[str], options: bytes = b"") -> Model:
    maker = ModelMaker()
    tensor = first = maker.tensor("x", [1, 4], "INT8", scale=0.5)
    for number, op in enumerate(ops):
        after = maker.tensor(f"t{number}", [1, 4], "INT8", scale=0.5)
        custom = {"custom_name": op, "custom_options": options} if op == "Twice" else {"version": 2}
        maker.operator("CUSTOM" if op == "Twice" else op, [tensor], [after], **custom)
        tensor = after
    maker.subgraph(inputs=[first], outputs=[tensor])
    return read_model(maker.finish(), name="chain.tflite")


def test_custom_options_and_quantization_reach_the_reference(tmp_path: Path) -> None:
    from flatbuffers import flexbuffers

    model = _chain(["RELU", "Twice", "RELU"], bytes(flexbuffers.Dumps({"by": 3})))
    own = _reference(tmp_path, TWICE, "Twice", CUSTOM, "Twice")
    (case,) = make_random_cases(model, seed=1, count=1)
    ((output,),) = InterpreterReference(model, references=(own,)).outputs([case])
    expected = np.minimum(np.maximum(case.inputs[0].astype(int), 0) * 3, 127)
    np.testing.assert_array_equal(output, expected)


def test_layers_before_an_operator_without_reference_are_known(tmp_path: Path) -> None:
    model = _chain(["RELU", "Twice", "RELU"])
    own = OwnReference(name="Twice", builtin_code=CUSTOM, custom_name="Twice", path=None)
    reference = InterpreterReference(model, references=(own,))
    (case,) = make_random_cases(model, seed=1, count=1)
    known = reference.tensors(case, [1, 2, 3])
    assert list(known) == [1]
    np.testing.assert_array_equal(known[1], np.maximum(case.inputs[0], 0))
    with pytest.raises(CheckError) as caught:
        reference.outputs([case])
    assert "Twice" in caught.value.reasons[-1]
    assert "reference =" in caught.value.hint


def test_an_exception_of_the_reference_is_shown(tmp_path: Path) -> None:
    model = _chain(["Twice"])
    own = _reference(tmp_path, "def reference(inputs, outputs, options):\n    1 / 0\n", "Twice", CUSTOM, "Twice")
    (case,) = make_random_cases(model, seed=1, count=1)
    with pytest.raises(CheckError) as caught:
        InterpreterReference(model, references=(own,)).outputs([case])
    assert "ZeroDivisionError" in caught.value.reasons[-1]


def test_state_is_kept_and_reset_in_each_stretch(tmp_path: Path) -> None:
    """SVDF has a state: two inferences differ, and are alike after a reset."""
    maker = ModelMaker()
    x = maker.tensor("x", [1, 2], "FLOAT32")
    feature = maker.tensor("f", [1, 2], "FLOAT32", data=np.array([[1, 2]], np.float32))
    time = maker.tensor("t", [1, 3], "FLOAT32", data=np.array([[1, 1, 1]], np.float32))
    bias = maker.tensor("b", [1], "FLOAT32", data=np.zeros(1, np.float32))
    state = maker.tensor("s", [1, 3], "FLOAT32", is_variable=True)
    y, z = maker.tensor("y", [1, 1], "FLOAT32"), maker.tensor("z", [1, 1], "FLOAT32")
    options = "SVDFOptions", {"rank": 1}
    maker.operator("SVDF", [x, feature, time, bias, state], [y], options=options)
    maker.operator("CUSTOM", [y], [z], custom_name="Twice")
    maker.subgraph(inputs=[x], outputs=[z])
    model = read_model(maker.finish(), name="state.tflite")
    text = "def reference(inputs, outputs, options):\n    return [2 * inputs[0].values]\n"
    reference = InterpreterReference(model, references=(_reference(tmp_path, text, "Twice", CUSTOM, "Twice"),))
    (case,) = make_random_cases(model, seed=1, count=1)
    once = 2 * float((case.inputs[0] @ np.array([1, 2], np.float32))[0])
    kept = [float(outputs[0][0, 0]) for outputs in reference.outputs([case, case], keeps_state=True)]
    reset = [float(outputs[0][0, 0]) for outputs in reference.outputs([case, case])]
    assert kept == pytest.approx([once, 2 * once], rel=1e-5)
    assert reset == pytest.approx([once, once], rel=1e-5)


def test_which_operators_python_computes(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    model = _chain(["RELU", "Twice"])
    own = OpTable(name="Twice", reference=path)
    assert [(r.name, r.path) for r in find_references(model, [own])] == [("Twice", path)]
    assert [r.path for r in find_references(model, [OpTable(name="Twice")])] == [None]
    assert find_references(model, [OpTable(replaces="RELU")]) == ()
    assert [r.name for r in find_references(model, [OpTable(replaces="RELU", reference=path)])] == ["RELU"]
    assert find_references(model, [OpTable(name="Other", reference=path)]) == ()
