"""A stream sorted by user, then time, and refused or cut where it breaks the rules: what several releases of it share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.user_mean import UserMean

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Arranged:
    """The accepted samples, sorted by user, then time; what they are is secret."""

    user: Integers
    step: Integers  # 1 is the first
    rank: Integers  # 1 is the user's first
    value: Integers
    n_steps: int
    grid: tuple[float, float, int]  # low, high, resolution
    known: dict[Any, Any] = field(default_factory=dict)  # what releases have worked out of it, without noise

    @cached_property
    def most(self) -> tuple[int, int, int]:
        """The largest user and rank, and the number of samples."""
        return int(self.user.max(initial=-1)), int(self.rank.max(initial=0)), len(self.user)

    def check(self, settings: UserMean) -> None:
        """Raise ValueError unless `settings` would have accepted all of it: their noise is for no more."""
        user, rank, accepted = self.most
        if user >= settings.n_users or rank > settings.samples_per_user or accepted > settings.max_steps:
            raise ValueError(
                f"arranged must be within n_users = {settings.n_users}, samples_per_user = {settings.samples_per_user} and "
                f"horizon = {settings.max_steps}, got user {user}, {rank} samples of one, {accepted} in all"
            )
        if self.grid != grid(settings):
            raise ValueError(f"arranged must have low, high and resolution {grid(settings)}, got {self.grid}")


def grid(settings: UserMean) -> tuple[float, float, int]:
    return settings.low, settings.high, settings.resolution


def arrange(settings: UserMean, users: ArrayLike, samples: ArrayLike) -> Arranged:
    """The stream `users` (T,), `samples` (T,) as `settings` accept it; raises what `offline.release` raises."""
    who, values = np.asarray(users), settings.encode(samples)
    if who.ndim != 1 or (who.dtype.kind not in "iu" and who.size) or who.shape != values.shape:
        raise TypeError(f"users must be integers of shape {values.shape}, got {who.dtype} {who.shape}")
    user, step, rank = _accepted(settings, who)
    return Arranged(user, step, rank, values[step - 1], len(who), grid(settings))


def by_user(users: Integers, steps: Integers) -> tuple[Integers, Integers, Integers]:
    """`users` in [0, 2^31) and their `steps` sorted by user, then step; and which of its user's samples each is, from 1."""
    key = users << 32 | steps  # one sort of one number: three times as fast as a stable argsort
    key.sort()
    user, step = key >> 32, key & 0xFFFFFFFF
    first = np.flatnonzero(np.diff(user, prepend=user[:1] - 1))
    return user, step, np.arange(1, len(user) + 1) - np.repeat(first, np.diff(first, append=len(user)))


def _accepted(settings: UserMean, who: NDArray[np.integer]) -> tuple[Integers, Integers, Integers]:
    """`by_user` of the samples within the caps; raises where there are others, unless those may be dropped."""
    users = np.minimum(who, settings.n_users).astype(np.int64, copy=False)  # large unsigned numbers would turn negative
    if len(users) and users.min() < 0:
        raise ValueError(f"users must be >= 0, got {users.min()} at position {users.argmin()}")
    late = users >= settings.n_users
    known = np.flatnonzero(~late)
    user, step, rank = by_user(users[known], known + 1)
    kept = rank <= settings.samples_per_user
    if np.count_nonzero(kept) > settings.max_steps:  # the earliest stay
        kept &= step <= np.partition(step[kept], settings.max_steps - 1)[settings.max_steps - 1]
    if len(user) == len(users) and kept.all():
        return user, step, rank
    if settings.excess == "drop":
        return user[kept], step[kept], rank[kept]
    hint = '; excess="drop" leaves such samples out'
    if late.any():
        position = int(np.argmax(late))
        raise ValueError(
            f"users must be below n_users = {settings.n_users}, got {who[position]} at position {position}{hint}"
        )
    over = rank > settings.samples_per_user
    if over.any():
        raise ValueError(
            f"users must occur at most samples_per_user = {settings.samples_per_user} times, user {user[over][0]} comes"
            f" again at position {step[over][0] - 1}{hint}"
        )
    raise ValueError(f"users must have at most horizon = {settings.max_steps} entries, got {len(users)}{hint}")
