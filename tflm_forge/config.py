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
Toolchain = Literal["cmake", "platformio"]


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
        toolchain: what drives the compiler.
        measures_arena: whether the link can set the arena's size for the next boot, to measure it on a board.
        allow_versions: op name to the version that the user allows over the catalogue's.
        own_ops: the user's own kernels, as forge.toml has them.
        silence: id of a doctor's rule to the reason why its findings do not stand.
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
    toolchain: Toolchain = "cmake"
    allow_versions: Mapping[str, int] = field(default_factory=dict)
    own_ops: "tuple[OpTable, ...]" = ()
    silence: Mapping[str, str] = field(default_factory=dict)

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
    toolchain: Toolchain | None = None
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
class FlashTable:
    """The table [flash] of forge.toml; None where the file says nothing. The board's port is [test] port."""

    runner: str | None = None
    serial_number: str | None = None
    gdb_server: str | None = None


@dataclass(frozen=True, kw_only=True)
class RuntimeTable:
    """The table [runtime] of forge.toml; None where the file says nothing."""

    mirror: str | None = None


@dataclass(frozen=True, kw_only=True)
class SizeTable:
    """The table [size] of forge.toml, the budget that `forge size` checks; None where the file says nothing.

    A limit is a number of bytes for all of the region, or a table with a number for each of some groups, and `total`.

    Attributes:
        flash_max: most bytes of flash.
        ram_max: most bytes of RAM.
        growth_max: most bytes that flash, and that RAM, may grow over the build that `--diff` names.
    """

    flash_max: int | Mapping[str, int] | None = None
    ram_max: int | Mapping[str, int] | None = None
    growth_max: int | Mapping[str, int] | None = None


@dataclass(frozen=True, kw_only=True)
class OpTable:
    """One table [[op]] of forge.toml: an operator kernel of the user's own (see docs/custom-ops.md).

    Attributes:
        name: exact name of the custom op in the model; with `replaces`, what a person calls the kernel.
        sources: its C++ sources.
        register: the C++ function that returns its TFLMRegistration.
        header: the header that declares that function; default: the first source's name with `.h`.
        version: the highest version of the op that the kernel implements; default 1, with `replaces` that of the
            kernel it stands for.
        types: tensor types that it takes; empty when it does not say.
        replaces: name of the op of the runtime whose kernel it stands for, or None.
        include_dirs: folders in which the sources' own includes are looked for, besides the including file's.
        uses: builtin ops whose kernel sources it calls, which are compiled along.
        reference: a Python file with a function `reference` that computes the op, or None.
        test: a Python file with a function `cases` for `forge op test`, or None.
    """

    name: str = ""
    sources: tuple[Path, ...] = ()
    register: str = ""
    header: Path | None = None
    version: int | None = None
    types: tuple[str, ...] = ()
    replaces: str | None = None
    include_dirs: tuple[Path, ...] = ()
    uses: tuple[str, ...] = ()
    reference: Path | None = None
    test: Path | None = None


@dataclass(frozen=True, kw_only=True)
class OperatorCheckTable:
    """The table [operator_ci_check] of forge.toml: what `forge check` does (see docs/manifest.md).

    Files are named by patterns from the folder of forge.toml; `**` stands for any folders.

    Attributes:
        manifests: the manifests to check.
        models: models that a manifest must name; those of [build] need not be listed.
        resolvers: C++ sources that register ops. Each is compared with the manifests in its own folder, or else in
            the nearest one above that has any.
        parse_model_ops: whether the models are read and compared with what their manifest says.
        compare_firmware_resolver: whether the sources' op resolvers are compared with the manifest.
        fail_on_missing_operator: whether an op that a model uses and the firmware lacks fails; else it is a warning.
        check_version_compatibility: whether versions of ops, and of the runtime, are compared.
        generate_op_manifest: whether the manifest is made again and must come out the same.
    """

    manifests: tuple[str, ...] = ("ops.manifest.yaml",)
    models: tuple[str, ...] = ()
    resolvers: tuple[str, ...] = ()
    parse_model_ops: bool = True
    compare_firmware_resolver: bool = True
    fail_on_missing_operator: bool = True
    check_version_compatibility: bool = True
    generate_op_manifest: bool = True


@dataclass(frozen=True, kw_only=True)
class ModelCompatibilityTable:
    """The table [ota_model_compatibility] of forge.toml: what `forge ota` holds a model for (see docs/ota.md).

    Attributes:
        check_firmware_resolver: whether a model's ops, versions and types are compared with the firmware's op resolver.
        require_firmware_upgrade_first: whether a model that the firmware can not run is held until the firmware has
            been upgraded; else this is only said.
        reject_model_with_unknown_operator: whether an op that neither the firmware nor a runtime knows rejects a model.
        block_model_if_resolver_hash_mismatch: whether a model has to have exactly the op set of the firmware's models.
    """

    check_firmware_resolver: bool = True
    require_firmware_upgrade_first: bool = True
    reject_model_with_unknown_operator: bool = True
    block_model_if_resolver_hash_mismatch: bool = False


@dataclass(frozen=True, kw_only=True)
class DoctorTable:
    """The table [doctor] of forge.toml: `silence` has the reason for each of the rules that is not to stand."""

    silence: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Config:
    """All of forge.toml; relative paths are taken from the file's own folder.

    A field is a table with its name, or, where its type is a tuple of records, an array of tables.
    """

    build: BuildTable = BuildTable()
    test: TestTable = TestTable()
    flash: FlashTable = FlashTable()
    runtime: RuntimeTable = RuntimeTable()
    doctor: DoctorTable = DoctorTable()
    size: SizeTable = SizeTable()
    op: tuple[OpTable, ...] = ()
    operator_ci_check: OperatorCheckTable = OperatorCheckTable()
    ota_model_compatibility: ModelCompatibilityTable = ModelCompatibilityTable()


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
    elif kind == int | Mapping[str, int] | None:
        numbers = value.values() if isinstance(value, dict) else (value,)
        if all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in numbers):
            return dict(value) if isinstance(value, dict) else value
        expected = "a whole number, or a table of them"
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
# toolchain = "cmake"        # or "platformio"
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

[flash]
# runner = "openocd"       # default: the first of the board's that is installed
# serial_number = "066D"   # of the probe, when several are connected
# gdb_server = "localhost:3333"   # for runner gdb

[runtime]
# mirror = "https://git.example.org/{{owner}}/{{name}}"   # where `forge runtime install tflm` fetches from

[size]                     # the budget that `forge size` checks, in bytes; see docs/size.md
# flash_max = 65536
# ram_max = {{ total = 20000, "tensor arena" = 8192 }}
# growth_max = {{ total = 512, operators = 0 }}   # over the build that --diff names

[operator_ci_check]        # what `forge check` does; see docs/manifest.md
# manifests = ["ops.manifest.yaml"]   # or "models/**/*.manifest.yaml"
# models = ["models/**/*.tflite"]     # each must have a manifest
# resolvers = ["src/op_resolver.cc"]  # your own C++ that registers ops
# parse_model_ops = true
# compare_firmware_resolver = true
# fail_on_missing_operator = true
# check_version_compatibility = true
# generate_op_manifest = true

[ota_model_compatibility]  # what `forge ota` holds a model for: see docs/ota.md
# check_firmware_resolver = true
# require_firmware_upgrade_first = true
# reject_model_with_unknown_operator = true
# block_model_if_resolver_hash_mismatch = false

[doctor]
# silence = {{ filter-not-constant = "why it does not matter here" }}   # ids: `forge doctor --rules`

# [[op]]                   # a kernel of your own: `forge op new NAME` writes one; see docs/custom-ops.md
# name = "MyOp"            # exactly as in the model
# sources = ["ops/my_op.cc"]
# register = "tflite::Register_MY_OP"
# header = "ops/my_op.h"   # default: the first source's name with .h
# version = 1              # the highest version that the kernel implements
# types = ["INT8"]         # default: any
# reference = "ops/my_op.py"
# test = "ops/my_op_test.py"
# replaces = "CONV_2D"     # instead of the runtime's own kernel
# uses = ["CONV_2D"]       # builtin ops whose kernel sources it calls
# include_dirs = ["."]
"""
