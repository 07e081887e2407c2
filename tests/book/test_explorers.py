"""The explorers: their numbers are the library's, and sliders work with keys, from disk, without a network."""

from __future__ import annotations

import json
import math
import re

import pytest
from accessibility import AXE_SCRIPT, WCAG_AA, dress, violations
from bs4 import BeautifulSoup

from browsing import in_browser, opened
from evolvingdp.book.rendering.ideas import explorers
from evolvingdp.book.rendering.ideas.explorers import EXPLORERS, short
from evolvingdp.book.rendering.ideas.pictures import PICTURES
from support import REPOSITORY

STATIC = REPOSITORY / "book" / "_static"


@pytest.mark.parametrize("name", EXPLORERS)
def test_each_chapter_shows_its_explorer_once(name):
    page = (REPOSITORY / "book" / f"{name}.md").read_text()
    assert re.findall(r"```\{explorer\} (\w+)\n", page) == [name]


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_setting_has_the_library_s_numbers_at_their_places(name):
    explorer = EXPLORERS[name]
    soup = BeautifulSoup(explorers.page(name), "html.parser")
    places = json.loads(soup.script.string)
    methods = [head.text for head in soup.select("tbody th")]
    for key, numbers in explorer.sweep():
        for method, spot in zip(methods, places[key], strict=True):
            assert (spot is None) == (method not in numbers)
            assert spot is None or spot[1] == short(numbers[method])
    spots = {(spot[0], spot[1]) for row in places.values() for spot in row if spot}
    in_order = sorted(spots, key=lambda spot: (float(spot[1].replace(",", "")), spot[0]))
    assert [x for x, _ in in_order] == sorted(x for x, _ in spots), "further right is more"
    assert [cell.text for cell in soup.select("td")] == [
        spot[1] if spot else "not possible" for spot in places["-".join(map(str, explorer.start))]
    ]


def test_what_the_pages_say_of_the_explorers():
    counts, means, sums, noise = (
        EXPLORERS[name].of for name in ("heavy_hitters", "evolving", "continual_mean", "sparse_vector")
    )
    few, many = (counts(1.0, users)["one bit a user, median"] / users for users in (10**6, 10**7))
    assert few / many == pytest.approx(math.sqrt(10), rel=0.01)
    assert "THRESH, tuned" not in means(0.25, 10**5, 64)
    one, four = (sums(1.0, samples, 256) for samples in (1, 4))
    assert four["binary tree"] == pytest.approx(4 * one["binary tree"])
    assert one["square root, delta = 10⁻⁶"] < four["square root, delta = 10⁻⁶"] < 4 * one["square root, delta = 10⁻⁶"]
    read = sum(step.bit_count() for step in range(512, 1025)) / 513  # blocks of a running sum, over all steps
    assert sums(1.0, 16, 1024)["binary tree"] == pytest.approx(16 * 11 * math.sqrt(2 * read))
    assert noise(1.0, 100)["exact"] / noise(1.0, 30)["exact"] == pytest.approx(math.sqrt(100 / 30), rel=0.1)


@pytest.mark.parametrize(
    ("number", "said"),
    [(0.0012345, "0.00123"), (0.00099999, "0.00100"), (6843.02, "6,840"), (20.97, "21.0"), (100958.4, "101,000")],
)
def test_numbers_have_three_digits(number, said):
    assert short(number) == said


def test_sliders_work_with_keys_from_disk_and_axe_finds_nothing(tmp_path):
    style, script = (STATIC / "ideas.css").read_text(), (STATIC / "explorers.js").read_text()
    boxes = "".join(map(explorers.page, EXPLORERS)) + "".join(draw().svg(name) for name, draw in PICTURES.items())
    page = tmp_path / "page.html"
    page.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>x</title><style>{style}</style><script>{script}</script>"
        f"<body><main class=bd-article>{boxes}</main>"
    )

    def look(browser):
        tab, problems = opened(browser, page.as_uri(), width=390)
        seen = {}
        for name in EXPLORERS:
            box = f"#explorer-{name}"
            tab.locator(f"{box} input").first.focus()
            tab.keyboard.press("ArrowRight")
            seen[name] = (
                tab.locator(f"{box} td").all_inner_texts(),
                tab.locator(f"{box} output").first.inner_text(),
                tab.locator(f"{box} circle").first.get_attribute("cx"),
                tab.locator(f"{box} input").first.get_attribute("aria-valuetext"),
            )
        width = tab.evaluate("document.documentElement.scrollWidth")
        tab.evaluate(AXE_SCRIPT)
        found = violations(tab, WCAG_AA)
        dress(tab, "dark")
        tab.evaluate("document.body.style.background = '#14181e'; document.body.style.color = '#fff'")
        return seen, problems + found + violations(tab, WCAG_AA), width

    seen, problems, width = in_browser(look)
    assert problems == []
    assert width <= 390
    for name, (cells, said, x, spoken) in seen.items():
        explorer = EXPLORERS[name]
        places = json.loads(BeautifulSoup(explorers.page(name), "html.parser").script.string)
        now = places["-".join(map(str, (explorer.start[0] + 1, *explorer.start[1:])))]
        assert cells == [spot[1] if spot else "not possible" for spot in now]
        assert said == spoken == f"{explorer.axes['epsilon'][explorer.start[0] + 1]:g}"
        assert float(x) == now[0][0]
