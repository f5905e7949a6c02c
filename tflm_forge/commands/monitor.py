"""`forge monitor`: shows what a device prints and the frames it sends, and passes keys to it."""

from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import choose_board

if TYPE_CHECKING:
    from tflm_forge.link.port import Port

_LEAVE_KEY = b"\x1d"
"""Ctrl-]"""

_READ_S = 0.05
_QUIET_READS = 4
"""Text without a line end is shown after so many reads in which nothing came."""


def run(
    port: Annotated[
        str | None,
        typer.Option("--port", metavar="URL", help="Device name or pyserial URL, like socket://127.0.0.1:5555."),
    ] = None,
    board: Annotated[
        str | None, typer.Option("--board", "-b", metavar="BOARD", help="Find the port of this board by its USB id.")
    ] = None,
    baud: Annotated[
        int | None, typer.Option("--baud", min=1200, help="Bits a second; default: the board's, else 115200.")
    ] = None,
) -> None:
    """Show a device's log lines and decoded frames, and pass the keys you press to it. Ctrl-] or Ctrl-C ends it.

    Example: forge monitor --port /dev/ttyACM0
    """
    from tflm_forge.console import show_note
    from tflm_forge.errors import UsageError
    from tflm_forge.link.port import DEFAULT_BAUD, open_port
    from tflm_forge.link.ports import find_port

    if port is None and board is None:
        raise UsageError("no port given", hint="Add --port URL, or --board NAME to find it by its USB id.")
    target = choose_board(board) if board is not None else None
    if port is None and target is not None:
        port = find_port(target)
    speed = baud or (target.baud if target is not None else DEFAULT_BAUD)
    opened = open_port(str(port), baud=speed)
    try:
        show_note(f"{opened.url}, {speed} baud; Ctrl-] ends it")
        _watch(opened)
    except KeyboardInterrupt:
        # How one leaves a monitor: not an interruption of work.
        return
    finally:
        opened.close()


def _watch(port: "Port") -> None:
    from tflm_forge.commands._keyboard import open_keyboard
    from tflm_forge.console import show_text
    from tflm_forge.link.transcript import Transcript

    transcript = Transcript()
    quiet = 0
    with open_keyboard() as read_keys:
        while True:
            keys = read_keys()
            before, leave, _ = keys.partition(_LEAVE_KEY)
            if before:
                port.write(before)
            if leave:
                return
            chunk = port.read(_READ_S)
            quiet = 0 if chunk else quiet + 1
            for line in transcript.feed(chunk) if chunk else transcript.pause() if quiet == _QUIET_READS else ():
                show_text(line)
