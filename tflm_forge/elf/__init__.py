"""Reads ELF files of 32-bit cores: sections, symbols, line tables. The only place that knows the formats.

It decodes the few structures it needs itself, within strict bounds: a library for all of ELF and DWARF takes longer
to import than a report may take, and follows whatever a damaged file says.
"""

from tflm_forge.elf.lines import LineTable, Stretch, find_line, read_lines
from tflm_forge.elf.places import Place, find_place, readable_name
from tflm_forge.elf.reading import FACTS_SECTION, read_elf
from tflm_forge.elf.records import Elf, Machine, Section, Symbol

__all__ = [
    "FACTS_SECTION",
    "Elf",
    "LineTable",
    "Machine",
    "Place",
    "Section",
    "Stretch",
    "Symbol",
    "find_line",
    "find_place",
    "read_elf",
    "read_lines",
    "readable_name",
]
