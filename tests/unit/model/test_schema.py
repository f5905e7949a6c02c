"""schema.json against the PyPI package `tflite`, which flatc made from TensorFlow's schema.fbs on its own."""

import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path
from typing import Any

import flatbuffers
import pytest
import tflite

from tflm_forge.errors import UsageError
from tflm_forge.model import enum_name, enum_value, op_name, type_bits
from tflm_forge.model.make_schema import default_sources, format_schema, make_schema
from tflm_forge.model.schema import table_fields

SCHEMA = Path(inspect.getfile(make_schema)).with_name("schema.json")
SCALAR_METHODS = {
    "bool": "Bool", "i8": "Int8", "u8": "Uint8", "i16": "Int16", "u16": "Uint16", "i32": "Int32",
    "u32": "Uint32", "i64": "Int64", "u64": "Uint64", "f32": "Float32", "f64": "Float64",
}  # fmt: skip


def tflite_classes() -> dict[str, type]:
    names = [m.name for m in pkgutil.iter_modules(tflite.__path__) if m.name[0].isupper()]
    return {name: getattr(importlib.import_module(f"tflite.{name}"), name) for name in names}


CLASSES = tflite_classes()
ENUMS = sorted(name for name, cls in CLASSES.items() if not hasattr(cls, "Init"))
TABLES = sorted(name for name, cls in CLASSES.items() if hasattr(cls, "Init"))


class SlotRecorder(flatbuffers.Builder):
    """Notes which slot, type and default an Add function of the package uses."""

    def __init__(self) -> None:
        super().__init__(0)
        self.calls: list[tuple[str, int, Any]] = []

    def __getattribute__(self, name: str) -> Any:
        found = re.fullmatch(r"Prepend(\w+)Slot", name)
        if not found:
            return super().__getattribute__(name)
        return lambda slot, value, default: self.calls.append((found[1], slot, default))


def test_the_package_has_what_is_compared() -> None:
    assert len(ENUMS) >= 18
    assert len(TABLES) >= 130


@pytest.mark.parametrize("enum", ENUMS)
def test_enum_has_every_value_of_the_package(enum: str) -> None:
    values = {k: v for k, v in vars(CLASSES[enum]).items() if not k.startswith("_")}
    assert values
    assert {name: enum_value(enum, name) for name in values} == values


@pytest.mark.parametrize("table", TABLES)
def test_table_has_the_slot_type_and_default_of_every_field(table: str) -> None:
    module = importlib.import_module(f"tflite.{table}")
    fields = table_fields(table)
    adders = {n: f for n, f in vars(module).items() if n.startswith(f"{table}Add")}
    for name, add in adders.items():
        recorder = SlotRecorder()
        add(recorder, 0)
        [(method, slot, default)] = recorder.calls
        key = re.sub(r"\W", "", name.removeprefix(f"{table}Add")).lower()
        matches = [field for field_name, field in fields.items() if field_name.replace("_", "") == key]
        assert len(matches) == 1, name
        field = matches[0]
        assert field[0] == slot
        if method == "UOffsetTRelative":
            assert field[1] not in SCALAR_METHODS
        else:
            assert method == SCALAR_METHODS[field[1]]
            assert field[2] == default
    assert len(fields) >= len(adders)


def test_every_enum_field_names_an_enum_that_has_its_default() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for table, fields in schema["tables"].items():
        for name, field in fields.items():
            if len(field) > 3:
                assert field[2] in schema["enums"][field[3]].values(), f"{table}.{name}"


def test_every_options_table_of_the_unions_is_known() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for union in ("BuiltinOptions", "BuiltinOptions2"):
        for name in schema["enums"][union]:
            assert name == "NONE" or name in schema["tables"]


@pytest.mark.reference
def test_schema_json_is_what_the_command_makes() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == format_schema(make_schema(default_sources()))


def test_text_of_another_flatc_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "Odd.py"
    source.write_text(
        "class Odd(object):\n    def Init(self, buf, pos): pass\n"
        "    def Thing(self):\n        o = self._tab.Offset(4)\n        return self._tab.Whatever(o)\n"
    )
    with pytest.raises(UsageError, match="not understood"):
        make_schema([source])


def test_names_of_ops_and_types() -> None:
    assert op_name(3) == "CONV_2D"
    assert op_name(32, "SignalPCAN") == "SignalPCAN"
    assert op_name(4711) == "op code 4711"
    assert enum_name("TensorType", 99) is None
    assert type_bits("INT4") == 4
    assert type_bits("STRING") is None
