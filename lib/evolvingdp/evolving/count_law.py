"""The law of the ones that a user draws in an epoch: its tails, and the counts of many users, drawn together and exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evolvingdp.core import checks

_OUTSIDE = 1e-30  # mass of the count's law beyond the window that is kept


@checks.draws
@dataclass(frozen=True, eq=False)
class CountLaw:
    """The law of one user's ones in an epoch: P(K = low + i) = mass[i]."""

    low: int
    mass: NDArray[np.float64]

    @classmethod
    @lru_cache(maxsize=128)  # many runs have the same epochs
    def binomial(cls, bits: int, mean: float) -> CountLaw:
        half = math.ceil(math.sqrt(bits * math.log(2 / _OUTSIDE) / 2))  # Hoeffding
        low, high = max(0, math.floor(bits * mean) - half), min(bits, math.ceil(bits * mean) + half)
        mode = min(bits, math.floor((bits + 1) * mean))
        before, after = (
            np.arange(mode, low, -1),
            np.arange(mode, high),
        )  # a value's mass from that of the one nearer to the mode
        down = np.cumprod(before * (1 - mean) / ((bits - before + 1) * mean))
        up = np.cumprod((bits - after) * mean / ((after + 1) * (1 - mean)))
        mass = np.concatenate([down[::-1], [1.0], up])
        return cls(low, mass / mass.sum())

    @property
    def values(self) -> NDArray[np.int64]:
        return self.low + np.arange(len(self.mass))

    def draw_outside(
        self, users: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """The counts, in all, of users[i] (v,) with none of the values number low[i] to high[i] - 1: (values, v)."""
        below = np.concatenate([[0.0], np.cumsum(self.mass)])[low]
        above = np.concatenate([[0.0], np.cumsum(self.mass[::-1])])[len(self.mass) - high]
        up = _binomial(users, above, below, rng)
        drawn = _among_first(self.mass, users - up, low, rng)
        return drawn + _among_first(self.mass[::-1], up, len(self.mass) - high, rng)[::-1]

    def draw_inside(
        self, users: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """The same of users who have one of these values; `low` and `high` ascend.

        Ranges that share a value are cut there: what is left of them on either side begins or ends alike.
        """
        drawn, first = np.zeros((len(self.mass), users.shape[1]), dtype=np.int64), 0
        some = users.any(axis=1)
        users, low, high = users[some], low[some], high[some]
        while first < len(users):
            cut = int(high[first])
            rows = slice(first, max(first + 1, int(np.searchsorted(low, cut))))
            up, down = self.mass[cut:], self.mass[:cut][::-1]
            above = np.concatenate([[0.0], np.cumsum(up)])[high[rows] - cut]
            below = np.concatenate([[0.0], np.cumsum(down)])[cut - low[rows]]
            going_up = _binomial(users[rows], above, below, rng)
            drawn[cut:] += _among_first(up, going_up, high[rows] - cut, rng)
            drawn[:cut] += _among_first(down, users[rows] - going_up, cut - low[rows], rng)[::-1]
            first = rows.stop
        return drawn


def _binomial(
    users: NDArray[np.int64], this: NDArray[np.float64], other: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """How many of users[..., v] go where the mass is `this` (...) and not `other`; they cannot be anywhere else."""
    total = this + other
    chance = np.divide(this, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(rng.binomial(users, chance[..., None]))


def _among_first(
    mass: NDArray[np.float64], users: NDArray[np.int64], lengths: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The values, in all, of users[i] (v,) whose laws are `mass` cut to its first lengths[i] values: (values, v).

    By halves: whoever may have some of the second half's values has one of these, or any of the first half's. So a step
    leaves users who are told apart by their half and by where their range ends in it, at most a kind for each value.
    """
    drawn, some = np.zeros((len(mass), users.shape[1]), dtype=np.int64), users.any(axis=1)
    if not some.any():
        return drawn
    common, longest = int(lengths[some].min()), int(lengths[some].max())
    width = 1 << (longest - common).bit_length()
    weight, held = np.zeros(width), np.zeros((width, users.shape[1]), dtype=np.int64)
    weight[0], weight[1 : longest - common + 1] = mass[:common].sum(), mass[common:longest]
    np.add.at(held, lengths[some] - common, users[some])
    while width > 1:
        width //= 2
        halves, ends = weight.reshape(-1, 2, width), held.reshape(-1, 2, width, users.shape[1])
        stay = _binomial(ends[:, 1], np.cumsum(halves[:, 1], axis=1), halves[:, :1].sum(axis=2), rng)
        ends[:, 0, -1] += (ends[:, 1] - stay).sum(axis=1)
        ends[:, 1] = stay
    drawn[common:longest] = held[1 : longest - common + 1]
    if held[0].any():
        drawn[:common] = rng.multinomial(held[0], mass[:common] / weight[0]).T
    return drawn


def at_least(bits: int, means: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Bin(bits, means) >= count), for counts of any size, with all its digits where it is small."""
    possible = np.minimum(np.maximum(count, 1), bits)
    inside = special.betainc(possible, bits - possible + 1, means)
    return np.where(count <= 0, 1.0, np.where(count > bits, 0.0, inside))


def at_most(bits: int, means: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Bin(bits, means) <= count): that of at least bits - count zeros."""
    return at_least(bits, 1 - means, bits - count)
