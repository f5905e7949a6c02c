"""Makes the manifests of a project again: each from its own model, board and settings, with what forge.toml says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tflm_forge.board import Board, load_board
from tflm_forge.config import BuildSettings, BuildTable, Config
from tflm_forge.errors import ForgeError, UsageError
from tflm_forge.manifest import (
    MANIFEST_NAME,
    Manifest,
    ManifestArena,
    keep_measured,
    make_manifest,
    read_manifest,
)
from tflm_forge.manifest.record import locate_model
from tflm_forge.model import Model, load_model
from tflm_forge.ops.catalogue import parse_allow_versions
from tflm_forge.runtimes import plan_ops


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a manifest is made of.

    Attributes:
        path: where the manifest stands.
        model_paths: the models, the first first.
        board: the board.
        settings: how the firmware is built.
    """

    path: Path
    model_paths: tuple[Path, ...]
    board: Board
    settings: BuildSettings


def find_origin(path: Path, manifest: Manifest, config: Config) -> Origin:
    """Return what a manifest was made of, by its own words; for the model of [build], forge.toml's win.

    Args:
        path: where the manifest stands.
        manifest: what it says.
        config: forge.toml of the project.

    Raises:
        UsageError: it names no model, runtime or board, or a board that forge does not know; the error's message
            begins with file and line.
    """
    if not manifest.models:
        raise UsageError(f"{path}:1: names no model", hint=f"Make it with `forge manifest MODEL -o {path.name}`.")
    settings = manifest.settings
    table = config.build
    paths = tuple(locate_model(path, model) for model in manifest.models)
    is_main = table.model is not None and table.model.resolve() == paths[0].resolve()
    if is_main and table.with_:
        paths = (paths[0], *table.with_)
    runtime = (table.runtime if is_main else None) or (settings.runtime if settings else None)
    if runtime is None:
        raise UsageError(f"{path}:{manifest.line_of('runtime')}: names no runtime", hint="Make it anew.")
    settings = replace(settings or BuildSettings(runtime=runtime), runtime=runtime, arena_bytes=None, own_ops=config.op)
    if is_main:
        settings = _lay_over(settings, table)
    return Origin(
        path=path,
        model_paths=paths,
        board=_load_board(path, manifest, (table.board if is_main else None)),
        settings=settings,
    )


def _lay_over(settings: BuildSettings, table: BuildTable) -> BuildSettings:
    """Return the settings of a manifest with those of forge.toml over them."""
    if table.profile is not None and table.profile != settings.profile:
        settings = replace(settings, profile=table.profile, lto=None, strip_error_strings=None)
    strip = table.strip_error_strings
    return replace(
        settings,
        kernel_set=table.kernel_set,
        optimize=table.optimize or settings.optimize,
        lto=settings.lto if table.lto is None else table.lto,
        strip_error_strings=settings.strip_error_strings if strip is None else strip,
        arena_bytes=table.arena_bytes,
        allow_versions=parse_allow_versions(table.allow_version) or settings.allow_versions,
    )


def _load_board(path: Path, manifest: Manifest, wanted: str | None) -> Board:
    name = wanted or (str(path.parent / manifest.board_file) if manifest.board_file else manifest.board)
    if not name:
        raise UsageError(f"{path}:1: names no board", hint="Make it anew.")
    try:
        return load_board(name)
    except UsageError as error:
        key = "board_file" if manifest.board_file else "board"
        raise UsageError(f"{path}:{manifest.line_of(key)}: {key}: {error.message}", hint=error.hint) from error


def make_again(origin: Origin, models: Sequence[Model], old: Manifest | None) -> Manifest:
    """Return the manifest of today, with what was measured when that is still true.

    Args:
        origin: what it is made of.
        models: the models that were read from its paths.
        old: the manifest of before, or None.

    Raises:
        ModelError: the runtime can not run a model.
        UsageError: a setting is wrong.
    """
    settings = origin.settings
    plan = plan_ops(models[0], origin.board.core, settings, models[1:])
    given = settings.arena_bytes
    new = make_manifest(
        models,
        origin.board,
        plan,
        settings,
        arena=None if given is None else ManifestArena(size_bytes=given, how="given with --arena"),
        folder=origin.path.parent,
        model_paths=origin.model_paths,
    )
    return keep_measured(new, old)


def take_from_build(new: Manifest, folder: Path) -> Manifest:
    """Take over what a build in a folder has measured, when it is of the very same firmware."""
    path = folder / MANIFEST_NAME
    if not path.is_file():
        return new
    try:
        built = read_manifest(path)
    except UsageError:
        return new  # a build of an older forge
    fresh = keep_measured(replace(new, arena=None), built)
    return new if fresh.arena is None else fresh


def renew_all(
    paths: Sequence[Path], config: Config, build_folder: Callable[[Origin], Path]
) -> tuple[tuple[Path, Manifest], ...]:
    """Make several manifests again.

    Args:
        paths: where they stand; each must be there, for it says what it is made of.
        config: forge.toml of the project.
        build_folder: where the firmware of one is built, for what was measured there.

    Raises:
        ForgeError: one of them can not be made again; its error names the file.
    """
    renewed = []
    for path in paths:
        old = read_manifest(path)
        try:
            origin = find_origin(path, old, config)
            new = make_again(origin, [load_model(each) for each in origin.model_paths], old)
        except ForgeError as error:
            if error.message.startswith(str(path)):
                raise
            raise type(error)(f"{path}: {error.message}", hint=error.hint, reasons=error.reasons) from error
        renewed.append((path, take_from_build(new, build_folder(origin))))
    return tuple(renewed)
