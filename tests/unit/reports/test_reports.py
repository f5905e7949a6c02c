import json
import math
from dataclasses import replace

from tflm_forge.reports.json import report_to_json
from tflm_forge.reports.text import check_table, comparison_table, summary_lines
from tflm_forge.verify.records import (
    Accuracy,
    Check,
    Comparison,
    DeviceFacts,
    Latency,
    Metrics,
    OperatorTime,
    Part,
    TestReport,
)

FACTS = DeviceFacts(
    port="socket://127.0.0.1:5555",
    board="stm32f4",
    runtime="bundled",
    runtime_version="0.1.0",
    kernel_set="dsp",
    forge_version="0.1.0",
    build_id="ab" * 16,
    reset_cause="power-on",
    arena_bytes=24000,
    arena_used_bytes=22772,
    stack_bytes=4096,
    stack_high_water_bytes=1608,
)


def comparison(case: str, *, wrong: int = 0, error: float = 0.0) -> Comparison:
    metrics = Metrics(
        elements=8,
        mismatches=wrong,
        max_error=error,
        mae=error / 8,
        rmse=error / 2,
        cosine=0.99,
        argmax_agrees=not wrong,
    )
    return Comparison(case=case, output="y", type="INT8", unit="LSB", metrics=metrics, passed=not wrong)


def make_report() -> TestReport:
    return TestReport(
        model="kws.tflite",
        model_sha256="00ff",
        device=FACTS,
        reference="TFLM interpreter",
        parts=(
            Part(
                name="self-check",
                checks=(
                    Check(name="build", passed=True, detail="abab"),
                    Check(name="stack", passed=False, detail="over its end"),
                ),
            ),
            Part(
                name="numbers",
                checks=(
                    Check(name="zeros: y", passed=True, detail="identical"),
                    Check(name="one: y", passed=False, detail="2 of 8 differ"),
                ),
            ),
        ),
        comparisons=(comparison("zeros"), comparison("one", wrong=2, error=3.0)),
        latency=Latency(
            unit="instructions",
            runs=5,
            minimum=29_000_000,
            median=29_000_040,
            maximum=29_000_080,
            median_s=None,
            clock_hz=168_000_000,
            operators=(
                OperatorTime(index=0, op="CONV_2D", layer="a;b", count=3_000),
                OperatorTime(index=1, op="SOFTMAX", layer="c", count=1_000),
            ),
        ),
        accuracy=Accuracy(total=100, correct=97, reference_correct=98),
        log_lines=("ready",),
    )


def test_verdict_needs_every_part(report: TestReport) -> None:
    good = Part(name="numbers", checks=(Check(name="a", passed=True),))
    assert not report.passed
    assert replace(report, parts=(good,)).passed
    assert not replace(report, parts=()).passed
    assert not replace(report, parts=(good, Part(name="empty", checks=()))).passed
    assert replace(report, parts=(good, Part(name="numbers", checks=(), skipped="--no-reference"))).passed


def test_check_table_leaves_comparisons_to_their_own_table(report: TestReport) -> None:
    table = check_table(report)
    assert table.rows == (
        ("self-check", "build", "ok", "abab"),
        ("self-check", "stack", "FAILED", "over its end"),
    )
    skipped = replace(report, parts=(Part(name="numbers", checks=(), skipped="no comparison"),))
    assert check_table(skipped).rows == (("numbers", "", "skipped", "no comparison"),)


def test_comparison_table_shows_failures_one_by_one_and_groups_the_rest(report: TestReport) -> None:
    table = comparison_table(report)
    assert table.title == "numbers against TFLM interpreter"
    assert [row[:6] for row in table.rows] == [
        ("one", "y", "FAILED", "3 LSB", "25.00 %", "0.375"),
        ("zeros", "y", "ok", "0 LSB", "0.00 %", "0"),
    ]
    many = replace(report, comparisons=tuple(replace(comparison(str(i)), source="my.npz") for i in range(30)))
    assert [row[:4] for row in comparison_table(many).rows] == [("my.npz, 30 samples", "y", "ok", "0 LSB")]
    bad = replace(report, comparisons=tuple(comparison(str(i), wrong=1, error=1) for i in range(30)))
    rows = comparison_table(bad, most_rows=20).rows
    assert [row[0] for row in rows[:20]] == [str(i) for i in range(20)]
    assert rows[-1][:3] == ("10 more", "", "10 FAILED")
    assert {len(row) for row in rows} == {len(table.columns)}


def test_a_group_shows_its_worst_numbers(report: TestReport) -> None:
    group = tuple(replace(comparison(str(i), error=float(i)), source="my.npz") for i in range(3))
    [row] = comparison_table(replace(report, comparisons=group)).rows
    assert row[:7] == ("my.npz, 3 samples", "y", "ok", "2 LSB", "0.00 %", "0.25", "1")


def test_summary(report: TestReport) -> None:
    text = "\n".join(summary_lines(report))
    for part in (
        "stm32f4 on socket://127.0.0.1:5555, runtime bundled 0.1.0 (dsp kernels)",
        "22,772 of 24,000 bytes",
        "29,000,040 instructions (29,000,000 to 29,000,080), median of 5: 172.619 ms at 168 MHz if each took one cycle",
        "97 of 100 labelled inputs (97.0 %), reference 98",
        "FAILED    self-check (1), numbers (1)",
    ):
        assert part in text
    good = replace(report, parts=(Part(name="numbers", checks=(), skipped="no comparison"),))
    assert summary_lines(good)[-1] == "PASSED    0 checks, without numbers"
    timed = Latency(unit="cycles", runs=1, minimum=84_000, median=84_000, maximum=84_000, median_s=0.0005)
    assert "84,000 cycles, median of 1: 0.500 ms" in "\n".join(summary_lines(replace(report, latency=timed)))


def test_json_holds_everything_and_no_nan(report: TestReport) -> None:
    value = report_to_json(replace(report, comparisons=(comparison("one", wrong=1, error=math.inf),)))
    text = json.dumps(value, allow_nan=False)
    assert json.loads(text) == value
    assert value["tflm_forge_report"] == 1
    assert value["passed"] is False
    assert value["device"]["arena_used_bytes"] == 22772
    assert value["parts"][0]["checks"][1] == {"name": "stack", "passed": False, "detail": "over its end"}
    assert value["comparisons"][0]["max_error"] is None
    assert value["comparisons"][0]["mismatch_percent"] == 12.5
    assert value["latency"]["median"] == 29_000_040
    assert value["accuracy"] == {"total": 100, "correct": 97, "reference_correct": 98, "percent": 97.0}
    assert value["log"] == ["ready"]
    empty = report_to_json(replace(report, latency=None, accuracy=None, reference=""))
    assert (empty["latency"], empty["accuracy"], empty["reference"]) == (None, None, None)
