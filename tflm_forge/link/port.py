"""Opens ports by URL and moves bytes: the only user of pyserial."""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import serial
from serial.tools import list_ports as serial_ports

from tflm_forge.errors import DeviceError, ForgeError, UsageError

DEFAULT_BAUD = 115200

_POLL_S = 0.01
"""How often a silent serial port looks at the clock: changing its time-out instead is slow on some ports."""
_WRITE_TIMEOUT_S = 10.0
"""How long a port may refuse bytes before it counts as stuck (flow control, or a stopped emulator)."""
_CONNECT_RETRY_S = 0.02
_CHUNK_BYTES = 65536
_PORTS_SHOWN = 8
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)

_URL_HINT = "Examples: /dev/ttyACM0, COM5, socket://127.0.0.1:5555, rfc2217://lab:4000."


class PortLost(DeviceError):
    """An open port stopped working: cable pulled, other side gone."""


@dataclass(frozen=True, kw_only=True)
class PortInfo:
    """A serial port of this computer; `usb_id` is "VID:PID" or empty."""

    url: str
    description: str
    usb_id: str
    serial_number: str


class Port(Protocol):
    """Bytes in both directions."""

    @property
    def url(self) -> str:
        """What the user called it."""

    @property
    def baud(self) -> int | None:
        """Bits a second, or None when the port has no speed of its own."""

    def read(self, timeout_s: float) -> bytes:
        """Return what has arrived, waiting for the first byte at most this long; empty when nothing came."""

    def write(self, data: bytes) -> None:
        """Send all bytes."""

    def close(self) -> None:
        """Give the port back; closing twice is allowed."""


def open_port(
    url: str,
    *,
    baud: int = DEFAULT_BAUD,
    wait_s: float = 0.0,
    worth_waiting: Callable[[], bool] = lambda: True,
) -> Port:
    """Open a port.

    Args:
        url: a device name or any pyserial URL.
        baud: bits a second, for ports that have a speed.
        wait_s: how long to try again while the port is missing or refuses (an emulator that is just starting,
            a USB port that comes back after a reset).
        worth_waiting: asked before each further try.

    Raises:
        UsageError: the URL is not one.
        DeviceError: missing, busy, not permitted, not a serial port, or unreachable.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return _SocketPort(url) if url.startswith("socket://") else _SerialPort(url, baud)
        except DeviceError:
            if time.monotonic() >= deadline or not worth_waiting():
                raise
        time.sleep(_CONNECT_RETRY_S)


def list_ports() -> tuple[PortInfo, ...]:
    """Return the serial ports of this computer, USB ones first."""
    found = [
        PortInfo(
            url=p.device,
            description=p.description if p.description not in (None, "n/a") else "",
            usb_id=f"{p.vid:04X}:{p.pid:04X}" if p.vid is not None and p.pid is not None else "",
            serial_number=p.serial_number or "",
        )
        for p in serial_ports.comports()
    ]
    return tuple(sorted(found, key=lambda p: (not p.usb_id, p.url)))


class _SocketPort:
    """A TCP socket; pyserial's own reads it byte by byte."""

    baud = None

    def __init__(self, url: str) -> None:
        self.url = url
        host, port = _host_and_port(url)
        try:
            self._socket = socket.create_connection((host, port), timeout=_WRITE_TIMEOUT_S)
        except OSError as error:
            raise DeviceError(
                f"can not connect to {url}: {_words(error)}",
                hint="Is the emulator or the serial server running, and does it listen there?",
            ) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, timeout_s: float) -> bytes:
        try:
            self._socket.settimeout(max(timeout_s, 0.0))
            data = self._socket.recv(_CHUNK_BYTES)
            if data and _QUICKACK is not None:
                # Else the other side, sending byte by byte, waits up to 40 ms for an acknowledgement.
                self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        except (TimeoutError, BlockingIOError):
            return b""
        except OSError as error:
            raise _lost(self.url, _words(error)) from error
        if not data:
            raise _lost(self.url, "the other side closed the connection")
        return data

    def write(self, data: bytes) -> None:
        try:
            self._socket.settimeout(_WRITE_TIMEOUT_S)
            self._socket.sendall(data)
        except TimeoutError as error:
            raise _stuck(self.url) from error
        except OSError as error:
            raise _lost(self.url, _words(error)) from error

    def close(self) -> None:
        self._socket.close()


class _SerialPort:
    """A serial device, or any URL pyserial knows."""

    def __init__(self, url: str, baud: int) -> None:
        self.url = url
        self.baud: int | None = baud
        if url.startswith("rfc2217://"):
            _host_and_port(url)
        exclusive = True if os.name == "posix" and "://" not in url else None
        # pyserial's rfc2217 refuses a write time-out; its socket has one of its own, of 5 s.
        write_timeout_s = None if url.startswith("rfc2217://") else _WRITE_TIMEOUT_S
        try:
            self._serial = serial.serial_for_url(
                url, baudrate=baud, timeout=_POLL_S, write_timeout=write_timeout_s, exclusive=exclusive
            )
        except (serial.SerialException, OSError, ValueError, KeyError, NotImplementedError) as error:
            raise _open_error(url, baud, error) from error

    def read(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        try:
            while True:
                waiting = self._serial.in_waiting
                if waiting or time.monotonic() < deadline:
                    data: bytes = self._serial.read(max(waiting, 1))
                    if data:
                        return data
                else:
                    return b""
        except (serial.SerialException, OSError, TypeError) as error:
            # pyserial raises TypeError when the port is closed under a read.
            raise _lost(self.url, _words(error)) from error

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except serial.SerialTimeoutException as error:
            raise _stuck(self.url) from error
        except (serial.SerialException, OSError) as error:
            raise _lost(self.url, _words(error)) from error

    def close(self) -> None:
        with contextlib.suppress(serial.SerialException, OSError):
            self._serial.close()


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is not a port: {error}", hint=_URL_HINT) from error
    if not host or not port:
        raise UsageError(f"{url!r} is not a port: it needs a host and a port number", hint=_URL_HINT)
    return host, port


def _open_error(url: str, baud: int, error: Exception) -> ForgeError:
    number = getattr(error, "errno", None)
    text = str(error)
    if isinstance(error, ValueError | KeyError):
        if "baud" in text.lower():
            return UsageError(f"{url} can not run at {baud} baud: {text}", hint="Give another --baud.")
        return UsageError(f"{url!r} is not a port: {text}", hint=_URL_HINT)
    if "://" in url:
        if "expected a string in the form" in text:
            return UsageError(f"{url!r} is not a port: {text}", hint=_URL_HINT)
        return DeviceError(f"can not open {url}: {text}", hint="Is the serial server running and reachable?")
    if number in (errno.EBUSY, errno.EAGAIN) or "exclusively lock" in text or "Access is denied" in text:
        return DeviceError(
            f"{url} is in use by another program",
            hint="Close the serial monitor, IDE or debugger that holds it.",
        )
    if number in (errno.EACCES, errno.EPERM):
        return DeviceError(
            f"no permission to open {url}",
            hint="Add yourself to its group and log in again: sudo usermod -aG dialout $USER",
        )
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO) or "FileNotFoundError" in text:
        return DeviceError(f"there is no port {url}", hint=_present_ports_hint())
    if "Could not configure port" in text or number in (errno.ENOTTY, errno.EISDIR):
        return DeviceError(f"{url} is not a serial port ({text})", hint=_present_ports_hint())
    return DeviceError(f"can not open {url}: {text}", hint=_present_ports_hint())


def _present_ports_hint() -> str:
    names = [f"{p.url} ({p.description})" if p.description else p.url for p in list_ports()[:_PORTS_SHOWN]]
    return f"Ports of this computer: {', '.join(names)}." if names else "This computer has no serial port now."


def _lost(url: str, why: str) -> PortLost:
    return PortLost(
        f"the connection to {url} was lost: {why}",
        hint="Was the cable pulled, or the device or emulator ended?",
    )


def _stuck(url: str) -> DeviceError:
    return DeviceError(
        f"{url} takes no bytes since {_WRITE_TIMEOUT_S:g} s",
        hint="The device does not read, or flow control holds it.",
    )


def _words(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")
