"""What stands against running an op set on a runtime: ops it lacks, versions, tensor types."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tflm_forge.model import CUSTOM_CODE, LEFT_OUT, OpUse, enum_name
from tflm_forge.model.opset import OpTypes
from tflm_forge.ops.catalogue import Catalogue, CatalogueOp

_INTEGERS = ("INT8", "INT16", "UINT8", "INT4")
_DATA_INPUT = {"TRANSPOSE_CONV": 2}
"""Ops whose data is not the first input."""

_RECONVERT = "Convert again with full integer quantization to int8, with a representative dataset."

_TYPE_RULES: Mapping[str, tuple[str, str]] = {
    "FLOAT16": (
        "float16",
        "Convert again without supported_types = [tf.float16]: as float32, or quantized to int8.",
    ),
    "UINT8": (
        "uint8-quantization",
        "Convert again with TensorFlow 2 to int8; a QUANTIZE layer at the ends may still take and give uint8.",
    ),
    "INT16": (
        "int16x8-unsupported",
        "Convert again with int8 activations (TFLITE_BUILTINS_INT8) in place of int16 ones, or leave this layer out.",
    ),
    "INT4": ("int4-unsupported", "Convert again with int8 weights."),
}
"""By the type that is refused: the doctor's rule for it, and the remedy."""


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """One reason why a runtime can not run an op.

    Attributes:
        rule: id of the doctor's rule that it comes under.
        use: the op as the model uses it.
        types: the combination of tensor types it concerns; None when it concerns all.
        words: what is wrong, without the op and the layer it begins with.
        remedy: what to do, full sentences.
    """

    rule: str
    use: OpUse
    types: OpTypes | None = None
    words: str
    remedy: str


def list_obstacles(
    ops: Iterable[OpUse], catalogue: Catalogue, *, allow_versions: Mapping[str, int] | None = None
) -> tuple[Obstacle, ...]:
    """List every reason why a runtime can not run these ops; empty when it can.

    Args:
        ops: the op set of a model.
        catalogue: the runtime's catalogue, with the user's own kernels.
        allow_versions: op name to a version that the user takes responsibility for.
    """
    return tuple(obstacle for use in ops for obstacle in _find(use, catalogue, allow_versions or {}))


def _find(use: OpUse, catalogue: Catalogue, allowed: Mapping[str, int]) -> Iterator[Obstacle]:
    row = catalogue.find(use)
    runtime = f"runtime {catalogue.runtime} {catalogue.version}"
    if row is None:
        if use.builtin_code != CUSTOM_CODE and enum_name("BuiltinOperator", use.builtin_code) is not None:
            is_newer = (use.builtin_code, "") in catalogue.newer_ops
            remedy = (
                "TFLM has it since: `forge runtime install tflm` gets the commit this forge knows." if is_newer else ""
            )
            yield Obstacle(rule="missing-op", use=use, words=f"{runtime} has no such op.", remedy=remedy)
        return
    if row.is_own:
        runtime = "your [[op]] in forge.toml"
    if use.version > max(row.max_version, allowed.get(use.name, 0)):
        yield _version_obstacle(use, row, runtime)
    yield from _find_in_types(use, row, runtime)


def _version_obstacle(use: OpUse, row: CatalogueOp, runtime: str) -> Obstacle:
    if row.max_version == 0:
        words = f"is known to {runtime} by name alone: {row.version_source}."
        return Obstacle(rule="delegate-op", use=use, words=words, remedy="")
    if row.is_own:
        remedy = f"Raise its version when the kernel does what version {use.version} asks."
    else:
        remedy = (
            f"Known of it: {row.version_source}. --allow-version {use.name}={use.version} overrides when you know "
            "that its features are not used."
        )
    return Obstacle(
        rule="op-version",
        use=use,
        words=f"needs version {use.version}: {runtime} implements up to version {row.max_version}.",
        remedy=remedy,
    )


def _find_in_types(use: OpUse, row: CatalogueOp, runtime: str) -> Iterator[Obstacle]:
    taken_in, taken_out = (row.types, row.types) if row.is_own else (row.input_types, row.output_types)
    for types in use.types:
        inputs, outputs = types
        sides = ("input", inputs[:1], taken_in or row.types), ("output", outputs[:1], taken_out or row.types)
        for side, first, taken in sides:
            if first and taken and first[0] not in (*taken, LEFT_OUT):
                yield _type_obstacle(use, types, f"has {first[0]} {side}", first[0], f"{runtime} takes", taken)
                break
        else:
            yield from _find_in_results(use, types, row, runtime)
            yield from _find_in_weights(use, types, row, runtime)
    if use.has_channel_scales and not (row.takes_channel_scales or row.is_own):
        yield Obstacle(
            rule="per-channel-fully-connected",
            use=use,
            words=f"has weights with a scale for each channel, and {runtime} computes with one scale.",
            remedy="Install a newer commit, or convert again with "
            "converter._experimental_disable_per_channel_quantization_for_dense_layers = True.",
        )


def _find_in_results(use: OpUse, types: OpTypes, row: CatalogueOp, runtime: str) -> Iterator[Obstacle]:
    inputs, outputs = types
    if not row.results or row.is_own or not inputs or not outputs:
        return
    given = row.results.get(inputs[0], ())
    if outputs[0] not in given:
        yield _type_obstacle(use, types, f"makes {outputs[0]} of {inputs[0]}", outputs[0], f"{runtime} makes", given)


def _find_in_weights(use: OpUse, types: OpTypes, row: CatalogueOp, runtime: str) -> Iterator[Obstacle]:
    inputs, data = types[0], _DATA_INPUT.get(use.name, 0)
    if not row.weights or len(inputs) <= max(data, 1) or inputs[1] == LEFT_OUT:
        return
    given, weights = inputs[data], inputs[1]
    taken = row.weights.get(given, ())
    if weights in taken:
        return
    words = f"has {given} input with {weights} weights"
    if given == "FLOAT32" and weights in _INTEGERS:
        yield Obstacle(
            rule="hybrid-quantization",
            use=use,
            types=types,
            words=f"{words} (hybrid quantization): {runtime} does not take them.",
            remedy="Convert again with a representative dataset and target_spec.supported_ops = "
            "[tf.lite.OpsSet.TFLITE_BUILTINS_INT8], so that everything is quantized; or without "
            "converter.optimizations, as float32.",
        )
        return
    yield _type_obstacle(use, types, words, weights, f"{runtime} takes weights of", taken or ("no type",))


def _type_obstacle(
    use: OpUse, types: OpTypes, words: str, refused: str, takes: str, taken: tuple[str, ...]
) -> Obstacle:
    rule, remedy = _TYPE_RULES.get(refused, ("op-type", _RECONVERT if refused == "INT32" else ""))
    return Obstacle(
        rule=rule,
        use=use,
        types=types,
        words=f"{words}: {takes} {', '.join(taken)}.",
        remedy=remedy or "Cast around the layer, or convert again with types that the runtime takes.",
    )
