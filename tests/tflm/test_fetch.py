"""Fetching with git from a mirror on this machine: commit checked, patch applied, causes told apart."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tflm_forge.errors import ToolError
from tflm_forge.runtimes.tflm.fetch import fetch_package
from tflm_forge.runtimes.tflm.pins import Pin

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

REPOSITORY = "mborgerding/kissfft"


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *args], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Return a folder of mirrors with one repository of two commits, the first tagged v1."""
    folder = tmp_path / "mirror" / "mborgerding+kissfft"
    (folder / "tools").mkdir(parents=True)
    (folder / "test").mkdir()
    git(folder, "init")
    files = {"kiss_fft.h": "int old;\n", "tools/kiss_fftr.c": "x", "COPYING": "licence", "test/big.c": "test"}
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-m", "one")
    git(folder, "tag", "v1")
    (folder / "kiss_fft.h").write_text("int new;\n")
    git(folder, "commit", "-a", "-m", "two")
    return tmp_path / "mirror"


def commit_of(mirror: Path, ref: str) -> str:
    return git(mirror / "mborgerding+kissfft", "rev-parse", ref)


def fetch(mirror: Path, folder: Path, *, ref: str, commit: str = "", patch: Path | None = None) -> str:
    pin = Pin(package="kissfft", repository=REPOSITORY, ref=ref, commit=commit)
    return fetch_package(pin, folder, mirror=f"{mirror}/{{owner}}+{{name}}", patch=patch)


def test_a_commit_that_is_not_the_newest_is_fetched(mirror: Path, tmp_path: Path) -> None:
    commit = commit_of(mirror, "v1")
    assert fetch(mirror, tmp_path / "out", ref=commit, commit=commit) == commit
    assert (tmp_path / "out/kiss_fft.h").read_text() == "int old;\n"


def test_only_what_a_build_needs_and_licences_are_kept(mirror: Path, tmp_path: Path) -> None:
    fetch(mirror, tmp_path / "out", ref=commit_of(mirror, "HEAD"))
    kept = sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert kept == ["COPYING", "kiss_fft.h", "tools/kiss_fftr.c"]


def test_a_tag_gives_its_commit(mirror: Path, tmp_path: Path) -> None:
    assert fetch(mirror, tmp_path / "out", ref="refs/tags/v1") == commit_of(mirror, "v1")


def test_a_moved_tag_is_noticed(mirror: Path, tmp_path: Path) -> None:
    git(mirror / "mborgerding+kissfft", "tag", "-f", "v1", "HEAD")
    with pytest.raises(ToolError, match="asked for"):
        fetch(mirror, tmp_path / "out", ref="refs/tags/v1", commit="a" * 40)


def test_a_commit_the_mirror_lacks_is_named_with_the_override(mirror: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        fetch(mirror, tmp_path / "out", ref="b" * 40, commit="b" * 40)
    assert "does not have commit " + "b" * 40 in caught.value.message
    assert str(mirror) in caught.value.message
    assert f"--commit {REPOSITORY}=<commit>" in caught.value.hint


def test_a_tag_the_mirror_lacks_is_named(mirror: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="does not have tag v9"):
        fetch(mirror, tmp_path / "out", ref="refs/tags/v9")


def test_a_mirror_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="can not be reached") as caught:
        fetch(tmp_path / "none", tmp_path / "out", ref="b" * 40)
    assert "--mirror" in caught.value.hint
    assert "--tree" in caught.value.hint


def test_a_server_that_refuses_the_connection_is_named(tmp_path: Path) -> None:
    pin = Pin(package="kissfft", repository=REPOSITORY, ref="b" * 40, commit="b" * 40)
    with pytest.raises(ToolError, match=r"http://localhost:9/kissfft can not be reached"):
        fetch_package(pin, tmp_path / "out", mirror="http://user:secret@localhost:9/{name}", patch=None)


@pytest.mark.parametrize("command", ["init", "fetch", "checkout"])
def test_a_disk_that_fills_up_is_said_whatever_git_says(
    command: str, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git_script = tmp_path / "bin" / "git"
    git_script.parent.mkdir()
    git_script.write_text(
        f'#!/bin/sh\ncase " $* " in *" {command} "*) echo "fatal: write error. Out of diskspace"; exit 128;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    git_script.chmod(0o755)
    commit = commit_of(mirror, "v1")
    monkeypatch.setenv("PATH", f"{git_script.parent}:/usr/bin:/bin")
    with pytest.raises(ToolError, match="the disk is full; nothing was installed"):
        fetch(mirror, tmp_path / "out", ref=commit, commit=commit)


PATCH = """--- a/kiss_fft.h
+++ b/kiss_fft.h
@@ -1 +1 @@
-int new;
+int patched;
"""


def test_the_trees_patch_is_applied(mirror: Path, tmp_path: Path) -> None:
    (tmp_path / "p.patch").write_text(PATCH)
    fetch(mirror, tmp_path / "out", ref=commit_of(mirror, "HEAD"), patch=tmp_path / "p.patch")
    assert (tmp_path / "out/kiss_fft.h").read_text() == "int patched;\n"


def test_a_patch_that_does_not_apply_is_named(mirror: Path, tmp_path: Path) -> None:
    (tmp_path / "p.patch").write_text(PATCH)
    with pytest.raises(ToolError, match=r"p\.patch does not apply"):
        fetch(mirror, tmp_path / "out", ref=commit_of(mirror, "v1"), patch=tmp_path / "p.patch")


def test_the_repository_that_forge_was_started_from_is_left_alone(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    git(mine, "init")
    (mine / "file").write_text("mine")
    git(mine, "add", ".")
    git(mine, "commit", "-m", "mine")
    before = git(mine, "rev-parse", "HEAD")
    with monkeypatch.context() as hook:
        hook.setenv("GIT_DIR", str(mine / ".git"))
        hook.setenv("GIT_WORK_TREE", str(mine))
        hook.setenv("GIT_INDEX_FILE", str(mine / ".git/index"))
        hook.chdir(mine)
        fetch(mirror, mine / "out", ref=commit_of_env(mirror))
    assert git(mine, "rev-parse", "HEAD") == before
    assert git(mine, "status", "--porcelain", "-uno") == ""
    assert (mine / "out/COPYING").is_file()


def commit_of_env(mirror: Path) -> str:
    """Return the newest commit of the mirror while GIT_DIR names another repository."""
    return git(mirror, "--git-dir", str(mirror / "mborgerding+kissfft/.git"), "rev-parse", "HEAD")
