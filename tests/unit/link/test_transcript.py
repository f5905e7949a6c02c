import struct

import pytest

from tests.unit.link.simulated_device import SimulatedDevice, frame_bytes
from tflm_forge.link.transcript import Transcript


def lines_of(data: bytes) -> list[str]:
    transcript = Transcript()
    return [*transcript.feed(data), *transcript.pause()]


def answer_to(kind: int, body: bytes = b"") -> bytes:
    return SimulatedDevice().take(frame_bytes(kind, 5, body))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"forge 0.1.0 board sim\r\n", "forge 0.1.0 board sim"),
        (answer_to(0x01), "<answer to INFO #5: sim, runtime bundled 0.1.0, forge 0.1.0, ready, arena 4,000 of 4,096"),
        (answer_to(0x03), "<answer to SELFTEST #5: board ok, model ok, registration ok, self-check ok, allocation ok>"),
        (answer_to(0x11, struct.pack("<I", 2)), "<answer to INVOKE #5: ok, 2,000 ticks>"),
        (answer_to(0x20, struct.pack("<II", 7, 1)), "<answer to SOAK #5: ok, 7 loops, 900 bytes of stack>"),
        (answer_to(0x13, b"\0\0"), "<answer to CRC #5: 4 bytes 1c df 44 21>"),
        (frame_bytes(0xF0, 6, struct.pack("<II", 1500, 5000)), "<PROGRESS #6: 1,500 of 5,000>"),
        (frame_bytes(0xFF, 7, struct.pack("<BHI", 0x11, 0x51, 2)), "<refused INVOKE #7: inference is blocked by"),
        (frame_bytes(0xFF, 7, struct.pack("<BHI", 0x6A, 0x52, 2)), "<refused 0x6A #7: the firmware does not know"),
        (frame_bytes(0xE1, 8, b"abc"), "<frame 0xE1 #8: 3 bytes 61 62 63>"),
        (frame_bytes(0x81, 9, b"\1"), "<frame 0x81 #9: the answer to INFO is too short"),
        (b"\xfe\x81\x93\xf0" * 9 + b"\0", "<36 bytes that are no text and no frame: fe 81 93 f0"),
    ],
)
def test_one_line_each(data: bytes, words: str) -> None:
    [line] = lines_of(data)
    assert line.startswith(words)


def test_text_and_frames_keep_their_order() -> None:
    data = b"booting\n" + frame_bytes(0xF0, 1, bytes(8)) + b"ready\n"
    assert lines_of(data) == ["booting", "<PROGRESS #1: 0 of 0>", "ready"]


def test_a_prompt_is_shown_when_the_device_pauses() -> None:
    transcript = Transcript()
    assert list(transcript.feed(b">>> ")) == []
    assert list(transcript.pause()) == [">>> "]
    assert list(transcript.pause()) == []
