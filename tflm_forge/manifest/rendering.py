"""Manifest -> YAML: stable order of keys and ops, one op a block, nothing that changes by itself."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import yaml

from tflm_forge.manifest.record import Manifest, ManifestFlash, ManifestModel, ManifestOp
from tflm_forge.manifest.tree import checksum, tree_of
from tflm_forge.model.opset import OpTypes
from tflm_forge.ops.hash import format_op_hash

TOP_KEY = "tflm_operator_manifest"
CHECKSUM_KEY = "checksum"

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
# Numbers to YAML 1.2, which PyYAML, of 1.1, would leave without quotes: a commit may be 12 digits with an e.
_NUMBER_OF_1_2 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+")


def render_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as YAML, with a checksum of all that it says."""
    body = _describe(manifest)
    sum_of_all = format_op_hash(checksum(tree_of(body), without=CHECKSUM_KEY))
    head = {"format": body.pop("format"), CHECKSUM_KEY: sum_of_all}
    text: str = yaml.dump(
        {TOP_KEY: {**head, **body}},
        Dumper=_make_dumper(),
        default_flow_style=False,
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
    )
    return text.encode()


def render_embedded(manifest: Manifest) -> bytes:
    """Return what stands in the firmware itself: all that is known before it is linked."""
    flash = manifest.flash and replace(manifest.flash, size_bytes=None, groups={})
    return render_manifest(replace(manifest, flash=flash, saving_kb=None))


def write_types(types: OpTypes) -> str:
    """Return a combination of types as one phrase: "INT8, INT8, INT32 -> INT8"."""
    inputs, outputs = types
    return f"{', '.join(inputs)} -> {', '.join(outputs)}".strip()


class _Flow(list[str]):
    """A list that is written in one line."""


def _make_dumper() -> Any:
    class Dumper(_DUMPER):  # type: ignore[misc]
        """Writes numbers' look-alikes with quotes, and short lists in one line."""

    def write_text(dumper: Any, text: str) -> Any:
        style = "'" if _NUMBER_OF_1_2.fullmatch(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, write_text)
    Dumper.add_representer(
        _Flow, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)
    )
    return Dumper


def _describe(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as plain values, in the order of the file; what is not known is left out."""
    several = len(manifest.models) > 1
    runtime, build, arena = manifest.runtime, manifest.build, manifest.arena
    body: dict[str, Any] = {
        "format": manifest.format,
        "forge": manifest.forge,
        "model": _describe_model(replace(manifest.models[0], op_hash=None, ops=())) if manifest.models else None,
        "board": manifest.board,
        "board_file": manifest.board_file,
        "runtime": runtime
        and {"name": runtime.name, "version": runtime.version, "commit": runtime.commit, "kernels": runtime.kernels},
        "build": build
        and {
            "profile": build.profile,
            "optimize": build.optimize,
            "lto": build.lto,
            "strip_error_strings": build.strip_error_strings,
            "allow_versions": dict(sorted(build.allow_versions.items())),
        },
        "op_hash": None if manifest.op_hash is None else format_op_hash(manifest.op_hash),
        "arena": arena and {"bytes": arena.size_bytes, "how": arena.how},
        "flash": manifest.flash and _describe_flash(manifest.flash),
        "total_flash_saving_kb": manifest.saving_kb,
        "resource_variables": manifest.resource_variables,
        "compression": manifest.compression,
        "schema_version": manifest.schema_version,
        "ops": [_describe_op(op) for op in manifest.ops],
        "models": [_describe_model(model) for model in manifest.models] if several else None,
    }
    kept: dict[str, Any] = _drop_empty(body)
    return kept if manifest.ops else {**kept, "ops": []}


def _drop_empty(value: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: _drop_empty(item) if isinstance(item, Mapping) else item for key, item in value.items()}
    return {key: item for key, item in plain.items() if item not in (None, "", {}, [])}


def _describe_model(model: ManifestModel) -> dict[str, Any]:
    return _drop_empty(
        {
            "file": model.file,
            "sha256": model.sha256,
            "bytes": model.size_bytes,
            "op_hash": None if model.op_hash is None else format_op_hash(model.op_hash),
            "ops": [_drop_empty({"name": op.name, "version": op.version, "count": op.count}) for op in model.ops],
        }
    )


def _describe_flash(flash: ManifestFlash) -> dict[str, Any]:
    return {"bytes": flash.size_bytes, "limit": flash.limit_bytes, "groups": dict(flash.groups)}


def _describe_op(op: ManifestOp) -> dict[str, Any]:
    kernel_types = None if op.kernel_types is None else _Flow(op.kernel_types or ["any"])
    plain = {
        "name": op.name,
        "builtin_code": op.builtin_code,
        "custom_name": op.custom_name,
        "version": op.version,
        "max_version": op.max_version,
        "count": op.count,
        "types": [write_types(types) for types in op.types],
        "first_layer": op.first_layer,
        "registration": op.registration,
        "kernel_types": kernel_types,
    }
    return _drop_empty(plain)
