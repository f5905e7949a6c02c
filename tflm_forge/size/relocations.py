"""Reads what the linker kept of relocations (`-Wl,--emit-relocs`): every reference between symbols, and none guessed.

Formats: ELF for the Arm Architecture, 5.6 (REL: the addend is in the place); RISC-V ELF psABI, "Relocations" (RELA).
"""

import struct
from collections.abc import Iterator, Mapping

from tflm_forge.elf import Elf, Machine
from tflm_forge.size.references import Reference, find_references

MAX_RELOCATIONS = 500_000
"""Many times what the largest firmware has; a damaged or hostile file may claim more."""

_SECTION = struct.Struct("<10I")
_SYMBOL = struct.Struct("<IIIBBH")
_RELA, _REL = 4, 9
_ALLOC, _CODE = 0x2, 0x4
_NOTYPE, _SECTION_KIND = 0, 3
_ABSOLUTE_WORDS = frozenset({2, 38})  # R_ARM_ABS32, R_ARM_TARGET1
_RISCV_TARGETS = frozenset({1, 16, 17, 18, 19, 20, 23, 26, 44, 45, 57})
"""R_RISCV_32, BRANCH, JAL, CALL, CALL_PLT, GOT_HI20, PCREL_HI20, HI20, RVC_BRANCH, RVC_JUMP, 32_PCREL."""

_ARRAY_STARTS = ("__init_array_start", "__preinit_array_start", "__fini_array_start")


def read_relocations(elf: Elf) -> list[Reference] | None:
    """Return every reference that a relocation of an allocated section makes; None when the linker kept none.

    References to the bounds of sections, which linker scripts define, are left out but for the lists of constructors.
    """
    headers = _headers(elf.data)
    tables = [
        header
        for header in headers
        if header[1] in (_REL, _RELA) and header[7] < len(headers) and headers[header[7]][2] & _ALLOC
    ]
    if not tables:
        return None
    found: list[Reference] = []
    decoded = dict(find_references(elf)) if elf.machine == Machine.ARM else {}
    for header in tables:
        found += _read_table(elf, headers, header, decoded)
        if len(found) > MAX_RELOCATIONS:
            break
    return found


def _headers(data: bytes) -> list[tuple[int, ...]]:
    (at,), (count,) = struct.unpack_from("<I", data, 32), struct.unpack_from("<H", data, 48)
    end = at + count * _SECTION.size
    return list(_SECTION.iter_unpack(data[at:end])) if at and end <= len(data) else []


def _read_table(
    elf: Elf, headers: list[tuple[int, ...]], header: tuple[int, ...], decoded: Mapping[int, int]
) -> Iterator[Reference]:
    entry_bytes = 12 if header[1] == _RELA else 8
    whole = min(header[5] // entry_bytes, MAX_RELOCATIONS) * entry_bytes
    rows = elf.data[header[4] : header[4] + whole]
    symbols = headers[header[6]] if header[6] < len(headers) else None
    if symbols is None or len(rows) % entry_bytes:
        return
    typed = {symbol.address for symbol in elf.symbols if symbol.kind != "notype"}
    for place, info, *addend in struct.iter_unpack("<IIi" if entry_bytes == 12 else "<II", rows):
        at = symbols[4] + (info >> 8) * _SYMBOL.size
        if not info >> 8 or at + _SYMBOL.size > min(symbols[4] + symbols[5], len(elf.data)):
            continue
        label, value, size, kind, _, section = _SYMBOL.unpack_from(elf.data, at)
        kind &= 15
        if section == 0 or section >= len(headers) or not headers[section][2] & _ALLOC:
            continue
        # A bound that a linker script defines is no reference to what happens to lie there.
        is_bound = kind == _NOTYPE and not size and (value & ~1 in typed or not headers[section][2] & _CODE)
        if is_bound and _name(elf.data, headers, symbols, label) not in _ARRAY_STARTS:
            continue
        if value >= headers[section][3] + headers[section][5]:
            continue
        target = _target(elf, place, info & 0xFF, value, addend, decoded, is_section=kind == _SECTION_KIND)
        if target is not None:
            yield place, target


def _target(
    elf: Elf, place: int, kind: int, value: int, addend: list[int], decoded: Mapping[int, int], *, is_section: bool
) -> int | None:
    if elf.machine == Machine.RISCV:
        return value + addend[0] if addend and kind in _RISCV_TARGETS else None
    if kind in _ABSOLUTE_WORDS:
        word = elf.read(place, 4)
        return int.from_bytes(word, "little") if len(word) == 4 else None
    return decoded.get(place) if is_section else value & ~1


def _name(data: bytes, headers: list[tuple[int, ...]], symbols: tuple[int, ...], label: int) -> str:
    if symbols[6] >= len(headers):
        return ""
    start = headers[symbols[6]][4] + label
    return data[start : data.find(b"\0", start, start + 64)].decode(errors="replace")
