import struct
import zlib

import pytest
from cobs import cobs
from hypothesis import given, settings
from hypothesis import strategies as st

from tflm_forge.errors import DeviceError
from tflm_forge.link.framing import Frame, FrameDecoder, Noise, Text, encode_frame, encoded_bytes

frames = st.builds(
    Frame,
    type=st.integers(0x80, 0xFF),
    sequence=st.integers(0, 255),
    body=st.one_of(st.binary(max_size=600), st.integers(0, 600).map(bytes)),
)


def by_hand(kind: int, sequence: int, body: bytes) -> bytes:
    content = bytes((kind, sequence)) + body
    return b"\0" + cobs.encode(content + struct.pack("<I", zlib.crc32(content))) + b"\0"


def decode(data: bytes, **options: int) -> list[Frame | Text | Noise]:
    decoder = FrameDecoder(**options)
    return [*decoder.feed(data), *decoder.flush()]


@pytest.mark.parametrize(
    ("kind", "sequence", "body", "wire"),
    [
        # CRCs as gzip writes them at the end of a file; COBS by hand.
        (0x01, 0x01, b"", "00 07 01 01 28 13 c5 2f 00"),
        (0x81, 0x00, b"", "00 02 81 05 f5 bb 41 63 00"),
        (0x10, 0x02, b"\0\0AB", "00 03 10 02 01 07 41 42 a0 ae 64 b9 00"),
        (0x10, 0xFF, bytes(300), None),
        (0x92, 0x07, bytes(range(1, 255)), None),
        (0x92, 0x07, bytes(range(256)) * 2, None),
    ],
)
def test_encode_frame_vectors(kind: int, sequence: int, body: bytes, wire: str | None) -> None:
    expected = by_hand(kind, sequence, body)
    if wire is not None:
        assert expected == bytes.fromhex(wire)
    encoded = encode_frame(Frame(type=kind, sequence=sequence, body=body))
    assert encoded == expected
    assert encoded.count(0) == 2
    assert len(encoded) <= encoded_bytes(len(body))


def test_encode_frame_refuses_a_body_no_mtu_allows() -> None:
    with pytest.raises(DeviceError, match="65536 bytes"):
        encode_frame(Frame(type=1, sequence=1, body=bytes(65536)))


def test_longest_body_passes() -> None:
    frame = Frame(type=0x92, sequence=9, body=b"\xff" * 65535)
    assert decode(encode_frame(frame)) == [frame]


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"hello\r\nworld\n", [Text(line="hello"), Text(line="world")]),
        (b"\0\0\0", []),
        (b"no end", [Text(line="no end")]),
        (b"\n\n", []),
        ("grün\n".encode(), [Text(line="grün")]),
        (b"a\n\0b\0", [Text(line="a"), Text(line="b")]),
        (b"\x03\x81", [Noise(data=b"\x03\x81")]),
        (b"\xff\xfe\n", [Noise(data=b"\xff\xfe\n")]),
    ],
)
def test_text_and_noise(data: bytes, events: list[Text | Noise]) -> None:
    assert decode(data) == events


def test_a_line_of_text_comes_before_the_next_zero() -> None:
    decoder = FrameDecoder()
    assert list(decoder.feed(b"\0boot\nha")) == [Text(line="boot")]
    assert list(decoder.feed(b"lf\n")) == [Text(line="half")]


def test_text_stays_apart_from_frames() -> None:
    frame = Frame(type=0x81, sequence=5, body=b"\n\0\n")
    data = b"ready\n" + encode_frame(frame) + b"log\n" + encode_frame(frame) + encode_frame(frame)
    assert decode(data) == [Text(line="ready"), frame, Text(line="log"), frame, frame]


def test_requests_are_decoded_with_their_lowest_type() -> None:
    frame = Frame(type=0x01, sequence=5)
    assert decode(encode_frame(frame)) != [frame]
    assert decode(encode_frame(frame), lowest_type=0) == [frame]


@pytest.mark.parametrize("filler", [b"\x91", b"x"])
def test_memory_is_bounded(filler: bytes) -> None:
    decoder = FrameDecoder(max_body_bytes=100)
    seen = 0
    for _ in range(200):
        for event in decoder.feed(filler * 100):
            seen += len(event.data if isinstance(event, Noise) else event.line)  # type: ignore[union-attr]
        assert len(decoder._segment) <= 4096
    assert seen >= 20_000 - 4096
    frame = Frame(type=0x81, sequence=1)
    assert list(decoder.feed(encode_frame(frame)))[-1] == frame


@settings(deadline=None)
@given(st.lists(frames, max_size=5), st.data())
def test_round_trip_in_any_chunks(sent: list[Frame], data: st.DataObject) -> None:
    wire = b"".join(encode_frame(f) for f in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=20)))
    decoder = FrameDecoder()
    got = []
    for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        got += list(decoder.feed(wire[start:end]))
    assert got == sent


@settings(deadline=None)
@given(st.lists(frames, min_size=1, max_size=4), st.data())
def test_nothing_damaged_is_accepted(sent: list[Frame], data: st.DataObject) -> None:
    wire = bytearray(b"".join(encode_frame(f) for f in sent))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(wire) - 1))
        kind = data.draw(st.sampled_from(["flip", "drop", "insert", "repeat", "swap"]))
        if kind == "flip":
            wire[at] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "drop":
            del wire[at : at + data.draw(st.integers(1, 10))]
        elif kind == "insert":
            wire[at:at] = data.draw(st.binary(min_size=1, max_size=10))
        elif kind == "repeat":
            wire[at:at] = wire[at : at + data.draw(st.integers(1, 300))]
        else:
            end = data.draw(st.integers(at, len(wire)))
            wire = wire[at:end] + wire[:at] + wire[end:]
        if not wire:
            break
    for event in decode(bytes(wire)):
        assert not isinstance(event, Frame) or event in sent


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_are_taken(data: bytes) -> None:
    for event in decode(data):
        assert isinstance(event, Frame | Text | Noise)
