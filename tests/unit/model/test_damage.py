"""Damaged, lying and hostile files: a ModelError that names the place, or a model whose indices hold."""

import struct
import tracemalloc
from collections.abc import Callable

import flatbuffers
import numpy as np
import pytest
import tflite
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import MODELS
from tests.modelmaker import BufferSpec, ModelMaker, make_single_op_model
from tflm_forge.doctor import find_findings
from tflm_forge.errors import ModelError
from tflm_forge.model import Model, op_set, read_model
from tflm_forge.model.flatbuffer import MAX_TABLES, MAX_VECTOR_BYTES
from tflm_forge.ops.hash import op_hash

MEMORY_LIMIT_BYTES = 64 << 20


def make_small_model() -> bytes:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4, 4, 2], "INT8", scale=0.5, zero_point=-1)
    w = maker.tensor("w", [2, 1, 1, 2], "INT8", scale=[0.25, 0.5], data=np.arange(4))
    b = maker.tensor("b", [2], "INT32", scale=[0.125, 0.25], data=np.arange(2))
    y = maker.tensor("y", [1, 4, 4, 2], "INT8", scale=2.0)
    z = maker.tensor("z", [1, 4, 4, 2], "INT8", scale=2.0, is_variable=True)
    maker.operator("CONV_2D", [x, w, b], [y], options=("Conv2DOptions", {"stride_w": 1, "stride_h": 1}), version=3)
    maker.operator("CUSTOM", [y, -1], [z], custom_name="Mine", custom_options=b"abc")
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 1}
    maker.operator("WHILE", [z], [z], options=("WhileOptions", options))
    maker.subgraph(inputs=[x], outputs=[z])
    maker.tensor("t", [1], "BOOL")
    maker.subgraph(inputs=[0], outputs=[0])
    maker.add_metadata("note", b"text")
    maker.add_signature("serve", {"x": 0}, {"z": 4})
    return maker.finish()


SMALL = make_small_model()


def read_and_use(data: bytes) -> Model | None:
    """Read bytes and use all of what was read; None when they are refused in the designed way."""
    try:
        model = read_model(data, name="m.tflite")
    except ModelError as caught:
        error = caught
    else:
        use_everything(model)
        return model
    assert error.message.startswith("m.tflite: ")
    assert error.hint
    return None


def use_everything(model: Model) -> None:
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            assert len(model.constant_data(tensor)) == tensor.data_bytes
            assert tensor.size_bytes < 1 << 31
        for operator in graph.operators:
            assert all(i == -1 or graph.tensors[i] for i in operator.inputs)
            assert all(graph.tensors[i] for i in operator.outputs)
            assert operator.label
    for item in model.metadata:
        model.buffer_data(item.buffer)
    assert 0 <= op_hash(op_set(model)) < 1 << 32
    find_findings(model)


def test_the_model_that_is_damaged_here_is_sound() -> None:
    model = read_and_use(SMALL)
    assert model is not None
    assert len(model.subgraphs[0].operators) == 3


@pytest.mark.parametrize("size", range(0, len(SMALL), 16))
def test_small_model_cut_short_is_refused(size: int) -> None:
    with pytest.raises(ModelError) as caught:
        read_model(SMALL[:size], name="m.tflite")
    assert caught.value.hint


@pytest.mark.models
def test_real_model_cut_at_every_64th_byte_is_refused() -> None:
    data = (MODELS / "kws_ref_model.tflite").read_bytes()
    for size in range(0, len(data), 64):
        with pytest.raises(ModelError):
            read_model(data[:size], name="m.tflite")


@settings(max_examples=300, deadline=None)
@given(flips=st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), min_size=1, max_size=6))
@example(flips=[(0, 255)])
def test_flipped_bytes_never_surprise(flips: list[tuple[int, int]]) -> None:
    data = bytearray(SMALL)
    for position, value in flips:
        data[position] = value
    read_and_use(bytes(data))


@settings(max_examples=300, deadline=None)
@given(
    position=st.integers(2, len(SMALL) // 4 - 1),
    value=st.one_of(
        st.sampled_from([0, 1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, len(SMALL)]),
        st.integers(0, 0xFFFFFFFF),
    ),
)
def test_words_that_lie_never_surprise(position: int, value: int) -> None:
    data = bytearray(SMALL)
    struct.pack_into("<I", data, position * 4, value)
    read_and_use(bytes(data))


def test_every_word_set_to_a_huge_value_ends_in_bounded_memory() -> None:
    tracemalloc.start()
    for position in range(2, len(SMALL) // 4):
        for value in (0x7FFFFFFF, 0xFFFFFFF0):
            data = bytearray(SMALL)
            struct.pack_into("<I", data, position * 4, value)
            read_and_use(bytes(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEMORY_LIMIT_BYTES


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=400))
def test_random_bytes_behind_the_identifier_never_surprise(body: bytes) -> None:
    read_and_use(b"\x14\x00\x00\x00TFL3" + body)


Break = Callable[[ModelMaker], None]


def tensor_of(**values: object) -> Break:
    def damage(maker: ModelMaker) -> None:
        for name, value in values.items():
            setattr(maker.subgraphs[0].tensors[0], name, value)

    return damage


def operator_of(**values: object) -> Break:
    def damage(maker: ModelMaker) -> None:
        for name, value in values.items():
            setattr(maker.subgraphs[0].operators[0], name, value)

    return damage


def graph_of(**values: object) -> Break:
    def damage(maker: ModelMaker) -> None:
        for name, value in values.items():
            setattr(maker.subgraphs[0], name, value)

    return damage


def buffer_of(size: int) -> Break:
    def damage(maker: ModelMaker) -> None:
        maker.subgraphs[0].tensors[0].buffer = maker.buffer(bytes(size))

    return damage


DAMAGES: dict[str, tuple[Break, str]] = {
    "negative dimension": (tensor_of(shape=[1, -1]), "tensor 0: 'first': its shape .* negative"),
    "many dimensions": (tensor_of(shape=[1] * 100_000), "100000 dimensions"),
    "overflowing shape": (tensor_of(shape=[65536, 65536]), "takes more than 2,147,483,647 bytes"),
    "overflowing shape of many dimensions": (tensor_of(shape=[2147483647] * 16), "takes more than"),
    "unknown type": (tensor_of(type_code=99), "tensor type 99"),
    "buffer index": (tensor_of(buffer=7), "buffer 7 of 1"),
    "short buffer": (buffer_of(3), r"buffer 1 holds 3 bytes, but INT8 \[1, 4\] takes 4"),
    "long buffer": (buffer_of(5), "holds 5 bytes"),
    "more zero points": (tensor_of(scales=[1.0], zero_points=[1, 2]), "1 scales but 2 zero points"),
    "fewer zero points": (tensor_of(scales=[1.0] * 4, zero_points=[1], axis=1), "4 scales but 1 zero points"),
    "axis": (tensor_of(scales=[1.0] * 4, zero_points=[0] * 4, axis=2), "along dimension 2 of 2"),
    "negative axis": (tensor_of(scales=[1.0] * 4, zero_points=[0] * 4, axis=-1), "along dimension -1"),
    "channels": (tensor_of(scales=[1.0] * 3, zero_points=[0] * 3, axis=1), "3 scales for 4 channels"),
    "zero point range": (tensor_of(scales=[1.0], zero_points=[1 << 31]), "zero point 2147483648 is no number"),
    "operator input": (operator_of(inputs=[2]), "operator 0: RELU: input 0 is tensor 2 of 2"),
    "operator input below -1": (operator_of(inputs=[-2]), "tensor -2"),
    "operator output left out": (operator_of(outputs=[-1]), "output 0 is tensor -1"),
    "intermediate": (operator_of(intermediates=[5]), "intermediate 0 is tensor 5"),
    "opcode index": (operator_of(opcode=5), "opcode 5 of 1"),
    "model input": (graph_of(inputs=[-1]), "subgraph 0: input 0 is tensor -1"),
    "model output": (graph_of(outputs=[0, 2]), "subgraph 0: output 1 is tensor 2 of 2"),
    "no subgraph": (lambda maker: maker.subgraphs.clear(), "no subgraph"),
    "metadata buffer": (lambda maker: maker.metadata.append(("x", 9)), "metadata 0: names buffer 9"),
    "signature subgraph": (
        lambda maker: maker.signatures.append(("s", 4, {}, {})),
        "signature 0: .* subgraph 4",
    ),
    "signature tensor": (
        lambda maker: maker.signatures.append(("s", 0, {"a": 8}, {})),
        "signature 0: input 0",
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_each_lie_is_named(what: str) -> None:
    damage, words = DAMAGES[what]
    maker = ModelMaker()
    maker.tensor("first", [1, 4], "INT8")
    maker.tensor("second", [1, 4], "INT8")
    maker.operator("RELU", [0], [1])
    maker.subgraph(inputs=[0], outputs=[1])
    assert read_and_use(maker.finish()) is not None
    damage(maker)
    with pytest.raises(ModelError, match=words):
        read_model(maker.finish(), name="m.tflite")


@pytest.mark.parametrize(
    ("op", "custom_name", "version", "words"),
    [
        ("CUSTOM", None, 1, "without a name"),
        ("CUSTOM", "", 1, "without a name"),
        ("CUSTOM", "x" * 256, 1, "longer than 255 bytes"),
        ("CUSTOM", "a\nb", 1, "no printable text"),
        ("CUSTOM", b"a\xffb", 1, "no printable text"),
        ("CUSTOM", b"a\x00b", 1, "no printable text"),
        ("ADD", None, -1, "version -1"),
        (-3, None, 1, "op code -3"),
    ],
)
def test_opcodes_in_use_must_mean_something(op: str, custom_name: str, version: int, words: str) -> None:
    maker = ModelMaker()
    maker.tensor("t", [1], "INT8")
    maker.operator(op, [0], [0], custom_name=custom_name, version=version)
    maker.subgraph(inputs=[0], outputs=[0])
    with pytest.raises(ModelError, match=words):
        read_model(maker.finish(), name="m.tflite")


def make_calls(*calls: dict[str, int]) -> bytes:
    """Return a model in which subgraph i runs WHILE with the i-th options."""
    maker = ModelMaker()
    for options in calls:
        maker.tensor("t", [1], "BOOL")
        if options:
            maker.operator("WHILE", [0], [0], options=("WhileOptions", options))
        maker.subgraph(inputs=[0], outputs=[0])
    return maker.finish()


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (
            [{"cond_subgraph_index": 1, "body_subgraph_index": 2}, {}],
            "operator 0: WHILE: runs subgraph 2 of 2",
        ),
        ([{"cond_subgraph_index": 1, "body_subgraph_index": -1}, {}], "runs subgraph -1 of 2"),
        ([{"cond_subgraph_index": 1, "body_subgraph_index": 0}, {}], "without end: 0 -> 0"),
        (
            [{"cond_subgraph_index": i + 1, "body_subgraph_index": i + 1} for i in range(3)]
            + [{"cond_subgraph_index": 1, "body_subgraph_index": 1}],
            "without end: 1 -> 2 -> 3 -> 1",
        ),
    ],
)
def test_subgraph_calls_that_can_not_end_are_refused(calls: list[dict[str, int]], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        read_model(make_calls(*calls), name="m.tflite")


def test_a_calling_op_without_options_is_refused() -> None:
    with pytest.raises(ModelError, match="CALL_ONCE: has no options"):
        read_model(make_single_op_model("CALL_ONCE"), name="m.tflite")


def test_a_long_chain_of_subgraphs_does_not_exhaust_the_stack() -> None:
    count = 1500
    calls = [{"cond_subgraph_index": i + 1, "body_subgraph_index": i + 1} for i in range(count)]
    model = read_and_use(make_calls(*calls, {}))
    assert model is not None
    assert len(model.subgraphs) == count + 1


def test_data_outside_the_file_is_refused() -> None:
    maker = ModelMaker()
    maker.tensor("t", [4], "INT8", buffer=1)
    maker.buffers.append(BufferSpec(outside=True, data=bytes(4)))
    maker.subgraph(inputs=[0], outputs=[0])
    data = maker.finish()
    with pytest.raises(ModelError, match=r"buffer 1: claims 4 bytes at"):
        read_model(data[:-1], name="m.tflite")


def make_shared_parts(*, tensors: int, operators: int, channels: int) -> bytes:
    """Return a file that names one tensor and one operator over and over: small bytes, a huge model."""
    b = flatbuffers.Builder(1024)

    def offsets(values: list[int]) -> int:
        b.StartVector(4, len(values), 4)
        for value in reversed(values):
            b.PrependUOffsetTRelative(value)
        return int(b.EndVector())

    scales = b.CreateNumpyVector(np.ones(channels, np.float32))
    zero_points = b.CreateNumpyVector(np.full(channels, -77, np.int64))
    shape = b.CreateNumpyVector(np.array([channels], np.int32))
    name = b.CreateString("shared")
    tflite.BufferStart(b)
    buffers = offsets([tflite.BufferEnd(b)])
    tflite.QuantizationParametersStart(b)
    tflite.QuantizationParametersAddScale(b, scales)
    tflite.QuantizationParametersAddZeroPoint(b, zero_points)
    quantization = tflite.QuantizationParametersEnd(b)
    tflite.TensorStart(b)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddName(b, name)
    tflite.TensorAddType(b, tflite.TensorType.INT8)
    tflite.TensorAddQuantization(b, quantization)
    tensor_vector = offsets([tflite.TensorEnd(b)] * tensors)
    inputs = b.CreateNumpyVector(np.zeros(channels, np.int32))
    tflite.OperatorStart(b)
    tflite.OperatorAddInputs(b, inputs)
    operator_vector = offsets([tflite.OperatorEnd(b)] * operators)
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensor_vector)
    tflite.SubGraphAddOperators(b, operator_vector)
    graphs = offsets([tflite.SubGraphEnd(b)])
    tflite.OperatorCodeStart(b)
    codes = offsets([tflite.OperatorCodeEnd(b)])
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, codes)
    tflite.ModelAddSubgraphs(b, graphs)
    tflite.ModelAddBuffers(b, buffers)
    b.Finish(tflite.ModelEnd(b), file_identifier=b"TFL3")
    return bytes(b.Output())


@pytest.mark.parametrize(
    ("tensors", "operators", "channels", "words"),
    [
        (MAX_TABLES, 0, 1, f"over {MAX_TABLES} parts"),
        (1, 10 * MAX_TABLES, 1, f"over {MAX_TABLES} parts"),
        (1000, 0, 10_000, f"over {MAX_VECTOR_BYTES >> 20} MiB"),
        (1, 1000, 100_000, f"over {MAX_VECTOR_BYTES >> 20} MiB"),
    ],
)
def test_shared_parts_can_not_grow_a_small_file(tensors: int, operators: int, channels: int, words: str) -> None:
    data = make_shared_parts(tensors=tensors, operators=operators, channels=channels)
    tracemalloc.start()
    with pytest.raises(ModelError, match=words):
        read_model(data, name="m.tflite")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEMORY_LIMIT_BYTES


def test_limits_are_far_above_a_large_model() -> None:
    model = read_and_use(make_shared_parts(tensors=3000, operators=3000, channels=4))
    assert model is not None
    assert len(model.subgraphs[0].operators) == 3000
