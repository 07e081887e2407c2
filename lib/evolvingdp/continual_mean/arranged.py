"""A stream, refused or cut where it breaks the rules, and sorted by user where that is needed: what releases of it share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.user_mean import UserMean

Integers = NDArray[np.int64]


class Ranked(NamedTuple):
    """Samples sorted by user, then time."""

    step: Integers  # 1 is the first
    rank: Integers  # 1 is the user's first
    value: Integers


@dataclass(frozen=True, eq=False, repr=False)
class Arranged:
    """The accepted samples, in order; what they are is secret."""

    users: Integers
    step: Integers  # 1 is the first
    values: Integers  # of all steps, in grid units
    grid: tuple[float, float, int]  # low, high, resolution
    sorted: tuple[Integers, Integers, Integers] | None = None  # as `by_user` returns it, where it is known
    known: dict[Any, Any] = field(default_factory=dict)  # what releases have worked out of it, without noise

    @property
    def n_steps(self) -> int:
        return len(self.values)

    @cached_property
    def by_user(self) -> Ranked:
        _, step, rank = self.sorted or by_user(self.users, self.step)
        return Ranked(step, rank, self.values[step - 1])

    @cached_property
    def most(self) -> tuple[int, int, int]:
        """The largest user, the most samples of one, and the number of samples."""
        return int(self.users.max(initial=-1)), _most(self.users), len(self.users)

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
    users, step, in_order = _accepted(settings, who)
    return Arranged(users, step, values, grid(settings), in_order)


def by_user(users: Integers, steps: Integers) -> tuple[Integers, Integers, Integers]:
    """`users` in [0, 2^31) and their `steps` sorted by user, then step; and which of its user's samples each is, from 1."""
    key = users << 32 | steps  # one sort of one number: three times as fast as a stable argsort
    key.sort()
    user, step = key >> 32, key & 0xFFFFFFFF
    first = np.flatnonzero(np.diff(user, prepend=user[:1] - 1))
    return user, step, np.arange(1, len(user) + 1) - np.repeat(first, np.diff(first, append=len(user)))


def _most(users: Integers) -> int:
    """The most samples of one user; counted, or by sorting where the users' numbers are too far apart to count."""
    if not len(users):
        return 0
    if users.max() > 10**6 + 8 * len(users):
        return int(np.unique(users, return_counts=True)[1].max())
    return int(np.bincount(users).max())


def _accepted(
    settings: UserMean, who: NDArray[np.integer]
) -> tuple[Integers, Integers, tuple[Integers, Integers, Integers] | None]:
    """Users and steps of the samples within the caps, and these sorted where they had to be; raises where there are others,
    unless those may be dropped."""
    late = who >= settings.n_users
    users = np.where(late, np.int64(settings.n_users), who.astype(np.int64, copy=False))  # large unsigned ones turn negative
    if len(users) and users.min() < 0:
        raise ValueError(f"users must be >= 0, got {users.min()} at position {users.argmin()}")
    cap = settings.samples_per_user
    known, in_order = np.flatnonzero(~late), None
    if _most(users[known]) > cap:
        user, step, rank = by_user(users[known], known + 1)
        within = rank <= cap
        if settings.excess == "error" and not late.any():
            raise ValueError(
                f"users must occur at most samples_per_user = {cap} times, user {user[~within][0]} comes again at "
                f'position {step[~within][0] - 1}; excess="drop" leaves such samples out'
            )
        kept = np.zeros(len(who), dtype=bool)
        kept[step[within] - 1] = True
        known = np.flatnonzero(kept)
        if len(known) <= settings.max_steps:
            in_order = user[within], step[within], rank[within]
    if settings.excess == "error" and len(known) < len(users):
        position = int(np.argmax(late))
        raise ValueError(
            f"users must be below n_users = {settings.n_users}, got {who[position]} at position {position}; "
            'excess="drop" leaves such samples out'
        )
    if settings.excess == "error" and len(known) > settings.max_steps:
        raise ValueError(
            f"users must have at most horizon = {settings.max_steps} entries, got {len(users)}; "
            'excess="drop" leaves such samples out'
        )
    known = known[: settings.max_steps]  # the earliest stay
    return users[known], known + 1, in_order
