"""Kernels of one's own with the real TFLM: the example, every kind of scaffold, one in place of TFLM's own."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, Forge
from tflm_forge.scaffold import KINDS

pytestmark = [pytest.mark.tflm, pytest.mark.tools]

RUNTIME = ("--runtime", "tflm", "--board", "mps2-an386")


@pytest.mark.reference
def test_the_example_passes_every_layer(forge: Forge, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "custom_op", tmp_path / "example")
    done = forge("flash-and-test", *RUNTIME, "--soak", 50, "--json", cwd=folder, timeout_s=900)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["device"]["runtime"] == "tflm"
    assert all(comparison["max_error"] == 0 for comparison in report["comparisons"])
    (layers,) = (part for part in report["parts"] if part["name"] == "layers")
    assert "4 of 4 operators" in layers["checks"][0]["detail"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_scaffold_passes_its_own_test(forge: Forge, tmp_path: Path, kind: str) -> None:
    assert forge("op", "new", "MyOp", "--like", kind).returncode == 0
    done = forge("op", "test", "--on", "qemu", *RUNTIME, "--json", timeout_s=900)
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout)["cases"]
    assert len(cases) >= 2
    assert all(case["passed"] and case["place"] == "mps2-an386, tflm" for case in cases)


@pytest.mark.reference
def test_a_wrapper_around_tflms_kernel_stands_for_it(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "conv.h").write_text(
        '#include "tensorflow/lite/micro/micro_common.h"\nnamespace mine {\nTFLMRegistration Register_CONV();\n}\n'
    )
    (tmp_path / "conv.cc").write_text(
        '#include "conv.h"\n#include "tensorflow/lite/micro/kernels/conv.h"\n'
        "namespace mine {\nTFLMRegistration Register_CONV() { return tflite::Register_CONV_2D(); }\n}\n"
    )
    (tmp_path / "forge.toml").write_text(
        '[[op]]\nreplaces = "CONV_2D"\nsources = ["conv.cc"]\nregister = "mine::Register_CONV"\nuses = ["CONV_2D"]\n'
    )
    model = EXAMPLES / "digits" / "digits.tflite"
    done = forge(
        "flash-and-test", model, *RUNTIME, "--only", "self-check,numbers", "-o", "out", "--json", timeout_s=900
    )
    assert done.returncode == 0, done.stderr
    assert all(comparison["max_error"] == 0 for comparison in json.loads(done.stdout)["comparisons"])
    assert "AddConv2D(Own(mine::Register_CONV()))" in (tmp_path / "out" / "src" / "op_resolver.cc").read_text()
