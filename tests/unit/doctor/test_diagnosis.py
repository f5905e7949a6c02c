"""What the doctor makes of its rules: order, counts, silence, what a subject must know."""

from pathlib import Path

import numpy as np
import pytest

from tests.doctor_models import convolution, dense
from tests.modelmaker import ModelMaker, make_single_op_model
from tflm_forge.board import list_boards
from tflm_forge.config import BuildSettings
from tflm_forge.doctor import RULES, Finding, Subject, check_silence, diagnose, find_findings
from tflm_forge.doctor.document import BEGIN, DOCUMENT, insert_rules
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.model import Model, read_model
from tflm_forge.model.metadata import min_runtime_version
from tflm_forge.runtimes import bundled, find_reasons, load_runtime, plan_build

BOARD = list_boards()[0]


def read(data: bytes) -> Model:
    return read_model(data, name="m")


def find(data: bytes) -> list[Finding]:
    return list(find_findings(read(data)))


def test_a_sound_model_has_no_findings() -> None:
    assert find(make_single_op_model("RELU")) == []


def test_the_newest_op_of_the_schema_is_known() -> None:
    assert find(make_single_op_model("STABLEHLO_CBRT")) == []


def test_errors_come_before_warnings_and_notes() -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4])
    w, y = maker.tensor("w", [2, 4]), maker.tensor("y", [1, 2])
    for name in ("Abc", "FlexA", "Xyz", "FlexB"):
        maker.operator("CUSTOM", [x], [x], custom_name=name)
    maker.operator("FULLY_CONNECTED", [x, w, -1], [y], options=("FullyConnectedOptions", {}))
    maker.subgraph(inputs=[x, w], outputs=[y])
    found = find(maker.finish())
    assert [f.id for f in found] == ["flex-op", "flex-op", "filter-not-constant", "custom-op", "custom-op"]


def test_many_places_of_one_kind_are_one_finding_that_counts_them() -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 1, 1, 4], "INT8", scale=0.5)
    w = maker.tensor("w", [4, 1, 1, 4], "INT8", scale=0.1, zero_point=5, data=np.ones((4, 1, 1, 4)))
    last = x
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
    for number in range(3):
        y = maker.tensor(f"conv{number}", [1, 1, 1, 4], "INT8", scale=0.5)
        maker.operator("CONV_2D", [last, w], [y], options=("Conv2DOptions", options), version=3)
        last = y
    maker.subgraph(inputs=[x], outputs=[last])
    (finding,) = find(maker.finish())
    assert (finding.id, finding.layer) == ("asymmetric-weights", "conv0")
    assert finding.words.endswith("There are 2 more like it.")


def test_without_a_runtime_only_the_model_is_judged() -> None:
    data = make_single_op_model("GELU", (((1, 4), "FLOAT32"),), ((1, 4), "FLOAT32"), options=("GeluOptions", {}))
    assert find(data) == []
    subject = Subject(model=read(data), catalogue=bundled.catalogue())
    assert [f.id for f in diagnose(subject)] == ["missing-op"]


def test_ethos_u_is_the_firmwares_business_until_a_runtime_is_chosen() -> None:
    data = make_single_op_model("CUSTOM", custom_name="ethos-u")
    assert [f.id for f in find(data) if f.severity == "error"] == []


def test_a_rule_is_silenced_by_its_id_and_shown_with_the_reason() -> None:
    subject = Subject(model=read(convolution(w_zero=5)), catalogue=bundled.catalogue())
    (finding,) = [f for f in diagnose(subject, {"asymmetric-weights": "all zeros in truth"}) if f.severity == "error"]
    assert finding.silenced == "all zeros in truth"
    assert not finding.stands
    (finding,) = [f for f in diagnose(subject, {"float16": "another rule"}) if f.severity == "error"]
    assert finding.stands


@pytest.mark.parametrize(
    ("silence", "words"),
    [({"asymetric-weights": "why"}, "'asymmetric-weights'"), ({"float16": "  "}, "Say why")],
)
def test_silence_must_name_a_rule_and_give_a_reason(silence: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=r"forge\.toml") as caught:
        check_silence(silence, "forge.toml: [doctor] silence")
    assert words in caught.value.hint


def test_a_build_is_refused_for_what_stands_and_told_of_the_rest() -> None:
    model = read(convolution(w_zero=5))
    with pytest.raises(ModelError, match="can not run") as caught:
        plan_build(model, BOARD.core, BuildSettings(runtime="bundled"))
    (reason,) = caught.value.reasons
    assert "zero point 5" in reason
    assert caught.value.reasons == find_reasons(model, bundled.catalogue())
    silenced = BuildSettings(runtime="bundled", silence={"asymmetric-weights": "all zeros in truth"})
    notes = plan_build(model, BOARD.core, silenced).notes
    assert any("asymmetric-weights" in note and "all zeros in truth" in note for note in notes)


def test_warnings_are_told_before_a_build() -> None:
    notes = plan_build(read(dense(constant=False)), BOARD.core, BuildSettings(runtime="bundled")).notes
    assert any("filter-not-constant" in note for note in notes)


def test_a_version_the_user_allows_is_no_finding() -> None:
    catalogue = load_runtime("tflm").catalogue()
    model = read(make_single_op_model("RELU", version=9))
    assert [f.id for f in diagnose(Subject(model=model, catalogue=catalogue)) if f.stands] == ["op-version"]
    assert not diagnose(Subject(model=model, catalogue=catalogue, allow_versions={"RELU": 9}))


@pytest.mark.parametrize(
    ("data", "version"),
    [(b"1.14.0" + bytes(10), "1.14.0"), (b"2.6.0", "2.6.0"), (b"", ""), (b"\xff\x01", ""), (bytes(16), "")],
)
def test_min_runtime_version(data: bytes, version: str) -> None:
    maker = ModelMaker()
    maker.tensor("x", [1, 4])
    maker.operator("RELU", [0], [0])
    maker.subgraph(inputs=[0], outputs=[0])
    maker.add_metadata("min_runtime_version", data)
    assert min_runtime_version(read(maker.finish())) == version
    assert min_runtime_version(read(make_single_op_model("RELU"))) == ""


def test_the_document_has_all_rules_as_they_are() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert BEGIN in text
    assert insert_rules(text) == text, "run python -m tflm_forge.doctor.document"


def test_links_in_the_document_are_to_rules() -> None:
    ids = {rule.id for rule in RULES}
    text = DOCUMENT.read_text(encoding="utf-8").partition("## Where each known trouble is met")[2]
    links = {part.partition(")")[0] for part in text.split("](#")[1:]}
    assert links <= ids
    # Each row names a rule, a command or a part of the firmware that meets the trouble.
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 30
    assert all(row.rstrip("| ").split("|")[-1].strip() for row in rows)


def test_rewrites_are_of_ops_that_tflm_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tflm_forge.doctor.rules.ops import load_rewrites
    from tflm_forge.model import enum_value

    monkeypatch.setenv("FORGE_HOME", str(tmp_path))
    has = {row.name for row in load_runtime("tflm").catalogue().ops.values()}
    for name in load_rewrites():
        assert enum_value("BuiltinOperator", name) is not None, name
        assert name not in has, name
