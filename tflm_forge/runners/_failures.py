"""What the messages of flashing tools mean: one table of meanings, to which each runner's patterns point."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tflm_forge.errors import DeviceError, ForgeError, ToolError
from tflm_forge.runners._probes import UsbDevice, describe_devices, udev_rule

Kind = Literal[
    "no probe",
    "several probes",
    "permission",
    "busy",
    "no target",
    "locked",
    "wrong chip",
    "unknown chip",
    "verify",
    "no server",
    "outdated",
]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A message of a tool.

    Attributes:
        kind: what it means.
        pattern: a regular expression that finds it in the tool's output.
        source: where the message is from.
    """

    kind: Kind
    pattern: str
    source: str


@dataclass(frozen=True, kw_only=True)
class _Meaning:
    error: type[ForgeError]
    words: str
    hint: str


_MEANINGS: dict[Kind, _Meaning] = {
    "no probe": _Meaning(
        error=DeviceError,
        words="{title} finds no probe or board for {board}",
        hint="Plug it in, with a cable that has data lines. A virtual machine, a container or WSL must be given the "
        "USB device. A boot loader must have been started (button or jumper of the board).",
    ),
    "several probes": _Meaning(
        error=DeviceError,
        words="several probes or boards are connected that {title} may use for {board}",
        hint="Choose one with --serial-number, or [flash] serial_number in forge.toml.",
    ),
    "permission": _Meaning(
        error=DeviceError, words="{title} may not open the probe or board of {board}: no permission", hint=""
    ),
    "busy": _Meaning(
        error=DeviceError,
        words="the probe of {board} is in use by another program",
        hint="Close the debugger, IDE or gdb server that holds it.",
    ),
    "no target": _Meaning(
        error=DeviceError,
        words="the probe is there, but the chip of {board} does not answer",
        hint="Is the board powered, are SWDIO, SWCLK and GND connected, is it this board? Firmware that sleeps or uses "
        "the debug pins can shut a debugger out: hold the reset button, start the command, let go.",
    ),
    "locked": _Meaning(
        error=DeviceError,
        words="the chip of {board} is locked against reading and writing",
        hint="Unlocking erases all of it, so forge does not do it by itself. {unlock}",
    ),
    "wrong chip": _Meaning(
        error=DeviceError,
        words="the connected chip is not that of {board}",
        hint="Is another board connected? `forge boards` lists the names for --board.",
    ),
    "unknown chip": _Meaning(
        error=ToolError,
        words="this {title} does not know the chip of {board}",
        hint="Install what it needs for the chip (pyOCD: pyocd pack install NAME), or a newer version of it.",
    ),
    "verify": _Meaning(
        error=DeviceError,
        words="what {title} reads back from the flash of {board} is not what was written",
        hint="Flash again, with --erase if the runner has it. If it stays so: worn or protected flash, or the cable.",
    ),
    "no server": _Meaning(
        error=DeviceError,
        words="no gdb server answers for {board}",
        hint="Start it (openocd, pyocd gdbserver, JLinkGDBServer, st-util), and give its address with --gdb-server.",
    ),
    "outdated": _Meaning(
        error=ToolError,
        words="the installed {title} is too old for forge",
        hint="Install a newer version of it.",
    ),
}


def explain(
    failures: Sequence[Failure],
    output: str,
    *,
    title: str,
    board: str,
    log: Path | None,
    devices: Sequence[UsbDevice] = (),
    unlock: str = "",
) -> ForgeError | None:
    """Return the error that a tool's output means; None when it has no known message.

    Args:
        failures: the runner's messages, the most telling first.
        output: what the tool printed.
        title: the tool's name.
        board: the board's name.
        log: where all of the output is.
        devices: probes and boards on USB that the tool may have meant.
        unlock: how this tool unlocks a chip.
    """
    for failure in failures:
        match = re.search(failure.pattern, output, re.MULTILINE)
        if match is not None:
            line = _line_of(output, match)
            return describe(failure.kind, line, title=title, board=board, log=log, devices=devices, unlock=unlock)
    return None


def describe(
    kind: Kind,
    detail: str,
    *,
    title: str,
    board: str,
    log: Path | None = None,
    devices: Sequence[UsbDevice] = (),
    unlock: str = "",
) -> ForgeError:
    """Return the error of a kind: what it means, the detail, and what to do."""
    meaning = _MEANINGS[kind]
    reasons = [detail] if detail else []
    if kind == "several probes":
        reasons += describe_devices(devices)
    hint = meaning.hint.format(unlock=unlock).rstrip()
    if kind == "permission":
        hint = udev_rule(devices)
    if log is not None:
        hint = f"{hint}\nfull log: {log}"
    return meaning.error(meaning.words.format(title=title, board=board), reasons=reasons, hint=hint)


def _line_of(output: str, match: re.Match[str]) -> str:
    start = output.rfind("\n", 0, match.start()) + 1
    end = output.find("\n", match.end())
    return " ".join(output[start : end if end >= 0 else len(output)].split())
