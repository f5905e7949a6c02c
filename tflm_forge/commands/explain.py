"""`forge explain`: what a log means."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_forge.commands._options import JsonOption

if TYPE_CHECKING:
    from tflm_forge.explain import Explanation

_MAX_BYTES = 16 * 1024 * 1024
_MOST_LINES = 3
_MOST_UNKNOWN = 10


def run(
    log: Annotated[
        Path | None,
        typer.Argument(metavar="[LOG]", help="A log file, or a folder that forge built in; default: standard input."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", metavar="MODEL", help="The .tflite file, to name its layers.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Name the cause and the remedy of what a device, a build or a converter said; exit 7 when forge knows none of it.

    Example: forge explain device.log --model model.tflite
    """
    from tflm_forge.console import show_json
    from tflm_forge.errors import CheckError
    from tflm_forge.explain import explain_text
    from tflm_forge.model import load_model

    text = _read(log)
    explanation = explain_text(text, load_model(model) if model else None)
    if as_json:
        show_json(_as_json(explanation))
    else:
        _show(explanation)
    if not explanation.is_known:
        raise CheckError(
            f"{log or 'standard input'}: forge knows no cause in these {explanation.line_count} lines",
            hint="With --profile debug firmware holds TFLM's own messages; `forge doctor MODEL` looks at the model.",
        )


def _read(log: Path | None) -> str:
    """Return the text of a log; of a folder, that of every log in it.

    Raises:
        UsageError: there is none, or it can not be read.
    """
    from tflm_forge.errors import UsageError

    if log is None:
        if sys.stdin.isatty():
            raise UsageError("no log given", hint="Name a file, or pipe it in: forge build ... 2>&1 | forge explain")
        return sys.stdin.buffer.read(_MAX_BYTES).decode(errors="replace")
    paths = sorted(log.glob("*.log")) if log.is_dir() else [log]
    if not paths:
        raise UsageError(f"{log}: holds no log", hint="Name a log file, or a folder that forge built in.")
    try:
        texts = []
        for path in paths:
            with path.open("rb") as stream:
                texts.append(stream.read(_MAX_BYTES).decode(errors="replace"))
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror}") from error
    return "\n".join(texts)


def _as_json(explanation: "Explanation") -> dict[str, object]:
    return {
        "tflm_forge_explanation": 1,
        "lines": explanation.line_count,
        "causes": [
            {
                "id": cause.pattern.id,
                "level": cause.pattern.level,
                "cause": cause.pattern.cause,
                "remedy": cause.pattern.remedy,
                "source": cause.pattern.source,
                "facts": [{"name": name, "value": value} for name, value in cause.facts],
                "layers": list(cause.layers),
                "lines": [{"line": number, "text": text} for number, text in cause.lines],
            }
            for cause in explanation.causes
        ],
        "unknown": [{"line": number, "text": text} for number, text in explanation.unknown],
    }


def _show(explanation: "Explanation") -> None:
    from tflm_forge.console import show_text

    for cause in explanation.causes:
        show_text(f"{cause.pattern.id}: {cause.pattern.cause}")
        for number, text in cause.lines[:_MOST_LINES]:
            show_text(f"    line {number}: {text}")
        if len(cause.lines) > _MOST_LINES:
            show_text(f"    and {len(cause.lines) - _MOST_LINES} lines more")
        for layer in cause.layers:
            show_text(f"    {layer}")
        if cause.pattern.remedy:
            show_text(f"  {cause.pattern.remedy}")
        show_text("")
    if explanation.unknown:
        show_text(f"unknown to forge: {len(explanation.unknown)} lines that speak of a failure")
        for number, text in explanation.unknown[:_MOST_UNKNOWN]:
            show_text(f"    line {number}: {text}")
