"""Fetches one repository at one commit with git, checks the commit id, and keeps what a build needs."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tflm_forge.errors import ToolError, UsageError
from tflm_forge.proc import Completed, find_tool, run
from tflm_forge.runtimes.tflm.pins import Pin

MIRROR_VARIABLE = "FORGE_TFLM_MIRROR"
DEFAULT_MIRROR = "https://github.com/{owner}/{name}"
FETCH_TIMEOUT_S = 900.0
_LOCAL_TIMEOUT_S = 120.0

# What a build may need of each package; licences are kept besides.
_KEPT: Mapping[str, tuple[str, ...]] = {
    "tflite-micro": ("tensorflow", "signal", "third_party/kissfft"),
    "flatbuffers": ("include",),
    "gemmlowp": ("fixedpoint", "internal"),
    "ruy": ("ruy",),
    "kissfft": ("*.h", "*.c", "tools"),
    "cmsis": ("CMSIS/Core",),
    "cmsis_nn": ("Include", "Source"),
}
_DROPPED: Mapping[str, tuple[str, ...]] = {
    "tflite-micro": (
        "tensorflow/lite/micro/examples",
        "tensorflow/lite/micro/integration_tests",
        "tensorflow/lite/micro/models",
    ),
}
_LICENCES = ("LICEN[CS]E*", "COPYING*", "NOTICE*", "AUTHORS*", "LICENSES")

_NO_COMMIT = re.compile(r"not our ref|couldn't find remote ref|unadvertised object|no such remote ref", re.IGNORECASE)
_UNREACHABLE = re.compile(
    r"could not resolve|unable to access|connection|does not appear to be a git repository|does not exist|"
    r"not found|could not read|timed out|unable to connect|dubious ownership|network",
    re.IGNORECASE,
)
_DISK_FULL = re.compile(r"no space left|out of disk ?space|disk quota", re.IGNORECASE)
_FULL_BELOW_BYTES = 65536
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def mirror_url(mirror: str, repository: str) -> str:
    """Return where a repository is fetched from.

    Args:
        mirror: a URL or path with `{owner}` and `{name}`.
        repository: owner and name.

    Raises:
        UsageError: the pattern names neither, or another variable.
    """
    owner, name = repository.split("/")
    pattern = mirror or DEFAULT_MIRROR
    if "{name}" not in pattern:
        raise UsageError(
            f"--mirror {pattern}: has no {{name}}",
            hint="For example --mirror 'https://git.example.org/{owner}/{name}'.",
        )
    unknown = sorted(set(re.findall(r"\{(\w*)\}", pattern)) - {"owner", "name"})
    if unknown:
        raise UsageError(f"--mirror {pattern}: unknown {{{unknown[0]}}}", hint="It may hold {owner} and {name}.")
    url = pattern.replace("{owner}", owner).replace("{name}", name)
    return (
        str(Path(url).expanduser().resolve()) if "://" not in url and not re.match(r"[\w.-]+@?[\w.-]*:", url) else url
    )


def fetch_package(pin: Pin, folder: Path, *, mirror: str, patch: Path | None) -> str:
    """Fetch a repository at its pinned commit into a new folder and return the commit.

    Submodules and large-file pointers are not followed; git's own object ids are the integrity check.

    Raises:
        ToolError: git is missing, the mirror can not be reached or lacks the commit, the disk is full.
    """
    find_tool("git")
    url = mirror_url(mirror, pin.repository)
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet", "--template=")
    fetched = _fetch_ref(folder, url, pin.ref)
    if fetched.returncode != 0:
        raise _fetch_error(pin, folder, url, fetched.output)
    _git(folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    commit = _git(folder, "rev-parse", "HEAD^{commit}").output.strip()
    if pin.commit and commit != pin.commit:
        raise ToolError(
            f"{pin.repository}: {_hide(url)} gave commit {commit} where {pin.commit} was asked for",
            hint="The mirror is not what it says it is, or a tag was moved; nothing was installed.",
        )
    if patch is not None:
        _apply_patch(pin, folder, patch, commit)
    _prune(folder, pin.package)
    return commit


def _fetch_ref(folder: Path, url: str, ref: str) -> Completed:
    options = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
    try:
        return _git(folder, "fetch", *options, url, ref, timeout_s=FETCH_TIMEOUT_S, check=False)
    except ToolError as error:
        raise ToolError(error.message, hint=_hide(error.hint)) from None


def _git(folder: Path, *args: str, timeout_s: float = _LOCAL_TIMEOUT_S, check: bool = True) -> Completed:
    """Run git in a folder's own repository, whatever repository or hook forge itself was started from."""
    git_dir = folder / ".git"
    options = [
        "-c",
        "core.autocrlf=false",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "advice.detachedHead=false",
    ]
    options += ["-c", "filter.lfs.smudge=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false"]
    environment = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(folder),
        "GIT_INDEX_FILE": str(git_dir / "index"),
        "LC_ALL": "C",
    }
    try:
        return run(["git", *options, *args], timeout_s=timeout_s, cwd=folder, env=environment, check=check)
    except ToolError as error:
        if _is_disk_full(folder, f"{error.message}\n{error.hint}"):
            raise disk_full_error(str(folder.parent)) from error
        raise


def _is_disk_full(folder: Path, output: str) -> bool:
    """Return whether git failed for want of space: it does not always say so."""
    return bool(_DISK_FULL.search(output)) or shutil.disk_usage(folder).free < _FULL_BELOW_BYTES


def _fetch_error(pin: Pin, folder: Path, url: str, output: str) -> ToolError:
    shown = _hide(url)
    said = output.strip().splitlines()
    tail = _hide("\n".join([line for line in said if line.startswith(("fatal:", "error:"))] or said[-3:]))
    if _is_disk_full(folder, output):
        return disk_full_error(pin.repository)
    if _NO_COMMIT.search(output):
        what = f"tag {pin.ref.removeprefix('refs/tags/')}" if pin.ref.startswith("refs/tags/") else f"commit {pin.ref}"
        return ToolError(
            f"{pin.repository}: {shown} does not have {what}",
            hint=f"Bring the mirror up to date, or say which commit to use instead: "
            f"--commit {pin.repository}=<commit> (recorded as not the pinned one).",
        )
    if _UNREACHABLE.search(output):
        return ToolError(
            f"{pin.repository}: {shown} can not be reached",
            hint=f"{tail}\nUse a mirror: --mirror 'URL-or-folder with {{owner}} and {{name}}' or "
            f"{MIRROR_VARIABLE}; or a tree of your own: --tree DIR.",
        )
    return ToolError(f"{pin.repository}: fetching {pin.ref} from {shown} failed", hint=tail)


def disk_full_error(what: str) -> ToolError:
    """Build the error for a disk that filled up while something was installed."""
    return ToolError(
        f"{what}: the disk is full; nothing was installed",
        hint="A tree needs 25 MB, and 300 MB while it is installed. Free some, or set FORGE_HOME elsewhere.",
    )


def hide_credentials(url: str) -> str:
    """Return a URL without a user's name and password."""
    return _CREDENTIALS.sub("", url)


_hide = hide_credentials


def _apply_patch(pin: Pin, folder: Path, patch: Path, commit: str) -> None:
    """Apply the patch that the TFLM tree carries for a package, as upstream's download script does."""
    done = _git(folder, "apply", "--ignore-space-change", "--ignore-whitespace", str(patch.resolve()), check=False)
    if done.returncode != 0:
        raise ToolError(
            f"{pin.repository}: TFLM's own patch {patch.name} does not apply to commit {commit}",
            hint=f"{done.output.strip()}\nUse the commit that the tree pins"
            + (f" ({pin.override_of})." if pin.override_of else "."),
        )


def _prune(folder: Path, package: str) -> None:
    """Remove what no build needs: git's own data, tests, examples."""
    shutil.rmtree(folder / ".git")
    kept = {path for pattern in (*_KEPT[package], *_LICENCES) for path in folder.glob(pattern)}
    parents = {parent for path in kept for parent in path.parents}
    for path in sorted(folder.rglob("*"), key=lambda p: len(p.parts)):
        inside = path in kept or path in parents or not kept.isdisjoint(path.parents)
        if not inside and os.path.lexists(path):
            _remove(path)
    for name in _DROPPED.get(package, ()):
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
