"""Shifting heavy hitters by all methods, simulated exactly at a cost of the events and the false reports alone.

**What is equal.** The law of (which events are reported, how many elements that nobody holds, how many that one user holds),
to within 1e-12 in total variation for the Poisson law that stands for a binomial of success probability below 1e-12.

Absent elements are reported independently with the closed-form tail, so their number is binomial. Elements of one user are
drawn as candidates and placed at random; only users with a candidate can have counted more than their events. Where
`reports` is at least the number of events that a user is in, nobody else is deleted before its last event and the others'
counters need not be kept; else all counters are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.sampling import rare_count
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import Histogram
from evolvingdp.sparse_vector.streams.example import ShiftingStream
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


@dataclass(frozen=True, eq=False)
class Outcome:
    """`found` (events,): which were reported; `absent`, `single`: reports of elements of weight zero, of one user."""

    found: NDArray[np.bool_]
    absent: int
    single: int

    def recall(self, stream: ShiftingStream) -> dict[str, float]:
        """The share of each family's events that was found."""
        return {one.name: float(self.found[stream.family == number].mean()) for number, one in enumerate(stream.families)}


def simulate(monitor: ThresholdMonitorEvolving, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of `shifting.solve` on `stream`.  Raises ValueError where all counters are needed and do not fit, and where
    users would be deleted for the steps that they are in."""
    noise, threshold, limit = monitor.noise, monitor.threshold, monitor.reports
    if monitor.moved is not None and monitor.moved < stream.horizon:
        raise ValueError(f"moved must be at least the steps, {stream.horizon}, got {monitor.moved}")
    absent_share, single_share = noise.sf(threshold - np.array([0, 1])).tolist()
    if monitor.unlisted:
        absent_share = 0.0
    absent = rare_count(stream.absent_queries, absent_share, rng)
    users, steps = _places(stream, rare_count(stream.single_queries, single_share, rng), rng)
    keep_all = limit < len(stream.families)
    holders: dict[int, list[int]] = {}  # of the events of watched users: their places
    if keep_all:
        checks.fits_in_memory("a counter for each user", 8.0 * stream.n_users, "raise reports or lower n_users")
        found, events, watched = np.zeros(stream.n_events, dtype=bool), np.arange(stream.n_events), np.arange(stream.n_users)
    else:
        found, watched = crossing(noise, threshold, stream, rng), np.unique(users)
        for place, user in enumerate(watched.tolist()):
            for event in stream.events_of(user):
                holders.setdefault(event, []).append(place)
        events = np.array(sorted(holders), dtype=np.int64)
    counted, single = np.zeros(len(watched), dtype=np.int64), 0
    noisy = stream.sizes[events] + noise.draw(len(events), rng)
    order = np.argsort(np.concatenate([stream.steps[events], steps]), kind="stable")
    for item in order.tolist():
        if item >= len(events):
            place = int(np.searchsorted(watched, users[item - len(events)]))
            if counted[place] < limit or rng.random() * single_share < absent_share:
                counted[place] += 1
                single += 1
            continue
        event = int(events[item])
        members = stream.members(event) if keep_all else np.array(holders[event])
        gone = np.count_nonzero(counted[members] >= limit)
        if keep_all or gone:
            found[event] = noisy[item] - gone >= threshold
        if found[event]:
            counted[members] += 1
    return Outcome(found, absent, single)


def crossing(noise: Any, threshold: float, stream: ShiftingStream, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(events,): whether each event's size and a draw of `noise` reach the threshold, independently.

    The rarer of found and missed are drawn by number and place, family by family.
    """
    found = np.zeros(stream.n_events, dtype=bool)
    for events, share in zip(stream.events_in, noise.sf(threshold - stream.family_sizes).tolist(), strict=True):
        rarer = rng.binomial(len(events), min(share, 1 - share))
        found[events] = share > 0.5
        if rarer:
            found[events[rng.choice(len(events), size=rarer, replace=False, shuffle=False)]] = share <= 0.5
    return found


def _places(stream: ShiftingStream, count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`count` different (user, step) at which the user holds an element of its own, uniformly: users and steps."""
    taken: set[tuple[int, int]] = set()
    while len(taken) < count:
        user, step = int(rng.integers(stream.n_users)), int(rng.integers(stream.horizon))
        if stream.holds_own(user, step):
            taken.add((user, step))
    places = np.array(sorted(taken), dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def simulate_histogram(method: Histogram, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of a histogram in every step; weights of different elements and steps are independent given the data."""
    absent_share, single_share = method.noise.sf(method.threshold - np.array([0.0, 1.0])).tolist()
    absent = 0 if method.stable else rare_count(stream.absent_queries, absent_share, rng)
    single = rare_count(stream.single_queries, single_share, rng)
    return Outcome(crossing(method.noise, method.threshold, stream, rng), absent, single)


def simulate_threshold(method: AboveThreshold, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of repeated AboveThreshold, asked for every element in every step in order of the elements' numbers."""
    events = np.arange(stream.n_events, dtype=np.int64)
    asked = stream.n_events + stream.n_users if method.stable else stream.n_elements  # where a yes can be, in a step

    def present(place: int) -> bool:
        step, element = divmod(place, asked)
        user = element - stream.n_events
        return 0 <= user < stream.n_users and stream.holds_own(user, step)

    return _scan(method, stream.sizes, stream.steps * asked + events, stream.horizon * asked, present, rng)


def simulate_find_step(method: FindStep, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of "find the step, then histogram": AboveThreshold is asked for the largest weight of every step."""
    shown = method.shown
    steps = _scan(method.search, stream.sizes, stream.steps, stream.horizon, lambda _: True, rng)
    found = steps.found & crossing(shown.noise, shown.threshold, stream, rng)
    holders = steps.single * stream.n_users + int((stream.n_users - stream.sizes[steps.found]).sum())
    return Outcome(found, 0, rare_count(holders, float(shown.noise.sf(shown.threshold - 1)), rng))


def ask(method: AboveThreshold, values: ArrayLike, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The answers to queries of these `values` (queries,), one after the other; no once it has halted."""
    array = np.asarray(values)
    return _scan(method, array, np.arange(len(array)), len(array), lambda _: False, rng).found


def _scan(
    method: AboveThreshold,
    values: NDArray[Any],
    places: NDArray[np.int64],
    queries: int,
    present: Callable[[int], bool],
    rng: np.random.Generator,
) -> Outcome:
    """AboveThreshold over `queries` queries: `values` at `places` (sorted), elsewhere 1 where `present`, else 0.

    Only the events that cross the lowest of all limits are looked at one by one. Between them, candidates for a false yes
    come at the rate of value 1, exponential gaps rounded down, and are thinned to that of value 0.
    """
    stretches = method.reports if method.refreshed else 1
    shifts = np.zeros(stretches) if method.shift is None else method.shift.draw(stretches, rng)
    limits = np.resize(method.threshold + shifts, method.reports)  # of each stretch up to a yes
    noisy = values + method.noise.draw(len(values), rng)
    high, low = (method.noise.sf(limits - value) for value in (1, 0))
    if method.stable:
        low, noisy = np.zeros_like(low), np.where(values > 0, noisy, -np.inf)
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
