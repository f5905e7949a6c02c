"""What registering every op of the runtime would cost: the same firmware, built with all of them."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.board import load_board
from tflm_forge.config import OpTable
from tflm_forge.errors import FitError, UsageError
from tflm_forge.generate import Arena, Project, fingerprint_project, generate_project, model_file
from tflm_forge.manifest import read_build
from tflm_forge.manifest.measured import write_saving
from tflm_forge.model import OpUse, load_model, union_op_set
from tflm_forge.ops.catalogue import Catalogue
from tflm_forge.runtimes import load_catalogue, plan_op_set
from tflm_forge.size import Attribution, attribute
from tflm_forge.toolchains import cmake

_ALL_OPS_FOLDER = "all-ops"


@dataclass(frozen=True, kw_only=True)
class Versus:
    """Flash of a firmware without its model, and of the same firmware with every op registered."""

    minimal: Attribution
    minimal_ops: int
    all_ops: Attribution
    all_ops_count: int

    @property
    def saving_bytes(self) -> int:
        """Flash that exact registration saves."""
        return self.all_ops.without_model_bytes - self.minimal.without_model_bytes


def compare_with_all_ops(folder: Path, report: Callable[[str], None], own_ops: tuple[OpTable, ...] = ()) -> Versus:
    """Build the firmware of a folder once more with all ops registered, and compare their flash.

    The project with all ops is kept in a folder below, its objects in the shared cache. Where it does not fit the
    board's flash, it is linked with as much as it takes. The manifest of the folder gets the saving.

    Args:
        folder: a folder that `forge build` made.
        report: gets one line for each step that takes time.
        own_ops: the user's own kernels, which the folder's manifest does not describe.

    Raises:
        UsageError: the folder holds no build.
        ToolError: the build failed.
    """
    facts = read_build(folder)
    settings, board = dataclasses.replace(facts.settings, own_ops=own_ops), load_board(facts.board)
    model, *others = (
        dataclasses.replace(load_model(folder / model_file(index)), name=name)
        for index, name in enumerate(facts.model_names)
    )
    elf = folder / "firmware.elf"
    if not elf.is_file():
        raise UsageError(f"{folder}: holds no firmware.elf", hint="Build with `forge build` first.")
    ops = union_op_set((model, *others))
    catalogue = load_catalogue(settings)
    strangers = [use.name for use in ops if catalogue.find(use) is None]
    if strangers:
        raise UsageError(
            f"{folder}: {', '.join(strangers)} is not known here",
            hint="Run this in the folder whose forge.toml has the [[op]] of the build.",
        )
    arena = Arena(bytes=settings.arena_bytes or 0, how="as in the firmware it is compared with")
    project = Project(
        folder=folder,
        model=model,
        board=board,
        plan=plan_op_set(ops, board.core, settings),
        settings=settings,
        arena=arena,
        build_id=b"",
        others=tuple(others),
    )
    every = every_op(catalogue)
    report(f"building with all {len(every)} ops of {settings.runtime}")
    plan = plan_op_set(every, board.core, settings)
    whole = generate_project(folder / _ALL_OPS_FOLDER, model, board, plan, settings, arena, others)
    versus = Versus(
        minimal=attribute(elf, own_sources=project.plan.own_sources),
        minimal_ops=len(ops),
        all_ops=attribute(_build_whatever_size(whole), own_sources=plan.own_sources),
        all_ops_count=len(every),
    )
    fingerprint = fingerprint_project(model, board, project.plan, settings, others)
    write_saving(folder, fingerprint, versus.saving_bytes)
    return versus


def every_op(catalogue: Catalogue) -> tuple[OpUse, ...]:
    """Return all ops of a runtime, as a model without any hint on types would use them."""
    return tuple(
        OpUse(
            builtin_code=op.builtin_code,
            custom_name=op.custom_name,
            name=op.name,
            version=min(op.max_version, 1),
            count=0,
            first_layer="",
            types=(),
        )
        for _, op in sorted(catalogue.ops.items())
    )


def _build_whatever_size(project: Project) -> Path:
    try:
        return cmake.build(project).elf
    except FitError as error:
        board = project.board
        regions = tuple(
            dataclasses.replace(r, length_bytes=r.length_bytes + -(-error.bytes_over.get(r.name, 0) // 4096) * 4096)
            for r in board.regions
        )
        larger = dataclasses.replace(board, regions=regions)
        return cmake.build(
            generate_project(
                project.folder, project.model, larger, project.plan, project.settings, project.arena, project.others
            )
        ).elf
