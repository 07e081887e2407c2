"""A figure again at the width of a printed column: its cells draw once more, on such a canvas, in smaller letters.

A figure on a page of the book is 7 to 10 inches wide; shrunk to a column its letters would be 3 points high.  So the cells
from the one that asks for the canvas to the one that publishes it are executed again, in a copy of the notebook's names and
with `style.COLUMN` set: `canvas` then stacks its panels, and names beside lines become a legend below all of them.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import matplotlib as mpl
from IPython.core.getipython import get_ipython
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.text import Text

from evolvingdp.book import style

WIDEST = 28  # letters in a line of a label
LONG = 19  # letters of a name that leave no room for another one beside it


class DrawnAgainError(Exception):
    """Carries the figure that the cells would publish, and ends them."""


def column(figure: Canvas, figure_id: str) -> Canvas | None:
    """`figure`, drawn again by its cells as wide as a column; None outside of a notebook, or where no cell asked for it."""
    shell, first = get_ipython(), getattr(figure, "cell", None)
    if shell is None or first is None:
        return None
    cells = shell.user_ns["In"][first:]
    with mpl.rc_context(style.PRINT):
        token = style.COLUMN.set(figure_id)
        try:
            exec("\n".join(cells), dict(shell.user_ns))
        except DrawnAgainError as drawn:
            return _fitted(drawn.args[0])
        finally:
            style.COLUMN.reset(token)
    return None


def _fitted(figure: Canvas) -> Canvas:
    """Panels that lost their neighbour say what they show; legends stand below all of them and hide no curve."""
    panels = [ax for ax in figure.axes if ax.axison]
    shown: dict[str, Any] = {}
    legends: list[Any] = [*filter(None, (ax.get_legend() for ax in figure.axes)), *figure.legends]
    for legend in legends:
        shown |= dict(zip((text.get_text() for text in legend.texts), legend.legend_handles, strict=True))
        legend.remove()
    shown = _together(shown | getattr(figure, "named", {}))
    wide, high = figure.get_size_inches()
    if shown:
        columns = 1 if max(map(len, shown)) > LONG else 2
        legend = figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=columns)
        for line in legend.findobj(Line2D):  # points of a crowd are small, and here nobody sees their colour
            line.set_markersize(max(4, line.get_markersize()))
        high += 0.15 * -(-len(shown) // columns)
    for text in figure.findobj(Text):
        text.set_fontsize(min(max(text.get_fontsize(), style.LETTERS[0]), style.LETTERS[1]))
    for ax in panels:
        ax.set_ylabel(ax.get_ylabel() or panels[0].get_ylabel())
        for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
            if "$" not in label.get_text() and "\n" not in label.get_text():
                label.set_text(textwrap.fill(label.get_text(), WIDEST))
        ax.tick_params(which="both", labelsize=style.LETTERS[0], pad=2)
        if ax.xaxis.get_tick_params().get("labelrotation", 0) == 0 and _touch(ax, wide):
            ax.tick_params(axis="x", which="both", labelrotation=45)
    figure.set_size_inches(wide, high)
    return figure


def _together(shown: dict[str, Any]) -> dict[str, Any]:
    """The legend's handles, by names: lines of several panels that look alike have one entry, with all of their names."""
    alike: dict[Any, list[str]] = {}
    for name, handle in shown.items():
        look = (str(handle.get_color()), handle.get_linestyle(), handle.get_marker()) if isinstance(handle, Line2D) else name
        alike.setdefault(look, []).append(name)
    return {textwrap.fill("; ".join(names), WIDEST + LONG): shown[names[0]] for names in alike.values()}


def _touch(ax: Any, wide: float) -> bool:
    """Whether the names of the ticks of x are longer together than a column, at half their height a letter."""
    names = (re.sub(r"\\\w+|[${}^_]", "", label.get_text()) for label in ax.get_xticklabels())
    letters = sum(len(name) + 1 for name in names if name)
    return letters * style.LETTERS[0] * 0.5 / 72 > wide - 0.6
