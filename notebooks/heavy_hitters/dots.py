"""Scores of several protocols as dots, one panel a data set: F1 on an axis that is logarithmic in 1 - F1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from scipy import stats

from evolvingdp.book.style import INKS, t95
from evolvingdp.book.words import short

SCORES = ("precision", "recall", "f1")
LEAST = 0.002  # a list without a fault is drawn here


def share95(scores: Any) -> Any:
    """Student's 95% interval of the mean of scores, none of which is above 1."""
    return np.clip(t95(scores), 0.0, 1.0)


def dots(axes: Any, rungs: pd.DataFrame, datasets: list[str], protocols: list[str], ours: tuple[str, ...]) -> dict[str, int]:
    """Draw F1 of `rungs` (dataset, variant, runs, f1 and f1_sd) with 95% intervals, `ours` in colour, each with its number;
    returns the row of each protocol."""
    place = {name: position for position, name in enumerate(protocols)}
    for ax, dataset in zip(axes, datasets, strict=True):
        for _, row in rungs[rungs.dataset == dataset].iterrows():
            half = stats.t.ppf(0.975, row.runs - 1) * row.f1_sd / np.sqrt(row.runs)
            low, missed, high = np.clip(1 - row.f1 + np.array([-half, 0.0, half]), LEAST, 1.0)
            colour, y = INKS[0] if row.variant in ours else INKS[-1], place[row.variant]
            end = np.nanmin(
                [low, 1 - row.get("expected_f1", np.nan)]
            )  # beyond the mark of what is expected, if there is one
            ax.plot([low, high], [y, y], color=colour, linewidth=3, alpha=0.4)
            ax.plot(missed, y, "o", color=colour, markersize=7)
            ax.annotate(
                f"{row.f1:.3f}", (end, y), (6, 0), textcoords="offset points", va="center", fontsize="small", color=colour
            )
        ax.set(xscale="log", xlim=(1.2, 0.15 * LEAST), title=dataset.capitalize(), xlabel="F1 (better →)")
        ax.xaxis.set_major_locator(LogLocator(10, numticks=9))  # of a column, too
        ax.xaxis.set_major_formatter(FuncFormatter(lambda missed, _: f"{1 - missed:g}" if missed >= LEAST / 2 else ""))
        ax.xaxis.set_minor_formatter(NullFormatter())
    axes[0].set_yticks(list(place.values()), list(place))
    axes[0].set_ylim(len(place) - 0.5, -0.7)
    return place


def told(rungs: pd.DataFrame, dataset: str, protocols: list[str]) -> str:
    """The scores of some `protocols` on one data set, in words."""
    rows = rungs[rungs.dataset == dataset].set_index("variant").loc[protocols]
    each = (f"{name} has {short(row.precision)}, {short(row.recall)} and {short(row.f1)}" for name, row in rows.iterrows())
    return f"Precision, recall and F1 on {dataset} data: {'; '.join(each)}."
