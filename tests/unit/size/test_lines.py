"""The line table decoder, against pyelftools and against tables whose meaning is known."""

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.elfmaker import ALLOC, EXEC, Part, make_elf
from tests.linemaker import Row, make_unit
from tflm_forge.elf import find_line, read_elf, read_lines

ROWS: list[Row] = [
    (0x100, "/src/conv.cc"),
    (0x120, "/include/kernel_util.h"),
    (0x124, "/src/conv.cc"),
    (0x180, ""),
    (0x1C0, "/src/main.cc"),
    (0x300, ""),
]
VERSIONS = (2, 3, 4, 5)

_ABBREVIATIONS = bytes.fromhex("01 11 00 10 17 00 00 00")  # 1: compile unit, no children, DW_AT_stmt_list
_UNIT = bytes.fromhex("0c000000 0400 00000000 04 01 00000000")  # version 4, its line table at 0


def _elf_with(lines: bytes, folder: Path) -> Path:
    path = folder / "lines.elf"
    path.write_bytes(
        make_elf(
            [
                Part(name=".text", address=0x100, data=bytes(0x200), flags=ALLOC | EXEC),
                Part(name=".debug_line", address=0, data=lines, flags=0),
                Part(name=".debug_abbrev", address=0, data=_ABBREVIATIONS, flags=0),
                Part(name=".debug_info", address=0, data=_UNIT, flags=0),
            ],
            [],
        )
    )
    return path


def _stretches(path: Path) -> list[tuple[int, int, str]]:
    return [(s.start, s.end, s.file) for s in read_lines(read_elf(path)).stretches]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_of_the_format(tmp_path: Path, version: int) -> None:
    assert _stretches(_elf_with(make_unit(ROWS, version=version), tmp_path)) == [
        (0x100, 0x120, "/src/conv.cc"),
        (0x120, 0x124, "/include/kernel_util.h"),
        (0x124, 0x180, "/src/conv.cc"),
        (0x1C0, 0x300, "/src/main.cc"),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_tables_mean_to_pyelftools_what_they_mean_here(tmp_path: Path, version: int) -> None:
    path = _elf_with(make_unit(ROWS, version=version), tmp_path)
    with path.open("rb") as stream:
        dwarf = ELFFile(stream).get_dwarf_info()
        (unit,) = dwarf.iter_CUs()
        program = dwarf.line_program_for_CU(unit)
        states = [entry.state for entry in program.get_entries() if entry.state is not None]
        names = [entry.name.decode() for entry in program["file_entry"]]
    first = 0 if version == 5 else 1
    rows = [(state.address, "" if state.end_sequence else names[state.file - first]) for state in states]
    assert rows == [(address, path.rpartition("/")[2]) for address, path in ROWS]


def test_special_opcodes_and_constants_move_the_address(tmp_path: Path) -> None:
    """Program by hand, with the header of `make_unit`: line base -5, range 14, opcode base 13, steps of 2 bytes."""
    plain = make_unit([(0x100, "/src/conv.cc"), (0x140, "")])
    head = plain[: plain.index(b"\0\5\2\0\1\0\0")]
    by_hand = (
        b"\0\5\2\0\1\0\0\4\1\1"  # set address 0x100, file 1, copy
        + b"\x08"  # DW_LNS_const_add_pc: (255 - 13) // 14 = 17 steps, 34 bytes
        + b"\x4b"  # special: (75 - 13) // 14 = 4 steps, 8 bytes
        + b"\x09\x04\x00"  # DW_LNS_fixed_advance_pc 4 bytes
        + b"\0\1\1"
    )
    unit = head + by_hand
    path = _elf_with(len(unit[4:]).to_bytes(4, "little") + unit[4:], tmp_path)
    assert _stretches(path) == [(0x100, 0x100 + 34 + 8 + 4, "/src/conv.cc")]


def test_code_that_the_linker_left_out_is_passed_over(tmp_path: Path) -> None:
    gone: list[Row] = [(0, "/src/unused.cc"), (0x200, "")]
    assert _stretches(_elf_with(make_unit(gone) + make_unit(ROWS[:4]), tmp_path))[0][2] == "/src/conv.cc"


def test_line_of_code_over_which_a_function_that_was_left_out_runs(tmp_path: Path) -> None:
    gone: list[Row] = [(0, "/src/unused.cc"), (0x20, "/src/unused.h"), (0x200, "")]
    elf = read_elf(_elf_with(make_unit(gone) + make_unit(ROWS[:4]), tmp_path))
    assert find_line(elf, 0x102) == ("conv.cc", 1)


def test_overlapping_sequences_count_once(tmp_path: Path) -> None:
    both = make_unit([(0x100, "/src/a.cc"), (0x140, "")]) + make_unit([(0x120, "/src/b.cc"), (0x160, "")])
    assert _stretches(_elf_with(both, tmp_path)) == [(0x100, 0x140, "/src/a.cc"), (0x140, 0x160, "/src/b.cc")]


def test_a_damaged_unit_is_left_out_and_said(tmp_path: Path) -> None:
    good = make_unit(ROWS[:4])
    bad = bytearray(make_unit(ROWS[4:]))
    bad[4] = 77
    table = read_lines(read_elf(_elf_with(bytes(bad) + good, tmp_path)))
    assert {s.file for s in table.stretches} == {"/src/conv.cc", "/include/kernel_util.h"}
    assert "1 units of the line table are damaged" in table.notes[0]


@pytest.mark.parametrize(
    ("address", "place"), [(0x102, ("conv.cc", 1)), (0x122, ("kernel_util.h", 1)), (0x190, ("", 0))]
)
def test_line_of_an_address(tmp_path: Path, address: int, place: tuple[str, int]) -> None:
    assert find_line(read_elf(_elf_with(make_unit(ROWS), tmp_path)), address) == place
