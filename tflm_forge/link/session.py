"""A session with a device: each request of the link as a method with types."""

import contextlib
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol, TypeVar

from tflm_forge.errors import DeviceError
from tflm_forge.link.answers import (
    FaultRecord,
    Info,
    InvokeResult,
    ModelInfo,
    OpPage,
    ProfilePage,
    RegisteredOp,
    SelfTest,
    SoakResult,
    TensorInfo,
    TensorPage,
)
from tflm_forge.link.exchange import DEFAULT_TIMEOUTS, Exchange, Target, Timeouts
from tflm_forge.link.failures import RefusedError, start_error
from tflm_forge.link.framing import Frame
from tflm_forge.link.messages import (
    ERROR_TYPE,
    ArenaRequest,
    CrcRequest,
    ErrorAnswer,
    FillMode,
    FillRequest,
    ForgetRequest,
    InfoRequest,
    InvokeRequest,
    LayerInfoRequest,
    LayerRequest,
    OpsRequest,
    ProfileRequest,
    Progress,
    ReadRequest,
    Request,
    ResetMode,
    ResetRequest,
    SelectRequest,
    SelfTestRequest,
    SoakRequest,
    Space,
    TensorsRequest,
    WriteRequest,
)
from tflm_forge.link.port import DEFAULT_BAUD, Port, PortLost, open_port
from tflm_forge.link.status import status_of

A = TypeVar("A")
T_co = TypeVar("T_co", covariant=True)

_FAULT_CODES = (0x57, 0x60, 0x61)


class Session:
    """An open link to one device. Use it as a context manager, or close it.

    Args:
        port: the open port; the session closes it.
        target: the emulator behind the port, to notice its end.
        reopen: opens the port again when it vanished with a reset.
        timeouts: how long to wait for what.
        on_log: called with each line of text the device prints.
        on_progress: called with each PROGRESS of long work.
        first_sequence: the first sequence number; random by default.
    """

    def __init__(
        self,
        port: Port,
        *,
        target: Target | None = None,
        reopen: Callable[[], Port] | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        on_log: Callable[[str], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        first_sequence: int | None = None,
    ) -> None:
        self._target = target
        self._reopen = reopen
        self._timeouts = timeouts
        self._exchange = Exchange(
            port,
            target=target,
            timeouts=timeouts,
            on_log=on_log,
            on_progress=on_progress,
            first_sequence=first_sequence,
        )

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The port's URL."""
        return self._exchange.port.url

    @property
    def log_lines(self) -> tuple[str, ...]:
        """The last lines of text the device printed."""
        return self._exchange.log_lines

    def close(self) -> None:
        """Give the port back."""
        self._exchange.port.close()

    def connect(self) -> Info:
        """Wait until the device answers INFO.

        Raises:
            DeviceError: silence, garbage only, another firmware, another protocol version, or an emulator
                that ended.
        """
        info = self.request(InfoRequest(), silence_s=self._timeouts.boot_s)
        self._exchange.restart_is_error = True
        return info

    def info(self) -> Info:
        """Ask what the device is."""
        return self.request(InfoRequest())

    def ops(self) -> tuple[RegisteredOp, ...]:
        """Ask which ops are registered."""

        def ask(start: int) -> OpPage:
            return self.request(OpsRequest(start=start))

        return tuple(_collect(ask, OpsRequest.NAME))

    def selftest(self) -> SelfTest:
        """Ask how the boot check went."""
        return self.request(SelfTestRequest())

    def tensors(self) -> tuple[TensorInfo, ...]:
        """Ask for the model's inputs and outputs."""

        def ask(start: int) -> TensorPage:
            return self.request(TensorsRequest(start=start))

        return tuple(_collect(ask, TensorsRequest.NAME))

    def select(self, index: int) -> ModelInfo:
        """Switch to another model of firmware with several; what the tensors of the former held is lost.

        Raises:
            RefusedError: there is no such model, or only one (UnknownRequest).
        """
        return self.request(SelectRequest(index=index))

    def write_tensor(self, space: Space, index: int, data: bytes, *, offset: int = 0) -> None:
        """Put bytes into a tensor, as many in a frame as the device takes."""
        step = self._exchange.mtu_bytes - WriteRequest.OVERHEAD_BYTES
        for at in range(0, len(data), step):
            part = data[at : at + step]
            self.request(WriteRequest(space=space, index=index, offset=offset + at, data=part))

    def read_tensor(self, space: Space, index: int, length: int, *, offset: int = 0) -> bytes:
        """Get bytes of a tensor, as many in a frame as the device sends."""
        step = self._exchange.mtu_bytes
        return b"".join(
            self.request(ReadRequest(space=space, index=index, offset=offset + at, length=min(step, length - at)))
            for at in range(0, length, step)
        )

    def crc(self, space: Space, index: int) -> int:
        """Get the CRC-32 of a tensor's bytes."""
        return self.request(CrcRequest(space=space, index=index))

    def fill_pattern(self, index: int, pattern: int) -> None:
        """Let the device fill an input with four bytes, a little-endian number, again and again."""
        self.request(FillRequest(index=index, mode=FillMode.PATTERN, value=pattern))

    def fill_random(self, index: int, seed: int) -> None:
        """Let the device fill an input from a seed; `random_data.random_bytes` makes the same."""
        self.request(FillRequest(index=index, mode=FillMode.RANDOM, value=seed))

    def reset_state(self) -> None:
        """Put the model's state (variables, streams) back to what it was before the first inference."""
        self.request(ForgetRequest())

    def invoke(self, count: int = 1) -> InvokeResult:
        """Run inferences on the inputs as they are.

        Raises:
            RefusedError: a boot step failed, or a kernel did.
        """
        result = self.request(InvokeRequest(count=count))
        if result.status.code:
            raise RefusedError(InvokeRequest.NAME, result.status, 0)
        return result

    def soak(self, loops: int, seed: int) -> SoakResult:
        """Run many inferences on inputs made from a seed; the status says whether all outputs agreed."""
        return self.request(SoakRequest(loops=loops, seed=seed))

    def profile(self) -> tuple[int, ...]:
        """Run one inference and get the ticks of each operator."""

        def ask(start: int) -> ProfilePage:
            return self.request(ProfileRequest(start=start))

        return tuple(_collect(ask, ProfileRequest.NAME))

    def layer_info(self, operator: int) -> tuple[int, int]:
        """Get bytes and CRC-32 of what an operator of the main subgraph wrote to its first output.

        Raises:
            RefusedError: the operator has no output, or the firmware does not keep all tensors (UnknownRequest).
        """
        info = self.request(LayerInfoRequest(operator=operator))
        return info.size_bytes, info.crc

    def read_layer(self, operator: int) -> bytes:
        """Get all bytes of what an operator of the main subgraph wrote to its first output.

        Raises:
            RefusedError: as `layer_info`.
        """
        size, _ = self.layer_info(operator)
        step = self._exchange.mtu_bytes
        return b"".join(
            self.request(LayerRequest(operator=operator, offset=at, length=min(step, size - at)))
            for at in range(0, size, step)
        )

    def reset(self) -> Info:
        """Restart the device, and wait until it answers again."""
        self._exchange.restart_is_error = False
        self._ask_reset(ResetMode.SYSTEM)
        self._exchange.listen_afresh(self._exchange.port)
        deadline = time.monotonic() + self._timeouts.boot_s
        while True:
            try:
                return self.connect()
            except PortLost:
                # A USB port that belongs to the device itself goes with it and comes back.
                self._exchange.port.close()
                if self._reopen is None or time.monotonic() >= deadline:
                    raise
                self._exchange.listen_afresh(self._reopen())

    def restart_with_arena(self, size_bytes: int) -> Info:
        """Restart the device with an arena of so many bytes, for this one boot.

        Raises:
            RefusedError: the firmware was not built to measure its arena.
        """
        self.request(ArenaRequest(size_bytes=size_bytes))
        return self.reset()

    def leave_emulator(self) -> None:
        """Ask the firmware to end its emulator, and close the port."""
        try:
            self._ask_reset(ResetMode.LEAVE_EMULATOR)
        finally:
            self.close()

    def request(self, request: Request[A], *, silence_s: float | None = None) -> A:
        """Send one request and return its answer; repeat it while no answer comes.

        Args:
            request: what to ask.
            silence_s: how long the device may say nothing; by default as `Timeouts` has it.

        Raises:
            RefusedError: the device answered with an error status.
            DeviceError: no answer, or one of the wrong form.
        """
        answer = self._exchange.send_and_wait(request, silence_s or self._timeouts.silence_s)
        if answer.type == ERROR_TYPE:
            raise self._refusal(request.NAME, answer)
        result = request.decode_answer(answer.body)
        if isinstance(result, Info):
            self._exchange.mtu_bytes = result.mtu_bytes
        return result

    def _ask_reset(self, mode: ResetMode) -> None:
        # The answer may not make it out before the device acts: what counts is what comes afterwards.
        try:
            self.request(ResetRequest(mode=mode), silence_s=self._timeouts.reset_s)
        except RefusedError:
            raise
        except DeviceError:
            return

    def _refusal(self, name: str, frame: Frame) -> RefusedError:
        error = ErrorAnswer.decode(frame.body)
        fault: FaultRecord | None = None
        if error.status in _FAULT_CODES and name != SelfTestRequest.NAME:
            with contextlib.suppress(DeviceError):
                fault = self.selftest().fault
        return RefusedError(name, status_of(error.status), error.detail, fault)


def open_session(
    url: str,
    *,
    baud: int = DEFAULT_BAUD,
    target: Target | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    on_log: Callable[[str], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Session:
    """Open a port and return a session on it; `connect` is still to be called.

    Args:
        url: a device name or any pyserial URL.
        baud: bits a second, for ports that have a speed.
        target: the emulator behind the port; its port is waited for.
        timeouts: how long to wait for what.
        on_log: called with each line of text the device prints.
        on_progress: called with each PROGRESS of long work.

    Raises:
        UsageError: the URL is not one.
        DeviceError: the port can not be opened.
    """

    def reopen() -> Port:
        return open_port(url, baud=baud, wait_s=timeouts.boot_s)

    if target is None:
        port = open_port(url, baud=baud)
    else:
        try:
            port = open_port(url, baud=baud, wait_s=timeouts.boot_s, worth_waiting=target.alive)
        except DeviceError as error:
            if target.alive():
                raise
            raise start_error(url, target.last_words()) from error
    return Session(
        port,
        target=target,
        reopen=reopen,
        timeouts=timeouts,
        on_log=on_log,
        on_progress=on_progress,
    )


class _Page(Protocol[T_co]):
    @property
    def total(self) -> int: ...
    @property
    def items(self) -> tuple[T_co, ...]: ...


def _collect(ask: Callable[[int], _Page[T_co]], name: str) -> Iterator[T_co]:
    """Ask page after page until all items came."""
    got = 0
    while True:
        page = ask(got)
        got += len(page.items)
        yield from page.items
        if got == page.total:
            return
        if not page.items or got > page.total:
            raise DeviceError(
                f"the device answered {name} with {got} items of {page.total}",
                hint="Firmware and forge do not fit together: build the firmware again with this forge.",
            )
