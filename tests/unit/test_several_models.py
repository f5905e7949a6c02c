"""`--with`: further models from the command line and from forge.toml."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, Forge

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
GENERATE = ("generate", "--board", "stm32f4", "--runtime", "bundled")


def test_forge_toml_names_further_models(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    shutil.copy(SINE, tmp_path / "models")
    (tmp_path / "forge.toml").write_text(f"[build]\nmodel = '{DIGITS}'\nwith = ['models/sine.tflite']\n")
    done = forge(*GENERATE)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "build" / "digits-sine-stm32f4"
    assert (folder / "model.tflite").read_bytes() == DIGITS.read_bytes()
    assert (folder / "model_1.tflite").read_bytes() == SINE.read_bytes()


def test_the_option_wins_over_forge_toml(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "forge.toml").write_text("[build]\nwith = ['missing.tflite']\n")
    done = forge(*GENERATE, SINE, "--with", DIGITS, "--with", SINE, "-o", "out")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / "out" / f"model_{i}.tflite").read_bytes() for i in (1, 2)] == [
        DIGITS.read_bytes(),
        SINE.read_bytes(),
    ]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [(("--with", "missing.tflite"), 3, "missing.tflite"), (("--with", SINE) * 16, 2, "17 models")],
    ids=["missing", "too many"],
)
def test_further_models_that_can_not_be_are_refused(
    forge: Forge, options: tuple[object, ...], code: int, words: str
) -> None:
    done = forge(*GENERATE, SINE, *options, "-o", "out")
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
