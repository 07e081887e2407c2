"""All methods for shifting heavy hitters at one privacy budget, ready for a stream: plans, budgets of reports, simulations.

AboveThreshold has to be told how many reports it may make. It is given the best of three numbers (the C events, B and C,
all events) with the best threshold (the lowest, or one between two sizes) by expected recall. That favours it: the choice
looks at the stream (at its sizes, not at a run). So does the best split between finding a step and showing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from evolvingdp.sparse_vector import baselines, histograms
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.calibration import Calibration, calibrate
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.target import Target
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.shifting import Plan, plan
from evolvingdp.sparse_vector.shifting_simulation import Outcome, simulate
from evolvingdp.sparse_vector.streams import ShiftingStream, example_sizes

FAMILIES = ("A", "B", "C")  # of Example 1.4
MONITOR = "ThresholdMonitor"
THEOREM = "ThresholdMonitor, Theorem 3.2"
REPEATED = "AboveThreshold, repeated"
RENYI = "AboveThreshold, Rényi"
FIND = "find the step, then histogram"
FIND_BEST = "find the step, Rényi, best split"
HISTOGRAMS = {"histogram, Laplace": "laplace", "histogram, Gaussian": "gaussian", "histogram, stable": "stable"}
METHODS = (MONITOR, THEOREM, REPEATED, RENYI, FIND, FIND_BEST, *HISTOGRAMS)
CURVE = (MONITOR, REPEATED, RENYI, "histogram, Gaussian")  # of error against events
CURVE_HORIZON = 10**7
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of epsilon, for the search
TEXTBOOK = ("basic", "advanced", "optimal", "single")

Simulation = Callable[[ShiftingStream, np.random.Generator], Outcome]


@lru_cache(maxsize=256)
def calibrated(target: Target, reports: int, method: str = "exact") -> Calibration:
    return calibrate(target.epsilon, target.delta, reports, method=method)


def example_plan(target: Target, n_users: int, reports: int = 3) -> tuple[Plan, dict[str, int]]:
    """ThresholdMonitor's plan for Example 1.4 and the sizes of its groups, of which the smallest is the plan's error."""
    events = 1000
    for _ in range(20):
        found = plan(calibrated(target, reports), n_users, target.n_elements, events, target.beta)
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
        error = plan(calibrated(target, reports, method), n_users, target.n_elements, events, target.beta).error
        low, high = (low, middle) if error <= size <= n_users else (middle, high)
    return float(10**high)


def example_stream(target: Target, n_users: int, rng: np.random.Generator, reports: int = 3) -> ShiftingStream:
    sizes = example_plan(target, n_users, reports)[1]
    return ShiftingStream.make(n_users, sizes, rng, n_elements=target.n_elements)


def monitor(target: Target, stream: ShiftingStream, reports: int, method: str = "exact") -> Plan:
    found = calibrated(target, reports, method)
    return plan(found, stream.horizon, target.n_elements, stream.n_events, target.beta)


def every_step(target: Target, horizon: int, method: str) -> histograms.Histogram:
    kind = HISTOGRAMS[method]
    return histograms.histogram(target.epsilon, target.delta, horizon, target.n_elements, kind=kind, beta=target.beta)


def repeated(target: Target, stream: ShiftingStream, compositions: tuple[str, ...], queries: int) -> AboveThreshold:
    """AboveThreshold with the best composition, threshold and number of reports for this stream."""
    options = _options(target, stream, compositions, queries)
    return max(options, key=lambda method: float(np.mean(_expected(method, stream))))


def find_step(target: Target, stream: ShiftingStream, compositions: tuple[str, ...], kind: str, share: float) -> FindStep:
    """Find the step with `share` of epsilon for the search, which is the best for this stream on its own."""
    return _shown(target, repeated(_part(target, share), stream, compositions, stream.horizon), kind, share)


def best_find_step(
    target: Target, stream: ShiftingStream, compositions: tuple[str, ...], kind: str, shares: tuple[float, ...]
) -> FindStep:
    """The share of epsilon and the search with the largest expected recall of both together."""
    options = [
        _shown(target, search, kind, share)
        for share in shares
        for search in _options(_part(target, share), stream, compositions, stream.horizon)
    ]
    if not options:
        raise ValueError(f"shares must hold at least one share, got {shares!r}")

    def recall(both: FindStep) -> float:
        return float(np.mean(_expected(both.search, stream) * both.shown.sf(both.shown.threshold - stream.family_sizes)))

    return max(options, key=recall)


def _part(target: Target, share: float) -> Target:
    """What the search has to promise that gets `share` of epsilon."""
    return Target(share * target.epsilon, target.delta / 2, target.beta, target.n_elements)


def _shown(target: Target, search: AboveThreshold, kind: str, share: float) -> FindStep:
    left = (1 - share) * target.epsilon
    shown = _histogram(left, target.delta / 2, search.reports, target.n_elements, kind)
    return FindStep(search, shown, target.n_elements)


@lru_cache(maxsize=256)
def _histogram(epsilon: float, delta: float, reports: int, n_elements: int, kind: str) -> histograms.Histogram:
    return histograms.histogram(epsilon, delta, reports, n_elements, kind=kind)


def _options(
    target: Target, stream: ShiftingStream, compositions: tuple[str, ...], queries: int
) -> Iterator[AboveThreshold]:
    """The best composition for three numbers of reports, each at the lowest threshold and at those between two sizes."""
    counts = np.array([one.n_groups for one in stream.families])
    sizes = stream.family_sizes
    for c in {int(counts[first:].sum()) for first in range(len(counts))}:
        lowest = baselines.best_composition(target.epsilon, target.delta, c, queries, compositions, target.beta)
        yield lowest
        for threshold in ((sizes[:-1] + sizes[1:]) / 2).tolist():
            if threshold > lowest.threshold:
                yield replace(lowest, threshold=threshold)


def _expected(method: AboveThreshold, stream: ShiftingStream) -> NDArray[np.float64]:
    """Of each family, the share of events that are expected to be reported."""
    scales = method.query_scale, method.threshold_scale
    crossing = np.array([baselines.laplace_difference_sf(method.threshold - one.size, *scales) for one in stream.families])
    wanted = float(crossing @ np.array([one.n_groups for one in stream.families]))
    return np.asarray(crossing * min(1.0, method.reports / max(wanted, 1e-9)))


def simulations(target: Target, stream: ShiftingStream, reports: int = 3) -> dict[str, Simulation]:
    """A function (stream, rng) -> Outcome for each of `METHODS`."""
    exact, printed = monitor(target, stream, reports).monitor, monitor(target, stream, reports, "theorem").monitor
    queries = stream.horizon * target.n_elements
    textbook = repeated(target, stream, TEXTBOOK, queries)
    renyi = repeated(target, stream, ("renyi",), queries)
    find = find_step(target, stream, TEXTBOOK, "stable", 0.5)
    best = best_find_step(target, stream, ("single", "renyi"), "stable gaussian", SHARES)
    result: dict[str, Simulation] = {
        MONITOR: partial(simulate, exact),
        THEOREM: partial(simulate, printed),
        REPEATED: partial(baselines.simulate_threshold, textbook),
        RENYI: partial(baselines.simulate_threshold, renyi),
        FIND: partial(baselines.simulate_find_step, find),
        FIND_BEST: partial(baselines.simulate_find_step, best),
    }
    for name in HISTOGRAMS:
        result[name] = partial(baselines.simulate_histogram, every_step(target, stream.horizon, name))
    return result
