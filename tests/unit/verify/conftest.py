from pathlib import Path

import pytest

from tests.modelmaker import ModelMaker
from tflm_forge.model import Model, read_model


def make_relu_model(name: str = "relu.tflite", shape: tuple[int, ...] = (1, 4), kind: str = "INT8") -> Model:
    maker = ModelMaker()
    quantization = {} if "FLOAT" in kind else {"scale": 0.5, "zero_point": 1 if kind.startswith("U") else -1}
    x = maker.tensor("serving_x:0", shape, kind, **quantization)
    y = maker.tensor("y", shape, kind, **quantization)
    maker.operator("RELU", [x], [y], version=2)
    maker.subgraph(inputs=[x], outputs=[y])
    return read_model(maker.finish(), name=name)


@pytest.fixture
def relu() -> Model:
    return make_relu_model()


@pytest.fixture
def two_inputs() -> Model:
    maker = ModelMaker()
    a = maker.tensor("a", [2, 3], "INT16", scale=1.0)
    b = maker.tensor("b", [1], "BOOL")
    y = maker.tensor("y", [2, 3], "INT16", scale=1.0)
    maker.operator("SELECT_V2", [b, a, a], [y])
    maker.subgraph(inputs=[a, b], outputs=[y])
    return read_model(maker.finish(), name="two.tflite")


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    return tmp_path / "data.npz"
