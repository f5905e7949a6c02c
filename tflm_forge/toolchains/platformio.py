"""Builds a project with PlatformIO, offline, by the local platform that forge puts into it."""

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tflm_forge.errors import ToolError
from tflm_forge.generate import Project
from tflm_forge.objects import cache_environment, platformio_folder
from tflm_forge.proc import find_tool, has_tool, run
from tflm_forge.toolchains import LOG_NAME, Firmware
from tflm_forge.toolchains._failures import explain_failure

BUILD_TIMEOUT_S = 3600.0
_METADATA_TIMEOUT_S = 120.0
ENVIRONMENT = "forge"

_COMPILER = "arm-none-eabi-g++"
_INSTALL = "pip install 'tflm-forge[platformio]', or `pip install platformio scons` beside your pio"


def build(project: Project) -> Firmware:
    """Compile and link a project with `pio run`, in a core folder of forge's own.

    Raises:
        ToolError: PlatformIO, SCons or the compiler is missing, or the build failed.
        FitError: the firmware does not fit a region of the board's memory.
    """
    find_tool(_COMPILER)
    pio = find_pio()
    log = project.folder / LOG_NAME
    log.unlink(missing_ok=True)
    environment = {**cache_environment(project.folder), **pio_environment()}
    try:
        run(
            [*pio, "run", "--project-dir", project.folder, "-e", ENVIRONMENT],
            timeout_s=BUILD_TIMEOUT_S,
            env=environment,
            log=log,
        )
    except ToolError as error:
        output = log.read_text(encoding="utf-8")
        link_map = project.folder / ".pio" / "build" / ENVIRONMENT / "firmware.map"
        known = explain_failure(project, output, link_map) or _explain(output)
        if known is not None:
            raise known from error
        raise
    return Firmware.inside(_find_program(pio, project, environment).parent)


def _find_program(pio: Sequence[str], project: Project, environment: Mapping[str, str]) -> Path:
    """Return the ELF file, where PlatformIO says it is: the user's own PLATFORMIO_BUILD_DIR may have moved it.

    Raises:
        ToolError: it does not say.
    """
    command: list[str | Path] = [
        *pio,
        "project",
        "metadata",
        "--project-dir",
        project.folder,
        "-e",
        ENVIRONMENT,
        "--json-output",
    ]
    output = run(command, timeout_s=_METADATA_TIMEOUT_S, env=environment).output
    try:
        return Path(json.loads(output[output.index("{") :])[ENVIRONMENT]["prog_path"])
    except (ValueError, KeyError, TypeError) as error:
        raise ToolError("PlatformIO does not say where its program is", hint=output.strip()[-500:]) from error


def find_pio() -> list[str]:
    """Return the command that is PlatformIO: the one on PATH, else the one in forge's own Python.

    Raises:
        ToolError: there is none.
    """
    if has_tool("pio"):
        return [str(find_tool("pio"))]
    if importlib.util.find_spec("platformio") is None:
        raise ToolError("PlatformIO is not installed", hint=_INSTALL)
    return [sys.executable, "-m", "platformio"]


def pio_environment() -> dict[str, str]:
    """Return the variables with which PlatformIO asks nobody, tells nobody, and colours nothing."""
    return {
        "PLATFORMIO_CORE_DIR": str(platformio_folder()),
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
        "PLATFORMIO_SETTING_CHECK_PRUNE_SYSTEM_THRESHOLD": "0",
        "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
        "PLATFORMIO_NO_ANSI": "true",
        "PLATFORMIO_DISABLE_PROGRESSBAR": "true",
        **({"PYTHONEXEPATH": sys.executable} if importlib.util.find_spec("SCons") else {}),
    }


def _explain(output: str) -> ToolError | None:
    if "SCons is missing" in output:
        return ToolError("PlatformIO can not build here: SCons is not in its Python", hint=_INSTALL)
    if "HTTPClientError" in output or "InternetConnectionError" in output:
        return ToolError(
            "PlatformIO wants something from its registry and does not reach it",
            hint=f"env:{ENVIRONMENT} needs no download: has platformio.ini been changed? Else connect to the network.",
        )
    return None
