import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tflm_forge.link.answers import (
    CounterKind,
    FaultRecord,
    Info,
    Offender,
    RegisteredOp,
    SelfTest,
    TensorInfo,
)
from tflm_forge.link.status import status_of
from tflm_forge.model import Model
from tflm_forge.verify.records import Check
from tflm_forge.verify.selfcheck import Answers, ExpectedFirmware, check_device

# RELU is builtin operator 19; the model uses its version 2.
RELU_HASH = zlib.crc32(struct.pack("<IIB", 19, 2, 0))
RELU = RegisteredOp(builtin_code=19, custom_name="", max_version=2)
EXPECTED = ExpectedFirmware(
    build_id=b"B" * 16,
    board="stm32f4",
    runtime="bundled",
    ops=(RELU,),
    arena_bytes=1024,
    struct_bytes=(32, 12),
)


@pytest.fixture
def good(relu: Model) -> Answers:
    info = Info(
        protocol=1,
        mtu_bytes=512,
        ready=True,
        reset_cause=1,
        counter_kind=CounterKind.CYCLES,
        ticks_per_second=168_000_000,
        build_id=b"B" * 16,
        model_sha256=bytes.fromhex(relu.sha256),
        model_bytes=len(relu.data),
        op_hash=RELU_HASH,
        op_count=1,
        arena_bytes=1024,
        arena_used_bytes=1024,
        sizeof_tensor=32,
        sizeof_eval_tensor=12,
        stack_bytes=4096,
        stack_high_water_bytes=900,
        board="stm32f4",
        runtime="bundled",
        runtime_version="0.1.0",
        kernel_set="portable",
        forge_version="0.1.0",
    )
    selftest = SelfTest(
        steps=(status_of(0),) * 5,
        op_hash=RELU_HASH,
        canary_ok=True,
        fault=None,
        total_offenders=0,
        offenders=(),
    )
    tensors = tuple(
        TensorInfo(space=space, index=0, type="INT8", shape=(1, 4), scale=0.5, zero_point=-1, size_bytes=4)
        for space in (0, 1)
    )
    return Answers(info=info, selftest=selftest, ops=(RELU,), tensors=tensors)


def failures(answers: Answers, model: Model, expected: ExpectedFirmware = EXPECTED) -> list[Check]:
    part = check_device(answers, model, expected)
    assert part.passed == (not part.failures)
    return list(part.failures)


def test_all_right(good: Answers, relu: Model) -> None:
    assert failures(good, relu) == []
    assert failures(good, relu, ExpectedFirmware()) == []


def with_info(**changes: Any) -> Callable[[Answers], Answers]:
    return lambda a: replace(a, info=replace(a.info, **changes))


def with_selftest(**changes: Any) -> Callable[[Answers], Answers]:
    return lambda a: replace(a, selftest=replace(a.selftest, **changes))


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (with_info(build_id=b"C" * 16), "build", "another build is on the device"),
        (with_info(board="microbit"), "board", "microbit on the device, stm32f4 expected"),
        (with_info(runtime="tflm"), "runtime", "tflm on the device, bundled expected"),
        (with_info(model_sha256=bytes(32)), "model SHA-256", "build and flash again"),
        (with_info(model_bytes=5), "model bytes", "5 on the device"),
        (with_info(op_hash=0x12), "op hash built in", "0x00000012 on the device"),
        (with_selftest(op_hash=0x12), "op hash of the model in flash", "damaged or another one"),
        (with_info(op_count=2), "op resolver", "INFO says 2 ops, OPS lists 1"),
        (lambda a: replace(a, ops=()), "op resolver", "RELU is not registered"),
        (
            lambda a: replace(a, ops=(replace(RELU, max_version=1),)),
            "op resolver",
            "RELU: version 2 is needed, 1 is supported; RELU: supported up to version 1, the manifest says 2",
        ),
        (
            lambda a: replace(a, ops=(RELU, RegisteredOp(builtin_code=32, custom_name="My", max_version=1))),
            "op resolver",
            "My is registered, but not in the manifest",
        ),
        (with_info(sizeof_tensor=64), "struct sizes", "compiled with different flags"),
        (with_info(arena_used_bytes=1025), "tensor arena", "1025 of 1024 bytes used"),
        (with_info(arena_bytes=2048), "tensor arena", "should have 1024 bytes"),
        (with_selftest(canary_ok=False), "stack", "run over its end"),
        (with_info(stack_high_water_bytes=5000), "stack", "5000 of 4096"),
        (lambda a: replace(a, tensors=None), "inputs and outputs", "inference is blocked"),
        (lambda a: replace(a, tensors=a.tensors[:1]), "inputs and outputs", "the device has no output 0 (y)"),
        (
            lambda a: replace(a, tensors=(replace(a.tensors[0], scale=0.25), a.tensors[1])),
            "inputs and outputs",
            "input 0 (serving_x:0): INT8[1, 4] 4 bytes scale 0.25 zero point -1 on the device",
        ),
        (
            lambda a: replace(a, tensors=(*a.tensors, replace(a.tensors[1], index=1))),
            "inputs and outputs",
            "1 more than the model",
        ),
    ],
)
def test_each_difference_is_named(
    good: Answers, relu: Model, change: Callable[[Answers], Answers], name: str, words: str
) -> None:
    [failure] = failures(change(good), relu)
    assert failure.name == name
    assert words in failure.detail


def test_boot_failure_lists_every_offender(good: Answers, relu: Model) -> None:
    fault = FaultRecord(kind=0x60, pc=0x8001234, lr=0, cfsr=0x8200, hfsr=0, bfar=0, mmfar=0, sp=0)
    change = with_selftest(
        steps=tuple(status_of(code) for code in (0, 0, 0, 0x31, 1)),
        offenders=(
            Offender(builtin_code=3, custom_name="", needed_version=3, supported_version=0),
            Offender(builtin_code=32, custom_name="My", needed_version=4, supported_version=2),
        ),
        total_offenders=5,
        fault=fault,
    )
    found = {check.name: check.detail for check in failures(change(good), relu)}
    assert set(found) == {
        "boot: self-check", "boot: allocation", "op CONV_2D", "op My", "further ops", "fault",
    }  # fmt: skip
    assert "not registered" in found["op CONV_2D"]
    assert "needs version 4, the kernels implement up to 2" in found["op My"]
    assert found["further ops"].startswith("3 more")
    assert "PC 0x08001234" in found["fault"]


def test_without_a_known_layout_structs_must_at_least_make_sense(good: Answers, relu: Model) -> None:
    [failure] = failures(with_info(sizeof_eval_tensor=0)(good), relu, ExpectedFirmware())
    assert failure.name == "struct sizes"
