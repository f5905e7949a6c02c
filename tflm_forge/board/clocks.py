"""Whether a chip's PLL can make the clock that a board file wants, and whether its flash can follow."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tflm_forge.board.table import Problems


@dataclass(frozen=True, kw_only=True)
class Pll:
    """How a PLL makes the core's clock: source / divide_before * multiply = VCO, and that / each of divide_after.

    The members name keys of [driver]. `source` is 0 there when the internal oscillator of `internal_hz` feeds the PLL.
    `input_hz` and `vco_hz` are the least and the most that the reference manual (`reference`) allows; `fixed` divides
    the input once more, and needs no key.
    """

    reference: str
    input_hz: tuple[int, int]
    vco_hz: tuple[int, int]
    multiply: str
    divide_after: tuple[str, ...]
    divide_before: str = ""
    source: str = ""
    internal_hz: int = 0
    fixed: int = 1

    def source_hz(self, numbers: Mapping[str, int]) -> int:
        """Return the frequency of what feeds the PLL."""
        return (numbers[self.source] if self.source else 0) or self.internal_hz

    def input(self, numbers: Mapping[str, int]) -> Fraction:
        """Return the frequency that the PLL compares with."""
        before = numbers[self.divide_before] if self.divide_before else 1
        return Fraction(self.source_hz(numbers), before * self.fixed)

    def vco(self, numbers: Mapping[str, int]) -> Fraction:
        """Return the frequency of the PLL's oscillator."""
        return self.input(numbers) * numbers[self.multiply]

    def output(self, numbers: Mapping[str, int]) -> Fraction:
        """Return the frequency that comes out."""
        hz = self.vco(numbers)
        for key in self.divide_after:
            hz /= numbers[key]
        return hz

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys of the divisors and the factor."""
        return tuple(key for key in (self.divide_before, self.multiply, *self.divide_after) if key)


@dataclass(frozen=True, kw_only=True)
class WaitStates:
    """How fast flash is: one more wait state (`key`) for each `hz_per_state` of the core's clock / `divider`."""

    reference: str
    key: str
    hz_per_state: int
    divider: int = 1


def check_clock(
    problems: Problems,
    pll: Pll | None,
    wait_states: WaitStates | None,
    numbers: Mapping[str, int],
    allowed: Mapping[str, Sequence[int]],
) -> None:
    """Note what is wrong with a clock: the PLL's input, its VCO, its output, or the flash's wait states.

    Args:
        problems: gets it.
        pll: the PLL of the driver, if it has one.
        wait_states: the flash of the driver, if it waits.
        numbers: clock_hz and all constants of the driver.
        allowed: the values each number of the PLL may have.
    """
    if pll is not None:
        _check_pll(problems, pll, numbers, allowed)
    if wait_states is not None:
        hz = numbers["clock_hz"] // wait_states.divider
        least = -(-hz // wait_states.hz_per_state) - 1
        given = numbers[wait_states.key]
        if given < least:
            problems.add(
                f"driver.{wait_states.key}",
                f"{given} wait states are too few for flash at {hz:,} Hz: {least} at least",
                wait_states.reference,
            )


def _check_pll(problems: Problems, pll: Pll, numbers: Mapping[str, int], allowed: Mapping[str, Sequence[int]]) -> None:
    """Note the first thing that is wrong: the rest follows from it."""
    wanted = numbers["clock_hz"]
    least, most = pll.input_hz
    if not least <= pll.input(numbers) <= most:
        key = pll.divide_before or pll.source
        problem = f"the PLL's input would be {_hz(pll.input(numbers))}, outside {least:,}..{most:,} Hz"
    elif not pll.vco_hz[0] <= pll.vco(numbers) <= pll.vco_hz[1]:
        key = pll.multiply
        problem = f"the PLL's VCO would run at {_hz(pll.vco(numbers))}, outside {pll.vco_hz[0]:,}..{pll.vco_hz[1]:,} Hz"
    elif pll.output(numbers) != wanted:
        key = pll.divide_after[-1]
        problem = f"the PLL makes {_hz(pll.output(numbers))} of these numbers, and clock_hz is {wanted:,} Hz"
    else:
        return
    found = next(_find_numbers(pll, numbers, allowed), None)
    if found is None:
        hint = f"No numbers make {wanted:,} Hz of {pll.source_hz(numbers):,} Hz: change clock_hz."
    else:
        hint = "These make it: " + ", ".join(f"{key} = {value}" for key, value in found.items()) + "."
    problems.add(f"driver.{key}", problem, f"{hint} {pll.reference}")


def _find_numbers(
    pll: Pll, numbers: Mapping[str, int], allowed: Mapping[str, Sequence[int]]
) -> Iterator[dict[str, int]]:
    """Yield numbers that make clock_hz, the highest input of the PLL first."""
    multiples = allowed[pll.multiply]
    befores: Sequence[int] = allowed[pll.divide_before] if pll.divide_before else (1,)
    for before, *afters in itertools.product(befores, *(allowed[key] for key in pll.divide_after)):
        tried = dict(numbers)
        if pll.divide_before:
            tried[pll.divide_before] = before
        tried.update(zip(pll.divide_after, afters, strict=True))
        tried[pll.multiply] = 1
        factor = numbers["clock_hz"] / pll.output(tried)
        if factor.denominator != 1 or int(factor) not in multiples:
            continue
        tried[pll.multiply] = int(factor)
        in_range = pll.input_hz[0] <= pll.input(tried) <= pll.input_hz[1]
        if in_range and pll.vco_hz[0] <= pll.vco(tried) <= pll.vco_hz[1]:
            yield {key: tried[key] for key in pll.keys}


def _hz(value: Fraction) -> str:
    return f"{float(value):,.0f} Hz"
