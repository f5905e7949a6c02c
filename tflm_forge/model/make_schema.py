"""Makes schema.json from the Python text that the flatbuffers compiler wrote for the TFLite schema.

For developers, when the TFLite schema grows; forge itself reads only schema.json:

    python -m tflm_forge.model.make_schema

reads `schema_py_generated.py` of the installed `tflite-micro` package: the schema that TFLM is built with.
A file or a folder of generated modules, such as that of the `tflite` package, may be given instead.
The text is only read, never imported, so the package's own dependencies are not needed.
"""

import ast
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

from tflm_forge.errors import UsageError

_DEFAULT_PACKAGE = "tflite_micro"
_DEFAULT_FILE = "tensorflow/lite/micro/python/schema_py_generated.py"

_SCALARS = {
    "Bool": "bool", "Int8": "i8", "Uint8": "u8", "Int16": "i16", "Uint16": "u16", "Int32": "i32",
    "Uint32": "u32", "Int64": "i64", "Uint64": "u64", "Float32": "f32", "Float64": "f64",
}  # fmt: skip

# flatc's Python text does not say which field has which enum: these are the fields, by name, and where a name
# has several meanings by table and name. Source: tensorflow/compiler/mlir/lite/schema/schema.fbs.
_ENUM_FIELDS = {
    "padding": "Padding",
    "fused_activation_function": "ActivationFunctionType",
    "weights_format": "FullyConnectedOptionsWeightsFormat",
    "kernel_type": "LSTMKernelType",
    "combiner": "CombinerType",
    "quantized_bias_type": "TensorType",
    "in_data_type": "TensorType",
    "out_data_type": "TensorType",
    "output_type": "TensorType",
    "out_type": "TensorType",
    "idx_out_type": "TensorType",
    "reduce_function": "ReduceWindowFunction",
    "LSHProjectionOptions.type": "LSHProjectionType",
    "MirrorPadOptions.mode": "MirrorPadMode",
    "StablehloRngBitGeneratorOptions.algorithm": "RngAlgorithm",
    "StablehloCompareOptions.comparison_direction": "StablehloComparisonDirection",
    "StablehloCompareOptions.compare_type": "StablehloComparisonType",
    "Tensor.type": "TensorType",
    "VariantSubType.type": "TensorType",
}

# Parts of generated text, not of the schema.
_NOT_FIELDS = re.compile(r"^(GetRootAs\w*|Init|\w+BufferHasIdentifier|\w+AsNumpy|\w+Length|\w+IsNone|__init__)$")


def snake_case(name: str) -> str:
    """Return the schema's name of a field from flatc's Python name, as in `DilationWFactor`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def read_classes(sources: list[Path]) -> dict[str, ast.ClassDef]:
    """Return the classes that generated modules define, by name."""
    classes: dict[str, ast.ClassDef] = {}
    for source in sources:
        for node in ast.parse(source.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] = node
    return classes


def read_enum(node: ast.ClassDef) -> dict[str, int] | None:
    """Return an enum's values by name, or None when the class is no enum."""
    values: dict[str, int] = {}
    for item in node.body:
        if not (isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)):
            return None
        if not (isinstance(item.value, ast.Constant) and isinstance(item.value.value, int)):
            return None
        values[item.targets[0].id] = item.value.value
    return values or None


def read_fields(table: str, node: ast.ClassDef) -> dict[str, list[Any]]:
    """Return a table's fields by name: slot, kind, default value of a scalar, enum of an enum field."""
    fields: dict[str, list[Any]] = {}
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or _NOT_FIELDS.match(method.name):
            continue
        text = ast.unparse(method)
        offset = re.search(r"\._tab\.Offset\((\d+)\)", text)
        if offset is None:
            continue
        name = snake_case(method.name)
        field: list[Any] = [(int(offset[1]) - 4) // 2, field_kind(text)]
        if field[1] in _SCALARS.values():
            field.append(ast.literal_eval(text.rsplit("return ", 1)[1].strip()))
            enum = _ENUM_FIELDS.get(f"{table}.{name}") or _ENUM_FIELDS.get(name)
            if enum is not None:
                field.append(enum)
        fields[name] = field
    return fields


def field_kind(text: str) -> str:
    """Return a field's kind from its getter: `i32`, `string`, `union`, `table:X`, or one in brackets."""
    is_vector = "._tab.Vector(" in text
    if "._tab.Union(" in text:
        kind = "union"
    elif "._tab.String(" in text:
        kind = "string"
    elif made := re.search(r"obj = (\w+)\(\)", text):
        kind = f"table:{made[1]}"
    elif got := re.search(r"\._tab\.Get\(flatbuffers\.number_types\.(\w+)Flags", text):
        kind = _SCALARS[got[1]]
    else:
        raise UsageError(
            f"a getter that is not understood:\n{text}",
            hint="flatc writes other text now: mend make_schema.py.",
        )
    return f"[{kind}]" if is_vector else kind


def make_schema(sources: list[Path]) -> dict[str, Any]:
    """Return the schema's enums and tables, read from flatc's Python text.

    Args:
        sources: the generated modules.

    Returns:
        `{"enums": {enum: {name: value}}, "tables": {table: {field: [slot, kind, default, enum]}}}`
    """
    enums: dict[str, dict[str, int]] = {}
    tables: dict[str, dict[str, list[Any]]] = {}
    for name, node in sorted(read_classes(sources).items()):
        values = read_enum(node)
        if values is not None:
            enums[name] = values
        elif any(isinstance(item, ast.FunctionDef) and item.name == "Init" for item in node.body):
            tables[name] = read_fields(name, node)
    return {"enums": enums, "tables": tables}


def format_schema(schema: dict[str, Any]) -> str:
    """Return the schema as JSON with one line per enum and table, so that a difference is read easily."""
    sections = []
    for section in ("enums", "tables"):
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in schema[section].items()]
        sections.append(f'"{section}": {{\n' + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def default_sources() -> list[Path]:
    """Return the generated module of the installed tflite-micro package."""
    spec = importlib.util.find_spec(_DEFAULT_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("the package tflite-micro is not installed", hint="Install it, or name a file or folder.")
    return [Path(spec.submodule_search_locations[0]) / _DEFAULT_FILE]


def main() -> None:
    """Write schema.json beside this module."""
    given = [Path(argument) for argument in sys.argv[1:]]
    sources = [file for path in given for file in (sorted(path.glob("*.py")) if path.is_dir() else [path])]
    text = format_schema(make_schema(sources or default_sources()))
    Path(__file__).with_name("schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
