"""Ways to put firmware on a target: one module each, with `open_target(board, elf)`."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tflm_forge.board import Board


class Target(Protocol):
    """Firmware that runs somewhere, and the port to talk to it."""

    @property
    def url(self) -> str:
        """Return the port as any pyserial URL."""

    def alive(self) -> bool:
        """Return whether the target still runs, as far as the runner can know."""

    def last_words(self) -> str:
        """Return what the target's tool has said so far; empty when it was silent."""


class Runner(Protocol):
    """What a module of this package offers."""

    def open_target(self, board: Board, elf: Path) -> AbstractContextManager[Target]:
        """Put firmware on a target and run it; on leaving, nothing is left running.

        Raises:
            UsageError: the board has no such target.
            ToolError: the tool is missing or too old.
            DeviceError: the target died; raised with its last words when the body fails on a dead target.
        """
