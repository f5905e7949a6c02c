"""What can be said of the arena from the model alone: an estimate, and why a model can never fit."""

from collections.abc import Sequence

from tflm_forge.board import Board
from tflm_forge.errors import FitError
from tflm_forge.model import Model, Subgraph

STEP_BYTES = 16
"""The arena's alignment; TFLM's own buffers are aligned to it (MicroArenaBufferAlignment)."""

_TENSOR_BYTES = 96
_OPERATOR_BYTES = 256
_CHANNEL_BYTES = 24


def estimate_arena(*models: Model) -> int:
    """Return a size in bytes that is likely enough, from the models alone; never used without saying so.

    The buffers as a greedy planner lays them out, and a generous allowance for what the runtime keeps of each
    tensor, operator and channel. Kernels' scratch buffers can not be seen in the model: a quarter is added for them.
    """
    graphs = [graph for model in models for graph in model.subgraphs]
    head = max(map(_planned_bytes, graphs), default=0)
    tail = 0
    for graph in graphs:
        channels = sum(len(t.quantization.scales) for t in graph.tensors if t.quantization)
        tail += len(graph.tensors) * _TENSOR_BYTES + len(graph.operators) * _OPERATOR_BYTES + channels * _CHANNEL_BYTES
    return round_up(int((head + tail) * 1.25) + 1024)


def _planned_bytes(graph: Subgraph) -> int:
    """Return the height of a greedy layout of a subgraph's buffers: largest first, lowest free place."""
    first: dict[int, int] = dict.fromkeys(graph.inputs, 0)
    last: dict[int, int] = dict.fromkeys(graph.outputs, len(graph.operators))
    for step, operator in enumerate(graph.operators):
        for index in operator.outputs:
            first.setdefault(index, step)
            last.setdefault(index, step)
        for index in operator.inputs:
            last[index] = max(last.get(index, 0), step)
    placed: list[tuple[int, int, int, int]] = []
    sizes = {i: round_up(graph.tensors[i].size_bytes) for i in first if not graph.tensors[i].data_bytes}
    for index in sorted(sizes, key=lambda i: (-sizes[i], i)):
        begin, end = first[index], last.get(index, first[index])
        offset = 0
        for low, high, start, stop in sorted(placed):
            if start <= end and begin <= stop and offset + sizes[index] > low:
                offset = max(offset, high)
        placed.append((offset, offset + sizes[index], begin, end))
    return max((high for _, high, _, _ in placed), default=0)


def round_up(size: int) -> int:
    """Return the least multiple of STEP_BYTES that is not less."""
    return -(-size // STEP_BYTES) * STEP_BYTES


def refuse_arena(models: Sequence[Model], board: Board, limit_bytes: int) -> FitError:
    """Build the error for models whose arena does not fit the board's RAM."""
    buffers = max(_planned_bytes(graph) for model in models for graph in model.subgraphs)
    return FitError(
        f"{', '.join(model.name for model in models)}: the tensor arena does not fit the RAM of {board.name}",
        reasons=(
            f"{board.ram.name}: {board.ram.length_bytes} bytes, of which {limit_bytes} are left for the arena",
            f"the model's buffers alone take {buffers} bytes; what the runtime keeps of each layer comes on top",
        ),
        hint="Choose a board with more RAM (`forge boards`), or a model with smaller activations.",
    )
