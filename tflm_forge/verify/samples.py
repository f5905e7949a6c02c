"""Reads the user's own inputs: .npz, .npy, images, WAV files, and folders of them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tflm_forge.errors import UsageError
from tflm_forge.model import Model, Tensor
from tflm_forge.registry import unknown_name
from tflm_forge.verify.arrays import Array, dtype_of, read_npy, read_npz
from tflm_forge.verify.inputs import Case, value_range
from tflm_forge.verify.media import IMAGE_SUFFIXES, SOUND_SUFFIXES, read_image, read_sound
from tflm_forge.verify.parts import INPUTS

LABELS_KEY = "labels"

_SUFFIXES = (".npz", ".npy", *IMAGE_SUFFIXES, *SOUND_SUFFIXES)
_MOST_FILES = 100_000


def load_cases(path: Path, model: Model) -> tuple[Case, ...]:
    """Read the user's inputs from a file, or from all files of a folder.

    An .npz file holds one array for each input of the model, under the input's name or as `input_0`,
    `input_1`, ...; `labels`, if there, holds one class number a sample. The other files hold the only input of
    the model. An array is one sample in the input's shape, or many along a leading axis (which may be the input's
    own first axis when that is 1). In a folder, subfolders whose names are numbers give the class of what is in
    them.

    Raises:
        UsageError: not readable, of an unknown kind, or it does not fit the model; names file and key.
    """
    if path.is_dir():
        return _load_folder(path, model)
    if path.suffix.lower() == ".npz":
        return _load_npz(path, model)
    tensor = _only_input(path, model)
    return tuple(
        Case(name=name, inputs=(array,), source=path.name, part=INPUTS)
        for name, array in _named(path.name, _read_samples(path, tensor))
    )


def _load_folder(folder: Path, model: Model) -> tuple[Case, ...]:
    tensor = _only_input(folder, model)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix.lower() in _SUFFIXES[1:])
    if not files:
        raise UsageError(f"{folder}: there is no input in it", hint=f"Files of inputs end in {', '.join(_SUFFIXES)}.")
    if len(files) > _MOST_FILES:
        raise UsageError(f"{folder}: {len(files)} files are more than a test can take", hint="Choose some of them.")
    return tuple(
        Case(name=name, inputs=(array,), label=_label_of(file, folder), source=folder.name, part=INPUTS)
        for file in files
        for name, array in _named(file.relative_to(folder).as_posix(), _read_samples(file, tensor))
    )


def _label_of(file: Path, folder: Path) -> int | None:
    first = file.relative_to(folder).parts[0]
    return int(first) if file.parent != folder and first.isdecimal() else None


def _named(name: str, samples: list[Array]) -> list[tuple[str, Array]]:
    if len(samples) == 1:
        return [(name, samples[0])]
    return [(f"{name}[{i}]", sample) for i, sample in enumerate(samples)]


def _only_input(path: Path, model: Model) -> Tensor:
    if len(model.inputs) != 1:
        raise UsageError(
            f"{path}: {model.name} has {len(model.inputs)} inputs, and such a file holds one",
            hint="Give an .npz file with an array for each: input_0, input_1, ...",
        )
    return model.inputs[0]


def _read_samples(path: Path, tensor: Tensor) -> list[Array]:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _samples(f"{path}: the array", read_npy(path), tensor)
    if suffix in IMAGE_SUFFIXES:
        return [read_image(path, tensor)]
    if suffix in SOUND_SUFFIXES:
        return read_sound(path, tensor)
    if not path.exists():
        raise UsageError(f"{path}: can not read: No such file or directory")
    raise UsageError(f"{path}: unknown kind of file", hint=f"Inputs are read from {', '.join(_SUFFIXES)}.")


def _load_npz(path: Path, model: Model) -> tuple[Case, ...]:
    arrays = read_npz(path)
    keys = _keys_of_inputs(path, arrays, model)
    columns = [_samples(f"{path}: array {key!r}", arrays[key], t) for key, t in zip(keys, model.inputs, strict=True)]
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        each = ", ".join(f"{key!r} has {count}" for key, count in zip(keys, counts, strict=True))
        raise UsageError(f"{path}: the inputs have different numbers of samples: {each}")
    if not counts or counts[0] == 0:
        raise UsageError(f"{path}: there is no sample in it")
    labels = _labels(path, arrays[LABELS_KEY], counts[0]) if LABELS_KEY in arrays else [None] * counts[0]
    return tuple(
        Case(
            name=f"{path.name}[{i}]",
            inputs=tuple(column[i] for column in columns),
            label=labels[i],
            source=path.name,
            part=INPUTS,
        )
        for i in range(counts[0])
    )


def _keys_of_inputs(path: Path, arrays: Mapping[str, Array], model: Model) -> list[str]:
    keys = []
    for index, tensor in enumerate(model.inputs):
        choices = (tensor.name, f"input_{index}")
        key = next((k for k in choices if k in arrays), None)
        if key is None:
            found = ", ".join(repr(k) for k in arrays) or "none"
            raise UsageError(
                f"{path}: there is no array for the model's input {tensor.name!r}",
                hint=f"Name it {choices[1]!r} or {choices[0]!r}. Arrays in the file: {found}.",
            )
        keys.append(key)
    for key in arrays:
        if key not in keys and key != LABELS_KEY:
            error = unknown_name("array", key, [*keys, LABELS_KEY])
            raise UsageError(f"{path}: {error.message}", hint=error.hint)
    return keys


def _samples(what: str, array: Array, tensor: Tensor) -> list[Array]:
    cast = _cast(what, array, tensor)
    shape = tuple(tensor.shape)
    if cast.shape == shape:
        return [cast]
    if cast.shape[1:] == shape:
        return list(cast)
    if shape[:1] == (1,) and cast.ndim and cast.shape[1:] == shape[1:]:
        return [sample.reshape(shape) for sample in cast]
    raise UsageError(
        f"{what} has shape {list(array.shape)}, and the model's input is {list(shape)}",
        hint=f"Allowed: {list(shape)}, or samples along a leading axis.",
    )


def _cast(what: str, array: Array, tensor: Tensor) -> Array:
    """Return the array in the tensor's type, when no value changes by that."""
    dtype = dtype_of(tensor)
    if array.dtype == dtype:
        return array.astype(dtype, copy=False)
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        low, high = value_range(dtype)
        if array.size == 0 or (int(array.min()) >= low and int(array.max()) <= high):
            return array.astype(dtype)
        raise UsageError(
            f"{what} has values from {array.min()} to {array.max()}; "
            f"the model's input is {tensor.type}, {low} to {high}"
        )
    if array.dtype.kind == "f" and dtype.kind == "f":
        return array.astype(dtype)
    quantization = tensor.quantization
    hint = "Convert it before saving."
    if array.dtype.kind == "f" and quantization is not None and len(quantization.scales) == 1:
        zero_point = quantization.zero_points[0] if quantization.zero_points else 0
        hint = f"Quantize it first: round(x / {quantization.scales[0]:.9g}) + {zero_point}, limited to the type."
    raise UsageError(f"{what} has type {array.dtype}, and the model's input is {tensor.type}", hint=hint)


def _labels(path: Path, array: Array, count: int) -> list[int | None]:
    if array.dtype.kind not in "iu" or array.size != count or array.ndim not in (1, 2):
        raise UsageError(
            f"{path}: array {LABELS_KEY!r} has type {array.dtype} and shape {list(array.shape)}; "
            f"{count} class numbers are needed, one a sample"
        )
    return [int(value) for value in np.asarray(array).ravel()]
