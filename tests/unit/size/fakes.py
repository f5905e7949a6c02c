"""Attributions made by hand, for tests of what is done with them."""

from dataclasses import replace
from pathlib import Path

from tflm_forge.size.items import Sizes, collect_items
from tflm_forge.size.records import Attribution, Group, Piece, SectionSize

FLASH, RAM = 0x08000000, 0x20000000


def flash(
    symbol: str, size: int, group: str = Group.INTERPRETER, *, op: str = "", file: str = "", **more: str
) -> Piece:
    """Return a piece of code or constants."""
    return _piece(symbol, size, group, op=op, file=file, in_ram=False, **more)


def ram(symbol: str, size: int, group: str = Group.INTERPRETER, *, file: str = "") -> Piece:
    """Return a piece of cleared memory."""
    return _piece(symbol, size, group, op="", file=file, in_ram=True)


def _piece(symbol: str, size: int, group: str, *, op: str, file: str, in_ram: bool, **more: str) -> Piece:
    return Piece(
        address=0, size_bytes=size, section=".bss" if in_ram else ".text", in_flash=not in_ram, in_ram=in_ram,
        group=group, op=op, symbol=symbol, file=file, **more,
    )  # fmt: skip


def sizes(*pieces: Piece, name: str = "firmware") -> Sizes:
    """Return what a firmware of these pieces takes."""
    sections = []
    # A hole between pieces: none goes on where another ended, unless it is of the same symbol.
    placed, at = [], 0
    for index, piece in enumerate(pieces):
        at += 0 if index and pieces[index - 1].symbol == piece.symbol and pieces[index - 1].op == piece.op else 16
        placed.append(replace(piece, address=at))
        at += piece.size_bytes
    pieces = tuple(placed)
    for section, address in ((".text", FLASH), (".bss", RAM)):
        inside = [piece for piece in pieces if piece.section == section]
        total = sum(piece.size_bytes for piece in inside)
        in_ram = section == ".bss"
        sections.append(
            SectionSize(
                name=section, address=address, size_bytes=total, in_flash=not in_ram, in_ram=in_ram, is_code=not in_ram
            )
        )
    return collect_items(Attribution(path=Path("f.elf"), sections=tuple(sections), pieces=pieces), name)
