"""The board files that forge ships: their facts against other sources', their clocks, their scaffolds."""

import re
from pathlib import Path

import pytest

from tests.unit.test_board import NAMES
from tflm_forge.board import Board, list_boards, load_board, read_board
from tflm_forge.board.scaffold import scaffold_board
from tflm_forge.errors import UsageError
from tflm_forge.resources import data_dir
from tflm_forge.runners import load_runner, settings_of

# Flash, RAM and name as PlatformIO's board files have them (ststm32 19.6.0, nordicnrf52 10.9.0, raspberrypi 1.17.0,
# teensy 5.1.0: boards/<name>.json, upload.maximum_size, upload.maximum_ram_size, build.cpu); None: another share of it.
PLATFORMIO = {
    "stm32f4-discovery": ("disco_f407vg", "cortex-m4", 1048576, 131072),
    "nucleo-f446re": ("nucleo_f446re", "cortex-m4", 524288, 131072),
    "nucleo-f401re": ("nucleo_f401re", "cortex-m4", 524288, 98304),
    "nucleo-l4r5zi": ("nucleo_l4r5zi", "cortex-m4", 2097152, 655360),
    "nucleo-l476rg": ("nucleo_l476rg", "cortex-m4", 1048576, 98304),
    "b-l475e-iot01a": ("disco_l475vg_iot01a", "cortex-m4", 1048576, 98304),
    "nucleo-h743zi": ("nucleo_h743zi", "cortex-m7", 2097152, 524288),
    "stm32f746-discovery": ("disco_f746ng", "cortex-m7", 1048576, 327680),
    "nucleo-u575zi-q": ("nucleo_u575zi_q", "cortex-m33", 2097152, 786432),
    "nrf52840-dk": ("nrf52840_dk", "cortex-m4", 1048576, 262144),
    "nano-33-ble": ("nano33ble", "cortex-m4", 983040, 262144),
    "pico": ("pico", "cortex-m0plus", 2097152, 262144),
    "pico2": ("rpipico2", "cortex-m33", 4194304, 524288),
    "teensy-4-1": ("teensy41", "cortex-m7", 8126464, 524288),
    "microbit-v2": ("bbcmicrobit_v2", "cortex-m4", 524288, 131072),
}
# ST's DEV_ID: `#define STM32_CHIPID_...` of stlink 1.7.0, inc/stm32.h; Nordic: nrfjprog's and pyOCD's PART numbers.
CHIP_IDS = {
    "stm32f4-discovery": 0x413,
    "nucleo-f446re": 0x421,
    "nucleo-f401re": 0x433,
    "nucleo-l4r5zi": 0x470,
    "nucleo-l476rg": 0x415,
    "b-l475e-iot01a": 0x415,
    "nucleo-h743zi": 0x450,
    "stm32f746-discovery": 0x449,
    "nucleo-u575zi-q": 0x482,
    "nrf52840-dk": 0x52840,
    "nano-33-ble": 0x52840,
    "microbit-v2": 0x52833,
}
CLOCKED = [board.name for board in list_boards() if {"pll_n", "pll_fbdiv", "pll_div_select"} & set(board.constants)]


@pytest.mark.parametrize("name", PLATFORMIO)
def test_chip_and_memory_are_those_that_platformio_has(name: str) -> None:
    board = load_board(name)
    other, cpu, flash_bytes, ram_bytes = PLATFORMIO[name]
    assert board.platformio["board"] == other
    assert board.core.cpu_flags[0] == f"-mcpu={cpu}"
    assert board.flash.length_bytes == flash_bytes
    assert board.ram.length_bytes == ram_bytes


@pytest.mark.parametrize("name", CHIP_IDS)
def test_chip_id_is_the_chips(name: str) -> None:
    chip_id = load_board(name).chip_id
    assert chip_id is not None
    assert chip_id.matches(CHIP_IDS[name])
    assert not chip_id.matches(CHIP_IDS[name] ^ 1)


@pytest.mark.parametrize("name", NAMES)
def test_runners_are_forges_and_have_the_settings_they_need(name: str) -> None:
    board = load_board(name)
    assert board.runners or name.startswith("mps")
    for runner in board.runners:
        settings_of(load_runner(runner), board)


def test_a_board_that_shares_usb_ids_names_the_probe() -> None:
    by_id: dict[str, set[str | None]] = {}
    for board in list_boards():
        for usb_id in board.usb_ids:
            by_id.setdefault(usb_id, set()).add(board.probe)
    assert all(len(probes) == 1 for probes in by_id.values())
    assert by_id["0483:374B"] == {"ST-LINK/V2-1"}


@pytest.mark.parametrize("name", NAMES)
def test_a_scaffold_like_any_board_is_a_board(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(scaffold_board("mine", name), encoding="utf-8")
    like, mine = load_board(name), load_board(str(path))
    assert mine.name == "mine"
    assert (mine.core, mine.regions, mine.constants, mine.runners) == (
        like.core,
        like.regions,
        like.constants,
        like.runners,
    )
    assert mine.emulator is None
    assert mine.twin == (name if like.emulator else like.twin)


def test_a_scaffold_explains_every_number_of_the_driver() -> None:
    text = scaffold_board("mine", "nucleo-f446re")
    for key in load_board("nucleo-f446re").constants:
        if key not in ("uart_base",):
            assert re.search(rf"^# {key}: ", text, re.MULTILINE), key
    assert "pll_p: 2 or 4 or 6 or 8" in text


@pytest.mark.parametrize("name", ["Mine", "my board", "", "../mine", "-x"])
def test_a_name_that_no_board_can_have(name: str) -> None:
    with pytest.raises(UsageError, match="can not be a board's name"):
        scaffold_board(name, "pico")


def test_new_board_is_checked_and_found_by_its_name(forge, tmp_path: Path) -> None:
    done = forge("board", "new", "mine", "--like", "pico")
    assert done.returncode == 0, done.stderr
    path = tmp_path / "boards" / "mine.toml"
    assert forge("board", "check", path).returncode == 0
    assert '"name": "mine"' in forge("boards", "mine", "--json").stdout
    again = forge("board", "new", "mine", "--like", "stm32f4")
    assert again.returncode == 2
    assert "is there already" in again.stderr
    path.write_text(path.read_text(encoding="utf-8").replace("[runner.uf2]", "[runner.uf3]"), encoding="utf-8")
    done = forge("board", "check")
    assert done.returncode == 2
    assert "mine.toml" in done.stderr
    assert "uf3" in done.stderr


def _changed(board: Board, folder: Path, **numbers: int) -> Path:
    """Write a board's file with other numbers."""
    text = board.path.read_text(encoding="utf-8")
    for key, value in numbers.items():
        text, count = re.subn(rf"^{key} = [0-9_]+", f"{key} = {value}", text, flags=re.MULTILINE)
        assert count == 1, key
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


# What each reference manual says (see templates/firmware/boards/*.toml): a number outside, and the key it is about.
IMPOSSIBLE = [
    ("nucleo-f446re", {"pll_n": 500}, "driver.pll_n"),
    ("nucleo-f446re", {"pll_m": 1}, "driver.pll_m"),
    ("nucleo-f446re", {"pll_m": 3}, "driver.pll_m"),  # 2.67 MHz at its input
    ("nucleo-f446re", {"pll_n": 217}, "driver.pll_n"),  # VCO at 434 MHz
    ("nucleo-f446re", {"pll_p": 3}, "driver.pll_p"),
    ("nucleo-f446re", {"pll_n": 179}, "clock_hz"),
    ("nucleo-f446re", {"flash_wait_states": 4}, "driver.flash_wait_states"),
    ("nucleo-f401re", {"clock_hz": 96000000, "max_clock_hz": 84000000}, "clock_hz"),
    ("stm32f746-discovery", {"flash_wait_states": 6}, "driver.flash_wait_states"),
    ("nucleo-l476rg", {"pll_n": 22}, "driver.pll_n"),  # VCO at 352 MHz
    ("nucleo-l476rg", {"pll_m": 8}, "driver.pll_m"),  # 2 MHz at its input
    ("nucleo-l476rg", {"flash_wait_states": 3}, "driver.flash_wait_states"),
    ("nucleo-l4r5zi", {"pll_n": 128}, "driver.pll_n"),
    ("nucleo-h743zi", {"pll_m": 8}, "driver.pll_m"),  # 1 MHz, too low for the wide VCO
    ("nucleo-h743zi", {"pll_n": 210}, "driver.pll_n"),  # VCO at 840 MHz
    ("nucleo-h743zi", {"pll_p": 3}, "driver.pll_p"),
    ("nucleo-u575zi-q", {"pll_n": 35}, "driver.pll_n"),  # VCO at 560 MHz
    ("nucleo-u575zi-q", {"flash_wait_states": 3}, "driver.flash_wait_states"),
    ("pico", {"pll_fbdiv": 134}, "driver.pll_fbdiv"),  # VCO at 1608 MHz
    ("pico", {"pll_refdiv": 3}, "driver.pll_refdiv"),  # 4 MHz at its input
    ("pico", {"pll_postdiv1": 8}, "driver.pll_postdiv1"),
    ("pico2", {"pll_fbdiv": 62}, "driver.pll_fbdiv"),  # VCO at 744 MHz
    ("teensy-4-1", {"pll_div_select": 109}, "driver.pll_div_select"),
    ("teensy-4-1", {"pll_div_select": 96}, "clock_hz"),
    ("nrf52840-dk", {"clock_hz": 32000000}, "clock_hz"),
    ("nano-33-ble", {"tx_pin": 48}, "driver.tx_pin"),
]


@pytest.mark.parametrize(("name", "numbers", "key"), IMPOSSIBLE, ids=lambda value: str(value))
def test_a_clock_that_the_chip_can_not_make_names_its_key(
    name: str, numbers: dict[str, int], key: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        read_board(_changed(load_board(name), tmp_path, **numbers))
    assert "mine.toml" in caught.value.message
    assert key in " ".join([caught.value.message, *caught.value.reasons])


@pytest.mark.parametrize("name", CLOCKED)
def test_an_impossible_clock_comes_with_numbers_that_work(name: str, tmp_path: Path) -> None:
    board = load_board(name)
    factor = next(key for key in ("pll_n", "pll_fbdiv", "pll_div_select") if key in board.constants)
    with pytest.raises(UsageError) as caught:
        read_board(_changed(board, tmp_path, **{factor: board.constants[factor] - 1}))
    found = {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", caught.value.hint)}
    assert factor in found
    assert read_board(_changed(board, tmp_path, **found)).clock_hz == board.clock_hz


def test_a_clock_that_no_numbers_make_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_board(_changed(load_board("teensy-4-1"), tmp_path, clock_hz=599_999_999))
    assert "No numbers make 599,999,999 Hz of 24,000,000 Hz" in caught.value.hint


def test_every_limit_of_a_driver_is_about_a_number_it_takes() -> None:
    from tflm_forge.board.drivers import COMMON_CONSTANTS, driver_names, load_driver

    for name in driver_names():
        driver = load_driver(name)
        known = driver.keys | COMMON_CONSTANTS
        assert set(driver.defaults) | set(driver.ranges) | set(driver.choices) <= known, name
        assert driver.pll is None or set(driver.pll.keys) <= known
        assert driver.pll is None or driver.pll.reference
    assert (data_dir("templates") / "firmware" / "boards" / "stm32f4.toml").is_file()


def test_every_board_and_driver_is_in_the_docs() -> None:
    folder = Path(__file__).resolve().parents[2] / "docs" / "boards"
    pages = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    words = set(re.findall(r"`([^`]+)`", "\n".join(pages.values())))
    shortened = {f"mps2{word}" for word in words if word.startswith("-an")}
    assert set(NAMES) <= words | shortened
    assert {load_board(name).driver for name in NAMES} <= set(re.findall(r"`([^`]+)`", pages["new-board.md"]))
    for link in re.findall(r"\]\((?!http)([^)#]+)", "\n".join(pages.values())):
        assert (folder / link).is_file(), link
