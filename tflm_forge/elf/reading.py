"""Reads an ELF file's headers, sections and symbols, or says why it can not.

Formats: System V ABI, "Object Files"; ELF for the Arm Architecture (Thumb bit, mapping symbols).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.elf.records import Elf, Machine, Section, Symbol
from tflm_forge.errors import UsageError

MAX_FILE_BYTES = 128 << 20
"""Debug information of a large firmware takes some ten MiB."""

MAX_SYMBOLS = 100_000
"""Many times what the largest firmware has; a damaged or hostile file may claim more."""

FACTS_SECTION = ".forge_facts"
"""The manifest that generated firmware carries, in a section that is not loaded."""

_MAX_SYMBOL_BYTES = 8 << 20
_MAX_SECTIONS = 10_000
_MAX_SEGMENTS = 256
_MAX_NAME_BYTES = 4096
_MAX_NAMES_BYTES = 32 << 20
_MAX_SECTION_NAME_BYTES = 256

_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION = struct.Struct("<10I")
_SEGMENT = struct.Struct("<8I")
_SYMBOL = struct.Struct("<IIIBBH")

_PT_LOAD, _PF_X, _PF_W = 1, 1, 2
_SHF_WRITE, _SHF_ALLOC, _SHF_EXECINSTR, _SHF_COMPRESSED = 0x1, 0x2, 0x4, 0x800
_SHT_SYMTAB, _SHT_NOBITS, _SHT_DYNSYM = 2, 8, 11
_SHN_LORESERVE = 0xFF00
_ET_REL, _ET_CORE = 1, 4

_NOTYPE, _OBJECT, _FUNC, _FILE = 0, 1, 2, 4
_KINDS = {_NOTYPE: "notype", _OBJECT: "object", _FUNC: "func"}

_BUILD_HINT = "Name a firmware.elf, or the folder of a build."
_DAMAGED_HINT = "The file is cut short or damaged: build it again, or copy it again."


@dataclass(frozen=True, kw_only=True, slots=True)
class _Header:
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry_bytes: int


def read_elf(path: Path) -> Elf:
    """Read the ELF file of a 32-bit little-endian core.

    Raises:
        UsageError: no such file, not an ELF, one of another kind, or a damaged one.
    """
    data = _read_file(path)
    try:
        return _read(path, data)
    except struct.error as error:
        raise UsageError(f"{path}: damaged ELF file: {error}", hint=_DAMAGED_HINT) from error


def _read_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB, not firmware", hint=_BUILD_HINT)
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror}", hint="Build it with `forge build`.") from error
    if data[:4] != b"\x7fELF":
        raise UsageError(f"{path}: not an ELF file", hint=_BUILD_HINT)
    if len(data) < 6:
        raise UsageError(f"{path}: an ELF file cut short after {len(data)} bytes", hint=_DAMAGED_HINT)
    if data[4] == 2:
        raise UsageError(f"{path}: an ELF file for a 64-bit machine, not firmware of a 32-bit core", hint=_BUILD_HINT)
    if data[5] == 2:
        raise UsageError(
            f"{path}: a big-endian ELF file",
            hint="forge reads little-endian ones: all Cortex-M and RISC-V boards that TFLM runs on are.",
        )
    if data[4] != 1 or data[5] != 1:
        raise UsageError(f"{path}: damaged ELF file: class {data[4]}, byte order {data[5]}", hint=_DAMAGED_HINT)
    if len(data) < _HEADER.size:
        raise UsageError(f"{path}: an ELF file cut short after {len(data)} bytes", hint=_DAMAGED_HINT)
    return data


def _read(path: Path, data: bytes) -> Elf:
    _, kind, machine, _, entry, segments_at, sections_at, _, _, _, segment_count, _, section_count, names = (
        _HEADER.unpack_from(data)
    )
    if kind in (_ET_REL, _ET_CORE):
        what = "an object file: it has no addresses yet" if kind == _ET_REL else "a core dump"
        raise UsageError(f"{path}: {what}", hint="Name the ELF that the linker made.")
    notes: list[str] = []
    segments = list(_read_segments(path, data, segments_at, segment_count))
    if sections_at and section_count:
        headers = _read_headers(path, data, sections_at, section_count, names)
        sections = _allocated(path, data, headers, segments)
    else:
        headers = []
        sections = _sections_of_segments(path, data, segments)
        notes.append("The file has no section headers: its segments stand for sections.")
    sections.sort(key=lambda section: (section.address, section.name))
    symbols, marks = _read_symbols(path, data, headers, is_arm=machine == Machine.ARM)
    if headers and not symbols:
        notes.append("The file is stripped: it has no symbols, so only sections and texts can be told.")
    debug, damaged = _debug_sections(data, headers)
    notes += damaged
    return Elf(
        path=path,
        data=data,
        machine=machine,
        entry=entry & ~1 if machine == Machine.ARM else entry,
        sections=tuple(sections),
        symbols=tuple(symbols),
        marks=tuple(sorted(marks)),
        debug=debug,
        notes=tuple(notes),
    )


def _read_segments(path: Path, data: bytes, at: int, count: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield address, offset, bytes in the file, bytes in memory and flags of what is loaded."""
    end = at + count * _SEGMENT.size
    if count > _MAX_SEGMENTS:
        raise UsageError(f"{path}: claims {count:,} segments", hint=_DAMAGED_HINT)
    if count and end > len(data):
        raise UsageError(f"{path}: cut short: its segments end at {end} of {len(data)} bytes", hint=_DAMAGED_HINT)
    for kind, offset, address, _, in_file, in_memory, flags, _ in _SEGMENT.iter_unpack(data[at:end] if count else b""):
        if kind == _PT_LOAD:
            yield address, offset, in_file, in_memory, flags


def _read_headers(path: Path, data: bytes, at: int, count: int, names_index: int) -> list[_Header]:
    end = at + count * _SECTION.size
    if count > _MAX_SECTIONS:
        raise UsageError(f"{path}: claims {count:,} sections", hint=_DAMAGED_HINT)
    if end > len(data):
        raise UsageError(
            f"{path}: cut short: its section headers end at {end} of {len(data)} bytes", hint=_DAMAGED_HINT
        )
    rows = list(_SECTION.iter_unpack(data[at:end]))
    names = b""
    if names_index < count:
        names = data[rows[names_index][4] : rows[names_index][4] + rows[names_index][5]]
    return [
        _Header(
            name=_text(names, label, _MAX_SECTION_NAME_BYTES),
            kind=kind,
            flags=flags,
            address=address,
            offset=offset,
            size=size,
            link=link,
            entry_bytes=entry,
        )
        for label, kind, flags, address, offset, size, link, _, _, entry in rows
    ]


def _text(table: bytes, at: int, limit: int = _MAX_NAME_BYTES) -> str:
    end = table.find(b"\0", at, at + limit)
    return table[at : end if end >= 0 else at + limit].decode(errors="replace")


def _allocated(
    path: Path, data: bytes, headers: list[_Header], segments: list[tuple[int, int, int, int, int]]
) -> list[Section]:
    found = []
    for header in headers:
        if not header.flags & _SHF_ALLOC or not header.size:
            continue
        has_bytes = header.kind != _SHT_NOBITS
        if has_bytes and header.offset + header.size > len(data):
            raise UsageError(
                f"{path}: cut short: section {header.name} ends at {header.offset + header.size} of {len(data)} bytes",
                hint=_DAMAGED_HINT,
            )
        fixed = any(
            start <= header.address < start + size and not flags & _PF_W for start, _, _, size, flags in segments
        )
        found.append(
            Section(
                name=header.name,
                address=header.address,
                size_bytes=header.size,
                offset=header.offset,
                is_writable=bool(header.flags & _SHF_WRITE) and not fixed,
                is_code=bool(header.flags & _SHF_EXECINSTR),
                has_bytes=has_bytes,
            )
        )
    if sum(section.size_bytes for section in found if section.has_bytes) > len(data):
        raise UsageError(f"{path}: its sections lie over one another in the file", hint=_DAMAGED_HINT)
    return found


def _sections_of_segments(path: Path, data: bytes, segments: list[tuple[int, int, int, int, int]]) -> list[Section]:
    """Let segments stand for sections; what a segment has in memory beyond the file is one of its own."""
    found = []
    for index, (address, offset, in_file, in_memory, flags) in enumerate(segments):
        if offset + in_file > len(data):
            raise UsageError(
                f"{path}: cut short: segment {index} ends at {offset + in_file} of {len(data)} bytes",
                hint=_DAMAGED_HINT,
            )
        writable, code = bool(flags & _PF_W), bool(flags & _PF_X)
        for name, start, size, has_bytes in (
            (f"segment {index}", address, in_file, True),
            (f"segment {index}, cleared", address + in_file, in_memory - in_file, False),
        ):
            if size > 0:
                found.append(
                    Section(
                        name=name, address=start, size_bytes=size, offset=offset,
                        is_writable=writable, is_code=code and has_bytes, has_bytes=has_bytes,
                    )
                )  # fmt: skip
    return found


def _read_symbols(
    path: Path, data: bytes, headers: list[_Header], *, is_arm: bool
) -> tuple[list[Symbol], list[tuple[int, str]]]:
    """Return the symbols of allocated sections and the marks of files."""
    tables = [header for header in headers if header.kind == _SHT_SYMTAB]
    tables = tables or [header for header in headers if header.kind == _SHT_DYNSYM]
    allocated = {i for i, header in enumerate(headers) if header.flags & _SHF_ALLOC}
    symbols: list[Symbol] = []
    marks: list[tuple[int, str]] = []
    budget = _MAX_NAMES_BYTES
    for table in tables[:1]:
        strings = headers[table.link] if table.link < len(headers) else None
        names = data[strings.offset : strings.offset + strings.size] if strings else b""
        end = min(table.offset + table.size, len(data))
        whole = max(end - table.offset, 0) // _SYMBOL.size * _SYMBOL.size
        if whole > _MAX_SYMBOL_BYTES:
            raise UsageError(f"{path}: more symbols than any firmware has", hint=_DAMAGED_HINT)
        file = ""
        for label, value, size, info, _, section in _SYMBOL.iter_unpack(data[table.offset : table.offset + whole]):
            kind = info & 15
            if kind == _FILE:
                file = _text(names, label, _MAX_SECTION_NAME_BYTES)
                continue
            if section >= _SHN_LORESERVE or section not in allocated or kind not in _KINDS or not label:
                continue
            is_local = info < 16
            if names[label : label + 1] == b"$":
                if is_local:
                    marks.append((value, file))
                continue
            name = _text(names, label)
            budget -= len(name)
            if len(symbols) == MAX_SYMBOLS or budget < 0:
                raise UsageError(f"{path}: more symbols than any firmware has", hint=_DAMAGED_HINT)
            address = value & ~1 if is_arm and kind == _FUNC else value
            source = file if is_local else ""
            symbols.append(Symbol(name=name, address=address, size_bytes=size, kind=_KINDS[kind], file=source))
            if is_local and kind != _NOTYPE:
                marks.append((address, file))
    return symbols, marks


def _debug_sections(data: bytes, headers: list[_Header]) -> tuple[dict[str, tuple[int, int]], list[str]]:
    found, notes = {}, []
    for header in headers:
        if not header.name.startswith(".debug_") and header.name != FACTS_SECTION:
            continue
        if header.flags & _SHF_COMPRESSED:
            notes.append(f"{header.name} is compressed and was not read.")
        elif header.kind == _SHT_NOBITS or header.offset + header.size > len(data):
            notes.append(f"{header.name} is cut short and was not read.")
        else:
            found[header.name] = (header.offset, header.size)
    return found, notes
