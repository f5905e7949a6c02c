"""Finds the serial port of a board by its USB ids."""

from collections.abc import Sequence

from tflm_forge.errors import DeviceError
from tflm_forge.link.port import PortInfo, list_ports

_PORTS_SHOWN = 8


def find_port(board: str, usb_ids: Sequence[str], ports: Sequence[PortInfo] | None = None) -> str:
    """Return the port that a board of this kind is on.

    Args:
        board: the board's name, for errors.
        usb_ids: "VID:PID" of its USB serial port, as in its board file.
        ports: the ports of this computer; looked up when left out.

    Raises:
        DeviceError: none or several are connected, or the board has no USB ids.
    """
    present = list_ports() if ports is None else tuple(ports)
    if not usb_ids:
        raise DeviceError(
            f"{board} has no usb_ids in its board file: its port can not be found",
            hint=f"Name it with --port. {_describe(present)}",
        )
    wanted = {usb_id.upper() for usb_id in usb_ids}
    found = [port for port in present if port.usb_id in wanted]
    if not found:
        raise DeviceError(
            f"no {board} is connected: no port has the USB id {' or '.join(sorted(wanted))}",
            hint=_describe(present),
        )
    if len(found) > 1:
        raise DeviceError(
            f"{len(found)} boards that may be a {board} are connected",
            reasons=tuple(
                f"{p.url}: {p.usb_id}, serial number {p.serial_number or 'unknown'}"
                + (f" ({p.description})" if p.description else "")
                for p in found
            ),
            hint="Choose one with --port.",
        )
    return found[0].url


def _describe(ports: Sequence[PortInfo]) -> str:
    if not ports:
        return "This computer has no serial port now."
    names = [f"{p.url} ({p.usb_id or p.description or 'no USB id'})" for p in ports[:_PORTS_SHOWN]]
    return f"Ports of this computer: {', '.join(names)}."
