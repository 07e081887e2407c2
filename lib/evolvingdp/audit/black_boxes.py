"""Mechanisms of the library as black boxes `(input, rng) -> output`: their own samplers, run one user at a time.

The ledger's exact checks read laws; an audit of these says that what is drawn is not less private than those laws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvingdp.audit import failures
from evolvingdp.audit.empirical import Mechanism
from evolvingdp.continual_mean import private_median
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.count_sketch import LocalRnd
from evolvingdp.heavy_hitters.olh import OLH
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import histogram
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


@dataclass(frozen=True)
class BlackBox:
    """The entry of the ledger whose promise it has to keep, a mechanism and neighbouring inputs."""

    entry: str
    mechanism: Mechanism
    inputs: tuple[Any, ...]


def black_boxes() -> tuple[BlackBox, ...]:
    one_user = np.zeros(1, dtype=np.int64)

    def flip(bit: int, rng: np.random.Generator) -> Any:
        return SignFlip(1.0).randomize(np.array([bit]), rng)[0]

    client = LocalRnd(MultiplyShift.draw(1, 4, stream(0, "hashes")), 1.0)

    def report(key: int, rng: np.random.Generator) -> Any:
        slots = client.assign(1, rng)
        return int(slots[0]), int(client.report(np.array([key], dtype=np.uint64), slots, rng)[0])

    def hashed(key: int, rng: np.random.Generator) -> Any:
        return int(OLH(1.0).report(np.array([key], dtype=np.uint64), stream(0, "public"), rng).values[0])

    rappor = Rappor(n_bits=4)
    drawn = rappor.draw_hashes(stream(0, "hashes"))

    def permanent_and_fresh(held: int, rng: np.random.Generator) -> Any:
        kept = drawn._respond(np.array([held], dtype=np.uint64), rappor.permanent_one(0), rappor.permanent_one(1), rng)
        return int(drawn._respond(kept, rappor.one_from_zero, rappor.one_from_one, rng)[0])

    tree, per_step = BinaryMechanism(4, 1.0), PerStepLaplace(3, 1.0)

    def sums(first: int, rng: np.random.Generator) -> Any:
        return tree.release([first, 0, 0, 0], rng)[0]

    def means(sample: int, rng: np.random.Generator) -> Any:
        return per_step.release(np.repeat(one_user, 3), [sample] * 3, rng)

    def median(mean: float, rng: np.random.Generator) -> float:
        return private_median.draw(np.array([mean, mean, 0.1, 0.9]), 0.8, 4, rng)

    once = AboveThreshold.calibrated(1.0, 1e-6, 1, 0.0, composition="basic")

    def halting(move: int, rng: np.random.Generator) -> int:
        """The place of the first yes among queries at 0 that the user moves by one."""
        state = once.start(rng)
        for place in range(6):
            state, release = once.step(state, move * (-1) ** (place == 0), rng)
            if release.above:
                return place
        return 6

    monitor = ThresholdMonitorEvolving.calibrated(calibrate(1.0, 1e-6, 3), threshold=3.0)
    weights = histogram(1.0, 1e-6, 5, 10)

    def shown(element: int, rng: np.random.Generator) -> Any:
        return weights.release(np.eye(2, dtype=np.int64)[element] * 3, rng).tolist()

    return (
        BlackBox("sign_flip", flip, (-1, 1)),
        BlackBox("freq_oracle", report, (0, 1, 2)),
        BlackBox("olh", hashed, (0, 1, 2)),
        BlackBox("rappor_report", permanent_and_fresh, (1, 2)),
        BlackBox("binary", sums, (0, 1)),
        BlackBox("per_step_even", means, (0, 1)),
        BlackBox("private_median", median, (0.1, 0.9)),
        BlackBox("above_threshold_once", halting, (0, 1)),
        BlackBox("threshold_monitor_exact_replacement", failures.monitor(monitor, 6, 2), (0, 1)),
        BlackBox("histogram_laplace", shown, (0, 1)),
    )
