"""The op set of a model: the distinct ops that its operators use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_forge.model.records import Model, Operator, Tensor
from tflm_forge.model.schema import op_name

LEFT_OUT = "-"
"""Stands for the type of an optional input that an operator leaves out."""

OpTypes = tuple[tuple[str, ...], tuple[str, ...]]
"""Types of an operator's inputs and of its outputs."""


@dataclass(frozen=True, kw_only=True)
class OpUse:
    """One op of the op set, and how the model uses it.

    Attributes:
        builtin_code: number in BuiltinOperator, 32 for a custom op.
        custom_name: exact name of a custom op, else empty.
        name: what a person calls it.
        version: the highest version that an operator uses.
        count: how many operators use it, over all subgraphs.
        first_layer: label of the first operator that uses it.
        types: the distinct combinations of input and output types, in order of appearance.
        has_channel_scales: whether an operator has weights (its second input) with a scale for each channel.
    """

    builtin_code: int
    custom_name: str
    name: str
    version: int
    count: int
    first_layer: str
    types: tuple[OpTypes, ...]
    has_channel_scales: bool = False


def op_set(model: Model) -> tuple[OpUse, ...]:
    """Return the ops that operators of any subgraph use, by builtin code and then by custom name."""
    uses: dict[tuple[int, bytes], list[tuple[Operator, OpTypes, bool]]] = {}
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            key = (operator.builtin_code, operator.custom_name.encode())
            tensors = subgraph.tensors
            use = operator, _operator_types(operator, tensors), _has_channel_scales(operator, tensors)
            uses.setdefault(key, []).append(use)
    return tuple(_gather(uses[key]) for key in sorted(uses))


def _gather(uses: Sequence[tuple[Operator, OpTypes, bool]]) -> OpUse:
    first = uses[0][0]
    return OpUse(
        builtin_code=first.builtin_code,
        custom_name=first.custom_name,
        name=op_name(first.builtin_code, first.custom_name),
        version=max(operator.version for operator, *_ in uses),
        count=len(uses),
        first_layer=first.label,
        types=tuple(dict.fromkeys(types for _, types, _ in uses)),
        has_channel_scales=any(has_scales for *_, has_scales in uses),
    )


def _has_channel_scales(operator: Operator, tensors: Sequence[Tensor]) -> bool:
    weights = operator.inputs[1] if len(operator.inputs) > 1 else -1
    quantization = tensors[weights].quantization if weights >= 0 else None
    return quantization is not None and quantization.is_per_channel


def _operator_types(operator: Operator, tensors: Sequence[Tensor]) -> OpTypes:
    return (
        tuple(LEFT_OUT if i < 0 else tensors[i].type for i in operator.inputs),
        tuple(tensors[i].type for i in operator.outputs),
    )


def union_op_set(models: Sequence[Model]) -> tuple[OpUse, ...]:
    """Return the ops that any of the models uses, each in the highest version, in the order of `op_set`."""
    return op_set(replace(models[0], subgraphs=tuple(graph for model in models for graph in model.subgraphs)))
