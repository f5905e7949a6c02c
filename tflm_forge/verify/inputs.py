"""The inputs a device is tested with that forge makes itself: random ones and the boundaries of the types."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflm_forge.link.random_data import RandomData, random_bytes
from tflm_forge.model import Model, Tensor
from tflm_forge.verify.arrays import Array, dtype_of
from tflm_forge.verify.parts import BOUNDARIES, NUMBERS

_PATTERN_BYTES = 4

# Kernels differ in what they do with values near a float's limits, and models never see such inputs.
_FLOAT_RANDOM_SPAN = 4.0
_FLOAT_EXTREME = 1000.0
_UPLOADED_FLOAT_BYTES = 2048
"""Random floats of a larger input are made by the device, in -1..1, as an upload would take seconds."""

_SEED_STEP = 0x9E3779B1  # odd, so that no two of the seeds made with it are the same


@dataclass(frozen=True, kw_only=True)
class Fill:
    """How a device makes one input itself: from 4 bytes that repeat (as a little-endian number), or from a seed."""

    pattern: int | None = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One set of inputs, one array for each input of the model, with the right shape and type.

    Attributes:
        name: what a person calls it ("zeros", "digits.npz[3]").
        inputs: the arrays.
        label: the class it belongs to, or None.
        source: what it belongs to ("digits.npz"); empty when it stands alone.
        part: the part of the suite it belongs to.
        fills: for each input how the device can make it; None for one that must be sent. Empty: all are sent.
        is_comparable: whether the outputs have a meaning; those of NaN have none.
    """

    name: str
    inputs: tuple[Array, ...]
    label: int | None = None
    source: str = ""
    part: str = NUMBERS
    fills: tuple[Fill | None, ...] = ()
    is_comparable: bool = True


def make_random_cases(model: Model, *, seed: int, count: int) -> tuple[Case, ...]:
    """Return seeded random cases over each type's full range; floats take -4..4, in large inputs -1..1."""
    cases = []
    for number in range(count):
        made = [_random(t, seed, number, index) for index, t in enumerate(model.inputs)]
        cases.append(
            Case(
                name=f"random {seed}.{number}",
                inputs=tuple(array for array, _ in made),
                source="random",
                fills=tuple(fill for _, fill in made),
            )
        )
    return tuple(cases)


def make_boundary_cases(model: Model) -> tuple[Case, ...]:
    """Return zeros, the lowest and the highest values, -127 for INT8, NaN and infinities for floats.

    Floats take 1000 as extremes. Nothing is expected of the outputs for NaN and infinities, but that they come.
    """
    types = {dtype_of(t) for t in model.inputs}
    cases = [
        _constant(model, "zeros", lambda _: 0),
        _constant(model, "minimum", lambda dtype: value_range(dtype)[0]),
        _constant(model, "maximum", lambda dtype: value_range(dtype)[1]),
    ]
    if np.dtype(np.int8) in types:
        cases.append(_constant(model, "-127", lambda dtype: -127 if dtype == np.int8 else value_range(dtype)[0]))
    if any(dtype.kind == "f" for dtype in types):
        for name, value in (("NaN", np.nan), ("+infinity", np.inf), ("-infinity", -np.inf)):
            cases.append(_constant(model, name, _for_floats(value), is_comparable=False))
    return tuple(cases)


def soak_inputs(model: Model, seed: int) -> tuple[Array, ...]:
    """Return the inputs that a device makes from a seed for the first loop of SOAK (see docs/link.md)."""
    data = RandomData(seed)
    return tuple(_as_array(tensor, data.tensor_bytes(tensor.type, tensor.size_bytes)) for tensor in model.inputs)


def value_range(dtype: "np.dtype[Any]") -> tuple[float, float]:
    """Return the lowest and the highest value that inputs of a type are given."""
    if dtype.kind == "f":
        return -_FLOAT_EXTREME, _FLOAT_EXTREME
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _for_floats(value: float) -> "Callable[[np.dtype[Any]], float]":
    return lambda dtype: value if dtype.kind == "f" else 0


def _constant(
    model: Model, name: str, value: "Callable[[np.dtype[Any]], float]", *, is_comparable: bool = True
) -> Case:
    arrays = tuple(np.full(t.shape, value(dtype_of(t)), dtype_of(t)) for t in model.inputs)
    return Case(
        name=name, inputs=arrays, part=BOUNDARIES, fills=tuple(map(_pattern, arrays)), is_comparable=is_comparable
    )


def _pattern(array: Array) -> Fill | None:
    """Return the four bytes whose repetition is the array; None for elements wider than that."""
    if array.dtype.itemsize > _PATTERN_BYTES or not array.size:
        return None
    one = array.ravel()[:1].tobytes()
    return Fill(pattern=int.from_bytes(one * (_PATTERN_BYTES // len(one)), "little"))


def _random(tensor: Tensor, seed: int, number: int, index: int) -> tuple[Array, Fill | None]:
    dtype = dtype_of(tensor)
    if dtype.kind == "f" and (tensor.size_bytes <= _UPLOADED_FLOAT_BYTES or dtype != np.float32):
        generator = np.random.default_rng([seed, number, index])
        span = generator.uniform(-_FLOAT_RANDOM_SPAN, _FLOAT_RANDOM_SPAN, tensor.shape)
        return span.astype(dtype), None
    device_seed = (seed + 1 + number * 64 + index) * _SEED_STEP % (1 << 32)
    data = random_bytes(device_seed, tensor.type, tensor.size_bytes)
    return _as_array(tensor, data), Fill(seed=device_seed)


def _as_array(tensor: Tensor, data: bytes) -> Array:
    return np.frombuffer(data, dtype_of(tensor)).reshape(tensor.shape)
