"""The test report as JSON values, with a version of their form (reports/report.schema.json describes it)."""

import math
from dataclasses import asdict
from typing import Any

from tflm_forge.verify.records import (
    FORMAT_VERSION,
    Comparison,
    Latency,
    LayerResult,
    Layers,
    Metrics,
    Part,
    Soak,
    TestReport,
)


def report_to_json(report: TestReport) -> dict[str, Any]:
    """Return a report as values that JSON can hold; a number that is not finite becomes None."""
    return {
        "tflm_forge_report": FORMAT_VERSION,
        "passed": report.passed,
        "model": {"file": report.model, "sha256": report.model_sha256},
        "device": asdict(report.device),
        "reference": report.reference or None,
        "parts": [_part(part) for part in report.parts],
        "left_out": list(report.left_out),
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
        "float_agreements": [_finite(asdict(agreement)) for agreement in report.float_agreements],
        "latency": _latency(report.latency) if report.latency else None,
        "soak": _soak(report.soak) if report.soak else None,
        "layers": layers_to_json(report.layers) if report.layers else None,
        "accuracy": {**asdict(report.accuracy), "percent": report.accuracy.percent} if report.accuracy else None,
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
    return {
        "case": comparison.case,
        "source": comparison.source or None,
        "output": comparison.output,
        "type": comparison.type,
        "passed": comparison.passed,
        "unit": comparison.unit or None,
        **_metrics(comparison.metrics),
    }


def _latency(latency: Latency) -> dict[str, Any]:
    operators = [asdict(operator) for operator in latency.operators]
    return {**asdict(latency), "clock_s": latency.clock_s, "operators": operators}


def _soak(soak: Soak) -> dict[str, Any]:
    return {**asdict(soak), "steps": [asdict(step) for step in soak.steps]}


def layers_to_json(layers: Layers) -> dict[str, Any]:
    """Return a comparison of layers as values that JSON can hold."""
    first = layers.first_wrong
    return {
        "case": layers.case,
        "reference": layers.reference,
        "first_wrong": None if first is None else first.index,
        "operators": [_layer(result) for result in layers.results],
    }


def _layer(result: LayerResult) -> dict[str, Any]:
    return {
        "index": result.index,
        "op": result.op,
        "layer": result.layer,
        "type": result.type or None,
        "unit": result.unit or None,
        "passed": result.passed,
        "note": result.note or None,
        "metrics": None if result.metrics is None else _metrics(result.metrics),
    }


def _metrics(metrics: Metrics) -> dict[str, Any]:
    return _finite({**asdict(metrics), "mismatch_percent": metrics.mismatch_percent})


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
