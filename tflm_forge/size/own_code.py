"""What forge's own part of a firmware costs: main, self-check and link, without runtime, board and model.

Link-time optimization moves code between functions of forge and of the runtime, so symbols do not tell. Each byte of
code counts for the source file that the ELF's line table names for it. Constants count by their section in the map.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from elftools.dwarf.lineprogram import LineProgram
from elftools.elf.elffile import ELFFile

OWN_FILES = frozenset(
    f"{name}.{ending}"
    for name in (
        "crc32", "device", "frame", "inference", "interpreter", "link", "main", "message", "model_walk", "op_trace",
        "self_check", "text",
    )
    for ending in ("cc", "h")
)  # fmt: skip
"""The sources of templates/firmware that count; the others are of the board, the C library and the runtime."""

_MAP_STARTS = "Linker script and memory map"
_CONSTANTS = re.compile(r"^ \.rodata\.(\S+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)", re.MULTILINE)
_OWN_CONSTANTS = re.compile(r"^_Z\w*5forge|^main\.|^ForgeFault\.")
_OP_TABLES = re.compile(r"^_ZN5forge4kOpsE|^_Z\w*AllHooks|^str1\.")


@dataclass(frozen=True, kw_only=True)
class OwnCode:
    """Bytes in flash of what forge adds.

    Attributes:
        code: by source file; 12 bytes of it an op.
        constants: texts, hashes and tables of a fixed size, by section.
        op_tables: what grows with the number of ops, by section: versions, names, addresses. Names share a section
            with texts of the runtime, which count along.
    """

    code: Mapping[str, int] = field(hash=False)
    constants: Mapping[str, int] = field(hash=False)
    op_tables: Mapping[str, int] = field(hash=False)

    @property
    def code_bytes(self) -> int:
        """All of the code."""
        return sum(self.code.values())

    @property
    def constant_bytes(self) -> int:
        """All of the constants of a fixed size."""
        return sum(self.constants.values())

    @property
    def op_table_bytes(self) -> int:
        """All that is kept of each op."""
        return sum(self.op_tables.values())

    @property
    def total_bytes(self) -> int:
        """Everything."""
        return self.code_bytes + self.constant_bytes + self.op_table_bytes


def measure_own_code(elf: Path, link_map: Path) -> OwnCode:
    """Add up forge's own part of a firmware, from its ELF with debug information and its linker map."""
    code: Counter[str] = Counter()
    with elf.open("rb") as stream:
        for name, size in _code_by_file(ELFFile(stream)):
            code[name] += size
    constants: Counter[str] = Counter()
    op_tables: Counter[str] = Counter()
    placed = link_map.read_text(encoding="utf-8", errors="replace").partition(_MAP_STARTS)[2]
    # A long name has a line of its own.
    for name, size in _CONSTANTS.findall(re.sub(r"\n +(?=0x)", " ", placed)):
        if _OP_TABLES.match(name):
            op_tables[name] += int(size, 16)
        elif _OWN_CONSTANTS.match(name):
            constants[name] += int(size, 16)
    own = {name: size for name, size in code.items() if name in OWN_FILES}
    return OwnCode(code=own, constants=constants, op_tables=op_tables)


def _code_by_file(elf: ELFFile) -> Iterator[tuple[str, int]]:
    """Yield file name and bytes of each stretch of .text that the line table knows."""
    text = elf.get_section_by_name(".text")
    if text is None or not elf.has_dwarf_info():
        return
    places = range(text["sh_addr"], text["sh_addr"] + text["sh_size"])
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is not None:
            yield from ((name, size) for address, name, size in _stretches(program) if address in places)


def _stretches(program: LineProgram) -> Iterator[tuple[int, str, int]]:
    """Yield address, file name and bytes of each row of a line program."""
    names = [entry.name.decode(errors="replace") for entry in program.header["file_entry"]]
    first = 0 if program.header["version"] >= 5 else 1
    last: tuple[int, str] | None = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if last is not None:
            yield (*last, state.address - last[0])
        last = None if state.end_sequence else (state.address, names[state.file - first])
