"""Compares the inputs and outputs of two models: what an application that feeds the one notices of the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflm_forge.link.answers import TensorInfo
from tflm_forge.model import Model, Tensor

_INPUT, _OUTPUT = 0, 1


@dataclass(frozen=True, kw_only=True)
class Face:
    """One input or output as an application sees it; scale 0 for a tensor that is not quantized."""

    type: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int

    def __str__(self) -> str:
        words = f"{self.type} {list(self.shape)}"
        return f"{words}, scale {self.scale:g}, zero point {self.zero_point}" if self.scale else words


@dataclass(frozen=True, kw_only=True)
class Interface:
    """The inputs and outputs of a model."""

    inputs: tuple[Face, ...]
    outputs: tuple[Face, ...]

    @property
    def types(self) -> frozenset[str]:
        """The tensor types of all of them."""
        return frozenset(face.type for face in (*self.inputs, *self.outputs))


def interface_of(model: Model) -> Interface:
    """Return the inputs and outputs of a model's file."""
    return Interface(
        inputs=tuple(_face_of(tensor) for tensor in model.inputs),
        outputs=tuple(_face_of(tensor) for tensor in model.outputs),
    )


def interface_of_device(tensors: Sequence[TensorInfo]) -> Interface:
    """Return the inputs and outputs that a device answers."""
    faces = [
        (t.space, Face(type=t.type, shape=t.shape, scale=t.scale, zero_point=t.zero_point if t.scale else 0))
        for t in sorted(tensors, key=lambda t: (t.space, t.index))
    ]
    return Interface(
        inputs=tuple(face for space, face in faces if space == _INPUT),
        outputs=tuple(face for space, face in faces if space == _OUTPUT),
    )


def _face_of(tensor: Tensor) -> Face:
    quantization = tensor.quantization
    scale = quantization.scales[0] if quantization and quantization.scales else 0.0
    zero_point = quantization.zero_points[0] if scale and quantization and quantization.zero_points else 0
    return Face(type=tensor.type, shape=tensor.shape, scale=scale, zero_point=zero_point)


def list_changes(old: Interface, new: Interface) -> tuple[str, ...]:
    """Say in a sentence each what of the inputs and outputs is not as it was."""
    return tuple(
        sentence
        for kind, before, after in (("input", old.inputs, new.inputs), ("output", old.outputs, new.outputs))
        for sentence in _list_changes(kind, before, after)
    )


def _list_changes(kind: str, old: Sequence[Face], new: Sequence[Face]) -> Iterator[str]:
    if len(old) != len(new):
        yield f"The model has {len(new)} {kind}s, and the firmware's own has {len(old)}."
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            yield f"The {kind} {index} is {after}; of the firmware's own model it is {before}."
