"""Tools that are not installed: exit code 4 with the command that installs them, or forge does without."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, open_firmware, sections_of

pytestmark = pytest.mark.tools

TOOL_EXIT_CODE = 4
SINE = EXAMPLES / "sine" / "sine.tflite"
BOARD = "mps2-an386"
QEMU = "qemu-system-arm"


def _path_without(tool: str, folder: Path) -> str:
    """Return a PATH that has all programs of this machine but one."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    (folder / tool).unlink()
    return str(folder)


@pytest.mark.parametrize(
    ("tool", "package"),
    [("arm-none-eabi-g++", "gcc-arm-none-eabi"), ("cmake", "cmake"), ("ninja", "ninja-build")],
)
def test_build_without_a_tool_says_how_to_install_it(builds: Builds, tmp_path: Path, tool: str, package: str) -> None:
    path = _path_without(tool, tmp_path / "bin")
    done = builds.run("build", SINE, "--board", BOARD, "-o", tmp_path / "out", PATH=path)
    assert done.returncode == TOOL_EXIT_CODE, done.stderr
    assert f"{tool} is not installed" in done.stderr
    assert f"apt-get install {package}" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "out").glob("firmware.*")) == []
    builds.build_into(tmp_path / "out", SINE, BOARD)


def test_without_qemu_the_arena_is_estimated_and_measured_once_it_is_there(builds: Builds, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    path = _path_without(QEMU, tmp_path / "bin")
    options = ("build", SINE, "--board", BOARD, "-o", folder, "--json")
    for _ in range(2):
        done = builds.run(*options, PATH=path)
        assert done.returncode == 0, done.stderr
        assert "estimated: qemu-system-arm is not installed" in done.stderr
        estimated = json.loads(done.stdout)["arena"]
        assert estimated["how"] == "estimated"
        assert sections_of(folder / "firmware.elf")[".forge_arena"][1] == estimated["bytes"]
    with open_firmware(folder / "firmware.elf", BOARD) as session:
        assert session.connect().ready
    measured = json.loads(builds.run(*options).stdout)["arena"]
    assert measured["how"].startswith(f"measured on {BOARD}")
    assert measured["bytes"] < estimated["bytes"]


def test_flash_and_test_without_qemu_says_how_to_install_it(builds: Builds, tmp_path: Path) -> None:
    path = _path_without(QEMU, tmp_path / "bin")
    folder = builds.build(SINE, BOARD)
    done = builds.run("flash-and-test", SINE, "--board", BOARD, "-o", folder, "--no-reference", PATH=path)
    assert done.returncode == TOOL_EXIT_CODE, done.stderr
    assert "qemu-system-arm is not installed" in done.stderr
    assert "apt-get install qemu-system-arm" in done.stderr
    assert done.stdout == ""


def test_ccache_is_not_needed(builds: Builds, tmp_path: Path) -> None:
    path = _path_without("ccache", tmp_path / "bin")
    done = builds.run("build", SINE, "--board", BOARD, "-o", tmp_path / "out", PATH=path)
    assert done.returncode == 0, done.stderr
    reference = builds.build(SINE, BOARD)
    assert (tmp_path / "out" / "firmware.bin").read_bytes() == (reference / "firmware.bin").read_bytes()
