"""Rules about the board: what can never fit, whatever the compiler does."""

from collections.abc import Iterator

from tflm_forge.board import Board
from tflm_forge.doctor.records import Hit, Node, Subject, rule


@rule(
    id="flash-too-small",
    severity="error",
    needs="board",
    title="a model larger than the board's flash",
    why="The model lies in flash as it is, beside the program.",
    remedy="Quantize to int8, prune layers, or take a board with more flash: `forge boards`.",
    source="the board's file, region of kind flash",
)
def flash_too_small(subject: Subject) -> Iterator[Hit]:
    """The file's bytes against the flash."""
    board, size = subject.board, len(subject.model.data)
    if board is not None and size > board.flash.length_bytes:
        words = f"The model takes {size:,} bytes; {board.name} has {board.flash.length_bytes:,} bytes of flash."
        yield Hit(words=words)


@rule(
    id="ram-too-small",
    severity="error",
    needs="board",
    title="a layer whose tensors exceed the board's RAM",
    why="While a layer runs, its inputs and outputs are in the arena together. No plan can make that smaller.",
    remedy="Make the input smaller (fewer pixels, shorter windows), quantize to int8, or take a board with more RAM: "
    "`forge boards`.",
    source="greedy_memory_planner.cc: buffers whose lifetimes overlap do not share; the board's file, region of kind "
    "ram",
)
def ram_too_small(subject: Subject) -> Iterator[Hit]:
    """The largest sum of one layer's tensors against the RAM."""
    board = subject.board
    if board is None or not subject.nodes:
        return
    needed, node = max(((_live_bytes(node), node) for node in subject.nodes), key=lambda pair: pair[0])
    if needed > _most_ram(board):
        words = f"Layer {node.label!r} ({node.name}) has {needed:,} bytes of tensors at once; {board.name} has "
        yield Hit(layer=node.label, words=f"{words}{_most_ram(board):,} bytes of RAM.")


def _most_ram(board: Board) -> int:
    return board.ram.length_bytes


def _live_bytes(node: Node) -> int:
    """Return the bytes of a node's inputs and outputs that are no constants; each tensor counts once."""
    tensors = {t.index: t.size_bytes for t in node.tensors() if not t.is_constant}
    return sum(tensors.values())
