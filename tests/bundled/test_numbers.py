"""Quantization and padding of the bundled runtime against the same sums done in Python's doubles."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import bundled_host as host

SAME, VALID = 1, 2
scales = st.floats(2.0**-60, 2.0**40, width=32) | st.integers(1, 2**24 - 1).map(
    lambda n: float(np.float32(n * 2.0**-30))
)


def quantize_multiplier(real: float) -> tuple[int, int]:
    """TFLite's documented rule: frexp, then the mantissa to 31 bits, halves away from zero."""
    mantissa, shift = math.frexp(real)
    fixed = math.floor(mantissa * 2**31 + 0.5)
    if fixed == 2**31:
        fixed, shift = fixed // 2, shift + 1
    return (0, 0) if shift < -31 else (fixed, shift)


@settings(max_examples=500, deadline=None)
@given(a=scales, b=scales, c=scales)
@example(a=1.0, b=1.0, c=1.0)
@example(a=float(np.float32(1) - np.float32(2**-24)), b=1.0, c=1.0)
@example(a=0.1, b=0.2, c=0.02)
def test_ratio_of_scales_is_that_of_doubles(a: float, b: float, c: float) -> None:
    a, b, c = (float(np.float32(v)) for v in (a, b, c))
    expected = quantize_multiplier(a * b / c)
    if expected[1] <= 31:
        assert tuple(host.multiplier_ratios(np.array([[a, b, c]]))[0]) == expected


def test_many_ratios_of_scales() -> None:
    rng = np.random.default_rng(3)
    rows = np.exp(rng.normal(-4, 3, (20000, 3))).astype(np.float32)
    expected = [quantize_multiplier(float(a) * float(b) / float(c)) for a, b, c in rows]
    np.testing.assert_array_equal(host.multiplier_ratios(rows), expected)


@settings(max_examples=300, deadline=None)
@given(value=st.floats(1e-300, 1e9) | st.floats(0.25, 4))
@example(value=1 - 2.0**-53)
@example(value=1 - 2.0**-32)
@example(value=2.0**-32)
@example(value=2.0**-33)
def test_multiplier_of_a_double(value: float) -> None:
    assert tuple(host.multipliers(np.array([value]))[0]) == quantize_multiplier(value)


@pytest.mark.parametrize("value", [0.0, -0.0, -1.5, math.inf, -math.inf, math.nan, 5e-324])
def test_multiplier_of_what_is_no_scale_is_nothing(value: float) -> None:
    assert tuple(host.multipliers(np.array([value]))[0]) == (0, 0)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from([SAME, VALID]),
    image=st.integers(1, 300),
    window=st.integers(1, 40),
    stride=st.integers(1, 9),
    dilation=st.integers(1, 5),
)
def test_padding(kind: int, image: int, window: int, stride: int, dilation: int) -> None:
    size, before, odd = host.padding(kind, image, window, stride, dilation)
    reach = (window - 1) * dilation + 1
    starts = range(0, image, stride) if kind == SAME else range(0, image - reach + 1, stride)
    assert size == len(starts)
    if size:
        total = max((size - 1) * stride + reach - image, 0)
        assert (before, odd) == (total // 2, total % 2)


@pytest.mark.parametrize(
    "arguments",
    [(0, 8, 3, 1, 1), (3, 8, 3, 1, 1), (SAME, 8, 0, 1, 1), (SAME, 8, 3, 0, 1), (SAME, 8, 3, 1, 0),
     (VALID, -1, 3, 1, 1), (VALID, 2**31 - 1, 3, 1, 1), (SAME, 8, 2**31 - 1, 1, 2**31 - 1), (SAME, 8, 3, -5, 1)],
)  # fmt: skip
def test_padding_of_nonsense_is_nothing(arguments: tuple[int, int, int, int, int]) -> None:
    assert host.padding(*arguments) == (0, 0, 0)


ACTIVATIONS = {0: (-math.inf, math.inf), 1: (0, math.inf), 2: (-1, 1), 3: (0, 6)}
LIMITS = {3: (0, 255), 7: (-32768, 32767), 9: (-128, 127)}


def round_half_away(value: float) -> int:
    return math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1)


@settings(max_examples=150, deadline=None)
@given(
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    type_=st.sampled_from([7, 9]),
    input_scale=st.floats(2.0**-20, 8, width=32),
    output_scale=st.floats(2.0**-20, 8, width=32),
    output_zero_point=st.integers(-128, 127),
    filter_scales=st.lists(st.floats(2.0**-20, 8, width=32), min_size=1, max_size=6),
)
def test_convolution_parameters(
    activation: int,
    type_: int,
    input_scale: float,
    output_scale: float,
    output_zero_point: int,
    filter_scales: list[float],
) -> None:
    found = host.convolution_params(
        activation=activation,
        type_=type_,
        channels=len(filter_scales),
        input_scale=input_scale,
        output_scale=output_scale,
        output_zero_point=output_zero_point,
        filter_scales=filter_scales,
    )
    assert found.ok
    assert found.channels == [quantize_multiplier(input_scale * scale / output_scale) for scale in filter_scales]
    assert found.joined == float(np.float32(input_scale) * np.float32(filter_scales[0])) / output_scale
    low, high = LIMITS[type_]
    quantized = [
        limit
        if math.isinf(limit)
        else output_zero_point + round_half_away(float(np.float32(limit) / np.float32(output_scale)))
        for limit in ACTIVATIONS[activation]
    ]
    assert found.activation == (max(low, quantized[0]), min(high, quantized[1]))


def test_one_filter_scale_serves_all_channels() -> None:
    found = host.convolution_params(
        activation=0, type_=3, channels=3, input_scale=0.5, output_scale=0.3, output_zero_point=7, filter_scales=[0.02]
    )
    single = quantize_multiplier(float(np.float32(0.5) * np.float32(0.02)) / float(np.float32(0.3)))
    assert found.ok
    assert found.activation == (0, 255)
    assert found.single == (single[0], -single[1])
    assert len(set(found.channels)) == 1


@pytest.mark.parametrize(("type_", "scales"), [(9, [0.1, 0.2]), (3, [0.1, 0.2, 0.3]), (1, [0.1])])
def test_filter_scales_that_do_not_fit_are_an_error(type_: int, scales: list[float]) -> None:
    found = host.convolution_params(
        activation=0,
        type_=type_,
        channels=3,
        input_scale=0.5,
        output_scale=0.3,
        output_zero_point=0,
        filter_scales=scales,
    )
    assert not found.ok
