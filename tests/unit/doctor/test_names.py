"""Names of custom ops: the nearest known, delegates, what is left as it is."""

import pytest

from tflm_forge.doctor.names import TFLM_OPS, find_builtin, find_delegate, find_meant
from tflm_forge.model.schema import enum_names
from tflm_forge.runtimes import load_runtime

KNOWN = sorted(TFLM_OPS)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("TFLITE_DETECTION_POSTPROCESS", "TFLite_Detection_PostProcess"),
        ("TFLite-Detection-PostProcess", "TFLite_Detection_PostProcess"),
        ("DetectionPostProcess", "TFLite_Detection_PostProcess"),
        ("TFLite_Detection_PostProces", "TFLite_Detection_PostProcess"),
        ("SSDPostProcess", "TFLite_Detection_PostProcess"),
        ("signal_window", "SignalWindow"),
        ("Window", "SignalWindow"),
        ("SignalRFFT", "SignalRfft"),
        ("SignalPcan", "SignalPCAN"),
        ("FilterBankLog", "SignalFilterBankLog"),
        ("SignalFilterbank", "SignalFilterBank"),
        ("CircularBuffer", "CIRCULAR_BUFFER"),
        ("Decode", "TFLM_DECODE"),
        # Nothing is near these.
        ("MyOp", ""),
        ("Attention", ""),
        ("x", ""),
        ("", ""),
    ],
)
def test_the_nearest_known_name(written: str, meant: str) -> None:
    assert find_meant(written, KNOWN) == meant


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_name_is_never_its_own_neighbour(name: str) -> None:
    assert find_meant(name, KNOWN) != name


def test_a_kernel_of_the_users_own_is_named_too() -> None:
    assert find_meant("soft_shrink", ["SoftShrink"]) == "SoftShrink"


@pytest.mark.parametrize(
    ("written", "builtin"),
    [("LeakyRelu", "LEAKY_RELU"), ("HardSwish", "HARD_SWISH"), ("TFL.gelu", "GELU"), ("Conv2DTranspose", "")],
)
def test_a_custom_op_that_has_become_a_builtin(written: str, builtin: str) -> None:
    assert find_builtin(written, enum_names("BuiltinOperator")) == builtin


@pytest.mark.parametrize(
    ("name", "delegate"),
    [
        ("edgetpu-custom-op", "Edge TPU"),
        ("edge_tpu_op", "Edge TPU"),
        ("ethos-u", "Ethos-U"),
        ("vela_version", ""),
        ("TfLiteGpuDelegateV2", "GPU"),
        ("TfLiteNnapiDelegate", "NNAPI"),
        ("TfLiteXNNPackDelegate", "XNNPACK"),
        ("TfLiteHexagonDelegate", "Hexagon"),
        ("TfLiteCoreMlDelegate", "Core ML"),
        ("vx-delegate", "VX"),
        ("DISPATCH_OP", "LiteRT NPU"),
        # Metadata and ops that are no delegate's.
        ("min_runtime_version", ""),
        ("CONVERSION_METADATA", ""),
        ("OfflineMemoryAllocation", ""),
        ("SL_PARAMSv1", ""),
        ("SignalWindow", ""),
        ("TFLite_Detection_PostProcess", ""),
    ],
)
def test_delegates_are_known_by_their_ops(name: str, delegate: str) -> None:
    found = find_delegate(name)
    assert (found.name if found else "") == delegate


def test_the_names_are_those_of_the_catalogue(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_HOME", str(tmp_path))
    rows = load_runtime("tflm").catalogue().ops.values()
    assert {row.custom_name for row in rows if row.custom_name and row.max_version > 0} == TFLM_OPS
