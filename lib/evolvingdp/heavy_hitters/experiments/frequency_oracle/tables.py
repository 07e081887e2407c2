"""The data, the errors and the tables of the experiment with the frequency oracle."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from evolvingdp.core import brown
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters import streams
from evolvingdp.heavy_hitters.experiments.frequency_oracle.params import Params

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
    half = stats.t.ppf(0.975, summary.n - 1) * summary.sd / np.sqrt(summary.n)
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
    half = stats.norm.ppf(0.975) * first.standard_error
    return pd.DataFrame(
        {
            "word": brown.words()["word"].to_numpy()[order],
            "truth": first.truth.to_numpy(),
            "estimate": first.estimate.to_numpy(),
            "low": (first.estimate - half).to_numpy(),
            "high": (first.estimate + half).to_numpy(),
        }
    )
