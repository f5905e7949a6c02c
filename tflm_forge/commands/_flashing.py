"""How the commands that flash a board find out with what, where it answers, and flash it."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.config import Config, FlashTable

if TYPE_CHECKING:
    from tflm_forge.board import Board
    from tflm_forge.link.session import Session
    from tflm_forge.runners import FlashJob, Runner
    from tflm_forge.runners._flashing import Flashed

AUTO_PORT = "auto"
FLASH_FOLDER = "flash"
"""Beside the ELF: the log of the tools, and files made for them."""

_GDB = "gdb"
PORT_BACK_S = 5.0
"""How long a USB port may take to come back after its board was reset."""
_PORT_POLL_S = 0.2

RunnerOption = Annotated[
    str | None,
    typer.Option(
        "--runner", metavar="RUNNER", help="Flash the board first, with this runner; auto: the first installed."
    ),
]
SerialNumberOption = Annotated[
    str | None,
    typer.Option("--serial-number", metavar="SN", help="Of the probe or board, when several are connected."),
]
EraseOption = Annotated[
    bool, typer.Option("--erase", help="Erase all of the flash first, not only what the firmware needs.")
]
GdbServerOption = Annotated[
    str | None,
    typer.Option(
        "--gdb-server", metavar="HOST:PORT", help="For runner gdb; without one, the board's emulator is the target."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Flashing:
    """How a command flashes a board before it talks to it.

    Attributes:
        runner: the way to flash it.
        erase: whether to erase all of the flash first.
        serial_number: of the probe or board, or None.
        gdb_server: HOST:PORT for runner gdb; None with `is_emulated`.
        is_emulated: whether the target is the empty machine of the board's emulator.
    """

    runner: "Runner"
    erase: bool
    serial_number: str | None
    gdb_server: str | None
    is_emulated: bool

    def job(self, board: "Board", elf: Path, port: str | None, *, gdb_server: str | None = None) -> "FlashJob":
        """Return the job of flashing an ELF.

        Raises:
            UsageError: the ELF is none, or the board file's table for the runner is wrong.
            FitError: the ELF is larger than the board's flash.
        """
        from tflm_forge.runners import FlashJob, settings_of
        from tflm_forge.runners._image import read_image

        return FlashJob(
            board=board,
            image=read_image(elf, board),
            folder=elf.parent / FLASH_FOLDER,
            settings=settings_of(self.runner, board),
            erase=self.erase,
            serial_number=self.serial_number,
            gdb_server=gdb_server or self.gdb_server,
            port=port,
        )


def choose_flashing(
    board: "Board",
    table: FlashTable,
    *,
    runner: str | None,
    erase: bool = False,
    serial_number: str | None = None,
    gdb_server: str | None = None,
    port: str | None = None,
    dry_run: bool = False,
) -> Flashing:
    """Settle how a board is flashed, say aloud what was chosen for the user, and refuse early what can not work.

    Args:
        board: the board.
        table: [flash] of forge.toml.
        runner: a runner's name; None or "auto" takes forge.toml's, else the first of the board's that is installed.
        erase: whether to erase all of the flash first.
        serial_number: of the probe or board.
        gdb_server: HOST:PORT for runner gdb.
        port: the board's serial port, when the user named one.
        dry_run: whether commands are only to be told; then no tool is needed.

    Raises:
        UsageError: no such runner, nothing for it to talk to, an option it lacks, or a wrong table in the board file.
        ToolError: the runner is not installed, or none of the board's.
    """
    from tflm_forge.console import show_note
    from tflm_forge.errors import UsageError
    from tflm_forge.runners import AUTO_RUNNER, choose_runner, refuse_lacking, settings_of

    named = runner if runner not in (None, AUTO_RUNNER) else table.runner
    chosen = choose_runner(board, named, dry_run=dry_run)
    if named in (None, AUTO_RUNNER):
        which = "that is installed" if chosen.is_installed else "and none is installed"
        show_note(f"runner: {chosen.name}, the first of those for {board.name} {which}; --runner chooses")
    serial_number = serial_number or (table.serial_number if chosen.can.serial_number else None)
    refuse_lacking(chosen, erase=erase, serial_number=serial_number, gdb_server=gdb_server, dry_run=dry_run)
    settings_of(chosen, board)
    server = gdb_server or (table.gdb_server if chosen.name == _GDB else None)
    is_emulated = False
    if chosen.name == _GDB and server is None and "server" not in board.runners.get(_GDB, {}):
        if board.emulator is None or port is not None:
            raise UsageError(
                f"runner gdb needs a gdb server for {board.name}" + (f" on {port}" if port and board.emulator else ""),
                hint="Start one (openocd, pyocd gdbserver, JLinkGDBServer) and add --gdb-server HOST:PORT.",
            )
        is_emulated = True
        show_note(f"target: QEMU's empty machine {board.emulator.machine}; --gdb-server HOST:PORT takes another")
    return Flashing(
        runner=chosen,
        erase=erase,
        serial_number=serial_number,
        gdb_server=server,
        is_emulated=is_emulated,
    )


@dataclass(frozen=True, kw_only=True)
class Way:
    """How firmware gets to its target.

    Attributes:
        port: where the target answers; None: the emulator, or with `flashing` the port that the board's USB ids give.
        flashing: how the board is flashed first; None: it runs the firmware already, or is the emulator.
    """

    port: str | None
    flashing: Flashing | None

    @property
    def is_hardware(self) -> bool:
        """Whether the target is a board, as far as forge can know."""
        return self.port is not None if self.flashing is None else not self.flashing.is_emulated


def choose_way(
    board: "Board",
    config: Config,
    *,
    port: str | None,
    runner: str | None,
    erase: bool = False,
    serial_number: str | None = None,
    gdb_server: str | None = None,
) -> Way:
    """Settle how firmware gets to its target, for a command that can also do without flashing.

    Raises:
        UsageError: an option that only a runner understands, without one; and as `choose_flashing`.
        ToolError: as `choose_flashing`.
        DeviceError: as `choose_port`.
    """
    from tflm_forge.errors import UsageError
    from tflm_forge.runners import EMULATOR

    if runner is None or runner == EMULATOR:
        for option, value in (("erase", erase), ("serial-number", serial_number), ("gdb-server", gdb_server)):
            if value:
                raise UsageError(
                    f"--{option} needs --runner: only then the board is flashed", hint="Add --runner auto."
                )
        return Way(port=choose_port(board, port), flashing=None)
    named = None if port == AUTO_PORT else port
    flashing = choose_flashing(
        board,
        config.flash,
        runner=runner,
        erase=erase,
        serial_number=serial_number,
        gdb_server=gdb_server,
        port=named,
    )
    return Way(port=named, flashing=flashing)


def choose_port(board: "Board", port: str | None) -> str | None:
    """Return the port's URL; None: the board's emulator.

    Without `--port` the emulator is used; a board that has none, or `--port auto`, is found by its USB ids.

    Raises:
        DeviceError: no board of the kind is connected, or several are.
    """
    if port is not None and port != AUTO_PORT:
        return port
    if port is None and board.emulator is not None:
        return None
    return find_board_port(board)


def find_board_port(board: "Board", *, serial_number: str | None = None, wait_s: float = 0.0) -> str:
    """Return the port of a connected board.

    Args:
        board: the board.
        serial_number: of the board's probe, whose serial port has the same one; None: any.
        wait_s: how long to look again while there is none.

    Raises:
        DeviceError: no board of the kind is connected, or several are.
    """
    from tflm_forge.errors import DeviceError
    from tflm_forge.link.port import list_ports
    from tflm_forge.link.ports import find_port

    deadline = time.monotonic() + wait_s
    while True:
        ports = list_ports()
        wanted = (serial_number or "").lower()
        same = [port for port in ports if wanted in port.serial_number.lower()]
        try:
            return find_port(board, same or ports)
        except DeviceError:
            if not board.usb_ids or time.monotonic() >= deadline:
                raise
        time.sleep(_PORT_POLL_S)


def find_flashed_port(board: "Board", flashing: Flashing) -> str:
    from tflm_forge.errors import DeviceError

    try:
        return find_board_port(board, serial_number=flashing.serial_number, wait_s=PORT_BACK_S)
    except DeviceError as error:
        raise DeviceError(
            f"{board.name} is flashed, but where it answers is not known: {error.message}",
            hint=f"Name its port with --port. {error.hint}",
            reasons=error.reasons,
        ) from error


def flash_board(flashing: Flashing, job: "FlashJob") -> "Flashed":
    """Flash a board, with progress on stderr.

    Raises:
        UsageError, ToolError, DeviceError: as `_flashing.flash` has them.
    """
    from tflm_forge.console import show_progress
    from tflm_forge.runners._flashing import flash

    with show_progress(f"flashing {job.image.elf} with {flashing.runner.title}"):
        return flash(flashing.runner, job)


@contextlib.contextmanager
def open_empty_machine(board: "Board", elf: Path, flashing: Flashing) -> "Iterator[tuple[Flashed, Session]]":
    """Start the board's emulator without firmware, flash it through its gdb server, and yield a session with it.

    The session is opened first: QEMU waits for whoever listens to the serial port before it does anything else.
    """
    import tempfile

    from tflm_forge.link.session import open_session
    from tflm_forge.runners.qemu import open_target

    with tempfile.TemporaryDirectory() as folder:
        server = Path(folder) / "gdb"
        with (
            open_target(board, None, gdb_socket=server) as target,
            open_session(target.url, target=target) as session,
        ):
            flashed = flash_board(flashing, flashing.job(board, elf, None, gdb_server=str(server)))
            yield flashed, session
