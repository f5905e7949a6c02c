"""Reads DWARF line tables (.debug_line): which source file each stretch of code came from.

A unit that is damaged is left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from tflm_forge.elf.line_program import MAX_ROWS, MAX_STRETCHES, DamageError, Row, read_units
from tflm_forge.elf.records import Elf


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Code from `start` up to `end` that came from one source file, as the compiler was given its path."""

    start: int
    end: int
    file: str


@dataclass(frozen=True, kw_only=True)
class LineTable:
    """All stretches, by address, none over another; and what could not be read, a sentence each."""

    stretches: tuple[Stretch, ...]
    notes: tuple[str, ...] = ()


def read_lines(elf: Elf) -> LineTable:
    """Read which source file each stretch of code came from."""
    code = _code_of(elf)
    found: list[tuple[int, int, str]] = []
    damaged, budget = 0, MAX_ROWS
    for unit in read_units(elf):
        try:
            rows = unit.decode(budget, every_line=False)
        except DamageError:
            damaged += 1
            continue
        budget -= unit.rows
        here = ((start, end, unit.path(file)) for start, end, file, _ in _in_code(rows, code))
        found += islice(here, MAX_STRETCHES - len(found))
        if budget <= 0 or len(found) == MAX_STRETCHES:
            break
    notes = []
    if damaged:
        notes.append(f"{damaged} units of the line table are damaged and were left out.")
    if budget <= 0 or len(found) == MAX_STRETCHES:
        notes.append("The line table is larger than any firmware's; the rest was not read.")
    return LineTable(stretches=tuple(_without_overlap(found)), notes=tuple(notes))


def find_line(elf: Elf, address: int) -> tuple[str, int]:
    """Return file name and line of a code address; empty and 0 when no table has it."""
    for unit in read_units(elf):
        try:
            rows = unit.decode(MAX_ROWS, every_line=True)
        except DamageError:
            continue
        for start, end, file, line in _in_code(rows, _code_of(elf)):
            if start <= address < end:
                return unit.path(file).rpartition("/")[2], line
    return "", 0


def _code_of(elf: Elf) -> list[tuple[int, int]]:
    return [(section.address, section.end) for section in elf.sections if section.is_code]


def _in_code(rows: list[Row], code: list[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield start, end, file and line of each row of a sequence that starts in code.

    Others belong to functions that the linker left out: they start at 0, and run on to where other code is.
    """
    is_code, starts = False, True
    for (start, file, line), (end, _, _) in pairwise(rows):
        if starts:
            is_code = any(low <= start < high for low, high in code)
        starts = file < 0
        if is_code and file >= 0 and end > start:
            yield start, end, file, line


def _without_overlap(found: list[tuple[int, int, str]]) -> Iterator[Stretch]:
    """Sort the stretches; where two overlap, the one that starts first keeps the bytes."""
    found.sort(key=lambda stretch: stretch[:2])
    reached = 0
    for start, end, file in found:
        if end > reached:
            yield Stretch(start=max(start, reached), end=end, file=file)
            reached = end
