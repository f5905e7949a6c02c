"""The cache of compiled objects that all projects share, kept by ccache."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.proc import has_tool, run
from tflm_forge.resources import cache_dir

TOOL = "ccache"
_TIMEOUT_S = 120.0

# GCC's precompiled headers and __TIME__ would make ccache give up; no source of a runtime uses __TIME__.
_SLOPPINESS = "pch_defines,time_macros,include_file_mtime,include_file_ctime"


@dataclass(frozen=True, kw_only=True)
class CacheUse:
    """What the cache holds: its folder, its files, and their bytes."""

    folder: Path
    files: int
    bytes: int


def cache_folder() -> Path:
    """Return the folder of the compiled objects."""
    return cache_dir() / TOOL


def precompiled_folder() -> Path:
    """Return the folder of the precompiled headers that projects share."""
    return cache_dir() / "precompiled"


def platformio_folder() -> Path:
    """Return where PlatformIO keeps what it needs for itself, apart from the user's own installation of it."""
    return cache_dir() / "platformio"


def cache_environment(project: Path) -> dict[str, str]:
    """Return the environment in which a compiler run finds the cache.

    Args:
        project: the project's folder; paths below it are taken as relative, so that projects share objects.
    """
    return {
        "CCACHE_DIR": str(cache_folder()),
        "CCACHE_BASEDIR": str(project.resolve()),
        "CCACHE_SLOPPINESS": _SLOPPINESS,
        "CCACHE_PCH_EXTSUM": "1",
    }


def measure_cache() -> CacheUse:
    """Return what the cache holds; an absent one holds nothing."""
    sizes = [
        (Path(base) / name).lstat().st_size
        for folder in (cache_folder(), precompiled_folder())
        for base, _, names in os.walk(folder)
        for name in names
        if name != "stats"
    ]
    return CacheUse(folder=cache_dir(), files=len(sizes), bytes=sum(sizes))


def prune_cache(*, keep_bytes: int) -> CacheUse:
    """Remove the precompiled headers, and the objects not used for longest until the rest takes keep_bytes at most.

    Raises:
        ToolError: ccache failed.
    """
    shutil.rmtree(precompiled_folder(), ignore_errors=True)
    if has_tool(TOOL) and cache_folder().is_dir():
        environment = {"CCACHE_DIR": str(cache_folder()), "CCACHE_MAXSIZE": f"{max(keep_bytes // 1000, 1)}k"}
        command = [TOOL, "--cleanup"] if keep_bytes else [TOOL, "--clear"]
        run(command, timeout_s=_TIMEOUT_S, env=environment)
    return measure_cache()
