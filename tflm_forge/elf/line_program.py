"""Decodes the line programs of DWARF, versions 2 to 5: one unit's tables of files, and its rows.

Format: DWARF Debugging Information Format, version 5, section 6.2. Everything is checked against the unit's bounds.
"""

import struct
from collections.abc import Iterator

from tflm_forge.elf.records import Elf

MAX_ROWS = 2_000_000
"""Rows that are decoded at most; 10 MB of debug information has some 200,000."""

MAX_STRETCHES = 200_000
"""Rows that are kept at most."""

_MAX_FILES = 100_000
_MAX_PATH_BYTES = 1024

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_PATH, _DIRECTORY = 1, 2
_BLOCK, _DATA1, _DATA2, _DATA4, _DATA8, _DATA16 = 0x09, 0x0B, 0x05, 0x06, 0x07, 0x1E
_STRING, _STRP, _UDATA, _LINE_STRP = 0x08, 0x0E, 0x0F, 0x1F
_FIXED = {_DATA1: 1, _DATA2: 2, _DATA4: 4, _DATA8: 8, _DATA16: 16}

Row = tuple[int, int, int]
"""Address, number of the file (-1 ends a sequence), line."""


class DamageError(Exception):
    """A unit says what can not be."""


def read_units(elf: Elf) -> Iterator["Unit"]:
    """Yield the units of an ELF's line table; what each holds is checked when it is decoded."""
    data = bytes(elf.debug_bytes(".debug_line"))
    strings = (elf.debug_bytes(".debug_line_str"), elf.debug_bytes(".debug_str"))
    at = 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        offset_bytes, start = 4, at + 4
        if length == 0xFFFFFFFF and at + 12 <= len(data):
            (length,) = struct.unpack_from("<Q", data, at + 4)
            offset_bytes, start = 8, at + 12
        if start + length > len(data):
            length = len(data) - start
        yield Unit(data, start, start + length, offset_bytes, strings)
        at = start + length


class Unit:
    """One unit's line program."""

    def __init__(
        self, data: bytes, start: int, end: int, offset_bytes: int, strings: tuple[memoryview, memoryview]
    ) -> None:
        self.rows = 0
        self._data, self._at, self._end = data, start, end
        self._offset_bytes = offset_bytes
        self._strings = strings
        self._directories: list[tuple[memoryview, int]] = []
        self._files: list[tuple[memoryview, int, int]] = []
        self._first = 1
        self._paths: dict[int, str] = {}

    def path(self, file: int) -> str:
        """Return the path of a file number, its folder before it; empty for a number that the unit does not list."""
        if file not in self._paths:
            self._paths[file] = self._join(file - self._first)
        return self._paths[file]

    def _join(self, index: int) -> str:
        if not 0 <= index < len(self._files):
            return ""
        view, at, directory = self._files[index]
        name = _text(view, at)
        directory -= self._first
        if name.startswith("/") or not 0 <= directory < len(self._directories):
            return name
        return f"{_text(*self._directories[directory])}/{name}"

    def decode(self, limit: int, *, every_line: bool) -> list[Row]:
        """Run the line program.

        Args:
            limit: how many rows to decode at most.
            every_line: keep a row for each change of the line too, not of the file only.

        Raises:
            DamageError: it leaves its unit.
        """
        try:
            program, settings = self._read_header()
            return self._run(program, settings, limit, every_line=every_line)
        except (struct.error, IndexError) as error:
            raise DamageError from error

    def _number(self, size: int) -> int:
        if self._at + size > self._end:
            raise DamageError
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "little")

    def _leb(self) -> int:
        value, self._at = _read_leb(self._data, self._at, self._end)
        return value

    def _read_header(self) -> tuple[int, tuple[int, int, int, int, bytes]]:
        version = self._number(2)
        if not 2 <= version <= 5:
            raise DamageError
        if version == 5:
            self._number(2)
            self._first = 0
        length = self._number(self._offset_bytes)
        program = self._at + length
        step = self._number(1)
        if version >= 4:
            self._number(1)
        self._number(1)
        line_base = self._number(1)
        line_range, opcode_base = self._number(1), self._number(1)
        if program > self._end or not line_range or not opcode_base:
            raise DamageError
        lengths = self._data[self._at : self._at + opcode_base - 1]
        self._at += opcode_base - 1
        whole, self._end = self._end, program
        if version == 5:
            self._directories = [(view, at) for view, at, _ in self._read_entries()]
            self._files = self._read_entries()
        else:
            self._read_old_entries()
        self._end = whole
        return program, (step, line_base - 256 if line_base > 127 else line_base, line_range, opcode_base, lengths)

    def _read_entries(self) -> list[tuple[memoryview, int, int]]:
        """Read a table of version 5: a format, then as many entries of it as it says."""
        formats = [(self._leb(), self._leb()) for _ in range(self._number(1))]
        count = self._leb()
        if count > min(_MAX_FILES, self._end - self._at if formats else 0):
            raise DamageError
        entries = []
        for _ in range(count):
            place, directory = (memoryview(b""), 0), 0
            for content, form in formats:
                value = self._read_form(form)
                if content == _PATH and isinstance(value, tuple):
                    place = value
                elif content == _DIRECTORY and isinstance(value, int):
                    directory = value
            entries.append((*place, directory))
        return entries

    def _read_form(self, form: int) -> int | tuple[memoryview, int]:
        if form == _STRING:
            return self._skip_text()
        if form in (_LINE_STRP, _STRP):
            return self._strings[form == _STRP], self._number(self._offset_bytes)
        if form == _UDATA:
            return self._leb()
        if form in _FIXED:
            return self._number(_FIXED[form])
        if form == _BLOCK:
            self._number(self._leb())
            return 0
        raise DamageError

    def _skip_text(self) -> tuple[memoryview, int]:
        start = self._at
        end = self._data.find(b"\0", start, self._end)
        if end < 0:
            raise DamageError
        self._at = end + 1
        return memoryview(self._data), start

    def _read_old_entries(self) -> None:
        """Read the tables of versions 2 to 4: texts up to an empty one, files with three numbers each."""
        while self._data[self._at]:
            self._directories.append(self._skip_text())
        self._at += 1
        while self._data[self._at]:
            place = self._skip_text()
            directory = self._leb()
            self._leb()
            self._leb()
            self._files.append((*place, directory))
        if len(self._files) + len(self._directories) > _MAX_FILES:
            raise DamageError

    def _run(self, at: int, settings: tuple[int, int, int, int, bytes], limit: int, *, every_line: bool) -> list[Row]:
        step, line_base, line_range, base, lengths = settings
        data, end = self._data, self._end
        advance = [(op - base) // line_range * step for op in range(256)]
        line_advance = [line_base + (op - base) % line_range for op in range(256)]
        rows: list[Row] = []
        address, file, line, kept, count = 0, 1, 1, -1, 0
        while at < end and count < limit:
            op = data[at]
            at += 1
            if op >= base:
                address += advance[op]
                line += line_advance[op]
            elif op == 0:
                length, at = _read_leb(data, at, end)
                if length == 0:
                    continue
                kind, body, at = data[at], at + 1, at + length
                if at > end:
                    raise DamageError
                if kind == _SET_ADDRESS:
                    address = int.from_bytes(data[body : min(at, body + 8)], "little")
                elif kind == _END_SEQUENCE:
                    rows.append((address, -1, line))
                    address, file, line, kept = 0, 1, 1, -1
                    count += 1
                continue
            elif op == _COPY:
                pass
            elif op == _CONST_ADD_PC:
                address += advance[255]
                continue
            elif op == _FIXED_ADVANCE_PC:
                address += int.from_bytes(data[at : at + 2], "little")
                at += 2
                continue
            elif op == _ADVANCE_LINE:
                line_step, at = _read_leb(data, at, end, signed=True)
                line += line_step
                continue
            elif op == _ADVANCE_PC:
                address_step, at = _read_leb(data, at, end)
                address += address_step * step
                continue
            elif op == _SET_FILE:
                file, at = _read_leb(data, at, end)
                continue
            else:
                for _ in range(lengths[op - 1]):
                    _, at = _read_leb(data, at, end)
                continue
            count += 1
            if (every_line or file != kept) and len(rows) < MAX_STRETCHES:
                rows.append((address, file, line))
                kept = file
        self.rows = count
        return rows


def _read_leb(data: bytes, at: int, end: int, *, signed: bool = False) -> tuple[int, int]:
    """Read a LEB128 number of at most 64 bits; return it and where it ends."""
    value = shift = 0
    while True:
        if at >= end or shift > 63:
            raise DamageError
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value - (1 << shift) if signed and byte & 64 else value), at


def _text(view: memoryview, at: int) -> str:
    piece = bytes(view[at : at + _MAX_PATH_BYTES])
    return piece.partition(b"\0")[0].decode(errors="replace")
