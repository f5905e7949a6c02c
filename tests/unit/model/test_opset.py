"""The op set: what operators use, not what the opcode table lists."""

import pytest

from tests.conftest import MODELS
from tests.modelmaker import ModelMaker
from tflm_forge.model import load_model, op_set, read_model


def make_two_graphs() -> bytes:
    maker = ModelMaker()
    for op in ("SOFTMAX", "RELU"):
        maker.opcode(op, version=9)  # used by nobody
    x = maker.tensor("x", [1, 4], "INT8")
    f = maker.tensor("f", [1, 4], "FLOAT32")
    y = maker.tensor("y", [1, 4], "INT8")
    maker.operator("CUSTOM", [x], [y], custom_name="b")
    maker.operator("CUSTOM", [x], [y], custom_name="Ba")
    maker.operator("ADD", [x, x], [y], version=2)
    maker.operator("ADD", [f, f], [f], version=1)
    maker.operator("FULLY_CONNECTED", [x, x, -1], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    maker.tensor("z", [1], "INT16")
    maker.operator("ADD", [0, 0], [0], version=4)
    maker.operator("ADD", [0, 0], [0], version=4)
    maker.operator("STABLEHLO_CBRT", [0], [0])
    maker.subgraph(inputs=[0], outputs=[0])
    return maker.finish()


def test_op_set_counts_uses_in_all_subgraphs_in_canonical_order() -> None:
    ops = op_set(read_model(make_two_graphs(), name="m"))
    assert [(use.builtin_code, use.custom_name, use.version, use.count) for use in ops] == [
        (0, "", 4, 4),
        (9, "", 1, 1),
        (32, "Ba", 1, 1),
        (32, "b", 1, 1),
        (208, "", 1, 1),
    ]
    add, dense, *_ = ops
    assert (add.name, add.first_layer) == ("ADD", "y")
    assert add.types == (
        (("INT8", "INT8"), ("INT8",)),
        (("FLOAT32", "FLOAT32"), ("FLOAT32",)),
        (("INT16", "INT16"), ("INT16",)),
    )
    assert dense.types == ((("INT8", "INT8", "-"), ("INT8",)),)
    assert ops[-1].name == "STABLEHLO_CBRT"


def test_custom_names_sort_by_their_bytes() -> None:
    maker = ModelMaker()
    maker.tensor("x", [1], "INT8")
    for name in ("é", "z", "Z", "\U0001f600", "\uff5e"):
        maker.operator("CUSTOM", [0], [0], custom_name=name)
    maker.subgraph(inputs=[0], outputs=[0])
    ops = op_set(read_model(maker.finish(), name="m"))
    assert [use.custom_name for use in ops] == ["Z", "z", "é", "\uff5e", "\U0001f600"]


@pytest.mark.models
def test_types_of_a_real_model() -> None:
    ops = {use.name: use for use in op_set(load_model(MODELS / "kws_ref_model.tflite"))}
    assert ops["CONV_2D"].types == ((("INT8", "INT8", "INT32"), ("INT8",)),)
    assert ops["SOFTMAX"].types == ((("INT8",), ("INT8",)),)
