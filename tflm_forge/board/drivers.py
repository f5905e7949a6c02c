"""Drivers: the C++ of a board family, the constants it takes, and the limits of those that set up its clock.

A driver is `templates/firmware/boards/<name>.cc` with the headers it includes from the same folder. Every
`board_config::k...` in them is a constant that a board file has to give. `<name>.toml` beside it has what the chip's
reference manual says of these numbers: defaults, ranges, and how the PLL makes the clock of them.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tflm_forge.board.clocks import Pll, WaitStates, check_clock
from tflm_forge.board.records import constant_key, constant_name
from tflm_forge.board.table import Problems, Table, read_toml
from tflm_forge.resources import data_dir

COMMON_CONSTANTS = frozenset({"clock_hz", "baud"})
"""Constants every driver may use without a line of its own in `[driver]`."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_CONSTANT_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CONSTANT_USE = re.compile(r"\bboard_config::k([A-Za-z0-9]+)")
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A driver's files by the names they have in a project's src/, its constants by key, and their limits."""

    name: str
    files: Mapping[str, Path]
    keys: frozenset[str]
    defaults: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    choices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    pll: Pll | None = None
    wait_states: WaitStates | None = None
    source: str = ""


def drivers_dir() -> Path:
    """Return the folder of the drivers."""
    return data_dir("templates") / "firmware" / "boards"


def driver_names() -> set[str]:
    """Return the names of all drivers."""
    return {path.stem for path in drivers_dir().glob("*.cc")}


def driver_files(name: str) -> dict[str, str]:
    """Return the driver's files: the name of each in a project's src/, and its template's below templates/."""
    return {target: f"firmware/boards/{path.name}" for target, path in load_driver(name).files.items()}


@functools.cache
def load_driver(name: str) -> Driver:
    """Read a driver that is there."""
    files = {"board.cc": drivers_dir() / f"{name}.cc"}
    waiting = ["board.cc"]
    uses: set[str] = set()
    while waiting:
        text = files[waiting.pop()].read_text(encoding="utf-8")
        uses.update(_CONSTANT_USE.findall(text))
        for header in _INCLUDE.findall(text):
            if header not in files and (drivers_dir() / header).is_file():
                files[header] = drivers_dir() / header
                waiting.append(header)
    limits_file = drivers_dir() / f"{name}.toml"
    limits: dict[str, Any] = read_toml(limits_file, "driver's limits") if limits_file.is_file() else {}
    return Driver(
        name=name,
        files=files,
        keys=frozenset(constant_key(f"k{use}") for use in uses) - COMMON_CONSTANTS,
        defaults=limits.get("default", {}),
        ranges={key: (least, most) for key, (least, most) in limits.get("range", {}).items()},
        choices={key: tuple(values) for key, values in limits.get("choice", {}).items()},
        pll=Pll(**limits["pll"]) if "pll" in limits else None,
        wait_states=WaitStates(**limits["flash"]) if "flash" in limits else None,
        source=limits.get("source", ""),
    )


def read_driver(table: Table, problems: Problems, common: Mapping[str, int | None]) -> tuple[str, dict[str, int]]:
    """Read the table [driver]: its name and its constants, with their limits checked.

    Args:
        table: the table.
        problems: gets what is wrong with the clock.
        common: clock_hz and baud of the board; None where they are wrong themselves.
    """
    name = table.text("name", NAME)
    table.text("source")
    if name not in driver_names():
        if name:
            table.unknown("name", "driver", name, driver_names())
        return name, {}
    driver = load_driver(name)
    constants = _read_constants(table, driver)
    numbers = {**constants, **{key: value for key, value in common.items() if value is not None}}
    fits = [_check_limits(problems, driver, key, value) for key, value in numbers.items()]
    wanted = driver.keys | set(common)
    if all(fits) and wanted <= set(numbers):
        check_clock(problems, driver.pll, driver.wait_states, numbers, _allowed(driver))
    return name, constants


def _read_constants(table: Table, driver: Driver) -> dict[str, int]:
    constants = {}
    for key in table.rest():
        if _CONSTANT_NAME.fullmatch(key) is None or constant_key(constant_name(key)) not in driver.keys:
            known = ", ".join(sorted(driver.keys)) or "none"
            table.problem(key, f"unknown key: the driver {driver.name!r} has no such constant", f"Known: {known}.")
            continue
        value = table.number(key)
        if value is not None:
            constants[key] = value
    for missing in sorted(driver.keys - set(driver.defaults)):
        if not table.has(missing):
            table.problem(missing, f"is missing: the driver {driver.name!r} needs it")
    return {**{key: value for key, value in driver.defaults.items() if not table.has(key)}, **constants}


def _check_limits(problems: Problems, driver: Driver, key: str, value: int) -> bool:
    place = key if key in COMMON_CONSTANTS else f"driver.{key}"
    if key in driver.ranges:
        least, most = driver.ranges[key]
        if not least <= value <= most:
            problems.add(place, f"{value:,} is out of range {least:,}..{most:,} of the {driver.name}", driver.source)
            return False
    if key in driver.choices and value not in driver.choices[key]:
        allowed = ", ".join(f"{choice:,}" for choice in driver.choices[key])
        problems.add(place, f"{value:,} is none of {allowed}, which the {driver.name} has", driver.source)
        return False
    return True


def _allowed(driver: Driver) -> dict[str, Sequence[int]]:
    """Return the values each number may have."""
    ranges = {key: range(least, most + 1) for key, (least, most) in driver.ranges.items()}
    return {**ranges, **driver.choices}
