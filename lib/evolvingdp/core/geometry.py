"""Points that look alike, and which reports support each: what projective-geometry response is made of.

The points are 0 to `points` - 1 and so are the reports; point v is supported by the reports v + d modulo `points`, d in the
`block`.  Any two points have as many in common.

**Source.** Singer, A theorem in finite projective geometry and some applications to number theory (1938): the hyperplanes
of the space over the integers modulo a prime, by which Feldman, Nelson, Nguyen and Talwar (2022) estimate frequencies.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from evolvingdp.core import checks

MOST_POINTS = 1 << 17
_NEARLY = 1.05  # times the least variance: so much is given for more cells


@dataclass(frozen=True)
class Geometry:
    """The space of so many dimensions, `order` a prime; in two dimensions, where a point is its own block, any number."""

    order: int
    dimension: int

    def __post_init__(self) -> None:
        checks.integer_at_least(2, order=self.order, dimension=self.dimension)
        if self.dimension > 2 and any(self.order % part == 0 for part in range(2, math.isqrt(self.order) + 1)):
            raise ValueError(f"order must be a prime in {self.dimension} dimensions, got {self.order!r}")

    @cached_property
    def points(self) -> int:
        return int((self.order**self.dimension - 1) // (self.order - 1))

    @cached_property
    def size(self) -> int:
        """How many reports support a point."""
        return (self.points - 1) // self.order

    @property
    def common(self) -> int:
        """How many support both of two."""
        return (self.size - 1) // self.order

    @cached_property
    def share(self) -> float:
        """Of the reports, those that support a point."""
        return self.size / self.points

    @cached_property
    def block(self) -> NDArray[np.int64]:
        """The reports that support point 0, (size,).

        A linear map that takes one point through all others has them in a cycle, and so the hyperplanes.  The first of the
        maps that shift a vector's digits is taken, by the last row, whose cycle of a first digit alone is so long.
        """
        if self.dimension == 2:
            return np.zeros(1, dtype=np.int64)
        shifts = np.eye(self.dimension, k=1, dtype=np.int64)
        for last in itertools.product(range(self.order), repeat=self.dimension):
            shifts[-1] = last[::-1]
            if last[-1] and (cycle := self._cycle(shifts)) is not None:
                return np.asarray(np.flatnonzero(cycle[:, 0] == 0))
        raise AssertionError("every finite field has a primitive element")

    def _cycle(self, power: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Where the powers of a map take the first digit's point, (points, dimension), unless it is there again earlier."""
        found = np.eye(1, self.dimension, dtype=np.int64)
        while len(found) < self.points:
            found = np.concatenate([found, found @ power % self.order])
            power = power @ power % self.order
            if not found[1 : self.points, 1:].any(axis=1).all():
                return None
        return found[: self.points]

    @cached_property
    def _spectrum(self) -> NDArray[Any]:
        return np.asarray(np.conj(scipy.fft.rfft(np.bincount(self.block, minlength=self.points).astype(float))))

    def supporting(self, counts: NDArray[np.integer]) -> NDArray[np.int64]:
        """Of `counts` (points,) of reports, how many support each point, (points,): a correlation with the block."""
        if self.size == 1:
            return np.asarray(counts, dtype=np.int64)
        found = scipy.fft.irfft(scipy.fft.rfft(counts.astype(float)) * self._spectrum, self.points)
        return np.asarray(np.rint(found).astype(np.int64))


@cache
def spaces() -> list[Geometry]:
    """All of three dimensions and more with up to `MOST_POINTS` points."""
    most = math.isqrt(MOST_POINTS) - 1  # three dimensions
    primes = [q for q in range(2, most + 1) if all(q % p for p in range(2, math.isqrt(q) + 1))]
    made = [Geometry(q, dimension) for q in primes for dimension in range(3, int(math.log(MOST_POINTS, q)) + 2)]
    return [space for space in made if space.points <= MOST_POINTS]


@lru_cache(maxsize=8)
def geometry(epsilon: float, cells: int) -> Geometry:
    """The space for reports of `epsilon` with `cells` points or more, where there is one, and else with the most.

    A user's variance is (1 + (e^epsilon - 1) c)^2 / ((e^epsilon - 1)^2 c (1 - c)), c the share of the reports that support a
    point: that of the space is at most 5 % more than the least, which is at 1 / (e^epsilon + 1).
    """
    small = math.exp(-epsilon)

    def variance(share: float) -> float:
        return (small + (1 - small) * share) ** 2 / share / (1 - share)

    made = [*spaces(), Geometry(max(2, min(round(1 / small), MOST_POINTS - 1)), 2)]
    least = min(variance(space.share) for space in made)
    near = [space for space in made if variance(space.share) <= _NEARLY * least]
    enough = [space for space in near if space.points >= cells]
    if not enough:
        return max(near, key=lambda space: space.points)
    return min(enough, key=lambda space: (round(variance(space.share) / least, 2), space.points))
