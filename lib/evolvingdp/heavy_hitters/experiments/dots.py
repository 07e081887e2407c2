"""Precision, recall and F1 of several protocols as dots, one panel a data set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from evolvingdp.experiment.describe import short
from evolvingdp.experiment.style import MARKERS, PALETTE

SCORES = ("precision", "recall", "f1")


def dots(axes: Any, rungs: pd.DataFrame, datasets: list[str], protocols: list[str]) -> dict[str, int]:
    """Draw `rungs` (dataset, variant, runs, a score and its _sd each) with 95% intervals; the row of each protocol."""
    place = {name: position for position, name in enumerate(protocols)}
    for ax, dataset in zip(axes, datasets, strict=True):
        part = rungs[rungs.dataset == dataset]
        y = part.variant.map(place)
        for number, (score, offset) in enumerate(zip(SCORES, (-0.22, 0.0, 0.22), strict=True)):
            half = stats.t.ppf(0.975, part.runs - 1) * part[f"{score}_sd"] / np.sqrt(part.runs)
            label = "F1" if score == "f1" else score
            look = {"fmt": MARKERS[number], "color": PALETTE[number], "capsize": 2, "label": label}
            ax.errorbar(part[score], y + offset, xerr=half, **look)
        ax.axvline(1.0, color="grey", linewidth=0.8)
        ax.set(xlim=(0, 1.04), title=dataset, xlabel="score")
    axes[0].set_yticks(list(place.values()), list(place))
    axes[0].set_ylim(len(place) - 0.5, -0.7)
    return place


def told(rungs: pd.DataFrame, dataset: str, protocols: list[str]) -> str:
    """The scores of some `protocols` on one data set, in words."""
    rows = rungs[rungs.dataset == dataset].set_index("variant").loc[protocols]
    each = (f"{name} has {short(row.precision)}, {short(row.recall)} and {short(row.f1)}" for name, row in rows.iterrows())
    return f"Precision, recall and F1 on {dataset} data: {'; '.join(each)}."
