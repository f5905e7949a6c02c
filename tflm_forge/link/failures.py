"""The errors of a session, each with what was waited for, what was heard instead, and what to do."""

from dataclasses import dataclass

from tflm_forge.errors import DeviceError
from tflm_forge.link.answers import FaultRecord
from tflm_forge.link.status import BOOT_STEPS, Status

_LINES_SHOWN = 6


class RefusedError(DeviceError):
    """The device answered a request with an error status."""

    def __init__(self, request: str, status: Status, detail: int, fault: FaultRecord | None = None) -> None:
        super().__init__(
            f"the device refused {request}: {status.words}{_detail_words(status, detail)}",
            hint=status.remedy,
            reasons=(fault.words,) if fault else (),
        )
        self.status = status
        self.detail = detail
        self.fault = fault


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What came over the port since it was opened."""

    frames: int
    lines: tuple[str, ...]
    noise_bytes: int


def silence_error(url: str, request: str, waited_s: float, heard: Heard, *, ever_answered: bool) -> DeviceError:
    """Build the error for an answer that did not come, by what was heard in its place."""
    waited = f"within {waited_s:.1f} s"
    if ever_answered:
        return DeviceError(
            f"the device on {url} went silent: no answer to {request} {waited}",
            hint=_last_lines(heard) or "It may hang, or have lost power.",
        )
    if heard.frames:
        return DeviceError(
            f"the device on {url} sends frames, but no answer to {request} came {waited}",
            hint="The line loses many bytes, or another program talks to the device at the same time.",
        )
    text_bytes = sum(len(line) for line in heard.lines)
    if heard.noise_bytes > text_bytes:
        return DeviceError(
            f"only garbage came from {url} ({heard.noise_bytes} bytes), and no answer to {request} {waited}",
            hint="Most likely the baud rate is wrong: give the firmware's with --baud. Else check ground and wiring.",
        )
    if heard.lines:
        return DeviceError(
            f"the device on {url} prints text but does not speak the link: no answer to {request} {waited}",
            hint=f"Another firmware runs on it, or it stopped while booting. {_last_lines(heard)}".rstrip(),
        )
    return DeviceError(
        f"nothing came from {url}: no answer to {request} {waited}",
        hint="Is it the right port, is the board powered and flashed, and are RX and TX crossed?",
    )


def death_error(url: str, request: str, last_words: str, heard: Heard) -> DeviceError:
    """Build the error for an emulator that ended while forge waited."""
    hint = "\n".join(part for part in (last_words.strip(), _last_lines(heard)) if part)
    return DeviceError(f"the emulator behind {url} ended while forge waited for {request}", hint=hint)


def start_error(url: str, last_words: str) -> DeviceError:
    """Build the error for an emulator that ended before its port could be opened."""
    return DeviceError(f"the emulator ended before {url} could be opened", hint=last_words.strip())


def restart_error(url: str, request: str, banner: str) -> DeviceError:
    """Build the error for a device that began to boot in the middle of a session."""
    return DeviceError(
        f"the device on {url} restarted by itself while forge waited for {request}",
        hint=f"It printed: {banner}\nThe reset cause in INFO tells a watchdog from a power dip.",
    )


def _detail_words(status: Status, detail: int) -> str:
    """Return what the number of an error answer means; it depends on the status."""
    if status.name == "NotReady":
        step = BOOT_STEPS[detail] if detail < len(BOOT_STEPS) else str(detail)
        return f" (boot step {step})"
    if status.name in ("Fault", "Aborted", "StackCanary") and detail:
        return f" (PC 0x{detail:08X})"
    if status.name == "OutOfRange":
        return f" (it has {detail} bytes)"
    return f" (detail 0x{detail:X})" if detail else ""


def _last_lines(heard: Heard) -> str:
    if not heard.lines:
        return ""
    return "\n".join(("Its last lines:", *heard.lines[-_LINES_SHOWN:]))
