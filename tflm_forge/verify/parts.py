"""The parts of the suite by name, and which of them the user wants."""

from collections.abc import Sequence

from tflm_forge.errors import UsageError
from tflm_forge.registry import unknown_name

SELF_CHECK = "self-check"
INPUTS = "inputs"
NUMBERS = "numbers"
BOUNDARIES = "boundaries"
LATENCY = "latency"
SOAK = "soak"
LAYERS = "layers"

PARTS: tuple[str, ...] = (SELF_CHECK, INPUTS, NUMBERS, BOUNDARIES, LATENCY, SOAK, LAYERS)
"""All parts, in the order they run."""

CASE_PARTS: tuple[str, ...] = (INPUTS, NUMBERS, BOUNDARIES)
"""The parts that run cases and compare outputs."""


def choose_parts(only: Sequence[str], skip: Sequence[str]) -> tuple[str, ...]:
    """Return the parts to run, in order.

    Args:
        only: names, each may hold several separated by commas; nothing means all.
        skip: the same, of parts to leave out.

    Raises:
        UsageError: an unknown name, or nothing is left.
    """
    wanted = _split(only) or PARTS
    unwanted = _split(skip)
    chosen = tuple(part for part in PARTS if part in wanted and part not in unwanted)
    if not chosen:
        raise UsageError("no part of the suite is left to run", hint=f"Parts: {', '.join(PARTS)}.")
    return chosen


def _split(words: Sequence[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for word in words for name in word.split(",") if name.strip())
    for name in names:
        if name not in PARTS:
            raise unknown_name("part of the suite", name, PARTS)
    return names
