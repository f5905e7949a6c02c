"""Asks a user's Python files for the cases of an operator's test and what should come out; a program of its own.

Called as `python -m tflm_forge.verify.op_worker FOLDER TEST REFERENCE`. Writes `cases.json`, a row a case, and
`cases.npz` with arrays `CASE/in/INPUT`, `CASE/out/OUTPUT` and `CASE/options` (bytes) into the folder.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from tflm_forge.ops.cases import OpCase, OpTensor
from tflm_forge.verify.arrays import DTYPES, Array, write_npz
from tflm_forge.verify.own_python import call_reference, load_function


def write_cases(folder: Path, test: Path, reference: Path) -> None:
    """Write all cases with what the reference gives for them."""
    cases = load_function(test, "cases")()
    function = load_function(reference, "reference")
    if not isinstance(cases, Sequence) or not cases or not all(isinstance(case, OpCase) for case in cases):
        sys.exit(f"{test}: cases() must return a list of OpCase, with one at least")
    arrays: dict[str, Array] = {}
    for number, case in enumerate(cases):
        _check(test, case)
        arrays[f"{number}/options"] = np.frombuffer(_pack_options(test, case), np.uint8)
        arrays.update({f"{number}/in/{i}": _values(t) for i, t in enumerate(case.inputs)})
        if not case.refused:
            expected = call_reference(reference, function, case.inputs, case.outputs, case.options)
            arrays.update({f"{number}/out/{i}": array for i, array in enumerate(expected)})
    rows = [_as_row(case) for case in cases]
    (folder / "cases.json").write_text(json.dumps(rows), encoding="utf-8")
    write_npz(folder / "cases.npz", arrays)


def _values(tensor: OpTensor) -> Array:
    return np.ascontiguousarray(np.asarray(tensor.values))


def _check(test: Path, case: OpCase) -> None:
    for tensor in (*case.inputs, *case.outputs):
        if tensor.type not in DTYPES:
            sys.exit(f"{test}: case {case.name!r}: {tensor.type!r} is not one of {', '.join(DTYPES)}")
    for number, tensor in enumerate(case.inputs):
        if tensor.values is None or tuple(tensor.values.shape) != tuple(tensor.shape):
            sys.exit(f"{test}: case {case.name!r}: input {number} needs values of its shape; use OpTensor.of(values)")
    if not case.outputs:
        sys.exit(f"{test}: case {case.name!r} has no outputs")


def _pack_options(test: Path, case: OpCase) -> bytes:
    if not case.options or case.options_type:
        return b""
    try:
        return bytes(flexbuffers.Dumps(dict(case.options)))
    except (TypeError, ValueError) as error:
        sys.exit(f"{test}: case {case.name!r}: options {dict(case.options)!r} can not be written: {error}")


def _as_row(case: OpCase) -> Mapping[str, Any]:
    return {
        "name": case.name,
        "refused": case.refused,
        "tolerance_lsb": case.tolerance_lsb,
        "version": case.version,
        "options_type": case.options_type,
        "options": dict(case.options) if case.options_type else {},
        "inputs": [_tensor_row(tensor) for tensor in case.inputs],
        "outputs": [_tensor_row(tensor) for tensor in case.outputs],
    }


def _tensor_row(tensor: OpTensor) -> Mapping[str, Any]:
    scales = np.atleast_1d([] if tensor.scale is None else np.asarray(tensor.scale)).tolist()
    zeros = np.atleast_1d(np.asarray(tensor.zero_point)).tolist()
    return {
        "type": tensor.type,
        "shape": [int(n) for n in tensor.shape],
        "scales": [float(scale) for scale in scales],
        "zero_points": [int(zero) for zero in zeros] * (len(scales) if len(zeros) == 1 else 1) if scales else [],
        "axis": tensor.axis,
        "is_constant": tensor.is_constant,
    }


if __name__ == "__main__":
    write_cases(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
