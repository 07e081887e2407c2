"""Root mean square errors over runs with bands, and slopes, for the three notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2


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
