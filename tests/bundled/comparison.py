"""Compares the bundled runtime on the host with TFLM's interpreter (PyPI's tflite-micro)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests import bundled_host

# The portable kernels and those for the DSP extension, both with sanitizers.
VARIANTS = ("asan", "dsp")
ARENA_BYTES = 4 << 20
FLOAT_TOLERANCE = 1e-5


def interpreter(model: bytes) -> Any:
    """Return TFLM's interpreter with a model."""
    from tflite_micro import runtime

    return runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES)


def reference_outputs(model: bytes, inputs: Sequence[np.ndarray], outputs: int = 1) -> list[np.ndarray]:
    """Return what TFLM computes."""
    reference = interpreter(model)
    for index, value in enumerate(inputs):
        reference.set_input(value, index)
    reference.invoke()
    return [reference.get_output(index) for index in range(outputs)]


def check_model(
    model: bytes,
    inputs: Sequence[np.ndarray],
    *,
    variants: Sequence[str] = VARIANTS,
    flags: int = 0,
    arena_bytes: int = ARENA_BYTES,
) -> None:
    """Check the outputs against TFLM's: integers bit for bit, floats within a relative error."""
    expected = reference_outputs(model, inputs)
    for variant in variants:
        result = bundled_host.run(model, inputs, arena_bytes, variant=variant, flags=flags)
        assert result.ok, (variant, result.stage, result.log)
        for wanted, got in zip(expected, result.outputs, strict=True):
            assert got.dtype == wanted.dtype
            assert got.shape == wanted.shape
            if wanted.dtype == np.float32:
                scale = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1e-30))
                np.testing.assert_allclose(
                    got, wanted, rtol=FLOAT_TOLERANCE, atol=FLOAT_TOLERANCE * scale, err_msg=variant
                )
            else:
                np.testing.assert_array_equal(got, wanted, err_msg=variant)


def random_int8(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    """Return int8 values, often the extreme ones."""
    values = rng.integers(-128, 128, shape, np.int8)
    extreme = rng.random(shape) < 0.1
    return np.where(extreme, rng.choice(np.array([-128, 127], np.int8), shape), values).astype(np.int8)


def random_input(rng: np.random.Generator, shape: Sequence[int], *, is_float: bool) -> np.ndarray:
    """Return float32 or int8 values."""
    return rng.normal(0, 3, shape).astype(np.float32) if is_float else random_int8(rng, shape)
