"""The tree of expected errors and the exit code of each.

    ForgeError
    ├── UsageError   2   an option, a configuration key, a name
    ├── ModelError   3   the model can not be read or can not run
    ├── ToolError    4   a program forge drives failed or is missing
    ├── FitError     5   the firmware does not fit the board
    ├── DeviceError  6   the port, the emulator or the device
    └── CheckError   7   everything ran, and a check said no

Anything else that is raised is a bug in forge and keeps its traceback.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar


class ForgeError(Exception):
    """An expected failure: what happened, the reasons one by one, and what to do next.

    Args:
        message: what happened, naming the file, port, layer or option.
        hint: what the user can do about it; empty when there is nothing to say.
        reasons: every single cause when there are several, each a full sentence.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", reasons: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.reasons = tuple(reasons)


class UsageError(ForgeError):
    """An option, a configuration key or a name is wrong."""

    exit_code = 2


class ModelError(ForgeError):
    """The model can not be read, or this firmware can not run it."""

    exit_code = 3


class ToolError(ForgeError):
    """A program that forge drives is missing or failed."""

    exit_code = 4


class FitError(ForgeError):
    """The firmware is larger than the board's flash or RAM; `bytes_over` says by how much, per region name."""

    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        reasons: Sequence[str] = (),
        bytes_over: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, reasons=reasons)
        self.bytes_over = dict(bytes_over or {})


class DeviceError(ForgeError):
    """The port, the emulator or the device did not do what was asked."""

    exit_code = 6


class CheckError(ForgeError):
    """Everything ran, and what was checked differs from what was expected."""

    exit_code = 7
