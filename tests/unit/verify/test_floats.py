from pathlib import Path

import numpy as np
import pytest

from tests.modelmaker import ModelMaker
from tests.unit.verify.conftest import make_relu_model
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.model import Model
from tflm_forge.verify.floats import check_agreement, compare_with_floats, float_outputs, to_real
from tflm_forge.verify.inputs import Case

CASES = [Case(name="c", inputs=(np.array([[-128, -1, 1, 127]], np.int8),))]


def write_model(path: Path, *, shape: tuple[int, ...] = (1, 4), kind: str = "FLOAT32") -> Path:
    maker = ModelMaker()
    x, y = (maker.tensor(name, shape, kind) for name in "xy")
    maker.operator("RELU", [x], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    path.write_bytes(maker.finish())
    return path


def test_real_numbers_of_quantized_ones(relu: Model) -> None:
    # scale 0.5, zero point -1
    assert to_real(relu.inputs[0], np.array([-3, -1, 0, 127], np.int8)).tolist() == [-1.0, 0.0, 0.5, 64.0]
    plain = make_relu_model(kind="FLOAT32").inputs[0]
    assert to_real(plain, np.array([1.5], np.float32)).tolist() == [1.5]


@pytest.mark.reference
def test_the_float_model_gets_real_numbers(relu: Model, tmp_path: Path) -> None:
    [outputs] = float_outputs(write_model(tmp_path / "float.tflite"), relu, CASES)
    assert outputs[0].tolist() == [[0.0, 0.0, 1.0, 64.0]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": (1, 5)}, r"float\.tflite: its inputs are \[1, 5\], and those of relu\.tflite are \[1, 4\]"),
        ({"kind": "INT8"}, r"float\.tflite: its inputs are INT8, not FLOAT32"),
    ],
)
def test_models_that_can_not_be_it(relu: Model, tmp_path: Path, options: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        float_outputs(write_model(tmp_path / "float.tflite", **options), relu, CASES)


def test_no_model_and_no_interpreter(relu: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="absent"):
        float_outputs(tmp_path / "absent.tflite", relu, CASES)
    for name in ("has_interpreter", "find_tflite"):
        monkeypatch.setattr(f"tflm_forge.verify.floats.{name}", lambda: None)
    with pytest.raises(UsageError, match="no interpreter is installed"):
        float_outputs(write_model(tmp_path / "float.tflite"), relu, CASES)


def test_the_error_is_that_of_all_inputs_together(relu: Model) -> None:
    # Real numbers of the device: 0, 0, 1, 64 and 3, 0, 0, 0.
    actual = [(np.array([[-1, -1, 1, 127]], np.int8),), (np.array([[5, -1, -1, -1]], np.int8),)]
    expected = [(np.array([[0.0, 0.0, 1.0, 64.0]]),), (np.array([[3.0, 0.0, 0.0, 4.0]]),)]
    [agreement] = compare_with_floats(relu, Path("f.tflite"), expected, actual, 0.01)
    assert agreement.relative_error == pytest.approx(4 / (1 + 64**2 + 9 + 16) ** 0.5)
    assert (agreement.cases, agreement.argmax_agrees) == (2, 1)
    assert agreement.mae == pytest.approx(0.5)
    check = check_agreement(agreement)
    assert not check.passed
    assert "relative error 6.230% of at most 1.000%" in check.detail
    assert "--float-limit" in check.detail
