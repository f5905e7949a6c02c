"""Turns the bytes of a .tflite file into a Model, or says what is wrong with them."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tflm_forge.errors import ModelError
from tflm_forge.model.filekind import name_file_kind
from tflm_forge.model.flatbuffer import DamageError, Flatbuffer, Table
from tflm_forge.model.records import (
    Buffer,
    Metadata,
    Model,
    Opcode,
    Operator,
    Quantization,
    Signature,
    Subgraph,
    Tensor,
)
from tflm_forge.model.schema import CUSTOM_CODE, IDENTIFIER, SCHEMA_VERSION, enum_name, op_name
from tflm_forge.model.soundness import (
    check_constant,
    check_indices,
    check_opcode,
    check_quantization,
    check_shape,
    check_subgraph_calls,
    in_quotes,
)

COMPRESSION_METADATA = "COMPRESSION_METADATA"
"""Metadata of models whose constants TFLM's compression tool packed: buffers are smaller than shapes say."""

_HEADER_BYTES = 8
_DAMAGED = "The file is cut short or damaged: copy or convert it again."
_RECONVERT = "Convert the model again with a current TensorFlow (tf.lite.TFLiteConverter)."

# A buffer's `offset` counts from 2; converters write 1 as a placeholder while they lay out the file.
_FIRST_OUTSIDE_OFFSET = 2

_Part = TypeVar("_Part")


def read_model(data: bytes, *, name: str, shown: str | None = None) -> Model:
    """Read the bytes of a .tflite file.

    Args:
        data: the bytes.
        name: the model's name, that of the file.
        shown: what errors call the file; the name if left out.

    Raises:
        ModelError: the bytes are no .tflite model, or damaged.
    """
    shown = shown or name
    if not data:
        raise ModelError(f"{shown}: the file is empty", hint="Copy or convert the model again.")
    if data[4:_HEADER_BYTES] != IDENTIFIER:
        kind, remedy = name_file_kind(data)
        raise ModelError(f"{shown}: not a .tflite model: it looks like {kind}", hint=remedy)
    try:
        root = Flatbuffer(data=data).root("Model")
        version = root.scalar("version")
        if version != SCHEMA_VERSION:
            raise ModelError(
                f"{shown}: schema version {version}; TFLM runs version {SCHEMA_VERSION} only", hint=_RECONVERT
            )
        return _read_root(root, data, name)
    except DamageError as error:
        raise ModelError(f"{shown}: {error}", hint=_DAMAGED) from error


def _read_root(root: Table, data: bytes, name: str) -> Model:
    metadata_tables = root.tables("metadata")
    buffers = _each("buffer", root.tables("buffers"), lambda i, t: _read_buffer(i, t, len(data)))
    metadata = _each("metadata", metadata_tables, lambda _, t: _read_metadata(t, len(buffers)))
    opcodes = _each("opcode", root.tables("operator_codes"), lambda _, t: _read_opcode(t))
    compressed = any(item.name == COMPRESSION_METADATA for item in metadata)
    reader = _SubgraphReader(data=data, buffers=buffers, opcodes=opcodes, compressed=compressed)
    subgraphs = _each("subgraph", root.tables("subgraphs"), reader.read)
    if not subgraphs:
        raise DamageError("the model has no subgraph")
    check_subgraph_calls(subgraphs)
    signature_tables = root.tables("signature_defs")
    signatures = _each("signature", signature_tables, lambda _, t: _read_signature(t, subgraphs))
    return Model(
        name=name,
        data=data,
        sha256=hashlib.sha256(data).hexdigest(),
        schema_version=SCHEMA_VERSION,
        description=root.text("description"),
        opcodes=opcodes,
        subgraphs=subgraphs,
        buffers=buffers,
        metadata=metadata,
        signatures=signatures,
    )


def _read_buffer(index: int, table: Table, file_bytes: int) -> Buffer:
    start, size = table.span("data")
    if size:
        return Buffer(index=index, offset=start, size=size, is_outside=False)
    offset, size = table.scalar("offset"), table.scalar("size")
    if offset < _FIRST_OUTSIDE_OFFSET or size == 0:
        return Buffer(index=index, offset=0, size=0, is_outside=False)
    if offset + size > file_bytes:
        raise DamageError(f"claims {size} bytes at {offset} of a file of {file_bytes} bytes")
    return Buffer(index=index, offset=offset, size=size, is_outside=True)


def _read_metadata(table: Table, buffer_count: int) -> Metadata:
    buffer = table.scalar("buffer")
    if buffer >= buffer_count:
        raise DamageError(f"names buffer {buffer} of {buffer_count}")
    return Metadata(name=table.text("name"), buffer=buffer)


def _read_opcode(table: Table) -> Opcode:
    # The first field is a byte, 127 for all larger codes; older files lack the second: the larger one counts.
    builtin_code = max(table.scalar("deprecated_builtin_code"), table.scalar("builtin_code"))
    custom_name = table.text("custom_code") if builtin_code == CUSTOM_CODE else ""
    return Opcode(builtin_code=builtin_code, custom_name=custom_name, version=table.scalar("version"))


class _SubgraphReader:
    """Reads the subgraphs of one model, whose buffers and opcodes are known."""

    def __init__(self, *, data: bytes, buffers: Sequence[Buffer], opcodes: Sequence[Opcode], compressed: bool) -> None:
        self._data = data
        self._buffers = buffers
        self._opcodes = opcodes
        self._compressed = compressed

    def read(self, index: int, table: Table) -> Subgraph:
        """Read one subgraph."""
        tensors = _each("tensor", table.tables("tensors"), self._read_tensor)
        inputs = table.numbers("inputs")
        outputs = table.numbers("outputs")
        check_indices("input", inputs, len(tensors), optional=False)
        check_indices("output", outputs, len(tensors), optional=False)
        return Subgraph(
            index=index,
            name=table.text("name"),
            tensors=tensors,
            inputs=inputs,
            outputs=outputs,
            operators=_each("operator", table.tables("operators"), lambda i, t: self._read_operator(i, t, tensors)),
        )

    def _read_tensor(self, index: int, table: Table) -> Tensor:
        name = table.text("name")
        try:
            return self._read_named_tensor(index, name, table)
        except DamageError as error:
            raise DamageError(f"{in_quotes(name)}: {error}") from error

    def _read_named_tensor(self, index: int, name: str, table: Table) -> Tensor:
        type_code = table.scalar("type")
        type_name = enum_name("TensorType", type_code)
        if type_name is None:
            raise DamageError(f"tensor type {type_code} is not in the TFLite schema that forge knows")
        if table.scalar("external_buffer"):
            raise DamageError("its data stands in another file, which TFLM can not read")
        shape = table.numbers("shape")
        check_shape(shape, type_name)
        buffer = self._find_buffer(table.scalar("buffer"))
        tensor = Tensor(
            index=index,
            name=name,
            type=type_name,
            shape=shape,
            shape_signature=table.numbers("shape_signature"),
            quantization=_read_quantization(table.table("quantization"), shape),
            buffer=buffer.index,
            data_offset=buffer.offset,
            data_bytes=buffer.size,
            is_variable=table.scalar("is_variable"),
            is_sparse=table.table("sparsity") is not None,
        )
        check_constant(tensor, compressed=self._compressed)
        return tensor

    def _find_buffer(self, index: int) -> Buffer:
        if index >= len(self._buffers):
            raise DamageError(f"names buffer {index} of {len(self._buffers)}")
        return self._buffers[index]

    def _read_operator(self, index: int, table: Table, tensors: Sequence[Tensor]) -> Operator:
        opcode_index = table.scalar("opcode_index")
        if opcode_index >= len(self._opcodes):
            raise DamageError(f"names opcode {opcode_index} of {len(self._opcodes)}")
        opcode = self._opcodes[opcode_index]
        try:
            return self._read_operator_of(opcode, index, table, tensors)
        except DamageError as error:
            name = in_quotes(opcode.custom_name) if opcode.custom_name else opcode.name
            raise DamageError(f"{name}: {error}") from error

    def _read_operator_of(self, opcode: Opcode, index: int, table: Table, tensors: Sequence[Tensor]) -> Operator:
        check_opcode(opcode)
        inputs, outputs = table.numbers("inputs"), table.numbers("outputs")
        intermediates = table.numbers("intermediates")
        check_indices("input", inputs, len(tensors), optional=True)
        check_indices("output", outputs, len(tensors), optional=False)
        check_indices("intermediate", intermediates, len(tensors), optional=True)
        options_type, options = _read_options(table)
        return Operator(
            index=index,
            opcode_index=table.scalar("opcode_index"),
            builtin_code=opcode.builtin_code,
            custom_name=opcode.custom_name,
            version=opcode.version,
            inputs=inputs,
            outputs=outputs,
            intermediates=intermediates,
            options_type=options_type,
            options=options,
            custom_options=self._read_custom_options(table),
            label=_label_operator(index, opcode, outputs, tensors),
        )

    def _read_custom_options(self, table: Table) -> bytes:
        options = table.raw("custom_options")
        offset, size = table.scalar("large_custom_options_offset"), table.scalar("large_custom_options_size")
        if options or offset < _FIRST_OUTSIDE_OFFSET:
            return options
        if offset + size > len(self._data):
            raise DamageError(f"claims {size} bytes of options at {offset} of a file of {len(self._data)} bytes")
        table.spend(size)
        return self._data[offset : offset + size]


def _label_operator(index: int, opcode: Opcode, outputs: Sequence[int], tensors: Sequence[Tensor]) -> str:
    name = tensors[outputs[0]].name if outputs else ""
    return name or f"{op_name(opcode.builtin_code, opcode.custom_name)} (operator {index})"


def _read_options(table: Table) -> tuple[str, Mapping[str, Any]]:
    """Return the name of the options' table and its fields; nothing when the schema does not know it."""
    for field in ("builtin_options", "builtin_options2"):
        kind = table.scalar(f"{field}_type")
        enum = "BuiltinOptions" if field == "builtin_options" else "BuiltinOptions2"
        name = enum_name(enum, kind)
        if kind and name is not None:
            options = table.union(field, name)
            if options is not None:
                return name, options.decode()
    return "", {}


def _read_quantization(table: Table | None, shape: Sequence[int]) -> Quantization | None:
    if table is None:
        return None
    scales = table.numbers("scale")
    if not scales:
        return None
    quantization = Quantization(
        scales=scales, zero_points=table.numbers("zero_point"), axis=table.scalar("quantized_dimension")
    )
    check_quantization(quantization, shape)
    return quantization


def _read_signature(table: Table, subgraphs: Sequence[Subgraph]) -> Signature:
    index = table.scalar("subgraph_index")
    if index >= len(subgraphs):
        raise DamageError(f"names subgraph {index} of {len(subgraphs)}")
    count = len(subgraphs[index].tensors)
    maps: list[dict[str, int]] = []
    for side in ("inputs", "outputs"):
        entries = [(entry.text("name"), entry.scalar("tensor_index")) for entry in table.tables(side)]
        check_indices(side.removesuffix("s"), [tensor for _, tensor in entries], count, optional=False)
        maps.append(dict(entries))
    return Signature(key=table.text("signature_key"), subgraph=index, inputs=maps[0], outputs=maps[1])


def _each(what: str, tables: Sequence[Table], read: Callable[[int, Table], _Part]) -> tuple[_Part, ...]:
    """Read tables one by one; an error names the one it is in."""
    parts: list[_Part] = []
    try:
        for index, table in enumerate(tables):
            parts.append(read(index, table))
    except DamageError as error:
        raise DamageError(f"{what} {len(parts)}: {error}") from error
    return tuple(parts)
