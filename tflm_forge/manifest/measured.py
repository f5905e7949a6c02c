"""What only a finished build tells its manifest: flash by kind of owner, and what exact registration saves.

It is kept beside the project, with the build it was measured on, so that rendering the project again has it too.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tflm_forge.files import write_output
from tflm_forge.manifest.reading import read_manifest
from tflm_forge.manifest.record import MANIFEST_NAME, Manifest, ManifestFlash
from tflm_forge.manifest.rendering import render_manifest

_FLASH_NAME = "flash.json"
_SAVING_NAME = "versus.json"
_KILOBYTE = 1000


def add_measured(manifest: Manifest, folder: Path, build_id: str) -> Manifest:
    """Add what was measured on an earlier build of the very same project.

    Args:
        manifest: what is known before the link.
        folder: the project's folder.
        build_id: of the project, in hex.
    """
    saving, flash = _read(folder / _SAVING_NAME), _read(folder / _FLASH_NAME)
    arena_bytes = manifest.arena.size_bytes if manifest.arena else None
    try:
        if saving.get("build_id") == build_id:
            manifest = replace(manifest, saving_kb=_kilobytes(saving["saving_bytes"]))
        if (flash.get("build_id"), flash.get("arena_bytes")) == (build_id, arena_bytes):
            manifest = _with_flash(manifest, flash["groups"])
    except (KeyError, TypeError, ValueError):
        # A file that somebody else wrote: the next build measures again.
        return manifest
    return manifest


def write_flash(folder: Path, build_id: str, elf: Path, measure: Callable[[], Mapping[str, int]]) -> None:
    """Put the flash of a linked firmware into the manifest of its project; at once when it is the one measured before.

    Args:
        folder: the project's folder.
        build_id: of the project, in hex.
        elf: the firmware.
        measure: returns the bytes of flash by kind of owner; they add up to all of it.
    """
    digest = hashlib.sha256(elf.read_bytes()).hexdigest()
    manifest = read_manifest(folder / MANIFEST_NAME)
    is_known = manifest.flash is not None and manifest.flash.size_bytes is not None
    if is_known and _read(folder / _FLASH_NAME).get("elf_sha256") == digest:
        return
    groups = dict(measure())
    record = {
        "build_id": build_id,
        "arena_bytes": manifest.arena.size_bytes if manifest.arena else None,
        "elf_sha256": digest,
        "groups": groups,
    }
    _write(folder / _FLASH_NAME, record)
    _write_manifest(folder, _with_flash(manifest, groups))


def write_saving(folder: Path, build_id: str, saving_bytes: int) -> None:
    """Put into a project's manifest what registering all ops would cost more.

    Args:
        folder: the project's folder.
        build_id: of the project, in hex.
        saving_bytes: the flash it would cost more.
    """
    _write(folder / _SAVING_NAME, {"build_id": build_id, "saving_bytes": saving_bytes})
    _write_manifest(folder, replace(read_manifest(folder / MANIFEST_NAME), saving_kb=_kilobytes(saving_bytes)))


def _kilobytes(size_bytes: int) -> float:
    return round(size_bytes / _KILOBYTE, 1)


def _with_flash(manifest: Manifest, groups: Mapping[str, int]) -> Manifest:
    known = manifest.flash or ManifestFlash()
    return replace(manifest, flash=replace(known, size_bytes=sum(groups.values()), groups=dict(groups)))


def _read(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write(path: Path, record: Mapping[str, Any]) -> None:
    write_output(path, (json.dumps(record, indent=2) + "\n").encode())


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    write_output(folder / MANIFEST_NAME, render_manifest(manifest))
