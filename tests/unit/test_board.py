"""Board files: all of forge's load, and whatever is wrong in one is named with file and key."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tflm_forge import board as board_module
from tflm_forge.board import CORES, Board, Region, list_boards, load_board, read_board
from tflm_forge.errors import UsageError
from tflm_forge.resources import data_dir

NAMES = [path.stem for path in sorted(data_dir("boards").glob("*.toml"))]
VALID = """
title = "A board"
source = "its manual"
core = "cortex-m4f"
clock_hz = 25_000_000
baud = 115_200
stack_bytes = 4096

[[region]]
name = "FLASH"
kind = "flash"
origin = 0x0000_0000
length_bytes = 0x10_0000
source = "its manual"

[[region]]
name = "RAM"
kind = "ram"
origin = 0x2000_0000
length_bytes = 0x2_0000
source = "its manual"

[driver]
name = "cmsdk"
source = "its manual"
uart_base = 0x4000_4000
uart_hz = 25_000_000

[emulator]
machine = "mps2-an386"
source = "QEMU"
"""


def _write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_board_of_forge_loads(name: str) -> None:
    board = load_board(name)
    assert board.name == name
    assert board.flash.kind == "flash"
    assert board.ram.kind == "ram"
    assert board.emulator is not None or board.twin is not None


def test_boards_of_the_first_release_are_there() -> None:
    wanted = {
        *("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547"),
        *("microbit", "stm32vldiscovery", "lm3s6965evb", "stm32f4"),
    }
    boards = list_boards()
    assert wanted <= {board.name for board in boards}
    assert [board.name for board in boards] == sorted(board.name for board in boards)


@pytest.mark.parametrize(
    ("name", "core", "flash", "ram"),
    [
        ("stm32f4", "cortex-m4f", (0x08000000, 1024), (0x20000000, 128)),
        ("stm32vldiscovery", "cortex-m3", (0x08000000, 128), (0x20000000, 8)),
        ("microbit", "cortex-m0", (0x00000000, 256), (0x20000000, 16)),
        ("lm3s6965evb", "cortex-m3", (0x00000000, 256), (0x20000000, 64)),
    ],
)
def test_memory_of_chips_is_as_sold(name: str, core: str, flash: tuple[int, int], ram: tuple[int, int]) -> None:
    board = load_board(name)
    assert board.core.name == core
    assert (board.flash.origin, board.flash.length_bytes // 1024) == flash
    assert (board.ram.origin, board.ram.length_bytes // 1024) == ram


def test_a_file_of_the_users_is_a_board(tmp_path: Path) -> None:
    board = load_board(str(_write(tmp_path, VALID)))
    assert isinstance(board, Board)
    assert board.name == "mine"
    assert board.regions[0] == Region(name="FLASH", kind="flash", origin=0, length_bytes=0x100000, source="its manual")
    assert board.emulator is not None
    assert board.emulator.args == ()
    assert board.config == {
        "kClockHz": 25_000_000,
        "kBaud": 115_200,
        "kUartBase": 0x40004000,
        "kUartHz": 25_000_000,
    }


def test_board_without_emulator_may_name_a_twin(tmp_path: Path) -> None:
    text = VALID.split("[emulator]")[0].replace("stack_bytes", 'twin = "mps2-an386"\nstack_bytes')
    board = read_board(_write(tmp_path, text))
    assert board.emulator is None
    assert board.twin == "mps2-an386"


def test_unknown_board_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        load_board("stm32f5")
    assert "stm32f5" in caught.value.message
    assert "'stm32f4'" in caught.value.hint


WRONG = {
    "unknown key": ("clock_hz", "clok_hz = 1\nclock_hz", "clok_hz", "unknown key"),
    "unknown region key": ('kind = "ram"', 'kind = "ram"\nspeed = 1', "region[1].speed", "unknown key"),
    "unknown emulator key": ('machine = "', 'machin = 1\nmachine = "', "emulator.machin", "unknown key"),
    "unknown driver constant": (
        "uart_base",
        "uart_irq = 1\nuart_base",
        "driver.uart_irq",
        "no such constant",
    ),
    "missing driver constant": ("uart_base = 0x4000_4000", "", "driver.uart_base", "missing"),
    "missing key": ('title = "A board"', "", "title", "missing"),
    "empty text": ('title = "A board"', 'title = " "', "title", "must be text"),
    "wrong type": ("stack_bytes = 4096", 'stack_bytes = "4K"', "stack_bytes", "whole number"),
    "truth for number": ("stack_bytes = 4096", "stack_bytes = true", "stack_bytes", "whole number"),
    "misaligned region": ("0x2000_0000", "0x2000_0004", "region[1].origin", "misaligned"),
    "misaligned length": ("0x2_0000", "0x2_0004", "region[1].length_bytes", "misaligned"),
    "overlap": ("origin = 0x2000_0000", "origin = 0x000F_0000", "region[1].origin", "overlaps"),
    "beyond 4 GB": (
        "origin = 0x2000_0000",
        "origin = 0xFFFF_FF00",
        "region[1].length_bytes",
        "address space",
    ),
    "huge origin": ("origin = 0x2000_0000", "origin = 0x1_0000_0000", "region[1].origin", "out of range"),
    "negative": ("clock_hz = 25_000_000", "clock_hz = -1", "clock_hz", "out of range"),
    "no ram": ('kind = "ram"', 'kind = "flash"', "region", "no region of kind 'ram'"),
    "unknown kind": ('kind = "ram"', 'kind = "sram"', "region[1].kind", "'flash' or 'ram'"),
    "region name twice": ('name = "RAM"', 'name = "FLASH"', "region[1].name", "twice"),
    "region name for a linker": ('name = "RAM"', 'name = "RA M"', "region[1].name", "match"),
    "unknown core": ("cortex-m4f", "cortex-m4", "core", "unknown core 'cortex-m4'"),
    "unknown driver": ('name = "cmsdk"', 'name = "cmsdx"', "driver.name", "unknown driver 'cmsdx'"),
    "bad machine": ('machine = "mps2-an386"', 'machine = "mps2 an386"', "emulator.machine", "match"),
    "machine is no option": ('machine = "mps2-an386"', 'machine = "-s"', "emulator.machine", "match"),
    "args no list": ('machine = "', 'args = "-s"\nmachine = "', "emulator.args", "list of texts"),
    "misaligned stack": ("stack_bytes = 4096", "stack_bytes = 4100", "stack_bytes", "misaligned"),
    "stack over ram": ("stack_bytes = 4096", "stack_bytes = 0x2_0000", "stack_bytes", "does not fit"),
    "unknown twin": ("clock_hz", 'twin = "mps2-an38"\nclock_hz', "twin", "unknown board"),
    "region no table": ("[[region]]", "[region]", "region", ""),
    "not TOML": ("[driver]", "[driver", "", "TOML"),
}


@pytest.mark.parametrize(("old", "new", "key", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_file_and_key(old: str, new: str, key: str, words: str, tmp_path: Path) -> None:
    assert old in VALID
    path = _write(tmp_path, VALID.replace(old, new, 1 if key != "region" or old != "[[region]]" else 2))
    with pytest.raises(UsageError) as caught:
        read_board(path)
    assert str(path) in caught.value.message
    assert key in caught.value.message
    assert words in caught.value.message


@pytest.mark.parametrize("make", ["missing", "folder", "binary"])
def test_a_file_that_can_not_be_read_is_named(make: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    if make == "folder":
        path.mkdir()
    if make == "binary":
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=re.escape(str(path))):
        load_board(str(path))


def test_every_fact_has_a_source() -> None:
    for name in NAMES:
        values = tomllib.loads((data_dir("boards") / f"{name}.toml").read_text(encoding="utf-8"))
        for table in (values, values["driver"], *values["region"], values.get("emulator", {"source": "x"})):
            assert table["source"].strip(), name


def test_every_driver_serves_a_board() -> None:
    drivers = {path.stem for path in (data_dir("templates") / "firmware" / "boards").iterdir()}
    assert drivers == {board.driver for board in list_boards()}


def test_cores_have_the_extensions_their_flags_select() -> None:
    for core in CORES.values():
        assert core.has_fpu == ("-mfloat-abi=hard" in core.cpu_flags)
        assert core.has_dsp == (core.name not in ("cortex-m0", "cortex-m3"))
        assert core.has_mve == (core.name == "cortex-m55f")


def test_reading_boards_imports_nothing_slow() -> None:
    tree = ast.parse(Path(board_module.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not modules & {"jinja2", "numpy", "serial", "elftools"}
