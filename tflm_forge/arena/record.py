"""Remembers a measured arena for the next build of the same project."""

import json
from dataclasses import asdict
from pathlib import Path

from tflm_forge.files import write_if_changed
from tflm_forge.generate import Arena, ArenaParts

_RECORD_NAME = "arena.json"


def read_record(folder: Path, fingerprint: str) -> Arena | None:
    """Return the arena that an earlier build of the very same project measured, or None."""
    try:
        record = json.loads((folder / _RECORD_NAME).read_text(encoding="utf-8"))
        if record["fingerprint"] == fingerprint:
            parts = ArenaParts(**record["parts"]) if record["parts"] else None
            return Arena(bytes=int(record["bytes"]), how=str(record["how"]), parts=parts)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None


def write_record(folder: Path, fingerprint: str, arena: Arena) -> None:
    """Keep a measured arena for the next build of the same project."""
    parts = asdict(arena.parts) if arena.parts else None
    record = {"fingerprint": fingerprint, "bytes": arena.bytes, "how": arena.how, "parts": parts}
    write_if_changed(folder / _RECORD_NAME, (json.dumps(record, indent=2) + "\n").encode())
