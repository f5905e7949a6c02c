"""Writes small .tflite models: of one operator for a kernel's test, or of a few layers for an example.

Example:
    x = TensorSpec(name="x", type="INT8", shape=(1, 4), scales=(0.1,), zero_points=(0,))
    y = TensorSpec(name="y", type="INT8", shape=(1, 4), scales=(0.1,), zero_points=(0,))
    layer = OperatorSpec(op="MyOp", inputs=(0,), outputs=(1,), custom_options=flexbuffers.Dumps({"alpha": 0.5}))
    data = write_model(tensors=(x, y), operators=(layer,), inputs=(0,), outputs=(1,))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers

from tflm_forge.errors import UsageError
from tflm_forge.model.schema import CUSTOM_CODE, IDENTIFIER, SCHEMA_VERSION, enum_value, table_fields

_ALIGNMENT = 16
_MOST_DEPRECATED_CODE = 127
"""An opcode's first field is a byte; codes above stand in a later one."""
_ADDERS = {
    "bool": ("Bool", 1), "i8": ("Int8", 1), "u8": ("Uint8", 1), "i16": ("Int16", 2), "u16": ("Uint16", 2),
    "i32": ("Int32", 4), "u32": ("Uint32", 4), "i64": ("Int64", 8), "u64": ("Uint64", 8), "f32": ("Float32", 4),
    "f64": ("Float64", 8),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """A tensor as it is to be written; `data` are the bytes of a constant."""

    name: str
    type: str
    shape: Sequence[int]
    scales: Sequence[float] = ()
    zero_points: Sequence[int] = ()
    axis: int = 0
    data: bytes = b""


@dataclass(frozen=True, kw_only=True)
class OperatorSpec:
    """An operator as it is to be written.

    Attributes:
        op: name of a BuiltinOperator, or of a custom op where the schema has no such name.
        inputs: indices of tensors.
        outputs: indices of tensors.
        version: version of the op.
        options_type: the schema's table of its options ("Conv2DOptions"); empty for none.
        options: fields of that table by the schema's names; enums by name.
        custom_options: bytes of a custom op's options.
    """

    op: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    version: int = 1
    options_type: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    custom_options: bytes = b""


def write_model(
    *,
    tensors: Sequence[TensorSpec],
    operators: Sequence[OperatorSpec],
    inputs: Sequence[int],
    outputs: Sequence[int],
    description: str = "made by forge",
) -> bytes:
    """Return the bytes of a model of one subgraph.

    Raises:
        UsageError: a type, an options' table or one of its fields is not the schema's.
    """
    return _Writer().write(tensors, operators, inputs, outputs, description)


class _Writer:
    def __init__(self) -> None:
        self._builder: Any = flatbuffers.Builder(1024)

    def write(
        self,
        tensors: Sequence[TensorSpec],
        operators: Sequence[OperatorSpec],
        inputs: Sequence[int],
        outputs: Sequence[int],
        description: str,
    ) -> bytes:
        opcodes = list(dict.fromkeys((spec.op, spec.version) for spec in operators))
        buffers = [b"", *(spec.data for spec in tensors if spec.data)]
        places = iter(range(1, len(buffers)))
        graph = self._table(
            "SubGraph",
            tensors=self._tables([self._tensor(spec, next(places) if spec.data else 0) for spec in tensors]),
            inputs=self._numbers(inputs, "i32"),
            outputs=self._numbers(outputs, "i32"),
            operators=self._tables([self._operator(s, opcodes.index((s.op, s.version))) for s in operators]),
            name=self._builder.CreateString("main"),
        )
        model = self._table(
            "Model",
            version=SCHEMA_VERSION,
            operator_codes=self._tables([self._opcode(*opcode) for opcode in opcodes]),
            subgraphs=self._tables([graph]),
            description=self._builder.CreateString(description),
            buffers=self._tables([self._table("Buffer", data=self._bytes(data)) for data in buffers]),
        )
        self._builder.Finish(model, file_identifier=IDENTIFIER)
        return bytes(self._builder.Output())

    def _table(self, table: str, /, **values: Any) -> int:
        """Write a table; None leaves a field out."""
        fields = table_fields(table)
        self._builder.StartObject(max(slot for slot, *_ in fields.values()) + 1)
        for key, value in values.items():
            if value is None:
                continue
            slot, kind = fields[key][:2]
            if kind in _ADDERS:
                # No default, so that every field is written.
                getattr(self._builder, f"Prepend{_ADDERS[kind][0]}Slot")(slot, value, None)
            else:
                self._builder.PrependUOffsetTRelativeSlot(slot, value, 0)
        return int(self._builder.EndObject())

    def _tables(self, offsets: Sequence[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _numbers(self, numbers: Sequence[Any], kind: str) -> int:
        word, size = _ADDERS[kind]
        self._builder.StartVector(size, len(numbers), size)
        for number in reversed(numbers):
            getattr(self._builder, f"Prepend{word}")(number)
        return int(self._builder.EndVector())

    def _bytes(self, data: bytes) -> int | None:
        if not data:
            return None
        builder = self._builder
        builder.StartVector(1, len(data), _ALIGNMENT)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        return int(builder.EndVector())

    def _opcode(self, op: str, version: int) -> int:
        code = enum_value("BuiltinOperator", op)
        number = CUSTOM_CODE if code is None else code
        return self._table(
            "OperatorCode",
            custom_code=self._builder.CreateString(op) if code is None else None,
            deprecated_builtin_code=min(number, _MOST_DEPRECATED_CODE),
            version=version,
            builtin_code=number,
        )

    def _tensor(self, spec: TensorSpec, buffer: int) -> int:
        quantization = None
        if spec.scales:
            quantization = self._table(
                "QuantizationParameters",
                scale=self._numbers(spec.scales, "f32"),
                zero_point=self._numbers(spec.zero_points, "i64"),
                quantized_dimension=spec.axis,
            )
        return self._table(
            "Tensor",
            shape=self._numbers(spec.shape, "i32"),
            type=_find_value("TensorType", spec.type),
            buffer=buffer,
            name=self._builder.CreateString(spec.name),
            quantization=quantization,
        )

    def _operator(self, spec: OperatorSpec, opcode: int) -> int:
        options = self._options(spec) if spec.options_type else None
        return self._table(
            "Operator",
            opcode_index=opcode,
            inputs=self._numbers(spec.inputs, "i32"),
            outputs=self._numbers(spec.outputs, "i32"),
            builtin_options_type=_find_value("BuiltinOptions", spec.options_type) if options is not None else None,
            builtin_options=options,
            custom_options=self._bytes(spec.custom_options),
        )

    def _options(self, spec: OperatorSpec) -> int:
        _find_value("BuiltinOptions", spec.options_type)
        fields = table_fields(spec.options_type)
        values = {}
        for name, value in spec.options.items():
            if name not in fields:
                raise UsageError(f"{spec.options_type} has no field {name!r}", hint=f"It has {', '.join(fields)}.")
            kind, enum = fields[name][1], fields[name][3] if len(fields[name]) > 3 else None
            number = _find_value(enum, value) if enum and isinstance(value, str) else value
            values[name] = number if kind in _ADDERS else self._numbers(value, kind.strip("[]"))
        return self._table(spec.options_type, **values)


def _find_value(enum: str, name: str) -> int:
    value = enum_value(enum, name)
    if value is None:
        raise UsageError(f"{name!r} is not a {enum} of the TFLite schema")
    return value
