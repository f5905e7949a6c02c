"""Rules about scales and zero points that are wrong by themselves: no kernel computes with them."""

import math
from collections.abc import Iterator, Mapping

from tflm_forge.doctor.records import Hit, Node, Subject, rule
from tflm_forge.model import Quantization, Tensor

_SPECIFICATION = "LiteRT 8-bit quantization specification (ai.google.dev/edge/litert/models/quantization_spec)"

_QUANTIZED = frozenset({"INT8", "UINT8", "INT16", "INT4"})
_ZERO_POINTS = {"INT4": (-8, 7), "INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}

_NEEDS_SCALES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("SOFTMAX", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "MEAN", "L2_NORMALIZATION", "ABS", "RSQRT", "SVDF",
         "RELU", "RELU6", "QUANTIZE", "DEQUANTIZE", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
        (0,),
    ),
    **dict.fromkeys(
        ("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "PRELU", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D",
         "FULLY_CONNECTED", "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"),
        (0, 1),
    ),
    "TRANSPOSE_CONV": (1, 2),
}  # fmt: skip
"""Ops whose kernels compute their factors from the scales of these inputs, and of the output when it is quantized."""

_HAS_WEIGHTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"})

_SYMMETRIC_WEIGHTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"})
"""Ops whose int8 kernels never look at the zero points of their weights."""

_SYMMETRIC_INT16 = frozenset({
    "ABS", "RSQRT", "BATCH_MATMUL", "MUL", "SOFTMAX", "LOGISTIC", "TANH", "SQUARED_DIFFERENCE", "CONCATENATION",
    "LEAKY_RELU",
})  # fmt: skip
"""Ops whose kernels refuse an int16 tensor with a zero point (TF_LITE_ENSURE in their Prepare)."""


def _quantized(subject: Subject) -> Iterator[tuple[Node, Tensor, Quantization]]:
    """Yield each quantized tensor once, with the first layer that has it."""
    seen: set[tuple[int, int]] = set()
    for node in subject.kernel_nodes:
        for tensor in node.tensors():
            key = node.graph.index, tensor.index
            if tensor.quantization is not None and tensor.type in _QUANTIZED and key not in seen:
                seen.add(key)
                yield node, tensor, tensor.quantization


@rule(
    id="invalid-scale",
    severity="error",
    title="a scale that is no positive number",
    why="Kernels divide scales by each other to get integer factors. With 0, infinity or NaN the factor is 0 and every "
    "output is the same; a negative one is refused, or turns the sign.",
    remedy="Convert again: a representative dataset that is not all zeros, without NaN and infinity, gives positive "
    "scales.",
    source=f"{_SPECIFICATION}; quantization_util.cc, QuantizeMultiplier; kernel_util.cc, "
    "GetQuantizedConvolutionMultipler",
)
def invalid_scale(subject: Subject) -> Iterator[Hit]:
    """Scales that are 0, negative, infinite or NaN; of the weights of a convolution or dense layer all but 0."""
    for node, tensor, quantization in _quantized(subject):
        bad = [s for s in quantization.scales if not _is_sound(s, may_be_zero=_is_weights(tensor, node))]
        if bad:
            yield Hit(layer=node.label, words=f"{node.describe(tensor)} has scale {bad[0]:g}.", kind="scale")


def _is_weights(tensor: Tensor, node: Node) -> bool:
    return tensor.is_constant and node.name in _HAS_WEIGHTS and tensor is node.input(1)


def _is_sound(scale: float, *, may_be_zero: bool) -> bool:
    return math.isfinite(scale) and (scale > 0 or (may_be_zero and scale == 0))


@rule(
    id="zero-scale-weights",
    severity="warning",
    title="weights with scale 0",
    why="A channel with scale 0 gives nothing but its bias: it was all zeros in training, or was lost.",
    remedy="Look at the layer in the trained model: the channel may be pruned, or training has diverged.",
    source="quantization_util.cc, QuantizeMultiplier: the factor of scale 0 is 0",
)
def zero_scale_weights(subject: Subject) -> Iterator[Hit]:
    """Weights of convolutions and dense layers with a scale of 0."""
    for node, tensor, quantization in _quantized(subject):
        count = sum(scale == 0 for scale in quantization.scales)
        if count and _is_weights(tensor, node):
            words = f"{node.describe(tensor)} has scale 0 for {count} of {len(quantization.scales)} channels."
            yield Hit(layer=node.label, words=words, kind="weights")


@rule(
    id="invalid-zero-point",
    severity="error",
    title="a zero point outside its type",
    why="The zero point is an integer of the tensor's own type. One outside has no integer for the real 0: results are "
    "cut off at the type's end, and kernels that keep it in 8 bits compute with another one.",
    remedy="Convert again; a tool that edited the file may have mixed up uint8 and int8.",
    source=f"{_SPECIFICATION}",
)
def invalid_zero_point(subject: Subject) -> Iterator[Hit]:
    """Zero points that the type can not hold."""
    for node, tensor, quantization in _quantized(subject):
        lowest, highest = _ZERO_POINTS[tensor.type]
        bad = [z for z in quantization.zero_points if not lowest <= z <= highest]
        if bad:
            words = f"{node.describe(tensor)} has zero point {bad[0]}, which is no {tensor.type}."
            yield Hit(layer=node.label, words=words, kind="zero point")


@rule(
    id="asymmetric-weights",
    severity="error",
    title="convolution weights with a zero point",
    why="int8 weights are symmetric: convolutions take their zero point as 0 and give wrong numbers with another one.",
    remedy="Convert again with the TensorFlow converter, or quantize weights symmetrically in the exporter.",
    source=f"{_SPECIFICATION}; conv.cc, depthwise_conv.cc, transpose_conv.cc",
)
def asymmetric_weights(subject: Subject) -> Iterator[Hit]:
    """Zero points of int8 and int4 weights; of dense layers with the bundled runtime alone."""
    ops = _SYMMETRIC_WEIGHTS | ({"FULLY_CONNECTED"} if subject.runtime == "bundled" else set())
    for node in subject.kernel_nodes:
        weights = node.input(1)
        if node.name not in ops or weights is None or weights.type not in ("INT8", "INT4"):
            continue
        if weights.quantization is not None and any(weights.quantization.zero_points):
            bad = next(z for z in weights.quantization.zero_points if z)
            yield Hit(layer=node.label, words=f"{node.describe(weights)} has zero point {bad}.", kind=node.name)


@rule(
    id="asymmetric-int16",
    severity="error",
    title="int16 activations with a zero point",
    why="int16 is symmetric: kernels refuse another zero point than 0 in Prepare.",
    remedy="Convert again with EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8: its zero points are 0.",
    source="TF_LITE_ENSURE_EQ(zero_point, 0): mul_common.cc, softmax_common.cc, logistic_common.cc, tanh.cc, "
    "batch_matmul.cc, squared_difference.cc, concatenation.cc, elementwise.cc",
)
def asymmetric_int16(subject: Subject) -> Iterator[Hit]:
    """Zero points of int16 inputs and outputs."""
    for node in subject.kernel_nodes:
        if node.name not in _SYMMETRIC_INT16:
            continue
        tensors = [node.input(0), node.output()]
        if any(t is None or t.type != "INT16" for t in tensors):
            continue
        for tensor in tensors:
            if tensor is not None and tensor.quantization is not None and any(tensor.quantization.zero_points):
                words = f"{node.describe(tensor)} has zero point {tensor.quantization.zero_points[0]}."
                yield Hit(layer=node.label, words=words, kind=node.name)


@rule(
    id="missing-quantization",
    severity="error",
    title="integer tensors without a scale",
    why="The kernel computes its factors from scales. Without one it refuses the node, or takes the scale as 0 and "
    "gives the same output always.",
    remedy="Convert again: an exporter or an editing tool dropped the quantization of this tensor.",
    source="quantization.type != kTfLiteAffineQuantization: conv_common.cc, depthwise_conv_common.cc, elementwise.cc, "
    "quantize_common.cc; fully_connected_common.cc and comparisons.cc compute with scale 0",
)
def missing_quantization(subject: Subject) -> Iterator[Hit]:
    """int8, uint8 and int16 data without scales, where the op computes with them."""
    for node in subject.kernel_nodes:
        places = _NEEDS_SCALES.get(node.name)
        if places is None:
            continue
        for tensor in (*(node.input(place) for place in places), node.output()):
            # int32 is no type of activations, but QUANTIZE makes it.
            types = _QUANTIZED | {"INT32"} if node.name == "QUANTIZE" and tensor is node.output() else _QUANTIZED
            if tensor is not None and tensor.type in types and tensor.quantization is None:
                words = f"{node.describe(tensor)} is {tensor.type} and has no scale."
                yield Hit(layer=node.label, words=words, kind=node.name)
                break
