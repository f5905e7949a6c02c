"""Frames on the wire: encoding, and an incremental decoder that tells frames, text and noise apart.

A frame is `0x00 COBS(type, sequence, body, crc32) 0x00`. Whatever stands between two zeros and is not a
frame is text the device printed, or noise.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from cobs import cobs

from tflm_forge.errors import DeviceError

ANSWER_BIT = 0x80
"""Set in the type of every frame a device sends; requests have it clear."""

MAX_BODY_BYTES = 0xFFFF
"""The longest body an MTU (a u16) allows."""

_CRC_BYTES = 4
_HEADER_BYTES = 2
_MAX_LINE_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One frame: its type, its sequence number and its body."""

    type: int
    sequence: int
    body: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Text:
    """One line of text the device printed, without its line end."""

    line: str


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Bytes that are neither a frame nor text: a damaged frame, or a wrong baud rate."""

    data: bytes


Event = Frame | Text | Noise


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame as they go over the wire, with the zero before and after.

    Raises:
        DeviceError: the body is longer than any device can take.
    """
    if len(frame.body) > MAX_BODY_BYTES:
        raise DeviceError(
            f"a frame body of {len(frame.body)} bytes is longer than the link allows ({MAX_BODY_BYTES})",
            hint="Move longer data by offset and bytes.",
        )
    content = bytes((frame.type, frame.sequence)) + frame.body
    packed: bytes = cobs.encode(content + zlib.crc32(content).to_bytes(_CRC_BYTES, "little"))
    return b"\0" + packed + b"\0"


def encoded_bytes(body_bytes: int) -> int:
    """Return the most bytes a frame with a body of this length takes on the wire."""
    content = _HEADER_BYTES + body_bytes + _CRC_BYTES
    return content + content // 254 + 1 + 2


class FrameDecoder:
    """Splits a stream of bytes, in chunks of any size, into frames, lines of text and noise.

    A damaged frame is never returned as a frame. Memory is bounded by the longest body.

    Args:
        max_body_bytes: the longest body that is accepted; anything longer between two zeros is noise.
        lowest_type: the lowest frame type the other side sends. A device's frames all have `ANSWER_BIT` set,
            which tells text from the beginning of a frame at its second byte: so a line of text is returned
            when its line end arrives, not only at the next zero.
    """

    def __init__(self, *, max_body_bytes: int = MAX_BODY_BYTES, lowest_type: int = ANSWER_BIT) -> None:
        self._max_segment_bytes = encoded_bytes(max_body_bytes)
        self._lowest_type = lowest_type
        self._segment = bytearray()
        self._is_text = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Take bytes that arrived and yield what became complete, in order."""
        first, *rest = chunk.split(b"\0")
        yield from self._extend(first)
        for part in rest:
            yield from self._finish()
            yield from self._extend(part)

    def flush(self) -> Iterator[Event]:
        """End the stream: yield what stands unfinished as text or noise, and start afresh."""
        data = bytes(self._segment)
        self._segment.clear()
        self._is_text = False
        if data:
            yield from _text_or_noise(data)

    def _extend(self, part: bytes) -> Iterator[Event]:
        self._segment += part
        if not self._is_text and len(self._segment) >= 2:
            self._is_text = self._segment[1] < self._lowest_type
        if self._is_text:
            yield from self._take_lines()
        while len(self._segment) > self._max_segment_bytes:
            # Too long for any frame. Its rest is text or noise as well, up to the next zero.
            head = bytes(self._segment[: self._max_segment_bytes])
            del self._segment[: self._max_segment_bytes]
            self._is_text = True
            yield from _text_or_noise(head)

    def _take_lines(self) -> Iterator[Event]:
        while True:
            end = self._segment.find(b"\n") + 1
            if not end:
                if len(self._segment) <= _MAX_LINE_BYTES:
                    return
                end = _MAX_LINE_BYTES
            line = bytes(self._segment[:end])
            del self._segment[:end]
            yield from _text_or_noise(line)

    def _finish(self) -> Iterator[Event]:
        data = bytes(self._segment)
        frame = None if self._is_text else _decode_segment(data)
        self._segment.clear()
        self._is_text = False
        if frame is not None:
            yield frame
        elif data:
            yield from _text_or_noise(data)


def _decode_segment(segment: bytes) -> Frame | None:
    if len(segment) < 1 + _HEADER_BYTES + _CRC_BYTES:
        return None
    try:
        data: bytes = cobs.decode(segment)
    except cobs.DecodeError:
        return None
    if len(data) < _HEADER_BYTES + _CRC_BYTES:
        return None
    content, crc = data[:-_CRC_BYTES], int.from_bytes(data[-_CRC_BYTES:], "little")
    if zlib.crc32(content) != crc:
        return None
    return Frame(type=content[0], sequence=content[1], body=content[_HEADER_BYTES:])


def _text_or_noise(data: bytes) -> Iterator[Event]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        yield Noise(data=data)
        return
    if not all(c.isprintable() or c in "\t\r\n\x1b" for c in text):
        yield Noise(data=data)
        return
    for line in text.split("\n"):
        if stripped := line.rstrip("\r"):
            yield Text(line=stripped)
