"""What instructions and tables refer to, on encodings taken from the manuals; real code is compared in tests/build."""

import struct
from pathlib import Path

import pytest

from tests.elfmaker import ALLOC, ARM, EXEC, RISCV, Part, make_elf
from tflm_forge.elf import read_elf
from tflm_forge.size.references import find_references

BASE = 0x1000


def _references(folder: Path, code: bytes, *, machine: int, base: int = BASE) -> list[tuple[int, int]]:
    path = folder / "code.elf"
    parts = [Part(name=".text", address=base, data=code.ljust(0x100, b"\0"), flags=ALLOC | EXEC)]
    path.write_bytes(make_elf([*parts, Part(name=".far", address=0, data=4, flags=ALLOC)], [], machine=machine))
    return [each for each in find_references(read_elf(path)) if each[0] != each[1]]


# As `arm-none-eabi-as -mthumb -mcpu=cortex-m4` encodes them at address 0x1000.
@pytest.mark.parametrize(
    ("name", "halves", "target"),
    [
        ("bl 0x1080", (0xF000, 0xF83E), 0x1080),
        ("bl 0x0ff0", (0xF7FF, 0xFFF6), 0x0FF0),
        ("b.w 0x1080", (0xF000, 0xB83E), 0x1080),
        ("ldr r0, [pc, #4]", (0x4801, 0xBF00, 0xBF00, 0xBF00, 0x1080, 0x0000), 0x1080),
        ("ldr.w r0, [pc, #4]", (0xF8DF, 0x0004, 0xBF00, 0xBF00, 0x1080, 0x0000), 0x1080),
        ("movw r3, #0x1080; movt r3, #0", (0xF241, 0x0380, 0xF2C0, 0x0300), 0x1080),
    ],
)
def test_thumb(tmp_path: Path, name: str, halves: tuple[int, ...], target: int) -> None:
    code = struct.pack(f"<{len(halves)}H", *halves)
    assert target in {found for _, found in _references(tmp_path, code, machine=ARM)}, name


def test_a_movt_long_after_its_movw_is_of_something_else(tmp_path: Path) -> None:
    code = struct.pack("<2H", 0xF241, 0x0380) + b"\x00\xbf" * 40 + struct.pack("<2H", 0xF2C0, 0x0300)
    assert _references(tmp_path, code, machine=ARM) == []


# RISC-V Unprivileged ISA, 2.5: `jal ra, +0x80`, `jal ra, -0x10`, `auipc ra, 0; jalr ra, 0x80(ra)`.
@pytest.mark.parametrize(
    ("words", "target"),
    [((0x080000EF,), 0x1080), ((0xFF1FF0EF,), 0x0FF0), ((0x00000097, 0x080080E7), 0x1080)],
)
def test_riscv(tmp_path: Path, words: tuple[int, ...], target: int) -> None:
    code = struct.pack(f"<{len(words)}I", *words)
    assert _references(tmp_path, code, machine=RISCV) == [(BASE, target)]


def test_tables_of_addresses(tmp_path: Path) -> None:
    path = tmp_path / "table.elf"
    data = struct.pack("<4I", 0x1001, 7, 0x2004, 0xFFFFFFFF)
    parts = [
        Part(name=".text", address=0x1000, data=bytes(16), flags=ALLOC | EXEC),
        Part(name=".rodata", address=0x2000, data=data, flags=ALLOC),
    ]
    path.write_bytes(make_elf(parts, []))
    elf = read_elf(path)
    assert find_references(elf) == [(0x2000, 0x1001), (0x2008, 0x2004)]
    assert find_references(elf, [range(0x2000, 0x2004)]) == [(0x2008, 0x2004)]
