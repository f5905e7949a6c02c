"""Finds the models in an ELF's flash, and whose each byte of them is: a layer's weights, or the model's own tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tflm_forge.elf import Elf, Section
from tflm_forge.errors import ModelError
from tflm_forge.model import Model, read_model
from tflm_forge.model.flatbuffer import DamageError, Flatbuffer

IDENTIFIER = b"TFL3"
_NAME = re.compile(r"g_model_data(_\d+)?")
_IDENTIFIER_OFFSET = 4
_MAX_TRIES = 64
"""How many places that look like a model are looked into."""

_SHOWN_LAYERS = 2

_REST = "tables and options"
_QUANTIZATION = (
    ("scale", 4, "scales"),
    ("zero_point", 8, "zero points"),
    ("min", 4, "ranges: min and max"),
    ("max", 4, "ranges: min and max"),
)
"""Vectors of QuantizationParameters in schema.fbs: field, bytes of an element, what a person calls it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelPart:
    """A stretch of a model.

    Attributes:
        start: its address.
        end: the address behind it.
        is_weights: whether it is the data of a tensor; all else is metadata.
        layer: the layers whose weights it is.
        what: the tensor whose data it is, or which kind of metadata.
    """

    start: int
    end: int
    is_weights: bool = False
    layer: str = ""
    what: str = ""


@dataclass(frozen=True, kw_only=True)
class PlacedModel:
    """A model in flash, the symbol it has, and its parts by address; they cover it once."""

    start: int
    end: int
    symbol: str
    model: Model | None
    parts: tuple[ModelPart, ...]


def find_models(elf: Elf, given: Model | None) -> tuple[list[PlacedModel], list[str]]:
    """Find the models by the identifier that stands at offset 4 of each, and by the name that forge gives them.

    Args:
        elf: the ELF.
        given: a model that may be in it, and need not be read again.

    Returns:
        The models by address, and what could not be read, a sentence each.
    """
    found: list[PlacedModel] = []
    notes: list[str] = []
    tries = 0
    named = {s.address for s in elf.symbols if s.size_bytes and _NAME.fullmatch(s.name)}
    for section in elf.sections:
        for start in _find_starts(elf, section, named):
            if found and start < found[-1].end:
                continue
            if tries == _MAX_TRIES:
                break
            tries += 1
            symbol, end = _extent(elf, section, start)
            data = elf.read(start, end - start)
            try:
                same = given is not None and given.data == data
                model = given if same else read_model(data, name=symbol or f"model at 0x{start:08X}")
            except ModelError as error:
                if symbol:
                    notes.append(f"The model {symbol} can not be read, so its layers are not told apart: {error}.")
                    whole = ModelPart(start=start, end=end)
                    found.append(PlacedModel(start=start, end=end, symbol=symbol, model=None, parts=(whole,)))
                continue
            if model is not None:
                parts = tuple(_cut_model(model, start, end))
                found.append(PlacedModel(start=start, end=end, symbol=symbol, model=model, parts=parts))
    return found, notes


def _find_starts(elf: Elf, section: Section, named: set[int]) -> list[int]:
    data = elf.section_bytes(section)
    starts = set(named)
    at = data.find(IDENTIFIER)
    while at >= 0:
        start = section.address + at - _IDENTIFIER_OFFSET
        if at >= _IDENTIFIER_OFFSET and start % 4 == 0:
            starts.add(start)
        at = data.find(IDENTIFIER, at + 1)
    return sorted(start for start in starts if section.address <= start < section.end)


def _extent(elf: Elf, section: Section, start: int) -> tuple[str, int]:
    """Return the symbol of the model at an address, and where it ends: by its size, or where the next one starts."""
    here = [s for s in elf.symbols if s.address == start and s.kind != "func"]
    sized = max(here, key=lambda s: s.size_bytes, default=None)
    if sized is not None and sized.size_bytes:
        return sized.name, min(start + sized.size_bytes, section.end)
    following = [s.address for s in elf.symbols if start < s.address < section.end]
    return (sized.name if sized else ""), min(following, default=section.end)


def _cut_model(model: Model, start: int, end: int) -> Iterator[ModelPart]:
    reached = start
    spans = [ModelPart(start=start + at, end=start + to, is_weights=True, layer=layer, what=tensor)
             for at, to, layer, tensor in _read_weights(model)]  # fmt: skip
    spans += [ModelPart(start=start + at, end=start + to, what=what) for at, to, what in _read_metadata(model)]
    for part in sorted(spans, key=lambda part: (part.start, -part.end)):
        first, last = max(part.start, reached), min(part.end, end)
        if last <= first:
            continue
        if first > reached:
            yield ModelPart(start=reached, end=first, what=_REST)
        yield replace(part, start=first, end=last)
        reached = last
    if reached < end:
        yield ModelPart(start=reached, end=end, what=_REST)


def _read_metadata(model: Model) -> list[tuple[int, int, str]]:
    """Return start, end and kind of what is large among the metadata: each vector with its length before it."""
    named = [(model.buffers[item.buffer], item.name) for item in model.metadata]
    found = [(buffer.offset - 4, buffer.offset + buffer.size, name) for buffer, name in named if buffer.size]
    try:
        tensors = [
            tensor for graph in Flatbuffer(data=model.data).root("Model").tables("subgraphs")
            for tensor in graph.tables("tensors")
        ]  # fmt: skip
        for tensor in tensors:
            fields = [(tensor, "name", 1, "names of tensors")]
            if (quantization := tensor.table("quantization")) is not None:
                fields += [(quantization, *row) for row in _QUANTIZATION]
            for table, field, size, what in fields:
                at, count = table.span(field, size=size)
                if count:
                    found.append((at - 4, at + count * size, what))
    except DamageError:
        return found
    return found


def _read_weights(model: Model) -> list[tuple[int, int, str, str]]:
    """Return start, end, layers and tensor of each buffer that tensors have, by offset."""
    users: dict[int, list[str]] = {}
    names: dict[int, str] = {}
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            if tensor.data_bytes:
                names.setdefault(tensor.buffer, tensor.name)
        for operator in subgraph.operators:
            for index in operator.inputs:
                if index >= 0 and subgraph.tensors[index].data_bytes:
                    users.setdefault(subgraph.tensors[index].buffer, []).append(operator.label)
    return [
        (
            model.buffers[buffer].offset,
            model.buffers[buffer].offset + model.buffers[buffer].size,
            _join(users.get(buffer, [])),
            name,
        )
        for buffer, name in names.items()
    ]


def _join(layers: list[str]) -> str:
    unique = list(dict.fromkeys(layers))
    shown = ", ".join(unique[:_SHOWN_LAYERS])
    return f"{shown} and {len(unique) - _SHOWN_LAYERS} more" if len(unique) > _SHOWN_LAYERS else shown or "no layer"
