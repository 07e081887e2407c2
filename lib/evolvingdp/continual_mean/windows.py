"""A value a day, and the last w days: each day's sum has noise of its own.

**Computes** the sums of the samples of each day, and with `between` the mean of the samples between the ends of two days.

**Guarantee.** User-level epsilon-DP, with `delta` (epsilon, delta)-DP, for all days together; neighbours as in `settings`.
`between` is a function of noisy sums: it costs nothing.

A sample is in one day's sum, so a user with m samples, c of them a day at most, moves the days by m in l1; the square of the
change in l2 is convex in what each day moves by, so that it is largest where days move by c, as many as m allows, and one by
the rest.

**State.** Secret; it belongs to its `Days`, others refuse it.  One that goes on twice repeats its noise: go on once.

**Error.** Exact.  For windows of most of all days running sums of days have less (`BinaryMechanism`, `uses` = m).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evolvingdp.continual_mean.binary_mechanism import noise_for
from evolvingdp.continual_mean.prefix_sums import Noises, Tree
from evolvingdp.continual_mean.settings import Integers, Release, by_user, ranks
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


class DayState(NamedTuple):
    """Secret."""

    settings: Days
    noises: Noises
    counts: Integers  # (n_users,), samples that were kept
    sums: Snapshot  # without noise

    def __repr__(self) -> str:
        return "DayState"


@checks.plain
@dataclass(frozen=True)
class Days:
    """Sums of days.  `settings` has users, caps, budget (of all its `dimensions`), range and kind of noise; how it would sum
    samples is not taken from it.  `per_day`: samples of a user a day, the others are dropped.
    """

    settings: UserMean
    n_days: int
    per_day: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_days=self.n_days, per_day=self.per_day)
        checks.plain_integers(self, "n_days", "per_day")
        if not isinstance(self.settings, UserMean):
            raise TypeError(f"settings must be a UserMean, which projects and weighs no samples, got {self.settings!r}")
        if (self.settings.batch, self.settings.reach, self.settings.alike) != (1, None, False):
            raise ValueError(f"settings must have batch 1, no reach and alike False, as days are elements: {self.settings}")
        _ = self.noise

    @cached_property
    def noise(self) -> Laplace | DiscreteLaplace | Gaussian:
        """What every day gets, calibrated."""
        made = self.settings
        held = min(made.samples_per_user, self.n_days * self.per_day)
        full, rest = divmod(held, self.per_day)
        moved = made.resolution * (math.sqrt(full * self.per_day**2 + rest**2) if made.delta else float(held))
        return noise_for(moved, made.budget, delta=made.delta, integer=made.integer, elements=self.n_days)

    def start(self, rng: np.random.Generator) -> DayState:
        """The state before the first day; secret."""
        noises = Tree(self.n_days, self.n_days + 1).online(Tape(self.noise, rng))  # one block a day
        return DayState(self, noises, np.zeros(self.settings.n_users, dtype=np.int64), START)

    def day(self, state: DayState, users: ArrayLike, samples: ArrayLike) -> tuple[DayState, Snapshot]:
        """All of a day's samples, by their users, (k,) both, perhaps none; samples are dropped where a user has sent as many
        as are allowed on a day or in all.  Raises ValueError once `n_days` days are over.

        The snapshot is what `between` compares with those of other days.
        """
        checks.state(state, DayState, self)
        return self._closed(state, *self.settings.arrange(users, samples))

    def _closed(self, state: DayState, users: Integers, values: Integers) -> tuple[DayState, Snapshot]:
        if state.sums.days >= self.n_days:
            raise ValueError(f"n_days must be larger to go on: {self.n_days} days are paid for, and over")
        user, step = by_user(users, np.arange(len(users)))
        rank = ranks(user)
        kept = (rank <= self.per_day) & (state.counts[user] + rank <= self.settings.samples_per_user)
        in_turn = np.argsort(step)  # the horizon ends for samples that count, the first ones first
        kept[in_turn] &= state.sums.used + np.cumsum(kept[in_turn]) <= self.settings.max_steps
        counts = state.counts + np.bincount(user[kept], minlength=len(state.counts))
        steps, used = state.sums.steps + len(users), state.sums.used + int(kept.sum())
        sums = Snapshot(steps, used, state.sums.total + int(values[step[kept]].sum()), state.sums.days + 1)
        noise, _, noises = state.noises.of(sums.days)
        return DayState(self, noises, counts, sums), sums._replace(total=sums.total + noise)

    def release(self, users: ArrayLike, samples: ArrayLike, days: ArrayLike, rng: np.random.Generator) -> list[Snapshot]:
        """The snapshots of all days: `days` (T,) says on which, 0 to n_days - 1 and never falling, a sample comes."""
        when, (who, values) = np.asarray(days), self.settings.arrange(users, samples)  # all is checked before the first draw
        if when.dtype.kind not in "iu" or when.shape != who.shape or (np.diff(when) < 0).any():
            raise TypeError(f"days must be integers that never fall, one a user, got {when.dtype} {when.shape}")
        if when.size and not 0 <= when[0] <= when[-1] < self.n_days:
            raise ValueError(f"days must lie in 0 to n_days - 1 = {self.n_days - 1}, got {when[0]} to {when[-1]}")
        state, told, ends = self.start(rng), [], np.searchsorted(when, np.arange(self.n_days + 1))
        for first, last in zip(ends.tolist(), ends[1:].tolist(), strict=False):
            state, snapshot = self._closed(state, who[first:last], values[first:last])
            told.append(snapshot)
        return told

    def standard_error(self, earlier: Snapshot, later: Snapshot) -> float:
        """Exact, of the noise in the mean of the samples between two snapshots; totals are not read: it can be planned."""
        variance, made = (later.days - earlier.days) * self.noise.variance, self.settings
        used = later.used - earlier.used
        return math.sqrt(variance) / used * made.unit if used else math.inf

    def between(self, earlier: Snapshot, later: Snapshot) -> Release:
        """The mean of the samples between two snapshots, its standard error, and the bias that dropped samples may cause."""
        if later.steps <= earlier.steps:
            raise ValueError(f"later must be after earlier, got {later.steps} and {earlier.steps} steps")
        made, steps, used = self.settings, later.steps - earlier.steps, later.used - earlier.used
        estimate = made.low + made.unit * (later.total - earlier.total) / used if used else made.first_estimate
        estimate = min(max(estimate, made.low), made.high) if made.clip else estimate
        bias = (made.high - made.low) * (steps - used) / steps
        return Release(estimate, self.standard_error(earlier, later), bias, used, steps - used)
