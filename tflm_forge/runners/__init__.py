"""Ways to put firmware on a target, one module each: `qemu` runs it, all others flash a board.

To add a runner that flashes:

1. Write `runners/<name>.py`; `<name>` is the word a user types. It offers `RUNNER`, a `Runner`.
2. `plan` turns a `FlashJob` into a `Plan`: the exact commands, in order, without running anything. A command whose
   tool says success with more than its exit status has that text in `must_say`.
3. Declare in `can` what the tool is able to; options it lacks are refused here, in one place.
4. Name in `keys` what its table `[runner.<name>]` of a board file may hold, and in `required` what it must.
5. Give its messages in `failures`, each with the source that shows it. What they mean to a user is in `_failures.py`.
6. Add its row to the table of commands in `tests/unit/runners/test_commands.py`, and its part of `docs/flashing.md`.
7. Put its table into the board files that it can flash.
"""

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from tflm_forge.board import Board
from tflm_forge.errors import ToolError, UsageError
from tflm_forge.proc import has_tool
from tflm_forge.registry import list_names, unknown_name
from tflm_forge.runners._failures import Failure
from tflm_forge.runners._image import Image

EMULATOR = "qemu"
"""The one runner that does not flash: firmware is gone when it ends."""
AUTO_RUNNER = "auto"

Settings = Mapping[str, str | int]


class Target(Protocol):
    """Firmware that runs somewhere, and the port to talk to it."""

    @property
    def url(self) -> str:
        """Return the port as any pyserial URL."""

    def alive(self) -> bool:
        """Return whether the target still runs, as far as the runner can know."""

    def last_words(self) -> str:
        """Return what the target's tool has said so far; empty when it was silent."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a runner is able to.

    Attributes:
        erase: erase all of the flash first, not only what the image needs.
        verify: read the flash back and compare it with the image.
        reset: start the firmware afterwards.
        serial_number: choose one of several probes or boards.
        dry_run: tell its commands without running them.
    """

    erase: bool = False
    verify: bool = False
    reset: bool = True
    serial_number: bool = False
    dry_run: bool = True


@dataclass(frozen=True, kw_only=True)
class FlashJob:
    """What is to be flashed where.

    Attributes:
        board: the board.
        image: the firmware.
        folder: where files for the tool and its log go.
        settings: the board file's table for this runner.
        erase: erase all of the flash first.
        serial_number: of the probe or board to use, when there are several.
        gdb_server: HOST:PORT of a gdb server, for runner gdb.
        port: the board's serial port, for tools that flash over it.
    """

    board: Board
    image: Image
    folder: Path
    settings: Settings = field(default_factory=dict)
    erase: bool = False
    serial_number: str | None = None
    gdb_server: str | None = None
    port: str | None = None

    @cached_property
    def bin(self) -> Path:
        """Where the image is as a plain binary: beside the ELF when that file has these bytes, else one to be made."""
        beside = self.image.elf.with_suffix(".bin")
        try:
            same = beside.read_bytes() == self.image.data
        except OSError:
            same = False
        return beside if same else self.folder / beside.name

    def text(self, key: str, default: str = "") -> str:
        """Return a setting as text."""
        return str(self.settings.get(key, default))


@dataclass(frozen=True, kw_only=True)
class Command:
    """One run of a tool.

    Attributes:
        argv: the program and its arguments.
        timeout_s: seconds after which it is ended.
        must_say: text in its output without which it has not worked, whatever its exit status; empty: none.
        reads_back: a file in which it leaves the flash's bytes, to be compared with the image.
        cwd: the folder it runs in, or None.
        env: variables added to its environment.
    """

    argv: tuple[str, ...]
    timeout_s: float
    must_say: str = ""
    reads_back: Path | None = None
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DriveCopy:
    """A file that is copied onto a drive; the board that shows the drive flashes it.

    Attributes:
        source: the file.
        drive: the drive; None: it is not there yet.
        label: what the drive is called.
    """

    source: Path
    drive: Path | None
    label: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What flashing takes.

    Attributes:
        steps: what is done, in this order.
        files: contents of the files that the steps name, besides the ELF.
        identify: prints the chip's id, before anything is written; None: the runner can not, or the id is not known.
        chip_id: finds the id in that output, its first group, in hexadecimal.
        chip_id_mask: which bits of the id the tool prints.
    """

    steps: tuple[Command | DriveCopy, ...]
    files: Mapping[Path, bytes] = field(default_factory=dict)
    identify: Command | None = None
    chip_id: str = ""
    chip_id_mask: int = 0xFFFF_FFFF


@dataclass(frozen=True, kw_only=True)
class Runner:
    """A way to flash a board.

    Attributes:
        name: the word a user types; the module's name.
        title: the tool's own name.
        tools: its programs; one of them must be installed. Empty: it needs none.
        install: how to get it.
        can: what it is able to.
        plan: gives the commands of a job.
        failures: what its messages mean.
        keys: what its table in a board file may hold.
        required: which of these it must hold.
        probes: USB ids ("VID:PID") of the probes or boards it talks to, when it talks to one kind only.
        unlock: how a user unlocks a chip with it, one sentence; empty: it can not.
    """

    name: str
    title: str
    tools: tuple[str, ...]
    install: str
    can: Capabilities
    plan: Callable[[FlashJob], Plan]
    failures: tuple[Failure, ...]
    keys: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    unlock: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether it could run on this computer."""
        return not self.tools or any(has_tool(tool) for tool in self.tools)

    @property
    def missing(self) -> str:
        """What is to be installed, as one phrase."""
        return f"{self.name}: {' or '.join(self.tools)} ({self.install})"


def list_runners() -> tuple[str, ...]:
    """Return the names of the runners that flash, sorted."""
    return tuple(name for name in list_names(sys.modules[__name__]) if name != EMULATOR)


def load_runner(name: str) -> Runner:
    """Return a runner that flashes.

    Raises:
        UsageError: no such runner (names the nearest), or the emulator, which does not flash.
    """
    if name == EMULATOR:
        raise UsageError(
            "runner 'qemu' runs firmware without flashing anything",
            hint="`forge flash-and-test` uses it by itself where no --runner and no --port is given.",
        )
    if name not in list_runners():
        raise unknown_name("runner", name, (*list_runners(), EMULATOR))
    runner: Runner = importlib.import_module(f"{__name__}.{name}").RUNNER
    return runner


def choose_runner(board: Board, name: str | None, *, dry_run: bool = False) -> Runner:
    """Return the runner a user named, or the first of the board's that is installed here.

    Args:
        board: the board.
        name: a runner's name; None or "auto" leaves the choice to the board.
        dry_run: whether commands are only to be told: where none is installed, the board's first will do.

    Raises:
        UsageError: no such runner, or the board has none.
        ToolError: none of the board's runners is installed; says what to install for each.
    """
    if name is not None and name != AUTO_RUNNER:
        return load_runner(name)
    if not board.runners:
        raise UsageError(
            f"{board.path}: the board names no runner", hint=f"Choose one with --runner: {', '.join(list_runners())}."
        )
    runners = [_load_named(board, each) for each in board.runners]
    for runner in runners:
        if runner.is_installed:
            return runner
    if dry_run:
        return runners[0]
    raise ToolError(
        f"no tool is installed that flashes a {board.name}",
        reasons=[runner.missing for runner in runners],
        hint="Install one of them, or name another with --runner.",
    )


def _load_named(board: Board, name: str) -> Runner:
    try:
        return load_runner(name)
    except UsageError as error:
        raise UsageError(f"{board.path}: [runner.{name}]: {error.message}", hint=error.hint) from error


def settings_of(runner: Runner, board: Board) -> Settings:
    """Return the board file's table for a runner, checked.

    Raises:
        UsageError: a key is unknown or missing.
    """
    table = f"{board.path}: [runner.{runner.name}]"
    settings = board.runners.get(runner.name, {})
    for key in settings:
        if key not in runner.keys:
            error = unknown_name("key", key, runner.keys)
            raise UsageError(f"{table} {error.message}", hint=error.hint)
    missing = [key for key in runner.required if key not in settings]
    if missing and not settings:
        known = ", ".join(board.runners) or "none"
        raise UsageError(
            f"{board.name} can not be flashed with {runner.name}: its board file has no table [runner.{runner.name}]",
            hint=f"Runners of {board.name}: {known}. The table needs: {', '.join(runner.required)}.",
        )
    if missing:
        raise UsageError(f"{table} {missing[0]} is missing", hint=f"It needs: {', '.join(runner.required)}.")
    return settings


def refuse_lacking(
    runner: Runner,
    *,
    erase: bool = False,
    serial_number: str | None = None,
    gdb_server: str | None = None,
    dry_run: bool = False,
) -> None:
    """Refuse what a runner does not support.

    Raises:
        UsageError: the option was given all the same.
        ToolError: the runner is not installed, and commands are to be run, not only told.
    """
    asked: Sequence[tuple[str, bool, bool]] = (
        ("--erase", erase, runner.can.erase),
        ("--serial-number", serial_number is not None, runner.can.serial_number),
        ("--gdb-server", gdb_server is not None, runner.name == "gdb"),
        ("--dry-run", dry_run, runner.can.dry_run),
    )
    for option, wanted, supported in asked:
        if wanted and not supported:
            raise UsageError(
                f"runner {runner.name} does not support {option}",
                hint=f"Leave it out, or choose another runner with --runner: {', '.join(list_runners())}.",
            )
    if not runner.is_installed and not dry_run:
        raise ToolError(f"runner {runner.name} is not installed", hint=f"Install {runner.missing}.")
