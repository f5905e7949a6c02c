"""Reads the memory of an emulated machine, over QEMU's own protocol (QMP, qemu's docs/interop/qmp-spec)."""

import json
import socket
from pathlib import Path
from typing import IO, Any

from tflm_forge.errors import DeviceError

_TIMEOUT_S = 10.0


def save_memory(qmp_socket: Path, address: int, size_bytes: int, target: Path) -> None:
    """Write a piece of the machine's physical memory into a file.

    Args:
        qmp_socket: the Unix socket QEMU was started with.
        address: first address.
        size_bytes: how many bytes.
        target: the file; QEMU itself writes it.

    Raises:
        DeviceError: QEMU does not answer, or refuses.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(str(qmp_socket))
            with connection.makefile("rw", encoding="utf-8") as stream:
                json.loads(stream.readline())  # the greeting
                _execute(stream, "qmp_capabilities")
                _execute(stream, "pmemsave", val=address, size=size_bytes, filename=str(target))
    except (OSError, ValueError) as error:
        raise DeviceError(f"QEMU's memory can not be read: {error}") from error


def _execute(stream: IO[str], command: str, **arguments: Any) -> None:
    stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    stream.flush()
    while True:
        answer = json.loads(stream.readline())
        if "error" in answer:
            raise DeviceError(f"QEMU refuses {command}: {answer['error'].get('desc', 'no reason given')}")
        if "return" in answer:
            return
