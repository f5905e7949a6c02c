"""Options that several commands share, and how they are laid over forge.toml."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tflm_forge.config import CONFIG_NAME, BuildSettings, Config, Optimize, Profile, Toolchain, load_config
from tflm_forge.errors import UsageError

if TYPE_CHECKING:
    from tflm_forge.board import Board
    from tflm_forge.model import Model

ModelArgument = Annotated[
    Path | None,
    typer.Argument(metavar="MODEL", help="The .tflite file; default: [build] model of forge.toml."),
]
WithOption = Annotated[
    list[Path] | None,
    typer.Option("--with", metavar="MODEL", help="A further model in the same firmware, sharing the arena."),
]
BoardOption = Annotated[
    str | None,
    typer.Option("--board", "-b", metavar="BOARD", help="Name of a board, or path of a board file."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="The project's folder; default build/<model>-<board>."),
]
RuntimeOption = Annotated[
    str | None,
    typer.Option("--runtime", metavar="RUNTIME", help="tflm or bundled; default tflm when installed, else bundled."),
]
ToolchainOption = Annotated[
    Toolchain | None,
    typer.Option("--toolchain", "--for", help="What drives the compiler: cmake (default) or platformio."),
]
ProfileOption = Annotated[
    Profile | None,
    typer.Option("--profile", help="release (default) strips error strings; debug keeps strings and checks."),
]
OptimizeOption = Annotated[Optimize | None, typer.Option("--optimize", "-O", help="Compiler's -O level; default s.")]
KernelSetOption = Annotated[
    str | None,
    typer.Option(
        "--kernel-set", metavar="NAME", help="Kernels of runtime tflm: cmsis_nn or reference; default by core."
    ),
]
LtoOption = Annotated[
    bool | None, typer.Option("--lto/--no-lto", help="Link-time optimization; default on in release, off in debug.")
]
StripOption = Annotated[
    bool | None,
    typer.Option(
        "--strip-error-strings/--keep-error-strings", help="Leave out the runtime's messages; default in release."
    ),
]
ArenaOption = Annotated[
    int | None,
    typer.Option("--arena", metavar="BYTES", min=0, help="Size of the tensor arena; default: measured."),
]
AllowVersionOption = Annotated[
    list[str] | None,
    typer.Option("--allow-version", metavar="OP=N", help="Accept a version over the runtime's own limit."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

_MOST_MODELS = 16


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a command that builds was asked for: forge.toml with the command's options over it."""

    config: Config
    model: "Model"
    model_path: Path
    board: "Board"
    settings: BuildSettings
    folder: Path
    others: "tuple[Model, ...]" = ()
    other_paths: tuple[Path, ...] = ()


def takes_job(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a build in front of its own; it gets them as `job`.

    The command's first parameter must be named `job`. What typer sees is one signature with all of the options.
    """
    shared = inspect.signature(collect_job).parameters
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "job"]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        job = collect_job(**{name: options.pop(name) for name in shared})
        command(job, **options)

    parameters = [*shared.values(), *own]
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def collect_job(
    model: ModelArgument = None,
    others: WithOption = None,
    board: BoardOption = None,
    output: OutputOption = None,
    runtime: RuntimeOption = None,
    profile: ProfileOption = None,
    optimize: OptimizeOption = None,
    kernel_set: KernelSetOption = None,
    lto: LtoOption = None,
    strip_error_strings: StripOption = None,
    arena: ArenaOption = None,
    allow_version: AllowVersionOption = None,
    toolchain: ToolchainOption = None,
) -> Job:
    """Lay a command's options over forge.toml of the current folder, and read the model and the board.

    Raises:
        UsageError: no model or no board is named, or forge.toml or an option is wrong.
        ModelError: the model can not be read.
    """
    from tflm_forge.model import load_model
    from tflm_forge.ops.catalogue import parse_allow_versions
    from tflm_forge.runtimes import default_runtime

    config = load_config(Path.cwd())
    table = config.build
    path = model or table.model
    if path is None:
        raise UsageError("no model given", hint="Name a .tflite file, or write one into forge.toml with `forge init`.")
    board_name = board or table.board
    if board_name is None:
        raise UsageError("no board given", hint="Add --board NAME; `forge boards` lists them.")
    target = choose_board(board_name)
    other_paths = tuple(others or table.with_)
    _refuse_too_many(other_paths)
    return Job(
        config=config,
        model=load_model(path),
        model_path=path,
        board=target,
        settings=BuildSettings(
            runtime=runtime or table.runtime or default_runtime(),
            profile=profile or table.profile or "release",
            optimize=optimize or table.optimize or "s",
            kernel_set=kernel_set or table.kernel_set,
            lto=table.lto if lto is None else lto,
            strip_error_strings=table.strip_error_strings if strip_error_strings is None else strip_error_strings,
            arena_bytes=arena if arena is not None else table.arena_bytes,
            allow_versions=parse_allow_versions([*table.allow_version, *(allow_version or [])]),
            toolchain=toolchain or table.toolchain or "cmake",
            own_ops=config.op,
            silence=collect_silence(config),
        ),
        folder=output
        or table.output
        or Path("build") / f"{'-'.join(p.stem for p in (path, *other_paths))}-{target.name}",
        others=tuple(load_model(other) for other in other_paths),
        other_paths=other_paths,
    )


def choose_board(name: str) -> "Board":
    """Read a board, and say aloud when its file hides another with the same name.

    Raises:
        UsageError: there is no such board, or its file is wrong.
    """
    from tflm_forge.board import load_board
    from tflm_forge.console import show_warning

    board = load_board(name)
    if board.shadows is not None:
        show_warning(f"board {board.name} is read from {board.path}, which hides {board.shadows}")
    return board


def collect_silence(config: Config) -> Mapping[str, str]:
    """Return the doctor's rules that forge.toml silences, with the reasons.

    Raises:
        UsageError: there is no such rule, or no reason.
    """
    if config.doctor.silence:
        from tflm_forge.doctor import check_silence

        check_silence(config.doctor.silence, f"{CONFIG_NAME}: [doctor] silence")
    return config.doctor.silence


def _refuse_too_many(others: tuple[Path, ...]) -> None:
    if len(others) >= _MOST_MODELS:
        raise UsageError(f"--with: {len(others) + 1} models, and one firmware holds {_MOST_MODELS} at most")
