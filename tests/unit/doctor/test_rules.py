"""Each rule finds what it is for, and nothing in models that are sound."""

import pytest

from tests.doctor_models import CASES, Case, clean_models
from tflm_forge.board import load_board
from tflm_forge.doctor import RULES, Finding, Subject, diagnose
from tflm_forge.model import read_model
from tflm_forge.runtimes import load_runtime

BY_ID = {rule.id: rule for rule in RULES}
CLEAN = clean_models()
# Needs the sources of a tree: tests/unit/runtimes/test_tflm_planning.py has it.
OF_A_TREE = {"per-channel-fully-connected"}

# Data inside the flatbuffer can not be misaligned, or it is refused while it is read.
ALONG = {"misaligned-constant": {"data-outside-flatbuffer"}}


@pytest.fixture(autouse=True)
def no_home(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "home"))


def find(case: Case) -> list[Finding]:
    subject = Subject(
        model=read_model(case.make(), name="m"),
        catalogue=load_runtime(case.runtime).catalogue(),
        board=load_board(case.board) if case.board else None,
    )
    return list(diagnose(subject))


def test_rules_have_their_own_ids_and_all_their_words() -> None:
    assert len(BY_ID) == len(RULES)
    for rule in RULES:
        assert rule.id == rule.id.lower().replace("_", "-").replace(" ", "-")
        assert rule.why.endswith(".")
        assert rule.source
        assert rule.remedy.endswith((".", "`.")) or rule.severity == "note"


def test_every_rule_has_a_model() -> None:
    assert {case.rule for case in CASES} | OF_A_TREE == set(BY_ID)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}.{case.name}")
def test_the_rule_finds_its_cause_with_layer_and_remedy(case: Case) -> None:
    found = find(case)
    (finding,) = [finding for finding in found if finding.id == case.rule]
    assert finding.severity == BY_ID[case.rule].severity
    assert finding.layer == (case.layer or "")
    assert all(word in finding.text for word in case.words), finding.text
    assert finding.remedy or finding.severity == "note"
    # What runs and is right must not be refused by any rule; a board too small is no fault of the model.
    errors = {other.id for other in found if other.severity == "error"}
    if case.outcome == "runs" and case.runtime == "tflm" and not case.board:
        assert not errors
    # One cause, one error: a second one would send the user the wrong way.
    if finding.severity == "error":
        assert errors - ALONG.get(case.rule, set()) == {case.rule}


@pytest.mark.parametrize("name", CLEAN)
def test_a_sound_model_has_no_error_and_no_warning(name: str) -> None:
    model = read_model(CLEAN[name], name=name)
    findings = diagnose(Subject(model=model, catalogue=load_runtime("tflm").catalogue()))
    assert [finding for finding in findings if finding.severity != "note"] == []
