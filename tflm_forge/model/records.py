"""What a .tflite file holds, as values: model, subgraphs, operators, tensors, buffers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tflm_forge.model.schema import op_name, type_bits


@dataclass(frozen=True, kw_only=True)
class Quantization:
    """How integers stand for real numbers: `real = scale * (integer - zero point)`.

    Attributes:
        scales: one for the tensor, or one per channel.
        zero_points: as many as there are scales, or none.
        axis: dimension that the channels are counted along.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int

    @property
    def is_per_channel(self) -> bool:
        """Whether every channel has its own scale."""
        return len(self.scales) > 1


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One tensor of a subgraph.

    Attributes:
        index: number in its subgraph.
        name: name in the file; need not be unique.
        type: name of its TensorType ("INT8").
        shape: dimensions that memory is planned for; empty for a scalar.
        shape_signature: dimensions with -1 where the converter left one open; empty when none is.
        quantization: None for a tensor without scales.
        buffer: index into the model's buffers; 0 is the empty one.
        data_offset: where its constant data starts in the file; 0 for a tensor without.
        data_bytes: bytes of its constant data; 0 for a tensor without.
        is_variable: whether it keeps its value from one inference to the next.
        is_sparse: whether its constant data leaves out zeros.
    """

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    quantization: Quantization | None
    buffer: int
    data_offset: int
    data_bytes: int
    is_variable: bool
    is_sparse: bool

    @property
    def element_count(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, types under a byte packed; 0 for STRING and VARIANT, of no fixed size."""
        return (self.element_count * (type_bits(self.type) or 0) + 7) // 8

    @property
    def is_constant(self) -> bool:
        """Whether its data stands in the model."""
        return self.data_bytes > 0


@dataclass(frozen=True, kw_only=True)
class Opcode:
    """One entry of the opcode table, which may list ops that no operator uses.

    Attributes:
        builtin_code: number in BuiltinOperator; the larger of the schema's two fields.
        custom_name: name of a custom op, else empty.
        version: version of the op.
    """

    builtin_code: int
    custom_name: str
    version: int

    @property
    def name(self) -> str:
        """What a person calls the op."""
        return op_name(self.builtin_code, self.custom_name)


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator (layer) of a subgraph.

    Attributes:
        index: number in its subgraph, in the order of execution.
        opcode_index: entry of the opcode table.
        builtin_code: number in BuiltinOperator, 32 for a custom op.
        custom_name: name of a custom op, else empty.
        version: version of the op.
        inputs: tensor indices; -1 for an optional input that is left out.
        outputs: tensor indices.
        intermediates: tensor indices of a fused LSTM's inner quantization.
        options_type: schema table of the options ("Conv2DOptions"); empty when it has none.
        options: builtin options by the schema's names, defaults filled in, enums by name.
        custom_options: bytes of a custom op's options.
        label: name a person sees: that of its first output tensor.
    """

    index: int
    opcode_index: int
    builtin_code: int
    custom_name: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options_type: str
    options: Mapping[str, Any] = field(hash=False)
    custom_options: bytes
    label: str

    @property
    def name(self) -> str:
        """What a person calls its op."""
        return op_name(self.builtin_code, self.custom_name)


@dataclass(frozen=True, kw_only=True)
class Subgraph:
    """One graph of operators; number 0 is what an inference runs, others are called by its operators."""

    index: int
    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """Constant bytes of the file.

    Attributes:
        index: number in the model.
        offset: where the bytes start in the file; 0 when there are none.
        size: how many bytes.
        is_outside: whether they stand behind the flatbuffer, where TFLM does not look for them.
    """

    index: int
    offset: int
    size: int
    is_outside: bool


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """A named buffer with whatever its writer put there."""

    name: str
    buffer: int


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A named entry point: input and output names with the tensors of its subgraph."""

    key: str
    subgraph: int
    inputs: Mapping[str, int] = field(hash=False)
    outputs: Mapping[str, int] = field(hash=False)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A .tflite file whose offsets, indices and sizes have all been checked.

    Attributes:
        name: the file's name.
        data: its bytes, unchanged.
        sha256: digest of the bytes, in hex.
        schema_version: 3.
        description: what the converter wrote about itself.
    """

    name: str
    data: bytes = field(repr=False)
    sha256: str
    schema_version: int
    description: str
    opcodes: tuple[Opcode, ...]
    subgraphs: tuple[Subgraph, ...]
    buffers: tuple[Buffer, ...]
    metadata: tuple[Metadata, ...]
    signatures: tuple[Signature, ...]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Input tensors of an inference."""
        return tuple(self.subgraphs[0].tensors[i] for i in self.subgraphs[0].inputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Output tensors of an inference."""
        return tuple(self.subgraphs[0].tensors[i] for i in self.subgraphs[0].outputs)

    def constant_data(self, tensor: Tensor) -> bytes:
        """Return the bytes of a tensor's constant data, empty for a tensor without."""
        return self.data[tensor.data_offset : tensor.data_offset + tensor.data_bytes]

    def buffer_data(self, index: int) -> bytes:
        """Return the bytes of a buffer."""
        buffer = self.buffers[index]
        return self.data[buffer.offset : buffer.offset + buffer.size]
