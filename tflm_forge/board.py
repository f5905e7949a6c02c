"""Boards: `boards/<name>.toml` -> Board, read strictly."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from tflm_forge.errors import UsageError
from tflm_forge.registry import unknown_name
from tflm_forge.resources import data_dir

DRIVER_CONSTANTS = frozenset({"clock_hz", "baud"})
"""Constants every driver may use without a line of its own in `[driver]`."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_USB_ID = re.compile(r"[0-9A-F]{4}:[0-9A-F]{4}")
_REGION_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_CONSTANT_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CONSTANT_USE = re.compile(r"\bboard_config::k([A-Za-z0-9]+)")
_REGION_ALIGNMENT_BYTES = 256  # VTOR wants the vector table on 128 bytes or more (ARMv7-M ARM, B3.2.5)
_STACK_ALIGNMENT_BYTES = 16
_MIN_STACK_BYTES = 512
_ADDRESS_END = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Core:
    """A processor core: the compiler flags that select it, and what it has."""

    name: str
    cpu_flags: tuple[str, ...]
    has_dsp: bool
    has_mve: bool
    has_fpu: bool


CORES: Mapping[str, Core] = {
    core.name: core
    for core in (
        Core(
            name="cortex-m0",
            cpu_flags=("-mcpu=cortex-m0", "-mthumb"),
            has_dsp=False,
            has_mve=False,
            has_fpu=False,
        ),
        Core(
            name="cortex-m3",
            cpu_flags=("-mcpu=cortex-m3", "-mthumb"),
            has_dsp=False,
            has_mve=False,
            has_fpu=False,
        ),
        Core(
            name="cortex-m4f",
            cpu_flags=("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
            has_dsp=True,
            has_mve=False,
            has_fpu=True,
        ),
        Core(
            name="cortex-m7f",
            cpu_flags=("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
            has_dsp=True,
            has_mve=False,
            has_fpu=True,
        ),
        Core(
            name="cortex-m33f",
            cpu_flags=("-mcpu=cortex-m33", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"),
            has_dsp=True,
            has_mve=False,
            has_fpu=True,
        ),
        Core(
            name="cortex-m55f",
            cpu_flags=("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
            has_dsp=True,
            has_mve=True,
            has_fpu=True,
        ),
    )
}


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
class Board:
    """A board: its core, its memory, its driver and, where there is one, its emulator.

    The first region of each kind is the one firmware is linked to. `twin` names an emulated board with the
    same class of core, on which forge can measure what this board can not show without hardware. `constants`
    are the numbers the driver's source is compiled with. `usb_ids` are "VID:PID" of the USB serial ports that
    boards of this kind have.
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


def list_boards() -> tuple[Board, ...]:
    """Return every board forge knows, sorted by name."""
    return tuple(read_board(path) for path in _board_paths().values())


def load_board(name: str) -> Board:
    """Return the board with this name, or the one described by a board file of the user's.

    Args:
        name: a name from `forge boards`, or the path of a .toml file.

    Raises:
        UsageError: no such board (names the nearest one), or its file is wrong (names file and key).
    """
    if name.endswith(".toml"):
        return read_board(Path(name))
    paths = _board_paths()
    if name not in paths:
        raise unknown_name("board", name, paths)
    return read_board(paths[name])


def read_board(path: Path) -> Board:
    """Read one board file.

    Raises:
        UsageError: the file can not be read, or a key of it is missing, unknown or wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(
            f"{path}: can not read the board file: {reason}", hint="`forge boards` lists names."
        ) from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}", hint="See the files in boards/.") from error
    return _board(_Table(path, "", values), path)


def _board_paths() -> dict[str, Path]:
    return {path.stem: path for path in sorted(data_dir("boards").glob("*.toml"))}


class _Table:
    """One TOML table that is read key by key; what nobody has asked for is an unknown key."""

    def __init__(self, path: Path, prefix: str, values: Mapping[str, Any]) -> None:
        self._path = path
        self._prefix = prefix
        self._values = values
        self._asked: set[str] = set()

    def error(self, key: str, problem: str, hint: str = "") -> UsageError:
        return UsageError(f"{self._path}: {self._prefix}{key}: {problem}", hint=hint)

    def text(self, key: str, pattern: re.Pattern[str] | None = None) -> str:
        value = self._take(key)
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"must be text, not {value!r}")
        if pattern is not None and pattern.fullmatch(value) is None:
            raise self.error(key, f"{value!r} does not match {pattern.pattern}")
        return value

    def number(self, key: str, *, least: int = 0, most: int = _ADDRESS_END - 1, multiple_of: int = 1) -> int:
        value = self._take(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(key, f"must be a whole number, not {value!r}")
        if not least <= value <= most:
            raise self.error(key, f"0x{value:X} is out of range 0x{least:X}..0x{most:X}")
        if value % multiple_of:
            raise self.error(key, f"0x{value:X} is misaligned: not a multiple of {multiple_of}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._take(key) if key in self._values else []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, f"must be a list of texts, not {value!r}")
        return tuple(value)

    def table(self, key: str) -> "_Table":
        value = self._take(key)
        if not isinstance(value, dict):
            raise self.error(key, f"must be a table [{key}], not {value!r}")
        return _Table(self._path, f"{self._prefix}{key}.", value)

    def tables(self, key: str) -> list["_Table"]:
        value = self._take(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(key, f"must be tables [[{key}]], not {value!r}")
        return [_Table(self._path, f"{self._prefix}{key}[{i}].", item) for i, item in enumerate(value)]

    def has(self, key: str) -> bool:
        return key in self._values

    def rest(self) -> list[str]:
        return [key for key in self._values if key not in self._asked]

    def close(self) -> None:
        """Refuse the keys nobody asked for."""
        for key in self.rest():
            near = unknown_name("key", key, self._asked)
            raise self.error(key, "unknown key", near.hint)

    def _take(self, key: str) -> Any:
        self._asked.add(key)
        if key not in self._values:
            raise self.error(key, "is missing")
        return self._values[key]


def _board(table: _Table, path: Path) -> Board:
    core = table.text("core")
    if core not in CORES:
        unknown = unknown_name("core", core, CORES)
        raise table.error("core", unknown.message, unknown.hint)
    regions = tuple(_region(item) for item in table.tables("region"))
    _check_regions(table, regions)
    driver, constants = _driver(table.table("driver"))
    board = Board(
        name=path.stem,
        title=table.text("title"),
        path=path,
        source=table.text("source"),
        core=CORES[core],
        clock_hz=table.number("clock_hz", least=1),
        baud=table.number("baud", least=1200),
        stack_bytes=table.number("stack_bytes", least=_MIN_STACK_BYTES, multiple_of=_STACK_ALIGNMENT_BYTES),
        regions=regions,
        driver=driver,
        constants=constants,
        emulator=_emulator(table.table("emulator")) if table.has("emulator") else None,
        twin=table.text("twin") if table.has("twin") else None,
        usb_ids=_usb_ids(table),
    )
    table.close()
    if board.stack_bytes >= board.ram.length_bytes:
        raise table.error("stack_bytes", f"{board.stack_bytes} does not fit the {board.ram.length_bytes} bytes of RAM")
    if board.twin is not None and board.twin not in _board_paths():
        unknown = unknown_name("board", board.twin, _board_paths())
        raise table.error("twin", unknown.message, unknown.hint)
    return board


def _usb_ids(table: _Table) -> tuple[str, ...]:
    ids = table.texts("usb_ids")
    for usb_id in ids:
        if _USB_ID.fullmatch(usb_id) is None:
            raise table.error("usb_ids", f"{usb_id!r} is not VID:PID in capital hexadecimal, like '0D28:0204'")
    return ids


def _region(table: _Table) -> Region:
    kind = table.text("kind")
    if kind not in ("flash", "ram"):
        raise table.error("kind", f"must be 'flash' or 'ram', not {kind!r}")
    region = Region(
        name=table.text("name", _REGION_NAME),
        kind="flash" if kind == "flash" else "ram",
        origin=table.number("origin", multiple_of=_REGION_ALIGNMENT_BYTES),
        length_bytes=table.number("length_bytes", least=1024, multiple_of=_REGION_ALIGNMENT_BYTES),
        source=table.text("source"),
    )
    if region.end > _ADDRESS_END:
        raise table.error("length_bytes", f"the region ends behind the address space, at 0x{region.end:X}")
    table.close()
    return region


def _check_regions(table: _Table, regions: tuple[Region, ...]) -> None:
    for kind in ("flash", "ram"):
        if all(region.kind != kind for region in regions):
            raise table.error("region", f"the board has no region of kind {kind!r}")
    names = [region.name for region in regions]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise table.error(f"region[{i}].name", f"{name!r} is used twice")
    for i, region in enumerate(regions):
        for other in regions[:i]:
            if region.origin < other.end and other.origin < region.end:
                raise table.error(
                    f"region[{i}].origin",
                    f"{region.name} 0x{region.origin:08X}..0x{region.end - 1:08X} overlaps "
                    f"{other.name} 0x{other.origin:08X}..0x{other.end - 1:08X}",
                )


def _driver(table: _Table) -> tuple[str, dict[str, int]]:
    """Return the driver's name and its constants; the driver's source says which constants it takes."""
    name = table.text("name", _NAME)
    table.text("source")
    folder = data_dir("templates") / "firmware" / "boards"
    source = folder / f"{name}.cc"
    if not source.is_file():
        unknown = unknown_name("driver", name, (p.stem for p in folder.glob("*.cc")))
        raise table.error("name", unknown.message, unknown.hint)
    wanted = {f"k{use}" for use in _CONSTANT_USE.findall(source.read_text(encoding="utf-8"))}
    constants: dict[str, int] = {}
    for key in table.rest():
        if _CONSTANT_NAME.fullmatch(key) is None or constant_name(key) not in wanted:
            raise table.error(key, f"unknown key: the driver {name!r} has no such constant", _known(wanted))
        constants[key] = table.number(key)
    given = {constant_name(key) for key in (*constants, *DRIVER_CONSTANTS)}
    for missing in sorted(wanted - given):
        raise table.error(_key(missing), f"is missing: the driver {name!r} needs it")
    return name, constants


def _known(names: set[str]) -> str:
    common = {constant_name(key) for key in DRIVER_CONSTANTS}
    return f"Known: {', '.join(sorted(_key(name) for name in names - common)) or 'none'}."


def _key(cpp_name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cpp_name[1:]).lower()


def _emulator(table: _Table) -> Emulator:
    emulator = Emulator(machine=table.text("machine", _NAME), args=table.texts("args"), source=table.text("source"))
    table.close()
    return emulator
