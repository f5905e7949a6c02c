"""Compares the op resolver of C++ sources with what manifests say must be registered."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tflm_forge.runtimes as runtimes
from tflm_forge.gates.findings import Finding, Severity
from tflm_forge.gates.resolver_source import AddCall, ResolverSource
from tflm_forge.manifest import Manifest, ManifestOp
from tflm_forge.manifest.record import locate_model
from tflm_forge.model import CUSTOM_CODE, Model, OpUse, enum_value, union_op_set
from tflm_forge.ops.catalogue import Catalogue, CatalogueOp, OpKey
from tflm_forge.registry import list_names
from tflm_forge.runtimes import load_runtime

_ADD_CUSTOM = "AddCustom"
_ADD_BUILTIN = "AddBuiltin"
# Activation type of a registration by its suffix; the weights of INT4 kernels have four bits, not the activations.
_SUFFIX_TYPES = {
    "INT8": "INT8",
    "INT8REF": "INT8",
    "INT16": "INT16",
    "INT32": "INT32",
    "FLOAT": "FLOAT32",
    "INT4": "INT8",
}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """An op that a resolver must register: what a manifest says of it, and for whom."""

    op: ManifestOp
    model: str


def list_wanted(path: Path, manifest: Manifest, read: Mapping[Path, Model]) -> list[Wanted]:
    """Return the ops that the models of a manifest need today, each with what the manifest says of it.

    Args:
        path: where the manifest stands.
        manifest: what it says.
        read: models by their paths; where one of the manifest's is not among them, its own list of ops is taken.
    """
    names = ", ".join(Path(model.file).name for model in manifest.models) or path.name
    listed = {op.key: op for op in manifest.ops}
    models = [read.get(locate_model(path, each)) for each in manifest.models]
    known = [model for model in models if model is not None]
    if not known or len(known) != len(models):
        return [Wanted(op=op, model=names) for op in manifest.ops]
    uses = union_op_set(known)
    return [Wanted(op=listed.get((use.builtin_code, use.custom_name)) or _op_of(use), model=names) for use in uses]


def _op_of(use: OpUse) -> ManifestOp:
    return ManifestOp(
        name=use.name,
        builtin_code=use.builtin_code,
        custom_name=use.custom_name,
        version=use.version,
        max_version=use.version,
        count=use.count,
        types=use.types,
        first_layer=use.first_layer,
    )


def load_catalogues(manifests: Iterable[Manifest]) -> tuple[Catalogue, ...]:
    """Return the catalogues of all runtimes, those that the manifests name last: their methods win."""
    named = {manifest.runtime.name for manifest in manifests if manifest.runtime}
    return tuple(load_runtime(name).catalogue() for name in sorted(list_names(runtimes), key=lambda n: n in named))


def compare_resolver(
    sources: Sequence[ResolverSource],
    wanted: Sequence[Wanted],
    catalogues: Iterable[Catalogue],
    missing: Severity,
) -> Iterator[Finding]:
    """Yield what is wrong with the op resolver that some sources make up.

    Args:
        sources: the sources, together one op resolver or several for the same firmware.
        wanted: the ops of all manifests that they are for.
        catalogues: the runtimes' catalogues: which method registers which op.
        missing: severity of an op that is not registered.
    """
    methods = {row.add_method: row for catalogue in catalogues for row in catalogue.ops.values()}
    calls = [(call, _key(call, methods)) for source in sources for call in source.calls]
    ours = [(call, key) for call, key in calls if key is not None or _is_resolver_call(call, calls)]
    path = sources[0].path
    if not ours:
        remedy = "Name the C++ source that calls the Add methods in [operator_ci_check] resolvers of forge.toml."
        yield Finding(rule="resolver-missing", path=path, words="No op is registered in this source.", remedy=remedy)
        return
    by_key: dict[OpKey, list[AddCall]] = {}
    for call, key in ours:
        if key is None:
            yield _unknown(call)
        else:
            by_key.setdefault(key, []).append(call)
    needed = {each.op.key: each for each in wanted}
    hidden = any(call.method == _ADD_CUSTOM and key is None for call, key in ours)
    first = min((call for call, _ in ours), key=lambda call: call.line)
    for each in needed.values():
        if each.op.key not in by_key and not (hidden and each.op.custom_name):
            yield _missing(each, first, missing)
    yield from _find_unused(by_key, needed)
    # Several resolvers in functions of one file may have one name.
    several = {source.path for source in sources if len(source.capacities) > 1}
    for key, found in by_key.items():
        yield from _find_twice([call for call in found if call.path not in several])
        if key in needed:
            yield from _check_registration(found, needed[key], methods)
    yield from _check_capacity(sources, by_key)


def _key(call: AddCall, methods: Mapping[str, CatalogueOp]) -> OpKey | None:
    if call.method == _ADD_CUSTOM:
        return None if call.custom_name is None else (CUSTOM_CODE, call.custom_name)
    if call.method == _ADD_BUILTIN:
        code = enum_value("BuiltinOperator", call.enumerator)
        return None if code is None else (code, "")
    row = methods.get(call.method)
    return row.key if row else None


def _is_resolver_call(call: AddCall, calls: Sequence[tuple[AddCall, OpKey | None]]) -> bool:
    """Return whether a call with an unknown method is on an object on which known ones are called too."""
    if call.method in (_ADD_CUSTOM, _ADD_BUILTIN):
        return True
    return bool(call.receiver) and any(other.receiver == call.receiver and key for other, key in calls)


def _unknown(call: AddCall) -> Finding:
    words = f"{call.text} registers an op that forge can not name."
    remedy = "A custom op's name must stand in the call as text for forge to see it."
    if call.method not in (_ADD_CUSTOM, _ADD_BUILTIN):
        remedy = f"{call.method} is no method of the resolver in the runtimes that forge knows."
    return Finding(
        rule="resolver-unknown", severity="warning", path=call.path, line=call.line, words=words, remedy=remedy
    )


def _missing(wanted: Wanted, place: AddCall, severity: Severity) -> Finding:
    op = wanted.op
    used = f", first used by layer {op.first_layer!r}" if op.first_layer else ""
    words = f"{op.name} (version {op.version}{used}) is needed by {wanted.model} and is not registered."
    remedy = f"Add `{place.receiver + '.' if place.receiver else ''}{op.registration}`." if op.registration else ""
    return Finding(
        rule="resolver-operator-missing",
        severity=severity,
        path=place.path,
        line=place.line,
        words=words,
        remedy=remedy,
    )


def _find_unused(by_key: Mapping[OpKey, Sequence[AddCall]], needed: Mapping[OpKey, Wanted]) -> Iterator[Finding]:
    for key, calls in by_key.items():
        call = calls[0]
        if key not in needed and call.is_certain:
            words = f"{call.text} registers an op that no model uses: its kernel takes flash for nothing."
            yield Finding(
                rule="resolver-operator-unused",
                severity="warning",
                path=call.path,
                line=call.line,
                words=words,
                remedy="Remove the call, and lower N of MicroMutableOpResolver<N>.",
            )


def _find_twice(calls: Sequence[AddCall]) -> Iterator[Finding]:
    seen: dict[tuple[Path, str], AddCall] = {}
    for call in calls:
        first = seen.setdefault((call.path, call.receiver), call)
        if first is not call and first.is_certain and call.is_certain:
            words = f"{call.text} registers an op that line {first.line} registered already; TFLM refuses it."
            yield Finding(rule="resolver-operator-twice", path=call.path, line=call.line, words=words)


def _check_registration(
    calls: Sequence[AddCall], wanted: Wanted, methods: Mapping[str, CatalogueOp]
) -> Iterator[Finding]:
    """Refuse a kernel for one type where the models have others; note one for all types where one would do."""
    op = wanted.op
    inside = _suffix_in(op.registration, methods)
    for call in calls:
        suffix = _suffix(call, methods)
        if suffix is None or inside is None or suffix == inside or not call.is_certain:
            continue
        types = {side[0] for pair in op.types for side in pair if side}
        if not suffix:
            words = f"{call.text} brings kernels for every tensor type, and {wanted.model} needs {inside} only."
            remedy = f"`{op.registration}` takes less flash."
            severity: Severity = "warning"
        elif types == _types_of(suffix) and not inside:
            continue
        else:
            shown = ", ".join(sorted(types)) or "others"
            words = f"{call.text} registers a kernel for {suffix} only, and {wanted.model} has tensors of {shown}."
            remedy = f"Use `{op.registration}`."
            severity = "error"
        yield Finding(
            rule="resolver-registration",
            severity=severity,
            path=call.path,
            line=call.line,
            words=words,
            remedy=remedy,
        )


def _suffix(call: AddCall, methods: Mapping[str, CatalogueOp]) -> str | None:
    """Return the type that a call's registration is for, "" for any; None when it is not one of the runtime's."""
    row = methods.get(call.method)
    if row is None:
        return None
    base = row.registrations.get("", "").rpartition("::")[2]
    if not call.functions or base in call.functions:
        return ""
    suffixes = (name.removeprefix(f"{base}_") for name in call.functions if base and name.startswith(f"{base}_"))
    return next((suffix for suffix in suffixes if _types_of(suffix)), None)


def _types_of(suffix: str) -> set[str]:
    """Return the activation types that a registration's suffix names; none when it is no such suffix."""
    parts = suffix.split("_")
    return {_SUFFIX_TYPES[part] for part in parts} if all(part in _SUFFIX_TYPES for part in parts) else set()


def _suffix_in(registration: str, methods: Mapping[str, CatalogueOp]) -> str | None:
    method, _, rest = registration.partition("(")
    arguments = rest.removesuffix(")")
    whole = AddCall(path=Path(), line=0, receiver="", method=method, arguments=arguments, is_certain=True)
    return _suffix(whole, methods)


def _check_capacity(sources: Sequence[ResolverSource], by_key: Mapping[OpKey, Sequence[AddCall]]) -> Iterator[Finding]:
    """Compare N with the number of ops, where there is one resolver and one N."""
    capacities = {(c.path, c.line): c for source in sources for c in source.capacities}
    receivers = {call.receiver for calls in by_key.values() for call in calls}
    certain = all(call.is_certain for calls in by_key.values() for call in calls)
    if len(capacities) != 1 or len(receivers) != 1:
        return
    (capacity,) = capacities.values()
    count = len(by_key)
    if capacity.value is None or capacity.value == count or (not certain and capacity.value < count):
        return
    few = capacity.value < count
    words = f"MicroMutableOpResolver<{capacity.text}> has room for {capacity.value} ops, and {count} are registered"
    words += ": the last ones are refused at run time." if few else ": the rest takes RAM for nothing."
    yield Finding(
        rule="resolver-capacity",
        severity="error" if few else "warning",
        path=capacity.path,
        line=capacity.line,
        words=words,
        remedy=f"Make N {count}.",
    )
