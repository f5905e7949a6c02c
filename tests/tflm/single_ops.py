"""Models of one operator each, in given tensor types: what the interpreter makes of them is what a kernel takes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.modelmaker import ModelMaker

Options = tuple[str, Mapping[str, Any]]
QUANTIZED = ("INT8", "INT16", "UINT8")


class SingleOp:
    """Builds a model with one operator; tensors of integer types that may be quantized are."""

    def __init__(self, name: str) -> None:
        self.maker = ModelMaker()
        self.name = name
        self.inputs: list[int] = []

    def tensor(self, shape: list[int], type_: str, *, data: Any = None, scale: float = 0.5) -> int:
        quantization = {"scale": scale, "zero_point": 0} if type_ in QUANTIZED else {}
        return self.maker.tensor(f"t{len(self.inputs)}", shape, type_, data=data, **quantization)

    def input(self, shape: list[int], type_: str, *, scale: float = 0.5) -> int:
        index = self.tensor(shape, type_, scale=scale)
        self.inputs.append(index)
        return index

    def constant(self, values: Any, type_: str = "INT32") -> int:
        array = np.asarray(values)
        return self.tensor(list(array.shape), type_, data=array)

    def finish(self, inputs: list[int], outputs: list[int], options: Options | None = None, version: int = 1) -> bytes:
        self.maker.operator(self.name, inputs, outputs, options=options, version=version)
        self.maker.subgraph(inputs=self.inputs, outputs=outputs)
        return self.maker.finish()


Builder = Callable[[str, str, str], bytes]
"""Operator's name, type of its input, type of its output."""


def unary(
    shape: list[int], options: Options | None = None, *, scale: float = 0.5, out: list[int] | None = None
) -> Builder:
    def build(name: str, type_: str, result: str) -> bytes:
        op = SingleOp(name)
        x = op.input(shape, type_, scale=scale)
        return op.finish([x], [op.tensor(out or shape, result, scale=scale)], options)

    return build


def scaled(output_scales: Mapping[str, float], options: Options | None = None) -> Builder:
    """A unary op whose output has a scale that the kernel prescribes, and zero point -128 for int8."""

    def build(name: str, type_: str, result: str) -> bytes:
        op = SingleOp(name)
        x = op.input([1, 4], type_, scale=1 / 4096 if type_ == "INT16" else 0.1)
        zero = -128 if result == "INT8" and name in ("SOFTMAX", "LOGISTIC") else 0
        zero = 127 if result == "INT8" and name == "LOG_SOFTMAX" else zero
        quantization = {"scale": output_scales.get(result, 0.5), "zero_point": zero} if result in QUANTIZED else {}
        y = op.maker.tensor("y", [1, 4], result, **quantization)
        return op.finish([x], [y], options)

    return build


def binary(options: Options | None = None) -> Builder:
    def build(name: str, type_: str, result: str) -> bytes:
        op = SingleOp(name)
        a, b = op.input([1, 4], type_), op.input([1, 4], type_)
        return op.finish([a, b], [op.tensor([1, 4], result, scale=1.0)], options)

    return build


def indexed(
    shape: list[int], values: Any, out: list[int], options: Options | None = None, kind: str = "INT32"
) -> Builder:
    """An op with data and one constant: axes, paddings, a shape."""

    def build(name: str, type_: str, result: str) -> bytes:
        op = SingleOp(name)
        x = op.input(shape, type_)
        return op.finish([x, op.constant(values, kind)], [op.tensor(out, result)], options)

    return build


def several_constants(
    shape: list[int], constants: list[Any], out: list[int], options: Options | None = None
) -> Builder:
    def build(name: str, type_: str, result: str) -> bytes:
        op = SingleOp(name)
        x = op.input(shape, type_)
        return op.finish([x, *(op.constant(c) for c in constants)], [op.tensor(out, result)], options)

    return build


def split(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    axis, x = op.constant(np.int32(1)), op.input([1, 4], type_)
    options = ("SplitOptions", {"num_splits": 2})
    return op.finish([axis, x], [op.tensor([1, 2], result) for _ in range(2)], options)


def split_v(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    x = op.input([1, 4], type_)
    inputs = [x, op.constant([1, 3]), op.constant(np.int32(1))]
    return op.finish(
        inputs, [op.tensor([1, 1], result), op.tensor([1, 3], result)], ("SplitVOptions", {"num_splits": 2})
    )


def unpack(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    x = op.input([2, 4], type_)
    return op.finish([x], [op.tensor([4], result) for _ in range(2)], ("UnpackOptions", {"num": 2, "axis": 0}))


def select(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    condition = op.input([1, 4], "BOOL")
    a, b = op.input([1, 4], type_), op.input([1, 4], type_)
    return op.finish([condition, a, b], [op.tensor([1, 4], result)], ("SelectV2Options", {}))


def fill(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    value = op.input([], type_)
    return op.finish([op.constant([2, 2]), value], [op.tensor([2, 2], result)], ("FillOptions", {}))


def pad_v2(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    x = op.input([1, 2, 2, 1], type_)
    paddings, value = op.constant([[0, 0], [1, 1], [1, 1], [0, 0]]), op.constant([0], type_)
    return op.finish([x, paddings, value], [op.tensor([1, 4, 4, 1], result)], ("PadV2Options", {}))


def weighted(shape: list[int], weights: list[int], out: list[int], options: Options, channels: int) -> Builder:
    def build(name: str, type_: str, result: str) -> bytes:
        op = SingleOp(name)
        x = op.input(shape, type_)
        kind = "FLOAT32" if type_ == "FLOAT32" else "INT8"
        w = op.tensor(weights, kind, data=np.zeros(weights))
        bias = {"INT8": "INT32", "INT16": "INT64"}.get(type_, "FLOAT32")
        b = op.maker.tensor("b", [channels], bias, data=np.zeros(channels), scale=0.25 if bias != "FLOAT32" else None)
        return op.finish([x, w, b], [op.tensor(out, result)], options)

    return build


def embedding(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    lookup = op.input([2], type_)
    value = op.tensor([3, 4], result, data=np.zeros((3, 4)))
    return op.finish([lookup, value], [op.tensor([2, 4], result)])


IMAGE = [1, 2, 2, 4]
POOL = ("Pool2DOptions", {"padding": "VALID", "stride_w": 1, "stride_h": 1, "filter_width": 2, "filter_height": 2})
CONV = (
    "Conv2DOptions",
    {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1},
)
DEPTHWISE = (
    "DepthwiseConv2DOptions",
    {
        "padding": "VALID", "stride_w": 1, "stride_h": 1, "depth_multiplier": 1, "dilation_w_factor": 1,
        "dilation_h_factor": 1,
    },
)  # fmt: skip
ARGUMENT = ("ReducerOptions", {"keep_dims": True})

BUILDERS: Mapping[str, Builder] = {
    **dict.fromkeys(
        (
            "ABS",
            "CEIL",
            "COS",
            "ELU",
            "EXP",
            "FLOOR",
            "HARD_SWISH",
            "LEAKY_RELU",
            "LOG",
            "LOGICAL_NOT",
            "NEG",
            "RELU",
            "RELU6",
            "ROUND",
            "RSQRT",
            "SIN",
            "SQRT",
            "SQUARE",
            "ZEROS_LIKE",
        ),
        unary([1, 4]),
    ),
    "L2_NORMALIZATION": scaled({"INT8": 1 / 128}, ("L2NormOptions", {})),
    "SOFTMAX": scaled({"INT8": 1 / 256, "INT16": 1 / 32768}, ("SoftmaxOptions", {"beta": 1.0})),
    "LOGISTIC": scaled({"INT8": 1 / 256, "INT16": 1 / 32768}),
    "TANH": scaled({"INT8": 1 / 128, "INT16": 1 / 32768}),
    "LOG_SOFTMAX": scaled({"INT8": 16 / 256}),
    "ADD": binary(("AddOptions", {"pot_scale_int16": False})),
    "SUB": binary(("SubOptions", {"pot_scale_int16": False})),
    "MUL": binary(("MulOptions", {})),
    "DIV": binary(("DivOptions", {})),
    **dict.fromkeys(
        (
            "MAXIMUM",
            "MINIMUM",
            "FLOOR_DIV",
            "FLOOR_MOD",
            "SQUARED_DIFFERENCE",
            "LOGICAL_AND",
            "LOGICAL_OR",
            "EQUAL",
            "NOT_EQUAL",
            "GREATER",
            "GREATER_EQUAL",
            "LESS",
            "LESS_EQUAL",
            "ADD_N",
        ),
        binary(),
    ),
    "CONCATENATION": lambda n, t, r: _concatenation(n, t, r),
    "PACK": lambda n, t, r: _pack(n, t, r),
    "UNPACK": unpack,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "SLICE": several_constants([1, 4], [[0, 1], [1, 2]], [1, 2]),
    "STRIDED_SLICE": several_constants([1, 4], [[0, 0], [1, 2], [1, 1]], [1, 2], ("StridedSliceOptions", {})),
    "PAD": indexed([1, 2, 2, 1], [[0, 0], [1, 1], [1, 1], [0, 0]], [1, 4, 4, 1], ("PadOptions", {})),
    "PADV2": pad_v2,
    "MIRROR_PAD": indexed([2, 2], [[1, 1], [1, 1]], [4, 4], ("MirrorPadOptions", {"mode": 1})),
    "TRANSPOSE": indexed([2, 3], [1, 0], [3, 2], ("TransposeOptions", {})),
    "GATHER": indexed([3, 2], [0, 2], [2, 2], ("GatherOptions", {"axis": 0})),
    "GATHER_ND": indexed([3, 2], [[0], [2]], [2, 2], ("GatherNdOptions", {})),
    "EXPAND_DIMS": indexed([4], np.int32(0), [1, 4], ("ExpandDimsOptions", {})),
    "MEAN": indexed([1, 2, 2, 4], [1, 2], [1, 1, 1, 4], ARGUMENT),
    "SUM": indexed([1, 2, 2, 4], [1, 2], [1, 1, 1, 4], ARGUMENT),
    "REDUCE_MAX": indexed([1, 2, 2, 4], [1, 2], [1, 1, 1, 4], ARGUMENT),
    "REDUCE_MIN": indexed([1, 2, 2, 4], [1, 2], [1, 1, 1, 4], ARGUMENT),
    "REDUCE_ALL": indexed([1, 2, 2, 4], [1, 2], [1, 1, 1, 4], ARGUMENT),
    "ARG_MAX": indexed([1, 4], np.int32(1), [1], ("ArgMaxOptions", {"output_type": "INT32"})),
    "ARG_MIN": indexed([1, 4], np.int32(1), [1], ("ArgMinOptions", {"output_type": "INT32"})),
    "CUMSUM": indexed([1, 4], np.int32(1), [1, 4], ("CumsumOptions", {})),
    "REVERSE_V2": indexed([2, 2], [0], [2, 2], ("ReverseV2Options", {})),
    "BROADCAST_TO": indexed([1, 4], [2, 4], [2, 4], ("BroadcastToOptions", {})),
    "CAST": unary([1, 4], ("CastOptions", {})),
    "DEQUANTIZE": unary([1, 4], ("DequantizeOptions", {})),
    "QUANTIZE": unary([1, 4], ("QuantizeOptions", {})),
    "AVERAGE_POOL_2D": unary(IMAGE, POOL, out=[1, 1, 1, 4]),
    "MAX_POOL_2D": unary(IMAGE, POOL, out=[1, 1, 1, 4]),
    "L2_POOL_2D": unary(IMAGE, POOL, out=[1, 1, 1, 4]),
    "DEPTH_TO_SPACE": unary(IMAGE, ("DepthToSpaceOptions", {"block_size": 2}), out=[1, 4, 4, 1]),
    "SPACE_TO_DEPTH": unary([1, 4, 4, 1], ("SpaceToDepthOptions", {"block_size": 2}), out=IMAGE),
    "RESIZE_BILINEAR": indexed(IMAGE, [4, 4], [1, 4, 4, 4], ("ResizeBilinearOptions", {})),
    "RESIZE_NEAREST_NEIGHBOR": indexed(IMAGE, [4, 4], [1, 4, 4, 4], ("ResizeNearestNeighborOptions", {})),
    "CONV_2D": weighted(IMAGE, [2, 1, 1, 4], [1, 2, 2, 2], CONV, 2),
    "DEPTHWISE_CONV_2D": weighted(IMAGE, [1, 1, 1, 4], IMAGE, DEPTHWISE, 4),
    "FULLY_CONNECTED": weighted([1, 4], [2, 4], [1, 2], ("FullyConnectedOptions", {}), 2),
    "BATCH_MATMUL": lambda n, t, r: _batch_matmul(n, t, r),
    "PRELU": lambda n, t, r: _prelu(n, t, r),
    "SPACE_TO_BATCH_ND": several_constants(
        [1, 2, 2, 1], [[2, 2], [[0, 0], [0, 0]]], [4, 1, 1, 1], ("SpaceToBatchNDOptions", {})
    ),
    "BATCH_TO_SPACE_ND": several_constants(
        [4, 1, 1, 1], [[2, 2], [[0, 0], [0, 0]]], [1, 2, 2, 1], ("BatchToSpaceNDOptions", {})
    ),
}
"""How to build each op whose first input is the data."""

OUTPUT_BUILDERS: Mapping[str, Builder] = {"SELECT_V2": select, "FILL": fill, "SPLIT": split}
"""Ops whose first input is not the data: the type that varies is that of the data and of the output."""


def _concatenation(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    a, b = op.input([1, 2], type_), op.input([1, 2], type_)
    return op.finish([a, b], [op.tensor([1, 4], result)], ("ConcatenationOptions", {"axis": 1}))


def _pack(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    a, b = op.input([4], type_), op.input([4], type_)
    return op.finish([a, b], [op.tensor([2, 4], result)], ("PackOptions", {"values_count": 2, "axis": 0}))


def _batch_matmul(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    a, b = op.input([1, 2, 3], type_), op.input([1, 3, 2], type_)
    return op.finish([a, b], [op.tensor([1, 2, 2], result)], ("BatchMatMulOptions", {}))


def _prelu(name: str, type_: str, result: str) -> bytes:
    op = SingleOp(name)
    x = op.input([1, 4], type_)
    alpha = op.constant(np.zeros(4), "INT8" if type_ == "INT16" else type_)
    return op.finish([x, alpha], [op.tensor([1, 4], result)])


def _transposed(rank: int) -> bytes:
    shape = list(range(1, rank + 1))
    build = indexed(shape, list(reversed(range(rank))), shape[::-1], ("TransposeOptions", {}))
    return build("TRANSPOSE", "FLOAT32", "FLOAT32")


def _strided(rank: int) -> bytes:
    constants = [[0] * rank, [1] * rank, [1] * rank]
    build = several_constants([1] * rank, constants, [1] * rank, ("StridedSliceOptions", {}))
    return build("STRIDED_SLICE", "FLOAT32", "FLOAT32")


def _padded(rank: int) -> bytes:
    return indexed([1] * rank, [[0, 1]] * rank, [2] * rank, ("PadOptions", {}))("PAD", "FLOAT32", "FLOAT32")


def _batched(rank: int) -> bytes:
    shape = [1, 2, 2, 1] if rank == 4 else [1, 2, 1]
    block, out = ([2, 2], [4, 1, 1, 1]) if rank == 4 else ([2], [2, 1, 1])
    constants = [block, [[0, 0]] * len(block)]
    build = several_constants(shape, constants, out, ("SpaceToBatchNDOptions", {}))
    return build("SPACE_TO_BATCH_ND", "FLOAT32", "FLOAT32")


def _resized(kind: str) -> bytes:
    options = (f"Resize{kind}Options", {"half_pixel_centers": True})
    name = {"Bilinear": "RESIZE_BILINEAR", "NearestNeighbor": "RESIZE_NEAREST_NEIGHBOR"}[kind]
    return indexed(IMAGE, [4, 4], [1, 4, 4, 4], options)(name, "INT8", "INT8")


def _with_int32_bias(name: str) -> bytes:
    op = SingleOp(name)
    x = op.input(IMAGE if name == "CONV_2D" else [1, 4], "INT16")
    shape, out = ([2, 1, 1, 4], [1, 2, 2, 2]) if name == "CONV_2D" else ([2, 4], [1, 2])
    w = op.tensor(shape, "INT8", data=np.zeros(shape))
    b = op.maker.tensor("b", [2], "INT32", data=np.zeros(2), scale=0.25)
    table, fields = CONV if name == "CONV_2D" else ("FullyConnectedOptions", {})
    return op.finish([x, w, b], [op.tensor(out, "INT16")], (table, {**fields, "quantized_bias_type": "INT32"}))


def _grouped_convolution() -> bytes:
    op = SingleOp("CONV_2D")
    x = op.input(IMAGE, "FLOAT32")
    w, b = op.tensor([2, 1, 1, 2], "FLOAT32", data=np.ones((2, 1, 1, 2))), op.constant(np.zeros(2), "FLOAT32")
    return op.finish([x, w, b], [op.tensor([1, 2, 2, 2], "FLOAT32")], CONV)


FEATURES: Mapping[str, tuple[int, Callable[[], bytes]]] = {
    "TRANSPOSE.5_dimensions": (4, lambda: _transposed(5)),
    "TRANSPOSE.6_dimensions": (6, lambda: _transposed(6)),
    "STRIDED_SLICE.4_dimensions": (1, lambda: _strided(4)),
    "STRIDED_SLICE.5_dimensions": (4, lambda: _strided(5)),
    "PAD.5_dimensions": (4, lambda: _padded(5)),
    "SPACE_TO_BATCH_ND.3_dimensions": (3, lambda: _batched(3)),
    "SPACE_TO_BATCH_ND.4_dimensions": (1, lambda: _batched(4)),
    "RESIZE_BILINEAR.half_pixel_centers": (3, lambda: _resized("Bilinear")),
    "RESIZE_NEAREST_NEIGHBOR.half_pixel_centers": (3, lambda: _resized("NearestNeighbor")),
    "CONV_2D.int32_bias": (8, lambda: _with_int32_bias("CONV_2D")),
    "CONV_2D.groups": (6, _grouped_convolution),
    "FULLY_CONNECTED.int32_bias": (11, lambda: _with_int32_bias("FULLY_CONNECTED")),
}
"""Features that raise an op's version, as "OP.feature", with that version."""
