"""A curator who sees the words: the running mean of the followed word by every algorithm, and which words are hot now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp import sparse_vector
from evolvingdp.continual_mean import (
    Buffered,
    Tree,
    full,
    multiple_trees,
    naive,
    recommended,
    single_tree,
    users_alike,
    wishful,
)  # fmt: skip
from evolvingdp.continual_mean.binary_mechanism import best_tree, calibrate
from evolvingdp.core import accounting
from evolvingdp.core.noise import Gaussian, Laplace, Tape
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.streams.share import counted, followed
from evolvingdp.sparse_vector import ThresholdMonitorEvolving, histogram
from evolvingdp.sparse_vector.shifting_simulation import simulate_drawn
from evolvingdp.streams.addresses import OTHER, function_words

Array = NDArray[np.float64]
ALONE, ALONE_DELTA = "totals, noise of their own", "totals, noise of their own (Gaussian)"
PER_STEP = "running mean, noise of its own"
TOTALS = {"totals, Algorithm 2": Tree, "totals, best tree": best_tree, "totals, eight buffers (Gaussian)": Buffered}
SAMPLES = {
    "Algorithm 2": naive,
    "recommended": recommended,
    "users alike": users_alike,
    "Algorithm 3": wishful,
    "Algorithm 4": single_tree,
    "Algorithm 5": multiple_trees,
    "Algorithm 6": full,
}
MONITOR, EVERY = "ThresholdMonitor", "histogram in every epoch"


def mean_rows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """The running mean after each epoch: from totals of `n_users` and of `sample_users`, and sample by sample."""
    truth, users = followed(params), params.sample_users
    for repetition in range(params.repetitions):
        for n_users in dict.fromkeys((params.n_users, users)):
            rng = stream(seed, "totals", n_users, repetition)
            totals = rng.binomial(n_users, truth)
            for method, estimates in _from_totals(params, totals, n_users, rng).items():
                yield from _rows(method, n_users, repetition, estimates, totals)
    settings = {method: _settings(params, make) for method, make in SAMPLES.items()}
    for repetition in range(min(3, params.repetitions // 2)):
        rng = stream(seed, "samples", repetition)
        who, at = np.tile(np.arange(users), len(truth)), users * np.arange(1, len(truth) + 1) - 1
        bits = (rng.random(len(who)) < np.repeat(truth, users)).astype(np.int64)
        totals = bits.reshape(len(truth), users).sum(axis=1)
        for method, made in settings.items():
            released = made.release(who, bits, stream(seed, "samples", method, repetition))
            used = released.samples[at] / users
            for row, samples in zip(_rows(method, users, repetition, released.estimate[at], totals), used, strict=True):
                yield row | {"used": float(samples)}


def _settings(params: Any, make: Any) -> Any:
    """For users with one sample an epoch; where a prior must be given, it is 0, from which no share of a word is far."""
    size = (params.sample_users, len(followed(params)), params.epsilon)
    if make in (recommended, users_alike):
        return make(*size, arrivals=np.tile(np.arange(size[0]), size[1]))
    return make(*size, 0.0, clip=True) if make in (wishful, single_tree, multiple_trees) else make(*size, clip=True)


def _from_totals(params: Any, totals: NDArray[np.int64], n_users: int, rng: np.random.Generator) -> dict[str, Array]:
    """A user adds one to each epoch's total at most, and so moves as many elements by one as there are epochs."""
    horizon, epsilon, delta = len(totals), params.epsilon, params.delta
    steps = np.arange(1, horizon + 1)
    noises = {
        ALONE: np.cumsum(Laplace(horizon / epsilon).draw(horizon, rng)),
        ALONE_DELTA: np.cumsum(Gaussian(np.sqrt(horizon) / accounting.gaussian_mu(epsilon, delta)).draw(horizon, rng)),
        PER_STEP: steps * Laplace(horizon / epsilon).draw(horizon, rng),
    }
    for method, make in TOTALS.items():
        sums: Any = make(horizon)
        noise = calibrate(sums, epsilon, delta if "Gaussian" in method else 0.0, 1.0, uses=horizon)
        noises[method] = sums.all(horizon, Tape(noise, rng))
    return {method: (np.cumsum(totals) + noise) / (steps * n_users) for method, noise in noises.items()}


def _rows(
    method: str, n_users: int, repetition: int, estimates: Array, totals: NDArray[np.int64]
) -> Iterator[dict[str, Any]]:
    """Errors of the running mean, and of the epoch's own mean as the difference of two running sums."""
    steps = np.arange(1, len(totals) + 1)
    running = np.cumsum(totals) / (steps * n_users)
    own = np.diff(estimates * steps, prepend=0.0)
    for epoch in range(len(totals)):
        yield {
            "part": "mean", "method": method, "n_users": n_users, "repetition": repetition, "epoch": epoch,
            "estimate": float(estimates[epoch]), "truth": float(running[epoch]), "error": abs(float(estimates[epoch] - running[epoch])),
            "own_error": abs(float(own[epoch] - totals[epoch] / n_users)),
        }  # fmt: skip


def monitor(params: Any, horizon: int) -> ThresholdMonitorEvolving:
    """For words that `hot` of the users hold; a user is in one query an epoch."""
    noise = sparse_vector.calibrate(params.epsilon, params.delta, params.reports, moved=horizon)
    return ThresholdMonitorEvolving.calibrated(noise, params.hot * params.n_users)


def hot_rows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Which content words are reported as hot in each epoch, and how far those that are wrong are from the threshold."""
    counts, apart = counted(params), function_words() | {OTHER}
    content = [place for place, word in enumerate(counts.words) if word not in apart]
    laws, line = counts.shares[:, content], params.hot * params.n_users
    names = np.array(counts.words)[content]
    made = monitor(params, counts.horizon)
    every = histogram(params.epsilon, params.delta, counts.horizon, len(content), kind="gaussian")
    for repetition in range(params.repetitions):
        rng = stream(seed, "hot", repetition)
        above, active = simulate_drawn(made, params.n_users, laws, rng)
        weights = rng.multinomial(params.n_users, np.column_stack([laws, 1 - laws.sum(axis=1)]).clip(0))[:, :-1]
        seen = weights + every.noise.draw(weights.shape, rng) >= line
        for method, reported in {MONITOR: above, EVERY: seen}.items():
            for epoch, (own, law) in enumerate(zip(reported, laws, strict=True)):
                wrong = own != (law >= params.hot)
                yield {
                    "part": "hot", "method": method, "repetition": repetition, "epoch": epoch, "found": int(own.sum()),
                    "hot": int((law >= params.hot).sum()), "wrong": int(wrong.sum()),
                    "farthest": float(np.abs(law - params.hot)[wrong].max(initial=0.0)),
                    "left": float(active[epoch] / params.n_users) if method == MONITOR else 1.0,
                    "listed": json.dumps(names[own].tolist(), ensure_ascii=False),
                }  # fmt: skip
