"""Findings about a model that no runtime's catalogue is needed for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tflm_forge.model.opset import OpUse, op_set
from tflm_forge.model.reading import COMPRESSION_METADATA
from tflm_forge.model.records import Model
from tflm_forge.model.schema import CUSTOM_CODE, enum_name

FLEX_PREFIX = "Flex"
"""The converter names a TensorFlow op that it passes through `Flex` and the op's name."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something about a model that its user should know.

    Attributes:
        id: a word that stays the same from release to release ("flex-op").
        severity: `error` when the model can not run as it is, else `note`.
        layer: label of the first layer it concerns; empty when it concerns the model.
        words: what was found, a full sentence.
        remedy: what to do, a full sentence; empty for a note that needs nothing.
    """

    id: str
    severity: Literal["error", "note"]
    layer: str
    words: str
    remedy: str


def find_findings(model: Model) -> tuple[Finding, ...]:
    """Return what can be said about a model without knowing the runtime: errors first, then notes."""
    findings = [*_find_in_ops(model), *_find_in_buffers(model)]
    return tuple(sorted(findings, key=lambda finding: finding.severity != "error"))


def _find_in_ops(model: Model) -> Iterator[Finding]:
    ops = op_set(model)
    if not ops:
        yield Finding(
            id="no-operators",
            severity="error",
            layer="",
            words="The model has no operator: there is nothing to run.",
            remedy="Convert a model with at least one layer.",
        )
    for use in ops:
        if use.builtin_code != CUSTOM_CODE:
            if enum_name("BuiltinOperator", use.builtin_code) is None:
                yield _unknown_op(use)
        elif use.custom_name.startswith(FLEX_PREFIX):
            yield _flex_op(use)
        else:
            yield _custom_op(use)


def _unknown_op(use: OpUse) -> Finding:
    return Finding(
        id="unknown-op",
        severity="error",
        layer=use.first_layer,
        words=(
            f"Layer {use.first_layer!r} uses op code {use.builtin_code}, "
            "which is not in the TFLite schema that forge knows."
        ),
        remedy=(
            "The file is damaged, or its converter is newer than this forge: "
            "convert with an older TensorFlow, or update forge."
        ),
    )


def _flex_op(use: OpUse) -> Finding:
    tensorflow_op = use.custom_name.removeprefix(FLEX_PREFIX)
    return Finding(
        id="flex-op",
        severity="error",
        layer=use.first_layer,
        words=(
            f"Layer {use.first_layer!r} uses {use.custom_name}, TensorFlow's own op {tensorflow_op}: "
            "it needs the Flex delegate, which no microcontroller runs."
        ),
        remedy=(
            "Convert without tf.lite.OpsSet.SELECT_TF_OPS in target_spec.supported_ops, "
            f"and replace {tensorflow_op} by built-in ops where the converter then complains."
        ),
    )


def _custom_op(use: OpUse) -> Finding:
    return Finding(
        id="custom-op",
        severity="note",
        layer=use.first_layer,
        words=f"Layer {use.first_layer!r} uses the custom op {use.custom_name}, {use.count}x.",
        remedy="The firmware needs a kernel for it: the runtime's own, or yours.",
    )


def _find_in_buffers(model: Model) -> Iterator[Finding]:
    if any(item.name == COMPRESSION_METADATA for item in model.metadata):
        yield Finding(
            id="compressed-constants",
            severity="error",
            layer="",
            words="The model's constants are packed by TFLM's compression tool (COMPRESSION_METADATA).",
            remedy="Give the model as it was before compression.",
        )
    tensors = [tensor for subgraph in model.subgraphs for tensor in subgraph.tensors]
    outside = [t for t in tensors if t.is_constant and model.buffers[t.buffer].is_outside]
    if outside:
        yield Finding(
            id="data-outside-flatbuffer",
            severity="error",
            layer=outside[0].name,
            words=(
                f"The data of {len(outside)} tensors, first {outside[0].name!r}, "
                "stands behind the flatbuffer, where TFLM does not look."
            ),
            remedy="Convert without the converter's buffer-offset option, which is for models over 2 GB.",
        )
    sparse = [t for t in tensors if t.is_sparse]
    if sparse:
        yield Finding(
            id="sparse-tensor",
            severity="error",
            layer=sparse[0].name,
            words=f"{len(sparse)} tensors, first {sparse[0].name!r}, are sparse: TFLM can not read them.",
            remedy="Convert without the EXPERIMENTAL_SPARSITY optimization.",
        )
