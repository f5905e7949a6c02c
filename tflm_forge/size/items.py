"""The sizes of one firmware as a list of items, one a symbol: what is shown, kept as JSON, and compared."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter

from tflm_forge.size.naming import readable_symbol
from tflm_forge.size.records import Attribution, Group, Key, Piece, Row, SectionSize

_Key = tuple[str, str, str, str, str, str, str, str, int]

MODEL_GROUPS = frozenset({Group.WEIGHTS, Group.METADATA})


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """All pieces of one symbol that have the same owner and file, added up; of what has no symbol, all of a section.

    Attributes:
        name: what a person reads: the layer, the symbol without mangling, the text of a string, or the group.
        symbol: the symbol as the linker names it; empty when none covers the bytes.
        group: what kind of owner it has.
        op: the operator it serves; several that share it, joined by ", "; empty when none.
        layer: the layer whose weights these are; empty but in models.
        part: which part of the model's metadata or of the arena this is; else empty.
        file: the source file or library member; empty when not known.
        section: the section that holds it.
        address: where the symbol begins: static functions may share a name; 0 when there is no symbol.
        flash_bytes: its bytes in flash.
        ram_bytes: its bytes in RAM; those of .data are in both.
    """

    name: str
    symbol: str
    group: str
    op: str
    layer: str
    part: str
    file: str
    section: str
    address: int
    flash_bytes: int
    ram_bytes: int


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The items of one firmware, the largest first; their sums are the firmware's flash and RAM.

    Attributes:
        name: which firmware this is, in words: a path, or a model with its board.
        items: the items.
        flash_bytes: all of flash.
        ram_bytes: all of RAM.
        code_bytes: instructions (executable sections) without the model.
        sections: the allocated sections, in address order.
    """

    name: str
    items: tuple[Item, ...]
    flash_bytes: int
    ram_bytes: int
    code_bytes: int
    sections: tuple[SectionSize, ...] = ()

    def sum_by(self, key: Key) -> tuple[Row, ...]:
        """Add up the items by one of their fields, the largest first; the name is empty for what has no such owner."""
        return sum_items(self.items, key)

    def bytes_of(self, *groups: str) -> Row:
        """Add up all items of some groups."""
        inside = [item for item in self.items if item.group in groups]
        flash, ram = sum(i.flash_bytes for i in inside), sum(i.ram_bytes for i in inside)
        return Row(name=", ".join(groups), flash_bytes=flash, ram_bytes=ram)


def sum_items(items: Iterable[Item], key: Key) -> tuple[Row, ...]:
    """Add up items by one of their fields, the largest first."""
    name_of = attrgetter(key)
    sums: dict[str, list[int]] = {}
    for item in items:
        total = sums.setdefault(name_of(item), [0, 0])
        total[0] += item.flash_bytes
        total[1] += item.ram_bytes
    rows = [Row(name=name, flash_bytes=flash, ram_bytes=ram) for name, (flash, ram) in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-max(row.flash_bytes, row.ram_bytes), row.name)))


def join_files(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return one item a symbol, the largest first: inlining brings code of several files into one symbol.

    The group, operator and file are those of the largest part. What has no symbol stays as it is.
    """
    bundles: dict[tuple[str | int, ...], list[Item]] = {}
    for item in items:
        loose = () if item.symbol else (item.group, item.name)
        bundles.setdefault((item.symbol, item.address, item.layer, item.part, item.section, *loose), []).append(item)
    joined = []
    for parts in bundles.values():
        flash, ram = sum(p.flash_bytes for p in parts), sum(p.ram_bytes for p in parts)
        joined.append(replace(max(parts, key=_size), flash_bytes=flash, ram_bytes=ram))
    return tuple(sorted(joined, key=lambda i: (-_size(i), i.name, i.symbol, i.section, i.address)))


def collect_items(attribution: Attribution, name: str) -> Sizes:
    """Add up an attribution's pieces to items.

    Args:
        attribution: where every byte of a firmware went.
        name: which firmware it is, in words.
    """
    code = {section.name for section in attribution.sections if section.is_code}
    sums: dict[_Key, list[int]] = {}
    code_bytes = 0
    for start, piece in _with_starts(attribution.pieces):
        total = sums.setdefault(_key(piece, start), [0, 0])
        total[0] += piece.size_bytes if piece.in_flash else 0
        total[1] += piece.size_bytes if piece.in_ram else 0
        if piece.in_flash and piece.section in code and piece.group not in MODEL_GROUPS:
            code_bytes += piece.size_bytes
    items = [
        Item(
            name=words, symbol=symbol, group=group, op=op, layer=layer, part=part, file=file,
            section=section, address=start, flash_bytes=flash, ram_bytes=ram,
        )
        for (words, symbol, group, op, layer, part, file, section, start), (flash, ram) in sums.items()
    ]  # fmt: skip
    items.sort(key=lambda i: (-_size(i), i.name, i.symbol, i.file, i.section, i.address))
    return Sizes(
        name=name,
        items=tuple(items),
        flash_bytes=attribution.flash_bytes,
        ram_bytes=attribution.ram_bytes,
        code_bytes=code_bytes,
        sections=attribution.sections,
    )


def _with_starts(pieces: Iterable[Piece]) -> Iterator[tuple[int, Piece]]:
    """Yield each piece with the address at which its symbol begins; 0 where no symbol covers it."""
    last: Piece | None = None
    start = 0
    for piece in pieces:
        goes_on = last is not None and last.symbol == piece.symbol and last.address + last.size_bytes == piece.address
        if not goes_on:
            start = piece.address
        yield start if piece.symbol else 0, piece
        last = piece


def _key(piece: Piece, start: int) -> _Key:
    """Return all fields of an item but its sizes.

    A model and an arena are one symbol each, and what a person wants to see is the layers and the parts.
    """
    part = piece.detail if piece.group in (Group.METADATA, Group.ARENA) else ""
    name = short_layer(piece.layer) or part or readable_symbol(piece.symbol) or piece.detail or f"[{piece.group}]"
    return (name, piece.symbol, str(piece.group), piece.op, piece.layer, part, piece.file, piece.section, start)


def short_layer(layer: str) -> str:
    """Return a layer's name without those that a converter joined with semicolons when it fused layers."""
    return re.sub(r";[^,]*", "", layer)


def _size(item: Item) -> int:
    return max(item.flash_bytes, item.ram_bytes)
