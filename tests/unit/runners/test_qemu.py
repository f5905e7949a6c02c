"""The QEMU runner without QEMU: the command, the versions, what is refused."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tflm_forge import proc
from tflm_forge.board import load_board, read_board
from tflm_forge.errors import DeviceError, ToolError, UsageError
from tflm_forge.runners import qemu

COMMON = [
    *("-display", "none", "-monitor", "none"),
    *("-chardev", "socket,id=uart,fd=7,server=on,wait=on", "-serial", "chardev:uart"),
    *("-semihosting-config", "enable=on,target=native"),
]
COMMANDS = {
    "plain": ("stm32f4", {}, "netduinoplus2", ["-icount", "shift=0"]),
    "as fast as it can": ("mps2-an386", {"icount": False}, "mps2-an386", []),
    "debugger": (
        "microbit",
        {"gdb_socket": Path("/tmp/a,b")},
        "microbit",
        [
            "-icount",
            "shift=0",
            "-chardev",
            "socket,id=gdb,path=/tmp/a,,b,server=on,wait=off",
            "-gdb",
            "chardev:gdb",
        ],
    ),
}


@pytest.mark.parametrize(("board", "options", "machine", "more"), COMMANDS.values(), ids=COMMANDS)
def test_command(board: str, options: dict[str, Any], machine: str, more: list[str]) -> None:
    emulator = load_board(board).emulator
    assert emulator is not None
    argv = qemu.command(emulator, Path("/x/firmware.elf"), listen_fd=7, **options)
    assert argv == ["qemu-system-arm", "-M", machine, *COMMON, *more, "-kernel", "/x/firmware.elf"]


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright (c)", (7, 2)),
        ("QEMU emulator version 10.0.2", (10, 0)),
    ],
)
def test_parse_version(output: str, version: tuple[int, int]) -> None:
    assert qemu.parse_version(output) == version


def test_parse_version_of_something_else() -> None:
    with pytest.raises(ToolError, match="did not print a version") as caught:
        qemu.parse_version("command not found")
    assert "command not found" in caught.value.hint


def _pretend(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    qemu._check_version.cache_clear()
    monkeypatch.setattr(proc, "run", lambda argv, **_: proc.Completed(argv=tuple(argv), returncode=0, output=output))


def test_old_qemu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = tmp_path / "firmware.elf"
    elf.touch()
    _pretend(monkeypatch, "QEMU emulator version 5.2.0")
    with (
        pytest.raises(ToolError, match=r"5\.2 is too old: forge needs 6\.2"),
        qemu.open_target(load_board("stm32f4"), elf),
    ):
        pass
    qemu._check_version.cache_clear()


def test_missing_qemu_says_how_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = tmp_path / "firmware.elf"
    elf.touch()
    qemu._check_version.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError) as caught, qemu.open_target(load_board("stm32f4"), elf):
        pass
    assert "apt-get install qemu-system-arm" in caught.value.hint


def test_missing_firmware_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=r"nothing\.elf"),
        qemu.open_target(load_board("stm32f4"), tmp_path / "nothing.elf"),
    ):
        pass


def test_board_without_emulator_points_to_the_port(tmp_path: Path) -> None:
    text = load_board("mps2-an386").path.read_text(encoding="utf-8").split("[emulator]")[0]
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="no emulator") as caught, qemu.open_target(read_board(path), path):
        pass
    assert "--port" in caught.value.hint


def _dead(words: bytes, status: int) -> qemu.QemuTarget:
    process: Any = SimpleNamespace(returncode=status, poll=lambda: status)
    return qemu.QemuTarget(
        url="socket://127.0.0.1:1",
        argv=("qemu-system-arm", "-M", "x"),
        process=process,
        errors=io.BytesIO(words),
    )


def test_death_shows_last_words_and_how() -> None:
    words = b"".join(b"line %d\n" % i for i in range(30)) + b"qemu: fatal: Lockup\n"
    silent = DeviceError("no answer to INFO", hint="It said nothing.", reasons=["r"])
    error = qemu._death(load_board("stm32f4"), _dead(words, -6), silent)
    assert isinstance(error, DeviceError)
    assert error.message == "the emulator has ended: no answer to INFO"
    assert error.reasons == ("r",)
    assert "It said nothing." in error.hint
    assert "qemu: fatal: Lockup\nqemu-system-arm ended with signal 6" in error.hint
    assert "line 29" in error.hint
    assert "line 3\n" not in error.hint
    assert "command: qemu-system-arm -M x" in error.hint


def test_waiting_for_the_host_is_no_last_word() -> None:
    waiting = b"qemu-system-arm: -chardev socket: info: QEMU waiting for connection on: disconnected:tcp\n"
    assert _dead(waiting + b"boom\n", 1).last_words() == "boom\nqemu-system-arm ended with status 1"


def test_an_error_that_tells_of_the_death_stays_as_it_is() -> None:
    target = _dead(b"boom\n", 1)
    told = DeviceError("the emulator ended", hint=f"heard nothing\n{target.last_words()}")
    assert qemu._death(load_board("stm32f4"), target, told) is told


def test_machine_that_qemu_lacks_names_the_board_file() -> None:
    board = load_board("stm32f4")
    words = b"qemu-system-arm: unsupported machine type\nUse -machine help to list supported machines\n"
    error = qemu._death(board, _dead(words, 1), DeviceError("port closed"))
    assert isinstance(error, UsageError)
    assert f"{board.path}: emulator.machine" in error.message
    assert "'netduinoplus2'" in error.message
