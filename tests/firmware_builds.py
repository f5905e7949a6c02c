"""Firmware that tests share: built by the real command, once in a whole run, and asked over the link."""

import contextlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tflm_forge.board import load_board
from tflm_forge.link.messages import Space
from tflm_forge.link.session import Session, open_session
from tflm_forge.model import load_model
from tflm_forge.runners.qemu import open_target
from tflm_forge.size import Group, attribute

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 400.0

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Builds:
    """Runs `forge` with caches that all tests of a run share, and no runtime installed but the bundled one."""

    folder: Path
    _built: set[Path] = field(default_factory=set)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment for a forge process."""
        own = {
            "PYTHONPATH": str(ROOT),
            "FORGE_CACHE_DIR": str(self.folder / "cache"),
            "FORGE_HOME": str(self.folder / "home"),
        }
        return {**os.environ, **own, **more}

    def run(self, *args: object, cwd: Path | None = None, **environment: str) -> Done:
        """Run a forge command to its end, whatever its exit code."""
        return subprocess.run(
            command(*args),
            cwd=cwd or self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def start(self, *args: object) -> "subprocess.Popen[str]":
        """Start a forge command and go on."""
        return subprocess.Popen(
            command(*args),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def place(self, model: Path, board: str) -> Path:
        """Return the folder that is for firmware of a model, built or not."""
        return self.folder / f"{model.stem}-{board}"

    def build(self, model: Path, board: str) -> Path:
        """Return the folder of firmware that is only read: the first test that asks builds it."""
        folder = self.place(model, board)
        if folder not in self._built:
            self.build_into(folder, model, board)
            self._built.add(folder)
        return folder

    def build_into(self, folder: Path, model: Path, board: str, *options: object) -> Done:
        """Build firmware into a folder; expect that it works, and that forge tells whose each byte of it is."""
        done = self.run("build", model, "--board", board, "-o", folder, *options)
        assert done.returncode == 0, done.stderr
        check_totals(folder / "firmware.elf")
        return done


def command(*args: object) -> list[str]:
    """Return the command line of a forge command."""
    return [sys.executable, "-m", "tflm_forge", *map(str, args)]


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """Return the builds of this run; with several workers, theirs together."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "forge"
    folder.mkdir(exist_ok=True)
    return Builds(folder)


@contextlib.contextmanager
def open_firmware(elf: Path, board: str) -> Iterator[Session]:
    """Run an ELF in the board's emulator and open a session with it."""
    with (
        open_target(load_board(board), elf) as target,
        open_session(target.url, target=target) as session,
    ):
        yield session


def run_on_device(session: Session, model_path: Path, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run one inference and return the model's outputs."""
    for index, value in enumerate(inputs):
        session.write_tensor(Space.INPUT, index, value.tobytes())
    session.invoke()
    dtypes = {"INT8": np.int8, "INT16": np.int16, "FLOAT32": np.float32}
    return [
        np.frombuffer(session.read_tensor(Space.OUTPUT, index, tensor.size_bytes), dtypes[tensor.type]).reshape(
            tensor.shape
        )
        for index, tensor in enumerate(load_model(model_path).outputs)
    ]


def sections_of(elf: Path) -> dict[str, tuple[int, int]]:
    """Return address and size of each section, by the name it has in `arm-none-eabi-size -A`."""
    output = subprocess.run(
        ["arm-none-eabi-size", "-A", elf], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    rows = [line.split() for line in output.splitlines() if line.startswith(".")]
    return {name: (int(address), int(size)) for name, size, address in rows}


def loaded_sections_of(elf: Path) -> dict[str, int]:
    """Return the sizes that `arm-none-eabi-size -A` gives to the sections that readelf flags as allocated."""
    listing = subprocess.run(
        ["arm-none-eabi-readelf", "-SW", elf], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    flagged = re.findall(
        r"^ +\[ *\d+\] (\S+) +\S+ +[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ +(\w*) ", listing, re.MULTILINE
    )
    loaded = {name for name, flags in flagged if "A" in flags}
    return {name: size for name, (_, size) in sections_of(elf).items() if size and name in loaded}


def check_totals(elf: Path) -> None:
    """Compare what forge attributes of each section with `arm-none-eabi-size -A`; next to nothing may be left over."""
    found = attribute(elf)
    sizes: Counter[str] = Counter()
    for piece in found.pieces:
        sizes[piece.section] += piece.size_bytes
    assert sizes == loaded_sections_of(elf)
    rows = {row.name: row for row in found.sum_by("group")}
    for row in (rows.get(Group.OTHER), rows.get(Group.APPLICATION)):
        assert row is None or row.flash_bytes < found.flash_bytes / 100, f"{elf}: {row}"
    assert found.notes == ()


def symbols_of(elf: Path) -> dict[str, tuple[int, int]]:
    """Return address and size of each symbol that has a size, by its name in `arm-none-eabi-nm -S`."""
    output = subprocess.run(
        ["arm-none-eabi-nm", "-S", elf], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    rows = [line.split() for line in output.splitlines()]
    return {row[3]: (int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4}


def processes_of(folder: Path) -> dict[int, str]:
    """Return the running processes that work in or on a folder: number and command line."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = str((entry / "cwd").readlink())
            if words and (str(folder) in words or place.startswith(str(folder))):
                found[int(entry.name)] = words
    return found
