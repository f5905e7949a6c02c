"""Reads the body of one message field by field, strictly: too short, too long or not UTF-8 is an error."""

import struct
from types import TracebackType

from tflm_forge.errors import DeviceError

_HINT = "Firmware and forge do not fit together: build the firmware again with this forge."


class BodyReader:
    """Takes little-endian fields off a message's body, in order.

    Used as a context manager it checks, on leaving, that nothing is left over.

    Args:
        body: the bytes of the message.
        message: the message's name, for errors ("the answer to INFO").
    """

    def __init__(self, body: bytes, message: str) -> None:
        self._body = body
        self._message = message
        self._at = 0

    def __enter__(self) -> "BodyReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._at != len(self._body):
            raise DeviceError(
                f"{self._message} is {len(self._body) - self._at} bytes longer than it should be "
                f"({len(self._body)} bytes in all)",
                hint=_HINT,
            )

    def raw(self, count: int) -> bytes:
        """Take `count` bytes."""
        data = self._body[self._at : self._at + count]
        if len(data) != count:
            raise DeviceError(
                f"{self._message} is too short: {len(self._body)} bytes, and at least {self._at + count} are needed",
                hint=_HINT,
            )
        self._at += count
        return data

    def rest(self) -> bytes:
        """Take all bytes that are left."""
        return self.raw(len(self._body) - self._at)

    def u8(self) -> int:
        """Take an unsigned byte."""
        return self.raw(1)[0]

    def u16(self) -> int:
        """Take an unsigned 16-bit number."""
        return int.from_bytes(self.raw(2), "little")

    def u32(self) -> int:
        """Take an unsigned 32-bit number."""
        return int.from_bytes(self.raw(4), "little")

    def u64(self) -> int:
        """Take an unsigned 64-bit number."""
        return int.from_bytes(self.raw(8), "little")

    def i32(self) -> int:
        """Take a signed 32-bit number."""
        return int.from_bytes(self.raw(4), "little", signed=True)

    def f32(self) -> float:
        """Take a 32-bit float."""
        value: float = struct.unpack("<f", self.raw(4))[0]
        return value

    def flag(self) -> bool:
        """Take a byte that must be 0 or 1."""
        value = self.u8()
        if value > 1:
            raise DeviceError(f"{self._message} has {value} where 0 or 1 is allowed", hint=_HINT)
        return value == 1

    def str8(self) -> str:
        """Take a length byte and that many bytes of UTF-8."""
        data = self.raw(self.u8())
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DeviceError(f"{self._message} has a text that is not UTF-8: {data!r}", hint=_HINT) from error
