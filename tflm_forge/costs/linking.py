"""Links one firmware again and again with other operators: everything is compiled once, each link takes what it needs.

The project has every way to register every operator in a function of its own. A few lines of C++ say for each link
which of them are called, and the linker drops the rest with their kernels, as it would from any firmware.
"""

import json
import os
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tflm_forge.elf import read_elf
from tflm_forge.errors import ToolError
from tflm_forge.files import write_if_changed
from tflm_forge.generate import Project
from tflm_forge.objects import TOOL, cache_environment
from tflm_forge.proc import run
from tflm_forge.runtimes import Registration
from tflm_forge.toolchains import cmake

Choice = tuple[int, ...]
"""Indices of the registrations that firmware makes."""

_TIMEOUT_S = 600.0
_TARGET = "firmware.elf"
_ARCHIVE = "runtime.a"
_APPLICATION = "CMakeFiles/firmware.dir/src/"
_RESOLVER = "CMakeFiles/firmware.dir/src/op_resolver.cc.obj"
_CALLS_NAME = "op_calls.cc"
_CALLS_OBJECT = _RESOLVER.replace("op_resolver.cc", _CALLS_NAME)
_SIZES_NAME = "sizes.json"

_WITH_FILE = ("-include", "-MT", "-MF", "-o", "-c")

# Debug information changes no byte that is loaded, and costs most of a link's time.
_DROPPED = ("-g", "-Wl,--emit-relocs", "-Wl,-Map=firmware.map", "-o", _TARGET)


@dataclass(kw_only=True)
class Linker:
    """Links a built project's firmware with any choice of registrations.

    Attributes:
        project: a project whose plan has every operator's sources.
        registrations: every way to register every operator.
    """

    project: Project
    registrations: Sequence[Registration]
    _compile_choice: Sequence[str]
    _link: Sequence[str]
    _sizes: dict[str, int] = field(default_factory=dict)

    @classmethod
    def build(cls, project: Project, registrations: Sequence[Registration]) -> "Linker":
        """Compile a project, and what links of it need besides.

        Sizes that an earlier run measured of the very same project are taken over.

        Raises:
            ToolError: a tool is missing or failed.
        """
        cmake.build(project)
        compile_resolver = _ninja_command(project, _RESOLVER)
        write_if_changed(project.folder / "src" / _CALLS_NAME, render_calls(registrations).encode())
        _run(project, [word.replace("op_resolver.cc", _CALLS_NAME) for word in compile_resolver])
        linker = cls(
            project=project,
            registrations=registrations,
            _compile_choice=_without_files(compile_resolver),
            _link=_archive_runtime(project, _ninja_command(project, _TARGET)),
        )
        linker._sizes.update(linker._read_sizes())
        return linker

    def measure(self, choices: Iterable[Choice], progress: Callable[[int, int], None]) -> None:
        """Link firmware for each choice, several at a time.

        Args:
            choices: what to register.
            progress: gets how many links are done, and how many there are.

        Raises:
            ToolError: a link failed.
        """
        wanted = list(dict.fromkeys(choices))
        missing = [choice for choice in wanted if _key(choice) not in self._sizes]
        done = len(wanted) - len(missing)
        pool = ThreadPoolExecutor(os.cpu_count())
        try:
            for choice, size_bytes in zip(missing, pool.map(self._link_choice, missing), strict=True):
                self._sizes[_key(choice)] = size_bytes
                self._write_sizes()
                done += 1
                progress(done, len(wanted))
        finally:
            pool.shutdown(cancel_futures=True)

    def flash_bytes(self, choice: Choice) -> int:
        """Return what flash holds of firmware with a choice that was measured, model included."""
        return self._sizes[_key(choice)]

    def _link_choice(self, choice: Choice) -> int:
        with tempfile.TemporaryDirectory(prefix="choice-", dir=self.project.folder / "build") as place:
            source, made = Path(place) / "choice.cc", Path(place) / "choice.obj"
            source.write_text(render_choice(choice), encoding="utf-8")
            _run(self.project, [*self._compile_choice, "-o", made, "-c", source])
            elf = Path(place) / _TARGET
            _run(self.project, [*self._link, _CALLS_OBJECT, made, _ARCHIVE, "-Wl,--strip-debug", "-o", elf])
            return sum(section.size_bytes for section in read_elf(elf).sections if section.has_bytes)

    def _read_sizes(self) -> dict[str, int]:
        try:
            record: Mapping[str, dict[str, int]] = json.loads((self.project.folder / "build" / _SIZES_NAME).read_text())
            return dict(record[self._fingerprint])
        except (OSError, ValueError, KeyError):
            return {}

    def _write_sizes(self) -> None:
        text = json.dumps({self._fingerprint: self._sizes})
        write_if_changed(self.project.folder / "build" / _SIZES_NAME, text.encode())

    @property
    def _fingerprint(self) -> str:
        calls = " ".join(registration.call for registration in self.registrations)
        return f"{self.project.build_id.hex()} {calls}"


def _key(choice: Choice) -> str:
    return " ".join(str(index) for index in choice)


def render_calls(registrations: Sequence[Registration]) -> str:
    """Return C++ with a function for each registration, and RegisterOps that leaves the choice to another file."""
    includes = sorted({include for registration in registrations for include in registration.includes})
    functions = [
        f"int forge_register_{index}(void* resolver) {{ "
        f"return static_cast<forge::OpResolver*>(resolver)->{registration.call}; }}"
        for index, registration in enumerate(registrations)
    ]
    return "\n".join(
        [
            '#include "op_resolver.h"',
            *(f'#include "{include}"' for include in includes),
            'extern "C" {',
            "int forge_register_chosen(void* resolver);",
            *functions,
            "}",
            "namespace forge {",
            "RegisterResult RegisterOps(OpResolver& resolver) {",
            "  return {forge_register_chosen(&resolver) == 0 ? kTfLiteOk : kTfLiteError, -1};",
            "}",
            "}  // namespace forge",
            "",
        ]
    )


def render_choice(chosen: Choice) -> str:
    """Return C++ that calls the chosen registrations, each by its number in `render_calls`."""
    return "\n".join(
        [
            'extern "C" {',
            *(f"int forge_register_{index}(void* resolver);" for index in chosen),
            "int forge_register_chosen([[maybe_unused]] void* resolver) {",
            *(f"  if (forge_register_{index}(resolver) != 0) return 1;" for index in chosen),
            "  return 0;",
            "}",
            "}",
            "",
        ]
    )


def _ninja_command(project: Project, target: str) -> tuple[str, ...]:
    """Return the command that makes a target of a project's build, without what comes after it."""
    output = run(["ninja", "-C", project.folder / "build", "-t", "commands", "-s", target], timeout_s=60.0).output
    commands = [words for line in output.splitlines() if target in (words := shlex.split(line))]
    if not commands:
        raise ToolError(f"{project.folder}: ninja does not say how {target} is made", hint=output.strip()[:200])
    words = commands[-1]
    if words[:2] == [":", "&&"]:
        words = words[2:]
    return tuple(words[: words.index("&&")] if "&&" in words else words)


def _without_files(words: Sequence[str]) -> list[str]:
    """Return a compile command without its files, the cache and the precompiled header: a few lines do without."""
    arguments = {word for before, word in pairwise(words) if before in _WITH_FILE}
    dropped = {"-fpch-preprocess", "-Winvalid-pch", "-MD", TOOL, *_WITH_FILE}
    return [word for word in words if word not in dropped | arguments]


def _archive_runtime(project: Project, words: Sequence[str]) -> tuple[str, ...]:
    """Put the runtime's objects into an archive, of which a link reads what it needs; return the rest of the link."""
    objects = [word for word in words if word.endswith(".obj") and not word.startswith(_APPLICATION)]
    (project.folder / "build" / _ARCHIVE).unlink(missing_ok=True)
    _run(project, ["arm-none-eabi-gcc-ar", "rcsT", _ARCHIVE, *objects])
    dropped = {*objects, *_DROPPED, _RESOLVER}
    return tuple(word for word in words if word not in dropped)


def _run(project: Project, words: Sequence[str | Path]) -> None:
    run(words, timeout_s=_TIMEOUT_S, cwd=project.folder / "build", env=cache_environment(project.folder))
