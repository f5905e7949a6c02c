"""The exact commands of every runner."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runners.jobs import make_job
from tflm_forge import proc
from tflm_forge.board import list_boards
from tflm_forge.errors import UsageError
from tflm_forge.runners import gdb, jlink, list_runners, load_runner, settings_of, uf2
from tflm_forge.runners._flashing import show_plan

CORTEX_DEBUG = "openocd -f interface/stlink.cfg -f target/stm32f4x.cfg"
PYOCD = "--no-wait --target stm32f407vg -O auto_unlock=false"
GDB = "gdb-multiarch -nx -batch -ex 'set tcp auto-retry off' -ex 'set tcp connect-timeout 5' -ex 'set remotetimeout 30'"
JLINK = "JLinkExe -NoGui 1 -ExitOnError 1 -AutoConnect 1"

COMMANDS: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
    "openocd": (
        "openocd",
        "stm32f4",
        {},
        [
            f"{CORTEX_DEBUG} -c init -c 'mdw 0xE0042000' -c shutdown",
            f"{CORTEX_DEBUG} -c 'program {{/x/firmware.elf}} verify reset exit'",
        ],
    ),
    "openocd, all options": (
        "openocd",
        "stm32f4",
        {"erase": True, "serial_number": "066DFF"},
        [
            f"{CORTEX_DEBUG} -c 'adapter serial 066DFF' -c init -c 'mdw 0xE0042000' -c shutdown",
            f"{CORTEX_DEBUG} -c 'adapter serial 066DFF' -c init -c 'reset init' "
            "-c 'flash erase_address 0x08000000 0x100000' -c 'program {/x/firmware.elf} verify reset exit'",
        ],
    ),
    "openocd, a chip without id": (
        "openocd",
        "lm3s6965evb",
        {},
        ["openocd -f board/ek-lm3s6965.cfg -c 'program {/x/firmware.elf} verify reset exit'"],
    ),
    "pyocd": (
        "pyocd",
        "stm32f4",
        {},
        [
            f"pyocd commander {PYOCD} --command 'read32 0xE0042000'",
            f"pyocd load {PYOCD} --erase sector --format elf /x/firmware.elf",
            f"pyocd commander {PYOCD} --command 'compare 0x08000000 \"/x/flash/firmware.bin\"' --command reset",
        ],
    ),
    "pyocd, all options": (
        "pyocd",
        "stm32f4",
        {"erase": True, "serial_number": "066DFF"},
        [
            f"pyocd commander {PYOCD} --uid 066DFF --command 'read32 0xE0042000'",
            f"pyocd load {PYOCD} --uid 066DFF --erase chip --format elf /x/firmware.elf",
            f"pyocd commander {PYOCD} --uid 066DFF --command 'compare 0x08000000 \"/x/flash/firmware.bin\"' "
            "--command reset",
        ],
    ),
    "stflash": (
        "stflash",
        "stm32f4",
        {},
        ["st-info --chipid", "st-flash --reset write /x/flash/firmware.bin 0x08000000"],
    ),
    "stflash, all options": (
        "stflash",
        "stm32f4",
        {"erase": True, "serial_number": "066DFF"},
        [
            "st-flash --serial 066DFF erase",
            "st-flash --serial 066DFF --reset write /x/flash/firmware.bin 0x08000000",
        ],
    ),
    "dfu": (
        "dfu",
        "stm32f4",
        {},
        [
            "dfu-util --device 0483:DF11 --alt 0 --dfuse-address 0x08000000 --download /x/flash/firmware.bin",
            "dfu-util --device 0483:DF11 --alt 0 --dfuse-address 0x08000000:300:leave --upload /x/flash/readback.bin",
        ],
    ),
    "dfu, all options": (
        "dfu",
        "stm32f4",
        {"erase": True, "serial_number": "3576"},
        [
            "dfu-util --device 0483:DF11 --alt 0 --serial 3576 --dfuse-address 0x08000000:mass-erase:force "
            "--download /x/flash/firmware.bin",
            "dfu-util --device 0483:DF11 --alt 0 --serial 3576 --dfuse-address 0x08000000:300:leave "
            "--upload /x/flash/readback.bin",
        ],
    ),
    "gdb": (
        "gdb",
        "stm32f4",
        {"gdb_server": "lab:3333"},
        [
            f"{GDB} -ex 'target extended-remote lab:3333' -ex 'x/xw 0xE0042000' -ex disconnect",
            f"{GDB} -ex 'target extended-remote lab:3333' -ex load -ex compare-sections -ex 'monitor reset' "
            "-ex 'monitor system_reset' -ex detach /x/firmware.elf",
        ],
    ),
    "jlink": (
        "jlink",
        "nrf52840-dk",
        {},
        [
            f"{JLINK} -Device nRF52840_xxAA -If SWD -Speed 4000 -CommandFile /x/flash/identify.jlink",
            f"{JLINK} -Device nRF52840_xxAA -If SWD -Speed 4000 -CommandFile /x/flash/flash.jlink",
        ],
    ),
    "jlink, all options": (
        "jlink",
        "nrf52840-dk",
        {"erase": True, "serial_number": "683123456"},
        [
            f"{JLINK} -SelectEmuBySN 683123456 -Device nRF52840_xxAA -If SWD -Speed 4000 "
            "-CommandFile /x/flash/identify.jlink",
            f"{JLINK} -SelectEmuBySN 683123456 -Device nRF52840_xxAA -If SWD -Speed 4000 "
            "-CommandFile /x/flash/flash.jlink",
        ],
    ),
    "uf2, without picotool": ("uf2", "pico", {}, ["cp /x/flash/firmware.uf2 /media/RPI-RP2/"]),
    "uf2, one of several boards": (
        "uf2",
        "pico2",
        {"serial_number": "E661"},
        ["picotool load --verify --execute /x/flash/firmware.uf2 --ser E661"],
    ),
}


@pytest.fixture(autouse=True)
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are told without any tool installed."""
    for module in (proc, gdb, jlink, uf2):
        monkeypatch.setattr(module, "has_tool", lambda name: False)
    monkeypatch.setattr(uf2, "find_drive", lambda label: None)


@pytest.mark.parametrize(("runner", "board", "options", "expected"), COMMANDS.values(), ids=COMMANDS)
def test_commands(runner: str, board: str, options: dict[str, Any], expected: list[str]) -> None:
    plan = load_runner(runner).plan(make_job(runner, board, **options))
    assert list(show_plan(plan)) == expected


def test_every_runner_is_in_the_table() -> None:
    assert {row[0] for row in COMMANDS.values()} | {"platformio"} == set(list_runners())


def test_platformio_uploads_with_the_boards_own_environment() -> None:
    plan = load_runner("platformio").plan(make_job("platformio", "teensy-4-1", port="/dev/ttyACM0"))
    assert show_plan(plan) == ("pio run --project-dir /x -e teensy41 -t upload --upload-port /dev/ttyACM0",)


def test_platformio_is_for_boards_that_it_knows() -> None:
    with pytest.raises(UsageError, match=r"has no table \[platformio\]"):
        load_runner("platformio").plan(make_job("platformio", "lm3s6965evb"))


def test_jlink_gets_its_commands_from_files() -> None:
    plan = load_runner("jlink").plan(make_job("jlink", "nrf52840-dk", erase=True))
    texts = {
        path.name: content.decode().splitlines() for path, content in plan.files.items() if path.suffix == ".jlink"
    }
    assert texts == {
        "identify.jlink": ["mem32 0x10000100 1", "qc"],
        "flash.jlink": [
            *("r", "h", "erase"),
            'loadfile "/x/flash/firmware.bin" 0x00000000',
            'verifybin "/x/flash/firmware.bin" 0x00000000',
            *("r", "g", "qc"),
        ],
    }


def test_an_equal_binary_beside_the_elf_is_used_and_a_stale_one_is_not(tmp_path: Path) -> None:
    elf, beside = tmp_path / "firmware.elf", tmp_path / "firmware.bin"
    job = make_job("stflash", "stm32f4", elf=elf, folder=tmp_path / "flash")
    beside.write_bytes(job.image.data)
    plan = load_runner("stflash").plan(make_job("stflash", "stm32f4", elf=elf, folder=tmp_path / "flash"))
    assert str(beside) in plan.steps[0].argv  # type: ignore[union-attr]
    beside.write_bytes(job.image.data[:-1])
    plan = load_runner("stflash").plan(make_job("stflash", "stm32f4", elf=elf, folder=tmp_path / "flash"))
    assert plan.files == {tmp_path / "flash" / "firmware.bin": job.image.data}


@pytest.mark.parametrize("board", list_boards(), ids=lambda board: board.name)
def test_tables_of_the_board_files_have_what_their_runners_need(board: Any) -> None:
    for name in board.runners:
        runner = load_runner(name)
        settings_of(runner, board)
        for command in show_plan(runner.plan(make_job(name, board))):
            assert shlex.split(command), command
