"""A serial server after RFC 2217, like the example in pyserial's sources: one port, one client after the other."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import serial
from serial.rfc2217 import PortManager

_POLL_S = 0.05


@dataclass
class Server:
    """What a test sees of the server."""

    url: str
    bauds: list[int] = field(default_factory=list)
    _client: socket.socket | None = None

    def drop(self) -> None:
        """Close the connection of the client, as a server that dies does."""
        client = self._client
        assert client is not None
        client.shutdown(socket.SHUT_RDWR)


class _Connection:
    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._client.sendall(data)


@contextlib.contextmanager
def serve(url: str, *, baud: int = 9600) -> Iterator[Server]:
    """Offer a port of pyserial's on TCP."""
    port = serial.serial_for_url(url, baudrate=baud, timeout=_POLL_S)
    with port, socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(url=f"rfc2217://127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=_accept, args=(listener, port, server), daemon=True)
        thread.start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError, AssertionError):
            server.drop()
        thread.join(10.0)


def _accept(listener: socket.socket, port: serial.SerialBase, server: Server) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            server._client = client
            _serve_client(client, port, server)


def _serve_client(client: socket.socket, port: serial.SerialBase, server: Server) -> None:
    connection = _Connection(client)
    manager = PortManager(port, connection)
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set():
            data = port.read(1)
            data += port.read(port.in_waiting) if data else b""
            if data:
                connection.write(b"".join(manager.escape(data)))

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        while data := client.recv(4096):
            port.write(b"".join(manager.filter(data)))
            if not server.bauds or server.bauds[-1] != port.baudrate:
                server.bauds.append(port.baudrate)
    except OSError:
        return
    finally:
        ended.set()
        sender.join(10.0)
