"""The budget of forge.toml's [size]: how much flash and RAM firmware and its parts may take and grow."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tflm_forge.config import SizeTable
from tflm_forge.errors import CheckError, UsageError
from tflm_forge.registry import unknown_name
from tflm_forge.size.diff import Change, Diff
from tflm_forge.size.items import Item, Sizes, join_files
from tflm_forge.size.records import GROUPS, Row

TOTAL = "total"
"""The key of a budget's table that limits the whole region."""

_GROUPS = tuple(str(group) for group in GROUPS)
_FLASH, _RAM = "flash", "RAM"
_MOST_CONTRIBUTORS = 5


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One limit that is not kept.

    Attributes:
        key: the key of forge.toml, as a path ("flash_max", "growth_max.operators").
        region: "flash" or "RAM".
        group: the group that is limited; empty for all of the region.
        limit_bytes: what is allowed.
        bytes: what it is.
        contributors: the largest parts of it, or of its growth, in words ("operators 24,104").
    """

    key: str
    region: str
    group: str
    limit_bytes: int
    bytes: int
    contributors: tuple[str, ...]

    @property
    def over_bytes(self) -> int:
        """How much too much it is."""
        return self.bytes - self.limit_bytes

    @property
    def words(self) -> str:
        """The violation in one sentence."""
        what = f"{self.region} of {self.group}" if self.group else self.region
        grown = "growth of " if self.key.startswith("growth_max") else ""
        parts = f" ({', '.join(self.contributors)})" if self.contributors else ""
        return (
            f"{grown}{what}: {self.bytes:,} bytes, {self.over_bytes:,} over [size] {self.key} = "
            f"{self.limit_bytes:,}{parts}"
        )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A budget that was checked: how many limits there are, and those that are not kept."""

    limits: int
    violations: tuple[Violation, ...]
    not_checked: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every limit that was checked is kept."""
        return not self.violations

    def raise_if_over(self) -> None:
        """Do nothing when the budget is kept.

        Raises:
            CheckError: it is not; every violation is a reason.
        """
        if self.violations:
            raise CheckError(
                f"the firmware is over its budget in {_count(len(self.violations), 'place')}",
                reasons=[violation.words for violation in self.violations],
                hint="Make it smaller, or raise the limit in forge.toml; `forge size --by symbol` and `--why SYMBOL` "
                "show what to look at.",
            )


def check_budget(table: SizeTable, sizes: Sizes, diff: Diff | None = None) -> Verdict | None:
    """Hold a firmware against forge.toml's [size]; None when the file sets no limit.

    Args:
        table: the table [size].
        sizes: the firmware.
        diff: its comparison with the baseline, for limits of growth; without one these are not checked.

    Raises:
        UsageError: the table names an unknown group.
    """
    violations: list[Violation] = []
    limits = 0
    for key, region, limit in (("flash_max", _FLASH, table.flash_max), ("ram_max", _RAM, table.ram_max)):
        for group, most in _limits(key, limit, (TOTAL, *_GROUPS)).items():
            limits += 1
            violations += _check_size(key, region, "" if group == TOTAL else group, most, sizes)
    growth = _limits("growth_max", table.growth_max, (TOTAL, _FLASH, _RAM.lower(), *_GROUPS))
    limits += len(growth)
    if diff is not None:
        for group, most in growth.items():
            violations += _check_growth(group, most, diff)
    if not limits:
        return None
    return Verdict(
        limits=limits,
        violations=tuple(violations),
        not_checked=tuple(f"growth_max.{group}" for group in growth) if diff is None else (),
    )


def _limits(key: str, limit: int | Mapping[str, int] | None, known: tuple[str, ...]) -> Mapping[str, int]:
    """Return the limits by name.

    Raises:
        UsageError: a name is not known.
    """
    if limit is None:
        return {}
    if isinstance(limit, int):
        return {TOTAL: limit}
    for name in limit:
        if name not in known:
            error = unknown_name("group", name, known)
            raise UsageError(f"forge.toml: [size] {key}: {error.message}", hint=error.hint)
    return limit


def _check_size(key: str, region: str, group: str, limit: int, sizes: Sizes) -> list[Violation]:
    parts: Iterable[Row | Item]
    if group:
        used = _bytes(sizes.bytes_of(group), region)
        parts = join_files(item for item in sizes.items if item.group == group)
    else:
        used = sizes.flash_bytes if region == _FLASH else sizes.ram_bytes
        parts = sizes.sum_by("group")
    if used <= limit:
        return []
    return [
        Violation(
            key=f"{key}.{group}" if group else key,
            region=region,
            group=group,
            limit_bytes=limit,
            bytes=used,
            contributors=_largest((part.name, _bytes(part, region)) for part in parts),
        )
    ]


def _check_growth(name: str, limit: int, diff: Diff) -> list[Violation]:
    """Check one limit of growth; it holds for flash and for RAM, each by itself, unless it names one of them."""
    regions = {_FLASH: (_FLASH,), _RAM.lower(): (_RAM,)}.get(name, (_FLASH, _RAM))
    group = "" if name in (TOTAL, _FLASH, _RAM.lower()) else name
    changes = [diff.total] if not group else [change for change in diff.groups if change.name == group]
    parts = [c for c in diff.symbols if not group or c.group == group]
    return [
        Violation(
            key="growth_max" if name == TOTAL else f"growth_max.{name}",
            region=region,
            group=group,
            limit_bytes=limit,
            bytes=_growth(change, region),
            contributors=_largest(((c.name, _growth(c, region)) for c in parts), sign="+"),
        )
        for change in changes
        for region in regions
        if _growth(change, region) > limit
    ]


def _bytes(part: Row | Item, region: str) -> int:
    return part.flash_bytes if region == _FLASH else part.ram_bytes


def _growth(change: Change, region: str) -> int:
    return change.flash_growth_bytes if region == _FLASH else change.ram_growth_bytes


def _largest(parts: Iterable[tuple[str, int]], sign: str = "") -> tuple[str, ...]:
    ordered = sorted(((size, name) for name, size in parts if size > 0), key=lambda part: (-part[0], part[1]))
    return tuple(f"{name} {sign}{size:,}" for size, name in ordered[:_MOST_CONTRIBUTORS])


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
