"""Model + Board + OpPlan -> Manifest: what is known of a firmware before it is linked."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tflm_forge import __version__
from tflm_forge.board import Board
from tflm_forge.board.finding import board_folders
from tflm_forge.config import BuildSettings
from tflm_forge.manifest.record import (
    Manifest,
    ManifestArena,
    ManifestBuild,
    ManifestFlash,
    ManifestModel,
    ManifestOp,
    ManifestRuntime,
    ModelOp,
)
from tflm_forge.model import Model, op_set
from tflm_forge.model.resources import count_resource_variables
from tflm_forge.model.schema import SCHEMA_VERSION
from tflm_forge.ops.hash import op_hash
from tflm_forge.runtimes import OpPlan, Registration


def make_manifest(
    models: Sequence[Model],
    board: Board,
    plan: OpPlan,
    settings: BuildSettings,
    *,
    arena: ManifestArena | None = None,
    folder: Path | None = None,
    model_paths: Sequence[Path] = (),
) -> Manifest:
    """Return the manifest of a firmware, all but what only its link tells.

    Args:
        models: the models that are built in, at least one.
        board: the board the firmware is for.
        plan: what the firmware registers.
        settings: how it is built.
        arena: the tensor arena; None when its size is not known.
        folder: where the manifest will stand, for the paths in it.
        model_paths: where the models lie; without them the manifest has their names.
    """
    files = [model.name for model in models]
    if folder and model_paths:
        files = [relative_name(path, folder) for path in model_paths]
    # A board in one of these folders is found by its name; one that was given as a path is not.
    own_board = board.path.resolve().parent not in {place.resolve() for place in board_folders()}
    return Manifest(
        forge=__version__,
        models=tuple(_describe_model(m, f, several=len(models) > 1) for m, f in zip(models, files, strict=True)),
        board=board.name,
        board_file=relative_name(board.path, folder) if own_board and folder else "",
        runtime=ManifestRuntime(name=plan.runtime, version=plan.version, commit=plan.commit, kernels=plan.kernel_set),
        build=ManifestBuild(
            profile=settings.profile,
            optimize=settings.optimize,
            lto=settings.uses_lto,
            strip_error_strings=settings.strips_error_strings,
            allow_versions=settings.allow_versions,
        ),
        op_hash=op_hash(registration.use for registration in plan.registrations),
        arena=arena,
        flash=ManifestFlash(limit_bytes=board.flash.length_bytes),
        resource_variables=max(count_resource_variables(model) for model in models),
        # Neither runtime is built with TFLM's USE_TFLM_COMPRESSION: such a model is refused when it is read.
        compression=False,
        schema_version=SCHEMA_VERSION,
        ops=tuple(_describe_op(registration) for registration in plan.registrations),
    )


def keep_measured(new: Manifest, old: Manifest | None) -> Manifest:
    """Take over what only a build measures, where an older manifest of the very same firmware has it."""
    if old is None or not is_same_firmware(new, old):
        return new
    flash = new.flash
    if flash and old.flash:
        flash = replace(flash, size_bytes=old.flash.size_bytes, groups=old.flash.groups)
    return replace(new, arena=new.arena or old.arena, flash=flash, saving_kb=old.saving_kb)


def is_same_firmware(first: Manifest, second: Manifest) -> bool:
    """Return whether two manifests agree in all that decides what is linked, but for the arena's size."""
    return _essence(first) == _essence(second)


def _essence(manifest: Manifest) -> tuple[object, ...]:
    models = tuple((model.sha256, model.size_bytes) for model in manifest.models)
    ops = tuple((op.key, op.version, op.max_version, op.registration) for op in manifest.ops)
    return models, ops, manifest.board, manifest.runtime, manifest.build, manifest.forge


def relative_name(path: Path, folder: Path) -> str:
    """Return a file's path from a folder, with slashes; its name alone where there is no such path."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.name


def _describe_model(model: Model, file: str, *, several: bool) -> ManifestModel:
    alone = ManifestModel(file=file, sha256=model.sha256, size_bytes=len(model.data))
    if not several:
        return alone
    uses = op_set(model)
    ops = tuple(ModelOp(name=use.name, version=use.version, count=use.count) for use in uses)
    return replace(alone, op_hash=op_hash(uses), ops=ops)


def _describe_op(registration: Registration) -> ManifestOp:
    use = registration.use
    return ManifestOp(
        name=use.name,
        builtin_code=use.builtin_code,
        custom_name=use.custom_name,
        version=use.version,
        max_version=registration.max_version,
        count=use.count,
        types=use.types,
        first_layer=use.first_layer,
        registration=registration.call,
        kernel_types=registration.types,
    )
