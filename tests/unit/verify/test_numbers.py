import math
from typing import Any

import numpy as np
import pytest

from tests.unit.link.simulated_device import SimTensor, SimulatedDevice, SimulatedPort
from tests.unit.verify.conftest import make_relu_model
from tflm_forge.errors import DeviceError
from tflm_forge.link.session import Session
from tflm_forge.model import Model
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.numbers import (
    FLOAT_ATOL_OF_LARGEST,
    FLOAT_RTOL,
    compare_output,
    count_correct,
    measure_error,
    run_case,
)


def int8(*values: int) -> Any:
    return np.array([values], np.int8)


def test_metrics_of_integers() -> None:
    m = measure_error(int8(10, -20, 30, 127), int8(10, -22, 31, -128))
    assert (m.elements, m.mismatches, m.mismatch_percent, m.max_error) == (4, 3, 75.0, 255.0)
    # Differences 0, 2, 1, 255: their mean, and the root of the mean of 0, 4, 1, 65025.
    assert m.mae == pytest.approx(64.5)
    assert m.rmse == pytest.approx(127.50490186)
    # (100 + 440 + 930 - 16256) / (sqrt(100 + 400 + 900 + 16129) * sqrt(100 + 484 + 961 + 16384))
    assert m.cosine == pytest.approx(-14786 / math.sqrt(17529 * 17929))
    assert not m.argmax_agrees


def test_identical_outputs() -> None:
    m = measure_error(int8(1, 2, 3), int8(1, 2, 3))
    assert (m.mismatches, m.max_error, m.mae, m.rmse, m.argmax_agrees) == (0, 0.0, 0.0, 0.0, True)
    assert m.cosine == pytest.approx(1.0)
    assert m.cosine <= 1.0


@pytest.mark.parametrize(
    ("expected", "actual", "cosine"),
    [
        (int8(0, 0), int8(0, 0), 1.0),
        (int8(0, 0), int8(1, 0), 0.0),
        (int8(1, 0), int8(0, 1), 0.0),
        (int8(2, 0), int8(-3, 0), -1.0),
        (np.array([3e38, 0], np.float32), np.array([3e38, 3e38], np.float32), 0.70710678),
    ],
)
def test_cosine(expected: Any, actual: Any, cosine: float) -> None:
    assert measure_error(expected, actual).cosine == pytest.approx(cosine)


def test_long_integers_are_compared_exactly() -> None:
    m = measure_error(np.array([2**60], np.int64), np.array([2**60 + 1], np.int64))
    assert (m.mismatches, m.max_error) == (1, 1.0)


def test_an_output_without_elements() -> None:
    m = measure_error(np.zeros((0,), np.int8), np.zeros((0,), np.int8))
    assert (m.elements, m.mismatches, m.mismatch_percent) == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("expected", "actual", "mismatches"),
    [
        ([1.0, 100.0], [1.0, 100.0 * (1 + 0.9 * FLOAT_RTOL)], 0),
        ([1.0, 100.0], [1.0, 100.0 * (1 + 30 * FLOAT_RTOL)], 1),
        ([0.0, 100.0], [90.0 * FLOAT_ATOL_OF_LARGEST, 100.0], 0),
        ([0.0, 100.0], [300.0 * FLOAT_ATOL_OF_LARGEST, 100.0], 1),
        ([math.nan, math.inf, -math.inf], [math.nan, math.inf, -math.inf], 0),
        ([1.0, 1.0], [math.nan, 1.0], 1),
        ([1.0, 1.0], [math.inf, 1.0], 1),
        ([math.inf], [-math.inf], 1),
    ],
)
def test_float_tolerance(expected: list[float], actual: list[float], mismatches: int) -> None:
    m = measure_error(np.array(expected, np.float32), np.array(actual, np.float32))
    assert m.mismatches == mismatches
    assert math.isinf(m.max_error) == (mismatches > 0 and not np.isfinite(actual).all())


def test_comparison_of_integers_allows_no_error() -> None:
    [y] = make_relu_model().outputs
    comparison = compare_output("zeros", y, int8(0, 0, 0, 0), int8(0, 0, 1, 0))
    assert (comparison.case, comparison.output, comparison.type, comparison.unit) == (
        "zeros",
        "y",
        "INT8",
        "LSB",
    )
    assert not comparison.passed
    assert compare_output("zeros", y, int8(1, 2), int8(1, 2)).passed
    with pytest.raises(DeviceError, match="has shape"):
        compare_output("zeros", y, int8(0, 0, 0), int8(0, 0))


def test_a_case_on_a_device(relu: Model) -> None:
    device = SimulatedDevice(model=lambda inputs: [bytes(max(0, (b ^ 0x80) - 0x80) & 0xFF for b in inputs[0])])
    with Session(SimulatedPort(device)) as session:
        session.connect()
        run = run_case(session, relu, Case(name="c", inputs=(int8(-5, 5, 127, -128),)))
    assert run.outputs[0].tolist() == [[0, 5, 127, 0]]
    assert run.outputs[0].dtype == np.int8
    assert run.ticks == 1000


def test_every_input_is_written_before_each_run(two_inputs: Model) -> None:
    seen = []
    device = SimulatedDevice(
        inputs=[SimTensor(7, (2, 3), 1, 0, bytearray(12)), SimTensor(6, (1,), 0, 0, bytearray(1))],
        outputs=[SimTensor(7, (2, 3), 1, 0, bytearray(12))],
        model=lambda inputs: seen.append(inputs) or [inputs[0]],
    )
    a, b = np.arange(6, dtype=np.int16).reshape(2, 3), np.array([True])
    with Session(SimulatedPort(device)) as session:
        for _ in range(2):
            run = run_case(session, two_inputs, Case(name="c", inputs=(a, b)))
            device.inputs[0].data[:] = b"\xee" * 12
    assert seen == [[a.tobytes(), b"\x01"]] * 2
    assert np.array_equal(run.outputs[0], a)


def test_count_correct() -> None:
    cases = [Case(name=str(i), inputs=(), label=i) for i in (0, 1, 2)]
    rows = [(int8(9, 1, 1),), (int8(1, 9, 1),), (int8(9, 1, 1),)]
    assert count_correct(cases, rows) == 2
