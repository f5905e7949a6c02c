"""The cases of the test of an operator of one's own: each a model of one operator, inputs, and what should come out."""

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflm_forge import proc
from tflm_forge.config import CONFIG_NAME, OpTable
from tflm_forge.errors import ToolError, UsageError
from tflm_forge.files import write_if_changed
from tflm_forge.model import Model, read_model
from tflm_forge.model.writing import OperatorSpec, TensorSpec, write_model
from tflm_forge.ops.own import own_name
from tflm_forge.verify.arrays import Array, read_npz

_WORKER = "tflm_forge.verify.op_worker"
_TIMEOUT_S = 120.0
_LAST_LINES = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelCase:
    """One case: a model of one operator.

    Attributes:
        name: what a person calls it.
        model: the model.
        inputs: an array for each of its inputs.
        expected: an array for each of its outputs; empty when the kernel is to refuse the model.
        tolerance_lsb: by how much integers may differ.
        refused: whether the kernel is to refuse the model.
    """

    name: str
    model: Model
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    tolerance_lsb: int
    refused: bool


def read_cases(table: OpTable) -> tuple[ModelCase, ...]:
    """Ask the Python files of an [[op]] for its cases and what should come out.

    Raises:
        UsageError: the table names no such files, or they fail; shows what Python said.
    """
    name = own_name(table)
    missing = [key for key in ("test", "reference") if getattr(table, key) is None]
    if table.test is None or table.reference is None:
        raise UsageError(
            f"{CONFIG_NAME}: [[op]] {name} has no {' and no '.join(missing)}",
            hint="They are Python files with functions cases() and reference(): docs/custom-ops.md.",
        )
    with tempfile.TemporaryDirectory(prefix="forge-op-") as place:
        folder = Path(place)
        _run_worker(folder, table.test, table.reference)
        rows = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
        arrays = read_npz(folder / "cases.npz")
    return tuple(_make_case(name, number, row, arrays) for number, row in enumerate(rows))


def keep_models(cases: Sequence[ModelCase], folder: Path) -> None:
    """Write the cases' models into a folder.

    Raises:
        UsageError: they can not be written.
    """
    try:
        for case in cases:
            write_if_changed(folder / case.model.name, case.model.data)
    except OSError as error:
        raise UsageError(f"{folder}: can not write: {error.strerror or error}") from error


def _run_worker(folder: Path, test: Path, reference: Path) -> None:
    package_root = str(Path(__file__).resolve().parents[2])
    paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
    command: list[str | Path] = [sys.executable, "-B", "-m", _WORKER, folder, test.resolve(), reference.resolve()]
    try:
        done = proc.run(command, timeout_s=_TIMEOUT_S, env={"PYTHONPATH": os.pathsep.join(paths)}, check=False)
    except ToolError as error:
        raise UsageError(f"{test}: did not finish within {_TIMEOUT_S:g} s") from error
    if done.returncode:
        lines = [line for line in done.output.splitlines() if line.strip()]
        raise UsageError(f"{test} or {reference.name} failed", reasons=lines[-_LAST_LINES:])


def _make_case(op: str, number: int, row: Mapping[str, Any], arrays: Mapping[str, Array]) -> ModelCase:
    inputs = [arrays[f"{number}/in/{i}"] for i in range(len(row["inputs"]))]
    constants = [entry["is_constant"] for entry in row["inputs"]]
    tensors = [
        _tensor(f"input_{i}", entry, inputs[i].tobytes() if entry["is_constant"] else b"")
        for i, entry in enumerate(row["inputs"])
    ]
    tensors += [_tensor(f"output_{i}", entry) for i, entry in enumerate(row["outputs"])]
    first_output = len(inputs)
    outputs = tuple(range(first_output, len(tensors)))
    operator = OperatorSpec(
        op=op,
        inputs=tuple(range(first_output)),
        outputs=outputs,
        version=row["version"],
        options_type=row["options_type"],
        options=row["options"],
        custom_options=arrays[f"{number}/options"].tobytes(),
    )
    data = write_model(
        tensors=tensors,
        operators=[operator],
        inputs=[i for i, is_constant in enumerate(constants) if not is_constant],
        outputs=outputs,
        description=f"case {row['name']!r} of the test of {op}",
    )
    expected = () if row["refused"] else tuple(arrays[f"{number}/out/{i}"] for i in range(len(outputs)))
    return ModelCase(
        name=row["name"],
        model=read_model(data, name=f"case_{number}.tflite"),
        inputs=tuple(a for a, is_constant in zip(inputs, constants, strict=True) if not is_constant),
        expected=expected,
        tolerance_lsb=row["tolerance_lsb"],
        refused=row["refused"],
    )


def _tensor(name: str, row: Mapping[str, Any], data: bytes = b"") -> TensorSpec:
    return TensorSpec(
        name=name,
        type=row["type"],
        shape=row["shape"],
        scales=row["scales"],
        zero_points=row["zero_points"],
        axis=row["axis"],
        data=data,
    )
