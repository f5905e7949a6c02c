"""Puts the user's own kernels into a runtime's plan: the runtime plans the other ops and knows nothing of them."""

from collections.abc import Sequence
from dataclasses import replace

from tflm_forge.board import Core
from tflm_forge.config import CONFIG_NAME, BuildSettings, OpTable
from tflm_forge.model import OpUse
from tflm_forge.ops.catalogue import Catalogue
from tflm_forge.ops.own import OwnFiles, collect_files, find_own, own_header, own_name, registration_call
from tflm_forge.runtimes import BuildPlan, OpPlan, Registration, RuntimeModule, load_catalogue


def plan_with_own(runtime: RuntimeModule, ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> BuildPlan:
    """Plan the build of an op set with a runtime and the user's own kernels.

    Raises:
        ModelError, ToolError, UsageError: as the runtime's `plan`; a file of a kernel can not be read.
    """
    if not settings.own_ops:
        return runtime.plan(ops, core, settings)
    catalogue = load_catalogue(settings)
    tables = _tables_in_use(ops, settings)
    plain = [use for use in ops if find_own(use, tables) is None]
    # The sources of these are wanted, and not their registrations.
    helpers = [use for use in _helper_uses(tables, catalogue) if _key(use) not in {_key(other) for other in plain}]
    plan = runtime.plan([*plain, *helpers], core, settings)
    kept = {_key(use) for use in plain}
    plan = replace(plan, registrations=tuple(r for r in plan.registrations if _key(r.use) in kept))
    files = collect_files(tables)
    merged = _merge(plan, ops, catalogue, settings, files)
    return replace(
        plan,
        registrations=merged.registrations,
        own=files,
        notes=(*plan.notes, *_unused_notes(ops, settings)),
    )


def register_with_own(runtime: RuntimeModule, ops: Sequence[OpUse], core: Core, settings: BuildSettings) -> OpPlan:
    """Say how an op set is registered with a runtime and the user's own kernels.

    Raises:
        ModelError, UsageError: as the runtime's `register`; a file of a kernel can not be read.
    """
    if not settings.own_ops:
        return runtime.register(ops, core, settings)
    catalogue = load_catalogue(settings)
    tables = _tables_in_use(ops, settings)
    plan = runtime.register([use for use in ops if find_own(use, tables) is None], core, settings)
    return _merge(plan, ops, catalogue, settings, collect_files(tables))


def _merge(
    plan: OpPlan, ops: Sequence[OpUse], catalogue: Catalogue, settings: BuildSettings, files: OwnFiles
) -> OpPlan:
    """Return the plan with the registrations of the user's kernels in their places of the canonical order."""
    own = [
        _own_registration(use, table, catalogue, settings, files)
        for use in ops
        if (table := find_own(use, settings.own_ops)) is not None
    ]
    merged = sorted((*plan.registrations, *own), key=lambda r: (r.use.builtin_code, r.use.custom_name.encode()))
    return replace(plan, registrations=tuple(merged))


def _own_registration(
    use: OpUse, table: OpTable, catalogue: Catalogue, settings: BuildSettings, files: OwnFiles
) -> Registration:
    row = catalogue.ops[_key(use)]
    return Registration(
        use=use,
        call=registration_call(row),
        includes=(files.name_of(own_header(table)),),
        max_version=max(row.max_version, settings.allow_versions.get(use.name, 0)),
        types=table.types,
        own_function=table.register,
        own_sources=tuple(files.name_of(path) for path in table.sources),
    )


def _tables_in_use(ops: Sequence[OpUse], settings: BuildSettings) -> tuple[OpTable, ...]:
    used = [table for use in ops if (table := find_own(use, settings.own_ops)) is not None]
    return tuple(table for table in settings.own_ops if table in used)


def _helper_uses(tables: Sequence[OpTable], catalogue: Catalogue) -> list[OpUse]:
    names = dict.fromkeys(name for table in tables for name in table.uses)
    rows = {row.name: row for row in catalogue.ops.values()}
    return [
        OpUse(
            builtin_code=rows[name].builtin_code,
            custom_name=rows[name].custom_name,
            name=name,
            version=1,
            count=0,
            first_layer="",
            types=(),
        )
        for name in names
    ]


def _unused_notes(ops: Sequence[OpUse], settings: BuildSettings) -> list[str]:
    names = {use.name for use in ops}
    unused = [own_name(table) for table in settings.own_ops if own_name(table) not in names]
    if not unused:
        return []
    left_out = "it, and it is not compiled" if len(unused) == 1 else "them, and they are not compiled"
    return [f"[[op]] {', '.join(unused)} of {CONFIG_NAME}: no layer uses {left_out}"]


def _key(use: OpUse) -> tuple[int, str]:
    return use.builtin_code, use.custom_name
