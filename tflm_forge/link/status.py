"""The status codes a device answers with: one table for firmware and host."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Status:
    """One status code: the number on the wire, its C++ name, its words and the remedy."""

    code: int
    name: str
    words: str
    remedy: str


STATUSES: tuple[Status, ...] = tuple(
    Status(code=code, name=name, words=words, remedy=remedy)
    for code, name, words, remedy in (
        (0, "Ok", "ok", ""),
        (1, "NotRun", "not run, because an earlier step failed", "Mend the earlier step first."),
        # Boot step 2: the model in flash.
        (
            0x10,
            "ModelMisaligned",
            "the model is not 16-byte aligned in flash",
            "Keep the alignment of model_data.S.",
        ),
        (
            0x11,
            "ModelIdentifier",
            "the model has no TFL3 identifier",
            "The flash is damaged or erased: flash again.",
        ),
        (
            0x12,
            "ModelSchema",
            "the model's schema version is not 3",
            "Convert the model with a current converter.",
        ),
        (
            0x13,
            "ModelTruncated",
            "the model's offsets lead out of its bytes",
            "The flash is damaged: flash again.",
        ),
        # Boot step 3: registration.
        (
            0x20,
            "RegisterFailed",
            "the op resolver refused an op",
            "The op resolver was edited: run forge generate.",
        ),
        (
            0x21,
            "RegisterCount",
            "the op resolver holds another number of ops than the manifest",
            "Run forge generate.",
        ),
        # Boot step 4: the model against this firmware's op set.
        (0x30, "OpHash", "the model's op hash is not the one built in", "Build the firmware for this model."),
        (
            0x31,
            "OpMissing",
            "the model uses an op that is not registered",
            "Build the firmware for this model.",
        ),
        (
            0x32,
            "OpVersion",
            "the model needs a higher op version than the kernels implement",
            "Update the runtime.",
        ),
        # Boot step 5: memory.
        (
            0x40,
            "ArenaTooSmall",
            "the tensor arena is too small",
            "Let forge measure the arena: drop --arena.",
        ),
        (
            0x41,
            "AllocateFailed",
            "AllocateTensors failed in an operator",
            "Most often the tensor arena is too small: build without --arena, forge measures it. Else build with "
            "--profile debug and read the log lines.",
        ),
        # Requests.
        (
            0x50,
            "InvokeFailed",
            "a kernel failed during inference",
            "Build with --profile debug and read the log lines.",
        ),
        (0x51, "NotReady", "inference is blocked by a failed boot step", "SELFTEST says which step failed."),
        (
            0x52,
            "UnknownRequest",
            "the firmware does not know this request",
            "The firmware is older than forge: rebuild.",
        ),
        (
            0x53,
            "BadRequest",
            "the request's body has the wrong length or values",
            "Host and firmware differ: rebuild.",
        ),
        (0x54, "NoSuchTensor", "the model has no such tensor", "TENSORS lists what there is."),
        (
            0x55,
            "OutOfRange",
            "offset and length lead out of the tensor",
            "TENSORS gives each tensor's bytes.",
        ),
        (
            0x56,
            "Mismatch",
            "outputs changed between runs of the same input",
            "Look for a kernel that keeps state.",
        ),
        (0x57, "StackCanary", "the stack has run over its end", "Give the board file a larger stack."),
        # Faults.
        (0x60, "Fault", "the processor took a fault", "The record gives PC, LR and CFSR."),
        (0x61, "Aborted", "the runtime called abort", "The arena may be too small, or the model damaged."),
    )
)

BOOT_STEPS: tuple[str, ...] = ("board", "model", "registration", "self-check", "allocation")
"""The boot steps in order; a device reports one status for each (see docs/firmware.md)."""


def status_of(code: int) -> Status:
    """Return the status with this code; an unknown code gives a status that says so."""
    for status in STATUSES:
        if status.code == code:
            return status
    return Status(code=code, name="Unknown", words=f"unknown status 0x{code:02X}", remedy="The firmware is newer.")
