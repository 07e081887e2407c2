"""The planner in the page: fields over questions that were asked beforehand, and a table of the best methods for print.

    ```{planner}
    ```

The grid is benchmarks/results/planner_grid*.csv, which `make grid` writes with the planner's own functions.  A row is a
question; `ranked` holds what `evolvingdp plan` says: a method's number, its standard error ("-" of an alarm) and the share
from which it finds, best first.  `book/_static/explorers.js` looks rows up and computes nothing.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

from evolvingdp.book.numerals import readable
from evolvingdp.planning import planner
from evolvingdp.planning.answer import GUESS, USELESS, CannotServeError, Expected, Method
from evolvingdp.planning.question import Question
from evolvingdp.planning.shown import number

FOLDER = Path("benchmarks", "results")
NONE = "-"  # instead of an error
STREAMS = 10  # where there is no formula, but for the question that the page begins with; the command simulates up to 250


@dataclass(frozen=True)
class Field:
    """An option of the command: what it is called in the page, its values, and what those are called; `start` is a place."""

    name: str
    label: str
    values: tuple[Any, ...]
    said: tuple[str, ...] = ()
    start: int = 0

    def typed(self, place: int) -> str:
        """What to type for it."""
        return self.values[place] if self.name == "statistic" else f"--{self.name} {self.values[place]}"

    def shown(self, place: int) -> str:
        return self.said[place] if self.said else f"{self.values[place]:,}"


FIELDS = (
    Field(
        "statistic", "Asked for:", ("mean", "frequencies", "words", "hot"),
        ("a mean or a share", "frequencies of a list", "words without a list", "what is hot now"),
    ),
    Field("trust", "Trusted:", ("nobody", "shuffler", "curator"), ("nobody", "a shuffler", "a curator")),
    Field("unit", "Epsilon protects:", ("user", "period"), ("all that a user ever sends", "what a user sends in a period")),
    Field(
        "target", "An answer about:", ("period", "window", "cumulative"),
        ("each period", "the last 7 periods", "all periods so far"),
    ),
    Field("users", "users", tuple(10**power for power in range(3, 9)), start=3),
    Field("periods", "periods", (12, 52, 365), start=2),
    Field("epsilon", "epsilon", (0.5, 1, 2, 4, 8), start=1),
)  # fmt: skip


def places() -> Iterator[tuple[int, ...]]:
    """Of every question, in the order of the grid: a place in each field."""
    return product(*(range(len(field.values)) for field in FIELDS))


def question(at: tuple[int, ...]) -> Question:
    """All that has no field at its default."""
    return Question(**{field.name: field.values[place] for field, place in zip(FIELDS, at, strict=True)})


def command(at: tuple[int, ...]) -> str:
    """What to type to ask it."""
    return " ".join(["evolvingdp plan", *(field.typed(place) for field, place in zip(FIELDS, at, strict=True))])


def ranked(
    asked: Question, expected: Callable[[Method, Question, int], Expected] = planner.expected
) -> list[tuple[str, str, str]]:
    """Each method that serves, best first: its standard error and the share from which it finds, as the command prints them,
    but from fewer simulated streams."""
    found = []
    streams = 0 if asked == question(tuple(field.start for field in FIELDS)) else STREAMS
    for method in planner.asked(asked):
        try:
            size = expected(method, asked, streams)
        except (CannotServeError, ValueError):
            continue
        else:
            told = number(size.standard_error, 0.0 if streams else size.own_error).partition(" ")[0]
            found.append((size.rank, (method.name, told or NONE, number(size.found_from))))
    return [row for _, row in sorted(found, key=lambda one: one[0])]


@dataclass(frozen=True)
class Grid:
    """`methods` by number; of each question, by its places joined with "-", what is ranked."""

    methods: list[str]
    answers: dict[str, str]

    @classmethod
    def read(cls, root: Path) -> Grid:
        """Raises OSError without a result, KeyError or ValueError where it is for other fields."""
        with (root / FOLDER / "planner_grid_methods.csv").open(newline="") as file:
            methods = [row["method"] for row in csv.DictReader(file)]
        with (root / FOLDER / "planner_grid.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        answers = {}
        for at, row in zip(places(), rows, strict=True):
            values = [str(field.values[place]) for field, place in zip(FIELDS, at, strict=True)]
            if values != [row[field.name] for field in FIELDS]:
                raise ValueError(f"planner_grid.csv has no answer for {command(at)}; run make grid")
            answers[key(at)] = row["ranked"]
        return cls(methods, answers)

    def at(self, at: tuple[int, ...]) -> list[tuple[str, str, str]]:
        """As `ranked`."""
        told = [[*one.split(" "), ""] for one in self.answers[key(at)].split(";") if one]
        return [(self.methods[int(method)], error, found) for method, error, found, *_ in told]


def key(at: tuple[int, ...]) -> str:
    return "-".join(map(str, at))


def page(grid: Grid) -> str:
    """The fields and their answers as HTML."""
    start = tuple(field.start for field in FIELDS)
    rows = "".join(
        f'<tr><th scope="row">{escape(method)}</th><td>{_error(error)}</td><td>{found}</td></tr>'
        for method, error, found in grid.at(start)
    )
    errors = {error for at in places() for _, error, _ in grid.at(at)}
    told = {"methods": grid.methods, "places": grid.answers, "said": {error: _error(error) for error in sorted(errors)}}
    named = "" if any(found for *_, found in grid.at(start)) else ' class="unnamed"'
    return (
        '<div class="explorer ranked" id="explorer-planner"><p><strong>Which method, and with what error</strong></p>'
        f"{''.join(map(_field, FIELDS))}"
        f"<table{named}><caption>Best first, as shares of the users</caption><thead><tr>"
        '<th scope="col">method</th><th scope="col">standard error</th><th scope="col">found from</th></tr></thead>'
        f'<tbody aria-live="polite">{rows}</tbody></table>'
        f"<p>The whole answer: <code>{command(start)}</code></p>"
        f'<script type="application/json">{json.dumps(told)}</script></div>'
    )


def _error(error: str) -> str:
    """As the page shows it."""
    useless = error != NONE and float(error.replace(",", "")) > USELESS
    return "" if error == NONE else f"{error}, {GUESS}" if useless else error


def _field(field: Field) -> str:
    said = [field.shown(place) for place in range(len(field.values))]
    typed = escape("|".join(field.typed(place) for place in range(len(field.values))))
    if field.said:
        options = "".join(
            f'<option value="{place}"{" selected" if place == field.start else ""}>{escape(one)}</option>'
            for place, one in enumerate(said)
        )
        return f'<label>{field.label} <select autocomplete="off" data-typed="{typed}">{options}</select></label>'
    return (
        f'<label>{field.label} <input type="range" min="0" max="{len(said) - 1}" step="1" value="{field.start}" '
        f'autocomplete="off" data-typed="{typed}" data-values="{"|".join(said)}" aria-valuetext="{said[field.start]}">'
        f"<output>{said[field.start]}</output></label>"
    )


def shown(root: Path, *_: object) -> str:
    """Fields and table."""
    grid = Grid.read(root)
    return page(grid) + table(grid)


_USERS = (1, 3, 5)  # places of the columns of the table for print


def table(grid: Grid) -> str:
    """The best method of every kind of question, everything that a user ever sends protected, at the first settings."""
    at = [field.start for field in FIELDS]
    heads = "".join(f'<th scope="col">{FIELDS[4].shown(place)} users</th>' for place in _USERS)
    rows = []
    for statistic, trust, target in product(*(range(len(FIELDS[place].values)) for place in (0, 1, 3))):
        cells = [grid.at((statistic, trust, at[2], target, users, *at[5:])) for users in _USERS]
        if any(cells):
            said = ", ".join(FIELDS[field].shown(place) for field, place in ((0, statistic), (3, target), (1, trust)))
            rows.append(f'<tr><th scope="row">{said} trusted</th>{"".join(map(_best, cells))}</tr>')
    protected, periods, epsilon = (FIELDS[place].shown(at[place]) for place in (2, 5, 6))
    return (
        '<details class="proof-fold"><summary>Every question, at three numbers of users</summary>'
        f'<table class="table best"><caption>The best method at epsilon {epsilon} for {protected}, over {periods} periods: '
        "its standard error, or from which share of the users it finds</caption>"
        f'<thead><tr><th scope="col">question</th>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></details>'
    )


def _best(told: list[tuple[str, str, str]]) -> str:
    if not told:
        return "<td>none</td>"
    method, error, found = told[0]
    return f"<td><strong>{readable(f'from {found}' if found else _error(error))}</strong> {escape(method)}</td>"
