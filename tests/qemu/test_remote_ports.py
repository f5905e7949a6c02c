"""Ports of other computers: RFC 2217 for real, with an emulated board behind the server."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds
from tests.qemu.rfc2217_server import Server, serve
from tflm_forge.board import load_board
from tflm_forge.errors import DeviceError
from tflm_forge.link.messages import Space
from tflm_forge.link.session import open_session
from tflm_forge.runners.qemu import QemuTarget, open_target

pytestmark = [
    pytest.mark.tools,
    # pyserial 3.5, rfc2217.py: Thread.setDaemon and setName
    pytest.mark.filterwarnings(r"ignore:set(Daemon|Name)\(\) is deprecated:DeprecationWarning"),
]

DIGITS = EXAMPLES / "digits" / "digits.tflite"
BOARD = "mps2-an386"


@dataclass(frozen=True)
class Lab:
    """A board that hangs on another computer."""

    folder: Path
    target: QemuTarget
    server: Server


@pytest.fixture
def lab(builds: Builds) -> Iterator[Lab]:
    """Yield an emulated board behind an RFC 2217 server."""
    folder = builds.build(DIGITS, BOARD)
    with open_target(load_board(BOARD), folder / "firmware.elf") as target, serve(target.url) as server:
        yield Lab(folder=folder, target=target, server=server)


def test_session_over_rfc2217(lab: Lab) -> None:
    with open_session(lab.server.url) as session:
        assert session.connect().board == BOARD
        assert session.selftest().steps[-1].name == "Ok"
        pattern = bytes(range(64))
        session.write_tensor(Space.INPUT, 0, pattern)
        assert session.read_tensor(Space.INPUT, 0, 64) == pattern
        result = session.soak(20, 1)
        assert (result.status.name, result.loops_done) == ("Ok", 20)


def test_every_client_sets_its_own_speed(lab: Lab) -> None:
    for baud in (115200, 921600, 115200):
        with open_session(lab.server.url, baud=baud) as session:
            session.connect()
        assert lab.server.bauds[-1] == baud


def test_suite_over_rfc2217(builds: Builds, lab: Lab) -> None:
    done = builds.run(
        *("flash-and-test", DIGITS, "--board", BOARD, "-o", lab.folder, "--port", lab.server.url),
        *("--only", "self-check,numbers,soak", "--soak", 20, "--no-reference"),
    )
    assert done.returncode == 0, done.stderr
    assert lab.server.url in done.stdout
    assert lab.server.bauds[-1] == load_board(BOARD).baud


def test_server_that_goes_away_is_named(lab: Lab) -> None:
    with open_session(lab.server.url) as session:
        session.connect()
        dropper = threading.Timer(0.3, lab.server.drop)
        dropper.start()
        started = time.monotonic()
        with pytest.raises(DeviceError, match=r"connection to rfc2217://.* was lost"):
            session.soak(100_000, 1)
        assert time.monotonic() - started < session._timeouts.work_s
        dropper.join()


def test_no_server_is_named() -> None:
    with pytest.raises(DeviceError, match=r"can not open rfc2217://127\.0\.0\.1:1"):
        open_session("rfc2217://127.0.0.1:1")
