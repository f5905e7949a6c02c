"""Models for the fake firmware, which has FULLY_CONNECTED 4, SOFTMAX 2 and the custom op Fake 1."""

from tests.modelmaker import ModelMaker

FULLY_CONNECTED, SOFTMAX, CUSTOM = 9, 25, 32

FITTING_OPS = ((FULLY_CONNECTED, 4, None), (SOFTMAX, 2, None), (CUSTOM, 1, "Fake"), (FULLY_CONNECTED, 3, None))


def make_model(*ops: tuple[int, int, str | bytes | None]) -> bytes:
    """Return a model with one operator for each (builtin code, version, custom name)."""
    maker = ModelMaker()
    tensors = [maker.tensor("x", [1, 4], "INT8", scale=0.5)]
    for i, (code, version, name) in enumerate(ops):
        tensors.append(maker.tensor(f"y{i}", [1, 4], "INT8", scale=0.5))
        maker.operator(code, tensors[-2:-1], tensors[-1:], version=version, custom_name=name)
    maker.subgraph(inputs=tensors[:1], outputs=tensors[-1:])
    return maker.finish()


def make_fitting_model() -> bytes:
    """Return a model that the fake firmware accepts."""
    return make_model(*FITTING_OPS)
