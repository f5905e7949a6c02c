"""`forge runtime install tflm` as a user runs it: from a mirror beside, killed, twice at once, on a full disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT, Forge
from tests.unit.runtimes.small_tree import write_package, write_tree

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

TOOL_EXIT_CODE = 4
TFLM = "tensorflow/tflite-micro"
REPOSITORIES = {
    "tflite-micro": TFLM,
    "flatbuffers": "google/flatbuffers",
    "gemmlowp": "google/gemmlowp",
    "ruy": "google/ruy",
    "kissfft": "mborgerding/kissfft",
    "cmsis": "ARM-software/CMSIS_6",
    "cmsis_nn": "ARM-software/CMSIS-NN",
}


def _git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, *args], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """Return a mirror's pattern and the --commit options for what is in it."""
    base = tmp_path_factory.mktemp("mirror")
    options: list[str] = []
    for package, repository in REPOSITORIES.items():
        folder = base / repository
        write_package(folder, package)
        (folder / "third_party/kissfft/kissfft.patch").unlink(missing_ok=True)
        (folder / "LICENSE").write_text(f"licence of {package}")
        _git(folder, "init", "-q")
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", "one")
        options += ["--commit", f"{repository}={_git(folder, 'rev-parse', 'HEAD').strip()}"]
    return f"{base}/{{owner}}/{{name}}", options


def _command(mirror: tuple[str, list[str]]) -> list[str]:
    return ["runtime", "install", "tflm", "--mirror", mirror[0], *mirror[1]]


def _start(mirror: tuple[str, list[str]], folder: Path, **env: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tflm_forge", *_command(mirror), "--json"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "FORGE_HOME": str(folder / "home"), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _installed(forge: Forge, home: Path) -> list[str]:
    done = forge("runtime", "list", "--json", FORGE_HOME=str(home))
    assert done.returncode == 0, done.stderr
    return [row["name"] for row in json.loads(done.stdout) if row["runtime"] == "tflm"]


def test_installs_from_a_mirror_and_keeps_the_licences(
    forge: Forge, tmp_path: Path, mirror: tuple[str, list[str]]
) -> None:
    home = tmp_path / "home"
    done = forge(*_command(mirror), "--json", FORGE_HOME=str(home))
    assert done.returncode == 0, done.stderr
    (name,) = _installed(forge, home)
    for package in REPOSITORIES:
        licence = home / "runtimes/tflm" / name / package / "LICENSE"
        assert licence.read_text() == f"licence of {package}"
    assert not list(home.rglob(".git"))


def test_a_killed_install_is_not_listed_and_the_next_one_works(
    forge: Forge, tmp_path: Path, mirror: tuple[str, list[str]]
) -> None:
    # A git that stops for good at the third fetch, when two packages are on the disk.
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(
        f'#!/bin/sh\nif [ "$(echo " $* " | grep -c " fetch ")" = 1 ]; then echo >> {tmp_path}/fetches\n'
        f'if [ "$(wc -l < {tmp_path}/fetches)" = 3 ]; then touch {tmp_path}/stopped; exec sleep 600; fi; fi\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    process = _start(mirror, tmp_path, PATH=f"{git.parent}:{os.environ['PATH']}")
    try:
        for _ in range(1200):
            if (tmp_path / "stopped").exists():
                break
            time.sleep(0.05)
        assert (tmp_path / "stopped").exists()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    home = tmp_path / "home"
    left = [path.name for path in (home / "runtimes/tflm").iterdir() if path.name != ".lock"]
    assert len(left) == 1
    assert left[0].startswith(".staging-")
    assert _installed(forge, home) == []

    done = forge(*_command(mirror), FORGE_HOME=str(home))
    assert done.returncode == 0, done.stderr
    (name,) = _installed(forge, home)
    assert sorted(p.name for p in (home / "runtimes/tflm").iterdir()) == sorted([".lock", name, "current"])


def test_two_installs_at_once_both_end_well(forge: Forge, tmp_path: Path, mirror: tuple[str, list[str]]) -> None:
    processes = [_start(mirror, tmp_path) for _ in range(2)]
    results = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    assert len(_installed(forge, tmp_path / "home")) == 1


@pytest.mark.parametrize("size", [32, 96, 160, 192, 224, 240])
def test_a_disk_that_fills_up_leaves_nothing(
    forge: Forge, tmp_path: Path, mirror: tuple[str, list[str]], size: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(home)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk can not be mounted without root's rights")
    try:
        done = forge(*_command(mirror), FORGE_HOME=str(home))
        assert done.returncode == TOOL_EXIT_CODE
        assert "the disk is full; nothing was installed" in done.stderr
        assert "FORGE_HOME" in done.stderr
        assert "Traceback" not in done.stderr
        assert _installed(forge, home) == []
        assert [path.name for path in (home / "runtimes/tflm").iterdir()] == [".lock"]
    finally:
        subprocess.run(["umount", str(home)], check=True)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("unreachable", ("can not be reached", "--mirror", "--tree")),
        ("commit", ("does not have commit " + "b" * 40, f"--commit {TFLM}=<commit>")),
        ("incomplete", ("kernel sources are missing for RESIZE", "not complete")),
        ("no tree", ("no TFLM tree",)),
    ],
)
def test_each_cause_has_its_words(
    forge: Forge, tmp_path: Path, mirror: tuple[str, list[str]], case: str, words: tuple[str, ...]
) -> None:
    tree = tmp_path / "tree"
    options = {
        "unreachable": ["--mirror", f"{tmp_path}/none/{{owner}}/{{name}}"],
        "commit": ["--mirror", mirror[0], "--commit", "b" * 40],
        "incomplete": ["--tree", tree],
        "no tree": ["--tree", tmp_path],
    }[case]
    if case == "incomplete":
        write_tree(tree, without=("tensorflow/lite/micro/kernels/resize.cc",))
    done = forge("runtime", "install", "tflm", *options, FORGE_HOME=str(tmp_path / "home"))
    assert done.returncode in (2, TOOL_EXIT_CODE), done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert _installed(forge, tmp_path / "home") == []
