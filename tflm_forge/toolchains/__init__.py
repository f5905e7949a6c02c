"""Ways to build a firmware project, one module each, with what `Toolchain` names."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import tflm_forge.toolchains as package
from tflm_forge.errors import UsageError
from tflm_forge.registry import load_alternative

if TYPE_CHECKING:
    from tflm_forge.generate import Project

LOG_NAME = "build.log"
"""What compilers and linker said of the last build, in the project's folder."""

_SUFFIXES = ("elf", "bin", "hex", "map")


@dataclass(frozen=True, kw_only=True)
class Firmware:
    """The files of one build."""

    elf: Path
    bin: Path
    hex: Path
    map: Path

    @classmethod
    def inside(cls, folder: Path) -> "Firmware":
        """Return the files by their names in a folder."""
        return cls(**{suffix: folder / f"firmware.{suffix}" for suffix in _SUFFIXES})


class Toolchain(Protocol):
    """What a module of this package offers."""

    def build(self, project: "Project") -> Firmware:
        """Compile and link a project; nothing is compiled again that did not change.

        The files stay in the toolchain's own folder until `publish` puts them beside the project.

        Raises:
            ToolError: a tool is missing or failed.
            FitError: the firmware does not fit a region of the board's memory.
        """


def load_toolchain(name: str) -> Toolchain:
    """Return the toolchain with this name.

    Raises:
        UsageError: no such toolchain.
    """
    return cast("Toolchain", load_alternative(package, name, kind="toolchain"))


def publish(folder: Path, built: Firmware) -> Firmware:
    """Put the results of a build into a project's folder; each file is replaced whole.

    Raises:
        UsageError: the folder can not be written.
    """
    published = Firmware.inside(folder)
    try:
        for suffix in _SUFFIXES:
            _replace_older(getattr(published, suffix), getattr(built, suffix))
    except OSError as error:
        raise UsageError(
            f"{folder}: can not write the firmware: {error.strerror or error}",
            hint="Choose another folder with -o.",
        ) from error
    return published


def _replace_older(target: Path, source: Path) -> None:
    if target.is_file() and target.stat().st_mtime_ns >= source.stat().st_mtime_ns:
        return
    temporary = target.with_name(f".{target.name}")
    try:
        shutil.copy2(source, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
