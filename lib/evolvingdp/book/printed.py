"""A figure again at the width of a printed column or page: letters of 7 to 9 points, narrow panels below each other.

A figure on a page of the book is 7 to 10 inches wide; shrunk to a column its letters would be 4 points high.  So a copy is
laid out again: sizes are set for print, narrow panels move below each other, and legends that would cover curves or that
are too wide move above their panel or take more rows.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import blended_transform_factory

from evolvingdp.book.style import BESIDE, house


@dataclass(frozen=True)
class Width:
    """A printed width: inches, the range of letters' sizes in points, and when panels and legends move."""

    inches: float
    smallest: float
    largest: float
    narrowest: float  # inches, of panels that each have their own scale of y
    narrowest_shared: float  # inches, of panels that share it


WIDTHS = {
    "column": Width(3.3, 7.0, 8.0, 2.0, 1.4),  # one of two columns
    "text": Width(7.0, 7.0, 9.0, 2.2, 1.35),  # both columns
}
_BOOK = 11.0  # points, the size of letters of the book's figures
_MANY, _LONG, _TINY = 40, 50, 6.0  # so many names of ticks, or letters of one, make all small: data need room
_THIN = 0.75  # lines and markers, against the book's
_POINTS = 72.0  # an inch, as a PDF is drawn
_ROW = 1.25  # points from a tick's name to the next, per point of its letters
_BESIDE = 0.3  # of a panel's width, with its labels, that names beside its lines may take
_FLAT = 1.0  # inches, the lowest panel without its labels
_LABELS = 0.55  # inches that ticks and labels take of a panel, about


@house
def printed(figure: Canvas, width: Width) -> Canvas:
    """A copy of `figure`, laid out, that is `width.inches` wide and as high as it needs; `figure` stays as it is."""
    copy: Canvas = pickle.loads(pickle.dumps(figure))
    FigureCanvasPdf(copy)  # letters are as wide as they will be in the file
    copy.dpi = _POINTS
    before = _grid(figure).ncols
    _resize_letters(copy, width)
    panels, columns = _arrange(copy, width)
    heights = _heights(panels, figure, columns, width)
    _grid(copy).set_height_ratios(heights)
    copy.set_size_inches(width.inches, sum(heights))
    high = sum(_spread(legend, copy, width) for legend in list(copy.legends))
    engine, inches = copy.get_layout_engine(), width.inches / columns
    legends = [ax for ax in panels if _name_above(ax, inches) or ax.get_legend()]
    while True:
        for ax in legends:
            if not ax.axison:
                ax.get_legend().set_in_layout(False)
            else:  # in print a panel is too small for data and legend
                high += _lift(ax.get_legend(), ax, columns, width) / (columns if before == columns else 1)
        copy.set_size_inches(width.inches, sum(heights) + high)
        if engine is not None:
            engine.execute(copy)
        legends = [ax for ax in panels if _name_above(ax, inches)]  # as they are laid out, their names touch each other
        if not legends:
            break
    flat = [_FLAT - ax.get_window_extent().height / copy.dpi for ax in panels]
    more = sum(max(0.0, *flat[row : row + columns]) for row in range(0, len(flat), columns))
    moved = [fit(ax) for fit in (_fit_labels, _keep_inside) for ax in copy.axes]
    copy.set_size_inches(width.inches, sum(heights) + high + more)
    if engine is not None:
        if more or any(moved):
            engine.execute(copy)
        copy.set_layout_engine("none")
    return copy


def _resize_letters(copy: Any, width: Width) -> None:
    def size(points: float) -> float:
        return min(max(points * width.largest / _BOOK, width.smallest), width.largest)

    for text in copy.findobj(Text):
        text.set_fontsize(size(text.get_fontsize()))
    for ax in copy.axes:
        ax.tick_params(which="both", labelsize=width.smallest, pad=2)
        ax.tick_params(length=2.5)
        if _crowded(ax):
            ax.tick_params(axis="y", labelsize=_TINY)
        for title in (ax.title, ax.xaxis.label, ax.yaxis.label):
            title.set_fontsize(width.largest)
        for line in ax.lines:
            line.set_linewidth(line.get_linewidth() * _THIN)
            line.set_markersize(line.get_markersize() * _THIN)
        for marks in ax.collections:
            marks.set_linewidth([each * _THIN for each in marks.get_linewidth()])
            if isinstance(marks, PathCollection):
                marks.set_sizes(marks.get_sizes() * _THIN**2)


def _grid(figure: Any) -> Any:
    """The grid that the panels stand in."""
    return next(ax.get_gridspec() for ax in figure.axes if ax.get_subplotspec() is not None)


def _names(ax: Any) -> int:
    """How many names its y-axis has; 0 where the ticks are numbers that can be dropped."""
    return len(ax.get_yticks()) if isinstance(ax.yaxis.get_major_locator(), FixedLocator) else 0


def _crowded(ax: Any) -> bool:
    """Whether the names of its y-axis are many, or one is long."""
    longest = max((len(label.get_text()) for label in ax.get_yticklabels()), default=0)
    return _names(ax) > _MANY or (_names(ax) > 0 and longest > _LONG)


def _arrange(copy: Any, width: Width) -> tuple[list[Any], int]:
    """Put the panels (not the colour bars) into as many columns as are wide enough; returns them and their columns."""
    before = _grid(copy).ncols
    panels = [ax for ax in copy.axes if not hasattr(ax, "_colorbar")]
    drawn = [ax for ax in panels if ax.axison]
    first, legends = drawn[0], [ax for ax in drawn if ax.get_legend() is not None]
    shared = all(ax.get_shared_y_axes().joined(first, ax) for ax in drawn) and len(legends) < 2 and not _names(first)
    columns = max(1, min(before, int(width.inches / (width.narrowest_shared if shared else width.narrowest))))
    if columns == before:
        return panels, columns
    if len(drawn) == columns + 1:
        columns = 1  # no panel alone below the others
    for ax in set(panels) - set(drawn):  # a panel that only held the legend
        ax.get_legend().axes = None
        copy.legends.append(ax.get_legend())
        ax.remove()
    grid = GridSpec(math.ceil(len(drawn) / columns), columns, figure=copy)
    x_labels, y_label = {ax.get_xlabel() for ax in drawn} - {""}, first.get_ylabel()
    for number, ax in enumerate(drawn):
        ax.set_subplotspec(grid[divmod(number, columns)])
        left, lowest = number % columns == 0, number + columns >= len(drawn)
        if ax.get_shared_y_axes().joined(first, ax) and len(drawn) > 1:
            ax.tick_params(which="both", labelleft=left)
            ax.set_ylabel(y_label if left else "")
            ax.yaxis.label.set_visible(left)
        if len(x_labels) == 1:
            ax.set_xlabel(*x_labels if lowest else [""])
            ax.xaxis.label.set_visible(lowest)
            ax.tick_params(which="both", labelbottom=lowest or not ax.get_shared_x_axes().joined(first, drawn[-1]))
    return drawn, columns


def _heights(panels: list[Any], figure: Canvas, columns: int, width: Width) -> list[float]:
    """Inches for each row of panels with their labels: in the book's proportions, not flat, and room for names of ticks."""
    wide, (book_wide, book_high) = width.inches / columns, figure.get_size_inches()
    grid = _grid(figure)
    proportion = (book_high / grid.nrows) / (book_wide / grid.ncols)
    high = max(wide * min(proportion, 0.62 if columns == 1 else 1.0), _FLAT + _LABELS)
    letters = [_TINY if _crowded(ax) else width.smallest for ax in panels]
    names = [_names(ax) * size * _ROW / 72 + _LABELS for ax, size in zip(panels, letters, strict=True)]
    heights = [max(high, *names[row : row + columns]) for row in range(0, len(panels), columns)]
    if len(heights) == grid.nrows:  # rows keep their proportions
        parts = grid.get_height_ratios()
        heights = [float(max(sum(heights) * part / sum(parts), _FLAT)) for part in parts]
    return heights


def _name_above(ax: Any, inches: float) -> bool:
    """Make a legend of names beside lines that touch each other, or take much of the panel's `inches`; whether it did."""
    names = [text for text in ax.texts if text.get_label() == BESIDE and text.get_in_layout()]
    boxes = sorted((text.get_window_extent() for text in names), key=lambda box: float(box.y0))
    touching = any(upper.y0 < lower.y1 for lower, upper in pairwise(boxes))
    if not touching and all(box.width < _BESIDE * inches * ax.figure.dpi for box in boxes):
        return False
    shown = {}
    for text in reversed(names):  # from the top
        unnamed = [line for line in ax.lines if line.get_color() == text.get_color() and line.get_label().startswith("_")]
        named = [line for line in ax.lines if line.get_label() == text.get_text()]
        shown[text.get_text()] = named + unnamed
    if not all(shown.values()):  # a name that is of no line stays where its author put it, with the others
        return False
    ax.legend([first for first, *_ in shown.values()], shown.keys())
    for text in names:
        text.remove()
    return True


def _spread(legend: Any, copy: Any, width: Width) -> float:
    """Make the figure's own `legend` again below or above all panels; returns its inches of height."""
    place = (legend._outside_loc or "lower").split()[0]
    copy.legends.remove(legend)
    return _widest(legend, copy, width.inches, width, lambda look: copy.legend(loc=f"outside {place} center", **look))


def _lift(legend: Any, ax: Any, columns: int, width: Width) -> float:
    """Put `legend` above its panel, and the panel's title above it; returns its inches of height."""
    over = ax.figure.transFigure if columns == 1 else ax.transAxes
    anchor = {"bbox_to_anchor": (0.5, 1.0), "bbox_transform": blended_transform_factory(over, ax.transAxes)}
    legend.remove()
    high = _widest(
        legend,
        ax.figure,
        width.inches / columns,
        width,
        lambda look: ax.legend(loc="lower center", borderaxespad=0.1, **anchor, **look),
    )
    ax.get_legend().set_in_layout(False)  # or it would make the panel narrow; an empty title keeps its place
    has_title = bool(ax.get_title())
    size = ax.title.get_fontsize() if has_title else 1.0
    ax.set_title(ax.get_title() or " ", pad=high * 72 + (2 if has_title else 0), fontsize=size)
    return high


def _widest(legend: Any, copy: Any, inches: float, width: Width, make: Callable[[dict[str, Any]], Any]) -> float:
    """`make` what `legend` shows with as many columns as fit into `inches`; returns the height in inches."""
    labels = [text.get_text() for text in legend.texts]
    handles = dict(zip(labels, legend.legend_handles, strict=True))
    for ax in copy.axes:  # what was drawn rather than the old legend's small copy of it
        drawn, names = ax.get_legend_handles_labels()
        handles |= {name: handle for name, handle in zip(names, drawn, strict=True) if name in handles}
    look: dict[str, Any] = {
        "handles": [handles[label] for label in labels],
        "labels": labels,
        "title": legend.get_title().get_text() or None,
        "fontsize": width.smallest,
        "title_fontsize": width.smallest,
        "handlelength": 1.6,
        "columnspacing": 1.0,
        "labelspacing": 0.3,
        "borderpad": 0.2,
    }
    rows = 1
    while True:
        new = make(look | {"ncols": math.ceil(len(labels) / rows)})
        box = new.get_window_extent()
        if box.width <= inches * copy.dpi - 4 or rows == len(labels):
            return float(box.height / copy.dpi)
        new.remove()
        rows += 1


def _fit_labels(ax: Any) -> bool:
    """Break labels that are longer than their axis; turn the names of ticks that would touch; whether any was or did."""
    panel, changed = ax.get_window_extent(), False
    for text, room, side in (
        (ax.xaxis.label, panel.width, "width"),
        (ax.yaxis.label, panel.height, "height"),
        (ax.title, panel.width, "width"),
    ):
        length = getattr(text.get_window_extent(), side)
        if text.get_text().strip() and length > room * 1.05:
            text.set_text(broken(text.get_text(), math.ceil(length / room)))
            changed = True
    labels = [label for label in ax.get_xticklabels(which="both") if label.get_text() and label.get_rotation() == 0]
    boxes = [label.get_window_extent() for label in labels if label.get_visible()]
    boxes = [box for box in boxes if panel.x0 - 1 <= (box.x0 + box.x1) / 2 <= panel.x1 + 1]
    if any(right.x0 < left.x1 + 1 for left, right in pairwise(sorted(boxes, key=lambda box: float(box.x0)))):
        ax.tick_params(axis="x", which="both", labelrotation=90 if len(boxes) > 12 else 45)
        changed = True
    return changed


def _keep_inside(ax: Any) -> bool:
    """Move a legend above its panel that would cross the edge of the page to the panel's end; whether one did."""
    legend = ax.get_legend()
    if legend is None or not ax.axison:
        return False
    box, page = legend.get_window_extent(), ax.figure.bbox
    crosses = bool(box.x0 < page.x0 or box.x1 > page.x1)
    if crosses:
        side = "right" if box.x1 > page.x1 else "left"
        legend.set_loc(f"lower {side}")
        legend.set_bbox_to_anchor((1.0 if side == "right" else 0.0, 1.0), ax.transAxes)
    return crosses


def broken(text: str, lines: int) -> str:
    """`text` in up to `lines` lines of about the same length, broken at spaces outside of formulas."""
    words = [word for word in re.split(r"\s+(?=(?:[^$]*\$[^$]*\$)*[^$]*$)", text) if word]
    goal = sum(len(word) + 1 for word in words) / lines
    made: list[str] = []
    line = ""
    for word in words:
        if line and len(line) + len(word) / 2 > goal and len(made) < lines - 1:
            made.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*made, line])
