"""The op catalogue of TFLM: what was read from a tree, and what its kernels are known to implement."""

import functools
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflm_forge.errors import ToolError
from tflm_forge.ops.catalogue import Catalogue, CatalogueOp, OpKey
from tflm_forge.registry import unknown_name
from tflm_forge.runtimes.tflm.install import CATALOGUE_NAME, Installed, find_installed, refresh
from tflm_forge.runtimes.tflm.op_methods import Argument
from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT

NAME = "tflm"
SHIPPED = Path(__file__).with_name("catalogue.json")
_VERSIONS = Path(__file__).with_name("versions.toml")
_SHOWN_COMMIT_DIGITS = 12
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REFERENCE = "reference"

# Trees before FULLY_CONNECTED had a multiplier for each channel compute such weights with the first scale alone, or
# refuse them in the device; the kernels of a tree that has it name it.
_CHANNELED_OP = "FULLY_CONNECTED"
_CHANNEL_MULTIPLIERS = "per_channel_output_multiplier"


@dataclass(frozen=True, kw_only=True)
class Specialised:
    """A registration for one type: its function and the header that declares it."""

    function: str
    header: str


@dataclass(frozen=True, kw_only=True)
class TflmOp:
    """One op in one kernel set.

    Attributes:
        name: the enumerator, or the custom name.
        builtin_code: number in BuiltinOperator; 32 for a custom op.
        custom_name: the exact custom name, else empty.
        add_method: method of MicroMutableOpResolver.
        argument: how the method takes another registration.
        function: the registration for any type.
        specialised: registrations for one type that the kernel set defines itself, by suffix ("INT8").
        sources: kernel sources beside the core's.
        max_version: the highest version whose features the kernel implements.
        version_source: where that number comes from.
        inputs: types of the first input that the kernel takes; empty when it does not look.
        outputs: types of the first output; empty when it does not look.
        weights: types of the second input by the type of the first; empty when any will do.
        results: types of the first output by the type of the first input; empty when any will do.
        not_by_default: why the kernel set is taken for this op only when the user names it; empty otherwise.
    """

    name: str
    builtin_code: int
    custom_name: str
    add_method: str
    argument: Argument
    function: str
    specialised: Mapping[str, Specialised]
    sources: tuple[str, ...]
    max_version: int
    version_source: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: Mapping[str, tuple[str, ...]]
    results: Mapping[str, tuple[str, ...]]
    not_by_default: str = ""

    @property
    def key(self) -> OpKey:
        """Builtin code and custom name."""
        return self.builtin_code, self.custom_name


@dataclass(frozen=True, kw_only=True)
class KernelSet:
    """The ops of one kernel set, and the sources that every application links.

    `commit` is the whole commit that `version` shows the start of; empty for a tree without one.
    """

    name: str
    version: str
    commit: str
    core: tuple[str, ...]
    ops: Mapping[OpKey, TflmOp]


def load_kernel_sets() -> dict[str, KernelSet]:
    """Return the kernel sets of the tree in use, or of the pinned commit when none is installed."""
    installed = find_installed()
    if installed is None:
        return _shipped()
    return load_tree_kernel_sets(installed)


def load_tree_kernel_sets(installed: Installed) -> dict[str, KernelSet]:
    """Return the kernel sets of an installed tree."""
    path = refresh(installed).folder / CATALOGUE_NAME
    try:
        return _build_once(path, path.stat().st_mtime_ns)
    except OSError as cause:
        raise _unreadable(path) from cause


def read_catalogue(kernel_set: str | None = None, installed: Installed | None = None) -> Catalogue:
    """Return the catalogue as the rest of forge knows it.

    Args:
        kernel_set: name of the kernel set; None takes the reference kernels, or what the tree has in their place.
        installed: the tree; None takes the tree in use, or the pinned commit when none is installed.

    Raises:
        UsageError: the tree has no such kernel set.
    """
    tree = installed or find_installed()
    sets = _shipped() if tree is None else load_tree_kernel_sets(tree)
    if kernel_set is not None and kernel_set not in sets:
        raise unknown_name("kernel set of this TFLM tree", kernel_set, sets)
    return as_catalogue(sets.get(kernel_set or _REFERENCE) or next(iter(sets.values())), tree)


def as_catalogue(kernels: KernelSet, installed: Installed | None) -> Catalogue:
    """Return the catalogue of one kernel set of a tree; None stands for the pinned commit, not installed."""
    ops = {key: _general_row(op, installed) for key, op in kernels.ops.items()}
    is_other = installed is not None and installed.version != TFLM_COMMIT
    newer = frozenset(_shipped()[_REFERENCE].ops) - ops.keys() if is_other else frozenset()
    return Catalogue(runtime=NAME, version=kernels.version, ops=ops, newer_ops=newer)


def _general_row(op: TflmOp, installed: Installed | None) -> CatalogueOp:
    registrations = {"": op.function, **{suffix: s.function for suffix, s in op.specialised.items()}}
    return CatalogueOp(
        builtin_code=op.builtin_code,
        custom_name=op.custom_name,
        name=op.name,
        add_method=op.add_method,
        registrations={}
        if op.argument == "none"
        else {k: v.removeprefix("tflite::") for k, v in registrations.items()},
        sources=op.sources,
        max_version=op.max_version,
        version_source=op.version_source,
        types=tuple(dict.fromkeys(op.inputs + op.outputs)) if op.inputs and op.outputs else (),
        input_types=op.inputs,
        output_types=op.outputs,
        weights=op.weights,
        results=op.results,
        takes_channel_scales=op.name != _CHANNELED_OP or _has_channel_scales(op, installed),
    )


def _has_channel_scales(op: TflmOp, installed: Installed | None) -> bool:
    """Return whether a kernel's sources have a multiplier for each channel; the pinned commit's have."""
    if installed is None:
        return True
    paths = (path for source in op.sources if (path := installed.folder / source).is_file())
    return any(_CHANNEL_MULTIPLIERS in path.read_text(encoding="utf-8", errors="replace") for path in paths)


@functools.cache
def _shipped() -> dict[str, KernelSet]:
    return _build(_load(SHIPPED))


@functools.lru_cache(maxsize=4)
def _build_once(path: Path, _changed_ns: int) -> dict[str, KernelSet]:
    """Return a file's kernel sets; a gate asks for each of many models."""
    return _build(_load(path))


def _load(path: Path) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise _unreadable(path) from cause
    return plain


def _unreadable(path: Path) -> ToolError:
    return ToolError(f"{path}: can not be read", hint="Install TFLM again: forge runtime install tflm --force")


def _build(plain: Mapping[str, Any]) -> dict[str, KernelSet]:
    known = tomllib.loads(_VERSIONS.read_text(encoding="utf-8"))
    version = shorten(plain["version"])
    note = "" if plain["version"] == TFLM_COMMIT else f" (read at {shorten(TFLM_COMMIT)})"
    return {
        name: KernelSet(
            name=name,
            version=version,
            commit=plain["version"] if _COMMIT.fullmatch(plain["version"]) else "",
            core=tuple(rows["core"]),
            ops={op.key: op for op in (_build_op(row, name, rows["ops"], known, note) for row in plain["ops"])},
        )
        for name, rows in plain["kernel_sets"].items()
    }


def _build_op(
    row: Mapping[str, Any], kernel_set: str, sources: Mapping[str, Any], known: Mapping[str, Any], note: str
) -> TflmOp:
    facts = known.get(row["name"], {"max_version": 1, "source": "not known to this forge: only version 1 is allowed"})
    facts = {**facts, **facts.get(kernel_set, {})}
    own = sources[row["add_method"]]
    return TflmOp(
        name=row["name"],
        builtin_code=row["builtin_code"],
        custom_name=row["custom_name"],
        add_method=row["add_method"],
        argument=row["argument"],
        function=row["function"],
        specialised={suffix: Specialised(**value) for suffix, value in own["registrations"].items()},
        sources=tuple(own["sources"]),
        max_version=facts["max_version"],
        version_source=facts["source"] + note,
        inputs=tuple(facts.get("inputs", ())),
        outputs=tuple(facts.get("outputs", ())),
        weights={name: tuple(types) for name, types in facts.get("weights", {}).items()},
        results={name: tuple(types) for name, types in facts.get("results", {}).items()},
        not_by_default=facts.get("not_by_default", ""),
    )


def shorten(version: str) -> str:
    """Return a commit as people write it, its first digits; other names as they are."""
    commit, dash, rest = version.partition("-")
    if len(commit) == 40:
        return commit[:_SHOWN_COMMIT_DIGITS] + dash + rest
    return version
