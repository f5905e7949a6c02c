"""Reads a GNU linker map: which object or library member each part of a section came from."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tflm_forge.elf import Section

MAX_BYTES = 16 << 20
"""A firmware's map has a few MB."""

_MAX_PARTS = 100_000

_STARTS = "Linker script and memory map"
_OUTPUT = re.compile(r"^([^\s*(][^\s(]*)(?:\n)?[ \t]+0x([0-9a-f]+)[ \t]+0x([0-9a-f]+)", re.MULTILINE)
_INPUT = re.compile(r"^ ([^\s(]+)(?:\n)?[ \t]+0x([0-9a-f]+)[ \t]+0x([0-9a-f]+)(?:[ \t]+(\S.*))?[ \t]*$", re.MULTILINE)
_MEMBER = re.compile(r"([^/\\]+\.a)\((.+)\)$")
_FILL = "*fill*"


@dataclass(frozen=True, kw_only=True, slots=True)
class InputSection:
    """A part of a section that came from one object.

    Attributes:
        start: its address.
        end: the address behind it.
        name: the name it had in the object (".text._ZN6tflite4EvalEv"); empty for what the linker filled in.
        file: the object's path, or "library.a:member.o" for a member of a library.
    """

    start: int
    end: int
    name: str
    file: str


@dataclass(frozen=True, kw_only=True)
class LinkMap:
    """The parts of the allocated sections, by address, none over another."""

    inputs: tuple[InputSection, ...]
    notes: tuple[str, ...] = ()


def read_link_map(path: Path, sections: Iterable[Section]) -> LinkMap:
    """Read a map and check that it belongs to an ELF with these sections; a note says why it is of no use."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return LinkMap(inputs=(), notes=(f"{path.name} is larger than {MAX_BYTES >> 20} MiB and was not read.",))
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return LinkMap(inputs=(), notes=(f"{path.name} can not be read: {error.strerror}.",))
    placed = text.partition(_STARTS)[2]
    if not placed:
        return LinkMap(inputs=(), notes=(f"{path.name} is no map of the GNU linker and was not used.",))
    heads = list(_OUTPUT.finditer(placed))
    ends = [head.start() for head in heads[1:]] + [len(placed)]
    bodies = {
        (head[1], int(head[2], 16), int(head[3], 16)): placed[head.end() : end]
        for head, end in zip(heads, ends, strict=True)
    }
    found: list[InputSection] = []
    for section in sections:
        body = bodies.get((section.name, section.address, section.size_bytes))
        if body is None:
            note = f"{path.name} is of another link and was not used: it places {section.name} elsewhere."
            return LinkMap(inputs=(), notes=(note,))
        found += _read_inputs(body, section)
    return LinkMap(inputs=tuple(_without_overlap(found)))


def _read_inputs(body: str, section: Section) -> list[InputSection]:
    found = []
    for name, address, size, file in (match.groups("") for match in islice(_INPUT.finditer(body), _MAX_PARTS)):
        start, length = int(address, 16), int(size, 16)
        if length and section.address <= start and start + length <= section.end:
            filled = name == _FILL
            found.append(
                InputSection(
                    start=start, end=start + length,
                    name="" if filled else name, file="" if filled else _short(file.strip()),
                )
            )  # fmt: skip
    return found


def _short(file: str) -> str:
    member = _MEMBER.search(file)
    return f"{member[1]}:{member[2]}" if member else file


def _without_overlap(found: list[InputSection]) -> list[InputSection]:
    """Sort the parts; one that overlaps an earlier one is left out."""
    found.sort(key=lambda part: (part.start, part.end))
    kept: list[InputSection] = []
    for part in found:
        if not kept or part.start >= kept[-1].end:
            kept.append(part)
    return kept
