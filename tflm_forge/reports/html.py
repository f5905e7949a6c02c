"""The test report as one HTML page that needs nothing else: a person can send it to a colleague."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2

from tflm_forge.reports.charts import latency_chart, layers_chart, soak_chart
from tflm_forge.reports.table import TextTable
from tflm_forge.reports.text import comparison_table, latency_words, layer_table
from tflm_forge.resources import data_dir
from tflm_forge.verify.records import TestReport

_TEMPLATE = "report.html.j2"


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One number at the head of the page."""

    title: str
    value: str
    note: str = ""


def report_to_html(report: TestReport) -> bytes:
    """Return a report as a page, in UTF-8."""
    return render_page(_TEMPLATE, _context(report))


def render_page(template: str, context: Mapping[str, Any]) -> bytes:
    """Render a template of templates/report, with everything in it escaped, as UTF-8."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_dir("templates") / "report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(context).encode()


def _context(report: TestReport) -> dict[str, Any]:
    """Return what the template shows: report, tiles, failures, comparisons, layers, charts (None: there is none)."""
    failures = [(part, check) for part in report.parts for check in part.failures]
    compared = {f"{c.case}: {c.output}" for c in report.comparisons}
    parts = [(part, [check for check in part.checks if check.name not in compared]) for part in report.parts]
    latency, layers, soak = report.latency, report.layers, report.soak
    has_operators = latency is not None and latency.operators
    return {
        "report": report,
        "tiles": _tiles(report),
        "failures": failures,
        "parts": parts,
        "comparisons": comparison_table(report, most_rows=100),
        "layers": _table_of_layers(report),
        "latency_words": latency_words(latency) if latency else "",
        "latency_chart": latency_chart(latency) if latency and has_operators else None,
        "layers_chart": layers_chart(layers) if layers else None,
        "soak_chart": soak_chart(soak, report.device.stack_bytes) if soak and soak.steps else None,
    }


def _table_of_layers(report: TestReport) -> TextTable | None:
    if report.layers is None or report.layers.first_wrong is None:
        return None
    return layer_table(report.layers, most_rows=1000)


def _tiles(report: TestReport) -> list[Tile]:
    device = report.device
    total = sum(len(part.checks) for part in report.parts)
    failed = sum(len(part.failures) for part in report.parts)
    tiles = [Tile(title="checks passed", value=f"{total - failed:,}", note=f"of {total:,}")]
    if report.accuracy is not None:
        accuracy = report.accuracy
        note = f"{accuracy.correct:,} of {accuracy.total:,}"
        if accuracy.reference_correct is not None:
            note += f", reference {accuracy.reference_correct:,}"
        tiles.append(Tile(title="accuracy", value=f"{accuracy.percent:.1f} %", note=note))
    if report.latency is not None:
        time = "" if report.latency.clock_s is None else f"{report.latency.clock_s * 1000:.3f} ms"
        if time and report.latency.median_s is None:
            time += f" at {report.latency.clock_hz / 1e6:g} MHz, 1 a cycle"
        tiles.append(Tile(title=f"{report.latency.unit} an inference", value=f"{report.latency.median:,}", note=time))
    tiles += [
        Tile(title="tensor arena", value=f"{device.arena_used_bytes:,}", note=f"of {device.arena_bytes:,} bytes"),
        Tile(title="stack", value=f"{device.stack_high_water_bytes:,}", note=f"of {device.stack_bytes:,} bytes"),
    ]
    if report.soak is not None:
        kind = "state kept" if report.soak.stateful else "outputs compared every loop"
        tiles.append(Tile(title="soak loops", value=f"{report.soak.loops:,}", note=kind))
    return tiles
