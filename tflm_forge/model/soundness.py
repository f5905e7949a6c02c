"""What must hold among the parts of a model before anything may use it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tflm_forge.model.flatbuffer import DamageError
from tflm_forge.model.records import Opcode, Quantization, Subgraph, Tensor
from tflm_forge.model.schema import CUSTOM_CODE, type_bits

MAX_RANK = 16
"""TFLite's own kernels end at 8 dimensions."""

MAX_TENSOR_BYTES = (1 << 31) - 1
"""TFLM counts a tensor's bytes and elements in 32 bits."""

MAX_CUSTOM_NAME_BYTES = 255
"""The op hash and the serial link have one byte for the length of a name."""

# Ops that run other subgraphs, and can do nothing without the options that name them.
_CALLING_OPS = frozenset({"IF", "WHILE", "CALL_ONCE"})

_SHOWN_CHARACTERS = 80


def in_quotes(name: str) -> str:
    """Return a name from a file in quotes, what is not printable escaped, the end of a long one left out."""
    return repr(name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "...")


def check_indices(what: str, indices: Sequence[int], count: int, *, optional: bool) -> None:
    """Refuse an index of a tensor that does not exist.

    Args:
        what: what the indices are ("input").
        indices: indices of tensors.
        count: how many tensors there are.
        optional: whether -1 stands for one that is left out.
    """
    lowest = -1 if optional else 0
    for place, index in enumerate(indices):
        if not lowest <= index < count:
            raise DamageError(f"{what} {place} is tensor {index} of {count}")


def check_opcode(opcode: Opcode) -> None:
    """Refuse an opcode in use whose code, name or version can mean nothing."""
    if opcode.builtin_code < 0:
        raise DamageError(f"op code {opcode.builtin_code} is negative")
    if opcode.version < 0:
        raise DamageError(f"op version {opcode.version} is negative")
    if opcode.builtin_code != CUSTOM_CODE:
        return
    name = opcode.custom_name
    if not name:
        raise DamageError("a custom op without a name")
    if len(name.encode()) > MAX_CUSTOM_NAME_BYTES:
        raise DamageError(f"the custom op's name is longer than {MAX_CUSTOM_NAME_BYTES} bytes")
    if not name.isprintable() or "\N{REPLACEMENT CHARACTER}" in name:
        raise DamageError(f"the custom op's name {in_quotes(name)} is no printable text")


def check_shape(shape: Sequence[int], type_name: str) -> None:
    """Refuse dimensions that are negative, too many, or take more bytes than TFLM can count."""
    if len(shape) > MAX_RANK:
        raise DamageError(f"has {len(shape)} dimensions, more than {MAX_RANK}")
    if any(dimension < 0 for dimension in shape):
        raise DamageError(
            f"its shape {list(shape)} has a negative dimension: it was exported without a fixed shape, or is damaged"
        )
    elements = math.prod(shape)
    if elements * max(type_bits(type_name) or 8, 8) > MAX_TENSOR_BYTES * 8:
        raise DamageError(f"its shape {list(shape)} of {type_name} takes more than {MAX_TENSOR_BYTES:,} bytes")


def check_quantization(quantization: Quantization, shape: Sequence[int]) -> None:
    """Refuse scales and zero points whose number does not match the tensor."""
    scales, zero_points = len(quantization.scales), len(quantization.zero_points)
    if zero_points not in (0, scales):
        raise DamageError(f"has {scales} scales but {zero_points} zero points")
    if quantization.is_per_channel:
        # Older converters give a bias, which has one dimension, the dimension of its filter.
        axis = 0 if len(shape) == 1 else quantization.axis
        if not 0 <= axis < len(shape):
            raise DamageError(f"its scales are along dimension {axis} of {len(shape)}")
        if shape[axis] != scales:
            raise DamageError(f"has {scales} scales for {shape[axis]} channels")
    for zero_point in quantization.zero_points:
        if not -(1 << 31) <= zero_point < 1 << 31:
            raise DamageError(f"its zero point {zero_point} is no number of 32 bits")


def check_constant(tensor: Tensor, *, compressed: bool) -> None:
    """Refuse constant data of another size than the shape needs.

    Args:
        tensor: the tensor.
        compressed: whether TFLM's compression tool packed this model's constants.
    """
    if not tensor.is_constant or type_bits(tensor.type) is None:
        return
    needed = tensor.size_bytes
    may_be_smaller = compressed or tensor.is_sparse
    if tensor.data_bytes != needed and not (may_be_smaller and tensor.data_bytes < needed):
        raise DamageError(
            f"its buffer {tensor.buffer} holds {tensor.data_bytes} bytes, "
            f"but {tensor.type} {list(tensor.shape)} takes {needed}"
        )


def list_subgraph_calls(options_type: str, options: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the subgraphs that an operator with these builtin options runs."""
    called: list[int] = []
    for name, value in options.items():
        if name.endswith("subgraph_index") or (options_type == "CallOptions" and name == "subgraph"):
            called.append(value)
        elif name in ("branch_subgraph_indices", "called_computations"):
            called.extend(value)
    return tuple(called)


def check_subgraph_calls(subgraphs: Sequence[Subgraph]) -> None:
    """Refuse operators that run a subgraph that is not there, and subgraphs that run each other in a ring."""
    calls: list[list[int]] = []
    for subgraph in subgraphs:
        called: list[int] = []
        for operator in subgraph.operators:
            where = f"subgraph {subgraph.index}: operator {operator.index}: {operator.name}"
            if operator.name in _CALLING_OPS and not operator.options_type:
                raise DamageError(f"{where}: has no options that name the subgraph to run")
            for target in list_subgraph_calls(operator.options_type, operator.options):
                if not 0 <= target < len(subgraphs):
                    raise DamageError(f"{where}: runs subgraph {target} of {len(subgraphs)}")
                called.append(target)
        calls.append(called)
    cycle = _find_cycle(calls)
    if cycle:
        raise DamageError(f"subgraphs run each other without end: {' -> '.join(map(str, cycle))}")


def _find_cycle(calls: Sequence[Sequence[int]]) -> list[int]:
    """Return a way from a node of a graph back to it, or nothing; no recursion, as a file may nest deeply."""
    finished: set[int] = set()
    for start in range(len(calls)):
        if start in finished:
            continue
        path = [start]
        on_path = {start}
        pending: list[Iterator[int]] = [iter(calls[start])]
        while path:
            target = next(pending[-1], None)
            if target is None:
                pending.pop()
                on_path.discard(path[-1])
                finished.add(path.pop())
            elif target in on_path:
                return [*path[path.index(target) :], target]
            elif target not in finished:
                path.append(target)
                on_path.add(target)
                pending.append(iter(calls[target]))
    return []
