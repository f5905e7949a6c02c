"""The size report as Markdown for a pull request: one short table, and the rest to unfold."""

import re

from tflm_forge.reports.size_view import SizeView, change_table, group_rows, number, percent, rows_by, signed
from tflm_forge.reports.table import TextTable
from tflm_forge.size.records import Key

_MOST_CHANGES = 10
_INDENT = "\N{MIDDLE DOT} "
_MARKS = re.compile(r"([\\`*_{}\[\]<>&|~#])")


def size_to_markdown(view: SizeView, key: Key, top: int) -> str:
    """Return a report as Markdown. The same firmware gives the same text: it can be held against an older one.

    Args:
        view: the report.
        key: what the last table is added up by.
        top: how many rows it has at most.
    """
    parts = [f"### Size of {_cell(view.title)}", _table(_regions(view))]
    if view.verdict is not None and view.verdict.violations:
        parts.append("**Over budget:**")
        parts.append("\n".join(f"- {_cell(violation.words)}" for violation in view.verdict.violations))
    elif view.verdict is not None:
        parts.append(f"Within budget ({view.verdict.limits} limits).")
    if view.diff is not None:
        changes = change_table("", view.diff.symbols, most_rows=_MOST_CHANGES, what="symbol")
        parts.append(f"Against {_cell(view.diff.old)}:" + ("" if changes.rows else " no symbol changed its size."))
        if changes.rows:
            parts.append(_table(changes))
            parts.append(_folded("Changes by group and operator", _change_tables(view)))
    parts.append(_folded("Where flash and RAM went", _table(_groups(view))))
    parts.append(_folded(f"The largest, by {key}", _table(_rows(view, key, top))))
    return "\n\n".join(parts) + "\n"


def _regions(view: SizeView) -> TextTable:
    columns = ("", "bytes", "of", "used", "free") + (("change",) if view.diff else ())
    rows = []
    for region in view.regions:
        share = "" if region.percent is None else f"{region.percent:.1f} %"
        limit = "" if region.limit_bytes is None else f"{region.limit_bytes:,}"
        free = "" if region.free_bytes is None else f"{region.free_bytes:,}"
        change = () if region.growth_bytes is None else (signed(region.growth_bytes),)
        rows.append((region.name, f"{region.used_bytes:,}", limit, share, free, *change))
    return TextTable(title="", columns=columns, rows=tuple(rows), right=(1, 2, 3, 4, 5))


def _groups(view: SizeView) -> TextTable:
    rows = []
    for row, is_op in group_rows(view.sizes):
        name = f"{_INDENT}{row.name or 'of all operators'}" if is_op else row.name
        rows.append(
            (name, number(row.flash_bytes), percent(row.flash_bytes, view.sizes.flash_bytes), number(row.ram_bytes))
        )
    return TextTable(title="", columns=("group", "flash", "", "RAM"), rows=tuple(rows), right=(1, 2, 3))


def _rows(view: SizeView, key: Key, top: int) -> TextTable:
    rows = [(row.name, number(row.flash_bytes), number(row.ram_bytes)) for row in rows_by(view.sizes, key)[:top]]
    return TextTable(title="", columns=(key, "flash", "RAM"), rows=tuple(rows), right=(1, 2))


def _change_tables(view: SizeView) -> str:
    if view.diff is None:
        return ""
    groups = change_table("", view.diff.groups, most_rows=len(view.diff.groups), what="group")
    ops = change_table("", view.diff.ops, most_rows=len(view.diff.ops), what="operator")
    return "\n\n".join(_table(table) for table in (groups, ops) if table.rows)


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _table(table: TextTable) -> str:
    rule = ["--:" if i in table.right else "---" for i in range(len(table.columns))]
    rows = [tuple(_cell(cell) for cell in row) for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (table.columns, rule, *rows))


def _cell(text: str) -> str:
    """Return text that Markdown shows as it is: names of symbols and layers may hold any of its marks."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return _MARKS.sub(r"\\\1", printable)
