"""Rules about how layers hang together: shapes, order, subgraphs, variables."""

from collections.abc import Iterator

from tflm_forge.doctor.records import Hit, Node, Subject, rule
from tflm_forge.doctor.rules.kernels import STATE_INPUTS
from tflm_forge.model import Subgraph
from tflm_forge.model.resources import count_resource_variables
from tflm_forge.model.soundness import list_subgraph_calls

_LOOP_OF_A_CELL = frozenset({"FULLY_CONNECTED", "BATCH_MATMUL"})
_GATES = frozenset({"LOGISTIC", "TANH"})


@rule(
    id="dynamic-tensor",
    severity="error",
    title="a layer's output with a dimension of 0",
    why="The converter writes 0, or leaves the shape out, where it does not know it. TFLM plans memory for shapes that "
    "are known: newer ones say 'Dynamic tensors are not supported', older ones go on and compute with nothing.",
    remedy="Give the converter fixed input shapes, batch 1 included.",
    source="micro_interpreter_graph.cc, CheckDynamicTensors; tflite-micro#3180",
)
def dynamic_tensor(subject: Subject) -> Iterator[Hit]:
    """Outputs with a dimension of 0; the shape [0] stands for a scalar in old files."""
    for node in subject.nodes:
        for index in node.operator.outputs:
            tensor = node.graph.tensors[index]
            if 0 in tensor.shape and tensor.shape != (0,):
                words = f"The output {tensor.name!r} of layer {node.label!r} has the shape {list(tensor.shape)}."
                yield Hit(layer=node.label, words=words, kind="output")


@rule(
    id="open-dimension",
    severity="note",
    title="a dimension that the converter left open",
    why="shape_signature has -1 where a phone may resize a tensor. TFLM never resizes: it uses `shape`, where such a "
    "dimension is 1. For the batch that is what one wants.",
    source="schema.fbs, Tensor.shape_signature; tensorflow#54659",
)
def open_dimension(subject: Subject) -> Iterator[Hit]:
    """Inputs of the model with an open dimension besides the first."""
    for tensor in subject.model.inputs:
        places = [i for i, size in enumerate(tensor.shape_signature) if size < 0 and i > 0]
        if places:
            words = (
                f"Dimension {places[0]} of input {tensor.name!r} was left open: TFLM runs it as {list(tensor.shape)}."
            )
            yield Hit(layer=tensor.name, words=words, remedy="Convert with the size you want when that is not it.")


@rule(
    id="unwritten-tensor",
    severity="error",
    title="a layer that reads what no layer before it writes",
    why="The arena holds whatever was there before: the layer computes with it, and TFLM says nothing.",
    remedy="The file was taken apart or edited: convert it again.",
    source="micro_interpreter_graph.cc runs operators in the order of the file; there is no check",
)
def unwritten_tensor(subject: Subject) -> Iterator[Hit]:
    """Inputs of layers, and outputs of the model, that are nobody's output, input, constant or variable."""
    for graph in subject.model.subgraphs:
        written = set(graph.inputs)
        written.update(t.index for t in graph.tensors if t.is_constant or t.is_variable)
        for operator in graph.operators:
            states = {operator.inputs[i] for i in STATE_INPUTS.get(operator.name, ()) if i < len(operator.inputs)}
            written.update(states)  # of these the rule state-not-variable says more
            missing = [i for i in operator.inputs if i >= 0 and i not in written and graph.tensors[i].size_bytes]
            if missing:
                words = f"Layer {operator.label!r} ({operator.name}) reads tensor {graph.tensors[missing[0]].name!r}, "
                yield Hit(layer=operator.label, words=f"{words}which nothing before it writes.", kind="input")
            written.update(operator.outputs)
        yield from _unwritten_outputs(graph, written)


def _unwritten_outputs(graph: Subgraph, written: set[int]) -> Iterator[Hit]:
    for index in graph.outputs:
        if index not in written:
            name = graph.tensors[index].name
            yield Hit(layer=name, words=f"The output {name!r} of subgraph {graph.index} is written by no layer.")


@rule(
    id="written-constant",
    severity="error",
    title="a layer that writes to a constant",
    why="Constants are used where they lie, in flash: writing there faults, or is lost.",
    remedy="The file was taken apart or edited: convert it again.",
    source="micro_allocator.cc: tensors with a buffer point into the model",
)
def written_constant(subject: Subject) -> Iterator[Hit]:
    """Outputs of layers that have data in the file."""
    for graph in subject.model.subgraphs:
        for operator in graph.operators:
            constant = next((graph.tensors[i] for i in operator.outputs if graph.tensors[i].is_constant), None)
            if constant is not None:
                words = f"Layer {operator.label!r} ({operator.name}) writes to the constant {constant.name!r}."
                yield Hit(layer=operator.label, words=words, kind="output")


@rule(
    id="unfused-lstm",
    severity="warning",
    title="an LSTM or GRU that was converted to a loop",
    why="A recurrent layer that the converter can not fuse becomes WHILE with a subgraph of dense layers, ADD of int32 "
    "counters, SLICE and CONCATENATION. It is slow, needs more ops, and vendors' kernels often lack int32 ADD: 'Type "
    "INT32 not supported'.",
    remedy="Use tf.keras.layers.LSTM with a fixed batch of 1 and fixed steps, and convert from a SavedModel or a "
    "concrete function: it fuses into UNIDIRECTIONAL_SEQUENCE_LSTM. Or unroll=True.",
    source="tflite-micro#1825, tensorflow#60055, esp-tflite-micro#32; tensorflow.org/lite/models/convert/rnn",
)
def unfused_lstm(subject: Subject) -> Iterator[Hit]:
    """WHILE with dense layers and gates in its body."""
    for node in subject.nodes:
        if node.name != "WHILE":
            continue
        body = node.operator.options.get("body_subgraph_index", -1)
        names = {operator.name for operator in subject.model.subgraphs[body].operators}
        if names & _LOOP_OF_A_CELL and names & _GATES:
            words = f"Layer {node.label!r} is a recurrent layer as a loop: WHILE over subgraph {body}."
            yield Hit(layer=node.label, words=words, kind="loop")


@rule(
    id="control-flow",
    severity="note",
    title="several subgraphs",
    why="IF, WHILE and CALL_ONCE run subgraphs of their own. TFLM runs them; each subgraph has its own plan in the "
    "arena, and loops take as long as the data says.",
    source="if.cc, while.cc, call_once.cc; tflite-micro#2020",
)
def control_flow(subject: Subject) -> Iterator[Hit]:
    """Operators that run other subgraphs, and how many there are."""
    callers = [node for node in subject.nodes if node.name in ("IF", "WHILE", "CALL_ONCE")]
    if callers:
        names = ", ".join(sorted({node.name for node in callers}))
        count = len(subject.model.subgraphs)
        yield Hit(layer=callers[0].label, words=f"The model has {count} subgraphs, run by {names}.")


@rule(
    id="several-subgraphs",
    severity="error",
    needs="runtime",
    title="several subgraphs, with the bundled runtime",
    why="The bundled runtime runs models of one subgraph.",
    remedy="Build with --runtime tflm, or convert with the one signature you need (signature_keys).",
    source="bundled/tensorflow/lite/micro/micro_interpreter_load.cc",
)
def several_subgraphs(subject: Subject) -> Iterator[Hit]:
    """More than one subgraph, with the bundled runtime."""
    count = len(subject.model.subgraphs)
    if subject.runtime == "bundled" and count > 1:
        yield Hit(words=f"The model has {count} subgraphs; runtime bundled runs models with one.")


@rule(
    id="unused-subgraph",
    severity="note",
    title="subgraphs that nothing runs",
    why="Other signatures of a SavedModel become subgraphs. TFLM prepares them all: they take arena, and their ops "
    "must be registered, though only the first is run.",
    remedy="Convert with the one signature you need (signature_keys), to save flash and arena.",
    source="micro_interpreter_graph.cc, PrepareSubgraphs",
)
def unused_subgraph(subject: Subject) -> Iterator[Hit]:
    """Subgraphs besides the first that no operator runs."""
    run: set[int] = {0}
    for node in subject.nodes:
        run.update(_called(node))
    unused = [graph.index for graph in subject.model.subgraphs if graph.index not in run]
    if unused:
        yield Hit(words=f"Nothing runs {len(unused)} of {len(subject.model.subgraphs)} subgraphs, first {unused[0]}.")


def _called(node: Node) -> tuple[int, ...]:
    return list_subgraph_calls(node.operator.options_type, node.operator.options)


@rule(
    id="resource-variables",
    severity="note",
    title="resource variables",
    why="An interpreter for such a model needs MicroResourceVariables for as many as it names: without them "
    "'VAR_HANDLE requires resource variables'.",
    remedy="forge counts them and sets them up in the generated firmware; runtime bundled has no such op.",
    source="var_handle.cc; micro_resource_variable.h; tensorflow#56932, tflite-micro#2101, #2102",
)
def resource_variables(subject: Subject) -> Iterator[Hit]:
    """How many resource variables there are."""
    count = count_resource_variables(subject.model)
    if count:
        first = next(node for node in subject.nodes if node.name == "VAR_HANDLE")
        yield Hit(layer=first.label, words=f"The model keeps {count} resource variables from inference to inference.")


@rule(
    id="unset-variable",
    severity="warning",
    title="a resource variable that is read and never set",
    why="A variable is 0 until ASSIGN_VARIABLE sets it, mostly in the subgraph that CALL_ONCE runs. Without, the model "
    "computes with zeros.",
    remedy="Convert again from a SavedModel whose variables are initialized, and with its CALL_ONCE kept.",
    source="micro_resource_variable.cc, Allocate: memset to 0; read_variable.cc",
)
def unset_variable(subject: Subject) -> Iterator[Hit]:
    """Models with READ_VARIABLE and no ASSIGN_VARIABLE."""
    reads = [node for node in subject.nodes if node.name == "READ_VARIABLE"]
    if reads and not any(node.name == "ASSIGN_VARIABLE" for node in subject.nodes):
        words = f"Layer {reads[0].label!r} reads a variable, and no layer of the model sets one."
        yield Hit(layer=reads[0].label, words=words)


@rule(
    id="kept-state",
    severity="note",
    title="state that goes on from inference to inference",
    why="Variable tensors keep their values until MicroInterpreter::Reset(): the same input may give another output "
    "the second time.",
    remedy="forge resets between test cases; --stateful of flash-and-test goes on.",
    source="micro_interpreter.cc, Reset; tflite-micro#2260",
)
def kept_state(subject: Subject) -> Iterator[Hit]:
    """Variable tensors."""
    states = [t for graph in subject.model.subgraphs for t in graph.tensors if t.is_variable]
    if states:
        words = f"The model keeps {len(states)} tensors, first {states[0].name!r}, from inference to inference."
        yield Hit(layer=states[0].name, words=words)
