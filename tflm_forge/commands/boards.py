"""`forge boards`: which boards there are, and what is known of one."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tflm_forge.commands._options import JsonOption

if TYPE_CHECKING:
    from tflm_forge.board import Board

_SHOWN_IN_HEX = 0x1000


def run(
    name: Annotated[
        str | None, typer.Argument(metavar="BOARD", help="Name or file of a board, to see all of it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the boards, the user's own among them: core, memory, where they run and what flashes them.

    Example: forge boards nucleo-f446re
    """
    from tflm_forge.board import list_boards
    from tflm_forge.commands._options import choose_board
    from tflm_forge.console import show_json, show_table, show_warning

    if name is not None:
        board = choose_board(name)
        if as_json:
            show_json(_as_json(board))
        else:
            show_table(board.title, ("", ""), _describe(board))
        return
    boards = list_boards()
    for board in boards:
        if board.shadows is not None:
            show_warning(f"board {board.name} is read from {board.path}, which hides {board.shadows}")
    if as_json:
        show_json([_as_json(board) for board in boards])
        return
    rows = [
        (
            board.name,
            board.core.name,
            _kilobytes(board.flash.length_bytes),
            _kilobytes(board.ram.length_bytes),
            board.emulator.machine if board.emulator else "-",
            ", ".join(board.runners) or "-",
            board.title,
        )
        for board in boards
    ]
    show_table("Boards", ("board", "core", "flash", "RAM", "QEMU machine", "runners", "what"), rows, right=(2, 3))


def _kilobytes(size: int) -> str:
    return f"{size // 1024} K"


def _setting(value: str | int) -> str:
    return f"0x{value:X}" if isinstance(value, int) and value >= _SHOWN_IN_HEX else str(value)


def _describe(board: "Board") -> list[tuple[str, str]]:
    rows = [
        ("file", str(board.path)),
        ("source", board.source),
        ("core", f"{board.core.name}, {board.clock_hz / 1e6:g} MHz"),
        *(
            (
                "flash" if region.kind == "flash" else "RAM",
                f"{region.name} 0x{region.origin:08X}, {_kilobytes(region.length_bytes)}"
                + ("" if region in (board.flash, board.ram) else ", not used"),
            )
            for region in board.regions
        ),
        ("driver", board.driver),
        ("serial port", f"{board.baud} baud, {', '.join(board.usb_ids) or 'over an adapter of yours'}"),
    ]
    if board.probe:
        rows.append(("probe", board.probe))
    runs = board.emulator.machine if board.emulator else "no machine"
    rows.append(("QEMU", f"{runs}; its arena is measured on {board.twin}" if board.twin else runs))
    for runner, settings in board.runners.items():
        rows.append(
            (f"runner {runner}", ", ".join(f"{key} {_setting(value)}" for key, value in settings.items()) or "-")
        )
    if board.platformio:
        rows.append(("PlatformIO", f"{board.platformio['board']} of {board.platformio['platform']}"))
    return rows


def _as_json(board: "Board") -> dict[str, Any]:
    return {
        "name": board.name,
        "title": board.title,
        "file": str(board.path),
        "hides": str(board.shadows) if board.shadows else None,
        "core": board.core.name,
        "clock_hz": board.clock_hz,
        "flash_bytes": board.flash.length_bytes,
        "ram_bytes": board.ram.length_bytes,
        "emulator": board.emulator.machine if board.emulator else None,
        "twin": board.twin,
        "driver": board.driver,
        "usb_ids": list(board.usb_ids),
        "probe": board.probe,
        "runners": {name: dict(settings) for name, settings in board.runners.items()},
        "platformio": dict(board.platformio) or None,
    }
