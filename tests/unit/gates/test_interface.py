"""What an application notices of a new model: inputs and outputs that are not as before."""

import pytest

from tests.modelmaker import make_single_op_model
from tests.unit.gates.firmwares import DIGITS, SINE
from tflm_forge.gates.interface import interface_of, interface_of_device, list_changes
from tflm_forge.link.answers import TensorInfo
from tflm_forge.model import load_model, read_model


def model_of(*inputs: tuple[tuple[int, ...], str], output: tuple[tuple[int, ...], str] = ((1, 4), "INT8")) -> object:
    return interface_of(read_model(make_single_op_model("ADD", inputs, output), name="x"))


ONE = ((1, 4), "INT8")


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (model_of(ONE), []),
        (model_of(((1, 8), "INT8")), ["input 0 is INT8 [1, 8], scale 0.5"]),
        (model_of(((1, 4), "FLOAT32")), ["input 0 is FLOAT32 [1, 4];"]),
        (model_of(ONE, ONE), ["has 2 inputs, and the firmware's own has 1"]),
        (model_of(ONE, output=((1, 4), "INT16")), ["output 0 is INT16"]),
    ],
)
def test_each_change_is_told(new: object, words: list[str]) -> None:
    found = list_changes(model_of(ONE), new)  # type: ignore[arg-type]
    assert len(found) == len(words)
    for sentence, part in zip(found, words, strict=True):
        assert part in sentence


def test_a_quantization_that_changed_is_told() -> None:
    found = list_changes(interface_of(load_model(SINE)), interface_of(load_model(DIGITS)))
    assert found[0] == (
        "The input 0 is INT8 [1, 8, 8, 1], scale 0.00392157, zero point -128; of the firmware's own model it is "
        "INT8 [1, 1], scale 0.0246399, zero point -128."
    )


def test_a_device_answers_the_same_as_the_file() -> None:
    def info(space: int, shape: tuple[int, ...], scale: float, zero_point: int) -> TensorInfo:
        return TensorInfo(
            space=space, index=0, type="INT8", shape=shape, scale=scale, zero_point=zero_point, size_bytes=64
        )

    model = load_model(DIGITS)
    scales = [tensor.quantization.scales[0] for tensor in (*model.inputs, *model.outputs) if tensor.quantization]
    answered = interface_of_device([info(1, (1, 10), scales[1], -128), info(0, (1, 8, 8, 1), scales[0], -128)])
    assert list_changes(answered, interface_of(model)) == ()
