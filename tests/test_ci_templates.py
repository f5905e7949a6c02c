"""The CI files that forge ships: what they run is run, in a git repository, with the forge that a wheel installs."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import tflm_forge
from tests.conftest import EXAMPLES, ROOT
from tests.test_wheel import place as place

pytestmark = pytest.mark.tools

TIMEOUT_S = 200.0
CONFIG = '[build]\nmodel = "net.tflite"\nboard = "stm32f4"\nruntime = "bundled"\n'
DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
KNOWN_ACTIONS = {"actions/checkout", "actions/setup-python", "github/codeql-action/upload-sarif"}

Done = subprocess.CompletedProcess[str]


def _load(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


class Repository:
    """A git repository with a project of one model, and the installed forge in front of PATH."""

    def __init__(self, folder: Path, installed: Path) -> None:
        self.folder = folder
        hidden = ("PYTHON", "VIRTUAL_ENV", "GIT")
        clean = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        self.environment = {
            **clean,
            "PATH": f"{installed / 'venv' / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            # pip finds the wheel of this checkout and asks no server.
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(installed / "dist"),
            "FORGE_HOME": str(folder.parent / "home"),
            "PRE_COMMIT_HOME": str(folder.parent / "pre-commit"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }

    def run(self, *command: object, shell: Sequence[str] = (), **more: str) -> Done:
        """Run a command in the repository; or, with `shell`, lines of a script, as CI does."""
        words = ["bash", "-e", "-o", "pipefail", "-c", "\n".join(shell)] if shell else [str(word) for word in command]
        return subprocess.run(
            words,
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def expect(self, *command: object) -> str:
        """Run a command that must work."""
        done = self.run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def repository(tmp_path: Path, place: Path) -> Iterator[Repository]:
    """Return a repository whose model and manifest agree, all committed."""
    folder = tmp_path / "repo"
    folder.mkdir()
    shutil.copy(SINE, folder / "net.tflite")
    (folder / "forge.toml").write_text(CONFIG)
    repo = Repository(folder, place)
    repo.expect("git", "init", "-q")
    repo.expect("forge", "manifest")
    repo.expect("git", "add", ".")
    repo.expect("git", "commit", "-q", "-m", "first")
    yield repo
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)


def _spoil(repo: Repository) -> None:
    """Put another model in the place of the first, as a commit of data scientists does."""
    shutil.copy(DIGITS, repo.folder / "net.tflite")
    repo.expect("git", "add", ".")


def _steps(path: Path) -> list[Mapping[str, Any]]:
    (job,) = _load(path)["jobs"].values()
    steps: list[Mapping[str, Any]] = job["steps"]
    return steps


def test_github_workflow(repository: Repository) -> None:
    repository.expect("forge", "init", "--ci", "github")
    steps = _steps(repository.folder / ".github" / "workflows" / "forge-check.yml")
    used = {step["uses"].partition("@")[0] for step in steps if "uses" in step}
    assert used == KNOWN_ACTIONS
    scripts = [step["run"] for step in steps if "run" in step]
    for spoiled in (False, True):
        if spoiled:
            _spoil(repository)
        done = repository.run(shell=scripts, GITHUB_ACTIONS="true", CI="true")
        assert done.returncode == (7 if spoiled else 0), done.stdout + done.stderr
        assert ("::error file=ops.manifest.yaml,line=" in done.stdout) == spoiled
        log = json.loads((repository.folder / "forge.sarif").read_text())
        assert bool(log["runs"][0]["results"]) == spoiled
    (upload,) = [step for step in steps if "upload-sarif" in step.get("uses", "")]
    assert (upload["with"]["sarif_file"], "failure()" in upload["if"]) == ("forge.sarif", True)


def test_gitlab_job(repository: Repository) -> None:
    shown = repository.expect("forge", "init", "--ci", "gitlab")
    (name, job), *_ = _load(repository.folder / ".gitlab" / "forge-check.yml").items()
    assert name == "forge-check"
    assert "include:" in shown
    assert repository.run(shell=job["script"]).returncode == 0
    _spoil(repository)
    done = repository.run(shell=job["script"])
    assert done.returncode == 7, done.stdout + done.stderr
    assert "CONV_2D" in done.stdout
    (kept,) = job["artifacts"]["paths"]
    assert (repository.folder / kept).is_file()


def test_pre_commit_hook(repository: Repository) -> None:
    repository.expect("forge", "init", "--ci", "pre-commit")
    repository.expect("pre-commit", "install")
    repository.expect("git", "add", ".")
    repository.expect("git", "commit", "-q", "-m", "the hook")
    _spoil(repository)
    done = repository.run("git", "commit", "-m", "a new model")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "exit code: 7" in done.stdout + done.stderr
    repository.expect("forge", "manifest", "--all")
    repository.expect("git", "add", ".")
    repository.expect("git", "commit", "-q", "-m", "a new model and its manifest")


def test_hook_for_other_repositories(repository: Repository) -> None:
    repository.expect("pre-commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml")
    (hook,) = _load(ROOT / ".pre-commit-hooks.yaml")
    (sample,) = _load(ROOT / "templates" / "ci" / "pre-commit.yaml")["repos"]
    (own,) = sample["hooks"]
    assert {key: hook[key] for key in ("id", "entry", "files", "pass_filenames")} == {
        key: own[key] for key in ("id", "entry", "files", "pass_filenames")
    }
    assert repository.run(shell=[hook["entry"]]).returncode == 0


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_what_checks_is_what_made_the_manifests(repository: Repository, ci: str) -> None:
    repository.expect("forge", "init", "--ci", ci)
    path = {"github": ".github/workflows/forge-check.yml", "gitlab": ".gitlab/forge-check.yml"}[ci]
    assert f"pip install tflm-forge=={tflm_forge.__version__}\n" in (repository.folder / path).read_text()
    again = repository.run("forge", "init", "--ci", ci)
    assert again.returncode == 2
    assert "--force" in again.stderr
