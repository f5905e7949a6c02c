"""The op catalogue: what stands against running an op set, and the bundled runtime's own table."""

import re

import pytest
import tflite

from tests.modelmaker import ModelMaker, make_single_op_model
from tflm_forge.board import CORES, list_boards
from tflm_forge.config import BuildSettings
from tflm_forge.errors import ModelError, UsageError
from tflm_forge.model import op_set, read_model
from tflm_forge.ops.catalogue import (
    Catalogue,
    CatalogueOp,
    activation_types,
    find_by_name,
    parse_allow_versions,
)
from tflm_forge.ops.obstacles import Obstacle, list_obstacles
from tflm_forge.resources import bundled_dir
from tflm_forge.runtimes import bundled, find_reasons, load_runtime, plan_build

RELU = tflite.BuiltinOperator.RELU
BUNDLED = bundled.catalogue()
FIRST_LIGHT_OPS = {
    "ADD",
    "AVERAGE_POOL_2D",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "DEQUANTIZE",
    "FULLY_CONNECTED",
    "LOGISTIC",
    "MAX_POOL_2D",
    "QUANTIZE",
    "RELU",
    "RELU6",
    "RESHAPE",
    "SOFTMAX",
}
BUILTIN_NAMES = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}


def _catalogue(**changes: object) -> Catalogue:
    row = {
        "builtin_code": RELU,
        "name": "RELU",
        "add_method": "AddRelu",
        "registrations": {},
        "sources": ("relu.cc",),
        "max_version": 2,
        "version_source": "a test",
        "types": ("INT8", "FLOAT32"),
    }
    op = CatalogueOp(**{**row, **changes})  # type: ignore[arg-type]
    return Catalogue(runtime="small", version="1", ops={op.key: op})


def _obstacles(data: bytes, catalogue: Catalogue, **allowed: int) -> tuple[Obstacle, ...]:
    return list_obstacles(op_set(read_model(data, name="m")), catalogue, allow_versions=allowed)


def test_what_the_catalogue_has_has_no_obstacle() -> None:
    assert _obstacles(make_single_op_model("RELU", version=2), _catalogue()) == ()


def _reasons(data: bytes, catalogue: Catalogue) -> tuple[str, ...]:
    return find_reasons(read_model(data, name="m"), catalogue)


def test_absent_op_names_op_layer_and_runtime() -> None:
    (reason,) = _reasons(make_single_op_model("TANH"), _catalogue())
    assert "TANH" in reason
    assert "'output'" in reason
    assert "small 1 has no such op" in reason


def test_custom_op_is_found_by_its_exact_name() -> None:
    catalogue = _catalogue(builtin_code=tflite.BuiltinOperator.CUSTOM, custom_name="Mine", name="Mine")
    assert _reasons(make_single_op_model("CUSTOM", custom_name="Mine"), catalogue) == ()
    (reason,) = _reasons(make_single_op_model("CUSTOM", custom_name="mine"), catalogue)
    assert "no such custom op" in reason
    assert "Nearest: 'Mine'" in reason


@pytest.mark.parametrize(("version", "allowed", "count"), [(2, 0, 0), (3, 0, 1), (3, 2, 1), (3, 3, 0), (3, 9, 0)])
def test_version_over_the_limit_needs_the_users_word(version: int, allowed: int, count: int) -> None:
    found = _obstacles(make_single_op_model("RELU", version=version), _catalogue(), RELU=allowed)
    assert len(found) == count
    assert all("needs version 3" in each.words and "up to version 2" in each.words for each in found)
    assert all("--allow-version RELU=3" in each.remedy for each in found)


def test_types_are_those_of_the_activations() -> None:
    maker = ModelMaker()
    x = maker.tensor("x", [1, 4], "INT8", scale=0.5)
    w = maker.tensor("w", [2, 4], "INT8", scale=0.5, data=bytes(8))
    b = maker.tensor("b", [2], "INT32", scale=0.25, data=bytes(8))
    y = maker.tensor("y", [1, 2], "INT8", scale=0.5)
    maker.operator("FULLY_CONNECTED", [x, w, b], [y], options=("FullyConnectedOptions", {}))
    maker.subgraph(inputs=[x], outputs=[y])
    (use,) = op_set(read_model(maker.finish(), name="m"))
    assert activation_types(use) == {"INT8"}


def test_refused_type_names_those_that_are_taken() -> None:
    (found,) = _obstacles(make_single_op_model("RELU", (((1, 4), "INT16"),), ((1, 4), "INT16")), _catalogue())
    assert found.rule == "int16x8-unsupported"
    assert "INT16" in found.words
    assert "takes INT8, FLOAT32" in found.words
    anything = _catalogue(types=())
    assert _obstacles(make_single_op_model("RELU", (((1, 4), "INT16"),), ((1, 4), "INT16")), anything) == ()


@pytest.mark.parametrize(
    ("activation", "weights", "words"),
    [
        (
            "FLOAT32",
            "INT8",
            "FLOAT32 input with INT8 weights (hybrid quantization): runtime small 1 does not take them",
        ),
        ("INT8", "INT16", "INT8 input with INT16 weights: runtime small 1 takes weights of INT8, INT4"),
        ("INT8", "INT8", ""),
    ],
)
def test_weights_are_looked_at_by_the_activations(activation: str, weights: str, words: str) -> None:
    data = make_single_op_model("RELU", (((1, 4), activation), ((1, 4), weights)), ((1, 4), activation))
    found = _obstacles(data, _catalogue(weights={"FLOAT32": ("FLOAT32",), "INT8": ("INT8", "INT4")}))
    assert len(found) == bool(words)
    assert all(words in each.words and each.use.name == "RELU" for each in found)
    assert [each.rule for each in found if "representative dataset" in each.remedy] == (
        ["hybrid-quantization"] if activation == "FLOAT32" else []
    )


def test_allow_version_options() -> None:
    assert parse_allow_versions(["RELU=3", "CONV_2D=8", "RELU=4"]) == {"RELU": 4, "CONV_2D": 8}
    with pytest.raises(UsageError, match="--allow-version RELU:3"):
        parse_allow_versions(["RELU:3"])


def test_op_by_name_or_the_nearest() -> None:
    assert find_by_name(_catalogue(), "RELU").add_method == "AddRelu"
    with pytest.raises(UsageError, match="'relu6'"):
        find_by_name(_catalogue(), "relu6")


def test_bundled_runtime_has_the_ops_it_promises() -> None:
    assert {op.name for op in BUNDLED.ops.values()} >= FIRST_LIGHT_OPS


@pytest.mark.parametrize("op", BUNDLED.ops.values(), ids=lambda op: op.name)
def test_bundled_row_is_true(op: CatalogueOp) -> None:
    assert BUILTIN_NAMES[op.builtin_code] == op.name
    assert op.max_version >= 1
    assert op.version_source
    root = bundled_dir()
    sources = "".join((root / name).read_text(encoding="utf-8") for name in op.sources)
    for function in op.registrations.values():
        assert re.search(rf"^TFLMRegistration {function}\(\)", sources, re.MULTILINE)
    resolver = (root / "tensorflow/lite/micro/micro_mutable_op_resolver.h").read_text(encoding="utf-8")
    assert re.search(rf"\b{op.add_method}\(", resolver)


@pytest.mark.parametrize("types", [("INT8", "INT8"), ("FLOAT32", "FLOAT32")])
def test_int8_models_get_the_kernel_without_float_code(types: tuple[str, str]) -> None:
    given, made = types
    core = list_boards()[0].core
    conv = BUNDLED.ops[tflite.BuiltinOperator.ADD, ""]
    model = read_model(
        make_single_op_model("ADD", (((1, 4), given), ((1, 4), given)), ((1, 4), made), options=("AddOptions", {})),
        name="m",
    )
    (registration,) = plan_build(model, core, BuildSettings(runtime="bundled")).registrations
    wanted = conv.registrations["INT8" if given == "INT8" else ""]
    assert registration.call == f"AddAdd(tflite::{wanted}())"


def test_plan_compiles_no_kernel_of_another_op() -> None:
    core = list_boards()[0].core
    model = read_model(make_single_op_model("RELU"), name="m")
    sources = plan_build(model, core, BuildSettings(runtime="bundled")).sources
    own = set(BUNDLED.ops[RELU, ""].sources)
    assert own <= set(sources)
    others = {s for op in BUNDLED.ops.values() for s in op.sources} - own
    core_sources = set(load_runtime("bundled").plan([], core, BuildSettings(runtime="bundled")).sources)
    assert not (others - core_sources) & set(sources)


def test_refusal_lists_all_reasons() -> None:
    maker = ModelMaker()
    t = [maker.tensor(f"t{i}", [1, 4], "INT8", scale=0.5) for i in range(3)]
    maker.operator("HARD_SWISH", [t[0]], [t[1]])
    maker.operator("ELU", [t[1]], [t[2]])
    maker.subgraph(inputs=[t[0]], outputs=[t[2]])
    with pytest.raises(ModelError) as caught:
        plan_build(read_model(maker.finish(), name="m"), list_boards()[0].core, BuildSettings(runtime="bundled"))
    assert len(caught.value.reasons) == 2


def test_kernels_that_the_bundled_runtime_does_not_have_are_refused() -> None:
    ops = op_set(read_model(make_single_op_model("RELU"), name="relu.tflite"))
    settings = BuildSettings(runtime="bundled", kernel_set="cmsis_nn")
    with pytest.raises(UsageError, match="--kernel-set cmsis_nn"):
        load_runtime("bundled").plan(ops, CORES["cortex-m4f"], settings)
