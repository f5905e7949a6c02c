"""Finds and reads a .tflite file, or says what stands in its place."""

import difflib
import stat
from pathlib import Path

from tflm_forge.errors import ModelError
from tflm_forge.model.reading import read_model
from tflm_forge.model.records import Model

MAX_FILE_BYTES = 256 << 20
"""No microcontroller maps more flash than this; reading stops there before it begins."""


def load_model(path: Path) -> Model:
    """Read a .tflite file.

    Args:
        path: the file.

    Raises:
        ModelError: it is missing, not a file, too large, not a .tflite model, or damaged.
    """
    try:
        status = path.stat()
        if path.is_dir():
            raise _refuse_folder(path)
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{path}: not a regular file", hint="Give the path of a .tflite file.")
        if status.st_size > MAX_FILE_BYTES:
            raise ModelError(
                f"{path}: {status.st_size:,} bytes, more than any microcontroller's flash",
                hint=f"forge reads models of up to {MAX_FILE_BYTES >> 20} MiB.",
            )
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES)
    except FileNotFoundError as error:
        raise ModelError(f"{path}: no such file", hint=_name_near_files(path)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: can not be read: {reason}", hint="Check the path and its permissions.") from error
    return read_model(data, name=path.name, shown=str(path))


def _refuse_folder(path: Path) -> ModelError:
    if (path / "saved_model.pb").exists():
        return ModelError(
            f"{path}: a TensorFlow SavedModel folder, not a .tflite model",
            hint=f"Convert it with tf.lite.TFLiteConverter.from_saved_model({str(path)!r}).",
        )
    return ModelError(f"{path}: a folder, not a .tflite model", hint=_name_near_files(path / "model.tflite"))


def _name_near_files(path: Path) -> str:
    """Return a hint that names the .tflite files where one was looked for, nearest first."""
    try:
        names = sorted(file.name for file in path.parent.glob("*.tflite"))
    except OSError:
        names = []
    names = [*difflib.get_close_matches(path.name, names, n=3), *names]
    shown = list(dict.fromkeys(names))[:3]
    return f"In {path.parent}: {', '.join(shown)}." if shown else "Check the path."
