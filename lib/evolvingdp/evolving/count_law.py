"""The law of the ones that a user draws in an epoch, and its tails."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

_OUTSIDE = 1e-30  # mass of the count's law beyond the window that is kept


@dataclass(frozen=True, eq=False)
class CountLaw:
    """The law of one user's ones in an epoch: P(K = low + i) = mass[i]."""

    low: int
    mass: NDArray[np.float64]

    @classmethod
    def binomial(cls, bits: int, mean: float) -> CountLaw:
        half = math.ceil(math.sqrt(bits * math.log(2 / _OUTSIDE) / 2))  # Hoeffding
        low, high = max(0, math.floor(bits * mean) - half), min(bits, math.ceil(bits * mean) + half)
        return cls(low, stats.binom.pmf(np.arange(low, high + 1), bits, mean))

    def __add__(self, other: CountLaw) -> CountLaw:
        """The law of the sum of two independent counts."""
        return CountLaw(self.low + other.low, np.convolve(self.mass, other.mass))

    @property
    def values(self) -> NDArray[np.int64]:
        return self.low + np.arange(len(self.mass))

    def draw(self, users: NDArray[np.integer], allowed: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
        """The counts of `users` (v,) given that they lie where `allowed` (values,): (values, v), columns sum to users."""
        mass = np.where(allowed, self.mass, 0.0)
        if not np.any(users):
            return np.zeros((len(mass), len(users)), dtype=np.int64)
        return rng.multinomial(users, mass / mass.sum()).T


def at_least(bits: int, means: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Bin(bits, means) >= count), for counts of any size, with all its digits where it is small."""
    inside = special.betainc(np.clip(count, 1, bits), bits - np.clip(count, 1, bits) + 1, means)
    return np.where(count <= 0, 1.0, np.where(count > bits, 0.0, inside))


def at_most(bits: int, means: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Bin(bits, means) <= count): that of at least bits - count zeros."""
    return at_least(bits, 1 - means, bits - count)
