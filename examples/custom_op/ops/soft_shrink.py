"""What the custom op SoftShrink should give, in NumPy: the tests of the kernel compare with this."""

import numpy as np


def reference(inputs, outputs, options):
    """Compute the op.

    Args:
        inputs: the input tensors: `.values`, and `.real()` for the numbers that quantized values stand for.
        outputs: the output tensors, without values: `.shape`, and `.quantize(real)` for values of their type.
        options: the custom options by name.

    Returns:
        One array for each output.
    """
    limit = np.float32(options.get("lambda", 0.5))
    x = inputs[0].real()
    return [outputs[0].quantize(np.sign(x) * np.maximum(np.abs(x) - limit, 0))]
