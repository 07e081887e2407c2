"""What pages compute when they are read: pictures of ideas, explorers, cards, the planner's fields, other packages."""

from __future__ import annotations

import json
import random
import re

import pandas as pd
import pytest
from accessibility import AXE_SCRIPT, WCAG_AA, dress, violations
from bs4 import BeautifulSoup
from click.testing import CliRunner
from colours import contrast
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from browsing import opened
from drawn import cards, explorers, fields, live, peers, pictures, svg
from evolvingdp.book.cli import main
from support import REPOSITORY

PAGES = "\n".join(path.read_text() for path in sorted((REPOSITORY / "book").glob("*.md")))
STATIC = REPOSITORY / "book" / "_static"
SHEET = (STATIC / "ideas.css").read_text()
GRID = fields.Grid.read(REPOSITORY)


def explorer(name: str) -> str:
    return explorers.page(REPOSITORY, name)


def test_everything_that_is_drawn_is_shown_once():
    ideas = re.findall(r"```\{idea\} (\S+)\n[^`]{40,260}\.\n```", PAGES)
    assert sorted(ideas) == sorted(pictures.PICTURES)
    assert sorted(re.findall(r"```\{explorer\} (\w+)\n", PAGES)) == sorted(explorers.EXPLORERS)
    assert sorted(re.findall(r"```\{live\} (\w+)\n", PAGES)) == sorted(live.LIVE)
    assert re.findall(r"\{image\} results/card-(\w+)\.svg\n:alt: .{40,}\n", PAGES) == list(cards.CARDS)


def test_the_picture_of_blocks_reads_those_of_the_binary_digits():
    said = pictures.PICTURES["blocks"]().says
    assert "step 13 reads the blocks 1 to 8 and 9 to 12 and 13 to 13." in said
    assert "Reading 6 is in 3 blocks." in said  # 5 to 6, 1 to 8, 1 to 16


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_names_itself_and_keeps_its_words_inside(name):
    drawing = pictures.PICTURES[name]()
    drawn = drawing.svg("x")
    assert drawn == pictures.PICTURES[name]().svg("x"), "the same at every build"
    assert '<title id="x-title">' in drawn
    assert re.search(r"\d", drawing.says)
    text = r'<text class="([^"]*)" x="([^"]+)" y="([^"]+)" text-anchor="(\w+)">([^<]+)<'
    for kind, x, y, at, words in re.findall(text, drawn):
        box = TextPath((0, 0), words, size=12 if "small" in kind else 13, prop=FontProperties("DejaVu Sans")).get_extents()
        left = float(x) - box.width * {"start": 0, "middle": 0.5, "end": 1}[at]
        assert -1 <= left < left + box.width <= svg.WIDTH + 1, words
        assert 8 <= float(y) <= drawing.height - 2, words


@pytest.mark.parametrize("sheet", re.findall(r"\{ (--idea-ours[^}]*)\}", SHEET))
def test_marks_and_words_stand_out_from_their_ground(sheet):
    colours = dict(re.findall(r"--idea-(\w+): (#\w{6})", sheet))
    assert contrast(colours["text"], colours["page"]) >= 7
    assert min(contrast(colours[mark], colours["page"]) for mark in ("ours", "other", "line")) >= 4.5
    assert min(contrast(colours["text"], colours["faint"]), contrast(colours["on"], colours["ours"])) >= 4.5


@pytest.mark.parametrize("name", explorers.EXPLORERS)
def test_every_setting_of_an_explorer_has_the_library_s_numbers_at_their_places(name):
    soup = BeautifulSoup(explorer(name), "html.parser")
    places, methods = json.loads(soup.script.string), [head.text for head in soup.select("tbody th")]
    for key, numbers in explorers.EXPLORERS[name].sweep():
        for method, spot in zip(methods, places[key], strict=True):
            assert (spot is None) == (method not in numbers)
            assert spot is None or spot[1] == explorers.short(numbers[method])
    spots = {tuple(spot) for row in places.values() for spot in row if spot}
    in_order = sorted(spots, key=lambda spot: (float(spot[1].replace(",", "")), spot[0]))
    assert [x for x, _ in in_order] == sorted(x for x, _ in spots), "further right is more"


def test_a_result_without_a_card_s_numbers_and_an_explorer_of_no_name_are_errors(tmp_path):
    for name in cards.CARDS:
        with pytest.raises((OSError, KeyError, ValueError)):
            cards.draw(tmp_path, name)
    with pytest.raises(KeyError, match="nobody's"):
        explorers.page(tmp_path, "nobody's")


def printed(command: str) -> list[str]:
    """The lines of the command's table, each with the note below it."""
    done = CliRunner().invoke(main, command.split()[1:])
    assert done.exit_code == 0
    return [" ".join(row.split()) for row in re.findall(r"^\d+\. .*(?:\n    \S.*)*", done.output, re.MULTILINE)]


def test_the_planner_s_grid_is_what_the_planner_says_now():
    """A sample of the questions; the others are as `make grid` found them."""
    places = random.Random(7).sample(list(fields.places()), 40)
    assert [GRID.at(at) for at in places] == [fields.ranked(fields.question(at)) for at in places]
    assert sum(bool(GRID.at(at)) for at in places) > 20
    start = tuple(field.start for field in fields.FIELDS)
    named = GRID.at(start)
    for line, (method, error, found) in zip(printed(fields.command(start)), named, strict=True):
        assert f". {method} {error} " in line
        assert found in line


def test_a_grid_of_other_fields_is_refused(tmp_path):
    (tmp_path / fields.FOLDER).mkdir(parents=True)
    for name in ("planner_grid.csv", "planner_grid_methods.csv"):
        table = (REPOSITORY / fields.FOLDER / name).read_text()
        (tmp_path / fields.FOLDER / name).write_text(table.replace(",100000,365,", ",100001,365,"))
    with pytest.raises(ValueError, match=r"no answer for evolvingdp plan mean .*--users 100000 --periods 365"):
        fields.Grid.read(tmp_path)


def test_fields_work_with_keys_from_disk_and_axe_finds_nothing(tmp_path, browser):
    """At the width of a phone, by day and by night: each slider's step shows what its place has."""
    boxes = "".join(map(explorer, explorers.EXPLORERS)) + fields.shown(REPOSITORY)
    boxes += "".join(draw().svg(name) for name, draw in pictures.PICTURES.items())
    page = tmp_path / "page.html"
    page.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>x</title><style>{SHEET}</style>"
        f"<script>{(STATIC / 'explorers.js').read_text()}</script><body><main class=bd-article>{boxes}</main>"
    )
    tab, problems = opened(browser, page.as_uri(), width=390)
    seen = {}
    for name in explorers.EXPLORERS:
        box = f"#explorer-{name}"
        tab.locator(f"{box} input").first.focus()
        tab.keyboard.press("ArrowRight")
        spoken = tab.locator(f"{box} input").first.get_attribute("aria-valuetext")
        seen[name] = tab.locator(f"{box} td").all_inner_texts(), spoken
    planner = tab.locator("#explorer-planner")
    for control, key in ((4, "ArrowRight"), (6, "ArrowLeft"), (0, "ArrowDown")):
        planner.locator("select, input").nth(control).focus()
        tab.keyboard.press(key)
    rows = [row.locator("th, td").all_inner_texts() for row in planner.locator("tbody tr").all()]
    asked, width = planner.locator("code").inner_text(), tab.evaluate("document.documentElement.scrollWidth")
    tab.evaluate(AXE_SCRIPT)
    found = violations(tab, WCAG_AA)
    dress(tab, "dark")
    tab.evaluate("document.body.style.background = '#14181e'; document.body.style.color = '#fff'")
    assert problems + found + violations(tab, WCAG_AA) == []
    tab.context.close()
    assert width <= 390
    for name, (cells, spoken) in seen.items():
        shown = explorers.EXPLORERS[name]
        places = json.loads(BeautifulSoup(explorer(name), "html.parser").script.string)
        now = places["-".join(map(str, (shown.start[0] + 1, *shown.start[1:])))]
        assert cells == [spot[1] if spot else "not possible" for spot in now]
        assert spoken == f"{shown.axes['epsilon'][shown.start[0] + 1]:g}"
    question = "frequencies --trust nobody --unit user --target period --users 10000000 --periods 365 --epsilon 0.5"
    assert asked == f"evolvingdp plan {question}"
    (at,) = [at for at in fields.places() if fields.command(at) == asked]
    guess = ", no better than a guess"
    useless = [float(error) > 0.29 for _, error, _ in GRID.at(at)]
    assert any(useless)
    assert not all(useless)
    assert [error.endswith(guess) for _, error, _ in rows] == useless
    assert [(method, error.removesuffix(guess), found) for method, error, found in rows] == GRID.at(at)
    for line, (method, error, _) in zip(printed(asked), GRID.at(at), strict=True):
        assert f". {method} " in line
        told = line.split(f". {method} ")[1].split()[0]
        assert line.endswith("no better than a guess") == (float(told) > 0.29)
        of_ten_streams = "+-" in line  # may be a fifth off, as the page says
        assert told == error or (of_ten_streams and abs(float(error) / float(told) - 1) <= 0.2)


# Other packages


def table(*rows: tuple[str, str, str, int, int, float, float]) -> pd.DataFrame:
    names = ["package", "method", "against", "n", "repetition", "cpu", "error"]
    return pd.DataFrame(rows, columns=names).assign(task="frequency", memory=100.0, note="")


def test_a_peer_that_is_better_only_sometimes_or_hardly_is_not_called_so():
    ours = [("ours", "OLH", "", n, r, n / 100, 10.0) for n in (10, 100, 1000) for r in range(3)]
    quick = [("p", "quick", "OLH", n, r, n / 1000, 10.0) for n in (10, 100) for r in range(3)]
    shaky = [("p", "shaky", "OLH", 1000, r, (1.0, 1.0, 11.0)[r], 9.5) for r in range(3)]
    runs = table(*ours, *quick, *shaky)
    better = {
        (pair.name, measure) for pair in peers.pairs(runs, "frequency") for measure in peers.BETTER if pair.better(measure)
    }
    assert better == {("p quick", "cpu")}
    (quick, _) = peers.pairs(runs, "frequency")
    assert (quick.n, quick.ratios["cpu"], quick.ratios["error"]) == (100, pytest.approx(0.1), 1.0)


def test_a_broken_budget_is_named_with_its_number_and_a_kept_one_is_not():
    rows = [("p", "a", 2.0, 3.95, "at least (never)"), ("p", "b", 2.0, 1.9, "at least"), ("q", "c", 1.0, 0.8, "exact")]
    assert peers.broken(pd.DataFrame(rows, columns=["package", "method", "stated", "spent", "how"])) == [
        "**p a spends more than it states**: epsilon ≥ 3.95 where it states 2 (never).",
        "Noisier than needed on a short stream: q c (0.80 of 1).",
        "Of 3 methods looked at, 2 were not seen to break their promise.",
    ]


def test_the_page_of_other_packages_says_where_each_is_better_and_types_no_number():
    page = (REPOSITORY / "book" / "performance.md").read_text().split("## Against what people")[1]
    assert re.findall(r"```\{peers\} (.+)", page) == ["better", "packages", "budget"]
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    assert not re.findall(r"\d", prose), "numbers come from the tables"
    runs, said = peers.read(REPOSITORY, "peers"), peers.section(REPOSITORY, "better", [])
    found = [(str(task), pair) for task in runs["task"].unique() for pair in peers.pairs(runs, str(task))]
    for measure, word in peers.BETTER.items():
        better = [(task, pair) for task, pair in found if pair.better(measure)]
        few = all(f"{pair.name} ({task}): {peers.ratio(pair.ratios[measure])} of ours" in said for task, pair in better)
        assert few or f"**{word.capitalize()}**: {len(better)} of {len(found)} methods" in said
    times = [pair.ratios["cpu"] for _, pair in found]
    assert f"from {peers.ratio(min(times))} to {peers.ratio(max(times))} times our processor seconds" in said
    assert min(times) > 1 or "are faster than what they are compared with" not in page
    with pytest.raises(KeyError, match="golf"):
        peers.section(REPOSITORY, "golf", [])


# Live pictures


def drawn(*words: str) -> svg.Drawing:
    drawing = svg.Drawing("Title", "Says", 100)
    drawing.line(0, 0, 1, 1)
    for place, word in enumerate(words):
        drawing.text(place, 10, word)
    return drawing


def test_all_stops_of_a_live_picture_have_the_same_marks():
    assert live.parts([drawn("same", "a < b"), drawn("same", "b")])[0] == [2]
    with pytest.raises(ValueError, match="same marks"):
        live.parts([drawn("a"), drawn("a", "b")])


def test_a_live_picture_moves_by_keys_and_without_a_script_shows_its_middle_stop_and_all_in_a_table(
    tmp_path, monkeypatch, browser
):
    stops = ("few", "some", "many")
    picture = live.Live("Users", stops, lambda _, place: (drawn(f"{place} < 3"), f"It is {stops[place]}."))
    monkeypatch.setitem(live.LIVE, "toy", picture)
    soup = BeautifulSoup(live.page(tmp_path, "toy"), "html.parser")
    assert (soup.select_one(".says").text, soup.select_one("[data-part]").text) == ("It is some.", "1 < 3")
    assert [cell.text for cell in soup.select("td")] == ["It is few.", "It is some.", "It is many."]
    assert soup.label.has_attr("hidden")
    assert [frame["stop"] for frame in json.loads(soup.script.string)] == [*stops]
    page = tmp_path / "page.html"
    sheet, script = (STATIC / "ideas.css").read_text(), (STATIC / "explorers.js").read_text()
    head = f"<meta charset=utf-8><title>x</title><style>{sheet}</style><script>{script}</script>"
    page.write_text(f"<!doctype html><html lang=en>{head}{soup}")
    tab, problems = opened(browser, page.as_uri(), width=390)
    slider = tab.locator("input")
    slider.focus()
    tab.keyboard.press("ArrowRight")
    shown = [tab.locator(one).inner_text() for one in (".says", "output")]
    assert (problems, shown, slider.get_attribute("aria-valuetext")) == ([], ["It is many.", "many"], "many")
    assert tab.locator("[data-part]").text_content() == "2 < 3"
    tab.context.close()
