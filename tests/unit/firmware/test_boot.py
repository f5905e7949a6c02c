"""The boot: one status a step, a link that answers whatever failed, and faults that become answers."""

import struct

import pytest

from tests.unit.firmware.conftest import SMALL_MTU, StartDevice
from tests.unit.firmware.host_device import (
    CRC,
    ERROR,
    INFO,
    INVOKE,
    OPS,
    PROFILE,
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
from tests.unit.firmware.models import CUSTOM, FITTING_OPS, FULLY_CONNECTED, SOFTMAX, make_fitting_model, make_model

OK, NOT_RUN = 0, 1
IDENTIFIER, TRUNCATED = 0x11, 0x13
REGISTER_FAILED, REGISTER_COUNT = 0x20, 0x21
OP_HASH, OP_MISSING, OP_VERSION = 0x30, 0x31, 0x32
ARENA_TOO_SMALL, ALLOCATE_FAILED = 0x40, 0x41
NOT_READY, STACK_CANARY, FAULT, ABORTED = 0x51, 0x57, 0x60, 0x61

FAULT_RECORD = (0x1001, 0x2002, 0x3003, 0x4004, 0x5005, 0x6006, 0x7007)
INFERENCE_REQUESTS = (
    (TENSORS, b"\0\0"), (WRITE, bytes(6)), (INVOKE, b"\1\0\0\0"), (READ, bytes(8)), (CRC, b"\0\0"),
    (SOAK, b"\1\0\0\0\0\0\0\0"), (PROFILE, b"\0\0"),
)  # fmt: skip

Offender = tuple[int, int, int, str]


class SelfTest:
    """The answer to SELFTEST, taken apart."""

    def __init__(self, body: bytes) -> None:
        (steps,) = struct.unpack_from("<B", body)
        assert steps == 5
        self.steps = list(struct.unpack_from("<5H", body, 1))
        self.op_hash, self.canary, has_fault = struct.unpack_from("<IBB", body, 11)
        position = 17
        self.fault: tuple[int, ...] | None = None
        if has_fault:
            self.fault = struct.unpack_from("<8I", body, position)
            position += 32
        self.total, count = struct.unpack_from("<HB", body, position)
        position += 3
        self.offenders: list[Offender] = []
        for _ in range(count):
            code, version, supported, length = struct.unpack_from("<iIIB", body, position)
            name = body[position + 13 : position + 13 + length]
            assert len(name) == length
            position += 13 + length
            self.offenders.append((code, version, supported, name.decode()))
        assert position == len(body)


def selftest(device: HostDevice) -> SelfTest:
    return SelfTest(device.exchange(SELFTEST))


def assert_blocked(device: HostDevice, status: int = NOT_READY, detail: int | None = None) -> None:
    """Inference is refused with the status, and everything else answers."""
    for type_, body in INFERENCE_REQUESTS:
        refused_status, refused_detail = device.refused(type_, body)
        assert refused_status == status
        assert detail is None or refused_detail == detail
    assert device.exchange(INFO)[3] == 0
    assert device.exchange(OPS, b"\0\0")[:3] == b"\3\0\3"
    assert device.text.count("invoke ") == 0


def test_banner_of_a_sound_boot(start_device: StartDevice) -> None:
    model = make_fitting_model()
    assert start_device(model).text.splitlines() == [
        "",
        "forge 9.8.7 board fake-board runtime fake-runtime 1.2.3",
        f"model {len(model)} B, 3 ops, hash 0x{canonical_hash(model):08X}",
        "self-check: ok",
        "arena 3000 of 4096 B",
        "ready",
    ]


@pytest.mark.parametrize(
    ("settings", "steps", "line"),
    [
        ({"canary_at_boot": 1}, [STACK_CANARY, 1, 1, 1, 1], "board: status 0x00000057"),
        ({"register_fails": 1}, [0, 0, REGISTER_FAILED, 1, 1], "registration: status 0x00000020"),
        ({"register_fewer": 1}, [0, 0, REGISTER_COUNT, 1, 1], "registration: status 0x00000021"),
        ({"prepare_fails": 2}, [0, 0, 0, 0, ALLOCATE_FAILED], "allocation: failed in SOFTMAX, operator 1"),
        ({"prepare_fails": 3}, [0, 0, 0, 0, ALLOCATE_FAILED], "allocation: failed in Fake, operator 2"),
        ({"allocate_fails": 1}, [0, 0, 0, 0, ARENA_TOO_SMALL], "allocation: status 0x00000040"),
    ],
)  # fmt: skip
def test_step_that_fails(start_device: StartDevice, settings: dict[str, int], steps: list[int], line: str) -> None:
    device = start_device(**settings)
    assert line in device.text.splitlines()
    assert device.text.splitlines()[-1] == "blocked"
    assert selftest(device).steps == steps
    assert_blocked(device, detail=next(i for i, status in enumerate(steps) if status))


@pytest.mark.parametrize(
    ("model", "status"),
    [(b"\xff" * 4096, IDENTIFIER), (b"", TRUNCATED), (make_fitting_model()[:600], TRUNCATED)],
    ids=["erased flash", "empty", "cut"],
)
def test_damaged_model(start_device: StartDevice, model: bytes, status: int) -> None:
    device = start_device(model)
    report = selftest(device)
    assert report.steps == [OK, status, NOT_RUN, NOT_RUN, NOT_RUN]
    assert (report.op_hash, report.total) == (0, 0)
    assert_blocked(device, detail=1)


@pytest.mark.parametrize(
    ("ops", "status", "offenders"),
    [
        (FITTING_OPS[:2], OP_HASH, []),
        (((FULLY_CONNECTED, 1, None), *FITTING_OPS[1:3]), OP_HASH, []),
        ((*FITTING_OPS, (SOFTMAX, 3, None)), OP_VERSION, [(SOFTMAX, 3, 2, "")]),
        ((*FITTING_OPS, (3, 5, None)), OP_MISSING, [(3, 5, 0, "")]),
        ((*FITTING_OPS, (CUSTOM, 2, "Fake")), OP_VERSION, [(CUSTOM, 2, 1, "Fake")]),
        ((*FITTING_OPS, (CUSTOM, 1, "fake")), OP_MISSING, [(CUSTOM, 1, 0, "fake")]),
        ((*FITTING_OPS, (CUSTOM, 1, "Fake2")), OP_MISSING, [(CUSTOM, 1, 0, "Fake2")]),
        ((*FITTING_OPS, (CUSTOM, 1, None)), OP_MISSING, [(CUSTOM, 1, 0, "")]),
        ((*FITTING_OPS, (300, 1, None)), OP_MISSING, [(300, 1, 0, "")]),
        ((*FITTING_OPS, (2**31 - 1, 0, None)), OP_MISSING, [(2**31 - 1, 0, 0, "")]),
        (((0, 2, None), (SOFTMAX, 3, None)), OP_MISSING, [(0, 2, 0, ""), (SOFTMAX, 3, 2, "")]),
        (
            ((FULLY_CONNECTED, 12, None), (0, 2, None), (CUSTOM, 7, "Other"), (SOFTMAX, 2, None)),
            OP_MISSING,
            [(0, 2, 0, ""), (FULLY_CONNECTED, 12, 4, ""), (CUSTOM, 7, 0, "Other")],
        ),
    ],
)  # fmt: skip
def test_model_that_does_not_fit(
    start_device: StartDevice, ops: list[tuple[int, int, str | None]], status: int, offenders: list[Offender]
) -> None:
    model = make_model(*ops)
    device = start_device(model)
    report = selftest(device)
    assert report.steps == [OK, OK, OK, status, NOT_RUN]
    assert report.op_hash == canonical_hash(model)
    assert (report.total, report.offenders) == (len(offenders), offenders)
    names = {9: "FULLY_CONNECTED", 25: "SOFTMAX"}
    lines = [line for line in device.text.splitlines() if line.startswith("self-check: op")]
    assert lines == [
        f"self-check: op {code} {names.get(code, name)} version {version}, supported {supported}"
        for code, version, supported, name in offenders
    ]
    assert_blocked(device, detail=3)


def test_offenders_that_do_not_fit_the_answer_are_counted(start_device: StartDevice) -> None:
    ops = [(CUSTOM, 1, f"op{i:03}" + "x" * (i % 7) * 30) for i in range(60)]
    for mtu in (512, SMALL_MTU):
        device = start_device(make_model(*ops), mtu=mtu)
        body = device.exchange(SELFTEST)
        report = SelfTest(body)
        assert len(body) <= mtu
        assert report.total == 60
        expected = [(CUSTOM, 1, 0, name) for _, _, name in sorted(ops, key=lambda op: op[2])]
        count = len(report.offenders)
        assert 0 < count < 60
        assert report.offenders == expected[:count]
        assert len(body) + 13 + len(expected[count][3]) > mtu


def test_one_long_name_is_cut_to_the_answer(start_device: StartDevice) -> None:
    device = start_device(make_model((CUSTOM, 1, "n" * 255)), mtu=SMALL_MTU)
    report = selftest(device)
    (offender,) = report.offenders
    assert offender[:3] == (CUSTOM, 1, 0)
    assert set(offender[3]) == {"n"}
    assert len(offender[3]) > 60


def test_fault_answers_the_request_that_it_cut_off(start_device: StartDevice) -> None:
    device = start_device(invoke_faults=2, op_ticks=1)
    assert device.exchange(INVOKE, struct.pack("<I", 1))[:2] == b"\0\0"
    frame = pack(INVOKE, 99, struct.pack("<I", 1))
    device.send(frame)
    answer = device.read_answer()
    assert answer == (ERROR, 99, struct.pack("<BHI", INVOKE, FAULT, FAULT_RECORD[0]))
    assert "fault: pc=0x00001001 lr=0x00002002 cfsr=0x00003003\r\n" in device.text
    assert "fault in FULLY_CONNECTED, operator 0\r\n" in device.text
    device.send(frame)
    assert device.read_frame() == answer


def test_after_a_fault_the_device_still_tells_but_runs_nothing(start_device: StartDevice) -> None:
    device = start_device(invoke_faults=1)
    assert device.refused(INVOKE, struct.pack("<I", 1)) == (FAULT, FAULT_RECORD[0])
    invocations = device.text.count("invoke ")
    for _ in range(2):
        report = selftest(device)
        assert report.steps == [OK] * 5
        assert report.fault == (FAULT, *FAULT_RECORD)
        for type_, body in INFERENCE_REQUESTS:
            assert device.refused(type_, body) == (FAULT, FAULT_RECORD[0])
    assert device.exchange(INFO)[3] == 0
    assert device.text.count("invoke ") == invocations
    assert device.exchange(RESET, b"\0") == b""
    assert device.wait() == 70


def test_soak_that_faults_is_answered(start_device: StartDevice) -> None:
    device = start_device(invoke_faults=3)
    assert device.refused(SOAK, struct.pack("<II", 5, 1)) == (FAULT, FAULT_RECORD[0])


def test_abort_during_the_allocation(start_device: StartDevice) -> None:
    device = start_device(prepare_aborts=2)
    assert "fault in SOFTMAX, operator 1" in device.read_until_text("operator 1")
    report = selftest(device)
    assert report.steps == [OK, OK, OK, OK, ABORTED]
    assert report.fault == (ABORTED, *FAULT_RECORD)
    assert_blocked(device, status=ABORTED)
