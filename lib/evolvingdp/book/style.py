"""One look for all figures: readable at phone width, in print, and to people who do not tell red from green."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import matplotlib as mpl
import numpy as np
from IPython.core.getipython import get_ipython
from matplotlib.colors import same_color
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from scipy import special

from evolvingdp.book.labels import families

PALETTE = (  # 4 : 1 or more on white, so that names may have a line's colour; of like lightness, so that markers differ, too
    "#0173b2", "#b26b00", "#028a63", "#c8381e", "#b04ca0", "#5f4bb6", "#d1407f", "#6f6f6f", "#678300", "#1f86b0",
)  # fmt: skip
INKS = ("#0b5394", "#a8430a", "#6a1b9a", "#1b6e35", "#b0125b", "#555555")  # of lines: told apart, 4.5 : 1 on white
TRUTH = "black"
THEORY: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1.2}
MARKERS = "osD^vPX*"
_GLYPHS = dict(zip(MARKERS, map("{} ".format, "●■◆▲▼✚✖★"), strict=True))  # their letters

_SETTINGS: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "font.family": families(),
    "font.size": 11,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "legend.fontsize": "small",
    "pdf.fonttype": 42,  # fonts are embedded as text
    "svg.hashsalt": "evolving-privacy",  # the same figure gives the same file
}


LETTERS = (8.0, 8.5)  # points, of letters in print
PRINT: Any = _SETTINGS | {"font.size": 7.5, "lines.linewidth": 1.1, "lines.markersize": 4, "axes.linewidth": 0.6}
COLUMN: ContextVar[str] = ContextVar("COLUMN", default="")  # the figure that is drawn for a printed column just now
INCHES = 3.3  # of a column
_AWAY = 0.025  # of a panel's height: a name so far from its line's end is led to it


def canvas(width: float = 7.0, height: float = 4.0, columns: int = 1, rows: int = 1, **options: Any) -> tuple[Canvas, Any]:
    """A figure of `width` x `height` inches with `rows` x `columns` panels, outside pyplot's registry, and its axes.

    For a printed column the panels stand below each other.
    """
    if not COLUMN.get():
        figure = Canvas(figsize=(width, height))
        vars(figure)["cell"] = len(get_ipython().user_ns["In"]) - 1 if get_ipython() else None  # see printed.py
        return figure, figure.subplots(rows, columns, **options)
    high = max(0.6 * height / rows, 1.5)
    for name in ("width_ratios", *(("height_ratios", "sharex", "sharey") if columns > 1 else ())):
        if options.get(name) is not True:  # rows or columns that share a scale are none any more
            options.pop(name, None)
    figure = Canvas(figsize=(INCHES, high * rows * columns))
    axes = figure.subplots(rows * columns, 1, **options | {"squeeze": False}).reshape(rows, columns)
    if columns > 1:  # what stood beside each other has numbers of its own
        for ax in axes.flat:
            ax.tick_params(axis="x", labelbottom=True)
    return figure, axes if not options.get("squeeze", True) else axes.item() if axes.size == 1 else axes.squeeze()


house = mpl.rc_context(_SETTINGS)  # decorator: what is drawn or saved has the house style, and nothing outside changes


def use() -> None:
    """From here on this process draws in the house style: a notebook's first line of drawing."""
    mpl.rcParams.update(_SETTINGS)


def looks(names: Iterable[Any], colours: Iterable[str] = PALETTE, **more: Any) -> dict[Any, dict[str, Any]]:
    """A look for each of `names`, told apart by its colour and by its marker."""
    each = zip(names, itertools.cycle(colours), itertools.cycle(MARKERS), strict=False)
    return {name: {"color": colour, "marker": marker, "markersize": 4} | more for name, colour, marker in each}


def t95(sample: Any) -> tuple[float, float]:
    """Student's 95% interval of the mean of positive measurements, not below 0: what `lines` shades."""
    half = special.stdtrit(len(sample) - 1, 0.975) * np.std(sample, ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else 0
    return max(np.mean(sample) - half, 0.0), np.mean(sample) + half


def lines(
    rows: Any, x: str, y: str, ax: Any, *, looks: dict[str, dict[str, Any]], by: str = "method", band: Any = t95, **axes: Any
) -> None:
    """The mean of `y` over the runs in the tidy table `rows` against `x`, a line for each name of `looks` in the column
    `by`, with a band; `axes` is set afterwards: ax.set(xscale="log", ...).

    On an axis that is logarithmic already seaborn would average logarithms and say nothing: that is refused.
    """
    import seaborn  # over a second: for those who draw with it

    if any(axis.get_scale() != "linear" for axis in (ax.xaxis, ax.yaxis)):
        raise ValueError("lines must be drawn on linear axes, before any scale is set: pass xscale= and yscale= to it")
    for name, look in looks.items():
        own, options = rows[rows[by] == name], {"legend": False, "err_kws": {"lw": 0}, "mec": look["color"]}
        seaborn.lineplot(own, x=x, y=y, ax=ax, label=name, errorbar=band, **options, **look)
    ax.set(**axes)


def headline(figure: Canvas, message: str) -> None:
    """`message`, the one thing that the figure says, above all its panels, in lines that a printed column holds."""
    lines = math.ceil(len(message) / 46)
    broken = textwrap.wrap(message, math.ceil(len(message) / lines) + 6, break_long_words=False)
    figure.suptitle("\n".join(broken), fontsize="medium")


def names_beside(ax: Any, ends: dict[str, float], colours: Any, size: str = "small", *, beyond: bool = False) -> None:
    """The names of lines beside their right ends, in their colours, pushed apart, with a thin line to an end that is
    elsewhere; `beyond` the panel, where room is. A line whose colour another one has, too, is named with its marker."""
    named = {line.get_label(): line for line in ax.lines}
    others = [line for line in ax.lines if line.get_label() not in ends]  # of another name: known by colour and end
    for name in ends:
        alike = [line for line in others if same_color(line.get_color(), colours[name])]
        near = min(alike, key=lambda line: abs(line.get_ydata()[-1] - ends[name]), default=None)
        named.setdefault(name, near or Line2D([], [], color=colours[name]))
    if COLUMN.get():
        order = sorted(ends, key=lambda name: -ends[name])
        ax.figure.named = getattr(ax.figure, "named", {}) | {name: named[name] for name in order}
        return
    inks = [colours[name] for name in ends]
    marks = {name: _GLYPHS.get(named[name].get_marker(), "") for name in ends if inks.count(colours[name]) > 1}
    scale = ax.yaxis.get_transform().transform
    low, high = scale(np.array(ax.get_ylim()))
    order = sorted(ends, key=lambda name: ends[name])
    gap = {"small": 0.085, "x-small": 0.07}[size]
    more = np.array([0.035 * name.count("\n") for name in order])  # half of what its further lines take
    apart = np.concatenate([[0.0], np.cumsum(gap + more[1:] + more[:-1])])
    heights = np.array([float(scale(ends[name]) - low) / (high - low) for name in order])
    wanted = np.maximum(heights, 0.02 + more)
    highest = 0.97 - more[-1:] - apart[-1:]
    spots = apart + np.minimum(np.maximum.accumulate(wanted - apart), highest)
    for name, height, spot in zip(order, heights, spots, strict=True):
        place: Any = {"textcoords": "axes fraction", "va": "center", "annotation_clip": False}
        drawn = named[name].get_transform() - ax.transData  # a line across the panel has no data
        end = drawn.transform(named[name].get_xydata()[-1:])[:, 0]
        if away := 0 <= height <= 1 and abs(spot - height) > _AWAY and len(end):
            thin = {"arrowstyle": "-", "color": colours[name], "lw": 0.6, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)}
            place |= {"xy": (end[0], ends[name]), "arrowprops": thin}
        spot = (1.06 if away else 1.03, spot)
        text = ax.annotate(
            marks.get(name, "") + name, **{"xy": (0, 0)} | place, xytext=spot, color=colours[name], fontsize=size
        )
        text.set_in_layout(not beyond)
