"""Rendering a project: whole, repeatable, nothing of others touched, nothing a model's names can break."""

import hashlib
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import EXAMPLES
from tests.modelmaker import make_single_op_model
from tests.unit.test_manifest import ops_by_schema
from tflm_forge import generate as module
from tflm_forge.board import load_board
from tflm_forge.config import BuildSettings
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.generate import Arena, Project, fingerprint_project, generate_project
from tflm_forge.model import Model, load_model, read_model
from tflm_forge.ops.cpp import cpp_string
from tflm_forge.runtimes import plan_build

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
ARENA = Arena(bytes=4096, how="estimated")
SETTINGS = BuildSettings(runtime="bundled")


def _generate(
    folder: Path, model: Model | Path = SINE, board: str = "stm32f4", arena: Arena = ARENA, **changes: Any
) -> Project:
    loaded = load_model(model) if isinstance(model, Path) else model
    settings = BuildSettings(runtime="bundled", **changes)
    target = load_board(board)
    return generate_project(folder, loaded, target, plan_build(loaded, target.core, settings), settings, arena)


def _files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_project_is_whole_and_holds_the_model_unchanged(tmp_path: Path) -> None:
    _generate(tmp_path, DIGITS)
    assert (tmp_path / "model.tflite").read_bytes() == DIGITS.read_bytes()
    for name in ("CMakeLists.txt", "toolchain.cmake", "linker.ld", "ops.manifest.yaml", "src/main.cc", "src/board.cc"):
        assert (tmp_path / name).stat().st_size
    listed = re.findall(r"^  (?:\$\{RUNTIME_ROOT\}|src)/\S+$", (tmp_path / "CMakeLists.txt").read_text(), re.MULTILINE)
    sources = [line.strip().replace("${RUNTIME_ROOT}", "runtime") for line in listed]
    assert len(sources) > 10
    assert all((tmp_path / source).is_file() for source in sources)


def test_registers_exactly_the_ops_of_the_model(tmp_path: Path) -> None:
    _generate(tmp_path, DIGITS)
    wanted = ops_by_schema(DIGITS)
    calls = re.findall(r"resolver\.Add\w+\(", (tmp_path / "src/op_resolver.cc").read_text())
    config = (tmp_path / "src/forge_config.h").read_text()
    rows = [int(code) for code in re.findall(r"^\s*\{\s*(\d+), \d+, \"", config, re.MULTILINE)]
    assert len(calls) == len(wanted)
    assert rows == sorted(wanted)
    assert f"kOpCount = {len(wanted)};" in config


def _generate_both(folder: Path, **changes: Any) -> Project:
    first, second = load_model(SINE), load_model(DIGITS)
    settings = BuildSettings(runtime="bundled", **changes)
    board = load_board("stm32f4")
    plan = plan_build(first, board.core, settings, [second])
    return generate_project(folder, first, board, plan, settings, ARENA, [second])


def test_several_models_register_the_union_of_their_ops(tmp_path: Path) -> None:
    project = _generate_both(tmp_path)
    sine, digits = ops_by_schema(SINE), ops_by_schema(DIGITS)
    wanted = {code: max(row.get(code, (0, 0))[0] for row in (sine, digits)) for code in {*sine, *digits}}
    found = {r.use.builtin_code: r.use.version for r in project.plan.registrations}
    assert found == wanted
    assert list(found) == sorted(found)
    assert len(re.findall(r"resolver\.Add\w+\(", (tmp_path / "src/op_resolver.cc").read_text())) == len(wanted)
    assert [model.name for model in project.models] == ["sine.tflite", "digits.tflite"]


def test_the_highest_version_of_any_model_counts() -> None:
    models = [read_model(make_single_op_model("RELU", version=version), name=f"{version}") for version in (1, 2, 1)]
    (registration,) = plan_build(models[0], load_board("stm32f4").core, SETTINGS, models[1:]).registrations
    assert (registration.use.version, registration.use.count) == (2, 3)


def test_types_of_any_model_decide_the_registration() -> None:
    both = [(((1, 4), type_),) * 2 for type_ in ("INT8", "FLOAT32")]
    add = "AddOptions", {"fused_activation_function": "NONE"}
    models = [read_model(make_single_op_model("ADD", row, row[0], options=add), name="m") for row in both]
    core = load_board("stm32f4").core
    (alone,) = plan_build(models[0], core, SETTINGS).registrations
    (together,) = plan_build(models[0], core, SETTINGS, models[1:]).registrations
    assert "INT8" in alone.call
    assert "INT8" not in together.call


def test_a_further_model_that_can_not_run_is_named() -> None:
    good, bad = load_model(SINE), read_model(make_single_op_model("RELU", version=99), name="bad.tflite")
    with pytest.raises(ModelError, match=r"^bad\.tflite"):
        plan_build(good, load_board("stm32f4").core, SETTINGS, [bad])


def test_several_models_are_in_flash_each_with_its_own_facts(tmp_path: Path) -> None:
    _generate_both(tmp_path)
    assert (tmp_path / "model.tflite").read_bytes() == SINE.read_bytes()
    assert (tmp_path / "model_1.tflite").read_bytes() == DIGITS.read_bytes()
    assert (tmp_path / "src/model_data.S").read_text().count(".balign 16") == 2
    table = (tmp_path / "src/models.cc").read_text()
    rows = re.findall(r'"(\w+)\.tflite", 0x(\w{8}),\s+\{([^}]*)\}', table)
    for (name, hash_, sha256), path in zip(rows, (SINE, DIGITS), strict=True):
        packed = b"".join(
            struct.pack("<IIB", code, version, 0) for code, (version, _) in sorted(ops_by_schema(path).items())
        )
        assert (name, int(hash_, 16)) == (path.stem, zlib.crc32(packed))
        assert bytes(int(number, 16) for number in sha256.split(",")) == hashlib.sha256(path.read_bytes()).digest()
    config = (tmp_path / "src/forge_config.h").read_text()
    assert "kModelCount = 2;" in config
    assert f"kOpHash = 0x{rows[0][1]};" in config


def test_one_model_has_no_code_for_several_and_the_other_way_round(tmp_path: Path) -> None:
    _generate(tmp_path / "one")
    _generate_both(tmp_path / "two")
    assert not (tmp_path / "one/src/models.cc").exists()
    assert not (tmp_path / "two/src/interpreter.cc").exists()


def test_layers_of_several_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one model"):
        _generate_both(tmp_path, keep_tensors=True)


def test_config_holds_the_sha256_of_the_model(tmp_path: Path) -> None:
    _generate(tmp_path, DIGITS)
    numbers = re.search(r"kModelSha256\[32\] = \{([^}]*)\}", (tmp_path / "src/forge_config.h").read_text())
    assert numbers is not None
    found = bytes(int(number, 16) for number in numbers[1].split(","))
    assert found == hashlib.sha256(DIGITS.read_bytes()).digest()


def test_second_rendering_writes_nothing(tmp_path: Path) -> None:
    first = _generate(tmp_path)
    before = _files(tmp_path)
    assert _generate(tmp_path).build_id == first.build_id
    assert _files(tmp_path) == before


def test_same_project_in_another_folder_has_the_same_bytes(tmp_path: Path) -> None:
    _generate(tmp_path / "one")
    _generate(tmp_path / "two")
    one, two = ({n: c for n, (c, _) in _files(tmp_path / name).items()} for name in ("one", "two"))
    assert one == two


def test_build_id_tells_builds_apart(tmp_path: Path) -> None:
    ids = [
        _generate(tmp_path / "a").build_id,
        _generate(tmp_path / "b", DIGITS).build_id,
        _generate(tmp_path / "c", board="mps2-an386").build_id,
        _generate(tmp_path / "e", profile="debug").build_id,
        _generate(tmp_path / "f", optimize="2").build_id,
    ]
    assert len(set(ids)) == len(ids)
    assert {len(value) for value in ids} == {16}


def test_build_id_leaves_out_the_arena_which_info_gives_beside_it(tmp_path: Path) -> None:
    first = _generate(tmp_path)
    config = _files(tmp_path)["src/forge_config.h"]
    second = _generate(tmp_path, arena=Arena(bytes=4112, how="estimated"))
    assert second.build_id == first.build_id
    assert _files(tmp_path)["src/forge_config.h"] == config


def test_fingerprint_is_of_all_but_the_arena() -> None:
    model = load_model(SINE)
    board = load_board("stm32f4")
    plan = plan_build(model, board.core, SETTINGS)
    debug = BuildSettings(runtime="bundled", profile="debug")
    own = fingerprint_project(model, board, plan, SETTINGS)
    assert own == fingerprint_project(model, board, plan, BuildSettings(runtime="bundled", arena_bytes=64))
    assert own != fingerprint_project(model, board, plan_build(model, board.core, debug), debug)


def test_files_of_an_earlier_rendering_are_removed_and_others_stay(tmp_path: Path) -> None:
    _generate(tmp_path, DIGITS)
    (tmp_path / "notes.txt").write_text("mine")
    conv = tmp_path / "runtime/tensorflow/lite/micro/kernels/conv.cc"
    assert conv.is_file()
    _generate(tmp_path, SINE)
    assert not conv.exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["CMakeLists.txt", "src/main.cc", "model.tflite"])
def test_a_file_that_forge_did_not_make_is_never_overwritten(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(UsageError, match=re.escape(name)) as caught:
        _generate(tmp_path)
    assert "-o" in caught.value.hint
    assert list(_files(tmp_path)) == [name]
    assert path.read_text() == "mine"


def test_an_edit_in_a_rendered_file_is_rendered_over(tmp_path: Path) -> None:
    _generate(tmp_path)
    before = (tmp_path / "CMakeLists.txt").read_text()
    (tmp_path / "CMakeLists.txt").write_text("broken")
    _generate(tmp_path)
    assert (tmp_path / "CMakeLists.txt").read_text() == before


def test_the_list_of_files_can_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.write_text("mine")
    _generate(tmp_path / "project")
    listing = tmp_path / "project" / ".forge-files"
    listing.write_text(listing.read_text() + f"../precious\n{outside}\n")
    _generate(tmp_path / "project", DIGITS)
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("after", [0, 1, 5, 20])
def test_interrupted_rendering_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    real, left = module.write_if_changed, [after]

    def write(path: Path, content: bytes) -> bool:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(path, content)

    monkeypatch.setattr(module, "write_if_changed", write)
    with pytest.raises(KeyboardInterrupt):
        _generate(tmp_path / "one")
    monkeypatch.undo()
    _generate(tmp_path / "one", DIGITS)
    _generate(tmp_path / "two", DIGITS)
    one, two = ({n: c for n, (c, _) in _files(tmp_path / name).items()} for name in ("one", "two"))
    assert one == two


def test_folder_that_can_not_be_made_is_a_usage_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can not write"):
        _generate(tmp_path / "file" / "project")


HOSTILE = 'a\n#error "b"\n\\*/ ??/ ${X} {{ 7*7 }} \\'


def test_names_of_a_model_break_no_file(tmp_path: Path) -> None:
    plain = read_model(make_single_op_model("RELU"), name="plain.tflite")
    hostile = read_model(make_single_op_model("RELU").replace(b"output", b"\\\n#o\r\n"), name=HOSTILE)
    _generate(tmp_path / "plain", plain)
    _generate(tmp_path / "hostile", hostile)
    for name, (content, _) in _files(tmp_path / "plain").items():
        if name.endswith((".cc", ".h", ".S", ".ld", ".cmake")) or name == "CMakeLists.txt":
            other = (tmp_path / "hostile" / name).read_bytes()
            assert other.count(b"\n") == content.count(b"\n"), name
            assert b"\n#error" not in other
            assert other.count(b"\\\n") == content.count(b"\\\n"), name


@given(st.text())
def test_cpp_strings_hold_any_text(text: str) -> None:
    literal = cpp_string(text)
    assert literal[0] == literal[-1] == '"'
    assert re.fullmatch(r'(?:[^"\\?\n]|\\[0-7]{3})*', literal[1:-1], re.ASCII)
    # Octal escapes of three digits and printable ASCII mean the same in Python's bytes.
    decoded = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), literal[1:-1])
    assert decoded.encode("latin-1") == text.encode()


@given(st.text())
def test_cpp_comments_stay_on_their_line(text: str) -> None:
    comment = module._cpp_comment(text)
    assert "\\" not in comment
    assert len(comment.splitlines()) <= 1
