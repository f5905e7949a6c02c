"""The forms of the report that are files: JSON with its schema, JUnit XML, HTML."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tflm_forge.reports
from tflm_forge.reports.charts import draw_bars, draw_lines, latency_chart, layers_chart, soak_chart
from tflm_forge.reports.html import report_to_html
from tflm_forge.reports.json import report_to_json
from tflm_forge.reports.junit import report_to_junit
from tflm_forge.reports.text import all_layers_table, latency_table, layer_table
from tflm_forge.verify.records import TestReport

SCHEMA = json.loads((Path(tflm_forge.reports.__file__).parent / "report.schema.json").read_text(encoding="utf-8"))
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "report.md").read_text(encoding="utf-8")


def keys_that_lack(value: Any, schema: dict[str, Any], where: str = "") -> Iterator[str]:
    """Yield the keys of a value that the schema does not describe, and those it demands that are not there."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        yield from (f"{where}.{key} is not in the schema" for key in value if key not in properties)
        yield from (f"{where}.{key} is missing" for key in schema.get("required", ()) if key not in value)
        for key, item in value.items():
            yield from keys_that_lack(item, properties.get(key, {}), f"{where}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from keys_that_lack(item, schema.get("items", {}), f"{where}[]")


def test_json_and_schema_have_the_same_keys(full_report: TestReport, report: TestReport) -> None:
    for each in (full_report, report):
        assert list(keys_that_lack(report_to_json(each), SCHEMA)) == []


def test_json_is_as_the_schema_says(full_report: TestReport, report: TestReport) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for each in (full_report, report):
        value = json.loads(json.dumps(report_to_json(each), allow_nan=False))
        assert [error.message for error in validator.iter_errors(value)] == []
    value["latency"]["median"] = "many"
    assert not validator.is_valid(value)


def test_every_key_is_in_the_docs() -> None:
    for key in SCHEMA["properties"]:
        assert f"| `{key}` |" in PAGE, key


def test_junit(full_report: TestReport) -> None:
    root = ET.fromstring(report_to_junit(full_report))
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "4", "2")
    assert root.get("name") == "<model>&.tflite on stm32f4"
    first, second = root.findall("testsuite")
    assert [case.get("name") for case in first.findall("testcase")] == ["build", "stack"]
    assert first.find("testcase[@name='stack']/failure").get("message") == "over its end"  # type: ignore[union-attr]
    assert (second.get("name"), second.get("failures"), second.get("skipped")) == ("numbers", "1", "0")
    output = first.find("system-out")
    assert output is not None
    assert output.text == "ready\na <b> \N{REPLACEMENT CHARACTER} line"


def test_junit_of_a_skipped_part(report: TestReport) -> None:
    from dataclasses import replace

    from tflm_forge.verify.records import Part

    skipped = replace(report, parts=(Part(name="layers", checks=(), skipped="does not fit"),))
    [suite] = ET.fromstring(report_to_junit(skipped))
    assert (suite.get("tests"), suite.get("skipped")) == ("1", "1")
    assert suite.find("testcase/skipped").get("message") == "does not fit"  # type: ignore[union-attr]


class Tags(HTMLParser):
    """Checks that tags are closed in order, and collects what a page loads."""

    VOID = frozenset({"meta", "br", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [f"{tag} {k}" for k, v in attrs if k in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_needs_nothing_else_and_escapes_names(full_report: TestReport) -> None:
    page = report_to_html(full_report).decode()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.loads == []
    assert not re.search(r"@import|url\(", page)
    assert "<model>" not in page
    assert page.count("<svg") == 3
    text = " ".join(tags.text.split())
    for words in (
        "FAILED",
        "<model>&.tflite on stm32f4",
        "over its end",
        "97.0 %",
        "29,000,040",
        "500 of 5,000 loops",
        "a <b>",
        "Left out on request: boundaries",
    ):
        assert words in text, words
    assert "prefers-color-scheme: dark" in page


def test_html_of_a_short_report(report: TestReport) -> None:
    from dataclasses import replace

    page = report_to_html(replace(report, latency=None, accuracy=None, comparisons=(), log_lines=())).decode()
    assert "<svg" not in page
    assert "None" not in text_of(page)


def text_of(page: str) -> str:
    tags = Tags()
    tags.feed(page)
    return tags.text


def test_charts_are_svg_with_one_bar_an_operator(full_report: TestReport) -> None:
    assert full_report.latency is not None
    assert full_report.layers is not None
    assert full_report.soak is not None
    space = "{http://www.w3.org/2000/svg}"
    latency = ET.fromstring(latency_chart(full_report.latency))
    bars = latency.findall(f".//{space}rect[@class='bar']")
    widths = [float(bar.get("width", 0)) for bar in bars]
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.01)
    layers = ET.fromstring(layers_chart(full_report.layers))
    assert [len(layers.findall(f".//{space}rect[@class='{style}']")) for style in ("bad", "none", "ok")] == [1, 1, 0]
    soak = ET.fromstring(soak_chart(full_report.soak, 4096))
    assert len(soak.findall(f".//{space}polyline")) == 2
    assert ET.fromstring(draw_bars([], "none")) is not None
    assert ET.fromstring(draw_lines([])) is not None


def test_layer_tables(full_report: TestReport) -> None:
    assert full_report.layers is not None
    table = layer_table(full_report.layers)
    assert [row[:4] for row in table.rows] == [("0", "CONV_2D", "<a>", "DIFFERS"), ("1", "SOFTMAX", "y", "")]
    assert "3 of 8 numbers differ (37.50 %), largest error 7 LSB" in table.rows[0][4]
    assert all_layers_table(full_report.layers).rows[1][4] == "why"


def test_latency_table_shows_the_slowest_first(report: TestReport) -> None:
    table = latency_table(report)
    assert [row[1:] for row in table.rows] == [
        ("CONV_2D", "a", "3,000", "75.0 %"),
        ("SOFTMAX", "c", "1,000", "25.0 %"),
    ]
    short = latency_table(report, most_rows=1)
    assert short.rows[-1] == ("", "1 more", "", "1,000", "25.0 %")
