"""The forms of a size report: each shows the same numbers, and takes any name for text."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from tests.unit.size.fakes import flash, ram, sizes
from tflm_forge.config import SizeTable
from tflm_forge.errors import UsageError
from tflm_forge.reports import size_json, size_text
from tflm_forge.reports.size_html import size_to_html
from tflm_forge.reports.size_markdown import size_to_markdown
from tflm_forge.reports.size_view import SizeView
from tflm_forge.size.budget import check_budget
from tflm_forge.size.diff import compare_sizes
from tflm_forge.size.records import Group

SCHEMA = json.loads(Path(size_json.__file__).with_name("size.schema.json").read_text(encoding="utf-8"))
EVIL = "</script><script>alert(1)</script>|`*_[x](y)"

OLD = sizes(flash("Conv", 500, Group.OPERATORS, op="CONV_2D"), flash("gone", 70), name="old.elf")
NEW = sizes(
    flash("Conv", 600, Group.OPERATORS, op="CONV_2D", file="conv.cc"),
    flash("Pool", 200, Group.OPERATORS, op="MAX_POOL_2D", file="pool.cc"),
    flash("g_model_data", 1000, Group.WEIGHTS, layer=EVIL),
    flash(EVIL, 8),
    ram("arena", 4096, Group.ARENA),
    name="m.tflite on stm32f4",
)
PLAIN = SizeView(title=NEW.name, elf="f.elf", sizes=NEW)
FULL = replace(
    PLAIN,
    board="stm32f4",
    flash_limit_bytes=4096,
    ram_limit_bytes=8192,
    diff=compare_sizes(OLD, NEW),
    verdict=check_budget(SizeTable(flash_max={"total": 1800, "operators": 900}), NEW),
    notes=("No line table.",),
)


def _cells(rows: object) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in rows]  # type: ignore[attr-defined]


@pytest.mark.parametrize("view", [PLAIN, FULL], ids=["plain", "full"])
def test_json_keeps_its_schema(view: SizeView) -> None:
    document = json.loads(json.dumps(size_json.size_to_json(view, "op", 2)))
    jsonschema.validate(document, SCHEMA)
    assert document["flash_bytes"] == 600 + 200 + 1000 + 8 == sum(item["flash_bytes"] for item in document["items"])
    assert document["ram_bytes"] == 4096 == sum(item["ram_bytes"] for item in document["items"])
    assert (document["model_bytes"], document["without_model_bytes"]) == (1000, 808)
    assert [row["name"] for row in document["rows"]] == ["CONV_2D", "MAX_POOL_2D"]


def test_the_schema_refuses_another_form() -> None:
    document = size_json.size_to_json(FULL)
    for key, value in (("flash_bytes", -1), ("tflm_forge_size", 1), ("surprise", 0)):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, key: value}, SCHEMA)


def test_json_is_read_again_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps(size_json.size_to_json(FULL)), encoding="utf-8")
    again = size_json.read_sizes(path)
    assert again.items == NEW.items
    diff = compare_sizes(again, NEW)
    assert (diff.old, diff.total.effect_bytes, diff.symbols) == (NEW.name, 0, ())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "neither an ELF file nor JSON"),
        ("[" * 100_000, "neither an ELF file nor JSON"),
        ("[]", "not a size report"),
        ('{"tflm_forge_size": 1}', "version 1"),
        ('{"tflm_forge_size": 2, "title": "x"}', "damaged size report"),
        ('{"tflm_forge_size": 2, "title": "x", "items": [{"name": 1}]}', "damaged size report"),
        ('{"tflm_forge_size": 2, "title": "x", "items": [], "flash_bytes": -4}', "damaged size report"),
    ],
)
def test_other_json_is_refused_in_words(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        size_json.read_sizes(tmp_path / "x.json")


def test_text_shows_regions_against_the_boards_limits() -> None:
    rows = _cells(size_text.region_table(FULL).rows)
    assert [row[:4] for row in rows] == [
        ["flash", "1,808", "of 4,096", "44.1 %"],
        ["RAM", "4,096", "of 8,192", "50.0 %"],
    ]
    assert [row[5:] for row in rows] == [["2,288", "+1,238"], ["4,096", "+4,096"]]
    assert rows[1][4].count(size_text.BLOCK) * 2 == len(rows[1][4])
    assert [row[:2] for row in _cells(size_text.region_table(PLAIN).rows)] == [["flash", "1,808"], ["RAM", "4,096"]]


def test_text_lists_groups_with_operators_below_them() -> None:
    rows = {row[0]: row[1:] for row in _cells(size_text.group_table(FULL).rows)}
    assert rows["operators"][0] == "800"
    assert (rows["CONV_2D"][0], rows["CONV_2D"][4]) == ("600", "+100")
    assert list(rows) == ["tensor arena", "model weights", "operators", "CONV_2D", "MAX_POOL_2D", "interpreter core"]


def test_text_sums_up_what_top_leaves_out() -> None:
    rows = _cells(size_text.key_table(PLAIN, "symbol", 2).rows)
    assert [row[0] for row in rows] == ["arena", "g_model_data", "3 more"]
    assert [row[0] for row in _cells(size_text.key_table(PLAIN, "op", 1).rows)] == [
        "CONV_2D",
        "1 more",
        "(no operator)",
    ]
    assert rows[2][1] == f"{600 + 200 + 8}"


def test_one_line() -> None:
    assert FULL.line == (
        "flash 1,808 of 4,096 bytes (44.1 %), +1,238; RAM 4,096 of 8,192 bytes (50.0 %), +4,096; over budget in 1 place"
    )
    assert PLAIN.line == "flash 1,808 bytes; RAM 4,096 bytes"


def test_markdown_is_short_and_stable_with_the_rest_folded() -> None:
    text = size_to_markdown(FULL, "symbol", 3)
    head, _, folded = text.partition("<details>")
    assert text == size_to_markdown(FULL, "symbol", 3)
    assert "| flash | 1,808 | 4,096 | 44.1 % | 2,288 | +1,238 |" in head
    assert "8 over \\[size\\] flash\\_max = 1,800" in head
    assert "| came | +1,000 |" in head
    assert len(head.splitlines()) < 30
    assert text.count("<details>") == text.count("</details>") == 3
    assert "CONV\\_2D" in folded


def test_markdown_takes_names_for_text() -> None:
    text = size_to_markdown(FULL, "layer", 9)
    assert re.search(r"(?<!\\)<(?!/?details>|/?summary>)", text) is None
    columns = {
        re.sub(r"\\.", "", line).count("|") for line in text.splitlines() if "alert" in line and "layer" not in line
    }
    assert columns <= {4, 6}


class _Page(HTMLParser):
    """Collects the elements, the texts of table cells, and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.scripts: list[str] = []
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag in ("script", "td"):
            (self.scripts if tag == "script" else self.cells).append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("script", "td"):
            (self.scripts if self.tags[-1] == "script" else self.cells)[-1] += data


def test_html_loads_nothing_and_takes_names_for_text() -> None:
    text = size_to_html(FULL).decode()
    page = _Page(text)
    assert len(page.scripts) == page.tags.count("script") == 2
    assert page.addresses == ["data:,"]
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert EVIL in page.cells
    tree = json.loads(page.scripts[0])
    assert (tree["flash"], tree["ram"]) == (1808, 4096)
    groups = {node["name"]: node for node in tree["parts"]}
    assert groups["model weights"]["parts"][0]["name"] == EVIL
    assert [(op["name"], op["flash"]) for op in groups["operators"]["parts"]] == [
        ("CONV_2D", 600),
        ("MAX_POOL_2D", 200),
    ]
    assert groups["operators"]["grown"]["flash"] == 300


def test_the_map_adds_up_as_the_tables_do() -> None:
    mixed = sizes(flash("Eval", 90, Group.OPERATORS, op="CONV_2D"), flash("Eval", 30, Group.FLATBUFFER), flash("x", 5))
    page = _Page(size_to_html(SizeView(title="t", elf="f.elf", sizes=mixed)).decode())
    parts = {node["name"]: node["flash"] for node in json.loads(page.scripts[0])["parts"]}
    assert parts == {row.name: row.flash_bytes for row in mixed.sum_by("group")}


def test_html_of_a_plain_elf_has_no_budget_and_no_changes() -> None:
    text = size_to_html(PLAIN).decode()
    assert "BUDGET" not in text
    assert ">Changes " not in text
    assert "OVER BUDGET" in size_to_html(FULL).decode()
