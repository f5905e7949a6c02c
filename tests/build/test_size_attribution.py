"""Whose each byte of real firmware is, compared with binutils, pyelftools and the budgets of the design.

That the totals of every firmware that a test builds are those of `arm-none-eabi-size -A`, the fixture checks itself
(tests/firmware_builds.py).
"""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, check_totals, loaded_sections_of, sections_of, symbols_of
from tflm_forge.elf import find_place, read_elf, read_lines
from tflm_forge.size import Attribution, Group, attribute
from tflm_forge.size.references import find_references

pytestmark = pytest.mark.tools

DIGITS = EXAMPLES / "digits" / "digits.tflite"
BOARD = "mps2-an386"
OWN_BUDGET_BYTES = 6 * 1024
OPS = {
    "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "RESHAPE", "SOFTMAX",
}  # fmt: skip
"""The ops of digits."""


@pytest.fixture(scope="module")
def elf(builds: Builds) -> Path:
    return builds.build(DIGITS, BOARD) / "firmware.elf"


@pytest.fixture(scope="module")
def found(elf: Path) -> Attribution:
    return attribute(elf)


def _ask(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_totals_of_the_debug_profile(builds: Builds, tmp_path: Path) -> None:
    builds.build_into(tmp_path, DIGITS, BOARD, "--profile", "debug", "--arena", "8192")
    strings = [p.detail for p in attribute(tmp_path / "firmware.elf").pieces if p.group == Group.STRINGS]
    assert any("AllocateTensors" in text or "alloc" in text.lower() for text in strings)


@pytest.mark.parametrize("lost", ["--strip-debug", "--strip-all"])
def test_totals_of_what_is_left(elf: Path, tmp_path: Path, lost: str) -> None:
    left = tmp_path / "left.elf"
    subprocess.run(["arm-none-eabi-objcopy", lost, elf, left], check=True, timeout=60)
    report = attribute(left)
    assert report.notes
    sizes = loaded_sections_of(left)
    empty = {".stack", ".noinit", ".bss", ".forge_arena"}
    assert report.flash_bytes == sum(size for name, size in sizes.items() if name not in empty)


def test_every_symbol_has_the_bytes_that_nm_gives_it(elf: Path, found: Attribution) -> None:
    sizes: Counter[str] = Counter()
    for piece in found.pieces:
        sizes[piece.symbol] += piece.size_bytes
    names: dict[tuple[int, int], set[str]] = {}
    for name, place in symbols_of(elf).items():
        names.setdefault((place[0] & ~1, place[1]), set()).add(name)
    assert len(names) > 100
    for (_, size), aliases in names.items():
        assert size in {sizes[name] for name in aliases}, aliases


def test_the_line_table_is_that_of_pyelftools(elf: Path) -> None:
    with elf.open("rb") as stream:
        dwarf = ELFFile(stream).get_dwarf_info()
        expected: dict[int, str] = {}
        low, size = sections_of(elf)[".text"]
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            first = 0 if program["version"] >= 5 else 1
            last, is_kept = None, False
            for state in (entry.state for entry in program.get_entries() if entry.state is not None):
                if last is None:  # what the linker left out starts at 0, where the vectors are
                    is_kept = low <= state.address < low + size
                elif is_kept:
                    name = program["file_entry"][last.file - first].name.decode()
                    expected.update((address, name) for address in range(last.address, state.address, 2))
                last = None if state.end_sequence else state
    stretches = read_lines(read_elf(elf)).stretches
    assert {a: s.file.rpartition("/")[2] for s in stretches for a in range(s.start, s.end, 2)} == expected


def test_lines_are_those_of_addr2line(elf: Path) -> None:
    low, total = sections_of(elf)[".text"]
    places = sorted(symbols_of(elf).values())[::7]
    code = [address & ~1 for address, size in places if size > 8 and low <= address < low + total]
    answers = _ask("arm-none-eabi-addr2line", "-e", elf, *(f"0x{address:x}" for address in code)).splitlines()
    compared = 0
    for address, answer in zip(code, answers, strict=True):
        file, _, line = re.sub(r" \(.*", "", answer).rpartition(":")
        if file != "??" and line.isdecimal():
            place = find_place(elf, address)
            assert place is not None
            assert (place.file, place.line) == (Path(file).name, int(line))
            compared += 1
    assert compared > 10


def test_calls_are_those_of_the_disassembly(elf: Path) -> None:
    listing = _ask("arm-none-eabi-objdump", "-d", "-j", ".text", elf)
    calls = re.findall(r"^ +([0-9a-f]+):\t[0-9a-f ]+\t(?:bl|b\.w)\t([0-9a-f]+) <", listing, re.MULTILINE)
    found = set(find_references(read_elf(elf)))
    low, size = sections_of(elf)[".text"]
    inside = {(int(a, 16), int(b, 16)) for a, b in calls if low <= int(b, 16) < low + size}
    assert len(inside) > 100
    assert inside <= found


def test_every_op_of_the_model_has_code_of_its_own(found: Attribution) -> None:
    rows = {row.name: row.flash_bytes for row in found.sum_by("op")}
    assert rows.keys() >= OPS
    assert all(rows[op] >= 100 for op in OPS)
    named = {op for name in rows for op in name.split(", ")} - {"", "several operators"}
    assert named == OPS


def test_link_and_self_check_stay_within_their_budget(found: Attribution) -> None:
    own = found.group_bytes(Group.LINK)
    assert OWN_BUDGET_BYTES / 2 < own <= OWN_BUDGET_BYTES
    files = {piece.file for piece in found.pieces if piece.group == Group.LINK}
    assert files >= {"src/main.cc", "src/link.cc", "src/frame.cc", "src/inference.cc", "src/self_check.cc"}


def test_parts_of_the_arena_are_those_of_the_build(found: Attribution, elf: Path) -> None:
    parts = [piece for piece in found.pieces if piece.group == Group.ARENA]
    assert [part.detail.partition(":")[0] for part in parts] == ["head", "between", "tail"]
    assert sum(part.size_bytes for part in parts) == sections_of(elf)[".forge_arena"][1]


def test_a_library_is_told_by_what_it_is_for(elf: Path, found: Attribution) -> None:
    groups = {piece.symbol: piece.group for piece in found.pieces}
    for name, group in (("memcpy", Group.MEMORY), ("__aeabi_uldivmod", Group.INTEGER), ("expf", Group.MATH)):
        if name in symbols_of(elf):
            assert groups[name] == group


def test_totals_on_a_board_with_flash_at_another_address(builds: Builds) -> None:
    check_totals(builds.build(EXAMPLES / "sine" / "sine.tflite", "stm32f4") / "firmware.elf")
