"""Phi of HEAVYTHRESH, times sqrt(w): w x d signs that hash frequencies of words. Never stored, whatever w and d are.

`Hadamard` is the default: w >= d, words do not blur each other, transforms take w log w steps. `HashSigns` is what the paper
has in mind, a random Phi that can have w < d: row s is a hash function of the word, and two words blur each other by the
mean of w independent signs, which Hoeffding's inequality bounds for all pairs (`blur`). A transform takes w d steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks, hadamard
from evolvingdp.core.hashing import scramble

_AT_ONCE = 1 << 20  # entries of an array that holds a part of users x w or w x d
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Hadamard:
    """sqrt(w) Phi: the first `n_words` columns of the Hadamard matrix with `width` >= n_words, a power of two, rows."""

    n_words: int

    @property
    def width(self) -> int:
        return 1 << (self.n_words - 1).bit_length()

    def signs(self, rows: NDArray[np.integer], words: NDArray[np.integer]) -> NDArray[np.int8]:
        """Entries, +-1; shapes broadcast."""
        return hadamard.signs(rows, words)

    def signed(self, values: NDArray[np.number]) -> NDArray[np.float64]:
        """(k, n_words) -> (k, width): each row's hash, exact for integers below 2^53."""
        padded = np.zeros((len(values), self.width))
        padded[:, : self.n_words] = values
        return hadamard.transform(padded)

    def largest(self, values: NDArray[np.number]) -> NDArray[np.float64]:
        """(k, n_words) -> (k,): the largest absolute value of each row's hash."""
        parts = _parts(values, self.width)
        return np.concatenate([np.abs(self.signed(part)).max(axis=1) for part in parts])

    def by_word(self, sums: NDArray[np.number]) -> NDArray[np.float64]:
        """(width,) -> (n_words,): the transposed product."""
        return hadamard.transform(sums[None, :])[0, : self.n_words]

    def blur(self, beta: float) -> float:
        """How much of any distribution's mass other words may shift to a word, except with probability beta / 4."""
        return 0.0


@dataclass(frozen=True)
class HashSigns:
    """Row s: the top bit of a_s v + b_s mod 2^64, with a_s and b_s the next two outputs of SplitMix64 from `seed` on.

    For random a_s and b_s the signs of two words below 2^32 are exactly independent (Dietzfelbinger 1996), and so are rows.
    `seed` is public, and all that a device needs to know.
    """

    n_words: int
    width: int
    seed: int

    def __post_init__(self) -> None:
        checks.integer_at_least(2, n_words=self.n_words)
        checks.integer_at_least(1, width=self.width)
        checks.integer_at_least(0, seed=self.seed)
        if self.n_words > 2**32 or self.seed >= 2**64:
            raise ValueError(f"n_words must be at most 2^32 and seed below 2^64, got {self.n_words} and {self.seed}")

    @classmethod
    def draw(cls, n_words: int, width: int, rng: np.random.Generator) -> HashSigns:
        """A random one; `rng` is public randomness."""
        return cls(n_words, width, int(rng.integers(2**64, dtype=np.uint64)))

    def signs(self, rows: NDArray[np.integer], words: NDArray[np.integer]) -> NDArray[np.int8]:
        place = 2 * np.asarray(rows).astype(np.uint64)
        first, second = (scramble(np.uint64(self.seed) + (place + np.uint64(step)) * np.uint64(_GOLDEN)) for step in (1, 2))
        mixed = first * np.asarray(words).astype(np.uint64) + second
        result: NDArray[np.int8] = 1 - 2 * (mixed >> np.uint64(63)).astype(np.int8)
        return result

    def signed(self, values: NDArray[np.number]) -> NDArray[np.float64]:
        result = np.empty((len(values), self.width))
        for rows, block in self._blocks():
            result[:, rows] = values @ block.T
        return result

    def largest(self, values: NDArray[np.number]) -> NDArray[np.float64]:
        result = np.zeros(len(values))
        for _, block in self._blocks():
            result = np.maximum(result, _largest(values, block))
        return result

    def by_word(self, sums: NDArray[np.number]) -> NDArray[np.float64]:
        result, values = np.zeros(self.n_words), np.asarray(sums, dtype=float)
        for rows, block in self._blocks():
            result += values[rows] @ block
        return result

    def blur(self, beta: float) -> float:
        """sqrt(2 ln(4 d^2 / beta) / w): Hoeffding's inequality for all pairs of words."""
        checks.probability(beta=beta)
        return math.sqrt(2 * math.log(4 * self.n_words**2 / beta) / self.width)

    def _blocks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        step = max(1, _AT_ONCE // self.n_words)
        for first in range(0, self.width, step):
            yield _block(self, first, min(first + step, self.width))


Projection = Hadamard | HashSigns


def chosen(phi: Projection | None, n_words: int) -> Projection:
    """`phi` if it hashes `n_words` words, the Hadamard matrix for None; else TypeError or ValueError."""
    if phi is None:
        return Hadamard(n_words)
    if not isinstance(phi, Projection):
        raise TypeError(f"phi must be a projection such as HashSigns.draw(...), or None, got {phi!r}")
    if phi.n_words != n_words:
        raise ValueError(f"phi must hash n_words = {n_words} words, got one for {phi.n_words}")
    return phi


@lru_cache(maxsize=1)  # of a small Phi it is all; and no larger than the arrays that are made in any case
def _block(phi: HashSigns, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    rows = np.arange(first, last)
    return rows, phi.signs(rows[:, None], np.arange(phi.n_words)[None, :]).astype(np.float64)


def _parts(values: NDArray[np.number], width: int) -> Iterator[NDArray[np.number]]:
    """`values` by rows, few enough that their hashes of `width` coordinates fit."""
    step = max(1, _AT_ONCE // width)
    return (values[first : first + step] for first in range(0, max(1, len(values)), step))


def _largest(values: NDArray[np.number], block: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([np.abs(part @ block.T).max(axis=1) for part in _parts(values, len(block))])
