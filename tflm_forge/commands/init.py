"""`forge init`: writes a forge.toml, and the gate of a repository."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Ci = Literal["github", "gitlab", "pre-commit"]

# The template, where the file belongs, and what is left to do by hand.
_CI_FILES: dict[Ci, tuple[str, str, str]] = {
    "github": ("github.yml", ".github/workflows/forge-check.yml", "commit it"),
    "gitlab": (
        "gitlab.yml",
        ".gitlab/forge-check.yml",
        "add `include: { local: .gitlab/forge-check.yml }` to .gitlab-ci.yml",
    ),
    "pre-commit": ("pre-commit.yaml", ".pre-commit-config.yaml", "pre-commit install"),
}


def run(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="The .tflite file the settings are for; not needed with --ci."),
    ] = None,
    board: Annotated[str, typer.Option("--board", "-b", metavar="BOARD", help="Name of a board.")] = "stm32f4",
    ci: Annotated[
        Ci | None, typer.Option("--ci", help="Write what runs `forge check` there: a workflow, a job, or a hook.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a forge.toml with the settings of a project; with --ci, what checks it in CI.

    Example: forge init model.tflite --board stm32f4
    """
    from tflm_forge.errors import UsageError

    if model is None and ci is None:
        raise UsageError("no model given", hint="forge init MODEL, or forge init --ci github")
    if model is not None:
        _write_config(model, board, force=force)
    if ci is not None:
        _write_ci(ci, force=force)


def _write_config(model: Path, board: str, *, force: bool) -> None:
    from tflm_forge.board import load_board
    from tflm_forge.config import CONFIG_NAME, CONFIG_TEMPLATE
    from tflm_forge.model import load_model

    load_model(model)
    load_board(board)
    text = CONFIG_TEMPLATE.format(model=model.as_posix(), board=board)
    _write(Path(CONFIG_NAME), text, "forge build", force=force)


def _write_ci(ci: Ci, *, force: bool) -> None:
    from tflm_forge import __version__
    from tflm_forge.resources import data_dir

    template, place, then = _CI_FILES[ci]
    text = (data_dir("templates") / "ci" / template).read_text(encoding="utf-8")
    # A newer forge may choose other kernels: what checks is to be what made the manifests.
    text = text.replace("pip install tflm-forge", f"pip install tflm-forge=={__version__}")
    _write(Path(place), text, then, force=force)


def _write(path: Path, text: str, then: str, *, force: bool) -> None:
    from tflm_forge.console import show_text
    from tflm_forge.errors import UsageError
    from tflm_forge.files import write_output

    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="--force replaces it.")
    write_output(path, text.encode())
    show_text(f"wrote {path}; next: {then}")
