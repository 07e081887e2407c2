"""Mechanisms of the library as black boxes `(input, rng) -> output`: their own samplers, for many users at once.

The ledger reads laws and scales; an audit of these says that what is drawn is not less private than those say. An audit
that looks at one number of many sees a part of the loss, and would not see noise that is much too small. So where a release
does not tell it already, a box's output is a number that increases with the log likelihood ratio of all that is released;
and `black_boxes(loss)` has the same boxes with noise for `loss` times the promise, which an audit must refute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.empirical.auditor import Batch, Mechanism
from evolvingdp.audit.empirical.failures import noisy_count
from evolvingdp.audit.exact.laws import gaussian_epsilon
from evolvingdp.continual_mean import private_median
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.noise import Gaussian, Laplace
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.olh import OLH
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.local_rnd import LocalRnd
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import Histogram, histogram
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

_DELTA = 1e-6


@dataclass(frozen=True)
class BlackBox:
    """A mechanism that has a row of this id in the ledger, neighbouring inputs, and what it promises."""

    entry: str
    mechanism: Mechanism
    inputs: tuple[Any, ...]
    epsilon: float
    delta: float = 0.0


def black_boxes(loss: float = 1.0) -> tuple[BlackBox, ...]:
    """All boxes, with noise for `loss` times the epsilon that they promise."""
    return (*_local(loss), *_continual(loss), *_queries(loss))


def _local(loss: float) -> tuple[BlackBox, ...]:
    def flips(bit: int, users: int, rng: np.random.Generator) -> Any:
        return SignFlip(loss).randomize(np.full(users, bit), rng)

    client = LocalRnd(MultiplyShift.draw(1, 4, stream(0, "hashes")), 0.8 * loss)

    def reports(key: int, users: int, rng: np.random.Generator) -> Any:
        slots = client.assign(users, rng)
        return np.column_stack([slots, client.report(_all_hold(key, users), slots, rng)])

    def matches(key: int, users: int, rng: np.random.Generator) -> Any:
        """Which words have the hash value that is reported."""
        oracle = OLH(0.8 * loss)
        sent = oracle.report(_all_hold(key, users), stream(0, "public"), rng)
        return np.column_stack([oracle._hash(sent.seeds, np.uint64(word)) == sent.values for word in range(3)])

    rappor = Rappor(n_bits=4, one_from_zero=0.1, one_from_one=0.9)
    rappor = replace(
        rappor, permanent_noise=rappor.permanent_noise / loss, one_from_zero=rappor.one_from_zero / loss,
        one_from_one=1 - (1 - rappor.one_from_one) / loss,
    )  # fmt: skip
    drawn = rappor.draw_hashes(stream(0, "hashes"))
    filters = drawn.bloom(np.arange(16, dtype=np.uint64), np.zeros(1, dtype=np.int64))
    one, other, *_ = np.unique(filters, return_index=True)[1].tolist()  # words with different filters

    def first_reports(key: int, users: int, rng: np.random.Generator) -> Any:
        cohorts = np.zeros(users, dtype=np.int64)
        return drawn.step(drawn.start(), np.arange(users), cohorts, _all_hold(key, users), rng)[1]

    return (
        BlackBox("sign_flip", Batch(flips), (-1, 1), 1.0),
        BlackBox("local_rnd", Batch(reports), (0, 1, 2), 0.8),
        BlackBox("olh", Batch(matches), (0, 1, 2), 0.8),
        BlackBox("rappor", Batch(first_reports), (one, other), 2 * math.log(0.7 / 0.3)),
    )


def _all_hold(key: int, users: int) -> NDArray[np.uint64]:
    return np.full(users, key, dtype=np.uint64)


def _continual(loss: float) -> tuple[BlackBox, ...]:
    tree, per_step = BinaryMechanism(4, 0.7 * loss), PerStepLaplace(3, 0.7 * loss)

    def sums(first: int, rng: np.random.Generator) -> float:
        return _moved(tree.release([first, 0, 0, 0], rng)[[0, 1, 3]])  # those that are one node with the first element

    def means(sample: int, rng: np.random.Generator) -> float:
        return _moved(per_step.release(np.zeros(3, dtype=np.int64), [sample] * 3, rng))

    def median(mean: float, rng: np.random.Generator) -> float:
        return private_median.draw(np.array([mean, mean, 0.1, 0.9]), 0.8 * loss, 4, rng)

    return (
        BlackBox("laplace", noisy_count(Laplace(2 / loss)), (0, 1), 0.5),
        BlackBox("gaussian", noisy_count(Gaussian(2 / loss)), (0, 1), gaussian_epsilon(0.25, _DELTA), _DELTA),
        BlackBox("binary", sums, (0, 1), 0.7),
        BlackBox("per_step", means, (0, 1), 0.7),
        BlackBox("private_median", median, (0.1, 0.9), 0.8),
    )


def _moved(outputs: NDArray[np.float64]) -> float:
    """The log likelihood ratio, in scales, of outputs that move from 0 to 1 and have Laplace noise each."""
    return float(np.minimum(np.maximum(outputs, 0), 1).sum())


def _queries(loss: float) -> tuple[BlackBox, ...]:
    once = AboveThreshold.calibrated(loss, _DELTA, 1, 0.0)

    def halting(move: int, rng: np.random.Generator) -> int:
        """The place of the first yes among queries at 0 that the user moves by one."""
        state = once.start(rng)
        for place in range(6):
            state, release = once.step(state, move * (-1) ** (place == 0), rng)
            if release.above:
                return place
        return 6

    scale = calibrate(1.0, _DELTA, 3).scale / loss
    monitor = ThresholdMonitorEvolving(Laplace(scale), 1.5 * scale, 3)
    every_step = histogram(loss, _DELTA, 5, 2, kind="stable")
    return (
        BlackBox("above_threshold", halting, (0, 1), 1.0),
        BlackBox("threshold_monitor", alternating(monitor, 20), (0, 1), 1.0, _DELTA),
        BlackBox("histograms", two_elements(every_step), (0, 1), 1.0, _DELTA),
    )


def alternating(monitor: ThresholdMonitorEvolving, steps: int) -> Mechanism:
    """A user who holds one of two elements in every step, and nobody else: who counts in the even queries (input 0) or the
    odd ones.

    Its output is the log likelihood ratio of all answers, to one digit, so that few runs have events in it. A user who has
    been counted `reports` times is gone.
    """
    counts = np.arange(2 * steps) % 2 == np.array([[0], [1]])
    below = monitor.threshold - np.arange(2)  # without the user, and with
    logs = np.array([monitor.noise.log_cdf(below), monitor.noise.log_sf(below)]).T

    def log_likelihood(told: NDArray[np.bool_], counted: NDArray[np.bool_]) -> NDArray[np.float64]:
        yes = told & counted
        active = np.cumsum(yes, axis=1) - yes < monitor.reports  # before each query
        each = logs[(counted & active).astype(int), told.astype(int)]
        return np.asarray(each.sum(axis=1))

    def ratios(input: int, runs: int, rng: np.random.Generator) -> NDArray[np.float64]:
        told = np.empty((runs, steps, 2), dtype=bool)
        for answers in told:
            state = monitor.start(1)
            for step in range(steps):
                state, answers[step] = monitor.step_elements(state, [input], 2, rng)
        flat = told.reshape(runs, 2 * steps)
        return np.round(log_likelihood(flat, counts[1]) - log_likelihood(flat, counts[0]), 1)

    return Batch(ratios)


def two_elements(made: Histogram) -> Mechanism:
    """A user who holds element 0 or 1 in every step, where others make both about as likely to be reported as not.

    Its output is how much more often element 1 is reported: near the threshold an answer counts one way or other.
    """
    others = round(made.threshold)

    def difference(input: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        weights = np.tile(others + np.eye(2, dtype=np.int64)[input], runs * made.horizon)
        times = (~np.isnan(made.noisy(weights, rng))).reshape(runs, made.horizon, 2).sum(axis=1)
        return np.asarray(times[:, 1] - times[:, 0])

    return Batch(difference)
