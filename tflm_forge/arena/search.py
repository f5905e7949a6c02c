"""Searches the smallest arena with which firmware runs, whatever runs it."""

from collections.abc import Callable
from dataclasses import dataclass

from tflm_forge.arena.estimate import STEP_BYTES, round_up
from tflm_forge.errors import DeviceError
from tflm_forge.link.answers import SelfTest
from tflm_forge.link.session import Session
from tflm_forge.link.status import BOOT_STEPS

_ALLOCATION_STEP = BOOT_STEPS[-1]
_STACK_STATUS = 0x57


class StuckError(DeviceError):
    """A device that no further size can be tried on."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What firmware with one arena size did: whether it became ready, what it uses, or why no arena can help."""

    ready: bool
    used_bytes: int
    problem: str = ""


def boot_trial(session: Session) -> Trial:
    """Return how the boot of a device went.

    Raises:
        DeviceError: it does not answer.
    """
    info = session.connect()
    if info.ready:
        return Trial(ready=True, used_bytes=info.arena_used_bytes)
    return Trial(ready=False, used_bytes=0, problem=_problem_of(session.selftest()))


def _problem_of(selftest: SelfTest) -> str:
    """Return why a boot failed when it was not for want of arena; empty when a larger one may help."""
    for step, status in zip(BOOT_STEPS, selftest.steps, strict=True):
        if status.code:
            return "" if step == _ALLOCATION_STEP and status.code != _STACK_STATUS else f"{step}: {status.words}"
    return ""


def find_smallest(run: Callable[[int], Trial], first: Trial, limit_bytes: int) -> int | None:
    """Return the smallest size with which firmware runs, having tried the one below it; None when none does.

    Args:
        run: boots the firmware with an arena of so many bytes and lets it infer; raises DeviceError when it does not
            answer.
        first: what booting it with limit_bytes did.
        limit_bytes: the largest size that can be tried.

    Raises:
        DeviceError: it does not boot for another reason than its arena, or does not run with limit_bytes.
    """

    def works(size: int) -> bool:
        try:
            return run(size).ready
        except StuckError:
            raise
        except DeviceError:  # Too small an arena may also hang or fault.
            return False

    if first.problem:
        raise DeviceError(
            f"the firmware does not boot in the emulator: {first.problem}",
            hint="Build with --arena BYTES, and see what `forge flash-and-test` says of it.",
        )
    if not first.ready:
        return None
    size = min(round_up(max(first.used_bytes, STEP_BYTES)), limit_bytes)
    step = STEP_BYTES
    low = 0
    while size < limit_bytes and not works(size):
        low, size, step = size, min(size + step, limit_bytes), step * 2
    size = _bisect(works, low, size)
    while size > STEP_BYTES and works(size - STEP_BYTES):
        size -= STEP_BYTES
    if size == limit_bytes:
        run(size)  # It has only booted with so much; when its inference fails, this says how.
    return size


def _bisect(works: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest working multiple of STEP_BYTES in (low, high], where low fails and high works."""
    while high - low > STEP_BYTES and low:
        middle = round_up((low + high) // 2)
        if middle == high:
            break
        if works(middle):
            high = middle
        else:
            low = middle
    return high
