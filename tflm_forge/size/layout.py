"""Cuts the sections of an ELF into spans, each in one symbol, one object and one source file."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, pairwise

from tflm_forge.elf import Elf, LineTable, Section, Symbol
from tflm_forge.size.link_map import InputSection, LinkMap
from tflm_forge.size.rules import Claim

MAX_SPANS = 100_000
"""Many times what the largest firmware has, so that a file made to hurt ends too."""

MAX_TEXTS = 20_000
"""The same for strings; what follows them stays in one piece."""

# From its first character on only: a megabyte of text without an end is looked through once, not once a character.
_STRING = re.compile(rb"(?<![\t\n\r\x1b\x20-\x7e])[\t\n\r\x1b\x20-\x7e]{3,}+\0")
_SHORT_STRING = re.compile(rb"(?<![\t\n\r\x1b\x20-\x7e])[\t\n\r\x1b\x20-\x7e]*+\0")
_STRINGS_INPUT = re.compile(r"\.str\d|\.rodata\.str|\.rodata\..*\.str\d")
_Interval = tuple[int, int, object]
_Intervals = list[_Interval]

_KIND_ORDER = {"func": 0, "object": 0, "notype": 1}


@dataclass(slots=True)
class Span:
    """A stretch of one section; what follows the first five attributes is worked out in steps.

    Attributes:
        start: its address.
        end: the address behind it.
        section: its section.
        symbol: the symbol that covers it, or None.
        unit: number of the symbol or of the gap it is part of; what refers to a unit refers to all of its spans.
        source: the file that the line table names; empty when it names none.
        object: the object or library member that the linker map or the symbol table names; empty when none does.
        text: the string it is, with what C would write for control characters.
        is_filled: the linker put it between two others.
        claim: whose it is, so far.
    """

    start: int
    end: int
    section: Section
    symbol: Symbol | None
    unit: int
    source: str = ""
    object: str = ""
    text: str = ""
    is_filled: bool = False
    claim: Claim | None = None


class _Cover:
    """Intervals that do not overlap, asked for in ascending order of address."""

    def __init__(self, items: _Intervals) -> None:
        self._items = items
        self._index = 0

    def at(self, address: int) -> object | None:
        while self._index < len(self._items) and self._items[self._index][1] <= address:
            self._index += 1
        if self._index < len(self._items) and self._items[self._index][0] <= address:
            return self._items[self._index][2]
        return None


def cut_sections(elf: Elf, lines: LineTable, link_map: LinkMap) -> list[Span]:
    """Return the spans of all sections, by section and address; they cover every byte of each once.

    No file gives more than some MAX_SPANS: sections behind that many are left in one piece each.
    """
    cutter = _Cutter(elf, lines, link_map)
    for section in elf.sections:
        cutter.cut(section)
    return cutter.spans


class _Cutter:
    """Collects the spans of one section after the other."""

    def __init__(self, elf: Elf, lines: LineTable, link_map: LinkMap) -> None:
        self.spans: list[Span] = []
        self._elf = elf
        self._unit = 0
        self._texts_left = MAX_TEXTS
        self._symbols = sorted(
            elf.symbols,
            key=lambda s: (s.address, -s.size_bytes, _KIND_ORDER[s.kind], s.name.startswith("_"), s.name),
        )
        self._starts = [symbol.address for symbol in self._symbols]
        self._sources: _Intervals = [(s.start, s.end, s.file) for s in lines.stretches]
        self._inputs: _Intervals = [(part.start, part.end, part) for part in link_map.inputs]

    def cut(self, section: Section) -> None:
        """Add the spans of a section."""
        self._unit += 1
        if len(self.spans) >= MAX_SPANS:
            whole = Span(start=section.address, end=section.end, section=section, symbol=None, unit=self._unit)
            self.spans.append(whole)
            return
        first, last = bisect_left(self._starts, section.address), bisect_left(self._starts, section.end)
        symbols = self._symbols[first:last]
        covers = _clip(((s.address, s.address + s.size_bytes, s) for s in symbols if s.size_bytes), section)
        inputs = _clip(_inside(self._inputs, section), section)
        sources = _clip(_inside(self._sources, section), section) if section.is_code else []
        labels = _labelled(symbols, section) if section.is_code else []
        if section.is_code and not inputs:
            inputs = _marked(self._elf, section)
        self._sweep(section, covers, labels, inputs, sources)

    def _sweep(
        self, section: Section, covers: _Intervals, labels: _Intervals, inputs: _Intervals, sources: _Intervals
    ) -> None:
        edges = {section.address, section.end}
        for items in (covers, labels, inputs, sources):
            edges.update(edge for start, end, _ in items for edge in (start, end))
        by_symbol, by_label, by_input, by_source = map(_Cover, (covers, labels, inputs, sources))
        last: object = None
        for start, end in pairwise(sorted(edges)):
            owner = by_symbol.at(start) or by_label.at(start)
            part, source = by_input.at(start), by_source.at(start)
            # Where no symbol says where one thing ends, each object's part is a thing of its own.
            thing = owner if owner is not None else (part, source)
            self._unit += thing != last
            last = thing
            span = Span(
                start=start,
                end=end,
                section=section,
                symbol=owner if isinstance(owner, Symbol) else None,
                unit=self._unit,
                source=source if isinstance(source, str) else "",
            )
            if isinstance(part, InputSection):
                span.object, span.is_filled = part.file, not part.file
            if owner is None and not span.source and section.has_bytes:
                self._add_texts(span, part.name if isinstance(part, InputSection) else "")
            else:
                self.spans.append(span)

    def _add_texts(self, gap: Span, input_name: str) -> None:
        """Add a gap of constants as its strings and what is between them."""
        data = self._elf.read(gap.start, gap.end - gap.start)
        pattern = _SHORT_STRING if _STRINGS_INPUT.search(input_name) else _STRING
        reached = 0
        for match in islice(pattern.finditer(data), self._texts_left):
            if match.start() > reached:
                self._add_part(gap, reached, match.start(), "")
            text = match[0][:-1].decode("ascii").encode("unicode_escape").decode("ascii")
            self._add_part(gap, match.start(), match.end(), text or '""')
            reached = match.end()
            self._texts_left -= 1
        if reached < gap.end - gap.start:
            self._add_part(gap, reached, gap.end - gap.start, "")

    def _add_part(self, gap: Span, start: int, end: int, text: str) -> None:
        self.spans.append(
            Span(
                start=gap.start + start,
                end=gap.start + end,
                section=gap.section,
                symbol=None,
                unit=self._unit,
                object=gap.object,
                text=text,
                is_filled=gap.is_filled,
            )
        )
        self._unit += 1


def _inside(items: _Intervals, section: Section) -> _Intervals:
    """Return those intervals of a sorted list without overlap that reach into a section."""
    first = bisect_right(items, section.address, key=lambda item: item[1])
    return items[first : bisect_left(items, section.end, key=lambda item: item[0])]


def _clip(items: Iterable[_Interval], section: Section) -> _Intervals:
    """Return the intervals inside a section, by address; where one overlaps an earlier one, what is left of it."""
    found: _Intervals = []
    reached = section.address
    for start, end, item in items:
        if start >= section.end or end <= reached:
            continue
        start, end = max(start, reached), min(end, section.end)
        if start < end:
            found.append((start, end, item))
            reached = end
    return found


def _labelled(symbols: list[Symbol], section: Section) -> _Intervals:
    """Let a label without a size cover what follows it, up to the next symbol."""
    places = sorted({symbol.address for symbol in symbols} | {section.end})
    labels = {symbol.address: symbol for symbol in symbols if not symbol.size_bytes and symbol.kind != "object"}
    return [(start, end, labels[start]) for start, end in pairwise(places) if start in labels]


def _marked(elf: Elf, section: Section) -> _Intervals:
    """Make objects' parts from the marks of the symbol table, for an ELF without a map."""
    found: _Intervals = []
    marks = [mark for mark in elf.marks if section.address <= mark[0] < section.end]
    for index, (start, file) in enumerate(marks):
        end = marks[index + 1][0] if index + 1 < len(marks) else section.end
        if found and found[-1][1] == start and isinstance(found[-1][2], InputSection) and found[-1][2].file == file:
            found[-1] = (found[-1][0], end, found[-1][2])
        elif file and end > start:
            found.append((start, end, InputSection(start=start, end=end, name="", file=file)))
    return found
