"""Runs firmware in QEMU: one process, its first serial port as a pyserial URL."""

import contextlib
import functools
import re
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tflm_forge import proc
from tflm_forge.board import Board, Emulator
from tflm_forge.errors import DeviceError, ForgeError, ToolError, UsageError

PROGRAM = "qemu-system-arm"

_MIN_VERSION = (6, 2)
_VERSION_TIMEOUT_S = 10.0
_LAST_LINES = 20
_WAITING = "info: QEMU waiting for connection"


@dataclass(frozen=True, kw_only=True)
class QemuTarget:
    """Firmware in a running QEMU."""

    url: str
    argv: tuple[str, ...]
    process: proc.Process
    errors: IO[bytes]

    def alive(self) -> bool:
        """Return whether QEMU still runs."""
        return self.process.poll() is None

    def last_words(self) -> str:
        """Return the last lines QEMU has written, and how it ended when it did."""
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace")
        lines = [line for line in text.rstrip().splitlines() if _WAITING not in line][-_LAST_LINES:]
        status = self.process.poll()
        if status is not None:
            lines.append(f"{PROGRAM} ended with {f'signal {-status}' if status < 0 else f'status {status}'}")
        return "\n".join(lines)

    def exit_status(self, timeout_s: float) -> int | None:
        """Wait for QEMU to leave by itself; None: it is still there."""
        return proc.wait(self.process, timeout_s=timeout_s)


@contextlib.contextmanager
def open_target(
    board: Board,
    elf: Path | None,
    *,
    icount: bool = True,
    gdb_socket: Path | None = None,
    qmp_socket: Path | None = None,
) -> Iterator[QemuTarget]:
    """Run an ELF in the board's emulator.

    The firmware waits for the first connection to the port, so that nothing it says is lost.

    Args:
        board: the board whose emulator is used.
        elf: the firmware; None: an empty machine that stands still until a debugger has loaded some.
        icount: one instruction is one nanosecond of the machine's time, the same in every run.
        gdb_socket: a path where QEMU offers a Unix socket for `target remote`.
        qmp_socket: a path where QEMU offers a Unix socket for its own protocol.

    Raises:
        UsageError: the board has no emulator, QEMU has no such machine, or there is no ELF.
        ToolError: QEMU is missing or too old.
        DeviceError: the body failed while QEMU was dead; with its last words.
    """
    if board.emulator is None:
        raise UsageError(f"board {board.name!r} has no emulator", hint="Run on the board itself: --port.")
    if elf is not None and not elf.is_file():
        raise UsageError(f"{elf}: no such firmware", hint="Build it first: forge build.")
    _check_version()
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(tempfile.TemporaryFile())
        # QEMU inherits the listening socket: a port is never free between choosing and using it.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            argv = command(
                board.emulator,
                elf,
                listen_fd=listener.fileno(),
                icount=icount,
                gdb_socket=gdb_socket,
                qmp_socket=qmp_socket,
            )
            process = stack.enter_context(
                proc.start(
                    argv,
                    stdout=errors,
                    stderr=errors,
                    pass_fds=(listener.fileno(),),
                    dies_with_forge=True,
                )
            )
        target = QemuTarget(url=f"socket://127.0.0.1:{port}", argv=tuple(argv), process=process, errors=errors)
        try:
            yield target
        except DeviceError as error:
            if target.alive():
                raise
            cause = _death(board, target, error)
            if cause is error:
                raise
            raise cause from error


def command(
    emulator: Emulator,
    elf: Path | None,
    *,
    listen_fd: int,
    icount: bool = True,
    gdb_socket: Path | None = None,
    qmp_socket: Path | None = None,
) -> list[str]:
    """Return the command that runs an ELF with its first serial port on a listening socket."""
    argv = [PROGRAM, "-M", emulator.machine, *emulator.args, "-display", "none", "-monitor", "none"]
    argv += ["-chardev", f"socket,id=uart,fd={listen_fd},server=on,wait=on", "-serial", "chardev:uart"]
    argv += ["-semihosting-config", "enable=on,target=native"]
    if icount:
        argv += ["-icount", "shift=0"]
    if gdb_socket is not None:
        argv += ["-chardev", f"socket,id=gdb,path={_escape(str(gdb_socket))},server=on,wait=off"]
        argv += ["-gdb", "chardev:gdb"]
    if qmp_socket is not None:
        argv += ["-qmp", f"unix:{_escape(str(qmp_socket))},server=on,wait=off"]
    return [*argv, "-S"] if elf is None else [*argv, "-kernel", str(elf)]


def empty_command(emulator: Emulator, *, gdb_port: int, uart_port: int) -> list[str]:
    """Return the command that starts the empty machine by hand, with its gdb server and UART on TCP ports."""
    return [
        *(PROGRAM, "-M", emulator.machine, *emulator.args, "-display", "none", "-monitor", "none"),
        *("-serial", f"tcp:127.0.0.1:{uart_port},server=on,wait=off", "-gdb", f"tcp:127.0.0.1:{gdb_port}"),
        *("-icount", "shift=0", "-S"),
    ]


def _escape(value: str) -> str:
    """Return a value for QEMU's option lists, where a comma is doubled."""
    return value.replace(",", ",,")


def _death(board: Board, target: QemuTarget, error: DeviceError) -> ForgeError:
    """Return what a failure on a dead target really was; the error itself when it tells already."""
    words = target.last_words()
    if "unsupported machine type" in words and board.emulator is not None:
        return UsageError(
            f"{board.path}: emulator.machine: QEMU has no machine {board.emulator.machine!r}",
            hint=f"`{PROGRAM} -M help` lists them; a newer QEMU may have it.",
        )
    if words in error.hint:
        return error
    hint = "\n".join(part for part in (error.hint, words, f"command: {' '.join(target.argv)}") if part)
    return DeviceError(f"the emulator has ended: {error.message}", hint=hint, reasons=error.reasons)


@functools.cache
def _check_version() -> None:
    output = proc.run([PROGRAM, "--version"], timeout_s=_VERSION_TIMEOUT_S).output
    version = parse_version(output)
    if version < _MIN_VERSION:
        found, wanted = (".".join(str(part) for part in v) for v in (version, _MIN_VERSION))
        raise ToolError(
            f"{PROGRAM} {found} is too old: forge needs {wanted} or newer",
            hint="Install a newer QEMU, or put one on PATH before it.",
        )


def parse_version(output: str) -> tuple[int, int]:
    """Return (major, minor) from what `qemu-system-arm --version` prints.

    Raises:
        ToolError: it printed something else.
    """
    match = re.search(r"version (\d+)\.(\d+)", output)
    if match is None:
        raise ToolError(f"{PROGRAM} --version did not print a version", hint=output.strip())
    return (int(match[1]), int(match[2]))
