"""Section 4.1: the frequency oracle on a power law and on the Brown corpus, against n, epsilon and m (Figures 1 to 3).

`run` gives a row per setting, run and queried word, in users, `values` the numbers that claims and prose read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from evolvingdp.book.params import Metric
from evolvingdp.core import brown, checks
from evolvingdp.core.geometry import geometry
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.reports import Hashed, Projective, Sign, Subset
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.notebooks.heavy_hitters import streams

METRIC = Metric("brown_error", "root mean square error of the frequent Brown words' estimates", "users")

CLAIMS = """
bias <= 4.9   No bias: mean error over all words and runs, in its standard errors
-0.55 <= slope <= -0.45   The error falls as 1/sqrt(n): slope of log relative RMSE against log n
1 - tolerance <= smallest_ratio <= 1 + tolerance   Theory predicts the error: smallest ratio of measured to predicted RMSE
1 - tolerance <= largest_ratio <= 1 + tolerance   Theory predicts the error: largest ratio of measured to predicted RMSE
inside >= inside_expected   The paper's observation, share of words shown: mean within one standard deviation of the truth
0.95 - covered_error <= covered <= 0.95 + covered_error   Intervals of 1.96 standard errors each way cover the truth in 95% of cases
projective_over_least <= 1.06   Projective reports: largest variance over the least possible
? widest_over_least <= 1.2   Insensitive to m from 1024 on: largest RMSE over smallest
"""
# Bounds of the errors: what normal errors exceed once in a million runs, 4.9 standard errors.

BETA = 0.05  # failure probability at which the paper's bounds are evaluated
LEMMA_EPSILON = 1.0  # of two reports; the printed proof's last step reaches 1.04 (E-HH-8)
DEVIATIONS = 4.9  # two-sided normal quantile of a false alarm of 1e-6
EPSILONS = (0.5, 1.0, 2.0, 4.0, 5.0)
DOMAIN = 22_000  # of reports that name values
RANKS = (5, 10, 50)  # the paper's percentiles .05, .1, .5 of 100 items: positions in the descending list
BROWN_WORDS = 200  # how many of the most frequent words are asked for in each run
BROWN_RANKS = (1, 2, 5, 10, 50)
LABELS = {
    "n_users": "users n",
    "epsilon": r"privacy loss $\epsilon$ of one report",
    "width": "sketch width m (cells a row)",
}
SETTING = ["dataset", "sweep", "n_users", "epsilon", "width"]


def check(params: Any) -> None:
    """Raises ValueError for a width that is no power of two, or a sketch that no memory holds."""
    widest = max(params.width, *params.width_sweep)
    checks.fits_in_memory(
        f"a sketch of rows = {params.rows} by width = {widest}", 8 * 8 * params.rows * widest, "lower rows or width"
    )
    checks.power_of_two(width=params.width, **{f"width_sweep[{i}]": width for i, width in enumerate(params.width_sweep)})


def data(params: Any, dataset: str, n_users: int, seed: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Keys and counts: one data set per n, the same in all runs."""
    rng = stream(seed, "data", dataset, n_users)
    if dataset == "brown":
        return streams.brown_keys(), streams.brown_counts(n_users, rng)
    counts = streams.power_law_counts(n_users, rng, n_items=params.n_items, power=params.power)
    return np.arange(params.n_items, dtype=np.uint64), counts


def run(params: Any, seed: int) -> pd.DataFrame:
    """Every setting `repetitions` times; what all of the data say that was asked about in no row stands in its `attrs`."""
    table = pd.concat([row for setting in _settings(params) for row in _trials(params, setting, seed)], ignore_index=True)
    table["z"] = (table.estimate - table.truth) / table.standard_error
    table.attrs = _of_data(params, seed)
    return table


def _settings(params: Any) -> Iterator[dict[str, Any]]:
    base = {
        "n_users": params.n_users,
        "epsilon": params.epsilon,
        "width": params.width,
    }
    sweeps: dict[str, tuple[Any, ...]] = {
        "n_users": params.n_users_sweep,
        "epsilon": params.epsilon_sweep,
        "width": params.width_sweep,
    }
    for sweep, swept in sweeps.items():
        for value in swept:
            yield {"dataset": "power law", "sweep": sweep, **base, sweep: value}
    for epsilon in params.epsilon_sweep:
        yield {"dataset": "brown", "sweep": "epsilon", **base, "epsilon": epsilon}
    yield {"dataset": "brown", "sweep": "none", **base}


def _trials(params: Any, setting: dict[str, Any], seed: int) -> Iterator[pd.DataFrame]:
    keys, counts = data(params, setting["dataset"], setting["n_users"], seed)
    asked = np.argsort(-counts, kind="stable")[:BROWN_WORDS]
    expected_error = theory.median_error(
        counts[counts > 0], setting["n_users"], setting["epsilon"], params.rows, setting["width"], truth=counts[asked]
    )
    name = [str(setting[column]) for column in SETTING]
    for repetition in range(params.repetitions):
        public = stream(seed, "hashes", *name, repetition)
        hashes = MultiplyShift.draw(params.rows, setting["width"], public)
        oracle = FreqOracle(hashes, setting["epsilon"])
        reports = stream(seed, "reports", *name, repetition)
        yield pd.DataFrame(
            {
                **setting,
                "repetition": repetition,
                "rank": np.arange(1, len(asked) + 1),
                "truth": counts[asked],
                "estimate": oracle.estimate(oracle.simulate(keys, counts, reports), keys[asked]),
                "standard_error": expected_error,
            }
        )


def _of_data(params: Any, seed: int) -> dict[str, Any]:
    """Numbers of the data sets at `n_users`, before any privacy."""
    _, held = data(params, "brown", params.n_users, seed)
    return {"brown_top_fraction": float(held.max() / params.n_users), "brown_distinct": len(held)}


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


def shown(table: pd.DataFrame, dataset: str, sweep: str, ranks: tuple[int, ...]) -> pd.DataFrame:
    """Per rank and value of `sweep`: truth, theory, and mean and deviation of the estimates over runs, as fractions of n."""
    part = table[(table.dataset == dataset) & (table.sweep == sweep) & table["rank"].isin(ranks)]
    part = part.assign(
        truth=part.truth / part.n_users,
        estimate=part.estimate / part.n_users,
        theory=part.standard_error / part.n_users,
    )
    grouped = part.groupby(["rank", sweep]).agg(
        truth=("truth", "first"),
        theory=("theory", "first"),
        mean=("estimate", "mean"),
        sd=("estimate", "std"),
        runs=("estimate", "size"),
    )
    return grouped.reset_index().assign(dataset=dataset, sweep=sweep).rename(columns={sweep: "value"})


def ticks(sweep: str, values: Any) -> list[str]:
    """Epsilon as it is, the width as a power of two."""
    return [f"$2^{{{int(value).bit_length() - 1}}}$" if sweep == "width" else f"{value:g}" for value in values]


def furthest(data: pd.DataFrame) -> float:
    """Of what `shown` gives: the largest distance of a mean from its truth, in standard errors of a single run."""
    return float(((data["mean"] - data.truth).abs() / data.theory).max())


def top_words(params: Any, table: pd.DataFrame, seed: int, n_words: int = 30) -> pd.DataFrame:
    """The most frequent Brown words in the first run: word, truth, estimate, 95% interval, in users."""
    first = table[(table.sweep == "none") & (table.repetition == 0)].head(n_words)
    _, counts = data(params, "brown", params.n_users, seed)
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


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """All in users unless a name says fraction, and ratios."""
    return table.attrs | _of_lemma(params) | _measured(params, table)


def _measured(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    z, settings = table["z"].to_numpy(), table.groupby(SETTING).z
    ratios = np.sqrt(settings.apply(lambda part: np.mean(np.square(part))))
    by_n = errors(table, "power law", "n_users")
    wide = errors(table, "power law", "width").query("width >= 1024").rmse
    inside, inside_expected = _inside_one_deviation(params, table)
    compared = table[table.sweep == "none"]
    reports = over_optimum().set_index("report").drop(columns=["bits", "published"])
    return {
        "bias": abs(z.mean()) * math.sqrt(len(z)),
        "slope": float(np.polyfit(np.log(by_n.n_users), np.log(by_n.rmse), 1)[0]),
        "tolerance": DEVIATIONS / math.sqrt(2 * settings.size().min()),  # of a root mean square of independent errors
        "smallest_ratio": ratios.min(),
        "largest_ratio": ratios.max(),
        "inside": inside,
        "inside_expected": inside_expected,
        "covered": np.mean(np.abs(z) <= ndtri(0.975)),
        "covered_error": DEVIATIONS * math.sqrt(0.95 * 0.05 / len(z)),
        "projective_over_least": reports.loc["projective"].max(),
        "widest_over_least": wide.max() / wide.min() if len(wide) > 1 else math.nan,
        "brown_error": float(np.sqrt(np.mean((compared.estimate - compared.truth) ** 2))),
    }


def _inside_one_deviation(params: Any, table: pd.DataFrame) -> tuple[float, float]:
    """The share of `RANKS` whose mean is within one standard deviation, and its lower limit for unbiased normal errors."""
    asked = table[table["rank"].isin(RANKS)].groupby([*SETTING, "rank"])
    runs = asked.agg(truth=("truth", "first"), mean=("estimate", "mean"), sd=("estimate", "std"))
    share = float(((runs["mean"] - runs.truth).abs() <= runs.sd).mean())
    expected = 1 - 2 * stdtr(params.repetitions - 1, -math.sqrt(params.repetitions))
    return share, expected - DEVIATIONS * math.sqrt(expected * (1 - expected) / len(runs))


def _of_lemma(params: Any) -> dict[str, Any]:
    """What the paper's bounds say at these parameters, beside the standard error."""
    n, epsilon, depth = params.n_users, params.epsilon, math.log2(26**brown.LENGTH)
    rows = theory.paper_rows(n, BETA)
    reported_half = theory.noise_standard_error(n, LEMMA_EPSILON / 2, params.rows)
    noise = theory.noise_standard_error(n, epsilon, params.rows)
    frequencies = brown.words()["count"].to_numpy() / brown.words()["count"].sum()
    return {
        "beta": BETA,
        "lemma_rows": rows,
        "lemma_width": theory.paper_width(n, BETA),
        "lemma_users": 48 * math.ceil(rows) * depth,
        "lemma_epsilon": LEMMA_EPSILON,
        "lemma_final_fraction": theory.paper_error_bound(n, LEMMA_EPSILON, rows) / n,
        "lemma_pruning_fraction": theory.paper_error_bound(n, LEMMA_EPSILON, rows * depth) / n,
        "threshold_fraction": theory.paper_threshold(n, LEMMA_EPSILON, BETA, depth) / n,
        "threshold_3_fraction": 3 * theory.paper_threshold(n, LEMMA_EPSILON, BETA, depth) / n,
        "lemma_standard_error_fraction": reported_half / n,
        "standard_error": noise,
        "half_ratio": theory.noise_standard_error(n, epsilon / 2, params.rows) / noise,
        "lemma_over_standard_error": theory.paper_error_bound(n, LEMMA_EPSILON, rows) / reported_half,
        "brown_missing_of_ten_million": float(np.sum(np.exp(-1e7 * frequencies))),
    }


def over_optimum() -> pd.DataFrame:
    """The variance of a rare value's estimate, a user, over 4 e^epsilon / (e^epsilon - 1)^2, the least of any report, and
    the bits of a report at the largest epsilon."""
    made = [_reports(epsilon) for epsilon in EPSILONS]
    rows = [
        {"report": name, "bits": made[-1][name][0]}
        | {f"epsilon {e:g}": each[name][1] / optimum(e) for e, each in zip(EPSILONS, made, strict=True)}
        for name in made[0]
    ]
    table = pd.DataFrame(rows).round(3)
    return table.assign(published=table.report.map(PUBLISHED).map("{:.1f}".format).replace("nan", ""))


def optimum_table() -> pd.DataFrame:
    """`over_optimum` as the page shows it."""
    return over_optimum().map(lambda cell: f"{cell:,.3f}" if isinstance(cell, float) else cell)


def optimum(epsilon: float) -> float:
    """The least variance a user, for many values (Ye and Barg, 2018)."""
    return 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2


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


def _reports(epsilon: float) -> dict[str, tuple[int, float]]:
    """Bits, with those that name a public row or hash function, and the variance of a rare value's estimate."""
    kinds = {
        "one of 22,000 values (randomized response)": Subset(DOMAIN, epsilon),
        "one Hadamard sign (FreqOracle, mean)": Sign(DOMAIN, epsilon),
        "OLH": Hashed(DOMAIN, epsilon),
        "projective": Projective(2**14, epsilon, geometry(epsilon, 2**14)),
        "a set of values (subset selection)": Subset(DOMAIN, epsilon, round(DOMAIN / (math.exp(epsilon) + 1))),
    }
    return {
        "all of 22,000 bits (symmetric, as RAPPOR's)": (DOMAIN, 1 / (4 * math.sinh(epsilon / 4) ** 2)),
        "Hadamard response": (15, _hadamard_response(epsilon)),
    } | {name: (one.bits, float(one.variance(0))) for name, one in kinds.items()}
