"""What an operator costs, against firmware that is built as any: with it, and without it."""

import subprocess
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tflm_forge.board import load_board
from tflm_forge.config import BuildSettings
from tflm_forge.costs.tables import shipped_tables
from tflm_forge.generate import Arena, generate_project
from tflm_forge.model import load_model
from tflm_forge.runtimes import load_catalogue, plan_op_set
from tflm_forge.toolchains import cmake
from tflm_forge.versus import every_op

pytestmark = pytest.mark.tools

OP = "SOFTMAX"
ROW_BYTES = 100
"""What forge's own firmware keeps of each op besides: its row in a table, its name, and two functions that time it."""


def test_a_shipped_cost_is_what_firmware_with_the_op_has_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_CACHE_DIR", str(tmp_path / "cache"))
    table = next(t for t in shipped_tables() if (t.runtime, t.core) == ("bundled", "cortex-m4f"))
    cost = next(cost for cost in table.costs if (cost.name, cost.types) == (OP, ""))
    settings = BuildSettings(runtime="bundled", arena_bytes=1024)
    uses = every_op(load_catalogue(settings))
    model, board = load_model(EXAMPLES / "sine" / "sine.tflite"), load_board(table.board)
    flash = []
    for left_out in (OP, ""):
        plan = plan_op_set([use for use in uses if use.name != left_out], board.core, settings)
        arena = Arena(bytes=1024, how="given")
        elf = cmake.build(generate_project(tmp_path / "firmware", model, board, plan, settings, arena)).elf
        flash.append(_flash_bytes(elf))
    without, whole = flash
    assert cost.added_bytes <= whole - without <= cost.added_bytes + ROW_BYTES


def _flash_bytes(elf: Path) -> int:
    output = subprocess.run(["arm-none-eabi-size", elf], capture_output=True, text=True, check=True, timeout=60).stdout
    text, data = output.splitlines()[1].split()[:2]
    return int(text) + int(data)
