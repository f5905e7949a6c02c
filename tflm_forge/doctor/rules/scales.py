"""Rules about the scales of a layer's tensors among each other: what kernels refuse, or compute otherwise."""

import math
from collections.abc import Iterator, Mapping

from tflm_forge.doctor.records import Hit, Subject, rule
from tflm_forge.model import Quantization

_SPECIFICATION = "LiteRT 8-bit quantization specification (ai.google.dev/edge/litert/models/quantization_spec)"

_COMPARISONS = frozenset({"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"})

_FIXED_OUTPUT: Mapping[tuple[str, str], tuple[float, int, float]] = {
    ("SOFTMAX", "INT8"): (1 / 256, -128, 0.0),
    ("LOGISTIC", "INT8"): (1 / 256, -128, 1e-3),
    ("LOG_SOFTMAX", "INT8"): (16 / 256, 127, 0.0),
    ("TANH", "INT8"): (1 / 128, 0, 1e-3),
    ("L2_NORMALIZATION", "INT8"): (1 / 128, 0, 1e-3),
    ("SOFTMAX", "INT16"): (1 / 32768, 0, 1e-3),
    ("LOGISTIC", "INT16"): (1 / 32768, 0, 1e-3),
    ("TANH", "INT16"): (1 / 32768, 0, 1e-3),
}
"""Op and type of input and output to the scale and zero point that its kernel computes with, whatever the file says;
then the part of the scale by which the file may differ: none where the kernel compares for equality."""

_KEEPS_SCALE: Mapping[str, tuple[frozenset[str], float]] = {
    "AVERAGE_POOL_2D": (frozenset({"INT8", "INT16"}), 1e-6),
    "MAX_POOL_2D": (frozenset({"INT8", "INT16"}), 1e-6),
    "REDUCE_MAX": (frozenset({"INT8"}), 0.0),
    "REDUCE_MIN": (frozenset({"INT8"}), 0.0),
    "CONCATENATION": (frozenset({"INT8"}), 0.0),
}
"""Ops whose kernels compare integers of input and output as they are: of which types, and how far scales may differ."""

_BIAS_TOLERANCE = 0.02
"""How far kernel_util.cc lets bias scale and input scale * weight scale differ, in steps of the output."""


@rule(
    id="bias-scale",
    severity="error",
    title="a dense layer's bias in other steps than its products",
    why="The bias is added to sums of products, so its scale is input scale * weight scale. TFLM refuses a dense layer "
    "whose bias is more than 0.02 of an output step off: 'scale_diff / output_scale <= 0.02 was not true'.",
    remedy="Convert again; a bias that was edited or exported by hand must be quantized with that scale.",
    source="kernel_util.cc, GetQuantizedConvolutionMultipler",
)
def bias_scale(subject: Subject) -> Iterator[Hit]:
    """FULLY_CONNECTED of int8 with one weight scale, by TFLM's own formula."""
    for node in subject.kernel_nodes:
        bias = node.input(2)
        if node.name != "FULLY_CONNECTED" or bias is None:
            continue
        given = node.input(0)
        if given is None or given.type not in ("INT8", "INT16"):
            continue
        tensors = (given, node.input(1), node.output())
        quantizations = [t.quantization for t in tensors if t is not None and t.quantization is not None]
        if len(quantizations) < len(tensors):
            continue
        inputs, weights, outputs = quantizations
        if weights.is_per_channel or not outputs.scales[0] > 0:
            continue
        product = inputs.scales[0] * weights.scales[0]
        own = bias.quantization.scales[0] if bias.quantization is not None else 0.0
        if abs(product - own) / outputs.scales[0] > _BIAS_TOLERANCE:
            words = f"{node.describe(bias)} has scale {own:g}; input scale * weight scale is {product:g}."
            yield Hit(layer=node.label, words=words, kind=node.name)


@rule(
    id="fixed-output-scale",
    severity="error",
    title="an output scale other than the op's own",
    why="Some ops have outputs of a known range and a fixed scale. TFLM refuses SOFTMAX, LOG_SOFTMAX and LOGISTIC "
    "with another one, and computes TANH and L2_NORMALIZATION as if it were the fixed one.",
    remedy="Convert again with the TensorFlow converter, or set scale and zero point of the output in the exporter.",
    source=f"{_SPECIFICATION}; softmax_common.cc, log_softmax.cc, logistic_common.cc, tanh.cc, l2norm.cc",
)
def fixed_output_scale(subject: Subject) -> Iterator[Hit]:
    """int8 outputs of SOFTMAX, LOGISTIC, TANH and others; int16 of SOFTMAX."""
    for node in subject.kernel_nodes:
        given, made = node.input(0), node.output()
        if given is None or made is None or given.type != made.type or made.quantization is None:
            continue
        fixed = _FIXED_OUTPUT.get((node.name, made.type))
        if fixed is None:
            continue
        scale, zero_point = _describe(made.quantization)
        if zero_point != fixed[1] or not math.isclose(scale, fixed[0], rel_tol=fixed[2]):
            words = (
                f"{node.describe(made)} has scale {scale:g} and zero point {zero_point}: the kernel gives {fixed[0]:g} "
                f"and {fixed[1]}."
            )
            yield Hit(layer=node.label, words=words, kind=node.name)


@rule(
    id="comparison-scale",
    severity="error",
    title="an int8 comparison of values with steps of 1 or more",
    why="TFLM's comparisons of int8 take the scales of their inputs as factors below 1: with another one the device "
    "stops in AllocateTensors, without a word.",
    remedy="Scale the values down before they are compared (by 256, say), or compare in float: leave the layer out of "
    "quantization.",
    source="comparisons.cc, ComparisonsPrepare; quantization_util.cc, QuantizeMultiplierSmallerThanOneExp: "
    "TFLITE_CHECK_LT(double_multiplier, 1.); found with made models in the interpreter",
)
def comparison_scale(subject: Subject) -> Iterator[Hit]:
    """EQUAL, LESS and the like of int8 with a scale of 1 or more."""
    for node in subject.kernel_nodes:
        for tensor in (node.input(0), node.input(1)):
            if node.name not in _COMPARISONS or tensor is None or tensor.type != "INT8" or tensor.quantization is None:
                continue
            if tensor.quantization.scales[0] >= 1:
                words = f"{node.describe(tensor)} has scale {tensor.quantization.scales[0]:g}."
                yield Hit(layer=node.label, words=words, kind=node.name)
                break


@rule(
    id="scale-changes",
    severity="error",
    title="a layer that can not change the scale, and has to",
    why="Pooling, maxima and concatenation of int8 work on the integers: TFLM refuses another scale or zero point for "
    "the output than for the input.",
    remedy="Convert again with the TensorFlow converter, which keeps the scale over such layers.",
    source=f"{_SPECIFICATION}; pooling_common.cc, reduce_common.cc, concatenation.cc",
)
def scale_changes(subject: Subject) -> Iterator[Hit]:
    """Inputs of pooling and the like with another scale or zero point than the output."""
    for node in subject.kernel_nodes:
        made = node.output()
        types, tolerance = _KEEPS_SCALE.get(node.name, (frozenset(), 0.0))
        if made is None or made.type not in types:
            continue
        places = range(len(node.operator.inputs)) if node.name == "CONCATENATION" else (0,)
        for given in (node.input(place) for place in places):
            if given is None or given.type != made.type:
                continue
            before, after = _describe(given.quantization), _describe(made.quantization)
            if abs(before[0] - after[0]) > tolerance or before[1] != after[1]:
                words = (
                    f"Layer {node.label!r} ({node.name}) has scale {before[0]:g} and zero point {before[1]} at its "
                    f"input, {after[0]:g} and {after[1]} at its output."
                )
                yield Hit(layer=node.label, words=words, kind=node.name)
                break


def _describe(quantization: Quantization | None) -> tuple[float, int]:
    """Return the scale and the zero point of a tensor with one of each, as TFLM has them: 0 where there is none."""
    if quantization is None:
        return 0.0, 0
    return quantization.scales[0], (*quantization.zero_points, 0)[0]
