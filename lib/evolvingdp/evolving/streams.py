"""What the users' bits and words are drawn from: groups of users whose means or frequencies change over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks


@dataclass(frozen=True, eq=False)
class BitStream:
    """`sizes` (groups,) users; `means` (groups, epochs) of each bit of an epoch before `late` of its bits are drawn from
    `late_means` (groups, epochs) instead: a change within an epoch. `late` (epochs,) bits, 0 nearly everywhere."""

    sizes: NDArray[np.int64]
    means: NDArray[np.float64]
    epoch_length: int
    late: NDArray[np.int64]
    late_means: NDArray[np.float64]

    @classmethod
    def make(
        cls,
        sizes: ArrayLike,
        means: ArrayLike,
        epoch_length: int,
        late: ArrayLike | None = None,
        late_means: ArrayLike | None = None,
    ) -> BitStream:
        """Checked arrays; without `late` no mean changes within an epoch."""
        checks.counts(sizes=sizes)
        if not np.all(np.asarray(sizes) > 0):
            raise ValueError(f"sizes must hold a user or more for each group, got {list(np.asarray(sizes))}")
        checks.integer_at_least(1, epoch_length=epoch_length)
        if (late is None) != (late_means is None):
            raise ValueError("late and late_means must be given together")
        if late is not None and np.asarray(late).dtype.kind not in "iu":
            raise TypeError(f"late must hold integers, got {np.asarray(late).dtype}")
        array = np.atleast_2d(np.asarray(means, dtype=float))
        if array.shape[0] != np.size(sizes):
            raise ValueError(f"means must have a row per group, got {array.shape} for {np.size(sizes)} groups")
        bits = np.zeros(array.shape[1], dtype=np.int64) if late is None else np.asarray(late, dtype=np.int64)
        other = array if late_means is None else np.atleast_2d(np.asarray(late_means, dtype=float))
        for name, values in (("means", array), ("late_means", other)):
            if not np.all((values >= 0) & (values <= 1)):
                raise ValueError(f"{name} must lie in [0, 1], got {values[~((values >= 0) & (values <= 1))][0]}")
        if bits.shape != array.shape[1:] or other.shape != array.shape or not np.all((bits >= 0) & (bits < epoch_length)):
            raise ValueError(f"late must be (epochs,) bits in [0, {epoch_length}), late_means (groups, epochs)")
        return cls(np.asarray(sizes, dtype=np.int64), array, epoch_length, bits, other)

    @property
    def n_users(self) -> int:
        return int(self.sizes.sum())

    @property
    def horizon(self) -> int:
        return int(self.means.shape[1])

    @property
    def n_words(self) -> int:
        """A bit is one of two words."""
        return 2

    def laws(self, epochs: NDArray[np.int64]) -> NDArray[np.float64]:
        """(epochs, groups, 2): of a random bit of these epochs (from 1)."""
        means = self.group_means[:, epochs - 1].T
        return np.stack([1 - means, means], axis=-1)

    def histograms(self, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(n_users, 2): every user's zeros and ones in `epoch`."""
        ones = self.counts(epoch, rng)
        return np.stack([self.epoch_length - ones, ones], axis=1)

    @property
    def group_means(self) -> NDArray[np.float64]:
        """The mean of each group's bits over each epoch, (groups, epochs)."""
        share = self.late / self.epoch_length
        return self.means * (1 - share) + self.late_means * share

    @property
    def truth(self) -> NDArray[np.float64]:
        """p^t: the mean of all users' bit means in each epoch, (epochs,)."""
        return np.asarray(self.sizes @ self.group_means / self.n_users)

    def counts(self, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The ones of every user in `epoch` (1 to horizon), (n_users,), group by group."""
        column = epoch - 1
        late = int(self.late[column])
        parts = []
        for group, size in enumerate(self.sizes):
            ones = rng.binomial(self.epoch_length - late, self.means[group, column], size=size)
            if late:
                ones = ones + rng.binomial(late, self.late_means[group, column], size=size)
            parts.append(ones)
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class WordStream:
    """`sizes` (groups,) users; in epoch t (from 1) the words of group g are drawn from distributions[which[g, t - 1]]."""

    sizes: NDArray[np.int64]
    distributions: NDArray[np.float64]  # (k, n_words), rows sum to 1
    which: NDArray[np.int64]  # (groups, epochs)
    epoch_length: int

    @classmethod
    def make(cls, sizes: ArrayLike, distributions: ArrayLike, which: ArrayLike, epoch_length: int) -> WordStream:
        checks.counts(sizes=sizes)
        checks.integer_at_least(1, epoch_length=epoch_length)
        laws, index = np.atleast_2d(np.asarray(distributions, dtype=float)), np.atleast_2d(np.asarray(which))
        if not np.all(np.asarray(sizes) > 0):
            raise ValueError(f"sizes must hold a user or more for each group, got {list(np.asarray(sizes))}")
        if not np.all(laws >= 0) or not np.allclose(laws.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise ValueError("distributions must hold rows of probabilities that sum to 1")
        if len(index) != np.size(sizes) or index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= len(laws):
            raise ValueError(f"which must be (groups, epochs) row numbers below {len(laws)} for {np.size(sizes)} groups")
        return cls(np.asarray(sizes, dtype=np.int64), laws, index.astype(np.int64), epoch_length)

    @property
    def n_users(self) -> int:
        return int(self.sizes.sum())

    @property
    def horizon(self) -> int:
        return int(self.which.shape[1])

    @property
    def n_words(self) -> int:
        return int(self.distributions.shape[1])

    def laws(self, epochs: NDArray[np.int64]) -> NDArray[np.float64]:
        """(epochs, groups, n_words): of a word of these epochs (from 1)."""
        return self.distributions[self.which[:, epochs - 1].T]

    @property
    def truth(self) -> NDArray[np.float64]:
        """(epochs, n_words): the mean of all users' distributions in each epoch."""
        weights = np.zeros((self.which.shape[1], len(self.distributions)))
        for size, row in zip(self.sizes, self.which, strict=True):
            weights[np.arange(len(row)), row] += size / self.n_users
        return weights @ self.distributions

    def histograms(self, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(n_users, n_words) counts of every user's words in `epoch`, group by group."""
        laws = self.distributions[self.which[:, epoch - 1]]
        drawn = [rng.multinomial(self.epoch_length, law, size=size) for size, law in zip(self.sizes, laws, strict=True)]
        return np.concatenate(drawn)


@checks.plain
def steps(horizon: int, start: float, changes: dict[int, float]) -> NDArray[np.float64]:
    """A mean that is `start` and becomes changes[epoch] at each epoch named, (horizon,)."""
    means = np.full(horizon, float(start))
    for epoch in sorted(changes):
        if not 2 <= epoch <= horizon:
            raise ValueError(f"changes must name epochs from 2 to {horizon}, got {epoch}")
        means[epoch - 1 :] = changes[epoch]
    return means


@checks.plain
def drift(horizon: int, start: float, end: float) -> NDArray[np.float64]:
    """A mean that moves evenly from `start` to `end`, (horizon,)."""
    return np.linspace(start, end, horizon)
