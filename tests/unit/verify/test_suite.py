import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.unit.link.simulated_device import INT8, SimTensor, SimulatedDevice, SimulatedPort
from tests.unit.verify.conftest import make_relu_model
from tflm_forge.errors import CheckError, UsageError
from tflm_forge.link.failures import RefusedError
from tflm_forge.link.session import Session
from tflm_forge.model import Model
from tflm_forge.reports.json import report_to_json
from tflm_forge.verify.golden import record_golden
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.parts import NUMBERS, PARTS, SELF_CHECK, choose_parts
from tflm_forge.verify.plan import SuiteOptions, SuitePlan, plan_suite
from tflm_forge.verify.records import TestReport
from tflm_forge.verify.reference import Outputs
from tflm_forge.verify.selfcheck import ExpectedFirmware
from tflm_forge.verify.soak import SoakOptions
from tflm_forge.verify.suite import run_suite

RELU_HASH = zlib.crc32(struct.pack("<IIB", 19, 2, 0))


def relu_bytes(data: bytes) -> bytes:
    """The device's kernel: quantized zero is -1, so everything below becomes -1."""
    return np.maximum(np.frombuffer(data, np.int8), -1).tobytes()


class ReluReference:
    title = "numpy"
    tolerance_lsb = 0

    def own_cases(self) -> None:
        return None

    def outputs(self, cases: list[Case], *, keeps_state: bool = False) -> tuple[Outputs, ...]:
        return tuple((np.maximum(c.inputs[0], -1),) for c in cases)


def make_device(model: Model) -> SimulatedDevice:
    return SimulatedDevice(
        inputs=[SimTensor(INT8, (1, 4), 0.5, -1, bytearray(4))],
        outputs=[SimTensor(INT8, (1, 4), 0.5, -1, bytearray(4))],
        model=lambda inputs: [relu_bytes(inputs[0])],
        ops=((19, 2, ""),),
        op_hash=RELU_HASH,
        model_op_hash=RELU_HASH,
        model_sha256=bytes.fromhex(model.sha256),
        model_bytes=len(model.data),
        operators=1,
    )


SHORT = SoakOptions(loops=40, limit_s=None)


@pytest.fixture
def planned(relu: Model, monkeypatch: pytest.MonkeyPatch) -> SuitePlan:
    monkeypatch.setattr("tflm_forge.verify.plan.choose_reference", lambda *_: ReluReference())
    return plan_suite(relu, Path("relu.tflite"), SuiteOptions(random_count=2, soak=SHORT))


def run(model: Model, plan: SuitePlan, device: SimulatedDevice) -> TestReport:
    with Session(SimulatedPort(device, piece_bytes=50)) as session:
        return run_suite(session, model, plan, ExpectedFirmware(board="sim"))


def test_everything_passes(relu: Model, planned: SuitePlan) -> None:
    report = run(relu, planned, make_device(relu))
    assert report.passed
    assert [p.name for p in report.parts] == ["self-check", "numbers", "boundaries", "latency", "soak"]
    assert [c.case for c in report.comparisons] == ["random 1.0", "random 1.1", "zeros", "minimum", "maximum", "-127"]
    assert report.reference == "numpy"
    # 1000 ticks at 25 MHz are 40,000 instructions of 1 ns.
    assert report.latency is not None
    assert (report.latency.unit, report.latency.median, report.latency.runs) == ("instructions", 40_000, 6)
    assert report.latency.median_s is None
    assert [(o.op, o.count) for o in report.latency.operators] == [("RELU", 400)]
    assert report.soak is not None
    assert report.soak.loops == 40
    assert report.accuracy is None
    assert report.device.arena_used_bytes == 4000
    assert "ready" in report.log_lines


def test_one_wrong_bit_fails(relu: Model, planned: SuitePlan) -> None:
    device = make_device(relu)
    device.model = lambda inputs: [bytes([relu_bytes(inputs[0])[0] ^ 1]) + relu_bytes(inputs[0])[1:]]
    report = run(relu, planned, device)
    assert not report.passed
    assert [p.name for p in report.parts if not p.passed] == ["numbers", "boundaries", "soak"]
    assert not any(c.passed for c in report.comparisons)
    assert report.comparisons[0].metrics.max_error == 1
    assert "1 of 4 differ (25.00 %), largest error 1 LSB" in report.parts[1].failures[0].detail


def test_cycles_become_time(relu: Model, planned: SuitePlan) -> None:
    device = make_device(relu)
    device.counter_kind, device.ticks_per_second, device.ticks = 1, 168_000_000, 168_000
    latency = run(relu, planned, device).latency
    assert latency is not None
    assert (latency.unit, latency.median, latency.median_s) == ("cycles", 168_000, 0.001)


def test_a_device_without_counter_has_no_latency(relu: Model, planned: SuitePlan) -> None:
    device = make_device(relu)
    device.counter_kind = 0
    assert run(relu, planned, device).latency is None


def test_blocked_inference_is_reported_and_nothing_is_run(relu: Model, planned: SuitePlan) -> None:
    device = make_device(relu)
    device.ready, device.steps, device.offenders = False, (0, 0, 0, 0x31, 1), ((3, 1, 0, ""),)
    report = run(relu, planned, device)
    assert not report.passed
    assert 0x11 not in device.runs
    assert 0x04 not in device.runs
    names = [check.name for part in report.parts for check in part.failures]
    assert "op CONV_2D" in names
    assert "inference" in names


def test_a_failing_kernel_is_a_device_error(relu: Model, planned: SuitePlan) -> None:
    device = make_device(relu)
    device.invoke_error = (0x50, 0)
    with pytest.raises(RefusedError, match="a kernel failed during inference"):
        run(relu, planned, device)


def test_no_reference_fails_unless_it_is_asked_for(
    relu: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tflm_forge.verify.golden.has_interpreter", lambda: False)
    path = tmp_path / "relu.tflite"
    report = run(relu, plan_suite(relu, path, SuiteOptions(soak=SHORT)), make_device(relu))
    assert not report.passed
    [failure] = report.parts[1].failures
    assert "no reference to compare with" in failure.detail
    assert "relu.golden.npz" in failure.detail
    plan = plan_suite(relu, path, SuiteOptions(no_reference=True, soak=SHORT))
    report = run(relu, plan, make_device(relu))
    assert report.passed
    assert report.parts[1].skipped == "no comparison: --no-reference"
    assert report.latency is not None


def test_golden_file_replaces_the_made_inputs(relu: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflm_forge.verify.golden.has_interpreter", lambda: False)
    recorded = [Case(name="mine", inputs=(np.array([[-9, 9, -1, 0]], np.int8),))]
    record_golden(tmp_path / "relu.golden.npz", relu, recorded, ReluReference())
    plan = plan_suite(relu, tmp_path / "relu.tflite", SuiteOptions(soak=SHORT))
    report = run(relu, plan, make_device(relu))
    assert report.passed
    assert [c.case for c in report.comparisons] == ["mine"]
    boundaries = next(part for part in report.parts if part.name == "boundaries")
    assert all("does not know these inputs" in check.detail for check in boundaries.checks)

    np.savez(tmp_path / "user.npz", input_0=np.array([[-9, 9, -1, 0], [1, 1, 1, 1]], np.int8))
    plan = plan_suite(relu, tmp_path / "relu.tflite", SuiteOptions(inputs=tmp_path / "user.npz", soak=SHORT))
    report = run(relu, plan, make_device(relu))
    assert not report.passed
    [failure] = report.parts[1].failures
    assert (failure.name, failure.detail[:12]) == ("user.npz[1]", "not compared")


def test_reference_that_can_not_run_the_model(relu: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(ReluReference):
        def outputs(self, cases: list[Case], *, keeps_state: bool = False) -> tuple[Outputs, ...]:
            raise CheckError("the reference interpreter died of SIGABRT", hint="Use --golden.")

    monkeypatch.setattr("tflm_forge.verify.plan.choose_reference", lambda *_: Broken())
    report = run(relu, plan_suite(relu, Path("relu.tflite"), SuiteOptions(soak=SHORT)), make_device(relu))
    assert not report.passed
    assert "died of SIGABRT. Use --golden." in report.parts[1].failures[0].detail


def test_accuracy_on_labelled_inputs(relu: Model, planned: SuitePlan, npz: Path) -> None:
    samples = np.array([[9, 0, 0, 0], [0, 9, 0, 0], [0, 0, 9, 0]], np.int8)
    np.savez(npz, input_0=samples, labels=np.array([0, 1, 3]))
    plan = plan_suite(relu, Path("relu.tflite"), SuiteOptions(inputs=npz, random_count=0, soak=SHORT))
    device = make_device(relu)
    device.model = lambda inputs: [b"\x09\x00\x00\x00"]
    accuracy = run(relu, plan, device).accuracy
    assert accuracy is not None
    assert (accuracy.total, accuracy.correct, accuracy.reference_correct) == (3, 1, 2)
    assert accuracy.percent == pytest.approx(33.333, abs=0.001)


def test_progress(relu: Model, planned: SuitePlan) -> None:
    seen: list[tuple[str, int, int]] = []
    with Session(SimulatedPort(make_device(relu), piece_bytes=50)) as session:
        run_suite(session, relu, planned, ExpectedFirmware(), on_step=lambda *done: seen.append(done))
    assert seen[:2] == [("numbers", 1, 2), ("numbers", 2, 2)]
    assert seen[5:7] == [("boundaries", 4, 4), ("latency", 1, 1)]
    assert seen[-1] == ("soak", 40, 40)


@pytest.mark.parametrize(
    ("only", "skip", "parts"),
    [
        ((), (), PARTS),
        (("soak,self-check",), (), ("self-check", "soak")),
        (("numbers", "soak"), ("soak",), ("numbers",)),
        ((), ("soak, layers", "latency"), ("self-check", "inputs", "numbers", "boundaries")),
    ],
)
def test_parts_are_chosen(only: tuple[str, ...], skip: tuple[str, ...], parts: tuple[str, ...]) -> None:
    assert choose_parts(only, skip) == parts


def test_parts_that_are_unknown_or_none() -> None:
    with pytest.raises(UsageError, match="unknown part of the suite 'numbres'") as caught:
        choose_parts(("numbres",), ())
    assert "'numbers'" in caught.value.hint
    with pytest.raises(UsageError, match="no part of the suite is left"):
        choose_parts(("soak",), ("soak",))


@pytest.mark.parametrize("part", [p for p in PARTS if p not in ("inputs", "layers")])
def test_each_part_runs_alone(relu: Model, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr("tflm_forge.verify.plan.choose_reference", lambda *_: ReluReference())
    plan = plan_suite(relu, Path("relu.tflite"), SuiteOptions(parts=(part,), soak=SHORT))
    device = make_device(relu)
    report = run(relu, plan, device)
    assert [p.name for p in report.parts] == [part]
    assert report.passed
    assert report.left_out == tuple(p for p in PARTS if p != part)
    # INFO, OPS, SELFTEST, TENSORS, INVOKE, SOAK, PROFILE: what each part asks for.
    asked = set(device.runs) & {0x02, 0x03, 0x11, 0x20, 0x21}
    expected = {
        "self-check": {0x02, 0x03},
        "numbers": {0x11},
        "boundaries": {0x11},
        "latency": {0x11, 0x21},
        "soak": {0x20, 0x03},
    }
    assert asked == expected[part]


def test_the_part_of_your_own_inputs_needs_some(relu: Model) -> None:
    with pytest.raises(UsageError, match="the part 'inputs' runs your own inputs") as caught:
        plan_suite(relu, Path("relu.tflite"), SuiteOptions(parts=("inputs",)))
    assert "--inputs" in caught.value.hint


def test_a_kernel_that_refuses_a_boundary_is_a_failed_check(relu: Model, planned: SuitePlan) -> None:
    device = make_device(relu)
    kernel = device.model
    invoke = device._invoke

    def refuse_zeros(body: bytes) -> bytes | tuple[int, int]:
        return (0x50, 0) if not any(device.inputs[0].data) else invoke(body)

    device._invoke = refuse_zeros  # type: ignore[method-assign]
    device.model = kernel
    report = run(relu, planned, device)
    [failure] = [check for part in report.parts for check in part.failures]
    assert (failure.name, "a kernel failed" in failure.detail) == ("zeros", True)


@pytest.mark.parametrize(
    ("status", "first", "words"),
    [
        (0x56, 3, "loop 3: the outputs changed for the same input"),
        (0x57, 0xFFFFFFFF, "the stack has run over its end"),
        (0x50, 0xFFFFFFFF, "a kernel failed during inference"),
    ],
)
def test_soak_says_what_went_wrong(relu: Model, planned: SuitePlan, status: int, first: int, words: str) -> None:
    device = make_device(relu)
    device.soak_status = (status, first)
    report = run(relu, planned, device)
    [failure] = [check for part in report.parts for check in part.failures]
    assert words in failure.detail


def test_soak_notices_outputs_that_change_between_its_steps(relu: Model, planned: SuitePlan) -> None:
    device = make_device(relu)
    soak, calls = device._soak, 0

    def drift(body: bytes) -> bytes:
        nonlocal calls
        calls += 1
        answer = bytearray(soak(body))
        if calls == 3:  # the first input for the second time
            answer[6] ^= 1
        return bytes(answer)

    device._soak = drift  # type: ignore[method-assign]
    report = run(relu, planned, device)
    assert "the outputs changed since the same input was first run" in report.parts[-1].failures[0].detail


def test_soak_against_the_reference(relu: Model, planned: SuitePlan) -> None:
    device = make_device(relu)
    soak = device._soak

    def wrong(body: bytes) -> bytes:
        answer = bytearray(soak(body))
        answer[6] ^= 1
        return bytes(answer)

    device._soak = wrong  # type: ignore[method-assign]
    [failure] = [check for part in run(relu, planned, device).parts for check in part.failures]
    assert failure.name == "outputs against the reference"


def test_stateful_soak_runs_the_same_sequence_twice(relu: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflm_forge.verify.plan.choose_reference", lambda *_: ReluReference())
    options = SuiteOptions(parts=("numbers", "soak"), soak=SoakOptions(loops=20, limit_s=None, stateful=True))
    plan = plan_suite(relu, Path("relu.tflite"), options)
    device = make_device(relu)
    counter = 0

    def forget(_: bytes) -> bytes:
        nonlocal counter
        counter = 0
        return b""

    def remember(inputs: list[bytes]) -> list[bytes]:
        nonlocal counter
        counter += 1
        return [bytes(b ^ counter & 0x0F for b in relu_bytes(inputs[0]))]

    device.model, device._forget = remember, forget  # type: ignore[method-assign]
    report = run(relu, plan, device)
    soak = next(part for part in report.parts if part.name == "soak")
    assert soak.passed, soak.failures
    assert report.soak is not None
    assert (report.soak.loops, report.soak.stateful) == (20, True)
    device._forget = lambda _: b""  # type: ignore[method-assign]
    soak = next(part for part in run(relu, plan, device).parts if part.name == "soak")
    assert "other outputs than in the first run" in soak.failures[0].detail


class FloatModel:
    """What a float ReLU gives for the real numbers behind the quantized inputs."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, _path: Path, _model: Model, cases: list[Case]) -> tuple[Outputs, ...]:
        return tuple((np.maximum((c.inputs[0].astype(float) + 1) * 0.5, 0) * self.factor,) for c in cases)


@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.005, True), (1.02, False)])
def test_float_reference(relu: Model, monkeypatch: pytest.MonkeyPatch, factor: float, passes: bool) -> None:
    monkeypatch.setattr("tflm_forge.verify.plan.choose_reference", lambda *_: ReluReference())
    monkeypatch.setattr("tflm_forge.verify.plan.float_outputs", FloatModel(factor))
    options = SuiteOptions(parts=(NUMBERS,), float_reference=Path("float.tflite"))
    report = run(relu, plan_suite(relu, Path("relu.tflite"), options), make_device(relu))
    assert report.passed == passes
    [agreement] = report.float_agreements
    assert agreement.relative_error == pytest.approx(1 - 1 / factor, abs=1e-9)
    assert (agreement.model, agreement.cases, agreement.argmax_agrees) == ("float.tflite", 3, 3)
    if not passes:
        assert "relative error 1.961% of at most 1.000%" in report.parts[0].failures[0].detail


def test_float_reference_needs_its_part(relu: Model) -> None:
    options = SuiteOptions(parts=(SELF_CHECK,), float_reference=Path("float.tflite"))
    with pytest.raises(UsageError, match="needs the part 'numbers'"):
        plan_suite(relu, Path("relu.tflite"), options)


def test_bad_inputs_are_found_before_any_device(relu: Model, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can not read"):
        plan_suite(relu, tmp_path / "relu.tflite", SuiteOptions(inputs=tmp_path / "absent.npz"))


def test_the_report_is_json(relu: Model, planned: SuitePlan) -> None:
    report = run(relu, planned, make_device(relu))
    value = json.loads(json.dumps(report_to_json(report), allow_nan=False))
    assert value["tflm_forge_report"] == 1
    assert value["passed"] is True
    assert value["model"]["file"] == "relu.tflite"
    assert value["comparisons"][0]["max_error"] == 0


def test_another_model_on_the_device_is_named(planned: SuitePlan, relu: Model) -> None:
    other = make_relu_model(name="other.tflite", shape=(2, 2))
    report = run(relu, planned, make_device(other))
    assert not report.passed
    assert "model SHA-256" in [check.name for check in report.parts[0].failures]
