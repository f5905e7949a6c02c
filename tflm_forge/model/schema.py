"""The TFLite schema as data, read from schema.json (see make_schema.py): slots of fields, names of values."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

CUSTOM_CODE = 32
"""BuiltinOperator of every custom op; its name stands in the opcode."""

SCHEMA_VERSION = 3
IDENTIFIER = b"TFL3"

_TYPE_BITS = {
    "FLOAT32": 32, "FLOAT16": 16, "INT32": 32, "UINT8": 8, "INT64": 64, "STRING": None, "BOOL": 8,
    "INT16": 16, "COMPLEX64": 64, "INT8": 8, "FLOAT64": 64, "COMPLEX128": 128, "UINT64": 64, "RESOURCE": 32,
    "VARIANT": None, "UINT32": 32, "UINT16": 16, "INT4": 4, "BFLOAT16": 16, "INT2": 2, "UINT4": 4,
    "FLOAT8_E4M3FN": 8, "FLOAT8_E5M2": 8,
}  # fmt: skip

Fields = Mapping[str, list[Any]]
"""Field name -> slot, kind, default value of a scalar, enum of an enum field."""


@functools.cache
def _schema() -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8")))


def table_fields(table: str) -> Fields:
    """Return the fields of a table of the schema."""
    return cast("Fields", _schema()["tables"][table])


@functools.cache
def _names_by_value(enum: str) -> dict[int, str]:
    names: dict[int, str] = {}
    for name, value in _schema()["enums"][enum].items():
        names.setdefault(value, name)
    return names


def enum_name(enum: str, value: int) -> str | None:
    """Return the name of an enum's value, or None when the schema has no such value."""
    return _names_by_value(enum).get(value)


def enum_names(enum: str) -> tuple[str, ...]:
    """Return the names of an enum's values, in the schema's order."""
    return tuple(_schema()["enums"][enum])


def enum_value(enum: str, name: str) -> int | None:
    """Return the value of an enum's name, or None when the schema has no such name."""
    return cast("int | None", _schema()["enums"][enum].get(name))


def op_name(builtin_code: int, custom_name: str = "") -> str:
    """Return what a person calls an op: `CONV_2D`, a custom op's own name, `op code 300` if unknown."""
    if builtin_code == CUSTOM_CODE:
        return custom_name or "CUSTOM"
    return enum_name("BuiltinOperator", builtin_code) or f"op code {builtin_code}"


def type_bits(type_name: str) -> int | None:
    """Return the bits of one element, None for a type without fixed size. A RESOURCE is a 32-bit handle."""
    return _TYPE_BITS.get(type_name)
