"""What only TFLM runs, in QEMU against the interpreter: subgraphs, variables, int16x8, uint8, many inputs and outputs.

Needs an installed tree (`forge runtime install tflm`).
"""

import json
from pathlib import Path

import pytest

from tests.conftest import MODELS, Forge
from tests.tflm.feature_models import FEATURES, STATEFUL

pytestmark = [pytest.mark.tflm, pytest.mark.tools, pytest.mark.reference]

BOARD = "mps2-an386"
PARTS = "self-check,numbers,soak"


def _report(forge: Forge, model: Path, *options: str) -> dict:
    command = ("flash-and-test", model, "--board", BOARD, "--runtime", "tflm", "--only", PARTS, "--soak", "100")
    done = forge(*command, "--json", *options, timeout_s=900)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["device"]["runtime"] == "tflm"
    assert report["passed"]
    return report


def _assert_equal(report: dict, outputs: int) -> None:
    """Every output of every case is the interpreter's: integers to the bit."""
    assert report["comparisons"]
    assert len({comparison["output"] for comparison in report["comparisons"]}) == outputs
    for comparison in report["comparisons"]:
        assert comparison["passed"], comparison
        assert comparison["max_error"] == 0, comparison


# How many outputs each has.
OUTPUTS = {
    "while": 2,
    "if": 1,
    "call_once": 1,
    "svdf": 1,
    "many_ends": 4,
    "int16x8": 2,
    "uint8_edges": 2,
    "channel_scales": 1,
}


@pytest.mark.parametrize("kernel_set", ["reference", "cmsis_nn"])
@pytest.mark.parametrize("name", FEATURES)
def test_outputs_are_the_interpreters(forge: Forge, tmp_path: Path, name: str, kernel_set: str) -> None:
    model = tmp_path / f"{name}.tflite"
    model.write_bytes(FEATURES[name]())
    report = _report(forge, model, "--kernel-set", kernel_set)
    assert report["device"]["kernel_set"] == kernel_set
    _assert_equal(report, OUTPUTS[name])


@pytest.mark.parametrize("name", STATEFUL)
def test_state_goes_on_from_input_to_input_when_asked(forge: Forge, tmp_path: Path, name: str) -> None:
    model = tmp_path / f"{name}.tflite"
    model.write_bytes(FEATURES[name]())
    fresh = _report(forge, model)
    kept = _report(forge, model, "--stateful")
    _assert_equal(fresh, 1)
    _assert_equal(kept, 1)
    assert kept["soak"]["stateful"]


@pytest.mark.models
def test_signal_operators_of_a_real_front_end(forge: Forge) -> None:
    report = _report(forge, MODELS / "audio_preprocessor_int8.tflite", "--kernel-set", "reference")
    _assert_equal(report, 1)
