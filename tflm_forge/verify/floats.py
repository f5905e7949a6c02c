"""Compares a device with the float model it was made from, in real numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tflm_forge.errors import UsageError
from tflm_forge.model import Model, Tensor, load_model
from tflm_forge.verify.arrays import Array
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.numbers import measure_error
from tflm_forge.verify.records import Check, FloatAgreement
from tflm_forge.verify.reference import InterpreterReference, Outputs, find_tflite, has_interpreter

DEFAULT_LIMIT = 0.01
"""The largest relative error of a device's outputs against the float model's that passes."""


def float_outputs(path: Path, model: Model, cases: Sequence[Case]) -> tuple[Outputs, ...]:
    """Return what the float model gives for the cases' inputs as real numbers.

    Raises:
        UsageError: the float model's inputs or outputs are not those of the model, or no interpreter is installed.
        ModelError: the float model can not be read.
        CheckError: the interpreter can not run it.
    """
    float_model = load_model(path)
    for kind, ours, theirs in (
        ("inputs", model.inputs, float_model.inputs),
        ("outputs", model.outputs, float_model.outputs),
    ):
        wanted, found = [t.shape for t in ours], [t.shape for t in theirs]
        if [int(np.prod(s)) for s in wanted] != [int(np.prod(s)) for s in found]:
            raise UsageError(f"{path}: its {kind} are {_words(found)}, and those of {model.name} are {_words(wanted)}")
        other = next((t.type for t in theirs if t.type != "FLOAT32"), None)
        if other is not None:
            raise UsageError(f"{path}: its {kind} are {other}, not FLOAT32", hint="Give the model before quantization.")
    engine = find_tflite()
    if has_interpreter():
        reference = InterpreterReference(float_model)
    elif engine is not None:
        reference = InterpreterReference(float_model, engine)
    else:
        raise UsageError(
            "no interpreter is installed to run the float model", hint="pip install 'tflm-forge[reference]'"
        )
    real = [
        Case(
            name=case.name,
            inputs=tuple(
                to_real(t, array).astype(np.float32).reshape(f.shape)
                for t, f, array in zip(model.inputs, float_model.inputs, case.inputs, strict=True)
            ),
        )
        for case in cases
    ]
    return reference.outputs(real)


def compare_with_floats(
    model: Model, path: Path, expected: Sequence[Outputs], actual: Sequence[Outputs], limit: float
) -> tuple[FloatAgreement, ...]:
    """Return for each output how far the device's numbers are from the float model's, over all cases together."""
    agreements = []
    for index, tensor in enumerate(model.outputs):
        want = [row[index].astype(np.float64).ravel() for row in expected]
        have = [to_real(tensor, row[index]).ravel() for row in actual]
        metrics = measure_error(np.concatenate(want), np.concatenate(have))
        agreements.append(
            FloatAgreement(
                output=tensor.name,
                model=path.name,
                cases=len(want),
                relative_error=metrics.relative_error,
                limit=limit,
                mae=metrics.mae,
                cosine=metrics.cosine,
                argmax_agrees=sum(int(np.argmax(w) == np.argmax(h)) for w, h in zip(want, have, strict=True)),
            )
        )
    return tuple(agreements)


def check_agreement(agreement: FloatAgreement) -> Check:
    """Return the check of one output against the float model."""
    passed = agreement.relative_error <= agreement.limit
    remedy = "" if passed else "; give typical inputs with --inputs, or another --float-limit"
    return Check(
        name=f"float model: {agreement.output}",
        passed=passed,
        detail=f"relative error {agreement.relative_error:.3%} of at most {agreement.limit:.3%}, "
        f"over {agreement.cases} inputs; mean error {agreement.mae:.3g}, cosine {agreement.cosine:.6f}, "
        f"argmax same for {agreement.argmax_agrees}{remedy}",
    )


def to_real(tensor: Tensor, array: Array) -> Array:
    """Return the real numbers that a tensor's values stand for."""
    quantization = tensor.quantization
    if array.dtype.kind == "f" or quantization is None or len(quantization.scales) != 1:
        return array.astype(np.float64)
    zero_point = quantization.zero_points[0] if quantization.zero_points else 0
    return (array.astype(np.float64) - zero_point) * quantization.scales[0]


def _words(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes)
