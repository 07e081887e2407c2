"""The shifting heavy-hitters solver, simulated exactly at a cost of the events and the false reports alone.

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
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.sparse_vector.noise import rare_count
from evolvingdp.sparse_vector.privacy import Array
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
    keep_all = limit < stream.participation
    holders: dict[int, list[int]] = {}  # of the events of watched users: their places
    if keep_all:
        checks.fits_in_memory("a counter for each user", 8.0 * stream.n_users, "raise reports or lower n_users")
        found, events, watched = np.zeros(stream.n_events, dtype=bool), np.arange(stream.n_events), np.arange(stream.n_users)
    else:
        found = crossing(noise.sf, threshold, stream, rng)
        watched = np.unique(users)
        for place, user in enumerate(watched.tolist()):
            for event in stream.events_of(user):
                holders.setdefault(event, []).append(place)
        events = np.array(sorted(holders), dtype=np.int64)
    counted = np.zeros(len(watched), dtype=np.int64)
    single = 0
    noisy = stream.sizes[events] + noise.sample(len(events), rng)
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


def crossing(
    sf: Callable[[Any], Array], threshold: float, stream: ShiftingStream, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """(events,): whether each event's size and a noise of survival function `sf` reach the threshold, independently.

    The rarer of found and missed are drawn by number and place, family by family.
    """
    found = np.zeros(stream.n_events, dtype=bool)
    for events, share in zip(stream.events_in, sf(threshold - stream.family_sizes).tolist(), strict=True):
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
        event = stream.event_at(step)
        if event is None or event not in stream.events_of(user):
            taken.add((user, step))
    places = np.array(sorted(taken), dtype=np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]
