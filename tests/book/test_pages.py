"""The rendered book in a real browser: every page, no error, no request that leaves the host or folder, search."""

from __future__ import annotations

import json
import math
import re

import pandas as pd
import pytest
from accessibility import DESKTOP

from browsing import MADE_BY_SPHINX, new_page, opened, ready
from evolvingdp.book.cell import module_of
from evolvingdp.book.checkout import Project, params_of
from evolvingdp.notebooks.audit.verified_privacy import PAPERS

SWEEP_S_OWN = {*["point", "seed", "command", "commit", "version", "library_sha256", "data_sha256", "python", "packages"]}
LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def test_every_page_opens_in_light_and_dark_without_an_error_or_an_outside_request(visits):
    assert {address: visit.problems for address, visit in visits.items() if visit.problems} == {}
    assert {tuple(visit.modes) for visit in visits.values()} == {("light", "dark")}
    assert {address: visit.overflow for address, visit in visits.items() if visit.overflow} == {}, "scrolls sideways"


def test_the_zip_reads_from_disk_in_a_browser(visits, unpacked, browser):
    """Its pages show what those from a server do (above: no error, no request that leaves the folder); search, too."""
    assert {address: visit.formulas for address, visit in visits.items() if len({*visit.formulas}) > 1} == {}
    assert visits["book/heavy_hitters_in_depth.html"].formulas[1] > 30
    (search,) = [visit for address, visit in visits.items() if address.startswith("search")]
    assert search.hits[1] >= 3
    page, problems = new_page(browser, f"{unpacked.as_uri()}/", DESKTOP, "light")
    page.goto(f"{unpacked.as_uri()}/index.html", wait_until="commit")
    page.wait_for_url("**/book/index.html")
    ready(page)
    assert problems == []
    page.context.close()


@pytest.mark.parametrize("notebook", Project().notebooks())
def test_a_cell_that_draws_shows_its_figure_and_not_what_its_last_call_returned(built_book, notebook):
    cells = json.loads((built_book.results / f"{notebook}.ipynb").read_text())["cells"]
    told = [output for cell in cells for output in cell.get("outputs", ()) if output["output_type"] == "execute_result"]
    texts = ["".join(output["data"]["text/plain"]) for output in told if "text/html" not in output["data"]]
    assert [text for text in texts if re.search(r"matplotlib|Text\(|^{'", text)] == []


def test_pages_come_with_the_icons_that_they_show_and_no_others(visits, built_book):
    icons = [icon for visit in visits.values() for icon in visit.facts["icons"]]
    assert len(icons) > 10 * len(visits)
    assert {name for name, drawn in icons if not drawn} == set()
    drawings = (built_book.root / "_build" / "html" / "_static/scripts/fontawesome.js").read_text()
    assert {name for name in ("sun", "xmark", "trash", "github") if f"{name}:[" in drawings} == {"sun", "xmark"}
    assert len(drawings) < 100_000, "the theme draws its icons otherwise now"


@pytest.mark.parametrize("notebook", Project().notebooks())
def test_figures_are_numbered_captioned_described_and_downloadable(visits, notebook):
    visit = visits[f"book/results/{notebook}.html"]
    figures = visit.soup.select("article figure")
    count = Project().template(notebook).read_text().count("page.figure(")
    assert len(figures) == count > 0
    assert visit.facts["images"] == [True] * 2 * count  # each for light and for dark pages
    assert [name.endswith("-column-dark.svg") for name in visit.narrow] == [True] * count, "a phone gets the narrow drawing"
    for figure, caption in zip(figures, visit.facts["captions"], strict=True):
        assert re.match(r"Fig\. \d+", caption)
        alt = figure.img["alt"]
        assert len(alt) > 200
        assert len(re.findall(r"\d", alt)) > 2, "what the figure shows, in numbers"
        assert alt not in caption
    for kind in ("svg", "pdf", "png", "csv", "json", "zip", "-column.pdf"):
        assert sum(link.endswith(kind) for link in visit.facts["downloads"]) >= count
    text = visit.soup.get_text()
    assert text.count(f"evolvingdp run {notebook} --preset quick --seed 0") >= count
    assert "does not hold" not in text
    assert text.count("Built with the preset") == 1
    assert visit.facts["sources"] == [], "the source of a table"


@pytest.mark.parametrize("notebook", Project().notebooks())
def test_the_declared_metric_is_one_of_the_values_that_a_run_gives(built_book, notebook):
    metric = module_of(notebook).METRIC
    values = json.loads((built_book.results / notebook / "values.json").read_text())
    assert isinstance(values[metric.name], float | int)
    assert math.isfinite(values[metric.name])
    assert values[metric.name] >= 0, "a sweep's band ends at zero"
    assert metric.name not in params_of(notebook).lines, "it is measured"
    assert 10 < len(metric.meaning) < 100
    columns = set(pd.read_csv(built_book.results / notebook / "results.csv", nrows=0).columns)
    assert not columns & SWEEP_S_OWN, "a sweep adds these"
    assert not [name for name in columns if name.startswith("param_")]


def test_the_ledger_has_a_heading_for_each_paper_and_is_sorted_and_searched_within(site, browser):
    page, problems = opened(browser, f"{site}book/privacy.html")
    ledger = page.locator("table.grouped")
    assert ledger.is_hidden(), "a long way to the next section, on a phone: it is folded"
    page.locator("summary", has=page.get_by_text("The ledger:")).click()
    headings = ledger.locator("tr.group:visible")
    assert headings.all_inner_texts() == list(PAPERS.values())

    def losses() -> list[list[float]]:
        cells = [body.locator("td[data-label=measured]").all_inner_texts() for body in ledger.locator("tbody").all()]
        plain = [[cell.replace(",", "").replace("·10", "e").translate(LOWERED) for cell in group] for group in cells]
        return [[float(cell) for cell in group if cell] for group in plain]

    before = losses()
    ledger.locator("th button", has_text="measured").click()
    assert losses() == [sorted(group) for group in before] != before
    page.locator("details", has=ledger).locator(".table-search input").fill("shuffled")
    assert headings.all_inner_texts() == [PAPERS["heavy_hitters"]]
    page.set_viewport_size({"width": 390, "height": 900})
    assert ledger.evaluate("table => table.scrollWidth") <= 390
    assert problems == []
    page.context.close()


def test_no_generated_index_shows_a_raw_label(built_book, visits):
    """What Sphinx makes beside the pages of the contents: the index of names and the search, of what people wrote."""
    root, labels = built_book.root / "_build" / "html", re.compile(r"\b(?:thm|alg|prf|fig|proof|theorem|algorithm)-[\w-]+")
    made = {str(path.relative_to(root)) for path in root.glob("*.html")} - {"index.html"}
    assert made == {address.partition("?")[0] for address in MADE_BY_SPHINX}
    assert {address: labels.findall(visits[address].soup.select_one("main").text) for address in MADE_BY_SPHINX} == {
        address: [] for address in MADE_BY_SPHINX
    }
