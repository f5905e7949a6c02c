"""What a device's answers and hand-written manifests say of a firmware, and what they leave open."""

from dataclasses import replace
from pathlib import Path

from tflm_forge.gates.facts import facts_from_device, read_facts
from tflm_forge.link.answers import CounterKind, Info, ModelInfo, RegisteredOp

INFO = Info(
    protocol=1,
    mtu_bytes=1024,
    ready=True,
    reset_cause=0,
    counter_kind=CounterKind.CYCLES,
    ticks_per_second=1,
    build_id=bytes(16),
    model_sha256=b"\x01" * 32,
    model_bytes=1000,
    op_hash=0x1234,
    op_count=2,
    arena_bytes=4096,
    arena_used_bytes=4000,
    sizeof_tensor=32,
    sizeof_eval_tensor=12,
    stack_bytes=4096,
    stack_high_water_bytes=100,
    board="stm32f4",
    runtime="tflm",
    runtime_version="90b983c2b3f1",
    kernel_set="cmsis_nn",
    forge_version="0.1.0",
)
OPS = (
    RegisteredOp(builtin_code=3, max_version=6, custom_name=""),
    RegisteredOp(builtin_code=32, max_version=1, custom_name="MyOp"),
)


def test_device_says_ops_versions_runtime_and_arena() -> None:
    facts = facts_from_device("/dev/ttyACM0", INFO, OPS)
    assert [(op.name, op.key, op.max_version) for op in facts.ops] == [
        ("CONV_2D", (3, ""), 6),
        ("MyOp", (32, "MyOp"), 1),
    ]
    assert (facts.runtime, facts.version, facts.kernel_set) == ("tflm", "90b983c2b3f1", "cmsis_nn")
    assert (facts.arena_bytes, facts.op_hash, facts.models[0].sha256) == (4096, 0x1234, "01" * 32)
    assert facts.flash_limit_bytes == 1 << 20
    unknown = (facts.flash_bytes, facts.model_slot_bytes, facts.resource_variables, facts.settings, facts.ops[0].types)
    assert unknown == (None,) * 5


def test_device_with_several_models_has_no_single_op_hash() -> None:
    models = [
        ModelInfo(model_count=2, model_bytes=size, model_sha256=bytes([size]) * 32, op_hash=size, name=f"m{size}")
        for size in (10, 20)
    ]
    facts = facts_from_device("qemu", INFO, OPS, models)
    assert facts.op_hash is None
    assert [(model.file, model.size_bytes, model.op_hash) for model in facts.models] == [
        ("m10", 10, 10),
        ("m20", 20, 20),
    ]


def test_unknown_board_has_no_known_flash() -> None:
    assert facts_from_device("qemu", replace(INFO, board="of-my-own"), OPS).flash_limit_bytes is None


def test_what_a_hand_written_manifest_does_not_say_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "field.yaml"
    path.write_text(
        "tflm_operator_manifest: {format: 1, ops: [{name: SOFTMAX, version: 2}, {name: ADD, version: 1}]}\n"
    )
    facts = read_facts(path)
    assert [(op.builtin_code, op.max_version, op.types) for op in facts.ops] == [(0, 1, None), (25, 2, None)]
    assert (facts.board, facts.runtime, facts.settings, facts.arena_bytes, facts.models) == (None, None, None, None, ())
    assert facts.model_slot_bytes is None
