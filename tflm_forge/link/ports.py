"""Finds the serial port of a board by its USB ids."""

from collections.abc import Sequence

from tflm_forge.board import Board, boards_with_probe
from tflm_forge.errors import DeviceError
from tflm_forge.link.port import PortInfo, list_ports

_PORTS_SHOWN = 8
_BOARDS_SHOWN = 6


def find_port(board: Board, ports: Sequence[PortInfo] | None = None) -> str:
    """Return the port that a board of this kind is on.

    A USB id may be that of a debug probe which many kinds of boards carry. The only port with it is taken; of several,
    those whose serial number starts as this kind's do, where the board file says how.

    Args:
        board: the board.
        ports: the ports of this computer; looked up when left out.

    Raises:
        DeviceError: none or several are connected, or the board has no USB ids.
    """
    present = list_ports() if ports is None else tuple(ports)
    if not board.usb_ids:
        raise DeviceError(
            f"{board.name} has no usb_ids in its board file: its port can not be found",
            hint=f"Name it with --port. {_describe(present)}",
        )
    found = [port for port in present if port.usb_id in board.usb_ids and _may_be(board, port)]
    if not found:
        raise DeviceError(
            f"no {board.name} is connected: no port has the USB id {' or '.join(sorted(board.usb_ids))}"
            + (f" and a serial number that starts with {' or '.join(board.usb_serials)}" if board.usb_serials else ""),
            hint=_describe(present),
        )
    if len(found) > 1:
        raise DeviceError(
            f"{len(found)} boards that may be a {board.name} are connected",
            reasons=tuple(
                f"{p.url}: {p.usb_id}, serial number {p.serial_number or 'unknown'}"
                + (f" ({p.description})" if p.description else "")
                for p in found
            ),
            hint=f"Choose one with --port.{_explain_probe(board)}",
        )
    return found[0].url


def _may_be(board: Board, port: PortInfo) -> bool:
    """Whether the serial number speaks for the board; one that is not known says nothing."""
    return not board.usb_serials or not port.serial_number or port.serial_number.startswith(board.usb_serials)


def _explain_probe(board: Board) -> str:
    others = boards_with_probe(board)
    if not others:
        return ""
    names = ", ".join(others[:_BOARDS_SHOWN]) + (", ..." if len(others) > _BOARDS_SHOWN else "")
    return f" The USB id is that of the probe {board.probe}, which other boards carry too: {names}."


def _describe(ports: Sequence[PortInfo]) -> str:
    if not ports:
        return "This computer has no serial port now."
    names = [f"{p.url} ({p.usb_id or p.description or 'no USB id'})" for p in ports[:_PORTS_SHOWN]]
    return f"Ports of this computer: {', '.join(names)}."
