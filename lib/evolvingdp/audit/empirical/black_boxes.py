"""Mechanisms of the library as black boxes `(input, rng) -> output`: their own samplers, run one user at a time.

The ledger reads laws and scales; an audit of these says that what is drawn is not less private than those say. An audit
that looks at one number of many sees a part of the loss, and would not see noise that is much too small. So a box has a
`statistic`, increasing with the log likelihood ratio of all that is released, wherever the output is not that already; and
`black_boxes(loss)` has the same boxes with noise for `loss` times the promise, which an audit must refute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evolvingdp.audit.empirical.auditor import Mechanism
from evolvingdp.continual_mean import private_median
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.noise import Gaussian, Laplace
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.count_sketch import LocalRnd
from evolvingdp.heavy_hitters.olh import OLH
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import HistogramEveryStep
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Statistic = Callable[[Any], Any]


@dataclass(frozen=True)
class BlackBox:
    """The entry of the ledger whose promise it has to keep, a mechanism, neighbouring inputs, and how to tell them apart."""

    entry: str
    mechanism: Mechanism
    inputs: tuple[Any, ...]
    statistic: Statistic | None = None


def black_boxes(loss: float = 1.0) -> tuple[BlackBox, ...]:
    """All boxes, with noise for `loss` times the epsilon that their entries promise."""
    return (*_local(loss), *_continual(loss), *_queries(loss))


def _local(loss: float) -> tuple[BlackBox, ...]:
    def flip(bit: int, rng: np.random.Generator) -> Any:
        return SignFlip(loss).randomize(np.array([bit]), rng)[0]

    client = LocalRnd(MultiplyShift.draw(1, 4, stream(0, "hashes")), loss)

    def report(key: int, rng: np.random.Generator) -> Any:
        slots = client.assign(1, rng)
        return int(slots[0]), int(client.report(np.array([key], dtype=np.uint64), slots, rng)[0])

    def hashed(key: int, rng: np.random.Generator) -> Any:
        return int(OLH(loss).report(np.array([key], dtype=np.uint64), stream(0, "public"), rng).values[0])

    rappor = Rappor(n_bits=4)
    rappor = replace(
        rappor, permanent_noise=rappor.permanent_noise / loss, one_from_zero=rappor.one_from_zero / loss,
        one_from_one=1 - (1 - rappor.one_from_one) / loss,
    )  # fmt: skip
    drawn = rappor.draw_hashes(stream(0, "hashes"))

    def permanent_and_fresh(held: int, rng: np.random.Generator) -> Any:
        kept = drawn._respond(np.array([held], dtype=np.uint64), rappor.permanent_one(0), rappor.permanent_one(1), rng)
        return int(drawn._respond(kept, rappor.one_from_zero, rappor.one_from_one, rng)[0])

    return (
        BlackBox("sign_flip", flip, (-1, 1)),
        BlackBox("freq_oracle", report, (0, 1, 2)),
        BlackBox("olh", hashed, (0, 1, 2)),
        BlackBox("rappor_report", permanent_and_fresh, (1, 2)),
    )


def _continual(loss: float) -> tuple[BlackBox, ...]:
    def noisy(noise: Laplace | Gaussian) -> Mechanism:
        return lambda number, rng: (number + noise.draw(1, rng))[0]

    tree, per_step = BinaryMechanism(4, loss), PerStepLaplace(3, loss)

    def sums(first: int, rng: np.random.Generator) -> Any:
        return tree.release([first, 0, 0, 0], rng)

    def means(sample: int, rng: np.random.Generator) -> Any:
        return per_step.release(np.zeros(3, dtype=np.int64), [sample] * 3, rng)

    def of_laplace(moved: list[int]) -> Callable[[Any], float]:
        """The log likelihood ratio, in scales, of those outputs that move from 0 to 1 and have Laplace noise each."""
        return lambda output: float(np.clip(output[moved], 0, 1).sum())

    def median(mean: float, rng: np.random.Generator) -> float:
        return private_median.draw(np.array([mean, mean, 0.1, 0.9]), 0.8 * loss, 4, rng)

    return (
        BlackBox("laplace", noisy(Laplace(2 / loss)), (0, 1)),
        BlackBox("gaussian", noisy(Gaussian(2 / loss)), (0, 1)),
        BlackBox("binary", sums, (0, 1), of_laplace([0, 1, 3])),  # the prefixes that are one node with the first element
        BlackBox("per_step_even", means, (0, 1), of_laplace([0, 1, 2])),
        BlackBox("private_median", median, (0.1, 0.9)),
    )


def _queries(loss: float) -> tuple[BlackBox, ...]:
    once = AboveThreshold.calibrated(loss, 1e-6, 1, 0.0, composition="basic")

    def halting(move: int, rng: np.random.Generator) -> int:
        """The place of the first yes among queries at 0 that the user moves by one."""
        state = once.start(rng)
        for place in range(6):
            state, release = once.step(state, move * (-1) ** (place == 0), rng)
            if release.above:
                return place
        return 6

    noise = calibrate(1.0, 1e-6, 3).noise
    monitor = ThresholdMonitorEvolving(MonitorNoise(noise.cap / loss, noise.inner / loss), 1.5 * noise.scale / loss, 3)
    return (
        BlackBox("above_threshold_once", halting, (0, 1)),
        BlackBox("threshold_monitor_exact_replacement", *alternating(monitor, 40)),
        BlackBox("histogram_laplace", *two_elements(HistogramEveryStep.calibrated(loss, 1e-6, 5, 2))),
    )


def alternating(
    monitor: ThresholdMonitorEvolving, queries: int
) -> tuple[Mechanism, tuple[int, int], Callable[[Any], float]]:
    """A user who counts in every other query, the even ones (input 0) or the odd ones, and nobody else.

    Mechanism, inputs, and the log likelihood ratio of all answers, to one digit, so that few runs have events in it. A user
    who has been counted `reports` times is gone.
    """
    counts = np.arange(queries) % 2 == np.array([[0], [1]])
    below = monitor.threshold - np.arange(2)  # without the user, and with
    logs = np.array([monitor.noise.log_cdf(below), monitor.noise.log_sf(below)]).T

    def answers(input: int, rng: np.random.Generator) -> Any:
        return monitor.run(monitor.start(1), counts[input][:, None], rng)[1]

    def log_likelihood(told: Any, input: int) -> float:
        active = np.cumsum(told & counts[input]) - (told & counts[input]) < monitor.reports  # before each query
        return float(logs[(counts[input] & active).astype(int), told.astype(int)].sum())

    return answers, (0, 1), lambda told: round(log_likelihood(told, 1) - log_likelihood(told, 0), 1)


def two_elements(histogram: HistogramEveryStep) -> tuple[Mechanism, tuple[int, int], Statistic]:
    """A user who holds element 0 or 1 in every step, where others make both about as likely to be reported as not.

    Mechanism, inputs, and how much more often element 1 is reported: near the threshold an answer counts one way or other.
    """
    others = round(histogram.one.threshold)

    def reported(input: int, rng: np.random.Generator) -> tuple[int, int]:
        weights = others + np.eye(2, dtype=np.int64)[input]
        times = np.sum([histogram.one.release(weights, rng) for _ in range(histogram.horizon)], axis=0)
        return int(times[0]), int(times[1])

    return reported, (0, 1), lambda times: times[1] - times[0]
