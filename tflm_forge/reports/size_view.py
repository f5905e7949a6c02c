"""What a size report shows, whatever its form: the firmware, the board's limits, a comparison, a budget."""

from collections.abc import Iterable
from dataclasses import dataclass

from tflm_forge.reports.table import TextTable
from tflm_forge.size.budget import Verdict
from tflm_forge.size.diff import Change, Diff
from tflm_forge.size.items import Item, Sizes, short_layer, sum_items
from tflm_forge.size.naming import readable_symbol
from tflm_forge.size.records import GROUPS, Group, Key, Row

NO_OWNER = {"op": "(no operator)", "layer": "(no layer)", "file": "(no file)", "symbol": "(no symbol)"}
"""What a row is called that adds up all without an owner of the kind."""

BUILD_FOLDER_PARTS = 3
"""Parts of a source's path that are shown; the folders before them are of the machine that built it."""


@dataclass(frozen=True, kw_only=True)
class RegionUse:
    """How much of the board's flash or RAM is used; limit_bytes is None when the board is not known."""

    name: str
    used_bytes: int
    limit_bytes: int | None
    growth_bytes: int | None

    @property
    def percent(self) -> float | None:
        """Used part of the region."""
        return 100 * self.used_bytes / self.limit_bytes if self.limit_bytes else None

    @property
    def free_bytes(self) -> int | None:
        """What is left; negative when the firmware is larger than the region."""
        return None if self.limit_bytes is None else self.limit_bytes - self.used_bytes

    @property
    def words(self) -> str:
        """The use in one phrase: `flash 59,704 of 1,048,576 bytes (5.7 %), +120`."""
        of = f" of {self.limit_bytes:,} bytes ({self.percent:.1f} %)" if self.limit_bytes else " bytes"
        grown = "" if self.growth_bytes is None else f", {signed(self.growth_bytes)}"
        return f"{self.name} {self.used_bytes:,}{of}{grown}"


@dataclass(frozen=True, kw_only=True)
class SizeView:
    """One size report.

    Attributes:
        title: the firmware in words ("digits.tflite on stm32f4").
        elf: path of the ELF file.
        board: name of the board whose limits are shown; empty when it is not known.
        sizes: where the bytes went.
        flash_limit_bytes: flash of the board; None when it is not known.
        ram_limit_bytes: RAM of the board; None when it is not known.
        diff: the comparison with another build, or None.
        verdict: the budget, or None when there is none.
        notes: what could not be told, a sentence each.
    """

    title: str
    elf: str
    sizes: Sizes
    board: str = ""
    flash_limit_bytes: int | None = None
    ram_limit_bytes: int | None = None
    diff: Diff | None = None
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()

    @property
    def regions(self) -> tuple[RegionUse, RegionUse]:
        """Flash and RAM."""
        total = self.diff.total if self.diff else None
        return (
            RegionUse(
                name="flash",
                used_bytes=self.sizes.flash_bytes,
                limit_bytes=self.flash_limit_bytes,
                growth_bytes=total.flash_growth_bytes if total else None,
            ),
            RegionUse(
                name="RAM",
                used_bytes=self.sizes.ram_bytes,
                limit_bytes=self.ram_limit_bytes,
                growth_bytes=total.ram_growth_bytes if total else None,
            ),
        )

    @property
    def line(self) -> str:
        """The whole report in one line, for a log."""
        words = "; ".join(region.words for region in self.regions)
        if self.verdict is None:
            return words
        over = len(self.verdict.violations)
        verdict = f"over budget in {over} place{'s' if over > 1 else ''}" if over else "within budget"
        return f"{words}; {verdict}"


def signed(number: int) -> str:
    """Return a change with its sign: `+1,204`, `-96`, `0`."""
    return f"{number:+,}" if number else "0"


def percent(part: int, whole: int) -> str:
    """Return a share in words: `17.1 %`; empty when there is none."""
    return f"{100 * part / whole:.1f} %" if part and whole else ""


def number(size: int) -> str:
    """Return a size, empty when it is zero: most cells of a table are."""
    return f"{size:,}" if size else ""


def group_rows(sizes: Sizes) -> list[tuple[Row, bool]]:
    """Return the groups in the order of their size, each operator below "operators"; the flag marks these."""
    rows: list[tuple[Row, bool]] = []
    order = {name: index for index, name in enumerate(GROUPS)}
    groups = sorted(sizes.sum_by("group"), key=lambda r: (-max(r.flash_bytes, r.ram_bytes), order.get(r.name, 99)))
    for row in groups:
        rows.append((row, False))
        if row.name == Group.OPERATORS:
            rows += [(op, True) for op in sum_items(operator_items(sizes.items), "op")]
    return rows


def operator_items(items: Iterable[Item]) -> list[Item]:
    """Return the items of the operators' code."""
    return [item for item in items if item.group == Group.OPERATORS]


def rows_by(sizes: Sizes, key: Key) -> list[Row]:
    """Return the rows of one key with names for a person: without mangling, without folders of the machine.

    What has no owner of the kind stands last, whatever its size.
    """
    rows = []
    for row in sorted(sizes.sum_by(key), key=lambda row: not row.name):
        name = row.name or NO_OWNER.get(key, "")
        if key == "symbol":
            name = readable_symbol(name)
        elif key == "file":
            name = short_path(name)
        elif key == "layer":
            name = short_layer(name)
        rows.append(Row(name=name, flash_bytes=row.flash_bytes, ram_bytes=row.ram_bytes))
    return rows


def short_path(path: str) -> str:
    """Return the end of a source's path: folders of the machine that built it tell nothing."""
    parts = path.replace("\\", "/").split("/")
    return "/".join(parts[-BUILD_FOLDER_PARTS:])


def change_table(title: str, changes: tuple[Change, ...], *, most_rows: int, what: str) -> TextTable:
    """Return one row a change, the largest effect first; the last row sums up those left out."""
    rows: list[tuple[str, ...]] = [
        (change.kind, signed(change.flash_growth_bytes), signed(change.ram_growth_bytes), change.name, _owner(change))
        for change in changes[:most_rows]
    ]
    rest = changes[most_rows:]
    if rest:
        flash, ram = sum(c.flash_growth_bytes for c in rest), sum(c.ram_growth_bytes for c in rest)
        rows.append(("", signed(flash), signed(ram), f"{len(rest):,} more", ""))
    with_owner = any(row[-1] for row in rows)
    columns = ("", "flash", "RAM", what, "of")
    return TextTable(
        title=title,
        columns=columns if with_owner else columns[:-1],
        rows=tuple(rows if with_owner else [row[:-1] for row in rows]),
        right=(1, 2),
    )


def _owner(change: Change) -> str:
    owner = change.op or change.group
    return ", ".join(part for part in (owner, short_path(change.file) if change.file else "") if part)
