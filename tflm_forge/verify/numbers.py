"""Runs inputs on a device and compares its outputs with expected ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflm_forge.errors import DeviceError
from tflm_forge.link.messages import Space
from tflm_forge.link.session import Session
from tflm_forge.model import Model, Tensor
from tflm_forge.verify.arrays import Array, dtype_of
from tflm_forge.verify.inputs import Case, Fill
from tflm_forge.verify.records import Comparison, Metrics

TOP_K = 5
"""How many of the largest numbers of an output the top-k agreement looks at."""

# Integer outputs of the same kernels are the same on every processor. Floats are not: processors that fuse
# multiplication and addition, and compilers that order sums differently, change the last bits of each of the
# thousands of terms of a layer.
FLOAT_RTOL = 1e-4
"""Allowed difference of a float output, relative to the expected number."""
FLOAT_ATOL_OF_LARGEST = 1e-5
"""Allowed difference besides, relative to the output's largest number: small sums of large terms cancel."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What a device made of one case: its outputs, and the ticks of the inference."""

    case: Case
    outputs: tuple[Array, ...]
    ticks: int


def run_case(session: Session, model: Model, case: Case) -> Run:
    """Write a case's inputs, run one inference and read the outputs.

    Raises:
        DeviceError: the device refused, or did not answer.
    """
    set_inputs(session, case)
    ticks = session.invoke().total_ticks
    outputs = tuple(_read_output(session, i, tensor) for i, tensor in enumerate(model.outputs))
    return Run(case=case, outputs=outputs, ticks=ticks)


def set_inputs(session: Session, case: Case) -> None:
    """Put a case's inputs into the device, which makes the ones it can itself.

    Every input is set before each inference: the memory planner reuses the memory of inputs.
    """
    fills: Sequence[Fill | None] = case.fills or [None] * len(case.inputs)
    for index, (array, fill) in enumerate(zip(case.inputs, fills, strict=True)):
        if fill is None:
            session.write_tensor(Space.INPUT, index, np.ascontiguousarray(array).tobytes())
        elif fill.pattern is not None:
            session.fill_pattern(index, fill.pattern)
        else:
            session.fill_random(index, fill.seed)


def _read_output(session: Session, index: int, tensor: Tensor) -> Array:
    dtype = dtype_of(tensor)
    data = session.read_tensor(Space.OUTPUT, index, tensor.element_count * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(tensor.shape)


def compare_output(
    case: str, tensor: Tensor, expected: Array, actual: Array, *, source: str = "", tolerance_lsb: int = 0
) -> Comparison:
    """Compare one output: within `tolerance_lsb` for integers, within the float tolerance for floats.

    Raises:
        DeviceError: the two have different shapes.
    """
    if expected.shape != actual.shape:
        raise DeviceError(
            f"output {tensor.name!r} has shape {list(actual.shape)}, and {list(expected.shape)} is expected",
            hint="Another model is in the firmware: build and flash it again.",
        )
    metrics = measure_error(expected, actual, tolerance_lsb=tolerance_lsb)
    return Comparison(
        case=case,
        source=source,
        output=tensor.name,
        type=tensor.type,
        unit="" if expected.dtype.kind == "f" else "LSB",
        metrics=metrics,
        passed=metrics.mismatches == 0,
    )


def measure_error(expected: Array, actual: Array, *, tolerance_lsb: int = 0) -> Metrics:
    """Return how far an output is from the expected one; equal infinities and NaNs are no error."""
    is_float = expected.dtype.kind == "f"
    want, have = (a.astype(np.float64).ravel() for a in (expected, actual))
    if not want.size:
        return Metrics(elements=0, mismatches=0, max_error=0.0, mae=0.0, rmse=0.0, cosine=1.0, argmax_agrees=True)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(have - want)
        same = (expected == actual).ravel() | (np.isnan(want) & np.isnan(have))
        # A double holds integers up to 53 bits: two longer ones may differ and yet seem equal.
        error[~same & (error == 0)] = 1
        error[np.isnan(error)] = math.inf
        error[same] = 0
        rmse = float(np.sqrt(np.mean(np.square(error))))
        matches = _is_close(want, have) if is_float else error <= tolerance_lsb
    top_k = min(TOP_K, want.size)
    return Metrics(
        elements=want.size,
        mismatches=int(np.count_nonzero(~matches)),
        max_error=float(error.max()),
        mae=float(error.mean()),
        rmse=rmse,
        cosine=_cosine(want, have),
        argmax_agrees=bool(np.argmax(want) == np.argmax(have)),
        top_k=top_k,
        top_k_agrees=_top(want, top_k) == _top(have, top_k),
        relative_error=relative_error(want, have),
    )


def relative_error(expected: Array, actual: Array) -> float:
    """Return the length of the error as a vector, relative to that of the expected numbers.

    Equal numbers, infinities and NaNs among them, are no error; a zero expected vector gives infinity otherwise.
    """
    want, have = (a.astype(np.float64).ravel() for a in (expected, actual))
    with np.errstate(invalid="ignore", over="ignore"):
        error = have - want
    error[(want == have) | (np.isnan(want) & np.isnan(have))] = 0
    if not error.any():
        return 0.0
    if not (np.isfinite(error).all() and np.isfinite(want).all()):
        return math.inf
    scale = float(np.abs(want).max(initial=0.0))
    if not scale:
        return math.inf
    return float(np.linalg.norm(error / scale) / np.linalg.norm(want / scale))


def count_correct(cases: list[Case], outputs: list[tuple[Array, ...]]) -> int:
    """Return how many labelled cases have the largest number of their first output at the label's place."""
    return sum(int(np.argmax(row[0])) == case.label for case, row in zip(cases, outputs, strict=True) if row)


def _top(values: Array, count: int) -> set[int]:
    """Return the places of the largest numbers; of equal ones, the first."""
    return set(np.argsort(-values, kind="stable")[:count].tolist())


def _is_close(want: Array, have: Array) -> Array:
    finite = np.abs(want[np.isfinite(want)])
    atol = FLOAT_ATOL_OF_LARGEST * float(finite.max(initial=0.0))
    return np.isclose(have, want, rtol=FLOAT_RTOL, atol=atol, equal_nan=True)


def _cosine(want: Array, have: Array) -> float:
    finite = np.isfinite(want) & np.isfinite(have)
    a, b = want[finite], have[finite]
    # Scaled first, so that no square overflows.
    a, b = (v / max(float(np.abs(v).max(initial=0.0)), np.finfo(np.float64).tiny) for v in (a, b))
    lengths = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    if not lengths:
        return 1.0 if not a.any() and not b.any() else 0.0
    return max(-1.0, min(1.0, float(np.dot(a, b)) / lengths))
