"""Shifting heavy hitters by all methods, simulated exactly at a cost of the events and the false reports alone.

**What is equal.** The law of (which events are reported, how many elements that nobody holds, how many that one user holds),
to within 1e-12 in total variation. Reports of elements that nobody or one user holds are drawn by number. Where `reports` is
at least the number of events that a user is in, only the counters of users with a report of their own element are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.sampling import others, rare_count
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
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


@checks.draws
def simulate(monitor: ThresholdMonitorEvolving, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of `shifting.solve` on `stream`.  Raises ValueError where all counters are needed and do not fit, and where
    users would be deleted for the steps that they are in."""
    noise, threshold, limit = monitor.noise, monitor.threshold, monitor.reports
    _enough_moved(monitor, stream.horizon)
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


@checks.draws
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


@checks.draws
def simulate_histogram(method: Histogram, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of a histogram in every step; weights of different elements and steps are independent given the data."""
    absent_share, single_share = method.noise.sf(method.threshold - np.array([0.0, 1.0])).tolist()
    absent = 0 if method.stable else rare_count(stream.absent_queries, absent_share, rng)
    single = rare_count(stream.single_queries, single_share, rng)
    return Outcome(crossing(method.noise, method.threshold, stream, rng), absent, single)


@checks.draws
def simulate_threshold(method: AboveThreshold, stream: ShiftingStream, rng: np.random.Generator) -> Outcome:
    """One run of repeated AboveThreshold, asked for every element in every step in order of the elements' numbers."""
    events = np.arange(stream.n_events, dtype=np.int64)
    asked = stream.n_events + stream.n_users if method.stable else stream.n_elements  # where a yes can be, in a step

    def present(place: int) -> bool:
        step, element = divmod(place, asked)
        user = element - stream.n_events
        return 0 <= user < stream.n_users and stream.holds_own(user, step)

    return _scan(method, stream.sizes, stream.steps * asked + events, stream.horizon * asked, present, rng)


@checks.draws
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

    A query of value 0 or 1 is a candidate for a false yes if it would cross the lowest of all limits at value 1. Candidates
    are drawn by number and place, with a uniform rank that says which limits their noise reaches.
    """
    stretches = method.reports if method.refreshed else 1
    shifts = np.zeros(stretches) if method.shift is None else method.shift.draw(stretches, rng)
    limits = np.resize(method.threshold + shifts, method.reports)  # of each stretch up to a yes
    noisy = values + method.noise.draw(len(values), rng)
    loud = np.flatnonzero((noisy >= limits.min()) & ((values > 0) | (not method.stable)))
    most = float(method.noise.sf(limits.min() - 1))
    quiet = others(places, queries, rare_count(queries - len(places), most, rng), rng)
    chances = [method.noise.sf(limits - value) for value in (0, 1)]
    if method.stable:
        chances[0] = np.zeros_like(limits)
    heard = [*zip(places[loud].tolist(), loud.tolist(), noisy[loud].tolist(), strict=True)]
    heard += zip(quiet.tolist(), [-1] * len(quiet), (most * rng.random(len(quiet))).tolist(), strict=True)
    found, false, stretch = np.zeros(len(values), dtype=bool), [0, 0], 0
    for place, event, reached in sorted(heard):
        if stretch == method.reports:
            break
        held = int(event < 0 and present(place))
        if reached >= limits[stretch] if event >= 0 else reached < chances[held][stretch]:
            stretch += 1
            if event >= 0:
                found[event] = True
            else:
                false[held] += 1
    return Outcome(found, *false)


@checks.draws
def simulate_drawn(
    monitor: ThresholdMonitorEvolving, n_users: int, laws: ArrayLike, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which elements are reported, (steps, elements), and how many users are not yet deleted after each step, (steps,), of
    users who hold one element a step, drawn afresh by its law, or none.

    `laws` (steps, elements): the probability of holding each; what is missing to 1 holds none of them. Users who counted
    alike are alike, and what they hold is multinomial: the law of `ThresholdMonitorEvolving.step_elements`.  Raises
    ValueError for laws that are none, and where users would be deleted for the steps that they are in.
    """
    checks.integer_at_least(1, n_users=n_users)
    table = np.atleast_2d(np.asarray(laws, dtype=float))
    _enough_moved(monitor, len(table))
    if not np.all(table >= 0) or not np.all(table.sum(axis=1) <= 1 + 1e-9):
        raise ValueError("laws must hold rows of probabilities that sum to 1 at most")
    counted = np.zeros(monitor.reports + 1, dtype=np.int64)  # users by how often they counted; the last are deleted
    counted[0] = n_users
    above, active = np.zeros(table.shape, dtype=bool), np.zeros(len(table), dtype=np.int64)
    for step, law in enumerate(table):
        held = rng.multinomial(counted[:-1], np.append(law, max(0.0, 1 - law.sum())))[:, :-1]
        weights = held.sum(axis=0)
        above[step] = weights + monitor.noise.draw(len(weights), rng) >= monitor.threshold
        moved = held[:, above[step]].sum(axis=1)
        counted[:-1] -= moved
        counted[1:] += moved
        active[step] = counted[:-1].sum()
    return above, active


def _enough_moved(monitor: ThresholdMonitorEvolving, steps: int) -> None:
    if monitor.moved is not None and monitor.moved < steps:
        raise ValueError(f"moved must be at least the steps, {steps}, got {monitor.moved}")
