"""Root mean square errors over runs with bands, slopes, and how much is projected, for the three notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import chi2

from evolvingdp.continual_mean import offline
from evolvingdp.continual_mean.user_mean import UserMean


def root_mean_square(squares: pd.Series, by: list[str]) -> pd.DataFrame:
    """Per group of the index levels `by`: root of the mean of `squares` (mean square errors of runs), and a 95% band.

    The band takes each run for one normal error: chi-square with as many degrees of freedom as runs.  Errors averaged over
    many steps vary less, so it is wide rather than narrow, and it is never empty or below zero.
    """
    grouped = squares.groupby(level=by, sort=False)
    rmse, runs = np.sqrt(grouped.mean()), grouped.size()
    band = {
        "low": rmse * np.sqrt(runs / chi2.ppf(0.975, runs)),
        "high": rmse * np.sqrt(runs / chi2.ppf(0.025, runs)),
    }
    return pd.DataFrame({"rmse": rmse, **band}).reset_index()


def slope(x: Any, y: Any) -> float:
    """Of log y against log x, by least squares."""
    return float(np.polyfit(np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float)), 1)[0])


def projected_share(settings: UserMean, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> float:
    """Of the blocks that a release with bootstrapped priors uses, the share that meets an interval narrower than its range.

    Public: the intervals' widths follow from the arrivals.
    """
    if settings.prior != "bootstrap":
        raise ValueError(f'settings must have prior "bootstrap", got {settings.prior!r}')
    blocks = projected = 0
    for level, tree in enumerate(offline.exposed(settings, users, samples, rng)):
        for part in tree.parts:
            whole = settings.noise(level, part.sums, float(settings.sizes[level] * settings.resolution))
            blocks += len(part.elements)
            projected += len(part.elements) if part.noise.variance < whole.variance else 0
    return projected / blocks if blocks else 0.0
