"""The stream, the methods by name and guarantee, the share of one word by each of them, and their standard errors beforehand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.continual_mean import BinaryMechanism, Tree
from evolvingdp.core.noise import Laplace
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.evolving import BitStream, Thresh, baselines, thresh_simulation
from evolvingdp.evolving.rivals import once
from evolvingdp.notebooks.evolving.split_users import HINDSIGHT, ONCE
from evolvingdp.streams.dated import DatedCounts, read_counts
from evolvingdp.streams.reading import as_text

TUNED, OPTIMAL = "THRESH, tuned", "every epoch, composed"
SMOOTH = "once, smoothed in hindsight"
EVERY, CENTRAL, TREE = "every epoch, a report at a time", "noise in every epoch", "Algorithm 2, differences"
GUARANTEES = {
    "local, for ever": ONCE,
    "local, a report": EVERY,
    "central, for ever": CENTRAL,
}  # with the best of its methods for one epoch

WORD = "we"
WATCHED = ("we", "upon", "government", "constitution", "america", "world", "freedom")

Array = NDArray[np.float64]


def counted(params: Any) -> DatedCounts:
    return read_counts(params.data)


def word_of(params: Any) -> str:
    """The word whose share is followed."""
    counts = counted(params)
    return as_text(params.word) or (WORD if WORD in counts.words else counts.moving(1)[0])


def watched(params: Any) -> tuple[str, ...]:
    counts = counted(params)
    there = tuple(word for word in WATCHED if word in counts.words)
    return tuple(dict.fromkeys(map(as_text, params.watch))) or (there if len(there) > 1 else counts.moving(len(WATCHED)))


def shares(params: Any, n_users: int, rng: np.random.Generator) -> tuple[dict[str, Array], dict[str, str], dict[str, int]]:
    """Estimates of the followed share in all epochs, (epochs,), by method; why others are refused; and the last epoch (from
    0) in which those that vote have updated."""
    truth, epsilon = followed(params), params.epsilon
    horizon, length = len(truth), params.words_per_user
    data, size = BitStream.make([n_users], truth, length), (n_users, horizon, length, epsilon)
    settings = once.Once(n_users, horizon, epsilon)
    tally = once.simulate(settings, data, rng)
    (own,) = rng.spawn(1)
    found = {
        ONCE: settings.estimates(tally)[:, 1],
        SMOOTH: settings.smooth(tally, own).estimates[:, 1],
        HINDSIGHT: settings.detect(tally).estimates[:, 1],
    }
    refused, last = dict[str, str](), dict[str, int]()
    try:
        trace = thresh_simulation.simulate(Thresh.tuned(*size, changes=params.changes), data, rng)
        found[TUNED], last[TUNED] = trace.estimate, int(np.flatnonzero(trace.updated).max(initial=0))
    except ValueError as error:
        refused[TUNED] = str(error)
    found[OPTIMAL] = baselines.recompute(data, epsilon, rng, composition="optimal", delta=params.delta)
    found[EVERY] = baselines.recompute(data, horizon * epsilon, rng)  # epsilon each
    totals = rng.binomial(n_users, truth)
    found[CENTRAL] = (totals + Laplace(horizon / epsilon).draw(horizon, rng)) / n_users
    running = BinaryMechanism(horizon, epsilon, float(horizon), sums=Tree(horizon)).release(totals, rng)
    found[TREE] = np.diff(running, prepend=0.0) / n_users
    return found, refused, last


def followed(params: Any) -> Array:
    counts = counted(params)
    return np.asarray(counts.shares[:, counts.place(word_of(params))])


def predicted(params: Any, method: str, n_users: int) -> Array:
    """The exact standard error of each epoch's estimate, (epochs,), for one of `GUARANTEES`: noise and the drawing of the users'
    words together; of `ONCE` with as many reports as there are on average."""
    return standard_errors(params, method, n_users, followed(params))


def standard_errors(params: Any, method: str, n_users: int, truth: Array) -> Array:
    """`predicted`, if the shares were `truth`."""
    if method == CENTRAL:
        return np.asarray(
            np.sqrt(truth * (1 - truth) / n_users + Laplace(len(truth) / params.epsilon).variance / n_users**2)
        )
    flip = SignFlip(params.epsilon)
    one = flip.flip + truth * (flip.keep - flip.flip)
    reports = n_users / len(truth) if method == ONCE else n_users
    return np.asarray(np.sqrt(one * (1 - one) / reports) / (flip.keep - flip.flip))


def clipped(estimates: Array) -> Array:
    """In [0, 1]; where nothing is known, 1/2."""
    return np.asarray(np.clip(np.nan_to_num(estimates, nan=0.5), 0, 1))


def five_deviations(n_values: int, kurtosis: float = 3.0) -> float:
    """Five standard deviations of the root mean square of so many standardized errors."""
    return 5 * math.sqrt((kurtosis - 1) / n_values) / 2
