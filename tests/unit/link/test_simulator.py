"""10,000 exchanges over a line that loses, doubles, flips, splits, merges and delays bytes, in virtual time."""

import random
import zlib
from collections import deque

import pytest

from tests.unit.link.simulated_device import INT8, SimTensor, SimulatedDevice
from tflm_forge.errors import DeviceError
from tflm_forge.link import exchange, session
from tflm_forge.link.exchange import Timeouts
from tflm_forge.link.messages import Space
from tflm_forge.link.session import Session

EXCHANGES = 10_000
SEEDS = 4
TENSOR_BYTES = 150
PATIENT = Timeouts(silence_s=120.0, boot_s=120.0)
"""With this much of its bytes damaged a line would count as silent after 4 s now and then."""


class VirtualClock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class BadLine:
    """One direction: what is sent arrives later, in order, damaged."""

    def __init__(self, seed: int, clock: VirtualClock) -> None:
        self.random = random.Random(seed)
        self.clock = clock
        self.damaged = 0
        self._queue: deque[tuple[float, bytes]] = deque()
        self._last_arrival = 0.0

    def send(self, data: bytes) -> None:
        chance = self.random.random
        parts = [data]
        if chance() < 0.06:
            parts = []
        elif chance() < 0.06:
            parts = [data, data]
        for part in parts:
            self._put(self._damage(part))

    def _damage(self, data: bytes) -> bytes:
        out, chance, before = bytearray(data), self.random.random, data
        if out and chance() < 0.06:
            out[self.random.randrange(len(out))] ^= 1 << self.random.randrange(8)
        if out and chance() < 0.04:
            del out[self.random.randrange(len(out))]
        if out and chance() < 0.04:
            at = self.random.randrange(len(out))
            out[at:at] = self.random.randbytes(self.random.randrange(1, 6))
        self.damaged += bytes(out) != before
        return bytes(out)

    def _put(self, data: bytes) -> None:
        while data:
            size = self.random.randrange(1, len(data) + 1)
            delay = self.random.choice((0.0, 0.0, 0.0, 0.001, 0.3))
            # A line keeps the order of its bytes.
            self._last_arrival = max(self._last_arrival, self.clock.now + delay)
            self._queue.append((self._last_arrival, data[:size]))
            data = data[size:]

    def next_arrival(self) -> float | None:
        return self._queue[0][0] if self._queue else None

    def arrived(self) -> bytes:
        """Return all that is there by now, as one piece."""
        out = b""
        while self._queue and self._queue[0][0] <= self.clock.now:
            out += self._queue.popleft()[1]
        return out


class BadPort:
    """A port with a device behind two bad lines."""

    url = "sim://bad"
    baud: int | None = 115200

    def __init__(self, device: SimulatedDevice, seed: int, clock: VirtualClock) -> None:
        self.device = device
        self.clock = clock
        self.there = BadLine(seed, clock)
        self.back = BadLine(seed + 1, clock)
        self.back.send(device.boot())

    def write(self, data: bytes) -> None:
        self.there.send(data)
        self._turn()

    def read(self, timeout_s: float) -> bytes:
        deadline = self.clock.now + timeout_s
        while True:
            self._turn()
            if data := self.back.arrived():
                return data
            arrivals = [t for t in (self.there.next_arrival(), self.back.next_arrival()) if t is not None]
            self.clock.now = max(self.clock.now, min([deadline, *arrivals]))
            if self.clock.now >= deadline:
                self._turn()
                return self.back.arrived()

    def close(self) -> None:
        pass

    def _turn(self) -> None:
        if data := self.there.arrived():
            # Each answer is a write of its own.
            for answer in self.device.take(data).split(b"\0\0"):
                if answer.strip(b"\0"):
                    self.back.send(b"\0" + answer.strip(b"\0") + b"\0")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_exchanges_over_a_bad_line(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    clock, choose = VirtualClock(), random.Random(seed)
    monkeypatch.setattr(exchange, "time", clock)
    monkeypatch.setattr(session, "time", clock)
    device = SimulatedDevice(
        inputs=[SimTensor(INT8, (1, TENSOR_BYTES), 0.5, 0, bytearray(TENSOR_BYTES))],
        outputs=[SimTensor(INT8, (1, TENSOR_BYTES), 0.5, 0, bytearray(TENSOR_BYTES))],
        model=lambda inputs: [inputs[0][::-1]],
        mtu=TENSOR_BYTES + 6,
        progress=2,
    )
    port = BadPort(device, 100 * seed, clock)
    memory, output, invoked = bytearray(TENSOR_BYTES), bytes(TENSOR_BYTES), 0
    with Session(port, timeouts=PATIENT, first_sequence=seed + 1) as link:
        link.connect()
        for _ in range(EXCHANGES // SEEDS):
            kind = choose.randrange(4)
            at = choose.randrange(TENSOR_BYTES)
            if kind == 0:
                data = choose.randbytes(choose.randrange(1, TENSOR_BYTES - at + 1))
                link.write_tensor(Space.INPUT, 0, data, offset=at)
                memory[at : at + len(data)] = data
            elif kind == 1:
                length = choose.randrange(1, TENSOR_BYTES - at + 1)
                assert link.read_tensor(Space.OUTPUT, 0, length, offset=at) == output[at : at + length]
            elif kind == 2:
                assert link.crc(Space.INPUT, 0) == zlib.crc32(memory)
            else:
                link.invoke()
                invoked, output = invoked + 1, bytes(memory[::-1])
            assert device.inputs[0].data == memory
    assert device.runs[0x11] == invoked
    # The line was as bad as it should be.
    assert min(port.there.damaged, port.back.damaged) > EXCHANGES // SEEDS // 20


def test_a_line_that_loses_all_ends_in_an_error_and_not_in_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()
    monkeypatch.setattr(exchange, "time", clock)
    monkeypatch.setattr(session, "time", clock)
    port = BadPort(SimulatedDevice(), 1, clock)
    with Session(port, first_sequence=1) as link:
        link.connect()
        port.there.send = lambda data: None  # type: ignore[method-assign]
        began = clock.now
        with pytest.raises(DeviceError, match="went silent"):
            link.crc(Space.INPUT, 0)
    assert 3 < clock.now - began < 10


def test_a_damaged_frame_is_made_good_within_200_ms(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()
    monkeypatch.setattr(exchange, "time", clock)
    port = BadPort(SimulatedDevice(), 1, clock)
    took = []
    with Session(port, first_sequence=1) as link:
        link.connect()
        for line in (port.there, port.back):
            line.send = lambda data, line=line: line._put(data)  # type: ignore[method-assign]
            line.random.choice = lambda _: 0.0  # type: ignore[method-assign]
        for line in (port.there, port.back):
            good = line.send

            def once(data: bytes, line: BadLine = line, good=good) -> None:
                line.send = good  # type: ignore[method-assign]
                good(data[:5] + bytes([data[5] ^ 4]) + data[6:])

            line.send = once  # type: ignore[method-assign]
            began = clock.now
            link.crc(Space.INPUT, 0)
            took.append(clock.now - began)
    assert all(0.1 < seconds < 0.2 for seconds in took), took
