"""A value a day, and the last w days: as the difference of two running sums, or from days that have noise of their own.

**Computes** the mean of the samples between two moments.  `between` reads two snapshots of what a `UserMean` has released,
if every sample is an element of its own there (blocks "single" or "bands").  `Days` releases at the end of each day only:
the sums of days are the elements, so that a day costs a tree of days and not of samples, or (by default) no tree at all.

**Guarantee.** Snapshots are functions of noisy sums: what reads them costs nothing.  `Days`: user-level epsilon-DP, with
`delta` (epsilon, delta)-DP, for all days together; neighbours as for `UserMean`.  A sample is in one day's sum, so a user
with m samples, c of them a day at most, moves the days by m in l1; the square of the change in l2 is convex in what each day
moves by, so that it is largest where days move by c, as many as m allows, and one by the rest.

**State.** Secret; it belongs to its `Days`, others refuse it.  One that is copied and goes on twice repeats its noise: go on
with one copy.

**Error.** Exact: noise that two running sums share cancels (`difference_variance`).  A window that begins with the stream
is a running sum; others have at most the noise of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evolvingdp.continual_mean import offline, online
from evolvingdp.continual_mean.arranged import arrange
from evolvingdp.continual_mean.binary_mechanism import finite_scale, laplace, normal
from evolvingdp.continual_mean.online import Release
from evolvingdp.continual_mean.prefix_sums import BalancedTree, Banded, Buffered, PrefixSums, Tree
from evolvingdp.continual_mean.sums.toeplitz import loads_of_columns
from evolvingdp.continual_mean.sums.trees import loads_l2
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import checks
from evolvingdp.core.noise import Noise, Tape


class Snapshot(NamedTuple):
    """Public: what has been released by a moment.  `total` is the noisy sum, in grid steps above `low`."""

    steps: int
    used: int  # of these in the sum; the others were dropped
    total: float
    elements: tuple[int, ...]  # of each stream of prefix sums


START = Snapshot(0, 0, 0.0, (0,))  # of `Days`, before the first sample


def snapshot(settings: UserMean, state: online.State) -> Snapshot:
    """Of a mean that goes on step by step; a service keeps one for each day."""
    _check(settings)
    return Snapshot(state.step, state.used, sum(state.weighted), tuple(tree.elements for tree in state.trees))


def snapshots(
    settings: UserMean, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator, steps: Iterable[int]
) -> list[Snapshot]:
    """After each of `steps` (0 is the start) of the `offline.release` with the same generator."""
    _check(settings)
    elements, sums = offline._run(settings, arrange(settings, users, samples), rng)
    found = []
    for step in steps:
        used = int(np.searchsorted(elements.step, step, side="right"))
        counts = np.bincount(elements.level[:used], minlength=settings.n_trees)
        found.append(Snapshot(step, used, float(sums[0, used]), tuple(counts.tolist())))
    return found


def _check(settings: UserMean) -> None:
    if settings.blocks not in ("single", "bands"):
        raise ValueError(f'settings must have blocks "single" or "bands", so that steps count, got {settings.blocks!r}')
    if settings.batch > 1:
        raise ValueError(f"settings must have batch 1, so that each day ends with its last sample, got {settings.batch}")


def standard_error(settings: UserMean | Days, earlier: Snapshot, later: Snapshot) -> float:
    """Exact, of the noise in the mean of the samples between two snapshots; totals are not read: it can be planned."""
    variance = 0.0
    for (sums, noise), first, last in zip(_streams(settings), earlier.elements, later.elements, strict=True):
        variance += float(sums.difference_variance(first, last)) * noise.variance
    used, made = later.used - earlier.used, settings.settings if isinstance(settings, Days) else settings
    return math.sqrt(variance) / used * (made.high - made.low) / made.resolution if used else math.inf


def between(settings: UserMean | Days, earlier: Snapshot, later: Snapshot) -> Release:
    """The mean of the samples between two snapshots, its standard error, and the bias that dropped samples may cause."""
    if later.steps <= earlier.steps:
        raise ValueError(f"later must be after earlier, got {later.steps} and {earlier.steps} steps")
    made = settings.settings if isinstance(settings, Days) else settings
    steps, used, scale = later.steps - earlier.steps, later.used - earlier.used, made.high - made.low
    estimate = made.low + scale / made.resolution * (later.total - earlier.total) / used if used else made.first_estimate
    if made.clip:
        estimate = min(max(estimate, made.low), made.high)
    return Release(estimate, standard_error(settings, earlier, later), scale * (steps - used) / steps, used, steps - used)


def _streams(settings: UserMean | Days) -> Sequence[tuple[PrefixSums, Noise]]:
    if isinstance(settings, Days):
        return [(settings.structure, settings.noise)]
    made = [settings.prefix_sums(settings.capacity_of(tree)) for tree in range(settings.n_trees)]
    return [(sums, settings.noise(tree, sums, settings.user_sensitivity(tree))) for tree, sums in enumerate(made)]


@dataclass(repr=False)
class DayState:
    """Secret.  `step` and `close` change it in place."""

    settings: Days
    counts: list[int]  # accepted samples of each user
    advance: Any
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
    taken from it, and it must project and weigh none.  `per_day`: samples of a user a day, the others are dropped.
    """

    settings: UserMean
    n_days: int
    per_day: int
    sums: Tree | BalancedTree | Buffered | None = None

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_days=self.n_days, per_day=self.per_day)
        checks.plain_integers(self, "n_days", "per_day")
        if not isinstance(self.sums, Tree | BalancedTree | Buffered | None):
            raise TypeError(f"sums must be a Tree, a BalancedTree, Buffered or None, got {type(self.sums).__name__}")
        if not self.settings.any_users:
            raise ValueError(f'settings must project and weigh no samples, got prior "{self.settings.prior}"')
        if self.settings.batch > 1:
            raise ValueError(f"settings must have batch 1, as a day is an element, got {self.settings.batch}")
        if self.structure.capacity < self.n_days:
            raise ValueError(f"sums must have capacity {self.n_days} or more, got {self.structure.capacity}")
        _ = self.noise

    @property
    def structure(self) -> Tree | BalancedTree | Buffered | Banded:
        """`sums`, or noise of its own for each day."""
        return self.sums or Banded(self.n_days, 1)

    @property
    def noise(self) -> Noise:
        """What every node gets, calibrated."""
        made, sums = self.settings, self.structure
        held = min(made.samples_per_user, self.n_days * self.per_day)
        if made.delta:
            if isinstance(sums, Buffered):
                moved = made.resolution * loads_of_columns(sums.coefficients, held, self.per_day)
            else:
                blocks = [sums.branching**level for level in range(sums.height)] if isinstance(sums, Tree) else [1]
                moved = made.resolution * loads_l2(held, self.per_day, blocks)
            return normal(sums, moved, made.tree_budget, made.integer)
        scale = finite_scale(made.resolution * held * sums.l1, made.epsilon)
        return laplace(sums, scale, made.integer)

    @cached_property
    def _dropping(self) -> UserMean:
        return self.settings.but(excess="drop")

    def start(self, rng: np.random.Generator) -> DayState:
        """The state before the first day; secret."""
        return DayState(self, [0] * self.settings.n_users, self.structure.online(Tape(self.noise, rng)))

    def step(self, state: DayState, user: int, sample: float) -> DayState:
        """A sample, dropped where the user has sent as many as are allowed today or in all.  Raises ValueError, as `close`,
        once `n_days` days are over."""
        self._goes_on(state)
        value = online._valid(self._dropping, state, user, sample)
        state.step += 1
        if value is None or state.today.get(user, 0) >= self.per_day:
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
        return state, Snapshot(state.step, state.step - state.dropped, state.total + noise, (state.days,))

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
