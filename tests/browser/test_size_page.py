"""The page of `forge size --html` in a real browser: clicked, typed at, in light and dark, on a phone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import Page, open_browser
from tests.unit.reports.test_size_reports import EVIL, FULL
from tests.unit.size.fakes import flash, ram, sizes
from tflm_forge.reports.size_html import size_to_html
from tflm_forge.reports.size_view import SizeView
from tflm_forge.size.records import Group

pytestmark = pytest.mark.browser

BIG = sizes(
    *(flash(f"tflite::ops::Eval{i}", 40 + 7 * i % 90, Group.OPERATORS, op=f"OP_{i % 6}") for i in range(120)),
    *(flash(f"forge::f{i}", 4 + i, Group.LINK) for i in range(60)),
    flash("printf", 900, Group.PRINTF),
    flash("model", 3000, Group.METADATA),
    ram("arena", 4096, Group.ARENA),
    ram("buffers", 512, Group.LINK),
    name="big.tflite on stm32f4",
)
CELLS = "[...document.querySelectorAll('#map .cell')]"
CRUMBS = "document.getElementById('crumbs').innerText.split('\\n').filter(Boolean)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """Return the browser; in the end the page must have complained of nothing and asked for nothing."""
    browser.complaints.clear()
    browser.requests.clear()
    yield browser
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "size.html"
    path.write_bytes(size_to_html(SizeView(title=BIG.name, elf="f.elf", sizes=BIG)))
    return path


def _cell(name: str) -> str:
    return f"{CELLS}.find(c => c.getAttribute('aria-label').startsWith({name!r}))"


def _click_header(page: Page, name: str) -> None:
    """Click on a group where its own name stands, above the cells inside it."""
    page.click(f"{_cell(name + ':')}.querySelector('b')")


def test_areas_are_as_large_as_their_share(page: Page, big: Path) -> None:
    page.open(big)
    areas = page.run(
        f"{CELLS}.map(c => [c.getAttribute('aria-label').split(/: [0-9]/)[0],"
        "c.offsetWidth * c.offsetHeight, c.offsetLeft, c.offsetTop, c.offsetWidth, c.offsetHeight])"
    )
    width, height = page.run("[map.clientWidth, map.clientHeight]")
    whole = {row.name: row.flash_bytes for row in BIG.sum_by("group")}
    shown = {name: area for name, area, *_ in areas if name in whole}
    assert set(shown) == {name for name, size in whole.items() if size}
    for name, area in shown.items():
        assert area / (width * height) == pytest.approx(whole[name] / BIG.flash_bytes, rel=0.04, abs=0.002)
    assert all(x >= 0 and y >= 0 and x + w <= width + 1 and y + h <= height + 1 for _, _, x, y, w, h in areas)


def test_clicking_into_a_group_and_an_operator_and_back(page: Page, big: Path) -> None:
    page.open(big)
    _click_header(page, "operators")
    assert page.run(CRUMBS) == ["all", "operators"]
    names = {f"OP_{i}" for i in range(6)}
    assert names <= set(page.run(f"{CELLS}.map(c => c.getAttribute('aria-label').split(':')[0])"))
    _click_header(page, "OP_3")
    assert page.run(CRUMBS) == ["all", "operators", "OP_3"]
    assert page.run(f"{CELLS}.length") == 20
    page.click("document.querySelector('#crumbs button')")
    assert page.run(CRUMBS) == ["all"]
    page.run("history.back()")
    page.wait(f"{CRUMBS}.length == 3")


def test_keyboard_alone_gets_everywhere(page: Page, big: Path) -> None:
    page.open(big)
    page.run(f"{_cell('operators:')}.focus()")
    page.press("Enter", 13, "\r")
    assert page.run(CRUMBS) == ["all", "operators"]
    assert page.run("document.activeElement.className.includes('cell')")
    told = page.run("told.textContent")
    page.press("ArrowRight", 39)
    assert page.run("told.textContent") != told
    page.press("Escape", 27)
    assert page.run(CRUMBS) == ["all"]


def test_ram_and_a_link_into_the_map(page: Page, big: Path) -> None:
    page.open(big)
    page.click("document.getElementById('ram')")
    assert page.run(f"{CELLS}.map(c => c.getAttribute('aria-label'))[0]") == "tensor arena: 4,096 bytes, 88.9 %"
    place = page.run("location.hash")
    page.open(big, place=place)
    assert page.run("document.getElementById('ram').getAttribute('aria-pressed')") == "true"
    page.open(big, place="#flash/99/x/-1")
    assert page.run(CRUMBS) == ["all"]


def test_the_filter_of_symbols(page: Page, big: Path) -> None:
    page.open(big)
    page.run("document.getElementById('filter').focus()")
    page.ask("Input.insertText", text="PRINTF")
    rows = "[...document.querySelectorAll('#symbols tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].innerText)"
    assert page.run(rows) == ["printf"]


def test_names_are_text_wherever_they_stand(page: Page, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(size_to_html(FULL))
    page.open(tmp_path / "page.html", place="#flash/0")
    assert page.run("document.scripts.length") == 2
    assert page.run(f"{CELLS}.map(c => c.title).join()").count(EVIL) >= 1


@pytest.mark.parametrize("width", [320, 390, 1100])
def test_no_width_is_too_small(page: Page, big: Path, width: int) -> None:
    page.open(big, width=width, height=700)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("map.clientWidth") > width * 0.7 or width > 960


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_stand_out_in_light_and_dark(page: Page, big: Path, dark: bool) -> None:
    page.open(big, dark=dark)
    page.run(
        """window.light = (text) => { const d = document.createElement('canvas').getContext('2d'); d.fillStyle = text;
        d.fillRect(0, 0, 1, 1); const c = [...d.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; }; 0"""
    )
    contrasts = page.run(
        f"[...{CELLS}, document.body, document.querySelector('section')].map((e) => {{ const s = getComputedStyle(e);"
        "const [a, b] = [light(s.color), light(s.backgroundColor == 'rgba(0, 0, 0, 0)' ? 'white' : s.backgroundColor)];"
        "return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); })"
    )
    assert min(contrasts) >= 4.5  # WCAG 2.1, 1.4.3
    assert (page.run("light(getComputedStyle(document.body).backgroundColor)") < 0.1) is dark
