"""The operator manifest, read as YAML and compared with the model as the PyPI schema reads it."""

import difflib
import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tflite
from ruamel.yaml import YAML

import tflm_forge
from tests.conftest import EXAMPLES
from tests.modelmaker import make_single_op_model
from tflm_forge.board import load_board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import UsageError
from tflm_forge.generate import Arena, Project, generate_project
from tflm_forge.manifest import (
    Manifest,
    ManifestArena,
    ManifestFlash,
    make_manifest,
    parse_manifest,
    read_build,
    render_embedded,
    render_manifest,
)
from tflm_forge.manifest.measured import write_flash, write_saving
from tflm_forge.model import Model, load_model, read_model
from tflm_forge.runtimes import plan_build, plan_ops

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


SCHEMA = json.loads((Path(tflm_forge.__file__).parent / "manifest" / "schema.json").read_text(encoding="utf-8"))


def make_of(*models: Model, board: str = "stm32f4", **changes: Any) -> Manifest:
    """Return the manifest of bundled firmware with a measured arena."""
    settings = BuildSettings(runtime="bundled", **changes)
    plan = plan_ops(models[0], load_board(board).core, settings, models[1:])
    return make_manifest(
        models, load_board(board), plan, settings, arena=ManifestArena(size_bytes=4096, how="measured")
    )


def _render(path: Path, **changes: Any) -> bytes:
    return render_manifest(make_of(load_model(path), **changes))


def _read(text: bytes) -> dict[str, Any]:
    document = YAML(typ="safe").load(text.decode())
    jsonschema.validate(document, SCHEMA)
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
    text = render_manifest(make_of(*(load_model(path) for path in paths)))
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
    text = render_manifest(make_of(model))
    manifest = _read(text)
    label = model.subgraphs[0].operators[0].label
    assert "\n" in label
    assert manifest["model"]["file"] == model.name
    assert manifest["ops"][0]["first_layer"] == label
    assert parse_manifest(text, "x").ops[0].first_layer == label


def test_allowed_version_stands_in_the_manifest(tmp_path: Path) -> None:
    path = tmp_path / "new.tflite"
    path.write_bytes(make_single_op_model("RELU", version=9))
    (op,) = _read(_render(path, allow_versions={"RELU": 11}))["ops"]
    assert (op["version"], op["max_version"]) == (9, 11)


def test_types_of_every_use_are_listed() -> None:
    graph = tflite.Model.GetRootAs(DIGITS.read_bytes(), 0).Subgraphs(0)
    types = {number: name for name, number in vars(tflite.TensorType).items() if isinstance(number, int)}
    model = tflite.Model.GetRootAs(DIGITS.read_bytes(), 0)
    found: dict[int, list[str]] = {}
    for i in range(graph.OperatorsLength()):
        operator = graph.Operators(i)
        sides = (operator.InputsAsNumpy().tolist(), operator.OutputsAsNumpy().tolist())
        text = " -> ".join(", ".join(types[graph.Tensors(t).Type()] for t in side) for side in sides)
        code = model.OperatorCodes(operator.OpcodeIndex()).BuiltinCode()
        found.setdefault(code, [])
        if text not in found[code]:
            found[code].append(text)
    manifest = _read(_render(DIGITS))
    assert {op["builtin_code"]: op["types"] for op in manifest["ops"]} == found


def test_one_more_op_is_one_more_block(tmp_path: Path) -> None:
    """Two models that differ in one op: the lines of all others stay as they are."""
    ops = parse_manifest(_render(DIGITS), "x").ops
    all_of_it = make_of(load_model(DIGITS))
    fewer = replace(all_of_it, ops=tuple(op for op in ops if op.name != "SOFTMAX"))
    whole, part = (
        render_manifest(replace(m, op_hash=m.computed_op_hash)).decode().splitlines() for m in (all_of_it, fewer)
    )
    changed = [line for line in difflib.ndiff(part, whole) if line[0] in "+-"]
    hashes = [line for line in changed if "checksum" in line or "op_hash" in line]
    block = [line for line in changed if line not in hashes]
    assert len(hashes) == 4
    assert {line[0] for line in block} == {"+"}
    assert block[0] == "+   - name: SOFTMAX"


def test_nothing_of_this_machine_is_in_it(tmp_path: Path) -> None:
    text = _render(DIGITS).decode()
    assert str(EXAMPLES) not in text
    assert "/" not in text.replace("digits_1/", "").replace("\n", " ").split("ops:")[0]


def test_what_was_written_is_read_back() -> None:
    manifest = replace(
        make_of(load_model(DIGITS), allow_versions={"CONV_2D": 9}),
        flash=ManifestFlash(size_bytes=30, limit_bytes=100, groups={"model weights": 10, "C library: printf": 20}),
        saving_kb=12.5,
    )
    assert parse_manifest(render_manifest(manifest), "x") == manifest
    several = make_of(load_model(SINE), load_model(DIGITS))
    assert parse_manifest(render_manifest(several), "x") == several


def test_the_firmware_carries_all_that_is_known_before_its_link() -> None:
    manifest = make_of(load_model(DIGITS))
    after = replace(manifest, flash=ManifestFlash(size_bytes=1, limit_bytes=1 << 20, groups={"a": 1}), saving_kb=1.0)
    assert render_embedded(after) == render_manifest(manifest)


@pytest.mark.parametrize("version", ["1234567890e1", "123456789012", "0x12", "0o17", "yes", "null", "~", "1_0", "1:30"])
def test_version_that_looks_like_another_value_stays_text(version: str) -> None:
    manifest = make_of(load_model(SINE))
    assert manifest.runtime is not None
    text = render_manifest(replace(manifest, runtime=replace(manifest.runtime, version=version)))
    assert _read(text)["runtime"]["version"] == version  # a reader of YAML 1.2
    assert parse_manifest(text, "x").runtime.version == version


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a rendered project of digits."""
    model, board = load_model(DIGITS), load_board("stm32f4")
    settings = BuildSettings(runtime="bundled")
    plan = plan_build(model, board.core, settings)
    return generate_project(tmp_path / "out", model, board, plan, settings, Arena(bytes=4096, how="measured"))


def _again(project: Project, arena_bytes: int = 4096) -> bytes:
    """Render a project once more, as the next build does, and return its manifest."""
    arena = Arena(bytes=arena_bytes, how="measured")
    generate_project(project.folder, project.model, project.board, project.plan, project.settings, arena)
    return (project.folder / "ops.manifest.yaml").read_bytes()


def test_saving_is_in_the_manifest_at_once_and_stays(project: Project) -> None:
    write_saving(project.folder, project.build_id.hex(), 101_349)
    text = (project.folder / "ops.manifest.yaml").read_bytes()
    assert _read(text)["total_flash_saving_kb"] == 101.3
    assert _again(project) == text


def test_flash_is_measured_once_for_each_firmware(project: Project, tmp_path: Path) -> None:
    elf, asked = tmp_path / "firmware.elf", []
    elf.write_bytes(b"one")

    def measure() -> Mapping[str, int]:
        asked.append(elf.read_bytes())
        return {"model weights": 10, "operators": len(asked)}

    write_flash(project.folder, project.build_id.hex(), elf, measure)
    text = (project.folder / "ops.manifest.yaml").read_bytes()
    assert _read(text)["flash"] == {
        "bytes": 11, "limit": 1 << 20, "groups": {"model weights": 10, "operators": 1}
    }  # fmt: skip
    assert _again(project) == text
    write_flash(project.folder, project.build_id.hex(), elf, measure)
    assert asked == [b"one"]
    elf.write_bytes(b"another compiler made it")
    write_flash(project.folder, project.build_id.hex(), elf, measure)
    assert len(asked) == 2
    # With another arena it is another firmware: nothing of it is known before it is linked.
    assert _read(_again(project, arena_bytes=8192))["flash"] == {"limit": 1 << 20}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"build_id": 3}', '{"groups": 1}'])
def test_what_was_kept_of_a_build_may_be_damaged(project: Project, content: str) -> None:
    before = (project.folder / "ops.manifest.yaml").read_bytes()
    for name in ("flash.json", "versus.json"):
        (project.folder / name).write_text(content.replace("3", f'"{project.build_id.hex()}"'))
    assert _again(project) == before


def test_facts_in_the_project_are_those_of_its_manifest(project: Project) -> None:
    facts = (project.folder / "facts.yaml").read_bytes()
    assert parse_manifest(facts, "x") == parse_manifest((project.folder / "ops.manifest.yaml").read_bytes(), "x")
    write_saving(project.folder, project.build_id.hex(), 1)
    _again(project)
    assert (project.folder / "facts.yaml").read_bytes() == facts
