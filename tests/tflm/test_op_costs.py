"""The shipped costs of TFLM's operators, against links of firmware that has no sources but theirs."""

from pathlib import Path

import pytest

from tests.conftest import EXAMPLES
from tflm_forge.board import load_board
from tflm_forge.config import BuildSettings
from tflm_forge.costs.linking import Linker
from tflm_forge.costs.measuring import compiler_version
from tflm_forge.costs.tables import shipped_tables
from tflm_forge.generate import Arena, generate_project
from tflm_forge.model import load_model
from tflm_forge.runtimes import load_catalogue, plan_op_set
from tflm_forge.versus import every_op

pytestmark = [pytest.mark.tflm, pytest.mark.tools]

OPS = ("CONV_2D", "SOFTMAX")
TABLES = [table for table in shipped_tables() if table.runtime == "tflm"]


@pytest.mark.parametrize("table", TABLES, ids=lambda t: f"{t.core}-{t.kernel_set}")
def test_two_ops_cost_what_the_shipped_table_says(table, tmp_path: Path) -> None:
    settings = BuildSettings(runtime="tflm", kernel_set=table.kernel_set, arena_bytes=1024)
    catalogue = load_catalogue(settings)
    if catalogue.version != table.version or compiler_version() != table.compiler:
        pytest.skip("another TFLM or another compiler than the table's")
    board, model = load_board(table.board), load_model(EXAMPLES / "sine" / "sine.tflite")
    uses = [use for use in every_op(catalogue) if use.name in OPS]
    plan = plan_op_set(uses, board.core, settings)
    arena = Arena(bytes=1024, how="given")
    linker = Linker.build(generate_project(tmp_path, model, board, plan, settings, arena), plan.registrations)
    linker.measure([(), (0,), (1,)], lambda done, total: None)
    for index, registration in enumerate(plan.registrations):
        cost = table.find(registration.use.name, registration.call)
        assert cost is not None
        measured = linker.flash_bytes((index,)) - linker.flash_bytes(())
        # How many ops there are decides which loops of forge's own code are unrolled.
        assert measured == pytest.approx(cost.alone_bytes, rel=0.02, abs=64)
