"""Where the arena is measured: on the board's emulator, on its twin's, or over the link on the board itself."""

import json
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds
from tflm_forge.board import load_board
from tflm_forge.resources import data_dir
from tflm_forge.runners.qemu import open_target

pytestmark = pytest.mark.tools

SINE = EXAMPLES / "sine" / "sine.tflite"
BOARD = "mps2-an386"
DEVICE_EXIT_CODE = 6


def _board_without_emulator(folder: Path, *more: str) -> Path:
    text = (data_dir("boards") / f"{BOARD}.toml").read_text(encoding="utf-8")
    path = folder / "plain.toml"
    path.write_text("\n".join(more) + "\n" + text.partition("[emulator]")[0], encoding="utf-8")
    return path


def _arena(builds: Builds, folder: Path, *options: object) -> dict[str, object]:
    done = builds.run("build", SINE, "-o", folder, "--json", *options)
    assert done.returncode == 0, done.stderr
    arena: dict[str, object] = json.loads(done.stdout)["arena"]
    return arena


def test_parts_add_up(builds: Builds) -> None:
    arena = _arena(builds, builds.folder / "sine-arena", "--board", BOARD)
    parts = arena["parts"]
    assert isinstance(parts, dict)
    assert parts["head_bytes"] + parts["tail_bytes"] + parts["temporary_bytes"] == arena["bytes"]
    # sine's layers hand on 16 floats at most; two buffers meet, each on 16 bytes.
    assert parts["head_bytes"] >= 2 * 16
    assert parts["resource_variable_bytes"] == 0


def test_a_board_without_emulator_is_measured_on_its_twin(builds: Builds, tmp_path: Path) -> None:
    board = _board_without_emulator(tmp_path, 'twin = "mps2-an500"')
    arena = _arena(builds, tmp_path / "out", "--board", board)
    own = _arena(builds, builds.folder / "sine-arena", "--board", BOARD)
    assert arena["bytes"] == own["bytes"]
    assert arena["parts"] == own["parts"]
    assert str(arena["how"]).startswith("measured on mps2-an500: ")
    assert str(arena["how"]).endswith("it is the twin of plain")


def test_a_board_with_neither_is_measured_by_itself(builds: Builds, tmp_path: Path) -> None:
    board, folder = _board_without_emulator(tmp_path), tmp_path / "out"
    done = builds.run("build", SINE, "--board", board, "-o", folder)
    assert done.returncode == 0, done.stderr
    assert "is estimated: plain has neither an emulator nor a twin" in done.stderr
    assert "--measure-on PORT" in done.stderr

    other = builds.run("build", SINE, "--board", BOARD, "-o", builds.folder / "sine-arena")
    assert other.returncode == 0, other.stderr
    emulated = load_board(BOARD)
    with open_target(emulated, builds.folder / "sine-arena" / "firmware.elf") as target:
        refused = builds.run("build", SINE, "--board", board, "-o", folder, "--measure-on", target.url)
    assert refused.returncode == DEVICE_EXIT_CODE
    assert "does not run the firmware that measures the arena" in refused.stderr
    assert "forge flash" in refused.stderr

    with open_target(emulated, folder / "measure" / "firmware.elf") as target:
        arena = _arena(builds, folder, "--board", board, "--measure-on", target.url)
    own = _arena(builds, builds.folder / "sine-arena", "--board", BOARD)
    assert arena["bytes"] == own["bytes"]
    assert arena["how"] == f"measured on the plain itself: {int(str(arena['bytes'])) - 16} bytes fail"
