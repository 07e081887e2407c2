"""HEAVYTHRESH and recomputation on the same words: a row per epoch, method and run on Brown, one per run on a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core.seeds import stream
from evolvingdp.evolving.baselines import recompute_words
from evolvingdp.evolving.experiments.heavy_thresh.claims import claims, values
from evolvingdp.evolving.experiments.heavy_thresh.params import NOTEBOOK, Params
from evolvingdp.evolving.experiments.heavy_thresh.settings import (
    COMPOSITIONS,
    CREWS,
    DELTA,
    DICTIONARIES,
    HADAMARD,
    HINDSIGHT,
    NAIVE,
    ONCE,
    PAPER,
    PERIODS,
    TOP,
    TUNED,
    brown_settings,
    brown_stream,
    by_lot,
    dictionary,
)
from evolvingdp.evolving.heavy_simulation import Trace, simulate
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crew_words, once_words
from evolvingdp.evolving.rivals.once_words import OnceWords
from evolvingdp.evolving.streams import WordStream
from evolvingdp.experiment import Result


def run(params: Params, seed: int) -> Result[Params]:
    """A row per epoch, method and run on Brown; a row per method and run on the dictionaries."""
    rows = [*_brown(params, seed), *_dictionaries(params, seed)]
    table = pd.DataFrame(rows)
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def brown_trace(params: Params, seed: int, repetition: int) -> Trace:
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


def _brown(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    settings, data = brown_settings(params), brown_stream(params)
    crews = by_lot(settings)
    for repetition in range(params.repetitions):
        trace = brown_trace(params, seed, repetition)
        runs: dict[str, Any] = {TUNED: [release.estimate for release in trace.public]}
        for method, composition in COMPOSITIONS.items():
            runs[method] = recompute_words(
                settings, data, stream(seed, "brown", method, repetition), composition=composition, delta=DELTA
            )
        runs |= _once(params, data, stream(seed, "brown", ONCE, repetition))
        served = crew_words.simulate(crews, data, stream(seed, "brown", CREWS, repetition))
        runs[CREWS] = [release.estimate for release in served.public]
        for method, all_estimates in runs.items():
            for epoch, judgment in enumerate(_judged(all_estimates, data, TOP), start=1):
                row = {"part": "brown", "method": method, "repetition": repetition, "epoch": epoch}
                if method == TUNED:
                    row |= {"updated": int(trace.public[epoch - 1].updated), "frozen": int(trace.public[epoch - 1].frozen)}
                yield row | judgment


def _once(params: Params, data: WordStream, rng: np.random.Generator) -> dict[str, NDArray[np.float64]]:
    """Each user reports one word: in one random epoch, through OLH or HEAVYTHRESH's own oracle, as reported and averaged between
    detected changes; or in the first epoch of a category."""
    size = (data.n_users, data.which.shape[1], data.distributions.shape[1], params.epsilon)
    others = {}
    for method, other in {
        HADAMARD: OnceWords(*size, "hadamard"),
        PERIODS: OnceWords(*size, every=params.epochs_each),
    }.items():
        others[method] = other.lots.hold(other.estimates(once_words.simulate(other, data, rng)))
    settings = OnceWords(*size)
    tally = once_words.simulate(settings, data, rng)
    return {ONCE: settings.estimates(tally), HINDSIGHT: settings.detect(tally).estimates} | others


def _dictionaries(params: Params, seed: int) -> Iterator[dict[str, Any]]:
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
            served = crew_words.simulate(by_lot(tuned), data, stream(seed, "dictionary run", CREWS, place, repetition))
            yield setting | {"method": CREWS} | _mean_judgment([release.estimate for release in served.public], data)
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
