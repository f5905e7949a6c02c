"""The findings of `forge check` as SARIF 2.1.0 (OASIS), which code hosts show beside the code."""

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tflm_forge import __version__
from tflm_forge.gates.findings import RULES, CheckReport, Finding
from tflm_forge.manifest.making import relative_name

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_BASE = "SRCROOT"


def render_sarif(report: CheckReport, root: Path) -> bytes:
    """Return the report as a SARIF log.

    Args:
        report: the outcome.
        root: the repository's root, which paths are counted from.
    """
    rules = list(RULES)
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "forge check",
                        "version": __version__,
                        "rules": [
                            {"id": rule, "shortDescription": {"text": words}, "help": {"text": words}}
                            for rule, words in RULES.items()
                        ],
                    }
                },
                "invocations": [{"executionSuccessful": True}],
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_BASE: {"description": {"text": "The root of the repository."}}},
                "results": [_result(finding, rules.index(finding.rule), root) for finding in report.findings],
            }
        ],
    }
    return (json.dumps(log, indent=2) + "\n").encode()


def _result(finding: Finding, index: int, root: Path) -> dict[str, Any]:
    name = relative_name(finding.path, root)
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(name), "uriBaseId": _BASE}}
    if finding.line is not None:
        place["region"] = {"startLine": finding.line}
    words = f"{finding.words} {finding.remedy}".strip()
    identity = hashlib.sha256("\0".join((finding.rule, name, finding.words)).encode()).hexdigest()
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": words},
        "locations": [{"physicalLocation": place}],
        # The same finding keeps its identity when lines above it come or go.
        "partialFingerprints": {"forgeFinding/v1": identity[:32]},
    }
