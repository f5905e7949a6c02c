"""Arrays of tensors: their numpy types, and .npz files read and written."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflm_forge.errors import ModelError, UsageError
from tflm_forge.files import write_if_changed
from tflm_forge.model import Tensor

Array = NDArray[Any]

_ZIP_START = b"PK"

DTYPES: dict[str, "np.dtype[Any]"] = {
    name: np.dtype(code)
    for name, code in {
        "FLOAT16": "<f2",
        "FLOAT32": "<f4",
        "FLOAT64": "<f8",
        "INT8": "i1",
        "INT16": "<i2",
        "INT32": "<i4",
        "INT64": "<i8",
        "UINT8": "u1",
        "UINT16": "<u2",
        "UINT32": "<u4",
        "UINT64": "<u8",
        "BOOL": "?",
    }.items()
}
"""The numpy type of each tensor type that an array can hold, as its bytes lie in the device's memory."""


def dtype_of(tensor: Tensor) -> "np.dtype[Any]":
    """Return the numpy type of a tensor.

    Raises:
        ModelError: an array can not hold such a tensor (STRING, INT4, ...).
    """
    dtype = DTYPES.get(tensor.type)
    if dtype is None:
        raise ModelError(
            f"{tensor.name!r} has type {tensor.type}, which forge can not exchange with a device",
            hint=f"Inputs and outputs can be {', '.join(DTYPES)}.",
        )
    return dtype


def read_npz(path: Path) -> dict[str, Array]:
    """Return all arrays of an .npz file; pickled objects are refused.

    Raises:
        UsageError: there is no such file, or it is not an .npz file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror or error}") from error
    hint = "Write it with numpy.savez(path, input_0=array)."
    if not content.startswith(_ZIP_START):
        raise UsageError(f"{path}: is not an .npz file", hint=hint)
    try:
        # From memory: numpy leaves a file open when it turns out to be no archive.
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"{path}: is not an .npz file of plain arrays ({error})", hint=hint) from error


def read_npy(path: Path) -> Array:
    """Return the array of an .npy file; pickled objects are refused.

    Raises:
        UsageError: there is no such file, or it is not an .npy file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror or error}") from error
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{path}: is not an .npy file of a plain array ({error})") from error
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{path}: is not an .npy file but an archive", hint="Give it the ending .npz.")
    return array


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file, whole or not at all.

    Raises:
        UsageError: the file can not be written.
    """
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    try:
        write_if_changed(path, packed.getvalue())
    except OSError as error:
        raise UsageError(f"{path}: can not write: {error.strerror or error}") from error
