"""`forge size` on firmware that forge built, held against the binutils."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, sections_of, symbols_of

pytestmark = pytest.mark.tools

BOARD = "mps2-an386"
LOADED = (".isr_vector", ".text", ".forge_model", ".rodata", ".stack", ".data", ".noinit", ".bss", ".forge_arena")
FLASH_BYTES = 4_194_304
DIGITS, SINE = (EXAMPLES / name / f"{name}.tflite" for name in ("digits", "sine"))


@pytest.fixture(scope="module")
def digits(builds: Builds) -> Path:
    return builds.build(DIGITS, BOARD)


@pytest.fixture(scope="module")
def sine(builds: Builds) -> Path:
    return builds.build(SINE, BOARD)


def _json(builds: Builds, *args: object) -> dict:
    done = builds.run("size", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _totals(folder: Path) -> tuple[int, int]:
    """Return flash and RAM as `arm-none-eabi-size -A` has them; .data lies in both."""
    sections = {name: place for name, place in sections_of(folder / "firmware.elf").items() if name in LOADED}
    ram = sum(size for address, size in sections.values() if address >= 0x20000000)
    flash = sum(size for address, size in sections.values() if address < 0x20000000)
    return flash + sections[".data"][1], ram


def test_symbols_are_as_large_as_nm_says(digits: Path, builds: Builds) -> None:
    report = _json(builds, digits)
    told: dict[tuple[str, int], int] = {}
    for item in report["items"]:
        if item["symbol"]:
            place = (item["symbol"], item["address"])
            told[place] = told.get(place, 0) + max(item["flash_bytes"], item["ram_bytes"])
    output = subprocess.run(
        ["arm-none-eabi-nm", "-S", digits / "firmware.elf"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    rows = [row for row in map(str.split, output.splitlines()) if len(row) == 4 and row[2] in "tTdDbBrR"]
    sizes = {int(address, 16) & ~1: int(size, 16) for address, size, _, _ in rows}
    wrong = [place for place, size in told.items() if place[1] in sizes and sizes[place[1]] != size]
    assert len(told) > 100
    assert wrong == []


def test_regions_against_the_boards_limits(digits: Path, builds: Builds) -> None:
    report = _json(builds, digits)
    assert (report["board"], report["limits"]["flash_bytes"]) == (BOARD, FLASH_BYTES)
    assert (report["flash_bytes"], report["ram_bytes"]) == _totals(digits)
    text = builds.run("size", digits).stdout
    assert f"of {FLASH_BYTES:,}" in text
    assert "of 262,144" in builds.run("size", digits, "--board", "microbit").stdout


def test_diff_with_an_elf_with_json_and_with_a_folder(digits: Path, sine: Path, builds: Builds, tmp_path: Path) -> None:
    (tmp_path / "sine.json").write_text(builds.run("size", sine, "--json").stdout)
    reports = [_json(builds, digits, "--diff", old) for old in (sine, sine / "firmware.elf", tmp_path / "sine.json")]
    (flash, ram), (old_flash, old_ram) = _totals(digits), _totals(sine)
    for report in reports:
        diff = report["diff"]
        assert (diff["flash_growth_bytes"], diff["ram_growth_bytes"]) == (flash - old_flash, ram - old_ram)
        assert sum(change["flash_growth_bytes"] for change in diff["symbols"]) == flash - old_flash
        assert {c["name"] for c in diff["operators"] if c["kind"] == "came"} >= {"CONV_2D", "SOFTMAX"}
    assert reports[0]["diff"]["symbols"] == reports[2]["diff"]["symbols"]
    line = builds.run("size", digits, "--diff", sine, "--short").stdout
    assert f"{flash - old_flash:+,}" in line
    assert line.count("\n") == 1


def test_budget_ends_with_its_exit_code_and_still_reports(digits: Path, builds: Builds, tmp_path: Path) -> None:
    flash, ram = _totals(digits)
    (tmp_path / "forge.toml").write_text(f"[size]\nflash_max = {flash}\nram_max = {ram}\n")
    assert builds.run("size", digits, cwd=tmp_path).returncode == 0
    (tmp_path / "forge.toml").write_text(f"[size]\nflash_max = {flash - 1}\nram_max = {ram - 3}\n")
    done = builds.run("size", digits, "--json", cwd=tmp_path)
    assert done.returncode == 7
    assert [v["over_bytes"] for v in json.loads(done.stdout)["budget"]["violations"]] == [1, 3]
    assert f"{flash:,} bytes, 1 over [size] flash_max = {flash - 1:,}" in done.stderr
    assert "operators" in done.stderr


def test_why_is_answered_from_relocations(digits: Path, builds: Builds) -> None:
    done = builds.run("size", digits, "--why", "g_model_data", "--json")
    (reason,) = json.loads(done.stdout)["symbols"]
    assert reason["source"] == "relocations"
    names = [step["name"] for step in reason["chain"]]
    assert names[:2] == ["g_vectors", "Reset_Handler"]
    assert "main" in names
    assert names[-1] == "g_model_data"
    assert reason["size_bytes"] == symbols_of(digits / "firmware.elf")["g_model_data"][1]
    lines = builds.run("size", digits, "--why", "g_model_data").stdout.splitlines()
    assert [line.split()[1] for line in lines[2 : len(names) + 1]] == names[1:]
    unknown = builds.run("size", digits, "--why", "printff")
    assert (unknown.returncode, unknown.stdout) == (2, "")


def test_relocations_cost_no_flash_and_none_are_kept_of_debug_information(digits: Path) -> None:
    output = subprocess.run(
        ["arm-none-eabi-readelf", "-SW", digits / "firmware.elf"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    tables = [line for line in output.splitlines() if " REL " in line]
    assert any(".rel.text" in line for line in tables)
    assert not any(".rel.debug" in line for line in tables)
    assert not any(" A " in line for line in tables)


def test_page_and_markdown(digits: Path, builds: Builds, tmp_path: Path) -> None:
    done = builds.run("size", digits, "--markdown", "--html", tmp_path / "size.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("### Size of digits.tflite on mps2-an386")
    assert f"{_totals(digits)[0]:,}" in (tmp_path / "size.html").read_text()
    assert builds.run("size", digits, "--html", tmp_path).returncode == 2


def test_the_build_of_forge_toml_and_of_a_model(digits: Path, builds: Builds, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / f"digits-{BOARD}").symlink_to(digits)
    (tmp_path / "digits.tflite").write_bytes(b"")
    line = builds.run("size", "digits.tflite", "--board", BOARD, "--short", cwd=tmp_path).stdout
    assert f"flash {_totals(digits)[0]:,} of" in line
    (tmp_path / "forge.toml").write_text(f"[build]\nmodel = 'digits.tflite'\nboard = '{BOARD}'\n")
    assert builds.run("size", "--short", cwd=tmp_path).stdout == line


def test_a_file_is_taken_for_firmware_whatever_it_is_called(builds: Builds, sine: Path, tmp_path: Path) -> None:
    copy = tmp_path / "firmware"
    copy.write_bytes((sine / "firmware.elf").read_bytes())
    assert _json(builds, copy)["flash_bytes"] == _totals(sine)[0]
    copy.write_bytes(b"#!/bin/sh\n")
    done = builds.run("size", copy)
    assert done.returncode == 2
    assert "not an ELF file" in done.stderr
