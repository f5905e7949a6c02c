"""The cases that `forge op test SoftShrink` runs on this computer and in QEMU."""

import numpy as np

from tflm_forge.ops.cases import OpCase, OpTensor


def cases():
    """Return the cases: inputs, what the outputs are like, and the custom options."""
    every_int8 = np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16)
    floats = np.random.default_rng(1).uniform(-4, 4, (2, 3, 5)).astype(np.float32)
    return [
        OpCase(
            name="every int8 number",
            inputs=[OpTensor.of(every_int8, scale=0.05, zero_point=3)],
            outputs=[OpTensor(type="INT8", shape=(1, 16, 16), scale=0.04, zero_point=-5)],
            options={"lambda": 0.75},
        ),
        OpCase(
            name="int8, options left out",
            inputs=[OpTensor.of(every_int8, scale=1.0)],
            outputs=[OpTensor(type="INT8", shape=(1, 16, 16), scale=0.5)],
        ),
        OpCase(
            name="float32",
            inputs=[OpTensor.of(floats)],
            outputs=[OpTensor(type="FLOAT32", shape=floats.shape)],
            options={"lambda": 1.5},
        ),
        OpCase(
            name="an output of another shape is refused",
            inputs=[OpTensor.of(floats)],
            outputs=[OpTensor(type="FLOAT32", shape=(30,))],
            refused=True,
        ),
        OpCase(
            name="an output of another type is refused",
            inputs=[OpTensor.of(floats)],
            outputs=[OpTensor(type="INT8", shape=floats.shape, scale=0.05)],
            refused=True,
        ),
    ]
