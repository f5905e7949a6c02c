"""Real models in the bundled runtime against TFLM's interpreter."""

from pathlib import Path

import numpy as np
import pytest

from tests import bundled_host
from tests.bundled.comparison import ARENA_BYTES, VARIANTS, check_model, interpreter

pytestmark = [pytest.mark.reference, pytest.mark.models]

INT8_MODELS = (
    "ad01_int8",
    "hello_world_int8",
    "kws_ref_model",
    "micro_speech_quantized",
    "person_detect",
    "pretrainedResnet_quant",
    "simple_add_model",
    "vww_96_int8",
)
FLOAT_MODELS = ("hello_world_float", "pretrainedResnet")
INPUT_COUNTS = {"simple_add_model": 2}


def _details(model: bytes, count: int) -> list[dict]:
    reference = interpreter(model)
    return [reference.get_input_details(index) for index in range(count)]


@pytest.mark.parametrize("kind", ["random", "least", "greatest"])
@pytest.mark.parametrize("name", INT8_MODELS)
def test_int8_outputs_are_bit_identical(shared_models: Path, name: str, kind: str) -> None:
    model = (shared_models / f"{name}.tflite").read_bytes()
    rng = np.random.default_rng(sum(name.encode()))
    inputs = []
    for details in _details(model, INPUT_COUNTS.get(name, 1)):
        low, high = {"random": (-128, 128), "least": (-128, -127), "greatest": (127, 128)}[kind]
        inputs.append(rng.integers(low, high, details["shape"], np.int8))
    check_model(model, inputs, flags=bundled_host.INT8_REGISTRATIONS)


@pytest.mark.parametrize("name", FLOAT_MODELS)
def test_float_outputs_agree(shared_models: Path, name: str) -> None:
    model = (shared_models / f"{name}.tflite").read_bytes()
    shape = _details(model, 1)[0]["shape"]
    check_model(model, [np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)])


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_second_inference_gives_the_same(shared_models: Path, variant: str) -> None:
    model = (shared_models / "kws_ref_model.tflite").read_bytes()
    value = np.random.default_rng(3).integers(-128, 128, (1, 49, 10, 1), np.int8)
    once, twice = (
        bundled_host.run(model, [value], ARENA_BYTES, variant=variant, invocations=count) for count in (1, 2)
    )
    np.testing.assert_array_equal(once.outputs[0], twice.outputs[0])
