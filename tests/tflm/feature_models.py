"""Small models of what only TFLM runs: several subgraphs, variables, more types, more inputs and outputs."""

from collections.abc import Callable

import numpy as np

from tests.modelmaker import ModelMaker

SHAPE = [1, 4]
ADD_INT8 = ("AddOptions", {"fused_activation_function": "NONE"})
MUL_INT8 = ("MulOptions", {"fused_activation_function": "NONE"})
Rng = np.random.Generator


def _int8(maker: ModelMaker, name: str, shape: list[int] = SHAPE, *, data: object = None, scale: float = 0.5) -> int:
    values = None if data is None else np.asarray(data, np.int8).reshape(shape)
    return maker.tensor(name, shape, "INT8", scale=scale, zero_point=0, data=values)


def _add_subgraph(maker: ModelMaker, name: str, addend: int) -> int:
    x = _int8(maker, f"{name}_x")
    y = _int8(maker, f"{name}_y")
    c = _int8(maker, f"{name}_c", [1], data=[addend])
    maker.operator("ADD", [x, c], [y], options=ADD_INT8, version=2)
    return maker.subgraph(inputs=[x], outputs=[y], name=name)


def make_while() -> bytes:
    """Add 3 to a vector until a counter that starts at the first input is 100: as often as the input says."""
    maker = ModelMaker()
    counter, value = _int8(maker, "counter", [1]), _int8(maker, "value")
    results = [_int8(maker, "counter_out", [1]), _int8(maker, "value_out")]
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    maker.operator("WHILE", [counter, value], results, options=("WhileOptions", options))
    maker.subgraph(inputs=[counter, value], outputs=results)

    counter, value = _int8(maker, "cond_counter", [1]), _int8(maker, "cond_value")
    limit = _int8(maker, "limit", [1], data=[100])
    goes_on = maker.tensor("goes_on", [1], "BOOL")
    maker.operator("LESS", [counter, limit], [goes_on], version=2)
    maker.subgraph(inputs=[counter, value], outputs=[goes_on], name="cond")

    ends = [_int8(maker, "body_counter", [1]), _int8(maker, "body_value")]
    results = [_int8(maker, "next_counter", [1]), _int8(maker, "next_value")]
    steps = [_int8(maker, "step", [1], data=[11]), _int8(maker, "addend", [1], data=[3])]
    for end, step, result in zip(ends, steps, results, strict=True):
        maker.operator("ADD", [end, step], [result], options=ADD_INT8, version=2)
    maker.subgraph(inputs=ends, outputs=results, name="body")
    return maker.finish()


def make_if() -> bytes:
    """Add 5 or subtract 7 as the sign of the first input says."""
    maker = ModelMaker()
    sign, value = _int8(maker, "sign", [1]), _int8(maker, "value")
    zero = _int8(maker, "zero", [1], data=[0])
    positive = maker.tensor("positive", [1], "BOOL")
    result = _int8(maker, "result")
    maker.operator("GREATER", [sign, zero], [positive], version=2)
    options = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    maker.operator("IF", [positive, value], [result], options=("IfOptions", options))
    maker.subgraph(inputs=[sign, value], outputs=[result])
    _add_subgraph(maker, "then", 5)
    _add_subgraph(maker, "else", -7)
    return maker.finish()


def _handle(maker: ModelMaker, name: str) -> int:
    handle = maker.tensor(name, [1], "RESOURCE")
    maker.operator("VAR_HANDLE", [], [handle], options=("VarHandleOptions", {"container": "", "shared_name": "sum"}))
    return handle


def make_call_once() -> bytes:
    """Sum up all inputs since the reset in a resource variable that CALL_ONCE sets to 10, 20, 30, 40."""
    maker = ModelMaker()
    x = _int8(maker, "x")
    maker.operator("CALL_ONCE", [], [], options=("CallOnceOptions", {"init_subgraph_index": 1}))
    handle = _handle(maker, "handle")
    old, new = _int8(maker, "old"), _int8(maker, "new")
    maker.operator("READ_VARIABLE", [handle], [old], options=("ReadVariableOptions", {}))
    maker.operator("ADD", [old, x], [new], options=ADD_INT8, version=2)
    maker.operator("ASSIGN_VARIABLE", [handle, new], [], options=("AssignVariableOptions", {}))
    maker.subgraph(inputs=[x], outputs=[new])

    handle = _handle(maker, "init_handle")
    first = _int8(maker, "first", data=[10, 20, 30, 40])
    maker.operator("ASSIGN_VARIABLE", [handle, first], [], options=("AssignVariableOptions", {}))
    maker.subgraph(inputs=[], outputs=[], name="init")
    return maker.finish()


def make_svdf() -> bytes:
    """One SVDF with its state in a variable tensor, that goes on from input to input."""
    rng, maker = np.random.default_rng(1), ModelMaker()
    filters, memory, size = 4, 3, 8
    x = _int8(maker, "x", [1, size], scale=0.5)
    feature = _int8(maker, "feature", [filters, size], data=rng.integers(-127, 128, filters * size), scale=0.02)
    time = maker.tensor(
        "time", [filters, memory], "INT16", scale=0.001, data=rng.integers(-999, 999, (filters, memory))
    )
    bias = maker.tensor("bias", [filters], "INT32", scale=0.0005, data=rng.integers(-999, 999, filters))
    state = maker.tensor("state", [1, filters * memory], "INT16", scale=0.5, is_variable=True)
    y = _int8(maker, "y", [1, filters], scale=0.4)
    options = ("SVDFOptions", {"rank": 1, "fused_activation_function": "RELU"})
    maker.operator("SVDF", [x, feature, time, bias, state], [y], options=options, version=3)
    maker.subgraph(inputs=[x], outputs=[y])
    return maker.finish()


def make_many_ends() -> bytes:
    """Three inputs of two types and shapes, four outputs; one of them feeds the operator that gives two others."""
    maker = ModelMaker()
    a, b = _int8(maker, "a"), _int8(maker, "b", scale=0.25)
    c = maker.tensor("c", [2, 3])
    total = _int8(maker, "total", scale=1.0)
    maker.operator("ADD", [a, b], [total], options=ADD_INT8, version=2)
    axis = maker.tensor("axis", [], "INT32", data=np.asarray(1))
    halves = [_int8(maker, f"half_{i}", [1, 2], scale=1.0) for i in range(2)]
    maker.operator("SPLIT", [axis, total], halves, options=("SplitOptions", {"num_splits": 2}), version=2)
    negative = maker.tensor("negative", [2, 3])
    maker.operator("NEG", [c], [negative], options=("NegOptions", {}))
    maker.subgraph(inputs=[a, b, c], outputs=[halves[1], negative, halves[0], total])
    return maker.finish()


def make_int16x8() -> bytes:
    """Convolution and dense layer with int16 activations, int8 weights and int64 biases, then softmax."""
    rng, maker = np.random.default_rng(2), ModelMaker()
    x = maker.tensor("x", [1, 6, 6, 2], "INT16", scale=1 / 4096)
    weights = maker.tensor("w", [4, 3, 3, 2], "INT8", scale=[0.01] * 4, data=rng.integers(-127, 128, (4, 3, 3, 2)))
    bias = maker.tensor("b", [4], "INT64", scale=[0.01 / 4096] * 4, data=rng.integers(-9999, 9999, 4))
    y = maker.tensor("y", [1, 4, 4, 4], "INT16", scale=1 / 1024)
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    maker.operator("CONV_2D", [x, weights, bias], [y], options=("Conv2DOptions", options), version=4)
    flat = maker.tensor("flat", [1, 64], "INT16", scale=1 / 1024)
    shape = maker.tensor("shape", [2], "INT32", data=np.asarray([1, 64]))
    maker.operator("RESHAPE", [y, shape], [flat], options=("ReshapeOptions", {"new_shape": [1, 64]}))
    weights = maker.tensor("dense_w", [3, 64], "INT8", scale=0.02, data=rng.integers(-127, 128, (3, 64)))
    bias = maker.tensor("dense_b", [3], "INT64", scale=0.02 / 1024, data=rng.integers(-9999, 9999, 3))
    z = maker.tensor("z", [1, 3], "INT16", scale=1 / 512)
    maker.operator("FULLY_CONNECTED", [flat, weights, bias], [z], options=("FullyConnectedOptions", {}), version=5)
    p = maker.tensor("p", [1, 3], "INT16", scale=1 / 32768)
    maker.operator("SOFTMAX", [z], [p], options=("SoftmaxOptions", {"beta": 1.0}), version=3)
    maker.subgraph(inputs=[x], outputs=[p, z])
    return maker.finish()


def make_uint8_edges() -> bytes:
    """UINT8 in and out around an int8 layer, and the same result as float."""
    rng, maker = np.random.default_rng(3), ModelMaker()
    x = maker.tensor("x", [1, 8], "UINT8", scale=0.5, zero_point=128)
    inner = maker.tensor("inner", [1, 8], "INT8", scale=0.5, zero_point=0)
    maker.operator("QUANTIZE", [x], [inner], options=("QuantizeOptions", {}))
    weights = _int8(maker, "w", [4, 8], data=rng.integers(-127, 128, 32), scale=0.01)
    bias = maker.tensor("b", [4], "INT32", scale=0.005, data=rng.integers(-999, 999, 4))
    y = maker.tensor("y", SHAPE, "INT8", scale=2.0, zero_point=3)
    maker.operator("FULLY_CONNECTED", [inner, weights, bias], [y], options=("FullyConnectedOptions", {}), version=4)
    out = maker.tensor("out", SHAPE, "UINT8", scale=2.0, zero_point=131)
    maker.operator("QUANTIZE", [y], [out], options=("QuantizeOptions", {}))
    real = maker.tensor("real", SHAPE)
    maker.operator("DEQUANTIZE", [y], [real], options=("DequantizeOptions", {}), version=2)
    maker.subgraph(inputs=[x], outputs=[out, real])
    return maker.finish()


def make_channel_scales() -> bytes:
    """A dense layer whose weights have a scale for each output: TFLM miscomputed it once."""
    rng, maker = np.random.default_rng(4), ModelMaker()
    x = _int8(maker, "x", [1, 8])
    scales = [0.002, 0.01, 0.05, 0.02]
    weights = maker.tensor("w", [4, 8], "INT8", scale=scales, data=rng.integers(-127, 128, (4, 8)))
    bias_scales = [scale * 0.5 for scale in scales]
    bias = maker.tensor("b", [4], "INT32", scale=bias_scales, data=rng.integers(-999, 999, 4))
    y = maker.tensor("y", SHAPE, "INT8", scale=1.0, zero_point=-3)
    maker.operator("FULLY_CONNECTED", [x, weights, bias], [y], options=("FullyConnectedOptions", {}), version=4)
    maker.subgraph(inputs=[x], outputs=[y])
    return maker.finish()


FEATURES: dict[str, Callable[[], bytes]] = {
    "while": make_while,
    "if": make_if,
    "call_once": make_call_once,
    "svdf": make_svdf,
    "many_ends": make_many_ends,
    "int16x8": make_int16x8,
    "uint8_edges": make_uint8_edges,
    "channel_scales": make_channel_scales,
}
STATEFUL = ("call_once", "svdf")
