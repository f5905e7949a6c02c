"""Builds a project with CMake, Ninja and arm-none-eabi-gcc."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from tflm_forge import objects
from tflm_forge.errors import ToolError
from tflm_forge.generate import Project
from tflm_forge.proc import find_tool, has_tool, run
from tflm_forge.toolchains import LOG_NAME, Firmware
from tflm_forge.toolchains._failures import explain_failure

CONFIGURE_TIMEOUT_S = 120.0
BUILD_TIMEOUT_S = 1800.0

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
    firmware = Firmware.inside(build_dir)
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
        known = explain_failure(project, log.read_text(encoding="utf-8"), firmware.map)
        if known is not None:
            raise known from error
        raise
    return firmware


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
