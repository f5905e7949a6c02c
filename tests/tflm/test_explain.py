"""Every message of an installed TFLM tree's core and kernels is one that `forge explain` knows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tflm_forge.explain import explain_text
from tflm_forge.runtimes.tflm.install import find_installed

pytestmark = pytest.mark.tflm

FOLDERS = (
    "tensorflow/lite/micro", "tensorflow/lite/core", "tensorflow/lite/kernels", "tensorflow/lite/schema", "signal",
)  # fmt: skip
# Tools, other processors' ports and examples: none of it is in firmware that forge builds.
APART = re.compile(r"/(?:tools|examples|benchmarks|testing|models|docs|python|integration_tests|hexagon)/|test|fake_")
CALL = re.compile(
    r"\b(?:MicroPrintf|TF_LITE_KERNEL_LOG|TF_LITE_REPORT_ERROR)\s*\(((?:[^;\"]|\"(?:[^\"\\]|\\.)*\")*?)\)\s*;"
)
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
SAMPLES = {"d": "7", "u": "7", "x": "7f", "s": "CONV_2D", "f": "0.5", "c": "a"}
# Pieces of a line whose other part says what it is.
FRAGMENTS = {"", " ", "%s", " %x", "\\n", "%s, %d", "%d,%s,%d", "%d,%s,%", "HALTED"}


def _messages(root: Path) -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cc", ".h") or APART.search(path.relative_to(root).as_posix()):
                continue
            text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8", errors="replace"))
            for call in CALL.findall(text):
                message = "".join(LITERAL.findall(call))
                if message not in FRAGMENTS:
                    yield message, path.name


def _as_printed(message: str) -> str:
    """Return a message with every %-directive filled in, and without escapes of C."""
    message = message.replace("%s:%d", "conv.cc:%d")  # the place in the source that a check failed at
    filled = re.sub(r"%[-0-9.]*(?:ll|l|z)?([a-z])", lambda m: SAMPLES.get(m[1], "7"), message)
    return filled.replace("\\n", " ").replace('\\"', '"').strip()


def test_every_message_of_the_core_is_known() -> None:
    installed = find_installed()
    assert installed is not None
    root = installed.folder / "tflite-micro"
    messages = dict(_messages(root))
    assert len(messages) > 200
    unknown = {
        f"{name}: {message}" for message, name in messages.items() if not explain_text(_as_printed(message)).causes
    }
    assert not unknown
