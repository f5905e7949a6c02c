"""What a board file says, as records."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from tflm_forge.board.cores import Core

_NAME_EDGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, kw_only=True)
class Region:
    """A piece of memory that firmware may use, as the linker script names it."""

    name: str
    kind: Literal["flash", "ram"]
    origin: int
    length_bytes: int
    source: str

    @property
    def end(self) -> int:
        """Return the first address behind the region."""
        return self.origin + self.length_bytes


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """The QEMU machine that runs the board's firmware."""

    machine: str
    args: tuple[str, ...]
    source: str


@dataclass(frozen=True, kw_only=True)
class ChipId:
    """Where a chip says what it is: the 32-bit word at `address`, masked, is `value`."""

    address: int
    value: int
    mask: int
    source: str

    def matches(self, word: int) -> bool:
        """Return whether a word read from the address is of this chip."""
        return word & self.mask == self.value


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board: its core, its memory, its driver and, where there is one, its emulator.

    The first region of each kind is the one firmware is linked to. `boot_bytes` at the start of flash are what the
    driver puts in front of the vector table for the chip's boot ROM. `twin` names an emulated board with the same
    class of core, on which forge can measure what this board can not show without hardware. `constants` are the
    numbers the driver's source is compiled with.

    `usb_ids` are "VID:PID" of the USB serial ports that boards of this kind have. They may be those of a debug probe
    that many boards carry: `probe` then names it. `usb_serials` are beginnings of the USB serial numbers that are this
    kind's alone. `runners` has the settings of each tool that can flash the board, in order of preference, and
    `platformio` the board's name and platform there; empty when there is none. `shadows` is the board file that this
    one hides because it has the same name.
    """

    name: str
    title: str
    path: Path
    source: str
    core: Core
    clock_hz: int
    baud: int
    stack_bytes: int
    regions: tuple[Region, ...]
    driver: str
    constants: Mapping[str, int]
    emulator: Emulator | None
    twin: str | None
    usb_ids: tuple[str, ...] = ()
    boot_bytes: int = 0
    probe: str | None = None
    usb_serials: tuple[str, ...] = ()
    chip_id: ChipId | None = None
    runners: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)
    platformio: Mapping[str, str] = field(default_factory=dict)
    shadows: Path | None = None

    @cached_property
    def flash(self) -> Region:
        """Return the region that holds code, constants and the model."""
        return next(r for r in self.regions if r.kind == "flash")

    @cached_property
    def ram(self) -> Region:
        """Return the region that holds stack, data and the tensor arena."""
        return next(r for r in self.regions if r.kind == "ram")

    @property
    def config(self) -> Mapping[str, int]:
        """Return all numbers of board_config.h by their C++ names."""
        numbers = {"clock_hz": self.clock_hz, "baud": self.baud, **self.constants}
        return {constant_name(key): value for key, value in numbers.items()}


def constant_name(key: str) -> str:
    """Return the C++ name of a driver constant: `uart_base` is `kUartBase`."""
    return "k" + "".join(part.capitalize() for part in key.split("_"))


def constant_key(cpp_name: str) -> str:
    """Return the key in a board file of a driver constant: `kUartBase` is `uart_base`."""
    return _NAME_EDGE.sub("_", cpp_name[1:]).lower()
