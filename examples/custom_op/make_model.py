"""Makes model/shrink.tflite: int8 dense layers with the custom operator SoftShrink between them.

The weights are random numbers from a fixed seed: the example shows the operator, not a task.
Run it in this folder, with forge installed: python make_model.py
"""

from pathlib import Path

import numpy as np
from flatbuffers import flexbuffers

from tflm_forge.model.writing import OperatorSpec, TensorSpec, write_model

SEED = 7
SIZES = (16, 24, 4)
WEIGHT_SCALE = 1 / 128
ACTIVATION_SCALE = 1 / 16


def make_model() -> bytes:
    """Return the model: dense, SoftShrink, dense, softmax."""
    random = np.random.default_rng(SEED)
    tensors: list[TensorSpec] = []

    def tensor(name: str, shape: tuple[int, ...], scale: float, zero: int = 0, kind: str = "INT8", data=b"") -> int:
        tensors.append(
            TensorSpec(name=name, type=kind, shape=shape, scales=(scale,), zero_points=(zero,), data=bytes(data))
        )
        return len(tensors) - 1

    def dense(name: str, source: int, columns: int, rows: int) -> OperatorSpec:
        weights = random.integers(-127, 128, (rows, columns)).astype(np.int8)
        biases = random.integers(-500, 500, rows).astype(np.int32)
        inputs = (
            source,
            tensor(f"{name}_weights", (rows, columns), WEIGHT_SCALE, data=weights.tobytes()),
            tensor(f"{name}_bias", (rows,), WEIGHT_SCALE * ACTIVATION_SCALE, kind="INT32", data=biases.tobytes()),
        )
        output = tensor(name, (1, rows), ACTIVATION_SCALE)
        options = {"keep_num_dims": False}
        return OperatorSpec(
            op="FULLY_CONNECTED",
            inputs=inputs,
            outputs=(output,),
            version=4,
            options_type="FullyConnectedOptions",
            options=options,
        )

    x = tensor("x", (1, SIZES[0]), ACTIVATION_SCALE)
    first = dense("hidden", x, SIZES[0], SIZES[1])
    shrunk = tensor("shrunk", (1, SIZES[1]), ACTIVATION_SCALE)
    shrink = OperatorSpec(
        op="SoftShrink",
        inputs=first.outputs,
        outputs=(shrunk,),
        custom_options=bytes(flexbuffers.Dumps({"lambda": 0.75})),
    )
    second = dense("scores", shrunk, SIZES[1], SIZES[2])
    y = tensor("y", (1, SIZES[2]), 1 / 256, -128)
    softmax = OperatorSpec(
        op="SOFTMAX",
        inputs=second.outputs,
        outputs=(y,),
        version=2,
        options_type="SoftmaxOptions",
        options={"beta": 1.0},
    )
    return write_model(
        tensors=tensors,
        operators=(first, shrink, second, softmax),
        inputs=(x,),
        outputs=(y,),
        description="examples/custom_op/make_model.py",
    )


if __name__ == "__main__":
    path = Path(__file__).with_name("model") / "shrink.tflite"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(make_model())
    print(f"wrote {path}")
