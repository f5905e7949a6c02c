"""Reads single keys from the terminal, without waiting for a line and without showing them."""

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator

ReadKeys = Callable[[], bytes]
"""Returns the bytes of the keys pressed since the last call; empty when there are none."""

_CHUNK_BYTES = 256


@contextlib.contextmanager
def open_keyboard() -> Iterator[ReadKeys]:
    """Yield a function that returns the keys pressed; Ctrl-C stays what it is.

    Where stdin is no terminal its bytes are passed on as they come.
    """
    if sys.platform == "win32":
        yield _windows_keys
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor) if os.isatty(descriptor) else None
    try:
        if before is not None:
            tty.setcbreak(descriptor)
        yield _Reader(descriptor).read
    finally:
        if before is not None:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class _Reader:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._ended = False

    def read(self) -> bytes:
        if self._ended or not select.select([self._descriptor], [], [], 0)[0]:
            return b""
        data = os.read(self._descriptor, _CHUNK_BYTES)
        self._ended = not data
        return data


def _windows_keys() -> bytes:
    import importlib

    console = importlib.import_module("msvcrt")
    keys = b""
    while console.kbhit():
        keys += console.getch()
    return keys
