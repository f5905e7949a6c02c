"""Compares the output of every operator on a device with the interpreter's, and names the first that differs."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tflm_forge.errors import CheckError, DeviceError
from tflm_forge.link.failures import RefusedError
from tflm_forge.link.session import Session
from tflm_forge.model import Model, Operator, Tensor
from tflm_forge.verify.arrays import DTYPES, Array
from tflm_forge.verify.inputs import Case
from tflm_forge.verify.numbers import measure_error, set_inputs
from tflm_forge.verify.parts import LAYERS
from tflm_forge.verify.records import Check, LayerResult, Layers, Metrics, Part


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerValues:
    """What the operators should give for one case: tensor index to values, and what said so."""

    case: Case
    reference: str
    tensors: Mapping[int, Array]


def compare_layers(
    session: Session, model: Model, expected: LayerValues, on_layer: Callable[[int, int], None]
) -> Layers:
    """Run one case on firmware that keeps all tensors, and compare each operator's first output.

    Args:
        session: a session; it is connected here.
        model: the model that is in the device.
        expected: the inputs, and what they should give.
        on_layer: called with (operators done, operators in all).

    Raises:
        DeviceError: the device stopped answering, or has no layers to read.
        CheckError: inference is blocked.
    """
    info = session.connect()
    if not info.ready:
        raise CheckError(
            "the firmware that keeps all tensors does not run: a boot step failed", reasons=session.log_lines[-6:]
        )
    if info.model_sha256.hex() != model.sha256:
        raise CheckError("another model is in the firmware", hint="Build it for this model, and flash it.")
    set_inputs(session, expected.case)
    session.invoke()
    operators = model.subgraphs[0].operators
    results = []
    for done, operator in enumerate(operators, start=1):
        results.append(_compare_layer(session, model, operator, expected.tensors))
        on_layer(done, len(operators))
    return Layers(case=expected.case.name, reference=expected.reference, results=tuple(results))


def check_layers(layers: Layers) -> Part:
    """Return the part of the suite: that all operators agree, or which is the first that does not."""
    wrong = [result for result in layers.results if not result.passed]
    compared = [result for result in layers.results if result.metrics is not None]
    first = layers.first_wrong
    if first is None:
        passed = bool(compared)
        detail = f"{len(compared)} of {len(layers.results)} operators compared, {_agreement(compared)}"
        return Part(name=LAYERS, checks=(Check(name="operators", passed=passed, detail=detail),))
    checks = [
        Check(
            name="first operator that differs",
            passed=False,
            detail=f"operator {first.index}, {first.op} ({first.layer}): {describe_error(first)}",
        )
    ]
    behind = sum(result.index > first.index for result in layers.results)
    if len(wrong) > 1:
        detail = f"{len(wrong) - 1} of the {behind} behind it differ too; their inputs are wrong already"
        checks.append(Check(name="operators behind it", passed=False, detail=detail))
    return Part(name=LAYERS, checks=tuple(checks))


def describe_error(result: LayerResult) -> str:
    """Return one layer's error in words."""
    metrics = result.metrics
    if metrics is None:
        return result.note
    if not metrics.max_error:
        return "identical"
    unit = f" {result.unit}" if result.unit else ""
    return (
        f"{metrics.mismatches:,} of {metrics.elements:,} numbers differ ({metrics.mismatch_percent:.2f} %), "
        f"largest error {metrics.max_error:.6g}{unit}"
    )


def _agreement(compared: list[LayerResult]) -> str:
    if any(r.metrics is not None and r.metrics.max_error for r in compared):
        return "all within the tolerance"
    return "all identical"


def _compare_layer(session: Session, model: Model, operator: Operator, expected: Mapping[int, Array]) -> LayerResult:
    tensor = model.subgraphs[0].tensors[operator.outputs[0]] if operator.outputs else None
    if tensor is None or tensor.type not in DTYPES:
        return _left_out(operator, tensor, "its output has no numbers to compare")
    want = expected.get(tensor.index)
    if want is None:
        return _left_out(operator, tensor, "the reference does not know it")
    try:
        size_bytes, crc = session.layer_info(operator.index)
    except RefusedError as error:
        if error.status.name == "UnknownRequest":
            raise DeviceError(
                "the firmware on the device does not keep the tensors of all layers",
                hint="Flash the firmware that forge bisect builds into the folder layers of the project.",
            ) from error
        if error.status.name != "NoSuchTensor":
            raise
        return _left_out(operator, tensor, "the device does not keep it")
    data = want.tobytes()
    if size_bytes != len(data):
        note = f"it has {size_bytes} bytes on the device, {len(data)} in the reference"
        return _result(operator, tensor, None, passed=False, note=note)
    # The bytes are only asked for when they differ: one layer of a vision model takes seconds on a serial line.
    have = want if crc == zlib.crc32(data) else np.frombuffer(session.read_layer(operator.index), want.dtype)
    metrics = measure_error(want.ravel(), have.ravel())
    return _result(operator, tensor, metrics, passed=metrics.mismatches == 0)


def _left_out(operator: Operator, tensor: Tensor | None, note: str) -> LayerResult:
    return _result(operator, tensor, None, passed=True, note=f"not compared: {note}")


def _result(
    operator: Operator, tensor: Tensor | None, metrics: Metrics | None, *, passed: bool, note: str = ""
) -> LayerResult:
    kind = tensor.type if tensor is not None else ""
    return LayerResult(
        index=operator.index,
        op=operator.name,
        layer=operator.label,
        type=kind,
        unit="" if "FLOAT" in kind or not kind else "LSB",
        metrics=metrics,
        passed=passed,
        note=note,
    )
