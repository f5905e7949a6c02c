"""`forge board`: makes and checks board files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tflm_forge.board import Board

app = typer.Typer(
    name="board",
    help="Make and check board files: a new board needs no code.\n\nExample: forge board new mine --like nucleo-f446re",
)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new board's name, which is its file's.")],
    like: Annotated[
        str,
        typer.Option("--like", metavar="BOARD", help="The board to start from: the same chip, or one of its family."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; default boards/NAME.toml.")
    ] = None,
) -> None:
    """Write a board file to fill in: that of a similar board, with every number explained.

    Example: forge board new my-board --like nucleo-f446re
    """
    from tflm_forge.board.scaffold import scaffold_board
    from tflm_forge.console import show_text
    from tflm_forge.errors import UsageError
    from tflm_forge.files import write_if_changed

    path = output or Path("boards") / f"{name}.toml"
    text = scaffold_board(name, like)
    if path.exists():
        raise UsageError(f"{path}: is there already", hint="Choose another name, or another file with -o.")
    try:
        write_if_changed(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path}: can not write: {error.strerror or error}", hint="Choose another with -o.") from error
    show_text(f"{path}: fill it in from top to bottom, then: forge board check {path}")


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Board files; default: every board there is.")
    ] = None,
) -> None:
    """Check board files: every problem at once, and what they have in common with other boards.

    Example: forge board check boards/my-board.toml
    """
    from tflm_forge.board import board_folders
    from tflm_forge.console import show_text

    every = {path.resolve(): path for folder in board_folders() for path in sorted(folder.glob("*.toml"))}
    boards = _check_each(files or list(every.values()))
    _check_together(boards)
    for board in boards:
        show_text(f"{board.path}: ok, {board.core.name} at {board.clock_hz / 1e6:g} MHz, driver {board.driver}")


def _check_each(paths: list[Path]) -> "list[Board]":
    """Read all files; what is wrong in several is one error."""
    from tflm_forge.errors import UsageError

    boards, errors = [], []
    for path in paths:
        try:
            boards.append(_check_file(path))
        except UsageError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        reasons = [line for error in errors for line in (error.message, *error.reasons)]
        raise UsageError(f"{len(errors)} board files are wrong", reasons=reasons)
    return boards


def _check_file(path: Path) -> "Board":
    """Read a board file as a build would, and what only other rooms know of it: its runners."""
    from tflm_forge.commands._options import choose_board
    from tflm_forge.errors import UsageError
    from tflm_forge.runners import load_runner, settings_of

    board = choose_board(str(path) if path.suffix == ".toml" else path.name)
    errors = []
    for name in board.runners:
        try:
            settings_of(load_runner(name), board)
        except UsageError as error:
            named = error.message if str(board.path) in error.message else f"[runner.{name}]: {error.message}"
            errors.append(f"{named} ({error.hint})")
    if errors:
        raise UsageError(f"{board.path}: {len(errors)} of its runners are wrong", reasons=errors)
    return board


def _check_together(boards: "list[Board]") -> None:
    """Refuse USB ids that two boards have: those given, and those that a name finds."""
    from tflm_forge.board import list_boards, refuse_shared_usb_ids

    given = {board.name: board for board in boards}
    refuse_shared_usb_ids({**{board.name: board for board in list_boards()}, **given}.values())
