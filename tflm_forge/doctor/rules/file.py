"""Rules about the file: what TFLM does not find in it, or can not read as it is."""

from collections.abc import Iterator

from tflm_forge.doctor.records import Hit, Subject, rule
from tflm_forge.model import Tensor, type_bits
from tflm_forge.model.metadata import MIN_RUNTIME_VERSION, OFFLINE_PLAN, min_runtime_version
from tflm_forge.model.reading import COMPRESSION_METADATA

_LOAD_BYTES = 4
"""What a Cortex-M loads at once: no type needs a greater alignment (ARMv7-M ARM, A3.2.1)."""


def _tensors(subject: Subject) -> Iterator[Tensor]:
    return (tensor for graph in subject.model.subgraphs for tensor in graph.tensors)


@rule(
    id="no-operators",
    severity="error",
    title="no operator",
    why="There is nothing to run: an op resolver of no ops is a compile error.",
    remedy="Convert a model with at least one layer.",
    source="MicroMutableOpResolver<0>: micro_mutable_op_resolver.h",
)
def no_operators(subject: Subject) -> Iterator[Hit]:
    """A model of inputs and outputs alone."""
    if not subject.ops:
        yield Hit(words="The model has no operator: there is nothing to run.")


@rule(
    id="data-outside-flatbuffer",
    severity="error",
    title="constants behind the flatbuffer",
    why="Converters put the data of models over 2 GB behind the flatbuffer; TFLM does not look there and computes "
    "with whatever memory follows.",
    remedy="Convert without the converter's buffer-offset option, which is for models over 2 GB.",
    source="schema.fbs, table Buffer, offset and size; micro_allocator.cc reads Buffer.data alone",
)
def data_outside(subject: Subject) -> Iterator[Hit]:
    """Constants whose buffer has an offset in place of data."""
    outside = [t for t in _tensors(subject) if t.is_constant and subject.model.buffers[t.buffer].is_outside]
    if outside:
        yield Hit(
            layer=outside[0].name,
            words=f"The data of {len(outside)} tensors, first {outside[0].name!r}, stands behind the flatbuffer, "
            "where TFLM does not look.",
        )


@rule(
    id="compressed-constants",
    severity="error",
    title="constants packed by TFLM's compression tool, the old way",
    why="A model with COMPRESSION_METADATA loads in a runtime built without USE_TFLM_COMPRESSION and gives wrong "
    "numbers; newer TFLM has DECODE operators instead.",
    remedy="Give the model as it was before compression, or compress it again with a TFLM whose tool writes "
    "TFLM_DECODE operators.",
    source="micro_allocator.cc, USE_TFLM_COMPRESSION; tflite-micro#3256, #3654",
)
def compressed_constants(subject: Subject) -> Iterator[Hit]:
    """Metadata of the compression tool."""
    if any(item.name == COMPRESSION_METADATA for item in subject.model.metadata):
        yield Hit(words=f"The model's constants are packed by TFLM's compression tool ({COMPRESSION_METADATA}).")


@rule(
    id="sparse-tensor",
    severity="error",
    title="sparse weights",
    why="TFLM has no code for sparse tensors: it reads the packed values as if they were all there.",
    remedy="Convert without the EXPERIMENTAL_SPARSITY optimization; pruned weights still compress in an archive.",
    source="schema.fbs, table SparsityParameters; op_version.cc, FULLY_CONNECTED 8; micro_allocator.cc ignores it",
)
def sparse_tensor(subject: Subject) -> Iterator[Hit]:
    """Constants that leave out zeros."""
    sparse = [t for t in _tensors(subject) if t.is_sparse]
    if sparse:
        yield Hit(
            layer=sparse[0].name,
            words=f"{len(sparse)} tensors, first {sparse[0].name!r}, are sparse: TFLM can not read them.",
        )


@rule(
    id="misaligned-constant",
    severity="error",
    title="constants where a processor can not load them",
    why="Constants are used where they lie in flash. A 16- or 32-bit value at an odd place faults on a Cortex-M0, and "
    "on other cores where several are loaded at once; a computer reads it all the same. Data whose "
    "vector is not aligned is refused already while the file is read.",
    remedy="Write the file again with a tool that keeps the schema's alignment of 16 bytes (force_align): the "
    "TensorFlow converter, or `flatc`.",
    source="schema.fbs, Buffer.data force_align 16; tensorflow#41271, tflite-micro#418; ARMv7-M ARM, A3.2.1",
)
def misaligned_constant(subject: Subject) -> Iterator[Hit]:
    """Constant data at a place that is no multiple of its type's size."""
    for tensor in _tensors(subject):
        alignment = min(max((type_bits(tensor.type) or 8) // 8, 1), _LOAD_BYTES)
        if tensor.is_constant and tensor.data_offset % alignment:
            yield Hit(
                layer=tensor.name,
                words=f"The data of tensor {tensor.name!r} starts at byte {tensor.data_offset} of the file: "
                f"{tensor.type} needs a multiple of {alignment}.",
                kind="tensor",
            )


@rule(
    id="min-runtime-version",
    severity="note",
    title="the TFLite version that the converter asks for",
    why="The converter writes the lowest TensorFlow Lite for phones that has all op versions. TFLM has no such "
    "versions: what counts is the version of each op.",
    source="metadata min_runtime_version; tensorflow#47176; runtime_version.cc",
)
def runtime_version(subject: Subject) -> Iterator[Hit]:
    """Metadata min_runtime_version."""
    version = min_runtime_version(subject.model)
    if version:
        yield Hit(
            words=f"The converter says: TensorFlow Lite {version} or later ({MIN_RUNTIME_VERSION}). "
            "That is TFLite for phones; for TFLM the op versions count."
        )


@rule(
    id="offline-memory-plan",
    severity="note",
    title="the model brings its own plan of the arena",
    why="TFLM puts tensors where the metadata says, in place of planning itself: the arena may be larger.",
    source="metadata OfflineMemoryAllocation; micro_allocation_info.cc",
)
def offline_plan(subject: Subject) -> Iterator[Hit]:
    """Metadata OfflineMemoryAllocation."""
    if any(item.name == OFFLINE_PLAN for item in subject.model.metadata):
        yield Hit(words=f"The model brings its own plan of the arena ({OFFLINE_PLAN}), which TFLM follows.")
