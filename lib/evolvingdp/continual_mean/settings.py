"""What all means have in common: users, caps, budget, the range of samples; how a stream is checked; what is released.

**Neighbours** differ in the values of all samples of one user; who arrives when is the same in both, and public (E-CM-4).
Values are whole numbers of grid steps, so that sums are exact.  Applies E-CM-12 (caps are enforced).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
EXCESS = ("error", "drop")
_FINE = 2**20  # steps of a range of real values
_REAL = "resolution=2**20 takes any value of the range"


@checks.plain
@dataclass(frozen=True)
class Settings:
    """At most `n_users` users of at most `samples_per_user` samples each, see excess."""

    n_users: int
    samples_per_user: int
    epsilon: float  # of a user, over the whole stream
    delta: float = 0.0  # 0: Laplace noise, pure epsilon-DP; else Gaussian noise
    horizon: int | None = None  # steps; default n_users * samples_per_user
    low: float = 0.0  # of the range of samples
    high: float = 1.0  # of the range of samples
    resolution: int = 0  # grid steps in the range; 0: 1 for [0, 1], of bits, and for others as many as fit, to 2^20
    integer: bool = False  # noise, and all sums in integers; with delta = 0
    clip: bool = False  # releases to [low, high]
    excess: str = "error"  # samples beyond a cap or the horizon: refused, or left out and counted

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, samples_per_user=self.samples_per_user)
        checks.integer_at_least(0, resolution=self.resolution)
        checks.plain_integers(self, "n_users", "samples_per_user", "resolution")
        if self.horizon is not None:
            checks.integer_at_least(1, horizon=self.horizon)
            checks.plain_integers(self, "horizon")
        checks.positive(epsilon=self.epsilon)
        checks.finite(delta=self.delta, low=self.low, high=self.high)
        checks.one_of(EXCESS, excess=self.excess)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta!r}")
        if self.delta and self.integer:
            raise ValueError("integer must go with delta = 0: filters have fractions, which no integer noise hides")
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            raise ValueError(f"low must be below high, their distance finite, got {self.low!r} and {self.high!r}")
        if self.n_users >= 2**31:
            raise ValueError(f"n_users must be below 2^31, got {self.n_users}")
        places, cap = self.n_users * self.samples_per_user, 2**60 // self.n_users
        if places > 2**60:
            raise ValueError(f"samples_per_user must be at most {cap} for {self.n_users} users, got {self.samples_per_user}")
        if not self.resolution:
            fine = finest(self.n_users, self.samples_per_user, self.epsilon, self.max_steps)
            object.__setattr__(self, "resolution", 1 if (self.low, self.high) == (0, 1) else fine)
        if places * self.resolution > 2**60:
            raise ValueError(
                f"resolution must be at most {2**60 // places} for {self.n_users} users of "
                f"{self.samples_per_user} samples, so that sums are exact, got {self.resolution}"
            )

    @cached_property
    def max_steps(self) -> int:
        return self.horizon or self.n_users * self.samples_per_user

    @cached_property
    def unit(self) -> float:
        """A grid step."""
        return (self.high - self.low) / self.resolution

    @cached_property
    def first_estimate(self) -> float:
        """What is released before any element."""
        return (self.low + self.high) / 2

    def encode(self, samples: ArrayLike) -> Integers:
        """Samples (T,) in [low, high] as whole numbers of grid steps, 0 to resolution.

        Raises ValueError with the first that is out of range, or, where resolution is 1, not one of the two ends.
        """
        low, high, values = self.low, self.high, checks.plain_array(samples)
        if values.ndim != 1 or values.dtype.kind not in "biuf":
            raise TypeError(f"samples must be a one-dimensional array of numbers, got {values.dtype} {values.shape}")
        if values.size and not low <= values.min() <= values.max() <= high:
            position = int(np.argmin((values >= low) & (values <= high)))
            raise ValueError(f"samples must lie in [{low:g}, {high:g}], got {values[position]} at position {position}")
        if self.resolution == 1 and low == 0 and high == 1 and values.dtype.kind in "biu":
            return values.astype(np.int64, copy=False)
        steps = (values.astype(np.float64) - low) / (high - low) * self.resolution
        found = np.rint(steps)
        if self.resolution == 1 and not (steps == found).all():
            position = int(np.argmax(steps != found))
            raise ValueError(f"samples must be {self._ends}, got {values[position]} at position {position}; {_REAL}")
        return np.clip(found, 0, self.resolution).astype(np.int64)

    @property
    def _ends(self) -> str:
        return f"{self.low:g} or {self.high:g} where resolution is 1"

    def arrange(self, users: ArrayLike, samples: ArrayLike) -> tuple[Integers, Integers]:
        """`users` (T,) and `samples` (T,) in grid steps; raises TypeError and ValueError."""
        who, values = checks.plain_array(users), self.encode(samples)
        if who.ndim != 1 or (who.dtype.kind not in "iu" and who.size) or who.shape != values.shape:
            raise TypeError(f"users must be integers of shape {values.shape}, got {who.dtype} {who.shape}")
        if who.size and who.min() < 0:
            raise ValueError(f"users must be >= 0, got {who.min()} at position {who.argmin()}")
        if who.size and who.max() >= self.n_users:
            position = int(np.argmax(who >= self.n_users))
            raise ValueError(f"users must be below n_users = {self.n_users}, got {who[position]} at position {position}")
        return who.astype(np.int64, copy=False), values

    def kept(self, users: Integers) -> NDArray[np.bool_]:
        """(T,): samples within caps and horizon.  Raises ValueError with the first of the others, if none may be dropped."""
        kept = np.arange(len(users)) < self.max_steps
        who = numbered(users)
        sent = np.bincount(who)
        if sent.max(initial=0) > self.samples_per_user:
            theirs = np.flatnonzero((sent > self.samples_per_user)[who])
            user, step = by_user(users[theirs], theirs)
            kept[step[ranks(user) > self.samples_per_user]] = False
        if self.excess == "error" and not kept.all():
            position = int(np.argmin(kept))
            advice = 'excess="drop" leaves such samples out'
            if position >= self.max_steps:
                raise ValueError(f"users must have at most horizon = {self.max_steps} entries, got {len(users)}; {advice}")
            raise ValueError(
                f"users must occur at most samples_per_user = {self.samples_per_user} times, user {users[position]} comes "
                f"again at position {position}; {advice}"
            )
        return kept

    def valid(self, user: int, sample: float) -> int:
        """One sample in grid steps; raises as `arrange`."""
        low, high, resolution = self.low, self.high, self.resolution
        if type(sample) is not int and type(sample) is not float:
            checks.number(sample=sample)
            sample = float(sample)
        if type(user) is not int or user < 0:
            checks.integer_at_least(0, user=user)
        if user >= self.n_users:
            raise ValueError(f"user must be below n_users = {self.n_users}, got {user!r}")
        if not low <= sample <= high:
            raise ValueError(f"sample must lie in [{low:g}, {high:g}], got {sample!r}")
        steps = (sample - low) / (high - low) * resolution
        value = round(steps)
        if resolution == 1 and steps != value:
            raise ValueError(f"sample must be {self._ends}, got {sample!r}; {_REAL}")
        return value if value < resolution else resolution

    def but(self, **changes: Any) -> Self:
        """The same settings with some changed."""
        return replace(self, **changes)


def finest(n_users: int, samples_per_user: int, epsilon: float, horizon: int) -> int:
    """Steps of a grid for real values, a power of two: as many, from 2^10 to 2^20, as sums and `laplace` have room for."""
    noise = min(2**46, 2**54 // horizon) * min(epsilon, 1024.0) / 16 / samples_per_user  # 16: l1 of a tree, and more
    most = min(_FINE, 2**60 // (n_users * samples_per_user), int(noise))
    return 1 << max(most.bit_length() - 1, 10)


class Release(NamedTuple):
    """Public.  Errors are distances to the mean of all samples so far, those that were dropped included, as the grid has
    them: each is rounded to it, by at most half a step, `unit` / 2.

    `standard_error` is that of the noise, exactly, and of what samples that are left out add if samples are independent
    with one mean and variance range^2/4; infinite while `samples` is 0.  `bias`: what the latter can be for any users and
    values; the whole range where blocks are projected.
    """

    estimate: float
    standard_error: float
    bias: float
    samples: int  # in the estimate
    dropped: int  # samples beyond a cap, where excess is "drop"


@dataclass(frozen=True, eq=False)
class Releases:
    """Public: one entry per step, as in `Release`; `dropped` is of the whole stream."""

    estimate: Array
    standard_error: Array
    bias: Array
    samples: Integers  # in the estimate
    dropped: int


def by_user(users: Integers, steps: Integers) -> tuple[Integers, Integers]:
    """`users` in [0, 2^31) and their `steps`, sorted by user, then step."""
    key = users << 32 | steps  # one sort of one number: three times as fast as a stable argsort
    key.sort()
    return key >> 32, key & 0xFFFFFFFF


def ranks(user: Integers) -> Integers:
    """Of samples sorted by user: which of its user's each is, from 1."""
    first: Integers = np.append(0, np.flatnonzero(user[1:] != user[:-1]) + 1)
    before: Integers = np.repeat(first, np.diff(first, append=len(user)))
    return np.arange(1, len(user) + 1) - before


def numbered(users: Integers) -> Integers:
    """Users by numbers that are few enough to be counted."""
    if users.size and not 0 <= users.min() <= users.max() <= 10**6 + 8 * len(users):
        _, users = np.unique(users, return_inverse=True)
    return users.astype(np.int64, copy=False)


def most_samples(users: ArrayLike) -> Integers:
    """M_t for every t: the largest number of samples that one user has contributed so far, (T,)."""
    who = numbered(np.asarray(users))
    user, step = by_user(who, np.arange(len(who)))
    return np.maximum.accumulate(ranks(user)[np.argsort(step)])
