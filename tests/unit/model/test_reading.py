"""What the reader reads: models made with `flatbuffers`, and real ones compared with the package `tflite`."""

import hashlib
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from tests.conftest import MODELS
from tests.modelmaker import ModelMaker, make_single_op_model
from tflm_forge.errors import ModelError
from tflm_forge.model import load_model, op_set, read_model

REAL = sorted(path.name for path in MODELS.glob("*.tflite")) or ["absent"]


def make_dense() -> ModelMaker:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4], "INT8", scale=0.5, zero_point=-1)
    w = maker.tensor("w", [2, 4], "INT8", scale=[0.25, 0.5], data=np.arange(8))
    y = maker.tensor("y", [1, 2], "INT8", scale=2.0, shape_signature=[-1, 2])
    options = "FullyConnectedOptions", {"keep_num_dims": True, "fused_activation_function": "RELU6"}
    maker.operator("FULLY_CONNECTED", [x, w, -1], [y], options=options, version=4)
    maker.subgraph(inputs=[x], outputs=[y], name="net")
    return maker


def test_reads_every_part_of_a_model() -> None:
    maker = make_dense()
    maker.add_metadata("min_runtime_version", b"1.5.0")
    maker.add_signature("serving_default", {"in": 0}, {"out": 2})
    data = maker.finish()
    model = read_model(data, name="dense.tflite")

    assert model.name == "dense.tflite"
    assert model.data == data
    assert model.sha256 == hashlib.sha256(data).hexdigest()
    assert (model.schema_version, model.description) == (3, "made for a test")
    [graph] = model.subgraphs
    assert (graph.name, graph.inputs, graph.outputs) == ("net", (0,), (2,))
    x, w, y = graph.tensors
    assert model.inputs == (x,)
    assert model.outputs == (y,)
    assert (x.name, x.type, x.shape, x.size_bytes, x.is_constant) == ("x", "INT8", (1, 4), 4, False)
    assert x.quantization is not None
    assert (x.quantization.scales, x.quantization.zero_points) == ((0.5,), (-1,))
    assert not x.quantization.is_per_channel
    assert w.quantization is not None
    assert w.quantization.is_per_channel
    assert (w.data_bytes, w.is_constant) == (8, True)
    assert model.constant_data(w) == bytes(range(8))
    assert y.shape_signature == (-1, 2)
    [operator] = graph.operators
    assert (operator.builtin_code, operator.name, operator.version) == (9, "FULLY_CONNECTED", 4)
    assert (operator.inputs, operator.outputs, operator.label) == ((0, 1, -1), (2,), "y")
    assert operator.options_type == "FullyConnectedOptions"
    assert operator.options["keep_num_dims"] is True
    assert operator.options["fused_activation_function"] == "RELU6"
    assert operator.options["weights_format"] == "DEFAULT"
    assert [(m.name, model.buffer_data(m.buffer)) for m in model.metadata] == [("min_runtime_version", b"1.5.0")]
    [signature] = model.signatures
    assert (signature.key, signature.inputs, signature.outputs) == ("serving_default", {"in": 0}, {"out": 2})


@pytest.mark.parametrize(
    ("type_", "shape", "size_bytes"),
    [
        ("INT4", [3, 3], 5),
        ("INT4", [2], 1),
        ("INT8", [], 1),
        ("BOOL", [5], 5),
        ("INT16", [2, 3], 12),
        ("FLOAT16", [3], 6),
        ("FLOAT32", [7], 28),
        ("INT64", [2], 16),
        ("COMPLEX64", [2], 16),
        ("COMPLEX128", [1], 16),
        ("FLOAT64", [0, 9], 0),
        ("RESOURCE", [1], 4),
        ("STRING", [3], 0),
        (19, [9], 3),  # INT2, newer than the package
        (20, [3], 2),  # UINT4
    ],
)
def test_size_of_a_tensor_of_each_type(type_: str | int, shape: list[int], size_bytes: int) -> None:
    maker = ModelMaker()
    maker.tensor("t", shape, type_)
    maker.subgraph(inputs=[0], outputs=[0])
    [tensor] = read_model(maker.finish(), name="m").inputs
    assert tensor.size_bytes == size_bytes


@pytest.mark.parametrize(
    ("deprecated", "builtin", "code"),
    [(3, 0, 3), (127, 203, 203), (0, 150, 150), (127, 127, 127), (-1, 9, 9)],
)
def test_the_larger_of_the_two_op_codes_counts(deprecated: int, builtin: int, code: int) -> None:
    maker = ModelMaker()
    maker.tensor("t", [1], "INT8")
    maker.operator(0, [0], [0], opcode=maker.opcode(builtin, deprecated_code=deprecated))
    maker.subgraph(inputs=[0], outputs=[0])
    model = read_model(maker.finish(), name="m")
    assert model.opcodes[0].builtin_code == code
    assert model.subgraphs[0].operators[0].builtin_code == code


def test_options_take_the_schemas_defaults_and_enums() -> None:
    options = (
        "Conv2DOptions",
        {"padding": "VALID", "stride_w": 2, "stride_h": 3, "fused_activation_function": 77},
    )
    operator = read_model(make_single_op_model("CONV_2D", options=options), name="m").subgraphs[0].operators[0]
    assert operator.options["padding"] == "VALID"
    assert (operator.options["stride_w"], operator.options["stride_h"]) == (2, 3)
    assert (operator.options["dilation_w_factor"], operator.options["dilation_h_factor"]) == (1, 1)
    assert operator.options["fused_activation_function"] == 77  # no such activation: the number stays


def test_options_with_vectors_and_texts() -> None:
    reshape = make_single_op_model("RESHAPE", options=("ReshapeOptions", {"new_shape": [4, -1]}))
    assert read_model(reshape, name="m").subgraphs[0].operators[0].options == {"new_shape": (4, -1)}
    handle = make_single_op_model("VAR_HANDLE", options=("VarHandleOptions", {"shared_name": "state"}))
    assert read_model(handle, name="m").subgraphs[0].operators[0].options["shared_name"] == "state"


def test_options_of_the_second_union() -> None:
    model = read_model(make_single_op_model("DILATE", options=("DilateOptions", {})), name="m")
    assert model.subgraphs[0].operators[0].options_type == "DilateOptions"


def test_custom_op_with_its_options() -> None:
    maker = ModelMaker()
    maker.tensor("t", [1], "INT8")
    maker.operator("CUSTOM", [0], [0], custom_name="MyOp", custom_options=b"\x00\x01\x02")
    maker.subgraph(inputs=[0], outputs=[0])
    [operator] = read_model(maker.finish(), name="m").subgraphs[0].operators
    assert (operator.name, operator.custom_name, operator.custom_options) == ("MyOp", "MyOp", b"\x00\x01\x02")


def test_custom_code_of_a_builtin_op_is_not_its_name() -> None:
    maker = ModelMaker()
    maker.tensor("t", [1], "INT8")
    maker.operator("ADD", [0, 0], [0], custom_name="left over")
    maker.subgraph(inputs=[0], outputs=[0])
    assert read_model(maker.finish(), name="m").subgraphs[0].operators[0].custom_name == ""


def test_opcodes_that_no_operator_uses_may_be_odd() -> None:
    maker = make_dense()
    maker.opcode("CUSTOM", custom_name=b"\xff\xfe")
    maker.opcode(-5, deprecated_code=-5)
    maker.opcode(9999, version=-1)
    assert len(read_model(maker.finish(), name="m").opcodes) == 4


def test_data_behind_the_flatbuffer_is_found() -> None:
    maker = ModelMaker()
    maker.tensor("w", [300], "INT16", data=np.arange(300), outside=True)
    maker.subgraph(inputs=[0], outputs=[0])
    model = read_model(maker.finish(), name="m")
    assert model.buffers[1].is_outside
    assert np.frombuffer(model.constant_data(model.inputs[0]), np.int16).tolist() == list(range(300))


def test_operator_without_a_named_output_is_labelled_by_its_op() -> None:
    maker = ModelMaker()
    maker.tensor(None, [1], "INT8")
    maker.operator("RELU", [0], [0])
    maker.operator("ASSIGN_VARIABLE", [0, 0], [])
    maker.subgraph(inputs=[0], outputs=[0])
    operators = read_model(maker.finish(), name="m").subgraphs[0].operators
    assert [o.label for o in operators] == ["RELU (operator 0)", "ASSIGN_VARIABLE (operator 1)"]


def test_subgraphs_that_run_each_other_in_one_direction_are_read() -> None:
    maker = ModelMaker()
    for target in (1, 2):
        maker.tensor("t", [1], "BOOL")
        maker.operator("CALL_ONCE", [], [], options=("CallOnceOptions", {"init_subgraph_index": target}))
        maker.subgraph(inputs=[0], outputs=[0])
    maker.tensor("t", [1], "BOOL")
    maker.subgraph(inputs=[0], outputs=[0])
    assert len(read_model(maker.finish(), name="m").subgraphs) == 3


@pytest.mark.models
@pytest.mark.parametrize("name", REAL)
def test_real_model_reads_like_with_the_package(name: str) -> None:
    data = (MODELS / name).read_bytes()
    model = load_model(MODELS / name)
    theirs = tflite.Model.GetRootAs(data)
    assert model.schema_version == theirs.Version()
    assert model.description.encode() == (theirs.Description() or b"")
    assert len(model.buffers) == theirs.BuffersLength()
    for ours, j in zip(model.buffers, range(theirs.BuffersLength()), strict=True):
        their_data = theirs.Buffers(j).DataAsNumpy()
        their_bytes = their_data.tobytes() if isinstance(their_data, np.ndarray) else b""
        assert model.buffer_data(ours.index) == their_bytes
    assert [m.name.encode() for m in model.metadata] == [
        theirs.Metadata(j).Name() for j in range(theirs.MetadataLength())
    ]
    assert [s.key.encode() for s in model.signatures] == [
        theirs.SignatureDefs(j).SignatureKey() for j in range(theirs.SignatureDefsLength())
    ]
    assert len(model.subgraphs) == theirs.SubgraphsLength()
    for graph in model.subgraphs:
        compare_subgraph(model, graph, theirs, theirs.Subgraphs(graph.index))


def compare_subgraph(model: Any, graph: Any, theirs: Any, their_graph: Any) -> None:
    assert list(graph.inputs) == vector(their_graph, "Inputs")
    assert list(graph.outputs) == vector(their_graph, "Outputs")
    assert len(graph.tensors) == their_graph.TensorsLength()
    for tensor in graph.tensors:
        their = their_graph.Tensors(tensor.index)
        assert tensor.name.encode() == (their.Name() or b"")
        assert getattr(tflite.TensorType, tensor.type) == their.Type()
        assert list(tensor.shape) == vector(their, "Shape")
        assert list(tensor.shape_signature) == vector(their, "ShapeSignature")
        assert (tensor.buffer, tensor.is_variable) == (their.Buffer(), their.IsVariable())
        assert tensor.data_bytes == theirs.Buffers(their.Buffer()).DataLength()
        quantization = their.Quantization()
        if quantization is None or quantization.ScaleLength() == 0:
            assert tensor.quantization is None
        else:
            assert list(tensor.quantization.scales) == vector(quantization, "Scale")
            assert list(tensor.quantization.zero_points) == vector(quantization, "ZeroPoint")
            assert tensor.quantization.axis == quantization.QuantizedDimension()
    assert len(graph.operators) == their_graph.OperatorsLength()
    for operator in graph.operators:
        their = their_graph.Operators(operator.index)
        code = theirs.OperatorCodes(their.OpcodeIndex())
        assert operator.builtin_code == max(code.DeprecatedBuiltinCode(), code.BuiltinCode())
        assert (operator.custom_name.encode() or None) == code.CustomCode()
        assert operator.version == code.Version()
        assert list(operator.inputs) == vector(their, "Inputs")
        assert list(operator.outputs) == vector(their, "Outputs")
        assert list(operator.intermediates) == vector(their, "Intermediates")
        assert operator.custom_options == bytes(vector(their, "CustomOptions"))
        compare_options(operator, their)


def compare_options(operator: Any, their: Any) -> None:
    kinds = {v: k for k, v in vars(tflite.BuiltinOptions).items() if not k.startswith("_")}
    kind = kinds[their.BuiltinOptionsType()]
    if kind == "NONE" or their.BuiltinOptions() is None:
        assert operator.options_type == ""
        return
    assert operator.options_type == kind
    options = getattr(tflite, kind)()
    options.Init(their.BuiltinOptions().Bytes, their.BuiltinOptions().Pos)
    compared = 0
    for name, value in operator.options.items():
        camel = "".join(word.capitalize() for word in name.split("_"))
        if isinstance(value, tuple):
            if hasattr(options, f"{camel}Length"):
                assert list(value) == vector(options, camel)
            continue
        if isinstance(value, str):
            enum = {"padding": "Padding", "weights_format": "FullyConnectedOptionsWeightsFormat"}.get(name)
            if enum is None:
                enum = "ActivationFunctionType" if "activation" in name else "TensorType"
            if not hasattr(getattr(tflite, enum), value):  # a text
                assert value.encode() == (getattr(options, camel)() or b"")
                continue
            value = getattr(getattr(tflite, enum), value)
        assert value == getattr(options, camel)()
        compared += 1
    assert compared > 0 or not any(isinstance(v, int | float) for v in operator.options.values())


def vector(table: Any, name: str) -> list[Any]:
    return [getattr(table, name)(j) for j in range(getattr(table, f"{name}Length")())]


def table_of_real_models() -> list[tuple[str, int, str, int]]:
    """Return file, bytes, ops and length of the opcode table as the README of the real models has them."""
    readme = MODELS / "README.md"
    if not readme.is_file():
        return []
    rows = []
    for line in readme.read_text(encoding="utf-8").splitlines():
        found = re.match(r"\| `(\S+\.tflite)` \| ([\d,]+) \| .*? \| (.*?) \| (\d+) \|", line)
        if found:
            rows.append((found[1], int(found[2].replace(",", "")), found[3], int(found[4])))
    return rows


@pytest.mark.models
def test_op_sets_of_real_models_are_those_of_their_readme() -> None:
    rows = table_of_real_models()
    assert len(rows) == 13
    for name, size, ops, opcodes in rows:
        model = load_model(MODELS / name)
        ours = {
            f"{'custom ' if use.custom_name else ''}{use.name} v{use.version} x{use.count}" for use in op_set(model)
        }
        assert ours == set(ops.split(", ")), name
        assert (len(model.data), len(model.opcodes)) == (size, opcodes)


@pytest.mark.models
def test_sizes_of_real_models_tensors() -> None:
    [tensor] = load_model(MODELS / "kws_ref_model.tflite").inputs
    assert (tensor.type, tensor.shape, tensor.size_bytes) == ("INT8", (1, 49, 10, 1), 490)
    assert math.prod(load_model(MODELS / "vww_96_int8.tflite").inputs[0].shape) == 27648


def test_a_model_without_the_identifier_is_refused() -> None:
    maker = make_dense()
    maker.identifier = b"XXXX"
    with pytest.raises(ModelError, match=r"not a \.tflite model"):
        read_model(maker.finish(), name="m")


@pytest.mark.parametrize("version", [0, 1, 2, 4, 0xFFFFFFFF])
def test_another_schema_version_is_refused(version: int) -> None:
    maker = make_dense()
    maker.version = version
    with pytest.raises(ModelError, match=f"schema version {version}") as caught:
        read_model(maker.finish(), name="m.tflite")
    assert "Convert" in caught.value.hint
    assert caught.value.message.startswith("m.tflite: ")


def test_errors_name_the_path_when_there_is_one(tmp_path: Path) -> None:
    file = tmp_path / "broken.tflite"
    file.write_bytes(make_dense().finish()[:100])
    with pytest.raises(ModelError, match=re.escape(str(file))):
        load_model(file)
