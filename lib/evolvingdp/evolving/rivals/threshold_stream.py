"""A population whose bits change rarely: user u holds 1 in the epochs in which the mean is above its own fixed threshold.

Thresholds are uniform in [0, 1), so a bit is 1 with probability `means[t]`, and a user's bit changes when the mean crosses
its threshold. It is what alpha-point rounding makes of a value that all users share (Ding et al. 2017). Dyadic trees and
memoization count on bits like these; the streams of `streams` draw fresh bits in every epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.sampling import blocks
from evolvingdp.evolving.streams import BitStream

_ENTRIES = 1 << 22  # bits of a chunk of users


@checks.plain
@dataclass(frozen=True, eq=False)
class ThresholdStream:
    """`n_users` with uniform thresholds; the mean of their bits in each epoch, `means` (epochs,)."""

    n_users: int
    means: NDArray[np.float64]

    @classmethod
    def make(cls, n_users: int, means: ArrayLike) -> ThresholdStream:
        """Checked arrays."""
        checks.integer_at_least(1, n_users=n_users)
        array = np.asarray(means, dtype=float)
        if array.ndim != 1 or not array.size:
            raise ValueError(f"means must be (epochs,), one or more, got shape {array.shape}")
        if not np.all((array >= 0) & (array <= 1)):
            raise ValueError(f"means must lie in [0, 1], got {array[~((array >= 0) & (array <= 1))][0]}")
        return cls(n_users, array)

    @property
    def horizon(self) -> int:
        return len(self.means)

    @property
    def truth(self) -> NDArray[np.float64]:
        """What is estimated, (epochs,)."""
        return self.means

    @property
    def read_once(self) -> BitStream:
        """The same users for a protocol that reads each of them in one epoch only: a bit by itself is Bernoulli(mean)."""
        return BitStream.make([self.n_users], self.means, 1)

    def kinds(self) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """All different users: shares (kinds,) of the population, and the bits of each, (kinds, epochs)."""
        edges = np.unique(np.concatenate([[0.0, 1.0], self.means]))
        rank = np.searchsorted(edges, self.means)
        return np.diff(edges), (np.arange(len(edges) - 1)[:, None] < rank).astype(np.uint8)

    def chunks(self, rng: np.random.Generator) -> Iterator[NDArray[np.uint8]]:
        """The bits of all users, (users, epochs) at a time."""
        for block in blocks(self.n_users, max(1, _ENTRIES // self.horizon)):
            yield (rng.random((len(block), 1)) < self.means).astype(np.uint8)

    def truncation_bias(self, changes: int) -> NDArray[np.float64]:
        """By how much the mean is off in each epoch, (epochs,), when a user's bit stays as it is after that many changes."""
        shares, bits = self.kinds()
        return np.asarray(shares @ (truncate(bits, changes).astype(float) - bits))

    def most_changes(self) -> int:
        """Of any user's bit, the first 1 included: truncation to so many has no bias."""
        return int(_changes(self.kinds()[1])[:, -1].max())


def truncate(bits: NDArray[np.uint8], changes: int) -> NDArray[np.uint8]:
    """(users, epochs) bits that stay as they are after so many changes. A bit starts from 0, so that a first 1 is a change;
    after c changes it is c mod 2."""
    return (np.minimum(_changes(bits), changes) & 1).astype(np.uint8)


def check_bits(bits: NDArray[np.uint8], horizon: int) -> None:
    """Raise unless `bits` are (users, horizon) integers, each 0 or 1."""
    if bits.ndim != 2 or bits.shape[1] != horizon or bits.dtype.kind not in "iub":
        raise ValueError(f"bits must be (users, {horizon}) integers, got {bits.dtype} {bits.shape}")
    if (wrong := (bits < 0) | (bits > 1)).any():
        raise ValueError(f"bits must be 0 or 1, got {bits[wrong][0]} of user {int(wrong.any(axis=1).argmax())}")


def same_sizes(settings: Any, stream: Any) -> None:
    """Raise ValueError unless `stream` has the users and epochs of `settings`."""
    wanted, got = ((one.n_users, one.horizon) for one in (settings, stream))
    if got != wanted:
        raise ValueError(f"stream must have n_users, horizon = {wanted}, got {got}")


def _changes(bits: NDArray[np.uint8]) -> NDArray[np.int32]:
    return np.cumsum(np.diff(bits, axis=1, prepend=np.uint8(0)) != 0, axis=1, dtype=np.int32)
