"""The op catalogue of a runtime: which ops it has, how each is registered, and what each kernel takes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tflm_forge.errors import UsageError
from tflm_forge.model import LEFT_OUT, OpUse
from tflm_forge.registry import unknown_name

OpKey = tuple[int, str]
"""Builtin code and custom name (empty for a builtin op)."""


@dataclass(frozen=True, kw_only=True)
class CatalogueOp:
    """One op that a runtime can register.

    Attributes:
        builtin_code: number in the schema's BuiltinOperator; 32 (CUSTOM) for a custom op.
        custom_name: the exact name of a custom op, else empty.
        name: what a person calls it ("CONV_2D").
        add_method: method of MicroMutableOpResolver that registers it ("AddConv2D").
        registrations: registration function by tensor type ("INT8"); "" is the one for any type. Empty when
            the Add method takes no argument.
        sources: kernel sources, relative to the runtime's root.
        max_version: the highest op version whose features the kernels implement.
        version_source: where that number comes from.
        types: activation tensor types the kernels take.
        weights: types of the second input by the type of the first; empty when the kernels do not say.
    """

    builtin_code: int
    custom_name: str = ""
    name: str
    add_method: str
    registrations: Mapping[str, str]
    sources: tuple[str, ...]
    max_version: int
    version_source: str
    types: tuple[str, ...]
    weights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> OpKey:
        """Builtin code and custom name."""
        return self.builtin_code, self.custom_name


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """All ops of one version of a runtime."""

    runtime: str
    version: str
    ops: Mapping[OpKey, CatalogueOp]

    def find(self, use: OpUse) -> CatalogueOp | None:
        """Return the catalogue's row for an op of a model, or None."""
        return self.ops.get((use.builtin_code, use.custom_name))


def find_obstacles(
    ops: Iterable[OpUse], catalogue: Catalogue, *, allow_versions: Mapping[str, int] | None = None
) -> tuple[str, ...]:
    """List every reason why a runtime can not run these ops; empty when it can.

    Args:
        ops: the op set of a model.
        catalogue: the runtime's catalogue.
        allow_versions: op name to a version that the user takes responsibility for.
    """
    allowed = allow_versions or {}
    runtime = f"runtime {catalogue.runtime} {catalogue.version}"
    reasons = []
    for use in ops:
        row = catalogue.find(use)
        where = f"{use.name} (first used by layer {use.first_layer!r}"
        if row is None:
            reasons.append(f"{where}, {use.count}x): {runtime} has no such {_kind_and_remedy(use)}")
            continue
        limit = max(row.max_version, allowed.get(use.name, 0))
        if use.version > limit:
            reasons.append(
                f"{where}) needs version {use.version}: {runtime} implements up to version {row.max_version}; "
                f"--allow-version {use.name}={use.version} overrides when you know its features are not used"
            )
        reasons.extend(_type_obstacles(use, row, runtime))
    return tuple(reasons)


def _kind_and_remedy(use: OpUse) -> str:
    if not use.custom_name:
        return "op"
    return "custom op, and its kernel is not part of it: convert the model without it"


def activation_types(use: OpUse) -> set[str]:
    """Return the tensor types that an op's uses have as first input and first output."""
    first = {types[0] for pair in use.types for types in pair if types}
    return first - {LEFT_OUT}


def _type_obstacles(use: OpUse, row: CatalogueOp, runtime: str) -> list[str]:
    where = f"{use.name} (first used by layer {use.first_layer!r})"
    refused = sorted(activation_types(use) - set(row.types)) if row.types else []
    if refused:
        return [f"{where} has {', '.join(refused)} tensors: {runtime} takes {', '.join(row.types)}"]
    pairs = dict.fromkeys(inputs[:2] for inputs, _ in use.types if len(inputs) > 1) if row.weights else {}
    return [
        f"{where} has {activation} input with {weight} weights: {runtime} does not take them"
        f"{_hybrid(activation, weight)}"
        for activation, weight in pairs
        if weight != LEFT_OUT and weight not in row.weights.get(activation, ())
    ]


def _hybrid(activation: str, weight: str) -> str:
    if activation != "FLOAT32" or not weight.startswith("INT"):
        return ""
    return " (hybrid quantization): convert again with a representative dataset, so that everything is quantized"


def parse_allow_versions(options: Iterable[str]) -> dict[str, int]:
    """Parse `--allow-version OP=N` options.

    Raises:
        UsageError: an option has another form.
    """
    result = {}
    for option in options:
        name, _, number = option.partition("=")
        if not name or not number.isdigit():
            raise UsageError(
                f"--allow-version {option}: not of the form OP=N",
                hint="For example --allow-version CONV_2D=8.",
            )
        result[name] = int(number)
    return result


def check_allowed(allow_versions: Mapping[str, int], catalogue: Catalogue) -> None:
    """Refuse an allowed version of an op that the runtime does not have: most likely a typing mistake.

    Raises:
        UsageError: names the nearest op of the runtime.
    """
    names = {op.name for op in catalogue.ops.values()}
    for name, version in allow_versions.items():
        if name not in names:
            error = unknown_name(f"op of runtime {catalogue.runtime}", name, names)
            raise UsageError(f"--allow-version {name}={version}: {error.message}", hint=error.hint)


def find_by_name(catalogue: Catalogue, name: str) -> CatalogueOp:
    """Return the op with this name.

    Raises:
        UsageError: the catalogue has no such op; names the nearest.
    """
    by_name = {op.name: op for op in catalogue.ops.values()}
    if name not in by_name:
        raise unknown_name(f"op of runtime {catalogue.runtime}", name, by_name)
    return by_name[name]
