"""Charts of the report as inline SVG; colours are classes, so that the page's light and dark styles apply."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from tflm_forge.reports.text import short_name
from tflm_forge.verify.records import Latency, LayerResult, Layers, Soak

_WIDTH = 860
_ROW_HEIGHT = 26
_BAR_HEIGHT = 14
_LABEL_WIDTH = 330
_VALUE_WIDTH = 150
_LABEL_CHARACTERS = 46
_PLOT_HEIGHT = 170
_MARGIN_LEFT, _MARGIN_BOTTOM, _MARGIN_TOP = 70, 34, 14
_LEAST_BAR = 1.5


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: its label, its length from 0 to 1, the words behind it, and its style ("bar", "ok", "bad", "none")."""

    label: str
    hint: str
    share: float
    words: str
    style: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a plot: points, what its values are, and a limit that is drawn across."""

    points: tuple[tuple[float, float], ...]
    title: str
    limit: float | None = None


def latency_chart(latency: Latency) -> str:
    """Return a bar for each operator, in the order of execution."""
    total = sum(operator.count for operator in latency.operators) or 1
    most = max((operator.count for operator in latency.operators), default=1) or 1
    bars = [
        Bar(
            label=f"{o.index}  {o.op}  {short_name(o.layer)}",
            hint=f"{o.op} {o.layer}: {o.count:,} {latency.unit}",
            share=o.count / most,
            words=f"{o.count:,}  ({100 * o.count / total:.1f} %)",
            style="bar",
        )
        for o in latency.operators
    ]
    return draw_bars(bars, f"{latency.unit} per operator")


def layers_chart(layers: Layers) -> str:
    """Return a bar for each operator: the largest error of its output, on a logarithmic scale when it is wide."""
    errors = [r.metrics.max_error if r.metrics is not None else 0.0 for r in layers.results]
    finite = [error for error in errors if math.isfinite(error)]
    most = max(finite, default=0.0) or 1.0
    bars = [
        Bar(
            label=f"{r.index}  {r.op}  {short_name(r.layer)}",
            hint=f"{r.op} {r.layer}",
            share=1.0 if not math.isfinite(error) else math.log1p(error * 9 / most) / math.log(10),
            words=_error_words(r),
            style="none" if r.metrics is None else "ok" if r.passed else "bad",
        )
        for r, error in zip(layers.results, errors, strict=True)
    ]
    return draw_bars(bars, "largest error per operator")


def soak_chart(soak: Soak, stack_bytes: int) -> str:
    """Return the speed and the stack's most use over the loops."""
    speed, before = [], (0, 0.0)
    for step in soak.steps:
        seconds = step.seconds - before[1]
        if seconds > 0:
            speed.append((float(step.loops), (step.loops - before[0]) / seconds))
        before = (step.loops, step.seconds)
    stack = tuple((float(step.loops), float(step.stack_high_water_bytes)) for step in soak.steps)
    return draw_lines(
        (
            Line(points=tuple(speed), title="loops a second"),
            Line(points=stack, title="bytes of stack in use", limit=float(stack_bytes)),
        )
    )


def draw_bars(bars: Sequence[Bar], title: str) -> str:
    """Return horizontal bars, one below the other."""
    height = _ROW_HEIGHT * len(bars) + 8
    room = _WIDTH - _LABEL_WIDTH - _VALUE_WIDTH
    rows = []
    for i, bar in enumerate(bars):
        y = 4 + i * _ROW_HEIGHT
        text_y = y + _BAR_HEIGHT - 1
        length = max(_LEAST_BAR, room * min(1.0, bar.share))
        rows.append(
            f'<g><title>{escape(bar.hint)}</title><text class="label" x="{_LABEL_WIDTH - 12}" y="{text_y}" '
            f'text-anchor="end">{escape(_cut(bar.label))}</text>'
            f'<rect class="track" x="{_LABEL_WIDTH}" y="{y + 2}" width="{room}" height="{_BAR_HEIGHT}" rx="3"/>'
            f'<rect class="{bar.style}" x="{_LABEL_WIDTH}" y="{y + 2}" width="{length:.1f}" height="{_BAR_HEIGHT}" '
            f'rx="3"/><text class="value" x="{_LABEL_WIDTH + room + 10}" y="{text_y}">{escape(bar.words)}</text></g>'
        )
    return _svg(height, title, rows)


def draw_lines(lines: Sequence[Line]) -> str:
    """Return plots side by side, each with its own axis of values; they share the axis of loops."""
    width = (_WIDTH - 40) / max(1, len(lines))
    parts = [_plot(line, i * (width + 40), width) for i, line in enumerate(lines)]
    return _svg(_PLOT_HEIGHT + _MARGIN_TOP + _MARGIN_BOTTOM, " and ".join(line.title for line in lines), parts)


def _plot(line: Line, left: float, width: float) -> str:
    x0, x1 = left + _MARGIN_LEFT, left + width - 10
    y0, y1 = float(_MARGIN_TOP + _PLOT_HEIGHT), float(_MARGIN_TOP)
    most_x = max((x for x, _ in line.points), default=1.0) or 1.0
    top = _round_up(max([y for _, y in line.points] + ([line.limit] if line.limit else []), default=1.0))

    def at(x: float, y: float) -> str:
        return f"{x0 + (x1 - x0) * x / most_x:.1f},{y0 - (y0 - y1) * y / top:.1f}"

    out = []
    for part in (0.0, 0.5, 1.0):
        y = y0 - (y0 - y1) * part
        out.append(f'<line class="grid" x1="{x0}" y1="{y:.1f}" x2="{x1}" y2="{y:.1f}"/>')
        out.append(f'<text class="label" x="{x0 - 8}" y="{y + 4:.1f}" text-anchor="end">{top * part:,.0f}</text>')
    points = [(0.0, line.points[0][1]), *line.points] if line.points else []
    if points:
        path = " ".join(at(x, y) for x, y in points)
        out.append(f'<polygon class="area" points="{at(0, 0)} {path} {at(points[-1][0], 0)}"/>')
        out.append(f'<polyline class="line" points="{path}"/>')
    if line.limit:
        y = y0 - (y0 - y1) * line.limit / top
        out.append(f'<line class="limit" x1="{x0}" y1="{y:.1f}" x2="{x1}" y2="{y:.1f}"/>')
        out.append(f'<text class="value" x="{x1}" y="{y + 14:.1f}" text-anchor="end">limit {line.limit:,.0f}</text>')
    out.append(f'<text class="label" x="{x1}" y="{y0 + 18}" text-anchor="end">{most_x:,.0f} loops</text>')
    out.append(f'<text class="value" x="{x0}" y="{y0 + 18}">{escape(line.title)}</text>')
    return "".join(out)


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _error_words(result: LayerResult) -> str:
    metrics = result.metrics
    if metrics is None:
        return "not compared"
    if not metrics.max_error:
        return "identical"
    return f"{metrics.max_error:.4g}{f' {result.unit}' if result.unit else ''}"


def _cut(label: str) -> str:
    return label if len(label) <= _LABEL_CHARACTERS else label[: _LABEL_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _round_up(value: float) -> float:
    """Return the next number of the form 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 2.5, 4.0, 5.0, 8.0, 10.0) if step * power >= value * 0.999999)
