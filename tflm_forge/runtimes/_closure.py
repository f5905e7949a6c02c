"""Which files of a runtime a copy needs that is to be compiled elsewhere: the sources, and all that they include."""

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from tflm_forge.runtimes import BuildPlan

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def list_files(plan: BuildPlan, application: Iterable[bytes]) -> tuple[str, ...]:
    """Return the files of a plan's runtime that its sources and an application's need, relative to its root.

    Conditions of the preprocessor are not looked at: a header too many does no harm.

    Args:
        plan: what is compiled.
        application: the contents of the application's own sources and headers.
    """
    folders = [PurePosixPath(folder) for folder in plan.include_dirs]
    found = dict.fromkeys(plan.sources)
    pending = list(plan.sources)
    for content in application:
        pending += _add(found, (_resolve(plan.root, folders, name) for name in _included(content)))
    while pending:
        name = pending.pop()
        own = PurePosixPath(name).parent
        content = (plan.root / name).read_bytes()
        pending += _add(found, (_resolve(plan.root, [own, *folders], each) for each in _included(content)))
    return tuple(sorted(found))


def _included(content: bytes) -> list[str]:
    return [(quoted or angled).decode(errors="replace") for quoted, angled in _INCLUDE.findall(content)]


def _resolve(root: Path, folders: Iterable[PurePosixPath], name: str) -> str | None:
    for folder in folders:
        place = posixpath.normpath(folder / name)
        if not place.startswith(("..", "/")) and (root / place).is_file():
            return place
    return None


def _add(found: dict[str, None], names: Iterable[str | None]) -> list[str]:
    """Note the names that are new, and return them."""
    new = [name for name in dict.fromkeys(names) if name is not None and name not in found]
    found.update(dict.fromkeys(new))
    return new
