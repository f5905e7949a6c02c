"""Finds the causes in a text, and, with the model at hand, the layers they are about."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tflm_forge.explain.patterns import Level, Pattern, load_patterns
from tflm_forge.model import Model, Operator

MAX_LINE_CHARACTERS = 2000
"""What of a line is looked at: no message is longer, and a binary file may be one line."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FAILURE = re.compile(r"(?i)\b(?:error|fail(?:ed|ure)?|fatal|undefined|abort(?:ed)?|fault|not supported|can ?not)\b")
_WEIGHT: Mapping[Level, int] = {"root": 0, "context": 1, "note": 2}


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause with the lines that tell it.

    Attributes:
        pattern: what it means and what to do.
        lines: number, from 1, and text of each line that tells it.
        facts: what the lines name, each once and in their order: ("op", "CONV_2D"), ("missing", "640").
        layers: the model's layers it is about; empty without a model, or when the lines do not say.
    """

    pattern: Pattern
    lines: tuple[tuple[int, str], ...]
    facts: tuple[tuple[str, str], ...]
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What forge knows of a text.

    Attributes:
        causes: the most telling first, else as they appear.
        unknown: number and text of the lines that speak of a failure and that no pattern knows.
        line_count: how many lines there were.
    """

    causes: tuple[Cause, ...]
    unknown: tuple[tuple[int, str], ...]
    line_count: int

    @property
    def is_known(self) -> bool:
        """Whether at least one cause was found."""
        return any(cause.pattern.level != "note" for cause in self.causes)


def explain_text(text: str, model: Model | None = None) -> Explanation:
    """Find the causes that a text tells.

    Args:
        text: a device's log, a build's log, a converter's error.
        model: the model it is about, to name layers.
    """
    found: dict[str, Cause] = {}
    unknown = []
    lines = text.splitlines()
    for number, raw in enumerate(lines, start=1):
        line = _ESCAPES.sub("", raw[:MAX_LINE_CHARACTERS]).strip()
        hit = next(((p, m) for p in load_patterns() if (m := p.match(line))), None)
        if hit is None:
            if _FAILURE.search(line):
                unknown.append((number, line))
            continue
        pattern, match = hit
        old = found.get(pattern.id, Cause(pattern=pattern, lines=(), facts=()))
        facts = [(k, v) for k, v in match.groupdict().items() if v and (k, v) not in old.facts]
        found[pattern.id] = replace(old, lines=(*old.lines, (number, line)), facts=(*old.facts, *facts))
    causes = sorted(found.values(), key=lambda cause: _WEIGHT[cause.pattern.level])
    if model is not None:
        context = [fact for cause in causes if cause.pattern.level == "context" for fact in cause.facts]
        causes = [replace(cause, layers=tuple(_find_layers(cause, context, model))) for cause in causes]
    return Explanation(causes=tuple(causes), unknown=tuple(unknown), line_count=len(lines))


def _find_layers(cause: Cause, context: list[tuple[str, str]], model: Model) -> Iterator[str]:
    """Yield a line for each layer or tensor that a cause's facts name."""
    facts = cause.facts
    values = {kind: [value for name, value in facts if name == kind] for kind, _ in facts}
    nodes = [int(value) for kind, value in (*facts, *context) if kind == "node"]
    operators = model.subgraphs[0].operators if model.subgraphs else ()
    named = [operators[node] for node in dict.fromkeys(nodes) if node < len(operators)]
    kernels = values.get("kernel", [])
    if named and (cause.pattern.level == "context" or not kernels or _fits(named[0], kernels)):
        yield from (f"layer {op.index} {op.name} {op.label!r}" for op in named)
        return
    yield from _first_uses(
        model, lambda op: op.name in values.get("op", ()) or op.custom_name in values.get("custom", ())
    )
    if cause.pattern.id == "custom-op-not-registered":
        yield from _first_uses(model, lambda op: bool(op.custom_name))
    if kernels:
        yield from _first_uses(model, lambda op: _fits(op, kernels))
    for tensor, subgraph in zip(values.get("tensor", ()), values.get("subgraph", ()), strict=False):
        graph = model.subgraphs[int(subgraph)] if int(subgraph) < len(model.subgraphs) else None
        if graph is not None and int(tensor) < len(graph.tensors):
            yield f"tensor {tensor} {graph.tensors[int(tensor)].name!r}"


def _first_uses(model: Model, wanted: Callable[[Operator], bool]) -> Iterator[str]:
    seen = set()
    for graph in model.subgraphs:
        for op in graph.operators:
            if wanted(op) and op.name not in seen:
                seen.add(op.name)
                yield f"{op.name}, first in layer {op.index} {op.label!r}"


def _fits(op: Operator, kernels: list[str]) -> bool:
    """Return whether an operator's kernel can be one of these source files: conv_common.cc is CONV_2D's."""
    name = op.name.lower()
    return any(
        name in (stem, f"{stem}_2d") or name.startswith(f"{stem}_")
        for stem in (k.removesuffix("_common") for k in kernels)
    )
