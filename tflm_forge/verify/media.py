"""Turns pictures and sound into a model's input, by one fixed rule each (docs/report.md has them)."""

import io
import wave
from pathlib import Path

import numpy as np

from tflm_forge.errors import UsageError
from tflm_forge.model import Tensor
from tflm_forge.verify.arrays import Array, dtype_of

IMAGE_SUFFIXES = (".png", ".bmp", ".jpg", ".jpeg")
SOUND_SUFFIXES = (".wav",)

_PREPARE = "Prepare the data as the training did, and save it with numpy.savez(file, input_0=array)."


def read_image(path: Path, tensor: Tensor) -> Array:
    """Return a picture as the model's input: INT8 takes pixel - 128, UINT8 the pixel, FLOAT32 pixel / 255.

    Raises:
        UsageError: Pillow is missing, the file is not a picture, or it has another size than the input.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise UsageError(f"{path}: reading pictures needs Pillow", hint="pip install pillow") from error
    shape = tensor.shape
    if len(shape) not in (3, 4) or shape[-1] not in (1, 3) or shape[:-3] not in ((), (1,)):
        raise UsageError(f"{path}: the model's input {list(shape)} is not a picture of 1 or 3 colours", hint=_PREPARE)
    height, width, colours = shape[-3:]
    try:
        with Image.open(io.BytesIO(path.read_bytes())) as image:
            pixels = np.asarray(image.convert("L" if colours == 1 else "RGB"))
    except UnidentifiedImageError as error:
        raise UsageError(f"{path}: is not a picture that Pillow can read") from error
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror or error}") from error
    if pixels.shape[:2] != (height, width):
        raise UsageError(
            f"{path}: the picture has {pixels.shape[1]} x {pixels.shape[0]} pixels, the model takes {width} x {height}",
            hint="Resize it first, in the way the training did.",
        )
    values = {"INT8": pixels.astype(np.int16) - 128, "UINT8": pixels, "FLOAT32": pixels / np.float32(255)}
    if tensor.type not in values:
        raise UsageError(f"{path}: the model's input is {tensor.type}, and pictures fit {', '.join(values)}")
    return values[tensor.type].astype(dtype_of(tensor)).reshape(shape)


def read_sound(path: Path, tensor: Tensor) -> list[Array]:
    """Return a WAV file (16 bits, mono) in windows as long as the model's input; a rest at its end is left out.

    INT16 takes the samples, INT8 their upper byte, FLOAT32 sample / 32768.

    Raises:
        UsageError: not such a file, too short, or the model does not take samples.
    """
    if sum(size > 1 for size in tensor.shape) > 1:
        raise UsageError(
            f"{path}: the model's input {list(tensor.shape)} is not a row of samples but features of them",
            hint=_PREPARE,
        )
    try:
        with wave.open(io.BytesIO(path.read_bytes())) as sound:
            channels, width = sound.getnchannels(), sound.getsampwidth()
            data = sound.readframes(sound.getnframes())
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror or error}") from error
    except (wave.Error, EOFError) as error:
        raise UsageError(f"{path}: is not a WAV file of plain samples ({error})") from error
    if channels != 1 or width != 2:
        raise UsageError(
            f"{path}: has {channels} channels of {8 * width} bits; 1 of 16 bits is needed",
            hint="Convert it: sox in.wav -b 16 -c 1 out.wav",
        )
    samples = np.frombuffer(data[: len(data) // 2 * 2], "<i2")
    values = {"INT16": samples, "INT8": samples >> 8, "FLOAT32": samples / np.float32(32768)}
    if tensor.type not in values:
        raise UsageError(f"{path}: the model's input is {tensor.type}, and sound fits {', '.join(values)}")
    length = tensor.element_count
    if len(samples) < length:
        raise UsageError(f"{path}: has {len(samples)} samples, and the model takes {length} at a time")
    whole = values[tensor.type][: len(samples) // length * length].astype(dtype_of(tensor))
    return [window.reshape(tensor.shape) for window in whole.reshape(-1, length)]
