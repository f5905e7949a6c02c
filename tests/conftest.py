"""Marks that need something are skipped, with the reason, where it is absent."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chromium import find_chromium
from tests.firmware_builds import builds as builds

# What a shell starts in the background ignores SIGINT, and programs that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT.parent / "shared" / "models"
EXAMPLES = ROOT / "examples"

_TOOLS = ("arm-none-eabi-g++", "qemu-system-arm", "cmake", "ninja")


def _missing(mark: str) -> str:
    """Return why tests with a mark can not run here; empty when they can."""
    if mark == "tools":
        missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
        return f"not installed: {', '.join(missing)}" if missing else ""
    if mark == "models":
        return "" if MODELS.is_dir() else "no shared/models beside the project"
    if mark == "reference":
        found = importlib.util.find_spec("tflite_micro")
        return "" if found else "PyPI's tflite-micro is not installed (extra [reference])"
    if mark == "tflm":
        from tflm_forge.runtimes import load_runtime

        return "" if load_runtime("tflm").is_available() else "no TFLM tree is installed (forge runtime install tflm)"
    if mark == "browser":
        return "" if find_chromium() else "no Chromium (apt-get install chromium-headless-shell)"
    if mark == "hardware":
        return "" if os.environ.get("FORGE_TEST_PORT") else "no board: set FORGE_TEST_PORT"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons: dict[str, str] = {}
    for item in items:
        for mark in ("tools", "models", "reference", "tflm", "browser", "hardware"):
            if item.get_closest_marker(mark):
                if mark not in reasons:
                    reasons[mark] = _missing(mark)
                if reasons[mark]:
                    item.add_marker(pytest.mark.skip(reason=reasons[mark]))


@pytest.fixture(scope="session")
def shared_models() -> Path:
    """Return the folder of real models."""
    return MODELS


@pytest.fixture(scope="session")
def examples() -> Path:
    """Return the examples of the repository."""
    return EXAMPLES


Forge = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    """Return a function that runs `forge` in a folder of its own, as a user would."""

    def run(
        *args: object, cwd: Path = tmp_path, timeout_s: float = 300, **env: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "tflm_forge", *map(str, args)],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT), **env},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run
