"""How well lists of candidates and their estimates match the truth: found and false, and errors by rank.

The tables have a row per data set (`repetition`) and candidate: `value` (its rank), `truth` and estimates as fractions,
`p_value`, `standard_error`, `listed`; rows whose `part` is another are passed over.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters.experiments.rappor.params import Params
from evolvingdp.heavy_hitters.rappor import Rappor

# Google's own R decoder on ten data sets of this kind, run apart from this book: smallest and largest value
R_DECODER = {"found": (44, 53), "false": (7, 12), "l1": (0.155, 0.202), "l_inf": (0.0077, 0.0096)}
BROWN_METHODS = ("RAPPOR, lasso", "FreqOracle, joint")


def rappor(params: Params) -> Rappor:
    return Rappor(
        params.n_bits,
        params.n_hashes,
        params.n_cohorts,
        params.permanent_noise,
        params.one_from_zero,
        params.one_from_one,
    )


def demo(table: pd.DataFrame) -> pd.DataFrame:
    return table[table.part == "demo 3"]


def per_data_set(table: pd.DataFrame) -> pd.DataFrame:
    """A row per data set: how many candidates are listed, rightly and wrongly, and the distance of the fit to the truth."""
    rows = []
    for repetition, data in demo(table).groupby("repetition"):
        real = data.truth > 0
        distance = (data.rappor - data.truth).abs()[real]
        rows.append(
            {
                "repetition": repetition,
                "found": int(data.listed[real].sum()),
                "false": int(data.listed[~real].sum()),
                "found_at_ten_false": int(np.interp(10, *_curve(data)[::-1])),
                "l1": float(distance.sum()),
                "l1_listed": float((data.rappor_listed - data.truth).abs()[real].sum()),
                "l_inf": float(distance.max()),
                "z_rms": float(np.sqrt(np.mean(np.square((data.unbiased - data.truth) / data.standard_error)))),
            }
        )
    return pd.DataFrame(rows)


def _curve(data: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The most values found for each number of false ones, as the list grows: found (f,), false (f,)."""
    real = (data.truth > 0).to_numpy()[np.argsort(data.p_value.to_numpy(), kind="stable")]
    found, false = np.cumsum(real), np.cumsum(~real)
    steps = np.arange(false[-1] + 1)
    return np.array([found[false <= step].max(initial=0) for step in steps]), steps


def discoveries(table: pd.DataFrame) -> pd.DataFrame:
    """Found against false, mean over data sets: false, found, found_sd, and what normal errors predict."""
    curves = np.array([_curve(data)[0] for _, data in demo(table).groupby("repetition")])
    mean = demo(table).groupby("value")[["truth", "standard_error"]].mean()
    signal = (mean.truth / mean.standard_error)[mean.truth > 0].to_numpy()
    false = np.arange(curves.shape[1])
    cut = -ndtri((false + 0.5) / int((mean.truth == 0).sum()))
    predicted = ndtr(signal[None, :] - cut[:, None]).sum(axis=1)
    return pd.DataFrame(
        {"false": false, "found": curves.mean(axis=0), "found_sd": curves.std(axis=0, ddof=1), "predicted": predicted}
    )


def bands(table: pd.DataFrame, n_values: int) -> pd.DataFrame:
    """By fifths of the `n_values` ranks: how often a method reports zero, and its root mean square error with a 95% band."""
    rows = []
    data = demo(table)
    edges = np.round(np.linspace(0, n_values, 6)).astype(int)
    for low, high in zip(edges[:-1] + 1, edges[1:], strict=True):
        part = data[data.value.between(low, high)]
        for method in ("rappor_listed", "rappor", "oracle_median", "oracle_mean"):
            squares = ((part[method] - part.truth) ** 2).groupby(part.repetition).mean()
            half = 1.96 * squares.std() / math.sqrt(len(squares))
            rows.append(
                {
                    "ranks": f"{low}\u2013{high}",
                    "method": method,
                    "zero": float((part[method] == 0).mean()),
                    "rmse": math.sqrt(squares.mean()),
                    "low": math.sqrt(max(0.0, squares.mean() - half)),
                    "high": math.sqrt(squares.mean() + half),
                }
            )
    return pd.DataFrame(rows)


def decoders(result: Result[Params]) -> pd.DataFrame:
    """Ours beside Google's R decoder."""
    sets = per_data_set(result.table)

    def ours(column: str, digits: int) -> str:
        return f"{sets[column].mean():.{digits}f} ({sets[column].std():.{digits}f})"

    def theirs(column: str) -> str:
        return " to ".join(map(str, R_DECODER[column]))

    rate = f"at a false-discovery rate of {result.params.false_discovery_rate:g}"
    rows = [
        ("values found", theirs("found"), ours("found", 1)),
        ("false ones", theirs("false"), ours("false", 1)),
        ("found with ten false", "", ours("found_at_ten_false", 1)),
        ("L1 distance of the fit", theirs("l1"), ours("l1", 3)),
        ("L1 distance, zero where not listed", "", ours("l1_listed", 3)),
        ("largest distance of the fit", theirs("l_inf"), ours("l_inf", 4)),
    ]
    return pd.DataFrame(rows, columns=["", "Google's decoder", f"ours, {rate}: mean (sd)"])


def brown_table(result: Result[Params]) -> pd.DataFrame:
    rows = []
    for method, runs in result.table[result.table.part == "brown"].groupby("method", sort=False):
        row = {"protocol": method, "bits a user": "64" if method == BROWN_METHODS[0] else "1"}
        for column in ("precision", "recall", "f1"):
            row["F1" if column == "f1" else column] = f"{runs[column].mean():.3f} ({runs[column].std():.3f})"
        rows.append(row | {"standard error": f"{runs.standard_error.mean():,.0f}", "RMSE": f"{runs.rmse.mean():,.0f}"})
    return pd.DataFrame(rows)
