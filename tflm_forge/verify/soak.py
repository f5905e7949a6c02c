"""Runs many inferences one after the other, and looks for outputs, memory or state that change on the way."""

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from tflm_forge.link.answers import Info
from tflm_forge.link.messages import Space
from tflm_forge.link.session import Session
from tflm_forge.model import Model
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.numbers import set_inputs
from tflm_forge.verify.parts import SOAK
from tflm_forge.verify.records import Check, Part, Soak, SoakStep
from tflm_forge.verify.reference import Outputs

DEFAULT_LOOPS = 5000
DEFAULT_LIMIT_S = 10.0
"""How long a soak goes on when the number of loops was not asked for."""

_STEP_S = 0.5
_FIRST_STEP_LOOPS = 4
_LEAST_STEPS = 8
_SEED = 0x5EED0001


@dataclass(frozen=True, kw_only=True)
class SoakOptions:
    """What the user chose.

    Attributes:
        loops: how many inferences.
        limit_s: seconds after which the soak ends before that; None: it does not.
        stateful: whether the model keeps its state from loop to loop.
    """

    loops: int = DEFAULT_LOOPS
    limit_s: float | None = DEFAULT_LIMIT_S
    stateful: bool = False


OnLoops = Callable[[int, int], None]


def soak_seeds() -> tuple[int, int]:
    """Return the seeds of the two inputs that take turns: what one leaves behind shows in the other's outputs."""
    return _SEED, _SEED + 1


def run_soak(
    session: Session, info: Info, expected: tuple[Outputs | None, ...], options: SoakOptions, on_loops: OnLoops
) -> tuple[Soak, Part]:
    """Run the same two inputs in turns and compare the outputs of every loop with those of the first.

    Args:
        session: a connected session.
        info: what the device said before.
        expected: for each of `soak_seeds` the outputs when they are known and must be equal bit for bit.
        options: how long.
        on_loops: called with (loops done, loops in all).

    Raises:
        DeviceError: the device stopped answering, or a kernel failed.
    """
    pace = _Pace(options)
    crcs: dict[int, int] = {}
    steps: list[SoakStep] = []
    problems: list[str] = []
    while (count := pace.next_step()) and not problems:
        seed = soak_seeds()[len(steps) % 2]
        result = session.soak(count, seed)
        known = crcs.setdefault(seed, result.crc)
        if result.first_difference is not None:
            problems.append(f"loop {pace.done + result.first_difference}: the outputs changed for the same input")
        elif result.crc != known:
            problems.append(f"loop {pace.done}: the outputs changed since the same input was first run")
        elif result.status.code:
            problems.append(f"loop {pace.done + result.loops_done}: {result.status.words}. {result.status.remedy}")
        pace.count(result.loops_done)
        steps.append(_step(pace, result.stack_high_water_bytes))
        on_loops(pace.done, options.loops)
    soak = Soak(loops=pace.done, wanted=options.loops, stateful=False, steps=tuple(steps))
    checks = [_loops_check(soak, problems), *_reference_checks(crcs, expected), *_memory_checks(session, info)]
    return soak, Part(name=SOAK, checks=tuple(checks))


def run_stateful_soak(
    session: Session, info: Info, model: Model, cases: tuple[Case, ...], options: SoakOptions, on_loops: OnLoops
) -> tuple[Soak, Part]:
    """Run a sequence of inferences twice, each from a fresh state that is then kept, and compare every output.

    Raises:
        DeviceError: the device stopped answering, or a kernel failed.
    """
    pace = _Pace(options)
    half_s = None if options.limit_s is None else options.limit_s / 2
    first: list[int] = []
    steps: list[SoakStep] = []
    problems: list[str] = []
    for is_second in (False, True):
        session.reset_state()
        loops = len(first) if is_second else options.loops // 2
        for loop in range(loops):
            set_inputs(session, cases[loop % len(cases)])
            session.invoke()
            crc = 0
            for index in range(len(model.outputs)):
                crc = zlib.crc32(session.crc(Space.OUTPUT, index).to_bytes(4, "little"), crc)
            pace.count(1)
            on_loops(pace.done, options.loops)
            if is_second and crc != first[loop]:
                problems.append(f"loop {loop} of the second run: other outputs than in the first run")
                break
            if not is_second:
                first.append(crc)
                if half_s is not None and pace.elapsed_s >= half_s:
                    break
        steps.append(_step(pace, session.info().stack_high_water_bytes))
    soak = Soak(loops=pace.done, wanted=options.loops, stateful=True, steps=tuple(steps))
    checks = (_loops_check(soak, problems), *_memory_checks(session, info))
    return soak, Part(name=SOAK, checks=checks)


class _Pace:
    """Chooses how many loops a step has, so that there are several steps and the time is kept."""

    def __init__(self, options: SoakOptions) -> None:
        self._options = options
        self._started = time.monotonic()
        self.done = 0

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def count(self, loops: int) -> None:
        self.done += loops

    def next_step(self) -> int:
        """Return the loops of the next step; 0 when the soak is over."""
        left, limit_s = self._options.loops - self.done, self._options.limit_s
        if left <= 0 or (limit_s is not None and self.elapsed_s >= limit_s):
            return 0
        if not self.done:
            return min(left, _FIRST_STEP_LOOPS)
        loop_s = self.elapsed_s / self.done
        step_s = _STEP_S if limit_s is None else min(_STEP_S, limit_s - self.elapsed_s)
        most = max(1, self._options.loops // _LEAST_STEPS)
        return max(1, min(left, most, int(step_s / max(loop_s, 1e-6))))


def _step(pace: _Pace, stack_high_water_bytes: int) -> SoakStep:
    return SoakStep(loops=pace.done, stack_high_water_bytes=stack_high_water_bytes, seconds=round(pace.elapsed_s, 3))


def _loops_check(soak: Soak, problems: list[str]) -> Check:
    if problems:
        return Check(name="loops", passed=False, detail=problems[0])
    state = "state kept, two runs alike" if soak.stateful else "state reset before each, all outputs alike"
    short = "" if soak.loops >= soak.wanted else f" of {soak.wanted:,} (time was up; --soak {soak.wanted} runs all)"
    return Check(name="loops", passed=soak.loops > 0, detail=f"{soak.loops:,} loops{short}, {state}")


def _reference_checks(crcs: dict[int, int], expected: tuple[Outputs | None, ...]) -> list[Check]:
    """Compare the outputs of a soak with the reference's, by their CRC."""
    wanted = {
        seed: zlib.crc32(b"".join(array.tobytes() for array in outputs))
        for seed, outputs in zip(soak_seeds(), expected, strict=False)
        if outputs is not None
    }
    seeds = [seed for seed in crcs if seed in wanted]
    if not seeds:
        return []
    wrong = [seed for seed in seeds if crcs[seed] != wanted[seed]]
    detail = f"{len(wrong)} of {len(seeds)} inputs gave other outputs" if wrong else f"{len(seeds)} inputs, identical"
    return [Check(name="outputs against the reference", passed=not wrong, detail=detail)]


def _memory_checks(session: Session, before: Info) -> list[Check]:
    after, selftest = session.info(), session.selftest()
    used = f"{after.stack_high_water_bytes:,} of {after.stack_bytes:,} bytes used"
    arena_same = after.arena_used_bytes == before.arena_used_bytes
    arena = f"{after.arena_used_bytes:,} bytes used" + (
        ", as before" if arena_same else f", {before.arena_used_bytes:,} before"
    )
    return [
        Check(
            name="stack",
            passed=selftest.canary_ok and after.stack_high_water_bytes < after.stack_bytes,
            detail=used if selftest.canary_ok else f"{used}, and it has run over its end",
        ),
        Check(name="tensor arena", passed=arena_same, detail=arena),
    ]
