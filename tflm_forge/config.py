"""Settings: what forge.toml says, and what a command's options put over it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from tflm_forge.errors import UsageError
from tflm_forge.registry import unknown_name

CONFIG_NAME = "forge.toml"

Profile = Literal["release", "debug"]
Optimize = Literal["s", "2", "3"]


@dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """How firmware is built.

    Attributes:
        runtime: name of a runtime.
        profile: `release` leaves out the runtime's checks and, unless said otherwise, its error strings, and uses
            link-time optimization; `debug` keeps all of it.
        optimize: the compiler's -O level.
        kernel_set: which kernels of the runtime; None takes the best one for the core.
        lto: whether to use link-time optimization; None leaves it to the profile.
        strip_error_strings: whether to leave out the runtime's messages; None leaves it to the profile.
        arena_bytes: size of the tensor arena; None measures it.
        keep_tensors: whether every tensor keeps its memory, so that the link can read the output of each layer.
        measures_arena: whether the link can set the arena's size for the next boot, to measure it on a board.
        allow_versions: op name to the version that the user allows over the catalogue's.
    """

    runtime: str
    profile: Profile = "release"
    optimize: Optimize = "s"
    kernel_set: str | None = None
    lto: bool | None = None
    strip_error_strings: bool | None = None
    arena_bytes: int | None = None
    keep_tensors: bool = False
    measures_arena: bool = False
    allow_versions: Mapping[str, int] = field(default_factory=dict)

    @property
    def uses_lto(self) -> bool:
        """Whether link-time optimization is used."""
        return self.profile == "release" if self.lto is None else self.lto

    @property
    def strips_error_strings(self) -> bool:
        """Whether the runtime's messages are left out."""
        return self.profile == "release" if self.strip_error_strings is None else self.strip_error_strings

    @property
    def mode_defines(self) -> tuple[str, ...]:
        """Preprocessor definitions that say what of a runtime's checks and messages is left out."""
        return (
            *(("NDEBUG",) if self.profile == "release" else ()),
            *(("TF_LITE_STRIP_ERROR_STRINGS",) if self.strips_error_strings else ()),
        )


@dataclass(frozen=True, kw_only=True)
class BuildTable:
    """The table [build] of forge.toml; None where the file says nothing.

    `with_` is the key `with`, the models besides the first.
    """

    model: Path | None = None
    with_: tuple[Path, ...] = ()
    board: str | None = None
    runtime: str | None = None
    output: Path | None = None
    profile: Profile | None = None
    optimize: Optimize | None = None
    kernel_set: str | None = None
    lto: bool | None = None
    strip_error_strings: bool | None = None
    arena_bytes: int | None = None
    allow_version: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TestTable:
    """The table [test] of forge.toml; None where the file says nothing."""

    inputs: Path | None = None
    golden: Path | None = None
    seed: int | None = None
    port: str | None = None


@dataclass(frozen=True, kw_only=True)
class RuntimeTable:
    """The table [runtime] of forge.toml; None where the file says nothing."""

    mirror: str | None = None


@dataclass(frozen=True, kw_only=True)
class OpTable:
    """One table [[op]] of forge.toml: an operator kernel of the user's own.

    Attributes:
        name: exact name of the custom op in the model; with `replaces`, what the registration is called.
        sources: its C++ sources.
        register: the C++ function that returns its TFLMRegistration.
        header: the header that declares that function, as the op resolver includes it; default: the first source's
            name with `.h`.
        version: the highest version of the op that the kernel implements.
        types: tensor types that it takes; empty when it does not say.
        replaces: name of the builtin op whose kernel it stands for, or None.
    """

    name: str = ""
    sources: tuple[Path, ...] = ()
    register: str = ""
    header: Path | None = None
    version: int = 1
    types: tuple[str, ...] = ()
    replaces: str | None = None


@dataclass(frozen=True, kw_only=True)
class Config:
    """All of forge.toml; relative paths are taken from the file's own folder.

    A field is a table with its name, or, where its type is a tuple of records, an array of tables.
    """

    build: BuildTable = BuildTable()
    test: TestTable = TestTable()
    runtime: RuntimeTable = RuntimeTable()
    op: tuple[OpTable, ...] = ()


def load_config(folder: Path) -> Config:
    """Read forge.toml of a folder; an absent file gives the empty configuration.

    Raises:
        UsageError: the file is not TOML, or has an unknown key or a value of the wrong type.
    """
    path = folder / CONFIG_NAME
    if not path.is_file():
        return Config()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error
    records = {field.name: field.type for field in fields(Config)}
    values: dict[str, Any] = {}
    for name, table in document.items():
        if name not in records:
            raise UsageError(
                f"{path}: {unknown_name('table', name, records).message}", hint=f"Known: {', '.join(records)}."
            )
        record: Any = records[name]
        if get_origin(record) is tuple:
            if not isinstance(table, list) or not all(isinstance(item, dict) for item in table):
                raise UsageError(f"{path}: {name} must be an array of tables, [[{name}]]")
            record = get_args(record)[0]
            values[name] = tuple(_read_table(path, f"[[{name}]] {i}", item, record) for i, item in enumerate(table, 1))
            continue
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {name} must be a table, [{name}]")
        values[name] = _read_table(path, f"[{name}]", table, record)
    return Config(**values)


def _read_table(path: Path, where: str, table: Mapping[str, Any], record: type) -> Any:
    names = {f.name.removesuffix("_"): f for f in fields(record)}
    known = {name: f.type for name, f in names.items()}
    values = {}
    for key, value in table.items():
        if key not in known:
            error = unknown_name("key", key, known)
            raise UsageError(f"{path}: {where} {error.message}", hint=error.hint)
        values[names[key].name] = _read_value(path, f"{where} {key}", value, known[key])
    return record(**values)


def _read_value(path: Path, where: str, value: Any, kind: Any) -> Any:
    expected = ""
    if kind == tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(value)
        expected = "a list of strings"
    elif kind == tuple[Path, ...]:
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return tuple(path.parent / v for v in value)
        expected = "a list of paths"
    elif kind == Path | None:
        if isinstance(value, str):
            return path.parent / value
        expected = "a path"
    elif kind == Mapping[str, int]:
        if isinstance(value, dict) and all(isinstance(v, int) and not isinstance(v, bool) for v in value.values()):
            return dict(value)
        expected = "a table of whole numbers"
    elif kind == Mapping[str, str]:
        if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            return dict(value)
        expected = "a table of strings"
    elif kind in (int, int | None):
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        expected = "a whole number"
    elif kind in (bool, bool | None):
        if isinstance(value, bool):
            return value
        expected = "true or false"
    elif kind in (str, str | None):
        if isinstance(value, str):
            return value
        expected = "a string"
    else:
        choices = [c for part in get_args(kind) for c in get_args(part)]
        if value in choices:
            return value
        expected = "one of " + ", ".join(repr(c) for c in choices)
    raise UsageError(f"{path}: {where} = {value!r}: must be {expected}")


CONFIG_TEMPLATE = """\
# Settings of forge; every key may also be given as an option of a command, which wins.

[build]
model = "{model}"
# with = ["second.tflite"] # further models in the same firmware, sharing one arena
board = "{board}"
# runtime = "bundled"      # default: tflm when installed, else bundled
# output = "build/firmware"
# profile = "release"      # or "debug": keeps the runtime's error strings and checks
# optimize = "s"           # or "2", "3"
# kernel_set = "cmsis_nn"  # of runtime tflm: or "reference"; default: the best for the core
# lto = true               # default: true in release
# strip_error_strings = true   # default: true in release
# arena_bytes = 16384      # default: measured
# allow_version = ["CONV_2D=8"]

[test]
# inputs = "test_data.npz"
# golden = "model.golden.npz"
# seed = 1
# port = "/dev/ttyACM0"    # default: the board's emulator

[runtime]
# mirror = "https://git.example.org/{{owner}}/{{name}}"   # where `forge runtime install tflm` fetches from
"""
