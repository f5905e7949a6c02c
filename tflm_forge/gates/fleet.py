"""Judges one model on many firmwares, whose manifests lie below a folder."""

import csv
import io
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tflm_forge.errors import ForgeError, UsageError
from tflm_forge.gates.facts import FirmwareFacts, facts_of_manifest
from tflm_forge.gates.needs import ArenaNeed
from tflm_forge.gates.reasons import Judgement, Reason, Verdict, conclude, judge_arena
from tflm_forge.gates.verdict import Judge
from tflm_forge.manifest import parse_manifest
from tflm_forge.manifest.tree import MAX_BYTES

UNREADABLE = "unreadable"

_SUFFIXES = (".yaml", ".yml")
_CHUNK = 250
"""Manifests that one process judges at a time; fewer do not pay for a process."""

Kind = tuple[str | None, ...]
"""What decides how large an arena a model needs on a firmware: runtime, version, kernel set, board."""


@dataclass(frozen=True, kw_only=True)
class FleetRow:
    """One manifest of a fleet.

    Attributes:
        path: the manifest.
        facts: what its firmware can run, without the ops; None when the manifest can not be read.
        judgement: the verdict; None when the manifest can not be read.
        problem: why the manifest can not be read; empty when it can.
    """

    path: str
    facts: FirmwareFacts | None = None
    judgement: Judgement | None = None
    problem: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return self.judgement.verdict if self.judgement else UNREADABLE

    @property
    def titles(self) -> tuple[str, ...]:
        """The kinds of reasons, in a stable order."""
        if self.judgement is None:
            return ("no manifest that can be read",)
        return tuple(dict.fromkeys(reason.title for reason in self.judgement.reasons))


@dataclass(frozen=True, kw_only=True)
class FleetGroup:
    """The firmwares of a fleet with the same verdict for the same reasons; `paths` are their manifests."""

    verdict: str
    titles: tuple[str, ...]
    paths: tuple[str, ...]


def find_manifests(folder: Path) -> tuple[Path, ...]:
    """Return the YAML files below a folder, in order.

    Raises:
        UsageError: there is no such folder, or no YAML file in it.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder", hint="--fleet takes a folder of firmware manifests.")
    found = [Path(base) / name for base, _, names in os.walk(folder) for name in names if name.endswith(_SUFFIXES)]
    if not found:
        raise UsageError(f"{folder}: no manifest (*.yaml) in it", hint="`forge build` writes ops.manifest.yaml.")
    return tuple(sorted(found))


def judge_fleet(
    judge: Judge, paths: Sequence[Path], find_arena: Callable[[FirmwareFacts, Sequence[int]], ArenaNeed]
) -> tuple[FleetRow, ...]:
    """Return the verdict on each firmware of a fleet.

    Args:
        judge: judges the model.
        paths: the manifests.
        find_arena: says how large an arena the model needs on a firmware, given the sizes of the arenas in question;
            asked once for each kind of firmware.
    """
    rows = list(_read_all(judge, paths))
    sizes: dict[Kind, list[int]] = {}
    first: dict[Kind, FirmwareFacts] = {}
    for row in rows:
        if row.facts is not None and row.facts.arena_bytes is not None:
            sizes.setdefault(_kind_of(row.facts), []).append(row.facts.arena_bytes)
            first.setdefault(_kind_of(row.facts), row.facts)
    needs = {kind: find_arena(first[kind], sizes[kind]) for kind in first}
    return tuple(_add_arena(row, needs) for row in rows)


def group_rows(rows: Sequence[FleetRow]) -> tuple[FleetGroup, ...]:
    """Return the rows by verdict and reasons; what needs attention and larger groups come first."""
    order: tuple[Verdict | str, ...] = ("reject", UNREADABLE, "firmware upgrade first", "compatible")
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in rows:
        groups.setdefault((row.verdict, row.titles), []).append(row.path)
    found = [FleetGroup(verdict=v, titles=titles, paths=tuple(paths)) for (v, titles), paths in groups.items()]
    return tuple(sorted(found, key=lambda group: (order.index(group.verdict), -len(group.paths), group.titles)))


def render_csv(rows: Sequence[FleetRow]) -> bytes:
    """Return a table with a line for each manifest."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ("manifest", "verdict", "reasons", "details", "board", "runtime", "version", "kernels", "arena_bytes", "model")
    )
    for row in rows:
        facts = row.facts or FirmwareFacts(source=row.path, kind="manifest")
        details = [_words(reason) for reason in row.judgement.reasons] if row.judgement else [row.problem]
        writer.writerow(
            (
                row.path,
                row.verdict,
                "; ".join(row.titles),
                " ".join(details),
                facts.board or "",
                facts.runtime or "",
                facts.version or "",
                facts.kernel_set or "",
                "" if facts.arena_bytes is None else facts.arena_bytes,
                facts.models[0].sha256 if facts.models else "",
            )
        )
    return stream.getvalue().encode()


def _words(reason: Reason) -> str:
    return f"{reason.words} {reason.remedy}".rstrip()


def _read_all(judge: Judge, paths: Sequence[Path]) -> Iterator[FleetRow]:
    chunks = [paths[start : start + _CHUNK] for start in range(0, len(paths), _CHUNK)]
    workers = min(len(chunks), os.cpu_count() or 1)
    if workers < 2:
        yield from _judge_chunk(judge, paths)
        return
    # Not forked: the progress display is a thread, and a lock it holds would stay locked in a copy of the process.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_start_worker, initargs=(judge,)) as pool:
        for rows in pool.map(_judge_in_worker, chunks):
            yield from rows


_judge: Judge | None = None
"""What a worker process judges with: sent once, not with each chunk."""


def _start_worker(judge: Judge) -> None:
    global _judge
    _judge = judge


def _judge_in_worker(paths: Sequence[Path]) -> list[FleetRow]:
    return _judge_chunk(_judge, paths) if _judge else []


def _judge_chunk(judge: Judge, paths: Sequence[Path]) -> list[FleetRow]:
    """Judge some manifests; a fleet has the same one many times, and it is read once."""
    seen: dict[bytes, FleetRow] = {}
    rows = []
    for path in paths:
        if not path.is_file():
            rows.append(FleetRow(path=str(path), problem=f"{path}: not a regular file"))
            continue
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            rows.append(FleetRow(path=str(path), problem=f"{path}: can not read: {error.strerror or error}"))
            continue
        row = replace(seen[data], path=str(path)) if data in seen else _judge_one(judge, data, str(path))
        if row.facts is not None:
            seen[data] = row
        rows.append(row)
    return rows


def _judge_one(judge: Judge, data: bytes, path: str) -> FleetRow:
    try:
        facts = facts_of_manifest(parse_manifest(data, path), path)
    except ForgeError as error:
        return FleetRow(path=path, problem=error.message)
    reasons, unknown = judge.find_reasons(facts)
    # The ops have served: without them a row is a tenth as large to hand over.
    return FleetRow(path=path, facts=replace(facts, ops=()), judgement=conclude(reasons, unknown=unknown))


def _kind_of(facts: FirmwareFacts) -> Kind:
    return facts.runtime, facts.version, facts.kernel_set, facts.board


def _add_arena(row: FleetRow, needs: Mapping[Kind, ArenaNeed]) -> FleetRow:
    if row.facts is None or row.judgement is None:
        return row
    reasons, unknown = list(row.judgement.reasons), list(row.judgement.unknown)
    if row.facts.arena_bytes is None:
        unknown.append("the size of the firmware's tensor arena")
    else:
        reasons += judge_arena(row.facts.arena_bytes, needs[_kind_of(row.facts)])
    return replace(row, judgement=conclude(reasons, unknown=unknown))
