"""The device's walk through the model in flash: op set, hash, and damaged files, under AddressSanitizer."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import tflite

from tests.modelmaker import ModelMaker
from tests.unit.firmware.host_device import canonical_hash, hash_of, op_uses
from tests.unit.firmware.models import CUSTOM, FULLY_CONNECTED, SOFTMAX, make_fitting_model, make_model

OK, MISALIGNED, IDENTIFIER, SCHEMA, TRUNCATED = 0, 0x10, 0x11, 0x12, 0x13
STATUSES = {OK, IDENTIFIER, SCHEMA, TRUNCATED}

Walk = Callable[..., list[str]]

KWS_OPS = "1:2: 3:3: 4:3: 9:4: 22:1: 25:2:"
AUDIO_CUSTOM_OPS = (
    "SignalEnergy", "SignalFftAutoScale", "SignalFilterBank", "SignalFilterBankLog",
    "SignalFilterBankSpectralSubtraction", "SignalFilterBankSquareRoot", "SignalPCAN", "SignalRfft", "SignalWindow",
)  # fmt: skip


def expected(model: bytes) -> str:
    ops = "".join(f" {code}:{version}:{name}" for code, name, version in op_uses(model))
    return f"0 {canonical_hash(model)}{ops}"


@pytest.mark.models
def test_lists_and_hashes_the_ops_of_every_real_model(walk_models: Walk, shared_models: Path) -> None:
    models = [path.read_bytes() for path in sorted(shared_models.glob("*.tflite"))]
    assert len(models) > 5
    assert walk_models(*models) == [expected(model) for model in models]


@pytest.mark.models
def test_ops_of_known_models(walk_models: Walk, shared_models: Path) -> None:
    kws, audio = walk_models(
        (shared_models / "kws_ref_model.tflite").read_bytes(),
        (shared_models / "audio_preprocessor_int8.tflite").read_bytes(),
    )
    assert kws.split(" ", 2)[2] == KWS_OPS
    assert [op.split(":")[2] for op in audio.split()[2:] if op.startswith("32:")] == list(AUDIO_CUSTOM_OPS)


def test_counts_only_ops_that_operators_use_with_their_highest_version(walk_models: Walk) -> None:
    maker = ModelMaker()
    for version in (1, 7):
        maker.opcode("CONV_2D", version=version)
    for name in ("b", "ab", "a", "B"):
        maker.opcode("CUSTOM", custom_name=name)
    for count in (1, 2):
        x, y = maker.tensor("x", [4]), maker.tensor("y", [4])
        for version in (2, 1 + count):
            maker.operator("SOFTMAX", [x], [y], version=version)
        maker.operator("CUSTOM", [x], [y], custom_name="b")
        maker.operator("CUSTOM", [x], [y], custom_name="ab", version=2)
        maker.operator("CUSTOM", [x], [y], custom_name="B")
        maker.subgraph(inputs=[x], outputs=[y])
    model = maker.finish()
    (line,) = walk_models(model)
    assert line == f"0 {canonical_hash(model)} 25:3: 32:1:B 32:2:ab 32:1:b"


@pytest.mark.parametrize(
    ("deprecated", "builtin", "meant"), [(9, 0, 9), (9, 9, 9), (127, 150, 150), (0, 9, 9), (-1, 9, 9)]
)
def test_the_larger_of_the_two_codes_is_meant(walk_models: Walk, deprecated: int, builtin: int, meant: int) -> None:
    maker = ModelMaker()
    x, y = maker.tensor("x", [4]), maker.tensor("y", [4])
    maker.operator(builtin, [x], [y], opcode=maker.opcode(builtin, deprecated_code=deprecated))
    maker.subgraph(inputs=[x], outputs=[y])
    (line,) = walk_models(maker.finish())
    assert line == f"0 {hash_of([(meant, '', 1)])} {meant}:1:"


def test_name_of_a_builtin_op_does_not_count(walk_models: Walk) -> None:
    (line,) = walk_models(make_model((SOFTMAX, 1, "left over")))
    assert line == f"0 {canonical_hash(make_model((SOFTMAX, 1, None)))} 25:1:"


def test_custom_op_without_a_name(walk_models: Walk) -> None:
    (line,) = walk_models(make_model((CUSTOM, 1, None)))
    assert line == f"0 {canonical_hash(make_model((CUSTOM, 1, None)))} 32:1:"


@pytest.mark.parametrize(("name", "status"), [("n" * 255, OK), ("n" * 256, TRUNCATED), (b"zero\0within", TRUNCATED)])
def test_bounds_of_custom_names(walk_models: Walk, name: str, status: int) -> None:
    (line,) = walk_models(make_model((CUSTOM, 1, name)))
    assert int(line.split()[0]) == status


def test_model_without_operators(walk_models: Walk) -> None:
    maker = ModelMaker()
    maker.opcode("SOFTMAX")
    x = maker.tensor("x", [4])
    maker.subgraph(inputs=[x], outputs=[x])
    assert walk_models(maker.finish()) == ["0 0"]


@pytest.mark.parametrize("offset", [1, 2, 4, 8, 15])
def test_alignment(walk_models: Walk, offset: int) -> None:
    (line,) = walk_models(make_fitting_model(), offset=offset)
    assert int(line.split()[0]) == MISALIGNED


def test_what_is_no_model(walk_models: Walk) -> None:
    maker = ModelMaker(identifier=b"TFL2", version=3)
    other = ModelMaker(version=4)
    for m in (maker, other):
        x, y = m.tensor("x", [4]), m.tensor("y", [4])
        m.operator("SOFTMAX", [x], [y])
        m.subgraph(inputs=[x], outputs=[y])
    lines = walk_models(b"", b"\0" * 7, b"\xff" * 1024, b"\0" * 1024, maker.finish(), other.finish())
    assert [int(line.split()[0]) for line in lines] == [
        TRUNCATED, TRUNCATED, IDENTIFIER, IDENTIFIER, IDENTIFIER, SCHEMA,
    ]  # fmt: skip


def _lying_models() -> dict[str, bytes]:
    def build(change: Callable[[ModelMaker], None]) -> bytes:
        maker = ModelMaker()
        x, y = maker.tensor("x", [4]), maker.tensor("y", [4])
        maker.operator("SOFTMAX", [x], [y])
        maker.subgraph(inputs=[x], outputs=[y])
        change(maker)
        return maker.finish()

    return {
        "opcode": build(lambda m: setattr(m.subgraphs[0].operators[0], "opcode", 1)),
        "buffer": build(lambda m: setattr(m.subgraphs[0].tensors[0], "buffer", 9)),
        "operator input": build(lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [2])),
        "operator input below": build(lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [-2])),
        "operator output": build(lambda m: setattr(m.subgraphs[0].operators[0], "outputs", [-1])),
        "no operator inputs": build(lambda m: setattr(m.subgraphs[0].operators[0], "inputs", None)),
        "subgraph input": build(lambda m: setattr(m.subgraphs[0], "inputs", [-1])),
        "no subgraph outputs": build(lambda m: setattr(m.subgraphs[0], "outputs", None)),
        "no opcodes": build(lambda m: m.opcodes.clear()),
        "no subgraphs": build(lambda m: m.subgraphs.clear()),
        "metadata's buffer": build(lambda m: m.metadata.append(("name", 77))),
    }


@pytest.mark.parametrize("lie", _lying_models())
def test_lying_index(walk_models: Walk, lie: str) -> None:
    (line,) = walk_models(_lying_models()[lie])
    assert line.split()[0] == str(TRUNCATED)


def test_optional_input_is_allowed(walk_models: Walk) -> None:
    maker = ModelMaker()
    x, y = maker.tensor("x", [4]), maker.tensor("y", [4])
    maker.operator("FULLY_CONNECTED", [x, x, -1], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    assert walk_models(maker.finish())[0].startswith("0 ")


def _share_the_subgraph(model: bytes, count: int) -> bytes:
    """Return a model with `count` subgraphs that are all the same table: a small file that is long to walk."""
    data = bytearray(model)
    root = int.from_bytes(data[:4], "little")
    vtable = root - int.from_bytes(data[root : root + 4], "little", signed=True)
    field = root + int.from_bytes(data[vtable + 8 : vtable + 10], "little")
    vector = field + int.from_bytes(data[field : field + 4], "little")
    subgraph = vector + 4 + int.from_bytes(data[vector + 4 : vector + 8], "little")
    # Offsets lead forward only, so the vector goes to the end, and a copy of the subgraph and all it needs behind it.
    data += bytes(-len(data) % 4)
    start = len(data)
    copy = start + 4 + 4 * count
    copy += -copy % 16
    data[field : field + 4] = (start - field).to_bytes(4, "little")
    data += count.to_bytes(4, "little")
    for i in range(count):
        data += (copy + subgraph - (start + 4 + 4 * i)).to_bytes(4, "little")
    data += bytes(copy - len(data))
    return bytes(data + model)


@pytest.mark.parametrize(("tensors", "operators"), [(4000, 0), (2, 4000)])
def test_small_file_that_is_long_to_walk(walk_models: Walk, tensors: int, operators: int) -> None:
    maker = ModelMaker()
    maker.opcode("SOFTMAX")
    for i in range(tensors):
        maker.tensor(f"x{i}", [4])
    for _ in range(operators):
        maker.operator("SOFTMAX", [0], [1])
    maker.subgraph(inputs=[0], outputs=[1])
    once, often = walk_models(*(_share_the_subgraph(maker.finish(), count) for count in (1, 30_000)))
    assert [once.split()[0], often.split()[0]] == [str(OK), str(TRUNCATED)]


def test_more_operators_than_the_bound(walk_models: Walk) -> None:
    statuses = []
    for count in (4096, 4097):
        maker = ModelMaker()
        x, y = maker.tensor("x", [4]), maker.tensor("y", [4])
        for _ in range(count):
            maker.operator("SOFTMAX", [x], [y])
        maker.subgraph(inputs=[x], outputs=[y])
        statuses += [int(line.split()[0]) for line in walk_models(maker.finish())]
    assert statuses == [OK, TRUNCATED]


@pytest.mark.parametrize(
    ("tail", "status"),
    [
        (b"\4\0\0\0Fake\0", OK),
        (b"\4\0\0\0FakeX", TRUNCATED),
        (b"\4\0\0\0Fake", TRUNCATED),
        (b"\5\0\0\0Fake\0", TRUNCATED),
        (b"\xff\xff\xff\xffFake\0", TRUNCATED),
        (b"\4\0\0", TRUNCATED),
    ],
)
def test_custom_name_at_the_end_of_the_file(walk_models: Walk, tail: bytes, status: int) -> None:
    data = bytearray(make_model((CUSTOM, 1, "Fake")))
    data += bytes(-len(data) % 4)
    table = tflite.Model.GetRootAs(data, 0).OperatorCodes(0)._tab
    field = table.Pos + table.Offset(6)
    data[field : field + 4] = (len(data) - field).to_bytes(4, "little")
    (line,) = walk_models(bytes(data) + tail)
    assert int(line.split()[0]) == status


@pytest.mark.parametrize("count", [0x40000000, 0x40000001, 0x80000000, 0xFFFFFFFF])
def test_vector_whose_bytes_overflow(walk_models: Walk, count: int) -> None:
    data = bytearray(make_fitting_model())
    table = tflite.Model.GetRootAs(data, 0).Subgraphs(0).Tensors(0)._tab
    field = table.Pos + table.Offset(4)
    shape = field + int.from_bytes(data[field : field + 4], "little")
    data[shape : shape + 4] = count.to_bytes(4, "little")
    (line,) = walk_models(bytes(data))
    assert int(line.split()[0]) == TRUNCATED


def test_more_ops_than_the_bound(walk_models: Walk) -> None:
    most, more = (make_model(*((CUSTOM, 1, f"op{i}") for i in range(count))) for count in (256, 257))
    statuses = [int(line.split()[0]) for line in walk_models(most, more)]
    assert statuses == [OK, TRUNCATED]


def test_truncated_at_every_byte(walk_models: Walk) -> None:
    model = make_model((FULLY_CONNECTED, 4, None), (CUSTOM, 1, "Fake"))
    lines = walk_models(*(model[:length] for length in range(len(model))))
    assert {int(line.split()[0]) for line in lines} <= STATUSES
    assert sum(line.split()[0] == str(TRUNCATED) for line in lines) > len(model) * 0.8


@pytest.mark.models
def test_real_models_truncated_at_every_64th_byte(walk_models: Walk, shared_models: Path) -> None:
    for name in ("hello_world_int8", "micro_speech_quantized", "audio_preprocessor_int8", "trained_lstm_int8"):
        model = (shared_models / f"{name}.tflite").read_bytes()
        lines = walk_models(*(model[:length] for length in range(0, len(model), 64)))
        assert {int(line.split()[0]) for line in lines} <= {TRUNCATED}


def _damage(model: bytes, rng: random.Random) -> bytes:
    data = bytearray(model)
    for _ in range(rng.choice((1, 1, 2, 8))):
        position = rng.randrange(len(data))
        data[position] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_random_damage(walk_models: Walk, seed: int) -> None:
    rng = random.Random(seed)
    model = make_fitting_model()
    lines = walk_models(*(_damage(model, rng) for _ in range(3000)))
    assert {int(line.split()[0]) for line in lines} == STATUSES


@pytest.mark.models
def test_random_damage_of_real_models(walk_models: Walk, shared_models: Path) -> None:
    rng = random.Random(20)
    for name in ("hello_world_int8", "audio_preprocessor_int8", "kws_ref_model", "trained_lstm_int8"):
        model = (shared_models / f"{name}.tflite").read_bytes()
        lines = walk_models(*(_damage(model, rng) for _ in range(500)))
        assert {int(line.split()[0]) for line in lines} <= STATUSES


def test_every_flip_of_one_byte_of_the_structure(walk_models: Walk) -> None:
    model = make_model((CUSTOM, 1, "Fake"))
    damaged = []
    for position in range(len(model)):
        for value in (0x00, 0xFF, model[position] ^ 0x80, (model[position] + 4) & 0xFF):
            damaged.append(model[:position] + bytes((value,)) + model[position + 1 :])
    lines = walk_models(*damaged)
    assert {int(line.split()[0]) for line in lines} == STATUSES
