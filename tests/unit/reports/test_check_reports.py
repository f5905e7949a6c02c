"""SARIF and GitHub annotations of `forge check`: forms, paths and escapes, by independent readers of both."""

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog

from tflm_forge.gates.findings import RULES, CheckReport, Finding, ManifestDiff
from tflm_forge.reports.annotations import github_lines
from tflm_forge.reports.check import as_json, text_lines
from tflm_forge.reports.sarif import render_sarif

ODD = "100% a, b: c\r\nsecond line ::error::"


@pytest.fixture
def report(tmp_path: Path) -> CheckReport:
    """Return a failed check of a project in a folder of a repository, with odd names and words."""
    project = tmp_path / "my firmware"
    return CheckReport(
        folder=project,
        manifests=(project / "ops.manifest.yaml",),
        findings=(
            Finding(rule="manifest-stale", path=project / "ops.manifest.yaml", line=7, words=ODD, remedy="Do this."),
            Finding(rule="model-missing", path=project / "ü,:%.tflite", words="It is gone."),
            Finding(rule="resolver-capacity", severity="warning", path=tmp_path / "a.cc", line=3, words="N is 3."),
        ),
        diffs=(ManifestDiff(path=project / "ops.manifest.yaml", text="-a\n+b\n"),),
    )


def test_sarif_has_the_form_of_the_standard(report: CheckReport, tmp_path: Path) -> None:
    log = json.loads(render_sarif(report, tmp_path))
    SarifLog.model_validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("manifest-stale", "error"), ("model-missing", "error"), ("resolver-capacity", "warning")
    ]  # fmt: skip
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    uris = [place["artifactLocation"]["uri"] for place in places]
    assert [unquote(uri) for uri in uris] == ["my firmware/ops.manifest.yaml", "my firmware/ü,:%.tflite", "a.cc"]
    assert all(re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri) for uri in uris)
    assert [place.get("region") for place in places] == [{"startLine": 7}, None, {"startLine": 3}]


def test_finding_keeps_its_identity_when_lines_move(report: CheckReport, tmp_path: Path) -> None:
    moved = replace(report, findings=tuple(replace(f, line=(f.line or 1) + 5) for f in report.findings))
    prints = [
        [r["partialFingerprints"] for r in json.loads(render_sarif(each, tmp_path))["runs"][0]["results"]]
        for each in (report, moved)
    ]
    assert prints[0] == prints[1]
    assert len({json.dumps(p) for p in prints[0]}) == 3


def _parse_command(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command the way GitHub's runner does (actions/runner, ActionCommand.cs)."""
    found = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
    assert found, line
    decode = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}

    def plain(text: str, marks: str) -> str:
        for mark in marks.split():
            text = text.replace(mark, decode[mark])
        return text

    properties = dict(pair.split("=", 1) for pair in found[2].split(","))
    return (
        found[1],
        {name: plain(value, "%0D %0A %3A %2C %25") for name, value in properties.items()},
        plain(found[3], "%0D %0A %25"),
    )


def test_github_reads_back_what_was_found(report: CheckReport, tmp_path: Path) -> None:
    lines = list(github_lines(report, tmp_path))
    assert all("\n" not in line and "\r" not in line for line in lines)
    commands = [_parse_command(line) for line in lines]
    assert [command[0] for command in commands] == ["error", "error", "warning"]
    assert commands[0][1] == {
        "file": "my firmware/ops.manifest.yaml", "line": "7", "title": "forge check: manifest-stale"
    }  # fmt: skip
    assert commands[0][2] == f"{ODD}\nDo this."
    assert commands[1][1]["file"] == "my firmware/ü,:%.tflite"
    assert "line" not in commands[1][1]


def test_text_and_json_name_file_line_and_remedy(report: CheckReport) -> None:
    text = list(text_lines(report, report.folder))
    assert text[0].startswith("ops.manifest.yaml:7: error: ")
    assert "    Do this." in text
    assert text[-1] == "failed: 1 manifest, 0 models; 2 errors, 1 warning"
    plain = as_json(report, report.folder)
    assert plain["findings"][2]["file"] == "../a.cc"
    assert plain["diffs"] == [{"file": "ops.manifest.yaml", "diff": "-a\n+b\n"}]
