"""All methods for shifting heavy hitters at one privacy budget, ready for a stream: plans, budgets of reports, simulations.

AboveThreshold has to be told how many reports it may make. It is given the best of three numbers (the C events, B and C,
all events) with the best threshold (the lowest, or one between two sizes) and split, by expected recall. That favours it:
the choice looks at the stream (at its sizes, not at a run).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.sparse_vector import histograms, shifting_simulation
from evolvingdp.sparse_vector.above_threshold import SPLITS, AboveThreshold, best_threshold
from evolvingdp.sparse_vector.calibration import Calibration, calibrate
from evolvingdp.sparse_vector.shifting import Plan, planned_monitor
from evolvingdp.sparse_vector.shifting_simulation import Outcome, simulate
from evolvingdp.sparse_vector.stable import stable_monitor
from evolvingdp.sparse_vector.streams.example import ShiftingStream, example_sizes
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

FAMILIES = ("A", "B", "C")  # of Example 1.4
MONITOR = "ThresholdMonitor"
STABLE = "StableMonitor"
THEOREM = "ThresholdMonitor, Theorem 3.2"
REPEATED = "AboveThreshold, repeated"
ONE = "AboveThreshold, one threshold"
GAUSSIAN = "AboveThreshold, Gaussian"
HISTOGRAMS = {"histogram, Gaussian": "gaussian", "histogram, Gaussian, stable": "stable gaussian"}
METHODS = (MONITOR, STABLE, THEOREM, REPEATED, ONE, GAUSSIAN, *HISTOGRAMS)
CURVE = (MONITOR, REPEATED, GAUSSIAN, "histogram, Gaussian")  # of error against events
CURVE_HORIZON = 10**7
SEARCHES = {REPEATED: "repeated", ONE: "one", GAUSSIAN: "gaussian"}  # kinds of AboveThreshold

Simulation = partial[Outcome]  # of a method; takes a stream and a generator


@dataclass(frozen=True)
class Target:
    """What every method has to promise, and the domain."""

    epsilon: float
    delta: float
    beta: float
    n_elements: int


def target_of(params: Any) -> Target:
    return Target(params.epsilon, params.delta, params.beta, 2**params.domain_bits)


@lru_cache(maxsize=256)
def calibrated(target: Target, reports: int, method: str = "exact") -> Calibration:
    return calibrate(target.epsilon, target.delta, reports, method=method)


def example_plan(target: Target, n_users: int, reports: int = 3) -> tuple[Plan, dict[str, int]]:
    """ThresholdMonitor's plan for Example 1.4 and the sizes of its groups, of which the smallest is the plan's error."""
    events = 1000
    for _ in range(20):
        found = planned_monitor(calibrated(target, reports), n_users, target.n_elements, events, target.beta)
        sizes = example_sizes(n_users, found.error)
        before, events = events, max(1, sum(n_users // size for size in sizes.values()))
        if events == before:
            break
    return found, sizes


def smallest_users(target: Target, reports: int, method: str = "theorem") -> float:
    """From how many users on the groups C of Example 1.4 are all found, but for probability beta / 2; to 0.1 %."""
    low, high = 2.0, 60.0  # powers of ten
    while high - low > 4e-4:
        middle = (low + high) / 2
        n_users = round(10**middle)
        size = example_sizes(n_users, 1.0)["C"]
        events = max(1, n_users // size)
        error = planned_monitor(calibrated(target, reports, method), n_users, target.n_elements, events, target.beta).error
        low, high = (low, middle) if error <= size <= n_users else (middle, high)
    return float(10**high)


def example_stream(target: Target, n_users: int, rng: np.random.Generator, reports: int = 3) -> ShiftingStream:
    sizes = example_plan(target, n_users, reports)[1]
    return ShiftingStream.make(n_users, sizes, rng, n_elements=target.n_elements)


def monitor(target: Target, stream: ShiftingStream, reports: int, method: str = "exact") -> Plan:
    return monitor_plan(target, stream.horizon, reports, stream.n_events, method)


def monitor_plan(target: Target, horizon: int, reports: int, n_events: int, method: str = "exact") -> Plan:
    return planned_monitor(calibrated(target, reports, method), horizon, target.n_elements, n_events, target.beta)


def every_step(target: Target, horizon: int, method: str) -> histograms.Histogram:
    kind = HISTOGRAMS[method]
    return histograms.histogram(target.epsilon, target.delta, horizon, target.n_elements, kind=kind, beta=target.beta)


def repeated(target: Target, stream: ShiftingStream, name: str) -> AboveThreshold:
    """AboveThreshold of this name with the best composition, split, threshold and number of reports for this stream."""
    return max(_options(target, stream, name), key=lambda method: float(np.mean(_expected(method, stream))))


def lowest(
    target: Target,
    name: str,
    reports: int,
    horizon: int,
    queries: int,
    goal: Callable[[AboveThreshold], float] | None = None,
) -> list[AboveThreshold]:
    """AboveThreshold for this many reports, the least `goal`, with the lowest threshold; but for Algorithm 2 also as stable."""
    moved = (2 if queries > horizon else 1) * horizon  # a user moves two elements, or the largest weight
    privacy = target.epsilon, target.delta, reports
    found = [best_threshold(*privacy, queries, (SEARCHES[name],), target.beta, moved=moved, goal=goal)]
    if name == GAUSSIAN and queries > horizon:
        found.append(AboveThreshold.stable_gaussian(*privacy, moved))
    if name == ONE and queries > horizon:
        found += [AboveThreshold.stable_one(*privacy, moved, split=split) for split in SPLITS]
    return found


def _counts(stream: ShiftingStream) -> set[int]:
    """Numbers of reports: the events of the last families."""
    counts = np.array([one.n_groups for one in stream.families])
    return {int(counts[first:].sum()) for first in range(len(counts))}


def _options(target: Target, stream: ShiftingStream, name: str) -> Iterator[AboveThreshold]:
    """For three numbers of reports, each at the lowest threshold and at those between two sizes."""
    queries = stream.horizon * target.n_elements
    for c in _counts(stream):
        for method in lowest(target, name, c, stream.horizon, queries):
            yield from _raised(method, stream)


def _raised(method: AboveThreshold, stream: ShiftingStream) -> Iterator[AboveThreshold]:
    yield method
    sizes = stream.family_sizes
    for threshold in ((sizes[:-1] + sizes[1:]) / 2).tolist():
        if threshold > method.threshold:
            yield replace(method, threshold=threshold)


def _expected(method: AboveThreshold, stream: ShiftingStream) -> NDArray[np.float64]:
    """Of each family, the share of events that are expected to be reported."""
    crossing = np.array([method.crossing(method.threshold - one.size) for one in stream.families])
    wanted = float(crossing @ np.array([one.n_groups for one in stream.families]))
    return np.asarray(crossing * min(1.0, method.reports / max(wanted, 1e-9)))


def stable(target: Target, horizon: int, reports: int, noise: str = "best") -> ThresholdMonitorEvolving:
    return stable_monitor(target.epsilon, target.delta, reports, horizon, noise)


def simulations(target: Target, stream: ShiftingStream, reports: int = 3) -> dict[str, Simulation]:
    """A function (stream, rng) -> Outcome for each of `METHODS`, for all streams of these sizes."""
    exact, printed = monitor(target, stream, reports).monitor, monitor(target, stream, reports, "theorem").monitor
    result: dict[str, Simulation] = {
        MONITOR: partial(simulate, exact),
        STABLE: partial(simulate, stable(target, stream.horizon, reports)),
        THEOREM: partial(simulate, printed),
    }
    for name in SEARCHES:
        result[name] = partial(shifting_simulation.simulate_threshold, repeated(target, stream, name))
    for name in HISTOGRAMS:
        result[name] = partial(shifting_simulation.simulate_histogram, every_step(target, stream.horizon, name))
    return result
