"""Single-op models for the kernel tests, with random constants."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tflite

from tests.modelmaker import ModelMaker

Rng = np.random.Generator
ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")
PADDINGS = ("SAME", "VALID")


@dataclass(frozen=True, kw_only=True)
class Quant:
    """Scale and zero point of an int8 tensor; None stands for float32."""

    scale: float
    zero_point: int


@dataclass(frozen=True, kw_only=True)
class Window:
    """How a filter or pool slides."""

    height: int
    width: int
    stride_h: int = 1
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    padding: str = "SAME"

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """Output size as TensorFlow documents it; below 1 when the window does not fit."""
        sizes = []
        for size, taps, stride, dilation in (
            (height, self.height, self.stride_h, self.dilation_h),
            (width, self.width, self.stride_w, self.dilation_w),
        ):
            covered = (taps - 1) * dilation + 1
            room = size if self.padding == "SAME" else size - covered + 1
            sizes.append(math.ceil(room / stride))
        return sizes[0], sizes[1]

    def options(self) -> dict[str, int]:
        return {
            "padding": getattr(tflite.Padding, self.padding),
            "stride_h": self.stride_h,
            "stride_w": self.stride_w,
        }

    def dilation_options(self) -> dict[str, int]:
        return {"dilation_h_factor": self.dilation_h, "dilation_w_factor": self.dilation_w}


def activation_code(name: str) -> int:
    return int(getattr(tflite.ActivationFunctionType, name))


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What the constants of an op with weights are drawn from.

    Attributes:
        per_channel: one scale for each output channel.
        has_bias: whether there is a bias.
        great_bias: whether biases may be far greater than the sums of products.
        gain: log2 of how far the outputs spread, against about a quarter of the int8 range.
    """

    per_channel: bool = True
    has_bias: bool = True
    great_bias: bool = False
    gain: float = 0.0


def _activation_tensor(maker: ModelMaker, name: str, shape: Sequence[int], quant: Quant | None) -> int:
    if quant is None:
        return maker.tensor(name, shape, "FLOAT32")
    return maker.tensor(name, shape, "INT8", scale=quant.scale, zero_point=quant.zero_point)


def _weight_tensors(
    maker: ModelMaker,
    rng: Rng,
    shape: Sequence[int],
    axis: int,
    depth: int,
    weights: Weights,
    input_quant: Quant | None,
) -> tuple[list[int], float]:
    """Filter and bias, and an output scale that suits them."""
    channels = shape[axis]
    if input_quant is None:
        tensors = [maker.tensor("filter", shape, "FLOAT32", data=rng.normal(size=shape).astype(np.float32))]
        bias = rng.normal(size=channels).astype(np.float32)
        tensors.append(maker.tensor("bias", [channels], "FLOAT32", data=bias) if weights.has_bias else -1)
        return tensors, 1.0
    count = channels if weights.per_channel else 1
    scales = np.exp2(rng.uniform(-12, -4) + rng.uniform(-3, 3, count)).astype(np.float32)
    if count > 1 and rng.random() < 0.2:
        scales[rng.integers(count)] = 0
    data = rng.integers(-128, 128, shape, np.int8)
    quantized = [float(scale) for scale in scales]
    tensors = [maker.tensor("filter", shape, "INT8", data=data, scale=quantized, axis=axis)]
    spread = 74.0 * 74.0 * math.sqrt(depth)
    limit = 2**28 if weights.great_bias else int(spread) + 1
    bias = rng.integers(-limit, limit, channels).astype(np.int32)
    bias_scales = [float(np.float32(input_quant.scale) * np.float32(scale)) for scale in scales]
    tensors.append(maker.tensor("bias", [channels], "INT32", data=bias, scale=bias_scales) if weights.has_bias else -1)
    output_scale = input_quant.scale * float(np.max(scales)) * spread / 32 * 2**-weights.gain
    return tensors, float(np.float32(output_scale))


def conv_model(
    rng: Rng,
    image: tuple[int, int, int, int],
    out_depth: int,
    window: Window,
    *,
    weights: Weights,
    activation: str = "NONE",
    groups: int = 1,
    input_quant: Quant | None,
    output_zero_point: int = 0,
) -> bytes:
    batches, height, width, in_depth = image
    maker = ModelMaker()
    source = _activation_tensor(maker, "input", image, input_quant)
    filter_shape = [out_depth, window.height, window.width, in_depth // groups]
    constants, scale = _weight_tensors(maker, rng, filter_shape, 0, math.prod(filter_shape[1:]), weights, input_quant)
    output_quant = None if input_quant is None else Quant(scale=scale, zero_point=output_zero_point)
    output = _activation_tensor(maker, "output", [batches, *window.output_size(height, width), out_depth], output_quant)
    options = {
        **window.options(),
        **window.dilation_options(),
        "fused_activation_function": activation_code(activation),
    }
    maker.operator("CONV_2D", [source, *constants], [output], options=("Conv2DOptions", options), version=3)
    maker.subgraph(inputs=[source], outputs=[output])
    return maker.finish()


def depthwise_model(
    rng: Rng,
    image: tuple[int, int, int, int],
    multiplier: int,
    window: Window,
    *,
    weights: Weights,
    activation: str = "NONE",
    input_quant: Quant | None,
    output_zero_point: int = 0,
) -> bytes:
    batches, height, width, in_depth = image
    out_depth = in_depth * multiplier
    maker = ModelMaker()
    source = _activation_tensor(maker, "input", image, input_quant)
    filter_shape = [1, window.height, window.width, out_depth]
    constants, scale = _weight_tensors(maker, rng, filter_shape, 3, window.height * window.width, weights, input_quant)
    output_quant = None if input_quant is None else Quant(scale=scale, zero_point=output_zero_point)
    output = _activation_tensor(maker, "output", [batches, *window.output_size(height, width), out_depth], output_quant)
    options = {
        **window.options(),
        **window.dilation_options(),
        "depth_multiplier": multiplier,
        "fused_activation_function": activation_code(activation),
    }
    if not weights.has_bias:
        # TFLM's interpreter crashes when the bias is in the list and left out (-1).
        constants = constants[:1]
    maker.operator(
        "DEPTHWISE_CONV_2D",
        [source, *constants],
        [output],
        options=("DepthwiseConv2DOptions", options),
        version=3,
    )
    maker.subgraph(inputs=[source], outputs=[output])
    return maker.finish()


def fully_connected_model(
    rng: Rng,
    batches: int,
    inputs: int,
    outputs: int,
    *,
    weights: Weights,
    activation: str = "NONE",
    input_quant: Quant | None,
    output_zero_point: int = 0,
) -> bytes:
    maker = ModelMaker()
    source = _activation_tensor(maker, "input", [batches, inputs], input_quant)
    constants, scale = _weight_tensors(maker, rng, [outputs, inputs], 0, inputs, weights, input_quant)
    output_quant = None if input_quant is None else Quant(scale=scale, zero_point=output_zero_point)
    output = _activation_tensor(maker, "output", [batches, outputs], output_quant)
    options = {"fused_activation_function": activation_code(activation)}
    maker.operator(
        "FULLY_CONNECTED",
        [source, *constants],
        [output],
        options=("FullyConnectedOptions", options),
        version=4,
    )
    maker.subgraph(inputs=[source], outputs=[output])
    return maker.finish()


def pool_model(
    op: str,
    image: tuple[int, int, int, int],
    window: Window,
    *,
    activation: str = "NONE",
    quant: Quant | None,
) -> bytes:
    batches, height, width, depth = image
    maker = ModelMaker()
    source = _activation_tensor(maker, "input", image, quant)
    output = _activation_tensor(maker, "output", [batches, *window.output_size(height, width), depth], quant)
    options = {
        **window.options(),
        "filter_height": window.height,
        "filter_width": window.width,
        "fused_activation_function": activation_code(activation),
    }
    maker.operator(op, [source], [output], options=("Pool2DOptions", options), version=2)
    maker.subgraph(inputs=[source], outputs=[output])
    return maker.finish()


def softmax_model(shape: Sequence[int], beta: float, quant: Quant | None) -> bytes:
    maker = ModelMaker()
    source = _activation_tensor(maker, "input", shape, quant)
    output_quant = None if quant is None else Quant(scale=1 / 256, zero_point=-128)
    output = _activation_tensor(maker, "output", shape, output_quant)
    maker.operator("SOFTMAX", [source], [output], options=("SoftmaxOptions", {"beta": beta}), version=2)
    maker.subgraph(inputs=[source], outputs=[output])
    return maker.finish()


def add_model(
    shapes: tuple[Sequence[int], Sequence[int]],
    quants: tuple[Quant, Quant, Quant] | None,
    activation: str = "NONE",
) -> bytes:
    maker = ModelMaker()
    each = (None, None, None) if quants is None else quants
    sources = [_activation_tensor(maker, f"input_{i}", shapes[i], each[i]) for i in range(2)]
    output = _activation_tensor(maker, "output", np.broadcast_shapes(*map(tuple, shapes)), each[2])
    options = {"fused_activation_function": activation_code(activation)}
    maker.operator("ADD", sources, [output], options=("AddOptions", options), version=2)
    maker.subgraph(inputs=sources, outputs=[output])
    return maker.finish()


def unary_model(
    op: str,
    shape: Sequence[int],
    types: tuple[str, str],
    quants: tuple[Quant | None, Quant | None],
    version: int = 2,
) -> bytes:
    """An op without options that maps each element."""
    maker = ModelMaker()
    ends = []
    for name, type_, quant in zip(("input", "output"), types, quants, strict=True):
        scale = None if quant is None else quant.scale
        zero_point = None if quant is None else quant.zero_point
        ends.append(maker.tensor(name, shape, type_, scale=scale, zero_point=zero_point))
    maker.operator(op, ends[:1], ends[1:], version=version)
    maker.subgraph(inputs=ends[:1], outputs=ends[1:])
    return maker.finish()
