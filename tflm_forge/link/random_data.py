"""The device's random data, made again on the host: what SOAK and FILL put into tensors (see docs/link.md)."""

import struct
from collections.abc import Iterator

_MASK = 0xFFFFFFFF
_FLOAT_SCALE = 2.0**-31
_FLOAT_BYTES = 4


class RandomData:
    """Marsaglia's xorshift32, which goes on from one tensor to the next.

    SOAK fills all inputs in order from one generator; FILL starts one for its tensor alone.

    Args:
        seed: the request's seed; 0 counts as 1.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK or 1

    def tensor_bytes(self, tensor_type: str, count: int) -> bytes:
        """Return what the device puts into the next tensor.

        Args:
            tensor_type: the tensor's type as the schema spells it ("INT8").
            count: bytes of the tensor.
        """
        if tensor_type == "FLOAT32":
            values = self._numbers(count // _FLOAT_BYTES)
            return b"".join(struct.pack("<f", _rounded(value) * _FLOAT_SCALE) for value in values)
        mask = 1 if tensor_type == "BOOL" else 0xFF
        return bytes(value & mask for value in self._numbers(count))

    def _numbers(self, count: int) -> Iterator[int]:
        state = self._state
        for _ in range(count):
            state ^= state << 13 & _MASK
            state ^= state >> 17
            state ^= state << 5 & _MASK
            yield state
        self._state = state


def random_bytes(seed: int, tensor_type: str, count: int) -> bytes:
    """Return what FILL with this seed puts into a tensor of this type and size."""
    return RandomData(seed).tensor_bytes(tensor_type, count)


def _rounded(value: int) -> float:
    """Return a 32-bit pattern as a signed number, rounded to the nearest float32."""
    signed = value - ((value >> 31) << 32)
    nearest: float = struct.unpack("<f", struct.pack("<f", signed))[0]
    return nearest
