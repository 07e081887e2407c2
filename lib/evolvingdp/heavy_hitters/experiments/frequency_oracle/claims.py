"""What the notebook of the frequency oracle says about its numbers, checked, and the numbers that its prose prints."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtr

from evolvingdp.core import brown
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Claim, Scalar, at_least, at_most, within
from evolvingdp.heavy_hitters import streams, theory
from evolvingdp.heavy_hitters.experiments.frequency_oracle.params import Params
from evolvingdp.heavy_hitters.experiments.frequency_oracle.tables import RANKS, SETTING, data, errors, over_optimum

BETA = 0.05  # failure probability at which the paper's bounds are evaluated
LEMMA_EPSILON = 1.0  # of two reports; the printed proof's last step reaches 1.04 (E-HH-8)
DEVIATIONS = 4.9  # two-sided normal quantile of a false alarm of 1e-6


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    z = table["z"].to_numpy()
    by_n = errors(table, "power law", "n_users")
    slope = float(np.polyfit(np.log(by_n.n_users), np.log(by_n.rmse), 1)[0])
    settings = table.groupby(SETTING).z
    tolerance = DEVIATIONS / math.sqrt(2 * settings.size().min())  # of a root mean square of independent errors
    ratios = np.sqrt(settings.apply(lambda part: np.mean(np.square(part))))
    wide = errors(table, "power law", "width").query("width >= 1024").rmse
    plain, compressed = errors(table, "brown", "compression").set_index("compression").rmse[["none", "hadamard"]]
    inside, inside_expected = _inside_one_deviation(params, table)
    covered = float(np.mean(np.abs(z) <= ndtri(0.975)))
    checked = [
        at_most(
            "No bias: size of the mean error over all words and runs, in units of its own standard error",
            abs(z.mean()) * math.sqrt(len(z)),
            DEVIATIONS,
        ),
        within("The error falls as 1/sqrt(n): slope of log RMSE, as a fraction of n, against log n", slope, -0.55, -0.45),
        within(
            "Theory predicts the error: smallest ratio of measured to predicted RMSE over all settings",
            ratios.min(),
            1 - tolerance,
            1 + tolerance,
        ),
        within(
            "Theory predicts the error: largest ratio of measured to predicted RMSE over all settings",
            ratios.max(),
            1 - tolerance,
            1 + tolerance,
        ),
        within(
            "One bit costs nothing: RMSE with Hadamard compression over RMSE without, Brown",
            compressed / plain,
            1 - math.sqrt(2) * tolerance,
            1 + math.sqrt(2) * tolerance,
        ),
        at_least(
            "The paper's observation, share of shown words with mean over runs within one standard deviation of the truth",
            inside,
            inside_expected,
        ),
        within(
            "Intervals of 1.96 standard errors each way cover the truth in 95% of cases",
            covered,
            0.95 - DEVIATIONS * math.sqrt(0.95 * 0.05 / len(z)),
            0.95 + DEVIATIONS * math.sqrt(0.95 * 0.05 / len(z)),
        ),
    ]
    ratios_of = over_optimum().set_index("report").drop(columns=["bits", "published"])
    checked.append(
        at_most("Projective reports: largest variance over the least possible", ratios_of.loc["projective"].max(), 1.06)
    )
    if len(wide) > 1:
        checked.append(at_most("Insensitive to m from 1024 on: largest RMSE over smallest", wide.max() / wide.min(), 1.2))
    return checked


def _inside_one_deviation(params: Params, table: pd.DataFrame) -> tuple[float, float]:
    """The share of `RANKS` whose mean is within one standard deviation, and its lower limit for unbiased normal errors."""
    shown = table[table["rank"].isin(RANKS)].groupby([*SETTING, "rank"])
    runs = shown.agg(truth=("truth", "first"), mean=("estimate", "mean"), sd=("estimate", "std"))
    share = float(((runs["mean"] - runs.truth).abs() <= runs.sd).mean())
    expected = 1 - 2 * stdtr(params.repetitions - 1, -math.sqrt(params.repetitions))
    return share, expected - DEVIATIONS * math.sqrt(expected * (1 - expected) / len(runs))


def values(params: Params, table: pd.DataFrame, seed: int) -> dict[str, Scalar]:
    """The numbers that the prose prints; all in users unless a name says fraction."""
    n, epsilon = params.n_users, params.epsilon
    depth = math.log2(26**brown.LENGTH)
    _, brown_counts = data(params, "brown", n, seed)
    _, synthetic = data(params, "power law", n, seed)
    rows = theory.paper_rows(n, BETA)
    reported_half = theory.noise_standard_error(n, LEMMA_EPSILON / 2, params.rows)
    noise = theory.noise_standard_error(n, epsilon, params.rows)
    frequencies = brown.words()["count"].to_numpy() / brown.words()["count"].sum()
    ranks = {f"synthetic_rank_{rank}": float(synthetic[rank - 1] / n) for rank in RANKS}
    compared = table[(table.sweep == "compression") & (table.compression == params.compression)]
    zipf = streams.zipf_counts(n, stream(seed, "data", "zipf", n), n_items=params.n_items, power=params.power)
    return {
        "n_users": n,
        "epsilon": epsilon,
        "rows": params.rows,
        "width": params.width,
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
        "standard_error_fraction": noise / n,
        "standard_error_half": theory.noise_standard_error(n, epsilon / 2, params.rows),
        "half_ratio": theory.noise_standard_error(n, epsilon / 2, params.rows) / noise,
        "lemma_over_standard_error": theory.paper_error_bound(n, LEMMA_EPSILON, rows) / reported_half,
        "brown_error": float(np.sqrt(np.mean((compared.estimate - compared.truth) ** 2))),
        "brown_top_fraction": float(brown_counts.max() / n),
        "brown_missing_of_ten_million": float(np.sum(np.exp(-1e7 * frequencies))),
        "brown_distinct_drawn": int(np.count_nonzero(brown_counts)),
        "brown_distinct": len(brown_counts),
        "brown_above_noise": int(np.count_nonzero(brown_counts > 5 * noise)),
        **ranks,
        "zipf_rank_1": float(zipf[0] / n),
        "zipf_nonzero": int(np.count_nonzero(zipf)),
    }
