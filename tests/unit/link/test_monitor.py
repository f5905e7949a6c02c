"""`forge monitor` as a user runs it, on a socket and on a terminal device."""

import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.link.simulated_device import SimulatedDevice, frame_bytes

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 30.0


class Monitor:
    """A running `forge monitor` whose lines are collected."""

    def __init__(self, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tflm_forge", "monitor", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.lines: list[str] = []
        self._came = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._came:
                self.lines.append(line.decode().rstrip("\n"))
                self._came.notify_all()

    def has(self, words: str, timeout_s: float) -> bool:
        with self._came:
            return self._came.wait_for(lambda: any(words in line for line in self.lines), timeout_s)

    def wait_for(self, words: str) -> None:
        found = self.has(words, TIMEOUT_S)
        if not found:
            self.process.kill()
            self.end()
        assert found, (words, self.lines)

    def press(self, keys: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(keys)
        self.process.stdin.flush()

    def end(self) -> tuple[int, str]:
        code = self.process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        streams = (self.process.stdin, self.process.stdout, self.process.stderr)
        assert self.process.stderr is not None
        errors = self.process.stderr.read().decode()
        for stream in streams:
            if stream is not None:
                stream.close()
        return code, errors


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT_S)
        yield server


def test_lines_frames_and_keys_over_a_socket(listener: socket.socket) -> None:
    monitor = Monitor("--port", f"socket://127.0.0.1:{listener.getsockname()[1]}")
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(TIMEOUT_S)
        device = SimulatedDevice()
        connection.sendall(device.boot() + device.take(frame_bytes(0x01, 1, b"")))
        monitor.wait_for("forge 0.1.0 board sim")
        monitor.wait_for("<answer to INFO #1: sim")
        connection.sendall(b"> ")
        monitor.wait_for("> ")
        monitor.press(b"help\r")
        received = b""
        while len(received) < 5:
            received += connection.recv(100)
        assert received == b"help\r"
        monitor.press(b"x\x1dnot sent")
        assert connection.recv(100) == b"x"
        code, errors = monitor.end()
    assert code == 0, errors
    assert "Ctrl-] ends it" in errors


def test_ctrl_c_is_how_one_leaves(listener: socket.socket) -> None:
    monitor = Monitor("--port", f"socket://127.0.0.1:{listener.getsockname()[1]}")
    connection, _ = listener.accept()
    with connection:
        connection.sendall(b"hello\n")
        monitor.wait_for("hello")
        monitor.process.send_signal(signal.SIGINT)
        code, errors = monitor.end()
    assert (code, "Traceback" in errors) == (0, False)


def test_the_other_side_goes_away(listener: socket.socket) -> None:
    monitor = Monitor("--port", f"socket://127.0.0.1:{listener.getsockname()[1]}")
    connection, _ = listener.accept()
    connection.close()
    code, errors = monitor.end()
    assert code == 6
    assert "was lost" in errors


def test_a_serial_device_is_opened_for_one_program_alone() -> None:
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    try:
        monitor = Monitor("--port", name, "--baud", "9600")
        # Opening a port drops what came before, and nobody says when it is open.
        for _ in range(int(TIMEOUT_S / 0.2)):
            os.write(master, b"on a terminal\r\n")
            if monitor.has("on a terminal", 0.2):
                break
        monitor.wait_for("on a terminal")
        second = Monitor("--port", name)
        code, errors = second.end()
        assert code == 6
        assert f"{name} is in use by another program" in errors
        monitor.press(b"\x1d")
        assert monitor.end()[0] == 0
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((), 2, "no port given"),
        (("--port", "/dev/not_there"), 6, "there is no port /dev/not_there"),
        (("--board", "mps2-an386"), 6, "has no usb_ids in its board file"),
        (("--board", "microbitt"), 2, "'microbit'"),
    ],
)
def test_mistakes(args: tuple[str, ...], code: int, words: str) -> None:
    found, errors = Monitor(*args).end()
    assert found == code
    assert words in errors
    assert "Traceback" not in errors
