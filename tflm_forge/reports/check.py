"""The outcome of `forge check` as lines of text and as a value for JSON."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tflm_forge.gates.findings import CheckReport, Finding
from tflm_forge.manifest.making import relative_name


def text_lines(report: CheckReport, base: Path) -> Iterator[str]:
    """Yield the report for a person: each finding with its place, then the differences, then the verdict.

    Args:
        report: the outcome.
        base: folder that paths are shown from.
    """
    for finding in report.findings:
        yield f"{place_of(finding, base)}: {finding.severity}: {finding.words} [{finding.rule}]"
        for line in finding.remedy.splitlines():
            yield f"    {line}"
    for diff in report.diffs:
        yield ""
        yield from diff.text.splitlines()
    if report.findings:
        yield ""
    for name in report.skipped:
        yield f"off in forge.toml: {name}"
    yield summary(report)


def summary(report: CheckReport) -> str:
    """Return the verdict in one line."""
    errors = sum(finding.severity == "error" for finding in report.findings)
    warnings = len(report.findings) - errors
    looked = [
        _count(len(report.manifests), "manifest"),
        _count(len(report.models), "model"),
        *([_count(len(report.resolvers), "resolver source")] if report.resolvers else []),
    ]
    verdict = "passed" if report.passed else "failed"
    return f"{verdict}: {', '.join(looked)}; {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def as_json(report: CheckReport, base: Path) -> dict[str, Any]:
    """Return the report as a value for JSON; paths are from a folder, with slashes."""
    return {
        "tflm_forge_check": 1,
        "passed": report.passed,
        "manifests": [relative_name(path, base) for path in report.manifests],
        "models": [relative_name(path, base) for path in report.models],
        "resolvers": [relative_name(path, base) for path in report.resolvers],
        "skipped": list(report.skipped),
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "file": relative_name(finding.path, base),
                "line": finding.line,
                "words": finding.words,
                "remedy": finding.remedy,
            }
            for finding in report.findings
        ],
        "diffs": [{"file": relative_name(diff.path, base), "diff": diff.text} for diff in report.diffs],
    }


def place_of(finding: Finding, base: Path) -> str:
    """Return file and line of a finding, as compilers write them."""
    name = relative_name(finding.path, base)
    return name if finding.line is None else f"{name}:{finding.line}"


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
