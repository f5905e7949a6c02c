"""Reading ELF files: sections, symbols, places in the file; and files that are none, or damaged."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.elfmaker import FIRMWARE
from tflm_forge.elf import read_elf
from tflm_forge.errors import UsageError


@pytest.fixture
def elf_path(tmp_path: Path) -> Path:
    path = tmp_path / "firmware.elf"
    path.write_bytes(FIRMWARE)
    return path


def test_allocated_sections_in_address_order(elf_path: Path) -> None:
    elf = read_elf(elf_path)
    assert [(s.name, s.address, s.size_bytes) for s in elf.sections] == [
        (".text", 0x08000000, 64),
        (".forge_model", 0x08000040, 48),
        (".rodata", 0x08000070, 16),
        (".stack", 0x20000000, 256),
        (".data", 0x20000100, 8),
        (".bss", 0x20000108, 24),
        (".forge_arena", 0x20000120, 1024),
    ]
    assert [s.name for s in elf.sections if s.is_code] == [".text"]
    assert [s.name for s in elf.sections if not s.has_bytes] == [".stack", ".bss", ".forge_arena"]


def test_constants_in_a_read_only_segment_are_not_writable(elf_path: Path) -> None:
    writable = [s.name for s in read_elf(elf_path).sections if s.is_writable]
    assert writable == [".stack", ".data", ".bss", ".forge_arena"]


def test_symbols_have_no_thumb_bit_and_no_mapping_symbols(elf_path: Path) -> None:
    elf = read_elf(elf_path)
    main = elf.find_symbol("main")
    assert main is not None
    assert (main.address, main.size_bytes, main.kind) == (0x08000000, 40, "func")
    assert elf.find_symbol("$t") is None
    assert elf.find_symbol("nowhere") is None


def test_place_of_an_address_in_the_file(elf_path: Path) -> None:
    elf = read_elf(elf_path)
    offset = elf.file_offset(0x20000101)
    assert offset is not None
    assert FIRMWARE[offset : offset + 4] == b"\x20\x30\x40\x10"
    assert elf.file_offset(0x20000120) is None
    assert elf.file_offset(0x30000000) is None


def test_absent_and_foreign_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.elf: can not read") as caught:
        read_elf(tmp_path / "nothing.elf")
    assert "forge build" in caught.value.hint
    for content in (b"", b"\x7fEL", b"PK\x03\x04", b"TFL3" * 9):
        (tmp_path / "other.elf").write_bytes(content)
        with pytest.raises(UsageError, match=r"other\.elf: not an ELF file"):
            read_elf(tmp_path / "other.elf")


def _read_or_refuse(path: Path) -> None:
    try:
        elf = read_elf(path)
    except UsageError as caught:
        error = caught
    else:
        for section in elf.sections:
            elf.file_offset(section.address)
        return
    assert str(path) in error.message
    assert error.hint


def test_truncated_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.elf"
    for length in range(4, len(FIRMWARE)):
        path.write_bytes(FIRMWARE[:length])
        _read_or_refuse(path)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(4, len(FIRMWARE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_anywhere_is_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    data = bytearray(FIRMWARE)
    for at, value in changes:
        data[at] = value
    path = tmp_path / "damaged.elf"
    path.write_bytes(data)
    _read_or_refuse(path)
