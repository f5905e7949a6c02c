"""Builds a project with CMake, Ninja and arm-none-eabi-gcc."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from tflm_forge import objects
from tflm_forge.errors import FitError, ToolError, UsageError
from tflm_forge.generate import Project
from tflm_forge.proc import find_tool, has_tool, run
from tflm_forge.toolchains import Firmware

CONFIGURE_TIMEOUT_S = 120.0
BUILD_TIMEOUT_S = 1800.0
LOG_NAME = "build.log"

_SUFFIXES = ("elf", "bin", "hex", "map")
_OVERFLOW = re.compile(r"region `(\w+)' overflowed by (\d+) bytes")
_COMPILER = "arm-none-eabi-g++"


def build(project: Project) -> Firmware:
    """Compile and link a project; nothing is compiled again that did not change.

    The files stay in the project's build folder until `publish` puts them beside the project.

    Raises:
        ToolError: a tool is missing or failed.
        FitError: the firmware does not fit a region of the board's memory.
    """
    for tool in (_COMPILER, "cmake", "ninja"):
        find_tool(tool)
    build_dir = project.folder / "build"
    log = project.folder / LOG_NAME
    log.unlink(missing_ok=True)
    environment = objects.cache_environment(project.folder)
    if not _is_configured(project.folder, build_dir):
        run(
            _configure_command(project.folder, build_dir),
            timeout_s=CONFIGURE_TIMEOUT_S,
            env=environment,
            log=log,
        )
    try:
        run(["ninja", "-C", build_dir], timeout_s=BUILD_TIMEOUT_S, env=environment, log=log)
    except ToolError as error:
        fit = _fit_error(project, log.read_text(encoding="utf-8"))
        if fit is not None:
            raise fit from error
        raise
    return Firmware(**{suffix: build_dir / f"firmware.{suffix}" for suffix in _SUFFIXES})


def publish(project: Project, built: Firmware) -> Firmware:
    """Put the results of a build beside the project; each file is replaced whole.

    Raises:
        UsageError: the folder can not be written.
    """
    published = Firmware(**{suffix: project.folder / f"firmware.{suffix}" for suffix in _SUFFIXES})
    try:
        for suffix in _SUFFIXES:
            _replace_older(getattr(published, suffix), getattr(built, suffix))
    except OSError as error:
        raise UsageError(
            f"{project.folder}: can not write the firmware: {error.strerror or error}",
            hint="Choose another folder with -o.",
        ) from error
    return published


def _is_configured(folder: Path, build_dir: Path) -> bool:
    """Whether CMake has run for this very folder; one that was moved or copied is configured anew."""
    cache = build_dir / "CMakeCache.txt"
    if not (build_dir / "build.ninja").is_file() or not cache.is_file():
        return False
    lines = cache.read_text(encoding="utf-8", errors="replace").splitlines()
    if f"CMAKE_HOME_DIRECTORY:INTERNAL={folder.resolve().as_posix()}" in lines:
        return True
    shutil.rmtree(build_dir)
    return False


def _configure_command(folder: Path, build_dir: Path) -> Sequence[str | Path]:
    command: list[str | Path] = ["cmake", "-G", "Ninja", "-S", folder, "-B", build_dir]
    command += ["--toolchain", folder.resolve() / "toolchain.cmake"]
    command += [f"-DPRECOMPILED_DIR={objects.precompiled_folder().as_posix()}", "--no-warn-unused-cli"]
    if has_tool(objects.TOOL):
        command += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={objects.TOOL}" for language in ("C", "CXX")]
    return command


def _fit_error(project: Project, output: str) -> FitError | None:
    """Read the linker's overflow messages: the linker script's regions have the board file's names."""
    over = {name: int(count) for name, count in _OVERFLOW.findall(output)}
    if not over:
        return None
    board = project.board
    return FitError(
        f"{project.model.name} does not fit {board.name}",
        reasons=[
            f"{region.name}: {over[region.name]} bytes over its {region.length_bytes} bytes "
            f"({_largest(project, region.kind)})"
            for region in (board.flash, board.ram)
            if region.name in over
        ],
        hint="Choose a board with more memory (`forge boards`) or a smaller model.",
        bytes_over=over,
    )


def _largest(project: Project, kind: str) -> str:
    if kind == "flash":
        return f"the model alone is {len(project.model.data)} bytes"
    return f"the tensor arena is {project.arena.bytes} bytes, the stack {project.board.stack_bytes} bytes"


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
