"""Reads ELF files: sections, symbols, and where a symbol's bytes lie in the file. The user of pyelftools."""

import io
import re
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.dwarf.lineprogram import LineProgram
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tflm_forge.errors import UsageError

_SHF_WRITE = 0x1
_SHF_ALLOC = 0x2
_SHF_EXECINSTR = 0x4
_PF_W = 0x2
_MAX_BYTES = 256 * 1024 * 1024


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


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """One symbol of an allocated section; `address` has no Thumb bit."""

    name: str
    address: int
    size_bytes: int
    kind: str


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in the program an address is: the function with the distance from its start, and the source line."""

    symbol: str
    offset: int
    file: str
    line: int

    @property
    def words(self) -> str:
        """The place in one phrase; empty when nothing is known."""
        function = f"{readable_name(self.symbol)}+0x{self.offset:X}" if self.symbol else ""
        line = f"{self.file}:{self.line}" if self.file else ""
        return f"{function} ({line})" if function and line else function or line


@dataclass(frozen=True, kw_only=True)
class Elf:
    """An ELF file's allocated sections, in address order, and their symbols."""

    path: Path
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def find_symbol(self, name: str) -> Symbol | None:
        """Return the symbol with this name, or None."""
        return next((symbol for symbol in self.symbols if symbol.name == name), None)

    def file_offset(self, address: int) -> int | None:
        """Return where in the file the byte of a memory address lies; None when the file does not hold it."""
        for section in self.sections:
            if section.has_bytes and section.address <= address < section.address + section.size_bytes:
                return section.offset + address - section.address
        return None


def read_elf(path: Path) -> Elf:
    """Read an ELF file.

    Raises:
        UsageError: no such file, not an ELF, or a damaged one.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path}: larger than {_MAX_BYTES >> 20} MiB, not firmware")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror}", hint="Build it with `forge build`.") from error
    if data[:4] != b"\x7fELF":
        raise UsageError(f"{path}: not an ELF file", hint="Name a firmware.elf, or the folder of a build.")
    try:
        file = ELFFile(io.BytesIO(data))
        sections = tuple(sorted(_read_sections(file), key=lambda section: (section.address, section.name)))
        symbols = tuple(_read_symbols(file))
    except (
        ELFError,
        ValueError,
        KeyError,
        AttributeError,
        IndexError,
        UnicodeError,
        AssertionError,
    ) as error:
        raise UsageError(f"{path}: damaged ELF file: {error}", hint="Build it again.") from error
    return Elf(path=path, sections=sections, symbols=symbols)


def readable_name(symbol: str) -> str:
    """Return a C++ symbol's name without its parameters: `_ZN6tflite4ConvEv` is `tflite::Conv`."""
    match = re.match(r"_ZN?K?(?=\d)", symbol)
    if match is None:
        return symbol
    parts, rest = [], symbol[match.end() :]
    while length := re.match(r"L?(\d+)", rest):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N"))


def find_place(path: Path, address: int) -> Place | None:
    """Return the function and the source line of a code address; None when it is in no code of the ELF.

    Args:
        path: the ELF file; the line needs its debug information.
        address: a program counter or return address; a Thumb bit does not matter.

    Raises:
        UsageError: as for `read_elf`.
    """
    elf, address = read_elf(path), address & ~1
    if not any(s.is_code and s.address <= address < s.address + s.size_bytes for s in elf.sections):
        return None
    functions = (s for s in elf.symbols if s.kind == "func" and s.address <= address < s.address + max(s.size_bytes, 2))
    symbol = max(functions, key=lambda s: s.address, default=None)
    file, line = _find_line(path, address)
    return Place(
        symbol=symbol.name if symbol else "", offset=address - symbol.address if symbol else 0, file=file, line=line
    )


def _find_line(path: Path, address: int) -> tuple[str, int]:
    try:
        with path.open("rb") as stream:
            file = ELFFile(stream)
            if not file.has_dwarf_info():
                return "", 0
            dwarf = file.get_dwarf_info()
            for unit in dwarf.iter_CUs():
                program = dwarf.line_program_for_CU(unit)
                if program is not None and (found := _line_in(program, address)):
                    return found
    except (ELFError, DWARFError, ConstructError, ValueError, KeyError, AttributeError, IndexError, AssertionError):
        # Debug information that can not be read: the function's name remains.
        return "", 0
    return "", 0


def _line_in(program: LineProgram, address: int) -> tuple[str, int] | None:
    """Return file and line of an address from one unit's table, whose rows run until the next one's address."""
    last = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if last is not None and last.address <= address < state.address and last.address:
            version5 = program["version"] >= 5
            name = program["file_entry"][last.file - (0 if version5 else 1)].name
            return name.decode(errors="replace"), last.line
        last = None if state.end_sequence else state
    return None


def _read_sections(file: ELFFile) -> list[Section]:
    read_only = [
        range(segment["p_vaddr"], segment["p_vaddr"] + segment["p_memsz"])
        for segment in file.iter_segments("PT_LOAD")
        if not segment["p_flags"] & _PF_W
    ]
    return [
        Section(
            name=section.name,
            address=section["sh_addr"],
            size_bytes=section["sh_size"],
            offset=section["sh_offset"],
            is_writable=bool(section["sh_flags"] & _SHF_WRITE)
            and not any(section["sh_addr"] in addresses for addresses in read_only),
            is_code=bool(section["sh_flags"] & _SHF_EXECINSTR),
            has_bytes=section["sh_type"] != "SHT_NOBITS",
        )
        for section in file.iter_sections()
        if section["sh_flags"] & _SHF_ALLOC and section["sh_size"]
    ]


def _read_symbols(file: ELFFile) -> list[Symbol]:
    is_arm = file["e_machine"] == "EM_ARM"
    return [
        Symbol(
            name=symbol.name,
            address=symbol["st_value"] & ~1 if is_arm and kind == "STT_FUNC" else symbol["st_value"],
            size_bytes=symbol["st_size"],
            kind=kind.removeprefix("STT_").lower(),
        )
        for table in file.iter_sections()
        if isinstance(table, SymbolTableSection)
        for symbol in table.iter_symbols()
        if (kind := symbol["st_info"]["type"]) in ("STT_FUNC", "STT_OBJECT", "STT_NOTYPE")
        and symbol.name
        and not symbol.name.startswith("$")
        and isinstance(symbol["st_shndx"], int)
    ]
