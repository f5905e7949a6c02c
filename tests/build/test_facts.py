"""The facts that firmware carries: in its ELF, in its manifest, answered by the device; the same, and for no flash."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds, open_firmware, sections_of
from tests.unit.test_manifest import ops_by_schema
from tflm_forge.errors import UsageError
from tflm_forge.gates.facts import facts_from_device, read_facts

pytestmark = pytest.mark.tools

DIGITS = EXAMPLES / "digits" / "digits.tflite"
BOARD = "mps2-an386"
MOST_FLASH_BYTES = 1024
"""What the facts may cost; a public project paid 13.9 KB for an op check on the device."""


@pytest.fixture(scope="module")
def digits(builds: Builds) -> Path:
    """Return the folder of digits' firmware, only to read."""
    return builds.build(DIGITS, BOARD)


def _readelf(elf: Path) -> str:
    done = subprocess.run(["arm-none-eabi-readelf", "-SW", elf], capture_output=True, text=True, check=True, timeout=60)
    return next(line for line in done.stdout.splitlines() if ".forge_facts" in line)


def test_facts_take_no_flash(digits: Path) -> None:
    """Measured: what objcopy makes of the ELF for the flash is the same with and without them."""
    elf, copies = digits / "firmware.elf", digits.parent / "no-facts"
    copies.mkdir(exist_ok=True)
    section = re.search(r"\.forge_facts\s+PROGBITS\s+(\w+) \w+ (\w+) \w+\s+(\w*) ", _readelf(elf))
    assert section, _readelf(elf)
    assert int(section[1], 16) == 0
    assert "A" not in section[3]
    assert int(section[2], 16) > 0
    bare = copies / "bare.elf"
    for command in (
        ["arm-none-eabi-objcopy", "--remove-section", ".forge_facts", elf, bare],
        ["arm-none-eabi-objcopy", "-O", "binary", bare, copies / "bare.bin"],
    ):
        subprocess.run(command, check=True, timeout=60)
    cost = (digits / "firmware.bin").stat().st_size - (copies / "bare.bin").stat().st_size
    assert cost == 0 <= MOST_FLASH_BYTES
    with pytest.raises(UsageError, match="carries no facts"):
        read_facts(bare)


def test_elf_manifest_and_device_say_the_same(digits: Path) -> None:
    from_elf, from_manifest = read_facts(digits / "firmware.elf"), read_facts(digits / "ops.manifest.yaml")
    assert replace(from_elf, source="", kind="manifest") == replace(from_manifest, source="")
    assert read_facts(digits) == from_elf
    wanted = ops_by_schema(DIGITS)
    assert {op.builtin_code: op.version for op in from_elf.ops} == {code: v for code, (v, _) in wanted.items()}
    with open_firmware(digits / "firmware.elf", BOARD) as session:
        device = facts_from_device("qemu", session.connect(), session.ops())
    for name in ("runtime", "version", "kernel_set", "board", "forge_version", "op_hash", "arena_bytes"):
        assert getattr(device, name) == getattr(from_elf, name), name
    assert device.flash_limit_bytes == from_elf.flash_limit_bytes
    assert [(op.key, op.name, op.max_version) for op in device.ops] == [
        (op.key, op.name, op.max_version) for op in from_elf.ops
    ]
    assert [(m.sha256, m.size_bytes) for m in device.models] == [(m.sha256, m.size_bytes) for m in from_elf.models]
    assert device.models[0].size_bytes == DIGITS.stat().st_size


def test_flash_is_that_of_the_linked_firmware(digits: Path, builds: Builds) -> None:
    size = json.loads(builds.run("size", digits, "--json").stdout)
    in_flash = (
        sum(
            bytes_
            for name, (address, bytes_) in sections_of(digits / "firmware.elf").items()
            if address < 0x20000000 and name.startswith((".isr", ".text", ".rodata", ".forge_model", ".data"))
        )
        + sections_of(digits / "firmware.elf").get(".data", (0, 0))[1]
    )
    manifest = YAML(typ="safe").load((digits / "ops.manifest.yaml").read_text())["tflm_operator_manifest"]
    assert manifest["flash"]["bytes"] == sum(manifest["flash"]["groups"].values()) == in_flash
    assert size["flash_bytes"] == in_flash
    facts = read_facts(digits / "firmware.elf")
    assert facts.flash_bytes == in_flash
    assert facts.model_slot_bytes == manifest["flash"]["limit"] - in_flash + DIGITS.stat().st_size


@pytest.mark.parametrize(
    "command", [["arm-none-eabi-strip", "-s"], ["arm-none-eabi-objcopy", "--strip-debug"]], ids=["strip", "objcopy"]
)
def test_facts_survive_strip_and_objcopy(digits: Path, tmp_path: Path, command: list[str]) -> None:
    copy = tmp_path / "copy.elf"
    output = ["-o", copy] if command[0].endswith("strip") else [copy]
    subprocess.run([*command, digits / "firmware.elf", *output], check=True, timeout=60)
    assert replace(read_facts(copy), source="") == replace(read_facts(digits / "firmware.elf"), source="")


def test_facts_are_there_without_link_time_optimization(builds: Builds, tmp_path: Path) -> None:
    builds.build_into(tmp_path, EXAMPLES / "sine" / "sine.tflite", BOARD, "--profile", "debug", "--arena", "4096")
    facts = read_facts(tmp_path)
    assert (facts.arena_bytes, facts.arena_how) == (4096, "given with --arena")
    assert facts.flash_limit_bytes == 4 << 20
    assert facts.settings is not None
    assert (facts.settings.profile, facts.settings.uses_lto) == ("debug", False)


def test_damaged_facts_are_refused(digits: Path, tmp_path: Path) -> None:
    data = (digits / "firmware.elf").read_bytes()
    assert data.count(b"max_version: 6\n") == 2
    copy = tmp_path / "damaged.elf"
    copy.write_bytes(data.replace(b"max_version: 6\n", b"max_version: 9\n"))
    with pytest.raises(UsageError, match=r"damaged\.elf\(\.forge_facts\):3: checksum"):
        read_facts(copy)


def test_second_build_keeps_what_was_measured(digits: Path, builds: Builds) -> None:
    before = (digits / "ops.manifest.yaml").read_bytes(), (digits / "ops.manifest.yaml").stat().st_mtime_ns
    builds.build_into(digits, DIGITS, BOARD)
    assert ((digits / "ops.manifest.yaml").read_bytes(), (digits / "ops.manifest.yaml").stat().st_mtime_ns) == before
    (digits / "flash.json").write_text("{")
    builds.build_into(digits, DIGITS, BOARD)
    assert (digits / "ops.manifest.yaml").read_bytes() == before[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.elf", b"\x7fELF", "cut short"),
        ("x.yaml", b"nothing", "no operator manifest"),
        ("folder", None, "neither firmware.elf nor ops.manifest.yaml"),
        ("nowhere.elf", None, "can not read"),
    ],
)
def test_what_holds_no_facts_is_named(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    elif name == "folder":
        path.mkdir()
    with pytest.raises(UsageError, match=words):
        read_facts(path)
