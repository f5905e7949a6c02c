"""Reads flatbuffer tables with every offset and length checked before it is used."""

import struct
from dataclasses import dataclass
from typing import Any

from tflm_forge.model.schema import enum_name, table_fields

# What real models need is far below these limits. A file that shares its tables and vectors a million times,
# so that reading it would take minutes or gigabytes, ends here within a second.
MAX_TABLES = 20_000
MAX_VECTOR_BYTES = 8 << 20

_SCALARS = {
    kind: struct.Struct(f"<{code}")
    for kind, code in (
        ("bool", "?"), ("i8", "b"), ("u8", "B"), ("i16", "h"), ("u16", "H"), ("i32", "i"), ("u32", "I"),
        ("i64", "q"), ("u64", "Q"), ("f32", "f"), ("f64", "d"),
    )
}  # fmt: skip
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_VTABLE_HEAD = struct.Struct("<HH")


class DamageError(Exception):
    """The bytes are no flatbuffer of this schema; the text says what is wrong."""


@dataclass(kw_only=True)
class Flatbuffer:
    """The bytes of one file, and how much of them may still be read."""

    data: bytes
    tables_left: int = MAX_TABLES
    vector_bytes_left: int = MAX_VECTOR_BYTES

    def root(self, table: str) -> "Table":
        """Return the root table.

        Raises:
            DamageError: its offset leads out of the file.
        """
        return Table(self, table, self.follow(0))

    def read(self, format_: struct.Struct, position: int) -> Any:
        """Return what is at a position: one scalar, or a tuple of several.

        Raises:
            DamageError: it is not inside the file.
        """
        if position < 0 or position + format_.size > len(self.data):
            raise DamageError(f"an offset leads to byte {position} of a file of {len(self.data)} bytes")
        values = format_.unpack_from(self.data, position)
        return values if len(values) > 1 else values[0]

    def follow(self, position: int) -> int:
        """Return where the offset at a position leads.

        Raises:
            DamageError: the offset is not inside the file, or is not aligned.
        """
        if position % 4:
            raise DamageError(f"the offset at byte {position} is not aligned")
        return position + int(self.read(_U32, position))

    def span(self, position: int, size: int) -> tuple[int, int]:
        """Return start and element count of the vector at a position, whose elements have a size in bytes.

        Raises:
            DamageError: the vector is not inside the file, or is not aligned.
        """
        if position % 4:
            raise DamageError(f"the vector at byte {position} is not aligned")
        count = int(self.read(_U32, position))
        if count * size > len(self.data) - position - 4:
            raise DamageError(
                f"a vector at byte {position} claims {count} elements of {size} bytes, beyond the file's end"
            )
        return position + 4, count

    def spend(self, size: int) -> None:
        """Count bytes that are copied out of the file.

        Raises:
            DamageError: it is more than any real model needs.
        """
        self.vector_bytes_left -= size
        if self.vector_bytes_left < 0:
            raise DamageError(f"names, shapes and options take over {MAX_VECTOR_BYTES >> 20} MiB")


class Table:
    """One table: fields are read by name, as the schema has them, when they are asked for."""

    __slots__ = ("_fields", "_file", "_inline", "_position", "_slots", "_vtable")

    def __init__(self, file: Flatbuffer, table: str, position: int) -> None:
        if position % 4:
            raise DamageError(f"the table {table} at byte {position} is not aligned")
        file.tables_left -= 1
        if file.tables_left < 0:
            raise DamageError(f"the model has over {MAX_TABLES} parts")
        vtable = position - file.read(_I32, position)
        if vtable % 2:
            raise DamageError(f"the vtable at byte {vtable} is not aligned")
        vtable_bytes, inline_bytes = file.read(_VTABLE_HEAD, vtable)
        if vtable_bytes < 4 or vtable_bytes % 2 or vtable + vtable_bytes > len(file.data):
            raise DamageError(f"the vtable at byte {vtable} claims {vtable_bytes} bytes")
        if inline_bytes < 4 or position + inline_bytes > len(file.data):
            raise DamageError(f"the table {table} at byte {position} claims {inline_bytes} bytes")
        self._file = file
        self._fields = table_fields(table)
        self._position = position
        self._vtable = vtable
        self._slots = (vtable_bytes - 4) // 2
        self._inline = inline_bytes

    def scalar(self, name: str) -> Any:
        """Return a number or bool, or its default when the table does not have it."""
        slot, kind, default = self._fields[name][:3]
        form = _SCALARS[kind]
        position = self._find(name, slot, form.size)
        return default if position is None else form.unpack_from(self._file.data, position)[0]

    def enum(self, name: str) -> str | int:
        """Return the name of an enum field's value, or the number when the schema has no such value."""
        value: int = self.scalar(name)
        known = enum_name(self._fields[name][3], value)
        return value if known is None else known

    def text(self, name: str) -> str:
        """Return a string, bytes that are no UTF-8 replaced; empty when the table does not have it."""
        return self.raw(name).decode("utf-8", "replace")

    def raw(self, name: str) -> bytes:
        """Return a copy of the bytes of a string or byte vector, empty when the table does not have it."""
        start, count = self.span(name)
        self._file.spend(count)
        return self._file.data[start : start + count]

    def span(self, name: str, *, size: int = 1) -> tuple[int, int]:
        """Return start and element count of a vector, unread; (0, 0) when the table does not have it."""
        position = self._find(name, self._fields[name][0], 4)
        return (0, 0) if position is None else self._file.span(self._file.follow(position), size)

    def numbers(self, name: str) -> tuple[Any, ...]:
        """Return a vector of numbers, empty when the table does not have it."""
        form = _SCALARS[self._fields[name][1][1:-1]]
        start, count = self.span(name, size=form.size)
        if count == 0:
            return ()
        self._file.spend(count * 8)
        return struct.unpack_from(f"<{count}{form.format[1:]}", self._file.data, start)

    def table(self, name: str) -> "Table | None":
        """Return a table, or None when this table does not have it."""
        kind = self._fields[name][1]
        return self.union(name, kind.partition(":")[2])

    def union(self, name: str, table: str) -> "Table | None":
        """Return the table of a union field whose type field names it, or None when it is not there."""
        position = self._find(name, self._fields[name][0], 4)
        return None if position is None else Table(self._file, table, self._file.follow(position))

    def tables(self, name: str) -> "list[Table]":
        """Return a vector of tables, empty when this table does not have it."""
        table = self._fields[name][1][1:-1].partition(":")[2]
        start, count = self.span(name, size=4)
        if count > self._file.tables_left:
            raise DamageError(f"{name} claims {count} entries, together over {MAX_TABLES} parts")
        return [Table(self._file, table, self._file.follow(start + 4 * i)) for i in range(count)]

    def spend(self, size: int) -> None:
        """Count bytes that are copied from outside the flatbuffer."""
        self._file.spend(size)

    def decode(self) -> dict[str, Any]:
        """Return all fields that are numbers, enums, strings or vectors of numbers, by name."""
        values: dict[str, Any] = {}
        for name, (_, kind, *rest) in self._fields.items():
            if kind in _SCALARS:
                values[name] = self.enum(name) if len(rest) > 1 else self.scalar(name)
            elif kind == "string":
                values[name] = self.text(name)
            elif kind[1:-1] in _SCALARS:
                values[name] = self.numbers(name)
        return values

    def _find(self, name: str, slot: int, size: int) -> int | None:
        if slot >= self._slots:
            return None
        offset: int = _U16.unpack_from(self._file.data, self._vtable + 4 + 2 * slot)[0]
        if offset == 0:
            return None
        if offset < 4 or offset + size > self._inline:
            raise DamageError(f"the field {name} of the table at byte {self._position} lies outside the table")
        return self._position + offset
