"""All methods for shifting heavy hitters at one privacy budget, ready for a stream: plans, budgets of reports, simulations.

AboveThreshold has to be told how many reports it may make. It is given the best of three numbers (the C events, B and C,
all events) with the best threshold (the lowest, or one between two sizes) by expected recall. That favours it: the choice
looks at the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from evolvingdp.sparse_vector import baselines, histograms
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.calibration import Calibration, calibrate
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.shifting import Plan, plan
from evolvingdp.sparse_vector.shifting_simulation import Outcome, simulate
from evolvingdp.sparse_vector.streams import ShiftingStream, example_sizes

MONITOR = "ThresholdMonitor"
THEOREM = "ThresholdMonitor, Theorem 3.2"
REPEATED = "AboveThreshold, repeated"
RENYI = "AboveThreshold, Rényi"
FIND = "find the step, then histogram"
HISTOGRAMS = {"histogram, Laplace": "laplace", "histogram, Gaussian": "gaussian", "histogram, stable": "stable"}
METHODS = (MONITOR, THEOREM, REPEATED, RENYI, FIND, *HISTOGRAMS)
TEXTBOOK = ("basic", "advanced", "optimal", "single")

Simulation = Callable[[ShiftingStream, np.random.Generator], Outcome]


@dataclass(frozen=True)
class Target:
    """What every method has to promise, and the domain."""

    epsilon: float
    delta: float
    beta: float
    n_elements: int


@lru_cache(maxsize=256)
def calibrated(target: Target, reports: int, method: str = "exact") -> Calibration:
    return calibrate(target.epsilon, target.delta, reports, method=method)


def example_plan(target: Target, n_users: int, reports: int = 3) -> tuple[Plan, dict[str, int]]:
    """ThresholdMonitor's plan for Example 1.4 and the sizes of its groups, of which the smallest is the plan's error."""
    events = 1000
    for _ in range(20):
        found = plan(calibrated(target, reports), n_users, target.n_elements, events, target.beta)
        sizes = example_sizes(n_users, found.error)
        events = max(1, sum(n_users // size for size in sizes.values()))
    return found, sizes


def smallest_users(target: Target, reports: int, method: str = "theorem") -> float:
    """From how many users on the groups C of Example 1.4 are all found, but for probability beta / 2; to 0.1 %."""
    low, high = 2.0, 60.0  # powers of ten
    while high - low > 4e-4:
        middle = (low + high) / 2
        n_users = round(10**middle)
        size = example_sizes(n_users, 1.0)["C"]
        events = max(1, n_users // size)
        error = plan(calibrated(target, reports, method), n_users, target.n_elements, events, target.beta).error
        low, high = (low, middle) if size >= error else (middle, high)
    return float(10**high)


def example_stream(target: Target, n_users: int, rng: np.random.Generator, reports: int = 3) -> ShiftingStream:
    sizes = example_plan(target, n_users, reports)[1]
    return ShiftingStream.make(n_users, sizes, rng, n_elements=target.n_elements)


def monitor(target: Target, stream: ShiftingStream, reports: int, method: str = "exact") -> Plan:
    found = calibrated(target, reports, method)
    return plan(found, stream.horizon, target.n_elements, stream.n_events, target.beta)


def repeated(target: Target, stream: ShiftingStream, compositions: tuple[str, ...], queries: int) -> AboveThreshold:
    """AboveThreshold with the best composition and number of reports for this stream."""
    counts = np.array([one.n_groups for one in stream.families])
    sizes = np.array([one.size for one in stream.families])

    def expected_recall(method: AboveThreshold) -> float:
        gaps = method.threshold - sizes
        crossing = np.array([_crossing(gap, method.query_scale, method.threshold_scale) for gap in gaps.tolist()])
        return float(np.mean(crossing) * min(1.0, method.reports / max(float(crossing @ counts), 1e-9)))

    budgets = {int(counts[first:].sum()) for first in range(len(counts))}
    options = []
    for c in budgets:
        lowest = baselines.best_composition(target.epsilon, target.delta, c, queries, c, compositions, target.beta)[1]
        between = ((sizes[:-1] + sizes[1:]) / 2).tolist()
        options += [lowest, *(replace(lowest, threshold=t) for t in between if t > lowest.threshold)]
    return max(options, key=expected_recall)


def _crossing(gap: float, query_scale: float, threshold_scale: float) -> float:
    beyond = baselines.laplace_difference_sf(abs(gap), query_scale, threshold_scale)
    return beyond if gap > 0 else 1 - beyond


def simulations(target: Target, stream: ShiftingStream, reports: int = 3) -> dict[str, Simulation]:
    """A function (stream, rng) -> Outcome for each of `METHODS`."""
    exact, printed = monitor(target, stream, reports).monitor, monitor(target, stream, reports, "theorem").monitor
    queries = stream.horizon * target.n_elements
    textbook = repeated(target, stream, TEXTBOOK, queries)
    renyi = repeated(target, stream, ("renyi",), queries)
    half = Target(target.epsilon / 2, target.delta / 2, target.beta, target.n_elements)
    find = repeated(half, stream, TEXTBOOK, stream.horizon)
    shown = histograms.histogram(half.epsilon, half.delta, find.reports, target.n_elements, kind="stable")
    both = FindStep(find, shown, target.n_elements)
    result: dict[str, Simulation] = {
        MONITOR: lambda data, rng: simulate(exact, data, rng),
        THEOREM: lambda data, rng: simulate(printed, data, rng),
        REPEATED: lambda data, rng: baselines.simulate_threshold(textbook, data, rng),
        RENYI: lambda data, rng: baselines.simulate_threshold(renyi, data, rng),
        FIND: lambda data, rng: baselines.simulate_find_step(both, data, rng),
    }
    for name, kind in HISTOGRAMS.items():
        method = histograms.histogram(
            target.epsilon, target.delta, stream.horizon, target.n_elements, kind=kind, beta=target.beta
        )
        result[name] = partial(baselines.simulate_histogram, method)
    return result
