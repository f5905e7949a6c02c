"""The inputs a device is tested with: made from a seed, boundaries of the types, and the user's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tflm_forge.errors import UsageError
from tflm_forge.model import Model, Tensor
from tflm_forge.registry import unknown_name
from tflm_forge.verify.arrays import Array, dtype_of, read_npz

LABELS_KEY = "labels"

# Kernels differ in what they do with values near a float's limits, and models never see such inputs.
_FLOAT_RANDOM_SPAN = 4.0
_FLOAT_EXTREME = 1000.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One set of inputs, one array for each input of the model, with the right shape and type.

    Attributes:
        name: what a person calls it ("zeros", "digits.npz[3]").
        inputs: the arrays.
        label: the class it belongs to, or None.
    """

    name: str
    inputs: tuple[Array, ...]
    label: int | None = None


def make_cases(model: Model, *, seed: int, random_count: int) -> tuple[Case, ...]:
    """Return cases made without data: seeded random ones, zeros, the lowest and the highest values.

    Integers take their type's full range. Floats take -4..4 at random and 1000 as extremes.
    """
    made = []
    for number in range(random_count):
        generator = np.random.default_rng([seed, number])
        made.append(
            Case(name=f"random {seed}.{number}", inputs=tuple(_random(t, generator) for t in model.inputs))
        )
    made.append(Case(name="zeros", inputs=tuple(np.zeros(t.shape, dtype_of(t)) for t in model.inputs)))
    for name, end in (("minimum", 0), ("maximum", 1)):
        inputs = tuple(np.full(t.shape, _range(dtype_of(t))[end], dtype_of(t)) for t in model.inputs)
        made.append(Case(name=name, inputs=inputs))
    return tuple(made)


def load_cases(path: Path, model: Model) -> tuple[Case, ...]:
    """Read the user's inputs from an .npz file.

    It holds one array for each input of the model, under the input's name or as `input_0`, `input_1`, ...
    An array is one sample in the input's shape, or many along a leading axis (which may be the input's own
    first axis when that is 1). `labels`, if there, holds one class number a sample.

    Raises:
        UsageError: not readable, a key is missing or unknown, or an array does not fit; names file and key.
    """
    arrays = read_npz(path)
    keys = _keys_of_inputs(path, arrays, model)
    columns = [_samples(path, key, arrays[key], t) for key, t in zip(keys, model.inputs, strict=True)]
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        each = ", ".join(f"{key!r} has {count}" for key, count in zip(keys, counts, strict=True))
        raise UsageError(f"{path}: the inputs have different numbers of samples: {each}")
    if not counts or counts[0] == 0:
        raise UsageError(f"{path}: there is no sample in it")
    labels = _labels(path, arrays[LABELS_KEY], counts[0]) if LABELS_KEY in arrays else [None] * counts[0]
    return tuple(
        Case(name=f"{path.name}[{i}]", inputs=tuple(column[i] for column in columns), label=labels[i])
        for i in range(counts[0])
    )


def _keys_of_inputs(path: Path, arrays: Mapping[str, Array], model: Model) -> list[str]:
    keys = []
    for index, tensor in enumerate(model.inputs):
        choices = (tensor.name, f"input_{index}")
        key = next((k for k in choices if k in arrays), None)
        if key is None:
            found = ", ".join(repr(k) for k in arrays) or "none"
            raise UsageError(
                f"{path}: there is no array for the model's input {tensor.name!r}",
                hint=f"Name it {choices[1]!r} or {choices[0]!r}. Arrays in the file: {found}.",
            )
        keys.append(key)
    for key in arrays:
        if key not in keys and key != LABELS_KEY:
            error = unknown_name("array", key, [*keys, LABELS_KEY])
            raise UsageError(f"{path}: {error.message}", hint=error.hint)
    return keys


def _samples(path: Path, key: str, array: Array, tensor: Tensor) -> list[Array]:
    cast = _cast(path, key, array, tensor)
    shape = tuple(tensor.shape)
    if cast.shape == shape:
        return [cast]
    if cast.shape[1:] == shape:
        return list(cast)
    if shape[:1] == (1,) and cast.ndim and cast.shape[1:] == shape[1:]:
        return [sample.reshape(shape) for sample in cast]
    raise UsageError(
        f"{path}: array {key!r} has shape {list(array.shape)}, and the model's input is {list(shape)}",
        hint=f"Allowed: {list(shape)}, or samples along a leading axis.",
    )


def _cast(path: Path, key: str, array: Array, tensor: Tensor) -> Array:
    """Return the array in the tensor's type, when no value changes by that."""
    dtype = dtype_of(tensor)
    if array.dtype == dtype:
        return array.astype(dtype, copy=False)
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        low, high = _range(dtype)
        if array.size == 0 or (int(array.min()) >= low and int(array.max()) <= high):
            return array.astype(dtype)
        raise UsageError(
            f"{path}: array {key!r} has values from {array.min()} to {array.max()}; the model's input is "
            f"{tensor.type}, {low} to {high}"
        )
    if array.dtype.kind == "f" and dtype.kind == "f":
        return array.astype(dtype)
    quantization = tensor.quantization
    hint = "Convert it before saving."
    if array.dtype.kind == "f" and quantization is not None and len(quantization.scales) == 1:
        zero_point = quantization.zero_points[0] if quantization.zero_points else 0
        hint = (
            f"Quantize it first: round(x / {quantization.scales[0]:.9g}) + {zero_point}, limited to the type."
        )
    raise UsageError(
        f"{path}: array {key!r} has type {array.dtype}, and the model's input is {tensor.type}", hint=hint
    )


def _labels(path: Path, array: Array, count: int) -> list[int | None]:
    if array.dtype.kind not in "iu" or array.size != count or array.ndim not in (1, 2):
        raise UsageError(
            f"{path}: array {LABELS_KEY!r} has type {array.dtype} and shape {list(array.shape)}; "
            f"{count} class numbers are needed, one a sample"
        )
    return [int(value) for value in array.ravel()]


def _random(tensor: Tensor, generator: np.random.Generator) -> Array:
    dtype = dtype_of(tensor)
    if dtype.kind == "f":
        return generator.uniform(-_FLOAT_RANDOM_SPAN, _FLOAT_RANDOM_SPAN, tensor.shape).astype(dtype)
    raw = np.frombuffer(generator.bytes(tensor.element_count * dtype.itemsize), np.uint8)
    return (raw & 1 if dtype.kind == "b" else raw).view(dtype).reshape(tensor.shape)


def _range(dtype: "np.dtype[Any]") -> tuple[float, float]:
    if dtype.kind == "f":
        return -_FLOAT_EXTREME, _FLOAT_EXTREME
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)
