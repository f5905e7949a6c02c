"""Writes files whole or not at all."""

import os
import tempfile
from pathlib import Path

from tflm_forge.errors import UsageError


def write_if_changed(path: Path, content: bytes) -> bool:
    """Write a file whole or not at all, and only when its content differs; return whether it was written."""
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def write_output(path: Path, content: bytes) -> bool:
    """Write a file that the user asked for, as `write_if_changed` does.

    Raises:
        UsageError: it can not be written.
    """
    try:
        return write_if_changed(path, content)
    except OSError as error:
        raise UsageError(f"{path}: can not write: {error.strerror or error}") from error
