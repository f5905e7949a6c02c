"""Builds a project with CMake, Ninja and arm-none-eabi-gcc."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from tflm_forge import objects
from tflm_forge.errors import FitError, ToolError
from tflm_forge.generate import Project
from tflm_forge.proc import find_tool, has_tool, run
from tflm_forge.toolchains import Firmware

CONFIGURE_TIMEOUT_S = 120.0
BUILD_TIMEOUT_S = 1800.0
LOG_NAME = "build.log"

_OVERFLOW = re.compile(r"region `(\w+)' overflowed by (\d+) bytes")
_COMPILER = "arm-none-eabi-g++"


def build(project: Project) -> Firmware:
    """Compile and link a project; nothing is compiled again that did not change.

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
    if not (build_dir / "build.ninja").is_file():
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
    return _publish(project.folder, build_dir)


def _configure_command(folder: Path, build_dir: Path) -> Sequence[str | Path]:
    command: list[str | Path] = ["cmake", "-G", "Ninja", "-S", folder, "-B", build_dir]
    command += ["--toolchain", folder.resolve() / "toolchain.cmake"]
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


def _publish(folder: Path, build_dir: Path) -> Firmware:
    """Put the results beside the project; each file is replaced whole."""
    for suffix in ("elf", "bin", "hex", "map"):
        source, target = build_dir / f"firmware.{suffix}", folder / f"firmware.{suffix}"
        if not target.is_file() or target.stat().st_mtime_ns < source.stat().st_mtime_ns:
            temporary = folder / f".firmware.{suffix}"
            shutil.copy2(source, temporary)
            temporary.replace(target)
    return Firmware(
        elf=folder / "firmware.elf",
        bin=folder / "firmware.bin",
        hex=folder / "firmware.hex",
        map=folder / "firmware.map",
    )
