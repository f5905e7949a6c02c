"""The size report as one HTML page with a map to click into; it needs nothing else and loads nothing."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tflm_forge.reports.html import render_page
from tflm_forge.reports.size_view import (
    RegionUse,
    SizeView,
    change_table,
    group_rows,
    number,
    percent,
    rows_by,
    short_path,
    signed,
)
from tflm_forge.reports.table import TextTable
from tflm_forge.size.diff import Change
from tflm_forge.size.items import MODEL_GROUPS, Item, join_files
from tflm_forge.size.records import GROUPS, Group

_TEMPLATE = "size.html.j2"
_MOST_SYMBOLS = 400
_GOLDEN_ANGLE = 137.508
"""Hues this far apart stay apart, however many there are."""


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One number at the head of the page; percent draws a bar, None draws none."""

    title: str
    value: str
    note: str = ""
    percent: float | None = None


def size_to_html(view: SizeView) -> bytes:
    """Return a report as a page, in UTF-8."""
    symbols = join_files(view.sizes.items)
    return render_page(
        _TEMPLATE,
        {
            "view": view,
            "tiles": _tiles(view),
            "changes": _change_tables(view),
            "groups": _groups(view),
            "symbols": _symbol_table(symbols),
            "files": _file_table(view),
            "sections": _section_table(view),
            "data": _as_script(_map_data(view)),
        },
    )


def _tiles(view: SizeView) -> list[Tile]:
    model = view.sizes.bytes_of(*MODEL_GROUPS).flash_bytes
    tiles = [_region_tile(region) for region in view.regions]
    if model:
        rest = view.sizes.flash_bytes - model
        tiles.append(Tile(title="model", value=f"{model:,}", note=f"and {rest:,} bytes for the rest"))
    operators = view.sizes.bytes_of(Group.OPERATORS).flash_bytes
    if operators:
        share = percent(operators, view.sizes.flash_bytes)
        tiles.append(Tile(title="operators", value=f"{operators:,}", note=f"{share} of flash"))
    for group in (Group.ARENA, Group.STACK):
        if ram := view.sizes.bytes_of(group).ram_bytes:
            tiles.append(Tile(title=group.value, value=f"{ram:,}", note=f"{percent(ram, view.sizes.ram_bytes)} of RAM"))
    return tiles


def _region_tile(region: RegionUse) -> Tile:
    note = "bytes" if region.limit_bytes is None else f"{region.percent:.1f} % of {region.limit_bytes:,}"
    if region.growth_bytes is not None:
        note += f", {signed(region.growth_bytes)}"
    return Tile(title=region.name, value=f"{region.used_bytes:,}", note=note, percent=region.percent)


def _change_tables(view: SizeView) -> list[TextTable]:
    diff = view.diff
    if diff is None:
        return []
    tables = [
        change_table("By group", diff.groups, most_rows=_MOST_SYMBOLS, what="group"),
        change_table("By operator", diff.ops, most_rows=_MOST_SYMBOLS, what="operator"),
        change_table("By symbol", diff.symbols, most_rows=_MOST_SYMBOLS, what="symbol"),
    ]
    return [table for table in tables if table.rows]


def _groups(view: SizeView) -> list[dict[str, Any]]:
    rows = group_rows(view.sizes)
    most = max((row.flash_bytes for row, _ in rows), default=0) or 1
    return [
        {
            "name": row.name or "of all operators",
            "is_op": is_op,
            "flash": number(row.flash_bytes),
            "share": percent(row.flash_bytes, view.sizes.flash_bytes),
            "percent": 100 * row.flash_bytes / most,
            "ram": number(row.ram_bytes),
        }
        for row, is_op in rows
    ]


def _symbol_table(symbols: tuple[Item, ...]) -> TextTable:
    rows = [
        (i.name, number(i.flash_bytes), number(i.ram_bytes), i.op or i.group, short_path(i.file))
        for i in symbols[:_MOST_SYMBOLS]
    ]
    if rest := symbols[_MOST_SYMBOLS:]:
        flash, ram = sum(i.flash_bytes for i in rest), sum(i.ram_bytes for i in rest)
        rows.append((f"{len(rest):,} smaller ones", number(flash), number(ram), "", ""))
    return TextTable(title="symbols", columns=("symbol", "flash", "RAM", "of", "file"), rows=tuple(rows), right=(1, 2))


def _file_table(view: SizeView) -> TextTable:
    rows = [(row.name, number(row.flash_bytes), number(row.ram_bytes)) for row in rows_by(view.sizes, "file")]
    return TextTable(title="files", columns=("file", "flash", "RAM"), rows=tuple(rows), right=(1, 2))


def _section_table(view: SizeView) -> TextTable:
    rows = [
        (s.name, f"0x{s.address:08X}", f"{s.size_bytes:,}", _places(in_flash=s.in_flash, in_ram=s.in_ram))
        for s in view.sizes.sections
    ]
    return TextTable(title="", columns=("section", "address", "bytes", "in"), rows=tuple(rows), right=(2,))


def _places(*, in_flash: bool, in_ram: bool) -> str:
    return " and ".join(name for name, is_in in (("flash", in_flash), ("RAM", in_ram)) if is_in)


def _map_data(view: SizeView) -> dict[str, Any]:
    """Return the tree of the map: groups, below them operators, layers or symbols, below operators symbols.

    A symbol whose code is of several groups, by inlining, is in each with its part: the sums are those of the tables.
    """
    growth = {change.name: change for change in (view.diff.groups + view.diff.ops if view.diff else ())}
    groups: dict[str, list[Item]] = {}
    for item in view.sizes.items:
        groups.setdefault(item.group, []).append(item)
    order = {name: index for index, name in enumerate(GROUPS)}
    parts = []
    for name in sorted(groups, key=lambda name: order.get(name, len(order))):
        items = groups[name]
        if name == Group.OPERATORS:
            ops: dict[str, list[Item]] = {}
            for item in items:
                ops.setdefault(item.op or "of all operators", []).append(item)
            inner = [
                _node(op, inside, [_leaf(i) for i in join_files(inside)], growth.get(op)) for op, inside in ops.items()
            ]
        else:
            inner = [_leaf(item) for item in join_files(items)]
        node = _node(name, items, inner, growth.get(name))
        node["hue"] = round(210 + order.get(name, len(order)) * _GOLDEN_ANGLE) % 360
        parts.append(node)
    return {"name": "all", "flash": view.sizes.flash_bytes, "ram": view.sizes.ram_bytes, "parts": parts}


def _node(name: str, items: Iterable[Item], parts: list[dict[str, Any]], change: Change | None) -> dict[str, Any]:
    inside = list(items)
    node: dict[str, Any] = {
        "name": name,
        "flash": sum(i.flash_bytes for i in inside),
        "ram": sum(i.ram_bytes for i in inside),
        "parts": parts,
    }
    if change is not None:
        node["grown"] = {"flash": change.flash_growth_bytes, "ram": change.ram_growth_bytes}
    return node


def _leaf(item: Item) -> dict[str, Any]:
    owner = ", ".join(part for part in (item.section, short_path(item.file)) if part)
    return {"name": item.name, "flash": item.flash_bytes, "ram": item.ram_bytes, "of": owner}


def _as_script(data: dict[str, Any]) -> str:
    """Return JSON that may stand in a script element, whatever names of symbols and layers hold."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
