"""What of the programs, runtimes and ports that forge works with is on this machine, and how to get the rest."""

import importlib.util
import os
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tflm_forge import __version__
from tflm_forge.errors import ForgeError
from tflm_forge.link.port import PortInfo, list_ports
from tflm_forge.proc import run
from tflm_forge.resources import cache_dir, home_dir
from tflm_forge.runners import list_runners, load_runner
from tflm_forge.runtimes.tflm.install import find_installed, list_installed, runtime_dir
from tflm_forge.runtimes.tflm.pins import TFLM_COMMIT

State = Literal["ok", "missing", "optional", "problem"]
"""`missing`: builds or emulated runs need it. `optional`: some commands do. `problem`: it is there, and will fail."""

_VERSION_TIMEOUT_S = 10.0
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")
_LEAST_FREE_BYTES = 1 << 30
"""A TFLM tree takes about 350 MB, the objects of some projects as much."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One thing that forge works with, and whether it is there.

    Attributes:
        name: what a person calls it.
        purpose: what forge needs it for.
        state: whether it is there and works.
        found: version, place, or what is wrong.
        apt: the Debian packages that bring it; empty when it comes otherwise.
        remedy: what to do when it is not there; empty when it is, or when the packages say it.
    """

    name: str
    purpose: str
    state: State
    found: str
    apt: tuple[str, ...] = ()
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class _Program:
    names: tuple[str, ...]
    purpose: str
    apt: tuple[str, ...]
    is_needed: bool = False
    remedy: str = ""


_PROGRAMS = (
    _Program(
        names=("arm-none-eabi-g++",),
        purpose="compiles firmware",
        apt=("gcc-arm-none-eabi", "libnewlib-arm-none-eabi", "libstdc++-arm-none-eabi-newlib"),
        is_needed=True,
    ),
    _Program(names=("cmake",), purpose="builds firmware", apt=("cmake",), is_needed=True),
    _Program(names=("ninja",), purpose="builds firmware", apt=("ninja-build",), is_needed=True),
    _Program(
        names=("qemu-system-arm",),
        purpose="measures the arena, runs firmware",
        apt=("qemu-system-arm",),
        is_needed=True,
    ),
    _Program(names=("ccache",), purpose="shares compiled objects between projects", apt=("ccache",)),
    _Program(names=("git",), purpose="forge runtime install", apt=("git",)),
)

_NEVER_ASKED = frozenset({"JLinkExe", "JLink"})
"""Programs that open a window, or wait for a probe, when they are asked for their version."""

_MODULES = (
    ("tflite_micro", "the reference that numbers are compared with", "pip install 'tflm-forge[reference]'"),
    ("PIL", "pictures as inputs of flash-and-test", "pip install 'tflm-forge[images]'"),
)


def examine_environment() -> tuple[Part, ...]:
    """Return what forge works with and what of it is here. Starts programs to ask for their version."""
    return (
        *_examine_forge(),
        *map(_examine_program, (*_PROGRAMS, *_runner_programs())),
        *_examine_runtimes(),
        *_examine_modules(),
        *_examine_ports(),
    )


def install_line(parts: tuple[Part, ...]) -> str:
    """Return the apt command for everything that is needed and missing; empty when nothing is."""
    packages = dict.fromkeys(name for part in parts if part.state == "missing" for name in part.apt)
    return f"sudo apt-get install {' '.join(packages)}" if packages else ""


def _examine_forge() -> Iterator[Part]:
    yield Part(
        name="forge",
        purpose="",
        state="ok",
        found=f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
    )
    for name, purpose, folder, variable in (
        ("cache", "compiled objects", cache_dir(), "FORGE_CACHE_DIR"),
        ("home", "installed runtimes", home_dir(), "FORGE_HOME"),
    ):
        yield _examine_folder(name, purpose, folder, variable)


def _examine_folder(name: str, purpose: str, folder: Path, variable: str) -> Part:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(there, os.W_OK):
        remedy = f"{variable} chooses another folder."
        return Part(name=name, purpose=purpose, state="problem", found=f"{folder}: can not be written", remedy=remedy)
    free = shutil.disk_usage(there).free
    if free < _LEAST_FREE_BYTES:
        remedy = f"Free some space (`forge cache prune`), or choose another folder with {variable}."
        found = f"{folder}: {free >> 20} MiB left"
        return Part(name=name, purpose=purpose, state="problem", found=found, remedy=remedy)
    return Part(name=name, purpose=purpose, state="ok", found=str(folder))


def _runner_programs() -> Iterator[_Program]:
    """Yield the programs of the runners, each with how to get it in the runner's own words."""
    for runner in map(load_runner, list_runners()):
        if runner.tools:
            yield _Program(names=runner.tools, purpose=f"runner {runner.name}", apt=(), remedy=runner.install)


def _examine_program(program: _Program) -> Part:
    path = next((found for name in program.names if (found := shutil.which(name))), None)
    shown = Path(path).name if path else program.names[0]
    if path is None:
        state: State = "missing" if program.is_needed else "optional"
        remedy = program.remedy
        return Part(name=shown, purpose=program.purpose, state=state, found="-", apt=program.apt, remedy=remedy)
    try:
        version = "" if shown in _NEVER_ASKED else _ask_version(path)
    except ForgeError as error:
        remedy = "Install it again."
        return Part(
            name=shown, purpose=program.purpose, state="problem", found=error.message, apt=program.apt, remedy=remedy
        )
    return Part(name=shown, purpose=program.purpose, state="ok", found=f"{version} ({path})".strip(), apt=program.apt)


def _ask_version(path: str) -> str:
    output = run([path, "--version"], timeout_s=_VERSION_TIMEOUT_S).output
    line = next(iter(output.splitlines()), "")
    found = _NUMBERS.search(line) or _NUMBERS.search(output)
    return found.group() if found else line


def _examine_runtimes() -> Iterator[Part]:
    yield Part(name="bundled", purpose="runtime", state="ok", found="travels with forge")
    in_use, trees = find_installed(), list_installed()
    if not trees:
        yield Part(name="tflm", purpose="runtime", state="optional", found="-", remedy="forge runtime install tflm")
    for tree in trees:
        marks = ["in use"] if in_use is not None and tree.name == in_use.name else []
        marks += ["the pinned commit"] if tree.version == TFLM_COMMIT else []
        marks += [f"uses {tree.in_place}"] if tree.in_place else []
        gone = not (tree.folder / "tflite-micro").is_dir()
        yield Part(
            name=f"tflm {tree.name}",
            purpose="runtime",
            state="problem" if gone else "ok",
            found="its folder is gone" if gone else ", ".join(marks) or str(tree.folder),
            remedy=f"forge runtime remove {tree.name}, and install it again" if gone else "",
        )
    names = {tree.name for tree in trees}
    base = runtime_dir()
    broken = [f.name for f in sorted(base.iterdir()) if f.is_dir() and f.name not in names] if base.is_dir() else []
    for name in (name for name in broken if not name.startswith(".")):
        remedy = "forge runtime install tflm --force"
        yield Part(name=f"tflm {name}", purpose="runtime", state="problem", found="is not complete", remedy=remedy)


def _examine_modules() -> Iterator[Part]:
    for module, purpose, remedy in _MODULES:
        there = importlib.util.find_spec(module) is not None
        yield Part(
            name=f"Python module {module}",
            purpose=purpose,
            state="ok" if there else "optional",
            found="installed" if there else "-",
            remedy="" if there else remedy,
        )


def _examine_ports() -> Iterator[Part]:
    ports = list_ports()
    if not ports:
        yield Part(
            name="serial ports",
            purpose="flash-and-test --port",
            state="optional",
            found="none",
            remedy="Connect a board; a cable that only charges shows none.",
        )
    for port in ports:
        yield _examine_port(port)


def _examine_port(port: PortInfo) -> Part:
    about = ", ".join(text for text in (port.usb_id, port.description) if text) or "no USB id"
    path = Path(port.url)
    may_open = not path.exists() or os.access(path, os.R_OK | os.W_OK)
    return Part(
        name=port.url,
        purpose="serial port",
        state="ok" if may_open else "problem",
        found=about if may_open else f"{about}: you may not open it",
        remedy="" if may_open else f"sudo usermod -a -G {_group_of(path)} $USER, then log in again",
    )


def _group_of(path: Path) -> str:
    try:
        return path.group()
    except (KeyError, OSError, NotImplementedError):
        return "dialout"
