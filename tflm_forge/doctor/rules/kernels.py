"""Rules about what kernels ask of their nodes beyond types: constants, activations, options, state."""

from collections.abc import Iterator, Mapping

from tflm_forge.doctor.records import Hit, Node, Subject, rule

_MUST_BE_CONSTANT: Mapping[str, Mapping[int, str]] = {
    "BROADCAST_TO": {1: "shape"},
    "EXPAND_DIMS": {1: "axis"},
    "FILL": {0: "dims"},
    "PAD": {1: "paddings"},
    "PADV2": {1: "paddings"},
    "RESIZE_BILINEAR": {1: "size"},
    "RESIZE_NEAREST_NEIGHBOR": {1: "size"},
    "SPLIT": {0: "axis"},
    "SPLIT_V": {2: "axis"},
    "STRIDED_SLICE": {1: "begin", 2: "end", 3: "strides"},
    "TRANSPOSE": {1: "perm"},
}
"""Op to the inputs that must be constants: 'Non-constant >axis< tensor is not supported' of the kernels' Prepare."""

_WEIGHTED: Mapping[str, int] = {
    "CONV_2D": 1,
    "DEPTHWISE_CONV_2D": 1,
    "FULLY_CONNECTED": 1,
    "TRANSPOSE_CONV": 1,
    "SVDF": 1,
}
"""Op to the place of its weights."""

_COMPUTED_ACTIVATIONS = frozenset({"NONE", "RELU", "RELU_N1_TO_1", "RELU6"})
"""Fused activations that CalculateActivationRange of kernel_util.cc has a range for."""

_ACTIVATION_OPTION = "fused_activation_function"
_OWN_ACTIVATIONS = frozenset({"UNIDIRECTIONAL_SEQUENCE_LSTM"})
"""Ops that compute the activation as a function of its own, not as a range."""

_LSTM_INPUTS = 24
_LSTM_EXTRAS: Mapping[str, range] = {
    "peephole weights": range(9, 12),
    "a projection": range(16, 18),
    "layer normalization": range(20, 24),
}
_LSTM_NEEDED = (*range(1, 9), *range(12, 16))
"""Weights and biases of all four gates; the input gate's are left out in a coupled one (CIFG)."""

STATE_INPUTS: Mapping[str, tuple[int, ...]] = {"UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19), "SVDF": (4,)}
"""Op to the inputs that keep its state."""


@rule(
    id="operand-not-constant",
    severity="error",
    title="a shape, axis or size that is computed at run time",
    why="TFLM plans all memory before the first inference, so what decides a shape must be a constant: 'Non-constant "
    ">begin< tensor is not supported'.",
    remedy="Give the converter fixed input shapes (batch 1 included), so that it computes shapes itself; avoid "
    "tf.shape() and Python values that depend on data.",
    source="Prepare of the kernels: IsConstantTensor; tflite-micro#867, #3180, #3070",
)
def operand_not_constant(subject: Subject) -> Iterator[Hit]:
    """Operands that the kernels want constant and that are not."""
    for node in subject.kernel_nodes:
        for place, name in _MUST_BE_CONSTANT.get(node.name, {}).items():
            operand = node.input(place)
            if operand is not None and not operand.is_constant:
                words = (
                    f"Layer {node.label!r} ({node.name}) takes its {name} from tensor {operand.name!r}, which is not "
                    "constant."
                )
                yield Hit(layer=node.label, words=words, kind=f"{node.name} {name}")


@rule(
    id="filter-not-constant",
    severity="warning",
    title="weights that are computed at run time",
    why="Weights that are not constants lie in the arena in place of flash, and vendors' kernels (CMSIS-NN's SVDF, "
    "ESP-NN, older TFLM) do not take them. It comes of matmul of two activations, or of weights that DEQUANTIZE "
    "widens.",
    remedy="Use BATCH_MATMUL for a product of two activations; convert again so that weights are constants of the "
    "layer's own type.",
    source="cmsis_nn/svdf.cc; PINTO0309/onnx2tf#726; the reference kernels run it (checked in the interpreter)",
)
def filter_not_constant(subject: Subject) -> Iterator[Hit]:
    """Weights of convolutions and dense layers that are no constants."""
    for node in subject.kernel_nodes:
        place = _WEIGHTED.get(node.name)
        weights = node.input(place) if place is not None else None
        if weights is not None and not weights.is_constant:
            origin = " (widened by DEQUANTIZE)" if _maker(subject, node, weights.index) == "DEQUANTIZE" else ""
            words = f"The weights of layer {node.label!r} ({node.name}), tensor {weights.name!r}, are no constant"
            yield Hit(layer=node.label, words=f"{words}{origin}.", kind=node.name)


def _maker(subject: Subject, user: Node, index: int) -> str:
    """Return the op that gives a tensor of the user's subgraph, or nothing."""
    return next((n.name for n in subject.nodes if n.graph is user.graph and index in n.operator.outputs), "")


@rule(
    id="depthwise-without-bias",
    severity="error",
    needs="runtime",
    title="a depthwise convolution whose bias is left out",
    why="TFLM's DEPTHWISE_CONV_2D frees the bias it was not given: with three inputs of which the last is -1 it faults "
    "in AllocateTensors. With two inputs it runs.",
    remedy="Export it with a bias of zeros (use_bias=True), as the TensorFlow converter does.",
    source="depthwise_conv_common.cc, DepthwiseConvPrepare: DeallocateTempTfLiteTensor(bias) of a null pointer; found "
    "with made models in the interpreter",
)
def depthwise_without_bias(subject: Subject) -> Iterator[Hit]:
    """DEPTHWISE_CONV_2D with -1 as its third input, with TFLM; the bundled runtime runs it."""
    for node in subject.kernel_nodes if subject.runtime == "tflm" else ():
        if node.name == "DEPTHWISE_CONV_2D" and len(node.operator.inputs) == 3 and node.input(2) is None:
            words = f"Layer {node.label!r} ({node.name}) has -1 in place of a bias."
            yield Hit(layer=node.label, words=words, kind="bias")


@rule(
    id="fused-activation",
    severity="error",
    title="a fused activation that TFLM does not compute",
    why="Kernels compute fused activations as a range. Of TANH and SIGN_BIT there is none: the layer runs as if it had "
    "no activation, and gives wrong numbers.",
    remedy="Make the activation a layer of its own, or use RELU, RELU6 or RELU_N1_TO_1.",
    source="kernel_util.cc, CalculateActivationRangeQuantized; kernel_util.h, CalculateActivationRange",
)
def fused_activation(subject: Subject) -> Iterator[Hit]:
    """Options that name another activation than those with a range."""
    for node in subject.kernel_nodes:
        fused = node.operator.options.get(_ACTIVATION_OPTION, "NONE")
        if fused not in _COMPUTED_ACTIVATIONS and node.name not in _OWN_ACTIVATIONS:
            words = f"Layer {node.label!r} ({node.name}) has the fused activation {fused}, which kernels leave out."
            yield Hit(layer=node.label, words=words, kind=f"{node.name} {fused}")


@rule(
    id="lstm-variant",
    severity="error",
    title="an LSTM with peepholes, projection, layer normalization or a coupled gate",
    why="TFLM's LSTM is the plain one, with 24 inputs and four gates: it refuses the variants in Prepare.",
    remedy="Train with tf.keras.layers.LSTM as it is, without projection, and convert again.",
    source="lstm_eval.cc, LstmTensors::ValidateTensorStatus; unidirectional_sequence_lstm.cc, Prepare",
)
def lstm_variant(subject: Subject) -> Iterator[Hit]:
    """Inputs of UNIDIRECTIONAL_SEQUENCE_LSTM that the plain one does not have, or lacks."""
    for node in subject.kernel_nodes:
        if node.name != "UNIDIRECTIONAL_SEQUENCE_LSTM":
            continue
        count = len(node.operator.inputs)
        found = [name for name, places in _LSTM_EXTRAS.items() if any(node.input(place) for place in places)]
        if count != _LSTM_INPUTS:
            found.append(f"{count} inputs in place of {_LSTM_INPUTS}")
        elif any(node.input(place) is None for place in _LSTM_NEEDED):
            found.append("a gate that is left out")
        if found:
            yield Hit(layer=node.label, words=f"The LSTM of layer {node.label!r} has {', '.join(found)}.", kind="lstm")


@rule(
    id="state-not-variable",
    severity="error",
    title="a state that is no variable tensor",
    why="SVDF and LSTM keep their state in tensors that are marked as variables; TFLM refuses others in Prepare.",
    remedy="Convert again from Keras; a model that was taken apart and joined again loses the mark is_variable.",
    source="svdf_common.cc and lstm_eval.cc: TF_LITE_ENSURE(is_variable)",
)
def state_not_variable(subject: Subject) -> Iterator[Hit]:
    """State inputs without is_variable."""
    for node in subject.kernel_nodes:
        for place in STATE_INPUTS.get(node.name, ()):
            state = node.input(place)
            if state is not None and not state.is_variable:
                words = f"The state {state.name!r} of layer {node.label!r} ({node.name}) is no variable tensor."
                yield Hit(layer=node.label, words=words, kind=node.name)


@rule(
    id="reshape-size",
    severity="error",
    title="RESHAPE to another number of elements",
    why="TFLM takes the new shape from the output tensor alone: 'num_input_elements != num_output_elements'. It comes "
    "of a shape that was open when the model was exported, as RESHAPE to -1 of a batch.",
    remedy="Export with fixed shapes, batch 1 included; with Keras, tf.keras.Input(shape, batch_size=1).",
    source="reshape_common.cc, ReshapeOutput; tflite-micro#3070, tensorflow#29590",
)
def reshape_size(subject: Subject) -> Iterator[Hit]:
    """RESHAPE, SQUEEZE and EXPAND_DIMS whose input and output differ in size."""
    for node in subject.kernel_nodes:
        given, made = node.input(0), node.output()
        if node.name != "RESHAPE" or given is None or made is None:
            continue
        # A shape of [0] stands for a scalar in old files.
        elements = 1 if made.shape == (0,) and len(node.operator.inputs) == 1 else made.element_count
        if given.element_count != elements:
            words = f"Layer {node.label!r} makes {list(made.shape)} of {list(given.shape)}: {elements} elements of "
            yield Hit(layer=node.label, words=f"{words}{given.element_count}.", kind="reshape")
