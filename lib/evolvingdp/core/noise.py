"""Additive noise, one family of laws: Laplace, Gaussian, exponential, and the discrete laws of the first two, drawn by
integer arithmetic only.  `sf(z)` is Pr[N >= z], at z as well, where a discrete law has mass.

The last bits of a real-valued draw in floating point can reveal the value (Mironov 2012), so that the textbook guarantee
does not hold for it to the letter.  `DiscreteLaplace` and `DiscreteGaussian` draw integers from the exact law by comparing
uniform integers (Canonne, Kamath and Steinke 2020, Algorithms 2 and 3); added to integers they keep the guarantee.  Seeded
generators are for study in any case.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri

from evolvingdp.core import checks

Array = NDArray[np.float64]
Shape = int | tuple[int, ...]

_SHORTEST, _LONGEST = 1 << 10, 1 << 15  # blocks of a tape: they grow, as a short stream must not pay for a long one
_GRID = 1 << 10  # a discrete scale is a multiple of 1/_GRID


class Noise(Protocol):
    """A law with independent draws."""

    @property
    def variance(self) -> float:
        """Of one draw."""

    def draw(self, size: Shape, rng: np.random.Generator) -> NDArray[Any]:
        """Independent draws: so many, or of this shape."""


class Law(ABC):
    """What follows from a law's tails; where only the upper one is given, it is symmetric around 0."""

    scale: float  # some length of the law

    @abstractmethod
    def log_sf(self, z: ArrayLike) -> Array:
        """The logarithm of Pr[N >= z], without cancellation."""

    def log_cdf(self, z: ArrayLike) -> Array:
        """The logarithm of Pr[N < z]."""
        return self.log_sf(np.nextafter(-np.asarray(z, dtype=float), np.inf))

    def sf(self, z: ArrayLike) -> Array:
        """Pr[N >= z]."""
        return np.exp(self.log_sf(z))

    def cdf(self, z: ArrayLike) -> Array:
        """Pr[N < z]."""
        return np.exp(self.log_cdf(z))


@checks.plain
@dataclass(frozen=True)
class Laplace(Law):
    """Density exp(-|z| / scale) / (2 scale): epsilon-DP for a sum of l1 sensitivity epsilon * scale."""

    scale: float

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale)

    @property
    def variance(self) -> float:
        return 2 * self.scale**2

    def draw(self, size: Shape, rng: np.random.Generator) -> Array:
        return rng.laplace(0.0, self.scale, size)

    def log_sf(self, z: ArrayLike) -> Array:
        far = np.asarray(z, dtype=float) / self.scale
        return np.where(far > 0, -far - math.log(2), np.log1p(-np.exp(np.minimum(far, 0.0)) / 2))

    def isf(self, probability: float) -> float:
        """What a draw reaches with this probability, at most 1/2."""
        _upper(probability)
        return -self.scale * math.log(2 * probability)


@checks.plain
@dataclass(frozen=True)
class Gaussian(Law):
    """N(0, scale^2): mu-Gaussian differential privacy for a sum of l2 sensitivity mu * scale."""

    scale: float

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale)

    @property
    def variance(self) -> float:
        return self.scale**2

    def draw(self, size: Shape, rng: np.random.Generator) -> Array:
        return rng.normal(0.0, self.scale, size)

    def log_sf(self, z: ArrayLike) -> Array:
        return np.asarray(log_ndtr(-np.asarray(z, dtype=float) / self.scale))

    def isf(self, probability: float) -> float:
        """What a draw reaches with this probability, at most 1/2."""
        _upper(probability)
        return -self.scale * float(ndtri(probability))


@checks.plain
@dataclass(frozen=True)
class Exponential:
    """Density exp(-z / scale) / scale from 0 on: never negative, of mean `scale`."""

    scale: float

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale)

    @property
    def variance(self) -> float:
        return self.scale**2

    def draw(self, size: Shape, rng: np.random.Generator) -> Array:
        return rng.exponential(self.scale, size)

    def log_sf(self, z: ArrayLike) -> Array:
        return np.asarray(-np.maximum(np.asarray(z, dtype=float), 0.0) / self.scale)

    def sf(self, z: ArrayLike) -> Array:
        return np.exp(self.log_sf(z))

    def isf(self, probability: float) -> float:
        """What a draw reaches with this probability."""
        return -self.scale * math.log(probability)


@checks.plain
@dataclass(frozen=True)
class DiscreteLaplace(Law):
    """P(z) proportional to exp(-|z| / scale) on the integers; `scale` is rounded up to a multiple of 1/1024."""

    scale: float

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale)
        if not self.scale <= 2**46:
            raise ValueError(f"scale must be at most 2^46, so that integers of 64 bits suffice, got {self.scale!r}")

    @property
    def _numerator(self) -> int:
        return math.ceil(self.scale * _GRID)

    @property
    def variance(self) -> float:
        return 0.5 / math.sinh(self._rate / 2) ** 2  # 2 q / (1 - q)^2 with q = exp(-1/scale)

    @property
    def _rate(self) -> float:
        """1 / scale, as it is rounded up."""
        return _GRID / self._numerator

    def log_sf(self, z: ArrayLike) -> Array:
        """Each side is computed where it is the smaller one."""
        up = np.ceil(np.asarray(z, dtype=float))
        rare = -self._rate * np.minimum(np.where(up > 0, up, 1 - up), 1e300) - math.log1p(math.exp(-self._rate))
        return np.asarray(np.where(up > 0, rare, np.log1p(-np.exp(rare))))

    def pmf(self, z: ArrayLike) -> Array:
        """Pr[N = z] at integers."""
        return np.asarray(math.tanh(self._rate / 2) * np.exp(-self._rate * np.abs(np.asarray(z, dtype=float))))

    def isf(self, probability: float) -> int:
        """The least integer that a draw reaches with at most this probability, which is at most 1/2."""
        _upper(probability)
        first = math.floor((-math.log(probability) - math.log1p(math.exp(-self._rate))) / self._rate)
        return next(z for z in range(max(first - 1, 0), first + 3) if float(self.sf(z)) <= probability)

    def draw(self, size: Shape, rng: np.random.Generator) -> NDArray[np.int64]:
        return _until(math.prod(np.atleast_1d(size).tolist()), self._attempts, rng).reshape(size)

    def _attempts(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Those of `size` attempts that are accepted, in order."""
        scale = self._numerator
        rest = rng.integers(0, scale, size)
        rest = rest[_happens(rest, scale, rng)]
        whole = np.zeros(len(rest), dtype=np.int64)
        going = np.arange(len(rest))
        while len(going):
            going = going[_happens(np.ones(len(going), dtype=np.int64), 1, rng)]
            whole[going] += 1
        size_of = (rest + scale * whole) // _GRID
        negative = rng.integers(0, 2, len(rest)).astype(bool)
        accepted = ~(negative & (size_of == 0))
        signed: NDArray[np.int64] = np.where(negative, -size_of, size_of)[accepted]
        return signed


@checks.plain
@dataclass(frozen=True)
class DiscreteGaussian:
    """P(z) proportional to exp(-z^2 / (2 scale^2)) on the integers; `scale` is rounded up to a multiple of 1/1024, or of
    scale / 2^25 where that is more.

    (s^2 / (2 scale^2))-zero-concentrated for integer sums of l2 sensitivity s, whatever their number; not for sums
    that are no integers: the fraction of what is released would be that of the sum.
    """

    scale: float

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale)
        if not self.scale <= 2**25:
            raise ValueError(f"scale must be at most 2^25, so that integers of 64 bits suffice, got {self.scale!r}")

    @property
    def _steps(self) -> tuple[int, int]:
        """Steps of the grid in the scale, and in one."""
        grid = min(_GRID, 1 << math.floor(math.log2(2**25 / self.scale)))
        return math.ceil(grid * self.scale), grid

    @property
    def variance(self) -> float:
        numerator, grid = self._steps
        if numerator > 8 * grid:
            return (numerator / grid) ** 2  # to rounding
        support = np.arange(-40 * numerator // grid, 40 * numerator // grid + 2)
        return float(self.pmf(support) @ support**2)

    def pmf(self, z: ArrayLike) -> Array:
        """Pr[N = z] at integers."""
        scale = self._steps[0] / self._steps[1]
        total = scale * math.sqrt(2 * math.pi)  # to rounding
        if scale <= 8:
            total = float(np.exp(-((np.arange(-320, 321) / scale) ** 2) / 2).sum())
        return np.asarray(np.exp(-((np.asarray(z, dtype=float) / scale) ** 2) / 2) / total)

    def draw(self, size: Shape, rng: np.random.Generator) -> NDArray[np.int64]:
        return _until(math.prod(np.atleast_1d(size).tolist()), self._attempts, rng).reshape(size)

    def _attempts(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Discrete Laplace draws y of the same scale s, each accepted with probability exp(-(|y| - s)^2 / (2 s^2))."""
        numerator, grid = self._steps
        drawn = DiscreteLaplace(numerator / grid).draw(size, rng)
        off = np.abs(drawn) * grid - numerator
        whole, rest = np.divmod(off * off, 2 * numerator * numerator)
        accepted = _happens(rest, 2 * numerator * numerator, rng)
        going = np.flatnonzero(accepted)
        while len(going := going[whole[going] > 0]):
            whole[going] -= 1
            happened = _happens(np.ones(len(going), dtype=np.int64), 1, rng)
            accepted[going[~happened]] = False
            going = going[happened]
        return drawn[accepted]


def _upper(probability: float) -> None:
    if not 0 < probability <= 0.5:
        raise ValueError(f"probability must lie in (0, 0.5], got {probability!r}")


def _until(
    size: int, attempts: Callable[[int, np.random.Generator], NDArray[np.int64]], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The first `size` that are accepted."""
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < size:
        drawn = np.concatenate([drawn, attempts(5 * (size - len(drawn)) // 3 + 8, rng)])
    return drawn[:size]


def _happens(numerator: NDArray[np.int64], denominator: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Independent events of probability exp(-numerator/denominator), 0 <= numerator <= denominator, without rounding."""
    happened = np.ones(len(numerator), dtype=bool)
    going, rounds = np.arange(len(numerator)), 1
    while len(going):
        below = rng.integers(rounds * denominator, size=len(going)) < numerator
        going, numerator, rounds = going[below], numerator[below], rounds + 1
        happened[going] = rounds % 2 == 1
    return happened


class Tape:
    """Draws of one law in a fixed order: however they are taken, one by one or many at once, they are the same draws."""

    def __init__(self, noise: Noise, rng: np.random.Generator) -> None:
        self._noise, self._rng = noise, rng
        self._block: NDArray[Any] = np.empty(0)
        self._left: list[Any] = []  # what `next` has yet to return of the block, the next one last
        self._used, self._next = 0, _SHORTEST

    def next(self) -> Any:
        if not self._left:
            if self._used == len(self._block):
                self._refill()
            self._left = self._block[: self._used - 1 if self._used else None : -1].tolist()
        self._used += 1
        return self._left.pop()

    def take(self, count: int) -> NDArray[Any]:
        taken, filled, self._left = np.empty(0), 0, []
        while filled < count:
            if self._used == len(self._block):
                self._refill()
            part = np.asarray(self._block[self._used : self._used + count - filled])
            if not filled:
                taken = np.empty(count, dtype=part.dtype)
            taken[filled : filled + len(part)] = part
            self._used += len(part)
            filled += len(part)
        return taken

    def _refill(self) -> None:
        self._block, self._used = self._noise.draw(self._next, self._rng), 0
        self._next = min(2 * self._next, _LONGEST)
