"""`forge doctor`: why a model will not run, or what this machine lacks to build it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import (
    AllowVersionOption,
    BoardOption,
    JsonOption,
    KernelSetOption,
    RuntimeOption,
    choose_board,
    collect_silence,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tflm_forge.doctor import Finding, Subject

_STATES = {"ok": "ok", "missing": "MISSING", "optional": "-", "problem": "PROBLEM"}


def run(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="The .tflite file; without one, this machine is examined.")
    ] = None,
    runtime: RuntimeOption = None,
    board: BoardOption = None,
    kernel_set: KernelSetOption = None,
    allow_version: AllowVersionOption = None,
    rules: Annotated[bool, typer.Option("--rules", help="List all rules, what they look for and why.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find why a model will not run: each cause with its layer and remedy; exit 3 when the runtime can not run it.

    Without a model: compilers, emulator, runtimes, serial ports, and what to install; exit 4 when a needed tool is
    missing. Rules are silenced in forge.toml: [doctor] silence = { rule-id = "reason" }.

    Example: forge doctor model.tflite --board stm32f4
    """
    if rules:
        _show_rules(as_json=as_json)
    elif model is None:
        _examine_machine(as_json=as_json)
    else:
        _examine_model(model, runtime, board, kernel_set, allow_version or [], as_json=as_json)


def _show_rules(*, as_json: bool) -> None:
    from tflm_forge.console import show_json, show_table
    from tflm_forge.doctor import RULES

    if as_json:
        keys = ("id", "severity", "needs", "title", "why", "remedy", "source")
        show_json({"tflm_forge_rules": 1, "rules": [{key: getattr(rule, key) for key in keys} for rule in RULES]})
        return
    rows = [(rule.id, rule.severity, rule.title) for rule in RULES]
    show_table(f"{len(RULES)} rules; docs/doctor.md says more of each", ("id", "severity", "what it finds"), rows)


def _examine_model(
    path: Path,
    runtime: str | None,
    board: str | None,
    kernel_set: str | None,
    allow_version: "list[str]",
    *,
    as_json: bool,
) -> None:
    from tflm_forge.config import BuildSettings, load_config
    from tflm_forge.console import show_json
    from tflm_forge.doctor import Subject, diagnose
    from tflm_forge.errors import ModelError
    from tflm_forge.model import load_model
    from tflm_forge.ops.catalogue import check_allowed, parse_allow_versions
    from tflm_forge.runtimes import default_runtime, load_catalogue

    config = load_config(Path.cwd())
    table = config.build
    board_name = board or table.board
    settings = BuildSettings(
        runtime=runtime or table.runtime or default_runtime(),
        kernel_set=kernel_set or table.kernel_set,
        allow_versions=parse_allow_versions([*table.allow_version, *allow_version]),
        own_ops=config.op,
        silence=collect_silence(config),
    )
    subject = Subject(
        model=load_model(path),
        catalogue=load_catalogue(settings),
        board=choose_board(board_name) if board_name else None,
        allow_versions=settings.allow_versions,
    )
    if subject.catalogue is not None:
        check_allowed(settings.allow_versions, subject.catalogue)
    findings = diagnose(subject, settings.silence)
    standing = [finding for finding in findings if finding.stands]
    if as_json:
        show_json(_as_json(subject, findings))
    else:
        _show_findings(subject, findings)
    if standing:
        ids = ", ".join(dict.fromkeys(finding.id for finding in standing))
        raise ModelError(
            f"{path.name}: {_count(len(standing), 'error')} ({ids}) with runtime {_runtime(subject)}",
            hint='forge.toml can silence a rule: [doctor] silence = { id = "why" }.',
        )


def _show_findings(subject: "Subject", findings: "Sequence[Finding]") -> None:
    from tflm_forge.console import show_text

    on = f" on {subject.board.name}" if subject.board else ""
    show_text(f"{subject.model.name} with runtime {_runtime(subject)}{on}")
    for finding in findings:
        mark = "silenced" if finding.silenced else finding.severity
        show_text(f"\n{mark}: {finding.id}" + (f"  layer {finding.layer!r}" if finding.layer else ""))
        show_text(f"  {finding.words}")
        if finding.remedy:
            show_text(f"  -> {finding.remedy}")
        if finding.silenced:
            show_text(f"  silenced in forge.toml: {finding.silenced}")
    counts = [
        _count(sum(f.severity == severity and not f.silenced for f in findings), severity)
        for severity in ("error", "warning", "note")
    ]
    silenced = sum(bool(finding.silenced) for finding in findings)
    show_text("\n" + ", ".join([*counts, *([f"{silenced} silenced"] if silenced else [])]))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _runtime(subject: "Subject") -> str:
    return f"{subject.catalogue.runtime} {subject.catalogue.version}" if subject.catalogue else ""


def _as_json(subject: "Subject", findings: "Sequence[Finding]") -> dict[str, object]:
    return {
        "tflm_forge_doctor": 1,
        "model": subject.model.name,
        "sha256": subject.model.sha256,
        "runtime": _runtime(subject),
        "board": subject.board.name if subject.board else None,
        "runs": not any(finding.stands for finding in findings),
        "findings": [finding_json(finding) for finding in findings],
    }


def finding_json(finding: "Finding") -> dict[str, object]:
    """Return a finding as JSON has it."""
    return {
        "id": finding.id,
        "severity": finding.severity,
        "layer": finding.layer,
        "words": finding.words,
        "remedy": finding.remedy,
        "silenced": finding.silenced or None,
    }


def _examine_machine(*, as_json: bool) -> None:
    from dataclasses import asdict

    from tflm_forge.console import show_json, show_table, show_text
    from tflm_forge.environment import examine_environment, install_line
    from tflm_forge.errors import ToolError

    parts = examine_environment()
    install = install_line(parts)
    if as_json:
        show_json({"tflm_forge_environment": 1, "install": install or None, "parts": [asdict(part) for part in parts]})
    else:
        rows = [
            (_STATES[p.state], p.name, p.purpose, p.found, p.remedy or (" ".join(p.apt) if p.found == "-" else ""))
            for p in parts
        ]
        show_table("This machine", ("", "what", "what for", "found", "to get it"), rows)
        if install:
            show_text(f"\nTo install what is needed: {install}")
    missing = [part.name for part in parts if part.state == "missing"]
    if missing:
        raise ToolError(f"missing: {', '.join(missing)}", hint=f"Install: {install}")
