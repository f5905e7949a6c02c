"""The QEMU runner on the real program: nothing is left behind, and a dead emulator says why."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import serial

from tflm_forge import proc
from tflm_forge.board import Board, load_board
from tflm_forge.errors import DeviceError, UsageError
from tflm_forge.runners.qemu import open_target

pytestmark = pytest.mark.tools

WAIT_S = 20.0


@pytest.fixture(scope="module")
def idle_elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return firmware for mps2-an386 that does nothing, for ever."""
    folder = tmp_path_factory.mktemp("idle")
    source = folder / "idle.S"
    source.write_text(".syntax unified\n.thumb\n.word 0x20001000, start + 1\nstart: b start\n", encoding="utf-8")
    elf = folder / "idle.elf"
    command = [
        "arm-none-eabi-gcc",
        "-mcpu=cortex-m4",
        "-nostdlib",
        "-Wl,-Ttext=0",
        "-Wl,-estart",
        source,
        "-o",
        elf,
    ]
    subprocess.run(command, check=True, timeout=60)
    return elf


def _gone(pid: int) -> bool:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_leaves_nothing_behind(idle_elf: Path) -> None:
    with open_target(load_board("mps2-an386"), idle_elf) as target, serial.serial_for_url(target.url):
        assert target.alive()
    assert not target.alive()
    assert _gone(target.process.pid)


@pytest.mark.parametrize("error", [KeyboardInterrupt, DeviceError])
def test_leaves_nothing_behind_when_interrupted(error: type[BaseException], idle_elf: Path) -> None:
    with pytest.raises(error), open_target(load_board("mps2-an386"), idle_elf) as target:
        raise error("stop")
    assert _gone(target.process.pid)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_dies_with_forge(idle_elf: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom tflm_forge.board import load_board\n"
        "from tflm_forge.runners.qemu import open_target\n"
        "with open_target(load_board('mps2-an386'), Path(sys.argv[1])) as target:\n"
        "    print(target.process.pid, flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, idle_elf], stdout=subprocess.PIPE, text=True) as forge:
        assert forge.stdout is not None
        pid = int(forge.stdout.readline())
        assert not Path(f"/proc/{pid}/stat").read_text(encoding="ascii").startswith("Z")
        forge.kill()
        forge.wait(WAIT_S)
        assert _gone(pid)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_does_not_start_when_forge_has_died_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "mark"
    with proc.start(["touch", mark], dies_with_forge=True) as process:
        assert proc.wait(process, timeout_s=WAIT_S) == 0
    assert mark.exists()
    mark.unlink()
    monkeypatch.setattr(os, "getpid", lambda: 1)  # a parent that this child does not have
    with proc.start(["touch", mark], dies_with_forge=True) as process:
        assert proc.wait(process, timeout_s=WAIT_S) != 0
    assert not mark.exists()


def _wait_for_death(board: Board, elf: Path, sign: signal.Signals | None = None) -> None:
    """Connect to a target that dies, and fail as a session does."""
    with open_target(board, elf) as target:
        with socket.create_connection(("127.0.0.1", int(target.url.rpartition(":")[2]))):
            if sign is not None:
                os.kill(target.process.pid, sign)
            target.process.wait(WAIT_S)
        raise DeviceError("no answer")


def test_killed_emulator_is_named(idle_elf: Path) -> None:
    with pytest.raises(DeviceError, match="the emulator has ended: no answer") as caught:
        _wait_for_death(load_board("mps2-an386"), idle_elf, signal.SIGKILL)
    assert "ended with signal 9" in caught.value.hint


def test_firmware_that_locks_up_the_core(tmp_path: Path) -> None:
    elf = tmp_path / "firmware.elf"
    elf.write_bytes(bytes(100))
    with pytest.raises(DeviceError, match="the emulator has ended: no answer") as caught:
        _wait_for_death(load_board("stm32vldiscovery"), elf)
    assert "R15=" in caught.value.hint
    assert "ended with signal 6" in caught.value.hint


def test_machine_that_qemu_lacks(idle_elf: Path) -> None:
    board = load_board("mps2-an386")
    assert board.emulator is not None
    board = replace(board, emulator=replace(board.emulator, machine="mps9-an999"))
    with pytest.raises(UsageError, match=r"mps2-an386\.toml: emulator\.machine.*'mps9-an999'"):
        _wait_for_death(board, idle_elf)
