"""The rendered book in a real browser: every page, no error, no request that leaves the host, math, search, links."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest

from browsing import DESKTOP, PHONE, opened
from evolvingdp.publish.errors import BookError
from evolvingdp.publish.rendering.book import build, render
from evolvingdp.publish.running.execute import export, run
from evolvingdp.publish.running.job import Job
from evolvingdp.publish.sources.project import Project

FIGURES = {
    "heavy_hitters/frequency_oracle": 5,
    "heavy_hitters/treehist": 4,
    "heavy_hitters/bitstogram": 3,
    "heavy_hitters/rappor": 4,
    "evolving/thresh": 3,
    "evolving/heavy_thresh": 2,
    "continual_mean/binary_tree": 2,
    "continual_mean/user_mean": 3,
    "continual_mean/past_the_paper": 3,
    "sparse_vector/threshold_monitor": 3,
    "sparse_vector/shifting_heavy_hitters": 4,
    "audit/verified_privacy": 4,
}


@pytest.mark.parametrize(("width", "mode"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light")])
def test_every_page_opens_without_an_error_or_an_outside_request(site, browser, addresses, width, mode):
    for address in addresses:
        page, problems = opened(browser, site + address, width, mode)
        assert problems == [], address
        assert page.evaluate("document.documentElement.dataset.theme") == mode
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{address} scrolls sideways"
        page.context.close()


def test_math_is_rendered(site, browser):
    page, _ = opened(browser, f"{site}book/heavy_hitters.html")
    assert page.locator("mjx-container").count() > 30
    assert page.locator("mjx-merror").count() == 0
    assert "\\epsilon" not in page.locator("article").inner_text()


@pytest.mark.parametrize("notebook", Project().notebooks())
def test_figures_are_numbered_captioned_described_and_downloadable(site, browser, notebook):
    page, _ = opened(browser, f"{site}book/results/{notebook}.html")
    figures = page.locator("article figure")
    count = FIGURES[notebook]
    assert figures.count() == count
    for position in range(count):
        figure = figures.nth(position)
        assert re.match(r"Fig\. \d+", figure.locator("figcaption").inner_text())
        alt = figure.locator("img").get_attribute("alt")
        assert len(alt) > 200
        assert len(re.findall(r"\d", alt)) > 2, "what the figure shows, in numbers"
        assert alt not in figure.locator("figcaption").inner_text()
        assert figure.locator("img").evaluate("image => image.complete && image.naturalWidth > 0")
    links = page.locator("article a[download]").evaluate_all("links => links.map(link => link.href)")
    for kind in ("svg", "pdf", "png", "csv", "json", "zip", "-column.pdf", "-text.pdf"):
        assert sum(link.endswith(kind) for link in links) >= count
    assert page.locator(f"text=evolvingdp run {notebook} --preset quick --seed 0").count() >= count
    assert page.locator("text=does not hold").count() == 0


@pytest.mark.parametrize("chapter", ["heavy_hitters", "evolving", "continual_mean", "sparse_vector", "privacy", "reproduce"])
def test_bibtex_has_a_button_that_copies_it(site, browser, chapter):
    page, _ = opened(browser, f"{site}book/{chapter}.html")
    blocks = page.locator(".highlight-bibtex")
    assert blocks.count() == (1 if chapter == "reproduce" else 2)
    assert page.locator(".highlight-bibtex button.copybtn").count() == blocks.count()


def test_search_finds_a_word(site, browser):
    page, problems = opened(browser, f"{site}search.html?q=Hadamard")
    page.wait_for_selector("#search-results li")
    assert problems == []


def test_every_internal_link_leads_somewhere(built_book, site, browser, addresses):
    root = built_book.root / "_build" / "html"
    ids: dict[Path, set[str]] = {}
    for address in addresses:
        page, _ = opened(browser, site + address)
        ids[root / address] = set(page.locator("[id]").evaluate_all("nodes => nodes.map(node => node.id)"))
        page.context.close()
    followed = 0
    for address in addresses:
        html = (root / address).read_text()
        for link in re.findall(r'(?:href|src)="([^"]+)"', html):
            target, fragment = urldefrag(urljoin(site + address, link))
            if urlparse(target).netloc != urlparse(site).netloc:
                continue
            path = root / unquote(urlparse(target).path).lstrip("/")
            assert path.is_file(), f"{address} links to {link}"
            assert not fragment or path not in ids or fragment in ids[path], f"{address} links to {link}"
            followed += 1
    assert followed > 100


def test_no_page_holds_a_path_of_this_machine(built_book, addresses):
    for address in addresses:
        assert str(built_book.root) not in (built_book.root / "_build" / "html" / address).read_text()


def test_numbers_in_the_prose_are_those_of_the_results(built_book, site, browser):
    values = json.loads((built_book.results / "heavy_hitters" / "frequency_oracle" / "values.json").read_text())
    page, _ = opened(browser, f"{site}book/heavy_hitters.html")
    text = page.locator("article").inner_text()
    assert f"{values['lemma_rows']:,.0f}" in text
    assert f"{values['standard_error']:,.0f}" in text


def test_nothing_is_executed_when_nothing_has_changed(built_book, capsys):
    build(built_book, "quick", print)
    said = capsys.readouterr().out
    assert "heavy_hitters/frequency_oracle: unchanged" in said
    assert " 0 executed" in said


def test_pages_of_the_quick_preset_say_so(site, browser):
    for notebook in Project().notebooks():
        page, _ = opened(browser, f"{site}book/results/{notebook}.html")
        assert page.locator("text=This page was built with the preset").count() == 1


def test_chapters_follow_their_results(built_book):
    """Another result in place: the chapter that prints its numbers is read again."""
    folder = built_book.results / "heavy_hitters" / "frequency_oracle"
    chapter = built_book.root / "_build" / "html" / "book" / "heavy_hitters.html"
    job = Job.make(built_book, "heavy_hitters/frequency_oracle", "quick", {"n_users": 4321000, "repetitions": 2}, 1)
    run(job)
    assert "4,321,000" not in chapter.read_text()
    try:
        export(job, folder.parent, as_page=True)
        render(built_book, print)
        assert "4,321,000" in chapter.read_text()
    finally:
        build(built_book, "quick", print)
    assert "4,321,000" not in chapter.read_text()


@pytest.mark.parametrize("touched", ["notebook", "results", "page"])
def test_a_stale_or_touched_page_fails_even_a_build_by_hand(built_book, touched):
    results = built_book.results / "heavy_hitters"
    path = {
        "notebook": built_book.template("heavy_hitters/frequency_oracle"),
        "results": results / "frequency_oracle" / "claims.json",
        "page": results / "frequency_oracle.ipynb",
    }[touched]
    before = path.read_text()
    try:
        path.write_text(before.replace("# The frequency", "# The perfect").replace('"holds": true', '"holds": false'))
        assert path.read_text() != before
        with pytest.raises(BookError, match="heavy_hitters/frequency_oracle"):
            render(built_book, print)
    finally:
        path.write_text(before)


def test_a_value_that_no_result_has_fails_the_build(built_book):
    page = built_book.root / "book" / "notation.md"
    before = page.read_text()
    try:
        page.write_text(before + "\n{value}`heavy_hitters/frequency_oracle no_such_number`\n")
        for _ in range(2):  # and fails again: a broken page is not kept
            with pytest.raises(BookError, match="no_such_number"):
                render(built_book, print)
    finally:
        page.write_text(before)
