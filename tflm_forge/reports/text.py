"""The test report as rows of tables and lines for a console."""

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_forge.verify.records import Comparison, Latency, TestReport


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table: title, column heads, rows of cells, and which columns hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()


def check_table(report: TestReport) -> TextTable:
    """Return one row a check outside the numbers, and one row a part that was skipped."""
    rows = []
    for part in report.parts:
        if part.skipped:
            rows.append((part.name, "", "skipped", part.skipped))
        compared = {f"{c.case}: {c.output}" for c in report.comparisons}
        rows += [
            (part.name, check.name, "ok" if check.passed else "FAILED", check.detail)
            for check in part.checks
            if check.name not in compared
        ]
    return TextTable(title="checks", columns=("part", "check", "result", "detail"), rows=tuple(rows))


def comparison_table(report: TestReport, *, most_rows: int = 20) -> TextTable:
    """Return one row a comparison, the failed ones first; a last row says how many are left out."""
    ordered = sorted(report.comparisons, key=lambda c: c.passed)
    rows = [_comparison_row(c) for c in ordered[:most_rows]]
    left_out = ordered[most_rows:]
    if left_out:
        failed = sum(not c.passed for c in left_out)
        rows.append((f"{len(left_out)} more", "", f"{failed} FAILED" if failed else "ok", *[""] * 6))
    against = f" against {report.reference}" if report.reference else ""
    columns = ("case", "output", "result", "max error", "mismatch", "MAE", "RMSE", "cosine", "argmax")
    return TextTable(title=f"numbers{against}", columns=columns, rows=tuple(rows), right=(3, 4, 5, 6, 7))


def summary_lines(report: TestReport) -> Sequence[str]:
    """Return the lines below the tables: device, memory, latency, accuracy, verdict."""
    device = report.device
    kernels = f" ({device.kernel_set} kernels)" if device.kernel_set else ""
    lines = [
        f"device    {device.board} on {device.port}, "
        f"runtime {device.runtime} {device.runtime_version}{kernels}",
        f"arena     {device.arena_used_bytes:,} of {device.arena_bytes:,} bytes used",
        f"stack     {device.stack_high_water_bytes:,} of {device.stack_bytes:,} bytes used",
    ]
    if report.latency is not None:
        lines.append(f"inference {_latency_words(report.latency)}")
    if report.accuracy is not None:
        accuracy = report.accuracy
        reference = "" if accuracy.reference_correct is None else f", reference {accuracy.reference_correct}"
        lines.append(
            f"accuracy  {accuracy.correct} of {accuracy.total} labelled inputs "
            f"({accuracy.percent:.1f} %){reference}"
        )
    return (*lines, _verdict(report))


def _comparison_row(comparison: Comparison) -> tuple[str, ...]:
    m = comparison.metrics
    unit = f" {comparison.unit}" if comparison.unit else ""
    return (
        comparison.case,
        comparison.output,
        "ok" if comparison.passed else "FAILED",
        f"{m.max_error:.4g}{unit}",
        f"{m.mismatch_percent:.2f} %",
        f"{m.mae:.4g}",
        f"{m.rmse:.4g}",
        f"{m.cosine:.6f}",
        "same" if m.argmax_agrees else "differs",
    )


def _latency_words(latency: Latency) -> str:
    spread = "" if latency.minimum == latency.maximum else f" ({latency.minimum:,} to {latency.maximum:,})"
    time = "" if latency.median_s is None else f", {latency.median_s * 1000:.3f} ms"
    return f"{latency.median:,} {latency.unit}{spread}{time}, median of {latency.runs}"


def _verdict(report: TestReport) -> str:
    if report.passed:
        checks = sum(len(part.checks) for part in report.parts)
        skipped = [part.name for part in report.parts if part.skipped]
        without = f", without {', '.join(skipped)}" if skipped else ""
        return f"PASSED    {checks} checks{without}"
    failed = [f"{p.name} ({len(p.failures)})" for p in report.parts if not p.passed]
    return f"FAILED    {', '.join(failed)}"
