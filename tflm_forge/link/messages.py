"""The requests of the link: pure codecs, one frozen dataclass a message (see docs/link.md)."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from tflm_forge.link.answers import (
    Empty,
    Info,
    InvokeResult,
    LayerInfo,
    ModelInfo,
    OpPage,
    ProfilePage,
    SelfTest,
    SoakResult,
    TensorPage,
)
from tflm_forge.link.request import Request as Request
from tflm_forge.link.request import read_whole
from tflm_forge.link.wire import BodyReader

PROGRESS_TYPE = 0xF0
ERROR_TYPE = 0xFF


class Space(IntEnum):
    """Which of the model's tensors an index counts."""

    INPUT = 0
    OUTPUT = 1


class FillMode(IntEnum):
    """What FILL makes a tensor's bytes of."""

    PATTERN = 0
    RANDOM = 1


class ResetMode(IntEnum):
    """What RESET does."""

    SYSTEM = 0
    LEAVE_EMULATOR = 1


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A sign of life during long work, with the sequence number of its request."""

    done: int
    total: int

    @classmethod
    def decode(cls, body: bytes) -> "Progress":
        """Read the body of a PROGRESS frame."""
        with BodyReader(body, "PROGRESS") as read:
            return cls(done=read.u32(), total=read.u32())


@dataclass(frozen=True, kw_only=True)
class ErrorAnswer:
    """The device refused a request: a status code and a number that belongs to it."""

    request_type: int
    status: int
    detail: int

    @classmethod
    def decode(cls, body: bytes) -> "ErrorAnswer":
        """Read the body of an error answer."""
        with BodyReader(body, "the error answer") as read:
            return cls(request_type=read.u8(), status=read.u16(), detail=read.u32())


@dataclass(frozen=True, kw_only=True)
class InfoRequest(Request[Info]):
    """What the device is: protocol, firmware, model, memory."""

    TYPE = 0x01
    NAME = "INFO"

    def decode_answer(self, body: bytes) -> Info:
        """Read the answer; another protocol version is its own error."""
        return read_whole(Info.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class OpsRequest(Request[OpPage]):
    """The registered ops, as many as fit in one answer."""

    TYPE = 0x02
    NAME = "OPS"

    start: int = 0

    def encode(self) -> bytes:
        """Return the index of the first op wanted."""
        return struct.pack("<H", self.start)

    def decode_answer(self, body: bytes) -> OpPage:
        """Read one page of ops."""
        return read_whole(OpPage.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class SelfTestRequest(Request[SelfTest]):
    """One status a boot step, and every op of the model the firmware can not run."""

    TYPE = 0x03
    NAME = "SELFTEST"

    def decode_answer(self, body: bytes) -> SelfTest:
        """Read the statuses, the fault record and the offenders."""
        return read_whole(SelfTest.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class TensorsRequest(Request[TensorPage]):
    """The model's inputs and outputs, as many as fit in one answer."""

    TYPE = 0x04
    NAME = "TENSORS"

    start: int = 0

    def encode(self) -> bytes:
        """Return the index of the first tensor wanted."""
        return struct.pack("<H", self.start)

    def decode_answer(self, body: bytes) -> TensorPage:
        """Read one page of tensors."""
        return read_whole(TensorPage.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class SelectRequest(Request[ModelInfo]):
    """Switch to another model; only firmware with several knows it."""

    TYPE = 0x05
    NAME = "SELECT"

    index: int

    def encode(self) -> bytes:
        """Return the model's number."""
        return struct.pack("<B", self.index)

    def decode_answer(self, body: bytes) -> ModelInfo:
        """Read what the model is."""
        return read_whole(ModelInfo.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class WriteRequest(Request[Empty]):
    """Put bytes into a tensor."""

    TYPE = 0x10
    NAME = "WRITE"
    OVERHEAD_BYTES: ClassVar[int] = 6

    space: Space
    index: int
    offset: int
    data: bytes

    def encode(self) -> bytes:
        """Return where the bytes go, and the bytes."""
        return struct.pack("<BBI", self.space, self.index, self.offset) + self.data

    def decode_answer(self, body: bytes) -> Empty:
        """Check that the answer is empty."""
        return read_whole(Empty.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class InvokeRequest(Request[InvokeResult]):
    """Run inferences on the inputs as they are."""

    TYPE = 0x11
    NAME = "INVOKE"
    IS_LONG = True

    count: int = 1

    def encode(self) -> bytes:
        """Return how many inferences to run."""
        return struct.pack("<I", self.count)

    def decode_answer(self, body: bytes) -> InvokeResult:
        """Read the status and the ticks."""
        return read_whole(InvokeResult.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class ReadRequest(Request[bytes]):
    """Get bytes of a tensor."""

    TYPE = 0x12
    NAME = "READ"

    space: Space
    index: int
    offset: int
    length: int

    def encode(self) -> bytes:
        """Return which bytes are wanted."""
        return struct.pack("<BBIH", self.space, self.index, self.offset, self.length)

    def decode_answer(self, body: bytes) -> bytes:
        """Return the bytes; there must be as many as were asked for."""
        return read_whole(lambda read: read.raw(self.length), body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class CrcRequest(Request[int]):
    """Get the CRC-32 of a tensor's bytes."""

    TYPE = 0x13
    NAME = "CRC"

    space: Space
    index: int

    def encode(self) -> bytes:
        """Return which tensor is meant."""
        return struct.pack("<BB", self.space, self.index)

    def decode_answer(self, body: bytes) -> int:
        """Return the CRC."""
        return read_whole(BodyReader.u32, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class FillRequest(Request[Empty]):
    """Let the device make an input's bytes itself: from four bytes that repeat, or from a seed."""

    TYPE = 0x14
    NAME = "FILL"

    index: int
    mode: FillMode
    value: int

    def encode(self) -> bytes:
        """Return the input, the mode, and the pattern or seed."""
        return struct.pack("<BBI", self.index, self.mode, self.value)

    def decode_answer(self, body: bytes) -> Empty:
        """Check that the answer is empty."""
        return read_whole(Empty.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class ForgetRequest(Request[Empty]):
    """Put the model's state back to what it was before the first inference."""

    TYPE = 0x15
    NAME = "FORGET"

    def decode_answer(self, body: bytes) -> Empty:
        """Check that the answer is empty."""
        return read_whole(Empty.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class SoakRequest(Request[SoakResult]):
    """Run many inferences on inputs made from a seed and compare the outputs of each with the first's."""

    TYPE = 0x20
    NAME = "SOAK"
    IS_LONG = True

    loops: int
    seed: int

    def encode(self) -> bytes:
        """Return the number of loops and the seed."""
        return struct.pack("<II", self.loops, self.seed)

    def decode_answer(self, body: bytes) -> SoakResult:
        """Read the loops done, the CRC and the first difference."""
        return read_whole(SoakResult.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class ProfileRequest(Request[ProfilePage]):
    """The ticks of each operator of one inference; the inference is run when asked from 0."""

    TYPE = 0x21
    NAME = "PROFILE"
    IS_LONG = True

    start: int = 0

    def encode(self) -> bytes:
        """Return the index of the first operator wanted."""
        return struct.pack("<H", self.start)

    def decode_answer(self, body: bytes) -> ProfilePage:
        """Read one page of ticks."""
        return read_whole(ProfilePage.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class LayerInfoRequest(Request[LayerInfo]):
    """Size and CRC of an operator's first output; only firmware that keeps all tensors knows LAYER."""

    TYPE = 0x22
    NAME = "LAYER"

    operator: int

    def encode(self) -> bytes:
        """Return the operator, and no length."""
        return struct.pack("<HIH", self.operator, 0, 0)

    def decode_answer(self, body: bytes) -> LayerInfo:
        """Read size and CRC."""
        return read_whole(LayerInfo.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class LayerRequest(Request[bytes]):
    """Get bytes of an operator's first output; `length` is not 0."""

    TYPE = 0x22
    NAME = "LAYER"

    operator: int
    offset: int
    length: int

    def encode(self) -> bytes:
        """Return which bytes are wanted."""
        return struct.pack("<HIH", self.operator, self.offset, self.length)

    def decode_answer(self, body: bytes) -> bytes:
        """Return the bytes; there must be as many as were asked for."""
        return read_whole(lambda read: read.raw(self.length), body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class ArenaRequest(Request[Empty]):
    """Set the bytes of the arena for the next boot; only firmware that measures its arena knows it."""

    TYPE = 0x16
    NAME = "ARENA"

    size_bytes: int

    def encode(self) -> bytes:
        """Return the size."""
        return struct.pack("<I", self.size_bytes)

    def decode_answer(self, body: bytes) -> Empty:
        """Check that the answer is empty."""
        return read_whole(Empty.read, body, self.NAME)


@dataclass(frozen=True, kw_only=True)
class ResetRequest(Request[Empty]):
    """Start the device again, or leave the emulator."""

    TYPE = 0x7E
    NAME = "RESET"

    mode: ResetMode = ResetMode.SYSTEM

    def encode(self) -> bytes:
        """Return the mode."""
        return struct.pack("<B", self.mode)

    def decode_answer(self, body: bytes) -> Empty:
        """Check that the answer is empty."""
        return read_whole(Empty.read, body, self.NAME)


REQUEST_NAMES: dict[int, str] = {
    r.TYPE: r.NAME
    for r in (
        InfoRequest,
        OpsRequest,
        SelfTestRequest,
        TensorsRequest,
        SelectRequest,
        WriteRequest,
        InvokeRequest,
        ReadRequest,
        CrcRequest,
        FillRequest,
        ForgetRequest,
        ArenaRequest,
        SoakRequest,
        ProfileRequest,
        LayerRequest,
        ResetRequest,
    )
}
"""The name of each request by its frame type."""
