"""The size report for a console: bars of the regions, a table, the largest symbols, what changed."""

from tflm_forge.reports.size_view import (
    NO_OWNER,
    RegionUse,
    SizeView,
    change_table,
    group_rows,
    number,
    percent,
    rows_by,
    signed,
)
from tflm_forge.reports.table import TextTable
from tflm_forge.size.diff import Change
from tflm_forge.size.items import MODEL_GROUPS, join_files
from tflm_forge.size.records import Key, Row

BLOCK, PLAIN_BLOCK = "\N{FULL BLOCK}", "#"
_TRACK = {BLOCK: "\N{LIGHT SHADE}", PLAIN_BLOCK: "."}
_REGION_BAR, _ROW_BAR = 32, 20
_NAME_CHARACTERS = 100


def region_table(view: SizeView, block: str = BLOCK) -> TextTable:
    """Return one row for flash and one for RAM, against the board's limits where they are known."""
    rows = [_region_row(region, block) for region in view.regions]
    columns: tuple[str, ...] = ("", "bytes", "", "", "", "free")
    if all(region.limit_bytes is None for region in view.regions):
        columns, rows = columns[:2], [row[:2] for row in rows]
    right = tuple(i for i in range(len(columns)) if i in (1, 3, 5))
    if view.diff is not None:
        right += (len(columns),)
        columns += ("change",)
        rows = [(*row, _change_words(region)) for row, region in zip(rows, view.regions, strict=True)]
    return TextTable(title=view.title, columns=columns, rows=tuple(rows), right=right)


def group_table(view: SizeView, block: str = BLOCK) -> TextTable:
    """Return one row a group, and one an operator below "operators"."""
    growth = {c.name: c for c in (view.diff.groups + view.diff.ops if view.diff else ())}
    most = max((max(row.flash_bytes, row.ram_bytes) for row, _ in group_rows(view.sizes)), default=0)
    rows = []
    for row, is_op in group_rows(view.sizes):
        name = f"  {row.name or 'of all operators'}" if is_op else row.name
        rows.append(_row(name, row, view, most, block) + _growth(growth.get(row.name), view))
    return _table("", "group", tuple(rows), view)


def key_table(view: SizeView, key: Key, top: int, block: str = BLOCK) -> TextTable:
    """Return one row for each name of a key, the largest first; the last one sums up those left out."""
    all_rows = rows_by(view.sizes, key)
    ownerless = [row for row in all_rows[-1:] if row.name == NO_OWNER.get(key)]
    owned = all_rows[: len(all_rows) - len(ownerless)]
    shown, rest = owned[:top], owned[top:]
    most = max((max(row.flash_bytes, row.ram_bytes) for row in shown), default=0)
    rows = [_row(row.name, row, view, most, block) for row in shown]
    if rest:
        sums = Row(
            name=f"{len(rest):,} more",
            flash_bytes=sum(row.flash_bytes for row in rest),
            ram_bytes=sum(row.ram_bytes for row in rest),
        )
        rows.append(_row(sums.name, sums, view, 0, block))
    rows += [_row(row.name, row, view, 0, block) for row in ownerless]
    table = _table("", key, tuple(rows), view)
    return TextTable(title="", columns=table.columns[:5], rows=table.rows, right=table.right)


def symbol_table(view: SizeView, top: int) -> TextTable:
    """Return the largest symbols, but for the model, the arena and the stack, which the groups tell."""
    items = [i for i in join_files(view.sizes.items) if i.symbol and i.flash_bytes and i.group not in MODEL_GROUPS][
        :top
    ]
    rows = [(f"{i.flash_bytes:,}", _cut(i.name), i.op or i.group) for i in items]
    return TextTable(title="Largest symbols in flash", columns=("bytes", "symbol", "of"), rows=tuple(rows), right=(0,))


def diff_table(view: SizeView, key: Key | None, top: int) -> TextTable | None:
    """Return what changed by a key, or by symbol where the key has no changes of its own; None when nothing did."""
    diff = view.diff
    if diff is None:
        return None
    what = key if key in ("group", "op") else "symbol"
    changes = {"group": diff.groups, "op": diff.ops, "symbol": diff.symbols}[what]
    title = f"Changes against {diff.old}"
    if not changes:
        return TextTable(title=f"{title}: none by {what}", columns=(), rows=(("",),))
    return change_table(title, changes, most_rows=top, what=what)


def _region_row(region: RegionUse, block: str) -> tuple[str, ...]:
    if region.limit_bytes is None or region.percent is None or region.free_bytes is None:
        return (region.name, f"{region.used_bytes:,}", "", "", "", "")
    filled = min(_REGION_BAR, round(_REGION_BAR * region.percent / 100)) or (1 if region.used_bytes else 0)
    bar = block * filled + _TRACK[block] * (_REGION_BAR - filled)
    share = f"{region.percent:.1f} %"
    return (region.name, f"{region.used_bytes:,}", f"of {region.limit_bytes:,}", share, bar, f"{region.free_bytes:,}")


def _change_words(region: RegionUse) -> str:
    return "" if region.growth_bytes is None else signed(region.growth_bytes)


def _row(name: str, row: Row, view: SizeView, most: int, block: str) -> tuple[str, ...]:
    share = percent(row.flash_bytes, view.sizes.flash_bytes)
    bar = block * round(_ROW_BAR * row.flash_bytes / most) if most else ""
    return (_cut(name), number(row.flash_bytes), share, bar, number(row.ram_bytes))


def _growth(change: Change | None, view: SizeView) -> tuple[str, ...]:
    if view.diff is None:
        return ()
    if change is None:
        return ("", "")
    return (number_signed(change.flash_growth_bytes), number_signed(change.ram_growth_bytes))


def number_signed(size: int) -> str:
    """Return a change with its sign, empty when there is none."""
    return signed(size) if size else ""


def _table(title: str, what: str, rows: tuple[tuple[str, ...], ...], view: SizeView) -> TextTable:
    columns: tuple[str, ...] = (what, "flash", "", "", "RAM")
    if view.diff is not None:
        columns += ("flash change", "RAM change")
    return TextTable(title=title, columns=columns, rows=rows, right=(1, 2, 4, 5, 6))


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS else name[: _NAME_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
