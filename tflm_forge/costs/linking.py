"""Links one firmware again and again with other operators: everything is compiled once, each link takes what it needs.

The project has every way to register every operator in a function of its own. A few lines of C++ say for each link
which of them are called, and the linker drops the rest with their kernels, as it would from any firmware.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tflm_forge.elf import read_elf
from tflm_forge.errors import ToolError
from tflm_forge.files import write_if_changed
from tflm_forge.generate import Project
from tflm_forge.objects import cache_environment
from tflm_forge.proc import run
from tflm_forge.runtimes import Registration
from tflm_forge.toolchains import cmake

_TIMEOUT_S = 600.0
_TARGET = "firmware.elf"
_CHOSEN = "chosen.elf"
_ARCHIVE = "runtime.a"
_APPLICATION = "CMakeFiles/firmware.dir/src/"
_RESOLVER = "CMakeFiles/firmware.dir/src/op_resolver.cc.obj"
_CALLS_NAME = "op_calls.cc"
_CHOICE_NAME = "op_choice.cc"
_SIZES_NAME = "sizes.json"

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
    _sizes: dict[str, int] = field(default_factory=dict)
    _compile: tuple[str, ...] = ()
    _link: tuple[str, ...] = ()

    @classmethod
    def build(cls, project: Project, registrations: Sequence[Registration]) -> "Linker":
        """Compile a project, and what links of it need besides.

        Sizes that an earlier run measured of the very same project are taken over.

        Raises:
            ToolError: a tool is missing or failed.
        """
        cmake.build(project)
        linker = cls(project=project, registrations=registrations)
        linker._compile = _ninja_command(project, _RESOLVER)
        linker._link = _archive_runtime(project, _ninja_command(project, _TARGET))
        linker._sizes = linker._read_sizes()
        linker._compile_source(_CALLS_NAME, render_calls(registrations))
        return linker

    def flash_bytes(self, chosen: Sequence[int]) -> int:
        """Link firmware that registers the chosen ones, and return what flash holds of it, model included.

        Args:
            chosen: indices into `registrations`.

        Raises:
            ToolError: the link failed.
        """
        key = " ".join(str(index) for index in chosen)
        if key not in self._sizes:
            self._compile_source(_CHOICE_NAME, render_choice(chosen))
            own = [f"{Path(_RESOLVER).parent.as_posix()}/{name}.obj" for name in (_CALLS_NAME, _CHOICE_NAME)]
            _run(self.project, [*self._link, *own, _ARCHIVE, "-Wl,--strip-debug", "-o", _CHOSEN])
            elf = read_elf(self.project.folder / "build" / _CHOSEN)
            self._sizes[key] = sum(section.size_bytes for section in elf.sections if section.has_bytes)
            self._write_sizes()
        return self._sizes[key]

    def _compile_source(self, name: str, text: str) -> None:
        write_if_changed(self.project.folder / "src" / name, text.encode())
        _run(self.project, [word.replace("op_resolver.cc", name) for word in self._compile])

    def _read_sizes(self) -> dict[str, int]:
        try:
            record: Mapping[str, dict[str, int]] = json.loads((self.project.folder / _SIZES_NAME).read_text())
            return dict(record[self._fingerprint])
        except (OSError, ValueError, KeyError):
            return {}

    def _write_sizes(self) -> None:
        text = json.dumps({self._fingerprint: self._sizes})
        write_if_changed(self.project.folder / _SIZES_NAME, text.encode())

    @property
    def _fingerprint(self) -> str:
        calls = " ".join(registration.call for registration in self.registrations)
        return f"{self.project.build_id.hex()} {calls}"


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


def render_choice(chosen: Sequence[int]) -> str:
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


def _archive_runtime(project: Project, words: Sequence[str]) -> tuple[str, ...]:
    """Put the runtime's objects into an archive, so that a link reads those that it needs; return the rest of a link."""
    objects = [word for word in words if word.endswith(".obj") and not word.startswith(_APPLICATION)]
    (project.folder / "build" / _ARCHIVE).unlink(missing_ok=True)
    _run(project, ["arm-none-eabi-gcc-ar", "rcsT", _ARCHIVE, *objects])
    dropped = {*objects, *_DROPPED, _RESOLVER}
    return tuple(word for word in words if word not in dropped)


def _run(project: Project, words: Sequence[str]) -> None:
    run(words, timeout_s=_TIMEOUT_S, cwd=project.folder / "build", env=cache_environment(project.folder))
