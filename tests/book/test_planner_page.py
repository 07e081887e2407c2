"""The planner in the page: its grid is what the planner says; fields work with keys, from disk, without a network."""

from __future__ import annotations

import random
import re

import pytest
from accessibility import AXE_SCRIPT, WCAG_AA, dress, violations
from bs4 import BeautifulSoup
from click.testing import CliRunner

from browsing import in_browser, opened
from evolvingdp.book.cli import main
from evolvingdp.book.rendering.ideas import fields
from evolvingdp.book.rendering.ideas.fields import FIELDS, Grid
from support import REPOSITORY

STATIC = REPOSITORY / "book" / "_static"
GRID = Grid.read(REPOSITORY)
START = tuple(field.start for field in FIELDS)


def printed(command: str) -> str:
    done = CliRunner().invoke(main, command.split()[1:])
    assert done.exit_code == 0
    return done.output


def rows_of(output: str) -> list[str]:
    """The lines of the command's table."""
    return [" ".join(line.split()) for line in output.splitlines() if re.match(r"\d+\. ", line)]


def test_the_grid_is_what_the_planner_says_now():
    """A sample of the questions; the others are as `make grid` found them."""
    places = random.Random(7).sample(list(fields.places()), 40)
    assert [GRID.at(at) for at in places] == [fields.ranked(fields.question(at)) for at in places]
    assert sum(bool(GRID.at(at)) for at in places) > 20


@pytest.mark.parametrize(
    "at",
    [
        START,
        (1, 2, 0, 0, 4, 1, 2),
        (2, 1, 0, 2, 5, 0, 3),
        (3, 2, 0, 0, 3, 2, 1),
        (3, 0, 0, 1, 3, 2, 1),
        (0, 1, 1, 0, 2, 1, 0),
    ],
)
def test_a_place_has_the_numbers_that_its_command_prints_in_their_order(at):
    output = printed(fields.command(at))
    named = [row for row in GRID.at(at) if row[1] != fields.EDGE]
    lines = rows_of(output)
    assert len(lines) == len(named)
    for place, ((method, error, found), line) in enumerate(zip(named, lines, strict=True), start=1):
        assert line.startswith(f"{place}. {method} ")
        numbers = line.removeprefix(f"{place}. {method} ").split()
        assert error in (fields.NONE, numbers[0])
        assert not found or found in numbers
    edge = [row[0] for row in GRID.at(at) if row[1] == fields.EDGE]
    assert all(method in " ".join(output.split("On the edge")[-1].split()) for method in edge)
    assert ("On the edge" in output) == bool(edge)


def test_the_table_for_print_has_the_best_of_its_questions():
    soup = BeautifulSoup(fields.table(GRID), "html.parser")
    cells = {row.th.text: [cell.text for cell in row.find_all("td")] for row in soup.select("tbody tr")}
    ask = "evolvingdp plan mean --trust nobody --unit user --target period --users 1000000 --periods 365 --epsilon 1"
    best = rows_of(printed(ask))[0]
    error, method = cells["a mean or a share, each period, nobody trusted"][1].split(" ", 1)
    assert best.startswith(f"1. {method} {error} ")
    assert all(any(cell != "none" for cell in row) for row in cells.values())


def test_a_grid_of_other_fields_is_refused(tmp_path):
    folder = tmp_path / fields.FOLDER
    folder.mkdir(parents=True)
    for name in ("planner_grid.csv", "planner_grid_methods.csv"):
        (folder / name).write_text((REPOSITORY / fields.FOLDER / name).read_text().replace(",100000,365,", ",100001,365,"))
    with pytest.raises(ValueError, match=r"no answer for evolvingdp plan mean .*--users 100000 --periods 365"):
        Grid.read(tmp_path)


def test_fields_work_with_keys_from_disk_say_what_the_command_prints_and_axe_finds_nothing(tmp_path):
    style, script = (STATIC / "ideas.css").read_text(), (STATIC / "explorers.js").read_text()
    page = tmp_path / "page.html"
    page.write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>x</title><style>{style}</style><script>{script}</script>"
        f"<body><main class=bd-article>{fields.page(GRID)}{fields.table(GRID)}</main>"
    )

    def look(browser):
        tab, problems = opened(browser, page.as_uri(), width=390)
        controls = tab.locator(".explorer select, .explorer input")

        def seen():
            rows = tab.locator(".explorer tbody tr").all()
            columns.append(tab.locator(".explorer thead th:visible").count())
            return tab.locator(".explorer code").inner_text(), [row.locator("th, td").all_inner_texts() for row in rows]

        columns = []
        found = [seen()]
        for keys in (
            {4: "ArrowRight", 6: "ArrowLeft"},
            {0: "ArrowDown", 1: "ArrowDown"},
            {0: "End", 3: "ArrowDown", 1: "Home"},
            {1: "End", 3: "Home"},
        ):
            for control, key in keys.items():
                controls.nth(control).focus()
                tab.keyboard.press(key)
            found.append(seen())
        said = [tab.locator(".explorer output").first.inner_text(), controls.nth(4).get_attribute("aria-valuetext")]
        width = tab.evaluate("document.documentElement.scrollWidth")
        tab.evaluate(AXE_SCRIPT)
        problems = problems + violations(tab, WCAG_AA)
        dress(tab, "dark")
        tab.evaluate("document.body.style.background = '#14181e'; document.body.style.color = '#fff'")
        return found, columns, said, width, problems + violations(tab, WCAG_AA)

    found, columns, said, width, problems = in_browser(look)
    assert problems == []
    assert width <= 390
    assert said == ["10,000,000"] * 2
    commands = [command for command, _ in found]
    assert commands[0] == fields.command(START)
    assert commands[1:] == [
        f"evolvingdp plan {asked} --periods 365 --epsilon 0.5"
        for asked in (
            "mean --trust nobody --unit user --target period --users 10000000",
            "frequencies --trust shuffler --unit user --target period --users 10000000",
            "hot --trust nobody --unit user --target window --users 10000000",
            "hot --trust curator --unit user --target period --users 10000000",
        )
    ]
    assert columns == [3 if any(row[2] for row in rows) else 2 for _, rows in found], "nothing of a mean is found"
    assert columns[0] == 2
    assert columns[-1] == 3
    for command, rows in found[:3]:
        named = [row for row in rows if row[1] != "on the edge"]
        for (method, error, _), line in zip(named, rows_of(printed(command)), strict=True):
            assert f". {method} {error} " in line
    assert found[3][1] == [["none: the command says why", "", ""]]
    assert "No method serves" in printed(found[3][0])
