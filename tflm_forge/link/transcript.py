"""What goes over a link, in lines a person can read: text as it is, frames decoded."""

from collections.abc import Callable, Iterator

from tflm_forge.errors import DeviceError
from tflm_forge.link.answers import Info, InvokeResult, SelfTest, SoakResult
from tflm_forge.link.framing import ANSWER_BIT, Event, Frame, FrameDecoder, Noise, Text
from tflm_forge.link.messages import (
    ERROR_TYPE,
    PROGRESS_TYPE,
    REQUEST_NAMES,
    ErrorAnswer,
    InfoRequest,
    InvokeRequest,
    Progress,
    SelfTestRequest,
    SoakRequest,
)
from tflm_forge.link.status import BOOT_STEPS, status_of

_BYTES_SHOWN = 16


class Transcript:
    """Turns the bytes of a device into lines, as they come.

    Text without a line end (a prompt) is given out when nothing follows it: call `pause` then.
    """

    def __init__(self) -> None:
        self._decoder = FrameDecoder()

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Take bytes that arrived and yield the lines that became complete."""
        for event in self._decoder.feed(chunk):
            yield describe_event(event)

    def pause(self) -> Iterator[str]:
        """Yield what stands unfinished, as the device has said nothing for a while."""
        for event in self._decoder.flush():
            yield describe_event(event)


def describe_event(event: Event) -> str:
    """Return one line for a text, a frame or noise."""
    if isinstance(event, Text):
        return event.line
    if isinstance(event, Noise):
        return f"<{len(event.data)} bytes that are no text and no frame: {_hex(event.data)}>"
    return f"<{_describe_frame(event)}>"


def _describe_frame(frame: Frame) -> str:
    number = f"#{frame.sequence}"
    try:
        if frame.type == PROGRESS_TYPE:
            progress = Progress.decode(frame.body)
            return f"PROGRESS {number}: {progress.done:,} of {progress.total:,}"
        if frame.type == ERROR_TYPE:
            error = ErrorAnswer.decode(frame.body)
            name = REQUEST_NAMES.get(error.request_type, f"0x{error.request_type:02X}")
            return f"refused {name} {number}: {status_of(error.status).words} (detail 0x{error.detail:X})"
        code = frame.type & ~ANSWER_BIT
        if code in _READERS:
            return f"answer to {REQUEST_NAMES[code]} {number}: {_READERS[code](frame.body)}"
    except DeviceError as error:
        return f"frame 0x{frame.type:02X} {number}: {error.message}"
    kind = f"answer to {REQUEST_NAMES[code]}" if code in REQUEST_NAMES else f"frame 0x{frame.type:02X}"
    return f"{kind} {number}: {len(frame.body)} bytes {_hex(frame.body)}".rstrip()


def _info(body: bytes) -> str:
    info: Info = InfoRequest().decode_answer(body)
    return (
        f"{info.board}, runtime {info.runtime} {info.runtime_version}, forge {info.forge_version}, "
        f"{'ready' if info.ready else 'not ready'}, arena {info.arena_used_bytes:,} of {info.arena_bytes:,} bytes"
    )


def _selftest(body: bytes) -> str:
    selftest: SelfTest = SelfTestRequest().decode_answer(body)
    steps = ", ".join(f"{step} {status.words}" for step, status in zip(BOOT_STEPS, selftest.steps, strict=True))
    return steps if selftest.fault is None else f"{steps}; {selftest.fault.words}"


def _invoke(body: bytes) -> str:
    result: InvokeResult = InvokeRequest().decode_answer(body)
    return f"{result.status.words}, {result.total_ticks:,} ticks"


def _soak(body: bytes) -> str:
    result: SoakResult = SoakRequest(loops=1, seed=0).decode_answer(body)
    return f"{result.status.words}, {result.loops_done:,} loops, {result.stack_high_water_bytes:,} bytes of stack"


_READERS: dict[int, Callable[[bytes], str]] = {
    InfoRequest.TYPE: _info,
    SelfTestRequest.TYPE: _selftest,
    InvokeRequest.TYPE: _invoke,
    SoakRequest.TYPE: _soak,
}


def _hex(data: bytes) -> str:
    shown = data[:_BYTES_SHOWN].hex(" ")
    return f"{shown} ..." if len(data) > _BYTES_SHOWN else shown
