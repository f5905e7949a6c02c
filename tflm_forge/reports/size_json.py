"""The size report as JSON values, with a version of their form (reports/size.schema.json), and read again."""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tflm_forge.errors import UsageError
from tflm_forge.reports.size_view import SizeView, operator_items, rows_by
from tflm_forge.size.budget import Verdict
from tflm_forge.size.diff import Change, Diff
from tflm_forge.size.items import MODEL_GROUPS, Item, Sizes, sum_items
from tflm_forge.size.records import Group, Key

FORMAT_VERSION = 2

_FORMAT_KEY = "tflm_forge_size"
_MAX_BYTES = 64 * 1024 * 1024
_ITEM_KINDS = {field.name: field.type for field in fields(Item)}


def size_to_json(view: SizeView, key: Key | None = None, top: int | None = None) -> dict[str, Any]:
    """Return a size report as values that JSON can hold; `items` has all of it and is what `--diff` reads.

    Args:
        view: the report.
        key: what `rows` is added up by; without it there is no `rows`.
        top: how many of `rows` there are at most; None gives all.
    """
    sizes = view.sizes
    model_bytes = sizes.bytes_of(*MODEL_GROUPS).flash_bytes
    return {
        _FORMAT_KEY: FORMAT_VERSION,
        "elf": view.elf,
        "title": view.title,
        "line": view.line,
        "board": view.board or None,
        "limits": {"flash_bytes": view.flash_limit_bytes, "ram_bytes": view.ram_limit_bytes},
        "flash_bytes": sizes.flash_bytes,
        "model_bytes": model_bytes,
        "without_model_bytes": sizes.flash_bytes - model_bytes,
        "code_bytes": sizes.code_bytes,
        "constant_bytes": sizes.flash_bytes - model_bytes - sizes.code_bytes,
        "ram_bytes": sizes.ram_bytes,
        "arena_bytes": sizes.bytes_of(Group.ARENA).ram_bytes,
        "stack_bytes": sizes.bytes_of(Group.STACK).ram_bytes,
        "groups": [asdict(row) for row in sizes.sum_by("group")],
        "operators": [asdict(row) for row in sum_items(operator_items(sizes.items), "op")],
        "sections": [{"name": s.name, "address": f"0x{s.address:08X}", "bytes": s.size_bytes} for s in sizes.sections],
        **({} if key is None else {"rows": [asdict(row) for row in rows_by(sizes, key)[:top]]}),
        "diff": diff_to_json(view.diff) if view.diff else None,
        "budget": _verdict(view.verdict) if view.verdict else None,
        "notes": list(view.notes),
        "items": [asdict(item) for item in sizes.items],
    }


def diff_to_json(diff: Diff) -> dict[str, Any]:
    """Return a comparison as values that JSON can hold."""
    return {
        "old": diff.old,
        "flash_growth_bytes": diff.total.flash_growth_bytes,
        "ram_growth_bytes": diff.total.ram_growth_bytes,
        "groups": [_change(change) for change in diff.groups],
        "operators": [_change(change) for change in diff.ops],
        "symbols": [_change(change) for change in diff.symbols],
    }


def read_sizes(path: Path) -> Sizes:
    """Read what `forge size --json` wrote.

    Raises:
        UsageError: it can not be read, is no such file, or one of another version.
    """
    hint = "Name an ELF file, or a file that `forge size --json` wrote."
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path}: larger than {_MAX_BYTES >> 20} MiB, not a size report", hint=hint)
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: neither an ELF file nor JSON: {error}", hint=hint) from error
    if not isinstance(document, dict) or _FORMAT_KEY not in document:
        raise UsageError(f"{path}: not a size report: it has no key {_FORMAT_KEY!r}", hint=hint)
    if document[_FORMAT_KEY] != FORMAT_VERSION:
        raise UsageError(
            f"{path}: a size report of version {document[_FORMAT_KEY]!r}; this forge reads version {FORMAT_VERSION}",
            hint="Write it again with this forge.",
        )
    try:
        return Sizes(
            name=str(document["title"]),
            items=tuple(_item(values) for values in document["items"]),
            flash_bytes=_number(document["flash_bytes"]),
            ram_bytes=_number(document["ram_bytes"]),
            code_bytes=_number(document["code_bytes"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: a damaged size report ({error!r})", hint="Write it again.") from error


def _item(values: dict[str, Any]) -> Item:
    kept: dict[str, Any] = {
        name: _number(values[name]) if kind is int else str(values[name]) for name, kind in _ITEM_KINDS.items()
    }
    return Item(**kept)


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no size")
    return value


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "name": change.name,
        "group": change.group or None,
        "op": change.op or None,
        "file": change.file or None,
        "old_flash_bytes": change.old_flash_bytes,
        "flash_bytes": change.flash_bytes,
        "flash_growth_bytes": change.flash_growth_bytes,
        "old_ram_bytes": change.old_ram_bytes,
        "ram_bytes": change.ram_bytes,
        "ram_growth_bytes": change.ram_growth_bytes,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "passed": verdict.passed,
        "limits": verdict.limits,
        "not_checked": list(verdict.not_checked),
        "violations": [
            {**asdict(violation), "over_bytes": violation.over_bytes, "group": violation.group or None}
            for violation in verdict.violations
        ],
    }
