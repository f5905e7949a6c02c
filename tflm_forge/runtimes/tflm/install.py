"""Installs, lists and removes TFLM trees: each is there whole or not at all."""

import contextlib
import errno
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock

from tflm_forge import __version__
from tflm_forge.errors import ToolError, UsageError
from tflm_forge.files import write_if_changed
from tflm_forge.proc import has_tool, run
from tflm_forge.registry import unknown_name
from tflm_forge.resources import home_dir
from tflm_forge.runtimes.tflm.fetch import disk_full_error, fetch_package
from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT, TFLM_REPOSITORY, Pin, read_pins, tflm_pin
from tflm_forge.runtimes.tflm.tree import PACKAGES, Tree, locate_packages

RECORD_NAME = "tree.json"
CATALOGUE_NAME = "catalogue.json"
LEAN_SCHEMA = "lean/schema_generated.h"
"""A copy of the schema header without its object API: see lean_schema.py."""
OBJECT_TYPES = "lean/object_types.txt"
"""The types of the object API; a source that names one can not do with the lean copy."""

_RECORD_FORMAT = 2
_LOCK_TIMEOUT_S = 1800.0
_STAGING_PREFIX = ".staging-"
_CURRENT_NAME = "current"
_FLATBUFFERS_BASE = "flatbuffers/include/flatbuffers/base.h"
_SCHEMA = "tflite-micro/tensorflow/lite/schema/schema_generated.h"
_SCHEMA_OLD = "tflite-micro/tensorflow/compiler/mlir/lite/schema/schema_generated.h"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where one package of an installed tree came from; `commit` is empty for a folder without git."""

    package: str
    repository: str
    commit: str
    override_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """One installed tree.

    Attributes:
        name: the word that names it: the start of its commit, or "tree-<name>".
        folder: where it lies; its packages are folders (or links, for a tree used in place) in it.
        version: what firmware and manifests call it.
        in_place: the user's folder, for a tree that is used in place; empty otherwise.
        sources: one per package.
    """

    name: str
    folder: Path
    version: str
    in_place: str = ""
    sources: tuple[Source, ...]

    def tree(self) -> Tree:
        """Return the tree itself."""
        return Tree(version=self.version, folders={p: self.folder / p for p in PACKAGES if (self.folder / p).exists()})


def runtime_dir() -> Path:
    """Return the folder of all installed TFLM trees."""
    return home_dir() / "runtimes" / "tflm"


def list_installed() -> tuple[Installed, ...]:
    """Return the installed trees by name; a tree that is not whole is not listed."""
    base = runtime_dir()
    if not base.is_dir():
        return ()
    found = [_read_record(f) for f in sorted(base.iterdir()) if not f.name.startswith(".") and f.is_dir()]
    return tuple(record for record in found if record is not None)


def find_installed(name: str = "") -> Installed | None:
    """Return the tree of a name or a commit's start, without one the tree in use; None when there is none.

    Raises:
        UsageError: trees are installed, but none of that name.
    """
    if not name:
        current = runtime_dir() / _CURRENT_NAME
        chosen = current.read_text(encoding="utf-8").strip() if current.is_file() else ""
        record = _read_record(runtime_dir() / chosen) if chosen else None
        return record or next(iter(list_installed()), None)
    installed = list_installed()
    match = [r for r in installed if name == r.name or (len(name) >= 7 and r.version.startswith(name))]
    if not match:
        raise unknown_name("installed TFLM tree", name, (r.name for r in installed))
    return match[0]


def use_tree(name: str) -> Installed:
    """Make an installed tree the one that builds use."""
    record = find_installed(name)
    if record is None:
        raise UsageError("no TFLM tree is installed", hint="forge runtime install tflm")
    write_if_changed(runtime_dir() / _CURRENT_NAME, f"{record.name}\n".encode())
    return record


def install(
    *,
    mirror: str = "",
    commits: Mapping[str, str] | None = None,
    tree: Path | None = None,
    force: bool = False,
) -> Installed:
    """Install a TFLM tree and make it the one that builds use.

    Args:
        mirror: URL or folder pattern with `{owner}` and `{name}`; empty for GitHub.
        commits: repository to the commit the user wants instead of the pinned one.
        tree: a user's checkout, or the output of upstream's create_tflm_tree.py, to be used in place;
            packages it lacks are fetched.
        force: install again what is installed already.

    Raises:
        ToolError: git, the mirror or the disk failed, or the tree is not complete; nothing is installed then.
        UsageError: the user's tree is no TFLM tree.
    """
    wanted = commits or {}
    base = runtime_dir()
    with _locked(base):
        for left in base.glob(f"{_STAGING_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        name = _tree_name(tree) if tree is not None else _commit_name(wanted)
        target = base / name
        done = None if force else _read_record(target)
        if done is None or (tree is None and not _same_commits(done, wanted)):
            with _staging(base) as staging:
                if tree is None:
                    _stage_fetched(staging, mirror, wanted)
                else:
                    _stage_in_place(staging, tree.resolve(), mirror, wanted)
                _replace(staging, target)
        write_if_changed(base / _CURRENT_NAME, f"{name}\n".encode())
    record = _read_record(target)
    if record is None:
        raise ToolError(f"{target}: vanished while it was installed")
    return record


def remove(name: str) -> Installed:
    """Remove an installed tree; a user's own folder is never touched."""
    record = find_installed(name)
    if record is None:
        raise UsageError("no TFLM tree is installed")
    base = runtime_dir()
    with _locked(base):
        doomed = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=base)) / "tree"
        record.folder.rename(doomed)
        shutil.rmtree(doomed.parent)
        current = base / _CURRENT_NAME
        if current.is_file() and current.read_text(encoding="utf-8").strip() == record.name:
            current.unlink()
    return record


def refresh(record: Installed) -> Installed:
    """Read a tree's catalogue again when a user's tree has changed since, or another forge read it."""
    stored = _read_json(record.folder / RECORD_NAME)
    if not record.in_place and stored.get("forge") == __version__:
        return record
    if not (record.folder / "tflite-micro").is_dir():
        raise ToolError(
            f"the TFLM tree {record.in_place or record.folder} is gone",
            hint=f"forge runtime remove {record.name}, or bring it back.",
        )
    same_files = not record.in_place or _fingerprint(record.tree()) == stored.get("fingerprint")
    if same_files and stored.get("forge") == __version__:
        return record
    version = _in_place_version(Path(record.in_place)) if record.in_place else record.version
    with _locked(runtime_dir()):
        _finish(record.folder, version=version, in_place=record.in_place, sources=[*record.sources])
    return _read_record(record.folder) or record


def _fingerprint(tree: Tree) -> str:
    """Return a value that changes when a source or header of the tree is written, added or removed."""
    digest = hashlib.sha256()
    for pattern in ("tensorflow/**/*.[ch]*", "signal/**/*.[ch]*"):
        for file in tree.glob("tflite-micro", pattern):
            status = tree.path(file).stat()
            digest.update(f"{file} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(base: Path) -> Iterator[None]:
    """Hold the lock of all installed trees; turn a full disk and refused access into errors with a remedy."""
    try:
        base.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(base / ".lock", timeout=_LOCK_TIMEOUT_S):
            yield
    except filelock.Timeout as cause:
        raise ToolError(f"{base}: another install did not finish within {_LOCK_TIMEOUT_S:g} s") from cause
    except OSError as cause:
        if cause.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full_error(str(base)) from cause
        raise ToolError(
            f"{cause.filename or base}: {cause.strerror or cause}", hint="FORGE_HOME chooses another folder."
        ) from cause


@contextlib.contextmanager
def _staging(base: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _replace(staging: Path, target: Path) -> None:
    """Put the staged tree in place; an older one of the same name goes first."""
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=_STAGING_PREFIX, dir=target.parent))
        target.rename(old / "old")
        (staging / "tree").rename(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        (staging / "tree").rename(target)


def _stage_fetched(staging: Path, mirror: str, commits: Mapping[str, str]) -> None:
    folder = staging / "tree"
    folder.mkdir()
    own = tflm_pin(commits)
    sources = [_fetch(own, folder, mirror, None)]
    tree = Tree(version=own.commit, folders={"tflite-micro": folder / "tflite-micro"})
    for pin in read_pins(tree, commits):
        sources.append(_fetch(pin, folder, mirror, tree.path(pin.patch) if pin.patch else None))
    _finish(folder, version=own.commit, in_place="", sources=sources)


def _stage_in_place(staging: Path, root: Path, mirror: str, commits: Mapping[str, str]) -> None:
    """Link a user's tree into the staged folder and fetch the packages it lacks."""
    folder = staging / "tree"
    folder.mkdir()
    packages = locate_packages(root)
    version = _in_place_version(root)
    commit = _head_commit(root)
    for package, path in packages.items():
        (folder / package).symlink_to(path, target_is_directory=True)
    sources = [
        Source(package=p, repository=TFLM_REPOSITORY if p == "tflite-micro" else "", commit="") for p in packages
    ]
    sources[0] = Source(package="tflite-micro", repository=TFLM_REPOSITORY, commit=commit.removesuffix("-changed"))
    missing = [p for p in PACKAGES if p not in packages]
    if missing:
        tree = Tree(version=version, folders={"tflite-micro": root})
        for pin in read_pins(tree, commits):
            if pin.package in missing:
                sources.append(_fetch(pin, folder, mirror, tree.path(pin.patch) if pin.patch else None))
    _finish(folder, version=version, in_place=str(root), sources=sources)


def _fetch(pin: Pin, folder: Path, mirror: str, patch: Path | None) -> Source:
    commit = fetch_package(pin, folder / pin.package, mirror=mirror, patch=patch)
    return Source(package=pin.package, repository=pin.repository, commit=commit, override_of=pin.override_of)


def _finish(folder: Path, *, version: str, in_place: str, sources: list[Source]) -> None:
    """Check that the tree is complete, read its catalogue, and write the record last."""
    from tflm_forge.runtimes.tflm.lean_schema import find_object_types, strip_object_api
    from tflm_forge.runtimes.tflm.reading import read_tree

    tree = Tree(version=version, folders={p: folder / p for p in PACKAGES if (folder / p).exists()})
    _check_flatbuffers(tree)
    if tree.has(_SCHEMA):
        header = tree.read(_SCHEMA)
        write_if_changed(folder / LEAN_SCHEMA, strip_object_api(header).encode())
        write_if_changed(folder / OBJECT_TYPES, "\n".join(find_object_types(header)).encode())
    write_if_changed(folder / CATALOGUE_NAME, f"{json.dumps(read_tree(tree), indent=1)}\n".encode())
    record = {
        "format": _RECORD_FORMAT,
        "forge": __version__,
        "version": version,
        "in_place": in_place,
        "fingerprint": _fingerprint(tree) if in_place else "",
        "sources": [asdict(source) for source in sources],
    }
    write_if_changed(folder / RECORD_NAME, f"{json.dumps(record, indent=1)}\n".encode())


def _check_flatbuffers(tree: Tree) -> None:
    """Compare the flatbuffers headers with the version that the schema header insists on when compiled."""
    have = _versions(tree.read(_FLATBUFFERS_BASE), "#define")
    want = next(
        (v for f in (_SCHEMA, _SCHEMA_OLD) if tree.has(f) for v in [_versions(tree.read(f), "static_assert")] if v),
        (),
    )
    if want and have and want != have:
        raise ToolError(
            f"TFLM {tree.version} needs flatbuffers {'.'.join(want)}; this one is {'.'.join(have)}",
            hint="Use the flatbuffers commit that the tree pins.",
        )


def _versions(text: str, kind: str) -> tuple[str, ...]:
    pattern = r"#define FLATBUFFERS_VERSION_{} (\d+)" if kind == "#define" else r"FLATBUFFERS_VERSION_{} == (\d+)"
    found = [re.search(pattern.format(part), text) for part in ("MAJOR", "MINOR", "REVISION")]
    return tuple(m.group(1) for m in found if m)


def _read_record(folder: Path) -> Installed | None:
    """Return the record of an installed tree, or None when it is not one or is damaged."""
    try:
        record = _read_json(folder / RECORD_NAME)
        if record["format"] != _RECORD_FORMAT:
            return None
        return Installed(
            name=folder.name,
            folder=folder,
            version=record["version"],
            in_place=record["in_place"],
            sources=tuple(Source(**source) for source in record["sources"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_json(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def _commit_name(commits: Mapping[str, str]) -> str:
    name = commits.get(TFLM_REPOSITORY, TFLM_COMMIT)[:12]
    others = sorted(f"{r}={c}" for r, c in commits.items() if r != TFLM_REPOSITORY)
    return f"{name}-{hashlib.sha256(' '.join(others).encode()).hexdigest()[:6]}" if others else name


def _tree_name(root: Path) -> str:
    resolved = root.resolve()
    slug = re.sub(r"[^\w.-]+", "-", resolved.name) or "root"
    return f"tree-{slug}-{hashlib.sha256(str(resolved).encode()).hexdigest()[:6]}"


def _same_commits(record: Installed, commits: Mapping[str, str]) -> bool:
    have = {source.repository: source.commit for source in record.sources}
    return all(have.get(repository) == commit for repository, commit in commits.items())


def _in_place_version(root: Path) -> str:
    return _head_commit(root) or f"tree-{root.name}"


def _head_commit(root: Path) -> str:
    """Return the commit of a user's checkout, "<commit>-changed" when files differ; empty without git."""
    if not (root / ".git").exists() or not has_tool("git"):
        return ""
    head = run(["git", "-C", root, "rev-parse", "HEAD"], timeout_s=60.0, check=False)
    if head.returncode != 0:
        return ""
    changed = run(["git", "-C", root, "status", "--porcelain", "-uno"], timeout_s=60.0, check=False)
    return head.output.strip() + ("-changed" if changed.output.strip() else "")
