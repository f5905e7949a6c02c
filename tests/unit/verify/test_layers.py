import numpy as np
import pytest

from tests.modelmaker import ModelMaker
from tests.unit.link.simulated_device import INT8, SimTensor, SimulatedDevice, SimulatedPort
from tflm_forge.errors import CheckError, DeviceError
from tflm_forge.link.session import Session
from tflm_forge.model import Model, read_model
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.layers import LayerValues, check_layers, compare_layers
from tflm_forge.verify.records import Layers

INPUT = np.array([[-9, 5, 40, 100]], np.int8)
VALUES = [np.array([[0, 5, 40, 100]], np.int8), np.array([[0, 5, 6, 6]], np.int8), np.array([[1, 2, 3, 4]], np.int8)]


@pytest.fixture
def three() -> Model:
    """Three operators, one after the other."""
    maker = ModelMaker()
    tensors = [maker.tensor(name, [1, 4], "INT8", scale=0.5) for name in ("x", "one", "two", "three")]
    for op, source, target in zip(("RELU", "RELU6", "RELU"), tensors, tensors[1:], strict=False):
        maker.operator(op, [source], [target])
    maker.subgraph(inputs=tensors[:1], outputs=tensors[-1:])
    return read_model(maker.finish(), name="three.tflite")


def device_of(model: Model, layers: list[np.ndarray]) -> SimulatedDevice:
    return SimulatedDevice(
        inputs=[SimTensor(INT8, (1, 4), 0.5, 0, bytearray(4))],
        layers=tuple(layer.tobytes() for layer in layers),
        model_sha256=bytes.fromhex(model.sha256),
    )


def compare(model: Model, device: SimulatedDevice, expected: dict[int, np.ndarray] | None = None) -> Layers:
    if expected is None:
        expected = {op.outputs[0]: v for op, v in zip(model.subgraphs[0].operators, VALUES, strict=True)}
    values = LayerValues(case=Case(name="c", inputs=(INPUT,)), reference="numpy", tensors=expected)
    with Session(SimulatedPort(device, piece_bytes=50)) as session:
        return compare_layers(session, model, values, lambda *_: None)


def test_layers_that_agree(three: Model) -> None:
    device = device_of(three, VALUES)
    layers = compare(three, device)
    assert layers.first_wrong is None
    part = check_layers(layers)
    assert part.passed
    assert part.checks[0].detail == "3 of 3 operators compared, all identical"
    assert bytes(device.inputs[0].data) == INPUT.tobytes()
    # One LAYER a operator: its CRC is enough.
    assert device.runs[0x22] == 3


def test_the_first_that_differs_is_named(three: Model) -> None:
    wrong = [VALUES[0], VALUES[1] + np.array([[0, 0, 2, 0]], np.int8), VALUES[2] + np.int8(1)]
    layers = compare(three, device_of(three, wrong))
    first = layers.first_wrong
    assert first is not None
    assert (first.index, first.op, first.layer, first.unit) == (1, "RELU6", "two", "LSB")
    assert first.metrics is not None
    assert (first.metrics.mismatches, first.metrics.max_error) == (1, 2)
    details = [check.detail for check in check_layers(layers).failures]
    assert details == [
        "operator 1, RELU6 (two): 1 of 4 numbers differ (25.00 %), largest error 2 LSB",
        "1 of the 1 behind it differ too; their inputs are wrong already",
    ]


def test_what_can_not_be_compared_is_said(three: Model) -> None:
    expected = {
        three.subgraphs[0].operators[0].outputs[0]: VALUES[0],
        three.subgraphs[0].operators[2].outputs[0]: VALUES[2],
    }
    layers = compare(three, device_of(three, VALUES[:2]), expected)
    assert [r.note for r in layers.results] == [
        "",
        "not compared: the reference does not know it",
        "not compared: the device does not keep it",
    ]
    assert check_layers(layers).checks[0].detail == "1 of 3 operators compared, all identical"
    assert not check_layers(compare(three, device_of(three, []), {})).passed


def test_another_size_is_an_error_of_the_layer(three: Model) -> None:
    layers = compare(three, device_of(three, [VALUES[0][:, :3], *VALUES[1:]]))
    assert layers.first_wrong is not None
    assert layers.first_wrong.note == "it has 3 bytes on the device, 4 in the reference"


def test_firmware_that_is_not_the_layers_firmware(three: Model) -> None:
    device = device_of(three, VALUES)
    device._layer = lambda _: (0x52, 0)  # type: ignore[method-assign]
    with pytest.raises(DeviceError, match="does not keep the tensors of all layers"):
        compare(three, device)
    device = device_of(three, VALUES)
    device.model_sha256 = bytes(32)
    with pytest.raises(CheckError, match="another model is in the firmware"):
        compare(three, device)
    device = device_of(three, VALUES)
    device.ready = False
    with pytest.raises(CheckError, match="a boot step failed"):
        compare(three, device)
