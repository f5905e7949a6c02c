"""`forge build` with the real compiler: what it leaves, when it compiles again, and what ends it early."""

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, processes_of, sections_of, symbols_of
from tests.unit.test_manifest import ops_by_schema

pytestmark = pytest.mark.tools

DIGITS = EXAMPLES / "digits" / "digits.tflite"
SINE = EXAMPLES / "sine" / "sine.tflite"
BOARD = "mps2-an386"
WAIT_S = 60.0
RESULTS = ("firmware.elf", "firmware.bin", "firmware.hex", "firmware.map")


def _read_hex(path: Path) -> dict[int, int]:
    """Return address and byte of an Intel HEX file, its checksums checked."""
    base, found = 0, {}
    for line in path.read_text(encoding="ascii").splitlines():
        row = bytes.fromhex(line.removeprefix(":"))
        assert line.startswith(":")
        assert sum(row) % 256 == 0
        count, address, kind, data = row[0], int.from_bytes(row[1:3], "big"), row[3], row[4:-1]
        assert count == len(data)
        if kind == 4:
            base = int.from_bytes(data, "big") << 16
        elif kind == 0:
            found.update({base + address + i: byte for i, byte in enumerate(data)})
    return found


@pytest.fixture(scope="module")
def digits(builds: Builds) -> Path:
    """Return the folder of digits' firmware, only to read."""
    return builds.build(DIGITS, BOARD)


def test_bin_and_hex_hold_what_objcopy_takes_from_the_elf(digits: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.bin"
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", digits / "firmware.elf", copy], check=True, timeout=60)
    image = (digits / "firmware.bin").read_bytes()
    assert image == copy.read_bytes()
    assert DIGITS.read_bytes() in image
    places = _read_hex(digits / "firmware.hex")
    start = min(places)
    assert all(image[address - start] == byte for address, byte in places.items())
    assert len(image) - len(places) < 64  # the gaps of alignment


def test_manifest_is_of_this_build(digits: Path) -> None:
    manifest = YAML(typ="safe").load((digits / "ops.manifest.yaml").read_text(encoding="utf-8"))
    manifest = manifest["tflm_operator_manifest"]
    found = {op["builtin_code"]: (op["version"], op["count"]) for op in manifest["ops"]}
    assert found == ops_by_schema(DIGITS)
    assert manifest["board"] == BOARD
    arena = manifest["arena"]
    assert arena["bytes"] == symbols_of(digits / "firmware.elf")["_ZN5forge14g_tensor_arenaE"][1]
    assert re.fullmatch(rf"measured on {BOARD}: {arena['bytes'] - 16} bytes fail", arena["how"])


def test_size_agrees_with_the_binutils(digits: Path, builds: Builds) -> None:
    elf = digits / "firmware.elf"
    size = json.loads(builds.run("size", digits, "--json").stdout)
    ram = {name: bytes_ for name, (address, bytes_) in sections_of(elf).items() if address >= 0x20000000}
    symbols = symbols_of(elf)
    assert size["ram_bytes"] == sum(ram.values())
    assert size["arena_bytes"] == ram[".forge_arena"]
    assert size["stack_bytes"] == ram[".stack"]
    assert size["model_bytes"] == symbols["g_model_data"][1] == len(DIGITS.read_bytes())
    assert 0 <= (digits / "firmware.bin").stat().st_size - size["flash_bytes"] < 64
    assert size["flash_bytes"] == size["model_bytes"] + size["code_bytes"] + size["constant_bytes"]
    assert size["code_bytes"] == sections_of(elf)[".text"][1]


def test_build_reports_as_json_and_as_text(digits: Path, builds: Builds) -> None:
    options = ("build", DIGITS, "--board", BOARD, "-o", digits)
    report = json.loads(builds.run(*options, "--json").stdout)
    assert report["elf"] == (digits / "firmware.elf").as_posix()
    assert len(report["ops"]) == len(ops_by_schema(DIGITS))
    text = builds.run(*options).stdout
    assert f"{report['arena']['bytes']:,} bytes, measured" in text
    assert f"{report['flash_bytes']:,} of 4,194,304 bytes" in text


def test_unchanged_build_compiles_nothing(digits: Path, builds: Builds) -> None:
    before = {name: (digits / name).stat().st_mtime_ns for name in RESULTS}
    done = builds.build_into(digits, DIGITS, BOARD)
    assert done.stderr == ""
    assert "ninja: no work to do" in (digits / "build.log").read_text()
    assert {name: (digits / name).stat().st_mtime_ns for name in RESULTS} == before


def test_project_builds_without_forge_and_gives_the_same_firmware(digits: Path, tmp_path: Path) -> None:
    project = tmp_path / "copy"
    shutil.copytree(digits, project, ignore=shutil.ignore_patterns("build", "firmware.*"))
    lines = (project / "CMakeLists.txt").read_text().splitlines()
    (words,) = [line.removeprefix("#") for line in lines if "cmake --build" in line]
    for command in words.split("&&"):
        done = subprocess.run(
            command.split(), cwd=project, capture_output=True, text=True, timeout=WAIT_S * 5, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("firmware.bin", "firmware.hex"):
        assert (project / "build" / name).read_bytes() == (digits / name).read_bytes()
    own, forges = (
        {name: place for name, place in sections_of(path / "firmware.elf").items() if not name.startswith(".debug")}
        for path in (project / "build", digits)
    )
    assert own == forges


def test_default_folder_is_named_by_model_and_board(builds: Builds, tmp_path: Path) -> None:
    shutil.copy(SINE, tmp_path / "my_model.tflite")
    done = builds.run("build", "my_model.tflite", "--board", BOARD, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "build" / f"my_model-{BOARD}" / "firmware.elf").is_file()


def test_forge_toml_says_the_same(builds: Builds, tmp_path: Path) -> None:
    shutil.copy(SINE, tmp_path / "sine.tflite")
    config = f'[build]\nmodel = "sine.tflite"\nboard = "{BOARD}"\noutput = "out"\narena_bytes = 2048\n'
    (tmp_path / "forge.toml").write_text(config)
    done = builds.run("build", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["arena"] == {"bytes": 2048, "how": "given with --arena", "parts": None}
    assert (tmp_path / "out" / "firmware.elf").is_file()


def test_folder_and_model_may_have_any_name(builds: Builds, tmp_path: Path) -> None:
    folder = tmp_path / "my firmware ü'(1)"
    model = tmp_path / 'a\n#error "b" \\.tflite'
    shutil.copy(SINE, model)
    builds.build_into(folder, model, BOARD)
    assert sections_of(folder / "firmware.elf")[".forge_model"][1] >= len(SINE.read_bytes())


def test_board_file_by_path(builds: Builds, tmp_path: Path) -> None:
    source = (EXAMPLES.parent / "boards" / f"{BOARD}.toml").read_text(encoding="utf-8")
    (tmp_path / "my-board.toml").write_text(source.replace("stack_bytes = 8192", "stack_bytes = 4096"))
    done = builds.run("build", SINE, "--board", "./my-board.toml", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sections_of(tmp_path / "out" / "firmware.elf")[".stack"][1] == 4096


def test_debug_profile_keeps_the_error_strings(builds: Builds, digits: Path, tmp_path: Path) -> None:
    builds.build_into(tmp_path, DIGITS, BOARD, "--profile", "debug", "--optimize", "2", "--arena", "8192")
    words = b"Failed to allocate %s memory"
    assert words in (tmp_path / "firmware.bin").read_bytes()
    assert words not in (digits / "firmware.bin").read_bytes()


def test_moved_project_is_built_from_its_own_files(builds: Builds, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    builds.build_into(first, SINE, BOARD)
    shutil.copytree(first, second)
    builds.build_into(second, DIGITS, BOARD)
    assert symbols_of(second / "firmware.elf")["g_model_data"][1] == len(DIGITS.read_bytes())
    assert symbols_of(first / "firmware.elf")["g_model_data"][1] == len(SINE.read_bytes())


def test_two_builds_at_once_in_one_folder(builds: Builds, tmp_path: Path) -> None:
    options = ("build", DIGITS, "--board", BOARD, "-o", tmp_path / "out", "--json")
    both = [builds.start(*options) for _ in range(2)]
    texts = [process.communicate(timeout=WAIT_S * 5) for process in both]
    assert [process.returncode for process in both] == [0, 0], texts
    first, second = (json.loads(out) for out, _ in texts)
    assert first == second
    assert any("another build is under way" in errors for _, errors in texts)
    built = (tmp_path / "out" / "build" / "firmware.elf").read_bytes()
    assert (tmp_path / "out" / "firmware.elf").read_bytes() == built
    assert bytes.fromhex(first["build_id"]) in built


def _wait_for(process: "subprocess.Popen[str]", folder: Path, words: str) -> dict[int, str]:
    """Wait until a program with these words in its command line works on a folder."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        found = {pid: line for pid, line in processes_of(folder).items() if words in line and pid != process.pid}
        if found:
            return found
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError(f"no {words}")


@pytest.mark.parametrize("program", ["cmake", "ninja", "qemu-system-arm"])
def test_ctrl_c_ends_all_it_started_and_the_next_build_works(builds: Builds, tmp_path: Path, program: str) -> None:
    folder = tmp_path / "out"
    process = builds.start("build", SINE, "--board", BOARD, "-o", folder)
    _wait_for(process, folder, program)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130, errors
    assert errors.endswith("interrupted\n")
    assert "Traceback" not in errors
    assert processes_of(folder) == {}
    assert not any((folder / name).exists() for name in RESULTS)
    assert [path.name for path in folder.rglob(".*trial*")] == []
    builds.build_into(folder, SINE, BOARD)
    undisturbed = builds.build(SINE, BOARD)
    assert (folder / "firmware.bin").read_bytes() == (undisturbed / "firmware.bin").read_bytes()


def test_folder_that_can_not_be_written(builds: Builds, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = builds.run("build", SINE, "--board", BOARD, "-o", tmp_path / "file" / "out")
    assert done.returncode == 2
    assert "can not write" in done.stderr
    assert "-o" in done.stderr


def test_build_does_not_depend_on_the_environment_of_other_compilers(
    builds: Builds, tmp_path: Path, digits: Path
) -> None:
    flags = {"CFLAGS": "-m64", "CXXFLAGS": "-m64", "LDFLAGS": "-nonsense", "CC": "false", "CXX": "false"}
    done = builds.run("build", DIGITS, "--board", BOARD, "-o", tmp_path / "out", **flags)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "firmware.bin").read_bytes() == (digits / "firmware.bin").read_bytes()
