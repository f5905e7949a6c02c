"""What the device says of itself, checked against the model and the firmware that should be on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tflm_forge.link.answers import Info, ModelInfo, Offender, RegisteredOp, SelfTest, TensorInfo
from tflm_forge.link.messages import Space
from tflm_forge.link.status import BOOT_STEPS, Status
from tflm_forge.model import Model, Tensor, op_name, op_set
from tflm_forge.ops.hash import format_op_hash, op_hash
from tflm_forge.verify.faults import explain_fault
from tflm_forge.verify.records import Check, Part

PART_NAME = "self-check"

_REBUILD = "build and flash again"


@dataclass(frozen=True, kw_only=True)
class ExpectedFirmware:
    """What should be on the device; None or empty where it is not known.

    Attributes:
        build_id: the build's id.
        board: the board's name.
        runtime: the runtime's name.
        ops: the registered ops, in any order, with the highest version of each.
        arena_bytes: the tensor arena's size.
        struct_bytes: sizes of TfLiteTensor and TfLiteEvalTensor as the runtime was compiled.
        elf: the ELF, to say where a fault was.
    """

    build_id: bytes | None = None
    board: str = ""
    runtime: str = ""
    ops: tuple[RegisteredOp, ...] | None = None
    arena_bytes: int | None = None
    struct_bytes: tuple[int, int] | None = None
    elf: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a device says of itself; `tensors` is None when inference is blocked."""

    info: Info
    selftest: SelfTest
    ops: tuple[RegisteredOp, ...]
    tensors: tuple[TensorInfo, ...] | None


def check_device(answers: Answers, model: Model, expected: ExpectedFirmware) -> Part:
    """Compare everything a device says of itself with what it should be, and list all that differs.

    Args:
        answers: what the device said.
        model: the model that should be in it.
        expected: the firmware that should be in it.
    """
    info = answers.info
    checks = [
        *_check_identity(info, expected),
        *_check_boot(answers.selftest, expected),
        *_check_model(info, answers.selftest, model),
        _check_ops(answers, model, expected),
        _check_structs(info, expected),
        _check_arena(info, expected),
        _check_stack(info, answers.selftest),
        _check_tensors(answers.tensors, model),
    ]
    return Part(name=PART_NAME, checks=tuple(checks))


def check_selected(selected: ModelInfo, tensors: Sequence[TensorInfo], model: Model) -> tuple[Check, ...]:
    """Compare what a device says of a model besides its first with what it should be."""
    hash_of_model = format_op_hash(op_hash(op_set(model)))
    return (
        _check_equal("model SHA-256", selected.model_sha256.hex(), model.sha256, _REBUILD),
        _check_equal("model bytes", str(selected.model_bytes), str(len(model.data)), _REBUILD),
        _check_equal("op hash of the model in flash", format_op_hash(selected.op_hash), hash_of_model, _REBUILD),
        _check_tensors(tensors, model),
    )


def _check_identity(info: Info, expected: ExpectedFirmware) -> list[Check]:
    checks = []
    if expected.build_id is not None:
        checks.append(
            _check_equal(
                "build",
                info.build_id.hex(),
                expected.build_id.hex(),
                "another build is on the device: flash again",
            )
        )
    if expected.board:
        checks.append(_check_equal("board", info.board, expected.board, _REBUILD))
    if expected.runtime:
        checks.append(_check_equal("runtime", info.runtime, expected.runtime, _REBUILD))
    return checks


def _check_boot(selftest: SelfTest, expected: ExpectedFirmware) -> list[Check]:
    checks = [
        Check(name=f"boot: {step}", passed=status.code == 0, detail=_words(status))
        for step, status in zip(BOOT_STEPS, selftest.steps, strict=True)
    ]
    checks += [
        Check(name=f"op {op_name(o.builtin_code, o.custom_name)}", passed=False, detail=_offense(o))
        for o in selftest.offenders
    ]
    unnamed = selftest.total_offenders - len(selftest.offenders)
    if unnamed:
        checks.append(Check(name="further ops", passed=False, detail=f"{unnamed} more can not run"))
    if selftest.fault is not None:
        words = "; ".join((selftest.fault.words, *explain_fault(selftest.fault, expected.elf)))
        checks.append(Check(name="fault", passed=False, detail=words))
    return checks


def _check_model(info: Info, selftest: SelfTest, model: Model) -> list[Check]:
    hash_of_model = format_op_hash(op_hash(op_set(model)))
    return [
        _check_equal("model SHA-256", info.model_sha256.hex(), model.sha256, _REBUILD),
        _check_equal("model bytes", str(info.model_bytes), str(len(model.data)), _REBUILD),
        _check_equal("op hash built in", format_op_hash(info.op_hash), hash_of_model, _REBUILD),
        _check_equal(
            "op hash of the model in flash",
            format_op_hash(selftest.op_hash),
            hash_of_model,
            "the model in flash is damaged or another one: flash again",
        ),
    ]


def _check_ops(answers: Answers, model: Model, expected: ExpectedFirmware) -> Check:
    registered = {(o.builtin_code, o.custom_name): o.max_version for o in answers.ops}
    problems = []
    for use in op_set(model):
        version = registered.get((use.builtin_code, use.custom_name))
        if version is None:
            problems.append(f"{use.name} is not registered")
        elif version < use.version:
            problems.append(f"{use.name}: version {use.version} is needed, {version} is supported")
    if expected.ops is not None:
        known = {(o.builtin_code, o.custom_name): o.max_version for o in expected.ops}
        for (code, custom_name), version in registered.items():
            name = op_name(code, custom_name)
            if (code, custom_name) not in known:
                problems.append(f"{name} is registered, but not in the manifest")
            elif known[code, custom_name] != version:
                problems.append(
                    f"{name}: supported up to version {version}, the manifest says {known[code, custom_name]}"
                )
    if answers.info.op_count != len(answers.ops):
        problems.append(f"INFO says {answers.info.op_count} ops, OPS lists {len(answers.ops)}")
    detail = "; ".join(problems) or f"{len(answers.ops)} registered"
    return Check(name="op resolver", passed=not problems, detail=detail)


def _check_structs(info: Info, expected: ExpectedFirmware) -> Check:
    sizes = (info.sizeof_tensor, info.sizeof_eval_tensor)
    found = f"TfLiteTensor {sizes[0]} bytes, TfLiteEvalTensor {sizes[1]} bytes"
    if expected.struct_bytes is not None and sizes != expected.struct_bytes:
        want = f"{expected.struct_bytes[0]} and {expected.struct_bytes[1]}"
        why = f"; the runtime has {want}: application and runtime were compiled with different flags"
        return Check(name="struct sizes", passed=False, detail=found + why)
    return Check(name="struct sizes", passed=sizes[0] > sizes[1] > 0, detail=found)


def _check_arena(info: Info, expected: ExpectedFirmware) -> Check:
    detail = f"{info.arena_used_bytes} of {info.arena_bytes} bytes used"
    passed = info.arena_used_bytes <= info.arena_bytes
    if expected.arena_bytes is not None and info.arena_bytes != expected.arena_bytes:
        passed = False
        detail += f", and the arena should have {expected.arena_bytes} bytes"
    return Check(name="tensor arena", passed=passed, detail=detail)


def _check_stack(info: Info, selftest: SelfTest) -> Check:
    detail = f"{info.stack_high_water_bytes} of {info.stack_bytes} bytes used"
    if not selftest.canary_ok:
        detail += ", and it has run over its end: give the board file a larger stack"
    passed = selftest.canary_ok and info.stack_high_water_bytes <= info.stack_bytes
    return Check(name="stack", passed=passed, detail=detail)


def _check_tensors(tensors: Sequence[TensorInfo] | None, model: Model) -> Check:
    if tensors is None:
        return Check(name="inputs and outputs", passed=False, detail="not known: inference is blocked")
    problems = []
    found = {(t.space, t.index): t for t in tensors}
    wanted = {
        (space, index): tensor
        for space, row in ((Space.INPUT, model.inputs), (Space.OUTPUT, model.outputs))
        for index, tensor in enumerate(row)
    }
    for key, tensor in wanted.items():
        on_device = found.pop(key, None)
        where = f"{key[0].name.lower()} {key[1]} ({tensor.name})"
        if on_device is None:
            problems.append(f"the device has no {where}")
        elif _form(on_device) != _form_of_model(tensor):
            problems.append(f"{where}: {_form(on_device)} on the device, {_form_of_model(tensor)} in the model")
    if found:
        problems.append(f"the device has {len(found)} more than the model")
    detail = "; ".join(problems) or f"{len(model.inputs)} and {len(model.outputs)}, as in the model"
    return Check(name="inputs and outputs", passed=not problems, detail=detail)


def _form(tensor: TensorInfo) -> str:
    quantization = f" scale {tensor.scale:.9g} zero point {tensor.zero_point}" if tensor.scale else ""
    return f"{tensor.type}{list(tensor.shape)} {tensor.size_bytes} bytes{quantization}"


def _form_of_model(tensor: Tensor) -> str:
    quantization = ""
    if tensor.quantization is not None and tensor.quantization.scales:
        zero_point = tensor.quantization.zero_points[0] if tensor.quantization.zero_points else 0
        quantization = f" scale {tensor.quantization.scales[0]:.9g} zero point {zero_point}"
    return f"{tensor.type}{list(tensor.shape)} {tensor.size_bytes} bytes{quantization}"


def _check_equal(name: str, found: str, expected: str, remedy: str) -> Check:
    if found == expected:
        return Check(name=name, passed=True, detail=found)
    return Check(name=name, passed=False, detail=f"{found} on the device, {expected} expected: {remedy}")


def _words(status: Status) -> str:
    return f"{status.words} ({status.remedy})" if status.remedy else status.words


def _offense(offender: Offender) -> str:
    if offender.supported_version == 0:
        return "the model in flash uses it, and it is not registered"
    return (
        f"the model in flash needs version {offender.needed_version}, "
        f"the kernels implement up to {offender.supported_version}"
    )
