"""What converters and compilers write about a model beside it."""

from tflm_forge.model.records import Model

MIN_RUNTIME_VERSION = "min_runtime_version"
OFFLINE_PLAN = "OfflineMemoryAllocation"


def min_runtime_version(model: Model) -> str:
    """Return the lowest TensorFlow Lite version that the converter says runs the model; empty when it does not say.

    It is TFLite's version for phones, no version of TFLM: TFLM has no versions.
    """
    for item in model.metadata:
        if item.name == MIN_RUNTIME_VERSION:
            text = model.buffer_data(item.buffer).split(b"\0")[0].decode("ascii", "replace")
            return text if text.isprintable() else ""
    return ""
