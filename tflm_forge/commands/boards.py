"""`forge boards`: which boards there are."""

from tflm_forge.commands._options import JsonOption


def run(as_json: JsonOption = False) -> None:
    """List the boards: core, memory, and where they run.

    Example: forge boards
    """
    from tflm_forge.board import list_boards
    from tflm_forge.console import show_json, show_table

    boards = list_boards()
    if as_json:
        show_json(
            [
                {
                    "name": board.name,
                    "title": board.title,
                    "core": board.core.name,
                    "clock_hz": board.clock_hz,
                    "flash_bytes": board.flash.length_bytes,
                    "ram_bytes": board.ram.length_bytes,
                    "emulator": board.emulator.machine if board.emulator else None,
                }
                for board in boards
            ]
        )
        return
    rows = [
        (
            board.name,
            board.core.name,
            f"{board.flash.length_bytes // 1024} K",
            f"{board.ram.length_bytes // 1024} K",
            board.emulator.machine if board.emulator else "-",
            board.title,
        )
        for board in boards
    ]
    show_table("Boards", ("board", "core", "flash", "RAM", "QEMU machine", "what"), rows, right=(2, 3))
