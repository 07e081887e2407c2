"""What one would do without ThresholdMonitor: repeat AboveThreshold, a histogram in every step, or find the steps first.

| method | how the budget is spent | cost grows with |
|---|---|---|
| AboveThreshold | `above_threshold`, all kinds | reports |
| a histogram in every step | `histograms`, all kinds | steps |
| find the step, then histogram | `find_step`: AboveThreshold on the largest weight, a histogram of what it finds | both |

All are (epsilon, delta)-differentially private for replacement of one user's inputs in all steps.
Thresholds keep elements of weight zero out with probability 1 - beta / 2 as `shifting.plan` does. The simulations have the
law of the methods' `step`s on a `ShiftingStream`, at a cost of events, reports and false candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import exprel

from evolvingdp.core import checks
from evolvingdp.sparse_vector import noise as noises
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import Histogram
from evolvingdp.sparse_vector.noise import rare_count
from evolvingdp.sparse_vector.shifting_simulation import Outcome, crossing
from evolvingdp.sparse_vector.streams.example import ShiftingStream

SPLITS = (None, 0.05, 0.1, 0.2, 0.3, 0.4)  # of epsilon, for the threshold's noise; None: as printed


@checks.plain
def repeated_threshold(
    epsilon: float,
    delta: float,
    reports: int,
    queries: int,
    *,
    kind: str = "repeated",
    beta: float = 0.05,
    split: float | None = None,
    moved: int = 0,
) -> AboveThreshold:
    """AboveThreshold until `reports` yeses, with the lowest threshold that keeps `queries` queries of value zero silent.

    The probability that any of them is answered yes is at most beta / 2, for `reports` equal stretches, each with its
    own threshold noise.
    """
    checks.integer_at_least(1, queries=queries)
    checks.probability(beta=beta)
    method = AboveThreshold.calibrated(epsilon, delta, reports, 0.0, kind=kind, split=split, moved=moved)
    return silent(method, queries, beta)


def silent(method: AboveThreshold, queries: int, beta: float) -> AboveThreshold:
    """`method` with the threshold of `repeated_threshold`."""
    q, r = method.query_scale, method.threshold_scale
    if r == 0:
        return replace(method, threshold=noises.isf(method.noise, beta / (2 * queries), q))
    stretches = method.reports if method.refreshed else 1
    log = math.log(queries / stretches) - (math.log(2) if method.noise == "laplace" else 0.0)

    def excess(threshold: float) -> float:
        return stretches * _some_yes(log - threshold / q, q, r, method.noise) - beta / 2

    high = q * (log + 1) + (q + r) * math.log(4e6 * stretches / beta)
    return replace(method, threshold=float(brentq(excess, 0.0, high, rtol=1e-10)))


def _some_yes(log: float, q: float, r: float, noise: str) -> float:
    """E[min(1, e^(log - shift / q))] over the threshold's noise `shift` of scale r; 1 where it is above about 1/2."""
    first = q * log  # up to this shift it is 1
    if noise == "exponential":
        return math.exp(log) * q / (q + r) if first <= 0 else 1 - r / (q + r) * math.exp(-first / r)
    if first >= 0:
        return 1.0
    gap = -first * (1 / q - 1 / r)
    grown = math.exp(log) * float(exprel(gap)) if gap < 1 else (math.exp(log + gap) - math.exp(log)) / gap
    below = -first * grown  # e^log times the integral of e^(shift / r - shift / q) up to 0
    return math.exp(first / r) / 2 + (below + math.exp(log) * q * r / (q + r)) / (2 * r)


@checks.plain
def threshold_error(method: AboveThreshold, n_events: int, beta: float = 0.05) -> float:
    """The weight from which `n_events` events are all found with probability 1 - beta / 2, by a union bound."""
    checks.integer_at_least(1, n_events=n_events)
    checks.probability(beta=beta)
    share, scale = beta / (2 * n_events), method.query_scale + method.threshold_scale
    gap = brentq(lambda gap: 1 - method.crossing(-gap) - share, -scale, 2 * scale * math.log(10 / share), xtol=1e-9 * scale)
    return method.threshold + float(gap)


@checks.plain
def best_threshold(
    epsilon: float,
    delta: float,
    reports: int,
    queries: int,
    kinds: tuple[str, ...],
    beta: float = 0.05,
    *,
    moved: int = 0,
    goal: Callable[[AboveThreshold], float] | None = None,
) -> AboveThreshold:
    """The kind of `kinds` and the split with the smallest `goal`; else `threshold_error` for `reports` events."""
    methods = [
        repeated_threshold(
            epsilon, delta, reports, queries, kind=kind, beta=beta, split=split, moved=moved if kind == "gaussian" else 0
        )
        for kind in kinds
        for split in (SPLITS if kind != "gaussian" else (None,))
    ]
    return min(methods, key=goal or (lambda method: threshold_error(method, reports, beta)))


def simulate_histogram(method: Histogram, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of a histogram in every step; weights of different elements and steps are independent given the data."""
    absent = 0 if method.stable else rare_count(stream.absent_queries, float(method.sf(method.threshold)), rng)
    single = rare_count(stream.single_queries, float(method.sf(method.threshold - 1)), rng)
    return Outcome(crossing(method.sf, method.threshold, stream, rng), absent, single)


def simulate_threshold(method: AboveThreshold, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of repeated AboveThreshold, asked for every element in every step in order of the elements' numbers."""
    events = np.arange(stream.n_events, dtype=np.int64)
    asked = stream.n_events + stream.n_users if method.stable else stream.n_elements  # where a yes can be, in a step
    places = stream.steps * asked + events

    def present(place: int) -> bool:
        step, element = divmod(place, asked)
        user = element - stream.n_events
        if not 0 <= user < stream.n_users:
            return False
        event = stream.event_at(step)
        return event is None or event not in stream.events_of(user)

    return _scan(method, stream.sizes, places, stream.horizon * asked, present, rng)


def simulate_find_step(method: FindStep, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of "find the step, then histogram": AboveThreshold is asked for the largest weight of every step."""
    shown = method.shown
    steps = _scan(method.search, stream.sizes, stream.steps, stream.horizon, lambda _: True, rng)
    found = steps.found & crossing(shown.sf, shown.threshold, stream, rng)
    holders = steps.single * stream.n_users + int((stream.n_users - stream.sizes[steps.found]).sum())
    return Outcome(found, 0, rare_count(holders, float(shown.sf(shown.threshold - 1)), rng))


def ask(method: AboveThreshold, values: Any, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The answers to queries of these `values` (queries,), one after the other; no once it has halted."""
    return _scan(method, values, np.arange(len(values)), len(values), lambda _: False, rng).found


def _scan(
    method: AboveThreshold,
    values: Any,
    places: Any,
    queries: int,
    present: Callable[[int], bool],
    rng: np.random.Generator,
) -> Outcome:
    """AboveThreshold over `queries` queries: `values` at `places` (sorted), elsewhere 1 where `present`, else 0.

    Only the events that cross the lowest of all limits are looked at one by one. Between them, candidates for a false yes
    come at the rate of value 1, exponential gaps rounded down, and are thinned to that of value 0.
    """
    shifts = noises.draw(method.noise, method.threshold_scale, rng, size=method.reports if method.refreshed else 1)
    limits = np.resize(method.threshold + shifts, method.reports)  # of each stretch up to a yes
    noisy = values + noises.draw(method.noise, method.query_scale, rng, size=len(values))
    high, low = (method.sf(limits - value) for value in (1, 0))
    if method.stable:
        low = np.zeros_like(low)
        noisy = np.where(np.asarray(values) > 0, noisy, -math.inf)
    rates = -np.log1p(-np.minimum(np.maximum(high, 1e-300), 1 - 1e-16))
    gaps = (rng.standard_exponential(method.reports) / rates).tolist()
    loud = np.flatnonzero(noisy >= limits.min())
    heard = iter(zip(loud.tolist(), places[loud].tolist(), noisy[loud].tolist(), strict=True))
    found = np.zeros(len(values), dtype=bool)
    false = {True: 0, False: 0}
    place, hit = 0, next(heard, None)
    for stretch, limit in enumerate(limits.tolist()):
        while hit is not None and (hit[1] < place or hit[2] < limit):
            hit = next(heard, None)
        end = queries if hit is None else hit[1]
        wrong, gap = None, gaps[stretch]
        while gap < end - place and wrong is None:
            place += int(gap)
            index = int(np.searchsorted(places, place))
            if index == len(places) or places[index] != place:
                held = present(place)
                if held or rng.random() * high[stretch] < low[stretch]:
                    wrong = held
            place += 1
            gap = rng.standard_exponential() / rates[stretch]
        if wrong is not None:
            false[wrong] += 1
        elif hit is None:
            break
        else:
            found[hit[0]] = True
            place = end + 1
    return Outcome(found, false[False], false[True])
