"""Finds board files by name: the user's own in front of those that forge ships."""

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from tflm_forge.board.reading import read_board
from tflm_forge.board.records import Board
from tflm_forge.errors import UsageError
from tflm_forge.registry import unknown_name
from tflm_forge.resources import data_dir, home_dir

FOLDER = "boards"

_PAIRS_SHOWN = 5


def board_folders() -> tuple[Path, ...]:
    """Return where board files are looked for: the current folder's boards/, FORGE_HOME's, and forge's own."""
    return (Path(FOLDER), home_dir() / FOLDER, data_dir(FOLDER))


def list_boards() -> tuple[Board, ...]:
    """Return every board there is by name, sorted: the user's and those that forge ships.

    Raises:
        UsageError: a board file is wrong, or two boards have one USB id and can not be told apart.
    """
    boards = tuple(load_board(name) for name in sorted(_board_paths()))
    refuse_shared_usb_ids(boards)
    return boards


def load_board(name: str) -> Board:
    """Return the board with this name, or the one described by a board file of the user's.

    Args:
        name: a name from `forge boards`, or the path of a .toml file.

    Raises:
        UsageError: no such board (names the nearest one), or its file is wrong (names file and keys).
    """
    paths = _board_paths()
    if name.endswith(".toml"):
        board = read_board(Path(name))
        hidden = [path for path in paths.get(board.name, ()) if path.resolve() != board.path.resolve()]
    elif name in paths:
        first, *hidden = paths[name]
        board = read_board(first)
    else:
        raise unknown_name("board", name, paths)
    _check_twin(board, paths)
    return replace(board, shadows=hidden[0]) if hidden else board


def refuse_shared_usb_ids(boards: Iterable[Board]) -> None:
    """Refuse two boards with one USB id, unless both say that it is that of the same debug probe, or of one chip's ROM.

    Raises:
        UsageError: names both boards, their files and the id.
    """
    reasons = [
        f"{first.name} ({first.path}) and {second.name} ({second.path}): {', '.join(sorted(shared))}"
        for first, second in combinations(boards, 2)
        if first.probe is None or first.probe != second.probe
        if (shared := set(first.usb_ids) & set(second.usb_ids))
    ]
    if reasons:
        more = len(reasons) - _PAIRS_SHOWN
        raise UsageError(
            "two boards have one USB id, so that their ports can not be told apart",
            reasons=[*reasons[:_PAIRS_SHOWN], *([f"and {more} more pairs"] if more > 0 else [])],
            hint="If it is the id of a debug probe that both carry, give both the same `probe`; else correct usb_ids.",
        )


def boards_with_probe(board: Board) -> tuple[str, ...]:
    """Return the names of the other boards that carry the same debug probe, sorted; none when it has ids of its own."""
    others = []
    if board.probe is not None:
        for name in sorted(_board_paths()):
            # A file that is wrong is nothing to say where a port is looked for.
            with contextlib.suppress(UsageError):
                if name != board.name and load_board(name).probe == board.probe:
                    others.append(name)
    return tuple(others)


def _board_paths() -> dict[str, list[Path]]:
    """Return the files of each board by its name, the one that counts first."""
    found: dict[str, list[Path]] = {}
    for folder in board_folders():
        for path in sorted(folder.glob("*.toml")):
            files = found.setdefault(path.stem, [])
            if all(path.resolve() != other.resolve() for other in files):
                files.append(path)
    return found


def _check_twin(board: Board, paths: dict[str, list[Path]]) -> None:
    if board.twin is None:
        return
    if board.twin not in paths:
        unknown = unknown_name("board", board.twin, paths)
        raise UsageError(f"{board.path}: twin: {unknown.message}", hint=unknown.hint)
    twin = read_board(paths[board.twin][0])
    if twin.emulator is None:
        raise UsageError(f"{board.path}: twin: {board.twin!r} has no emulator", hint="Name a board that has one.")
    if twin.core.kernel_class != board.core.kernel_class:
        raise UsageError(
            f"{board.path}: twin: {board.twin!r} is a {twin.core.name}, and runs other kernels than {board.core.name}",
            hint="Name an emulated board whose core has the same FPU, DSP and vector extensions.",
        )
