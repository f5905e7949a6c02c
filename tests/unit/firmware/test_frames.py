"""The device's framing: what is run, what is dropped, and what its frames look like on the wire."""

import random
import struct
import zlib

import pytest
from cobs import cobs

from tests.unit.firmware.conftest import LARGE_MTU, StartDevice
from tests.unit.firmware.host_device import ANSWER_BIT, CRC, INFO, INVOKE, READ, WRITE, pack

INPUT, OUTPUT = 0, 1
INVOKE_ONCE = struct.pack("<I", 1)
TENSOR_BYTES = 1000


def write(data: bytes, offset: int = 0) -> bytes:
    return struct.pack("<BBI", INPUT, 0, offset) + data


def read(length: int, offset: int = 0, space: int = INPUT) -> bytes:
    return struct.pack("<BBIH", space, 0, offset, length)


VECTORS = [
    b"", b"\0", b"\0\0", b"\1", b"\1\0\2", b"\xff" * 10,
    bytes(range(256)), bytes(range(1, 256)), bytes(range(255, -1, -1)),
    *(b"\x55" * n for n in (245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 256, 499, 505, 506)),
    *(b"\x55" * n + b"\0" for n in (246, 247, 248, 253, 254, 500)),
    *(b"\0" + b"\xaa" * n for n in (253, 254, 255, 500)),
]  # fmt: skip


def test_bytes_survive_both_ways_and_frames_are_coded_as_by_cobs(start_device: StartDevice) -> None:
    device = start_device()
    for data in VECTORS:
        assert device.exchange(WRITE, write(data)) == b""
        assert device.exchange(READ, read(len(data))) == data
        content = bytes((READ | ANSWER_BIT, device.sequence)) + data
        assert device.last_chunk == cobs.encode(content + struct.pack("<I", zlib.crc32(content)))
        (crc,) = struct.unpack("<I", device.exchange(CRC, bytes((INPUT, 0))))
        whole = device.exchange(READ, read(500)) + device.exchange(READ, read(500, 500))
        assert crc == zlib.crc32(whole)


def test_random_bodies(start_device: StartDevice) -> None:
    device = start_device()
    rng = random.Random(3)
    for _ in range(200):
        length = rng.randrange(LARGE_MTU - 6)
        data = bytes(rng.choices(range(256), weights=[40] + [1] * 255, k=length))
        device.exchange(WRITE, write(data))
        assert device.exchange(READ, read(length)) == data


def test_longest_body(start_device: StartDevice) -> None:
    device = start_device()
    longest = bytes(rng % 251 + 1 for rng in range(LARGE_MTU - 6))
    assert device.exchange(WRITE, write(longest)) == b""
    assert device.exchange(READ, read(LARGE_MTU)) == longest + bytes(6)


def test_frame_longer_than_the_buffer_is_dropped(start_device: StartDevice) -> None:
    device = start_device()
    for excess in (1, 2, 250, 100_000):
        device.send(pack(WRITE, 200, write(b"\x77" * (LARGE_MTU - 6 + excess))))
    assert device.exchange(READ, read(16)) == bytes(16)


def test_frame_that_is_whole_before_it_is_too_long_is_dropped(start_device: StartDevice) -> None:
    device = start_device()
    content = bytes((WRITE, 201)) + write(b"\x77" * (LARGE_MTU - 6))
    content += struct.pack("<I", zlib.crc32(content))
    device.send(b"\0" + cobs.encode(content + b"\x01") + b"\0")
    assert device.exchange(READ, read(16)) == bytes(16)


def test_damaged_request_is_never_run(start_device: StartDevice) -> None:
    device = start_device()
    frame = pack(INVOKE, 77, INVOKE_ONCE)
    for position in range(1, len(frame) - 1):
        for bit in range(8):
            damaged = bytearray(frame)
            damaged[position] ^= 1 << bit
            device.send(bytes(damaged))
    for length in range(len(frame) - 1):
        device.send(frame[:length] + b"\0")
    assert device.invocations() == 0


def test_right_length_with_wrong_crc(start_device: StartDevice) -> None:
    device = start_device()
    content = bytes((INVOKE, 9)) + INVOKE_ONCE
    for crc in (0, 0xFFFFFFFF, zlib.crc32(content) ^ 1, zlib.crc32(content + b"\0")):
        device.send(b"\0" + cobs.encode(content + struct.pack("<I", crc)) + b"\0")
    assert device.invocations() == 0


@pytest.mark.parametrize(
    "noise",
    [
        b"AT+RST\r\n", b"\0" * 100, b"\xff" * 2000, b"\1" * 50, b"\1\1\1\1\1\1\1\0", b"\5abc", b"\0\2\0\3\0",
        bytes(range(256)), b"help\0me\0",
    ],
    ids=range(9),
)  # fmt: skip
def test_noise_before_a_frame(start_device: StartDevice, noise: bytes) -> None:
    device = start_device()
    device.send(noise)
    assert device.exchange(INFO)


def test_frames_that_share_a_zero_and_bytes_that_come_alone(start_device: StartDevice) -> None:
    device = start_device()
    one, two = pack(INFO, 1), pack(INFO, 2)
    device.send(one + two[1:])
    assert [device.read_frame()[:2] for _ in range(2)] == [(INFO | ANSWER_BIT, 1), (INFO | ANSWER_BIT, 2)]
    for byte in pack(INFO, 3):
        device.send(bytes((byte,)))
    assert device.read_frame()[:2] == (INFO | ANSWER_BIT, 3)


def test_repeated_request_is_answered_from_memory_and_run_once(start_device: StartDevice) -> None:
    device = start_device()
    device.exchange(WRITE, write(b"abc"))
    frame = pack(INVOKE, 50, INVOKE_ONCE)
    device.send(frame * 3)
    answers = [device.read_answer() for _ in range(3)]
    assert answers[0][:2] == (INVOKE | ANSWER_BIT, 50)
    assert answers == answers[:1] * 3
    assert device.invocations() == 1
    # INFO was the last request since, so the same frame is a new request.
    device.send(frame)
    assert device.read_answer()[1] == 50
    assert device.invocations() == 2


def test_another_sequence_or_another_body_is_run(start_device: StartDevice) -> None:
    device = start_device()
    for sequence, body in ((1, 1), (2, 1), (2, 2), (3, 2)):
        device.send(pack(INVOKE, sequence, struct.pack("<I", body)))
        assert device.read_answer()[:2] == (INVOKE | ANSWER_BIT, sequence)
    assert device.invocations() == 6


def test_error_answer_is_repeated_too(start_device: StartDevice) -> None:
    device = start_device()
    device.send(pack(0x55, 4) * 2)
    assert device.read_frame() == device.read_frame()


@pytest.mark.parametrize("seed", range(3))
def test_random_streams_never_break_the_device(start_device: StartDevice, seed: int) -> None:
    """Garbage, cut and damaged frames between good ones: good ones are answered, damaged INVOKEs never run."""
    rng = random.Random(seed)
    device = start_device()
    for _ in range(300):
        kind = rng.randrange(4)
        frame = bytearray(pack(INVOKE, rng.randrange(256), INVOKE_ONCE))
        if kind == 0:
            frame = bytearray(rng.choices(range(256), weights=[30] + [1] * 255, k=rng.randrange(700)))
        elif kind == 1:
            # One flip inside, which the CRC always finds; not in the zeros, which would only shorten the frame.
            frame[rng.randrange(1, len(frame) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            frame = frame[: rng.randrange(1, len(frame) - 1)]
        else:
            del frame[rng.randrange(1, len(frame) - 1)]
        device.send(bytes(frame))
        if rng.randrange(4) == 0:
            assert device.exchange(READ, read(3)) == b"\0\0\0"
    assert device.invocations() == 0
