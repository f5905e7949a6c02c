"""The wheel: it holds all that forge needs, and builds firmware from a clean venv in another folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import filelock
import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import ROOT, Builds, sections_of

pytestmark = pytest.mark.tools

TIMEOUT_S = 300.0


def _run(*args: object, cwd: Path, **environment: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(a) for a in args],
        cwd=cwd,
        env={**clean, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(builds: Builds) -> Path:
    """Return a folder with a wheel in dist/ and a venv that has it and what it depends on."""
    folder = builds.folder / "wheel"
    python = folder / "venv" / "bin" / "python"
    with filelock.FileLock(builds.folder / "wheel.lock"):
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            _run(sys.executable, "-m", "venv", "venv", cwd=folder)
            _run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", "dist", ROOT, cwd=folder)
            (wheel,) = (folder / "dist").glob("*.whl")
            _run(python, "-m", "pip", "install", "-q", wheel, cwd=folder)
            (folder / "done").touch()
    return folder


def test_holds_boards_templates_and_the_bundled_runtime(place: Path) -> None:
    (wheel,) = (place / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for folder in ("boards", "templates", "tflm_forge"):
        tracked = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert len(tracked) > 5
        inside = {
            f"tflm_forge/{path.relative_to(ROOT)}".replace("tflm_forge/tflm_forge", "tflm_forge") for path in tracked
        }
        assert inside <= names, sorted(inside - names)
    assert not any(name.startswith(("tests/", "tflm_forge/tests", "examples/")) for name in names)
    assert any(name.endswith("/LICENSE") for name in names)


def test_builds_firmware_like_the_checkout(place: Path, builds: Builds, tmp_path: Path) -> None:
    model = tmp_path / "sine.tflite"
    model.write_bytes((EXAMPLES / "sine" / "sine.tflite").read_bytes())
    forge = place / "venv" / "bin" / "forge"
    caches = {key: value for key, value in builds.environment().items() if key.startswith("FORGE_")}
    shown = _run(forge, "build", "sine.tflite", "--board", "mps2-an386", cwd=tmp_path, **caches)
    assert "Built sine.tflite for mps2-an386" in shown
    built = tmp_path / "build" / "sine-mps2-an386"
    reference = builds.build(EXAMPLES / "sine" / "sine.tflite", "mps2-an386")
    assert (built / "firmware.bin").read_bytes() == (reference / "firmware.bin").read_bytes()
    assert sections_of(built / "firmware.elf")[".forge_model"]


def test_tests_its_firmware_without_the_reference_extra(place: Path, builds: Builds) -> None:
    forge = place / "venv" / "bin" / "forge"
    caches = {key: value for key, value in builds.environment().items() if key.startswith("FORGE_")}
    model = EXAMPLES / "sine" / "sine.tflite"
    options = ("--board", "mps2-an386", "-o", place / "sine")
    assert "PASSED" in _run(forge, "flash-and-test", model, *options, cwd=place, **caches)
