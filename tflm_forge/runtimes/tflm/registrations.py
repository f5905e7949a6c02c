"""Chooses the smallest registration of an op that is correct for every node of a model.

TFLM runs a registration for another type than a node has without telling: it can stop in an endless loop or
give wrong numbers. So a specialised one is chosen only when all types of all uses fit, and never for an op
without a pattern here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tflm_forge.config import Profile
from tflm_forge.model import OpUse
from tflm_forge.model.opset import LEFT_OUT, OpTypes
from tflm_forge.ops.catalogue import activation_types
from tflm_forge.runtimes import Registration
from tflm_forge.runtimes.tflm.op_table import TflmOp


@dataclass(frozen=True, kw_only=True)
class _Pattern:
    """Types a specialised kernel takes: by input position (others do not matter), and of the first output."""

    inputs: Mapping[int, tuple[str, ...]]
    output: str

    def fits(self, types: OpTypes) -> bool:
        """Return whether one node's types are what the kernel takes."""
        inputs, outputs = types
        return outputs[:1] == (self.output,) and all(
            position < len(inputs) and inputs[position] in allowed for position, allowed in self.inputs.items()
        )


def _pattern(output: str, *inputs: str | None) -> _Pattern:
    return _Pattern(inputs={i: (t,) for i, t in enumerate(inputs) if t is not None}, output=output)


_WEIGHTED = {
    "INT8": _pattern("INT8", "INT8", "INT8"),
    "INT16": _pattern("INT16", "INT16", "INT8"),
    "INT4": _pattern("INT8", "INT8", "INT4"),
}
_BINARY = {t: _pattern(t, t, t) for t in ("INT8", "INT16")}
_UNARY = {t: _pattern(t, t) for t in ("INT8", "INT16")}
_FFT = {
    "FLOAT": _pattern("FLOAT32", "FLOAT32"),
    "INT16": _pattern("INT16", "INT16"),
    "INT32": _pattern("INT32", "INT32"),
}
_LSTM_WEIGHTS = range(1, 9)

# Read from the Prepare and Eval functions in kernels/*.h, kernels/cmsis_nn/*.cc and signal/micro/kernels.
_PATTERNS: Mapping[str, Mapping[str, _Pattern]] = {
    "CONV_2D": _WEIGHTED,
    "DEPTHWISE_CONV_2D": _WEIGHTED,
    "FULLY_CONNECTED": _WEIGHTED,
    "TRANSPOSE_CONV": {"INT8": _pattern("INT8", None, "INT8", "INT8")},
    "BATCH_MATMUL": _BINARY,
    "ADD": _BINARY,
    "MUL": _BINARY,
    "MAXIMUM": _BINARY,
    "MINIMUM": _BINARY,
    "AVERAGE_POOL_2D": _UNARY,
    "MAX_POOL_2D": _UNARY,
    "PAD": _UNARY,
    "TRANSPOSE": _UNARY,
    "SOFTMAX": {**_UNARY, "INT8_INT16": _pattern("INT16", "INT8")},
    "SVDF": {
        "INT8": _Pattern(inputs={0: ("INT8",), 1: ("INT8",), 2: ("INT8", "INT16"), 4: ("INT8", "INT16")}, output="INT8")
    },
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {
        t: _Pattern(inputs={0: (t,), **{i: ("INT8", LEFT_OUT) for i in _LSTM_WEIGHTS}}, output=t)
        for t in ("INT8", "INT16")
    },
    "SignalRfft": _FFT,
    "SignalIrfft": _FFT,
}

# cmsis_nn/unidirectional_sequence_lstm.cc asserts int16 weights in its specialised kernels, though they
# compute with int8 weights: they stop a build that keeps checks.
_RELEASE_ONLY = frozenset({"UNIDIRECTIONAL_SEQUENCE_LSTM"})


def choose_registration(use: OpUse, op: TflmOp, *, profile: Profile, max_version: int) -> Registration:
    """Return how an op is registered: specialised when every use fits, else for any type.

    Args:
        use: the op as the model uses it.
        op: its row in the kernel set.
        profile: whether the build keeps TFLM's checks.
        max_version: the version limit of the firmware for this op.
    """
    suffix = "" if profile == "debug" and op.name in _RELEASE_ONLY else find_suffix(use.types, op)
    if not suffix:
        types = tuple(dict.fromkeys(op.inputs + op.outputs)) if op.inputs and op.outputs else ()
        return Registration(use=use, call=f"{op.add_method}()", max_version=max_version, types=types)
    chosen = op.specialised[suffix]
    return Registration(
        use=use,
        call=f"{op.add_method}({chosen.function}())",
        includes=(chosen.header,),
        max_version=max_version,
        types=tuple(sorted(activation_types(use))),
    )


def find_suffix(types: Iterable[OpTypes], op: TflmOp) -> str:
    """Return the suffix of the specialised registration that all nodes fit; empty when there is none."""
    nodes = tuple(types)
    patterns = _PATTERNS.get(op.name, {})
    for suffix in op.specialised:
        pattern = patterns.get(suffix)
        if pattern is not None and nodes and all(pattern.fits(node) for node in nodes):
            return suffix
    return ""


def fits_registration(name: str, call: str, types: Iterable[OpTypes]) -> bool:
    """Return whether an op's nodes are what a registration takes that is for certain types; any other takes them all.

    Args:
        name: the op.
        call: the call on the op resolver, as `Registration.call` has it.
        types: the types of the nodes.
    """
    suffixes = [suffix for suffix in _PATTERNS.get(name, {}) if call.endswith(f"_{suffix}())")]
    if not suffixes:
        return True
    pattern = _PATTERNS[name][max(suffixes, key=len)]
    return all(pattern.fits(node) for node in types)
