"""The planner on a page: its output, computed when the book is built, and fields over a grid of questions.

    ```{plan} mean --users 500_000 --periods 365
    ```

    ```{plan-fields}
    ```

The fields choose a row of benchmarks/results/planner_grid.csv, which the same functions have computed; the page holds all
of it, and planner.js shows the row that is chosen.  Without scripts, and in print, there is a table of some rows.
"""

from __future__ import annotations

import csv
import html
import io
import json
import shlex
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from evolvingdp.planning.question import Question
from evolvingdp.publish.planned import plan

TABLE = Path("benchmarks", "results", "planner_grid.csv")
KINDS = {  # what is asked for: arguments of the command
    "a share or a mean, each period": "mean",
    "a mean of all so far": "mean --target cumulative",
    "frequencies of a list": "frequencies",
    "words without a list": "words",
    "what is hot": "hot",
}
GRID = {
    "what": tuple(KINDS),
    "trusted": ("nobody", "curator"),
    "users": ("10,000", "100,000", "1,000,000", "10,000,000"),
    "periods": ("12", "52", "365"),
    "epsilon": ("0.5", "1", "2", "4", "8"),
}
SHOWN = {"periods": "52", "epsilon": "1"}  # of the rows that are printed


def grid_command(what: str, trusted: str, users: str, periods: str, epsilon: str) -> str:
    """The arguments of the command that answers the same."""
    return f"{KINDS[what]} --trust {trusted} --users {users} --periods {periods} --epsilon {epsilon}"


def grid_question(*values: str) -> Question:
    """The question of a row."""
    context = plan.make_context("plan", shlex.split(grid_command(*values)))
    return Question(**{name: value for name, value in context.params.items() if name not in ("machine", "error")})


def fields(rows: Iterable[dict[str, str]]) -> str:
    """The fields, the whole grid for planner.js, and a table of some rows, as HTML."""
    rows = list(rows)
    methods = [column for column in rows[0] if column.startswith("method")]
    answers = {"/".join(row[name] for name in GRID): [row[column] for column in methods if row[column]] for row in rows}
    commands = {what: f"evolvingdp plan {arguments}" for what, arguments in KINDS.items()}
    data = json.dumps({"answers": answers, "commands": commands}).replace("<", "\\u003c")
    chosen = {"users": "100,000", **SHOWN}
    made = []
    for name, values in GRID.items():
        options = "".join(
            f"<option{' selected' if chosen.get(name) == value else ''}>{html.escape(value)}</option>" for value in values
        )
        made.append(f'<label>{name} <select name="{name}">{options}</select></label>')
    some = [row for row in rows if all(row[name] == value for name, value in SHOWN.items())]
    head = "".join(f"<th>{text}</th>" for text in ("what", "trusted", "users", "best", "error, or share from which found"))
    body = "".join(_printed(row) for row in some)
    return (
        f'<form class="planner" aria-label="Which method" hidden>{"".join(made)}'
        f'<output aria-live="polite"></output><script type="application/json">{data}</script></form>'
        f'<table class="table"><caption>For {SHOWN["periods"]} periods and epsilon = {SHOWN["epsilon"]}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _printed(row: dict[str, str]) -> str:
    method, _, error = row["method 1"].partition("|")
    cells = (row["what"], row["trusted"], row["users"], method or "none serves", error)
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


class PlanFields(SphinxDirective):
    """The fields; a grid that is not there is an error."""

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir) / TABLE
        self.env.note_dependency(str(path))
        try:
            with path.open(newline="") as table:
                return [nodes.raw("", fields(csv.DictReader(table)), format="html")]
        except OSError as problem:
            raise self.error(f"plan-fields: {problem}") from problem


class Plan(SphinxDirective):
    """What `evolvingdp plan` prints; a question that it refuses is an error."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # the library is none of the page's files
        typed = " ".join(self.arguments[0].split())
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                plan.main(shlex.split(typed), prog_name="evolvingdp plan", standalone_mode=False)
        except click.ClickException as error:
            raise self.error(f"plan {typed}: {error.format_message()}") from error
        text = f"$ evolvingdp plan {typed}\n\n{printed.getvalue().rstrip()}"
        return [nodes.literal_block(text, text, language="text", classes=["planned"])]
