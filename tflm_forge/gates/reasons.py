"""Verdicts and the reasons for them, whatever they are found by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tflm_forge.config import ModelCompatibilityTable
from tflm_forge.errors import CheckError, ModelError
from tflm_forge.gates.needs import ArenaNeed

Verdict = Literal["compatible", "firmware upgrade first", "reject"]
Severity = Literal["reject", "upgrade", "note"]

_TITLES = {
    "op-missing": "{} is not registered",
    "op-version": "{} in too low a version",
    "op-type": "{} for other tensor types",
    "unknown-op": "{} is unknown to every runtime",
    "op-type-nowhere": "{} has tensor types that no runtime takes",
    "op-hash": "another op hash",
    "arena": "arena too small",
    "flash": "flash too small",
    "schema": "older TFLite schema",
    "resource-variables": "too few resource variables",
    "compression": "compressed constants",
}


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One thing to know about a model on a firmware.

    Attributes:
        id: a word for the kind of reason, the same from release to release.
        severity: `reject` when no firmware can run the model, `upgrade` when this one can not, else `note`.
        subject: the op it is about; empty when it is about no op.
        words: a full sentence.
        remedy: what to do, a full sentence; empty when the words say it.
    """

    id: str
    severity: Severity
    subject: str = ""
    words: str
    remedy: str = ""

    @property
    def title(self) -> str:
        """What firmwares with this reason have in common, in a few words."""
        return _TITLES.get(self.id, self.id.replace("-", " ")).format(self.subject)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict on one model and one firmware.

    Attributes:
        verdict: what to do.
        reasons: what stands against the model, the gravest first.
        notes: what else is worth knowing.
        unknown: what the source of the firmware's facts does not say, and so was not checked.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...]
    notes: tuple[Reason, ...] = ()
    unknown: tuple[str, ...] = ()


def exit_code(verdict: Verdict, policy: ModelCompatibilityTable) -> int:
    """Return the exit code of a verdict: 0 when the model may be sent, 7 when a firmware has to be first, 3 never."""
    if verdict == "reject":
        return ModelError.exit_code
    held = verdict != "compatible" and policy.require_firmware_upgrade_first
    return CheckError.exit_code if held else 0


def judge_arena(arena_bytes: int, need: ArenaNeed) -> list[Reason]:
    """Return the reason against a model that needs a larger arena than there is; empty when it fits."""
    if need.bytes <= arena_bytes or need.is_moot:
        return []
    words = (
        f"The model needs a tensor arena of {need.bytes:,} bytes ({need.how}), and the firmware has {arena_bytes:,}."
    )
    remedy = "" if need.is_measured else "The estimate is generous: measuring, where that is possible, gives less."
    return [Reason(id="arena", severity="upgrade", words=words, remedy=remedy)]


def conclude(reasons: Sequence[Reason], *, notes: Sequence[Reason] = (), unknown: Sequence[str] = ()) -> Judgement:
    """Return the verdict that follows from all reasons."""
    stopping = sorted(reasons, key=lambda reason: reason.severity != "reject")
    verdict: Verdict = "compatible"
    if stopping:
        verdict = "reject" if stopping[0].severity == "reject" else "firmware upgrade first"
    return Judgement(verdict=verdict, reasons=tuple(stopping), notes=tuple(notes), unknown=tuple(unknown))
