"""The suite: what is tested in which order, and what comes out as one report."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.errors import CheckError
from tflm_forge.link.answers import CounterKind, Info
from tflm_forge.link.session import Session
from tflm_forge.model import Model
from tflm_forge.verify.golden import choose_reference, golden_path
from tflm_forge.verify.inputs import Case, load_cases, make_cases
from tflm_forge.verify.numbers import Run, compare_output, count_correct, run_case
from tflm_forge.verify.records import (
    Accuracy,
    Check,
    Comparison,
    DeviceFacts,
    Latency,
    Part,
    TestReport,
)
from tflm_forge.verify.reference import Outputs
from tflm_forge.verify.selfcheck import Answers, ExpectedFirmware, check_device

NUMBERS_PART = "numbers"

NANOSECONDS_PER_SECOND = 1_000_000_000
"""Instructions a second of an emulator that counts them: QEMU's `-icount shift=0` takes 1 ns for each."""


@dataclass(frozen=True, kw_only=True)
class SuiteOptions:
    """What the user chose.

    Attributes:
        seed: of the random inputs.
        random_count: how many random inputs.
        inputs: the user's own, an .npz file.
        golden: a golden file to compare with instead of the interpreter.
        no_reference: whether it is all right to compare with nothing.
    """

    seed: int = 1
    random_count: int = 3
    inputs: Path | None = None
    golden: Path | None = None
    no_reference: bool = False


@dataclass(frozen=True, kw_only=True)
class SuitePlan:
    """What to run on a device and what must come out; made without a device.

    Attributes:
        cases: the inputs.
        expected: for each case the outputs, or None when they are not known.
        reference: what knows them; empty when there is none.
        problem: why there are no expected outputs though they were wanted; with the remedy.
        no_reference: the user wants no comparison.
    """

    cases: tuple[Case, ...]
    expected: tuple[Outputs | None, ...]
    reference: str
    problem: str
    no_reference: bool


def plan_suite(model: Model, model_path: Path, options: SuiteOptions) -> SuitePlan:
    """Choose inputs and reference, and let the reference compute the outputs.

    Raises:
        UsageError: the user's inputs or the golden file can not be used.
        ModelError: an input has a type that can not be exchanged with a device.
    """
    own = load_cases(options.inputs, model) if options.inputs is not None else ()
    made = make_cases(model, seed=options.seed, random_count=options.random_count)
    reference = None if options.no_reference else choose_reference(model, model_path, options.golden)
    if reference is None:
        problem = "" if options.no_reference else _no_reference_words(model_path)
        return _plan_without_reference((*own, *made), problem, no_reference=options.no_reference)
    recorded = reference.own_cases()
    cases = (*own, *(made if recorded is None else recorded))
    try:
        expected = reference.outputs(cases)
    except CheckError as error:
        problem = ". ".join(part for part in (error.message, *error.reasons, error.hint) if part)
        return _plan_without_reference(cases, problem, no_reference=False)
    return SuitePlan(
        cases=cases, expected=expected, reference=reference.title, problem="", no_reference=False
    )


def run_suite(
    session: Session,
    model: Model,
    plan: SuitePlan,
    expected: ExpectedFirmware,
    *,
    on_case: Callable[[int, int], None] | None = None,
) -> TestReport:
    """Run everything on a device and return what was found, whether it passed or not.

    Args:
        session: a session; it is connected here.
        model: the model that should be in the device.
        plan: inputs and expected outputs.
        expected: the firmware that should be in the device.
        on_case: called with (cases done, cases in all).

    Raises:
        DeviceError: the device stopped answering, or refused to run an inference.
    """
    info = session.connect()
    self_check = check_device(ask_device(session, info), model, expected)
    runs: list[Run] = []
    comparisons: tuple[Comparison, ...] = ()
    if not info.ready:
        blocked = Check(name="inference", passed=False, detail="not run: a boot step failed, see self-check")
        numbers = Part(name=NUMBERS_PART, checks=(blocked,))
    else:
        for done, case in enumerate(plan.cases):
            runs.append(run_case(session, model, case))
            if on_case is not None:
                on_case(done + 1, len(plan.cases))
        comparisons = _compare(model, plan, runs)
        numbers = _numbers_part(plan, comparisons)
    end = session.info()
    return TestReport(
        model=model.name,
        model_sha256=model.sha256,
        device=_facts(session.url, end),
        reference=plan.reference,
        parts=(self_check, numbers),
        comparisons=comparisons,
        latency=measure_latency(end, [run.ticks for run in runs]),
        accuracy=_accuracy(plan, runs),
        log_lines=session.log_lines,
    )


def ask_device(session: Session, info: Info) -> Answers:
    """Ask a connected device for everything the self-check needs."""
    return Answers(
        info=info,
        selftest=session.selftest(),
        ops=session.ops(),
        tensors=session.tensors() if info.ready else None,
    )


def measure_latency(info: Info, ticks: Sequence[int]) -> Latency | None:
    """Return what an inference takes, from the ticks of several; None when the device can not count."""
    if not ticks or info.counter_kind is CounterKind.NONE or not info.ticks_per_second:
        return None
    counts = list(ticks)
    emulated = info.counter_kind is CounterKind.EMULATED_TICKS
    if emulated:
        counts = [count * NANOSECONDS_PER_SECOND // info.ticks_per_second for count in counts]
    median = int(statistics.median(counts))
    return Latency(
        unit="instructions" if emulated else "cycles",
        runs=len(counts),
        minimum=min(counts),
        median=median,
        maximum=max(counts),
        median_s=None if emulated else median / info.ticks_per_second,
    )


def _plan_without_reference(cases: tuple[Case, ...], problem: str, *, no_reference: bool) -> SuitePlan:
    return SuitePlan(
        cases=cases,
        expected=(None,) * len(cases),
        reference="",
        problem=problem,
        no_reference=no_reference,
    )


def _no_reference_words(model_path: Path) -> str:
    return (
        "no reference to compare with: install it (pip install 'tflm-forge[reference]'), put a golden file "
        f"at {golden_path(model_path)}, or say --no-reference"
    )


def _compare(model: Model, plan: SuitePlan, runs: Sequence[Run]) -> tuple[Comparison, ...]:
    return tuple(
        compare_output(run.case.name, tensor, want, have)
        for run, expected in zip(runs, plan.expected, strict=True)
        if expected is not None
        for tensor, want, have in zip(model.outputs, expected, run.outputs, strict=True)
    )


def _numbers_part(plan: SuitePlan, comparisons: Sequence[Comparison]) -> Part:
    if plan.no_reference:
        return Part(name=NUMBERS_PART, checks=(), skipped="no comparison: --no-reference")
    if plan.problem:
        return Part(name=NUMBERS_PART, checks=(Check(name="reference", passed=False, detail=plan.problem),))
    checks = [
        Check(name=f"{c.case}: {c.output}", passed=c.passed, detail=_comparison_words(c)) for c in comparisons
    ]
    checks += [
        Check(
            name=case.name, passed=False, detail=f"not compared: {plan.reference} does not know these inputs"
        )
        for case, expected in zip(plan.cases, plan.expected, strict=True)
        if expected is None
    ]
    return Part(name=NUMBERS_PART, checks=tuple(checks))


def _comparison_words(comparison: Comparison) -> str:
    metrics = comparison.metrics
    if not metrics.max_error:
        return "identical"
    unit = f" {comparison.unit}" if comparison.unit else ""
    within = "" if metrics.mismatches else ", within the tolerance"
    return (
        f"{metrics.mismatches} of {metrics.elements} differ ({metrics.mismatch_percent:.2f} %), "
        f"largest error {metrics.max_error:.6g}{unit}{within}"
    )


def _accuracy(plan: SuitePlan, runs: Sequence[Run]) -> Accuracy | None:
    labelled = [i for i, run in enumerate(runs) if run.case.label is not None]
    if not labelled:
        return None
    cases = [plan.cases[i] for i in labelled]
    expected = [row for i in labelled if (row := plan.expected[i]) is not None]
    return Accuracy(
        total=len(labelled),
        correct=count_correct(cases, [runs[i].outputs for i in labelled]),
        reference_correct=count_correct(cases, expected) if len(expected) == len(cases) else None,
    )


def _facts(port: str, info: Info) -> DeviceFacts:
    return DeviceFacts(
        port=port,
        board=info.board,
        runtime=info.runtime,
        runtime_version=info.runtime_version,
        kernel_set=info.kernel_set,
        forge_version=info.forge_version,
        build_id=info.build_id.hex(),
        reset_cause=info.reset_cause_words,
        arena_bytes=info.arena_bytes,
        arena_used_bytes=info.arena_used_bytes,
        stack_bytes=info.stack_bytes,
        stack_high_water_bytes=info.stack_high_water_bytes,
    )
