"""Rules about custom ops: names, delegates, options."""

import shlex
from collections.abc import Iterator

from tflm_forge.doctor.names import FLEX_PREFIX, KNOWN_ELSEWHERE, TFLM_OPS, find_builtin, find_delegate, find_meant
from tflm_forge.doctor.records import Hit, Subject, rule
from tflm_forge.model import CUSTOM_CODE, OpUse, enum_value
from tflm_forge.model.schema import enum_names

_DELEGATE_CODE = enum_value("BuiltinOperator", "DELEGATE")
_NPU_OP = "ethos-u"
_DETECTION = "TFLite_Detection_PostProcess"

_READS_OPTIONS = frozenset({
    _DETECTION, "SignalDelay", "SignalEnergy", "SignalFilterBank", "SignalFilterBankLog",
    "SignalFilterBankSpectralSubtraction", "SignalFramer", "SignalIrfft", "SignalOverlapAdd", "SignalPCAN",
    "SignalRfft", "SignalStacker", "SignalWindow",
})  # fmt: skip
"""Custom ops of TFLM 90b983c2b whose Init parses a flexbuffer without looking whether there is one."""


def _custom_ops(subject: Subject) -> Iterator[OpUse]:
    return (use for use in subject.ops if use.builtin_code == CUSTOM_CODE)


def _has_kernel(subject: Subject, use: OpUse) -> bool:
    """Return whether the runtime or the user has a kernel; a row of version 0 is a name without one."""
    row = subject.catalogue.find(use) if subject.catalogue else None
    return row is not None and row.max_version > 0


@rule(
    id="delegate-op",
    severity="error",
    title="a model prepared for a delegate or an accelerator",
    why="Compilers and delegates replace layers by one custom op that holds code for their own chip. TFLM runs layers, "
    "not that code.",
    remedy="Give the model as the converter wrote it, before it was prepared.",
    source="coral.ai/docs/edgetpu/compiler; pypi.org/project/ethos-u-vela; kernels/ethosu.cc; schema.fbs, DELEGATE",
)
def delegate_op(subject: Subject) -> Iterator[Hit]:
    """Custom ops of known delegates that no kernel is there for, and the op DELEGATE."""
    for use in subject.ops:
        where = f"Layer {use.first_layer!r} uses {use.name}"
        if use.builtin_code == _DELEGATE_CODE:
            yield Hit(layer=use.first_layer, words=f"{where}: the file was saved with a delegate applied.")
        delegate = find_delegate(use.custom_name) if use.builtin_code == CUSTOM_CODE else None
        if delegate is None or _has_kernel(subject, use):
            continue
        # Without a runtime nothing is known of a kernel for an NPU that the firmware may have.
        if use.custom_name != _NPU_OP or subject.catalogue is not None:
            words = f"{where} ({delegate.name}): {delegate.words}. No microcontroller runs that with TFLM alone."
            yield Hit(layer=use.first_layer, words=words, remedy=delegate.remedy)


@rule(
    id="delegate-metadata",
    severity="note",
    title="metadata of a delegate or an accelerator",
    why="Tools for phones and NPUs leave metadata in the file; TFLM ignores it and runs the layers.",
    source="schema.fbs, table Metadata",
)
def delegate_metadata(subject: Subject) -> Iterator[Hit]:
    """Entries of metadata that belong to a delegate."""
    for item in subject.model.metadata:
        delegate = find_delegate(item.name)
        if delegate is not None:
            yield Hit(
                words=f"The metadata {item.name!r} is for {delegate.name}: TFLM does not look at it. If "
                f"{delegate.words}, give the model from before."
            )


@rule(
    id="unknown-custom-op",
    severity="error",
    needs="runtime",
    title="a custom op without a kernel",
    why="A custom op is found by its exact name. The runtime has no kernel of that name, and forge.toml has none.",
    remedy="Convert the model without it.",
    source="MicroMutableOpResolver::FindOp(name); tflite-micro#595, #2488, #2357",
)
def unknown_custom_op(subject: Subject) -> Iterator[Hit]:
    """Custom ops that neither the catalogue nor forge.toml has, with the name that may be meant."""
    catalogue = subject.catalogue
    if catalogue is None:
        return
    for use in _custom_ops(subject):
        name = use.custom_name
        if catalogue.find(use) is not None or name.startswith(FLEX_PREFIX) or find_delegate(name) is not None:
            continue
        words = (
            f"{name} (first used by layer {use.first_layer!r}, {use.count}x): runtime {catalogue.runtime} "
            f"{catalogue.version} has no such custom op."
        )
        yield Hit(layer=use.first_layer, words=words, remedy=_say_what_is_meant(name, subject))


def _say_what_is_meant(name: str, subject: Subject) -> str:
    rows = subject.catalogue.ops.values() if subject.catalogue else ()
    own = f"`forge op new {shlex.quote(name)}` starts a kernel of your own."
    if name in TFLM_OPS:
        where = "a newer commit of TFLM has it" if subject.runtime == "tflm" else "TFLM has it: --runtime tflm"
        return f"{where[0].upper()}{where[1:]}. {own}"
    meant = find_meant(name, [*(row.custom_name for row in rows if row.custom_name), *sorted(TFLM_OPS)])
    if meant:
        return (
            f"Nearest: {meant!r}. Names count letter for letter: when that is meant, give the op this name where the "
            f"model is made, or write the kernel under the model's name: {own}"
        )
    if name in KNOWN_ELSEWHERE:
        return f"It is {KNOWN_ELSEWHERE[name]} {own}"
    builtin = find_builtin(name, enum_names("BuiltinOperator"))
    if builtin:
        return f"TFLite has it as the builtin op {builtin}: convert again with a current TensorFlow. {own}"
    return f"{own} Or convert the model without it."


@rule(
    id="custom-op",
    severity="note",
    title="custom ops",
    why="A custom op needs a kernel of its exact name: TFLM's own, or yours. TFLite for phones has other ones, so the "
    "reference for its numbers is TFLM's interpreter.",
    source="tflite-micro#595, #2488; TFLM's 14 Signal ops are not in TFLite",
)
def custom_op(subject: Subject) -> Iterator[Hit]:
    """Custom ops that have a kernel, or may have one."""
    for use in _custom_ops(subject):
        if use.custom_name.startswith(FLEX_PREFIX) or find_delegate(use.custom_name) is not None:
            continue
        row = subject.catalogue.find(use) if subject.catalogue else None
        if subject.catalogue is not None and row is None:
            continue
        words = f"Layer {use.first_layer!r} uses the custom op {use.custom_name}, {use.count}x."
        if row is None:
            remedy = "The firmware needs a kernel for it: the runtime's own, or yours."
        elif row.is_own:
            remedy = "Its kernel is yours, from [[op]] of forge.toml."
        elif use.custom_name == _DETECTION:
            remedy = "TFLM has it, in float: its results differ from TFLite's in the last digits."
        else:
            remedy = "TFLM has it; TFLite for phones has not."
        yield Hit(layer=use.first_layer, words=words, remedy=remedy)


@rule(
    id="custom-options-missing",
    severity="error",
    needs="runtime",
    title="a custom op of TFLM without its options",
    why="TFLM's custom kernels parse their options as a flexbuffer without looking whether there are any: the device "
    "faults while it starts.",
    remedy="Make the model with the tool the op belongs to: the detection head of the Object Detection API, or "
    "TFLM's audio preprocessor.",
    source="detection_postprocess.cc, Init; signal/micro/kernels/*.cc, Init; tensorflow#43565",
)
def custom_options_missing(subject: Subject) -> Iterator[Hit]:
    """Nodes of the runtime's own custom ops that read options and have none."""
    for node in subject.kernel_nodes:
        operator = node.operator
        if operator.custom_name in _READS_OPTIONS and not operator.custom_options:
            yield Hit(
                layer=node.label,
                words=f"Layer {node.label!r} ({operator.custom_name}) has no options, and its kernel reads them.",
                kind=operator.custom_name,
            )
