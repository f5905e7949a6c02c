"""What a model keeps between inferences."""

import pytest

from tests.modelmaker import ModelMaker
from tflm_forge.model import read_model
from tflm_forge.model.resources import count_resource_variables, has_state, resource_variable_bytes

VAR_HANDLE, CALL_ONCE, RELU = "VAR_HANDLE", "CALL_ONCE", "RELU"


def make_model(*handles: tuple[str | None, str], second: tuple[tuple[str | None, str], ...] = ()) -> bytes:
    """Return a model with a VAR_HANDLE for each (container, shared name), in two subgraphs."""
    maker = ModelMaker()
    for names in (handles, second):
        x = maker.tensor("x", [1, 4], "INT8", scale=0.5)
        y = maker.tensor("y", [1, 4], "INT8", scale=0.5)
        for container, shared_name in names:
            handle = maker.tensor("handle", [], "RESOURCE")
            options = {"shared_name": shared_name} | ({} if container is None else {"container": container})
            maker.operator(VAR_HANDLE, [], [handle], options=("VarHandleOptions", options))
        maker.operator(RELU, [x], [y])
        maker.subgraph(inputs=[x], outputs=[y])
    return maker.finish()


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ((), (), 0),
        ((("", "a"),), (), 1),
        ((("", "a"), ("", "a"), ("", "b")), (("", "b"), ("", "a")), 2),
        ((("one", "a"),), (("two", "a"),), 2),
        (((None, "a"), (None, "b")), ((None, "c"),), 3),
    ],
)
def test_variables_are_counted_once_for_each_name(
    first: tuple[tuple[str | None, str], ...], second: tuple[tuple[str | None, str], ...], count: int
) -> None:
    model = read_model(make_model(*first, second=second), name="m.tflite")
    assert count_resource_variables(model) == count
    assert has_state(model) == (count > 0)


def test_a_variable_tensor_is_state() -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4], "INT8", scale=0.5)
    y = maker.tensor("y", [1, 4], "INT8", scale=0.5)
    maker.tensor("state", [1, 4], "INT8", scale=0.5, is_variable=True)
    maker.operator(RELU, [x], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    assert has_state(read_model(maker.finish(), name="m.tflite"))


def test_a_custom_op_may_remember() -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4], "INT8", scale=0.5)
    y = maker.tensor("y", [1, 4], "INT8", scale=0.5)
    maker.operator(32, [x], [y], custom_name="CIRCULAR_BUFFER")
    maker.subgraph(inputs=[x], outputs=[y])
    assert has_state(read_model(maker.finish(), name="m.tflite"))


def test_bytes_of_variables_are_those_of_the_values_assigned_to_them() -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 6], "INT16", scale=0.5)
    small = maker.tensor("small", [1, 3], "INT8", scale=0.5)
    for name, value in (("a", x), ("a", x), ("b", small)):
        handle = maker.tensor("handle", [], "RESOURCE")
        maker.operator("VAR_HANDLE", [], [handle], options=("VarHandleOptions", {"shared_name": name}))
        maker.operator("ASSIGN_VARIABLE", [handle, value], [])
    maker.subgraph(inputs=[x, small], outputs=[x])
    assert resource_variable_bytes(read_model(maker.finish(), name="m.tflite")) == 12 + 3
