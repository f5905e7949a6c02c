"""Renders a firmware project: Model + Board + BuildPlan -> a folder that builds with or without forge."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from tflm_forge import __version__
from tflm_forge.board import Board, driver_files
from tflm_forge.config import BuildSettings
from tflm_forge.errors import UsageError
from tflm_forge.files import write_if_changed
from tflm_forge.link.status import STATUSES
from tflm_forge.manifest import MANIFEST_NAME, ManifestArena, make_manifest, render_embedded, render_manifest
from tflm_forge.manifest.measured import add_measured
from tflm_forge.model import Model, op_set
from tflm_forge.model.resources import count_resource_variables, has_state
from tflm_forge.ops.cpp import cpp_string
from tflm_forge.ops.hash import op_hash
from tflm_forge.resources import data_dir
from tflm_forge.runtimes import BuildPlan
from tflm_forge.runtimes._closure import list_files

_ARENA_FILE = "src/arena.cc"
_FACTS_NAME = "facts.yaml"
_INCLUDE = re.compile(rb'^#include "([^"]+)"', re.MULTILINE)
_LIST_NAME = ".forge-files"
_BUILD_ID_BYTES = 16
_MTU_BYTES = ((64 * 1024, 1024), (32 * 1024, 512), (0, 192))
"""Body of a frame by the bytes of RAM there are at least.

A large frame uses the line well (`tools/bench_link.py`); the firmware keeps two. The smallest still takes INFO with its
five names, the largest answer that can not be split.
"""


@dataclass(frozen=True, kw_only=True)
class ArenaParts:
    """What the bytes of an arena are for; they add up to its size.

    Attributes:
        head_bytes: tensors and scratch buffers, which share memory as the planner laid them out.
        tail_bytes: what the runtime and its kernels keep from the allocation on.
        temporary_bytes: what the allocation needs for a moment beyond both, with the rounding of the arena's size.
        resource_variable_bytes: how much of the tail holds the values of resource variables.
    """

    head_bytes: int
    tail_bytes: int
    temporary_bytes: int
    resource_variable_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Arena:
    """Size of the tensor arena in bytes, and how it is known ("measured on ...", "estimated", "given").

    `parts` is None where they were not measured.
    """

    bytes: int
    how: str
    parts: ArenaParts | None = None


@dataclass(frozen=True, kw_only=True)
class Project:
    """A rendered project: its folder, what it was rendered from, and its build id (16 bytes).

    `others` are the models that share the arena with the first.
    """

    folder: Path
    model: Model
    board: Board
    plan: BuildPlan
    settings: BuildSettings
    arena: Arena
    build_id: bytes
    others: tuple[Model, ...] = ()

    @property
    def models(self) -> tuple[Model, ...]:
        """All models, in the order in which the link counts them."""
        return (self.model, *self.others)


def generate_project(
    folder: Path,
    model: Model,
    board: Board,
    plan: BuildPlan,
    settings: BuildSettings,
    arena: Arena,
    others: Sequence[Model] = (),
) -> Project:
    """Render all files of a project; a file is written only when its content changed.

    Files that an earlier rendering of the folder left and this one does not have are removed.

    Raises:
        UsageError: the folder can not be written, or holds files that forge did not make in the way; or all tensors
            of several models are to be kept.
    """
    models = (model, *others)
    if others and settings.keep_tensors:
        raise UsageError("layers can be read only from firmware of one model", hint="Build each model on its own.")
    files = _render_files(models, board, plan, settings, arena)
    build_id = _build_id(files)
    files["src/forge_config.h"] = _render(
        "firmware/forge_config.h.j2", _config_context(models, board, plan, settings, build_id)
    )
    known_arena = ManifestArena(size_bytes=arena.bytes, how=arena.how)
    manifest = make_manifest(models, board, plan, settings, arena=known_arena, folder=folder)
    files[_FACTS_NAME] = render_embedded(manifest)
    files[MANIFEST_NAME] = render_manifest(add_measured(manifest, folder, build_id.hex()))
    _keep_off_sources(folder, plan)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = _list_own(folder)
        _refuse_strangers(folder, files, own)
        # The list comes first: whatever an interrupted rendering leaves is forge's own.
        _write_list(folder, own | set(files))
        for name, content in files.items():
            write_if_changed(folder / name, content)
        for name in own - set(files):
            (folder / name).unlink(missing_ok=True)
        _write_list(folder, set(files))
    except OSError as error:
        raise UsageError(
            f"{folder}: can not write the project: {error.strerror or error}",
            hint="Choose another folder with -o.",
        ) from error
    return Project(
        folder=folder,
        model=model,
        board=board,
        plan=plan,
        settings=settings,
        arena=arena,
        build_id=build_id,
        others=tuple(others),
    )


def fingerprint_project(
    model: Model, board: Board, plan: BuildPlan, settings: BuildSettings, others: Sequence[Model] = ()
) -> str:
    """Return a digest of everything that decides the arena's size, which is the build id in hex."""
    return _build_id(_render_files((model, *others), board, plan, settings, Arena(bytes=0, how=""))).hex()


def _render_files(
    models: Sequence[Model], board: Board, plan: BuildPlan, settings: BuildSettings, arena: Arena
) -> dict[str, bytes]:
    """Return every file of the project by its relative name; forge_config.h still without the build id.

    Template context: model (the first), models, model_files, op_hashes, board, plan, settings, arena, statuses,
    resource_variables (of each where there are several), forge_version, runtime_root, app_sources, runtime_users
    (those of app_sources that include the runtime's headers).
    """
    sources = _application_templates(board, several=len(models) > 1)
    counts = [count_resource_variables(model) for model in models]
    model_files = [model_file(index) for index in range(len(models))]
    context: dict[str, Any] = {
        "model": models[0],
        "models": models,
        "model_files": model_files,
        "op_hashes": [op_hash(op_set(model)) for model in models],
        "board": board,
        "plan": plan,
        "settings": settings,
        "arena": arena,
        "statuses": STATUSES,
        "resource_variables": counts if len(models) > 1 else counts[0],
        "forge_version": __version__,
        "runtime_root": "${CMAKE_SOURCE_DIR}/runtime" if plan.headers else plan.root.as_posix(),
        "app_sources": [
            *sorted(f"src/{name}" for name in sources if name.endswith((".cc", ".S"))),
            *plan.own.sources,
        ],
    }
    files = {f"src/{name}": _render(template, context) for name, template in sources.items()}
    files["src/forge_config.h"] = _render(
        "firmware/forge_config.h.j2", _config_context(models, board, plan, settings, bytes(_BUILD_ID_BYTES))
    )
    context["runtime_users"] = _runtime_users(files)
    files["linker.ld"] = _render("firmware/linker.ld.j2", context)
    if settings.toolchain == "platformio":
        files.update(_render_platformio(context, files))
    else:
        files.update(_render_cmake(context))
    files.update(zip(model_files, (model.data for model in models), strict=True))
    return files


def _render_cmake(context: Mapping[str, Any]) -> dict[str, bytes]:
    plan: BuildPlan = context["plan"]
    own = {file.name: file.path.read_bytes() for file in plan.own.files}
    files = {name: _render(f"cmake/{name}.j2", context) for name in ("CMakeLists.txt", "toolchain.cmake")}
    if plan.precompiled_headers:
        files["precompile.cmake"] = _render("cmake/precompile.cmake.j2", context)
    if plan.headers:
        files.update((f"runtime/{name}", (plan.root / name).read_bytes()) for name in (*plan.headers, *plan.sources))
    return {**files, **own}


def _render_platformio(context: Mapping[str, Any], application: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that make a project PlatformIO's: its settings, its local platform, the runtime as a library.

    Further template context: library, its name and folder below lib/; library_version.
    """
    plan: BuildPlan = context["plan"]
    library = f"{plan.runtime}_runtime"
    context = {**context, "library": library, "library_version": __version__}
    folder = data_dir("templates") / "platformio"
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*.j2")]
    files = {name.removesuffix(".j2"): _render(f"platformio/{name}", context) for name in names}
    files[f"lib/{library}/library.json"] = files.pop("library.json")
    files.update((f"src/{file.name}", file.path.read_bytes()) for file in plan.own.files)
    needed = list_files(plan, [*application.values(), *(file.path.read_bytes() for file in plan.own.files)])
    files.update((f"lib/{library}/{name}", (plan.root / name).read_bytes()) for name in needed)
    return files


def _runtime_users(files: Mapping[str, bytes]) -> list[str]:
    """Return the C++ sources that include a header of the runtime, directly or through their own headers."""
    includes = {name: set(_INCLUDE.findall(content)) for name, content in files.items()}
    users = {name for name, found in includes.items() if any(path.startswith(b"tensorflow/") for path in found)}
    grown = True
    while grown:
        more = {name for name, found in includes.items() if any(f"src/{path.decode()}" in users for path in found)}
        grown = not more <= users
        users |= more
    # What a user's own sources include is what they say, whatever was precompiled.
    return sorted(name for name in users if name.endswith(".cc") and name.startswith("src/"))


def model_file(index: int) -> str:
    """Return the name in the project's folder of a model, by its number."""
    return f"model_{index}.tflite" if index else "model.tflite"


def _application_templates(board: Board, *, several: bool) -> dict[str, str]:
    """Return the name in src/ of each application file and the template it comes from."""
    folder = data_dir("templates") / "firmware"
    names = {p.name for p in folder.iterdir() if p.is_file()} - {"linker.ld.j2", "forge_config.h.j2"}
    names.remove("interpreter.cc.j2" if several else "models.cc.j2")
    sources = {name.removesuffix(".j2"): f"firmware/{name}" for name in names}
    return {**sources, **driver_files(board.driver)}


def _config_context(
    models: Sequence[Model], board: Board, plan: BuildPlan, settings: BuildSettings, build_id: bytes
) -> dict[str, Any]:
    """Return the context of forge_config.h: what the firmware knows of itself."""
    uses = op_set(models[0]) if len(models) > 1 else [registration.use for registration in plan.registrations]
    return {
        "model": models[0],
        "models": models,
        "board": board,
        "plan": plan,
        "settings": settings,
        "has_state": any(has_state(model) for model in models),
        "forge_version": __version__,
        "build_id": build_id,
        "link_mtu": next(mtu for ram, mtu in _MTU_BYTES if board.ram.length_bytes >= ram),
        "op_hash": op_hash(uses),
    }


def _build_id(files: Mapping[str, bytes]) -> bytes:
    """Return a digest of all of a project but its arena: that is measured with the very firmware it is for."""
    digest = hashlib.sha256(__version__.encode())
    for name in sorted(files):
        if name != _ARENA_FILE:
            digest.update(f"{name}\0{len(files[name])}\0".encode())
            digest.update(files[name])
    return digest.digest()[:_BUILD_ID_BYTES]


def _list_own(folder: Path) -> set[str]:
    """Return the names of the files that forge rendered into a folder before."""
    listing = folder / _LIST_NAME
    if not listing.is_file():
        return set()
    names = listing.read_text(encoding="utf-8", errors="replace").splitlines()
    return {name for name in names if name and ".." not in Path(name).parts and not Path(name).is_absolute()}


def _write_list(folder: Path, names: set[str]) -> None:
    write_if_changed(folder / _LIST_NAME, "".join(f"{name}\n" for name in sorted(names)).encode())


def _refuse_strangers(folder: Path, files: Mapping[str, bytes], own: set[str]) -> None:
    """Leave files alone that stand in the way and are not forge's own."""
    strangers = [
        name
        for name, content in files.items()
        if name not in own and (folder / name).exists() and not _holds(folder / name, content)
    ]
    if strangers:
        raise UsageError(
            f"{folder}: {', '.join(sorted(strangers)[:3])} would be overwritten, and forge did not make it",
            hint="Choose another folder with -o, or move what is there.",
        )


def _keep_off_sources(folder: Path, plan: BuildPlan) -> None:
    """Refuse a folder in which the copies of the user's own sources would be the sources themselves."""
    for file in plan.own.files:
        if (folder / file.name).resolve() == file.path:
            raise UsageError(
                f"{folder}: holds {file.name}, a source of your own, which forge would take for its copy",
                hint="Choose another folder with -o.",
            )


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def _render(template: str, context: Mapping[str, Any]) -> bytes:
    return template_environment().get_template(template).render(context).encode()


_cached: jinja2.Environment | None = None


def template_environment() -> jinja2.Environment:
    """Return the environment that templates are rendered in: an undefined name is an error."""
    global _cached
    if _cached is None:
        _cached = jinja2.Environment(
            loader=jinja2.FileSystemLoader(data_dir("templates")),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )
        _cached.filters.update(
            cpp_string=cpp_string, cpp_comment=_cpp_comment, cpp_bytes=_cpp_bytes, bytes_of_hex=bytes.fromhex
        )
    return _cached


def _cpp_comment(text: str) -> str:
    """Return text that is safe in a comment of C++, CMake or a linker script."""
    return "".join(c if c.isprintable() and c != "\\" else "?" for c in text)[:80].replace("*/", "*?")


def _cpp_bytes(data: bytes) -> str:
    return ", ".join(f"0x{b:02x}" for b in data)
