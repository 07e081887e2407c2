"""A value a day, and the last w days: days that have noise of their own, or are elements of running sums.

**Computes** the sums of the samples of each day, and with `between` the mean of the samples between the ends of two days.

**Guarantee.** User-level epsilon-DP, with `delta` (epsilon, delta)-DP, for all days together; neighbours as in `settings`.
A sample is in one day's sum, so a user with m samples, c of them a day at most, moves the days by m in l1; the square of the
change in l2 is convex in what each day moves by, so that it is largest where days move by c, as many as m allows, and one by
the rest.  `between` is a function of noisy sums: it costs nothing.

**State.** Secret; it belongs to its `Days`, others refuse it.  One that is copied and goes on twice repeats its noise: go on
with one copy.

**Error.** Exact: noise that two running sums share cancels (`difference_variance`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evolvingdp.continual_mean.binary_mechanism import finite_scale
from evolvingdp.continual_mean.prefix_sums import Ahead, Filter, Tree
from evolvingdp.continual_mean.settings import Release
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import checks
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Tape


class Snapshot(NamedTuple):
    """Public: what has been released by the end of a day.  `total` is the noisy sum, in grid steps above `low`."""

    steps: int
    used: int  # of these in the sum; the others were dropped
    total: float
    days: int


START = Snapshot(0, 0, 0.0, 0)  # before the first sample


@dataclass(repr=False)
class DayState:
    """Secret.  `step` and `close` change it in place."""

    settings: Days
    counts: list[int]  # accepted samples of each user
    advance: Ahead
    today: dict[int, int] = field(default_factory=dict)
    total: int = 0
    step: int = 0
    dropped: int = 0
    days: int = 0


@checks.plain
@dataclass(frozen=True)
class Days:
    """Sums of days: each with noise of its own, or as elements of the prefix sums `sums`.

    `settings` has users, caps, budget (of all its `dimensions`), range and kind of noise; how it would sum samples is not
    taken from it.  `per_day`: samples of a user a day, the others are dropped.
    """

    settings: UserMean
    n_days: int
    per_day: int
    sums: Tree | Filter | None = None

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_days=self.n_days, per_day=self.per_day)
        checks.plain_integers(self, "n_days", "per_day")
        if not isinstance(self.settings, UserMean):
            raise TypeError(f"settings must be a UserMean, which projects and weighs no samples, got {self.settings!r}")
        if not isinstance(self.sums, Tree | Filter | None):
            raise TypeError(f"sums must be a Tree, a Filter or None, got {type(self.sums).__name__}")
        if (self.settings.batch, self.settings.reach) != (1, None):
            raise ValueError(f"settings must have batch 1 and no reach, as a day is an element, got {self.settings.batch}")
        if self.structure.capacity < self.n_days:
            raise ValueError(f"sums must have capacity {self.n_days} or more, got {self.structure.capacity}")
        if self.settings.delta and isinstance(self.sums, Tree) and self.sums.balanced:
            raise ValueError("sums must not be balanced with delta > 0: a balanced tree adds noise of blocks to come")
        if self.settings.integer and isinstance(self.sums, Filter):
            raise ValueError("sums must be a Tree or None with integer noise: a filter has fractions")
        _ = self.noise

    @cached_property
    def structure(self) -> Tree | Filter:
        """`sums`, or noise of its own for each day."""
        return self.sums or Tree(self.n_days, self.n_days + 1)

    @property
    def noise(self) -> Laplace | DiscreteLaplace | Gaussian:
        """What every node gets, calibrated."""
        made, sums = self.settings, self.structure
        held = min(made.samples_per_user, self.n_days * self.per_day)
        if made.delta:
            return Gaussian(finite_scale(made.resolution * sums.l2(held, self.per_day), made.budget))
        scale = finite_scale(made.resolution * held * sums.l1, made.budget)
        return made.laplace(scale, sums.capacity)

    def start(self, rng: np.random.Generator) -> DayState:
        """The state before the first day; secret."""
        return DayState(self, [0] * self.settings.n_users, self.structure.online(Tape(self.noise, rng)))

    def step(self, state: DayState, user: int, sample: float) -> DayState:
        """A sample, dropped where the user has sent as many as are allowed today or in all.  Raises ValueError, as `close`,
        once `n_days` days are over."""
        self._goes_on(state)
        value, made = self.settings.valid(user, sample), self.settings
        state.step += 1
        room = state.step - state.dropped <= made.max_steps and user < made.n_users
        if not room or state.counts[user] >= made.samples_per_user or state.today.get(user, 0) >= self.per_day:
            state.dropped += 1
            return state
        state.counts[user] += 1
        state.today[user] = state.today.get(user, 0) + 1
        state.total += value
        return state

    def close(self, state: DayState) -> tuple[DayState, Snapshot]:
        """The end of a day; returns the new state and the snapshot, which `between` compares with those of other
        days."""
        self._goes_on(state)
        noise = state.advance()
        state.days += 1
        state.today = {}
        return state, Snapshot(state.step, state.step - state.dropped, state.total + noise, state.days)

    def _goes_on(self, state: DayState) -> None:
        """Noise is for `n_days` days, also where `sums` could hold more."""
        checks.state(state, DayState, self)
        if state.days >= self.n_days:
            raise ValueError(f"n_days must be larger to go on: {self.n_days} days are paid for, and over")

    def release(self, users: ArrayLike, samples: ArrayLike, days: ArrayLike, rng: np.random.Generator) -> list[Snapshot]:
        """The snapshots of all days: `days` (T,) says on which, 0 to n_days - 1 and never falling, a sample comes."""
        when, who = np.asarray(days), np.asarray(users)
        if when.dtype.kind not in "iu" or when.shape != who.shape or (np.diff(when) < 0).any():
            raise TypeError(f"days must be integers that never fall, one a user, got {when.dtype} {when.shape}")
        values = self.settings.encode(samples)  # all is checked before the first draw
        if who.shape != values.shape or (who.size and (who.dtype.kind not in "iu" or who.min() < 0)):
            raise TypeError(f"users must be integers >= 0 of shape {values.shape}, got {who.dtype} {who.shape}")
        if when.size and not 0 <= when[0] <= when[-1] < self.n_days:
            raise ValueError(f"days must lie in 0 to n_days - 1 = {self.n_days - 1}, got {when[0]} to {when[-1]}")
        state, closed = self.start(rng), []
        stream = zip(who.tolist(), np.asarray(samples).tolist(), when.tolist(), strict=True)
        for user, sample, day in stream:
            while state.days < day:
                closed.append(self.close(state)[1])
            self.step(state, user, sample)
        while state.days < self.n_days:
            closed.append(self.close(state)[1])
        return closed

    def standard_error(self, earlier: Snapshot, later: Snapshot) -> float:
        """Exact, of the noise in the mean of the samples between two snapshots; totals are not read: it can be planned."""
        variance, made = float(self.structure.difference_variance(earlier.days, later.days)), self.settings
        used, unit = later.used - earlier.used, (made.high - made.low) / made.resolution
        return math.sqrt(variance * self.noise.variance) / used * unit if used else math.inf

    def between(self, earlier: Snapshot, later: Snapshot) -> Release:
        """The mean of the samples between two snapshots, its standard error, and the bias that dropped samples may cause."""
        if later.steps <= earlier.steps:
            raise ValueError(f"later must be after earlier, got {later.steps} and {earlier.steps} steps")
        made, steps, used = self.settings, later.steps - earlier.steps, later.used - earlier.used
        scale, estimate = made.high - made.low, made.first_estimate
        if used:
            estimate = made.low + scale / made.resolution * (later.total - earlier.total) / used
        estimate = min(max(estimate, made.low), made.high) if made.clip else estimate
        return Release(estimate, self.standard_error(earlier, later), scale * (steps - used) / steps, used, steps - used)
