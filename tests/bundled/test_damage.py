"""Damaged models give errors in the bundled runtime, never a fault: it runs under the sanitizers here.

`ModelBytes()` tells the runtime where a model ends; the memory behind that is poisoned.
"""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import bundled_host as host
from tests.modelmaker import ModelMaker

ARENA_BYTES = 96 * 1024
REAL = ("hello_world_int8", "kws_ref_model", "pretrainedResnet_quant", "micro_speech_quantized")


def every_op() -> bytes:
    """Make a small model that uses each op of the runtime, int8 and float32."""
    maker = ModelMaker()
    rng = np.random.default_rng(5)

    def tensor(name: str, shape: list[int], type_: str = "INT8", scale: float = 0.1, zero_point: int = 0) -> int:
        quantization = {} if type_ == "FLOAT32" else {"scale": scale, "zero_point": zero_point}
        return maker.tensor(name, shape, type_, **quantization)

    def weights(name: str, shape: list[int], channels: int) -> int:
        data = rng.integers(-127, 128, shape).astype(np.int8)
        axis = shape.index(channels)
        return maker.tensor(name, shape, "INT8", data=data, scale=[0.02] * channels, axis=axis)

    bias = maker.tensor("bias", [3], "INT32", data=np.arange(3, dtype=np.int32), scale=[0.002] * 3)
    x = tensor("x", [1, 6, 6, 2], "FLOAT32")
    q = tensor("quantized", [1, 6, 6, 2])
    maker.operator("QUANTIZE", [x], [q])
    conv = tensor("conv", [1, 3, 3, 3])
    window = {"padding": "SAME", "stride_w": 2, "stride_h": 2}
    options = "Conv2DOptions", {**window, "fused_activation_function": "RELU"}
    maker.operator("CONV_2D", [q, weights("w1", [3, 3, 3, 2], 3), bias], [conv], options=options, version=3)
    depthwise = tensor("depthwise", [1, 3, 3, 3])
    options = "DepthwiseConv2DOptions", {"padding": "SAME", "stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
    filter_2 = weights("w2", [1, 2, 2, 3], 3)
    maker.operator("DEPTHWISE_CONV_2D", [conv, filter_2, bias], [depthwise], options=options, version=3)
    added = tensor("added", [1, 3, 3, 3], scale=0.2, zero_point=5)
    maker.operator("ADD", [conv, depthwise], [added], options=("AddOptions", {}), version=2)
    relu, relu6 = tensor("relu", [1, 3, 3, 3], scale=0.2), tensor("relu6", [1, 3, 3, 3], scale=0.2)
    maker.operator("RELU", [added], [relu], version=2)
    maker.operator("RELU6", [relu], [relu6], version=2)
    options = "Pool2DOptions", {**window, "filter_width": 2, "filter_height": 2}
    means, maxima = (tensor(name, [1, 2, 2, 3], scale=0.2) for name in ("means", "maxima"))
    maker.operator("AVERAGE_POOL_2D", [relu6], [means], options=options, version=2)
    maker.operator("MAX_POOL_2D", [relu6], [maxima], options=options, version=2)
    sums, flat = tensor("sums", [1, 2, 2, 3], scale=0.2), tensor("flat", [1, 12], scale=0.2)
    maker.operator("ADD", [means, maxima], [sums], options=("AddOptions", {}), version=2)
    maker.operator("RESHAPE", [sums], [flat])
    dense = tensor("dense", [1, 3])
    options = "FullyConnectedOptions", {}
    maker.operator("FULLY_CONNECTED", [flat, weights("w3", [3, 12], 3), bias], [dense], options=options, version=4)
    logistic, softmax = (tensor(name, [1, 3], scale=1 / 256, zero_point=-128) for name in ("logistic", "softmax"))
    maker.operator("LOGISTIC", [dense], [logistic], version=2)
    maker.operator("SOFTMAX", [logistic], [softmax], options=("SoftmaxOptions", {"beta": 1.0}), version=2)
    y = tensor("y", [1, 3], "FLOAT32")
    maker.operator("DEQUANTIZE", [softmax], [y], version=2)
    z = tensor("z", [1, 3], "FLOAT32")
    maker.operator("SOFTMAX", [y], [z], options=("SoftmaxOptions", {"beta": 1.0}))
    maker.subgraph(inputs=[x], outputs=[z])
    return maker.finish()


EVERY_OP = every_op()
INPUT = np.random.default_rng(6).normal(size=(1, 6, 6, 2)).astype(np.float32)


def test_undamaged_model_runs() -> None:
    result = host.run(EVERY_OP, [INPUT], ARENA_BYTES)
    assert result.ok, result.log
    assert abs(float(result.outputs[0].sum()) - 1) < 1e-5


def survives(model: bytes, inputs: list[np.ndarray]) -> host.HostResult:
    """Run it; HostCrash if the runtime faults or hangs. An error has a message."""
    result = host.run(model, inputs, ARENA_BYTES)
    assert result.ok or result.stage == "input" or result.log
    return result


@pytest.mark.parametrize("start", range(4))
def test_truncated_model_is_an_error(start: int) -> None:
    """Or gives the right numbers, when only bytes that nothing needs are missing at the end."""
    expected = host.run(EVERY_OP, [INPUT], ARENA_BYTES).outputs[0]
    for length in range(start, len(EVERY_OP), 4):
        result = survives(EVERY_OP[:length], [INPUT])
        if result.ok:
            assert length > len(EVERY_OP) - 64
            np.testing.assert_array_equal(result.outputs[0], expected)


@pytest.mark.models
@pytest.mark.parametrize("name", REAL)
def test_truncated_real_model_is_an_error(shared_models: Path, name: str) -> None:
    model = (shared_models / f"{name}.tflite").read_bytes()
    for length in range(0, len(model), 64):
        assert survives(model[:length], []).stage in {"construct", "allocate"}


def structure() -> list[int]:
    """Offsets of the words of EVERY_OP that are not constant data."""
    return list(range(0, len(EVERY_OP) - 4, 4))


@pytest.mark.parametrize("value", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_any_word_replaced(value: int) -> None:
    for at in structure():
        survives(EVERY_OP[:at] + struct.pack("<I", value) + EVERY_OP[at + 4 :], [INPUT])


@pytest.mark.parametrize("mask", [0x01, 0x02, 0x04, 0x80])
def test_any_byte_flipped(mask: int) -> None:
    for at in range(len(EVERY_OP)):
        survives(EVERY_OP[:at] + bytes([EVERY_OP[at] ^ mask]) + EVERY_OP[at + 1 :], [INPUT])


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(EVERY_OP) // 4 - 1), st.integers(-(2**31), 2**31 - 1) | st.integers(-8, 600)),
        min_size=1,
        max_size=5,
    )
)
def test_several_words_replaced(changes: list[tuple[int, int]]) -> None:
    data = bytearray(EVERY_OP)
    for word, value in changes:
        struct.pack_into("<i", data, word * 4, value)
    survives(bytes(data), [INPUT])


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=300))
def test_noise_is_an_error(data: bytes) -> None:
    assert not survives(data, [INPUT]).ok


@pytest.mark.parametrize("length", [0, 1, 4, 8, 12, 64, 4096])
@pytest.mark.parametrize("byte", [0, 0x04, 0xFF])
def test_uniform_bytes_are_an_error(length: int, byte: int) -> None:
    result = survives(bytes([byte]) * length, [INPUT])
    assert result.stage == "construct"
    assert "damaged" in result.log or "subgraphs" in result.log
