"""Each kernel against TFLM's, over generated single-op models."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests import bundled_host
from tests.bundled import op_models
from tests.bundled.comparison import (
    ARENA_BYTES,
    VARIANTS,
    check_model,
    random_input,
    random_int8,
    reference_outputs,
)
from tests.bundled.op_models import ACTIVATIONS, PADDINGS, Quant, Weights, Window

pytestmark = pytest.mark.reference

EXAMPLES = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)

seeds = st.integers(0, 2**32 - 1)
zero_points = st.one_of(st.sampled_from([-128, 127, 0]), st.integers(-128, 127))
scales = st.floats(-10, 2).map(lambda exponent: float(np.float32(2.0**exponent)))
quants = st.builds(Quant, scale=scales, zero_point=zero_points)
maybe_quants = st.one_of(quants, quants, quants, st.none())
weights = st.builds(
    Weights,
    per_channel=st.booleans(),
    has_bias=st.booleans(),
    great_bias=st.sampled_from([False, False, False, True]),
    gain=st.floats(-2, 4),
)
small = st.integers(1, 5)
windows = st.builds(
    Window,
    height=small,
    width=small,
    stride_h=st.integers(1, 3),
    stride_w=st.integers(1, 3),
    dilation_h=st.sampled_from([1, 1, 2, 3]),
    dilation_w=st.sampled_from([1, 1, 2, 3]),
    padding=st.sampled_from(PADDINGS),
)
pool_windows = windows.map(
    lambda w: Window(height=w.height, width=w.width, stride_h=w.stride_h, stride_w=w.stride_w, padding=w.padding)
)
images = st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 9))


def _assume_fits(window: Window, image: tuple[int, ...]) -> None:
    assume(min(window.output_size(image[1], image[2])) > 0)


@EXAMPLES
@given(
    seed=seeds,
    image=images,
    depths=st.tuples(st.integers(1, 13), st.integers(1, 11)),
    groups=st.sampled_from([1, 1, 1, 2, 3]),
    window=windows,
    weights=weights,
    activation=st.sampled_from(ACTIVATIONS),
    quant=maybe_quants,
    output_zero_point=zero_points,
)
def test_conv(seed, image, depths, groups, window, weights, activation, quant, output_zero_point):
    _assume_fits(window, image)
    rng = np.random.default_rng(seed)
    shape = (*image, depths[0] * groups)
    model = op_models.conv_model(
        rng,
        shape,
        depths[1] * groups,
        window,
        weights=weights,
        activation=activation,
        groups=groups,
        input_quant=quant,
        output_zero_point=output_zero_point,
    )
    check_model(model, [random_input(rng, shape, is_float=quant is None)])


@EXAMPLES
@given(
    seed=seeds,
    image=images,
    depth=st.integers(1, 40),
    out_depth=st.integers(1, 17),
    stride=st.integers(1, 2),
    weights=weights,
    quant=quants,
)
def test_conv_of_single_pixels(seed, image, depth, out_depth, stride, weights, quant):
    rng = np.random.default_rng(seed)
    shape = (*image, depth)
    window = Window(height=1, width=1, stride_h=stride, stride_w=stride)
    model = op_models.conv_model(rng, shape, out_depth, window, weights=weights, input_quant=quant)
    check_model(model, [random_int8(rng, shape)], flags=bundled_host.INT8_REGISTRATIONS)


@EXAMPLES
@given(
    seed=seeds,
    image=images,
    depth=st.integers(1, 11),
    multiplier=st.sampled_from([1, 1, 1, 2, 3, 4, 8]),
    window=windows,
    weights=weights,
    activation=st.sampled_from(ACTIVATIONS),
    quant=maybe_quants,
    output_zero_point=zero_points,
)
def test_depthwise_conv(seed, image, depth, multiplier, window, weights, activation, quant, output_zero_point):
    _assume_fits(window, image)
    rng = np.random.default_rng(seed)
    shape = (*image, depth)
    model = op_models.depthwise_model(
        rng,
        shape,
        multiplier,
        window,
        weights=weights,
        activation=activation,
        input_quant=quant,
        output_zero_point=output_zero_point,
    )
    check_model(model, [random_input(rng, shape, is_float=quant is None)])


@EXAMPLES
@given(
    seed=seeds,
    batches=st.integers(1, 4),
    inputs=st.integers(1, 70),
    outputs=st.integers(1, 19),
    weights=weights,
    activation=st.sampled_from(ACTIVATIONS),
    quant=maybe_quants,
    output_zero_point=zero_points,
)
def test_fully_connected(seed, batches, inputs, outputs, weights, activation, quant, output_zero_point):
    rng = np.random.default_rng(seed)
    model = op_models.fully_connected_model(
        rng,
        batches,
        inputs,
        outputs,
        weights=weights,
        activation=activation,
        input_quant=quant,
        output_zero_point=output_zero_point,
    )
    check_model(model, [random_input(rng, (batches, inputs), is_float=quant is None)])


@EXAMPLES
@given(
    seed=seeds,
    op=st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]),
    image=images,
    depth=st.integers(1, 9),
    window=pool_windows,
    activation=st.sampled_from(ACTIVATIONS),
    quant=maybe_quants,
)
def test_pooling(seed, op, image, depth, window, activation, quant):
    _assume_fits(window, image)
    rng = np.random.default_rng(seed)
    shape = (*image, depth)
    model = op_models.pool_model(op, shape, window, activation=activation, quant=quant)
    check_model(model, [random_input(rng, shape, is_float=quant is None)])


@EXAMPLES
@given(
    seed=seeds,
    shape=st.lists(st.integers(1, 5), min_size=0, max_size=3),
    length=st.integers(1, 300),
    beta=st.sampled_from([1.0, 1.0, 0.5, 2.0, 10.0]),
    quant=maybe_quants,
    is_narrow=st.booleans(),
)
def test_softmax(seed, shape, length, beta, quant, is_narrow):
    rng = np.random.default_rng(seed)
    full = [*shape, length]
    value = random_input(rng, full, is_float=quant is None)
    if is_narrow:
        value = (value / 32).astype(value.dtype)
    check_model(op_models.softmax_model(full, beta, quant), [value])


def test_softmax_of_every_difference():
    for exponent in np.linspace(-9, 3, 49):
        model = op_models.softmax_model([256, 2], 1.0, Quant(scale=float(2**exponent), zero_point=0))
        value = np.stack([np.arange(-128, 128), np.full(256, 127)], axis=1).astype(np.int8)
        check_model(model, [value], variants=["asan"])


@pytest.mark.parametrize("length", [600, 5000])
def test_softmax_of_more_classes_than_int8_can_tell_apart_is_all_zero(length):
    # TFLM's interpreter aborts here.
    model = op_models.softmax_model([1, length], 1.0, Quant(scale=0.1, zero_point=0))
    result = bundled_host.run(model, [np.zeros((1, length), np.int8)], ARENA_BYTES)
    assert result.ok
    assert set(result.outputs[0].flatten().tolist()) == {-128}


@EXAMPLES
@given(
    seed=seeds,
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    data=st.data(),
    activation=st.sampled_from(ACTIVATIONS),
    is_float=st.sampled_from([False, False, False, True]),
)
def test_add(seed, shape, data, activation, is_float):
    shapes = [list(shape), list(shape)]
    for _ in range(data.draw(st.integers(0, 2), label="broadcasts")):
        side = data.draw(st.integers(0, 1))
        shapes[side][data.draw(st.integers(0, len(shape) - 1))] = 1
    dropped = data.draw(st.integers(0, len(shape) - 1), label="leading dimensions left out")
    if data.draw(st.booleans()):
        shapes[0] = shapes[0][dropped:]
    quants_ = None
    if not is_float:
        first, second, output = (data.draw(quants) for _ in range(3))
        # The output scale must be able to hold the inputs: TFLM aborts below this.
        floor = max(first.scale, second.scale) * 2.0**-18
        quants_ = (first, second, Quant(scale=max(output.scale, floor), zero_point=output.zero_point))
    rng = np.random.default_rng(seed)
    model = op_models.add_model((shapes[0], shapes[1]), quants_, activation)
    check_model(model, [random_input(rng, each, is_float=is_float) for each in shapes])


@settings(EXAMPLES, max_examples=20)
@given(first=quants, second=quants, zero_point=zero_points, gain=st.floats(-1, 3))
def test_add_of_every_pair(first, second, zero_point, gain):
    scale = (first.scale + second.scale) * 2.0**-gain
    model = op_models.add_model(([256, 1], [1, 256]), (first, second, Quant(scale=scale, zero_point=zero_point)))
    every = np.arange(-128, 128, dtype=np.int8)
    check_model(model, [every.reshape(256, 1), every.reshape(1, 256)], variants=["asan"])


@EXAMPLES
@given(
    seed=seeds,
    op=st.sampled_from(["RELU", "RELU6"]),
    is_float=st.booleans(),
    input_quant=quants,
    output_quant=quants,
)
def test_relu(seed, op, is_float, input_quant, output_quant):
    # The bounds that the interpreter checks for itself.
    assume(op != "RELU6" or 6 / input_quant.scale < 2**30)
    assume(op != "RELU" or input_quant.scale / output_quant.scale < 2**8)
    shape = [1, 16, 16]
    if is_float:
        model = op_models.unary_model(op, shape, ("FLOAT32", "FLOAT32"), (None, None))
    else:
        model = op_models.unary_model(op, shape, ("INT8", "INT8"), (input_quant, output_quant))
    value = random_input(np.random.default_rng(seed), shape, is_float=is_float)
    check_model(model, [value], variants=["asan"])


@EXAMPLES
@given(quant=quants)
def test_logistic_of_every_int8(quant):
    output = Quant(scale=1 / 256, zero_point=-128)
    model = op_models.unary_model("LOGISTIC", [1, 256], ("INT8", "INT8"), (quant, output))
    check_model(model, [np.arange(-128, 128, dtype=np.int8).reshape(1, 256)], variants=["asan"])


def test_logistic_float():
    model = op_models.unary_model("LOGISTIC", [1, 401], ("FLOAT32", "FLOAT32"), (None, None))
    check_model(model, [np.linspace(-40, 40, 401, dtype=np.float32).reshape(1, 401)], variants=["asan"])


_RANGES = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767), "INT32": (-(2**20), 2**20)}
_INTEGER_PAIRS = (
    ("INT8", "INT8"),
    ("INT8", "UINT8"),
    ("INT8", "INT16"),
    ("INT8", "INT32"),
    ("UINT8", "INT8"),
    ("INT16", "INT8"),
    ("INT16", "INT16"),
    ("INT16", "INT32"),
    ("INT32", "INT8"),
    ("INT32", "INT16"),
)


@EXAMPLES
@given(seed=seeds, types=st.sampled_from(_INTEGER_PAIRS), data=st.data())
def test_quantize_between_integers(seed, types, data):
    ends = []
    for type_ in types:
        low, high = _RANGES[type_]
        zero_point = data.draw(st.sampled_from([low, high, 0, (low + high + 1) // 2]))
        ends.append(Quant(scale=data.draw(scales), zero_point=0 if type_ == "INT32" else zero_point))
    # Beyond this TFLM's products overflow.
    assume(ends[0].scale / ends[1].scale < 2**6)
    low, high = _RANGES[types[0]]
    value = np.random.default_rng(seed).integers(low, high, [1, 64], endpoint=True)
    model = op_models.unary_model("QUANTIZE", [1, 64], types, (ends[0], ends[1]))
    check_model(model, [value.astype(types[0].lower())], variants=["asan"])


@EXAMPLES
@given(seed=seeds, type_=st.sampled_from(["INT8", "INT16"]), quant=quants)
def test_quantize_float(seed, type_, quant):
    rng = np.random.default_rng(seed)
    ties = (rng.integers(-300, 300, [1, 64]) + 0.5) * quant.scale
    near = np.nextafter(ties.astype(np.float32), np.float32(rng.choice([-1e9, 1e9])))
    value = np.concatenate([ties.astype(np.float32), near, rng.normal(0, 90, [1, 64])], axis=1)
    model = op_models.unary_model("QUANTIZE", [1, 192], ("FLOAT32", type_), (None, quant), version=1)
    check_model(model, [value.astype(np.float32)], variants=["asan"])


def test_quantize_saturates_floats_out_of_range():
    # What TFLM makes of these is undefined in C++.
    model = op_models.unary_model("QUANTIZE", [1, 5], ("FLOAT32", "INT8"), (None, Quant(scale=0.5, zero_point=3)))
    value = np.array([[np.inf, -np.inf, 3e38, -3e38, np.nan]], np.float32)
    result = bundled_host.run(model, [value], ARENA_BYTES)
    assert result.outputs[0].tolist() == [[127, -128, 127, -128, 3]]


@EXAMPLES
@given(seed=seeds, type_=st.sampled_from(["INT8", "UINT8", "INT16"]), data=st.data())
def test_dequantize_is_exact(seed, type_, data):
    low, high = _RANGES[type_]
    quant = Quant(scale=data.draw(scales), zero_point=data.draw(st.integers(low, high)))
    value = np.random.default_rng(seed).integers(low, high, [1, 64], endpoint=True).astype(type_.lower())
    model = op_models.unary_model("DEQUANTIZE", [1, 64], (type_, "FLOAT32"), (quant, None))
    wanted = reference_outputs(model, [value])[0]
    got = bundled_host.run(model, [value], ARENA_BYTES).outputs[0]
    np.testing.assert_array_equal(got.view(np.uint32), wanted.view(np.uint32))


_FLOAT_MODELS = {
    "CONV_2D": lambda rng: op_models.conv_model(
        rng, (1, 4, 4, 2), 3, Window(height=2, width=2), weights=Weights(), input_quant=None
    ),
    "DEPTHWISE_CONV_2D": lambda rng: op_models.depthwise_model(
        rng, (1, 4, 4, 2), 1, Window(height=2, width=2), weights=Weights(), input_quant=None
    ),
    "FULLY_CONNECTED": lambda rng: op_models.fully_connected_model(rng, 1, 32, 3, weights=Weights(), input_quant=None),
    "AVERAGE_POOL_2D": lambda _: op_models.pool_model(
        "AVERAGE_POOL_2D", (1, 4, 4, 2), Window(height=2, width=2), quant=None
    ),
    "MAX_POOL_2D": lambda _: op_models.pool_model("MAX_POOL_2D", (1, 4, 4, 2), Window(height=2, width=2), quant=None),
    "SOFTMAX": lambda _: op_models.softmax_model([1, 32], 1.0, None),
    "ADD": lambda _: op_models.add_model(([1, 16], [1, 16]), None),
}


@pytest.mark.parametrize("op", _FLOAT_MODELS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_int8_registrations_refuse_float_models(op, variant):
    model = _FLOAT_MODELS[op](np.random.default_rng(1))
    inputs = [np.zeros(32, np.float32)] if op != "ADD" else [np.zeros(16, np.float32)] * 2
    assert bundled_host.run(model, inputs, ARENA_BYTES, variant=variant).ok
    result = bundled_host.run(model, inputs, ARENA_BYTES, variant=variant, flags=bundled_host.INT8_REGISTRATIONS)
    assert result.stage == "allocate"
    assert "FLOAT32" in result.log
