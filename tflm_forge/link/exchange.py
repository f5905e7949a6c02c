"""One request and its answer over a port: sequence numbers, repeats, time-outs, and every failure named."""

import re
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tflm_forge.errors import DeviceError
from tflm_forge.link.failures import Heard, death_error, restart_error, silence_error
from tflm_forge.link.framing import Event, Frame, FrameDecoder, Noise, Text, encode_frame, encoded_bytes
from tflm_forge.link.messages import ERROR_TYPE, PROGRESS_TYPE, Progress, Request
from tflm_forge.link.port import Port, PortLost

A = TypeVar("A")

DEFAULT_MTU_BYTES = 128
"""What is assumed of a device until INFO says its MTU."""

_LINES_KEPT = 200
_BITS_PER_BYTE = 10
_LAST_SEQUENCE = 255
_BANNER = re.compile(r"^forge \S+ board ")


class Target(Protocol):
    """What runs the firmware when it is not hardware: an emulator's process."""

    def alive(self) -> bool:
        """Return whether it still runs."""

    def last_words(self) -> str:
        """Return the end of what it printed."""


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long is waited for what, in seconds.

    Args:
        answer_s: until the first repeat of a request; doubled for each further repeat.
        longest_answer_s: what `answer_s` grows to.
        silence_s: until a device counts as silent that has neither answered nor sent PROGRESS, which it does
            as soon as it starts long work.
        work_s: the same between one PROGRESS and the next; a single operator must take less.
        reset_s: until a RESET whose answer may have got lost counts as done.
        boot_s: until a device that was opened or reset must have answered INFO.
        poll_s: how often the emulator's process is looked at while waiting.
        settle_s: how long the end of an emulator's process may take after its port closed.
        unpaced_bytes_per_s: the slowest a port without a baud rate is expected to be. QEMU takes bytes one by
            one: 18,000 a second on an idle computer, a quarter of that on a busy one.
    """

    answer_s: float = 0.15
    longest_answer_s: float = 1.0
    silence_s: float = 4.0
    work_s: float = 30.0
    reset_s: float = 1.0
    boot_s: float = 10.0
    poll_s: float = 0.05
    settle_s: float = 1.0
    unpaced_bytes_per_s: float = 5000.0


DEFAULT_TIMEOUTS = Timeouts()


class Exchange:
    """Sends requests over a port one at a time and returns their answers.

    Args:
        port: the open port.
        target: the emulator behind the port, to notice its end.
        timeouts: how long to wait for what.
        on_log: called with each line of text the device prints.
        on_progress: called with each PROGRESS of long work.
        first_sequence: the first sequence number; random by default, so that the device does not take the
            first request for a repeat of an earlier session's.
    """

    def __init__(
        self,
        port: Port,
        *,
        target: Target | None,
        timeouts: Timeouts,
        on_log: Callable[[str], None] | None,
        on_progress: Callable[[Progress], None] | None,
        first_sequence: int | None = None,
    ) -> None:
        self.timeouts = timeouts
        self.mtu_bytes = DEFAULT_MTU_BYTES
        self.restart_is_error = False
        self._target = target
        self._on_log = on_log
        self._on_progress = on_progress
        self._sequence = first_sequence or secrets.randbelow(_LAST_SEQUENCE) + 1
        self._ever_answered = False
        self.listen_afresh(port)

    @property
    def port(self) -> Port:
        """The port that is used now."""
        return self._port

    @property
    def log_lines(self) -> tuple[str, ...]:
        """The last lines of text the device printed."""
        return tuple(self._lines)

    def listen_afresh(self, port: Port) -> None:
        """Forget what was heard so far, and go on with this port."""
        self._port = port
        self._decoder = FrameDecoder()
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._frames = 0
        self._noise_bytes = 0
        self._is_quiet = False
        self._restart_banner = ""

    def send_and_wait(self, request: Request[A], limit_s: float) -> Frame:
        """Send a request, repeat it while no answer comes, and return the answer's frame (or an error's).

        Args:
            request: what to ask.
            limit_s: how long the device may say nothing; once it has sent PROGRESS, `work_s` when that is longer.

        Raises:
            DeviceError: no answer came; says what was heard in its place.
        """
        sequence = self._sequence
        self._sequence = sequence % _LAST_SEQUENCE + 1
        frame = encode_frame(Frame(type=request.TYPE, sequence=sequence, body=request.encode()))
        wire_s = self._wire_s(len(frame) + encoded_bytes(self.mtu_bytes))
        started = heard_at = time.monotonic()
        repeat_s = self.timeouts.answer_s
        repeat_at = started + repeat_s + wire_s
        self._send(request, frame)
        self._is_quiet = False
        while True:
            now = time.monotonic()
            # While bytes still come, the answer may be among them: forge itself may have been held up.
            patience_s = (1 if self._is_quiet else 2) * (limit_s + wire_s)
            if now - heard_at >= patience_s:
                raise self._silence(request, now - started)
            if now >= repeat_at:
                self._send(request, frame)
                repeat_s = min(2 * repeat_s, self.timeouts.longest_answer_s)
                repeat_at = now + repeat_s + wire_s
            for event in self._listen(request, repeat_at - now):
                if not isinstance(event, Frame) or event.sequence != sequence:
                    continue
                if event.type in (request.answer_type, ERROR_TYPE):
                    self._ever_answered = True
                    return event
                if event.type == PROGRESS_TYPE:
                    self._report(Progress.decode(event.body))
                    # The device has the request: from here on a repeat only helps when the answer is lost.
                    heard_at = time.monotonic()
                    limit_s = max(limit_s, self.timeouts.work_s)
                    repeat_s = self.timeouts.longest_answer_s
                    repeat_at = heard_at + repeat_s + wire_s

    def _listen(self, request: Request[A], wait_s: float) -> list[Event]:
        """Return what arrives next; notice an emulator that ended and a device that restarted."""
        if self._restart_banner:
            raise restart_error(self._port.url, request.NAME, self._restart_banner)
        try:
            chunk = self._port.read(max(0.0, min(wait_s, self.timeouts.poll_s)))
        except PortLost:
            self._raise_if_dead(request)
            raise
        self._is_quiet = not chunk
        if not chunk and self._target is not None and not self._target.alive():
            raise self._death(request, self._target)
        events = list(self._decoder.feed(chunk))
        for event in events:
            self._note(event)
        return events

    def _send(self, request: Request[A], frame: bytes) -> None:
        try:
            self._port.write(frame)
        except PortLost:
            self._raise_if_dead(request)
            raise

    def _note(self, event: Event) -> None:
        if isinstance(event, Frame):
            self._frames += 1
        elif isinstance(event, Noise):
            self._noise_bytes += len(event.data)
        elif isinstance(event, Text):
            self._lines.append(event.line)
            if self._on_log is not None:
                self._on_log(event.line)
            if self.restart_is_error and _BANNER.match(event.line):
                self._restart_banner = event.line

    def _report(self, progress: Progress) -> None:
        if self._on_progress is not None:
            self._on_progress(progress)

    def _silence(self, request: Request[A], waited_s: float) -> DeviceError:
        self._flush()
        return silence_error(self._port.url, request.NAME, waited_s, self._heard(), ever_answered=self._ever_answered)

    def _death(self, request: Request[A], target: Target) -> DeviceError:
        deadline = time.monotonic() + self.timeouts.settle_s
        try:
            while time.monotonic() < deadline and (chunk := self._port.read(0.0)):
                for event in self._decoder.feed(chunk):
                    self._note(event)
        except PortLost:
            # The port goes with the emulator; what was said before that is kept.
            self._flush()
        self._flush()
        return death_error(self._port.url, request.NAME, target.last_words(), self._heard())

    def _raise_if_dead(self, request: Request[A]) -> None:
        """Raise the emulator's death when that is why the port was lost; its end may take a moment."""
        if self._target is None:
            return
        deadline = time.monotonic() + self.timeouts.settle_s
        while self._target.alive():
            if time.monotonic() >= deadline:
                return
            time.sleep(self.timeouts.poll_s / 10)
        raise self._death(request, self._target)

    def _flush(self) -> None:
        for event in self._decoder.flush():
            self._note(event)

    def _heard(self) -> Heard:
        return Heard(frames=self._frames, lines=tuple(self._lines), noise_bytes=self._noise_bytes)

    def _wire_s(self, byte_count: int) -> float:
        if self._port.baud:
            return byte_count * _BITS_PER_BYTE / self._port.baud
        return byte_count / self.timeouts.unpaced_bytes_per_s
