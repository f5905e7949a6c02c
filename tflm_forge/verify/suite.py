"""The suite: runs a plan on a device, part by part, and makes one report of it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from tflm_forge.link.answers import Info
from tflm_forge.link.failures import RefusedError
from tflm_forge.link.session import Session
from tflm_forge.model import Model
from tflm_forge.model.resources import has_state
from tflm_forge.verify.floats import check_agreement, compare_with_floats
from tflm_forge.verify.inputs import Case, make_boundary_cases
from tflm_forge.verify.latency import LEAST_RUNS, check_latency, measure_latency, profile_operators, run_more
from tflm_forge.verify.numbers import Run, compare_output, count_correct, run_case
from tflm_forge.verify.parts import BOUNDARIES, CASE_PARTS, INPUTS, LATENCY, NUMBERS, PARTS, SELF_CHECK, SOAK
from tflm_forge.verify.plan import SuitePlan
from tflm_forge.verify.records import (
    Accuracy,
    Check,
    Comparison,
    DeviceFacts,
    FloatAgreement,
    Latency,
    Part,
    Soak,
    TestReport,
)
from tflm_forge.verify.selfcheck import Answers, ExpectedFirmware, check_device, check_selected
from tflm_forge.verify.soak import run_soak, run_stateful_soak

OnStep = Callable[[str, int, int], None]
"""Called with a part's name, what is done of it, and how much there is."""


def run_suite(
    session: Session,
    model: Model,
    plan: SuitePlan,
    expected: ExpectedFirmware,
    *,
    on_step: OnStep = lambda *_: None,
) -> TestReport:
    """Run everything but the layers on a device and return what was found, whether it passed or not.

    Args:
        session: a session; it is connected here.
        model: the model that should be in the device.
        plan: inputs and expected outputs.
        expected: the firmware that should be in the device.
        on_step: called as the work goes on.

    Raises:
        DeviceError: the device stopped answering, or refused to run an inference.
    """
    info = session.connect()
    return _SuiteRun(session, model, plan, info, on_step).run(expected)


def run_further(
    session: Session,
    report: TestReport,
    further: Sequence[tuple[Model, SuitePlan]],
    *,
    on_step: OnStep = lambda *_: None,
) -> TestReport:
    """Run the parts with cases for the models that share the firmware with the first.

    Args:
        session: the session that the report is from.
        report: what was found about the first model and the whole.
        further: the other models, in their order, with the parts that are wanted of each.
        on_step: called as the work goes on.

    Returns:
        The report, with parts that are named after their models.

    Raises:
        DeviceError: the device stopped answering, or refused to run an inference.
    """
    info = session.info()
    if not info.ready:
        return report
    parts, comparisons = list(report.parts), list(report.comparisons)
    for index, (model, plan) in enumerate(further, start=1):
        selected = session.select(index)
        if SELF_CHECK in plan.options.parts:
            checks = check_selected(selected, session.tensors(), model)
            parts.append(_of_model(Part(name=SELF_CHECK, checks=checks), model.name))
        own_parts, own_comparisons = _SuiteRun(session, model, plan, info, on_step).run_case_parts()
        parts += [_of_model(part, model.name) for part in own_parts]
        comparisons += [
            replace(c, case=f"{model.name}: {c.case}", source=f"{model.name}: {c.source or c.case}")
            for c in own_comparisons
        ]
    session.select(0)
    return replace(report, parts=tuple(parts), comparisons=tuple(comparisons), log_lines=session.log_lines)


def _of_model(part: Part, model_name: str) -> Part:
    checks = (replace(check, name=f"{model_name}: {check.name}") for check in part.checks)
    return replace(part, name=f"{part.name} ({model_name})", checks=tuple(checks))


def ask_device(session: Session, info: Info) -> Answers:
    """Ask a connected device for everything the self-check needs."""
    return Answers(
        info=info,
        selftest=session.selftest(),
        ops=session.ops(),
        tensors=session.tensors() if info.ready else None,
    )


class _SuiteRun:
    """One run of the suite: the parts one after the other, and what they found so far."""

    def __init__(self, session: Session, model: Model, plan: SuitePlan, info: Info, on_step: OnStep) -> None:
        self._session = session
        self._model = model
        self._plan = plan
        self._info = info
        self._on_step = on_step
        self._parts: list[Part] = []
        self._runs: dict[int, Run] = {}
        self._failed: dict[int, str] = {}
        self._agreements: tuple[FloatAgreement, ...] = ()
        self._latency: Latency | None = None
        self._soak: Soak | None = None

    def run(self, expected: ExpectedFirmware) -> TestReport:
        wanted = self._plan.options.parts
        if SELF_CHECK in wanted or not self._info.ready:
            # What a blocked device says of itself is the only thing there is to report.
            self._parts.append(check_device(ask_device(self._session, self._info), self._model, expected))
        if not self._info.ready:
            blocked = Check(name="inference", passed=False, detail="not run: a boot step failed, see self-check")
            name = NUMBERS if NUMBERS in wanted else wanted[-1]
            self._parts += [Part(name=name, checks=(blocked,))] if name != SELF_CHECK else []
            return self._report(())
        _, comparisons = self.run_case_parts()
        if LATENCY in wanted:
            self._measure_latency()
        if SOAK in wanted:
            self._run_soak()
        return self._report(comparisons)

    def run_case_parts(self) -> tuple[Sequence[Part], tuple[Comparison, ...]]:
        """Run the parts with cases that are wanted; return all parts up to now and the comparisons."""
        options = self._plan.options
        self._run_cases()
        comparisons = self._compare()
        self._parts += [
            self._case_part(name, comparisons)
            for name in CASE_PARTS
            if name in options.parts and (name != INPUTS or options.inputs is not None)
        ]
        return self._parts, comparisons

    def _run_cases(self) -> None:
        cases = self._plan.cases
        total, done = Counter(case.part for case in cases), Counter[str]()
        has_own_state = has_state(self._model)
        for index, case in enumerate(cases):
            if has_own_state and (index == 0 or not self._plan.options.soak.stateful):
                self._session.reset_state()
            try:
                self._runs[index] = run_case(self._session, self._model, case)
            except RefusedError as error:
                # At the boundaries a kernel may well refuse; anywhere else there is no point in going on.
                if case.part != BOUNDARIES or error.status.name != "InvokeFailed":
                    raise
                self._failed[index] = error.message
            done[case.part] += 1
            self._on_step(case.part, done[case.part], total[case.part])

    def _compare(self) -> tuple[Comparison, ...]:
        return tuple(
            compare_output(
                run.case.name, tensor, want, have, source=run.case.source, tolerance_lsb=self._plan.tolerance_lsb
            )
            for index, run in self._runs.items()
            if (expected := self._plan.expected[index]) is not None
            for tensor, want, have in zip(self._model.outputs, expected, run.outputs, strict=True)
        )

    def _case_part(self, name: str, comparisons: Sequence[Comparison]) -> Part:
        plan = self._plan
        checks: list[Check] = []
        skipped = ""
        if plan.options.no_reference:
            skipped = "no comparison: --no-reference"
        elif plan.problem:
            checks.append(Check(name="reference", passed=False, detail=plan.problem))
        else:
            cases = {case.name for case in plan.cases if case.part == name}
            checks += [
                Check(name=f"{c.case}: {c.output}", passed=c.passed, detail=_comparison_words(c))
                for c in comparisons
                if c.case in cases
            ]
        checks += [check for i, case in enumerate(plan.cases) if case.part == name for check in self._case_checks(i)]
        if name == NUMBERS and plan.float_expected:
            checks += self._float_checks()
        return Part(name=name, checks=tuple(checks), skipped=skipped if not checks else "")

    def _case_checks(self, index: int) -> list[Check]:
        """Return what is to be said of a case besides its comparisons."""
        case = self._plan.cases[index]
        if index in self._failed:
            return [Check(name=case.name, passed=False, detail=self._failed[index])]
        if not case.is_comparable:
            return [Check(name=case.name, passed=True, detail="the device took it; outputs are not compared")]
        compares = not self._plan.options.no_reference and not self._plan.problem
        if not compares or self._plan.expected[index] is not None:
            return []
        if case.part == BOUNDARIES:
            return [Check(name=case.name, passed=True, detail=f"the device took it; {self._unknown()}")]
        return [Check(name=case.name, passed=False, detail=f"not compared: {self._unknown()}")]

    def _unknown(self) -> str:
        return f"{self._plan.reference} does not know these inputs"

    def _float_checks(self) -> list[Check]:
        options = self._plan.options
        names = set(self._plan.float_cases)
        actual = [run.outputs for run in self._runs.values() if run.case.name in names]
        if options.float_reference is not None:
            self._agreements = compare_with_floats(
                self._model, options.float_reference, self._plan.float_expected, actual, options.float_limit
            )
        return [check_agreement(agreement) for agreement in self._agreements]

    def _measure_latency(self) -> None:
        case = self._plan.cases[0] if self._plan.cases else _zeros(self._model)
        # Not those of NaN: processors may be slower on it.
        ticks = [run.ticks for run in self._runs.values() if run.case.is_comparable]
        ticks += run_more(self._session, case, max(0, LEAST_RUNS - len(ticks)))
        latency = measure_latency(self._info, ticks, clock_hz=self._plan.options.clock_hz)
        operators = profile_operators(self._session, self._info, self._model, case) if latency is not None else ()
        self._latency = None if latency is None else replace(latency, operators=operators)
        self._parts.append(check_latency(latency, operators, len(self._model.subgraphs[0].operators)))
        self._on_step(LATENCY, 1, 1)

    def _run_soak(self) -> None:
        options = self._plan.options.soak

        def on_loops(done: int, total: int) -> None:
            self._on_step(SOAK, done, total)

        if options.stateful:
            cases = self._plan.cases or (_zeros(self._model),)
            self._soak, part = run_stateful_soak(self._session, self._info, self._model, cases, options, on_loops)
        else:
            self._soak, part = run_soak(self._session, self._info, self._plan.soak_expected, options, on_loops)
        self._parts.append(part)

    def _report(self, comparisons: tuple[Comparison, ...]) -> TestReport:
        end = self._session.info()
        runs = list(self._runs.values())
        latency = self._latency or measure_latency(end, [r.ticks for r in runs], clock_hz=self._plan.options.clock_hz)
        return TestReport(
            model=self._model.name,
            model_sha256=self._model.sha256,
            device=_facts(self._session.url, end),
            reference=self._plan.reference,
            parts=tuple(self._parts),
            comparisons=comparisons,
            latency=latency,
            accuracy=self._accuracy(),
            log_lines=self._session.log_lines,
            soak=self._soak,
            float_agreements=self._agreements,
            left_out=tuple(name for name in PARTS if name not in self._plan.options.parts),
        )

    def _accuracy(self) -> Accuracy | None:
        labelled = [i for i, run in self._runs.items() if run.case.label is not None]
        if not labelled:
            return None
        cases = [self._plan.cases[i] for i in labelled]
        expected = [row for i in labelled if (row := self._plan.expected[i]) is not None]
        return Accuracy(
            total=len(labelled),
            correct=count_correct(cases, [self._runs[i].outputs for i in labelled]),
            reference_correct=count_correct(cases, expected) if len(expected) == len(cases) else None,
        )


def _zeros(model: Model) -> Case:
    return make_boundary_cases(model)[0]


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
