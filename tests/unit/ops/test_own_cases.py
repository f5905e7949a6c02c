"""What a user's test and reference get: tensors that quantize; and the models made of their cases."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import flexbuffers

from tflm_forge.errors import UsageError
from tflm_forge.model import load_model, read_model
from tflm_forge.model.writing import OperatorSpec, TensorSpec, write_model
from tflm_forge.ops.cases import OpTensor


def test_real_and_quantize_are_each_others_inverse_for_every_int8() -> None:
    every = np.arange(-128, 128, dtype=np.int8)
    tensor = OpTensor.of(every, scale=0.05, zero_point=3)
    np.testing.assert_allclose(tensor.real(), (np.arange(-128, 128) - 3) * 0.05, rtol=1e-6)
    np.testing.assert_array_equal(tensor.quantize(tensor.real()), every)


def test_quantize_rounds_halves_away_from_zero_and_clamps() -> None:
    output = OpTensor(type="INT8", shape=(6,), scale=0.5)
    assert output.quantize(np.array([0.25, -0.25, 0.75, 0.24, 1000, -1000])).tolist() == [1, -1, 2, 0, 127, -128]


def test_scales_along_an_axis() -> None:
    tensor = OpTensor.of(np.array([[1, 2], [3, 4]], np.int8), scale=[1.0, 0.5], zero_point=[0, 1], axis=0)
    assert tensor.real().tolist() == [[1, 2], [1, 1.5]]


def test_values_of_no_tensor_type_are_refused() -> None:
    with pytest.raises(TypeError, match="complex"):
        OpTensor.of(np.array([1j]))


def _dense(**changes: Any) -> bytes:
    weights = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    tensors = [
        TensorSpec(name="x", type="INT8", shape=(1, 3), scales=(0.5,), zero_points=(1,)),
        TensorSpec(name="w", type="INT8", shape=(2, 3), scales=(0.25,), zero_points=(0,), data=weights.tobytes()),
        TensorSpec(name="y", type="INT8", shape=(1, 2), scales=(0.25,), zero_points=(0,)),
    ]
    spec = {
        "op": "FULLY_CONNECTED", "inputs": (0, 1), "outputs": (2,), "version": 4,
        "options_type": "FullyConnectedOptions", "options": {"fused_activation_function": "RELU"},
    }  # fmt: skip
    return write_model(tensors=tensors, operators=[OperatorSpec(**{**spec, **changes})], inputs=(0,), outputs=(2,))


def test_a_written_model_is_what_the_schemas_own_reader_reads() -> None:
    model = tflite.Model.GetRootAsModel(_dense(), 0)
    assert model.Version() == 3
    graph = model.Subgraphs(0)
    names = [graph.Tensors(i).Name().decode() for i in range(graph.TensorsLength())]
    assert names == ["x", "w", "y"]
    quantization = graph.Tensors(0).Quantization()
    assert (quantization.Scale(0), quantization.ZeroPoint(0)) == (0.5, 1)
    code = model.OperatorCodes(0)
    assert (code.BuiltinCode(), code.Version()) == (tflite.BuiltinOperator.FULLY_CONNECTED, 4)
    options = tflite.FullyConnectedOptions()
    table = graph.Operators(0).BuiltinOptions()
    options.Init(table.Bytes, table.Pos)
    assert options.FusedActivationFunction() == tflite.ActivationFunctionType.RELU
    assert bytes(model.Buffers(graph.Tensors(1).Buffer()).DataAsNumpy()) == bytes([1, 2, 3, 4, 5, 6])


@pytest.mark.reference
def test_a_written_model_runs_in_the_interpreter() -> None:
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(_dense(), arena_size=1 << 16)
    interpreter.set_input(np.array([[3, 1, -1]], np.int8), 0)
    interpreter.invoke()
    # Inputs stand for 1, 0 and -1; weights for quarters: 0.25 - 0.75 and 1 - 1.5, below 0 both.
    assert interpreter.get_output(0).tolist() == [[0, 0]]
    interpreter.set_input(np.array([[3, 3, 1]], np.int8), 0)
    interpreter.invoke()
    assert interpreter.get_output(0).tolist() == [[3, 9]]


def test_constants_start_at_multiples_of_16() -> None:
    model = read_model(_dense(), name="m")
    assert model.subgraphs[0].tensors[1].data_offset % 16 == 0


def test_custom_options_are_kept_byte_by_byte() -> None:
    packed = bytes(flexbuffers.Dumps({"alpha": 0.25}))
    data = _dense(op="Mine", custom_options=packed, options_type="", version=2)
    operator = read_model(data, name="m").subgraphs[0].operators[0]
    assert (operator.custom_name, operator.version, operator.custom_options) == ("Mine", 2, packed)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options_type": "DenseOptions"}, "DenseOptions"),
        ({"options": {"activation": "RELU"}}, "'activation'"),
        ({"options": {"fused_activation_function": "RELU7"}}, "'RELU7'"),
    ],
)
def test_what_the_schema_does_not_have_is_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        _dense(**changes)


def test_the_examples_model_is_made_by_its_script(examples: Path, tmp_path: Path) -> None:
    folder = examples / "custom_op"
    space: dict[str, Any] = {"__name__": "example", "__file__": str(tmp_path / "make_model.py")}
    exec(compile((folder / "make_model.py").read_text(), "make_model.py", "exec"), space)
    model = load_model(folder / "model" / "shrink.tflite")
    assert space["make_model"]() == model.data
    shrink = next(op for op in model.subgraphs[0].operators if op.custom_name == "SoftShrink")
    assert struct.pack("<f", 0.75) in shrink.custom_options
