"""The flash that main, self-check and link take, as the design promises it: at most 6 KB on a Cortex-M4."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tests.firmware_builds import Builds
from tflm_forge.size.own_code import OWN_FILES, measure_own_code

pytestmark = pytest.mark.tools

BUDGET_BYTES = 6 * 1024
OPS = (
    "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "RESHAPE", "SOFTMAX",
)  # fmt: skip
"""The ops of digits."""


def test_link_and_self_check_stay_within_their_budget(builds: Builds) -> None:
    folder = builds.build(EXAMPLES / "digits" / "digits.tflite", "mps2-an386")
    own = measure_own_code(folder / "firmware.elf", folder / "firmware.map")
    assert {"main.cc", "link.cc", "frame.cc", "inference.cc", "model_walk.cc", "self_check.cc"} <= set(own.code)
    assert own.op_table_bytes >= 16 * len(OPS)  # kOps alone
    assert own.total_bytes <= BUDGET_BYTES


def test_bytes_are_those_of_the_disassembly(builds: Builds) -> None:
    """objdump names the source of each instruction; literals and padding between them have none of their own."""
    folder = builds.build(EXAMPLES / "digits" / "digits.tflite", "mps2-an386")
    own = measure_own_code(folder / "firmware.elf", folder / "firmware.map")
    found = sum(_instruction_bytes(folder / "firmware.elf").values())
    assert found <= own.code_bytes <= found * 1.2


def _instruction_bytes(elf: Path) -> dict[str, int]:
    """Return for each of forge's own sources the bytes of the instructions that objdump lists under it."""
    listing = subprocess.run(
        ["arm-none-eabi-objdump", "-d", "--line-numbers", "-w", "-j", ".text", elf],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout  # fmt: skip
    sizes: dict[str, int] = dict.fromkeys(OWN_FILES, 0)
    source = ""
    for line in listing.splitlines():
        place, _, number = line.partition(" ")[0].rpartition(":")
        columns = line.split("\t")
        if place and number.isdecimal():
            source = Path(place).name
        elif len(columns) > 2 and not columns[2].startswith(".word") and source in sizes:
            sizes[source] += len(columns[1].replace(" ", "")) // 2
    return sizes
