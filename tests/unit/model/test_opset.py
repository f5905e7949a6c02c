"""The op set: what operators use, not what the opcode table lists."""

import numpy as np
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


def test_scales_for_each_channel_of_the_weights_are_seen() -> None:
    for scale, expected in (([0.1], False), ([0.1, 0.2], True)):
        maker = ModelMaker()
        x = maker.tensor("x", [1, 3], "INT8", scale=0.5)
        w = maker.tensor("w", [2, 3], "INT8", scale=scale, data=np.ones((2, 3)))
        y = maker.tensor("y", [1, 2], "INT8", scale=0.5)
        maker.operator("FULLY_CONNECTED", [x, w, -1], [y])
        maker.operator("RELU", [y], [y])
        maker.subgraph(inputs=[x], outputs=[y])
        uses = {use.name: use for use in op_set(read_model(maker.finish(), name="m"))}
        assert uses["FULLY_CONNECTED"].has_channel_scales == expected
        assert not uses["RELU"].has_channel_scales
