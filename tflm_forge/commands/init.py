"""`forge init`: writes a forge.toml."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The .tflite file the settings are for.")],
    board: Annotated[str, typer.Option("--board", "-b", metavar="BOARD", help="Name of a board.")] = "stm32f4",
    force: Annotated[bool, typer.Option("--force", help="Replace a forge.toml that is there.")] = False,
) -> None:
    """Write a forge.toml with the settings of a project.

    Example: forge init model.tflite --board stm32f4
    """
    from tflm_forge.board import load_board
    from tflm_forge.config import CONFIG_NAME, CONFIG_TEMPLATE
    from tflm_forge.console import show_text
    from tflm_forge.errors import UsageError
    from tflm_forge.files import write_if_changed
    from tflm_forge.model import load_model

    load_model(model)
    load_board(board)
    path = Path(CONFIG_NAME)
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="--force replaces it.")
    write_if_changed(path, CONFIG_TEMPLATE.format(model=model.as_posix(), board=board).encode())
    show_text(f"wrote {path}; next: forge build")
