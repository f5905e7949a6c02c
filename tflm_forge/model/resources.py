"""What a model keeps from one inference to the next, besides its file."""

from tflm_forge.model.records import Model, Operator


def count_resource_variables(model: Model) -> int:
    """Return how many resource variables its VAR_HANDLE operators name: distinct containers and shared names."""
    handles = (op for graph in model.subgraphs for op in graph.operators if op.name == "VAR_HANDLE")
    return len({(op.options.get("container"), op.options.get("shared_name")) for op in handles})


def resource_variable_bytes(model: Model) -> int:
    """Return the bytes of the values that ASSIGN_VARIABLE operators put into resource variables.

    TFLM allocates a variable when the first ASSIGN_VARIABLE of it is prepared (micro_resource_variable.cc).
    """
    sizes: dict[tuple[object, object], int] = {}
    for graph in model.subgraphs:
        handles = {
            op.outputs[0]: (op.options.get("container"), op.options.get("shared_name"))
            for op in graph.operators
            if op.name == "VAR_HANDLE" and op.outputs
        }
        for op in graph.operators:
            if op.name == "ASSIGN_VARIABLE" and len(op.inputs) > 1 and op.inputs[0] in handles and op.inputs[1] >= 0:
                sizes.setdefault(handles[op.inputs[0]], graph.tensors[op.inputs[1]].size_bytes)
    return sum(sizes.values())


def has_state(model: Model) -> bool:
    """Return whether an inference may leave something behind for the next one.

    Variable tensors and resource variables do; CALL_ONCE and custom ops may.
    """
    operators = [op for graph in model.subgraphs for op in graph.operators]
    has_variables = any(tensor.is_variable for graph in model.subgraphs for tensor in graph.tensors)
    return has_variables or any(_may_remember(op) for op in operators)


def _may_remember(operator: Operator) -> bool:
    return bool(operator.custom_name) or operator.name in ("VAR_HANDLE", "CALL_ONCE")
