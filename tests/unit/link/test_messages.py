import struct

import pytest

from tflm_forge.errors import DeviceError
from tflm_forge.link.answers import CounterKind, Info, ModelInfo, RegisteredOp, TensorInfo
from tflm_forge.link.messages import (
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
from tflm_forge.link.status import BOOT_STEPS

WRITE = WriteRequest(space=Space.OUTPUT, index=2, offset=0x01020304, data=b"xy")
LAYER = LayerRequest(operator=7, offset=5, length=3)
READ = ReadRequest(space=Space.INPUT, index=1, offset=5, length=3)

INFO_BODY = (
    struct.pack("<BHBBBI", 1, 512, 1, 4, 2, 25_000_000)
    + bytes(range(16))
    + bytes(range(100, 132))
    + struct.pack("<IIHIIHHII", 53936, 0xCAFEBABE, 6, 24000, 22772, 32, 12, 4096, 1608)
    + b"\x0bmps2-\xc3\xa4n386\x07bundled\x050.1.0\x00\x050.2.0"
)
SELFTEST_HEAD = struct.pack("<B5HIB", 5, 0, 0, 0, 0x31, 1, 0x1234, 1)
FAULT = struct.pack("<8I", 0x60, 1, 2, 3, 4, 5, 6, 7)
OFFENDER = struct.pack("<iII", 32, 2, 0) + b"\x02My"
SELECT_BODY = struct.pack("<BI", 3, 2960) + bytes(range(32)) + struct.pack("<I", 0xBF2A0435) + b"\x04sine"
TENSOR = struct.pack("<BBBBiifiI", 1, 0, 9, 2, 1, 12, 0.25, -128, 12)


@pytest.mark.parametrize(
    ("request_", "kind", "body"),
    [
        (InfoRequest(), 0x01, ""),
        (OpsRequest(start=0x0102), 0x02, "0201"),
        (SelfTestRequest(), 0x03, ""),
        (TensorsRequest(start=3), 0x04, "0300"),
        (SelectRequest(index=2), 0x05, "02"),
        (WRITE, 0x10, "01 02 04030201 7879"),
        (InvokeRequest(count=7), 0x11, "07000000"),
        (READ, 0x12, "00 01 05000000 0300"),
        (CrcRequest(space=Space.OUTPUT, index=1), 0x13, "01 01"),
        (FillRequest(index=2, mode=FillMode.RANDOM, value=0xDEADBEEF), 0x14, "02 01 efbeadde"),
        (ForgetRequest(), 0x15, ""),
        (LayerInfoRequest(operator=0x0102), 0x22, "0201 00000000 0000"),
        (LAYER, 0x22, "0700 05000000 0300"),
        (SoakRequest(loops=5000, seed=0xDEADBEEF), 0x20, "88130000 efbeadde"),
        (ProfileRequest(start=1), 0x21, "0100"),
        (ResetRequest(mode=ResetMode.LEAVE_EMULATOR), 0x7E, "01"),
    ],
    ids=lambda v: v.NAME if isinstance(v, Request) else "",
)
def test_requests_on_the_wire(request_: Request[object], kind: int, body: str) -> None:
    assert kind == type(request_).TYPE
    assert request_.answer_type == kind + 0x80
    assert request_.encode() == bytes.fromhex(body)


def test_info() -> None:
    info = InfoRequest().decode_answer(INFO_BODY)
    assert info == Info(
        protocol=1,
        mtu_bytes=512,
        ready=True,
        reset_cause=4,
        counter_kind=CounterKind.EMULATED_TICKS,
        ticks_per_second=25_000_000,
        build_id=bytes(range(16)),
        model_sha256=bytes(range(100, 132)),
        model_bytes=53936,
        op_hash=0xCAFEBABE,
        op_count=6,
        arena_bytes=24000,
        arena_used_bytes=22772,
        sizeof_tensor=32,
        sizeof_eval_tensor=12,
        stack_bytes=4096,
        stack_high_water_bytes=1608,
        board="mps2-än386",
        runtime="bundled",
        runtime_version="0.1.0",
        kernel_set="",
        forge_version="0.2.0",
    )
    assert info.reset_cause_words == "software"


@pytest.mark.parametrize(("version", "age"), [(0, "older"), (2, "newer"), (255, "newer")])
def test_another_protocol_version_is_said_whatever_follows(version: int, age: str) -> None:
    for rest in (b"", b"anything", INFO_BODY[1:]):
        with pytest.raises(DeviceError, match=f"version {version} of the link protocol") as caught:
            InfoRequest().decode_answer(bytes((version,)) + rest)
        assert age in caught.value.hint


def test_ops() -> None:
    page = OpsRequest().decode_answer(
        b"\x07\x00\x02" + struct.pack("<iI", 3, 5) + b"\x00" + struct.pack("<iI", 32, 1) + b"\x02My"
    )
    assert page.total == 7
    assert page.items == (
        RegisteredOp(builtin_code=3, max_version=5, custom_name=""),
        RegisteredOp(builtin_code=32, max_version=1, custom_name="My"),
    )


def test_selftest_with_fault_and_offender() -> None:
    answer = SelfTestRequest().decode_answer(SELFTEST_HEAD + b"\x01" + FAULT + b"\x09\x00\x01" + OFFENDER)
    assert [s.name for s in answer.steps] == ["Ok", "Ok", "Ok", "OpMissing", "NotRun"]
    assert len(answer.steps) == len(BOOT_STEPS)
    assert answer.op_hash == 0x1234
    assert answer.canary_ok
    assert answer.fault is not None
    assert (answer.fault.kind, answer.fault.pc, answer.fault.lr, answer.fault.sp) == (0x60, 1, 2, 7)
    assert "PC 0x00000001" in answer.fault.words
    assert answer.total_offenders == 9
    offender = answer.offenders[0]
    assert (offender.builtin_code, offender.needed_version, offender.supported_version) == (32, 2, 0)
    assert offender.custom_name == "My"


def test_selftest_without_fault() -> None:
    answer = SelfTestRequest().decode_answer(SELFTEST_HEAD + b"\x00\x00\x00\x00")
    assert answer.fault is None
    assert answer.offenders == ()


def test_tensors() -> None:
    page = TensorsRequest().decode_answer(b"\x02\x00\x01" + TENSOR)
    assert page.items == (
        TensorInfo(space=1, index=0, type="INT8", shape=(1, 12), scale=0.25, zero_point=-128, size_bytes=12),
    )


def test_numbers_of_runs() -> None:
    invoked = InvokeRequest().decode_answer(struct.pack("<HQQQ", 0x50, 2**40, 1, 2))
    assert (invoked.status.name, invoked.total_ticks, invoked.min_ticks, invoked.max_ticks) == (
        "InvokeFailed", 2**40, 1, 2,
    )  # fmt: skip
    soak = SoakRequest(loops=1, seed=1).decode_answer(struct.pack("<HIIII", 0, 9, 8, 7, 6))
    assert (soak.loops_done, soak.crc, soak.first_difference, soak.stack_high_water_bytes) == (9, 8, 7, 6)
    soak = SoakRequest(loops=1, seed=1).decode_answer(struct.pack("<HIIII", 0, 9, 8, 0xFFFFFFFF, 6))
    assert soak.first_difference is None
    profile = ProfileRequest().decode_answer(b"\x03\x00\x02" + struct.pack("<QQ", 5, 2**33))
    assert (profile.total, profile.items) == (3, (5, 2**33))
    assert CrcRequest(space=Space.INPUT, index=0).decode_answer(b"\x04\x03\x02\x01") == 0x01020304
    assert READ.decode_answer(b"abc") == b"abc"
    assert LAYER.decode_answer(b"abc") == b"abc"
    layer = LayerInfoRequest(operator=1).decode_answer(struct.pack("<II", 70000, 0xCAFEBABE))
    assert (layer.size_bytes, layer.crc) == (70000, 0xCAFEBABE)


def test_selected_model() -> None:
    assert SelectRequest(index=1).decode_answer(SELECT_BODY) == ModelInfo(
        model_count=3, model_bytes=2960, model_sha256=bytes(range(32)), op_hash=0xBF2A0435, name="sine"
    )


def test_progress_and_error() -> None:
    assert Progress.decode(struct.pack("<II", 3, 10)) == Progress(done=3, total=10)
    assert ErrorAnswer.decode(struct.pack("<BHI", 0x11, 0x51, 4)) == ErrorAnswer(
        request_type=0x11, status=0x51, detail=4
    )


GOOD: list[tuple[Request[object], bytes]] = [
    (InfoRequest(), INFO_BODY),
    (OpsRequest(), b"\x01\x00\x01" + struct.pack("<iI", 32, 1) + b"\x02My"),
    (SelfTestRequest(), SELFTEST_HEAD + b"\x01" + FAULT + b"\x01\x00\x01" + OFFENDER),
    (TensorsRequest(), b"\x01\x00\x01" + TENSOR),
    (SelectRequest(index=1), SELECT_BODY),
    (WRITE, b""),
    (InvokeRequest(), bytes(26)),
    (READ, b"abc"),
    (CrcRequest(space=Space.INPUT, index=0), bytes(4)),
    (FillRequest(index=0, mode=FillMode.PATTERN, value=0), b""),
    (ForgetRequest(), b""),
    (LAYER, b"abc"),
    (LayerInfoRequest(operator=1), bytes(8)),
    (SoakRequest(loops=1, seed=1), bytes(18)),
    (ProfileRequest(), b"\x01\x00\x01" + bytes(8)),
    (ResetRequest(), b""),
]


@pytest.mark.parametrize(("request_", "body"), GOOD, ids=lambda v: v.NAME if isinstance(v, Request) else "")
def test_every_other_length_is_refused_by_name(request_: Request[object], body: bytes) -> None:
    request_.decode_answer(body)
    for wrong in [*(body[:n] for n in range(len(body))), body + b"\0"]:
        with pytest.raises(DeviceError, match=f"^the answer to {type(request_).NAME} "):
            request_.decode_answer(wrong)


@pytest.mark.parametrize(
    ("request_", "body", "words"),
    [
        (InfoRequest(), INFO_BODY[:3] + b"\x02" + INFO_BODY[4:], "0 or 1"),
        (InfoRequest(), INFO_BODY[:5] + b"\x09" + INFO_BODY[6:], "counter kind 9"),
        (InfoRequest(), INFO_BODY[:1] + b"\x08\x00" + INFO_BODY[3:], "8 bytes only"),
        (InfoRequest(), INFO_BODY[:-2] + b"\xff\xff", "UTF-8"),
        (SelfTestRequest(), b"\x04" + SELFTEST_HEAD[1:] + bytes(4), "4 boot steps"),
        (TensorsRequest(), b"\x01\x00\x01\x02" + TENSOR[1:], "space 2"),
        (TensorsRequest(), b"\x01\x00\x01" + TENSOR[:2] + b"\x63" + TENSOR[3:], "type 99"),
    ],
)
def test_values_that_are_not_allowed(request_: Request[object], body: bytes, words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        request_.decode_answer(body)
