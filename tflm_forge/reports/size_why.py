"""The chain of references to a symbol, for a console and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tflm_forge.size.why import Reason, Step

_FORMAT_VERSION = 1
_MOST_REFERRERS = 8
_WORDS = {
    "start": "the core starts here",
    "reference": "",
    "same section": "kept along: in one section with the line above, which the linker keeps or drops as a whole",
}


def reasons_to_lines(reasons: Sequence[Reason]) -> list[str]:
    """Return the chains, one line a step."""
    lines: list[str] = []
    for reason in reasons:
        if lines:
            lines.append("")
        lines.append(f"{reason.name}: {reason.size_bytes:,} bytes in {reason.section}")
        if reason.is_only_kept:
            lines += _kept_lines(reason)
            continue
        width = max(len(step.name) for step in reason.chain) + 6
        for depth, step in enumerate(reason.chain):
            arrow = "   " if not depth else "-> " if step.link == "reference" else " + "
            note = ", ".join(part for part in (step.file, _WORDS[step.link]) if part)
            lines.append(f"  {arrow}{step.name:{width}}{note}".rstrip())
        others = [step for step in reason.referrers if len(reason.chain) < 2 or step.symbol != reason.chain[-2].symbol]
        if others:
            lines.append(f"  also referred to by {_names(others)}")
        if reason.source == "instructions":
            lines.append(
                "  read from the instructions, which may show a reference too many; -Wl,--emit-relocs makes it certain"
            )
    return lines


def reasons_to_json(reasons: Sequence[Reason]) -> dict[str, Any]:
    """Return the chains as values that JSON can hold."""
    return {"tflm_forge_why": _FORMAT_VERSION, "symbols": [asdict(reason) for reason in reasons]}


def _kept_lines(reason: Reason) -> list[str]:
    if reason.referrers:
        return [f"  only what is itself not reached refers to it: {_names(reason.referrers)}"]
    return [
        "  nothing refers to it: the linker script keeps its section (KEEP), or it was asked for with -u or --undefined"
    ]


def _names(steps: Sequence[Step]) -> str:
    names = list(dict.fromkeys(step.name for step in steps))
    more = f" and {len(names) - _MOST_REFERRERS} more" if len(names) > _MOST_REFERRERS else ""
    return ", ".join(names[:_MOST_REFERRERS]) + more
