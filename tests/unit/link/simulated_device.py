"""A device that speaks the link, written from docs/link.md with struct alone, behind a bad line if wanted."""

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from cobs import cobs

from tflm_forge.link.port import PortLost

FLOAT32, INT8 = 1, 9


def frame_bytes(kind: int, sequence: int, body: bytes) -> bytes:
    content = bytes((kind, sequence)) + body
    return b"\0" + cobs.encode(content + struct.pack("<I", zlib.crc32(content))) + b"\0"


def str8(text: str) -> bytes:
    return bytes((len(text.encode()),)) + text.encode()


def random_data(seed: int, tensors: "list[SimTensor]") -> list[bytes]:
    """One byte a number of xorshift32, from one tensor on to the next; no floats."""
    state, parts = seed or 1, []
    for tensor in tensors:
        part = bytearray()
        for _ in range(len(tensor.data)):
            state = (state ^ (state << 13)) % 2**32
            state ^= state >> 17
            state = (state ^ (state << 5)) % 2**32
            part.append(state % 256)
        parts.append(bytes(part))
    return parts


@dataclass
class SimTensor:
    type: int
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    data: bytearray


@dataclass
class SimulatedDevice:
    """Answers requests; `model` turns the input bytes into the output bytes."""

    inputs: list[SimTensor] = field(default_factory=lambda: [SimTensor(INT8, (1, 4), 0.5, -1, bytearray(4))])
    outputs: list[SimTensor] = field(default_factory=lambda: [SimTensor(INT8, (1, 4), 0.25, 3, bytearray(4))])
    model: Callable[[list[bytes]], list[bytes]] = lambda inputs: [inputs[0]]
    protocol: int = 1
    mtu: int = 64
    ready: bool = True
    steps: tuple[int, ...] = (0, 0, 0, 0, 0)
    fault: tuple[int, ...] | None = None
    offenders: tuple[tuple[int, int, int, str], ...] = ()
    ops: tuple[tuple[int, int, str], ...] = ((3, 3, ""), (32, 1, "Window"))
    op_hash: int = 0x11223344
    model_op_hash: int = 0x11223344
    model_sha256: bytes = bytes(range(32))
    model_bytes: int = 1000
    build_id: bytes = b"B" * 16
    arena: tuple[int, int] = (4096, 4000)
    counter_kind: int = 2
    ticks_per_second: int = 25_000_000
    ticks: int = 1000
    board: str = "sim"
    banner: str = "forge 0.1.0 board sim runtime bundled 0.1.0\nready\n"
    invoke_error: tuple[int, int] | None = None
    progress: int = 0
    operators: int = 5
    soak_status: tuple[int, int] = (0, 0xFFFFFFFF)
    state: int = 1
    layers: tuple[bytes, ...] = ()
    runs: dict[int, int] = field(default_factory=dict)
    _received: bytearray = field(default_factory=bytearray)
    _last: tuple[tuple[int, int, int], bytes] | None = None

    def boot(self) -> bytes:
        self._last = None
        self._received.clear()
        return self.banner.encode()

    def take(self, data: bytes) -> bytes:
        """Take bytes from the host and return what the device sends back."""
        self._received += data
        *whole, rest = bytes(self._received).split(b"\0")
        self._received = bytearray(rest)
        return b"".join(self._take_segment(s) for s in whole if s)

    def _take_segment(self, segment: bytes) -> bytes:
        try:
            raw = cobs.decode(segment)
        except cobs.DecodeError:
            return b""
        if len(raw) < 6 or struct.pack("<I", zlib.crc32(raw[:-4])) != raw[-4:]:
            return b""
        kind, sequence, body = raw[0], raw[1], raw[2:-4]
        key = (kind, sequence, zlib.crc32(raw[:-4]))
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        self.runs[kind] = self.runs.get(kind, 0) + 1
        before = b"".join(
            frame_bytes(0xF0, sequence, struct.pack("<II", i + 1, self.progress))
            for i in range(self.progress if kind in (0x11, 0x20, 0x21) else 0)
        )
        answer = self._answer(kind, body)
        if isinstance(answer, tuple):
            reply = frame_bytes(0xFF, sequence, struct.pack("<BHI", kind, *answer))
        else:
            reply = frame_bytes(kind | 0x80, sequence, answer)
        self._last = (key, reply)
        if kind == 0x7E:
            return reply + self.boot()
        return before + reply

    def _answer(self, kind: int, body: bytes) -> bytes | tuple[int, int]:
        handler = {
            0x01: self._info, 0x02: self._ops, 0x03: self._selftest, 0x04: self._tensors, 0x10: self._write,
            0x11: self._invoke, 0x12: self._read, 0x13: self._crc, 0x14: self._fill, 0x15: self._forget,
            0x20: self._soak, 0x21: self._profile, 0x22: self._layer, 0x7E: lambda _: b"",
        }.get(kind)  # fmt: skip
        return (0x52, kind) if handler is None else handler(body)

    def _info(self, _: bytes) -> bytes:
        numbers = struct.pack(
            "<BHBBBI16s32sIIHIIHHII",
            self.protocol, self.mtu, self.ready, 1, self.counter_kind, self.ticks_per_second, self.build_id,
            self.model_sha256, self.model_bytes, self.op_hash, len(self.ops), *self.arena, 32, 12, 2048, 700,
        )  # fmt: skip
        return numbers + b"".join(str8(t) for t in (self.board, "bundled", "0.1.0", "portable", "0.1.0"))

    def _page(self, items: list[bytes], body: bytes, per_page: int) -> bytes:
        (start,) = struct.unpack("<H", body)
        part = items[start : start + per_page]
        return struct.pack("<HB", len(items), len(part)) + b"".join(part)

    def _ops(self, body: bytes) -> bytes:
        return self._page([struct.pack("<iI", c, v) + str8(n) for c, v, n in self.ops], body, 1)

    def _selftest(self, _: bytes) -> bytes:
        fault = b"\0" if self.fault is None else b"\1" + struct.pack("<8I", *self.fault)
        offenders = b"".join(struct.pack("<iII", c, n, s) + str8(name) for c, n, s, name in self.offenders)
        return (
            struct.pack("<B5HIB", 5, *self.steps, self.model_op_hash, 1)
            + fault
            + struct.pack("<HB", len(self.offenders), len(self.offenders))
            + offenders
        )

    def _tensors(self, body: bytes) -> bytes:
        items = [
            struct.pack("<BBBB", space, i, t.type, len(t.shape))
            + struct.pack(f"<{len(t.shape)}i", *t.shape)
            + struct.pack("<fiI", t.scale, t.zero_point, len(t.data))
            for space, tensors in enumerate((self.inputs, self.outputs))
            for i, t in enumerate(tensors)
        ]
        return self._page(items, body, 1)

    def _tensor(self, space: int, index: int) -> SimTensor:
        return (self.inputs, self.outputs)[space][index]

    def _write(self, body: bytes) -> bytes | tuple[int, int]:
        space, index, offset = struct.unpack_from("<BBI", body)
        data, tensor = body[6:], self._tensor(space, index)
        if offset + len(data) > len(tensor.data):
            return (0x55, len(tensor.data))
        tensor.data[offset : offset + len(data)] = data
        return b""

    def _invoke(self, body: bytes) -> bytes | tuple[int, int]:
        (count,) = struct.unpack("<I", body)
        if not self.ready:
            return (0x51, 1)
        if self.invoke_error is not None:
            return self.invoke_error
        for tensor, data in zip(self.outputs, self.model([bytes(t.data) for t in self.inputs]), strict=True):
            tensor.data[:] = data
        return struct.pack("<HQQQ", 0, self.ticks * count, self.ticks, self.ticks)

    def _read(self, body: bytes) -> bytes:
        space, index, offset, length = struct.unpack("<BBIH", body)
        return bytes(self._tensor(space, index).data[offset : offset + length])

    def _crc(self, body: bytes) -> bytes:
        space, index = struct.unpack("<BB", body)
        return struct.pack("<I", zlib.crc32(bytes(self._tensor(space, index).data)))

    def _fill(self, body: bytes) -> bytes | tuple[int, int]:
        index, mode, value = struct.unpack("<BBI", body)
        data = self.inputs[index].data
        if mode == 1:
            data[:] = random_data(value, [self.inputs[index]])[0]
            return b""
        data[:] = (struct.pack("<I", value) * len(data))[: len(data)]
        return b""

    def _forget(self, _: bytes) -> bytes:
        self.state = 0
        return b""

    def _layer(self, body: bytes) -> bytes | tuple[int, int]:
        operator, offset, length = struct.unpack("<HIH", body)
        if operator >= len(self.layers):
            return (0x54, 0)
        data = self.layers[operator]
        return data[offset : offset + length] if length else struct.pack("<II", len(data), zlib.crc32(data))

    def _soak(self, body: bytes) -> bytes:
        loops, seed = struct.unpack("<II", body)
        outputs = self.model(random_data(seed, self.inputs))
        status, first = self.soak_status
        return struct.pack("<HIIII", status, loops, zlib.crc32(b"".join(outputs)), first, 900)

    def _profile(self, body: bytes) -> bytes:
        return self._page([struct.pack("<Q", 10 + i) for i in range(self.operators)], body, 2)


@dataclass
class Line:
    """What happens to bytes on their way; rates are per write, from a seeded generator."""

    seed: int = 0
    drop: float = 0.0
    duplicate: float = 0.0
    flip: float = 0.0
    truncate: float = 0.0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def carry(self, data: bytes) -> bytes:
        chance = self._random.random
        if chance() < self.drop:
            return b""
        out = bytearray(data)
        if out and chance() < self.flip:
            out[self._random.randrange(len(out))] ^= 1 << self._random.randrange(8)
        if out and chance() < self.truncate:
            del out[self._random.randrange(len(out)) :]
        return bytes(out + out) if chance() < self.duplicate else bytes(out)


class SimulatedPort:
    """The host's end: gives back what the device sent, in small pieces, without ever sleeping long."""

    url = "sim://device"
    baud: int | None = None

    def __init__(
        self,
        device: SimulatedDevice,
        *,
        to_device: Line | None = None,
        to_host: Line | None = None,
        piece_bytes: int = 7,
        lost_after_writes: int | None = None,
    ) -> None:
        self.device = device
        self.to_device = to_device or Line()
        self.to_host = to_host or Line()
        self.piece_bytes = piece_bytes
        self.writes: list[bytes] = []
        self.closed = False
        self._lost_after = lost_after_writes
        self._pending = bytearray(device.boot())

    def read(self, timeout_s: float) -> bytes:
        if self._lost_after is not None and len(self.writes) > self._lost_after and not self._pending:
            raise PortLost("the connection to sim://device was lost: gone")
        data = bytes(self._pending[: self.piece_bytes])
        del self._pending[: self.piece_bytes]
        return data

    def write(self, data: bytes) -> None:
        if self._lost_after is not None and len(self.writes) > self._lost_after:
            raise PortLost("the connection to sim://device was lost: gone")
        self.writes.append(data)
        self._pending += self.to_host.carry(self.device.take(self.to_device.carry(data)))

    def say(self, data: bytes) -> None:
        self._pending += data

    def close(self) -> None:
        self.closed = True


@dataclass
class MutePort:
    """A port with fixed bytes to read and nobody behind it."""

    data: bytes = b""
    url: str = "sim://mute"
    baud: int | None = None

    def read(self, timeout_s: float) -> bytes:
        data, self.data = self.data[:50], self.data[50:]
        return data

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class SimulatedTarget:
    """An emulator process that lives for a number of looks at it."""

    looks: int = 1_000_000
    words: str = "qemu: fatal: Lockup"

    def alive(self) -> bool:
        self.looks -= 1
        return self.looks >= 0

    def last_words(self) -> str:
        return self.words
