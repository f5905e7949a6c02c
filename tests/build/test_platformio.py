"""`--toolchain platformio`: built by PlatformIO for real, without its registry, and the same firmware as CMake's."""

import json
import re
import shutil
from pathlib import Path

import pytest
from platformio.public import ProjectConfig

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, Done
from tflm_forge.board import list_boards, load_board
from tflm_forge.config import BuildSettings
from tflm_forge.elf import read_elf
from tflm_forge.errors import ToolError
from tflm_forge.generate import Arena, generate_project
from tflm_forge.model import load_model
from tflm_forge.runtimes import plan_build
from tflm_forge.toolchains import platformio

SINE = EXAMPLES / "sine" / "sine.tflite"
DIGITS = EXAMPLES / "digits" / "digits.tflite"
BOARD = "stm32f4"
ON_PLATFORMIO = [board.name for board in list_boards() if board.platformio]
# Whatever asks the network fails at once instead of after a minute.
NO_NETWORK = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
FIT_EXIT_CODE = 5


def _build(builds: Builds, model: Path, folder: Path, *options: object, board: str = BOARD) -> Done:
    more = ("--board", board, "--toolchain", "platformio", "-o", folder, "--arena", 8192)
    return builds.run("build", model, *more, *options, **NO_NETWORK)


def _symbols(elf: Path) -> set[str]:
    """Return the names of functions and objects, without the numbers that link-time optimization gives."""
    return {
        re.sub(r"\.(?:lto_priv|constprop|isra|part)\.\d+", "", s.name) for s in read_elf(elf).symbols if s.size_bytes
    }


def _flash_bytes(elf: Path) -> int:
    return sum(section.size_bytes for section in read_elf(elf).sections if section.has_bytes)


@pytest.mark.tools
def test_is_the_firmware_that_cmake_builds(builds: Builds, tmp_path: Path) -> None:
    done = _build(builds, DIGITS, tmp_path / "pio")
    assert done.returncode == 0, done.stderr
    builds.build_into(tmp_path / "cmake", DIGITS, BOARD, "--arena", "8192")
    ours, theirs = (tmp_path / name / "firmware.elf" for name in ("pio", "cmake"))
    assert _flash_bytes(ours) == pytest.approx(_flash_bytes(theirs), rel=0.01)
    assert _symbols(ours) == _symbols(theirs)


@pytest.mark.tools
def test_passes_the_self_check_and_builds_nothing_twice(builds: Builds, tmp_path: Path) -> None:
    folder = tmp_path / "with space \N{LATIN SMALL LETTER U WITH DIAERESIS}"
    options = ("--board", BOARD, "--toolchain", "platformio", "-o", folder, "--only", "self-check,numbers", "--json")
    done = builds.run("flash-and-test", SINE, *options, **NO_NETWORK)
    assert done.returncode == 0, done.stderr
    again = builds.run("build", SINE, *options[:6], **NO_NETWORK)
    assert again.returncode == 0, again.stderr
    assert "Compiling" not in (folder / "build.log").read_text(encoding="utf-8")


@pytest.mark.tools
def test_another_model_in_the_same_folder_is_built_in(builds: Builds, tmp_path: Path) -> None:
    for model in (SINE, DIGITS):
        done = _build(builds, model, tmp_path)
        assert done.returncode == 0, done.stderr
        assert model.read_bytes() in (tmp_path / "firmware.bin").read_bytes()


@pytest.mark.tools
def test_firmware_that_does_not_fit_is_said_as_with_cmake(builds: Builds, tmp_path: Path) -> None:
    done = _build(builds, SINE, tmp_path, "--arena", 200000)
    assert done.returncode == FIT_EXIT_CODE
    assert "RAM: " in done.stderr
    assert "the tensor arena is 200000 bytes" in done.stderr


def _project(folder: Path, board: str) -> Path:
    target, model = load_board(board), load_model(SINE)
    settings = BuildSettings(runtime="bundled", toolchain="platformio")
    plan = plan_build(model, target.core, settings)
    generate_project(folder, model, target, plan, settings, Arena(bytes=4096, how="estimated"))
    return folder


@pytest.mark.parametrize("board", ON_PLATFORMIO)
def test_settings_for_online_users_are_what_platformio_reads(
    tmp_path: Path, board: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _project(tmp_path, board)
    config = ProjectConfig(str(folder / "platformio.ini"))
    config.validate()
    assert "unknown" not in capsys.readouterr().err.lower()
    facts = load_board(board).platformio
    online = f"env:{facts['board']}"
    assert config.envs() == ["forge", facts["board"]]
    assert config.default_envs() == ["forge"]
    assert config.get(online, "platform") == facts["platform"]
    assert config.get(online, "board") == facts["board"]
    assert config.get(online, "extra_scripts") == ["pre:forge_flags.py"]
    library = json.loads(next((folder / "lib").glob("*/library.json")).read_text(encoding="utf-8"))
    assert config.get(online, "lib_deps") == [library["name"]]


def test_the_runtime_is_a_library_that_is_whole(tmp_path: Path) -> None:
    (library,) = (_project(tmp_path, BOARD) / "lib").iterdir()
    sources = json.loads((library / "library.json").read_text(encoding="utf-8"))["build"]["srcFilter"]
    assert len(sources) > 5
    assert all((library / source[2:-1]).is_file() for source in sources)
    for header in library.rglob("*.h"):
        for name in re.findall(r'#include "([^"]+)"', header.read_text(encoding="utf-8")):
            assert (library / name).is_file() or (header.parent / name).is_file(), f"{header} includes {name}"


def test_changing_the_toolchain_leaves_nothing_of_the_other(tmp_path: Path) -> None:
    _project(tmp_path, BOARD)
    model, target = load_model(SINE), load_board(BOARD)
    settings = BuildSettings(runtime="bundled")
    plan = plan_build(model, target.core, settings)
    generate_project(tmp_path, model, target, plan, settings, Arena(bytes=4096, how="estimated"))
    assert not (tmp_path / "platformio.ini").exists()
    assert (tmp_path / "CMakeLists.txt").is_file()


def test_without_platformio_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(platformio.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolError, match="PlatformIO is not installed") as caught:
        platformio.find_pio()
    assert "pip install" in caught.value.hint


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("HTTPClientError: ", "does not reach it"),
        ("SCons is missing in /usr/bin/python3: pip install scons", "SCons is not in its Python"),
    ],
)
def test_failures_of_platformio_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, words: str
) -> None:
    folder = _project(tmp_path, BOARD)

    def fail(argv: object, *, log: Path, **_: object) -> None:
        log.write_text(output, encoding="utf-8")
        raise ToolError("pio failed with status 1")

    monkeypatch.setattr(platformio, "find_tool", Path)
    monkeypatch.setattr(platformio, "find_pio", lambda: ["pio"])
    monkeypatch.setattr(platformio, "run", fail)
    target, model = load_board(BOARD), load_model(SINE)
    settings = BuildSettings(runtime="bundled", toolchain="platformio")
    plan = plan_build(model, target.core, settings)
    project = generate_project(folder, model, target, plan, settings, Arena(bytes=4096, how="estimated"))
    with pytest.raises(ToolError, match=words):
        platformio.build(project)


@pytest.mark.tools
def test_an_operator_of_ones_own_is_compiled_in(builds: Builds, tmp_path: Path) -> None:
    done = builds.run(
        "build", "--runtime", "bundled", "--board", BOARD, "--toolchain", "platformio", "--arena", 8192, "-o", tmp_path,
        cwd=EXAMPLES / "custom_op", **NO_NETWORK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".pio" / "build" / "forge" / "src" / "ops" / "soft_shrink.o").is_file()
    assert b"SoftShrink" in (tmp_path / "firmware.bin").read_bytes()


@pytest.mark.tools
@pytest.mark.parametrize("board", [board.name for board in list_boards()])
def test_every_board_links(builds: Builds, tmp_path: Path, board: str) -> None:
    done = _build(builds, SINE, tmp_path, "--arena", 2048, board=board)
    assert done.returncode == 0, done.stderr
    elf = read_elf(tmp_path / "firmware.elf")
    vectors = elf.find_symbol("g_vectors")
    flash = load_board(board).flash
    assert vectors is not None
    assert flash.origin <= vectors.address < flash.origin + flash.length_bytes


@pytest.mark.tools
def test_a_build_folder_of_the_users_own_is_found(builds: Builds, tmp_path: Path) -> None:
    more = ("--board", BOARD, "--toolchain", "platformio", "-o", tmp_path / "out", "--arena", 2048)
    done = builds.run("build", SINE, *more, **NO_NETWORK, PLATFORMIO_BUILD_DIR=str(tmp_path / "elsewhere"))
    assert done.returncode == 0, done.stderr
    built = tmp_path / "elsewhere" / "forge" / "firmware.elf"
    assert built.read_bytes() == (tmp_path / "out" / "firmware.elf").read_bytes()
