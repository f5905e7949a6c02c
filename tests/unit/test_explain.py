"""`forge explain`: messages as TFLM, compilers, QEMU and the converter really print them, and what they mean."""

import json
from pathlib import Path

import pytest

from tests.conftest import Forge
from tests.modelmaker import ModelMaker
from tflm_forge.explain import explain_text, load_patterns
from tflm_forge.model import Model, read_model

# What TFLM 90b983c2b printed in debug builds for causes that were made on purpose, on Cortex-M4F in QEMU.
TFLM = {
    "Didn't find op for builtin opcode 'FULLY_CONNECTED'": "op-not-registered",
    "Failed to get registration from op code FULLY_CONNECTED": "op-not-registered",
    "Op builtin_code out of range: 300.": "op-code-unknown",
    "Failed to get registration from op code CUSTOM": "custom-op-not-registered",
    "Failed to allocate tail memory. Requested: 36, available 16, missing: 20": "arena-too-small",
    "Failed to allocate temp memory. Requested: 44, available 16, missing: 28": "arena-too-small",
    "Failed to resize buffer. Requested: 144, available 4, missing: 140": "arena-too-small",
    "Failed starting model allocation.": "arena-too-small",
    "Unable to allocate TfLiteAffineQuantization.": "arena-too-small",
    "Failed to populate a temp TfLiteTensor struct from flatbuffer data!": "arena-too-small",
    "tensorflow/lite/micro/kernels/fully_connected.cc:48 input != nullptr was not true.": "arena-too-small",
    "Failed to allocate temp. memory for tensor 0, subgraph 0": "arena-too-small",
    "Unable to allocate quantization->zero_point.": "arena-too-small",
    "Failed to initialize output tensor 0": "arena-too-small",
    "Failed to allocate memory for persistent TfLiteTensor": "arena-too-small",
    "Too many buffers (max is 2)": "arena-too-small",
    "Node FULLY_CONNECTED (number 0) failed to prepare with status 1": "node-failed",
    "Couldn't register builtin op #4, resolver size": "resolver-too-small",
    "is too small (1).": "resolver-too-small",
    "Calling AddBuiltin with the same op more than": "op-added-twice",
    "once is not supported (Op: #9).": "op-added-twice",
    "Failed to allocate temp memory. Requested: 4294960256, available 12, missing: 4294960244": "arena-size-underflow",
    "Hybrid models are not supported on TFLite Micro.": "hybrid-model",
    "VAR_HANDLE requires resource variables. Please create ResourceVariables and pass it to the interpreter.": (
        "no-resource-variables"
    ),
    "Type INT32 (2) not supported.": "type-not-supported",
    "Non-constant >shape< tensor is not supported": "not-constant",
}  # fmt: skip

# As public threads and the tools' own sources have them.
OTHERS = {
    "arm-none-eabi/bin/ld: region `FLASH' overflowed by 9656 bytes": "region-overflow",
    "exit.c:(.text.exit+0x28): undefined reference to `_exit'": "missing-syscalls",
    "sbrkr.c:(.text._sbrk_r+0xc): undefined reference to `_sbrk'": "missing-syscalls",
    "micro_log.cc:(.text+0x10): undefined reference to `DebugLog'": "missing-debuglog",
    "x.cc:(.text+0x4): undefined reference to `tflite::Register_CONV_2D_INT8()'": "missing-kernel-source",
    "x.cc:(.text+0x4): undefined reference to `my_function'": "undefined-reference",
    "forge.cc:1: fatal error: flatbuffers/flatbuffers.h: No such file or directory": "header-missing",
    "qemu-system-arm: unsupported machine type": "qemu-machine",
    "qemu: fatal: Lockup: can't escalate 3 to HardFault (current priority -1)": "processor-fault",
    "Error: open failed": "no-probe",
    "libusb_open() failed with LIBUSB_ERROR_ACCESS": "probe-permission",
    "Some ops are not supported by the native TFLite runtime, you can enable TF kernels fallback using TF Select.": (
        "needs-select-ops"
    ),
    "RuntimeError: Encountered unresolved custom op: SignalWindow.": "unresolved-custom-op",
    "Didn't find op for builtin opcode 'CONV_2D' version '8'. An older version of this builtin might be supported.": (
        "op-not-registered"
    ),
    "ValueError: Model provided has model identifier 'vers', should be 'TFL3'": "not-a-model",
    "registration: status 0x20": "status-RegisterFailed",
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), [*TFLM.items(), *OTHERS.items()])
def test_line_is_known(line: str, expected: str) -> None:
    assert [cause.pattern.id for cause in explain_text(line).causes] == [expected]


def test_every_pattern_says_what_to_do_and_where_it_is_from() -> None:
    ids = [pattern.id for pattern in load_patterns()]
    assert len(ids) == len(set(ids))
    for pattern in load_patterns():
        assert pattern.cause.endswith((".", ")")), pattern.id
        assert pattern.source, pattern.id
        assert pattern.remedy or pattern.level == "note", pattern.id


def test_unknown_text_is_said_to_be_unknown() -> None:
    explanation = explain_text("boot ok\nthe flux capacitor failed: error 88\n")
    assert not explanation.is_known
    assert explanation.unknown == ((2, "the flux capacitor failed: error 88"),)


@pytest.mark.parametrize("text", ["", "\0" * 5000, "\x1b[31m", "a" * 10**6, "\ud800", "%s %n " * 1000])
def test_any_text_is_read(text: str) -> None:
    assert not explain_text(text).is_known


def test_colours_of_a_terminal_do_not_hide_a_message() -> None:
    assert explain_text("\x1b[31mHybrid models are \x1b[0mnot supported").is_known


@pytest.fixture(scope="module")
def model() -> Model:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4], "INT8", scale=0.5)
    y = maker.tensor("middle", [1, 4], "INT8", scale=0.5)
    z = maker.tensor("last", [1, 4], "INT8", scale=0.5)
    maker.operator("RELU", [x], [y])
    maker.operator(32, [y], [z], custom_name="MyOp")
    maker.subgraph(inputs=[x], outputs=[z])
    return read_model(maker.finish(), name="m.tflite")


@pytest.mark.parametrize(
    ("text", "layer"),
    [
        ("Didn't find op for builtin opcode 'RELU'", "RELU, first in layer 0 'middle'"),
        ("Failed to get registration from op code CUSTOM", "MyOp, first in layer 1 'last'"),
        ("Encountered unresolved custom op: MyOp.", "MyOp, first in layer 1 'last'"),
        ("Hybrid models are not supported\nNode RELU (number 0) failed to prepare", "layer 0 RELU 'middle'"),
        ("Failed to allocate temp. memory for tensor 2, subgraph 0", "tensor 2 'last'"),
    ],
)  # fmt: skip
def test_with_the_model_the_layer_is_named(model: Model, text: str, layer: str) -> None:
    assert explain_text(text, model).causes[0].layers == (layer,)


@pytest.mark.parametrize(
    "text",
    [
        "Node CONV_2D (number 99999999999) failed to invoke with status 1",
        "Failed to allocate temp. memory for tensor 9, subgraph 9",
    ],
)
def test_numbers_the_model_does_not_have_are_passed_over(model: Model, text: str) -> None:
    assert explain_text(text, model).causes[0].layers == ()


def test_command_reads_files_folders_and_pipes(forge: Forge, tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text("ld: region `RAM' overflowed by 64 bytes\n")
    for argument in (log, tmp_path):
        done = forge("explain", argument, "--json")
        assert done.returncode == 0, done.stderr
        (cause,) = json.loads(done.stdout)["causes"]
        assert cause["id"] == "region-overflow"
        assert {"name": "region", "value": "RAM"} in cause["facts"]
        assert {"name": "missing", "value": "64"} in cause["facts"]


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda folder: folder / "absent.log", 2, "can not read"),
        (lambda folder: folder, 2, "holds no log"),
    ],
)
def test_what_can_not_be_read(forge: Forge, tmp_path: Path, make: object, code: int, words: str) -> None:
    assert callable(make)
    done = forge("explain", make(tmp_path))
    assert done.returncode == code
    assert words in done.stderr


def test_a_log_of_which_nothing_is_known(forge: Forge, tmp_path: Path) -> None:
    log = tmp_path / "device.log"
    log.write_bytes(b"\xff\xfe hello\n")
    done = forge("explain", log)
    assert done.returncode == 7
    assert "forge knows no cause in these 1 lines" in done.stderr
