"""Tables [[op]] of forge.toml: what is refused, what a plan and a project make of them."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.modelmaker import ModelMaker, make_single_op_model
from tflm_forge.board import load_board
from tflm_forge.config import BuildSettings, OpTable, load_config
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.generate import Arena, generate_project
from tflm_forge.model import Model, read_model
from tflm_forge.ops.own import add_own_ops, collect_files
from tflm_forge.runtimes import BuildPlan, bundled, plan_build

BOARD = load_board("stm32f4")
ARENA = Arena(bytes=4096, how="estimated")
HEADER = "#pragma once\nstruct TFLMRegistration;\nnamespace mine {\nTFLMRegistration Register_MINE();\n}\n"
SOURCE = '#include "mine.h"\n'


@pytest.fixture
def table(tmp_path: Path) -> OpTable:
    folder = tmp_path / "ops"
    folder.mkdir()
    (folder / "mine.h").write_text(HEADER)
    (folder / "mine.cc").write_text(SOURCE)
    return OpTable(name="Mine", sources=(folder / "mine.cc",), register="mine::Register_MINE")


def _model(name: str = "Mine", **options: Any) -> Model:
    return read_model(make_single_op_model("CUSTOM", custom_name=name, **options), name="m.tflite")


def _plan(model: Model, *tables: OpTable) -> BuildPlan:
    return plan_build(model, BOARD.core, BuildSettings(runtime="bundled", own_ops=tables))


def _refusal(*tables: OpTable) -> str:
    with pytest.raises(UsageError) as caught:
        add_own_ops(bundled.catalogue(), tables)
    return " ".join(caught.value.reasons)


def test_a_table_of_forge_toml_is_read_with_paths_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "forge.toml").write_text(
        '[[op]]\nname = "Mine"\nsources = ["ops/mine.cc"]\nregister = "mine::Register_MINE"\nversion = 2\n'
        'types = ["INT8"]\nreference = "ops/mine.py"\nuses = ["ADD"]\ninclude_dirs = ["."]\n'
    )
    (op,) = load_config(tmp_path).op
    assert op.sources == (tmp_path / "ops" / "mine.cc",)
    assert op.reference == tmp_path / "ops" / "mine.py"
    assert (op.name, op.version, op.types, op.uses) == ("Mine", 2, ("INT8",), ("ADD",))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "name is missing"),
        ({"name": "x" * 256}, "255 bytes"),
        ({"register": ""}, "register is missing"),
        ({"register": "mine::Register();"}, "not the name of a C++ function"),
        ({"version": 0}, "version = 0"),
        ({"types": ("INT7",)}, "'INT7'"),
        ({"sources": ()}, "sources is missing"),
        ({"sources": (Path("ops/none.cc"),)}, "no file ops/none.cc"),
        ({"sources": (Path("ops/mine.txt"),)}, "mine.txt has none of the endings"),
        ({"header": Path("ops/none.h")}, "no file ops/none.h"),
        ({"reference": Path("ops/none.py")}, "no file ops/none.py"),
        ({"include_dirs": (Path("nowhere"),)}, "no folder nowhere"),
        ({"uses": ("CONV_3D",)}, "'CONV_3D'"),
        ({"replaces": "CONV2D"}, "'CONV_2D'"),
        ({"name": "TANH"}, 'replaces = "TANH"'),
    ],
)
def test_what_is_wrong_with_a_table_is_said(table: OpTable, changes: dict[str, Any], words: str) -> None:
    assert words in _refusal(replace(table, **changes))


def test_all_faults_of_all_tables_are_said_at_once(table: OpTable) -> None:
    text = _refusal(replace(table, version=0, types=("INT7",)), replace(table, name="Other", register=""))
    assert all(words in text for words in ("version = 0", "'INT7'", "Other: register is missing"))


def test_two_tables_for_one_op_are_refused(table: OpTable) -> None:
    assert "two tables" in _refusal(table, table)


def test_a_custom_op_that_the_runtime_has_needs_replaces(table: OpTable) -> None:
    catalogue = add_own_ops(bundled.catalogue(), [table])
    with pytest.raises(UsageError) as caught:
        add_own_ops(catalogue, [table])
    assert 'replaces = "Mine"' in caught.value.reasons[0]


def test_an_own_op_is_known_by_its_exact_name(table: OpTable) -> None:
    _plan(_model(), table)
    with pytest.raises(ModelError):
        _plan(_model("mine"), table)


def test_version_and_types_of_the_table_hold(table: OpTable) -> None:
    with pytest.raises(ModelError, match="can not run") as caught:
        _plan(_model(version=2), table)
    assert "[[op]]" in caught.value.reasons[0]
    _plan(_model(version=2), replace(table, version=2))
    with pytest.raises(ModelError) as caught:
        _plan(_model(), replace(table, types=("FLOAT32",)))
    assert "INT8" in caught.value.reasons[0]


def test_own_registration_stands_in_its_canonical_place(table: OpTable) -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4], "INT8", scale=0.5)
    y, z, last = (maker.tensor(n, [1, 4], "INT8", scale=0.5) for n in ("y", "z", "last"))
    maker.operator("CUSTOM", [x], [y], custom_name="Mine")
    maker.operator("RELU", [y], [z], version=2)
    maker.operator("CUSTOM", [z], [last], custom_name="Alpha")
    maker.subgraph(inputs=[x], outputs=[last])
    plan = _plan(read_model(maker.finish(), name="m"), table, replace(table, name="Alpha"))
    assert [r.use.name for r in plan.registrations] == ["RELU", "Alpha", "Mine"]
    assert [bool(r.own_sources) for r in plan.registrations] == [False, True, True]


def test_an_op_that_no_layer_uses_is_not_compiled_and_that_is_said(table: OpTable) -> None:
    plan = _plan(_model("Mine"), table, replace(table, name="Idle", sources=table.sources))
    assert [r.use.name for r in plan.registrations] == ["Mine"]
    assert any("Idle" in note and "no layer uses it" in note for note in plan.notes)


def test_a_replaced_kernel_is_not_compiled_unless_it_is_used(table: OpTable) -> None:
    relu = read_model(make_single_op_model("RELU"), name="m")
    own = replace(table, name="", replaces="RELU")
    kernel = "tensorflow/lite/micro/kernels/activations.cc"
    assert kernel in _plan(relu).sources
    plan = _plan(relu, own)
    assert kernel not in plan.sources
    assert plan.registrations[0].call == "AddRelu(Own(mine::Register_MINE()))"
    both = _plan(relu, replace(own, uses=("RELU",)))
    assert kernel in both.sources
    assert len(both.registrations) == 1


def test_a_replacing_kernel_has_the_version_of_what_it_stands_for(table: OpTable) -> None:
    relu = read_model(make_single_op_model("RELU", version=2), name="m")
    assert _plan(relu, replace(table, replaces="RELU")).registrations[0].max_version >= 2
    with pytest.raises(ModelError):
        _plan(relu, replace(table, replaces="RELU", version=1))


def _generate(folder: Path, *tables: OpTable, name: str = "Mine") -> dict[str, str]:
    model = _model(name)
    settings = BuildSettings(runtime="bundled", own_ops=tables)
    generate_project(folder, model, BOARD, plan_build(model, BOARD.core, settings), settings, ARENA)
    names = ("src/op_resolver.cc", "src/forge_config.h", "CMakeLists.txt", "ops.manifest.yaml")
    return {name: (folder / name).read_text() for name in names}


def test_the_project_registers_compiles_and_holds_the_kernel(table: OpTable, tmp_path: Path) -> None:
    files = _generate(tmp_path / "out", table)
    assert '#include "ops/mine.h"' in files["src/op_resolver.cc"]
    assert 'resolver.AddCustom("Mine", &Own(mine::Register_MINE()))' in files["src/op_resolver.cc"]
    assert re.search(r"\{32, 1, \"Mine\", \"Mine\"\}", files["src/forge_config.h"])
    assert "  ops/mine.cc\n" in files["CMakeLists.txt"]
    assert "name: Mine" in files["ops.manifest.yaml"]
    assert (tmp_path / "out" / "ops" / "mine.cc").read_text() == SOURCE
    assert (tmp_path / "out" / "ops" / "mine.h").read_text() == HEADER


def test_a_name_can_not_leave_its_string(table: OpTable, tmp_path: Path) -> None:
    name = 'a"); evil("\\'
    text = _generate(tmp_path / "out", replace(table, name=name), name=name)["src/op_resolver.cc"]
    (literal,) = re.findall(r'AddCustom\("([^"]*)",', text)
    assert re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), literal) == name


@pytest.mark.parametrize("changed", ["mine.cc", "mine.h"])
def test_a_change_in_an_own_file_gives_another_build_id(table: OpTable, tmp_path: Path, changed: str) -> None:
    def build_id() -> str:
        found = re.search(r"kBuildId\[16\] = \{(.*?)\}", _generate(tmp_path / "out", table)["src/forge_config.h"])
        assert found is not None
        return found[1]

    before = build_id()
    assert build_id() == before
    path = table.sources[0].with_name(changed)
    path.write_text(path.read_text() + "// more\n")
    assert build_id() != before


def test_a_folder_whose_sources_would_be_taken_for_copies_is_refused(table: OpTable, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="source of your own"):
        _generate(tmp_path, table)
    assert (tmp_path / "ops" / "mine.cc").read_text() == SOURCE


def test_files_keep_their_places_and_included_headers_come_along(table: OpTable, tmp_path: Path) -> None:
    (tmp_path / "ops" / "deep").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "ops" / "mine.cc").write_text(
        '#include "mine.h"\n#  include "deep/a.h"\n#include "shared/c.h"\n#include <vector>\n'
        '#include "tensorflow/x.h"\n'
    )
    (tmp_path / "ops" / "deep" / "a.h").write_text('#include "../b.h"\n')
    (tmp_path / "ops" / "b.h").write_text("")
    (tmp_path / "ops" / "unused.h").write_text("")
    (tmp_path / "shared" / "c.h").write_text("")
    alone = collect_files([table])
    assert {file.name for file in alone.files} == {"ops/mine.cc", "ops/mine.h", "ops/deep/a.h", "ops/b.h"}
    assert alone.include_dirs == ("ops",)
    both = collect_files([replace(table, include_dirs=(tmp_path,))])
    assert {"ops/ops/mine.cc", "ops/ops/deep/a.h", "ops/shared/c.h"} <= {file.name for file in both.files}
    assert both.sources == ("ops/ops/mine.cc",)
