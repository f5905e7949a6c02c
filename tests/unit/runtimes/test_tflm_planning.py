"""Choosing kernel set and registrations, and refusing what kernels do not take; from the shipped catalogue."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.runtimes.small_tree import write_files
from tflm_forge.board import CORES
from tflm_forge.config import BuildSettings, Profile
from tflm_forge.errors import ModelError, ToolError, UsageError
from tflm_forge.model import OpUse
from tflm_forge.ops.obstacles import list_obstacles
from tflm_forge.runtimes.tflm import catalogue, planning
from tflm_forge.runtimes.tflm.install import Installed
from tflm_forge.runtimes.tflm.op_table import KernelSet, load_kernel_sets, shorten
from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT

M3, M4, M55 = CORES["cortex-m3"], CORES["cortex-m4f"], CORES["cortex-m55f"]
Types = tuple[tuple[str, ...], tuple[str, ...]]
INT8_CONV: Types = (("INT8", "INT8", "INT32"), ("INT8",))


@pytest.fixture(autouse=True)
def no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "home"))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tree"
    dirs = ("tflite-micro", "flatbuffers/include", "gemmlowp", "ruy", "kissfft", "cmsis_nn/Include")
    write_files(folder, {f"{d}/x": "" for d in (*dirs, "cmsis/CMSIS/Core/Include")})
    record = Installed(name="x", folder=folder, version=TFLM_COMMIT, sources=())
    monkeypatch.setattr(planning, "find_installed", lambda: record)


def op(name: str, *types: Types, code: int = 3, version: int = 1) -> OpUse:
    custom = name if code == 32 else ""
    return OpUse(
        builtin_code=code, custom_name=custom, name=name, version=version, count=1, first_layer="layer", types=types
    )


def settings(profile: Profile = "release", allow: Mapping[str, int] | None = None) -> BuildSettings:
    return BuildSettings(runtime="tflm", profile=profile, allow_versions=allow or {})


def calls(uses: list[OpUse], core: str = "cortex-m4f") -> list[str]:
    return [r.call for r in planning.plan_build(uses, CORES[core], settings()).registrations]


def test_the_shipped_catalogue_is_the_pinned_commits_and_whole() -> None:
    sets = load_kernel_sets()
    assert sorted(sets) == ["cmsis_nn", "reference"]
    for kernels in sets.values():
        assert kernels.version == shorten(TFLM_COMMIT)
        assert len(kernels.ops) == 118
        assert all(row.sources for row in kernels.ops.values())
    customs = {name for code, name in sets["reference"].ops if code == 32}
    signal = {name for name in customs if name.startswith("Signal")}
    assert len(signal) == 14
    assert customs - signal == {"CIRCULAR_BUFFER", "TFLM_DECODE", "TFLite_Detection_PostProcess", "ethos-u"}


@pytest.mark.parametrize(
    ("key", "method"),
    [
        ((128, ""), "AddCumSum"),
        ((60, ""), "AddPadV2"),
        ((32, "TFLM_DECODE"), "AddDecode"),
        ((32, "TFLite_Detection_PostProcess"), "AddDetectionPostprocess"),
        ((32, "SignalPCAN"), "AddPCAN"),
        ((32, "SignalFilterBankSpectralSubtraction"), "AddFilterBankSpectralSubtraction"),
        ((44, ""), "AddUnidirectionalSequenceLSTM"),
        ((11, ""), "AddL2Normalization"),
    ],
)
def test_methods_whose_names_do_not_follow_from_the_op(key: tuple[int, str], method: str) -> None:
    assert catalogue().ops[key].add_method == method


def test_every_op_has_its_facts_with_a_source() -> None:
    for kernels in load_kernel_sets().values():
        for row in kernels.ops.values():
            assert "not known" not in row.version_source
            assert row.max_version >= (0 if row.name == "ethos-u" else 1)


def test_int8_uses_get_the_int8_registration(installed: None) -> None:
    assert calls([op("CONV_2D", INT8_CONV)]) == ["AddConv2D(tflite::Register_CONV_2D_INT8())"]
    assert calls([op("CONV_2D", INT8_CONV)], core="cortex-m3") == ["AddConv2D()"]


@pytest.mark.parametrize(
    ("types", "call"),
    [
        ((INT8_CONV, (("FLOAT32", "FLOAT32", "FLOAT32"), ("FLOAT32",))), "AddConv2D()"),
        ((INT8_CONV, (("INT8", "INT4", "INT32"), ("INT8",))), "AddConv2D()"),
        (((("INT8", "INT4", "INT32"), ("INT8",)),), "AddConv2D(tflite::Register_CONV_2D_INT4())"),
        (((("INT16", "INT8", "INT64"), ("INT16",)),), "AddConv2D(tflite::Register_CONV_2D_INT16())"),
        (((("FLOAT32", "FLOAT32", "FLOAT32"), ("FLOAT32",)),), "AddConv2D()"),
    ],
)
def test_mixed_uses_never_get_a_specialised_registration(types: tuple[Types, ...], call: str, installed: None) -> None:
    assert calls([op("CONV_2D", *types)]) == [call]


def test_specialised_registrations_bring_their_header(installed: None) -> None:
    pad = planning.plan_build([op("PAD", (("INT8", "INT32"), ("INT8",)), code=34)], M4, settings())
    assert pad.registrations[0].call == "AddPad(tflite::Register_PAD_INT8())"
    assert pad.registrations[0].includes == ("tensorflow/lite/micro/kernels/pad.h",)


def test_softmax_by_output_type(installed: None) -> None:
    assert calls([op("SOFTMAX", (("INT8",), ("INT16",)), code=25)]) == [
        "AddSoftmax(tflite::Register_SOFTMAX_INT8_INT16())"
    ]
    assert calls([op("SOFTMAX", (("INT8",), ("INT16",)), (("INT8",), ("INT8",)), code=25)]) == ["AddSoftmax()"]


def test_fft_registrations_are_specialised_in_every_kernel_set(installed: None) -> None:
    use = op("SignalRfft", (("INT16",), ("INT16",)), code=32)
    assert calls([use], core="cortex-m3") == ["AddRfft(tflite::tflm_signal::Register_RFFT_INT16())"]


def test_lstm_is_specialised_only_without_checks(installed: None) -> None:
    weights = ("-", "INT8", "INT8", "INT8", "-", "INT8", "INT8", "INT8")
    use = op("UNIDIRECTIONAL_SEQUENCE_LSTM", (("INT8", *weights), ("INT8",)), code=44)
    wanted = "AddUnidirectionalSequenceLSTM(tflite::Register_UNIDIRECTIONAL_SEQUENCE_LSTM_INT8())"
    expected: tuple[tuple[Profile, str], ...] = (
        ("release", wanted),
        ("debug", "AddUnidirectionalSequenceLSTM()"),
    )
    for profile, call in expected:
        chosen = BuildSettings(runtime="tflm", profile=profile, kernel_set="cmsis_nn")
        assert [r.call for r in planning.plan_build([use], M4, chosen).registrations] == [call]


def test_the_plan_names_core_and_kernels_once_and_nothing_else(installed: None) -> None:
    fully = op("FULLY_CONNECTED", (("INT8", "INT8", "INT32"), ("INT8",)), code=9)
    build = planning.plan_build([op("CONV_2D", INT8_CONV), fully], M3, settings())
    names = [source.rpartition("/")[2] for source in build.sources]
    assert build.kernel_set == "reference"
    assert {"conv.cc", "conv_common.cc", "fully_connected.cc", "micro_interpreter.cc"} <= set(names)
    assert len(build.sources) == len(set(build.sources))
    assert not {"softmax.cc", "debug_log.cc", "micro_time.cc", "rfft.cc"} & set(names)
    assert not any(source.endswith("_test.cc") for source in build.sources)
    assert "kissfft" not in build.include_dirs
    assert "cmsis_nn" not in build.include_dirs


@pytest.mark.parametrize(
    ("core", "kernel_set"),
    [
        ("cortex-m0", "reference"),
        ("cortex-m3", "reference"),
        ("cortex-m4f", "cmsis_nn"),
        ("cortex-m7f", "cmsis_nn"),
        ("cortex-m33f", "cmsis_nn"),
        ("cortex-m55f", "cmsis_nn"),
    ],
)
def test_cmsis_nn_where_the_core_profits(core: str, kernel_set: str, installed: None) -> None:
    build = planning.plan_build([op("CONV_2D", INT8_CONV)], CORES[core], settings())
    assert build.kernel_set == kernel_set
    assert ("CMSIS_NN" in build.defines) == (kernel_set == "cmsis_nn")


@pytest.mark.parametrize(
    ("uses", "kernel_set"),
    [
        ([op("CONV_2D", (("FLOAT32", "FLOAT32", "FLOAT32"), ("FLOAT32",)))], "reference"),
        ([op("ADD", (("INT32", "INT32"), ("INT32",)), code=0)], "reference"),
        ([op("QUANTIZE", (("FLOAT32",), ("INT8",)), code=114)], "reference"),
        ([op("CONV_2D", (("FLOAT32", "FLOAT32", "FLOAT32"), ("FLOAT32",)), INT8_CONV)], "cmsis_nn"),
        ([op("TRANSPOSE_CONV", (("INT32", "INT8", "INT8"), ("INT8",)), code=67)], "cmsis_nn"),
    ],
)
def test_cmsis_nn_where_the_model_profits(uses: list[OpUse], kernel_set: str, installed: None) -> None:
    assert planning.plan_build(uses, M4, settings()).kernel_set == kernel_set


def test_reference_kernels_where_cmsis_nn_would_be_wrong(installed: None) -> None:
    int32_bias = op("FULLY_CONNECTED", (("INT16", "INT8", "INT32"), ("INT16",)), code=9, version=11)
    assert planning.plan_build([int32_bias], M4, settings()).kernel_set == "reference"


LSTM = op("UNIDIRECTIONAL_SEQUENCE_LSTM", (("INT8",), ("INT8",)), code=44)


def test_reference_kernels_where_cmsis_nn_computes_in_another_way(installed: None) -> None:
    build = planning.plan_build([op("CONV_2D", INT8_CONV), LSTM], M4, settings())
    assert build.kernel_set == "reference"
    assert len(build.notes) == 1
    for words in ("UNIDIRECTIONAL_SEQUENCE_LSTM", "other numbers", "cleared state", "--kernel-set cmsis_nn"):
        assert words in build.notes[0]


def test_a_kernel_set_the_user_names_is_taken_without_remark(installed: None) -> None:
    build = planning.plan_build([LSTM], M4, BuildSettings(runtime="tflm", kernel_set="cmsis_nn"))
    assert (build.kernel_set, build.notes) == ("cmsis_nn", ())


def test_a_kernel_set_with_reservations_is_better_than_none(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    only = {"cmsis_nn": load_kernel_sets()["cmsis_nn"]}
    monkeypatch.setattr(planning, "load_kernel_sets", lambda: only)
    assert planning.plan_build([LSTM], M4, settings()).kernel_set == "cmsis_nn"


def test_no_remark_where_nothing_was_passed_over(installed: None) -> None:
    assert planning.plan_build([op("CONV_2D", INT8_CONV)], M4, settings()).notes == ()
    assert planning.plan_build([LSTM], M3, settings()).notes == ()


def test_a_users_kernel_set_is_kept_and_refuses_for_itself(installed: None) -> None:
    reference = BuildSettings(runtime="tflm", kernel_set="reference")
    assert planning.plan_build([op("CONV_2D", INT8_CONV)], M4, reference).kernel_set == "reference"
    int32_bias = op("FULLY_CONNECTED", (("INT16", "INT8", "INT32"), ("INT16",)), code=9, version=11)
    with pytest.raises(ModelError) as caught:
        planning.plan_build([int32_bias], M4, BuildSettings(runtime="tflm", kernel_set="cmsis_nn"))
    assert "every int16 bias as int64" in caught.value.reasons[0]


def test_an_unknown_kernel_set_names_the_nearest(installed: None) -> None:
    with pytest.raises(UsageError, match="cmsis-nn") as caught:
        planning.plan_build([op("CONV_2D", INT8_CONV)], M4, BuildSettings(runtime="tflm", kernel_set="cmsis-nn"))
    assert "cmsis_nn" in caught.value.hint


def test_profiles_set_definitions(installed: None) -> None:
    release = planning.plan_build([op("CONV_2D", INT8_CONV)], M4, settings("release")).defines
    debug = planning.plan_build([op("CONV_2D", INT8_CONV)], M4, settings("debug")).defines
    assert set(release) - set(debug) == {"NDEBUG", "TF_LITE_STRIP_ERROR_STRINGS"}
    assert "TF_LITE_STATIC_MEMORY" in debug


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (op("CONV_2D", (("FLOAT32", "INT8", "FLOAT32"), ("FLOAT32",))), "hybrid quantization"),
        (op("CONV_2D", (("INT16", "INT16", "INT64"), ("INT16",)), version=4), "INT16 weights"),
        (op("GREATER_EQUAL", (("INT16", "INT16"), ("BOOL",)), code=62, version=3), "version 3"),
        (op("NEG", (("INT8",), ("INT8",)), code=59), "has INT8 input"),
        (op("CAST", (("FLOAT32",), ("BOOL",)), code=53), "has BOOL output"),
        (op("WHERE", (("BOOL",), ("INT64",)), code=109), "has no such op"),
        (op("ethos-u", (("UINT8",), ("INT8",)), code=32), "driver"),
    ],
)
def test_refusals_name_op_layer_and_cause(use: OpUse, text: str, installed: None) -> None:
    with pytest.raises(ModelError) as caught:
        planning.plan_build([use], M4, settings())
    assert [reason for reason in caught.value.reasons if text in reason]
    assert all("'layer'" in reason and use.name in reason for reason in caught.value.reasons)


def test_an_allowed_version_is_the_firmwares_limit(installed: None) -> None:
    use = op("NEG", (("FLOAT32",), ("FLOAT32",)), code=59, version=2)
    build = planning.plan_build([use], M4, settings(allow={"NEG": 2}))
    assert build.registrations[0].max_version == 2


def test_obstacles_are_known_before_tflm_is_installed() -> None:
    (obstacle,) = list_obstacles([op("CONV_2D", INT8_CONV, version=9)], catalogue())
    assert obstacle.rule == "op-version"
    assert "version 9" in obstacle.words
    assert shorten(TFLM_COMMIT) in obstacle.words


def test_building_without_tflm_names_the_ways_to_get_it() -> None:
    with pytest.raises(ToolError) as caught:
        planning.plan_build([op("CONV_2D", INT8_CONV)], M4, settings())
    for way in ("install tflm ", "--mirror", "--tree", "bundled"):
        assert way in caught.value.hint


def test_kernel_sets_share_ops_but_not_facts() -> None:
    sets: dict[str, KernelSet] = load_kernel_sets()
    assert sets["reference"].ops[9, ""].max_version == 11
    assert sets["cmsis_nn"].ops[9, ""].max_version == 10


@pytest.mark.parametrize(
    ("text", "refused"), [("int output_multiplier;", True), ("per_channel_output_multiplier", False)]
)
def test_dense_layers_with_channel_scales_need_kernels_that_have_them(
    text: str, refused: bool, installed: None, tmp_path: Path
) -> None:
    types: Types = (("INT8", "INT8", "INT32"), ("INT8",))
    use = dataclasses.replace(op("FULLY_CONNECTED", types, code=9), has_channel_scales=True)
    reference = BuildSettings(runtime="tflm", kernel_set="reference")
    write_files(tmp_path / "tree", {source: text for source in load_kernel_sets()["reference"].ops[9, ""].sources})
    assert planning.plan_build([op("FULLY_CONNECTED", types, code=9)], M3, reference).registrations
    if not refused:
        assert planning.plan_build([use], M3, reference).registrations
        return
    with pytest.raises(ModelError) as caught:
        planning.plan_build([use], M3, reference)
    for words in ("FULLY_CONNECTED", "'layer'", "scale for each channel", "newer commit", "disable_per_channel"):
        assert words in caught.value.reasons[0]


def test_a_model_that_no_kernels_run_is_refused_before_tflm_is_installed() -> None:
    with pytest.raises(ModelError, match="can not run this model"):
        planning.plan_build([op("CONV_2D", (("FLOAT32", "INT8", "FLOAT32"), ("FLOAT32",)))], M4, settings())
