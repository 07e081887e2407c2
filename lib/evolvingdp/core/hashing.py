"""Public hash families: each of `rows` functions sends a key to a cell in [0, width) and a sign in {-1, +1}.

`MultiplyShift` is exactly pairwise independent, which is what the proofs of Bassily et al. (2020) ask of (h_j, g_j); the
paper's experiments took prefix bits of SHA-256.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks

_LOW = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)
UNSIGNED = np.array(1, dtype=np.int8)


class HashFamily(Protocol):
    """(h_j, g_j) for j in [0, rows): cells in [0, width), signs in {-1, +1}."""

    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    def cells(self, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """h_rows(keys), shapes broadcast."""
        ...

    def signs(self, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.int8]:
        """g_rows(keys), or `UNSIGNED`, one 1 for all."""
        ...


@checks.draws
@dataclass(frozen=True, eq=False)
class MultiplyShift:
    """Top bits of (a_0 x_low + a_1 x_high + b) mod 2^64, x = x_low + 2^32 x_high, with random 64-bit a_0, a_1, b.

    The first log2(width) bits of one such function are the cell, the first bit of another, independent one is the sign.
    For two different keys below 2^64 the two values of either are jointly uniform (Dietzfelbinger 1996: exact while
    32 + bits <= 65; widths go up to 2^32, and cells are uniform to width / 2^32 where one is no power of two).  One function
    for both would be pairwise independent as well, but the signs of two words would then depend on whether both collide with
    a third, and their errors would not cancel.
    """

    multipliers: NDArray[np.uint64]  # (2, 2, rows): of the cell's and the sign's function, for x_low and x_high
    offsets: NDArray[np.uint64]  # (2, rows)
    width: int
    signed: bool = True  # else all signs are +1, as in Hashtogram: collisions always add
    scrambled: bool = False  # keys first, or those in progression collide together

    @classmethod
    def draw(
        cls, rows: int, width: int, rng: np.random.Generator, *, signed: bool = True, scrambled: bool = False
    ) -> MultiplyShift:
        """`rows` independent pairs of functions; `rng` is public randomness."""
        checks.integer_at_least(1, rows=rows, width=width)
        if width > 2**32:
            raise ValueError(f"width must be at most 2^32, got {width}")
        words = rng.integers(0, 2**64, size=(3, 2, rows), dtype=np.uint64)
        return cls(words[:2].swapaxes(0, 1), words[2], width, signed, scrambled)

    @property
    def rows(self) -> int:
        return int(self.offsets.shape[1])

    def cells(self, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        bits = self._mix(0, rows, keys)
        bits >>= _HALF
        bits *= np.uint64(self.width)
        bits >>= _HALF
        return bits.view(np.int64)

    def signs(self, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.int8]:
        if not self.signed:
            return UNSIGNED
        return (self._mix(1, rows, keys).view(np.int64) >> 63).astype(np.int8) | np.int8(1)  # -1 or 0, then -1 or 1

    def _mix(self, function: int, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        low, high = self.multipliers[function]
        keys = scramble(keys) if self.scrambled else keys
        if keys.size and keys.max() > _LOW:
            mixed: NDArray[np.uint64] = low[rows] * (keys & _LOW) + high[rows] * (keys >> _HALF)
        else:  # the same function without the zero terms
            mixed = low.take(rows) * keys
        mixed += self.offsets[function].take(rows)
        return mixed


def scramble(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A fixed bijection of 64-bit keys (the finalizer of Steele, Lea and Flood's SplitMix64, 2014).

    Pairwise independence says nothing about three keys: `MultiplyShift` sends keys in arithmetic progression to cells in
    arithmetic progression, so that they collide all together.  Scrambled first, they do not, and pairs stay independent.
    """
    mixed = np.asarray(keys, dtype=np.uint64)
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(multiplier)
    return mixed ^ (mixed >> np.uint64(31))
