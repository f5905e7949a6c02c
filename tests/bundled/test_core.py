"""The bundled runtime's core: what it computes with its kernels, its arena, its API."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests import bundled_host as host
from tests.modelmaker import ModelMaker

ROOMY_BYTES = 512 * 1024
STEP_BYTES = 16

RUNNABLE = (
    "ad01_int8", "hello_world_float", "hello_world_int8", "kws_ref_model", "micro_speech_quantized", "person_detect",
    "pretrainedResnet", "pretrainedResnet_quant", "simple_add_model", "vww_96_int8",
)  # fmt: skip
FLOAT_MODELS = {"hello_world_float", "pretrainedResnet"}
MISSING_OPS = {
    "audio_preprocessor_int8": "Didn't find custom op 'SignalWindow'",
    "keyword_scrambled_8bit": "Didn't find op for builtin opcode 'SVDF'",
    "trained_lstm_int8": "Didn't find op for builtin opcode 'UNIDIRECTIONAL_SEQUENCE_LSTM'",
}


def random_inputs(details: Sequence[dict[str, object]], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for detail in details:
        shape, dtype = tuple(detail["shape"]), detail["dtype"]  # type: ignore[arg-type]
        if dtype == np.float32:
            arrays.append(rng.normal(size=shape).astype(np.float32))
        else:
            arrays.append(rng.integers(-128, 128, shape).astype(np.int8))
    return arrays


def chain_model(lengths: Sequence[int], kind: str = "TestNegate") -> bytes:
    """Make a model of one op after the other; tensor i has lengths[i] int8 elements."""
    maker = ModelMaker()
    tensors = [maker.tensor(f"t{i}", [1, n], "INT8", scale=0.5) for i, n in enumerate(lengths)]
    for before, after in itertools.pairwise(tensors):
        if kind == "RESHAPE":
            maker.operator("RESHAPE", [before], [after])
        else:
            maker.operator("CUSTOM", [before], [after], custom_name=kind)
    maker.subgraph(inputs=tensors[:1], outputs=tensors[-1:])
    return maker.finish()


@pytest.fixture(scope="module")
def negate() -> bytes:
    maker = ModelMaker()
    x = maker.tensor("x", [2, 5], "INT8", scale=0.5, zero_point=3)
    y = maker.tensor("y", [2, 5], "INT8", scale=0.5, zero_point=-1)
    maker.operator("CUSTOM", [x], [y], custom_name="TestNegate", custom_options=bytes([7]))
    maker.subgraph(inputs=[x], outputs=[y])
    return maker.finish()


@pytest.mark.models
@pytest.mark.reference
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        (name, flags)
        for name in RUNNABLE
        for flags in (0, host.INT8_REGISTRATIONS, host.PRESERVE)
        if not (flags == host.INT8_REGISTRATIONS and name in FLOAT_MODELS)
    ],
)
def test_real_model_gives_the_reference_interpreters_numbers(shared_models: Path, name: str, flags: int) -> None:
    from tflite_micro import runtime

    model = (shared_models / f"{name}.tflite").read_bytes()
    reference = runtime.Interpreter.from_bytes(model, arena_size=1 << 20)
    count = 2 if name == "simple_add_model" else 1
    inputs = random_inputs([reference.get_input_details(i) for i in range(count)], seed=len(name))
    for i, array in enumerate(inputs):
        reference.set_input(array, i)
    reference.invoke()
    result = host.run(model, inputs, 4 << 20, flags=flags, invocations=2, variant="plain")
    assert result.stage == "done", result.log
    expected = reference.get_output(0)
    if expected.dtype == np.float32:
        np.testing.assert_allclose(result.outputs[0], expected, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(result.outputs[0], expected)
    assert result.model_version == 3


@pytest.mark.models
@pytest.mark.parametrize("name", RUNNABLE)
def test_arena_use_is_the_smallest_arena(shared_models: Path, name: str) -> None:
    model = (shared_models / f"{name}.tflite").read_bytes()
    assert_exact_arena(model, step_bytes=None)


@pytest.mark.parametrize("flags", [0, host.PRESERVE, host.SHARED_ALLOCATOR, host.TWO_INTERPRETERS, host.MISALIGNED])
def test_every_arena_below_the_used_one_is_an_error(negate: bytes, flags: int) -> None:
    assert_exact_arena(negate, step_bytes=1, flags=flags)


def assert_exact_arena(model: bytes, *, step_bytes: int | None, flags: int = 0) -> None:
    used = host.run(model, [], ROOMY_BYTES, flags=flags).arena_used
    lost = 12 if flags & host.MISALIGNED else 0
    assert (used - lost) % STEP_BYTES == 0
    smaller = range(0, used, step_bytes or max(STEP_BYTES, used // 37))
    for arena_bytes in sorted({*smaller, used - STEP_BYTES, used - 1}):
        result = host.run(model, [], arena_bytes, flags=flags)
        assert result.stage == "allocate", f"{arena_bytes} of {used} bytes: {result.stage}"
        assert "missing: " in result.log
    exact = host.run(model, [], used, flags=flags)
    assert exact.stage == "input", exact.log  # the model was allocated; no inputs were given
    assert exact.arena_used == used


def test_an_arena_of_zero_bytes_is_an_error(negate: bytes) -> None:
    result = host.run(negate, [], 0)
    assert (result.stage, result.arena_used) == ("allocate", 0)
    assert "Failed to allocate tail memory" in result.log


def test_tensors_that_are_never_needed_together_share_memory() -> None:
    data_bytes = 4096
    few, many = (host.run(chain_model([data_bytes] * n, "RESHAPE"), [], ROOMY_BYTES) for n in (3, 13))
    assert 2 * data_bytes <= few.arena_used < 3 * data_bytes
    assert many.arena_used - few.arena_used < data_bytes / 4


def test_preserved_tensors_do_not_share_memory() -> None:
    data_bytes, tensors = 4096, 6
    model = chain_model([data_bytes] * tensors, "RESHAPE")
    assert host.run(model, [], ROOMY_BYTES, flags=host.PRESERVE).arena_used >= tensors * data_bytes


def test_scratch_buffers_of_different_ops_share_memory() -> None:
    elements = 1000
    scratch_bytes = 4 * elements
    few, many = (host.run(chain_model([elements] * n), [], ROOMY_BYTES) for n in (3, 9))
    assert few.arena_used >= scratch_bytes + 2 * elements
    assert many.arena_used - few.arena_used < scratch_bytes / 4


@pytest.mark.parametrize("flags", [0, host.PRESERVE, host.SHARED_ALLOCATOR, host.TWO_INTERPRETERS, host.PROFILE])
def test_custom_op_in_tflms_form_runs(negate: bytes, flags: int) -> None:
    x = np.arange(-5, 5, dtype=np.int8).reshape(2, 5)
    result = host.run(negate, [x], ROOMY_BYTES, flags=flags, invocations=3)
    np.testing.assert_array_equal(result.outputs[0], 3 - 1 + 7 - x)


def test_profiler_sees_each_op_of_each_run(negate: bytes) -> None:
    x = np.zeros((2, 5), np.int8)
    log = host.run(negate, [x], ROOMY_BYTES, flags=host.PROFILE, invocations=2).log
    assert log.splitlines() == ["begin TestNegate", "end 1", "begin TestNegate", "end 2"]


def accumulator() -> bytes:
    maker = ModelMaker()
    x = maker.tensor("x", [3], "INT32")
    state = maker.tensor("state", [3], "INT32", is_variable=True)
    y = maker.tensor("y", [3], "INT32")
    maker.operator("CUSTOM", [x, state], [y], custom_name="TestAccumulate")
    maker.subgraph(inputs=[x], outputs=[y])
    return maker.finish()


def test_variable_tensor_keeps_its_value_until_it_is_reset() -> None:
    x = np.array([1, -2, 100], np.int32)
    kept = host.run(accumulator(), [x], ROOMY_BYTES, invocations=4)
    np.testing.assert_array_equal(kept.outputs[0], 4 * x)
    reset = host.run(accumulator(), [x], ROOMY_BYTES, invocations=4, flags=host.RESET)
    np.testing.assert_array_equal(reset.outputs[0], x)
    assert kept.log.splitlines() == ["TestAccumulate reset", "TestAccumulate freed"]
    assert reset.log.count("TestAccumulate reset") == 5


def test_reshape_fills_the_open_dimension() -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [2, 3, 4], "INT8", scale=0.5)
    y = maker.tensor("y", [4, -1], "INT8", scale=0.5)
    maker.operator("RESHAPE", [x], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    x_data = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    result = host.run(maker.finish(), [x_data], ROOMY_BYTES)
    np.testing.assert_array_equal(result.outputs[0], x_data.reshape(4, 6))


@pytest.mark.models
@pytest.mark.parametrize("name", MISSING_OPS)
def test_missing_op_is_named(shared_models: Path, name: str) -> None:
    result = host.run((shared_models / f"{name}.tflite").read_bytes(), [], ROOMY_BYTES)
    assert result.stage == "allocate"
    assert MISSING_OPS[name] in result.log
    assert "Failed to get registration from op code" in result.log


def test_op_code_outside_the_schema_is_an_error() -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1], "INT8")
    maker.operator(300, [x], [maker.tensor("y", [1], "INT8")])
    maker.subgraph(inputs=[x], outputs=[1])
    result = host.run(maker.finish(), [], ROOMY_BYTES)
    assert result.stage == "allocate"
    assert "Op builtin_code out of range: 300." in result.log


def bad_models() -> Iterator[tuple[str, bytes]]:
    """Yield what the log must say, and a model that is read but can not be run."""

    def one_op(inputs: Sequence[int], outputs: Sequence[int], **tensors: object) -> bytes:
        maker = ModelMaker()
        maker.tensor("x", [4], "INT8", scale=0.5)
        maker.tensor("y", [4], "INT8", scale=0.5)
        maker.tensor("c", [4], "INT8", scale=0.5, data=np.ones(4, np.int8))
        maker.tensor("odd", **tensors)  # type: ignore[arg-type]
        maker.operator("CUSTOM", inputs, outputs, custom_name="TestNegate")
        maker.subgraph(inputs=[0], outputs=[1])
        return maker.finish()

    usual = {"shape": [4], "type_": "INT8", "scale": 0.5}
    yield "there is no tensor 9", one_op([9], [1], **usual)
    yield "there is no tensor -1", one_op([0], [-1], **usual)
    yield "there is no tensor -2", one_op([-2], [1], **usual)
    yield "Tensor 1 is read before", one_op([0], [3], **usual)
    yield "Tensor 3 is read before", one_op([3], [1], **usual)
    yield "Tensor 2 is a constant", one_op([0], [2], **usual)
    yield "damaged", one_op([0], [1], shape=[5], type_="INT8", scale=0.5, data=bytes(4))
    yield "damaged", one_op([0], [1], shape=[1 << 20, 1 << 20], type_="INT8", scale=0.5, data=bytes(4))
    yield "damaged", one_op([0], [3], shape=[1 << 20, 1 << 20], type_="INT8", scale=0.5)
    yield "damaged", one_op([0], [3], shape=[-4], type_="INT8", scale=0.5)
    yield "type", one_op([0], [3], shape=[4], type_="STRING", scale=0.5)
    two = ModelMaker()
    for _ in range(2):
        x = two.tensor("x", [4], "INT8")
        two.subgraph(inputs=[x], outputs=[x])
    yield "The model has 2 subgraphs", two.finish()
    nothing = ModelMaker()
    yield "The model has 0 subgraphs", nothing.finish()


@pytest.mark.parametrize(("said", "model"), list(bad_models()))
def test_model_that_can_not_run_is_an_error(said: str, model: bytes) -> None:
    result = host.run(model, [], ROOMY_BYTES)
    assert result.stage in {"construct", "allocate"}
    assert said in result.log


def test_resolver_refuses_what_does_not_fit_and_what_it_has() -> None:
    error, ok, found, absent = 1, 0, 1, 0
    answers, log = host.use_resolver()
    assert answers == (
        ok, error, ok, error, error,  # RESHAPE, RESHAPE again, TestNegate, RELU (full), TestOther (full)
        found, absent, absent, found, absent,  # RESHAPE, RELU, CUSTOM, TestNegate, testnegate
        2, error,  # length; TestNegate again in one with room
    )  # fmt: skip
    assert log.splitlines() == [
        "Calling AddBuiltin with the same op more than ",
        "once is not supported (Op: #22).",
        "Couldn't register builtin op #19, resolver size ",
        "is too small (2).",
        "Couldn't register custom op 'TestOther', resolver size is too small (2)",
        "Calling AddCustom for the same op more than once ",
        "is not supported (Op: TestNegate).",
    ]
