"""What an ELF file holds, as values: sections, symbols, the bytes behind an address."""

from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path


class Machine(IntEnum):
    """The cores whose instructions forge can look into; other cores' files are read all the same."""

    ARM = 40
    RISCV = 243


@dataclass(frozen=True, kw_only=True)
class Section:
    """One allocated section: address and size in memory, and whether the file holds its bytes.

    `is_writable` is about the memory it runs in: constants beside an .init_array have the section flag, but no
    segment that can be written.
    """

    name: str
    address: int
    size_bytes: int
    offset: int
    is_writable: bool
    is_code: bool
    has_bytes: bool

    @property
    def end(self) -> int:
        """The address behind its last byte."""
        return self.address + self.size_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    """One symbol of an allocated section; `address` has no Thumb bit.

    `file` is the source file's name that the symbol table has for a local symbol, else empty.
    """

    name: str
    address: int
    size_bytes: int
    kind: str
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class Elf:
    """An ELF file's allocated sections, in address order, and their symbols.

    Attributes:
        path: the file.
        data: its bytes.
        machine: e_machine.
        entry: the address it starts at, without a Thumb bit.
        sections: the allocated sections that are not empty.
        symbols: the symbols of these sections, but for mapping symbols ("$t").
        marks: where the symbol table says that a file's part of a section begins or changes from code to data:
            address and file name.
        debug: offset and size in the file of each section that is not loaded, by name: debug information that is not
            compressed, and forge's facts.
        notes: what is missing, a sentence each.
    """

    path: Path
    data: bytes = field(repr=False)
    machine: int
    entry: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    marks: tuple[tuple[int, str], ...] = ()
    debug: dict[str, tuple[int, int]] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    def find_symbol(self, name: str) -> Symbol | None:
        """Return the symbol with this name, or None."""
        return next((symbol for symbol in self.symbols if symbol.name == name), None)

    def file_offset(self, address: int) -> int | None:
        """Return where in the file the byte of a memory address lies; None when the file does not hold it."""
        for section in self.sections:
            if section.has_bytes and section.address <= address < section.end:
                return section.offset + address - section.address
        return None

    def read(self, address: int, size: int) -> bytes:
        """Return the bytes of a stretch of memory, fewer where its section ends; empty when the file has none."""
        for section in self.sections:
            if section.has_bytes and section.address <= address < section.end:
                start = section.offset + address - section.address
                return self.data[start : min(start + size, section.offset + section.size_bytes)]
        return b""

    def section_bytes(self, section: Section) -> bytes:
        """Return what the file holds of a section."""
        return self.data[section.offset : section.offset + section.size_bytes] if section.has_bytes else b""

    def debug_bytes(self, name: str) -> memoryview:
        """Return the bytes of a section that is not loaded; empty when there is none."""
        offset, size = self.debug.get(name, (0, 0))
        return memoryview(self.data)[offset : offset + size]
