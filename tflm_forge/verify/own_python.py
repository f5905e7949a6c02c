"""Runs the Python files of a user's own operators; only in a process of its own, as they are the user's programs."""

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from tflm_forge.ops.cases import OpTensor
from tflm_forge.verify.arrays import DTYPES, Array

Reference = Callable[[Sequence[OpTensor], Sequence[OpTensor], Mapping[str, Any]], Sequence[Array]]
"""Takes inputs, outputs without values, and options; returns an array for each output."""


def load_function(path: Path, name: str) -> Any:
    """Return a function of a Python file; modules beside it can be imported by it.

    Exits with a message when the file has no such function.
    """
    spec = importlib.util.spec_from_file_location(f"own_{path.stem}", path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True  # The folder is the user's: nothing is left in it.
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    function = getattr(module, name, None)
    if not callable(function):
        sys.exit(f"{path}: has no function {name}()")
    return function


def read_options(data: bytes) -> dict[str, Any]:
    """Return a custom op's options by name; empty when there are none or they are no flexbuffer map."""
    if not data:
        return {}
    try:
        options = flexbuffers.Loads(data)
    except (ValueError, TypeError, IndexError, NotImplementedError):
        return {}
    return options if isinstance(options, dict) else {}


def call_reference(
    path: Path,
    function: Reference,
    inputs: Sequence[OpTensor],
    outputs: Sequence[OpTensor],
    options: Mapping[str, Any],
) -> list[Array]:
    """Let a Python reference compute an op.

    Exits with a message when it returns another number of arrays, or one of another shape or type.
    """
    found = function(inputs, outputs, options)
    if isinstance(found, np.ndarray) or not isinstance(found, Sequence) or len(found) != len(outputs):
        sys.exit(f"{path}: reference() must return a list of arrays, one for each of the {len(outputs)} outputs")
    arrays = []
    for number, (array, output) in enumerate(zip(found, outputs, strict=True)):
        dtype, shape = DTYPES[output.type], tuple(output.shape)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
            have = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
            sys.exit(
                f"{path}: output {number} of reference() is {have}, and the tensor is {dtype}{list(shape)}: "
                "outputs[...].quantize(real) gives it the right type"
            )
        arrays.append(array)
    return arrays
