"""The budget of forge.toml: every limit that is not kept is named, with what takes the bytes."""

from pathlib import Path

import pytest

from tests.unit.size.fakes import flash, ram, sizes
from tflm_forge.config import SizeTable, load_config
from tflm_forge.errors import CheckError, UsageError
from tflm_forge.size.budget import Verdict, check_budget
from tflm_forge.size.diff import compare_sizes
from tflm_forge.size.records import Group

FIRMWARE = sizes(
    flash("Conv", 600, Group.OPERATORS, op="CONV_2D"),
    flash("Pool", 200, Group.OPERATORS, op="MAX_POOL_2D"),
    flash("printf", 150, Group.PRINTF),
    ram("arena", 4000, Group.ARENA),
)


def _violations(verdict: Verdict | None) -> list[tuple[str, str, int]]:
    assert verdict is not None
    return [(violation.key, violation.region, violation.over_bytes) for violation in verdict.violations]


def _config(folder: Path, text: str) -> SizeTable:
    (folder / "forge.toml").write_text(f"[size]\n{text}", encoding="utf-8")
    return load_config(folder).size


def test_without_limits_there_is_no_verdict() -> None:
    assert check_budget(SizeTable(), FIRMWARE) is None


@pytest.mark.parametrize(("flash_max", "passed"), [(950, True), (949, False)])
def test_a_limit_holds_to_the_byte(flash_max: int, passed: bool) -> None:
    verdict = check_budget(SizeTable(flash_max=flash_max), FIRMWARE)
    assert verdict is not None
    assert verdict.passed is passed


def test_all_violations_are_told_at_once_with_contributors(tmp_path: Path) -> None:
    table = _config(
        tmp_path,
        'flash_max = { total = 900, operators = 700, "C library: printf" = 0 }\nram_max = 3000\n',
    )
    verdict = check_budget(table, FIRMWARE)
    assert _violations(verdict) == [
        ("flash_max", "flash", 50),
        ("flash_max.operators", "flash", 100),
        ("flash_max.C library: printf", "flash", 150),
        ("ram_max", "RAM", 1000),
    ]
    assert verdict is not None
    with pytest.raises(CheckError) as caught:
        verdict.raise_if_over()
    assert len(caught.value.reasons) == 4
    assert "950 bytes, 50 over [size] flash_max = 900 (operators 800, C library: printf 150)" in caught.value.reasons[0]
    assert "(Conv 600, Pool 200)" in caught.value.reasons[1]
    assert "tensor arena 4,000" in caught.value.reasons[3]


def test_growth_is_held_against_the_baseline() -> None:
    old = sizes(
        flash("Conv", 500, Group.OPERATORS, op="CONV_2D"),
        flash("printf", 150, Group.PRINTF),
        ram("arena", 4000, Group.ARENA),
    )
    diff = compare_sizes(old, FIRMWARE)
    assert _violations(check_budget(SizeTable(growth_max=300), FIRMWARE, diff)) == []
    verdict = check_budget(SizeTable(growth_max={"total": 299, "operators": 100, "ram": 0}), FIRMWARE, diff)
    assert _violations(verdict) == [("growth_max", "flash", 1), ("growth_max.operators", "flash", 200)]
    assert verdict is not None
    assert verdict.violations[0].contributors == ("Pool +200", "Conv +100")


def test_growth_without_a_baseline_is_said_not_to_be_checked() -> None:
    verdict = check_budget(SizeTable(growth_max=0), FIRMWARE)
    assert verdict is not None
    assert verdict.passed
    assert verdict.not_checked == ("growth_max.total",)


@pytest.mark.parametrize("key", ["flash_max", "ram_max", "growth_max"])
def test_an_unknown_group_is_named_with_the_nearest(tmp_path: Path, key: str) -> None:
    table = _config(tmp_path, f"{key} = {{ operater = 5 }}")
    with pytest.raises(UsageError) as caught:
        check_budget(table, FIRMWARE)
    assert f"[size] {key}" in caught.value.message
    assert "'operator" in caught.value.hint


@pytest.mark.parametrize("value", ["-1", "'64k'", "true", "{ total = -5 }", "1.5"])
def test_a_limit_is_a_number_of_bytes(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match="must be a whole number, or a table of them"):
        _config(tmp_path, f"flash_max = {value}")
