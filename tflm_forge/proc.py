"""The only door to other programs: found, echoed, logged, timed, and never left behind."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from tflm_forge.errors import ToolError

_TAIL_LINES = 20
_STOP_TIMEOUT_S = 3.0

_INSTALL_HINTS: dict[str, str] = {
    "arm-none-eabi": "sudo apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib",
    "qemu-system-arm": "sudo apt-get install qemu-system-arm",
    "cmake": "sudo apt-get install cmake",
    "ninja": "sudo apt-get install ninja-build",
    "ccache": "sudo apt-get install ccache",
    "gdb-multiarch": "sudo apt-get install gdb-multiarch",
    "git": "sudo apt-get install git",
    "g++": "sudo apt-get install g++",
}


# forge may be killed before the kernel has been asked to watch it: its child then has another parent already.
_ONLY_WITH_PARENT = ("/bin/sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')

Process: TypeAlias = "subprocess.Popen[bytes]"
"""A program that was started and may still run."""


@dataclass(frozen=True, kw_only=True)
class Completed:
    """What a finished program left: its exit status and its output (stdout and stderr as one text)."""

    argv: tuple[str, ...]
    returncode: int
    output: str


def find_tool(name: str) -> Path:
    """Return the path of a program on PATH.

    Raises:
        ToolError: it is not installed; the hint is the command that installs it.
    """
    found = shutil.which(name)
    if found is None:
        install = next((text for key, text in _INSTALL_HINTS.items() if name.startswith(key)), "")
        hint = f"Install it: {install}" if install else f"Install {name} and put it on PATH."
        raise ToolError(f"{name} is not installed (not found on PATH)", hint=hint)
    return Path(found)


def has_tool(name: str) -> bool:
    """Return whether a program is on PATH."""
    return shutil.which(name) is not None


def run(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    check: bool = True,
) -> Completed:
    """Run a program to its end.

    Args:
        argv: the program and its arguments; the program is looked up on PATH.
        timeout_s: seconds after which the program and its children are stopped.
        cwd: the folder it runs in.
        env: variables added to the environment.
        log: a file that gets the command and all output appended.
        check: raise when the exit status is not 0.

    Raises:
        ToolError: the program is missing, failed (with `check`) or took too long; shows the command, its
            status, its last lines and the log's path.
    """
    args = (str(find_tool(str(argv[0]))), *(str(a) for a in argv[1:]))
    with start(args, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            raw, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            stop(process)
            raw, _ = process.communicate()
            output = _keep(args, raw, log)
            raise ToolError(
                f"{Path(args[0]).name} did not finish within {timeout_s:g} s",
                hint=_tail_hint(args, output, log),
            ) from None
    output = _keep(args, raw, log)
    if check and process.returncode != 0:
        raise ToolError(
            f"{Path(args[0]).name} failed with status {process.returncode}",
            hint=_tail_hint(args, output, log),
        )
    return Completed(argv=args, returncode=process.returncode, output=output)


@contextlib.contextmanager
def start(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[bytes] | None = subprocess.DEVNULL,
    stderr: int | IO[bytes] | None = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    dies_with_forge: bool = False,
) -> Iterator[Process]:
    """Start a program in a process group of its own; on leaving, nothing of the group is left running.

    Args:
        argv: the program and its arguments; the program is looked up on PATH.
        cwd: the folder it runs in.
        env: variables added to the environment.
        stdout: where its output goes.
        stderr: where its error output goes.
        pass_fds: file descriptors it inherits, by the same numbers.
        dies_with_forge: the kernel ends it when forge itself is killed (on systems with setpriv).
    """
    args = [str(find_tool(str(argv[0]))), *(str(a) for a in argv[1:])]
    if dies_with_forge and has_tool("setpriv"):
        args = [str(find_tool("setpriv")), "--pdeathsig", "KILL", "--", *_ONLY_WITH_PARENT, str(os.getpid()), *args]
    process = subprocess.Popen(
        args,
        cwd=cwd,
        env={**os.environ, **env} if env else None,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        pass_fds=pass_fds,
    )
    try:
        yield process
    finally:
        stop(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def wait(process: Process, *, timeout_s: float) -> int | None:
    """Wait until a program ends by itself and return its exit status; None: it is still running."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(timeout=timeout_s)
    return None


def stop(process: Process) -> None:
    """End a program and all of its process group: asked first, then killed."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        _signal_group(process, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_STOP_TIMEOUT_S)


def _signal_group(process: Process, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.terminate()
        else:
            os.killpg(process.pid, sign)


def _keep(args: Sequence[str], raw: bytes, log: Path | None) -> str:
    text = raw.decode(errors="replace")
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {' '.join(args)}\n{text}\n")
    return text


def _tail_hint(args: Sequence[str], output: str, log: Path | None) -> str:
    lines = [f"command: {' '.join(args)}", *output.rstrip().splitlines()[-_TAIL_LINES:]]
    if log is not None:
        lines.append(f"full log: {log}")
    return "\n".join(lines)
