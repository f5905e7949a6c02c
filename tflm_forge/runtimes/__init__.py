"""The runtimes that generated firmware can be compiled with, one module each.

A runtime module offers what `RuntimeModule` names. Its name is the word the user types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import tflm_forge.runtimes as package
from tflm_forge.board import Core
from tflm_forge.config import BuildSettings
from tflm_forge.errors import ModelError
from tflm_forge.model import Model, OpUse, find_findings, op_set, union_op_set
from tflm_forge.ops.catalogue import Catalogue, check_allowed, find_obstacles
from tflm_forge.registry import list_names, load_alternative


@dataclass(frozen=True, kw_only=True)
class Registration:
    """How one op of the op set is registered.

    Attributes:
        use: the op as the model uses it.
        call: the call on the op resolver, without the receiver ("AddConv2D(tflite::Register_CONV_2D_INT8())").
        includes: headers the call needs beyond micro_mutable_op_resolver.h.
        max_version: the highest version of this op that the firmware accepts.
    """

    use: OpUse
    call: str
    includes: tuple[str, ...] = ()
    max_version: int


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """What to compile, and how, for one op set on one core.

    Attributes:
        runtime: name of the runtime ("bundled").
        version: its version or commit.
        kernel_set: which kernels ("portable", "reference", "cmsis_nn").
        registrations: one per op, in canonical order.
        root: folder the sources are relative to.
        sources: sources to compile, relative to root.
        headers: headers to copy into the project beside the sources; empty when root is used in place.
        include_dirs: include folders, relative to root.
        defines: preprocessor definitions for runtime and application alike.
        flags: further compiler flags for the runtime's sources.
        precompiled_headers: headers, as they are included, whose reading is most of the cost of compiling a source.
        not_precompiled: sources that must not see them.
        notes: what the user should know of the choices made, one sentence each.
    """

    runtime: str
    version: str
    kernel_set: str
    registrations: tuple[Registration, ...]
    root: Path
    sources: tuple[str, ...]
    headers: tuple[str, ...] = ()
    include_dirs: tuple[str, ...]
    defines: tuple[str, ...]
    flags: tuple[str, ...] = ()
    precompiled_headers: tuple[str, ...] = ()
    not_precompiled: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class RuntimeModule(Protocol):
    """What a module of this package offers."""

    def is_available(self) -> bool:
        """Return whether its sources are on this machine."""

    def catalogue(self) -> Catalogue:
        """Return its op catalogue."""

    def plan(self, ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> BuildPlan:
        """Say what to compile for an op set that the catalogue has passed."""


def load_runtime(name: str) -> RuntimeModule:
    """Return the runtime with this name.

    Raises:
        UsageError: no such runtime.
    """
    return cast("RuntimeModule", load_alternative(package, name, kind="runtime"))


def default_runtime() -> str:
    """Return `tflm` when a tree of it is installed, else `bundled`."""
    if "tflm" in list_names(package) and load_runtime("tflm").is_available():
        return "tflm"
    return "bundled"


def find_reasons(
    model: Model, catalogue: Catalogue, allow_versions: Mapping[str, int] | None = None
) -> tuple[str, ...]:
    """List every reason why a runtime can not run a model; empty when it can."""
    ops = op_set(model)
    errors = [finding for finding in find_findings(model) if finding.severity == "error"]
    explained = {finding.layer for finding in errors if finding.layer}
    others = [use for use in ops if use.first_layer not in explained]
    return (
        *(f"{finding.words} {finding.remedy}".strip() for finding in errors),
        *find_obstacles(others, catalogue, allow_versions=allow_versions),
    )


def plan_build(model: Model, core: Core, settings: BuildSettings, others: Sequence[Model] = ()) -> BuildPlan:
    """Check a model, and others for the same firmware, against the runtime of the settings and plan the build.

    Raises:
        ModelError: the runtime can not run the model; gives all reasons at once.
        UsageError: a version is allowed of an op that the runtime does not have.
    """
    runtime = load_runtime(settings.runtime)
    catalogue = runtime.catalogue()
    check_allowed(settings.allow_versions, catalogue)
    for each in (model, *others):
        reasons = find_reasons(each, catalogue, settings.allow_versions)
        if reasons:
            raise ModelError(
                f"{each.name}: runtime {settings.runtime} can not run this model",
                reasons=reasons,
                hint="`forge ops` lists what each runtime has.",
            )
    return runtime.plan(union_op_set((model, *others)), core, settings)
