"""Rules about tensor types: what kernels take as activations and as weights."""

from collections.abc import Iterator, Mapping

from tflm_forge.doctor.records import Hit, Subject, rule
from tflm_forge.doctor.rules.ops import obstacles_of

_UNREADABLE = frozenset({"STRING", "VARIANT", "BFLOAT16", "INT2", "UINT4"})
"""Types without a case in ConvertTensorType or TfLiteTypeSizeOf of TFLM 90b983c2b, where RESHAPE fails or faults."""

_DATA_INPUT: Mapping[str, int] = {
    **dict.fromkeys(
        ("ABS", "ADD", "ADD_N", "AVERAGE_POOL_2D", "BATCH_MATMUL", "BATCH_TO_SPACE_ND", "BROADCAST_TO", "CEIL",
         "CONCATENATION", "CONV_2D", "COS", "CUMSUM", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DIV", "ELU", "EXP",
         "EXPAND_DIMS", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "FULLY_CONNECTED", "GATHER", "GATHER_ND", "HARD_SWISH",
         "L2_NORMALIZATION", "L2_POOL_2D", "LEAKY_RELU", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC",
         "LOG_SOFTMAX", "MAXIMUM", "MAX_POOL_2D", "MEAN", "MINIMUM", "MIRROR_PAD", "MUL", "NEG", "PACK", "PAD", "PADV2",
         "PRELU", "REDUCE_MAX", "REDUCE_MIN", "RELU", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR",
         "REVERSE_V2", "ROUND", "RSQRT", "SIN", "SLICE", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT_V", "SQRT",
         "SQUARE", "SQUARED_DIFFERENCE", "SQUEEZE", "STRIDED_SLICE", "SUB", "SUM", "SVDF", "TANH", "TRANSPOSE",
         "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNPACK"),
        0,
    ),
    "SPLIT": 1,
    "TRANSPOSE_CONV": 2,
}  # fmt: skip
"""Ops whose output has the type of their data, to the place of that input. SOFTMAX may go from int8 to int16."""


_OF_TWO = frozenset({
    "ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "EQUAL",
    "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "LOGICAL_AND", "LOGICAL_OR",
})  # fmt: skip
"""Ops of two operands of one type."""


@rule(
    id="hybrid-quantization",
    severity="error",
    needs="runtime",
    title="float activations with integer weights (hybrid, dynamic range)",
    why="Optimize.DEFAULT without a representative dataset quantizes the weights alone. TFLite for phones computes "
    "that; TFLM's kernels refuse it in Prepare: 'Hybrid models are not supported'.",
    remedy="Convert again with a representative dataset.",
    source="conv_common.cc, depthwise_conv_common.cc, fully_connected.cc, svdf_common.cc; tflite-micro#1556, #757, "
    "#1188, #3766, tensorflow#43386",
)
def hybrid(subject: Subject) -> Iterator[Hit]:
    """Weights of an integer type under float activations."""
    return obstacles_of(subject, "hybrid-quantization")


@rule(
    id="float16",
    severity="error",
    needs="runtime",
    title="float16",
    why="supported_types = [tf.float16] leaves float16 weights that DEQUANTIZE layers widen; TFLM's DEQUANTIZE, and "
    "every other kernel, refuses float16.",
    remedy="Convert again as float32, or quantized to int8.",
    source="dequantize_common.cc; tflite-micro#2587, esp-tflite-micro#97",
)
def float16(subject: Subject) -> Iterator[Hit]:
    """FLOAT16 inputs or weights."""
    return obstacles_of(subject, "float16")


@rule(
    id="uint8-quantization",
    severity="error",
    needs="runtime",
    title="uint8 activations (TensorFlow 1 quantization)",
    why="TFLM's kernels compute int8. uint8 is taken by QUANTIZE, DEQUANTIZE and a few that only move bytes; "
    "others pass AllocateTensors and fail, or stop, at Invoke.",
    remedy="Convert again with TensorFlow 2 to int8.",
    source="versions.toml (types of each kernel); checked with models of one operator",
)
def uint8(subject: Subject) -> Iterator[Hit]:
    """UINT8 inputs or weights of kernels without it."""
    return obstacles_of(subject, "uint8-quantization")


@rule(
    id="int16x8-unsupported",
    severity="error",
    needs="runtime",
    title="int16 activations where the kernel has none",
    why="16x8 quantization is in TFLM for some ops only.",
    remedy="Convert again with int8 activations.",
    source="versions.toml (types of each kernel); tflite-micro#344, tensorflow#51089",
)
def int16(subject: Subject) -> Iterator[Hit]:
    """INT16 activations of kernels without them."""
    return obstacles_of(subject, "int16x8-unsupported")


@rule(
    id="int4-unsupported",
    severity="error",
    needs="runtime",
    title="int4 where the kernel has none",
    why="int4 weights are packed two in a byte. CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED of TFLM unpack them; no "
    "other kernel does.",
    remedy="Convert again with int8 weights.",
    source="conv.cc, depthwise_conv.cc, fully_connected.cc; op_version.cc",
)
def int4(subject: Subject) -> Iterator[Hit]:
    """INT4 inputs or weights of kernels without them."""
    return obstacles_of(subject, "int4-unsupported")


@rule(
    id="op-type",
    severity="error",
    needs="runtime",
    title="another tensor type that the kernel does not take",
    why="Each kernel has code for some types; with another one it fails in Prepare or at Invoke.",
    remedy="Convert again with types that the runtime takes.",
    source="versions.toml (types of each kernel); tflite-micro#1825, tensorflow#60055",
)
def op_type(subject: Subject) -> Iterator[Hit]:
    """Any other type that the catalogue does not have for the op."""
    return obstacles_of(subject, "op-type")


@rule(
    id="tensor-type",
    severity="error",
    title="a tensor of a type that TFLM has no size for",
    why="TFLM plans the memory of every tensor; of this type it does not know how many bytes it takes.",
    remedy="Convert again so that no layer takes or gives such a tensor.",
    source="flatbuffer_conversions.cc, ConvertTensorType; memory_helpers.cc, TfLiteTypeSizeOf",
)
def tensor_type(subject: Subject) -> Iterator[Hit]:
    """STRING, VARIANT and the newest types, as inputs or outputs of layers."""
    for node in subject.nodes:
        for tensor in node.tensors():
            if tensor.type in _UNREADABLE:
                words = f"Tensor {tensor.name!r} of layer {node.label!r} is {tensor.type}, of which TFLM has no size."
                yield Hit(layer=node.label, words=words, kind=tensor.type)


@rule(
    id="type-changes",
    severity="error",
    title="a layer with two types where it has one",
    why="Such a layer has one type for its data and its output. TFLM refuses some: 'input->type != output->type'; "
    "other kernels write values of one size into memory of another.",
    remedy="Convert again; a file that was edited needs a QUANTIZE, DEQUANTIZE or CAST layer between the two.",
    source="reshape_common.cc, conv_common.cc, softmax_common.cc, pad_common.cc: TF_LITE_ENSURE_TYPES_EQ",
)
def type_changes(subject: Subject) -> Iterator[Hit]:
    """Layers that keep their type in every version of the schema, and do not here, or take two of different types."""
    for node in subject.kernel_nodes:
        place = _DATA_INPUT.get(node.name)
        first, second = node.input(0), node.input(1)
        if node.name in _OF_TWO and first is not None and second is not None and first.type != second.type:
            words = f"Layer {node.label!r} ({node.name}) takes {first.type} and {second.type}."
            yield Hit(layer=node.label, words=words, kind=node.name)
            continue
        given, made = node.input(place) if place is not None else None, node.output()
        if given is not None and made is not None and given.type != made.type:
            words = f"Layer {node.label!r} ({node.name}) has {given.type} input and {made.type} output."
            yield Hit(layer=node.label, words=words, kind=node.name)


@rule(
    id="per-channel-fully-connected",
    severity="error",
    needs="runtime",
    title="dense layers with a scale for each channel, where the tree has one",
    why="Current converters quantize dense layers by channel. TFLM first computed them with the first scale alone, "
    "silently wrong; then refused them; and has them since 2024. Vendors' copies are often older.",
    remedy="Install a newer commit, or convert again without it.",
    source="the tree's fully_connected.cc: whether it has per_channel_output_multiplier; tflite-micro#2602, #2673",
)
def channels(subject: Subject) -> Iterator[Hit]:
    """FULLY_CONNECTED with channel scales, against the sources of the tree in use."""
    return obstacles_of(subject, "per-channel-fully-connected")


@rule(
    id="int4-weights",
    severity="note",
    title="int4 weights",
    why="The reference kernels unpack int4 weights into the arena at every inference: flash is saved, RAM and time are "
    "spent.",
    source="conv.cc, depthwise_conv.cc, fully_connected.cc: RequestScratchBufferInArena for the filter",
)
def int4_weights(subject: Subject) -> Iterator[Hit]:
    """Constant INT4 weights."""
    for node in subject.nodes:
        weights = node.input(1)
        if weights is not None and weights.type == "INT4" and weights.is_constant:
            words = f"The weights of layer {node.label!r} are int4: the reference kernels unpack them into the arena."
            yield Hit(layer=node.label, words=words, kind="weights")
