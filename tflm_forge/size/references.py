"""Finds what refers to what in a linked firmware: calls, loaded addresses, tables of addresses.

A linked ELF keeps no relocations, so the instructions are looked into: on Arm all of Thumb's ways to call and to load
an address, on RISC-V the calls. Encodings: Armv7-M Architecture Reference Manual, A7.7; RISC-V Unprivileged ISA, 2.5.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tflm_forge.elf import Elf, Machine, Section

Reference = tuple[int, int]
"""Address of the instruction or the word that refers, and the address it refers to, without a Thumb bit."""

MAX_BYTES = 8 << 20
"""No more of a file's constants are looked into; a microcontroller's flash is smaller."""

MAX_CODE_BYTES = 2 << 20
"""No more of its code is."""

MAX_REFERENCES = 200_000
"""A firmware of 1 MB has some 40,000; the rest of a file that has more is not looked into."""

_MOVT_DISTANCE = 16


def find_references(elf: Elf, data: Sequence[range] = ()) -> list[Reference]:
    """Return every reference to an allocated section of an ELF, by the place it stands at.

    Args:
        elf: the ELF.
        data: addresses of models, whose bytes are no addresses whatever they look like.
    """
    low = min((section.address for section in elf.sections), default=0)
    high = max((section.end for section in elf.sections), default=0)
    found: list[Reference] = []
    left = {True: MAX_CODE_BYTES, False: MAX_BYTES}
    for section in elf.sections:
        content = elf.section_bytes(section)[: left[section.is_code]]
        left[section.is_code] -= len(content)
        here: Iterable[Reference] = ()
        if section.is_code and elf.machine == Machine.ARM:
            here = _find_thumb(elf, section, content)
        elif section.is_code and elf.machine == Machine.RISCV:
            here = _find_riscv(section.address, content)
        elif not section.is_code:
            words = _find_words(section, content, low, high)
            here = (each for each in words if not any(each[0] in addresses for addresses in data))
        found += islice((each for each in here if low <= each[1] < high), MAX_REFERENCES - len(found))
    return sorted(found)


def _find_words(section: Section, data: bytes, low: int, high: int) -> list[Reference]:
    """Return each word of constants or initial values that may be an address."""
    skew = -section.address % 4
    start = section.address + skew
    return [
        (start + 4 * index, word)
        for index, word in enumerate(_numbers("I", data[skew:]))
        if low <= word < high and word
    ]


def _find_thumb(elf: Elf, section: Section, data: bytes) -> Iterator[Reference]:
    halves = _numbers("H", data)
    base, last = section.address, len(halves) - 1
    wide: dict[int, tuple[int, int]] = {}
    for index, half in enumerate(halves):
        top = half >> 11
        if top == 0b01001:  # LDR Rt, [PC, #imm8]
            yield from _load(elf, base + 2 * index, (half & 0xFF) * 4)
        if top not in (0b11110, 0b11111) or index == last:
            continue
        second = halves[index + 1]
        if half & 0xFF7F == 0xF85F:  # LDR.W Rt, [PC, #+-imm12]
            yield from _load(elf, base + 2 * index, second & 0xFFF if half & 0x80 else -(second & 0xFFF))
        elif top == 0b11110 and second & 0xD000 in (0xD000, 0xC000, 0x9000):  # BL, BLX, B.W
            yield base + 2 * index, _branch_target(base + 2 * index, half, second)
        elif half & 0xFBF0 == 0xF240 and not second & 0x8000:  # MOVW Rd, #imm16
            wide[second >> 8 & 15] = (index, _wide_value(half, second))
        elif half & 0xFBF0 == 0xF2C0 and not second & 0x8000:  # MOVT Rd, #imm16
            at, low = wide.get(second >> 8 & 15, (-1, 0))
            if 0 <= index - at <= _MOVT_DISTANCE:
                yield base + 2 * index, low | _wide_value(half, second) << 16


def _load(elf: Elf, address: int, offset: int) -> Iterator[Reference]:
    word = elf.read((address & ~3) + 4 + offset, 4)
    if len(word) == 4:
        yield address, int.from_bytes(word, "little")


def _branch_target(address: int, first: int, second: int) -> int:
    sign = first >> 10 & 1
    high, low = ~(second >> 13 ^ sign) & 1, ~(second >> 11 ^ sign) & 1
    offset = high << 23 | low << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    target = address + 4 + offset - (sign << 24)
    return target if second & 0x1000 else target & ~3


def _wide_value(first: int, second: int) -> int:
    return (first & 15) << 12 | (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF


def _find_riscv(base: int, data: bytes) -> Iterator[Reference]:
    """Yield the calls: JAL, and AUIPC with the JALR behind it."""
    halves = _numbers("H", data)
    index = 0
    while index < len(halves) - 1:
        if halves[index] & 3 != 3:
            index += 1
            continue
        word = halves[index] | halves[index + 1] << 16
        address = base + 2 * index
        if word & 0x7F == 0x6F:
            yield address, address + _jump_offset(word)
        elif word & 0x7F == 0x17 and index + 3 < len(halves):
            jump = halves[index + 2] | halves[index + 3] << 16
            if jump & 0x707F == 0x67 and jump >> 15 & 31 == word >> 7 & 31:
                offset = (jump >> 20) - (jump >> 31 << 12)
                yield address, (address + (word & 0xFFFFF000) + offset) & 0xFFFFFFFF
        index += 2


def _jump_offset(word: int) -> int:
    offset = (word >> 21 & 0x3FF) << 1 | (word >> 20 & 1) << 11 | (word >> 12 & 0xFF) << 12
    return offset - (word >> 31 << 20)


def _numbers(kind: str, data: bytes) -> "array[int]":
    numbers = array(kind)
    numbers.frombytes(data[: len(data) // numbers.itemsize * numbers.itemsize])
    return numbers
