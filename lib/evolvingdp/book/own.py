"""A notebook on the reader's own data: `evolvingdp run heavy_hitters/treehist -p data words.csv --out mine`.

A notebook that takes `data` has a cell that is tagged `own-data` and shows `own(module, params, seed)`; its module has
`of_own(params, seed)`, which returns a `Release`. With a file, nothing else of the notebook is run; without one, that cell
is left out. What the file holds is shown as labels.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.book.labels import Label
from evolvingdp.book.page import Page
from evolvingdp.book.result import Result, Scalar
from evolvingdp.book.style import PALETTE, TRUTH, canvas

STUDY = "Seeded floating-point noise is for study, and for no release"
_SHOWN = 30  # rows of a table, or words of a figure
_MARKS = 12  # names along an axis
_LONG, _SHORT = 20, 10  # letters of a name beside an axis, and along it


@dataclass(frozen=True)
class Release:
    """What a method says of a file, and with which guarantee.

    `estimates` has a column `by` (a word, a period, a step), `estimate`, and `low` and `high`, which 95 % of the answers
    keep to; or, of the kind "events", columns `by` and `unit` (a group, a step), and `reported`, 1 or 0. A column `truth`,
    and what is not reported, is what the file says, and no part of the release.
    """

    file: str
    by: str
    unit: str  # of an estimate
    method: str
    guarantee: str
    estimates: pd.DataFrame
    kind: str = "largest"  # or "series", rows in order, or "events"

    @property
    def private(self) -> pd.DataFrame:
        """What may be published."""
        told = self.estimates
        if "reported" in told:
            told = told[told.reported == 1].drop(columns="reported")
        return told.drop(columns="truth")

    @property
    def said(self) -> str:
        what = f"each {self.by} that is reported, by {self.unit}" if self.kind == "events" else f"{self.unit} by {self.by}"
        return what + (f" (the first {_SHOWN})" if self.kind == "largest" and len(self.estimates) > _SHOWN else "")

    @property
    def line(self) -> str:
        return f"Released: {self.said}, {len(self.private):,} rows, by {self.method}, under {self.guarantee}. {STUDY}."


def checked(params: Any, read: Callable[..., Any], *more: Any) -> dict[str, Any]:
    """The file of `params` by its full name, for `check`: the notebook runs in another folder.  Raises ValueError, of one
    line, for a file that `read` refuses."""
    path = os.path.abspath(os.path.expanduser(params.data))
    try:
        read(path, *more)
    except ValueError as error:
        raise ValueError(f"data {error}") from None
    return {"data": path}


def own(module: ModuleType, params: Any, seed: int) -> None:
    """The page of the reader's data: a figure, a table, files, and what was released; nothing where there are none."""
    if not params.data:
        return
    made: Release = module.of_own(params, seed)
    notebook = module.__name__.removeprefix("evolvingdp.notebooks.").replace(".", "/")
    values: dict[str, Scalar] = {"released": made.line, "rows": len(made.private), "file": made.file}
    page, file = Page(Result(notebook, params, seed, made.estimates, [], values)), Label(made.file)
    figure = _DRAWN[made.kind](made)
    beside = ", beside what the file says" if "truth" in made.estimates else ""
    page.figure(
        f"own-{notebook.split('/')[-1].replace('_', '-')}", figure, made.estimates,
        title=f"{len(made.private):,} rows released by {made.method}",
        caption=f"“{file.markdown}”: {made.said}, by {made.method}{beside}. Guarantee: {made.guarantee}.",
        alt=f"{file.plain}: {made.said}, {len(made.private):,} rows{beside}. {_ends(made)}",
    )  # fmt: skip
    if len(made.estimates):
        page.table(_labelled(made.estimates.head(_SHOWN), (made.by, made.unit)))
    release(page, made)
    page.close()


def release(page: Page, made: Release) -> None:
    """Write what may be published as estimates.csv, and say what it is."""
    if page.folder is not None:
        made.private.to_csv(page.folder / "estimates.csv", index=False, lineterminator="\n")
    page.say(made.line)


def _labelled(table: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """Names as labels, numbers in short."""
    return pd.DataFrame(
        {column: [Label(str(cell)) if column in names else _short(cell) for cell in table[column]] for column in table}
    )


def _short(value: float) -> str:
    if value != value:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _ends(made: Release) -> str:
    """The first and the last row, in words."""
    if made.private.empty:
        return "Nothing is released."
    rows = [made.private.iloc[place] for place in (0, -1)]
    told = [f"{Label(str(row[made.by])).plain}: {_short(row.get('estimate', 1))}" for row in rows]
    return f"First {told[0]}; last {told[1]}."


def _largest(made: Release) -> Any:
    """Dots with intervals, a row each, the largest first."""
    table = made.estimates.head(_SHOWN)
    places = np.arange(len(table))
    figure, ax = canvas(8.0, 1.4 + 0.22 * max(6, len(table)))
    ax.hlines(places, table.low, table.high, color=PALETTE[0], linewidth=1.2)
    ax.plot(table.estimate, places, "o", color=PALETTE[0], label="released")
    ax.plot(table.truth, places, "d", color=TRUTH, markerfacecolor="none", label="the file")
    ax.set_yticks(places, [_tick(name, _LONG) for name in table[made.by]])
    ax.invert_yaxis()
    ax.set(xlabel=made.unit)
    ax.legend(fontsize="small")
    return figure


def _series(made: Release) -> Any:
    """A line with its band, over rows in order."""
    table, places = made.estimates, np.arange(len(made.estimates))
    figure, ax = canvas(8.0, 4.2)
    ax.plot(places, table.truth, color=TRUTH, linewidth=2.4, alpha=0.6, label="the file")
    ax.plot(places, table.estimate, color=PALETTE[0], linewidth=1.3, label="released")
    ax.fill_between(places, table.low, table.high, color=PALETTE[0], alpha=0.2, linewidth=0)
    _named(ax, [str(name) for name in table[made.by]])
    ax.set(xlabel=made.by, ylabel=made.unit)
    ax.legend(fontsize="small")
    return figure


def _events(made: Release) -> Any:
    """A row of dots for each name: filled where it is reported, open where the file has enough users of it."""
    table = made.estimates
    names = table.groupby(made.by, sort=False).reported.sum().sort_values(ascending=False, kind="stable").index[:_SHOWN]
    table = table[table[made.by].isin(names)]
    steps, groups = list(dict.fromkeys(made.estimates[made.unit])), {name: place for place, name in enumerate(names)}
    figure, ax = canvas(8.0, 1.6 + 0.22 * max(6, len(groups)))
    for shown, look in ((table[table.reported == 1], PALETTE[0]), (table, "none")):
        at = [steps.index(step) for step in shown[made.unit]], [groups[name] for name in shown[made.by]]
        label, ink = ("enough users in the file", TRUTH) if look == "none" else ("reported", look)
        ax.plot(*at, "o", color=ink, markerfacecolor=look, markersize=6, label=label)
    ax.set_yticks(range(len(groups)), [_tick(name, _LONG) for name in groups])
    ax.invert_yaxis()
    _named(ax, [str(step) for step in steps])
    ax.set(xlabel=made.unit)
    ax.legend(fontsize="small")
    return figure


def _tick(name: object, most: int) -> str:
    """A name as a label at an axis, which leaves the drawing its room also in a column for print."""
    plain = Label(str(name)).plain
    return Label(plain if len(plain) <= most else f"{plain[: most - 1]}…").mathtext


def _named(ax: Any, names: list[str]) -> None:
    """Some of the names along the axis."""
    every = max(1, -(-len(names) // _MARKS))
    shown = [_tick(name, _SHORT) for name in names[::every]]
    long = max(map(len, shown), default=0) > 6
    ax.set_xticks(range(0, len(names), every), shown, rotation=45 if long else 0, ha="right" if long else "center")


_DRAWN: dict[str, Callable[[Release], Any]] = {"largest": _largest, "series": _series, "events": _events}
