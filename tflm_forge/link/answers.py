"""What a device answers: one frozen dataclass an answer, read strictly from its bytes."""

from dataclasses import dataclass
from enum import IntEnum

from tflm_forge.errors import DeviceError
from tflm_forge.link.status import BOOT_STEPS, Status, status_of
from tflm_forge.link.wire import BodyReader

PROTOCOL_VERSION = 1

NO_DIFFERENCE = 0xFFFFFFFF
"""What SOAK answers as first different loop when there is none."""

_MIN_MTU_BYTES = 64
"""The least body a device must take: an offender or an op with a long name does not fit in less."""


class CounterKind(IntEnum):
    """What a device's ticks are."""

    NONE = 0
    CYCLES = 1
    EMULATED_TICKS = 2


_RESET_CAUSES = ("unknown", "power-on", "reset pin", "watchdog", "software", "other")

# TfLiteType of tensorflow/lite/core/c/c_api_types.h; these numbers differ from the schema's TensorType.
TFLITE_TYPES: dict[int, str] = {
    0: "NOTYPE",
    1: "FLOAT32",
    2: "INT32",
    3: "UINT8",
    4: "INT64",
    5: "STRING",
    6: "BOOL",
    7: "INT16",
    8: "COMPLEX64",
    9: "INT8",
    10: "FLOAT16",
    11: "FLOAT64",
    12: "COMPLEX128",
    13: "UINT64",
    14: "RESOURCE",
    15: "VARIANT",
    16: "UINT32",
    17: "UINT16",
    18: "INT4",
    19: "BFLOAT16",
}
"""Names of the tensor types a device reports, as the schema spells them."""


@dataclass(frozen=True, kw_only=True)
class Empty:
    """An answer without content."""

    @classmethod
    def read(cls, _read: BodyReader) -> "Empty":
        """Read nothing."""
        return cls()


@dataclass(frozen=True, kw_only=True)
class Info:
    """What the device is: the answer to INFO."""

    protocol: int
    mtu_bytes: int
    ready: bool
    reset_cause: int
    counter_kind: CounterKind
    ticks_per_second: int
    build_id: bytes
    model_sha256: bytes
    model_bytes: int
    op_hash: int
    op_count: int
    arena_bytes: int
    arena_used_bytes: int
    sizeof_tensor: int
    sizeof_eval_tensor: int
    stack_bytes: int
    stack_high_water_bytes: int
    board: str
    runtime: str
    runtime_version: str
    kernel_set: str
    forge_version: str

    @property
    def reset_cause_words(self) -> str:
        """Why the device started, in words."""
        known = self.reset_cause < len(_RESET_CAUSES)
        return _RESET_CAUSES[self.reset_cause] if known else f"cause {self.reset_cause}"

    @classmethod
    def read(cls, read: BodyReader) -> "Info":
        """Read the answer; its first byte decides whether the rest means anything."""
        protocol = read.u8()
        if protocol != PROTOCOL_VERSION:
            read.rest()
            older = "older" if protocol < PROTOCOL_VERSION else "newer"
            raise DeviceError(
                f"the device speaks version {protocol} of the link protocol, and this forge speaks {PROTOCOL_VERSION}",
                hint=f"The firmware is {older} than forge: build and flash it again with this forge.",
            )
        info = cls(
            protocol=protocol,
            mtu_bytes=read.u16(),
            ready=read.flag(),
            reset_cause=read.u8(),
            counter_kind=_counter_kind(read.u8()),
            ticks_per_second=read.u32(),
            build_id=read.raw(16),
            model_sha256=read.raw(32),
            model_bytes=read.u32(),
            op_hash=read.u32(),
            op_count=read.u16(),
            arena_bytes=read.u32(),
            arena_used_bytes=read.u32(),
            sizeof_tensor=read.u16(),
            sizeof_eval_tensor=read.u16(),
            stack_bytes=read.u32(),
            stack_high_water_bytes=read.u32(),
            board=read.str8(),
            runtime=read.str8(),
            runtime_version=read.str8(),
            kernel_set=read.str8(),
            forge_version=read.str8(),
        )
        if info.mtu_bytes < _MIN_MTU_BYTES:
            raise DeviceError(
                f"the device takes frame bodies of {info.mtu_bytes} bytes only; {_MIN_MTU_BYTES} are needed",
                hint="Raise link_mtu of the board and build again.",
            )
        return info


def _counter_kind(value: int) -> CounterKind:
    try:
        return CounterKind(value)
    except ValueError as error:
        raise DeviceError(
            f"the answer to INFO has the unknown counter kind {value}",
            hint="The firmware is newer than forge.",
        ) from error


@dataclass(frozen=True, kw_only=True)
class RegisteredOp:
    """One op of the device's op resolver, with the highest version its kernel implements."""

    builtin_code: int
    custom_name: str
    max_version: int


@dataclass(frozen=True, kw_only=True)
class OpPage:
    """Some of the registered ops: the answer to OPS."""

    total: int
    items: tuple[RegisteredOp, ...]

    @classmethod
    def read(cls, read: BodyReader) -> "OpPage":
        """Read one page."""
        total = read.u16()
        items = []
        for _ in range(read.u8()):
            code, version = read.i32(), read.u32()
            items.append(RegisteredOp(builtin_code=code, max_version=version, custom_name=read.str8()))
        return cls(total=total, items=tuple(items))


@dataclass(frozen=True, kw_only=True)
class Offender:
    """An op of the model this firmware can not run; `supported_version` is 0 when it is not registered."""

    builtin_code: int
    custom_name: str
    needed_version: int
    supported_version: int


@dataclass(frozen=True, kw_only=True)
class FaultRecord:
    """The registers of a fault."""

    kind: int
    pc: int
    lr: int
    cfsr: int
    hfsr: int
    bfar: int
    mmfar: int
    sp: int

    @property
    def words(self) -> str:
        """The fault in one line."""
        return (
            f"{status_of(self.kind).words}: PC 0x{self.pc:08X}, LR 0x{self.lr:08X}, SP 0x{self.sp:08X}, "
            f"CFSR 0x{self.cfsr:08X}, HFSR 0x{self.hfsr:08X}, "
            f"BFAR 0x{self.bfar:08X}, MMFAR 0x{self.mmfar:08X}"
        )

    @classmethod
    def read(cls, read: BodyReader) -> "FaultRecord":
        """Read the eight registers."""
        kind, pc, lr, cfsr, hfsr, bfar, mmfar, sp = (read.u32() for _ in range(8))
        return cls(kind=kind, pc=pc, lr=lr, cfsr=cfsr, hfsr=hfsr, bfar=bfar, mmfar=mmfar, sp=sp)


@dataclass(frozen=True, kw_only=True)
class SelfTest:
    """The boot check's outcome: the answer to SELFTEST."""

    steps: tuple[Status, ...]
    op_hash: int
    canary_ok: bool
    fault: FaultRecord | None
    total_offenders: int
    offenders: tuple[Offender, ...]

    @classmethod
    def read(cls, read: BodyReader) -> "SelfTest":
        """Read the answer; the steps are those of `BOOT_STEPS`, in order."""
        count = read.u8()
        if count != len(BOOT_STEPS):
            raise DeviceError(
                f"the answer to SELFTEST has {count} boot steps instead of {len(BOOT_STEPS)}",
                hint="Firmware and forge do not fit together: build the firmware again with this forge.",
            )
        steps = tuple(status_of(read.u16()) for _ in range(count))
        op_hash, canary_ok = read.u32(), read.flag()
        fault = FaultRecord.read(read) if read.flag() else None
        total = read.u16()
        offenders = []
        for _ in range(read.u8()):
            code, needed, supported = read.i32(), read.u32(), read.u32()
            offenders.append(
                Offender(
                    builtin_code=code,
                    needed_version=needed,
                    supported_version=supported,
                    custom_name=read.str8(),
                )
            )
        return cls(
            steps=steps,
            op_hash=op_hash,
            canary_ok=canary_ok,
            fault=fault,
            total_offenders=total,
            offenders=tuple(offenders),
        )


@dataclass(frozen=True, kw_only=True)
class TensorInfo:
    """One input or output as the device has it; `type` is spelled as in the model's schema."""

    space: int
    index: int
    type: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class TensorPage:
    """Some of the inputs and outputs: the answer to TENSORS."""

    total: int
    items: tuple[TensorInfo, ...]

    @classmethod
    def read(cls, read: BodyReader) -> "TensorPage":
        """Read one page."""
        total = read.u16()
        items = []
        for _ in range(read.u8()):
            space, index, code, dims = read.u8(), read.u8(), read.u8(), read.u8()
            if space > 1 or code not in TFLITE_TYPES:
                raise DeviceError(
                    f"the answer to TENSORS has a tensor of space {space} and type {code}",
                    hint="Space is 0 or 1, type a TfLiteType: the firmware is newer than forge.",
                )
            items.append(
                TensorInfo(
                    space=space,
                    index=index,
                    type=TFLITE_TYPES[code],
                    shape=tuple(read.i32() for _ in range(dims)),
                    scale=read.f32(),
                    zero_point=read.i32(),
                    size_bytes=read.u32(),
                )
            )
        return cls(total=total, items=tuple(items))


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """One of several models, and how many there are: the answer to SELECT."""

    model_count: int
    model_bytes: int
    model_sha256: bytes
    op_hash: int
    name: str

    @classmethod
    def read(cls, read: BodyReader) -> "ModelInfo":
        """Read the answer."""
        return cls(
            model_count=read.u8(),
            model_bytes=read.u32(),
            model_sha256=read.raw(32),
            op_hash=read.u32(),
            name=read.str8(),
        )


@dataclass(frozen=True, kw_only=True)
class LayerInfo:
    """Size and CRC-32 of an operator's first output: the answer to LAYER without a length."""

    size_bytes: int
    crc: int

    @classmethod
    def read(cls, read: BodyReader) -> "LayerInfo":
        """Read the answer."""
        return cls(size_bytes=read.u32(), crc=read.u32())


@dataclass(frozen=True, kw_only=True)
class InvokeResult:
    """How the inferences went and how many ticks they took: the answer to INVOKE."""

    status: Status
    total_ticks: int
    min_ticks: int
    max_ticks: int

    @classmethod
    def read(cls, read: BodyReader) -> "InvokeResult":
        """Read the answer."""
        return cls(
            status=status_of(read.u16()),
            total_ticks=read.u64(),
            min_ticks=read.u64(),
            max_ticks=read.u64(),
        )


@dataclass(frozen=True, kw_only=True)
class SoakResult:
    """The answer to SOAK; `first_difference` is the loop whose outputs differed, or None."""

    status: Status
    loops_done: int
    crc: int
    first_difference: int | None
    stack_high_water_bytes: int

    @classmethod
    def read(cls, read: BodyReader) -> "SoakResult":
        """Read the answer."""
        status, done, crc, first, high_water = read.u16(), read.u32(), read.u32(), read.u32(), read.u32()
        return cls(
            status=status_of(status),
            loops_done=done,
            crc=crc,
            first_difference=None if first == NO_DIFFERENCE else first,
            stack_high_water_bytes=high_water,
        )


@dataclass(frozen=True, kw_only=True)
class ProfilePage:
    """The ticks of some operators: the answer to PROFILE."""

    total: int
    items: tuple[int, ...]

    @classmethod
    def read(cls, read: BodyReader) -> "ProfilePage":
        """Read one page."""
        total = read.u16()
        return cls(total=total, items=tuple(read.u64() for _ in range(read.u8())))
