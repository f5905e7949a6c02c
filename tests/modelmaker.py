"""Makes small .tflite models for tests, with the packages `flatbuffers` and `tflite` and nothing of forge.

    maker = ModelMaker()
    x = maker.tensor("x", [1, 4], "INT8", scale=0.5, zero_point=-1)
    w = maker.tensor("w", [2, 4], "INT8", scale=0.1, data=np.ones((2, 4), np.int8))
    y = maker.tensor("y", [1, 2], "INT8", scale=0.5)
    options = "FullyConnectedOptions", {"keep_num_dims": True}
    maker.operator("FULLY_CONNECTED", [x, w, -1], [y], options=options, version=4)
    maker.subgraph(inputs=[x], outputs=[y])
    data = maker.finish()

Tensors and operators belong to the subgraph that the next `subgraph()` call closes. Options are named as in
the schema; an enum is given by name ("SAME") or number. What is wrong is written as it stands: tests need bad
models.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

_DTYPES = {
    "FLOAT32": np.float32, "FLOAT16": np.float16, "INT32": np.int32, "UINT8": np.uint8, "INT64": np.int64,
    "BOOL": np.bool_, "INT16": np.int16, "INT8": np.int8, "FLOAT64": np.float64, "UINT64": np.uint64,
    "UINT32": np.uint32, "UINT16": np.uint16,
}  # fmt: skip

_OPTION_ENUMS = (
    "Padding", "ActivationFunctionType", "TensorType", "FullyConnectedOptionsWeightsFormat", "LSTMKernelType",
    "MirrorPadMode", "CombinerType",
)  # fmt: skip

_GREATEST_DEPRECATED_CODE = 127


@dataclass(kw_only=True)
class TensorSpec:
    """One tensor as it will be written."""

    name: str | None
    shape: Sequence[int] | None
    type_code: int
    buffer: int = 0
    scales: Sequence[float] | None = None
    zero_points: Sequence[int] | None = None
    axis: int = 0
    is_variable: bool = False
    shape_signature: Sequence[int] | None = None
    is_sparse: bool = False


@dataclass(kw_only=True)
class OperatorSpec:
    """One operator as it will be written."""

    opcode: int
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: tuple[str, Mapping[str, Any]] | None = None
    custom_options: bytes | None = None
    intermediates: Sequence[int] | None = None


@dataclass(kw_only=True)
class SubgraphSpec:
    """One subgraph as it will be written."""

    name: str | None
    tensors: Sequence[TensorSpec]
    operators: Sequence[OperatorSpec]
    inputs: Sequence[int]
    outputs: Sequence[int]


@dataclass(kw_only=True)
class OpcodeSpec:
    """One opcode as it will be written."""

    builtin_code: int
    custom_name: str | bytes | None = None
    version: int = 1
    deprecated_code: int | None = None


@dataclass(kw_only=True)
class BufferSpec:
    """One buffer as it will be written; `outside` puts the bytes behind the flatbuffer."""

    data: bytes = b""
    outside: bool = False
    offset: int = 0
    size: int = 0


@dataclass
class ModelMaker:
    """Collects the parts of a model and writes it."""

    version: int = 3
    identifier: bytes = b"TFL3"
    description: str = "made for a test"
    opcodes: list[OpcodeSpec] = field(default_factory=list)
    subgraphs: list[SubgraphSpec] = field(default_factory=list)
    buffers: list[BufferSpec] = field(default_factory=lambda: [BufferSpec()])
    metadata: list[tuple[str, int]] = field(default_factory=list)
    signatures: list[tuple[str, int, Mapping[str, int], Mapping[str, int]]] = field(default_factory=list)
    _tensors: list[TensorSpec] = field(default_factory=list)
    _operators: list[OperatorSpec] = field(default_factory=list)

    def buffer(self, data: bytes, *, outside: bool = False) -> int:
        """Add a buffer; return its index."""
        self.buffers.append(BufferSpec(data=data, outside=outside))
        return len(self.buffers) - 1

    def tensor(
        self,
        name: str | None,
        shape: Sequence[int] | None,
        type_: str | int = "FLOAT32",
        *,
        data: np.ndarray | bytes | None = None,
        outside: bool = False,
        scale: float | Sequence[float] | None = None,
        zero_point: int | Sequence[int] | None = None,
        axis: int = 0,
        is_variable: bool = False,
        shape_signature: Sequence[int] | None = None,
        is_sparse: bool = False,
        buffer: int | None = None,
    ) -> int:
        """Add a tensor to the subgraph that is being collected; return its index.

        Args:
            name: its name.
            shape: its dimensions.
            type_: name or number of its TensorType.
            data: constant data: an array, converted to the tensor's type, or bytes as they stand.
            outside: whether the data goes behind the flatbuffer.
            scale: one scale or one per channel.
            zero_point: one zero point or one per channel; zeros when there are scales and this is left out.
            axis: quantized dimension.
            is_variable: whether it is a variable tensor.
            shape_signature: shape with -1 for open dimensions.
            is_sparse: whether to write an empty sparsity table.
            buffer: index of a buffer, in place of data.
        """
        type_code = type_ if isinstance(type_, int) else getattr(tflite.TensorType, type_, None)
        if type_code is None:
            raise ValueError(type_)
        if data is not None:
            raw = data if isinstance(data, bytes) else np.asarray(data).astype(_DTYPES[str(type_)]).tobytes()
            buffer = self.buffer(raw, outside=outside)
        scales = None if scale is None else ([scale] if isinstance(scale, int | float) else list(scale))
        if zero_point is None:
            zero_points = None if scales is None else [0] * len(scales)
        else:
            zero_points = [zero_point] if isinstance(zero_point, int) else list(zero_point)
        self._tensors.append(
            TensorSpec(
                name=name,
                shape=shape,
                type_code=type_code,
                buffer=buffer or 0,
                scales=scales,
                zero_points=zero_points,
                axis=axis,
                is_variable=is_variable,
                shape_signature=shape_signature,
                is_sparse=is_sparse,
            )
        )
        return len(self._tensors) - 1

    def opcode(
        self,
        op: str | int,
        *,
        version: int = 1,
        custom_name: str | bytes | None = None,
        deprecated_code: int | None = None,
    ) -> int:
        """Add an opcode, or find the same one again; return its index."""
        code = op if isinstance(op, int) else getattr(tflite.BuiltinOperator, op)
        spec = OpcodeSpec(builtin_code=code, custom_name=custom_name, version=version, deprecated_code=deprecated_code)
        if spec not in self.opcodes:
            self.opcodes.append(spec)
        return self.opcodes.index(spec)

    def operator(
        self,
        op: str | int,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        options: tuple[str, Mapping[str, Any]] | None = None,
        version: int = 1,
        custom_name: str | bytes | None = None,
        custom_options: bytes | None = None,
        intermediates: Sequence[int] | None = None,
        opcode: int | None = None,
    ) -> int:
        """Add an operator to the subgraph that is being collected; return its index.

        Args:
            op: name or number of its BuiltinOperator ("CONV_2D", "CUSTOM", 300).
            inputs: tensor indices, -1 for one left out.
            outputs: tensor indices.
            options: name of the options' table and its fields ("Conv2DOptions", {"padding": "SAME"}).
            version: its op version.
            custom_name: name of a custom op.
            custom_options: bytes of a custom op's options.
            intermediates: tensor indices of inner quantization.
            opcode: index into the opcode table as it stands, in place of op, version and name.
        """
        index = self.opcode(op, version=version, custom_name=custom_name) if opcode is None else opcode
        self._operators.append(
            OperatorSpec(
                opcode=index,
                inputs=inputs,
                outputs=outputs,
                options=options,
                custom_options=custom_options,
                intermediates=intermediates,
            )
        )
        return len(self._operators) - 1

    def subgraph(self, *, inputs: Sequence[int], outputs: Sequence[int], name: str | None = "main") -> int:
        """Close a subgraph of the tensors and operators added since the last one; return its index."""
        self.subgraphs.append(
            SubgraphSpec(name=name, tensors=self._tensors, operators=self._operators, inputs=inputs, outputs=outputs)
        )
        self._tensors, self._operators = [], []
        return len(self.subgraphs) - 1

    def add_metadata(self, name: str, data: bytes) -> None:
        """Add metadata with its own buffer."""
        self.metadata.append((name, self.buffer(data)))

    def add_signature(
        self, key: str, inputs: Mapping[str, int], outputs: Mapping[str, int], *, subgraph: int = 0
    ) -> None:
        """Add a signature of a subgraph."""
        self.signatures.append((key, subgraph, inputs, outputs))

    def finish(self) -> bytes:
        """Return the model's bytes."""
        data = _Writer(self).write()
        if not any(buffer.outside for buffer in self.buffers):
            return data
        # The offsets are written as fixed-size fields: a second run with the true ones has the same layout.
        end = len(data)
        for buffer in self.buffers:
            if buffer.outside:
                end = (end + 15) // 16 * 16
                buffer.offset, buffer.size = end, len(buffer.data)
                end += buffer.size
        image = bytearray(_Writer(self).write())
        for buffer in self.buffers:
            if buffer.outside:
                image.extend(bytes(buffer.offset - len(image)))
                image.extend(buffer.data)
        return bytes(image)


class _Writer:
    """Writes one model with a flatbuffers builder."""

    def __init__(self, maker: ModelMaker) -> None:
        self._maker = maker
        self._builder = flatbuffers.Builder(1024)
        self._builder.ForceDefaults(False)

    def write(self) -> bytes:
        builder, maker = self._builder, self._maker
        description = builder.CreateString(maker.description)
        parts = {
            "Buffers": self._tables([self._buffer(b) for b in maker.buffers]),
            "OperatorCodes": self._tables([self._opcode(o) for o in maker.opcodes]),
            "Subgraphs": self._tables([self._subgraph(s) for s in maker.subgraphs]),
            "Metadata": self._tables([self._metadata(*m) for m in maker.metadata]),
            "SignatureDefs": self._tables([self._signature(*s) for s in maker.signatures]),
        }
        tflite.ModelStart(builder)
        tflite.ModelAddVersion(builder, maker.version)
        tflite.ModelAddDescription(builder, description)
        for name, offset in parts.items():
            if offset is not None:
                getattr(tflite, f"ModelAdd{name}")(builder, offset)
        builder.Finish(tflite.ModelEnd(builder), file_identifier=maker.identifier)
        return bytes(builder.Output())

    def _tables(self, offsets: Sequence[int]) -> int | None:
        if not offsets:
            return None
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _numbers(self, values: Sequence[Any] | None, kind: str, size: int) -> int | None:
        if values is None:
            return None
        self._builder.StartVector(size, len(values), size)
        for value in reversed(values):
            getattr(self._builder, f"Prepend{kind}")(value)
        return int(self._builder.EndVector())

    def _bytes(self, data: bytes | None, alignment: int = 16) -> int | None:
        if not data:
            return None
        builder = self._builder
        builder.StartVector(1, len(data), alignment)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        return int(builder.EndVector())

    def _string(self, text: str | bytes | None) -> int | None:
        return None if text is None else int(self._builder.CreateString(text))

    def _table(self, table: str, values: Mapping[str, Any]) -> int:
        """Write a table; values that are None are left out."""
        getattr(tflite, f"{table}Start")(self._builder)
        for name, value in values.items():
            if value is not None:
                getattr(tflite, f"{table}Add{name}")(self._builder, value)
        return int(getattr(tflite, f"{table}End")(self._builder))

    def _buffer(self, spec: BufferSpec) -> int:
        if not spec.outside:
            return self._table("Buffer", {"Data": self._bytes(spec.data)})
        return self._table("Buffer", {"Offset": spec.offset or 1, "Size": spec.size or 1})

    def _opcode(self, spec: OpcodeSpec) -> int:
        deprecated = spec.deprecated_code
        if deprecated is None:
            deprecated = min(spec.builtin_code, _GREATEST_DEPRECATED_CODE)
        values = {
            "DeprecatedBuiltinCode": deprecated,
            "CustomCode": self._string(spec.custom_name),
            "Version": spec.version,
            "BuiltinCode": spec.builtin_code,
        }
        return self._table("OperatorCode", values)

    def _metadata(self, name: str, buffer: int) -> int:
        return self._table("Metadata", {"Name": self._string(name), "Buffer": buffer})

    def _signature(self, key: str, subgraph: int, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> int:
        maps = {
            side: self._tables(
                [
                    self._table("TensorMap", {"Name": self._string(name), "TensorIndex": tensor})
                    for name, tensor in entries.items()
                ]
            )
            for side, entries in (("Inputs", inputs), ("Outputs", outputs))
        }
        return self._table("SignatureDef", {**maps, "SignatureKey": self._string(key), "SubgraphIndex": subgraph})

    def _subgraph(self, spec: SubgraphSpec) -> int:
        values = {
            "Tensors": self._tables([self._tensor(t) for t in spec.tensors]),
            "Inputs": self._numbers(spec.inputs, "Int32", 4),
            "Outputs": self._numbers(spec.outputs, "Int32", 4),
            "Operators": self._tables([self._operator(o) for o in spec.operators]),
            "Name": self._string(spec.name),
        }
        return self._table("SubGraph", values)

    def _tensor(self, spec: TensorSpec) -> int:
        quantization = None
        if spec.scales is not None or spec.zero_points is not None:
            values = {
                "Scale": self._numbers(spec.scales, "Float32", 4),
                "ZeroPoint": self._numbers(spec.zero_points, "Int64", 8),
                "QuantizedDimension": spec.axis,
            }
            quantization = self._table("QuantizationParameters", values)
        values = {
            "Shape": self._numbers(spec.shape, "Int32", 4),
            "Type": spec.type_code,
            "Buffer": spec.buffer,
            "Name": self._string(spec.name),
            "Quantization": quantization,
            "IsVariable": spec.is_variable,
            "ShapeSignature": self._numbers(spec.shape_signature, "Int32", 4),
            "Sparsity": self._table("SparsityParameters", {}) if spec.is_sparse else None,
        }
        return self._table("Tensor", values)

    def _operator(self, spec: OperatorSpec) -> int:
        values: dict[str, Any] = {
            "OpcodeIndex": spec.opcode,
            "Inputs": self._numbers(spec.inputs, "Int32", 4),
            "Outputs": self._numbers(spec.outputs, "Int32", 4),
            "CustomOptions": self._bytes(spec.custom_options, 4),
            "Intermediates": self._numbers(spec.intermediates, "Int32", 4),
        }
        if spec.options is not None:
            table, fields = spec.options
            suffix = "" if hasattr(tflite.BuiltinOptions, table) else "2"
            union = getattr(tflite, f"BuiltinOptions{suffix}")
            values[f"BuiltinOptions{suffix}Type"] = getattr(union, table)
            values[f"BuiltinOptions{suffix}"] = self._options(table, fields)
        return self._table("Operator", values)

    def _options(self, table: str, fields: Mapping[str, Any]) -> int:
        importlib.import_module(f"tflite.{table}")
        values = {}
        for name, value in fields.items():
            camel = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
            if isinstance(value, str):
                value = self._enum_or_string(value)
            elif isinstance(value, Sequence):
                kind, size = ("Float32", 4) if any(isinstance(v, float) for v in value) else ("Int32", 4)
                value = self._numbers(value, kind, size)
            values[camel] = value
        return self._table(table, values)

    def _enum_or_string(self, text: str) -> int:
        for enum in _OPTION_ENUMS:
            if hasattr(getattr(tflite, enum), text):
                return int(getattr(getattr(tflite, enum), text))
        return int(self._builder.CreateString(text))


def make_single_op_model(
    op: str,
    inputs: Sequence[tuple[Sequence[int], str]] = (((1, 4), "INT8"),),
    output: tuple[Sequence[int], str] = ((1, 4), "INT8"),
    *,
    options: tuple[str, Mapping[str, Any]] | None = None,
    version: int = 1,
    custom_name: str | None = None,
) -> bytes:
    """Return a model of one operator without constants; integer tensors get scale 0.5 and zero point 0.

    Args:
        op: name of its BuiltinOperator.
        inputs: shape and type of each input.
        output: shape and type of the output.
        options: name of the options' table and its fields.
        version: its op version.
        custom_name: name of a custom op.
    """
    maker = ModelMaker()
    names = [
        maker.tensor(f"input_{i}", shape, type_, scale=None if "FLOAT" in type_ else 0.5)
        for i, (shape, type_) in enumerate(inputs)
    ]
    shape, type_ = output
    result = maker.tensor("output", shape, type_, scale=None if "FLOAT" in type_ else 0.5)
    maker.operator(op, names, [result], options=options, version=version, custom_name=custom_name)
    maker.subgraph(inputs=names, outputs=[result])
    return maker.finish()
