"""What a size report is made of: pieces of flash and RAM, each with one owner, and their sums."""

from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import Literal

Key = Literal["group", "op", "layer", "file", "symbol", "section"]
"""What pieces can be added up by."""


class Group(StrEnum):
    """The kinds of owner, in the order in which a report shows them."""

    WEIGHTS = "model weights"
    METADATA = "model metadata"
    OPERATORS = "operators"
    INTERPRETER = "interpreter core"
    PLANNER = "memory planner"
    FLATBUFFER = "flatbuffer code"
    STRINGS = "error strings"
    LINK = "link and self-check"
    BOARD = "board and startup"
    APPLICATION = "application"
    PRINTF = "C library: printf"
    MALLOC = "C library: malloc"
    MEMORY = "C library: strings and memory"
    FLOAT = "C library: float arithmetic"
    INTEGER = "C library: integer arithmetic"
    MATH = "C library: math"
    STARTUP = "C library: startup and exit"
    LIBRARY = "C library: other"
    EXCEPTIONS = "C++ library: exceptions"
    CPP = "C++ library: other"
    ARENA = "tensor arena"
    STACK = "stack"
    HEAP = "heap"
    VECTORS = "vectors"
    PADDING = "padding"
    OTHER = "other"


GROUPS: tuple[str, ...] = tuple(Group)
"""All groups, in the order in which a report shows them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A stretch of memory with one owner.

    Attributes:
        address: where it lies in memory when the firmware runs.
        size_bytes: its length.
        section: the section it is part of.
        in_flash: the file holds its bytes, so flash does.
        in_ram: it can be written. The initial values of .data are in both.
        group: what kind of owner it has; one of GROUPS.
        op: the operator it serves ("CONV_2D"); several that share it, joined by ", "; empty when none.
        layer: the layer whose weights these are; empty but in models.
        symbol: the symbol it lies in, as the linker names it (mangled); empty when none covers it.
        file: the source file, or the member of a library ("libc_nano.a:vfprintf.o"); empty when not known.
        detail: what else can be said: the tensor, the text of a string, the part of the arena.
    """

    address: int
    size_bytes: int
    section: str
    in_flash: bool
    in_ram: bool
    group: str
    op: str = ""
    layer: str = ""
    symbol: str = ""
    file: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What has one name: its bytes in flash and in RAM."""

    name: str
    flash_bytes: int
    ram_bytes: int


@dataclass(frozen=True, kw_only=True)
class SectionSize:
    """One allocated section as the ELF has it."""

    name: str
    address: int
    size_bytes: int
    in_flash: bool
    in_ram: bool
    is_code: bool = False


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """Where every byte of a firmware went. Every byte of every allocated section is in exactly one piece.

    Attributes:
        path: the ELF file.
        sections: the allocated sections, in address order.
        pieces: the pieces, by section and then by address.
        notes: what could not be told, and why, a sentence each; empty when everything could be read.
    """

    path: Path
    sections: tuple[SectionSize, ...]
    pieces: tuple[Piece, ...]
    notes: tuple[str, ...] = ()

    @property
    def flash_bytes(self) -> int:
        """Everything that flash holds, with the initial values of .data."""
        return sum(section.size_bytes for section in self.sections if section.in_flash)

    @property
    def ram_bytes(self) -> int:
        """Everything that can be written: .data, .bss, arena, stack."""
        return sum(section.size_bytes for section in self.sections if section.in_ram)

    @property
    def model_bytes(self) -> int:
        """Flash that the models take, weights and all else in them."""
        return self.group_bytes(Group.WEIGHTS) + self.group_bytes(Group.METADATA)

    @property
    def without_model_bytes(self) -> int:
        """Flash without the models: what the runtime, the link and the board cost."""
        return self.flash_bytes - self.model_bytes

    def group_bytes(self, group: Group) -> int:
        """Return the bytes of a group in flash."""
        return sum(piece.size_bytes for piece in self.pieces if piece.in_flash and piece.group == group)

    def sum_by(self, key: Key) -> tuple[Row, ...]:
        """Add up the pieces by one of their fields, the largest first.

        The name of a row is empty for what has no such owner: no op, no file, no symbol.
        """
        flash: dict[str, int] = {}
        ram: dict[str, int] = {}
        name_of = attrgetter(key)
        for piece in self.pieces:
            name = str(name_of(piece))
            flash[name] = flash.get(name, 0) + (piece.size_bytes if piece.in_flash else 0)
            ram[name] = ram.get(name, 0) + (piece.size_bytes if piece.in_ram else 0)
        rows = [Row(name=name, flash_bytes=flash[name], ram_bytes=ram[name]) for name in flash]
        return tuple(sorted(rows, key=lambda row: (-row.flash_bytes, -row.ram_bytes, row.name)))
