"""The data, the errors and the tables of the experiment with the frequency oracle."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from evolvingdp.core import brown
from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters import streams
from evolvingdp.heavy_hitters.experiments.frequency_oracle.params import Params
from evolvingdp.heavy_hitters.sketches.geometry import geometry

EPSILONS = (0.5, 1.0, 2.0, 4.0, 5.0)
DOMAIN = 22_000  # of reports that name values
RANKS = (5, 10, 50)  # the paper's percentiles .05, .1, .5 of 100 items: positions in the descending list
SETTING = ["dataset", "sweep", "n_users", "epsilon", "width", "compression", "hashes"]


def data(params: Params, dataset: str, n_users: int, seed: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Keys and counts: one data set per n, the same in all runs."""
    rng = stream(seed, "data", dataset, n_users)
    if dataset == "brown":
        return streams.brown_keys(), streams.brown_counts(n_users, rng)
    counts = streams.power_law_counts(n_users, rng, n_items=params.n_items, power=params.power)
    return np.arange(params.n_items, dtype=np.uint64), counts


def errors(table: pd.DataFrame, dataset: str, sweep: str) -> pd.DataFrame:
    """Per value of `sweep`: RMSE over words and runs as a fraction of n, its 95% band over runs, theory."""
    part = table[(table.dataset == dataset) & (table.sweep == sweep)]
    part = part.assign(
        square=((part.estimate - part.truth) / part.n_users) ** 2, theory=(part.standard_error / part.n_users) ** 2
    )
    runs = part.groupby([sweep, "repetition"]).agg(square=("square", "mean"), theory=("theory", "mean")).reset_index()
    summary = runs.groupby(sweep).agg(
        mean=("square", "mean"), sd=("square", "std"), n=("square", "size"), theory=("theory", "first")
    )
    half = stdtrit(summary.n - 1, 0.975) * summary.sd / np.sqrt(summary.n)
    return pd.DataFrame(
        {
            sweep: summary.index,
            "rmse": np.sqrt(summary["mean"]),
            "low": np.sqrt(np.maximum(summary["mean"] - half, 0)),
            "high": np.sqrt(summary["mean"] + half),
            "theory": np.sqrt(summary.theory),
        }
    ).reset_index(drop=True)


def top_words(result: Result[Params], n_words: int = 30) -> pd.DataFrame:
    """The most frequent Brown words in the first compressed run: word, truth, estimate, 95% interval, in users."""
    table = result.table
    chosen = table[(table.dataset == "brown") & (table.sweep == "compression") & (table.compression == "hadamard")]
    first = chosen[chosen.repetition == 0].head(n_words)
    _, counts = data(result.params, "brown", result.params.n_users, result.seed)
    order = np.argsort(-counts, kind="stable")[: len(first)]
    half = ndtri(0.975) * first.standard_error
    return pd.DataFrame(
        {
            "word": brown.words()["whole"].to_numpy()[order],
            "truth": first.truth.to_numpy(),
            "estimate": first.estimate.to_numpy(),
            "low": (first.estimate - half).to_numpy(),
            "high": (first.estimate + half).to_numpy(),
        }
    )


def over_optimum() -> pd.DataFrame:
    """The variance of a rare value's estimate, a user, over 4 e^epsilon / (e^epsilon - 1)^2, the least of any report."""
    rows = [
        {"report": name, "bits": bits(max(EPSILONS)), **{f"epsilon {e:g}": variance(e) / optimum(e) for e in EPSILONS}}
        for name, (bits, variance) in VARIANCES.items()
    ]
    table = pd.DataFrame(rows).round(3)
    return table.assign(published=table.report.map(PUBLISHED).map("{:.1f}".format).replace("nan", ""))


def optimum_table() -> pd.DataFrame:
    """`over_optimum` as the page shows it."""
    return over_optimum().map(lambda cell: f"{cell:,.3f}" if isinstance(cell, float) else cell)


def optimum(epsilon: float) -> float:
    """The least variance a user, for many values (Ye and Barg, 2018)."""
    return 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2


def _one_value(epsilon: float) -> float:
    """Of generalized randomized response among `DOMAIN` values."""
    return (math.exp(epsilon) + DOMAIN - 2) / math.expm1(epsilon) ** 2


def _subset(epsilon: float) -> float:
    """Of subset selection: a set of round(DOMAIN / (e^epsilon + 1)) values."""
    size, e = round(DOMAIN / (math.exp(epsilon) + 1)), math.exp(epsilon)
    own = e * size / (e * size + DOMAIN - size)
    other = (own * (size - 1) + (1 - own) * size) / (DOMAIN - 1)
    return float(other * (1 - other) / (own - other) ** 2)


def _hadamard_response(epsilon: float) -> float:
    """Of Hadamard response with the best number of blocks: half of the own block is more likely; re-derived."""
    e = math.exp(epsilon)
    blocks = [2**power for power in range(12)]
    return float(min((2 * (1 - 1 / b) + (e + 1) / b) * (e + 2 * b - 1) for b in blocks) / math.expm1(epsilon) ** 2)


PUBLISHED = {  # squared errors at epsilon = 5 over that of projective reports, 50,000 users: by the authors' own programs
    "one of 22,000 values (randomized response)": 37.0,
    "Hadamard response": 2.5,
    "projective": 1.0,
}
VARIANCES: dict[str, tuple[Callable[[float], int], Callable[[float], float]]] = {
    "one of 22,000 values (randomized response)": (lambda _: 15, _one_value),
    "all of 22,000 bits (symmetric, as RAPPOR's)": (lambda _: DOMAIN, lambda e: 1 / (4 * math.sinh(e / 4) ** 2)),
    "one Hadamard bit (FreqOracle, mean)": (lambda _: 1, lambda e: 1 / math.tanh(e / 2) ** 2),
    "Hadamard response": (lambda _: 15, _hadamard_response),
    "OLH": (lambda e: math.ceil(math.log2(OLH(e).hash_values)), lambda e: OLH(e).standard_error(1) ** 2),
    "projective": (
        lambda e: math.ceil(math.log2(geometry(e, 2**14).points + 1)),
        lambda e: OLH(e, geometry(e, 2**14).order).standard_error(1) ** 2,
    ),
    "a set of values (subset selection)": (lambda e: round(DOMAIN / (math.exp(e) + 1)) * 15, _subset),
}
