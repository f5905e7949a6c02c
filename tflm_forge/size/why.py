"""Why a symbol is in a firmware: the shortest chain of references from the reset vector to it."""

import difflib
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tflm_forge.elf import Elf, Machine, read_elf, read_lines
from tflm_forge.errors import UsageError
from tflm_forge.size.attribute import shorten
from tflm_forge.size.diff import plain_symbol
from tflm_forge.size.layout import Span, cut_sections
from tflm_forge.size.link_map import LinkMap, read_link_map
from tflm_forge.size.naming import readable_symbol
from tflm_forge.size.references import Reference, find_references
from tflm_forge.size.relocations import read_relocations

Link = Literal["start", "reference", "same section"]
"""How a step is reached: the core starts there, the step before refers to it, or the linker kept both together."""

Source = Literal["relocations", "instructions"]

MOST_SYMBOLS = 4
"""How many symbols of one readable name are explained."""

_VECTORS = re.compile(
    r"\.?(isr_|int)?vec(tor)?s?(_?table)?|\.(isr_)?vectors?\b.*|_*g_pfnVectors|__Vectors", re.IGNORECASE
)
_NEAR_NAMES = 5
_UPWARD = re.compile(r"^(\.\./)+")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One link of a chain: a function, an object, or the part of a section that has no symbol."""

    symbol: str
    name: str
    file: str
    section: str
    address: int
    link: Link


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why one symbol is there.

    Attributes:
        symbol: as the linker names it.
        name: without mangling.
        section: the section that holds it.
        size_bytes: its size.
        chain: from the reset vector to the symbol; empty when no reference leads to it.
        referrers: all that refers to it directly, but for itself.
        source: how references are known; "instructions" are read from the code and may name one too many.
    """

    symbol: str
    name: str
    section: str
    size_bytes: int
    chain: tuple[Step, ...]
    referrers: tuple[Step, ...]
    source: Source

    @property
    def is_only_kept(self) -> bool:
        """Whether nothing leads to it, so that only the linker script can be why it is there."""
        return not self.chain


@dataclass(slots=True)
class _Unit:
    """A symbol, or a stretch without one: what a reference goes from and to."""

    start: int
    end: int
    span: Span
    names: list[str] = field(default_factory=list)
    targets: dict[int, None] = field(default_factory=dict)
    sources: dict[int, None] = field(default_factory=dict)


def find_reasons(path: Path, wanted: str, *, link_map: Path | None = None) -> tuple[Reason, ...]:
    """Say why a symbol is in an ELF; several when static functions share the name.

    Args:
        path: the ELF file; one linked with --emit-relocs tells most.
        wanted: the symbol, mangled or as a person writes it, with or without what marks copies (".constprop.0").
        link_map: the linker's map; the .map beside the ELF when there is one. It tells what was kept together.

    Raises:
        UsageError: not an ELF that can be read, or it has no such symbol (names the nearest ones).
    """
    elf = read_elf(path)
    placed = _read_map(elf, link_map)
    graph = _Graph(elf, placed)
    units = graph.find(wanted)
    if not units:
        raise _unknown(path, wanted, elf)
    return tuple(graph.explain(unit) for unit in units[:MOST_SYMBOLS])


def _read_map(elf: Elf, link_map: Path | None) -> LinkMap:
    path = link_map or elf.path.with_suffix(".map")
    if link_map is None and not path.is_file():
        return LinkMap(inputs=())
    return read_link_map(path, elf.sections)


def _unknown(path: Path, wanted: str, elf: Elf) -> UsageError:
    if not elf.symbols:
        return UsageError(f"{path}: has no symbol {wanted!r}: the file is stripped", hint="Name the ELF of the build.")
    known = {readable_symbol(symbol.name): None for symbol in elf.symbols}
    inside = [name for name in known if wanted.lower() in name.lower()]
    near = inside or difflib.get_close_matches(wanted, known, n=_NEAR_NAMES, cutoff=0.5)
    hint = f"Near to it: {', '.join(sorted(near, key=len)[:_NEAR_NAMES])}. " if near else ""
    return UsageError(
        f"{path}: has no symbol {wanted!r}",
        hint=f"{hint}What the compiler inlined, and what the linker left out, has none.",
    )


class _Graph:
    """All units of an ELF and what refers to what."""

    def __init__(self, elf: Elf, placed: LinkMap) -> None:
        self._elf = elf
        self._units: list[_Unit] = []
        self._inputs = placed.inputs
        for span in cut_sections(elf, read_lines(elf), placed):
            if self._units and self._units[-1].span.unit == span.unit:
                self._units[-1].end = span.end
            else:
                self._units.append(_Unit(start=span.start, end=span.end, span=span))
        self._starts = [unit.start for unit in self._units]
        self._name_units()
        exact = read_relocations(elf)
        self._source: Source = "instructions" if exact is None else "relocations"
        self._connect(find_references(elf) if exact is None else exact)
        self._roots = self._find_roots()
        self._steps = self._walk(self._roots)

    def find(self, wanted: str) -> list[int]:
        """Return the units whose name this is: as the linker has it, or else as a person writes it."""
        for same in (
            lambda name: name == wanted,
            lambda name: wanted in (plain_symbol(name), readable_symbol(name)),
            lambda name: readable_symbol(plain_symbol(name)) == wanted,
            lambda name: readable_symbol(plain_symbol(name)).rpartition("::")[2] == wanted,
        ):
            found = [i for i, unit in enumerate(self._units) if any(same(name) for name in unit.names)]
            if found:
                return sorted(found, key=lambda i: self._units[i].start - self._units[i].end)
        return []

    def explain(self, index: int) -> Reason:
        """Return the chain to a unit, and all that refers to it."""
        unit, steps = self._units[index], self._steps
        if index not in steps:
            steps = self._walk(self._roots, with_neighbours=True)
        chain: list[Step] = []
        at: int | None = index if index in steps else None
        while at is not None:
            before, link = steps[at]
            chain.append(self._step(at, link))
            at = before
        step = self._step(index, "reference")
        referrers = [self._step(i, "reference") for i in unit.sources if i != index]
        return Reason(
            symbol=step.symbol,
            name=step.name,
            section=unit.span.section.name,
            size_bytes=unit.end - unit.start,
            chain=tuple(reversed(chain)),
            referrers=tuple(sorted(referrers, key=lambda s: s.name)),
            source=self._source,
        )

    def _name_units(self) -> None:
        for symbol in self._elf.symbols:
            index = self._at(symbol.address)
            if index is not None and self._units[index].start == symbol.address:
                self._units[index].names.append(symbol.name)
        for unit in self._units:
            if unit.span.symbol and unit.span.symbol.name not in unit.names:
                unit.names.append(unit.span.symbol.name)

    def _connect(self, references: Iterable[Reference]) -> None:
        for place, address in references:
            source, target = self._at(place), self._at(self._aligned(address))
            if source is not None and target is not None and source != target:
                self._units[source].targets[target] = None
                self._units[target].sources[source] = None

    def _aligned(self, address: int) -> int:
        """Return an address without the Thumb bit that pointers to functions have."""
        if self._elf.machine == Machine.ARM and address & 1:
            index = self._at(address)
            if index is not None and self._units[index].span.section.is_code:
                return address & ~1
        return address

    def _find_roots(self) -> list[int]:
        tables = [
            index
            for index, unit in enumerate(self._units)
            if _VECTORS.fullmatch(unit.span.section.name) or any(_VECTORS.fullmatch(name) for name in unit.names)
        ]
        entry = self._at(self._elf.entry)
        return tables + ([entry] if entry is not None and entry not in tables else [])

    def _walk(self, roots: list[int], *, with_neighbours: bool = False) -> Mapping[int, tuple[int | None, Link]]:
        """Return, for each unit that is reached, the one before it on a shortest way."""
        steps: dict[int, tuple[int | None, Link]] = {}
        tables = [root for root in roots if self._units[root].start != self._elf.entry]
        queue: deque[int] = deque(tables or roots)
        steps.update((root, (None, "start")) for root in queue)
        waiting = [root for root in roots if root not in steps]
        beside = self._neighbours() if with_neighbours else {}
        while queue or waiting:
            if not queue:  # an entry point that no vector table names
                root = waiting.pop()
                if root in steps:
                    continue
                steps[root] = (None, "start")
                queue.append(root)
            index = queue.popleft()
            for target in self._units[index].targets:
                if target not in steps:
                    steps[target] = (index, "reference")
                    queue.append(target)
            for target in beside.get(index, ()):
                if target not in steps:
                    steps[target] = (index, "same section")
                    queue.append(target)
        return steps

    def _neighbours(self) -> dict[int, list[int]]:
        """Return the units that the linker can only keep together: they are of one section of one object."""
        together: dict[int, list[int]] = {}
        for part in self._inputs:
            first = bisect_right(self._starts, part.start - 1)
            units = list(range(first, bisect_right(self._starts, part.end - 1)))
            if part.name and len(units) > 1:
                together.update({unit: [u for u in units if u != unit] for unit in units})
        return together

    def _at(self, address: int) -> int | None:
        index = bisect_right(self._starts, address) - 1
        return index if index >= 0 and address < self._units[index].end else None

    def _step(self, index: int, link: Link) -> Step:
        unit = self._units[index]
        symbol = unit.span.symbol.name if unit.span.symbol else (unit.names[0] if unit.names else "")
        return Step(
            symbol=symbol,
            name=readable_symbol(symbol) if symbol else f"[{unit.span.section.name}]",
            file=_UPWARD.sub("", shorten(unit.span.source or unit.span.object)),
            section=unit.span.section.name,
            address=unit.start,
            link=link,
        )
