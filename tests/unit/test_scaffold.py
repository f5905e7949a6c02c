"""`forge op new`: what it writes, which names it refuses, and that it overwrites nothing."""

import ast
import tomllib
from pathlib import Path

import pytest

from tests.conftest import Forge
from tflm_forge.scaffold import KINDS

FILES = ("my_op.h", "my_op.cc", "my_op.py", "my_op_test.py")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_all_files_and_its_entry(forge: Forge, tmp_path: Path, kind: str) -> None:
    done = forge("op", "new", "MyOp", "--like", kind.lower())
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "ops").iterdir()) == sorted(FILES)
    (entry,) = tomllib.loads((tmp_path / "forge.toml").read_text())["op"]
    assert entry["name"] == "MyOp"
    kernel = (tmp_path / "ops" / "my_op.cc").read_text()
    assert "TFLMRegistration Register_MY_OP()" in kernel
    assert entry["register"] == "tflite::Register_MY_OP"
    assert all(len(line) <= 100 for line in kernel.splitlines())
    functions = {
        name: {node.name for node in ast.parse((tmp_path / "ops" / name).read_text()).body if hasattr(node, "name")}
        for name in ("my_op.py", "my_op_test.py")
    }
    assert functions == {"my_op.py": {"reference"}, "my_op_test.py": {"cases"}}


def test_forge_toml_keeps_what_it_has(forge: Forge, tmp_path: Path) -> None:
    before = "# mine\n[build]\nboard = 'stm32f4' # the small one\n"
    (tmp_path / "forge.toml").write_text(before)
    assert forge("op", "new", "MyOp").returncode == 0
    assert forge("op", "new", "Other").returncode == 0
    text = (tmp_path / "forge.toml").read_text()
    assert text.startswith(before)
    assert [entry["name"] for entry in tomllib.loads(text)["op"]] == ["MyOp", "Other"]


@pytest.mark.parametrize("there", FILES)
def test_nothing_is_overwritten_or_half_written(forge: Forge, tmp_path: Path, there: str) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / there).write_text("mine")
    done = forge("op", "new", "MyOp")
    assert done.returncode == 2
    assert f"ops/{there}" in done.stderr
    assert [path.read_text() for path in (tmp_path / "ops").iterdir()] == ["mine"]
    assert not (tmp_path / "forge.toml").exists()


def test_a_broken_forge_toml_stays_as_it_is(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "forge.toml").write_text("[build\n")
    done = forge("op", "new", "MyOp")
    assert done.returncode == 2
    assert "forge.toml" in done.stderr
    assert not (tmp_path / "ops").exists()


@pytest.mark.parametrize(
    ("name", "stem", "function"),
    [
        ("MyOp", "my_op", "MY_OP"),
        ("acme.FFT2d-v3", "acme_fft2d_v3", "ACME_FFT2D_V3"),
        ("HTTPPost", "http_post", "HTTP_POST"),
    ],
)
def test_the_exact_name_is_kept_whatever_the_files_are_called(
    forge: Forge, tmp_path: Path, name: str, stem: str, function: str
) -> None:
    assert forge("op", "new", name).returncode == 0
    (entry,) = tomllib.loads((tmp_path / "forge.toml").read_text())["op"]
    assert (entry["name"], entry["register"]) == (name, f"tflite::Register_{function}")
    assert (tmp_path / "ops" / f"{stem}.cc").is_file()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["2Fast"], "no C++ name"),
        (['My"Op'], "no C++ name"),
        (["CONV_2D"], "replaces"),
        (["EMBEDDING_LOOKUP_SPARSE"], "replaces"),
        (["SignalRfft"], "replaces"),
        (["Conv_2d"], "collide"),
        (["Relu"], "collide"),
        (["MyOp", "--like", "CONV_2D"], "RELU, RESHAPE, SOFTMAX"),
    ],
)
def test_names_that_can_not_be_are_refused(forge: Forge, tmp_path: Path, args: list[str], words: str) -> None:
    done = forge("op", "new", *args)
    assert done.returncode == 2
    assert words in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_op_that_forge_toml_has_is_refused(forge: Forge, tmp_path: Path) -> None:
    assert forge("op", "new", "MyOp").returncode == 0
    before = (tmp_path / "forge.toml").read_bytes()
    done = forge("op", "new", "MyOp")
    assert done.returncode == 2
    assert "already" in done.stderr
    assert (tmp_path / "forge.toml").read_bytes() == before


def test_op_test_without_ops_says_how_to_get_one(forge: Forge) -> None:
    done = forge("op", "test")
    assert done.returncode == 2
    assert "forge op new" in done.stderr


def test_a_failing_python_file_is_shown_without_forges_traceback(forge: Forge, tmp_path: Path) -> None:
    assert forge("op", "new", "MyOp").returncode == 0
    (tmp_path / "ops" / "my_op.py").write_text("def reference(inputs, outputs, options):\n    return inputs[7]\n")
    done = forge("op", "test", "--on", "host")
    assert done.returncode == 2
    assert "IndexError" in done.stderr
    assert "tflm_forge/cli.py" not in done.stderr


def test_a_reference_of_the_wrong_type_is_explained(forge: Forge, tmp_path: Path) -> None:
    assert forge("op", "new", "MyOp").returncode == 0
    (tmp_path / "ops" / "my_op.py").write_text(
        "def reference(inputs, outputs, options):\n    return [inputs[0].real()]\n"
    )
    done = forge("op", "test", "--on", "host")
    assert done.returncode == 2
    assert "float32" in done.stderr
    assert "quantize" in done.stderr
