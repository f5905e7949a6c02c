"""What every request of the link has."""

from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from tflm_forge.link.framing import ANSWER_BIT
from tflm_forge.link.wire import BodyReader

A = TypeVar("A")


class Request(Generic[A]):
    """One request: its type, its name, its body, and how its answer is read."""

    TYPE: ClassVar[int]
    NAME: ClassVar[str]
    IS_LONG: ClassVar[bool] = False
    """Whether the device may work for long before it answers, sending PROGRESS frames."""

    def encode(self) -> bytes:
        """Return the body of the request."""
        return b""

    def decode_answer(self, body: bytes) -> A:
        """Read the body of the answer.

        Raises:
            DeviceError: the body is too short, too long or holds values that are not allowed.
        """
        raise NotImplementedError

    @property
    def answer_type(self) -> int:
        """The frame type of the answer."""
        return self.TYPE | ANSWER_BIT


def read_whole(read_answer: Callable[[BodyReader], A], body: bytes, name: str) -> A:
    """Read an answer that must end with what is read."""
    with BodyReader(body, f"the answer to {name}") as read:
        return read_answer(read)
