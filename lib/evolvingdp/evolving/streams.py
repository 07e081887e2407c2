"""What the users' bits and words are drawn from: groups of users whose means or frequencies change over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks


@checks.draws
@dataclass(frozen=True, eq=False)
class BitStream:
    """`sizes` (groups,) users, whose bits have `means` (groups, epochs)."""

    sizes: NDArray[np.int64]
    means: NDArray[np.float64]
    epoch_length: int

    @classmethod
    def make(cls, sizes: ArrayLike, means: ArrayLike, epoch_length: int) -> BitStream:
        """Checked arrays."""
        checks.counts(sizes=sizes)
        if not np.all(np.asarray(sizes) > 0):
            raise ValueError(f"sizes must hold a user or more for each group, got {list(np.asarray(sizes))}")
        checks.integer_at_least(1, epoch_length=epoch_length)
        array = np.atleast_2d(np.asarray(means, dtype=float))
        if array.shape[0] != np.size(sizes):
            raise ValueError(f"means must have a row per group, got {array.shape} for {np.size(sizes)} groups")
        if (outside := ~((array >= 0) & (array <= 1))).any():
            raise ValueError(f"means must lie in [0, 1], got {array[outside][0]}")
        return cls(np.asarray(sizes, dtype=np.int64), array, epoch_length)

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
        means = self.means[:, epochs - 1].T
        return np.stack([1 - means, means], axis=-1)

    def histograms(self, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(n_users, 2): every user's zeros and ones in `epoch`."""
        ones = self.counts(epoch, rng)
        return np.stack([self.epoch_length - ones, ones], axis=1)

    @property
    def truth(self) -> NDArray[np.float64]:
        """p^t: the mean of all users' bit means in each epoch, (epochs,)."""
        return np.asarray(self.sizes @ self.means / self.n_users)

    def counts(self, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The ones of every user in `epoch` (1 to horizon), (n_users,), group by group."""
        drawn = [
            rng.binomial(self.epoch_length, mean, size=size)
            for size, mean in zip(self.sizes, self.means[:, epoch - 1], strict=True)
        ]
        return np.concatenate(drawn)


@checks.draws
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


@checks.draws
def sampled(counts: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int64]:
    """One of each user's words, each alike, (users,), of counts (users, n_words)."""
    below = np.cumsum(counts, axis=1)
    return np.asarray(np.sum(below <= rng.integers(0, below[:, -1])[:, None], axis=1))
