"""What the test of an operator of one's own is made of: tensors and cases. Also what its Python reference gets.

Example:
    from tflm_forge.ops.cases import OpCase, OpTensor

    def cases():
        x = np.arange(-128, 128, dtype=np.int8).reshape(1, 256)
        return [
            OpCase(
                name="every int8 number",
                inputs=[OpTensor.of(x, scale=0.05, zero_point=3)],
                outputs=[OpTensor(type="INT8", shape=(1, 256), scale=0.04)],
                options={"alpha": 0.25},
            )
        ]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_DTYPES = {
    "FLOAT32": np.float32, "INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16, "INT32": np.int32,
    "INT64": np.int64, "BOOL": np.bool_, "UINT16": np.uint16, "UINT32": np.uint32,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class OpTensor:
    """A tensor of an op.

    Attributes:
        type: name of its TensorType ("INT8").
        shape: its dimensions.
        scale: of quantized values, or one for each index along `axis`; None for a tensor that is not quantized.
        zero_point: of quantized values, or one for each scale.
        axis: the dimension that several scales count along.
        values: what it holds; None for an output.
        is_constant: whether the model holds its values, as it does weights.
    """

    type: str
    shape: Sequence[int]
    scale: float | Sequence[float] | None = None
    zero_point: int | Sequence[int] = 0
    axis: int = 0
    values: Array | None = None
    is_constant: bool = False

    @classmethod
    def of(
        cls,
        values: Array,
        *,
        scale: float | Sequence[float] | None = None,
        zero_point: int | Sequence[int] = 0,
        axis: int = 0,
        is_constant: bool = False,
    ) -> "OpTensor":
        """Return the tensor with these values, of the TensorType of their NumPy type.

        Raises:
            TypeError: no TensorType has these values.
        """
        array = np.asarray(values)
        for name, dtype in _DTYPES.items():
            if array.dtype == dtype:
                return cls(
                    type=name,
                    shape=array.shape,
                    scale=scale,
                    zero_point=zero_point,
                    axis=axis,
                    values=array,
                    is_constant=is_constant,
                )
        raise TypeError(f"values of {array.dtype}: use one of {', '.join(np.dtype(d).name for d in _DTYPES.values())}")

    @property
    def dtype(self) -> "np.dtype[Any]":
        """NumPy's type of the values."""
        return np.dtype(_DTYPES[self.type])

    def real(self) -> NDArray[np.float32]:
        """Return the numbers that the values stand for: scale * (value - zero point) where it is quantized."""
        if self.values is None:
            raise ValueError("an output has no values")
        if self.scale is None:
            return self.values.astype(np.float32)
        steps = self.values.astype(np.int64) - self._along_axis(self.zero_point).astype(np.int64)
        return np.asarray(steps.astype(np.float32) * self._along_axis(self.scale).astype(np.float32), np.float32)

    def quantize(self, real: Array) -> Array:
        """Return values of the tensor's type for real numbers: to nearest, halves away from zero, then clamped."""
        array = np.asarray(real).reshape(tuple(self.shape))
        if self.dtype.kind == "f" or self.scale is None:
            return np.asarray(array.astype(self.dtype))
        scaled = (array.astype(np.float32) / self._along_axis(self.scale).astype(np.float32)).astype(np.float64)
        steps = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled) + self._along_axis(self.zero_point)
        limits = np.iinfo(self.dtype)
        return np.asarray(np.clip(steps, limits.min, limits.max).astype(self.dtype))

    def _along_axis(self, numbers: "float | int | Sequence[float] | Sequence[int]") -> Array:
        array = np.asarray(numbers)
        if array.ndim == 0:
            return array
        shape = [1] * len(self.shape)
        shape[self.axis] = -1
        return array.reshape(shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class OpCase:
    """One call of an op: inputs, what the outputs are like, and the options.

    Attributes:
        name: what a person calls it.
        inputs: the input tensors, with values.
        outputs: the output tensors, without.
        options: custom options by name; of a builtin op, the fields of its options by the schema's names.
        options_type: of a builtin op, the schema's table of its options ("Conv2DOptions").
        version: version of the op.
        tolerance_lsb: by how much integers may differ from the reference's.
        refused: whether the kernel must refuse these tensors in Prepare.
    """

    name: str
    inputs: Sequence[OpTensor]
    outputs: Sequence[OpTensor]
    options: Mapping[str, Any] = field(default_factory=dict)
    options_type: str = ""
    version: int = 1
    tolerance_lsb: int = 0
    refused: bool = False
