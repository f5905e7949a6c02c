"""Files that are no firmware, damaged ones, and ones made to hurt: refused with words, or reported with notes."""

import random
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.elfmaker import ALLOC, EXEC, FIRMWARE, FUNC, OBJECT, WRITE, Name, Part, make_elf
from tests.linemaker import make_unit
from tflm_forge.errors import UsageError
from tflm_forge.size import attribute

CPU_S = 4  # twice what is promised, for a slow machine
MEMORY_BYTES = 300 << 20
CASES = 300
CODE = 0x08000000
HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
SECTION = struct.Struct("<10I")

LINES = make_unit(
    [(CODE, "/tree/tensorflow/lite/micro/kernels/conv.cc"), (CODE + 0x20, "/x/kernel_util.h"), (CODE + 0x40, "")]
)
SMALL = make_elf(
    [
        Part(name=".text", address=CODE, data=bytes(range(64)), flags=ALLOC | EXEC),
        Part(name=".rodata", address=CODE + 0x40, data=b"out of memory\0\0\0", flags=ALLOC),
        Part(name=".data", address=0x20000000, data=bytes(8), flags=ALLOC | WRITE),
        Part(name=".bss", address=0x20000008, data=64, flags=ALLOC | WRITE),
        Part(name=".debug_line", address=0, data=LINES, flags=0),
    ],
    [
        Name(name="_ZN6tflite8ConvEvalEv", value=CODE | 1, size=64, kind=FUNC, part=0),
        Name(name="counter", value=0x20000000, size=8, kind=OBJECT, part=2),
    ],
    read_only=[(CODE, 0x50)],
)


def _write(folder: Path, data: bytes) -> Path:
    path = folder / "firmware.elf"
    path.write_bytes(data)
    return path


def _changed(at: int, new: bytes, data: bytes = FIRMWARE) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def _with_section(number: int, field: int, value: int) -> bytes:
    """Return FIRMWARE with one field of a section header changed."""
    at = HEADER.unpack_from(FIRMWARE)[6] + number * SECTION.size + 4 * field
    return _changed(at, struct.pack("<I", value))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not an ELF file"),
        (b"\x89PNG\r\n\x1a\n", "not an ELF file"),
        (b"\x7fELF\x01", "cut short after 5 bytes"),
        (FIRMWARE[:40], "cut short after 40 bytes"),
        (_changed(4, b"\2"), "64-bit machine"),
        (_changed(5, b"\2"), "big-endian"),
        (_changed(4, b"\7"), "damaged ELF file: class 7"),
        (_changed(16, b"\1\0"), "an object file"),
        (_changed(16, b"\4\0"), "a core dump"),
        (FIRMWARE[: len(FIRMWARE) // 2], "cut short: its section headers end at"),
        (_with_section(1, 5, 0x10000000), "cut short: section .text ends at"),
        (_changed(44, b"\xff\xff"), "claims 65,535 segments"),
        (_changed(48, b"\xff\xff"), "claims 65,535 sections"),
    ],
)
def test_refused_with_words(tmp_path: Path, data: bytes, words: str) -> None:
    path = _write(tmp_path, data)
    with pytest.raises(UsageError, match=r"firmware\.elf: ") as caught:
        attribute(path)
    assert words in caught.value.message
    assert caught.value.hint


def test_a_folder_and_nothing_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.elf"):
        with pytest.raises(UsageError, match="can not read"):
            attribute(path)


def test_without_section_headers_the_segments_stand_for_them(tmp_path: Path) -> None:
    data = _changed(32, bytes(4), _changed(48, bytes(4)))
    found = attribute(_write(tmp_path, data))
    assert found.flash_bytes == 0x80
    assert found.notes == ("The file has no section headers: its segments stand for sections.",)


def test_debug_information_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert "no line table" in " ".join(attribute(_write(tmp_path, FIRMWARE)).notes)


def test_sections_over_one_another_are_reported_each(tmp_path: Path) -> None:
    parts = [Part(name=f".part{i}", address=0x100 + i, data=bytes([i + 1]) * 64, flags=ALLOC | EXEC) for i in range(8)]
    names = [Name(name="f", value=0x110, size=400, kind=FUNC, part=0)]
    found = attribute(_write(tmp_path, make_elf(parts, names)))
    assert {row.name: row.flash_bytes for row in found.sum_by("section")} == {f".part{i}": 64 for i in range(8)}


def test_mutations_are_reported_or_refused(tmp_path: Path) -> None:
    random_ = random.Random(5)
    refused = 0
    for case in range(CASES):
        data = bytearray(SMALL)
        for _ in range(random_.randint(1, 8)):
            at = random_.randrange(4, len(data))
            data[at] = random_.choice((0, 1, 0x7F, 0x80, 0xFF, random_.randrange(256)))
        if case % 7 == 0:
            del data[random_.randrange(4, len(data)) :]
        try:
            found = attribute(_write(tmp_path, bytes(data)))
        except UsageError:
            refused += 1
            continue
        for key in ("group", "section"):
            rows = found.sum_by(key)  # type: ignore[arg-type]
            assert sum(row.flash_bytes for row in rows) == found.flash_bytes
    assert 0 < refused < CASES


def _many_symbols(count: int) -> bytes:
    names = [Name(name=f"f{i % 7}", value=CODE + i % 64, size=1 << (i % 31), kind=FUNC, part=0) for i in range(count)]
    return make_elf([Part(name=".text", address=CODE, data=bytes(64), flags=ALLOC | EXEC)], names)


def _one_long_name() -> bytes:
    """20,000 symbols whose names all start in one string of 8 MB that does not end."""
    parts = [Part(name=".text", address=CODE, data=bytes(64), flags=ALLOC | EXEC)]
    data = bytearray(make_elf(parts, [Name(name="a", value=CODE, size=4, kind=FUNC, part=0)] * 20000))
    headers = HEADER.unpack_from(data)[6]
    strings = SECTION.unpack_from(data, headers + 3 * SECTION.size)
    start = len(data)
    data += b"a" * (8 << 20)
    table = SECTION.unpack_from(data, headers + 2 * SECTION.size)
    for i in range(1, 20001):
        struct.pack_into("<I", data, table[4] + 16 * i, i * 100)
    SECTION.pack_into(data, headers + 3 * SECTION.size, *strings[:4], start, 8 << 20, *strings[6:])
    return bytes(data)


def _endless_lines() -> bytes:
    rows = b"\x14" * (12 << 20)  # special opcodes, a row each
    unit = make_unit([(CODE, "/a.cc"), (CODE + 2, "")])
    unit = unit[:-3] + rows + unit[-3:]
    return _with_lines(struct.pack("<I", len(unit) - 4) + unit[4:])


def _a_file_for_each_row() -> bytes:
    unit = make_unit([(CODE, "/a.cc"), (CODE + 2, "/b.cc"), (CODE + 4, "")])
    rows = b"\4\1\x20\4\2\x20" * (1 << 20)
    unit = unit[:-3] + rows + unit[-3:]
    return _with_lines(struct.pack("<I", len(unit) - 4) + unit[4:])


def _huge_tables() -> bytes:
    """A version 5 table that claims 2^63 folders, of no bytes each; and 50,000 units that claim files without end."""
    head = struct.pack("<HBBIBBBbBB", 5, 4, 0, 60, 2, 1, 1, -5, 14, 1)
    unit = head + b"\0" + b"\xff" * 9 + b"\x01" + b"\0" * 40
    small = struct.pack("<HIBBbBB", 3, 8, 2, 1, -5, 14, 1) + b"\0\0\0"
    return _with_lines(struct.pack("<I", len(unit)) + unit + (struct.pack("<I", len(small)) + small) * 50000)


def _with_lines(lines: bytes) -> bytes:
    parts = [
        Part(name=".text", address=CODE, data=bytes(64), flags=ALLOC | EXEC),
        Part(name=".debug_line", address=0, data=lines, flags=0),
    ]
    return make_elf(parts, [Name(name="f", value=CODE, size=64, kind=FUNC, part=0)])


def _many_sections() -> bytes:
    parts = [Part(name=f".s{i}", address=CODE, data=4096, flags=ALLOC | WRITE) for i in range(9000)]
    return make_elf(parts, [])


def _many_sections_with_the_same_symbols() -> bytes:
    parts = [Part(name=f".s{i}", address=CODE, data=1 << 20, flags=ALLOC | WRITE) for i in range(2000)]
    names = [Name(name=f"f{i}", value=CODE + 4 * i, size=4, kind=OBJECT, part=0) for i in range(20_000)]
    return make_elf(parts, names)


def _one_section_many_times() -> bytes:
    """3,000 sections that are all the same 4 MB of the file: 12 GB to look through."""
    parts = [Part(name=f".s{i}", address=CODE + i, data=b"", flags=ALLOC | EXEC) for i in range(3000)]
    data = bytearray(make_elf(parts, []))
    start = len(data)
    data += b"TFL3" * (1 << 20)
    headers = HEADER.unpack_from(data)[6]
    for i in range(1, 3001):
        row = SECTION.unpack_from(data, headers + i * SECTION.size)
        SECTION.pack_into(data, headers + i * SECTION.size, *row[:4], start, 4 << 20, *row[6:])
    return bytes(data)


def _calls_everywhere() -> bytes:
    code = b"\x00\xf0\x00\xf8" * (512 << 10)
    names = [Name(name=f"f{i}", value=CODE + 64 * i, size=64, kind=FUNC, part=0) for i in range(20000)]
    return make_elf([Part(name=".text", address=CODE, data=code, flags=ALLOC | EXEC)], names)


def _identifiers_everywhere() -> bytes:
    return make_elf([Part(name=".rodata", address=CODE, data=b"\x10\0\0\0TFL3" * (256 << 10), flags=ALLOC)], [])


def _strings_everywhere() -> bytes:
    return make_elf([Part(name=".rodata", address=CODE, data=b"abc\0" * (1 << 20), flags=ALLOC)], [])


def _text_without_end() -> bytes:
    return make_elf([Part(name=".rodata", address=CODE, data=b"a" * (60 << 20), flags=ALLOC)], [])


def _code_of_many_megabytes() -> bytes:
    code = b"\x4f\xf0\x00\x48" * (2 << 20)
    parts = [Part(name=f".text{i}", address=CODE + i * len(code), data=code, flags=ALLOC | EXEC) for i in range(8)]
    return make_elf(parts, [Name(name="f", value=CODE, size=64, kind=FUNC, part=0)])


def _nothing_but_marks() -> bytes:
    names = [Name(name="$t", value=CODE, size=0, kind=0, part=0, is_local=True)] * 200_000
    return make_elf([Part(name=".text", address=CODE, data=bytes(64), flags=ALLOC | EXEC)], names)


HOSTILE: tuple[Callable[[], bytes], ...] = (
    lambda: _many_symbols(90_000),
    lambda: _many_symbols(150_000),
    _one_long_name,
    _endless_lines,
    _a_file_for_each_row,
    _many_sections_with_the_same_symbols,
    _huge_tables,
    _many_sections,
    _one_section_many_times,
    _calls_everywhere,
    _identifiers_everywhere,
    _strings_everywhere,
    _text_without_end,
    _code_of_many_megabytes,
    _nothing_but_marks,
)

_RUN = """
import sys
from pathlib import Path
from tflm_forge.errors import UsageError
from tflm_forge.size import attribute
try:
    found = attribute(Path(sys.argv[1]))
    print("reported", len(found.pieces))
except UsageError as error:
    print("refused", error.message)
"""


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: getattr(make, "__name__", ""))
def test_hostile_files_end_in_time_and_memory(tmp_path: Path, make: Callable[[], bytes]) -> None:
    """Limits of the operating system end what takes more: of processor time, so that a busy machine is no matter."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    path = _write(tmp_path, make())
    done = subprocess.run(
        [sys.executable, "-c", _RUN, path], preexec_fn=limit, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("reported", "refused"))
