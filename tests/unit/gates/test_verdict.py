"""Verdicts: each op, version, type, size and feature that a firmware lacks, one by one and all at once."""

from dataclasses import replace

import pytest
import tflite

from tests.modelmaker import ModelMaker
from tests.unit.gates.firmwares import (
    ARENA_BYTES,
    DIGITS,
    SINE,
    change_op,
    facts_of,
    judge,
    raise_version,
    registered,
    single,
    with_version,
    without_op,
)
from tflm_forge.config import ModelCompatibilityTable
from tflm_forge.gates.arena_need import is_same_version
from tflm_forge.gates.facts import FirmwareFacts, FirmwareModel
from tflm_forge.gates.needs import ArenaNeed
from tflm_forge.gates.reasons import exit_code
from tflm_forge.gates.verdict import find_replaced
from tflm_forge.model import Model, load_model, read_model

UPGRADE = "firmware upgrade first"
# Read from the file with `python -m tflite`-made code, see test_the_list_below_is_the_models.
VERSIONS = {
    "AVERAGE_POOL_2D": 2,
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 3,
    "FULLY_CONNECTED": 4,
    "MAX_POOL_2D": 2,
    "RESHAPE": 1,
    "SOFTMAX": 2,
}
FLOAT = [(((1, 4), "FLOAT32"),), ((1, 4), "FLOAT32")]
INT16 = [(((1, 4), "INT16"),), ((1, 4), "INT16")]
UNKNOWN_OP = 32, "NobodyHasThis"


@pytest.fixture(scope="module")
def digits() -> Model:
    return load_model(DIGITS)


@pytest.fixture(scope="module")
def facts(digits: Model) -> FirmwareFacts:
    return facts_of(digits)


def ids_of(judgement: object) -> list[tuple[str, str]]:
    return [(reason.id, reason.subject) for reason in judgement.reasons]  # type: ignore[attr-defined]


def test_the_list_below_is_the_models() -> None:
    model = tflite.Model.GetRootAs(DIGITS.read_bytes(), 0)
    names = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    found = {names[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]: code.Version() for code in codes}
    assert found == VERSIONS


def test_its_own_firmware_runs_a_model(digits: Model, facts: FirmwareFacts) -> None:
    found = judge(digits, facts)
    assert (found.verdict, found.reasons, found.unknown) == ("compatible", (), ())


def test_a_model_that_needs_less_runs_too(facts: FirmwareFacts) -> None:
    assert judge(load_model(SINE), facts).verdict == "compatible"


@pytest.mark.parametrize("op", VERSIONS)
def test_an_op_that_is_not_registered(digits: Model, facts: FirmwareFacts, op: str) -> None:
    found = judge(digits, without_op(facts, op))
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("op-missing", op)])


@pytest.mark.parametrize(("op", "version"), VERSIONS.items())
def test_a_kernel_of_a_version_too_low(digits: Model, facts: FirmwareFacts, op: str, version: int) -> None:
    assert judge(digits, change_op(facts, op, max_version=version)).verdict == "compatible"
    found = judge(digits, change_op(facts, op, max_version=version - 1))
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("op-version", op)])
    assert f"version {version}, and the firmware's kernel goes up to {version - 1}" in found.reasons[0].words


@pytest.mark.parametrize("op", VERSIONS)
def test_a_model_with_a_version_raised(digits: Model, facts: FirmwareFacts, op: str) -> None:
    limit = facts.find_op(getattr(tflite.BuiltinOperator, op)).max_version  # type: ignore[union-attr]
    assert judge(with_version(digits, op, limit), facts).verdict == "compatible"
    found = judge(with_version(digits, op, limit + 1), facts)
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("op-version", op)])


def test_a_version_beyond_all_runtimes_says_so(facts: FirmwareFacts) -> None:
    found = judge(read_model(raise_version(DIGITS, "CONV_2D", 99), name="x"), facts)
    assert found.verdict == UPGRADE
    assert "No runtime that forge knows goes beyond version" in found.reasons[0].remedy


def test_every_reason_at_once(digits: Model, facts: FirmwareFacts) -> None:
    worse = change_op(without_op(without_op(facts, "SOFTMAX"), "RESHAPE"), "CONV_2D", max_version=1)
    worse = replace(worse, arena_bytes=1024, flash_bytes=64 * 1024, schema_version=2)
    found = judge(digits, worse)
    assert [identity for identity, _ in ids_of(found)] == [
        "op-version", "op-missing", "op-missing", "schema", "arena"
    ]  # fmt: skip
    slot = worse.model_slot_bytes
    assert slot == len(digits.data)
    full = replace(worse, models=(replace(worse.models[0], size_bytes=slot - 16),))
    assert ids_of(judge(digits, full))[-2:] == [("flash", ""), ("arena", "")]


@pytest.mark.parametrize(
    ("model", "op", "refused"),
    [
        (single("SOFTMAX", *FLOAT), "SOFTMAX", "FLOAT32"),
        (single("MAX_POOL_2D", *FLOAT, options=("Pool2DOptions", {})), "MAX_POOL_2D", "FLOAT32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_kernel_for_int8_alone_runs_no_other_type(facts: FirmwareFacts, model: Model, op: str, refused: str) -> None:
    found = judge(model, facts)
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("op-type", op)])
    assert refused in found.reasons[0].words
    # The same op, registered for any type: the kernel of the bundled runtime takes float32.
    general = change_op(facts, op, types=("FLOAT32", "INT8"), registration=f"Add(tflite::Register_{op}())")
    assert judge(model, general).verdict == "compatible"


def test_int16_on_kernels_for_int8_alone() -> None:
    def pool(type_: str) -> Model:
        options = "Pool2DOptions", {"stride_w": 1, "stride_h": 1, "filter_width": 1, "filter_height": 1}
        shape = 1, 4, 4, 1
        return single("MAX_POOL_2D", ((shape, type_),), (shape, type_), version=2, options=options)

    int8, int16 = (facts_of(pool(type_), runtime="tflm") for type_ in ("INT8", "INT16"))
    assert int8.ops[0].registration == "AddMaxPool2D(tflite::Register_MAX_POOL_2D_INT8())"
    assert judge(pool("INT8"), int8).verdict == judge(pool("INT16"), int16).verdict == "compatible"
    for model, facts in ((pool("INT16"), int8), (pool("INT8"), int16)):
        found = judge(model, facts)
        assert (found.verdict, ids_of(found)) == (UPGRADE, [("op-type", "MAX_POOL_2D")])
        # The registration tells, also where the types are left out.
        assert judge(model, change_op(facts, "MAX_POOL_2D", types=None)).verdict == UPGRADE


def test_weights_that_a_registration_does_not_take() -> None:
    def dense(weights: str, version: int) -> Model:
        maker = ModelMaker()
        x = maker.tensor("x", [1, 4], "INT8", scale=0.5)
        w = maker.tensor("w", [2, 4], weights, scale=0.1, data=bytes(8 if weights == "INT8" else 4))
        y = maker.tensor("y", [1, 2], "INT8", scale=0.5)
        maker.operator("FULLY_CONNECTED", [x, w, -1], [y], options=("FullyConnectedOptions", {}), version=version)
        maker.subgraph(inputs=[x], outputs=[y])
        return read_model(maker.finish(), name="dense.tflite")

    own = facts_of(dense("INT8", 6), runtime="tflm")
    assert own.ops[0].registration == "AddFullyConnected(tflite::Register_FULLY_CONNECTED_INT8())"
    found = judge(dense("INT4", 6), own)
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("op-type", "FULLY_CONNECTED")])


def test_types_that_no_runtime_takes_are_rejected(facts: FirmwareFacts) -> None:
    found = judge(single("SOFTMAX", (((1, 4), "COMPLEX64"),), ((1, 4), "COMPLEX64")), facts)
    assert (found.verdict, ids_of(found)) == ("reject", [("op-type-nowhere", "SOFTMAX")])


def test_an_op_of_another_runtime_needs_a_firmware(facts: FirmwareFacts) -> None:
    found = judge(single("COS", *FLOAT), facts)
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("op-missing", "COS")])
    assert "Runtime bundled, which it was built with, has no such op; tflm has." in found.reasons[0].remedy


def test_an_op_that_nobody_has(facts: FirmwareFacts) -> None:
    model = single("CUSTOM", *FLOAT, custom_name=UNKNOWN_OP[1])
    found = judge(model, facts)
    assert (found.verdict, ids_of(found)) == ("reject", [("unknown-op", UNKNOWN_OP[1])])
    assert judge(model, facts, reject_model_with_unknown_operator=False).verdict == UPGRADE
    # A firmware that has a kernel of the user's own for it runs it.
    own = replace(registered("CUSTOM"), custom_name=UNKNOWN_OP[1], name=UNKNOWN_OP[1])
    assert judge(model, replace(facts, ops=(*facts.ops, own))).verdict == "compatible"


def test_a_builtin_op_that_is_newer_than_forge(facts: FirmwareFacts) -> None:
    maker = ModelMaker()
    x, y = maker.tensor("x", [1, 4]), maker.tensor("y", [1, 4])
    maker.operator(999, [x], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    found = judge(read_model(maker.finish(), name="x.tflite"), facts)
    assert (found.verdict, [reason.id for reason in found.reasons]) == ("reject", ["unknown-op"])


@pytest.mark.parametrize("policy", [{}, {"reject_model_with_unknown_operator": False}], ids=["default", "lenient"])
def test_a_flex_op_is_rejected_whatever_the_policy(facts: FirmwareFacts, policy: dict[str, bool]) -> None:
    found = judge(single("CUSTOM", *FLOAT, custom_name="FlexErf"), facts, **policy)
    assert (found.verdict, [reason.id for reason in found.reasons]) == ("reject", ["flex-op"])
    assert "SELECT_TF_OPS" in found.reasons[0].remedy


def test_sparse_weights_are_rejected(facts: FirmwareFacts) -> None:
    maker = ModelMaker()
    x, y = maker.tensor("x", [1, 4]), maker.tensor("y", [1, 4])
    w = maker.tensor("w", [4, 4], data=bytes(64), is_sparse=True)
    maker.operator("FULLY_CONNECTED", [x, w, -1], [y], options=("FullyConnectedOptions", {}))
    maker.subgraph(inputs=[x], outputs=[y])
    found = judge(read_model(maker.finish(), name="x.tflite"), facts)
    assert found.verdict == "reject"
    assert found.reasons[0].id == "sparse-tensor"


@pytest.mark.parametrize(("need", "verdict"), [(ARENA_BYTES, "compatible"), (ARENA_BYTES + 16, UPGRADE)])
def test_the_arena(digits: Model, facts: FirmwareFacts, need: int, verdict: str) -> None:
    found = judge(digits, facts, ArenaNeed(bytes=need, how="measured on x", is_measured=True))
    assert found.verdict == verdict


def test_an_estimate_says_that_it_is_one(digits: Model, facts: FirmwareFacts) -> None:
    found = judge(digits, facts, ArenaNeed(bytes=9000, how="estimated: no QEMU", is_measured=False))
    assert "estimated: no QEMU" in found.reasons[0].words
    assert "The estimate is generous" in found.reasons[0].remedy


def test_the_flash_that_the_old_model_leaves(digits: Model, facts: FirmwareFacts) -> None:
    free = 64 * 1024 - 40_000
    assert facts.model_slot_bytes == free + len(digits.data)
    fits = replace(facts, flash_limit_bytes=40_000)
    assert judge(digits, fits).verdict == "compatible"
    found = judge(digits, replace(fits, flash_limit_bytes=39_999))
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("flash", "")])


def test_beside_other_models_only_its_own_place_counts(digits: Model) -> None:
    both = facts_of(load_model(SINE), digits)
    assert find_replaced(both.models, "digits.tflite") == 1
    assert find_replaced(both.models, "new.tflite") == 0
    fits = replace(both, flash_limit_bytes=40_000)
    assert judge(digits, fits).verdict == "compatible"
    # Under another name it takes the place of the first, which is smaller.
    assert ids_of(judge(replace(digits, name="new.tflite"), fits)) == [("flash", "")]


def test_resource_variables(digits: Model, facts: FirmwareFacts) -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4])
    handles = [maker.tensor(name, [], "RESOURCE") for name in ("a", "b")]
    for name, handle in zip(("a", "b"), handles, strict=True):
        maker.operator("VAR_HANDLE", [], [handle], options=("VarHandleOptions", {"container": "", "shared_name": name}))
        maker.operator("ASSIGN_VARIABLE", [handle, x], [], options=("AssignVariableOptions", {}))
    maker.subgraph(inputs=[x], outputs=[x])
    model = read_model(maker.finish(), name="x.tflite")
    has = replace(facts, ops=(*facts.ops, registered("VAR_HANDLE"), registered("ASSIGN_VARIABLE")), runtime="tflm")
    assert judge(model, replace(has, resource_variables=2)).verdict == "compatible"
    found = judge(model, replace(has, resource_variables=1))
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("resource-variables", "")])
    assert any("resource variables" in item for item in judge(model, replace(has, resource_variables=None)).unknown)


def test_compressed_constants(facts: FirmwareFacts) -> None:
    maker = ModelMaker()
    x, y = maker.tensor("x", [1, 4], "INT8", scale=0.5), maker.tensor("y", [1, 4], "INT8", scale=0.5)
    maker.operator("RESHAPE", [x], [y])
    maker.subgraph(inputs=[x], outputs=[y])
    maker.add_metadata("COMPRESSION_METADATA", b"x")
    model = read_model(maker.finish(), name="x.tflite")
    found = judge(model, facts)
    assert (found.verdict, ids_of(found)) == (UPGRADE, [("compression", "")])
    assert judge(model, replace(facts, compression=True)).verdict == "compatible"


def test_what_a_source_does_not_say_is_named(digits: Model) -> None:
    ops = tuple(registered(name, version) for name, version in VERSIONS.items())
    found = judge(digits, FirmwareFacts(source="by hand", kind="manifest", ops=ops))
    assert found.verdict == "compatible"
    assert [item.split()[1] for item in found.unknown] == ["tensor", "flash", "size"]


def test_a_device_does_not_tell_its_types(digits: Model) -> None:
    """What its own model has at its ends, or an equal op hash, is believed; another type is not."""
    from tests.unit.gates.firmwares import ENOUGH, find_needs, load_catalogues
    from tflm_forge.gates.verdict import Judge

    ops = tuple(registered(name, version) for name, version in VERSIONS.items())
    device = FirmwareFacts(source="/dev/ttyACM0", kind="device", runtime="bundled", ops=ops, op_hash=1)
    policy = ModelCompatibilityTable()

    def ask(model: Model, facts: FirmwareFacts, *types: str) -> list[tuple[str, str]]:
        own = Judge(needs=find_needs(model), catalogues=load_catalogues(), policy=policy)
        return ids_of(own.judge(facts, ENOUGH, seen_types=frozenset(types)))

    assert ask(digits, device, "INT8") == []
    assert ask(single("SOFTMAX", *FLOAT), device, "INT8") == [("op-type", "SOFTMAX")]
    assert ask(single("SOFTMAX", *FLOAT), device, "FLOAT32") == []
    needs = find_needs(single("SOFTMAX", *FLOAT))
    assert ask(single("SOFTMAX", *FLOAT), replace(device, op_hash=needs.op_hash), "INT8") == []
    # A kernel that has one registration for all types is as good as told.
    assert ask(single("RESHAPE", *FLOAT), device, "INT8") == []


class TestPolicy:
    def test_without_the_resolver_only_the_rest_is_checked(self, digits: Model, facts: FirmwareFacts) -> None:
        bare = replace(facts, ops=())
        assert judge(digits, bare, check_firmware_resolver=False).verdict == "compatible"
        small = replace(bare, arena_bytes=16)
        assert ids_of(judge(digits, small, check_firmware_resolver=False)) == [("arena", "")]

    def test_the_op_hash_may_have_to_be_the_same(self, digits: Model, facts: FirmwareFacts) -> None:
        strict = {"block_model_if_resolver_hash_mismatch": True}
        assert judge(digits, facts, **strict).verdict == "compatible"
        found = judge(load_model(SINE), facts, **strict)
        assert (found.verdict, ids_of(found)) == (UPGRADE, [("op-hash", "")])
        # As examples/ has them, printed by the devices of both.
        assert "0xBF2A0435, the firmware's is 0xB188CBCE" in found.reasons[0].words

    @pytest.mark.parametrize(("verdict", "code", "lenient"), [("compatible", 0, 0), (UPGRADE, 7, 0), ("reject", 3, 3)])
    def test_exit_codes(self, verdict: str, code: int, lenient: int) -> None:
        assert exit_code(verdict, ModelCompatibilityTable()) == code  # type: ignore[arg-type]
        policy = ModelCompatibilityTable(require_firmware_upgrade_first=False)
        assert exit_code(verdict, policy) == lenient  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0.1.0", "0.1.0", True),
        ("0.1.0", "0.1.01", False),
        ("90b983c2b3f1", "90b983c2b3f1" + "0" * 28, True),
        ("90b983c2b3f1", "90b983c2b3f2", False),
        ("", "0.1.0", False),
    ],
)
def test_versions_that_are_the_same(one: str, other: str, same: bool) -> None:
    assert is_same_version(one, other) is same
    assert is_same_version(other, one) is same


def test_a_firmware_without_a_model_has_no_place_to_take() -> None:
    assert find_replaced((), "x.tflite") == 0
    assert find_replaced((FirmwareModel(file=None, sha256="", size_bytes=1),), "x.tflite") == 0
