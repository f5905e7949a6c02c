"""Says where in the program an address is, in words a person can use."""

import re
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.elf.lines import find_line
from tflm_forge.elf.reading import read_elf


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in the program an address is: the function with the distance from its start, and the source line."""

    symbol: str
    offset: int
    file: str
    line: int

    @property
    def words(self) -> str:
        """The place in one phrase; empty when nothing is known."""
        function = f"{readable_name(self.symbol)}+0x{self.offset:X}" if self.symbol else ""
        line = f"{self.file}:{self.line}" if self.file else ""
        return f"{function} ({line})" if function and line else function or line


def readable_name(symbol: str) -> str:
    """Return a C++ symbol's name without its parameters: `_ZN6tflite4ConvEv` is `tflite::Conv`."""
    match = re.match(r"_ZN?K?(?=\d)", symbol)
    if match is None:
        return symbol
    parts, rest = [], symbol[match.end() :]
    while length := re.match(r"L?(\d+)", rest):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N"))


def find_place(path: Path, address: int) -> Place | None:
    """Return the function and the source line of a code address; None when it is in no code of the ELF.

    Args:
        path: the ELF file; the line needs its debug information.
        address: a program counter or return address; a Thumb bit does not matter.

    Raises:
        UsageError: as for `read_elf`.
    """
    elf, address = read_elf(path), address & ~1
    if not any(s.is_code and s.address <= address < s.end for s in elf.sections):
        return None
    functions = (s for s in elf.symbols if s.kind == "func" and s.address <= address < s.address + max(s.size_bytes, 2))
    symbol = max(functions, key=lambda s: s.address, default=None)
    file, line = find_line(elf, address)
    return Place(
        symbol=symbol.name if symbol else "", offset=address - symbol.address if symbol else 0, file=file, line=line
    )
