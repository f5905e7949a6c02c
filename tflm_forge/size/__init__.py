"""ELF -> SizeReport: where flash and RAM went. Pure: reads an Elf, returns values."""

from collections.abc import Iterable
from dataclasses import dataclass

from tflm_forge.elf import Elf, Section, Symbol

MODEL_SYMBOL = "g_model_data"
"""The first model; further ones have a number behind it, and the lengths of all end in _len."""

_ARENA_SECTION = ".forge_arena"
_STACK_SECTION = ".stack"


@dataclass(frozen=True, kw_only=True)
class SizeReport:
    """Bytes of a firmware; flash_bytes and ram_bytes equal the sums of the ELF's allocated sections.

    Attributes:
        flash_bytes: everything the flash holds, with the initial values of .data.
        model_bytes: the model arrays; 0 when the firmware has none.
        code_bytes: instructions (executable sections) without the model.
        constant_bytes: all else in flash without the model.
        ram_bytes: .data, .bss, arena, stack and whatever else is writable.
        arena_bytes: the tensor arena.
        stack_bytes: the stack that the linker script sets aside.
        sections: the allocated sections in address order.
        largest: the largest symbols in flash but for the model.
    """

    flash_bytes: int
    model_bytes: int
    code_bytes: int
    constant_bytes: int
    ram_bytes: int
    arena_bytes: int
    stack_bytes: int
    sections: tuple[Section, ...]
    largest: tuple[Symbol, ...]

    @property
    def without_model_bytes(self) -> int:
        """Flash without the model: what the runtime, the link and the board cost."""
        return self.flash_bytes - self.model_bytes


def measure_size(elf: Elf, *, top: int = 15) -> SizeReport:
    """Add up an ELF's allocated sections.

    A section counts in flash when the file holds its bytes, and in RAM when it is writable; .data counts in both.
    A function that link-time optimization moved counts under the name the linker gave it.
    """
    flash = [section for section in elf.sections if section.has_bytes]
    ram = [section for section in elf.sections if section.is_writable]
    model = elf.find_symbol(MODEL_SYMBOL)
    model_bytes = sum(symbol.size_bytes for symbol in elf.symbols if _is_model(symbol))
    flash_bytes = _sum(flash)
    code = _sum(section for section in flash if section.is_code) - (model_bytes if _is_in_code(flash, model) else 0)
    return SizeReport(
        flash_bytes=flash_bytes,
        model_bytes=model_bytes,
        code_bytes=code,
        constant_bytes=flash_bytes - model_bytes - code,
        ram_bytes=_sum(ram),
        arena_bytes=_sum(section for section in ram if section.name == _ARENA_SECTION),
        stack_bytes=_sum(section for section in ram if section.name == _STACK_SECTION),
        sections=elf.sections,
        largest=_largest(elf.symbols, flash, top),
    )


def _sum(sections: Iterable[Section]) -> int:
    return sum(section.size_bytes for section in sections)


def _is_model(symbol: Symbol) -> bool:
    return symbol.name.startswith(MODEL_SYMBOL) and not symbol.name.endswith("_len")


def _is_in_code(flash: Iterable[Section], symbol: Symbol | None) -> bool:
    return symbol is not None and any(section.is_code and _holds(section, symbol) for section in flash)


def _holds(section: Section, symbol: Symbol) -> bool:
    return section.address <= symbol.address < section.address + section.size_bytes


def _largest(symbols: Iterable[Symbol], flash: Iterable[Section], top: int) -> tuple[Symbol, ...]:
    places = list(flash)
    found = {
        (symbol.address, symbol.size_bytes): symbol
        for symbol in symbols
        if symbol.size_bytes and not _is_model(symbol) and any(_holds(place, symbol) for place in places)
    }
    return tuple(sorted(found.values(), key=lambda symbol: (-symbol.size_bytes, symbol.name))[:top])
