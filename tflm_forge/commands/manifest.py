"""`forge manifest`: the operator manifest of a model, without a build."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import (
    AllowVersionOption,
    ArenaOption,
    BoardOption,
    KernelSetOption,
    LtoOption,
    ModelArgument,
    OptimizeOption,
    ProfileOption,
    RuntimeOption,
    StripOption,
    WithOption,
    collect_job,
)

if TYPE_CHECKING:
    from tflm_forge.commands._options import Job
    from tflm_forge.gates.renewal import Origin
    from tflm_forge.manifest import Manifest


def run(
    model: ModelArgument = None,
    others: WithOption = None,
    board: BoardOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The manifest; default ops.manifest.yaml. - is stdout."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Make all manifests of the project again, each as it says itself."),
    ] = False,
    runtime: RuntimeOption = None,
    profile: ProfileOption = None,
    optimize: OptimizeOption = None,
    kernel_set: KernelSetOption = None,
    lto: LtoOption = None,
    strip_error_strings: StripOption = None,
    arena: ArenaOption = None,
    allow_version: AllowVersionOption = None,
) -> None:
    """Write the operator manifest of a model, to be committed: ops, versions, runtime, board; nothing is built.

    What only a build measures (arena, flash) is taken over from the last build or the manifest of before, where that
    was of the very same firmware, and is left out otherwise.

    Example: forge manifest model.tflite --board stm32f4
    """
    from tflm_forge.errors import UsageError

    if every:
        if model or others or output:
            raise UsageError(
                "--all takes no model and no -o", hint="Each manifest says itself what it is made of and where it is."
            )
        _renew_all()
        return
    job = collect_job(
        model=model,
        others=others,
        board=board,
        output=None,
        runtime=runtime,
        profile=profile,
        optimize=optimize,
        kernel_set=kernel_set,
        lto=lto,
        strip_error_strings=strip_error_strings,
        arena=arena,
        allow_version=allow_version,
    )
    _make(job, output)


def _make(job: "Job", output: Path | None) -> None:
    import typer

    from tflm_forge.console import show_text
    from tflm_forge.files import write_output
    from tflm_forge.gates.renewal import Origin, make_again, take_from_build
    from tflm_forge.manifest import MANIFEST_NAME, render_manifest

    to_stdout = output is not None and str(output) == "-"
    path = Path(MANIFEST_NAME) if output is None or to_stdout else output
    if path.is_dir():
        path /= MANIFEST_NAME
    paths = (job.model_path, *job.other_paths)
    old = _read_before(path, paths, given=output is not None)
    origin = Origin(path=path, model_paths=paths, board=job.board, settings=job.settings)
    new = take_from_build(make_again(origin, (job.model, *job.others), old), job.folder)
    content = render_manifest(new)
    if to_stdout:
        typer.echo(content.decode(), nl=False)
        return
    changed = write_output(path, content)
    show_text(f"{path}: {_state(new)}{'' if changed else ', unchanged'}")


def _read_before(path: Path, models: tuple[Path, ...], *, given: bool) -> "Manifest | None":
    """Return the manifest that stands there, None when it can not be read; another model's is not overwritten."""
    from tflm_forge.errors import UsageError
    from tflm_forge.manifest import read_manifest
    from tflm_forge.manifest.record import locate_model

    if not path.is_file():
        return None
    try:
        old = read_manifest(path)
    except UsageError:
        return None
    own = not old.models or locate_model(path, old.models[0]).resolve() == models[0].resolve()
    if not own and not given:
        raise UsageError(
            f"{path} is the manifest of {old.models[0].file}",
            hint=f"Give another file: -o {models[0].stem}.manifest.yaml",
        )
    return old


def _state(manifest: "Manifest") -> str:
    count = len(manifest.ops)
    known = [f"{count} op{'' if count == 1 else 's'}"]
    if manifest.arena:
        known.append(f"arena {manifest.arena.size_bytes:,} bytes")
    flash_bytes = manifest.flash.size_bytes if manifest.flash else None
    if flash_bytes is not None:
        known.append(f"flash {flash_bytes:,} bytes")
    if not manifest.arena and flash_bytes is None:
        known.append("arena and flash not known before a `forge build`")
    return ", ".join(known)


def _renew_all() -> None:
    from tflm_forge.config import load_config
    from tflm_forge.console import show_text
    from tflm_forge.errors import UsageError
    from tflm_forge.files import write_output
    from tflm_forge.gates.project_files import find_files
    from tflm_forge.gates.renewal import renew_all
    from tflm_forge.manifest import render_manifest

    config = load_config(Path.cwd())
    paths = find_files(Path.cwd(), config.operator_ci_check.manifests)
    if not paths:
        raise UsageError(
            f"no manifest matches [operator_ci_check] manifests = {list(config.operator_ci_check.manifests)}",
            hint="`forge manifest MODEL --board BOARD -o FILE` makes the first one.",
        )

    def build_folder(origin: "Origin") -> Path:
        stems = "-".join(path.stem for path in origin.model_paths)
        return config.build.output or Path("build") / f"{stems}-{origin.board.name}"

    for path, manifest in renew_all(paths, config, build_folder):
        changed = write_output(path, render_manifest(manifest))
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        show_text(f"{shown}: {_state(manifest)}{'' if changed else ', unchanged'}")
