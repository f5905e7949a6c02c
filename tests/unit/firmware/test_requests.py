"""Every request of the link: its answer byte for byte, and what it refuses."""

import struct
import zlib

import numpy as np
import pytest

from tests.unit.firmware.conftest import SMALL_MTU, StartDevice
from tests.unit.firmware.host_device import (
    ANSWER_BIT,
    ARENA,
    CRC,
    ERROR,
    FILL,
    FORGET,
    INFO,
    INVOKE,
    LAYER,
    MODEL,
    OPS,
    PROFILE,
    PROGRESS,
    READ,
    RESET,
    SELFTEST,
    SOAK,
    TENSORS,
    WRITE,
    HostDevice,
    canonical_hash,
    pack,
)  # fmt: skip
from tests.unit.firmware.models import make_fitting_model

OK, INVOKE_FAILED, UNKNOWN_REQUEST, BAD_REQUEST = 0, 0x50, 0x52, 0x53
NO_SUCH_TENSOR, OUT_OF_RANGE, MISMATCH, STACK_CANARY = 0x54, 0x55, 0x56, 0x57
NO_DIFFERENCE = 0xFFFFFFFF
INPUT, OUTPUT = 0, 1
TENSOR_BYTES = (1000, 20, 3)


def str8(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def read_tensor(device: HostDevice, space: int, index: int) -> bytes:
    parts = []
    for offset in range(0, TENSOR_BYTES[index], 100):
        length = min(100, TENSOR_BYTES[index] - offset)
        parts.append(device.exchange(READ, struct.pack("<BBIH", space, index, offset, length)))
    return b"".join(parts)


def write_tensor(device: HostDevice, index: int, data: bytes) -> None:
    for offset in range(0, len(data), 100):
        body = struct.pack("<BBI", INPUT, index, offset) + data[offset : offset + 100]
        assert device.exchange(WRITE, body) == b""


def test_info(start_device: StartDevice) -> None:
    model = make_fitting_model()
    assert start_device(model).exchange(INFO) == b"".join(
        (
            struct.pack("<BHBBBI", 1, 512, 1, 2, 2, 0),
            bytes((0xB0, 0xB1, 0xB2, 0xB3)).ljust(16, b"\0"),
            bytes((0x50, 0x51, 0x52)).ljust(32, b"\0"),
            struct.pack("<IIHII", len(model), canonical_hash(model), 3, 4096, 3000),
            # The fake runtime's structures, on this computer.
            struct.pack("<HH", 40, 16),
            struct.pack("<II", 2048, 777),
            str8("fake-board"), str8("fake-runtime"), str8("1.2.3"), str8("none"), str8("9.8.7"),
        )
    )  # fmt: skip


def test_info_fits_a_small_mtu_by_cutting_texts(start_device: StartDevice) -> None:
    body = start_device(mtu=SMALL_MTU).exchange(INFO)
    assert len(body) <= SMALL_MTU
    assert body[1:3] == struct.pack("<H", SMALL_MTU)
    assert body[88:] == str8("fake-bo") + str8("") * 4


def test_ops(start_device: StartDevice) -> None:
    device = start_device()
    ops = [
        struct.pack("<iI", 9, 4) + str8(""),
        struct.pack("<iI", 25, 2) + str8(""),
        struct.pack("<iI", 32, 1) + str8("Fake"),
    ]
    for start in range(5):
        expected = struct.pack("<HB", 3, max(0, 3 - start)) + b"".join(ops[start:])
        assert device.exchange(OPS, struct.pack("<H", start)) == expected


def test_selftest_of_a_sound_device(start_device: StartDevice) -> None:
    expected = struct.pack("<B5HIBBHB", 5, 0, 0, 0, 0, 0, canonical_hash(make_fitting_model()), 1, 0, 0, 0)
    assert start_device().exchange(SELFTEST) == expected


def tensor_entries() -> list[bytes]:
    entries = []
    for space in (INPUT, OUTPUT):
        entries.append(struct.pack("<BBBB2ifiI", space, 0, 9, 2, 1, 1000, 0.5, -3, 1000))
        entries.append(struct.pack("<BBBB1ifiI", space, 1, 1, 1, 5, 0.0, 0, 20))
        entries.append(struct.pack("<BBBB1ifiI", space, 2, 6, 1, 3, 0.0, 0, 3))
    return entries


def test_tensors(start_device: StartDevice) -> None:
    device = start_device()
    for start in (0, 1, 3, 5, 6, 100):
        entries = tensor_entries()[start:]
        answer = device.exchange(TENSORS, struct.pack("<H", start))
        assert answer == struct.pack("<HB", 6, len(entries)) + b"".join(entries)


def test_tensors_over_several_answers(start_device: StartDevice) -> None:
    device = start_device(mtu=SMALL_MTU)
    found = b""
    counts = []
    while sum(counts) < 6:
        answer = device.exchange(TENSORS, struct.pack("<H", sum(counts)))
        assert len(answer) <= SMALL_MTU
        counts.append(answer[2])
        found += answer[3:]
    assert counts == [4, 2]
    assert found == b"".join(tensor_entries())


def test_write_invoke_read(start_device: StartDevice) -> None:
    device = start_device(op_ticks=10)
    inputs = [bytes(i % 256 for i in range(1000)), np.arange(5, dtype="<f4").tobytes(), b"\1\0\1"]
    for index, data in enumerate(inputs):
        write_tensor(device, index, data)
        assert read_tensor(device, INPUT, index) == data
    # Five kernels run: four operators, one of which calls another.
    assert device.exchange(INVOKE, struct.pack("<I", 1)) == struct.pack("<HQQQ", 0, 50, 50, 50)
    for index, data in enumerate(inputs):
        assert read_tensor(device, OUTPUT, index) == data
        assert struct.unpack("<I", device.exchange(CRC, bytes((OUTPUT, index)))) == (zlib.crc32(data),)
        assert read_tensor(device, INPUT, index) == b"\1" * len(data)


def test_invoke_many_times(start_device: StartDevice) -> None:
    device = start_device(op_ticks=7)
    assert device.exchange(INVOKE, struct.pack("<I", 30)) == struct.pack("<HQQQ", 0, 30 * 35, 35, 35)
    assert device.invocations() == 30


def test_invoke_that_fails(start_device: StartDevice) -> None:
    device = start_device(invoke_fails=3, op_ticks=10)
    assert device.exchange(INVOKE, struct.pack("<I", 5)) == struct.pack("<HQQQ", INVOKE_FAILED, 110, 10, 50)
    assert device.invocations() == 3
    assert device.exchange(INVOKE, struct.pack("<I", 1)) == struct.pack("<HQQQ", 0, 50, 50, 50)


@pytest.mark.parametrize(
    ("type_", "body", "status", "detail"),
    [
        (WRITE, struct.pack("<BBI", INPUT, 3, 0), NO_SUCH_TENSOR, 0),
        (WRITE, struct.pack("<BBI", OUTPUT, 0, 0) + b"x", NO_SUCH_TENSOR, 0),
        (WRITE, struct.pack("<BBI", 2, 0, 0), NO_SUCH_TENSOR, 0),
        (WRITE, struct.pack("<BBI", INPUT, 0, 1000) + b"x", OUT_OF_RANGE, 1000),
        (WRITE, struct.pack("<BBI", INPUT, 1, 17) + b"four", OUT_OF_RANGE, 20),
        (WRITE, struct.pack("<BBI", INPUT, 1, 0xFFFFFFFF) + b"two", OUT_OF_RANGE, 20),
        (READ, struct.pack("<BBIH", OUTPUT, 3, 0, 1), NO_SUCH_TENSOR, 0),
        (READ, struct.pack("<BBIH", 9, 0, 0, 1), NO_SUCH_TENSOR, 0),
        (READ, struct.pack("<BBIH", INPUT, 0, 0, 513), BAD_REQUEST, 0),
        (READ, struct.pack("<BBIH", OUTPUT, 2, 2, 2), OUT_OF_RANGE, 3),
        (READ, struct.pack("<BBIH", INPUT, 0, 0xFFFFFFFE, 3), OUT_OF_RANGE, 1000),
        (CRC, bytes((OUTPUT, 3)), NO_SUCH_TENSOR, 0),
        (INVOKE, struct.pack("<I", 0), BAD_REQUEST, 0),
        (SOAK, struct.pack("<II", 0, 1), BAD_REQUEST, 0),
        (RESET, b"\2", BAD_REQUEST, 0),
        (FILL, struct.pack("<BBI", 3, 0, 0), NO_SUCH_TENSOR, 0),
        (FILL, struct.pack("<BBI", 0, 2, 0), BAD_REQUEST, 0),
        (LAYER, struct.pack("<HIH", 4, 0, 0), NO_SUCH_TENSOR, 0),
        (LAYER, struct.pack("<HIH", 65535, 0, 1), NO_SUCH_TENSOR, 0),
        (LAYER, struct.pack("<HIH", 1, 0, 0), NO_SUCH_TENSOR, 0),
        (LAYER, struct.pack("<HIH", 2, 0, 0), NO_SUCH_TENSOR, 0),
        (LAYER, struct.pack("<HIH", 0, 17, 4), OUT_OF_RANGE, 20),
        (LAYER, struct.pack("<HIH", 0, 0, 513), BAD_REQUEST, 0),
        (MODEL, b"\0", UNKNOWN_REQUEST, 0),
        (0x00, b"", UNKNOWN_REQUEST, 0),
        (0x55, b"body", UNKNOWN_REQUEST, 0),
        (INFO | ANSWER_BIT, b"", UNKNOWN_REQUEST, 0),
        (ERROR, b"", UNKNOWN_REQUEST, 0),
    ],
)  # fmt: skip
def test_refusals(start_device: StartDevice, type_: int, body: bytes, status: int, detail: int) -> None:
    device = start_device()
    assert device.refused(type_, body) == (status, detail)
    assert device.invocations() == 0


@pytest.mark.parametrize(
    ("type_", "length", "may_be_longer"),
    [
        (INFO, 0, False), (OPS, 2, False), (SELFTEST, 0, False), (TENSORS, 2, False), (WRITE, 6, True),
        (INVOKE, 4, False), (READ, 8, False), (CRC, 2, False), (SOAK, 8, False), (PROFILE, 2, False), (RESET, 1, False),
        (FILL, 6, False), (FORGET, 0, False), (ARENA, 4, False), (LAYER, 8, False),
    ],
)  # fmt: skip
def test_body_of_the_wrong_length(start_device: StartDevice, type_: int, length: int, may_be_longer: bool) -> None:
    device = start_device()
    for wrong in (*range(length), *(() if may_be_longer else (length + 1, length + 100))):
        assert device.refused(type_, b"\0" * wrong) == (BAD_REQUEST, 0)
    assert device.invocations() == 0


def test_reads_and_writes_of_nothing_at_the_end(start_device: StartDevice) -> None:
    device = start_device()
    assert device.exchange(WRITE, struct.pack("<BBI", INPUT, 0, 1000)) == b""
    assert device.exchange(READ, struct.pack("<BBIH", INPUT, 0, 1000, 0)) == b""


def soak_inputs(seed: int, only: int | None = None) -> list[bytes]:
    """Make the data of SOAK as link.h says, or that of one input, as FILL does."""
    state = seed or 1

    def following() -> int:
        nonlocal state
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        return state

    def make(index: int) -> bytes:
        if index == 1:
            signed = [(v := following()) - (v >> 31 << 32) for _ in range(5)]
            return (np.array(signed, np.int32).astype(np.float32) * np.float32(2.0**-31)).astype("<f4").tobytes()
        return bytes(following() & (1 if index == 2 else 0xFF) for _ in range(TENSOR_BYTES[index]))

    return [make(index) for index in (range(3) if only is None else (only,))]


@pytest.mark.parametrize("seed", [0, 1, 0x12345678, 0x80000000, 0xFFFFFFFF])
def test_soak(start_device: StartDevice, seed: int) -> None:
    device = start_device()
    inputs = soak_inputs(seed)
    crc = zlib.crc32(b"".join(inputs))
    assert device.exchange(SOAK, struct.pack("<II", 4, seed)) == struct.pack("<HIIII", 0, 4, crc, NO_DIFFERENCE, 777)
    assert [read_tensor(device, OUTPUT, i) for i in range(3)] == inputs
    assert np.isfinite(np.frombuffer(inputs[1], "<f4")).all()
    assert device.invocations() == 4


@pytest.mark.parametrize("pattern", [0, 0x80808080, 0x7FC00000, 0x04030201])
def test_fill_with_a_pattern(start_device: StartDevice, pattern: int) -> None:
    device = start_device()
    for index, size in enumerate(TENSOR_BYTES):
        write_tensor(device, index, b"\1" * size)
        if index == 2:  # a BOOL of another value than 0 and 1 would be no valid C++
            pattern &= 0x01010101
        assert device.exchange(FILL, struct.pack("<BBI", index, 0, pattern)) == b""
        assert read_tensor(device, INPUT, index) == (struct.pack("<I", pattern) * size)[:size]


def test_fill_at_random_makes_what_soak_makes(start_device: StartDevice) -> None:
    """The first input as SOAK's first; the others as if they were the first."""
    device = start_device()
    for index, seed in ((0, 7), (1, 0), (1, 8), (2, 0xFFFFFFFF)):
        assert device.exchange(FILL, struct.pack("<BBI", index, 1, seed)) == b""
        assert read_tensor(device, INPUT, index) == soak_inputs(seed, only=index)[0]
    assert device.invocations() == 0


def test_soak_resets_the_state_before_each_loop(start_device: StartDevice) -> None:
    device = start_device(stateful=1)
    for _ in range(2):
        status, done, crc, first, _ = struct.unpack("<HIIII", device.exchange(SOAK, struct.pack("<II", 5, 3)))
        assert (status, done, first) == (OK, 5, NO_DIFFERENCE)
        assert crc == zlib.crc32(b"".join(soak_inputs(3)))


def test_invoke_keeps_the_state_until_it_is_told_to_forget(start_device: StartDevice) -> None:
    device = start_device(stateful=1)
    found = []
    for step in range(4):
        if step == 3:
            assert device.exchange(FORGET) == b""
        assert device.exchange(FILL, struct.pack("<BBI", 0, 0, 0)) == b""
        device.exchange(INVOKE, struct.pack("<I", 1))
        found.append(read_tensor(device, OUTPUT, 0)[0])
    assert found == [0, 11, 22, 0]


def test_arena_without_room_for_the_resource_variables(start_device: StartDevice) -> None:
    device = start_device(arena_used=4000)
    assert device.exchange(SELFTEST)[1:11] == struct.pack("<5H", 0, 0, 0, 0, 0x40)
    assert "allocation: status 0x00000040" in device.text


def read_layer(device: HostDevice, operator: int, size: int) -> bytes:
    parts = [struct.pack("<HIH", operator, at, min(300, size - at)) for at in range(0, size, 300)]
    return b"".join(device.exchange(LAYER, part) for part in parts)


def test_layers(start_device: StartDevice) -> None:
    """The fake interpreter's tensor n is the fake output n % 3; operator k of the model makes tensor k + 1."""
    device = start_device()
    inputs = soak_inputs(4)
    for index, data in enumerate(inputs):
        write_tensor(device, index, data)
    device.exchange(INVOKE, struct.pack("<I", 1))
    for operator in (0, 3):
        data = inputs[(operator + 1) % 3]
        answer = device.exchange(LAYER, struct.pack("<HIH", operator, 0, 0))
        assert answer == struct.pack("<II", len(data), zlib.crc32(data))
        assert read_layer(device, operator, len(data)) == data


def test_layers_are_unknown_when_tensors_are_not_kept(start_device: StartDevice) -> None:
    device = start_device(mtu=SMALL_MTU)
    assert device.refused(LAYER, struct.pack("<HIH", 0, 0, 0)) == (UNKNOWN_REQUEST, 0)
    assert device.exchange(FORGET) == b""


def test_soak_goes_on_after_a_difference_and_reports_the_first(start_device: StartDevice) -> None:
    device = start_device(drift=3)
    crc = zlib.crc32(b"".join(soak_inputs(5)))
    assert device.exchange(SOAK, struct.pack("<II", 6, 5)) == struct.pack("<HIIII", MISMATCH, 6, crc, 2, 777)
    assert device.invocations() == 6


def test_soak_stops_when_an_inference_fails(start_device: StartDevice) -> None:
    device = start_device(invoke_fails=3)
    crc = zlib.crc32(b"".join(soak_inputs(5)))
    answer = struct.pack("<HIIII", INVOKE_FAILED, 2, crc, NO_DIFFERENCE, 777)
    assert device.exchange(SOAK, struct.pack("<II", 6, 5)) == answer


def test_soak_stops_when_the_canary_dies(start_device: StartDevice) -> None:
    device = start_device(canary=2)
    crc = zlib.crc32(b"".join(soak_inputs(5)))
    answer = struct.pack("<HIIII", STACK_CANARY, 2, crc, NO_DIFFERENCE, 777)
    assert device.exchange(SOAK, struct.pack("<II", 6, 5)) == answer


def test_profile_counts_operators_of_the_main_subgraph(start_device: StartDevice) -> None:
    device = start_device(op_ticks=10)
    ticks = (10, 10, 20, 10)
    for start in range(6):
        rest = ticks[start:]
        expected = struct.pack("<HB", 4, len(rest)) + struct.pack(f"<{len(rest)}Q", *rest)
        assert device.exchange(PROFILE, struct.pack("<H", start)) == expected
    assert device.invocations() == 6


def test_profile_that_fails(start_device: StartDevice) -> None:
    device = start_device(invoke_fails=1)
    assert device.refused(PROFILE, b"\0\0") == (INVOKE_FAILED, 0)


def test_sending_progress_is_not_counted_as_inference(start_device: StartDevice) -> None:
    device = start_device(op_ticks=10, ticks_per_second=40, byte_ticks=3)
    assert device.exchange(INVOKE, struct.pack("<I", 4)) == struct.pack("<HQQQ", 0, 200, 50, 50)
    assert device.exchange(PROFILE, b"\0\0") == struct.pack("<HB4Q", 4, 4, 10, 10, 20, 10)


def test_long_work_says_at_once_that_it_has_begun(start_device: StartDevice) -> None:
    device = start_device()  # without a clock: nothing else would send PROGRESS
    for type_, body, total in (
        (INVOKE, struct.pack("<I", 3), 3), (SOAK, struct.pack("<II", 2, 1), 2), (PROFILE, b"\0\0", 1),
    ):  # fmt: skip
        device.send(pack(type_, 33, body))
        assert device.read_frame() == (PROGRESS, 33, struct.pack("<II", 0, total))
        assert device.read_frame()[:2] == (type_ | ANSWER_BIT, 33)


@pytest.mark.parametrize(("type_", "body"), [(INVOKE, struct.pack("<I", 4)), (SOAK, struct.pack("<II", 4, 9))])
def test_progress_twice_a_second_also_within_an_inference(start_device: StartDevice, type_: int, body: bytes) -> None:
    """One kernel takes 10 ticks and half a second 20, so of five kernels an inference every second one reports."""
    device = start_device(op_ticks=10, ticks_per_second=40)
    device.send(pack(type_, 33, body))
    progress = []
    while (frame := device.read_frame())[0] == PROGRESS:
        assert frame[1] == 33
        progress.append(struct.unpack("<II", frame[2]))
    assert frame[:2] == (type_ | ANSWER_BIT, 33)
    assert progress == sorted(progress)
    assert {total for _, total in progress} == {4}
    assert len(progress) >= 20 * 10 // 20 - 2
    assert {done for done, _ in progress} >= {0, 1, 2, 3}
    if type_ == INVOKE:
        assert frame[2] == struct.pack("<HQQQ", 0, 200, 50, 50)


def test_no_progress_after_the_work(start_device: StartDevice) -> None:
    device = start_device(op_ticks=10, ticks_per_second=40)
    device.exchange(INVOKE, struct.pack("<I", 2))
    for _ in range(3):
        device.sequence += 1
        device.send(pack(INFO, device.sequence))
        assert device.read_frame()[0] == INFO | ANSWER_BIT


@pytest.mark.parametrize(("mode", "status"), [(0, 70), (1, 0)])
def test_reset_answers_before_it_acts(start_device: StartDevice, mode: int, status: int) -> None:
    device = start_device()
    assert device.exchange(RESET, bytes((mode,))) == b""
    assert device.wait() == status
