"""Small models, at least one for each of the doctor's rules, with what TFLM's interpreter makes of each.

What a case expects of the interpreter was found by reading TFLM's sources and is checked in tests/tflm/test_doctor.py:

- "refused": it fails in AllocateTensors or Invoke, or ends the process.
- "wrong": it runs, and gives other numbers than the model says: those stand in `expected`.
- "silent": it runs, and what it gives has no meaning, or would fault on a device: forge is the only one to tell.
- "runs": it runs and is right: for warnings and notes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tests.modelmaker import ModelMaker, make_single_op_model
from tests.tflm.feature_models import make_call_once, make_if, make_svdf

Outcome = Literal["refused", "wrong", "silent", "runs"]
Weights = Sequence[int] | np.ndarray

NAN, INFINITY = float("nan"), float("inf")
CONV = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
POOL = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "filter_width": 1, "filter_height": 1}
RAMP = np.array([[10, 20, 30, -40]], np.int8)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model: the rule it comes under, the layer that is named, and the interpreter's verdict."""

    rule: str
    name: str
    make: Callable[[], bytes]
    outcome: Outcome
    layer: str | None = None
    runtime: str = "tflm"
    inputs: Sequence[np.ndarray] | None = None
    expected: np.ndarray | None = None
    board: str = ""
    words: Sequence[str] = field(default_factory=tuple)


CASES: list[Case] = []


def case(
    rule: str, outcome: Outcome, name: str = "", **values: Any
) -> Callable[[Callable[[], bytes]], Callable[[], bytes]]:
    """Add a model to the cases."""

    def add(make: Callable[[], bytes]) -> Callable[[], bytes]:
        CASES.append(
            Case(rule=rule, name=name or make.__name__.removeprefix("_"), make=make, outcome=outcome, **values)
        )
        return make

    return add


def dense(
    *,
    activation: str = "INT8",
    weights: str = "INT8",
    x: float | None = 0.5,
    w: float | Sequence[float] | None = 0.1,
    y: float | None = 0.5,
    x_zero: int = 0,
    w_zero: int = 0,
    y_zero: int = 0,
    bias: float | None = None,
    with_bias: bool = False,
    constant: bool = True,
    fused: str = "NONE",
    version: int = 4,
    data: Any = None,
    outside: bool = False,
    sparse: bool = False,
    metadata: str = "",
    units: int = 2,
) -> bytes:
    """Return a model of one dense layer `dense` from 4 to 2, weights of 1, without bias unless asked for."""
    maker = ModelMaker()
    values = np.ones((units, 4)) if data is None else data
    quantized = {k: v for k, v in (("x", x), ("w", w), ("y", y)) if v is not None and activation != "FLOAT32"}
    if weights not in ("FLOAT32", "FLOAT16") and w is not None:
        quantized["w"] = w
    source = maker.tensor(
        "x", [1, 4], activation, scale=quantized.get("x"), zero_point=x_zero if "x" in quantized else None
    )
    matrix = maker.tensor(
        "w",
        [units, 4],
        weights,
        scale=quantized.get("w"),
        zero_point=w_zero if "w" in quantized and not isinstance(w, Sequence) else None,
        data=values if constant else None,
        outside=outside,
        is_sparse=sparse,
    )
    offset = maker.tensor("b", [units], "INT32", scale=bias, data=np.zeros(units)) if with_bias else -1
    result = maker.tensor(
        "dense", [1, units], activation, scale=quantized.get("y"), zero_point=y_zero if "y" in quantized else None
    )
    options = ("FullyConnectedOptions", {"fused_activation_function": fused})
    maker.operator("FULLY_CONNECTED", [source, matrix, offset], [result], options=options, version=version)
    maker.subgraph(inputs=[source] if constant else [source, matrix], outputs=[result])
    if metadata:
        maker.add_metadata(metadata, bytes(16))
    return maker.finish()


def _zeros(scales: Any, zero_point: int) -> Any:
    """Return as many zero points as there are scales."""
    return [zero_point] * len(scales) if isinstance(scales, list) else None if scales is None else zero_point


def convolution(
    *,
    op: str = "CONV_2D",
    w: Any = 0.1,
    w_zero: int = 0,
    x: float | None = 0.5,
    fused: str = "NONE",
    constant: bool = True,
    with_third_input: bool = False,
) -> bytes:
    """Return a model of one int8 convolution `conv` of 1x1, weights of 1."""
    maker = ModelMaker()
    shape = [4, 1, 1, 4] if op == "CONV_2D" else [1, 1, 1, 4]
    axis = 0 if op == "CONV_2D" else 3
    source = maker.tensor("x", [1, 1, 1, 4], "INT8", scale=x)
    matrix = maker.tensor(
        "w", shape, "INT8", scale=w, zero_point=_zeros(w, w_zero), axis=axis,
        data=np.ones(shape) if constant else None,
    )  # fmt: skip
    result = maker.tensor("conv", [1, 1, 1, 4], "INT8", scale=0.5)
    table = "Conv2DOptions" if op == "CONV_2D" else "DepthwiseConv2DOptions"
    options = {**CONV, "fused_activation_function": fused, **({} if op == "CONV_2D" else {"depth_multiplier": 1})}
    inputs = [source, matrix, *([-1] if with_third_input else [])]
    maker.operator(op, inputs, [result], options=(table, options), version=3)
    maker.subgraph(inputs=[source] if constant else [source, matrix], outputs=[result])
    return maker.finish()


def unary(
    op: str,
    type_: str = "INT8",
    *,
    given: tuple[float, int] | None = (0.5, 0),
    made: tuple[float, int] | None = (0.5, 0),
    shape: Sequence[int] = (1, 4),
    options: tuple[str, Mapping[str, Any]] | None = None,
    made_type: str = "",
    version: int = 1,
) -> bytes:
    """Return a model of one operator with one input, whose output `layer` has the same shape."""
    maker = ModelMaker()
    ends = []
    for name, kind, quantization in (("x", type_, given), ("layer", made_type or type_, made)):
        scale, zero = quantization or (None, None)
        ends.append(maker.tensor(name, list(shape), kind, scale=scale, zero_point=zero))
    maker.operator(op, ends[:1], ends[1:], options=options, version=version)
    maker.subgraph(inputs=ends[:1], outputs=ends[1:])
    return maker.finish()


# The file.


@case("no-operators", "silent")
def _nothing_to_run() -> bytes:
    maker = ModelMaker()
    maker.tensor("x", [1], "INT8")
    maker.subgraph(inputs=[0], outputs=[0])
    return maker.finish()


@case(
    "data-outside-flatbuffer", "wrong", layer="w", inputs=[np.ones((1, 4), np.float32)], expected=np.full((1, 2), 4.0)
)
def _weights_behind_the_flatbuffer() -> bytes:
    return dense(activation="FLOAT32", weights="FLOAT32", outside=True)


@case("compressed-constants", "wrong", inputs=[RAMP], expected=np.array([[2, 2]]))
def _compressed_by_the_old_scheme() -> bytes:
    # Eight weights of 1, packed into one byte of indices and a table that the metadata would name.
    return dense(data=bytes(1), metadata="COMPRESSION_METADATA")


@case("sparse-tensor", "wrong", layer="w", inputs=[RAMP], expected=np.array([[2, 2]]))
def _sparse_weights() -> bytes:
    return dense(data=bytes(4), sparse=True)


@case("misaligned-constant", "silent", layer="w")
def _weights_at_an_odd_place() -> bytes:
    maker = ModelMaker()
    source = maker.tensor("x", [1, 4])
    matrix = maker.tensor("w", [2, 4], data=np.ones((2, 4)), outside=True)
    result = maker.tensor("dense", [1, 2])
    maker.operator("FULLY_CONNECTED", [source, matrix, -1], [result], options=("FullyConnectedOptions", {}))
    maker.subgraph(inputs=[source], outputs=[result])
    data = bytearray(maker.finish())
    offset = maker.buffers[1].offset
    (place,) = [i for i in range(0, len(data) - 8, 4) if data[i : i + 8] == offset.to_bytes(8, "little")]
    data[place : place + 8] = (offset + 2).to_bytes(8, "little")
    return bytes(data) + bytes(2)


@case("min-runtime-version", "runs", words=["2.6.0"])
def _says_which_tflite_it_wants() -> bytes:
    maker = ModelMaker()
    source, result = maker.tensor("x", [1, 4]), maker.tensor("layer", [1, 4])
    maker.operator("RELU", [source], [result])
    maker.subgraph(inputs=[source], outputs=[result])
    maker.add_metadata("min_runtime_version", b"2.6.0" + bytes(11))
    return maker.finish()


@case("offline-memory-plan", "runs")
def _brings_its_own_plan() -> bytes:
    maker = ModelMaker()
    source, result = maker.tensor("x", [1, 4]), maker.tensor("layer", [1, 4])
    maker.operator("RELU", [source], [result])
    maker.subgraph(inputs=[source], outputs=[result])
    # Version, subgraph, number of tensors, an offset for each: -1 leaves it to TFLM.
    maker.add_metadata("OfflineMemoryAllocation", np.array([1, 0, 2, -1, -1], np.int32).tobytes())
    return maker.finish()


# Ops.


@case("unknown-op", "refused", layer="layer", words=["4711"])
def _op_code_of_the_future() -> bytes:
    maker = ModelMaker()
    source, result = maker.tensor("x", [1], "INT8"), maker.tensor("layer", [1], "INT8")
    maker.operator(4711, [source], [result])
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


@case("missing-op", "refused", layer="layer", words=["GELU"])
def _op_that_tflm_lacks() -> bytes:
    return unary("GELU", "FLOAT32", given=None, made=None, options=("GeluOptions", {}))


@case("missing-op", "refused", name="where", layer="output", words=["SELECT_V2"])
def _where() -> bytes:
    return make_single_op_model("WHERE", (((1, 4), "BOOL"),), ((1, 2), "INT64"))


@case("missing-op", "refused", name="densify", layer="layer", words=["EXPERIMENTAL_SPARSITY"])
def _densify() -> bytes:
    return unary("DENSIFY", "FLOAT32", given=None, made=None)


@case("op-version", "silent", layer="layer", words=["RELU", "version 9"])
def _version_of_the_future() -> bytes:
    return unary("RELU", version=9)


@case("flex-op", "refused", layer="output", words=["Erf", "SELECT_TF_OPS"])
def _flex() -> bytes:
    return make_single_op_model("CUSTOM", custom_name="FlexErf")


# Custom ops.


@case("delegate-op", "refused", layer="output", words=["Edge TPU", "edgetpu_compiler"])
def _edge_tpu() -> bytes:
    return make_single_op_model("CUSTOM", custom_name="edgetpu-custom-op")


@case("delegate-op", "refused", name="ethos_u", layer="output", words=["Ethos-U", "vela"])
def _ethos_u() -> bytes:
    return make_single_op_model("CUSTOM", custom_name="ethos-u")


@case("delegate-op", "refused", name="gpu", layer="output", words=["GPU", "phones"])
def _gpu_delegate() -> bytes:
    return make_single_op_model("CUSTOM", custom_name="TfLiteGpuDelegateV2")


@case("delegate-op", "refused", name="nnapi", layer="output", words=["NNAPI"])
def _nnapi_delegate() -> bytes:
    return make_single_op_model("CUSTOM", custom_name="TfLiteNnapiDelegate")


@case("delegate-op", "refused", name="xnnpack", layer="output", words=["XNNPACK"])
def _xnnpack_delegate() -> bytes:
    return make_single_op_model("CUSTOM", custom_name="TfLiteXNNPackDelegate")


@case("delegate-op", "refused", name="delegate_code", layer="output", words=["DELEGATE"])
def _builtin_delegate() -> bytes:
    return make_single_op_model("DELEGATE")


@case("delegate-metadata", "runs", words=["Edge TPU"])
def _metadata_of_the_edge_tpu() -> bytes:
    return dense(metadata="edgetpu_compiler_version")


@case("unknown-custom-op", "refused", layer="output", words=["forge op new MyOp"])
def _custom_without_kernel() -> bytes:
    return make_single_op_model("CUSTOM", custom_name="MyOp")


@case("unknown-custom-op", "refused", name="case", layer="output", words=["SignalWindow"])
def _signal_op_in_small_letters() -> bytes:
    return make_single_op_model("CUSTOM", custom_name="signal_window")


@case("unknown-custom-op", "runs", name="bundled", layer="scaled", runtime="bundled", words=["--runtime tflm"])
@case("custom-op", "runs", layer="scaled", words=["SignalFftAutoScale"])
def _known_custom() -> bytes:
    maker = ModelMaker()
    source, result = maker.tensor("x", [4], "INT16"), maker.tensor("scaled", [4], "INT16")
    shift = maker.tensor("shift", [], "INT32")
    maker.operator("CUSTOM", [source], [result, shift], custom_name="SignalFftAutoScale")
    maker.subgraph(inputs=[source], outputs=[result, shift])
    return maker.finish()


@case("custom-options-missing", "refused", layer="boxes")
def _detection_without_options() -> bytes:
    maker = ModelMaker()
    encodings, classes = maker.tensor("e", [1, 4, 4]), maker.tensor("c", [1, 4, 2])
    anchors = maker.tensor("a", [4, 4], data=np.ones((4, 4)))
    results = [maker.tensor(n, s) for n, s in (("boxes", [1, 2, 4]), ("k", [1, 2]), ("s", [1, 2]), ("n", [1]))]
    name = "TFLite_Detection_PostProcess"
    maker.operator("CUSTOM", [encodings, classes, anchors], results, custom_name=name)
    maker.subgraph(inputs=[encodings, classes], outputs=results)
    return maker.finish()


# Types.


@case("hybrid-quantization", "refused", layer="dense", words=["representative dataset"])
def _hybrid_dense() -> bytes:
    return dense(activation="FLOAT32")


@case("hybrid-quantization", "refused", name="transposed", layer="layer")
def _hybrid_transposed_convolution() -> bytes:
    maker = ModelMaker()
    shape = maker.tensor("shape", [4], "INT32", data=np.array([1, 1, 1, 2]))
    matrix = maker.tensor("w", [2, 1, 1, 4], "INT8", scale=[0.1] * 2, data=np.ones((2, 1, 1, 4)))
    source, result = maker.tensor("x", [1, 1, 1, 4]), maker.tensor("layer", [1, 1, 1, 2])
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1}
    maker.operator("TRANSPOSE_CONV", [shape, matrix, source], [result], options=("TransposeConvOptions", options))
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


def lstm_outputs() -> np.ndarray:
    """Return what the equations of an LSTM give for an input of ones, two steps, and weights of 0.1."""
    state, cell, outputs = np.zeros(2), np.zeros(2), []
    for _ in range(2):
        weighted = 0.1 * np.full(2, 3.0) + 0.1 * state.sum()
        gate = 1 / (1 + np.exp(-weighted))
        cell = gate * cell + gate * np.tanh(weighted)
        state = gate * np.tanh(cell)
        outputs.append(state)
    return np.array([outputs])


@case("hybrid-quantization", "wrong", name="lstm", layer="lstm", inputs=[np.ones((1, 2, 3), np.float32)],
      expected=lstm_outputs())  # fmt: skip
def _hybrid_lstm() -> bytes:
    return lstm(weights="INT8")


@case("float16", "refused", layer="layer", words=["DEQUANTIZE"])
def _float16_weights_through_dequantize() -> bytes:
    maker = ModelMaker()
    half = maker.tensor("half", [1, 4], "FLOAT16", data=np.ones((1, 4)))
    wide, source, result = maker.tensor("layer", [1, 4]), maker.tensor("x", [1, 4]), maker.tensor("sum", [1, 4])
    maker.operator("DEQUANTIZE", [half], [wide], options=("DequantizeOptions", {}), version=3)
    maker.operator("ADD", [source, wide], [result], options=("AddOptions", {}))
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


@case("float16", "refused", name="weights", layer="dense")
def _float16_weights() -> bytes:
    return dense(activation="FLOAT32", weights="FLOAT16")


@case("uint8-quantization", "refused", layer="dense")
def _uint8_dense() -> bytes:
    return dense(activation="UINT8", weights="UINT8", version=1)


@case("uint8-quantization", "refused", name="quantize", layer="layer", words=["makes UINT8 of FLOAT32"])
def _float_to_uint8() -> bytes:
    options = ("QuantizeOptions", {})
    return unary("QUANTIZE", "FLOAT32", given=None, made=(0.5, 128), made_type="UINT8", options=options)


@case("int16x8-unsupported", "refused", layer="layer")
def _int16_depth_to_space() -> bytes:
    shape = ("DepthToSpaceOptions", {"block_size": 1})
    return unary("DEPTH_TO_SPACE", "INT16", shape=(1, 1, 1, 4), options=shape)


@case("int4-unsupported", "refused", layer="layer")
def _int4_relu() -> bytes:
    return unary("RELU", "INT4")


@case("op-type", "refused", layer="layer", words=["INT32"])
def _int32_relu() -> bytes:
    return unary("RELU", "INT32", given=None, made=None)


@case("tensor-type", "refused", layer="layer", words=["STRING"])
def _strings() -> bytes:
    return unary("RESHAPE", "STRING", given=None, made=None, options=("ReshapeOptions", {"new_shape": [1, 4]}))


@case("type-changes", "refused", layer="layer", words=["INT8", "FLOAT32"])
def _reshape_that_casts() -> bytes:
    return unary("RESHAPE", "FLOAT32", given=None, made_type="INT8", options=("ReshapeOptions", {"new_shape": [1, 4]}))


@case("type-changes", "refused", name="operands", layer="sum", words=["INT8", "FLOAT32"])
def _sum_of_two_types() -> bytes:
    maker = ModelMaker()
    ends = [maker.tensor("a", [1, 4], "INT8", scale=0.5), maker.tensor("b", [1, 4])]
    result = maker.tensor("sum", [1, 4], "INT8", scale=0.5)
    maker.operator("ADD", ends, [result], options=("AddOptions", {}), version=2)
    maker.subgraph(inputs=ends, outputs=[result])
    return maker.finish()


@case("int4-weights", "runs", layer="dense")
def _int4_dense() -> bytes:
    return dense(weights="INT4", data=bytes(4), version=10)


# Scales and zero points.


@case("invalid-scale", "refused", layer="dense", words=["nan"])
def _nan_scale() -> bytes:
    return dense(x=NAN)


@case("invalid-scale", "refused", name="negative", layer="dense", words=["-0.5"])
def _negative_scale() -> bytes:
    return dense(x=-0.5)


@case(
    "invalid-scale",
    "wrong",
    name="zero",
    layer="dense",
    inputs=[RAMP],
    expected=np.array([[127, 127]]),
    words=["scale 0"],
)
def _zero_output_scale() -> bytes:
    # The real sum is positive: with steps towards 0 it is any number of them, cut off at 127.
    return dense(y=0.0)


@case("invalid-scale", "wrong", name="infinite", layer="dense", inputs=[RAMP], expected=np.array([[127, 127]]))
def _infinite_input_scale() -> bytes:
    return dense(x=INFINITY)


@case("zero-scale-weights", "runs", layer="conv")
def _channel_of_nothing() -> bytes:
    return convolution(w=[0.1, 0.0, 0.1, 0.1])


@case("invalid-zero-point", "wrong", layer="dense", inputs=[RAMP], expected=np.array([[302, 302]]), words=["300"])
def _zero_point_of_300() -> bytes:
    # 20 * 0.5 * 0.1 = 1.0 is 2 steps over the zero point, which no int8 holds.
    return dense(y_zero=300)


@case(
    "asymmetric-weights", "wrong", layer="conv", inputs=[np.full((1, 1, 1, 4), 40, np.int8)],
    expected=np.full((1, 1, 1, 4), -64),
)  # fmt: skip
def _weights_with_zero_point() -> bytes:
    # 4 products of 40 * (1 - 5), in steps of 0.1.
    return convolution(w_zero=5)


@case("asymmetric-weights", "wrong", name="depthwise", layer="conv", inputs=[np.full((1, 1, 1, 4), 40, np.int8)],
      expected=np.full((1, 1, 1, 4), -16))  # fmt: skip
def _depthwise_weights_with_zero_point() -> bytes:
    return convolution(op="DEPTHWISE_CONV_2D", w=[0.1] * 4, w_zero=5)


@case("asymmetric-int16", "refused", layer="layer")
def _int16_softmax_with_zero_point() -> bytes:
    options = ("SoftmaxOptions", {"beta": 1.0})
    return unary("SOFTMAX", "INT16", given=(0.5, 3), made=(1 / 32768, 0), options=options, version=3)


@case("asymmetric-int16", "refused", name="tanh", layer="layer")
def _int16_tanh_with_zero_point() -> bytes:
    return unary("TANH", "INT16", given=(1 / 4096, 3), made=(1 / 32768, 0), version=3)


@case("missing-quantization", "refused", layer="conv")
def _convolution_weights_without_scale() -> bytes:
    return convolution(w=None)


@case("missing-quantization", "wrong", name="dense", layer="dense", inputs=[RAMP], expected=np.array([[2, 2]]))
def _dense_output_without_scale() -> bytes:
    return dense(y=None)


@case("bias-scale", "refused", layer="dense")
def _bias_in_other_steps() -> bytes:
    return dense(with_bias=True, bias=0.5)


@case("fixed-output-scale", "refused", layer="layer")
def _softmax_in_other_steps() -> bytes:
    return unary("SOFTMAX", made=(0.5, 0), options=("SoftmaxOptions", {"beta": 1.0}), version=2)


@case("fixed-output-scale", "wrong", name="tanh", layer="layer", inputs=[np.full((1, 4), 127, np.int8)],
      expected=np.full((1, 4), 4))  # fmt: skip
def _tanh_in_other_steps() -> bytes:
    # tanh of 63.5 is 1.0: four steps of 0.25.
    return unary("TANH", made=(0.25, 0), version=2)


@case("fixed-output-scale", "refused", name="logistic", layer="layer")
def _logistic_with_zero_point_0() -> bytes:
    return unary("LOGISTIC", made=(1 / 256, 0), version=2)


@case("comparison-scale", "refused", layer="same")
def _comparison_in_steps_of_two() -> bytes:
    maker = ModelMaker()
    ends = [maker.tensor(n, [1, 4], "INT8", scale=s) for n, s in (("a", 0.5), ("b", 2.0))]
    result = maker.tensor("same", [1, 4], "BOOL")
    maker.operator("EQUAL", ends, [result], version=2)
    maker.subgraph(inputs=ends, outputs=[result])
    return maker.finish()


@case("scale-changes", "refused", layer="layer")
def _pooling_to_another_scale() -> bytes:
    return unary("MAX_POOL_2D", made=(0.25, 0), shape=(1, 1, 1, 4), options=("Pool2DOptions", POOL), version=2)


@case("scale-changes", "refused", name="concatenation", layer="both")
def _concatenation_of_other_scales() -> bytes:
    maker = ModelMaker()
    ends = [maker.tensor(n, [1, 2], "INT8", scale=s) for n, s in (("a", 0.5), ("b", 0.25))]
    result = maker.tensor("both", [1, 4], "INT8", scale=0.5)
    maker.operator("CONCATENATION", ends, [result], options=("ConcatenationOptions", {"axis": 1}), version=2)
    maker.subgraph(inputs=ends, outputs=[result])
    return maker.finish()


# Kernels.


def with_operand(
    op: str, place: int, values: Any, shape: Sequence[int], made: Sequence[int], *, constant: bool,
    others: Sequence[Any] = (), options: tuple[str, Mapping[str, Any]] | None = None, outputs: int = 1,
) -> bytes:  # fmt: skip
    """Return a model of one float operator whose operand at a place is a constant or an input.

    `others` are the further operands, constants, in their order.
    """
    maker = ModelMaker()
    data = maker.tensor("x", list(shape))
    array = np.asarray(values, np.int32)
    operand = maker.tensor("operand", list(array.shape), "INT32", data=array if constant else None)
    rest = []
    for other in others:
        kind = "FLOAT32" if isinstance(other, float) else "INT32"
        rest.append(maker.tensor("other", list(np.shape(other)), kind, data=np.asarray(other)))
    inputs = [data, *rest]
    inputs.insert(place, operand)
    if op == "FILL":
        inputs = [operand, maker.tensor("value", [], "FLOAT32", data=np.float32(3.0))]
    results = [maker.tensor("layer" if i == 0 else f"layer{i}", list(made)) for i in range(outputs)]
    maker.operator(op, inputs, results, options=options)
    ends = [i for i in (data, operand) if i in inputs and (i != operand or not constant)]
    maker.subgraph(inputs=ends, outputs=results)
    return maker.finish()


OPERANDS: Mapping[str, Callable[[bool], bytes]] = {
    "BROADCAST_TO shape": lambda c: with_operand("BROADCAST_TO", 1, [2, 4], [1, 4], [2, 4], constant=c),
    "EXPAND_DIMS axis": lambda c: with_operand("EXPAND_DIMS", 1, 0, [4], [1, 4], constant=c),
    "FILL dims": lambda c: with_operand("FILL", 0, [2, 2], [1], [2, 2], constant=c),
    "PAD paddings": lambda c: with_operand("PAD", 1, [[0, 0], [1, 1]], [1, 4], [1, 6], constant=c),
    "PADV2 paddings": lambda c: with_operand("PADV2", 1, [[0, 0], [1, 1]], [1, 4], [1, 6], constant=c, others=[0.5]),
    "RESIZE_BILINEAR size": lambda c: with_operand(
        "RESIZE_BILINEAR", 1, [4, 4], [1, 2, 2, 1], [1, 4, 4, 1], constant=c, options=("ResizeBilinearOptions", {})
    ),
    "RESIZE_NEAREST_NEIGHBOR size": lambda c: with_operand(
        "RESIZE_NEAREST_NEIGHBOR", 1, [4, 4], [1, 2, 2, 1], [1, 4, 4, 1], constant=c,
        options=("ResizeNearestNeighborOptions", {}),
    ),
    "SPLIT axis": lambda c: with_operand(
        "SPLIT", 0, 1, [1, 4], [1, 2], constant=c, options=("SplitOptions", {"num_splits": 2}), outputs=2
    ),
    "SPLIT_V axis": lambda c: with_operand(
        "SPLIT_V", 2, 1, [1, 4], [1, 2], constant=c, others=[[2, 2]], options=("SplitVOptions", {"num_splits": 2}),
        outputs=2,
    ),
    "STRIDED_SLICE begin": lambda c: with_operand(
        "STRIDED_SLICE", 1, [0, 0], [1, 4], [1, 2], constant=c, others=[[1, 2], [1, 1]],
        options=("StridedSliceOptions", {}),
    ),
    "STRIDED_SLICE end": lambda c: with_operand(
        "STRIDED_SLICE", 2, [1, 2], [1, 4], [1, 2], constant=c, others=[[0, 0], [1, 1]],
        options=("StridedSliceOptions", {}),
    ),
    "STRIDED_SLICE strides": lambda c: with_operand(
        "STRIDED_SLICE", 3, [1, 1], [1, 4], [1, 2], constant=c, others=[[0, 0], [1, 2]],
        options=("StridedSliceOptions", {}),
    ),
    "TRANSPOSE perm": lambda c: with_operand("TRANSPOSE", 1, [1, 0], [2, 3], [3, 2], constant=c),
}  # fmt: skip
"""For each operand that must be constant a model in which it is one, or is not."""

for _name, _build in OPERANDS.items():
    case("operand-not-constant", "refused", name=_name, layer="layer", words=_name.split())(
        lambda build=_build: build(False)
    )


@case("filter-not-constant", "runs", layer="dense")
def _dense_of_two_activations() -> bytes:
    return dense(constant=False)


@case("filter-not-constant", "runs", name="convolution", layer="conv")
def _convolution_of_two_activations() -> bytes:
    return convolution(constant=False)


@case("filter-not-constant", "runs", name="dequantized", layer="dense", words=["DEQUANTIZE"])
def _dense_with_dequantized_weights() -> bytes:
    maker = ModelMaker()
    source = maker.tensor("x", [1, 4])
    packed = maker.tensor("packed", [2, 4], "INT8", scale=0.1, data=np.ones((2, 4)))
    wide, result = maker.tensor("wide", [2, 4]), maker.tensor("dense", [1, 2])
    maker.operator("DEQUANTIZE", [packed], [wide], options=("DequantizeOptions", {}), version=2)
    maker.operator("FULLY_CONNECTED", [source, wide, -1], [result], options=("FullyConnectedOptions", {}))
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


@case("depthwise-without-bias", "refused", layer="conv")
def _depthwise_with_minus_one() -> bytes:
    return convolution(op="DEPTHWISE_CONV_2D", with_third_input=True)


@case("fused-activation", "wrong", layer="dense", words=["TANH"], inputs=[np.ones((1, 4), np.float32)],
      expected=np.tanh(np.full((1, 2), 4.0)))  # fmt: skip
def _dense_with_tanh() -> bytes:
    return dense(activation="FLOAT32", weights="FLOAT32", fused="TANH")


@case("fused-activation", "wrong", name="convolution", layer="conv", inputs=[np.full((1, 1, 1, 4), 40, np.int8)],
      expected=np.full((1, 1, 1, 4), 2))  # fmt: skip
def _convolution_with_tanh() -> bytes:
    # tanh of 8.0 is 1.0: two steps of 0.5.
    return convolution(fused="TANH")


LSTM = {"fused_activation_function": "TANH", "cell_clip": 0.0, "proj_clip": 0.0, "time_major": False}


def lstm(
    *, extra: int | None = None, coupled: bool = False, variable: bool = True, count: int = 24, weights: str = "FLOAT32"
) -> bytes:
    """Return a model of one float LSTM `lstm` from 3 to 2, two steps; `extra` is an input it should not have."""
    maker = ModelMaker()
    source = maker.tensor("x", [1, 2, 3])
    inputs = [source, *[-1] * (count - 1)]
    value, scale = (0.1, None) if weights == "FLOAT32" else (1, 0.1)
    for place in range(1, 5):
        inputs[place] = maker.tensor(f"w{place}", [2, 3], weights, scale=scale, data=np.full((2, 3), value))
    for place in range(5, 9):
        inputs[place] = maker.tensor(f"r{place}", [2, 2], weights, scale=scale, data=np.full((2, 2), value))
    for place in range(12, 16):
        inputs[place] = maker.tensor(f"b{place}", [2], data=np.zeros(2))
    for place in (18, 19):
        inputs[place] = maker.tensor(f"state{place}", [1, 2], is_variable=variable)
    if extra is not None:
        inputs[extra] = maker.tensor("extra", [2], data=np.zeros(2))
    if coupled:
        for place in (1, 5, 12):
            inputs[place] = -1
    result = maker.tensor("lstm", [1, 2, 2])
    options = ("UnidirectionalSequenceLSTMOptions", LSTM)
    maker.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [result], options=options)
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


for _name, _place in (("peephole", 9), ("projection", 16), ("layer normalization", 20)):
    case("lstm-variant", "refused", name=_name, layer="lstm", words=[_name])(lambda place=_place: lstm(extra=place))


@case("lstm-variant", "refused", name="coupled", layer="lstm", words=["left out"])
def _coupled_lstm() -> bytes:
    return lstm(coupled=True)


@case("lstm-variant", "refused", name="20_inputs", layer="lstm", words=["20 inputs"])
def _older_lstm() -> bytes:
    return lstm(count=20)


@case("state-not-variable", "refused", layer="lstm")
def _lstm_with_lost_state() -> bytes:
    return lstm(variable=False)


@case("reshape-size", "refused", layer="layer")
def _reshape_to_more() -> bytes:
    maker = ModelMaker()
    source, result = maker.tensor("x", [1, 4]), maker.tensor("layer", [1, 5])
    maker.operator("RESHAPE", [source], [result], options=("ReshapeOptions", {"new_shape": [-1, 5]}))
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


# The graph.


@case("dynamic-tensor", "refused", layer="layer")
def _output_without_rows() -> bytes:
    return unary("RELU", "FLOAT32", given=None, made=None, shape=(0, 4))


@case("open-dimension", "runs", layer="x", words=["[1, 1, 4]"])
def _open_length() -> bytes:
    maker = ModelMaker()
    source = maker.tensor("x", [1, 1, 4], shape_signature=[-1, -1, 4])
    result = maker.tensor("layer", [1, 1, 4], shape_signature=[-1, -1, 4])
    maker.operator("RELU", [source], [result])
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


@case("unwritten-tensor", "silent", layer="layer")
def _reads_what_nobody_writes() -> bytes:
    maker = ModelMaker()
    source, nothing, result = (maker.tensor(n, [1, 4]) for n in ("x", "nothing", "layer"))
    maker.operator("ADD", [source, nothing], [result], options=("AddOptions", {}))
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


@case("unwritten-tensor", "silent", name="order", layer="second")
def _operators_in_the_wrong_order() -> bytes:
    maker = ModelMaker()
    source, first, second = (maker.tensor(n, [1, 4]) for n in ("x", "first", "second"))
    maker.operator("RELU", [first], [second])
    maker.operator("RELU", [source], [first])
    maker.subgraph(inputs=[source], outputs=[second])
    return maker.finish()


@case("unwritten-tensor", "silent", name="output", layer="nothing")
def _output_that_nobody_writes() -> bytes:
    maker = ModelMaker()
    source, result, nothing = (maker.tensor(n, [1, 4]) for n in ("x", "layer", "nothing"))
    maker.operator("RELU", [source], [result])
    maker.subgraph(inputs=[source], outputs=[result, nothing])
    return maker.finish()


@case("written-constant", "silent", layer="layer")
def _writes_to_a_constant() -> bytes:
    maker = ModelMaker()
    source, result = maker.tensor("x", [1, 4]), maker.tensor("layer", [1, 4], data=np.ones((1, 4)))
    maker.operator("RELU", [source], [result])
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


@case("unfused-lstm", "runs", layer="value_out")
def _recurrent_layer_as_a_loop() -> bytes:
    maker = ModelMaker()
    shape = [1, 2]
    ends = [maker.tensor("steps", [1]), maker.tensor("value", shape)]
    results = [maker.tensor("value_out", [1]), maker.tensor("value_end", shape)]
    options = ("WhileOptions", {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    maker.operator("WHILE", ends, results, options=options)
    maker.subgraph(inputs=ends, outputs=results)

    ends = [maker.tensor("steps", [1]), maker.tensor("value", shape)]
    limit, goes_on = maker.tensor("limit", [1], data=np.array([3.0])), maker.tensor("goes_on", [1], "BOOL")
    maker.operator("LESS", [ends[0], limit], [goes_on])
    maker.subgraph(inputs=ends, outputs=[goes_on], name="cond")

    ends = [maker.tensor("steps", [1]), maker.tensor("value", shape)]
    one, more = maker.tensor("one", [1], data=np.ones(1)), maker.tensor("more", [1])
    weights = maker.tensor("weights", [2, 2], data=np.full((2, 2), 0.5))
    mixed, gate = maker.tensor("mixed", shape), maker.tensor("gate", shape)
    maker.operator("ADD", [ends[0], one], [more], options=("AddOptions", {}))
    maker.operator("FULLY_CONNECTED", [ends[1], weights, -1], [mixed], options=("FullyConnectedOptions", {}))
    maker.operator("LOGISTIC", [mixed], [gate])
    maker.subgraph(inputs=ends, outputs=[more, gate], name="body")
    return maker.finish()


case("control-flow", "runs", name="if", layer="result", words=["3 subgraphs", "IF"])(make_if)
case("resource-variables", "runs", name="call_once", layer="handle", words=["1 resource"])(make_call_once)
case("kept-state", "runs", name="svdf", layer="state")(make_svdf)


@case("several-subgraphs", "runs", name="bundled", runtime="bundled", words=["2 subgraphs", "--runtime tflm"])
@case("unused-subgraph", "runs", words=["first 1"])
def _second_signature() -> bytes:
    maker = ModelMaker()
    for name in ("main", "train"):
        source, result = maker.tensor("x", [1, 4]), maker.tensor("layer", [1, 4])
        maker.operator("RELU", [source], [result])
        maker.subgraph(inputs=[source], outputs=[result], name=name)
    return maker.finish()


@case("unset-variable", "runs", layer="old")
def _variable_that_is_never_set() -> bytes:
    maker = ModelMaker()
    source = maker.tensor("x", [1, 4], "INT8", scale=0.5)
    handle = maker.tensor("handle", [1], "RESOURCE")
    old, total = (maker.tensor(n, [1, 4], "INT8", scale=0.5) for n in ("old", "total"))
    maker.operator("VAR_HANDLE", [], [handle], options=("VarHandleOptions", {"container": "", "shared_name": "v"}))
    maker.operator("READ_VARIABLE", [handle], [old], options=("ReadVariableOptions", {}))
    maker.operator("ADD", [old, source], [total], options=("AddOptions", {}), version=2)
    maker.subgraph(inputs=[source], outputs=[total])
    return maker.finish()


# Boards: microbit has 16 KiB of RAM and 256 KiB of flash (tests/unit/test_cli.py).


@case("flash-too-small", "runs", board="microbit", words=["microbit", "262,144"])
def _model_of_half_a_megabyte() -> bytes:
    maker = ModelMaker()
    source, result = maker.tensor("x", [1, 4]), maker.tensor("layer", [1, 4])
    maker.tensor("table", [1 << 17], data=np.zeros(1 << 17))
    maker.operator("RELU", [source], [result])
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


@case("ram-too-small", "runs", board="microbit", layer="layer", words=["20,000", "16,384"])
def _picture_of_ten_thousand_pixels() -> bytes:
    return unary("RELU", shape=(1, 100, 100, 1))


def clean_models() -> Mapping[str, bytes]:
    """Return models that no rule finds an error in, each near one that a rule does."""
    return {
        "dense": dense(),
        "dense_float": dense(activation="FLOAT32", weights="FLOAT32"),
        "dense_int16": dense(activation="INT16"),
        "dense_channels": dense(w=[0.1, 0.2]),
        "dense_bias": dense(with_bias=True, bias=0.05),
        "dense_bias_nearly": dense(with_bias=True, bias=0.0595),
        "dense_relu6": dense(fused="RELU6"),
        "dense_relu_n1": dense(fused="RELU_N1_TO_1"),
        "dense_zero_points": dense(x_zero=-128, y_zero=127, w_zero=5),
        "convolution": convolution(w=[0.1, 0.2, 0.3, 0.4]),
        "depthwise": convolution(op="DEPTHWISE_CONV_2D", w=[0.1] * 4),
        "softmax": unary("SOFTMAX", made=(1 / 256, -128), options=("SoftmaxOptions", {"beta": 1.0}), version=2),
        "softmax_int16": unary(
            "SOFTMAX", "INT16", made=(1 / 32768, 0), options=("SoftmaxOptions", {"beta": 1.0}), version=3
        ),
        "logistic": unary("LOGISTIC", made=(1 / 256, -128), version=2),
        "tanh": unary("TANH", made=(1 / 128, 0), version=2),
        "tanh_int16": unary("TANH", "INT16", given=(1 / 4096, 0), made=(1 / 32768, 0), version=3),
        "log_softmax": unary("LOG_SOFTMAX", made=(16 / 256, 127), version=2),
        "pooling": unary("MAX_POOL_2D", shape=(1, 1, 1, 4), options=("Pool2DOptions", POOL), version=2),
        "uint8_edge": unary("QUANTIZE", "UINT8", given=(0.5, 128), made_type="INT8", options=("QuantizeOptions", {})),
        "scalar": unary("RELU", "FLOAT32", given=None, made=None, shape=()),
        "open_batch": _open_batch(),
        "reshape": _reshape(),
        "lstm": lstm(),
        **{f"constant {name}": build(True) for name, build in OPERANDS.items()},
    }


def _open_batch() -> bytes:
    maker = ModelMaker()
    source = maker.tensor("x", [1, 4], shape_signature=[-1, 4])
    result = maker.tensor("layer", [1, 4], shape_signature=[-1, 4])
    maker.operator("RELU", [source], [result])
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()


def _reshape() -> bytes:
    maker = ModelMaker()
    source, result = maker.tensor("x", [1, 4]), maker.tensor("layer", [2, 2])
    shape = maker.tensor("shape", [2], "INT32", data=np.array([-1, 2]))
    maker.operator("RESHAPE", [source, shape], [result], options=("ReshapeOptions", {"new_shape": [-1, 2]}))
    maker.subgraph(inputs=[source], outputs=[result])
    return maker.finish()
