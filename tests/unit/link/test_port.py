import os
import pty
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tflm_forge.errors import DeviceError, UsageError
from tflm_forge.link import port as port_module
from tflm_forge.link.port import PortLost, list_ports, open_port

ALL_BYTES = bytes(range(256))


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def url_of(server: socket.socket) -> str:
    return f"socket://127.0.0.1:{server.getsockname()[1]}"


def test_socket_both_ways_and_its_end(server: socket.socket) -> None:
    port = open_port(url_of(server))
    peer, _ = server.accept()
    with peer:
        port.write(ALL_BYTES)
        assert peer.recv(1000) == ALL_BYTES
        assert port.read(0.0) == b""
        peer.sendall(ALL_BYTES)
        assert port.read(1.0) == ALL_BYTES
        assert port.baud is None
    with pytest.raises(PortLost, match="was lost"):
        port.read(1.0)
    port.close()
    port.close()


def test_pty_both_ways_and_its_end() -> None:
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    try:
        port = open_port(name, baud=921600)
        assert (port.url, port.baud) == (name, 921600)
        port.write(ALL_BYTES)
        got = b""
        while len(got) < 256:
            got += os.read(master, 1000)
        assert got == ALL_BYTES
        assert port.read(0.0) == b""
        os.write(master, ALL_BYTES)
        got = b""
        while len(got) < 256:
            got += port.read(1.0)
        assert got == ALL_BYTES
        with pytest.raises(DeviceError, match="in use by another program"):
            open_port(name)
    finally:
        os.close(slave)
        os.close(master)
    with pytest.raises(PortLost):
        port.read(1.0)
    port.close()


def test_pyserial_urls() -> None:
    port = open_port("loop://")
    port.write(ALL_BYTES)
    got = b""
    while len(got) < 256:
        got += port.read(1.0)
    assert got == ALL_BYTES
    port.close()
    with pytest.raises(PortLost):
        port.write(b"x")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("socket://nowhere", "needs a host and a port number"),
        ("socket://:99", "needs a host and a port number"),
        ("socket://127.0.0.1:99999", "is not a port"),
        ("sockt://127.0.0.1:5", "is not a port"),
        ("rfc2217://", "is not a port"),
    ],
)
def test_wrong_urls(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        open_port(url)
    assert "socket://127.0.0.1:5555" in caught.value.hint


def test_missing_port() -> None:
    with pytest.raises(DeviceError, match="there is no port /dev/ttyNOT0") as caught:
        open_port("/dev/ttyNOT0")
    assert "this computer" in caught.value.hint.lower()


def test_not_a_serial_port(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DeviceError, match="is not a serial port"):
        open_port(str(file))


def test_no_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise port_module.serial.SerialException(13, "could not open port /dev/ttyACM0: Permission denied")

    monkeypatch.setattr(port_module.serial, "serial_for_url", refuse)
    with pytest.raises(DeviceError, match="no permission to open /dev/ttyACM0") as caught:
        open_port("/dev/ttyACM0")
    assert "dialout" in caught.value.hint


def test_windows_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise port_module.serial.SerialException(
            "could not open port 'COM5': PermissionError(13, 'Access is denied.', None, 5)"
        )

    monkeypatch.setattr(port_module.serial, "serial_for_url", refuse)
    with pytest.raises(DeviceError, match="COM5 is in use"):
        open_port("COM5")


def test_nobody_listens(server: socket.socket) -> None:
    url = url_of(server)
    server.close()
    with pytest.raises(DeviceError, match=r"can not connect to socket://127\.0\.0\.1:.*refused"):
        open_port(url)


def test_waits_for_a_server_that_is_just_starting() -> None:
    with socket.socket() as late:
        late.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        late.bind(("127.0.0.1", 0))
        timer = threading.Timer(0.1, late.listen)
        timer.start()
        port = open_port(url_of(late), wait_s=10)
        port.close()
        timer.join()


def test_stops_waiting_when_it_is_not_worth_it(server: socket.socket) -> None:
    url = url_of(server)
    server.close()
    started = time.monotonic()
    with pytest.raises(DeviceError):
        open_port(url, wait_s=60, worth_waiting=lambda: False)
    assert time.monotonic() - started < 30


def test_ports_of_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        def __init__(self, device: str, vid: int | None, serial_number: str | None) -> None:
            self.device, self.vid, self.pid, self.serial_number = device, vid, vid, serial_number
            self.description = "board" if vid else None

    monkeypatch.setattr(
        port_module.serial_ports,
        "comports",
        lambda: [Found("/dev/ttyS0", None, None), Found("/dev/ttyACM1", 0x0D28, "99")],
    )
    ports = list_ports()
    assert [(p.url, p.usb_id, p.serial_number, p.description) for p in ports] == [
        ("/dev/ttyACM1", "0D28:0D28", "99", "board"),
        ("/dev/ttyS0", "", "", ""),
    ]
