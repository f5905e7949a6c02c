"""The op catalogue of TFLM: what was read from a tree, and what its kernels are known to implement."""

import functools
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflm_forge.errors import ToolError
from tflm_forge.ops.catalogue import Catalogue, CatalogueOp, OpKey
from tflm_forge.runtimes.tflm.install import CATALOGUE_NAME, Installed, find_installed, refresh
from tflm_forge.runtimes.tflm.op_methods import Argument
from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT

NAME = "tflm"
SHIPPED = Path(__file__).with_name("catalogue.json")
_VERSIONS = Path(__file__).with_name("versions.toml")
_SHOWN_COMMIT_DIGITS = 12


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
    not_by_default: str = ""

    @property
    def key(self) -> OpKey:
        """Builtin code and custom name."""
        return self.builtin_code, self.custom_name


@dataclass(frozen=True, kw_only=True)
class KernelSet:
    """The ops of one kernel set, and the sources that every application links."""

    name: str
    version: str
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
    return _build(_load(refresh(installed).folder / CATALOGUE_NAME))


def read_catalogue(kernel_set: str = "reference") -> Catalogue:
    """Return the catalogue as the rest of forge knows it, by default for the reference kernels."""
    sets = load_kernel_sets()
    chosen = sets.get(kernel_set) or next(iter(sets.values()))
    return Catalogue(
        runtime=NAME, version=chosen.version, ops={key: _general_row(op) for key, op in chosen.ops.items()}
    )


def _general_row(op: TflmOp) -> CatalogueOp:
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
        weights=op.weights,
    )


@functools.cache
def _shipped() -> dict[str, KernelSet]:
    return _build(_load(SHIPPED))


def _load(path: Path) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise ToolError(
            f"{path}: can not be read", hint="Install TFLM again: forge runtime install tflm --force"
        ) from cause
    return plain


def _build(plain: Mapping[str, Any]) -> dict[str, KernelSet]:
    known = tomllib.loads(_VERSIONS.read_text(encoding="utf-8"))
    version = shorten(plain["version"])
    note = "" if plain["version"] == TFLM_COMMIT else f" (read at {shorten(TFLM_COMMIT)})"
    return {
        name: KernelSet(
            name=name,
            version=version,
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
        not_by_default=facts.get("not_by_default", ""),
    )


def shorten(version: str) -> str:
    """Return a commit as people write it, its first digits; other names as they are."""
    commit, dash, rest = version.partition("-")
    if len(commit) == 40:
        return commit[:_SHOWN_COMMIT_DIGITS] + dash + rest
    return version
