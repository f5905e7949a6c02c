"""Board files: all of forge's load, and whatever is wrong in one is named with file and key."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tflm_forge import board as board_module
from tflm_forge.board import CORES, Board, Region, boards_with_probe, driver_files, list_boards, load_board, read_board
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
        load_board(str(path))
    assert str(path) in caught.value.message
    assert key in caught.value.message
    assert words in caught.value.message


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = VALID.replace("cortex-m4f", "cortex-m4").replace("115_200", "1").replace("uart_hz = 25_000_000", "")
    path = _write(tmp_path, text.replace('name = "RAM"', 'name = "RAM"\nspeed = 1').replace("0x2_0000", "0x2_0001"))
    with pytest.raises(UsageError) as caught:
        load_board(str(path))
    assert str(path) in caught.value.message
    named = [reason.split(":")[0] for reason in caught.value.reasons]
    assert sorted(named) == ["baud", "core", "driver.uart_hz", "region[1].length_bytes", "region[1].speed"]


MORE_WRONG = {
    "runner is no table": ("[driver]", "[runner]\nopenocd = 1\n[driver]", "runner.openocd", "table"),
    "runner setting": ("[driver]", "[runner.openocd]\nconfig = true\n[driver]", "runner.openocd.config", "text"),
    "platformio without board": ("[driver]", '[platformio]\nplatform = "x"\n[driver]', "platformio.board", "missing"),
    "platformio key": (
        "[driver]",
        '[platformio]\nboard = "x"\nplatform = "x"\nspeed = 1\n[driver]',
        "platformio.speed",
        "unknown key",
    ),
    "chip id outside its mask": (
        "[driver]",
        '[chip_id]\naddress = 0\nvalue = 0x1413\nmask = 0xFFF\nsource = "x"\n[driver]',
        "chip_id.value",
        "mask",
    ),
    "misaligned boot": ("stack_bytes", "boot_bytes = 0x80\nstack_bytes", "boot_bytes", "misaligned"),
    "probe without ids": ("stack_bytes", 'probe = "ST-LINK/V2-1"\nstack_bytes', "probe", "usb_ids"),
    "clock over the chip's": ("stack_bytes", "max_clock_hz = 24_000_000\nstack_bytes", "clock_hz", "max_clock_hz"),
    "twin without emulator": ("stack_bytes", 'twin = "pico"\nstack_bytes', "twin", "no emulator"),
    "twin of another class": ("stack_bytes", 'twin = "mps2-an385"\nstack_bytes', "twin", "other kernels"),
}


@pytest.mark.parametrize(("old", "new", "key", "words"), MORE_WRONG.values(), ids=MORE_WRONG)
def test_what_is_wrong_with_hardware_is_named(old: str, new: str, key: str, words: str, tmp_path: Path) -> None:
    test_what_is_wrong_is_named_with_file_and_key(old, new, key, words, tmp_path)


def test_runners_keep_the_order_and_types_of_the_file(tmp_path: Path) -> None:
    tables = '[runner.openocd]\nconfig = "x.cfg"\n[runner.stflash]\n[runner.dfu]\nusb_id = "0483:DF11"\nalt = 0\n'
    board = load_board(str(_write(tmp_path, VALID + tables)))
    assert list(board.runners) == ["openocd", "stflash", "dfu"]
    assert board.runners["dfu"] == {"usb_id": "0483:DF11", "alt": 0}
    assert board.runners["stflash"] == {}
    assert board.platformio == {}
    assert board.chip_id is None


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return the folders of a user's own board files: the project's, and that of FORGE_HOME."""
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project, home):
        (folder / "boards").mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("FORGE_HOME", str(home))
    return project / "boards", home / "boards"


def test_boards_of_the_users_folders_have_names(places: tuple[Path, Path]) -> None:
    (places[0] / "near.toml").write_text(VALID, encoding="utf-8")
    (places[1] / "far.toml").write_text(VALID, encoding="utf-8")
    assert load_board("near").shadows is None
    assert load_board("far").path == places[1] / "far.toml"
    assert {"near", "far", "stm32f4"} <= {board.name for board in list_boards()}


def test_a_users_board_hides_one_of_forges_and_says_so(places: tuple[Path, Path], forge) -> None:
    (places[0] / "pico.toml").write_text(VALID, encoding="utf-8")
    board = load_board("pico")
    assert board.title == "A board"
    assert board.shadows == data_dir("boards") / "pico.toml"
    (places[1] / "pico.toml").write_text(VALID, encoding="utf-8")
    assert load_board("pico").path.resolve() == places[0] / "pico.toml"
    assert load_board(str(places[1] / "pico.toml")).shadows is not None
    assert load_board(str(data_dir("boards") / "stm32f4.toml")).shadows is None
    done = forge("boards", "pico", cwd=places[0].parent)
    assert "A board" in done.stdout
    assert "hides" in done.stderr
    assert "pico.toml" in done.stderr


def test_two_boards_with_one_usb_id_are_refused_unless_it_is_a_probes(places: tuple[Path, Path]) -> None:
    usb = 'usb_ids = ["0D28:0204"]\n'
    (places[0] / "mine.toml").write_text(VALID.replace("stack_bytes", f"{usb}stack_bytes"), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        list_boards()
    assert any("mine" in reason and "microbit" in reason and "0D28:0204" in reason for reason in caught.value.reasons)
    probe = f'{usb}probe = "DAPLink"\nstack_bytes'
    (places[0] / "mine.toml").write_text(VALID.replace("stack_bytes", probe), encoding="utf-8")
    assert boards_with_probe(load_board("mine")) == ("microbit", "microbit-v2")


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
    folder = data_dir("templates") / "firmware" / "boards"
    boards = list_boards()
    assert {path.stem for path in folder.glob("*.cc")} == {board.driver for board in boards}
    assert {path.stem for path in folder.glob("*.toml")} <= {board.driver for board in boards}
    used = {Path(template).name for board in boards for template in driver_files(board.driver).values()}
    assert {path.name for path in folder.iterdir() if path.suffix in (".cc", ".h")} == used


def test_cores_have_the_extensions_their_flags_select() -> None:
    for core in CORES.values():
        assert core.has_fpu == ("-mfloat-abi=hard" in core.cpu_flags)
        assert core.has_dsp == (core.name not in ("cortex-m0", "cortex-m0plus", "cortex-m3"))
        assert core.has_mve == (core.name == "cortex-m55f")


def test_reading_boards_imports_nothing_slow() -> None:
    for path in Path(board_module.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not modules & {"jinja2", "numpy", "serial", "elftools"}
