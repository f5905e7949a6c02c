"""Shows verdicts and packages: as text and as JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tflm_forge.commands._ota import Candidate
    from tflm_forge.errors import ModelError
    from tflm_forge.gates.facts import FirmwareFacts
    from tflm_forge.gates.needs import ArenaNeed, ModelNeeds
    from tflm_forge.gates.package import Package
    from tflm_forge.gates.reasons import Judgement, Reason


def show_verdict(candidate: "Candidate", judgement: "Judgement", facts: "FirmwareFacts", arena: "ArenaNeed") -> None:
    """Show the verdict on one firmware as text."""
    from tflm_forge.console import show_table, show_text
    from tflm_forge.gates.verdict import find_slot

    model = candidate.model
    version = " ".join(part for part in (facts.runtime, facts.version) if part) or "unknown runtime"
    has = "unknown" if facts.arena_bytes is None else f"{facts.arena_bytes:,}"
    slot = find_slot(facts, model.name)
    rows = [
        ("model", f"{model.name}, {len(model.data):,} bytes, SHA-256 {model.sha256[:16]}..."),
        ("firmware", f"{facts.source} ({facts.kind}): {facts.board or 'unknown board'}, {version}"),
        ("arena", f"needs {arena.bytes:,} bytes ({arena.how}), the firmware has {has}"),
        ("flash", f"needs {len(model.data):,} bytes, there are {'unknown' if slot is None else f'{slot:,}'} for it"),
    ]
    show_table(f"{model.name}: {judgement.verdict}", ("", ""), rows)
    for reason in judgement.reasons:
        show_text(f"  - {reason.words} {reason.remedy}".rstrip())
    unproved = [reason.id for reason in judgement.reasons] == ["arena"] and not arena.is_measured
    if judgement.verdict == "firmware upgrade first" and not unproved:
        board = f" --board {facts.board}" if facts.board else ""
        show_text(f"  to do: build firmware with this model (forge build {model.name}{board}) and send that first")
    for note in judgement.notes:
        show_text(f"  note: {note.words}")
    for item in judgement.unknown:
        show_text(f"  not checked: {item}")


def show_verdict_as_json(
    needs: "ModelNeeds", judgement: "Judgement", facts: "FirmwareFacts", arena: "ArenaNeed"
) -> None:
    """Show the verdict on one firmware as JSON."""
    from tflm_forge.console import show_json
    from tflm_forge.gates.verdict import find_slot
    from tflm_forge.ops.hash import format_op_hash

    show_json(
        {
            "tflm_forge_ota": 1,
            "verdict": judgement.verdict,
            "reasons": [describe_reason(reason) for reason in judgement.reasons],
            "notes": [describe_reason(note) for note in judgement.notes],
            "not_checked": list(judgement.unknown),
            "model": {
                "file": needs.file,
                "sha256": needs.sha256,
                "bytes": needs.size_bytes,
                "op_hash": format_op_hash(needs.op_hash),
                "arena": {"bytes": arena.bytes, "how": arena.how, "measured": arena.is_measured},
            },
            "firmware": {
                "source": facts.source,
                "kind": facts.kind,
                "board": facts.board,
                "runtime": facts.runtime,
                "version": facts.version,
                "kernels": facts.kernel_set,
                "op_hash": None if facts.op_hash is None else format_op_hash(facts.op_hash),
                "arena_bytes": facts.arena_bytes,
                "model_slot_bytes": find_slot(facts, needs.file),
            },
        }
    )


def show_refusal(path: Path, error: "ModelError", *, as_json: bool) -> int:
    """Show the verdict on a file that is no whole model."""
    from tflm_forge.console import show_json, show_text

    reason = refusal_of(error)
    if as_json:
        show_json({"tflm_forge_ota": 1, "verdict": "reject", "reasons": [describe_reason(reason)]})
    else:
        show_text(f"{path.name}: reject")
        show_text(f"  - {reason.words} {reason.remedy}".rstrip())
    return int(error.exit_code)


def show_package(package: "Package", path: Path, *, checked: bool, as_json: bool) -> None:
    """Show what a package holds, and whether its signature was checked."""
    from tflm_forge.console import show_json, show_table
    from tflm_forge.gates.package import describe_package
    from tflm_forge.gates.package_layout import FORMAT

    if as_json:
        plain = describe_package(package)
        if package.signature is not None:
            plain["signature"]["checked"] = checked
        show_json({"tflm_forge_package": FORMAT, "file": path.as_posix(), **plain})
        return
    needs, target = package.needs, package.target
    signed = "none"
    if package.signature is not None:
        signed = f"Ed25519, key {package.signature.key_id.hex()}, " + ("right" if checked else "not checked: --key PUB")
    rows = [
        ("file", f"{path}, {package.size_bytes:,} bytes, format {FORMAT}, made by forge {package.forge_version}"),
        ("model", f"{needs.file}, {needs.size_bytes:,} bytes, SHA-256 {needs.sha256}"),
        ("ops", ", ".join(f"{use.name} {use.version}" for use in needs.ops)),
        ("op hash", f"0x{needs.op_hash:08X}"),
        ("arena", f"{package.arena.bytes:,} bytes, {package.arena.how}"),
        ("schema", needs.schema_version),
        ("for", f"{target.board}, {target.runtime} {target.version}, {target.kernel_set} kernels"),
        ("signature", signed),
    ]
    show_table(f"{path.name}: whole", ("", ""), rows)


def refusal_of(error: "ModelError") -> "Reason":
    """Return the reason for a model or package that can not be read."""
    from tflm_forge.gates.package import PackageError
    from tflm_forge.gates.reasons import Reason

    identity = error.reason if isinstance(error, PackageError) else "model-damaged"
    words = error.message if error.message.endswith(".") else f"{error.message}."
    return Reason(id=identity, severity="reject", words=words, remedy=error.hint)


def describe_reason(reason: "Reason") -> dict[str, Any]:
    """Return a reason for JSON."""
    return {
        "id": reason.id,
        "severity": reason.severity,
        "subject": reason.subject,
        "words": reason.words,
        "remedy": reason.remedy,
    }
