"""The operator manifest, read as YAML and compared with the model as the PyPI schema reads it."""

import hashlib
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tflite
from ruamel.yaml import YAML

import tflm_forge
from tests.conftest import EXAMPLES
from tests.modelmaker import make_single_op_model
from tflm_forge.board import load_board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import UsageError
from tflm_forge.manifest import read_build, render_manifest
from tflm_forge.model import load_model, read_model
from tflm_forge.runtimes import plan_build

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
NAMES = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
NAMES_TO_CODE = {name: number for number, name in NAMES.items()}


def ops_by_schema(path: Path) -> Mapping[int, tuple[int, int]]:
    """Return version and number of uses of each builtin op, read with the PyPI package `tflite`."""
    model = tflite.Model.GetRootAs(path.read_bytes(), 0)
    found: dict[int, tuple[int, int]] = {}
    for g in range(model.SubgraphsLength()):
        graph = model.Subgraphs(g)
        for i in range(graph.OperatorsLength()):
            opcode = model.OperatorCodes(graph.Operators(i).OpcodeIndex())
            code = max(opcode.BuiltinCode(), opcode.DeprecatedBuiltinCode())
            version, count = found.get(code, (0, 0))
            found[code] = max(version, opcode.Version()), count + 1
    return found


def _render(path: Path, board: str = "stm32f4", **changes: Any) -> bytes:
    model = load_model(path)
    settings = BuildSettings(runtime="bundled", **changes)
    plan = plan_build(model, load_board(board).core, settings)
    return render_manifest(model, load_board(board), plan, settings, arena_bytes=4096, arena_how="measured")


def _read(text: bytes) -> dict[str, Any]:
    document = YAML(typ="safe").load(text.decode())
    assert list(document) == ["tflm_operator_manifest"]
    return document["tflm_operator_manifest"]


@pytest.mark.parametrize("path", [DIGITS, EXAMPLES / "sine" / "sine.tflite"], ids=lambda path: path.stem)
def test_says_what_the_model_uses(path: Path) -> None:
    manifest = _read(_render(path))
    data = path.read_bytes()
    wanted = ops_by_schema(path)
    assert manifest["format"] == 1
    assert manifest["forge"] == tflm_forge.__version__
    assert manifest["model"] == {"file": path.name, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    assert manifest["board"] == "stm32f4"
    assert manifest["runtime"]["name"] == "bundled"
    assert manifest["arena"] == {"bytes": 4096, "how": "measured"}
    found = {op["builtin_code"]: (op["version"], op["count"]) for op in manifest["ops"]}
    assert found == wanted
    assert all(op["name"] == NAMES[op["builtin_code"]] for op in manifest["ops"])
    assert all(op["max_version"] >= op["version"] for op in manifest["ops"])
    assert list(found) == sorted(found)


@pytest.mark.parametrize("path", [DIGITS, EXAMPLES / "sine" / "sine.tflite"], ids=lambda path: path.stem)
def test_op_hash_is_the_crc_of_the_op_set(path: Path) -> None:
    packed = b"".join(
        struct.pack("<IIB", code, version, 0) for code, (version, _) in sorted(ops_by_schema(path).items())
    )
    assert _read(_render(path))["op_hash"] == f"0x{zlib.crc32(packed):08X}"


def test_settings_can_be_read_back(tmp_path: Path) -> None:
    (tmp_path / "ops.manifest.yaml").write_bytes(_render(DIGITS, profile="debug", optimize="2"))
    facts = read_build(tmp_path)
    assert (facts.model_names, facts.board) == (("digits.tflite",), "stm32f4")
    settings = facts.settings
    assert (settings.runtime, settings.profile, settings.optimize) == ("bundled", "debug", "2")
    assert not settings.uses_lto
    assert not settings.strips_error_strings


def test_several_models_are_listed_each_with_its_ops(tmp_path: Path) -> None:
    paths = (SINE, DIGITS)
    models = [load_model(path) for path in paths]
    board = load_board("stm32f4")
    settings = BuildSettings(runtime="bundled")
    plan = plan_build(models[0], board.core, settings, models[1:])
    text = render_manifest(models[0], board, plan, settings, arena_bytes=4096, arena_how="measured", others=models[1:])
    manifest = _read(text)
    for path, row in zip(paths, manifest["models"], strict=True):
        alone = _read(_render(path))
        assert {key: row[key] for key in ("file", "sha256", "bytes")} == alone["model"]
        assert row["op_hash"] == alone["op_hash"]
        assert {NAMES_TO_CODE[op["name"]]: (op["version"], op["count"]) for op in row["ops"]} == ops_by_schema(path)
    (tmp_path / "ops.manifest.yaml").write_bytes(text)
    assert read_build(tmp_path).model_names == ("sine.tflite", "digits.tflite")


def test_one_model_is_not_listed_twice() -> None:
    assert "models" not in _read(_render(DIGITS))


@pytest.mark.parametrize("text", ["", "a: [", "tflm_operator_manifest: 3", "tflm_operator_manifest: {board: x}"])
def test_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "ops.manifest.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"ops\.manifest\.yaml"):
        read_build(tmp_path)


def test_same_model_gives_the_same_bytes() -> None:
    assert _render(DIGITS) == _render(DIGITS)


def test_names_of_a_model_can_not_leave_their_place() -> None:
    data = make_single_op_model("RELU").replace(b"output", b'o"\n:#\\')
    model = read_model(data, name="- a: {b}\n'c'.tflite")
    settings = BuildSettings(runtime="bundled")
    plan = plan_build(model, load_board("stm32f4").core, settings)
    manifest = _read(
        render_manifest(model, load_board("stm32f4"), plan, settings, arena_bytes=16, arena_how="measured")
    )
    assert manifest["model"]["file"] == model.name
    assert manifest["ops"][0]["first_layer"] == plan.registrations[0].use.first_layer


def test_allowed_version_stands_in_the_manifest(tmp_path: Path) -> None:
    path = tmp_path / "new.tflite"
    path.write_bytes(make_single_op_model("RELU", version=9))
    (op,) = _read(_render(path, allow_versions={"RELU": 11}))["ops"]
    assert (op["version"], op["max_version"]) == (9, 11)
