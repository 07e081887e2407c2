"""What the notebooks share: root mean square errors over runs with bands, and how orders of arrival are called."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import chi2

from evolvingdp.book.words import short
from evolvingdp.continual_mean.settings import Releases

ORDER_NAMES = {
    "contiguous": "one after the other",
    "round_robin": "round robin",
    "random": "random",
    "zipf": "Zipf",
    "dominant": "dominant",
}


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


def second_half(released: Releases, truth: ArrayLike) -> dict[str, float]:
    """Mean squared distance to `truth` (one for all steps, or one each) over the second half of a stream, and as stated.

    Stated: the square of the standard error, and of the bias that is possible if any users are allowed for.
    """
    late = slice(len(released.estimate) // 2, None)
    return {
        "square": float(np.mean((released.estimate[late] - truth) ** 2)),
        "predicted": float(np.mean(released.standard_error[late] ** 2)),
        "bias": float(np.sqrt(np.mean(released.bias[late] ** 2))),
    }


def two_digits(value: float) -> str:
    """`value` to two digits that count, without an exponent: 0.0047, 12, 340."""
    return short(float(f"{value:.2g}"))
