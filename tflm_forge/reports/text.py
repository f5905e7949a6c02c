"""The test report as rows of tables and lines for a console."""

from collections.abc import Sequence
from dataclasses import replace

from tflm_forge.reports.table import TextTable
from tflm_forge.verify.layers import describe_error
from tflm_forge.verify.records import Comparison, Latency, Layers, TestReport


def check_table(report: TestReport) -> TextTable:
    """Return one row a check outside the comparisons, and one row a part that was skipped."""
    rows = []
    compared = {f"{c.case}: {c.output}" for c in report.comparisons}
    for part in report.parts:
        if part.skipped:
            rows.append((part.name, "", "skipped", part.skipped))
        rows += [
            (part.name, check.name, "ok" if check.passed else "FAILED", check.detail)
            for check in part.checks
            if check.name not in compared
        ]
    return TextTable(title="checks", columns=("part", "check", "result", "detail"), rows=tuple(rows))


def comparison_table(report: TestReport, *, most_rows: int = 20) -> TextTable:
    """Return one row a failed comparison, the first ones first, and one row for all that passed of a source."""
    failed = [c for c in report.comparisons if not c.passed]
    rows = [_comparison_row([c]) for c in failed[:most_rows]]
    if failed[most_rows:]:
        rows.append((f"{len(failed) - most_rows} more", "", f"{len(failed) - most_rows} FAILED", *[""] * 7))
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in report.comparisons:
        if comparison.passed:
            groups.setdefault((comparison.source or comparison.case, comparison.output), []).append(comparison)
    rows += [_comparison_row(group) for group in groups.values()]
    against = f" against {report.reference}" if report.reference else ""
    columns = ("case", "output", "result", "max error", "mismatch", "MAE", "RMSE", "cosine", "argmax", "top")
    return TextTable(title=f"numbers{against}", columns=columns, rows=tuple(rows), right=(3, 4, 5, 6, 7))


def latency_table(report: TestReport, *, most_rows: int = 12) -> TextTable:
    """Return one row an operator, the slowest first; a last row sums up the ones left out."""
    latency = report.latency
    if latency is None or not latency.operators:
        return TextTable(title="", columns=(), rows=())
    total = sum(operator.count for operator in latency.operators) or 1
    ordered = sorted(latency.operators, key=lambda operator: -operator.count)
    rows = [
        (str(o.index), o.op, short_name(o.layer), f"{o.count:,}", f"{100 * o.count / total:.1f} %")
        for o in ordered[:most_rows]
    ]
    rest = sum(operator.count for operator in ordered[most_rows:])
    if ordered[most_rows:]:
        rows.append(("", f"{len(ordered) - most_rows} more", "", f"{rest:,}", f"{100 * rest / total:.1f} %"))
    columns = ("", "operator", "layer", latency.unit, "share")
    return TextTable(title="latency per operator", columns=columns, rows=tuple(rows), right=(0, 3, 4))


def layer_table(layers: Layers, *, most_rows: int = 20) -> TextTable:
    """Return one row an operator from the first that differs on; no row when all agree."""
    first = layers.first_wrong
    table = all_layers_table(layers)
    rows = () if first is None else table.rows[layers.results.index(first) :]
    shown = rows[:most_rows]
    if rows[most_rows:]:
        shown = (*shown, ("", f"{len(rows) - most_rows} more", "", "", ""))
    return replace(table, rows=shown)


def all_layers_table(layers: Layers) -> TextTable:
    """Return one row an operator, in the order of execution."""
    rows = tuple(
        (
            str(r.index),
            r.op,
            short_name(r.layer),
            "DIFFERS" if not r.passed else "ok" if r.metrics else "",
            describe_error(r),
        )
        for r in layers.results
    )
    columns = ("", "operator", "layer", "result", "error")
    return TextTable(title=f"layers against {layers.reference}", columns=columns, rows=rows, right=(0,))


def summary_lines(report: TestReport) -> Sequence[str]:
    """Return the lines below the tables: device, memory, latency, accuracy, verdict."""
    device = report.device
    kernels = f" ({device.kernel_set} kernels)" if device.kernel_set else ""
    lines = [
        f"device    {device.board} on {device.port}, runtime {device.runtime} {device.runtime_version}{kernels}",
        f"arena     {device.arena_used_bytes:,} of {device.arena_bytes:,} bytes used",
        f"stack     {device.stack_high_water_bytes:,} of {device.stack_bytes:,} bytes used",
    ]
    if report.latency is not None:
        lines.append(f"inference {latency_words(report.latency)}")
    if report.accuracy is not None:
        accuracy = report.accuracy
        reference = "" if accuracy.reference_correct is None else f", reference {accuracy.reference_correct}"
        lines.append(
            f"accuracy  {accuracy.correct} of {accuracy.total} labelled inputs ({accuracy.percent:.1f} %){reference}"
        )
    for agreement in report.float_agreements:
        lines.append(f"float     relative error {agreement.relative_error:.2%} against {agreement.model}")
    if report.soak is not None:
        soak = report.soak
        lines.append(f"soak      {soak.loops:,} loops in {soak.steps[-1].seconds if soak.steps else 0:.1f} s")
    return (*lines, _verdict(report))


def short_name(layer: str) -> str:
    """Return the first of the names that a converter joined with semicolons when it fused layers."""
    return layer.split(";")[0]


def _comparison_row(group: Sequence[Comparison]) -> tuple[str, ...]:
    """Return the row of comparisons that have one source and output: the worst number of each kind."""
    first, metrics = group[0], [c.metrics for c in group]
    unit = f" {first.unit}" if first.unit else ""
    elements = sum(m.elements for m in metrics) or 1
    return (
        first.case if len(group) == 1 else f"{first.source or first.case}, {len(group)} samples",
        first.output,
        "ok" if first.passed else "FAILED",
        f"{max(m.max_error for m in metrics):.4g}{unit}",
        f"{100 * sum(m.mismatches for m in metrics) / elements:.2f} %",
        f"{max(m.mae for m in metrics):.4g}",
        f"{max(m.rmse for m in metrics):.4g}",
        f"{min(m.cosine for m in metrics):.6f}",
        "same" if all(m.argmax_agrees for m in metrics) else "differs",
        f"{min(m.top_k for m in metrics)} " + ("same" if all(m.top_k_agrees for m in metrics) else "differ"),
    )


def latency_words(latency: Latency) -> str:
    """Return what an inference takes, in words."""
    spread = "" if latency.minimum == latency.maximum else f" ({latency.minimum:,} to {latency.maximum:,})"
    return f"{latency.median:,} {latency.unit}{spread}, median of {latency.runs}{_time_words(latency)}"


def _time_words(latency: Latency) -> str:
    if latency.median_s is not None:
        return f": {latency.median_s * 1000:.3f} ms"
    if latency.clock_s is None:
        return ""
    return f": {latency.clock_s * 1000:.3f} ms at {latency.clock_hz / 1e6:g} MHz if each took one cycle"


def _verdict(report: TestReport) -> str:
    if report.passed:
        checks = sum(len(part.checks) for part in report.parts)
        skipped = [*(part.name for part in report.parts if part.skipped), *report.left_out]
        without = f", without {', '.join(skipped)}" if skipped else ""
        return f"PASSED    {checks} checks{without}"
    failed = [f"{p.name} ({len(p.failures)})" for p in report.parts if not p.passed]
    return f"FAILED    {', '.join(failed)}"
