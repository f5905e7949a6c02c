"""Which runner flashes a board, and what it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tflm_forge.runners
from tflm_forge.board import Board, load_board
from tflm_forge.errors import ToolError, UsageError
from tflm_forge.runners import choose_runner, list_runners, load_runner, refuse_lacking, settings_of

BOARD = replace(
    load_board("stm32f4"),
    path=Path("boards/mine.toml"),
    runners={"openocd": {"config": "x.cfg"}, "stflash": {}, "pyocd": {"target": "x"}},
)


def _install(monkeypatch: pytest.MonkeyPatch, *tools: str) -> None:
    monkeypatch.setattr(tflm_forge.runners, "has_tool", lambda name: name in tools)


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [(("openocd", "st-flash", "pyocd"), "openocd"), (("pyocd", "st-flash"), "stflash"), (("pyocd",), "pyocd")],
)
def test_first_of_the_boards_that_is_installed(
    monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...], chosen: str
) -> None:
    _install(monkeypatch, *installed)
    assert choose_runner(BOARD, None).name == chosen
    assert choose_runner(BOARD, "auto").name == chosen
    assert choose_runner(BOARD, "gdb").name == "gdb"


def test_none_installed_says_what_to_install_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch)
    assert choose_runner(BOARD, None, dry_run=True).name == "openocd"
    with pytest.raises(ToolError, match="no tool is installed that flashes a stm32f4") as caught:
        choose_runner(BOARD, None)
    assert caught.value.reasons == (
        "openocd: openocd (sudo apt-get install openocd)",
        "stflash: st-flash (sudo apt-get install stlink-tools)",
        "pyocd: pyocd (pip install pyocd)",
    )


def test_board_without_runners() -> None:
    with pytest.raises(UsageError, match=r"mine\.toml: the board names no runner") as caught:
        choose_runner(replace(BOARD, runners={}), None)
    assert "openocd" in caught.value.hint


@pytest.mark.parametrize(("name", "near"), [("opencd", "'openocd'"), ("st-flash", "'stflash'"), ("j-link", "'jlink'")])
def test_unknown_runner_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"unknown runner '{name}'") as caught:
        choose_runner(BOARD, name)
    assert near in caught.value.hint


def test_emulator_does_not_flash() -> None:
    assert "qemu" not in list_runners()
    with pytest.raises(UsageError, match="'qemu' runs firmware without flashing"):
        load_runner("qemu")


@pytest.mark.parametrize(
    ("runners", "words"),
    [
        ({"openocd": {"config": "x", "speed": 1}}, r"mine\.toml: \[runner\.openocd\] unknown key 'speed'"),
        ({"openocd": {}}, r"can not be flashed with openocd"),
        ({"uf2": {"drive": "X"}}, r"mine\.toml: \[runner\.uf2\] family_id is missing"),
        ({}, r"stm32f4 can not be flashed with openocd: its board file has no table \[runner\.openocd\]"),
    ],
)
def test_wrong_tables(runners: dict[str, dict[str, str | int]], words: str) -> None:
    board: Board = replace(BOARD, runners=runners)
    with pytest.raises(UsageError, match=words):
        settings_of(load_runner(next(iter(runners), "openocd")), board)


def test_unknown_runner_in_a_board_file_names_the_file() -> None:
    with pytest.raises(UsageError, match=r"mine\.toml: \[runner\.opencd\]: unknown runner 'opencd'"):
        choose_runner(replace(BOARD, runners={"opencd": {}}), None)


@pytest.mark.parametrize(
    ("runner", "options", "option"),
    [
        ("gdb", {"erase": True}, "--erase"),
        ("gdb", {"serial_number": "1"}, "--serial-number"),
        ("openocd", {"gdb_server": "lab:3333"}, "--gdb-server"),
        ("platformio", {"serial_number": "1"}, "--serial-number"),
    ],
)
def test_what_a_runner_lacks_is_refused(runner: str, options: dict[str, Any], option: str) -> None:
    with pytest.raises(UsageError, match=f"runner {runner} does not support {option}"):
        refuse_lacking(load_runner(runner), **options)


def test_what_a_runner_has_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch)
    refuse_lacking(load_runner("openocd"), erase=True, serial_number="1", dry_run=True)
    with pytest.raises(ToolError, match="runner openocd is not installed"):
        refuse_lacking(load_runner("openocd"), erase=True, serial_number="1")
