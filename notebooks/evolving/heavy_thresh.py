"""HEAVYTHRESH on words: the Brown corpus whose category changes, and large dictionaries whose frequent words change.

`run` gives a row per epoch, method and run on Brown, and a row per method and run on a dictionary; `values` the numbers that
claims and prose read, the rest is what the notebook's cells show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.book.params import Metric
from evolvingdp.core import brown
from evolvingdp.core.reports import Hashed, Sign
from evolvingdp.core.seeds import stream
from evolvingdp.evolving.baselines import recompute_words
from evolvingdp.evolving.constants import told
from evolvingdp.evolving.heavy_simulation import Trace, simulate
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import once
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.streams import WordStream

METRIC = Metric("recall_tuned", "share of the ten most frequent words that HEAVYTHRESH finds")

CLAIMS = """
recall_tuned >= 0.8                             HEAVYTHRESH finds the 10 most frequent words of a category: share, mean over epochs
recall_tuned - max(recall_naive, recall_optimal) >= 0  That is more than recomputing in every epoch finds: difference to the better
recall_once - recall_tuned >= 0                 One word a user, once, finds more still: difference to HEAVYTHRESH
error_once / error_tuned <= 1                   and with a smaller largest error: over HEAVYTHRESH's
error_detected / error_once <= 1                Averaging in hindsight makes it smaller: over one word a user as reported
error_hadamard / error_signs <= 1               With the paper's own oracle in both, too: over HEAVYTHRESH's
best_over_signs <= 1                            The best report's standard error over the paper's signs', by formula
error_tuned / error_optimal <= 1                HEAVYTHRESH's largest error over recomputing's with optimal composition
largest_tuned / bound <= 1                      The proved bound holds on Brown: largest error over bound
share_spent <= 1                                No user spends more than epsilon on a dictionary: largest share
fewest_found >= 0.95                            The five frequent words of a dictionary are found: smallest share of a run
least_paper >= 4                                The paper's b costs accuracy on each dictionary: error over the tuned one's, smallest
"""

TUNED, NAIVE, OPTIMAL = "HEAVYTHRESH, tuned", "every epoch, epsilon/T", "every epoch, optimal"
SIGNS = "HEAVYTHRESH, the paper's signs"
PAPER = "HEAVYTHRESH, paper's constants"
COMPOSITIONS = {NAIVE: "basic", OPTIMAL: "optimal"}  # of recomputation's reports
ONCE, HINDSIGHT = "one word a user, once (OLH)", "once (OLH), averaged in hindsight"
HADAMARD, PERIODS = "one word a user, once (Hadamard)", "users split over the categories (OLH)"
METHODS = [TUNED, SIGNS, *COMPOSITIONS, HADAMARD, ONCE, HINDSIGHT, PERIODS]
DELTA = 1e-6
TOP = 10  # words
# n, d, T, ell, epsilon of the dictionaries whose five frequent words are drawn anew twice
DICTIONARIES = (
    (10**6, 1_000, 64, 10**5, 2.0),
    (10**6, 100_000, 64, 10**6, 2.0),
    (10**7, 100_000, 256, 10**6, 1.0),
)
SHORT = {
    TUNED: "tuned",
    SIGNS: "signs",
    NAIVE: "naive",
    OPTIMAL: "optimal",
    ONCE: "once",
    HINDSIGHT: "detected",
    HADAMARD: "hadamard",
}


def check(params: Any) -> None:
    """Raise ValueError where HEAVYTHRESH cannot be planned for Brown's categories."""
    brown_settings(params)


def brown_settings(params: Any) -> HeavyThresh:
    categories = brown.categories()
    horizon = params.epochs_each * categories.shape[1]
    size = (params.n_users, horizon, params.epoch_length, params.epsilon, len(categories))
    return HeavyThresh.tuned(*size, changes=categories.shape[1] - 1, beta=params.beta)


def brown_stream(params: Any) -> WordStream:
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


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per epoch, method and run on Brown; a row per method and run on the dictionaries."""
    return pd.DataFrame([*_brown(params, seed), *_dictionaries(params, seed)])


def brown_trace(params: Any, seed: int, repetition: int) -> Trace:
    return simulate(brown_settings(params), brown_stream(params), stream(seed, "brown", TUNED, repetition))


def _judge(estimates: NDArray[np.float64], truth: NDArray[np.float64], top: int) -> dict[str, float]:
    """The largest error of a clipped estimate, and the share of the `top` most frequent words among the `top` largest."""
    found = np.argpartition(-estimates, top)[:top]
    true = np.argpartition(-truth, top)[:top]
    return {
        "max_error": float(np.abs(np.clip(estimates, 0, 1) - truth).max()),
        "recall": len(set(found.tolist()) & set(true.tolist())) / top,
    }


def _judged(estimates_by_epoch: Iterable[NDArray[np.float64]], data: WordStream, top: int) -> Iterator[dict[str, float]]:
    """Every epoch's judgment; estimates that stand while the words do not change are judged once."""
    judged: tuple[NDArray[np.float64], int, dict[str, float]] | None = None
    for estimates, law in zip(estimates_by_epoch, data.which[0].tolist(), strict=True):
        if judged is None or judged[0] is not estimates or judged[1] != law:
            judged = estimates, law, _judge(estimates, data.distributions[law], top)
        yield judged[2]


def _brown(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    settings, data = brown_settings(params), brown_stream(params)
    for repetition in range(params.repetitions):
        trace = brown_trace(params, seed, repetition)
        signs = simulate(replace(settings, report=None), data, stream(seed, "brown", SIGNS, repetition))
        runs: dict[str, Any] = {
            method: [release.estimate for release in each.public] for method, each in ((TUNED, trace), (SIGNS, signs))
        }
        for method, composition in COMPOSITIONS.items():
            runs[method] = recompute_words(
                settings, data, stream(seed, "brown", method, repetition), composition=composition, delta=DELTA
            )
        runs |= _once(params, data, stream(seed, "brown", ONCE, repetition))
        for method, all_estimates in runs.items():
            for epoch, judgment in enumerate(_judged(all_estimates, data, TOP), start=1):
                row = {"part": "brown", "method": method, "repetition": repetition, "epoch": epoch}
                if method == TUNED:
                    row |= {"updated": int(trace.public[epoch - 1].updated), "frozen": int(trace.public[epoch - 1].frozen)}
                yield row | judgment


def _once(params: Any, data: WordStream, rng: np.random.Generator) -> dict[str, NDArray[np.float64]]:
    """Each user reports one word: in one random epoch, through OLH or HEAVYTHRESH's own oracle, as reported and averaged between
    detected changes; or in the first epoch of a category."""
    size = (data.n_users, data.horizon, params.epsilon, data.n_words)
    hashed, sign = (kind(data.n_words, params.epsilon) for kind in (Hashed, Sign))
    others = {}
    for method, other in {
        HADAMARD: Once(*size, report=sign),
        PERIODS: Once(*size, every=params.epochs_each, report=hashed),
    }.items():
        others[method] = other.lots.hold(other.estimates(once.simulate(other, data, rng)))
    settings = Once(*size, report=hashed)
    tally = once.simulate(settings, data, rng)
    return {ONCE: settings.estimates(tally), HINDSIGHT: settings.detect(tally).estimates} | others


def _dictionaries(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    for place, size in enumerate(DICTIONARIES):
        for repetition in range(params.repetitions):
            tuned, data = dictionary(*size, stream(seed, "dictionary", place, repetition))
            n_users, n_words, horizon, epoch_length, epsilon = size
            printed = HeavyThresh.paper(n_users, horizon, epoch_length, epsilon, n_words, changes=2, spare=1)
            rng = stream(seed, "dictionary run", place, repetition)
            setting = {"part": "dictionary", "place": place, "repetition": repetition}
            yield setting | {"method": TUNED} | _run(tuned, data, rng)
            paper_rng = stream(seed, "dictionary run", PAPER, place, repetition)
            yield setting | {"method": PAPER} | _run(printed, data, paper_rng)
            naive = next(recompute_words(tuned, data, rng))  # all epochs have one law: one stands for them
            judgment = _judge(naive, data.distributions[data.which[0, 0]], 5)
            yield setting | {"method": NAIVE, "mean_error": judgment["max_error"], "recall": judgment["recall"]}


def _run(settings: HeavyThresh, data: WordStream, rng: np.random.Generator) -> dict[str, float]:
    """Errors, recall and loss of one run on a dictionary."""
    trace = simulate(settings, data, rng)
    updates = sum(release.updated for release in trace.public)
    voting = settings.voting
    return _mean_judgment([release.estimate for release in trace.public], data) | {
        "updates": updates,
        "spent": 2 * max(trace.votes_cast) * voting.vote_epsilon + updates * voting.estimate_epsilon,
        "bound": settings.error_bound,
        "epsilon": voting.epsilon,
    }


def _mean_judgment(estimates: list[NDArray[np.float64]], data: WordStream) -> dict[str, float]:
    """Over the epochs of a dictionary with five frequent words."""
    judged = list(_judged(estimates, data, 5))
    return {
        "mean_error": float(np.mean([each["max_error"] for each in judged])),
        "recall": float(np.mean([each["recall"] for each in judged])),
    }


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read, by short names of the methods (`SHORT`)."""
    settings, rows = brown_settings(params), table[table.part == "brown"]
    dictionary_rows = table[table.part == "dictionary"]
    ours, paper = (dictionary_rows[dictionary_rows.method == method] for method in (TUNED, PAPER))
    both = dictionary_rows[dictionary_rows.method.isin([TUNED, PAPER])]
    tuned = ours.groupby("place").mean_error.mean()
    found: dict[str, Any] = {
        "width": settings.width,
        "top_threshold": settings.voting.threshold(1),
        "bound": settings.error_bound,
        "best_over_signs": settings.standard_error / replace(settings, report=None).standard_error,
        "updates": rows[rows.method == TUNED].groupby("repetition").updated.sum().mean(),
        "largest_tuned": rows[rows.method == TUNED].max_error.max(),
        "least_paper": (paper.groupby("place").mean_error.mean() / tuned).min(),
        "share_spent": (both.spent / both.epsilon).max(),
        "fewest_found": ours.recall.min(),
    }
    for method, name in ((TUNED, "tuned"), (PAPER, "paper"), (NAIVE, "naive")):
        found[f"dictionary_error_{name}"] = dictionary_rows.groupby("method").mean_error.mean()[method]
    for method, name in SHORT.items():
        found[f"error_{name}"] = rows.groupby("method").max_error.mean()[method]
        found[f"recall_{name}"] = rows.groupby("method").recall.mean()[method]
    return found


def some_words(params: Any, seed: int) -> tuple[pd.DataFrame, list[int]]:
    """The first run on Brown, for the six words whose frequencies vary most between categories: truth, estimate and half of
    its 95% interval, an epoch a row; and the epochs of the updates."""
    data, trace = brown_stream(params), brown_trace(params, seed, 0)
    names, laws = brown.words()["whole"].tolist(), data.distributions[data.which[0]]
    half, frames = 1.96 * brown_settings(params).standard_error, []
    for word in np.argsort(-laws[:: params.epochs_each].std(axis=0))[:6]:
        columns = {"truth": laws[:, word], "estimate": [release.estimate[word] for release in trace.public]}
        frames.append(pd.DataFrame({"word": names[word], "epoch": np.arange(1, len(laws) + 1)} | columns))
    shown = pd.concat(frames, ignore_index=True).assign(half_width=half)
    held = (shown.estimate - shown.truth).abs() <= shown.half_width
    return shown.assign(held=held), [release.epoch for release in trace.public if release.updated]


def epochs(table: pd.DataFrame) -> pd.DataFrame:
    """On Brown: the mean over runs of recall and largest error, by method, measure and epoch."""
    rows = table[(table.part == "brown") & (table.method != NAIVE)]
    parts = [
        rows.groupby(["method", "epoch"], sort=False)[measure].agg(["mean", "std", "count"]).assign(measure=measure)
        for measure in ("recall", "max_error")
    ]
    return pd.concat(parts).reset_index()


def expected_largest(params: Any) -> float:
    """About the largest of as many normal errors as there are words, where estimates below zero are clipped."""
    settings = brown_settings(params)
    return settings.standard_error * math.sqrt(2 * math.log(settings.n_words))


def dictionaries(table: pd.DataFrame) -> pd.DataFrame:
    """A row a dictionary: errors and what is found."""
    table, rows = table[table.part == "dictionary"], []
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
                "bound": told(ours.bound.iloc[0], 2),
                "paper's constants: error": f"{paper.mean_error.mean():.3f} ({paper.mean_error.std():.3f})",
                "top 5 ": f"{paper.recall.mean():.2f}",
                r"$\epsilon/T$: error": f"{naive.mean_error.mean():.3f}",
                "top 5": f"{naive.recall.mean():.2f}",
            }
        )
    return pd.DataFrame(rows)
