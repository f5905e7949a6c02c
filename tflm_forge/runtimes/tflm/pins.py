"""Which commit of which repository makes up a TFLM tree: the pinned one, or what a tree's scripts say."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tflm_forge.errors import ToolError, UsageError
from tflm_forge.runtimes.tflm.tree import Tree

TFLM_REPOSITORY = "tensorflow/tflite-micro"
TFLM_COMMIT = "90b983c2b3f1480642e040bbd2ddb37b998f3424"

# Commit of each tag that the scripts of known TFLM commits name, so that a moved tag is noticed.
_TAG_COMMITS: Mapping[tuple[str, str], str] = {
    ("google/flatbuffers", "v25.9.23"): "187240970746d00bbd26b0f5873ed54d2477f9f3",
    ("mborgerding/kissfft", "v130"): "918336beac80868ad3011cb283063bb224e3e5da",
}

_MAKE = "tflite-micro/tensorflow/lite/micro/tools/make"
_SCRIPTS = (
    f"{_MAKE}/third_party_downloads.inc",
    f"{_MAKE}/flatbuffers_download.sh",
    f"{_MAKE}/kissfft_download.sh",
    f"{_MAKE}/ext_libs/cmsis_download.sh",
    f"{_MAKE}/ext_libs/cmsis_nn_download.sh",
    f"{_MAKE}/ext_libs/cmsis_nn.inc",
)
_PATCHES: Mapping[str, str] = {
    "flatbuffers": f"{_MAKE}/flatbuffers.patch",
    "kissfft": "tflite-micro/third_party/kissfft/kissfft.patch",
}
_REPOSITORIES: Mapping[str, str] = {
    "google/flatbuffers": "flatbuffers",
    "google/gemmlowp": "gemmlowp",
    "google/ruy": "ruy",
    "mborgerding/kissfft": "kissfft",
    "ARM-software/CMSIS_5": "cmsis",
    "ARM-software/CMSIS_6": "cmsis",
    "ARM-software/CMSIS-NN": "cmsis_nn",
}
_ASSIGNMENT = re.compile(r"^\s*(\w+)\s*:?=\s*[\"']?([^\"'\s]+)[\"']?\s*$")
_VARIABLE = re.compile(r"\$[{(](\w+)[})]")
_URL = re.compile(r"github\.com/([\w.-]+/[\w.-]+)/archive/(?:refs/tags/)?([\w.+-]+?)\.(?:zip|tar\.gz)")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One repository of a tree.

    Attributes:
        package: its folder's name in the tree.
        repository: owner and name.
        ref: what to fetch: a commit, or "refs/tags/<tag>".
        commit: the commit it must be; empty when only a tag is known.
        patch: the file of the TFLM tree to apply to it; empty for none.
        override_of: the ref that the tree's scripts name, when the user asked for another.
    """

    package: str
    repository: str
    ref: str
    commit: str
    patch: str = ""
    override_of: str = ""


def tflm_pin(commits: Mapping[str, str]) -> Pin:
    """Return the pin of tflite-micro itself: the user's commit, else forge's."""
    commit = commits.get(TFLM_REPOSITORY, TFLM_COMMIT)
    return Pin(
        package="tflite-micro",
        repository=TFLM_REPOSITORY,
        ref=commit,
        commit=commit,
        override_of="" if commit == TFLM_COMMIT else TFLM_COMMIT,
    )


def read_pins(tree: Tree, commits: Mapping[str, str]) -> tuple[Pin, ...]:
    """Return the third-party repositories that a TFLM tree's own download scripts pin.

    Args:
        tree: a tree with at least the package tflite-micro.
        commits: repository to the commit that the user wants instead.

    Raises:
        ToolError: the scripts are missing or name no version of a package that is needed.
        UsageError: the user's commits name a repository that the tree does not use.
    """
    found: dict[str, Pin] = {}
    for script in _SCRIPTS:
        if not tree.has(script):
            continue
        for repository, ref in _read_urls(tree.read(script)):
            package = _REPOSITORIES.get(repository)
            if package and package not in found:
                found[package] = _make_pin(tree, package, repository, ref, commits)
    missing = sorted(set(_REPOSITORIES.values()) - set(found))
    if missing:
        raise ToolError(
            f"TFLM {tree.version}: its download scripts name no version of {', '.join(missing)}",
            hint=f"The commit is too old or too new for this forge; {TFLM_COMMIT} is known to work.",
        )
    unknown = sorted(set(commits) - {TFLM_REPOSITORY} - {pin.repository for pin in found.values()})
    if unknown:
        raise UsageError(
            f"--commit names {', '.join(unknown)}, which TFLM {tree.version} does not use",
            hint=f"It uses {', '.join(sorted(pin.repository for pin in found.values()))}.",
        )
    return tuple(found[package] for package in sorted(found))


def parse_commits(options: Iterable[str]) -> dict[str, str]:
    """Parse `--commit SHA` (of tflite-micro) and `--commit owner/name=SHA` options.

    Raises:
        UsageError: not a full commit id.
    """
    commits = {}
    for option in options:
        repository, _, commit = option.rpartition("=")
        if not _COMMIT.fullmatch(commit):
            raise UsageError(
                f"--commit {option}: {commit!r} is not a full commit id (40 hexadecimal digits)",
                hint="Branches, tags and short ids may move or be ambiguous. "
                "For another repository than tflite-micro: --commit google/ruy=<commit>.",
            )
        commits[repository or TFLM_REPOSITORY] = commit
    return commits


def _make_pin(tree: Tree, package: str, repository: str, ref: str, commits: Mapping[str, str]) -> Pin:
    patch = _PATCHES.get(package, "")
    if not tree.has(patch):
        patch = ""
    if repository in commits and commits[repository] != ref:
        commit = commits[repository]
        return Pin(package=package, repository=repository, ref=commit, commit=commit, patch=patch, override_of=ref)
    if _COMMIT.fullmatch(ref):
        return Pin(package=package, repository=repository, ref=ref, commit=ref, patch=patch)
    known = _TAG_COMMITS.get((repository, ref), "")
    return Pin(package=package, repository=repository, ref=known or f"refs/tags/{ref}", commit=known, patch=patch)


def _read_urls(script: str) -> list[tuple[str, str]]:
    """Return (repository, ref) of each archive that a script downloads, with its variables filled in."""
    variables: dict[str, str] = {}
    urls = []
    for line in script.splitlines():
        text = _VARIABLE.sub(lambda m: variables.get(m.group(1), m.group(0)), line)
        assignment = _ASSIGNMENT.match(text)
        if assignment:
            variables[assignment.group(1)] = assignment.group(2)
        urls += [(m.group(1), m.group(2)) for m in _URL.finditer(text)]
    return urls
