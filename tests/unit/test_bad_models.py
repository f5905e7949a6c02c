"""Bad models through the command line: exit code 3, words that name file, layer, op and remedy, no traceback."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.modelmaker import ModelMaker, make_single_op_model
from tflm_forge.cli import main
from tflm_forge.errors import ModelError
from tflm_forge.model import load_model

MODEL_EXIT_CODE = 3
USAGE_EXIT_CODE = 2
DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def forge_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs `forge` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["forge", *map(str, args)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return Done(caught.value.code, captured.out, captured.err)

    return run


def _relu(*, op: str | int = "RELU", schema: int = 3) -> bytes:
    maker = ModelMaker(version=schema)
    x = maker.tensor("x", [1, 4], "INT8", scale=0.5)
    y = maker.tensor("the_layer", [1, 4], "INT8", scale=0.5)
    maker.operator(op, [x], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    return maker.finish()


def _custom(name: str) -> bytes:
    return make_single_op_model("CUSTOM", custom_name=name)


INT16 = (((1, 4), "INT16"),), ((1, 4), "INT16")

# What the file holds -> the words that must be there: what is wrong, where, and what to do.
BAD_MODELS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "zip": (b"PK\x03\x04" + bytes(60), ("zip archive", "Unpack it")),
    "text": (b"a list of layers\n", ("a text file", "Give the .tflite file")),
    "elf": (b"\x7fELF" + bytes(60), ("an ELF file", "Give the .tflite file")),
    "empty": (b"", ("empty", "Copy or convert the model again")),
    "schema": (_relu(schema=2), ("schema version 2", "version 3", "Convert the model again")),
    "truncated": (DIGITS.read_bytes()[:6400], ("6400 bytes", "cut short", "copy or convert it again")),
    "unknown op code": (_relu(op=3000), ("op code 3000", "'the_layer'", "update forge")),
    "flex": (_custom("FlexErf"), ("FlexErf", "'output'", "Erf", "SELECT_TF_OPS")),
    "custom": (_custom("MyOp"), ("MyOp", "'output'", "bundled", "no such custom op")),
    "lacking op": (_relu(op="HARD_SWISH"), ("HARD_SWISH", "'the_layer'", "bundled", "`forge ops`")),
    "version": (
        make_single_op_model("RELU", version=9),
        ("RELU", "'output'", "version 9", "up to version 2", "--allow-version RELU=9"),
    ),
    "type": (make_single_op_model("RELU", *INT16), ("RELU", "'output'", "INT16", "FLOAT32, INT8")),
}


@pytest.mark.parametrize("kind", BAD_MODELS)
@pytest.mark.parametrize("verb", ["build", "generate", "flash-and-test"])
def test_is_refused_before_anything_is_written(forge_here: Command, kind: str, verb: str) -> None:
    data, words = BAD_MODELS[kind]
    Path("bad.tflite").write_bytes(data)
    done = forge_here(verb, "bad.tflite", "--board", "stm32f4", "--runtime", "bundled")
    assert done.code == MODEL_EXIT_CODE
    for word in ("error: bad.tflite", *words):
        assert word in done.err
    assert done.out == ""
    assert [path.name for path in Path.cwd().iterdir()] == ["bad.tflite"]


@pytest.mark.parametrize("kind", ["zip", "truncated", "flex"])
def test_ends_the_process_without_a_traceback(forge, tmp_path: Path, kind: str) -> None:
    data, words = BAD_MODELS[kind]
    (tmp_path / "bad.tflite").write_bytes(data)
    done = forge("build", "bad.tflite", "--board", "stm32f4", "--runtime", "bundled")
    assert done.returncode == MODEL_EXIT_CODE
    assert "Traceback" not in done.stderr
    assert all(word in done.stderr for word in words)


@pytest.mark.parametrize("kind", ["custom", "lacking op", "version", "type", "flex"])
def test_inspect_shows_the_model_and_still_says_no(forge_here: Command, kind: str) -> None:
    data, words = BAD_MODELS[kind]
    Path("bad.tflite").write_bytes(data)
    done = forge_here("inspect", "bad.tflite", "--runtime", "bundled")
    assert done.code == MODEL_EXIT_CODE
    assert words[0] in done.err
    assert "Op set" in done.out


@pytest.mark.parametrize("path", [DIGITS, SINE], ids=lambda path: path.stem)
def test_cut_at_every_64th_byte_is_an_error_that_names_the_file(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    cut = tmp_path / "cut.tflite"
    for length in range(0, len(whole), 64):
        cut.write_bytes(whole[:length])
        with pytest.raises(ModelError) as caught:
            load_model(cut)
        assert str(cut) in caught.value.message
        assert caught.value.hint


def test_all_reasons_are_given_at_once(forge_here: Command) -> None:
    maker = ModelMaker()
    names = [maker.tensor(f"t{i}", [1, 4], "INT8", scale=0.5) for i in range(4)]
    maker.operator("CUSTOM", [names[0]], [names[1]], custom_name="FlexErf")
    maker.operator("HARD_SWISH", [names[1]], [names[2]])
    maker.operator("RELU", [names[2]], [names[3]], version=7)
    maker.subgraph(inputs=[names[0]], outputs=[names[3]])
    Path("bad.tflite").write_bytes(maker.finish())
    done = forge_here("build", "bad.tflite", "--board", "stm32f4", "--runtime", "bundled")
    assert done.code == MODEL_EXIT_CODE
    reasons = [line for line in done.err.splitlines() if line.startswith("  - ")]
    assert len(reasons) == 3
    assert [any(word in reason for reason in reasons) for word in ("FlexErf", "HARD_SWISH", "RELU")] == [True] * 3


def test_allowing_a_version_is_believed_for_that_op_and_version_only(forge_here: Command) -> None:
    Path("model.tflite").write_bytes(make_single_op_model("RELU", version=9))
    generate = ("generate", "model.tflite", "--board", "stm32f4", "--runtime", "bundled", "-o", "out")
    assert forge_here(*generate, "--allow-version", "RELU=8").code == MODEL_EXIT_CODE
    assert forge_here(*generate, "--allow-version", "ADD=9").code == MODEL_EXIT_CODE
    mistyped = forge_here(*generate, "--allow-version", "RELUX=9")
    assert mistyped.code == USAGE_EXIT_CODE
    assert "'RELU'" in mistyped.err
    assert forge_here(*generate, "--allow-version", "RELU=9").code == 0
    config = Path("out/src/forge_config.h").read_text(encoding="utf-8")
    assert '{ 19, 9, "", "RELU" }' in " ".join(config.split()).replace("{19", "{ 19").replace('"}', '" }')


@pytest.mark.parametrize("option", ["RELU", "RELU=", "RELU=new", "=3"])
def test_allow_version_of_another_form_is_a_usage_mistake(forge_here: Command, option: str) -> None:
    Path("model.tflite").write_bytes(make_single_op_model("RELU"))
    done = forge_here("build", "model.tflite", "--board", "stm32f4", "--allow-version", option)
    assert done.code == 2
    assert f"--allow-version {option}" in done.err
    assert "CONV_2D=8" in done.err
