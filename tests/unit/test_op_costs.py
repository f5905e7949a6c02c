"""Tables of what operators cost: shipped ones are whole and plausible, damaged ones do no harm, inspect shows them."""

import json
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, Forge
from tflm_forge.board import CORES
from tflm_forge.config import BuildSettings
from tflm_forge.costs import CostTable, find_table, table_path
from tflm_forge.costs.measuring import COMMON_OPS
from tflm_forge.costs.of_model import find_model_costs
from tflm_forge.costs.tables import parse_table, render_table, shipped_tables, write_table
from tflm_forge.errors import UsageError
from tflm_forge.model import load_model
from tflm_forge.runtimes import load_runtime

TABLES = shipped_tables()
DIGITS = EXAMPLES / "digits" / "digits.tflite"


@pytest.fixture(autouse=True)
def _no_other_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a table measured on this machine, nor an installed runtime of another commit."""
    monkeypatch.setenv("FORGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "home"))


def _find(table: CostTable) -> CostTable | None:
    return find_table(runtime=table.runtime, version=table.version, core=table.core, kernel_set=table.kernel_set)


def test_the_default_targets_have_tables() -> None:
    found = {(table.runtime, table.core, table.kernel_set) for table in TABLES}
    kinds = (("bundled", "dsp"), ("tflm", "reference"), ("tflm", "cmsis_nn"))
    assert {(runtime, "cortex-m4f", kernels) for runtime, kernels in kinds} <= found


@pytest.mark.parametrize("table", TABLES, ids=lambda t: f"{t.runtime}-{t.core}-{t.kernel_set}")
class TestShipped:
    def test_every_op_of_the_runtime_has_a_row_or_a_reason(self, table: CostTable) -> None:
        kernels = table.kernel_set if table.runtime == "tflm" else None
        catalogue = load_runtime(table.runtime).catalogue(kernels)
        assert table.version == catalogue.version, f"measure it again: {table.command}"
        general = [cost.name for cost in table.costs if not cost.types]
        assert len(general) == len(set(general))
        assert set(general) | set(table.not_measured) == {op.name for op in catalogue.ops.values()}
        assert all(table.not_measured.values())

    def test_it_is_found_and_says_how_it_was_made(self, table: CostTable) -> None:
        assert _find(table) == table
        assert table.is_shipped
        assert table.command.startswith("forge ops --cost --measure ")
        for word in (table.runtime, table.core):
            assert word in table.command.split()
        assert set(table.common_ops) == set(COMMON_OPS)
        assert table.compiler.count(".") == 2

    def test_costs_fit_together(self, table: CostTable) -> None:
        general = [cost for cost in table.costs if not cost.types]
        everything = table.all_ops_bytes - table.no_op_bytes
        # Shared code is in the cost of each that shares it: together they can only be more than what all cost.
        assert sum(cost.alone_bytes for cost in general) > everything
        assert max(cost.alone_bytes for cost in table.costs) < everything
        assert min(cost.least_bytes for cost in table.costs) >= 0
        costs = {(cost.name, cost.types): cost for cost in table.costs}
        for (name, types), cost in costs.items():
            if types:
                assert cost.alone_bytes <= costs[name, ""].alone_bytes
        # A convolution is far more than a function that computes nothing.
        assert costs["CONV_2D", ""].alone_bytes > 3 * costs["RESHAPE", ""].alone_bytes


def test_a_table_survives_being_written_and_goes_before_the_shipped_one() -> None:
    shipped = next(table for table in TABLES if table.runtime == "bundled")
    text = render_table(shipped).replace('"compiler": "', '"compiler": "9')
    own = parse_table(text, is_shipped=False, where="here")
    path = write_table(own)
    assert path == table_path(own)
    assert path.read_text() == text
    assert _find(shipped) == own
    path.write_text(text[: len(text) // 2])
    assert _find(shipped) == shipped


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"tflm_forge_op_costs": 2}', '{"tflm_forge_op_costs": 1}'])
def test_what_is_no_table_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^here\.json: "):
        parse_table(text, is_shipped=False, where="here.json")


def test_another_version_of_the_runtime_has_no_costs() -> None:
    table = TABLES[0]
    assert find_table(runtime=table.runtime, version="x", core=table.core, kernel_set=table.kernel_set) is None


def test_a_quantized_model_costs_what_its_int8_registrations_cost() -> None:
    costs = find_model_costs(load_model(DIGITS), CORES["cortex-m4f"], BuildSettings(runtime="bundled"))
    assert costs is not None
    assert {name for name, cost in costs.by_op.items() if cost.types} == {
        "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "SOFTMAX",
    }  # fmt: skip
    assert all(f"_{cost.types}()" in cost.call for cost in costs.by_op.values() if cost.types)
    once = ("AVERAGE_POOL_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "RESHAPE", "SOFTMAX")
    assert costs.dearest is not None
    assert costs.dearest.name == max(once, key=lambda name: costs.by_op[name].added_bytes)
    assert find_model_costs(load_model(DIGITS), CORES["cortex-m55f"], BuildSettings(runtime="bundled")) is None


def test_inspect_shows_the_costs_of_the_ops(forge: Forge) -> None:
    table = next(table for table in TABLES if table.runtime == "bundled")
    rows = {(cost.name, cost.types): cost for cost in table.costs}
    softmax = rows["SOFTMAX", "INT8"]
    done = forge("inspect", DIGITS, "--runtime", "bundled", "--board", "stm32f4")
    assert done.returncode == 0, done.stderr
    assert "flash on cortex-m4f" in done.stdout
    span = f"{softmax.added_bytes:,} to {softmax.alone_bytes:,}"
    assert any("SOFTMAX" in line and span in line for line in done.stdout.splitlines())
    assert f"note: SOFTMAX costs {span} bytes of flash" in " ".join(done.stderr.split())
    plain = json.loads(forge("inspect", DIGITS, "--runtime", "bundled", "--json").stdout)["costs"]
    assert plain["ops"]["SOFTMAX"] == {"alone_bytes": softmax.alone_bytes, "added_bytes": softmax.added_bytes}
    assert plain["dearest_of_one_layer"] == "SOFTMAX"
    done = forge("inspect", DIGITS, "--runtime", "bundled", "--board", "mps3-an547")
    assert done.returncode == 0
    assert "flash on" not in done.stdout


def test_ops_shows_the_table_with_the_dearest_first(forge: Forge) -> None:
    done = forge("ops", "--cost", "--runtime", "bundled", "--json")
    assert done.returncode == 0, done.stderr
    plain = json.loads(done.stdout)
    table = next(table for table in TABLES if table.runtime == "bundled")
    alone = [row["alone_bytes"] for row in plain["ops"]]
    assert alone == sorted(alone, reverse=True)
    assert len(alone) == len(table.costs)
    assert plain["is_shipped"]
    shown = forge("ops", "CONV_2D", "--cost", "--runtime", "bundled", "--board", "stm32f4").stdout
    assert [line.split()[0] for line in shown.splitlines()[2:4]] == ["CONV_2D", "CONV_2D"]
    assert "SOFTMAX   " not in shown


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--cost", "--runtime", "bundled", "--core", "cortex-m55f"), "--measure --runtime bundled --core cortex-m55f"),
        (("--cost", "--core", "cortex-m9"), "cortex-m4f"),
        (("--cost", "--core", "cortex-m3", "--board", "stm32f4"), "exclude each other"),
        (("CONV", "--cost", "--runtime", "bundled"), "'CONV_2D'"),
        (("--measure",), "--cost"),
        (("--core", "cortex-m3"), "--cost"),
    ],
)
def test_what_can_not_be_shown_says_what_to_do(forge: Forge, args: tuple[str, ...], words: str) -> None:
    done = forge("ops", *args)
    assert done.returncode == 2, done.stderr
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
