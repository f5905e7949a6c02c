"""The user's own kernels: checks the [[op]] tables of forge.toml and puts their ops into a runtime's catalogue."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tflm_forge.config import CONFIG_NAME, OpTable
from tflm_forge.errors import UsageError
from tflm_forge.model import CUSTOM_CODE, OpUse, enum_value
from tflm_forge.ops.catalogue import Catalogue, CatalogueOp
from tflm_forge.ops.cpp import cpp_string, is_qualified_name
from tflm_forge.registry import unknown_name

_DOCUMENT = "docs/custom-ops.md has a worked one; `forge op new NAME` writes one."
_MOST_NAME_BYTES = 255
"""The op hash and the link keep the length of a name in one byte."""
_MOST_VERSION = 2**31 - 1


def own_name(table: OpTable) -> str:
    """Return the name of the op that a kernel is for: of the op it stands for, else its own."""
    return table.replaces or table.name


def find_own(use: OpUse, tables: Iterable[OpTable]) -> OpTable | None:
    """Return the user's kernel for an op of a model, or None."""
    for table in tables:
        if own_name(table) == use.name and (table.replaces or use.builtin_code == CUSTOM_CODE):
            return table
    return None


def own_header(table: OpTable) -> Path:
    """Return the header that declares the registration function."""
    return table.header or table.sources[0].with_suffix(".h")


def add_own_ops(catalogue: Catalogue, tables: Sequence[OpTable]) -> Catalogue:
    """Return a runtime's catalogue with the user's own kernels in it.

    Args:
        catalogue: the runtime's.
        tables: the tables [[op]] of forge.toml.

    Raises:
        UsageError: a table lacks a key or a file, two are for one op, or the runtime can not take one; names all.
    """
    reasons = [f"[[op]] {_shown(table)}: {text}" for table in tables for text in _find_faults(table)]
    reasons += [f"[[op]] {name}: there are two tables for this op" for name in _doubles(tables)]
    if not reasons:
        reasons = [f"[[op]] {_shown(table)}: {text}" for table in tables for text in _find_misfits(table, catalogue)]
    if reasons:
        raise UsageError(f"{CONFIG_NAME}: an operator of your own can not be used", reasons=reasons, hint=_DOCUMENT)
    rows = [_own_row(table, catalogue) for table in tables]
    return replace(catalogue, ops={**catalogue.ops, **{row.key: row for row in rows}})


def _shown(table: OpTable) -> str:
    return own_name(table) or "without name"


def _doubles(tables: Sequence[OpTable]) -> list[str]:
    names = [own_name(table) for table in tables]
    return sorted({name for name in names if name and names.count(name) > 1})


def _find_faults(table: OpTable) -> Iterator[str]:
    """Say what is wrong with a table whatever the runtime."""
    if not own_name(table):
        yield "name is missing: the exact name of the custom op in the model"
    elif len(own_name(table).encode()) > _MOST_NAME_BYTES or "\0" in own_name(table):
        yield f"name must have at most {_MOST_NAME_BYTES} bytes, none of them 0"
    elif table.replaces is None and enum_value("BuiltinOperator", table.name) is not None:
        yield f'{table.name} is a builtin op: write replaces = "{table.name}" to use your kernel for it'
    if not table.register:
        yield 'register is missing: the C++ function, such as "tflite::Register_MY_OP"'
    elif not is_qualified_name(table.register):
        yield f"register = {table.register!r} is not the name of a C++ function, such as tflite::Register_MY_OP"
    if table.version is not None and not 1 <= table.version <= _MOST_VERSION:
        yield f"version = {table.version}: versions count from 1"
    for name in table.types:
        if enum_value("TensorType", name) is None:
            yield f"types: {name!r} is no tensor type; types are INT8, INT16, FLOAT32 and so on"
    yield from _find_absent_files(table)


def _find_absent_files(table: OpTable) -> Iterator[str]:
    if not table.sources:
        yield "sources is missing: the C++ files of the kernel"
        return
    for path in table.sources:
        if path.suffix not in SOURCE_SUFFIXES:
            yield f"sources: {path.name} has none of the endings {', '.join(SOURCE_SUFFIXES)}"
    named = [("sources", path) for path in table.sources]
    named += [("header", own_header(table))]
    named += [(key, path) for key in ("reference", "test") if (path := getattr(table, key)) is not None]
    yield from (f"{key}: there is no file {path}" for key, path in named if not path.is_file())
    yield from (f"include_dirs: there is no folder {path}" for path in table.include_dirs if not path.is_dir())


def _find_misfits(table: OpTable, catalogue: Catalogue) -> Iterator[str]:
    """Say what of a table the runtime can not take."""
    runtime = f"runtime {catalogue.runtime} {catalogue.version}"
    names = {op.name: op for op in catalogue.ops.values()}
    if table.replaces is None:
        if (CUSTOM_CODE, table.name) in catalogue.ops:
            yield f'{runtime} has a kernel for this op: write replaces = "{table.name}" to use yours instead'
    elif table.replaces not in names:
        error = unknown_name("op", table.replaces, names)
        near = error.hint.partition("Known:")[0].strip()
        yield f"replaces: {runtime} has no op {table.replaces!r}. {near}".strip()
    elif names[table.replaces].builtin_code != CUSTOM_CODE and not names[table.replaces].registrations:
        method = names[table.replaces].add_method
        yield f"replaces: {method} of {runtime} takes no registration but its own, so this op can not be replaced"
    for name in table.uses:
        if name not in names:
            yield f"uses: {runtime} has no op {name!r}"


def _own_row(table: OpTable, catalogue: Catalogue) -> CatalogueOp:
    if table.replaces is None:
        return CatalogueOp(
            builtin_code=CUSTOM_CODE,
            custom_name=table.name,
            name=table.name,
            add_method="AddCustom",
            registrations={"": table.register},
            sources=tuple(path.name for path in table.sources),
            max_version=table.version or 1,
            version_source=f"[[op]] of {CONFIG_NAME}",
            types=table.types,
            is_own=True,
        )
    row = next(op for op in catalogue.ops.values() if op.name == table.replaces)
    return replace(
        row,
        registrations={"": table.register},
        sources=tuple(path.name for path in table.sources),
        max_version=table.version or row.max_version,
        version_source=f"[[op]] of {CONFIG_NAME}",
        types=table.types,
        weights={},
        is_own=True,
    )


def registration_call(row: CatalogueOp) -> str:
    """Return the call on the op resolver that registers the user's kernel.

    `Own` of op_resolver.cc takes what a registration function returns, the registration or its address.
    """
    own = f"Own({row.registrations['']}())"
    if row.builtin_code == CUSTOM_CODE:
        return f"AddCustom({cpp_string(row.custom_name)}, &{own})"
    return f"{row.add_method}({own})"


OWN_FOLDER = "ops"
"""Folder of the project that the user's sources are copied to."""

SOURCE_SUFFIXES = (".cc", ".cpp", ".cxx", ".c", ".S")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
# Headers of the runtime: a checkout of TFLM around the kernel must not be copied with it.
_RUNTIME_FOLDERS = ("tensorflow", "signal", "flatbuffers")


@dataclass(frozen=True, kw_only=True)
class OwnFile:
    """A file of the user's that a project holds a copy of.

    Attributes:
        name: where it stands in the project ("ops/my_op.cc").
        path: where it is read from.
    """

    name: str
    path: Path

    @property
    def is_source(self) -> bool:
        """Whether it is compiled, and not only included."""
        return self.path.suffix in SOURCE_SUFFIXES


@dataclass(frozen=True, kw_only=True)
class OwnFiles:
    """All files of the kernels of a build, and the include folders for them, relative to the project."""

    files: tuple[OwnFile, ...] = ()
    include_dirs: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """What of them is compiled, as it stands in the project."""
        return tuple(file.name for file in self.files if file.is_source)

    def name_of(self, path: Path) -> str:
        """Return where a file stands in the project."""
        return next(file.name for file in self.files if file.path == _absolute(path))


def collect_files(tables: Sequence[OpTable]) -> OwnFiles:
    """Return the sources of kernels with every header of the user's own that they include.

    Files keep their places to each other: below the project's folder `ops` stands what the folders of all of them have
    in common.

    Raises:
        UsageError: a file can not be read.
    """
    if not tables:
        return OwnFiles()
    found: set[Path] = set()
    folders: set[Path] = set()
    for table in tables:
        dirs = [_absolute(folder) for folder in table.include_dirs]
        folders.update(dirs)
        waiting = [_absolute(path) for path in (*table.sources, own_header(table))]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                waiting += _find_included(path, dirs)
    base = _common_folder([*(path.parent for path in found), *folders])
    files = [OwnFile(name=f"{OWN_FOLDER}/{path.relative_to(base).as_posix()}", path=path) for path in sorted(found)]
    inside = (f"{OWN_FOLDER}/{folder.relative_to(base).as_posix()}".removesuffix("/.") for folder in sorted(folders))
    return OwnFiles(files=tuple(files), include_dirs=tuple(dict.fromkeys((OWN_FOLDER, *inside))))


def name_own_sources(tables: Sequence[OpTable]) -> dict[str, str]:
    """Return the name of the op by each source as it stands in a project; tables without their files are left out."""
    whole = [table for table in tables if table.sources and not list(_find_absent_files(table))]
    files = collect_files(whole)
    return {files.name_of(source): own_name(table) for table in whole for source in table.sources}


def _find_included(path: Path, include_dirs: Sequence[Path]) -> list[Path]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: can not read: {error.strerror or error}") from error
    found = []
    for name in _INCLUDE.findall(text):
        if Path(name).parts[:1] and Path(name).parts[0] in _RUNTIME_FOLDERS:
            continue
        places = (_absolute(folder / name) for folder in (path.parent, *include_dirs))
        included = next((place for place in places if place.is_file()), None)
        if included is not None:
            found.append(included)
    return found


def _absolute(path: Path) -> Path:
    return path.resolve()


def _common_folder(folders: Sequence[Path]) -> Path:
    first, *others = folders
    return next(base for base in (first, *first.parents) if all(folder.is_relative_to(base) for folder in others))
