"""Vectors over the integers modulo a prime, and which of them are orthogonal: what projective-geometry response is made of.

A vector of `dimension` digits below `order` is the integer with these digits in base `order`, most significant first.  A
*point* is a vector whose first digit that is not 0 is 1; every vector but 0 is a multiple of exactly one point.

**Source.** Feldman, Nelson, Nguyen and Talwar, Private frequency estimation via projective geometry (2022), re-derived with
all vectors instead of points as reports, which makes the probabilities those of local hashing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

MOST_VECTORS = 1 << 20  # a row's transform takes as many complex numbers
_NEARLY = 1.05  # times the least variance: so much is given for more cells


@dataclass(frozen=True)
class Geometry:
    """The space of order^dimension vectors, `order` a prime."""

    order: int
    dimension: int

    @property
    def vectors(self) -> int:
        return int(self.order**self.dimension)

    @property
    def points(self) -> int:
        return (self.vectors - 1) // (self.order - 1)

    @cached_property
    def vector_of(self) -> NDArray[np.int64]:
        """The vector of each point, (points,): with the first 1 at each place, all that may follow."""
        powers = [self.order**place for place in range(self.dimension)]
        return np.concatenate([np.arange(power, 2 * power) for power in powers])

    @cached_property
    def digits(self) -> NDArray[Any]:
        """(vectors, dimension), in the smallest type that holds a product of two."""
        places = self.order ** np.arange(self.dimension)[::-1]
        kind = np.min_scalar_type(self.dimension * (self.order - 1) ** 2)
        return np.asarray((np.arange(self.vectors)[:, None] // places % self.order).astype(kind))

    @cached_property
    def pivot(self) -> NDArray[np.int64]:
        """order^place of the first 1 of each point, (points,)."""
        return np.repeat(*(self.order ** np.arange(self.dimension) for _ in range(2)))

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """Which digit the first 1 of each point is, (points,)."""
        return np.repeat(np.arange(self.dimension)[::-1], self.order ** np.arange(self.dimension))

    @cached_property
    def point_of(self) -> NDArray[np.int32]:
        """The point that each vector is a multiple of, (vectors,); `points` for 0."""
        found = np.full(self.vectors, self.points, dtype=np.int32)
        for factor in range(1, self.order):
            found[self.times(factor)] = np.arange(self.points)
        return found

    @cached_property
    def partner(self) -> NDArray[np.int64]:
        """In two dimensions the one point that each is orthogonal to, (points,)."""
        assert self.dimension == 2
        turned = (-self.digits[:, 1].astype(np.int64) % self.order) * self.order + self.digits[:, 0]
        return np.asarray(self.point_of[turned[self.vector_of]], dtype=np.int64)

    def times(self, factor: int) -> NDArray[np.int64]:
        """The vectors `factor` times each point, (points,)."""
        places = self.order ** np.arange(self.dimension)[::-1]
        return np.asarray(factor * self.digits[self.vector_of].astype(np.int64) % self.order @ places)

    def product(self, vectors: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The inner products, shapes broadcast, each below `order`."""
        both = self.digits.take(vectors, 0), self.digits.take(self.vector_of.take(points), 0)
        return np.asarray(np.einsum("...i,...i->...", *both) % self.order, dtype=np.int64)

    def made_orthogonal(self, vectors: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Each of `vectors` with the digit at the first 1 of its point changed, so that it is orthogonal to the point.

        Uniform vectors become uniform orthogonal ones: the other digits are free.
        """
        digit = self.digits.ravel().take(vectors * self.dimension + self.place.take(points)).astype(np.int64)
        wanted = digit - self.product(vectors, points)
        wanted += self.order * (wanted < 0)  # a comparison is cheaper than a remainder
        wanted -= digit
        wanted *= self.pivot.take(points)
        wanted += vectors
        return np.asarray(wanted)

    def orthogonal(self, counts: NDArray[np.integer]) -> NDArray[np.int64]:
        """Of `counts` (points + 1,) of reports at each point and at 0, how many are orthogonal to each point, (points,).

        Over all multiples b v of a point, the characters of <b v, w> sum to order - 1 where v and w are orthogonal and to -1
        where they are not: the Fourier transform of the counts, spread over multiples, is order times the answer less all.
        It is real, and wanted where the first digit is 1 or 0 alone: that digit's sums, one as the real part and one as the
        imaginary, leave one transform over the other digits.
        """
        if self.dimension == 2:
            return np.asarray(counts[self.partner] + counts[-1], dtype=np.int64)
        spread = np.append(counts[:-1], 0).astype(float)[self.point_of].reshape(self.order, -1)
        turns = 2 * np.pi * np.arange(self.order) / self.order
        real, imaginary = np.stack([np.cos(turns), 1 - np.sin(turns)]) @ spread
        both = fft.fftn((real + 1j * imaginary).reshape((self.order,) * (self.dimension - 1)), overwrite_x=True).ravel()
        transform = np.append(both.imag[self.vector_of[: -len(both)]], both.real)
        answer = np.rint((transform + counts[:-1].sum()) / self.order).astype(np.int64)
        return np.asarray(answer + counts[-1])


@lru_cache(maxsize=8)
def geometry(epsilon: float, cells: int) -> Geometry:
    """The space for reports of `epsilon` with `cells` points or more, where there is one, and else with the most.

    Its order q has the least variance, (e^epsilon + q - 1)^2 / ((e^epsilon - 1)^2 (q - 1)) a user, of those with enough
    points, and at most 5 % more than the best, a prime next to e^epsilon + 1.
    """
    primes = [q for q in range(2, math.isqrt(MOST_VECTORS) + 1) if all(q % p for p in range(2, math.isqrt(q) + 1))]
    small = math.exp(-epsilon)
    variance = {q: (1 + (q - 1) * small) ** 2 / (q - 1) for q in primes}
    least = min(variance.values())
    spaces = [
        Geometry(q, dimension)
        for q in primes
        if variance[q] <= _NEARLY * least
        for dimension in range(2, int(math.log(MOST_VECTORS + 0.5, q)) + 1)
    ]
    enough = [space for space in spaces if space.points >= cells]
    return min(enough, key=lambda s: (variance[s.order], s.points)) if enough else max(spaces, key=lambda s: s.points)
