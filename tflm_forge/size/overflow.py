"""What fills a firmware that did not fit: the linker leaves no ELF then, but it has written its map.

The map places every input section, beyond the end of the region as well. It costs nothing to read; another link with
larger regions would take as long as the first. Its input sections are named after functions and objects
(-ffunction-sections -fdata-sections), so they stand for symbols; there is no line table, so inlined code counts for
the function that it was inlined into.
"""

import re
from collections import Counter
from pathlib import Path

from tflm_forge.board import Board
from tflm_forge.elf import Elf, LineTable, Machine, Section, Symbol
from tflm_forge.model import Model
from tflm_forge.size.attribute import attribute_linked
from tflm_forge.size.link_map import MAX_BYTES, InputSection, LinkMap, read_link_map
from tflm_forge.size.records import Attribution, Group

_STARTS = "Linker script and memory map"
_OUTPUT = re.compile(r"^(\.[^\s(]+)(?:\n)?[ \t]+0x([0-9a-f]+)[ \t]+0x([0-9a-f]+)", re.MULTILINE)
_PREFIX = re.compile(r"\.(text|rodata|data|bss)\.(startup\.|unlikely\.|hot\.)?(?!str\d)(?P<name>.+)")
_INITIALIZED = ".data"
_NOT_LOADED = (".debug", ".comment", ".ARM.attributes", ".stab", ".note", ".gnu")
"""The linker places these at 0, where the flash of some boards begins."""

_MODEL_SECTION = ".forge_model"
_CODE_SECTION = ".text"
_MOST_GROUPS, _MOST_OPS = 6, 4


def attribute_overflow(link_map: Path, board: Board, model: Model) -> Attribution | None:
    """Say whose the bytes are of a link that failed because a region overflowed.

    Args:
        link_map: the map that the linker wrote.
        board: the board whose linker script was used.
        model: the first model of the firmware.

    Returns:
        None when there is no such map: contributors are then not known.
    """
    try:
        if link_map.stat().st_size > MAX_BYTES:
            return None
        text = link_map.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    sections = _read_sections(text.partition(_STARTS)[2], board, len(model.data))
    if not sections:
        return None
    placed = read_link_map(link_map, sections)
    symbols = tuple(symbol for part in placed.inputs if (symbol := _symbol(part)))
    elf = Elf(
        path=link_map.with_suffix(".elf"),
        data=model.data,
        machine=Machine.ARM,
        entry=0,
        sections=sections,
        symbols=symbols,
    )
    inputs = LinkMap(inputs=placed.inputs)
    return attribute_linked(elf, LineTable(stretches=()), inputs, model=model)


def words_of_largest(attribution: Attribution, kind: str) -> str:
    """Return the groups that take most of "flash" or "ram", operators by name: `operators 25,030 (CONV_2D 4,820)`."""
    groups: Counter[str] = Counter()
    ops: Counter[str] = Counter()
    for piece in attribution.pieces:
        if piece.in_flash if kind == "flash" else piece.in_ram:
            groups[piece.group] += piece.size_bytes
            if piece.group == Group.OPERATORS and piece.op:
                ops[piece.op] += piece.size_bytes
    inside = ", ".join(f"{name.replace(', ', '+')} {size:,}" for name, size in ops.most_common(_MOST_OPS))
    return "; ".join(
        f"{name} {size:,}" + (f" ({inside})" if name == Group.OPERATORS and inside else "")
        for name, size in groups.most_common(_MOST_GROUPS)
    )


def _read_sections(placed: str, board: Board, model_bytes: int) -> tuple[Section, ...]:
    """Return the output sections of flash and RAM; the model's bytes are the only ones that are known."""
    found = []
    for name, address_text, size_text in _OUTPUT.findall(placed):
        address, size = int(address_text, 16), int(size_text, 16)
        in_flash, in_ram = (_follows(address, region.origin, board) for region in (board.flash, board.ram))
        if not size or name.startswith(_NOT_LOADED) or not (in_flash or in_ram):
            continue
        found.append(
            Section(
                name=name,
                address=address,
                size_bytes=size,
                offset=0 if name == _MODEL_SECTION else model_bytes,
                is_writable=in_ram,
                is_code=name == _CODE_SECTION,
                has_bytes=in_flash or name == _INITIALIZED,
            )
        )
    return tuple(sorted(found, key=lambda section: (section.address, section.name)))


def _follows(address: int, origin: int, board: Board) -> bool:
    """Whether an address belongs to the region that starts at an origin; one that is too large runs on behind it."""
    return origin == max((r.origin for r in board.regions if r.origin <= address), default=None)


def _symbol(part: InputSection) -> Symbol | None:
    match = _PREFIX.fullmatch(part.name)
    if match is None:
        return None
    kind = "func" if part.name.startswith(".text") else "object"
    return Symbol(name=match["name"], address=part.start, size_bytes=part.end - part.start, kind=kind)
