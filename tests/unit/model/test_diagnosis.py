"""Findings: what is said about models that can not run, and what to do about it."""

import numpy as np

from tests.modelmaker import ModelMaker, make_single_op_model
from tflm_forge.model import Finding, find_findings, read_model


def find(data: bytes) -> list[Finding]:
    return list(find_findings(read_model(data, name="m")))


def test_a_sound_model_has_no_findings() -> None:
    assert find(make_single_op_model("RELU")) == []


def test_flex_op_names_the_tensorflow_op_and_the_layer() -> None:
    [finding] = find(make_single_op_model("CUSTOM", custom_name="FlexErf"))
    assert (finding.id, finding.severity, finding.layer) == ("flex-op", "error", "output")
    assert "FlexErf" in finding.words
    assert "TensorFlow's own op Erf" in finding.words
    assert "SELECT_TF_OPS" in finding.remedy


def test_unknown_op_code() -> None:
    maker = ModelMaker()
    maker.tensor("layer", [1], "INT8")
    maker.operator(4711, [0], [0])
    maker.subgraph(inputs=[0], outputs=[0])
    [finding] = find(maker.finish())
    assert (finding.id, finding.severity, finding.layer) == ("unknown-op", "error", "layer")
    assert "4711" in finding.words
    assert "update forge" in finding.remedy


def test_the_newest_op_of_the_schema_is_known() -> None:
    assert find(make_single_op_model("STABLEHLO_CBRT")) == []


def test_custom_op_is_a_note() -> None:
    [finding] = find(make_single_op_model("CUSTOM", custom_name="MyFlexOp"))
    assert (finding.id, finding.severity) == ("custom-op", "note")
    assert "MyFlexOp" in finding.words


def test_errors_come_before_notes() -> None:
    maker = ModelMaker()
    maker.tensor("x", [1], "INT8")
    for name in ("Abc", "FlexA", "Xyz", "FlexB"):
        maker.operator("CUSTOM", [0], [0], custom_name=name)
    maker.subgraph(inputs=[0], outputs=[0])
    assert [f.id for f in find(maker.finish())] == ["flex-op", "flex-op", "custom-op", "custom-op"]


def test_model_without_operators() -> None:
    maker = ModelMaker()
    maker.tensor("x", [1], "INT8")
    maker.subgraph(inputs=[0], outputs=[0])
    assert [f.id for f in find(maker.finish())] == ["no-operators"]


def make_model_with_constant(**values: object) -> ModelMaker:
    maker = ModelMaker()
    maker.tensor("w", [8], "INT8", **values)
    maker.operator("RELU", [0], [0])
    maker.subgraph(inputs=[0], outputs=[0])
    return maker


def test_data_that_tflm_can_not_find() -> None:
    [finding] = find(make_model_with_constant(data=np.ones(8), outside=True).finish())
    assert (finding.id, finding.severity, finding.layer) == ("data-outside-flatbuffer", "error", "w")


def test_sparse_constant_may_be_short_and_is_found() -> None:
    [finding] = find(make_model_with_constant(data=bytes(3), is_sparse=True).finish())
    assert (finding.id, finding.severity) == ("sparse-tensor", "error")


def test_compressed_constants_may_be_short_and_are_found() -> None:
    maker = make_model_with_constant(data=bytes(2))
    maker.add_metadata("COMPRESSION_METADATA", b"\x00")
    [finding] = find(maker.finish())
    assert (finding.id, finding.severity) == ("compressed-constants", "error")
