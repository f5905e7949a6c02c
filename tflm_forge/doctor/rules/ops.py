"""Rules about ops: what the schema, the runtime and its versions do not have."""

import functools
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tflm_forge.doctor.names import FLEX_PREFIX
from tflm_forge.doctor.records import Hit, Subject, rule
from tflm_forge.model import CUSTOM_CODE, OpUse, enum_name
from tflm_forge.ops.obstacles import Obstacle, list_obstacles

_DELEGATE = "DELEGATE"
_REWRITES = Path(__file__).with_name("rewrites.toml")


def obstacles_of(subject: Subject, rule_id: str) -> Iterator[Hit]:
    """Yield what the catalogue has against the model's ops under one rule."""
    if subject.catalogue is None:
        return
    for found in list_obstacles(subject.ops, subject.catalogue, allow_versions=subject.allow_versions):
        if found.rule == rule_id:
            layer = _first_layer(subject, found)
            where = f"{found.use.name} (first used by layer {layer!r}, {found.use.count}x)"
            joint = ":" if found.words.startswith("runtime ") else ""
            yield Hit(layer=layer, words=f"{where}{joint} {found.words}", remedy=found.remedy)


def _first_layer(subject: Subject, found: Obstacle) -> str:
    """Return the first layer with the op and the types that are refused."""
    if found.types is None:
        return found.use.first_layer
    key = found.use.builtin_code, found.use.custom_name
    for node in subject.nodes:
        operator, tensors = node.operator, node.graph.tensors
        if (operator.builtin_code, operator.custom_name) == key:
            inputs = tuple(tensors[i].type for i in operator.inputs if i >= 0)
            if inputs == tuple(t for t in found.types[0] if t != "-"):
                return node.label
    return found.use.first_layer


@functools.cache
def load_rewrites() -> dict[str, str]:
    """Return what to do about ops that TFLM does not have, by op."""
    document = tomllib.loads(_REWRITES.read_text(encoding="utf-8"))
    return {name: str(text) for name, text in document["rewrite"].items()}


@rule(
    id="unknown-op",
    severity="error",
    title="an op code that the schema does not have",
    why="The op's number is not in the TFLite schema: the file is damaged, or newer than this forge.",
    remedy="The file is damaged, or its converter is newer than this forge: convert with an older TensorFlow, or "
    "update forge.",
    source="schema.fbs, BuiltinOperator",
)
def unknown_op(subject: Subject) -> Iterator[Hit]:
    """Builtin codes without a name."""
    for use in subject.ops:
        if use.builtin_code != CUSTOM_CODE and enum_name("BuiltinOperator", use.builtin_code) is None:
            yield Hit(
                layer=use.first_layer,
                words=f"Layer {use.first_layer!r} uses op code {use.builtin_code}, which is not in the TFLite schema "
                "that forge knows.",
            )


@rule(
    id="missing-op",
    severity="error",
    needs="runtime",
    title="an op that the runtime does not have",
    why="TFLM has about 110 of TFLite's 200 ops: the op resolver can not register the others.",
    remedy="Convert the model without it, or replace it by a kernel of your own: `forge op new`.",
    source="micro_mutable_op_resolver.h of the tree; tflite-micro#1390, #2261, #1510, #2359",
)
def missing_op(subject: Subject) -> Iterator[Hit]:
    """Builtin ops that the catalogue does not have; remedies by op stand in rewrites.toml."""
    for hit in obstacles_of(subject, "missing-op"):
        name = hit.words.partition(" ")[0]
        if name == _DELEGATE:
            continue  # the rule delegate-op says more
        remedy = hit.remedy or load_rewrites().get(name, "")
        if subject.runtime == "bundled":
            remedy = f"The real TFLM may have it: `forge runtime install tflm`, --runtime tflm. {remedy}".strip()
        yield Hit(layer=hit.layer, words=hit.words, remedy=remedy)


@rule(
    id="op-version",
    severity="error",
    needs="runtime",
    title="an op version above the kernel's",
    why="TFLM never compares versions: a kernel that does not know a feature computes without it, and says nothing.",
    remedy="Convert with an older TensorFlow, or without the feature that raised the version.",
    source="op_version.cc (which feature raises which version); versions.toml (what TFLM's kernels have)",
)
def op_version(subject: Subject) -> Iterator[Hit]:
    """Versions over the catalogue's highest."""
    return obstacles_of(subject, "op-version")


@rule(
    id="flex-op",
    severity="error",
    title="a TensorFlow op that needs the Flex delegate",
    why="SELECT_TF_OPS leaves TensorFlow's own ops in the model. They need the Flex delegate, which is TensorFlow "
    "itself: no microcontroller runs it.",
    remedy="Convert without tf.lite.OpsSet.SELECT_TF_OPS.",
    source="tensorflow.org/lite/guide/ops_select",
)
def flex_op(subject: Subject) -> Iterator[Hit]:
    """Custom ops that begin with Flex and are no kernel of the user's own."""
    for use in subject.ops:
        if use.custom_name.startswith(FLEX_PREFIX) and not _is_known(subject, use):
            tensorflow_op = use.custom_name.removeprefix(FLEX_PREFIX)
            yield Hit(
                layer=use.first_layer,
                words=f"Layer {use.first_layer!r} uses {use.custom_name}, TensorFlow's own op {tensorflow_op}: it "
                "needs the Flex delegate, which no microcontroller runs.",
                remedy="Convert without tf.lite.OpsSet.SELECT_TF_OPS in target_spec.supported_ops, and replace "
                f"{tensorflow_op} by built-in ops where the converter then complains; or write its kernel yourself: "
                f"`forge op new {shlex.quote(use.custom_name)}`.",
            )


def _is_known(subject: Subject, use: OpUse) -> bool:
    return subject.catalogue is not None and subject.catalogue.find(use) is not None
