"""Whose each byte of firmware with the real TFLM is: next to nothing is left over, and ops have what is theirs."""

import json
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, Forge
from tests.firmware_builds import check_totals
from tflm_forge.size import Group, attribute

pytestmark = [pytest.mark.tflm, pytest.mark.tools]

DIGITS = EXAMPLES / "digits" / "digits.tflite"
OPS = {
    "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "RESHAPE", "SOFTMAX",
}  # fmt: skip


@pytest.mark.parametrize("profile", ["release", "debug"])
@pytest.mark.parametrize("kernel_set", ["reference", "cmsis_nn"])
def test_little_is_left_over_and_every_op_is_told(forge: Forge, tmp_path: Path, kernel_set: str, profile: str) -> None:
    options = ("--board", "mps2-an386", "--runtime", "tflm", "--kernel-set", kernel_set, "--profile", profile)
    done = forge("build", DIGITS, *options, "--json", "-o", tmp_path / "out", timeout_s=900)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runtime"]["name"] == "tflm"
    elf = tmp_path / "out" / "firmware.elf"
    check_totals(elf)
    found = attribute(elf)
    rows = {row.name: row.flash_bytes for row in found.sum_by("op")}
    assert {op for name in rows for op in name.split(", ")} - {"", "several operators"} == OPS
    assert all(rows[op] >= 200 for op in OPS)
    groups = {row.name: row.flash_bytes for row in found.sum_by("group")}
    assert sum(rows.values()) == found.flash_bytes
    for group in (Group.OPERATORS, Group.INTERPRETER, Group.PLANNER, Group.FLATBUFFER, Group.LINK, Group.BOARD):
        assert groups[group] > 500
    files = {piece.op: piece.file for piece in found.pieces if piece.file.endswith("kernels/cmsis_nn/conv.cc")}
    assert set(files) == ({"CONV_2D"} if kernel_set == "cmsis_nn" else set())
    assert (groups.get(Group.STRINGS, 0) > 5_000) == (profile == "debug")
