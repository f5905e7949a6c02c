"""Names of custom ops: known ones that are meant by a name written otherwise, and those of delegates."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FLEX_PREFIX = "Flex"
"""The converter names a TensorFlow op that it passes through `Flex` and the op's name."""

TFLM_OPS = frozenset({
    "TFLite_Detection_PostProcess", "CIRCULAR_BUFFER", "TFLM_DECODE", "SignalDelay", "SignalEnergy",
    "SignalFftAutoScale", "SignalFilterBank", "SignalFilterBankLog", "SignalFilterBankSpectralSubtraction",
    "SignalFilterBankSquareRoot", "SignalFramer", "SignalIrfft", "SignalOverlapAdd", "SignalPCAN", "SignalRfft",
    "SignalStacker", "SignalWindow",
})  # fmt: skip
"""Custom ops that TFLM 90b983c2b has a kernel for (micro_mutable_op_resolver.h)."""

_NO_LETTER = re.compile(r"[^a-z0-9]")
_PREFIXES = ("tensorflowlite", "tflitemicro", "tflite", "tflm", "tfl", "tf", "signal", "custom", "micro", "mlir")
_NEAR_ENOUGH = 0.8

_ALIASES: Mapping[str, str] = {
    "nonmaxsuppression": "TFLite_Detection_PostProcess",
    "detectionoutput": "TFLite_Detection_PostProcess",
    "ssdpostprocess": "TFLite_Detection_PostProcess",
    "ethosu55": "ethos-u",
    "ethosu65": "ethos-u",
    "ethosu85": "ethos-u",
    "ringbuffer": "CIRCULAR_BUFFER",
    "hann": "SignalWindow",
    "hannwindow": "SignalWindow",
    "realfft": "SignalRfft",
    "fft": "SignalRfft",
    "inverserfft": "SignalIrfft",
    "melfilterbank": "SignalFilterBank",
    "spectralsubtraction": "SignalFilterBankSpectralSubtraction",
    "noisereduction": "SignalFilterBankSpectralSubtraction",
    "pcangaincontrol": "SignalPCAN",
}
"""Other words for TFLM's custom ops, in small letters and digits alone, to the exact name."""

KNOWN_ELSEWHERE: Mapping[str, str] = {
    "AudioSpectrogram": "TFLite's op for phones; TFLM has none: its audio preprocessor uses the Signal ops.",
    "Mfcc": "TFLite's op for phones; TFLM has none: its audio preprocessor uses the Signal ops.",
    "NumericVerify": "a debugging op of the quantizer: convert without the quantization debugger.",
    "Convolution2DTransposeBias": "an op of MediaPipe: replace it by TRANSPOSE_CONV.",
    "MaxPoolingWithArgmax2D": "an op of MediaPipe, which no TFLM has.",
    "MaxUnpooling2D": "an op of MediaPipe, which no TFLM has.",
    "TransformLandmarks": "an op of MediaPipe, which no TFLM has.",
    "TransformTensorBilinear": "an op of MediaPipe, which no TFLM has.",
    "Landmarks2TransformMatrix": "an op of MediaPipe, which no TFLM has.",
}
"""Custom ops that TFLite or others have and TFLM has not."""


@dataclass(frozen=True, kw_only=True)
class Delegate:
    """A program that runs a part of a model in place of the runtime.

    Attributes:
        name: what people call it.
        marks: what the names of its custom ops or of its metadata have in them, small letters and digits alone.
        words: what it is, and why a model prepared for it does not run.
        remedy: what to do.
    """

    name: str
    marks: tuple[str, ...]
    words: str
    remedy: str


_PLAIN = "Give the model as the converter wrote it, before it was prepared."

DELEGATES: tuple[Delegate, ...] = (
    Delegate(
        name="Edge TPU",
        marks=("edgetpu",),
        words="it was compiled for Google's Edge TPU, and holds that chip's own code in place of the layers",
        remedy="Give the int8 model that edgetpu_compiler was given.",
    ),
    Delegate(
        name="Ethos-U",
        marks=("ethosu",),
        words="it was compiled by Vela for Arm's Ethos-U NPU, and holds that NPU's own code in place of the layers",
        remedy="Give the int8 model that vela was given; with an Ethos-U on the chip, add Arm's driver and kernel as "
        "an [[op]] `ethos-u` of forge.toml.",
    ),
    Delegate(
        name="GPU",
        marks=("gpudelegate", "tflitegpu"),
        words="a part of it was handed to TFLite's GPU delegate, which runs on phones",
        remedy=_PLAIN,
    ),
    Delegate(
        name="NNAPI",
        marks=("nnapi",),
        words="a part of it was handed to Android's NNAPI delegate",
        remedy=_PLAIN,
    ),
    Delegate(
        name="XNNPACK",
        marks=("xnnpack",),
        words="a part of it was handed to the XNNPACK delegate, which runs on phones and computers",
        remedy=_PLAIN,
    ),
    Delegate(
        name="Hexagon",
        marks=("hexagondelegate", "hexagonnn", "tflitehexagon", "qnndelegate"),
        words="a part of it was handed to the delegate of Qualcomm's Hexagon DSP",
        remedy=_PLAIN,
    ),
    Delegate(
        name="Core ML",
        marks=("coreml",),
        words="a part of it was handed to Apple's Core ML delegate",
        remedy=_PLAIN,
    ),
    Delegate(
        name="VX",
        marks=("vxdelegate", "vsinpu"),
        words="it was compiled for a VeriSilicon NPU",
        remedy=_PLAIN,
    ),
    Delegate(
        name="LiteRT NPU",
        marks=("dispatchop", "litertstamp", "dispatchbytecode"),
        words="it was compiled by LiteRT for the NPU of a phone",
        remedy=_PLAIN,
    ),
)


def find_delegate(name: str) -> Delegate | None:
    """Return the delegate that a custom op or an entry of metadata belongs to, or None."""
    plain = _plain(name)
    return next((delegate for delegate in DELEGATES if any(mark in plain for mark in delegate.marks)), None)


def find_meant(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most likely meant by another, or nothing.

    Case, `_`, `-` and customary prefixes do not count; then come other words for the same op, then typing mistakes.

    Args:
        name: the custom name in the model.
        known: exact names of custom ops that have a kernel.
    """
    exact = tuple(known)
    plain = _plain(name)
    for key in (_plain, _bare):
        for candidate in exact:
            if key(candidate) == key(name) and candidate != name:
                return candidate
    alias = _ALIASES.get(plain) or _ALIASES.get(_bare(name))
    if alias in exact and alias is not None and alias != name:
        return alias
    near = difflib.get_close_matches(plain, [_plain(c) for c in exact], n=1, cutoff=_NEAR_ENOUGH)
    return next((c for c in exact if near and _plain(c) == near[0] and c != name), "")


def find_builtin(name: str, builtins: Iterable[str]) -> str:
    """Return the builtin op that a custom op is named like ("LeakyRelu" is LEAKY_RELU), or nothing."""
    return next((b for b in builtins if _plain(b) in (_plain(name), _bare(name))), "")


def _plain(name: str) -> str:
    return _NO_LETTER.sub("", name.lower())


def _bare(name: str) -> str:
    plain = _plain(name)
    while True:
        prefix = next((p for p in _PREFIXES if plain.startswith(p) and len(plain) > len(p)), "")
        if not prefix:
            return plain
        plain = plain.removeprefix(prefix)
