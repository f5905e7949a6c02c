"""The findings of `forge check` as GitHub's workflow commands, which mark the lines of a pull request.

The form and its escapes are those of GitHub's documentation, "Workflow commands for GitHub Actions", and of
actions/toolkit, packages/core/src/command.ts.
"""

from collections.abc import Iterator
from pathlib import Path

from tflm_forge.gates.findings import CheckReport
from tflm_forge.manifest.making import relative_name


def github_lines(report: CheckReport, root: Path) -> Iterator[str]:
    """Yield one workflow command a finding.

    Args:
        report: the outcome.
        root: the repository's root, which GitHub counts paths from.
    """
    for finding in report.findings:
        properties = {"file": relative_name(finding.path, root)}
        if finding.line is not None:
            properties["line"] = str(finding.line)
        properties["title"] = f"forge check: {finding.rule}"
        words = f"{finding.words}\n{finding.remedy}".strip()
        shown = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
        yield f"::{finding.severity} {shown}::{_escape(words)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
