"""OpenOCD and the other tools for real: against a simulated chip, and without any probe."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.qemu.stm32_jtag import L452_ID, Memory, serve
from tflm_forge.board import load_board
from tflm_forge.errors import DeviceError
from tflm_forge.runners import FlashJob, load_runner, settings_of
from tflm_forge.runners._flashing import Flashed, flash
from tflm_forge.runners._image import read_image

needs_gdb = pytest.mark.skipif(shutil.which("gdb-multiarch") is None, reason="gdb-multiarch is not installed")
needs_openocd = pytest.mark.skipif(shutil.which("openocd") is None, reason="openocd is not installed")

SOURCE = """
.syntax unified
.thumb
.word 0x20001000, start + 1
.global _ZN5forge8kBuildIdE
.type _ZN5forge8kBuildIdE, %object
.size _ZN5forge8kBuildIdE, 16
_ZN5forge8kBuildIdE: .ascii "0123456789abcdef"
start: b start
"""

FlashSimulated = Callable[..., Flashed]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return firmware of a few bytes with a build id, under a path that tools must be given with care."""
    folder = tmp_path_factory.mktemp("firmware") / "my $x \N{LATIN SMALL LETTER A WITH DIAERESIS}"
    folder.mkdir()
    (folder / "x.S").write_text(SOURCE, encoding="utf-8")
    command = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-nostdlib", "-Wl,-Ttext=0x08000000", "-Wl,-e0x08000000"]
    subprocess.run([*command, folder / "x.S", "-o", folder / "firmware.elf"], check=True, timeout=60)
    return folder / "firmware.elf"


@pytest.fixture
def flash_simulated(elf: Path, tmp_path: Path) -> FlashSimulated:
    """Return a function that flashes a simulated chip through OpenOCD."""

    def run(memory: Memory, *, name: str = "openocd", is_powered: bool = True) -> Flashed:
        board = load_board("nucleo-l476rg")
        with serve(tmp_path, memory, is_powered=is_powered) as config:
            # gdb takes a command for a server; it starts OpenOCD once to see the chip, and once more to flash it.
            server = f'| openocd -f {config} -c "gdb_port pipe" -c "log_output {tmp_path / "openocd.log"}"'
            job = FlashJob(
                board=board,
                image=read_image(elf, board),
                folder=tmp_path / "flash",
                settings={"config": str(config)} if name == "openocd" else {},
                gdb_server=server if name == "gdb" else None,
            )
            return flash(load_runner(name), job)

    return run


RUNNERS = ["openocd", pytest.param("gdb", marks=needs_gdb)]


@pytest.mark.tools
@needs_openocd
@pytest.mark.parametrize("runner", RUNNERS)
def test_flashes_verifies_and_starts(flash_simulated: FlashSimulated, elf: Path, runner: str) -> None:
    memory = Memory()
    memory.flash[0x40:0x44] = bytes(4)
    flashed = flash_simulated(memory, name=runner)
    expected = subprocess.run(
        ["arm-none-eabi-objcopy", "-O", "binary", elf, "/dev/stdout"], capture_output=True, check=True, timeout=60
    ).stdout
    assert memory.flash[: len(expected)] == expected
    assert memory.flash[0x40:0x44] == b"\xff" * 4
    assert flashed.read_back
    assert flashed.chip_id == memory.chip_id
    assert memory.starts >= 1  # OpenOCD also starts it before it programs


@pytest.mark.tools
def test_build_id_is_read_from_the_elf(elf: Path) -> None:
    assert read_image(elf, load_board("nucleo-l476rg")).build_id == b"0123456789abcdef"


@pytest.mark.tools
@needs_openocd
@pytest.mark.parametrize(
    ("memory", "is_powered", "words", "reason"),
    [
        (Memory(chip_id=L452_ID), True, "not that of nucleo-l476rg", "0x10006462"),
        (Memory(is_locked=True), True, "is locked", "stm32x device protected"),
        (Memory(worn_address=0x08000009), True, "reads back", "Verify Failed"),
        (Memory(), False, "does not answer", "all zeroes"),
    ],
    ids=["wrong chip", "locked", "worn", "no power"],
)
def test_chip_that_can_not_be_flashed(
    flash_simulated: FlashSimulated, memory: Memory, is_powered: bool, words: str, reason: str
) -> None:
    with pytest.raises(DeviceError, match=words) as caught:
        flash_simulated(memory, is_powered=is_powered)
    assert any(reason in each for each in caught.value.reasons)
    if words != "reads back":
        assert set(memory.flash) == {0xFF}
    assert memory.starts <= 1


@pytest.mark.tools
@needs_openocd
@needs_gdb
@pytest.mark.parametrize(
    ("memory", "words"),
    [(Memory(chip_id=L452_ID), "not that of nucleo-l476rg"), (Memory(is_locked=True), "is locked")],
    ids=["wrong chip", "locked"],
)
def test_chip_that_gdb_can_not_flash(flash_simulated: FlashSimulated, memory: Memory, words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        flash_simulated(memory, name="gdb")
    assert set(memory.flash) == {0xFF}


NO_PROBE = {"openocd": "openocd", "pyocd": "pyocd", "stflash": "st-flash", "dfu": "dfu-util"}


@pytest.mark.tools
@pytest.mark.parametrize(("name", "tool"), NO_PROBE.items())
def test_real_tool_without_a_probe(
    elf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, tool: str
) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{Path(sys.executable).parent}")  # pyOCD's, from PyPI
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    runner = load_runner(name)
    # pyOCD knows this chip without a pack from the network.
    board = replace(
        load_board("stm32f4"), runners={**load_board("stm32f4").runners, "pyocd": {"target": "stm32f429xi"}}
    )
    job = FlashJob(
        board=board, image=read_image(elf, board), folder=tmp_path / "flash", settings=settings_of(runner, board)
    )
    with pytest.raises(DeviceError, match="finds no probe or board for stm32f4") as caught:
        flash(runner, job)
    assert "flash.log" in caught.value.hint
    assert tool in (tmp_path / "flash" / "flash.log").read_text(encoding="utf-8")
