"""What grew, shrank, came and went between two builds; symbols are matched although compilers rename them."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tflm_forge.size.items import Item, Sizes, join_files
from tflm_forge.size.records import Key

Kind = Literal["grew", "shrank", "came", "went", "same"]

_CLONE = re.compile(
    r"\.(?:constprop|isra|part|cold|lto_priv|localalias|llvm|clone)(?:\.\d+)*|(?<=[^.])\.\d+(?=\.|$)|\.lto$"
)
"""What GCC and Clang put behind the name of a copy, and the numbers that keep static names apart.

GCC, clone_function_name_numbered in cgraphclones.cc: `.constprop.0`, `.isra.1`, `.part.2`, `.cold`; lto-partition.cc:
`.lto_priv.3`; ASM_FORMAT_PRIVATE_NAME: `counter.1234`.
"""

_ANONYMOUS = re.compile(r"(\d+)_GLOBAL__N_")
"""An unnamed namespace in a mangled name; with -flto and -fno-lto it may have a hash of the file behind it."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """What one name takes in the old and in the new build.

    Attributes:
        name: what a person reads.
        group: the kind of owner it has in the new build, or had in the old one when it went.
        op: the operator it serves.
        file: its source file.
        old_flash_bytes: flash in the old build; 0 when it was not there.
        flash_bytes: flash in the new build; 0 when it went.
        old_ram_bytes: RAM in the old build.
        ram_bytes: RAM in the new build.
        is_new: it was not in the old build.
        is_gone: it is not in the new build.
    """

    name: str
    group: str = ""
    op: str = ""
    file: str = ""
    old_flash_bytes: int
    flash_bytes: int
    old_ram_bytes: int
    ram_bytes: int
    is_new: bool = False
    is_gone: bool = False

    @property
    def flash_growth_bytes(self) -> int:
        """Flash more than before; negative when it is less."""
        return self.flash_bytes - self.old_flash_bytes

    @property
    def ram_growth_bytes(self) -> int:
        """RAM more than before; negative when it is less."""
        return self.ram_bytes - self.old_ram_bytes

    @property
    def effect_bytes(self) -> int:
        """How much it matters: the larger of what changed in flash and in RAM."""
        return max(abs(self.flash_growth_bytes), abs(self.ram_growth_bytes))

    @property
    def kind(self) -> Kind:
        """What happened to it."""
        if self.is_new:
            return "came"
        if self.is_gone:
            return "went"
        growth = self.flash_growth_bytes or self.ram_growth_bytes
        return "grew" if growth > 0 else "shrank" if growth < 0 else "same"


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Two builds compared; what did not change is left out of the lists, which begin with the largest effect.

    Attributes:
        old: words for the build it is compared with.
        total: all of flash and RAM.
        groups: changes by group.
        ops: changes by operator.
        symbols: changes by symbol.
    """

    old: str
    total: Change
    groups: tuple[Change, ...]
    ops: tuple[Change, ...]
    symbols: tuple[Change, ...]


def compare_sizes(old: Sizes, new: Sizes) -> Diff:
    """Compare two builds by group, by operator and by symbol."""
    total = Change(
        name="total",
        old_flash_bytes=old.flash_bytes,
        flash_bytes=new.flash_bytes,
        old_ram_bytes=old.ram_bytes,
        ram_bytes=new.ram_bytes,
    )
    return Diff(
        old=old.name,
        total=total,
        groups=_by_field(old, new, "group"),
        ops=_by_field(old, new, "op"),
        symbols=_by_symbol(old.items, new.items),
    )


def plain_symbol(symbol: str) -> str:
    """Return a symbol's name as it is in every build: without what marks copies, and without numbers of statics.

    `_ZN6tflite12_GLOBAL__N_17PrepareEv.lto_priv.3` is `_ZN6tflite12_GLOBAL__N_17PrepareEv`, `CSWTCH.14` is `CSWTCH`.
    """
    name = _CLONE.sub("", symbol) or symbol
    for match in _ANONYMOUS.finditer(name):
        # 12_GLOBAL__N_1 has the usual length; a longer one holds a hash, and the length before it says where it ends.
        start, length = match.start() + len(match[1]), int(match[1])
        if length > len("_GLOBAL__N_1"):
            return plain_symbol(f"{name[: match.start()]}12_GLOBAL__N_1{name[start + length :]}")
    return name


def _by_field(old: Sizes, new: Sizes, key: Key) -> tuple[Change, ...]:
    before = {row.name: row for row in old.sum_by(key)}
    after = {row.name: row for row in new.sum_by(key)}
    names = (name for name in {**before, **after} if name)
    return _sort(
        Change(
            name=name,
            old_flash_bytes=before[name].flash_bytes if name in before else 0,
            flash_bytes=after[name].flash_bytes if name in after else 0,
            old_ram_bytes=before[name].ram_bytes if name in before else 0,
            ram_bytes=after[name].ram_bytes if name in after else 0,
            is_new=name not in before,
            is_gone=name not in after,
        )
        for name in names
    )


def _by_symbol(old: tuple[Item, ...], new: tuple[Item, ...]) -> tuple[Change, ...]:
    """Match symbols by name and owner first; then what is left, by name alone where that is clear.

    Kernels of different operators have static functions of the same name: the operator tells them apart.
    """
    before, after = _bundle(join_files(old), _name_and_owner), _bundle(join_files(new), _name_and_owner)
    changes = [_change(before.pop(key), after.pop(key)) for key in list(before) if key in after]
    before, after = _bundle(_flat(before), _name_only), _bundle(_flat(after), _name_only)
    for name in {**before, **after}:
        was, now = before.get(name, []), after.get(name, [])
        if len(_owners(was)) == len(_owners(now)) == 1:
            changes.append(_change(was, now))  # it serves other operators now, or was inlined elsewhere
            continue
        changes += [_change(items, []) for items in _bundle(was, _name_and_owner).values()]
        changes += [_change([], items) for items in _bundle(now, _name_and_owner).values()]
    return _sort(changes)


def _owners(items: Iterable[Item]) -> set[tuple[str, ...]]:
    return {_name_and_owner(item) for item in items}


def _name_and_owner(item: Item) -> tuple[str, ...]:
    return (*_name_only(item), item.group, item.op)


def _name_only(item: Item) -> tuple[str, ...]:
    if not item.symbol:
        return ("", item.group, item.name, item.section)
    return (plain_symbol(item.symbol), item.layer, item.part)


def _bundle(items: Iterable[Item], key_of: Callable[[Item], tuple[str, ...]]) -> dict[tuple[str, ...], list[Item]]:
    bundles: dict[tuple[str, ...], list[Item]] = defaultdict(list)
    for item in items:
        bundles[key_of(item)].append(item)
    return dict(bundles)


def _flat(bundles: dict[tuple[str, ...], list[Item]]) -> list[Item]:
    return [item for items in bundles.values() for item in items]


def _change(old: list[Item], new: list[Item]) -> Change:
    owner = max(new or old, key=lambda item: max(item.flash_bytes, item.ram_bytes))
    copies = max(len({item.symbol for item in side if item.symbol}) for side in (old, new))
    name = _CLONE.sub("", owner.name) if owner.symbol and not owner.layer and not owner.part else owner.name
    return Change(
        name=f"{name} ({copies} copies)" if copies > 1 else name,
        group=owner.group,
        op=owner.op,
        file=owner.file,
        old_flash_bytes=sum(item.flash_bytes for item in old),
        flash_bytes=sum(item.flash_bytes for item in new),
        old_ram_bytes=sum(item.ram_bytes for item in old),
        ram_bytes=sum(item.ram_bytes for item in new),
        is_new=not old,
        is_gone=not new,
    )


def _sort(changes: Iterable[Change]) -> tuple[Change, ...]:
    real = [change for change in changes if change.effect_bytes]
    return tuple(sorted(real, key=lambda change: (-change.effect_bytes, change.name)))
