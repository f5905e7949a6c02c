"""Writes a new board file: a shipped one as the start, with a comment on every number its driver takes."""

import re

from tflm_forge.board.drivers import NAME, Driver, load_driver
from tflm_forge.board.finding import load_board
from tflm_forge.board.records import Board
from tflm_forge.errors import UsageError

_HEAD = """\
# {name}, made from {like}. Go through it from top to bottom; each fact wants the document it is from as its source.
#   forge board check {file}     says everything that is wrong with it
#   forge build model.tflite --board {name}
# Put it into boards/ beside forge.toml, or into boards/ of FORGE_HOME for all projects.
# core        {cores}
# clock_hz    what the core runs at; the driver makes it of its numbers, and they must fit
# twin        an emulated board with the same class of core, to measure the tensor arena on: `forge boards`
# region      the first of each kind is the one that firmware is linked to; list the largest RAM first
# usb_ids     "VID:PID" of the board's serial port; with `probe`, other boards may have the same
# runner      what flashes it, the preferred first; `forge flash --help` names them
"""
_OWN_KEYS = ("title", "source")


def scaffold_board(name: str, like: str) -> str:
    """Return the text of a board file that starts as another board's.

    Args:
        name: the new board's name, which is its file's.
        like: the board to start from.

    Raises:
        UsageError: the name is none, or there is no such board.
    """
    if NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} can not be a board's name", hint="Small letters, digits, - and _, like nucleo-f446re."
        )
    board = load_board(like)
    driver = load_driver(board.driver)
    lines = _without_head(board.path.read_text(encoding="utf-8"))
    lines = [_rename(line, name, board) for line in _drop_table(lines, "emulator")]
    if board.emulator is not None and board.twin is None:
        at = next(i for i, line in enumerate(lines) if line.startswith("stack_bytes"))
        lines.insert(at + 1, f'twin = "{board.name}"')
    return _head(name, board) + "\n" + "\n".join(_explain_driver(lines, driver)).rstrip() + "\n"


def _head(name: str, board: Board) -> str:
    from tflm_forge.board.cores import CORES

    return _HEAD.format(name=name, like=board.name, file=f"boards/{name}.toml", cores=", ".join(CORES))


def _without_head(text: str) -> list[str]:
    """Return the lines behind the comments at the top, which are about the other board."""
    lines = text.splitlines()
    while lines and (lines[0].startswith("#") or not lines[0]):
        lines.pop(0)
    return lines


def _drop_table(lines: list[str], name: str) -> list[str]:
    """Leave a table out: the new board is not what the other one's emulator is."""
    kept, inside = [], False
    for line in lines:
        if re.match(r"\[", line):
            inside = line.startswith((f"[{name}]", f"[{name}."))
        if not inside:
            kept.append(line)
    return kept


def _rename(line: str, name: str, board: Board) -> str:
    if line == f'title = "{board.title}"':
        return f'title = "{name}"  # say what it is, with its chip and core'
    return line


def _explain_driver(lines: list[str], driver: Driver) -> list[str]:
    """Say at [driver] which numbers it takes, and which values they may have."""
    limits = [f"# {key}: {_range(driver, key)}" for key in sorted(driver.keys) if _range(driver, key)]
    head = [f"# The numbers of templates/firmware/boards/{driver.name}.cc. {driver.source}".rstrip(), *limits]
    if driver.pll is not None:
        head.append(f"# {driver.pll.reference}")
    if driver.wait_states is not None:
        head.append(f"# {driver.wait_states.reference}")
    at = lines.index("[driver]")
    return [*lines[:at], *head, *lines[at:]]


def _range(driver: Driver, key: str) -> str:
    words = ""
    if key in driver.ranges:
        words = "{:,} to {:,}".format(*driver.ranges[key])
    elif key in driver.choices:
        words = " or ".join(f"{choice:,}" for choice in driver.choices[key])
    if key in driver.defaults:
        words += f"{', ' if words else ''}{driver.defaults[key]:,} when it is left out"
    return words
