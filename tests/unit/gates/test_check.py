"""`forge check`: what differs between models, manifests and op resolvers, each rule provoked one by one."""

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import EXAMPLES
from tests.modelmaker import make_single_op_model
from tflm_forge.commands import manifest
from tflm_forge.config import load_config
from tflm_forge.errors import UsageError
from tflm_forge.gates.check import check_project
from tflm_forge.gates.findings import RULES, CheckReport, Finding
from tflm_forge.manifest import ManifestArena, read_manifest, render_manifest

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
NAME = "ops.manifest.yaml"
CONFIG = '[build]\nmodel = "model.tflite"\nboard = "stm32f4"\nruntime = "bundled"\n'
RESOLVER = """\
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

tflite::MicroMutableOpResolver<7> resolver;

void Register() {
  resolver.AddAveragePool2D(tflite::Register_AVERAGE_POOL_2D_INT8());
  resolver.AddConv2D(tflite::Register_CONV_2D_INT8());
  resolver.AddDepthwiseConv2D(tflite::Register_DEPTHWISE_CONV_2D_INT8());
  resolver.AddFullyConnected(tflite::Register_FULLY_CONNECTED_INT8());
  resolver.AddMaxPool2D(tflite::Register_MAX_POOL_2D_INT8());
  resolver.AddReshape();
  resolver.AddSoftmax(tflite::Register_SOFTMAX_INT8());
}
"""

Forge = Callable[..., "subprocess.CompletedProcess[str]"]


def _manifest(folder: Path, model: str | None = None, **options: Any) -> None:
    """Do what `forge manifest` does, in a folder."""
    path = Path(model) if model else None
    with contextlib.chdir(folder):
        manifest.run(model=path, **{k: Path(v) if k == "output" else v for k, v in options.items()})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project of digits whose manifest is that of its model."""
    shutil.copy(DIGITS, tmp_path / "model.tflite")
    (tmp_path / "forge.toml").write_text(CONFIG)
    _manifest(tmp_path)
    return tmp_path


def _policy(folder: Path, *lines: str) -> None:
    (folder / "forge.toml").write_text("\n".join([CONFIG, "[operator_ci_check]", *lines]) + "\n")


def _check(folder: Path) -> CheckReport:
    return check_project(folder, load_config(folder))


def _found(folder: Path) -> list[tuple[str, str]]:
    return [(finding.rule, finding.severity) for finding in _check(folder).findings]


def _find(folder: Path, rule: str) -> Finding:
    (found,) = [finding for finding in _check(folder).findings if finding.rule == rule]
    return found


def _edit(path: Path, old: str, new: str) -> None:
    """Edit a manifest by hand, so that it is not what forge made."""
    text = re.sub(r"  (checksum|forge): .*\n", "", path.read_text())
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_project_in_order_passes(project: Path) -> None:
    report = _check(project)
    assert report.passed
    assert report.findings == ()
    assert [path.name for path in report.models] == ["model.tflite"]


def test_no_manifest(project: Path) -> None:
    (project / NAME).unlink()
    found = _find(project, "manifest-missing")
    assert "forge manifest" in found.remedy
    assert not _check(project).passed


def test_nothing_to_check_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to check"):
        _check(tmp_path)


def test_damaged_manifest_is_named_with_its_line(project: Path) -> None:
    text = (project / NAME).read_text().replace("max_version: 6", "max_version: 60", 1)
    (project / NAME).write_text(text)
    found = _find(project, "manifest-unreadable")
    assert (found.path, found.line) == (project / NAME, 3)
    assert "checksum" in found.words


def test_new_model_with_an_op_more(project: Path) -> None:
    shutil.copy(SINE, project / "model.tflite")
    (project / NAME).unlink()
    _manifest(project)
    shutil.copy(DIGITS, project / "model.tflite")
    rules = _found(project)
    missing = [f.words for f in _check(project).findings if f.rule == "operator-missing"]
    assert {words.split()[0] for words in missing} == {
        "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "RESHAPE", "SOFTMAX"
    }  # fmt: skip
    assert ("model-changed", "error") in rules
    assert ("manifest-stale", "error") in rules
    (diff,) = _check(project).diffs
    assert "+  - name: CONV_2D\n" in diff.text
    assert "-    sha256: " in diff.text


def test_new_version_of_an_op(project: Path) -> None:
    (project / "model.tflite").write_bytes(make_single_op_model("RELU", version=1))
    _manifest(project)
    assert _check(project).passed
    (project / "model.tflite").write_bytes(make_single_op_model("RELU", version=9))
    rules = dict(_found(project))
    assert rules.keys() >= {"operator-version", "model-refused"}
    found = _find(project, "operator-version")
    text = (project / NAME).read_text().splitlines()
    assert text[(found.line or 0) - 1].strip().startswith("max_version: ")
    assert "RELU version 9" in found.words


def test_model_is_gone_or_damaged(project: Path) -> None:
    data = (project / "model.tflite").read_bytes()
    (project / "model.tflite").write_bytes(data[: len(data) // 2])
    assert _found(project) == [("model-unreadable", "error")]
    (project / "model.tflite").unlink()
    found = _find(project, "model-missing")
    assert (project / NAME).read_text().splitlines()[(found.line or 0) - 1].strip() == "file: model.tflite"


def test_hand_edit_that_says_too_much(project: Path) -> None:
    _edit(project / NAME, "max_version: 6", "max_version: 9")
    found = _find(project, "manifest-stale")
    (diff,) = _check(project).diffs
    assert "-    max_version: 9\n+    max_version: 6\n" in diff.text
    assert "forge manifest --all" in found.remedy


def test_forge_toml_wins_over_the_manifest(project: Path) -> None:
    (project / "forge.toml").write_text(CONFIG.replace("stm32f4", "microbit"))
    (diff,) = _check(project).diffs
    assert "-  board: stm32f4\n+  board: microbit\n" in diff.text


def test_another_forge_made_it(project: Path) -> None:
    path = project / NAME
    path.write_bytes(render_manifest(replace(read_manifest(path), forge="0.0.1")))
    assert _check(project).passed


def test_another_runtime_made_it(project: Path) -> None:
    _edit(project / NAME, "    version: 0.1.0\n", "    version: 0.0.9\n")
    found = _find(project, "runtime-version")
    assert "bundled 0.0.9" in found.words
    _policy(project, "check_version_compatibility = false", "generate_op_manifest = false")
    assert _check(project).passed


def test_measured_values_stay_as_long_as_they_are_true(project: Path) -> None:
    path = project / NAME
    arena = ManifestArena(size_bytes=4096, how="measured")
    path.write_bytes(render_manifest(replace(read_manifest(path), arena=arena)))
    _manifest(project, every=True)
    assert "bytes: 4096" in (project / NAME).read_text()
    assert _check(project).passed
    (project / "forge.toml").write_text(CONFIG + 'optimize = "2"\n')
    (diff,) = _check(project).diffs
    assert "-    bytes: 4096\n" in diff.text
    _manifest(project, every=True)
    assert "4096" not in (project / NAME).read_text()


@pytest.mark.parametrize(
    ("old", "new", "rule", "severity", "line"),
    [
        ("  resolver.AddSoftmax(tflite::Register_SOFTMAX_INT8());\n", "", "resolver-operator-missing", "error", 6),
        ("AddReshape()", "AddTanh()", "resolver-operator-missing", "error", 6),
        ("AddReshape();\n", "AddReshape();\n  resolver.AddTanh();\n", "resolver-operator-unused", "warning", 12),
        ("AddReshape();\n", "AddReshape();\n  resolver.AddReshape();\n", "resolver-operator-twice", "error", 12),
        ("<7>", "<6>", "resolver-capacity", "error", 3),
        ("<7>", "<8>", "resolver-capacity", "warning", 3),
        ("tflite::Register_CONV_2D_INT8()", "", "resolver-registration", "warning", 7),
        ("Register_CONV_2D_INT8()", "Register_CONV_2D_INT16()", "resolver-registration", "error", 7),
        ("AddReshape();\n", "AddReshape();\n  resolver.AddCustom(kName, r);\n", "resolver-unknown", "warning", 12),
    ],
)
def test_op_resolver_in_the_sources(project: Path, old: str, new: str, rule: str, severity: str, line: int) -> None:
    _policy(project, 'resolvers = ["src/*.cc"]')
    (project / "src").mkdir()
    source = project / "src" / "ops.cc"
    source.write_text(RESOLVER)
    assert _found(project) == []
    assert old in RESOLVER
    source.write_text(RESOLVER.replace(old, new, 1))
    found = _find(project, rule)
    assert (found.severity, found.path, found.line) == (severity, source, line)
    assert _check(project).passed == all(s == "warning" for _, s in _found(project))


def test_resolver_that_is_not_there_or_empty(project: Path) -> None:
    _policy(project, 'resolvers = ["src/ops.cc"]')
    assert _found(project) == [("resolver-missing", "error")]
    (project / "src").mkdir()
    (project / "src" / "ops.cc").write_text("int main() { set.AddListener(); }\n")
    assert _found(project) == [("resolver-missing", "error")]


@pytest.mark.parametrize(("key", "rule"), [("manifests", "manifest-missing"), ("resolvers", "resolver-missing")])
def test_pattern_that_matches_nothing_does_not_pass(project: Path, key: str, rule: str) -> None:
    _policy(project, f'{key} = ["nowhere/*.x"]')
    found = _find(project, rule)
    assert (found.path.name, found.severity) == ("forge.toml", "error")
    assert "nowhere/*.x" in found.words


def test_resolver_without_a_manifest_above_does_not_pass(project: Path) -> None:
    (project / "net").mkdir()
    (project / NAME).rename(project / "net" / NAME)
    _edit(project / "net" / NAME, "file: model.tflite", "file: ../model.tflite")
    (project / "ops.cc").write_text(RESOLVER)
    _policy(project, f'manifests = ["net/{NAME}"]', 'resolvers = ["ops.cc"]')
    assert _found(project) == [("resolver-missing", "error")]


def test_generated_op_resolver_passes(project: Path, forge: Forge) -> None:
    assert forge("generate", "-o", project / "firmware").returncode == 0
    _policy(project, 'resolvers = ["firmware/src/op_resolver.cc"]')
    report = _check(project)
    assert report.findings == ()
    assert [path.name for path in report.resolvers] == ["op_resolver.cc"]
    shutil.copy(SINE, project / "model.tflite")
    unused = [f for f in _check(project).findings if f.rule == "resolver-operator-unused"]
    assert len(unused) == 6


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("parse_model_ops = false", set()),
        ("fail_on_missing_operator = false", {("operator-missing", "warning")}),
        ("check_version_compatibility = false", {("operator-missing", "error")}),
        ("generate_op_manifest = false", {("operator-missing", "error")}),
    ],
)
def test_policy_turns_parts_off(project: Path, line: str, rules: set[tuple[str, str]]) -> None:
    shutil.copy(SINE, project / "model.tflite")
    (project / NAME).unlink()
    _manifest(project)
    shutil.copy(DIGITS, project / "model.tflite")
    _policy(project, line)
    found = set(_found(project))
    assert {each for each in found if each[0] == "operator-missing"} == rules
    assert ("manifest-stale" in dict(found)) == (line.split()[0] not in ("parse_model_ops", "generate_op_manifest"))
    skipped = _check(project).skipped
    assert skipped == (line.split()[0],)


def test_many_models_and_one_without_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "forge.toml").write_text(
        '[operator_ci_check]\nmanifests = ["models/**/*.manifest.yaml"]\nmodels = ["models/**/*.tflite"]\n'
    )
    for index, model in enumerate((SINE, DIGITS)):
        folder = tmp_path / "models" / f"m{index}"
        folder.mkdir(parents=True)
        shutil.copy(model, folder / "net.tflite")
        place = f"models/m{index}/net"
        _manifest(tmp_path, f"{place}.tflite", board="stm32f4", runtime="bundled", output=f"{place}.manifest.yaml")
    report = _check(tmp_path)
    assert report.passed
    assert len(report.manifests) == len(report.models) == 2
    shutil.copy(SINE, tmp_path / "models" / "new.tflite")
    found = _find(tmp_path, "manifest-missing")
    assert found.path == tmp_path / "models" / "new.tflite"
    built = tmp_path / "models" / "build"
    built.mkdir()
    (built / ".forge-files").write_text("")
    shutil.copy(SINE, built / "model.tflite")
    assert len(_check(tmp_path).findings) == 1


def test_several_models_in_one_firmware(tmp_path: Path) -> None:
    for model in (SINE, DIGITS):
        shutil.copy(model, tmp_path)
    (tmp_path / "forge.toml").write_text(CONFIG.replace('"model.tflite"', '"sine.tflite"\nwith = ["digits.tflite"]'))
    _manifest(tmp_path)
    assert _check(tmp_path).passed
    shutil.copy(SINE, tmp_path / "digits.tflite")
    found = _find(tmp_path, "model-changed")
    assert (tmp_path / NAME).read_text().splitlines()[(found.line or 0) - 1].strip().startswith("sha256: ")
    assert found.words.startswith("digits.tflite")


def test_command_says_what_differs_and_what_to_run(project: Path, forge: Forge) -> None:
    assert forge("check").returncode == 0
    _edit(project / NAME, "max_version: 6", "max_version: 9")
    done = forge("check")
    assert done.returncode == 7
    assert "forge manifest --all" in done.stdout
    assert "-    max_version: 9" in done.stdout
    report = json.loads(forge("check", "--json").stdout)
    assert report["passed"] is False
    assert {finding["rule"] for finding in report["findings"]} <= set(RULES)
    assert report["diffs"][0]["file"] == NAME
    assert forge("manifest", "--all").returncode == 0
    assert forge("check").returncode == 0


def test_manifest_of_another_model_is_not_overwritten(project: Path, forge: Forge) -> None:
    done = forge("manifest", SINE)
    assert done.returncode == 2
    assert "-o sine.manifest.yaml" in done.stderr
    assert forge("manifest", SINE, "-o", "sine.manifest.yaml").returncode == 0
    text = forge("manifest", "-o", "-").stdout
    assert text == (project / NAME).read_text()
