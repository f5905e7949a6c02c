"""Options that several commands share, and how they are laid over forge.toml."""

from pathlib import Path
from typing import Annotated

import typer

from tflm_forge.config import BuildSettings, Config, Optimize, Profile, load_config
from tflm_forge.errors import UsageError

ModelArgument = Annotated[
    Path | None, typer.Argument(metavar="MODEL", help="The .tflite file; default: [build] model of forge.toml.")
]
BoardOption = Annotated[
    str | None, typer.Option("--board", "-b", metavar="BOARD", help="Name of a board, or path of a board file.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="The project's folder; default build/<model>-<board>."),
]
RuntimeOption = Annotated[
    str | None,
    typer.Option("--runtime", metavar="RUNTIME", help="tflm or bundled; default tflm when installed, else bundled."),
]
ProfileOption = Annotated[
    Profile | None,
    typer.Option("--profile", help="release (default) strips error strings; debug keeps strings and checks."),
]
OptimizeOption = Annotated[Optimize | None, typer.Option("--optimize", "-O", help="Compiler's -O level; default s.")]
ArenaOption = Annotated[
    int | None,
    typer.Option("--arena", metavar="BYTES", min=0, help="Size of the tensor arena; default: measured."),
]
AllowVersionOption = Annotated[
    list[str] | None,
    typer.Option("--allow-version", metavar="OP=N", help="Accept a version over the runtime's own limit."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def load_folder_config() -> Config:
    """Return the configuration of the folder the command runs in."""
    return load_config(Path.cwd())


def pick_model(model: Path | None, config: Config) -> Path:
    """Return the model's path from the argument or forge.toml.

    Raises:
        UsageError: neither names one.
    """
    chosen = model or config.build.model
    if chosen is None:
        raise UsageError("no model given", hint="Name a .tflite file, or write one into forge.toml with `forge init`.")
    return chosen


def pick_board(board: str | None, config: Config) -> str:
    """Return the board's name from the option or forge.toml.

    Raises:
        UsageError: neither names one.
    """
    chosen = board or config.build.board
    if chosen is None:
        raise UsageError("no board given", hint="Add --board NAME; `forge boards` lists them.")
    return chosen


def pick_output(output: Path | None, config: Config, model: Path, board: str) -> Path:
    """Return the project's folder: the option, forge.toml, or build/<model>-<board>."""
    return output or config.build.output or Path("build") / f"{model.stem}-{Path(board).stem}"


def pick_settings(
    config: Config,
    *,
    board: str,
    runtime: str | None,
    profile: Profile | None,
    optimize: Optimize | None,
    arena: int | None,
    allow_version: list[str] | None,
) -> BuildSettings:
    """Lay a command's options over forge.toml."""
    from tflm_forge.ops.catalogue import parse_allow_versions
    from tflm_forge.runtimes import default_runtime

    table = config.build
    return BuildSettings(
        board=board,
        runtime=runtime or table.runtime or default_runtime(),
        profile=profile or table.profile or "release",
        optimize=optimize or table.optimize or "s",
        arena_bytes=arena if arena is not None else table.arena_bytes,
        allow_versions=parse_allow_versions([*table.allow_version, *(allow_version or [])]),
    )
