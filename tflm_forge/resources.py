"""Finds the data forge carries (boards/, templates/, the bundled runtime) and the folders it may write to."""

import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """Return the folder `name` ("boards", "templates"), in a checkout or in an installed wheel.

    A wheel carries the folders inside the package (see `force-include` in pyproject.toml);
    a checkout has them beside it.
    """
    packed = _PACKAGE / name
    return packed if packed.is_dir() else _PACKAGE.parent / name


def bundled_dir() -> Path:
    """Return the folder with the C++ sources of the bundled runtime."""
    return _PACKAGE / "bundled"


def cache_dir() -> Path:
    """Return the folder for what can be made again; FORGE_CACHE_DIR overrides the system's choice."""
    return Path(os.environ.get("FORGE_CACHE_DIR") or platformdirs.user_cache_dir("tflm-forge"))


def home_dir() -> Path:
    """Return the folder for what was installed on purpose; FORGE_HOME overrides the system's choice."""
    return Path(os.environ.get("FORGE_HOME") or platformdirs.user_data_dir("tflm-forge", appauthor=False))
