"""The runtimes that generated firmware can be compiled with, one module each.

A runtime module offers what `RuntimeModule` names. Its name is the word the user types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, cast

import tflm_forge.runtimes as package
from tflm_forge.board import Core
from tflm_forge.config import BuildSettings
from tflm_forge.doctor import Finding, Subject, diagnose
from tflm_forge.errors import ModelError
from tflm_forge.model import Model, OpUse, union_op_set
from tflm_forge.ops.catalogue import Catalogue, check_allowed
from tflm_forge.ops.own import OwnFiles, add_own_ops
from tflm_forge.registry import list_names, load_alternative


@dataclass(frozen=True, kw_only=True)
class Registration:
    """How one op of the op set is registered.

    Attributes:
        use: the op as the model uses it.
        call: the call on the op resolver, without the receiver ("AddConv2D(tflite::Register_CONV_2D_INT8())").
        includes: headers the call needs beyond micro_mutable_op_resolver.h.
        max_version: the highest version of this op that the firmware accepts.
        types: tensor types of first input and output that the registered kernel takes; empty when it does not look.
        own_function: the registration function of a kernel of the user's own; empty for the runtime's.
        own_sources: where the sources of a kernel of the user's own stand in the project; empty for the runtime's.
    """

    use: OpUse
    call: str
    includes: tuple[str, ...] = ()
    max_version: int
    types: tuple[str, ...] = ()
    own_function: str = ""
    own_sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OpPlan:
    """How the ops of one op set are registered on one core.

    Attributes:
        runtime: name of the runtime ("bundled").
        version: its version or commit, as people write it.
        commit: the whole commit when the version is one, else empty.
        kernel_set: which kernels ("portable", "reference", "cmsis_nn").
        registrations: one per op, in canonical order.
        notes: what the user should know of the choices made, one sentence each.
    """

    runtime: str
    version: str
    commit: str = ""
    kernel_set: str
    registrations: tuple[Registration, ...]
    notes: tuple[str, ...] = ()

    @property
    def own_sources(self) -> dict[str, str]:
        """Name of the op by each source of the user's own kernels, as it stands in the project."""
        return {source: r.use.name for r in self.registrations for source in r.own_sources}


@dataclass(frozen=True, kw_only=True)
class BuildPlan(OpPlan):
    """What to compile, and how, for one op set on one core.

    Attributes:
        root: folder the sources are relative to.
        sources: sources to compile, relative to root.
        headers: headers to copy into the project beside the sources; empty when root is used in place.
        include_dirs: include folders, relative to root.
        defines: preprocessor definitions for runtime and application alike.
        flags: further compiler flags for the runtime's sources.
        precompiled_headers: headers, as they are included, whose reading is most of the cost of compiling a source.
        not_precompiled: sources that must not see them.
        own: files of the user's own kernels, which are copied into the project.
    """

    root: Path
    sources: tuple[str, ...]
    headers: tuple[str, ...] = ()
    include_dirs: tuple[str, ...]
    defines: tuple[str, ...]
    flags: tuple[str, ...] = ()
    precompiled_headers: tuple[str, ...] = ()
    not_precompiled: tuple[str, ...] = ()
    own: OwnFiles = field(default_factory=OwnFiles)


class RuntimeModule(Protocol):
    """What a module of this package offers."""

    def is_available(self) -> bool:
        """Return whether its sources are on this machine."""

    def catalogue(self, kernel_set: str | None = None) -> Catalogue:
        """Return its op catalogue, of the kernel set that runs the most or of a named one."""

    def register(self, ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> OpPlan:
        """Say how an op set that the catalogue has passed is registered; needs the catalogue, no sources."""

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
    """List every reason why a runtime can not run a model; empty when it can.

    The rules are those of `forge doctor`; none is silenced here.
    """
    subject = Subject(model=model, catalogue=catalogue, allow_versions=allow_versions or {})
    return tuple(finding.text for finding in diagnose(subject) if finding.stands)


def diagnose_for(model: Model, settings: BuildSettings) -> tuple[Finding, ...]:
    """Return what the doctor finds about a model and the settings' runtime, silenced as forge.toml says."""
    subject = Subject(model=model, catalogue=load_catalogue(settings), allow_versions=settings.allow_versions)
    return diagnose(subject, settings.silence)


def plan_build(model: Model, core: Core, settings: BuildSettings, others: Sequence[Model] = ()) -> BuildPlan:
    """Check a model, and others for the same firmware, against the runtime of the settings and plan the build.

    Raises:
        ModelError: the runtime can not run the model; gives all reasons at once.
        UsageError: a version is allowed of an op that the runtime does not have.
    """
    notes = _check_models((model, *others), settings)
    plan = plan_op_set(union_op_set((model, *others)), core, settings)
    return replace(plan, notes=(*notes, *plan.notes))


def plan_ops(model: Model, core: Core, settings: BuildSettings, others: Sequence[Model] = ()) -> OpPlan:
    """Do of `plan_build` what needs no sources of the runtime: check, and say how the ops are registered.

    Raises:
        ModelError, UsageError: as for `plan_build`.
    """
    from tflm_forge.runtimes._own import register_with_own

    _check_models((model, *others), settings)
    return register_with_own(load_runtime(settings.runtime), union_op_set((model, *others)), core, settings)


def plan_op_set(ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> BuildPlan:
    """Plan the build of an op set that the catalogue has passed, with the user's own kernels in it.

    Raises:
        ModelError, ToolError, UsageError: the runtime can not be built with it.
    """
    from tflm_forge.runtimes._own import plan_with_own

    return plan_with_own(load_runtime(settings.runtime), ops, core, settings)


def load_catalogue(settings: BuildSettings) -> Catalogue:
    """Return the catalogue of the settings' runtime, with the user's own kernels in it.

    Raises:
        UsageError: no such runtime, or a table [[op]] of forge.toml is wrong.
    """
    return add_own_ops(load_runtime(settings.runtime).catalogue(settings.kernel_set), settings.own_ops)


def _check_models(models: Sequence[Model], settings: BuildSettings) -> tuple[str, ...]:
    """Refuse models that the runtime can not run; return what else their user should know.

    Raises:
        ModelError: gives all reasons at once.
    """
    check_allowed(settings.allow_versions, load_catalogue(settings))
    notes: list[str] = []
    for each in models:
        findings = diagnose_for(each, settings)
        reasons = tuple(finding.text for finding in findings if finding.stands)
        if reasons:
            raise ModelError(
                f"{each.name}: runtime {settings.runtime} can not run this model",
                reasons=reasons,
                hint="`forge doctor` explains each; `forge ops` lists what each runtime has.",
            )
        notes += [_as_note(each, finding) for finding in findings if finding.severity != "note"]
    return tuple(notes)


def _as_note(model: Model, finding: Finding) -> str:
    silenced = f" Silenced in forge.toml: {finding.silenced}" if finding.silenced else ""
    return f"{model.name}: {finding.severity} {finding.id}: {finding.text}{silenced}"
