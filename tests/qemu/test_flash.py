"""`forge flash` and `forge flash-and-test --runner gdb` for real: gdb loads into QEMU's empty machine."""

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds
from tflm_forge.board import load_board

pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(shutil.which("gdb-multiarch") is None, reason="gdb-multiarch is not installed"),
]

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
BOARD = "stm32f4"
USAGE, DEVICE, CHECK = 2, 6, 7
WAIT_S = 20.0


@dataclass(frozen=True)
class Hardware:
    """A machine without firmware, started by the test and not by forge: what a board with a debug probe is."""

    gdb_server: str
    port: str


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def _start_hardware(folder: Path) -> Iterator[Hardware]:
    gdb, uart = _free_port(), _free_port()
    command = ["qemu-system-arm", "-M", "netduinoplus2", "-display", "none", "-monitor", "none", "-icount", "shift=0"]
    command += ["-S", "-gdb", f"tcp:127.0.0.1:{gdb}", "-serial", f"tcp:127.0.0.1:{uart},server=on,wait=off"]
    with (folder / "qemu.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + WAIT_S
            while not _listens(uart):
                assert time.monotonic() < deadline, (folder / "qemu.log").read_text()
                time.sleep(0.05)
            yield Hardware(gdb_server=f"127.0.0.1:{gdb}", port=f"socket://127.0.0.1:{uart}")
        finally:
            process.kill()


def _listens(port: int) -> bool:
    """Return whether somebody listens, without taking the one connection that QEMU's serial port has."""
    state = f":{port:04X} 00000000:0000 0A"
    return state in Path("/proc/net/tcp").read_text(encoding="ascii")


@pytest.fixture
def hardware(tmp_path: Path) -> Iterator[Hardware]:
    """Yield a machine that waits for its debugger."""
    with _start_hardware(tmp_path) as found:
        yield found


@pytest.mark.reference
def test_the_whole_suite_after_flashing(builds: Builds) -> None:
    folder = builds.build(DIGITS, BOARD)
    done = builds.run("flash-and-test", DIGITS, "--board", BOARD, "-o", folder, "--runner", "gdb", "--soak", 50)
    assert done.returncode == 0, done.stderr
    assert "target: QEMU's empty machine netduinoplus2" in done.stderr
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["passed"]
    parts = {part["name"]: part["skipped"] for part in report["parts"]}
    assert {name for name, skipped in parts.items() if not skipped} >= {"self-check", "numbers", "soak", "layers"}
    log = (folder / "flash" / "flash.log").read_text(encoding="utf-8")
    assert log.count(": matched.") >= 4
    assert "MIS-MATCHED" not in log
    done = builds.run("bisect", DIGITS, "--board", BOARD, "-o", folder, "--runner", "gdb")
    assert done.returncode == 0, done.stderr
    assert "flashing" in done.stderr
    assert "10 of 10 operators compared, all identical" in done.stdout


def test_a_board_of_ones_own(builds: Builds, hardware: Hardware) -> None:
    folder = builds.build(DIGITS, BOARD)
    where = ("--runner", "gdb", "--gdb-server", hardware.gdb_server, "--port", hardware.port)
    done = builds.run("flash", folder, *where, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["read_back"]
    assert answer["bytes"] == (folder / "firmware.bin").stat().st_size
    assert answer["build_id"]["device"] == answer["build_id"]["elf"]
    assert answer["build_id"]["port"] == hardware.port
    built = json.loads(builds.run("build", DIGITS, "--board", BOARD, "-o", folder, "--json").stdout)
    assert answer["build_id"]["device"] == built["build_id"]
    done = builds.run(
        *("flash-and-test", DIGITS, "--board", BOARD, "-o", folder, *where, "--no-reference"),
        *("--only", "self-check,numbers"),
    )
    assert done.returncode == 0, done.stderr


def test_another_build_on_the_port_is_noticed(builds: Builds, hardware: Hardware, tmp_path: Path) -> None:
    """The port is that of a board which was not flashed: it runs the firmware it had."""
    other = builds.build(SINE, BOARD)
    (tmp_path / "second").mkdir()
    first = ("--runner", "gdb", "--gdb-server", hardware.gdb_server, "--port", hardware.port)
    assert builds.run("flash", other, *first).returncode == 0
    with _start_hardware(tmp_path / "second") as second:
        done = builds.run(
            *("flash", builds.build(DIGITS, BOARD), "--runner", "gdb"),
            *("--gdb-server", second.gdb_server, "--port", hardware.port),
        )
    assert done.returncode == CHECK, done.stderr
    assert "runs another build" in done.stderr


def test_flash_alone_uses_the_emulator_and_says_so(builds: Builds) -> None:
    folder = builds.build(DIGITS, BOARD)
    done = builds.run("flash", folder / "firmware.elf", "--runner", "gdb")
    assert done.returncode == 0, done.stderr
    assert "QEMU's empty machine" in done.stderr
    assert "equal to the image" in done.stdout


def test_dry_run_needs_no_tool_and_touches_no_board(builds: Builds, tmp_path: Path) -> None:
    folder = builds.build(DIGITS, BOARD)
    bare = {"PATH": str(tmp_path)}
    done = builds.run("flash", folder, "--runner", "openocd", "--dry-run", **bare)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(f"-c 'program {{{folder / 'firmware.elf'}}} verify reset exit'")
    done = builds.run("flash", folder, "--runner", "gdb", "--dry-run", "--json", **bare)
    commands = json.loads(done.stdout)["commands"]
    assert commands[0].startswith("qemu-system-arm -M netduinoplus2")
    assert "-ex load -ex compare-sections" in commands[-1]


def test_printed_commands_work_in_a_shell(builds: Builds, hardware: Hardware) -> None:
    folder = builds.build(DIGITS, BOARD)
    where = ("--runner", "gdb", "--gdb-server", hardware.gdb_server)
    commands = builds.run("flash", folder, *where, "--dry-run").stdout
    done = subprocess.run(["sh", "-e", "-c", commands], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": matched.") >= 4


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--runner", "gdb", "--gdb-server", "127.0.0.1:1"), DEVICE, "no gdb server answers"),
        (("--runner", "gdb", "--erase"), USAGE, "runner gdb does not support --erase"),
        (("--runner", "gdb", "--port", "socket://127.0.0.1:1"), USAGE, "--gdb-server HOST:PORT"),
        (("--runner", "opencd"), USAGE, "'openocd'"),
        (("--runner", "uf2"), USAGE, "no table [runner.uf2]"),
        (("--runner", "gdb", "--board", "mps2-an386"), USAGE, "built for stm32f4, not for mps2-an386"),
    ],
)
def test_refused(builds: Builds, options: tuple[str, ...], code: int, words: str) -> None:
    done = builds.run("flash", builds.build(DIGITS, BOARD), *options)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_firmware_that_is_no_firmware(builds: Builds, tmp_path: Path) -> None:
    for content, words in ((b"", "not an ELF"), (b"\x7fELF" + bytes(60), "ELF")):
        (tmp_path / "x.elf").write_bytes(content)
        done = builds.run("flash", tmp_path / "x.elf", "--board", BOARD, "--runner", "gdb")
        assert done.returncode == USAGE, done.stderr
        assert words in done.stderr
        assert "x.elf" in done.stderr
    done = builds.run("flash", tmp_path / "x.elf", "--runner", "gdb")
    assert done.returncode == USAGE
    assert "--board" in done.stderr
    done = builds.run("flash", cwd=tmp_path)
    assert done.returncode == USAGE
    assert "no firmware given" in done.stderr


def test_settings_of_forge_toml(builds: Builds, tmp_path: Path, hardware: Hardware) -> None:
    folder = builds.build(DIGITS, BOARD)
    (tmp_path / "forge.toml").write_text(
        f'[build]\nmodel = "x.tflite"\nboard = "{BOARD}"\noutput = "{folder}"\n'
        f'[test]\nport = "{hardware.port}"\n'
        f'[flash]\nrunner = "gdb"\ngdb_server = "{hardware.gdb_server}"\n',
        encoding="utf-8",
    )
    done = builds.run("flash", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["build_id"]["port"] == hardware.port


def test_what_needs_a_runner_is_refused_without_one(builds: Builds) -> None:
    folder = builds.place(DIGITS, BOARD)
    done = builds.run("flash-and-test", DIGITS, "--board", BOARD, "-o", folder, "--serial-number", "066D")
    assert done.returncode == USAGE
    assert "--serial-number needs --runner" in done.stderr


def test_board_is_the_one_that_load_board_knows() -> None:
    """The machine of the tests above is the emulator of the board they name."""
    emulator = load_board(BOARD).emulator
    assert emulator is not None
    assert emulator.machine == "netduinoplus2"
