"""HEAVYTHRESH on words: the Brown corpus whose category changes, and large dictionaries whose frequent words change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import model_validator

from evolvingdp import experiment
from evolvingdp.core import brown
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines
from evolvingdp.evolving.heavy_protocol import WordStream
from evolvingdp.evolving.heavy_simulation import Hashed, Trace, reported_sums, simulate
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, parameter

NOTEBOOK = "evolving/heavy_thresh"
TUNED, NAIVE, OPTIMAL = "HEAVYTHRESH, tuned", "every epoch, epsilon/T", "every epoch, optimal"
PAPER = "HEAVYTHRESH, paper's constants"
METHODS = [TUNED, NAIVE, OPTIMAL]
DELTA = 1e-6
TOP = 10  # words
# n, d, T, ell, epsilon of the dictionaries whose five frequent words are drawn anew twice
DICTIONARIES = (
    (10**6, 1_000, 64, 10**5, 2.0),
    (10**6, 100_000, 64, 10**6, 2.0),
    (10**7, 100_000, 256, 10**6, 1.0),
)


class Params(experiment.Params):
    """The stream of Brown's categories; the dictionaries are fixed. The presets differ in the number of runs."""

    n_users: int = parameter(10_000_000, symbol="$n$", unit="users", meaning="users", ge=10**5, le=10**10)
    epochs_each: int = parameter(4, symbol="", unit="epochs", meaning="epochs that a category lasts", ge=1, le=100)
    epoch_length: int = parameter(
        4_000_000, symbol=r"$\ell$", unit="words", meaning="words of a user in an epoch", ge=10**4, le=10**9
    )
    epsilon: float = parameter(4.0, symbol=r"$\epsilon$", meaning="privacy loss of a user in all epochs", gt=0, le=20)
    beta: float = parameter(0.05, symbol=r"$\delta$", meaning="failure probability of the accuracy statement", gt=0, lt=1)
    repetitions: int = parameter(3, symbol="", unit="runs", meaning="runs on Brown and on each dictionary", ge=2, le=1000)

    metric = experiment.Metric(
        "recall_tuned", "share of the ten most frequent words that HEAVYTHRESH finds", better="higher"
    )
    presets = {"paper": {"repetitions": 10}}

    @model_validator(mode="after")
    def _feasible(self) -> Self:
        brown_settings(self)
        return self


def brown_settings(params: Params) -> HeavyThresh:
    categories = brown.categories()
    horizon = params.epochs_each * categories.shape[1]
    size = (params.n_users, horizon, params.epoch_length, params.epsilon, len(categories))
    return HeavyThresh.tuned(*size, changes=categories.shape[1] - 1, beta=params.beta)


def brown_stream(params: Params) -> WordStream:
    """All users draw words of one category for some epochs, then of the next, in alphabetical order."""
    categories = brown.categories()
    laws = (categories / categories.sum()).to_numpy().T
    which = np.repeat(np.arange(len(laws)), params.epochs_each)[None, :]
    return WordStream.make([params.n_users], laws, which, params.epoch_length)


def dictionary(
    n_users: int, n_words: int, horizon: int, epoch_length: int, epsilon: float, rng: np.random.Generator
) -> tuple[HeavyThresh, WordStream]:
    """.6 of the mass on five words, the rest even; the five are drawn anew at a third and at two thirds of the horizon."""
    laws = np.full((3, n_words), 0.4 / (n_words - 5))
    for law in laws:
        law[rng.choice(n_words, size=5, replace=False)] = (0.2, 0.15, 0.1, 0.1, 0.05)
    which = np.minimum(3 * np.arange(horizon) // horizon, 2)[None, :]
    settings = HeavyThresh.tuned(n_users, horizon, epoch_length, epsilon, n_words, changes=2)
    return settings, WordStream.make([n_users], laws / laws.sum(axis=1, keepdims=True), which, epoch_length)


def run(params: Params, seed: int) -> Result[Params]:
    """A row per epoch, method and run on Brown; a row per method and run on the dictionaries."""
    rows = [*_brown(params, seed), *_dictionaries(params, seed)]
    table = pd.DataFrame(rows)
    return Result(NOTEBOOK, params, seed, table, _claims(params, table), _values(params, table))


def brown_trace(params: Params, seed: int, repetition: int) -> Trace:
    return simulate(brown_settings(params), brown_stream(params), stream(seed, "brown", TUNED, repetition))


def recompute(
    settings: HeavyThresh, data: WordStream, method: str, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """The estimates of each epoch from fresh reports, at the same loss as `settings`: epsilon/T, or optimally composed."""
    voting = settings.voting
    composition = "basic" if method == NAIVE else "optimal"
    one = baselines.epsilon_of_report(voting.epsilon, voting.horizon, composition, DELTA)
    every = replace(voting, vote_cap=0, estimate_cap=voting.horizon, estimate_epsilon=one, epsilon=voting.horizon * one)
    fresh = HeavyThresh(every, settings.n_words)
    hashed = Hashed(fresh, data)
    for epoch in range(1, voting.horizon + 1):
        yield fresh.estimates(reported_sums(hashed, epoch, rng))


def _judge(estimates: NDArray[np.float64], truth: NDArray[np.float64], top: int) -> dict[str, float]:
    """The largest error of a clipped estimate, and the share of the `top` most frequent words among the `top` largest."""
    found = np.argpartition(-estimates, top)[:top]
    true = np.argpartition(-truth, top)[:top]
    return {
        "max_error": float(np.abs(np.clip(estimates, 0, 1) - truth).max()),
        "recall": len(set(found.tolist()) & set(true.tolist())) / top,
    }


def _brown(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    settings, data = brown_settings(params), brown_stream(params)
    laws = data.distributions[data.which[0]]
    for repetition in range(params.repetitions):
        trace = brown_trace(params, seed, repetition)
        runs: dict[str, Any] = {TUNED: [release.estimates for release in trace.public]}
        for method in (NAIVE, OPTIMAL):
            runs[method] = recompute(settings, data, method, stream(seed, "brown", method, repetition))
        for method, all_estimates in runs.items():
            for epoch, estimates in enumerate(all_estimates, start=1):
                row = {"part": "brown", "method": method, "repetition": repetition, "epoch": epoch}
                if method == TUNED:
                    row |= {"updated": int(trace.public[epoch - 1].updated), "frozen": int(trace.public[epoch - 1].frozen)}
                yield row | _judge(estimates, laws[epoch - 1], TOP)


def _dictionaries(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    for place, size in enumerate(DICTIONARIES):
        for repetition in range(params.repetitions):
            tuned, data = dictionary(*size, stream(seed, "dictionary", place, repetition))
            n_users, n_words, horizon, epoch_length, epsilon = size
            printed = HeavyThresh.paper(n_users, horizon, epoch_length, epsilon, n_words, changes=2)
            rng = stream(seed, "dictionary run", place, repetition)
            for method, settings in ((TUNED, tuned), (PAPER, printed)):
                yield {"part": "dictionary", "place": place, "repetition": repetition, "method": method} | _run(
                    settings, data, rng if method == TUNED else stream(seed, "dictionary run", PAPER, place, repetition)
                )
            laws = data.distributions[data.which[0]]
            naive = next(recompute(tuned, data, NAIVE, rng))  # all epochs have one law: one stands for them
            yield {"part": "dictionary", "place": place, "repetition": repetition, "method": NAIVE} | {
                "mean_error": _judge(naive, laws[0], 5)["max_error"],
                "recall": _judge(naive, laws[0], 5)["recall"],
            }


def _run(settings: HeavyThresh, data: WordStream, rng: np.random.Generator) -> dict[str, float]:
    """Errors, recall and loss of one run on a dictionary."""
    laws = data.distributions[data.which[0]]
    trace = simulate(settings, data, rng)
    errors = [_judge(each.estimates, law, 5) for each, law in zip(trace.public, laws, strict=True)]
    updates = sum(release.updated for release in trace.public)
    voting = settings.voting
    return {
        "mean_error": float(np.mean([each["max_error"] for each in errors])),
        "recall": float(np.mean([each["recall"] for each in errors])),
        "updates": updates,
        "spent": 2 * max(trace.votes_cast) * voting.vote_epsilon + updates * voting.estimate_epsilon,
        "bound": settings.error_bound,
        "epsilon": voting.epsilon,
    }


def dictionary_table(result: Result[Params]) -> pd.DataFrame:
    table = result.table[result.table.part == "dictionary"]
    rows = []
    for place, (n_users, n_words, horizon, epoch_length, epsilon) in enumerate(DICTIONARIES):
        ours, paper, naive = (table[(table.place == place) & (table.method == name)] for name in (TUNED, PAPER, NAIVE))
        rows.append(
            {
                "$n$": f"{n_users:,}",
                "$d$": f"{n_words:,}",
                "$T$": f"{horizon}",
                r"$\ell$": f"{epoch_length:,}",
                r"$\epsilon$": f"{epsilon:g}",
                "largest error": f"{ours.mean_error.mean():.3f} ({ours.mean_error.std():.3f})",
                "top 5 found": f"{ours.recall.mean():.2f}",
                "bound": f"{ours.bound.iloc[0]:.2f}",
                "paper's constants: error": f"{paper.mean_error.mean():.3f} ({paper.mean_error.std():.3f})",
                "top 5 ": f"{paper.recall.mean():.2f}",
                r"$\epsilon/T$: error": f"{naive.mean_error.mean():.3f}",
                "top 5": f"{naive.recall.mean():.2f}",
            }
        )
    return pd.DataFrame(rows)


def _claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    brown_rows = table[table.part == "brown"]
    recall = brown_rows.groupby("method").recall.mean()
    error = brown_rows.groupby("method").max_error.mean()
    ours, paper = (table[(table.part == "dictionary") & (table.method == method)] for method in (TUNED, PAPER))
    both = table[(table.part == "dictionary") & table.method.isin([TUNED, PAPER])]
    ratio = paper.groupby("place").mean_error.mean() / ours.groupby("place").mean_error.mean()
    bound = brown_settings(params).error_bound
    return [
        at_least(
            f"HEAVYTHRESH finds the {TOP} most frequent words of a category: share, mean over epochs", recall[TUNED], 0.8
        ),
        at_least(
            "That is more than recomputing in every epoch finds: difference to the better",
            recall[TUNED] - recall[METHODS[1:]].max(),
            0.0,
        ),
        at_most("Its largest error over that of recomputing with optimal composition", error[TUNED] / error[OPTIMAL], 1.0),
        at_most(
            "The proved bound holds on Brown: largest error over bound",
            float(brown_rows[brown_rows.method == TUNED].max_error.max() / bound),
            1.0,
        ),
        at_most(
            "No user spends more than epsilon on a dictionary: largest share", float((both.spent / both.epsilon).max()), 1.0
        ),
        at_least(
            "The five frequent words of a dictionary are found: smallest share of a run", float(ours.recall.min()), 0.95
        ),
        at_least(
            "The paper's b costs accuracy on each dictionary: smallest ratio of its error to the tuned one's",
            float(ratio.min()),
            4.0,
        ),
    ]


def _values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    settings = brown_settings(params)
    voting = settings.voting
    rows = table[table.part == "brown"].groupby("method")
    short = {TUNED: "tuned", NAIVE: "naive", OPTIMAL: "optimal"}
    values: dict[str, Scalar] = {
        "n_users": params.n_users,
        "horizon": voting.horizon,
        "n_words": settings.n_words,
        "epoch_length": params.epoch_length,
        "epsilon": params.epsilon,
        "width": settings.width,
        "top_threshold": voting.threshold(1),
        "standard_error": settings.standard_error,
        "bound": settings.error_bound,
        "updates": float(
            table[(table.part == "brown") & (table.method == TUNED)].groupby("repetition").updated.sum().mean()
        ),
    }
    dictionaries = table[table.part == "dictionary"].groupby("method")
    for method, name in ((TUNED, "tuned"), (PAPER, "paper"), (NAIVE, "naive")):
        values[f"dictionary_recall_{name}"] = float(dictionaries.recall.mean()[method])
        values[f"dictionary_error_{name}"] = float(dictionaries.mean_error.mean()[method])
    for method, name in short.items():
        values[f"error_{name}"] = float(rows.max_error.mean()[method])
        values[f"recall_{name}"] = float(rows.recall.mean()[method])
    return values


def expected_largest(n_words: int, standard_error: float) -> float:
    """About the largest of n_words normal errors, where estimates below zero are clipped: sqrt(2 ln d) standard errors."""
    return standard_error * math.sqrt(2 * math.log(n_words))
