"""The page about the wire format against the code it describes."""

import re
from pathlib import Path

from tflm_forge.link.answers import PROTOCOL_VERSION, TFLITE_TYPES
from tflm_forge.link.messages import REQUEST_NAMES
from tflm_forge.link.status import STATUSES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "link.md").read_text(encoding="utf-8")


def test_every_status_is_listed_with_its_words() -> None:
    rows = re.findall(r"^\| (0x\w\w) \| (\w+) \| ([^|]+) \| [^|]*\|$", PAGE.split("## Status codes")[1], re.MULTILINE)
    assert [(int(code, 16), name, words) for code, name, words in rows] == [(s.code, s.name, s.words) for s in STATUSES]


def test_every_request_is_listed() -> None:
    rows = re.findall(r"^\| (0x\w\w) \| ([A-Z]+) \| (?:yes|no) \| (?:yes|no) \|$", PAGE, re.MULTILINE)
    assert {int(code, 16): name for code, name in rows} == REQUEST_NAMES


def test_every_tensor_type_is_listed() -> None:
    listed = {}
    for numbers, names in re.findall(r"^\| (\d+ .*) \|\n\|[-|]+\|\n\| ([A-Z].*) \|$", PAGE, re.MULTILINE):
        listed.update(zip(map(int, numbers.split(" | ")), names.split(" | "), strict=True))
    assert listed == {code: name for code, name in TFLITE_TYPES.items() if code}


def test_version_and_example_frames() -> None:
    assert f"Protocol version: **{PROTOCOL_VERSION}**" in PAGE
    assert "`00 07 01 01 28 13 C5 2F 00`" in PAGE
    assert "`00 03 10 02 01 07 41 42 A0 AE 64 B9 00`" in PAGE
