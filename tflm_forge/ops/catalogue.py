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
        types: tensor types of the first input and output that the kernels take; empty when they do not look.
        input_types: of the first input alone, where it differs from the output.
        output_types: of the first output alone, where it differs from the input.
        weights: types of the second input by the type of the first; empty when the kernels do not say.
        results: types of the first output by the type of the first input; empty when any of both go together.
        takes_channel_scales: whether the kernels compute weights that have a scale for each channel.
        is_own: whether the kernel is the user's own, from a table [[op]] of forge.toml.
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
    input_types: tuple[str, ...] = ()
    output_types: tuple[str, ...] = ()
    weights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    results: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    takes_channel_scales: bool = True
    is_own: bool = False

    @property
    def key(self) -> OpKey:
        """Builtin code and custom name."""
        return self.builtin_code, self.custom_name


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """All ops of one version of a runtime; `newer_ops` are further ones that a later version has."""

    runtime: str
    version: str
    ops: Mapping[OpKey, CatalogueOp]
    newer_ops: frozenset[OpKey] = frozenset()

    def find(self, use: OpUse) -> CatalogueOp | None:
        """Return the catalogue's row for an op of a model, or None."""
        return self.ops.get((use.builtin_code, use.custom_name))


def activation_types(use: OpUse) -> set[str]:
    """Return the tensor types that an op's uses have as first input and first output."""
    first = {types[0] for pair in use.types for types in pair if types}
    return first - {LEFT_OUT}


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
