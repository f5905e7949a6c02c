from pathlib import Path

import pytest

from tflm_forge.elf import readable_name
from tflm_forge.link.answers import FaultRecord
from tflm_forge.verify.faults import explain_fault


def record(**registers: int) -> FaultRecord:
    values = dict.fromkeys(("kind", "pc", "lr", "cfsr", "hfsr", "bfar", "mmfar", "sp"), 0)
    return FaultRecord(**{**values, "kind": 0x60, **registers})


@pytest.mark.parametrize(
    ("registers", "words"),
    [
        # Armv7-M ARM: UNDEFINSTR is bit 0 of the UFSR, which is the upper half of the CFSR.
        ({"cfsr": 1 << 16}, ("undefined instruction: code is damaged, or was built for another core",)),
        ({"cfsr": 1 << 25}, ("division by zero",)),
        ({"cfsr": 0x8200, "bfar": 0x60000000}, ("precise", "the address was 0x60000000 (BFAR)")),
        ({"cfsr": 0x82, "mmfar": 0x1FFFFFF0}, ("a load or store went where it may not", "0x1FFFFFF0 (MMFAR)")),
        ({"cfsr": 1 << 20}, ("the stack ran over its end",)),
        ({"cfsr": 0x8000}, ("(BFAR)",)),
        ({}, ()),
    ],
)
def test_causes(registers: dict[str, int], words: tuple[str, ...]) -> None:
    lines = explain_fault(record(**registers), None)
    assert len(lines) == len(words)
    for line, word in zip(lines, words, strict=True):
        assert word in line


def test_an_elf_that_is_not_there_leaves_the_registers(tmp_path: Path) -> None:
    assert explain_fault(record(cfsr=1 << 25, pc=0x8000100), tmp_path / "absent.elf") == ("division by zero",)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        # As c++filt has them, without parameters.
        ("_ZN6tflite14MicroAllocator7NoteUseEv", "tflite::MicroAllocator::NoteUse"),
        ("_ZN6tflite12_GLOBAL__N_111PrepareInt8EP13TfLiteContextP10TfLiteNode.lto_priv.2", "tflite::PrepareInt8"),
        ("_ZNK6tflite9ArenaPlan4SizeEv", "tflite::ArenaPlan::Size"),
        ("_Z4mainv", "main"),
        ("memcpy", "memcpy"),
        ("_ZTV4Base", "_ZTV4Base"),
    ],
)
def test_readable_names(symbol: str, name: str) -> None:
    assert readable_name(symbol) == name
