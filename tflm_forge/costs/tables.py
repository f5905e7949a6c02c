"""Reads and writes tables of costs; one measured on this machine goes before the one that forge ships."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from tflm_forge.costs.records import CostTable, OpCost
from tflm_forge.errors import UsageError
from tflm_forge.files import write_output
from tflm_forge.resources import cache_dir

FORMAT = "tflm_forge_op_costs"
FORMAT_VERSION = 1
_SHIPPED = Path(__file__).with_name("data")
_COST_COLUMNS = ("op", "types", "call", "alone_bytes", "added_bytes")
_TEXTS = tuple(field.name for field in fields(CostTable) if field.type is str or field.type == "str")
_NUMBERS = ("no_op_bytes", "all_ops_bytes")
_UNSAFE = re.compile(r"[^\w.-]+")


def find_table(*, runtime: str, version: str, core: str, kernel_set: str) -> CostTable | None:
    """Return the table of a runtime's kernel set on a core, or None when there is none.

    Of several compilers' tables that were measured here, the latest counts. A damaged file of the cache counts as none:
    it can be measured again.
    """
    stem = _stem(runtime, core, kernel_set)
    measured = sorted(cache_folder().glob(f"{stem}-{_slug(version)}-gcc*.json"), key=lambda path: path.stat().st_mtime)
    for path in (*reversed(measured), _SHIPPED / f"{stem}.json"):
        table = _read(path)
        key = (table.runtime, table.version, table.core, table.kernel_set) if table else ()
        if key == (runtime, version, core, kernel_set):
            return table
    return None


def shipped_tables() -> tuple[CostTable, ...]:
    """Return all tables that forge carries."""
    tables = (_read(path) for path in sorted(_SHIPPED.glob("*.json")))
    return tuple(table for table in tables if table is not None)


def table_path(table: CostTable) -> Path:
    """Return where a table is kept that was measured on this machine."""
    stem = _stem(table.runtime, table.core, table.kernel_set)
    return cache_folder() / f"{stem}-{_slug(table.version)}-gcc{_slug(table.compiler)}.json"


def write_table(table: CostTable) -> Path:
    """Keep a table that was measured on this machine, and return its file.

    Raises:
        UsageError: the file can not be written.
    """
    path = table_path(table)
    write_output(path, render_table(table).encode())
    return path


def cache_folder() -> Path:
    """Return the folder of the tables that were measured on this machine."""
    return cache_dir() / "op-costs"


def render_table(table: CostTable) -> str:
    """Return a table as JSON, one line for each row."""
    head: dict[str, object] = {FORMAT: FORMAT_VERSION}
    head.update((key, getattr(table, key)) for key in (*_TEXTS, *_NUMBERS))
    head["common_ops"] = list(table.common_ops)
    head["not_measured"] = dict(table.not_measured)
    head["columns"] = list(_COST_COLUMNS)
    rows = [json.dumps([c.name, c.types, c.call, c.alone_bytes, c.added_bytes]) for c in table.costs]
    text = json.dumps(head, indent=1)
    return text.removesuffix("\n}") + ',\n "costs": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n"


def parse_table(text: str, *, is_shipped: bool, where: str) -> CostTable:
    """Read a table from JSON.

    Raises:
        UsageError: it is not one; names what is wrong.
    """
    try:
        plain: dict[str, Any] = json.loads(text)
        if plain[FORMAT] != FORMAT_VERSION or tuple(plain["columns"]) != _COST_COLUMNS:
            raise UsageError(f"{where}: a table of another version of forge")
        values: dict[str, Any] = {key: str(plain[key]) for key in _TEXTS}
        values.update((key, int(plain[key])) for key in _NUMBERS)
        return CostTable(
            **values,
            common_ops=tuple(plain["common_ops"]),
            costs=tuple(
                OpCost(name=name, types=types, call=call, alone_bytes=int(alone), added_bytes=int(added))
                for name, types, call, alone, added in plain["costs"]
            ),
            not_measured={str(name): str(reason) for name, reason in plain["not_measured"].items()},
            is_shipped=is_shipped,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{where}: not a table of operators' costs: {error!r}") from error


def _read(path: Path) -> CostTable | None:
    is_shipped = path.parent == _SHIPPED
    try:
        return parse_table(path.read_text(encoding="utf-8"), is_shipped=is_shipped, where=str(path))
    except (OSError, UnicodeDecodeError):
        return None
    except UsageError:
        if is_shipped:
            raise
        return None


def _stem(runtime: str, core: str, kernel_set: str) -> str:
    return "-".join(_slug(part) for part in (runtime, core, kernel_set))


def _slug(text: str) -> str:
    return _UNSAFE.sub("_", text)
