"""`forge doctor` and `forge inspect --runtimes` as a user runs them."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import Forge
from tests.doctor_models import convolution, dense, unary
from tests.modelmaker import make_single_op_model
from tests.unit.runtimes.small_tree import write_package, write_tree
from tflm_forge.doctor import RULES
from tflm_forge.runtimes.tflm.install import install

MODEL, USAGE, TOOL = 3, 2, 4
PACKAGES = ("flatbuffers", "gemmlowp", "ruy", "kissfft", "cmsis", "cmsis_nn")


@pytest.fixture
def empty_home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


def test_a_sound_model_ends_with_0(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(dense())
    done = forge("doctor", "m.tflite", "--runtime", "tflm", "--board", "stm32f4", FORGE_HOME=empty_home)
    assert done.returncode == 0, done.stderr
    assert "0 errors, 0 warnings, 0 notes" in done.stdout
    assert "on stm32f4" in done.stdout
    assert done.stderr == ""


def test_an_error_ends_with_3_and_says_where_and_what_to_do(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(dense(activation="FLOAT32"))
    done = forge("doctor", "m.tflite", "--runtime", "tflm", FORGE_HOME=empty_home)
    assert done.returncode == MODEL
    for words in ("error: hybrid-quantization", "layer 'dense'", "-> Convert again with a representative dataset"):
        assert words in done.stdout
    assert "1 error (hybrid-quantization)" in done.stderr
    assert "Traceback" not in done.stderr


def test_json_has_everything(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(convolution(w_zero=5))
    done = forge("doctor", "m.tflite", "--runtime", "bundled", "--json", FORGE_HOME=empty_home)
    assert done.returncode == MODEL
    report = json.loads(done.stdout)
    assert report["tflm_forge_doctor"] == 1
    assert not report["runs"]
    (finding,) = report["findings"]
    assert (finding["id"], finding["severity"], finding["layer"]) == ("asymmetric-weights", "error", "conv")
    assert finding["silenced"] is None


def test_a_silenced_rule_stands_no_longer(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(convolution(w_zero=5))
    (tmp_path / "forge.toml").write_text('[doctor]\nsilence = { asymmetric-weights = "zeros in truth" }\n')
    done = forge("doctor", "m.tflite", "--runtime", "bundled", FORGE_HOME=empty_home)
    assert done.returncode == 0
    assert "silenced: asymmetric-weights" in done.stdout
    assert "zeros in truth" in done.stdout
    done = forge("inspect", "m.tflite", "--runtime", "bundled", FORGE_HOME=empty_home)
    assert done.returncode == 0
    assert "zeros in truth" in done.stderr
    done = forge(
        "generate", "m.tflite", "--runtime", "bundled", "--board", "stm32f4", "-o", "out", FORGE_HOME=empty_home
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[doctor]\nsilence = { asymetric = "x" }\n', "unknown rule 'asymetric'"),
        ('[doctor]\nsilence = { float16 = "" }\n', "has no reason"),
        ('[doctor]\nsilence = ["float16"]\n', "must be a table of strings"),
        ("[doctor]\nsilent = {}\n", "unknown key 'silent'"),
    ],
)
def test_a_wrong_table_is_a_usage_error(forge: Forge, tmp_path: Path, text: str, words: str, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(dense())
    (tmp_path / "forge.toml").write_text(text)
    done = forge("doctor", "m.tflite", "--runtime", "bundled", FORGE_HOME=empty_home)
    assert done.returncode == USAGE
    assert words in done.stderr


def test_a_wrong_table_stops_a_build_too(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(dense())
    (tmp_path / "forge.toml").write_text('[doctor]\nsilence = { asymetric = "x" }\n')
    done = forge("generate", "m.tflite", "--board", "stm32f4", "--runtime", "bundled", FORGE_HOME=empty_home)
    assert done.returncode == USAGE
    assert "asymmetric" in done.stderr


def test_the_runtime_comes_from_forge_toml(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(unary("RELU", version=9))
    (tmp_path / "forge.toml").write_text('[build]\nruntime = "tflm"\nallow_version = ["RELU=9"]\n')
    done = forge("doctor", "m.tflite", FORGE_HOME=empty_home)
    assert done.returncode == 0, done.stdout
    assert "runtime tflm" in done.stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("m.tflite", "--runtime", "bundeld"), USAGE, "'bundled'"),
        (("m.tflite", "--board", "stm32f5"), USAGE, "'stm32f4'"),
        (("m.tflite", "--runtime", "tflm", "--kernel-set", "cmsis"), USAGE, "cmsis_nn"),
        (("m.tflite", "--allow-version", "RELUX=3", "--runtime", "bundled"), USAGE, "RELU"),
        (("nowhere.tflite",), MODEL, "no such file"),
        (("broken.tflite",), MODEL, "not a .tflite model"),
    ],
)
def test_mistakes(forge: Forge, tmp_path: Path, args: tuple[str, ...], code: int, words: str, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(dense())
    (tmp_path / "broken.tflite").write_bytes(b"no model")
    done = forge("doctor", *args, FORGE_HOME=empty_home)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_kernel_set_is_judged_for_itself(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    (tmp_path / "m.tflite").write_bytes(dense(version=11))
    common = ("doctor", "m.tflite", "--runtime", "tflm")
    assert forge(*common, FORGE_HOME=empty_home).returncode == 0
    done = forge(*common, "--kernel-set", "cmsis_nn", FORGE_HOME=empty_home)
    assert done.returncode == MODEL
    assert "op-version" in done.stdout


def test_all_rules_are_listed(forge: Forge) -> None:
    done = forge("doctor", "--rules")
    assert done.returncode == 0
    assert all(f"\n{rule.id} " in done.stdout for rule in RULES)
    rules = json.loads(forge("doctor", "--rules", "--json").stdout)["rules"]
    assert [rule["id"] for rule in rules] == [rule.id for rule in RULES]
    assert all(rule["why"] and rule["source"] for rule in rules)


def test_a_machine_without_tools_is_told_what_to_install(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    done = forge("doctor", PATH=str(bare), FORGE_HOME=empty_home, FORGE_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == TOOL
    assert "MISSING" in done.stdout
    install_line = next(line for line in done.stdout.splitlines() if line.startswith("To install"))
    for package in ("gcc-arm-none-eabi", "cmake", "ninja-build", "qemu-system-arm"):
        assert package in install_line
    assert "openocd" not in install_line
    assert "arm-none-eabi-g++" in done.stderr


def test_a_machine_with_tools_as_json(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("arm-none-eabi-g++", "cmake", "ninja", "qemu-system-arm"):
        (tools / name).write_text(f"#!{shutil.which('sh')}\necho '{name} (GNU) 12.3.4 of today'\n")
        (tools / name).chmod(0o755)
    (tools / "openocd").write_text(f"#!{shutil.which('sh')}\nexit 1\n")
    (tools / "openocd").chmod(0o755)
    done = forge("doctor", "--json", PATH=str(tools), FORGE_HOME=empty_home, FORGE_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    parts = {part["name"]: part for part in report["parts"]}
    assert report["install"] is None
    assert parts["cmake"]["state"] == "ok"
    assert parts["cmake"]["found"].startswith("12.3.4")
    assert parts["openocd"]["state"] == "problem"
    assert parts["ccache"]["state"] == "optional"
    assert parts["ccache"]["apt"] == ["ccache"]
    assert parts["tflm"]["remedy"] == "forge runtime install tflm"
    assert parts["forge"]["found"].endswith(
        f"Python {sys.version.split()[0]}, Linux {__import__('platform').machine()}"
    )


@pytest.fixture
def two_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Install two small trees, one with CUMSUM and one without; return their folders' names."""
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "home"))
    names = {}
    for name in ("with", "without"):
        root = write_tree(tmp_path / name)
        for package in PACKAGES:
            write_package(root / "third_party" / package, package)
        resolver = root / "tensorflow/lite/micro/micro_mutable_op_resolver.h"
        if name == "without":
            before, _, rest = resolver.read_text().partition("  TfLiteStatus AddCumSum(")
            resolver.write_text(before + rest.partition("  }\n")[2])
        names[name] = install(tree=root).name
    return names


def test_runtimes_are_compared(forge: Forge, tmp_path: Path, two_trees: dict[str, str]) -> None:
    model = make_single_op_model("CUMSUM", (((1, 4), "FLOAT32"), ((1,), "INT32")), ((1, 4), "FLOAT32"))
    (tmp_path / "m.tflite").write_bytes(model)
    names = ["bundled", two_trees["with"], two_trees["without"]]
    done = forge("inspect", "m.tflite", "--runtimes", ",".join(names), "--json")
    assert done.returncode == 0, done.stderr
    verdicts = {each["name"]: each for each in json.loads(done.stdout)["runtimes"]}
    assert [verdicts[name]["runs"] for name in names] == [False, True, False]
    (finding,) = [f for f in verdicts[two_trees["without"]]["findings"] if f["severity"] == "error"]
    assert finding["id"] == "missing-op"
    assert "CUMSUM" in finding["words"]
    # The commit that this forge was made with has it.
    assert "forge runtime install tflm" in finding["remedy"]
    shown = forge("inspect", "m.tflite", "--runtimes", ",".join(names)).stdout
    assert "no: missing-op" in shown
    assert "yes" in shown
    none = forge("inspect", "m.tflite", "--runtimes", f"bundled,{two_trees['without']}")
    assert none.returncode == MODEL
    assert "none of these runtimes" in none.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--runtimes", "bundeld"), "'bundled'"),
        (("--runtimes", ","), "--runtimes names none"),
        (("--runtimes", "bundled", "--runtime", "bundled"), "exclude each other"),
    ],
)
def test_runtimes_that_are_not_there(forge: Forge, tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    (tmp_path / "m.tflite").write_bytes(dense())
    done = forge("inspect", "m.tflite", *args, FORGE_HOME=str(tmp_path / "home"))
    assert done.returncode == USAGE
    assert words in done.stderr


def test_inspect_shows_which_tflite_the_converter_asks_for(forge: Forge, tmp_path: Path, empty_home: str) -> None:
    from tests.modelmaker import ModelMaker

    maker = ModelMaker()
    maker.tensor("x", [1, 4])
    maker.tensor("y", [1, 4])
    maker.operator("RELU", [0], [1])
    maker.subgraph(inputs=[0], outputs=[1])
    maker.add_metadata("min_runtime_version", b"2.6.0" + bytes(11))
    (tmp_path / "m.tflite").write_bytes(maker.finish())
    done = forge("inspect", "m.tflite", "--runtime", "bundled", FORGE_HOME=empty_home)
    assert "2.6.0" in done.stdout
    done = forge("inspect", "m.tflite", "--runtime", "bundled", "--json", FORGE_HOME=empty_home)
    assert json.loads(done.stdout)["min_runtime_version"] == "2.6.0"
