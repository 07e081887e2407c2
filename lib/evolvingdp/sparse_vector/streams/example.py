"""Streams for shifting heavy hitters: Example 1.4 with explicit sizes, and groups of one size.

Users are 0, ..., n_users - 1. A family is a partition of the users into groups of one size (what is left over
belongs to no group); in its event, at a step of its own, all members of a group hold the same element, the event's number.
Everybody else holds an element of its own, `n_events` + user. The partitions are affine maps modulo n_users, so that a
group's members and a user's group are known without a table of n_users entries.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks

MULTIPLIERS = (1, 0.6180339887498949, 0.41421356237309515, 0.7320508075688772)  # shares of n_users, made coprime to it


@dataclass(frozen=True)
class Family:
    """A partition: user u is at place (multiplier u) mod n_users, groups are runs of `size` places."""

    name: str
    size: int
    n_groups: int
    multiplier: int
    inverse: int


@checks.plain
@dataclass(frozen=True, eq=False)
class ShiftingStream:
    """Events sorted by time, at most one a step: `steps` (events,), the `family` and the `group` of each."""

    n_users: int
    horizon: int
    n_elements: int  # |X|
    families: tuple[Family, ...]
    steps: NDArray[np.int64]
    family: NDArray[np.int64]
    group: NDArray[np.int64]

    @classmethod
    def make(
        cls,
        n_users: int,
        sizes: dict[str, int],
        rng: np.random.Generator,
        *,
        horizon: int | None = None,
        n_elements: int = 2**32,
    ) -> ShiftingStream:
        """A family for each of `sizes`, each with all its groups, their events at random different steps.

        `horizon` is `n_users` where not given.  Raises ValueError where groups, events or elements do not fit.
        """
        horizon = n_users if horizon is None else horizon
        checks.integer_at_least(1, n_users=n_users, horizon=horizon, n_elements=n_elements)
        if not 1 <= len(sizes) <= len(MULTIPLIERS):
            raise ValueError(f"sizes must name 1 to {len(MULTIPLIERS)} families, got {len(sizes)}: {', '.join(sizes)}")
        families = []
        for share, (name, size) in zip(MULTIPLIERS, sizes.items(), strict=False):
            if not 2 <= size <= n_users:
                raise ValueError(f"sizes must lie in [2, {n_users}], the users, got {size} for {name}")
            multiplier = _coprime(n_users, share)
            families.append(Family(name, size, n_users // size, multiplier, pow(multiplier, -1, n_users)))
        counts = [one.n_groups for one in families]
        if sum(counts) > horizon:
            raise ValueError(f"horizon must be >= {sum(counts)}, a step for each event, got {horizon}")
        if n_elements < sum(counts) + n_users:
            raise ValueError(f"n_elements must be >= events + n_users = {sum(counts) + n_users}, got {n_elements}")
        family, group = np.repeat(np.arange(len(families)), counts), np.concatenate([np.arange(count) for count in counts])
        order = rng.permutation(len(family))
        steps = np.sort(rng.choice(horizon, size=len(family), replace=False, shuffle=False))
        return cls(n_users, horizon, n_elements, tuple(families), steps, family[order], group[order])

    @property
    def n_events(self) -> int:
        """(element, step) pairs that many users hold."""
        return len(self.steps)

    @property
    def family_sizes(self) -> NDArray[np.int64]:
        """(families,): the users of a group."""
        return np.array([one.size for one in self.families], dtype=np.int64)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(events,): the users who hold each event's element."""
        return self.family_sizes[self.family]

    @cached_property
    def events_in(self) -> list[NDArray[np.int64]]:
        """The events of each family."""
        return [np.flatnonzero(self.family == number) for number in range(len(self.families))]

    @cached_property
    def single_queries(self) -> int:
        """How often, over all steps, an element is held by exactly one user."""
        return self.horizon * self.n_users - int(self.sizes.sum())

    @cached_property
    def absent_queries(self) -> int:
        """How often, over all steps, an element is held by nobody."""
        return self.horizon * self.n_elements - self.single_queries - self.n_events

    def members(self, event: int) -> NDArray[np.int64]:
        """The users of `event`, in no particular order."""
        one = self.families[self.family[event]]
        places = np.arange(self.group[event] * one.size, (self.group[event] + 1) * one.size, dtype=np.int64)
        return np.asarray(places * one.inverse % self.n_users, dtype=np.int64)

    def events_of(self, user: int) -> list[int]:
        """The events that `user` is in, in no particular order."""
        groups = [user * one.multiplier % self.n_users // one.size for one in self.families]
        return [int(table[group]) for table, group in zip(self._event_of_group, groups, strict=True) if group < len(table)]

    @cached_property
    def _event_of_group(self) -> list[NDArray[np.int64]]:
        return [events[np.argsort(self.group[events])] for events in self.events_in]

    def holds_own(self, user: int, step: int) -> bool:
        """Whether `user` holds an element of its own at `step`."""
        event = int(np.searchsorted(self.steps, step))
        return event == self.n_events or self.steps[event] != step or event not in self.events_of(user)

    def inputs(self, step: int) -> NDArray[np.int64]:
        """(n_users,): what everybody holds at `step`, for sizes at which that fits."""
        held = self.n_events + np.arange(self.n_users, dtype=np.int64)
        for event in np.flatnonzero(self.steps == step).tolist():
            held[self.members(event)] = event
        return held


@checks.plain
def example_sizes(n_users: int, smallest: float) -> dict[str, int]:
    """Example 1.4's three kinds of groups: A of ceil(`smallest`) users, B of 100 n^(1/4), C of 100 n^(1/3)."""
    checks.positive(smallest=smallest)
    large = {name: math.ceil(round(100 * n_users**power, 6)) for name, power in (("B", 1 / 4), ("C", 1 / 3))}
    return {"A": math.ceil(smallest)} | large


def _coprime(n_users: int, share: float) -> int:
    first = max(1, round(share * n_users)) if share < 1 else 1
    return next(number for number in itertools.count(first) if math.gcd(number, n_users) == 1)
