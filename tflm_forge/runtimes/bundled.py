"""The bundled runtime: forge's own small C++ runtime with TFLM's API, carried in the package."""

import functools
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

from tflm_forge.board import Core
from tflm_forge.config import BuildSettings
from tflm_forge.errors import UsageError
from tflm_forge.model import OpUse
from tflm_forge.ops.catalogue import Catalogue, CatalogueOp, activation_types
from tflm_forge.resources import bundled_dir
from tflm_forge.runtimes import BuildPlan, OpPlan, Registration

NAME = "bundled"


def is_available() -> bool:
    """Return True: the sources travel with forge."""
    return True


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads((bundled_dir() / "ops.toml").read_text(encoding="utf-8"))


def catalogue(kernel_set: str | None = None) -> Catalogue:
    """Return the op catalogue, read from bundled/ops.toml: the same for each kernel set."""
    del kernel_set
    table = _table()
    rows = [
        CatalogueOp(
            builtin_code=row["builtin_code"],
            name=row["name"],
            add_method=row["add_method"],
            registrations=row["registrations"],
            sources=tuple(row["sources"]),
            max_version=row["max_version"],
            version_source=row["version_source"],
            types=tuple(row["types"]),
            input_types=tuple(row.get("inputs", ())),
            output_types=tuple(row.get("outputs", ())),
            results={name: tuple(types) for name, types in row.get("results", {}).items()},
            weights={name: tuple(types) for name, types in row.get("weights", {}).items()},
        )
        for row in table["op"]
    ]
    return Catalogue(runtime=NAME, version=table["version"], ops={row.key: row for row in rows})


def register(ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> OpPlan:
    """Say how each op is registered: with its int8-only kernel when every use has int8 activations.

    Raises:
        UsageError: other kernels are asked for than the core's.
    """
    kernel_set = "dsp" if core.has_dsp else "portable"
    if settings.kernel_set not in (None, kernel_set):
        raise UsageError(
            f"--kernel-set {settings.kernel_set}: runtime bundled has the kernels {kernel_set!r} for {core.name}",
            hint="reference and cmsis_nn are kernel sets of runtime tflm.",
        )
    known = catalogue()
    registrations = []
    for use in ops:
        row = known.ops[use.builtin_code, use.custom_name]
        suffix = _pick_suffix(use, row)
        registrations.append(
            Registration(
                use=use,
                call=f"{row.add_method}(tflite::{row.registrations[suffix]}())",
                max_version=max(row.max_version, settings.allow_versions.get(use.name, 0)),
                types=(suffix,) if suffix else row.types,
            )
        )
    return OpPlan(runtime=NAME, version=known.version, kernel_set=kernel_set, registrations=tuple(registrations))


def plan(ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> BuildPlan:
    """Plan the build: the core and the kernels of the op set, nothing else.

    Raises:
        UsageError: other kernels are asked for than the core's.
    """
    registered = register(ops, core, settings)
    known = catalogue()
    sources = list(_table()["core"]["sources"])
    for use in ops:
        sources.extend(known.ops[use.builtin_code, use.custom_name].sources)
    root = bundled_dir()
    return BuildPlan(
        runtime=registered.runtime,
        version=registered.version,
        kernel_set=registered.kernel_set,
        registrations=registered.registrations,
        root=root,
        sources=tuple(dict.fromkeys(sources)),
        headers=tuple(_relative(root.rglob("*.h"))),
        include_dirs=(".",),
        defines=("TF_LITE_STATIC_MEMORY", *settings.mode_defines),
    )


def _relative(paths: Iterable[Any]) -> list[str]:
    return sorted(path.relative_to(bundled_dir()).as_posix() for path in paths)


def _pick_suffix(use: OpUse, row: CatalogueOp) -> str:
    """Return the one type that all uses have when there is a registration for it, else "", that for any type."""
    activations = activation_types(use)
    if len(activations) == 1:
        (only,) = activations
        return only if only in row.registrations else ""
    return ""
