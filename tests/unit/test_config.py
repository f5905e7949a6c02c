"""forge.toml: what it may say and how a mistake in it is shown."""

from pathlib import Path

import pytest

from tflm_forge.config import CONFIG_TEMPLATE, load_config
from tflm_forge.errors import UsageError


def _write(folder: Path, text: str) -> Path:
    (folder / "forge.toml").write_text(text, encoding="utf-8")
    return folder


def test_absent_file_is_the_empty_configuration(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    assert config.build.board is None
    assert config.test.inputs is None


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """
    [build]
    model = "m.tflite"
    board = "microbit"
    runtime = "bundled"
    output = "out"
    profile = "debug"
    optimize = "2"
    arena_bytes = 4096
    allow_version = ["CONV_2D=8"]
    [test]
    inputs = "x.npz"
    golden = "g.npz"
    seed = 7
    port = "/dev/ttyACM0"
    [runtime]
    mirror = "/srv/{owner}/{name}"
    """
    config = load_config(_write(tmp_path, text))
    assert config.build.model == tmp_path / "m.tflite"
    assert config.build.board == "microbit"
    assert config.build.output == tmp_path / "out"
    assert config.build.profile == "debug"
    assert config.build.optimize == "2"
    assert config.build.arena_bytes == 4096
    assert config.build.allow_version == ("CONV_2D=8",)
    assert config.test.inputs == tmp_path / "x.npz"
    assert config.test.seed == 7
    assert config.test.port == "/dev/ttyACM0"
    assert config.runtime.mirror == "/srv/{owner}/{name}"


def test_further_models_stand_beside_the_file(tmp_path: Path) -> None:
    config = load_config(_write(tmp_path, "[build]\nwith = ['second.tflite', '/models/third.tflite']"))
    assert config.build.with_ == (tmp_path / "second.tflite", Path("/models/third.tflite"))


def test_template_is_valid_and_names_every_key(tmp_path: Path) -> None:
    config = load_config(_write(tmp_path, CONFIG_TEMPLATE.format(model="m.tflite", board="stm32f4")))
    assert config.build.board == "stm32f4"
    uncommented = [line.removeprefix("# ") for line in CONFIG_TEMPLATE.format(model="m", board="b").splitlines()]
    lines = [line for line in uncommented if not line.startswith("Settings")]
    other = tmp_path / "all"
    other.mkdir()
    everything = load_config(_write(other, "\n".join(lines)))
    for table in (everything.build, everything.test, everything.runtime):
        assert None not in vars(table).values()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[build]\nbord = 'x'", ["forge.toml", "[build]", "'bord'"]),
        ("[biuld]\nboard = 'x'", ["forge.toml", "'biuld'"]),
        ("[build]\nboard = 3", ["[build] board", "a string"]),
        ("[build]\narena_bytes = 'big'", ["[build] arena_bytes", "whole number"]),
        ("[build]\narena_bytes = -1", ["[build] arena_bytes"]),
        ("[build]\narena_bytes = true", ["[build] arena_bytes"]),
        ("[build]\nprofile = 'fast'", ["[build] profile", "'release'", "'debug'"]),
        ("[build]\nallow_version = 'x'", ["allow_version", "list of strings"]),
        ("[build]\nwith = 'x.tflite'", ["[build] with", "list of paths"]),
        ("[build]\nwith_ = []", ["[build]", "'with_'"]),
        ("build = 1", ["build", "table"]),
        ("[build", ["forge.toml", "not valid TOML"]),
    ],
)
def test_mistakes_name_file_and_key(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        load_config(_write(tmp_path, text))
    for word in words:
        assert word in caught.value.message
    assert caught.value.exit_code == 2


def test_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_config(_write(tmp_path, "[build]\nbord = 'x'"))
    assert "'board'" in caught.value.hint
