"""Finds a project's manifests, models and resolver sources by the patterns of its forge.toml."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_BUILD_MARK = ".forge-files"
"""Stands in every folder that forge renders a firmware project into: nothing in there is the user's."""

_WILD = re.compile(r"[*?\[]")


def find_files(folder: Path, patterns: Iterable[str]) -> tuple[Path, ...]:
    """Return the files of a project that patterns name, sorted; a pattern without `*` or `?` also when it is absent.

    Args:
        folder: the project's folder. Hidden folders and folders that forge built into are not searched.
        patterns: paths from there, with `*` and `?` inside a name and `**` for any folders.
    """
    plain = [pattern for pattern in patterns if not _WILD.search(pattern)]
    wild = [_translate(pattern) for pattern in patterns if _WILD.search(pattern)]
    found = {folder / pattern for pattern in plain}
    if wild:
        found.update(path for path, name in _walk(folder) if any(each.fullmatch(name) for each in wild))
    return tuple(sorted(found))


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    for place, folders, names in os.walk(folder):
        if _BUILD_MARK in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(place)
        for name in names:
            path = here / name
            yield path, path.relative_to(folder).as_posix()


def _translate(pattern: str) -> re.Pattern[str]:
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", pattern.removeprefix("./"))
    return re.compile("".join(words.get(part) or (part if part[:1] == "[" else re.escape(part)) for part in parts))


def nearest_above(path: Path, folders: Iterable[Path]) -> Path | None:
    """Return the innermost of some folders that a file lies in, or None."""
    known = {folder.resolve() for folder in folders}
    return next((place for place in path.resolve().parents if place in known), None)


def find_root(folder: Path) -> Path:
    """Return the root of the git repository that a folder is in; the folder itself when it is in none."""
    here = folder.resolve()
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here)
