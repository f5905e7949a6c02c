"""The test report as JSON values, with a version of their form (docs/report.md describes it)."""

import math
from dataclasses import asdict
from typing import Any

from tflm_forge.verify.records import FORMAT_VERSION, Comparison, Part, TestReport


def report_to_json(report: TestReport) -> dict[str, Any]:
    """Return a report as values that JSON can hold; a number that is not finite becomes None."""
    return {
        "tflm_forge_report": FORMAT_VERSION,
        "passed": report.passed,
        "model": {"file": report.model, "sha256": report.model_sha256},
        "device": asdict(report.device),
        "reference": report.reference or None,
        "parts": [_part(part) for part in report.parts],
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
        "latency": asdict(report.latency) if report.latency else None,
        "accuracy": {**asdict(report.accuracy), "percent": report.accuracy.percent}
        if report.accuracy
        else None,
        "log": list(report.log_lines),
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "passed": part.passed,
        "skipped": part.skipped or None,
        "checks": [asdict(check) for check in part.checks],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    metrics = comparison.metrics
    values = {**asdict(metrics), "mismatch_percent": metrics.mismatch_percent}
    return {
        "case": comparison.case,
        "output": comparison.output,
        "type": comparison.type,
        "passed": comparison.passed,
        "unit": comparison.unit or None,
        **{k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()},
    }
