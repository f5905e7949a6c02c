"""What an inference takes: ticks of the device turned into instructions, cycles and time."""

import statistics
from collections.abc import Sequence

from tflm_forge.link.answers import CounterKind, Info
from tflm_forge.link.session import Session
from tflm_forge.model import Model
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.numbers import set_inputs
from tflm_forge.verify.parts import LATENCY
from tflm_forge.verify.records import Check, Latency, OperatorTime, Part

LEAST_RUNS = 5

NANOSECONDS_PER_SECOND = 1_000_000_000
"""Instructions a second of an emulator that counts them: QEMU's `-icount shift=0` takes 1 ns for each."""


def measure_latency(info: Info, ticks: Sequence[int], *, clock_hz: int = 0) -> Latency | None:
    """Return what an inference takes, from the ticks of several; None when the device can not count."""
    if not ticks or info.counter_kind is CounterKind.NONE or not info.ticks_per_second:
        return None
    counts = [count_of(info, value) for value in ticks]
    emulated = info.counter_kind is CounterKind.EMULATED_TICKS
    median = int(statistics.median(counts))
    return Latency(
        unit="instructions" if emulated else "cycles",
        runs=len(counts),
        minimum=min(counts),
        median=median,
        maximum=max(counts),
        median_s=None if emulated else median / info.ticks_per_second,
        clock_hz=clock_hz,
    )


def count_of(info: Info, ticks: int) -> int:
    """Return ticks in the unit of the latency: instructions in an emulator, cycles on hardware."""
    if info.counter_kind is CounterKind.EMULATED_TICKS:
        return ticks * NANOSECONDS_PER_SECOND // info.ticks_per_second
    return ticks


def run_more(session: Session, case: Case, count: int) -> list[int]:
    """Run a case several times and return the ticks of each inference."""
    ticks = []
    for _ in range(count):
        set_inputs(session, case)
        ticks.append(session.invoke().total_ticks)
    return ticks


def profile_operators(session: Session, info: Info, model: Model, case: Case) -> tuple[OperatorTime, ...]:
    """Run one inference on a case and return what each operator of the main graph takes."""
    set_inputs(session, case)
    operators = model.subgraphs[0].operators
    return tuple(
        OperatorTime(index=op.index, op=op.name, layer=op.label, count=count_of(info, ticks))
        for op, ticks in zip(operators, session.profile(), strict=False)
    )


def check_latency(latency: Latency | None, operators: tuple[OperatorTime, ...], operator_count: int) -> Part:
    """Return the part of the suite: numbers were got for the inference and for every operator of it."""
    if latency is None:
        return Part(name=LATENCY, checks=(), skipped="the device has no counter of cycles")
    spread = "" if latency.minimum == latency.maximum else f", {latency.minimum:,} to {latency.maximum:,}"
    checks = [Check(name="inference", passed=latency.median > 0, detail=f"{latency.median:,} {latency.unit}{spread}")]
    total = sum(operator.count for operator in operators)
    detail = f"{len(operators)} of {operator_count} operators, {total:,} {latency.unit} in all"
    checks.append(Check(name="operators", passed=len(operators) == operator_count, detail=detail))
    return Part(name=LATENCY, checks=tuple(checks))
