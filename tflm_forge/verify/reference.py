"""Where expected outputs come from; here interpreters on this computer: TFLM's, and TFLite's where it is installed."""

import importlib.metadata
import importlib.util
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from tflm_forge import proc
from tflm_forge.config import OpTable
from tflm_forge.errors import CheckError, ToolError
from tflm_forge.model import Model, op_set
from tflm_forge.model.resources import has_state
from tflm_forge.ops.own import find_own
from tflm_forge.verify.arrays import Array, read_npz, write_npz
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.reference_worker import OWN_NAME, TFLM, TFLM_LAYERS

Outputs = tuple[Array, ...]
"""The outputs of one inference, in the model's order."""

_WORKER = "tflm_forge.verify.reference_worker"
_START_TIMEOUT_S = 60.0
_CASE_TIMEOUT_S = 5.0
_LAST_LINES = 5

# The interpreter records its allocations in the arena as well, and 64-bit structures are larger.
_ARENA_FLOOR_BYTES = 1 << 20
_ARENA_OF_TENSORS = 2
_ARENA_CEILING_BYTES = 1 << 30


class Reference(Protocol):
    """Knows the right outputs for inputs."""

    @property
    def title(self) -> str:
        """What it is, for the report."""

    @property
    def tolerance_lsb(self) -> int:
        """By how much integers may differ: 0 where the kernels are the same."""

    def own_cases(self) -> tuple[Case, ...] | None:
        """Return the cases it knows; None when it can answer for any."""

    def outputs(self, cases: Sequence[Case], *, keeps_state: bool = False) -> tuple[Outputs | None, ...]:
        """Return the outputs of each case, None for one it does not know.

        Args:
            cases: the inputs, in order.
            keeps_state: whether the model's state goes on from case to case, or is reset before each.

        Raises:
            CheckError: it can not run the model.
        """


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An interpreter: what the worker calls it, the package with its version, and how near its integers are."""

    name: str
    title: str
    package: str
    tolerance_lsb: int


TFLM_ENGINE = Engine(name=TFLM, title="TFLM interpreter", package="tflite-micro", tolerance_lsb=0)

_TFLITE_ENGINES = tuple(
    # Kernels of TFLite round a few operators (softmax, means) in another way than TFLM's.
    Engine(name=module, title="TFLite interpreter", package=package, tolerance_lsb=1)
    for module, package in (
        ("ai_edge_litert.interpreter", "ai-edge-litert"),
        ("tflite_runtime.interpreter", "tflite-runtime"),
        ("tensorflow", "tensorflow"),
    )
)


@dataclass(frozen=True, kw_only=True)
class OwnReference:
    """What computes an operator of the user's own in place of the interpreter.

    Attributes:
        name: what a person calls the op.
        builtin_code: number in BuiltinOperator.
        custom_name: exact name of a custom op, else empty.
        path: the Python file; None when there is none, and what depends on the op is not known.
    """

    name: str
    builtin_code: int
    custom_name: str
    path: Path | None

    def as_row(self) -> dict[str, object]:
        """Return what the worker is told."""
        path = str(self.path.resolve()) if self.path is not None else ""
        return {"code": self.builtin_code, "name": self.custom_name, "shown": self.name, "path": path}


def find_references(model: Model, own_ops: Sequence[OpTable]) -> tuple[OwnReference, ...]:
    """Return what computes the model's operators of the user's own.

    A kernel that stands for the runtime's, and has no Python file, is compared with the interpreter's.
    """
    found = []
    for use in op_set(model):
        table = find_own(use, own_ops)
        if table is not None and (table.reference is not None or table.replaces is None):
            found.append(
                OwnReference(
                    name=use.name, builtin_code=use.builtin_code, custom_name=use.custom_name, path=table.reference
                )
            )
    return tuple(found)


class InterpreterReference:
    """An interpreter on this computer, in a process of its own; TFLM's by default."""

    def __init__(self, model: Model, engine: Engine = TFLM_ENGINE, references: Sequence[OwnReference] = ()) -> None:
        self._model = model
        self._engine = engine
        self._references = references

    @property
    def title(self) -> str:
        """What it is, with its version, and the Python files that compute the user's own operators."""
        own = "".join(f", {r.name} by {r.path.name}" for r in self._references if r.path is not None)
        return f"{self._engine.title} ({self._engine.package} {importlib.metadata.version(self._engine.package)}){own}"

    @property
    def tolerance_lsb(self) -> int:
        """By how much integers may differ."""
        return self._engine.tolerance_lsb

    def own_cases(self) -> None:
        """Any case can be run."""

    def outputs(self, cases: Sequence[Case], *, keeps_state: bool = False) -> tuple[Outputs, ...]:
        """Run all cases in one process, in order.

        Raises:
            CheckError: the interpreter refused the model, died or took too long.
        """
        arrays = self._ask(self._engine.name, cases, (), resets_state=has_state(self._model) and not keeps_state)
        outputs = range(len(self._model.outputs))
        return tuple(tuple(arrays[f"{c}/{i}"] for i in outputs) for c in range(len(cases)))

    def tensors(self, case: Case, wanted: Sequence[int]) -> Mapping[int, Array]:
        """Run one case and return the values of tensors of the main graph; those it does not keep are left out.

        Raises:
            CheckError: as for `outputs`.
        """
        arrays = self._ask(TFLM_LAYERS, [case], wanted, resets_state=False)
        return {index: arrays[f"0/{index}"] for index in wanted if f"0/{index}" in arrays}

    def _ask(
        self, engine: str, cases: Sequence[Case], tensors: Sequence[int], *, resets_state: bool
    ) -> Mapping[str, Array]:
        with tempfile.TemporaryDirectory(prefix="forge-reference-") as name:
            folder = Path(name)
            _write_job(folder, self._model, cases, tensors, resets_state=resets_state)
            if self._references:
                (folder / OWN_NAME).write_text(json.dumps([r.as_row() for r in self._references]), encoding="utf-8")
            self._run(engine, folder, _START_TIMEOUT_S + _CASE_TIMEOUT_S * len(cases))
            return read_npz(folder / "outputs.npz")

    def _run(self, engine: str, folder: Path, timeout_s: float) -> None:
        # The package need not be installed: the worker finds it where this process did.
        package_root = str(Path(__file__).resolve().parents[2])
        paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
        hint = "Compare with a recorded file instead: --golden FILE."
        if any(r.path is None for r in self._references):
            hint = f'Give its [[op]] a reference = "ops/...py" (docs/custom-ops.md). {hint}'
        try:
            done = proc.run(
                [sys.executable, "-m", _WORKER, engine, folder, str(_arena_bytes(self._model))],
                timeout_s=timeout_s,
                env={"PYTHONPATH": os.pathsep.join(paths)},
                check=False,
            )
        except ToolError as error:
            raise CheckError(
                f"{self._model.name}: the reference interpreter did not finish within {timeout_s:g} s",
                hint=hint,
            ) from error
        if done.returncode:
            why = f"died of {_signal_name(-done.returncode)}" if done.returncode < 0 else "can not run the model"
            raise CheckError(
                f"{self._model.name}: the reference interpreter {why}",
                reasons=tuple(line for line in done.output.splitlines() if line.strip())[-_LAST_LINES:],
                hint=hint,
            )


def has_interpreter() -> bool:
    """Return whether the `reference` extra is installed."""
    return importlib.util.find_spec("tflite_micro") is not None


def find_tflite() -> Engine | None:
    """Return the TFLite interpreter that is installed, the smallest package first."""
    for engine in _TFLITE_ENGINES:
        if importlib.util.find_spec(engine.name.split(".")[0]) is not None:
            return engine
    return None


def _write_job(
    folder: Path, model: Model, cases: Sequence[Case], tensors: Sequence[int], *, resets_state: bool
) -> None:
    (folder / "model.tflite").write_bytes(model.data)
    arrays: dict[str, Array] = {
        "case_count": np.array(len(cases)),
        "input_count": np.array(len(model.inputs)),
        "output_count": np.array(len(model.outputs)),
        "tensors": np.array(tensors, np.int64),
        "resets_state": np.array(resets_state),
    }
    for number, case in enumerate(cases):
        arrays.update({f"{number}/{i}": array for i, array in enumerate(case.inputs)})
    write_npz(folder / "inputs.npz", arrays)


def _arena_bytes(model: Model) -> int:
    tensors = sum(t.size_bytes for graph in model.subgraphs for t in graph.tensors if not t.is_constant)
    need = _ARENA_FLOOR_BYTES + _ARENA_OF_TENSORS * tensors + len(model.data)
    return min(need, _ARENA_CEILING_BYTES)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
