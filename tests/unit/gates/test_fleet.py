"""A fleet of manifests: each judged, grouped by verdict and reasons, none hidden."""

import csv
import io
import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.gates.firmwares import DIGITS, judge, manifest_of
from tflm_forge.config import ModelCompatibilityTable
from tflm_forge.errors import UsageError
from tflm_forge.gates import fleet
from tflm_forge.gates.facts import FirmwareFacts, facts_of_manifest
from tflm_forge.gates.fleet import FleetRow, find_manifests, group_rows, judge_fleet, render_csv
from tflm_forge.gates.needs import ArenaNeed, find_needs
from tflm_forge.gates.verdict import Judge, load_catalogues
from tflm_forge.manifest import Manifest, render_manifest
from tflm_forge.model import Model, load_model

NEED = ArenaNeed(bytes=3328, how="measured on x", is_measured=True)
UPGRADE = "firmware upgrade first"


@pytest.fixture(scope="module")
def digits() -> Model:
    return load_model(DIGITS)


@pytest.fixture(scope="module")
def own(digits: Model) -> Manifest:
    return manifest_of(digits)


@pytest.fixture(scope="module")
def judging(digits: Model) -> Judge:
    return Judge(needs=find_needs(digits), catalogues=load_catalogues(), policy=ModelCompatibilityTable())


def without(manifest: Manifest, *names: str) -> Manifest:
    changed = replace(manifest, ops=tuple(op for op in manifest.ops if op.name not in names))
    return replace(changed, op_hash=changed.computed_op_hash)


def with_arena(manifest: Manifest, size: int) -> Manifest:
    assert manifest.arena is not None
    return replace(manifest, arena=replace(manifest.arena, size_bytes=size))


def write(folder: Path, **manifests: Manifest | bytes) -> tuple[Path, ...]:
    for name, manifest in manifests.items():
        path = folder / f"{name}.yaml"
        path.write_bytes(manifest if isinstance(manifest, bytes) else render_manifest(manifest))
    return find_manifests(folder)


def ask(judging: Judge, paths: Sequence[Path], need: ArenaNeed = NEED) -> tuple[FleetRow, ...]:
    return judge_fleet(judging, paths, lambda facts, sizes: need)


def test_grouped_by_verdict_and_reasons_with_what_can_not_be_read(
    tmp_path: Path, judging: Judge, own: Manifest
) -> None:
    paths = write(
        tmp_path,
        a=own,
        b=own,
        c=without(own, "SOFTMAX"),
        d=with_arena(without(own, "SOFTMAX"), 1024),
        e=with_arena(own, 3312),
        f=b"not: a manifest\n",
        g=b"\xff\xfe",
        h=render_manifest(own)[:-40],
    )
    rows = ask(judging, paths)
    groups = {(g.verdict, g.titles): [Path(path).stem for path in g.paths] for g in group_rows(rows)}
    assert groups == {
        ("unreadable", ("no manifest that can be read",)): ["f", "g", "h"],
        (UPGRADE, ("SOFTMAX is not registered",)): ["c"],
        (UPGRADE, ("SOFTMAX is not registered", "arena too small")): ["d"],
        (UPGRADE, ("arena too small",)): ["e"],
        ("compatible", ()): ["a", "b"],
    }
    assert [g.verdict for g in group_rows(rows)] == ["unreadable", UPGRADE, UPGRADE, UPGRADE, "compatible"]
    assert [Path(row.path).stem for row in rows] == list("abcdefgh")
    for row in rows[5:]:
        assert row.path in row.problem


def test_the_csv_file_has_every_manifest(tmp_path: Path, judging: Judge, own: Manifest) -> None:
    paths = write(tmp_path, good=own, bad=b"x", less=without(own, "RESHAPE", "SOFTMAX"))
    rows = list(csv.DictReader(io.StringIO(render_csv(ask(judging, paths)).decode())))
    assert [(Path(row["manifest"]).stem, row["verdict"]) for row in rows] == [
        ("bad", "unreadable"), ("good", "compatible"), ("less", UPGRADE)
    ]  # fmt: skip
    assert rows[1]["board"] == "mps2-an386"
    assert rows[1]["arena_bytes"] == "4096"
    assert rows[1]["model"] == own.models[0].sha256
    assert rows[2]["reasons"] == "RESHAPE is not registered; SOFTMAX is not registered"
    assert "no operator manifest" in rows[0]["details"] or "not" in rows[0]["details"]


def test_the_arena_is_asked_for_once_a_kind(tmp_path: Path, judging: Judge, own: Manifest) -> None:
    other = replace(own, board="stm32f4")
    paths = write(tmp_path, a=own, b=with_arena(own, 2048), c=other, d=without(own, "SOFTMAX"))
    asked: list[tuple[str | None, list[int]]] = []

    def find(facts: FirmwareFacts, sizes: Sequence[int]) -> ArenaNeed:
        asked.append((facts.board, sorted(sizes)))
        return NEED

    judge_fleet(judging, paths, find)
    assert sorted(asked) == [("mps2-an386", [2048, 4096, 4096]), ("stm32f4", [4096])]


def test_many_processes_say_what_one_says(
    tmp_path: Path, judging: Judge, own: Manifest, digits: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of a fleet are those of each manifest alone, in order, whatever the number of processes."""
    draw = random.Random(3)
    names = [op.name for op in own.ops]
    manifests = {
        f"m{i:03d}": with_arena(without(own, *draw.sample(names, draw.randrange(3))), draw.choice([1024, 4096]))
        for i in range(40)
    }
    paths = write(tmp_path, **manifests)
    monkeypatch.setattr(fleet, "_CHUNK", 9)
    monkeypatch.setattr(fleet.os, "cpu_count", lambda: 2)
    rows = ask(judging, paths)
    alone = [judge(digits, facts_of_manifest(manifests[path.stem], str(path)), NEED) for path in paths]
    assert [row.judgement for row in rows] == alone
    assert len(Counter(row.titles for row in rows)) > 5


def test_a_folder_without_manifests(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no manifest"):
        find_manifests(tmp_path)
    with pytest.raises(UsageError, match="no such folder"):
        find_manifests(tmp_path / "nowhere")


def test_what_is_no_file_is_listed_and_not_waited_for(tmp_path: Path, judging: Judge, own: Manifest) -> None:
    write(tmp_path, good=own)
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    rows = ask(judging, find_manifests(tmp_path))
    assert [(Path(row.path).stem, row.verdict) for row in rows] == [
        ("gone", "unreadable"), ("good", "compatible"), ("pipe", "unreadable")
    ]  # fmt: skip


def test_manifests_in_folders_below_are_found(tmp_path: Path, own: Manifest) -> None:
    (tmp_path / "site" / "a").mkdir(parents=True)
    (tmp_path / "site" / "a" / "ops.manifest.yml").write_bytes(render_manifest(own))
    (tmp_path / "site" / "readme.txt").write_text("x")
    assert [path.name for path in find_manifests(tmp_path)] == ["ops.manifest.yml"]
