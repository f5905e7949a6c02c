"""The patterns of patterns.toml: what a line says, and what it means."""

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tflm_forge.link.status import STATUSES

Level = Literal["root", "context", "note"]


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A cause, and the regular expressions by which a line tells it.

    Attributes:
        id: a word that stays the same from release to release.
        expressions: one that is found in a line is enough.
        level: `root` is a cause, `context` says where it happened, `note` is no failure.
        cause: what has happened.
        remedy: what to do; empty for a note.
        source: where the text comes from.
    """

    id: str
    expressions: tuple[re.Pattern[str], ...]
    level: Level
    cause: str
    remedy: str
    source: str

    def match(self, line: str) -> re.Match[str] | None:
        """Return the first expression's match in a line."""
        return next((found for e in self.expressions if (found := e.search(line))), None)


@functools.cache
def load_patterns() -> tuple[Pattern, ...]:
    """Return all patterns in the order in which they are tried: the first that matches a line counts."""
    table = tomllib.loads((Path(__file__).parent / "patterns.toml").read_text(encoding="utf-8"))
    patterns = (
        Pattern(
            id=row["id"],
            expressions=tuple(re.compile(text) for text in row["match"]),
            level=row.get("level", "root"),
            cause=row["cause"],
            remedy=row["remedy"],
            source=row["source"],
        )
        for row in table["pattern"]
    )
    return (*_status_patterns(), *patterns)


def _status_patterns() -> tuple[Pattern, ...]:
    """Return a pattern for each status that forge's own firmware prints while it boots."""
    return tuple(
        Pattern(
            id=f"status-{status.name}",
            expressions=(re.compile(rf"\bstatus 0x0*{status.code:x}\b", re.IGNORECASE),),
            level="root",
            cause=f"The device's own check says: {status.words}.",
            remedy=status.remedy,
            source="docs/link.md, status codes",
        )
        for status in STATUSES
        if status.remedy
    )
