"""The command line: help, examples, exit codes, errors without tracebacks."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tflm_forge.commands
from tflm_forge.cli import make_app
from tflm_forge.registry import list_names

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = [name.replace("_", "-") for name in list_names(tflm_forge.commands)]


def test_the_commands_of_first_light_are_there() -> None:
    assert {"inspect", "generate", "build", "size", "flash-and-test", "boards", "ops", "init"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_an_example_and_a_readme_line(command: str) -> None:
    result = CliRunner().invoke(make_app(), [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: forge {command}" in " ".join(result.output.split())
    assert f"`forge {command}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_version_is_the_packages_own(forge) -> None:
    done = forge("--version")
    assert done.returncode == 0
    assert done.stdout.strip() == f"forge {tflm_forge.__version__}"


def test_boards_as_json_are_machine_readable(forge) -> None:
    done = forge("boards", "--json")
    boards = {board["name"]: board for board in json.loads(done.stdout)}
    assert boards["stm32f4"]["flash_bytes"] == 1024 * 1024
    assert boards["microbit"]["ram_bytes"] == 16 * 1024


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["build"], 2, "no model given"),
        (["build", "nowhere.tflite", "--board", "stm32f4"], 3, "nowhere.tflite"),
        (["build", "x.tflite"], 2, "no board given"),
        (["boards", "--nonsense"], 2, "--nonsense"),
        (["nonsense"], 2, "nonsense"),
        (["size", "nowhere.elf"], 2, "nowhere.elf"),
        (["size"], 2, "no firmware given"),
        (["size", "x.tflite"], 2, "which board"),
        (["size", "x.elf", "--json", "--markdown"], 2, "--markdown and --json"),
        (["size", "x.elf", "--why", "main", "--short"], 2, "only --json"),
        (["ops", "CONV2D", "--runtime", "bundled"], 2, "CONV_2D"),
        (["ops", "--runtime", "bundeld"], 2, "'bundled'"),
        (["build", "x.tflite", "--board", "stm32f5"], 2, "'stm32f4'"),
    ],
)
def test_mistakes_end_with_their_code_and_no_traceback(forge, args: list[str], code: int, words: str) -> None:
    done = forge(*args)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_init_writes_a_file_that_build_understands(forge, tmp_path: Path, examples: Path) -> None:
    model = examples / "sine" / "sine.tflite"
    assert forge("init", model, "--board", "mps2-an386").returncode == 0
    assert 'board = "mps2-an386"' in (tmp_path / "forge.toml").read_text()
    again = forge("init", model)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert forge("init", model, "--force").returncode == 0


def test_unknown_key_of_forge_toml_is_named(forge, tmp_path: Path) -> None:
    (tmp_path / "forge.toml").write_text("[build]\nbord = 'stm32f4'\n")
    done = forge("generate", "x.tflite")
    assert done.returncode == 2
    assert "'bord'" in done.stderr
    assert "'board'" in done.stderr


def test_bisect_takes_one_model_and_says_so(forge, examples: Path) -> None:
    model = examples / "sine" / "sine.tflite"
    done = forge("bisect", model, "--board", "stm32f4", "--with", examples / "digits" / "digits.tflite")
    assert done.returncode == 2
    assert "without --with" in done.stderr
