"""Golden files: inputs and expected outputs recorded where a reference was at hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tflm_forge.config import OpTable
from tflm_forge.errors import CheckError, UsageError
from tflm_forge.model import Model, Tensor
from tflm_forge.registry import unknown_name
from tflm_forge.verify.arrays import Array, dtype_of, read_npz, write_npz
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.reference import (
    InterpreterReference,
    Outputs,
    Reference,
    find_references,
    find_tflite,
    has_interpreter,
)

GOLDEN, TFLM, TFLITE = "golden", "tflm", "tflite"
REFERENCES: tuple[str, ...] = (TFLM, GOLDEN, TFLITE)
"""What can be named as reference."""

_FORMAT = 1
_SUFFIX = ".golden.npz"


class GoldenReference:
    """Inputs and outputs that were recorded before.

    Args:
        path: the golden file.
        model: the model it must have been recorded for.

    Raises:
        UsageError: not readable, not a golden file, or another model's; names the file.
    """

    def __init__(self, path: Path, model: Model) -> None:
        self._path = path
        arrays = read_npz(path)
        try:
            if int(arrays["forge_golden"]) != _FORMAT:
                raise UsageError(
                    f"{path}: is a golden file of format {int(arrays['forge_golden'])}",
                    hint=f"This forge reads format {_FORMAT}: record it again.",
                )
            sha256 = str(arrays["model_sha256"])
            if sha256 != model.sha256:
                raise UsageError(
                    f"{path}: was recorded for another model (SHA-256 {sha256[:12]}..., not {model.sha256[:12]}...)",
                    hint="Record it again for this model.",
                )
            self._source = str(arrays["source"])
            names = [str(name) for name in arrays["names"]]
            inputs = [_row(path, arrays, "inputs", n, model.inputs) for n in range(len(names))]
            self._outputs = [_row(path, arrays, "outputs", n, model.outputs) for n in range(len(names))]
        except (KeyError, ValueError, TypeError) as error:
            raise UsageError(f"{path}: is not a whole golden file ({error})", hint="Record it again.") from error
        self._cases = tuple(Case(name=n, inputs=row, source=path.name) for n, row in zip(names, inputs, strict=True))

    @property
    def title(self) -> str:
        """The file, and where its outputs came from."""
        return f"{self._path.name}, recorded with {self._source}"

    @property
    def tolerance_lsb(self) -> int:
        """What was recorded must come out again."""
        return 0

    def own_cases(self) -> tuple[Case, ...]:
        """The recorded inputs."""
        return self._cases

    def outputs(self, cases: Sequence[Case], *, keeps_state: bool = False) -> tuple[Outputs | None, ...]:
        """Look each case's inputs up; they were recorded with the state reset before each."""
        del keeps_state
        known = {_key(case): row for case, row in zip(self._cases, self._outputs, strict=True)}
        return tuple(known.get(_key(case)) for case in cases)


def golden_path(model_path: Path) -> Path:
    """Return where the golden file of a model stands: beside it."""
    return model_path.with_name(model_path.stem + _SUFFIX)


def choose_reference(
    model: Model, model_path: Path, golden: Path | None, kind: str = "", own_ops: Sequence[OpTable] = ()
) -> Reference | None:
    """Return the reference that the user named.

    Without a name: the golden file that was given, else the TFLM interpreter, else the golden file beside the
    model. None: there is none of the three.

    Args:
        model: the model.
        model_path: where it was read from.
        golden: the golden file that was given.
        kind: one of `REFERENCES`, or empty.
        own_ops: the user's own kernels, whose Python files compute what the interpreter does not know.

    Raises:
        UsageError: the golden file can not be used, or what was named is unknown or not there.
    """
    beside = golden_path(model_path)
    if kind == TFLITE:
        engine = find_tflite()
        if engine is None:
            raise UsageError("no TFLite interpreter is installed", hint="pip install ai-edge-litert")
        return InterpreterReference(model, engine)
    if kind == TFLM and not has_interpreter():
        raise UsageError("the TFLM interpreter is not installed", hint="pip install 'tflm-forge[reference]'")
    if kind == GOLDEN and golden is None and not beside.is_file():
        raise UsageError(
            f"there is no golden file {beside}", hint="Name it with --golden, or make it: --record-golden."
        )
    if kind and kind not in REFERENCES:
        raise unknown_name("reference", kind, REFERENCES)
    if golden is not None and kind != TFLM:
        return GoldenReference(golden, model)
    if kind != GOLDEN and has_interpreter():
        return InterpreterReference(model, references=find_references(model, own_ops))
    return GoldenReference(beside, model) if beside.is_file() else None


def record_golden(path: Path, model: Model, cases: Sequence[Case], reference: Reference) -> None:
    """Write cases and the reference's outputs for them into a golden file; whole or not at all.

    Raises:
        CheckError: the reference can not run the model, or does not know a case.
        UsageError: the file can not be written.
    """
    arrays: dict[str, Array] = {
        "forge_golden": np.array(_FORMAT),
        "model_sha256": np.array(model.sha256),
        "source": np.array(reference.title),
        "names": np.array([case.name for case in cases]),
    }
    for number, (case, outputs) in enumerate(zip(cases, reference.outputs(cases), strict=True)):
        if outputs is None:
            raise CheckError(f"{reference.title}: has no outputs for case {case.name!r}")
        arrays.update({f"inputs/{number}/{i}": array for i, array in enumerate(case.inputs)})
        arrays.update({f"outputs/{number}/{i}": array for i, array in enumerate(outputs)})
    write_npz(path, arrays)


def _row(path: Path, arrays: Mapping[str, Array], kind: str, number: int, tensors: Sequence[Tensor]) -> Outputs:
    row = []
    for i, tensor in enumerate(tensors):
        key = f"{kind}/{number}/{i}"
        array = arrays[key]
        if array.shape != tensor.shape or array.dtype != dtype_of(tensor):
            raise UsageError(
                f"{path}: array {key!r} is {array.dtype}{list(array.shape)}, and the model has "
                f"{tensor.type}{list(tensor.shape)}",
                hint="Record it again.",
            )
        row.append(array)
    return tuple(row)


def _key(case: Case) -> tuple[bytes, ...]:
    return tuple(array.tobytes() for array in case.inputs)
