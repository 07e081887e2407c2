"""Additive noise, one family of laws.  `sf(z)` is Pr[N >= z], at z as well, where a discrete law has mass.

Laplace, Gaussian, exponential; the discrete laws of the first two, drawn by integer arithmetic only; the noise of the paper
on ThresholdMonitor; and two for elements that are in no list.

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
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import exprel, log_ndtr

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

    def isf(self, probability: float) -> float:
        """The least z >= 0 that a draw reaches with at most this probability, to rounding."""
        return self._least(self.log_sf, probability)

    def lower_quantile(self, probability: float) -> float:
        """The largest z <= 0 with Pr[N < z] <= `probability`, to rounding."""
        return -self._least(lambda z: self.log_cdf(-z), probability)

    def _least(self, log_tail: Callable[[float], Array], probability: float) -> float:
        if not 0 < probability <= 1:
            raise ValueError(f"probability must lie in (0, 1], got {probability!r}")
        goal, low, high = math.log(probability), 0.0, self.scale
        if float(log_tail(0.0)) <= goal:
            return 0.0
        while float(log_tail(high)) > goal:
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if float(log_tail(middle)) <= goal else (middle, high)
        return high


@checks.plain
@dataclass(frozen=True)
class Scaled(Law):
    """A law of this scale."""

    scale: float

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale)


@checks.draws
class Laplace(Scaled):
    """Density exp(-|z| / scale) / (2 scale): epsilon-DP for a sum of l1 sensitivity epsilon * scale."""

    @property
    def variance(self) -> float:
        return 2 * self.scale**2

    def draw(self, size: Shape, rng: np.random.Generator) -> Array:
        return rng.laplace(0.0, self.scale, size)

    def log_sf(self, z: ArrayLike) -> Array:
        far = np.asarray(z, dtype=float) / self.scale
        return np.where(far > 0, -far - math.log(2), np.log1p(-np.exp(np.minimum(far, 0.0)) / 2))


@checks.draws
class Gaussian(Scaled):
    """N(0, scale^2): mu-Gaussian differential privacy for a sum of l2 sensitivity mu * scale."""

    @property
    def variance(self) -> float:
        return self.scale**2

    def draw(self, size: Shape, rng: np.random.Generator) -> Array:
        return rng.normal(0.0, self.scale, size)

    def log_sf(self, z: ArrayLike) -> Array:
        return np.asarray(log_ndtr(-np.asarray(z, dtype=float) / self.scale))


@checks.draws
class Exponential(Scaled):
    """Density exp(-z / scale) / scale from 0 on: never negative, of mean `scale`."""

    def draw(self, size: Shape, rng: np.random.Generator) -> Array:
        return rng.exponential(self.scale, size)

    def log_sf(self, z: ArrayLike) -> Array:
        return np.asarray(-np.maximum(np.asarray(z, dtype=float), 0.0) / self.scale)

    def log_cdf(self, z: ArrayLike) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(-np.expm1(self.log_sf(z))))


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
        """The least integer >= 0 that a draw reaches with at most this probability."""
        return math.ceil(super().isf(probability))

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


@checks.plain
@dataclass(frozen=True)
class GaussianNoise(Gaussian):
    """N(0, `scale`^2), where `limit` is the least threshold for elements that are in no list."""

    limit: float

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale, limit=self.limit)

    @property
    def revealed(self) -> float:
        """Of a query: a yes of one user alone, and that there is none in the other world, Pr[N >= limit - 1] and
        -ln Pr[N < limit]: what it adds to delta."""
        return float(np.exp(self.log_sf(self.limit - 1)) - self.log_cdf(self.limit))


@checks.plain
@dataclass(frozen=True)
class IntegerNoise(Law):
    """min(N, `limit` - 1 - G), N discrete Laplace, G geometric: a sum s reaches the threshold `limit` with probability
    Pr[N >= limit - s] (1 - e^(-s / scale)), which is 0 for s = 0.

    Logarithms of yes and no change by 1 / scale at most where the sum moves by 1, but that a yes may be `revealed`.
    """

    least_scale: float  # in users, rounded up by the sampler to a multiple of 1/1024
    limit: int

    def __post_init__(self) -> None:
        checks.positive(least_scale=self.least_scale)
        checks.integer_at_least(1, limit=self.limit)

    @cached_property
    def law(self) -> DiscreteLaplace:
        """Of N; G has that of its draws which are not negative."""
        return DiscreteLaplace(self.least_scale)

    @property
    def scale(self) -> float:  # type: ignore[override]
        return math.ceil(self.least_scale * _GRID) / _GRID

    @property
    def revealed(self) -> float:
        """Pr[yes | s + 1] - e^(1/scale) Pr[yes | s] at most: what a query that a user moves adds to delta."""
        loss = 1 / self.scale
        return math.exp(-loss * self.limit) * math.expm1(loss) / (1 + math.exp(-loss))

    def _held(self, z: ArrayLike) -> Array:
        """The logarithm of Pr[G >= limit - z]."""
        return np.asarray(-np.maximum(self.limit - np.ceil(np.asarray(z, dtype=float)), 0.0) / self.scale)

    def log_sf(self, z: ArrayLike) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(self.law.log_sf(z) + np.log(-np.expm1(self._held(z))))

    def log_cdf(self, z: ArrayLike) -> Array:
        return np.asarray(np.logaddexp(self.law.log_cdf(z), self.law.log_sf(z) + self._held(z)))

    def draw(self, size: Shape, rng: np.random.Generator) -> NDArray[np.int64]:
        count = math.prod(np.atleast_1d(size).tolist())
        drawn = self.law.draw(count, rng)
        held = _until(count, lambda more, noise: (got := self.law.draw(more, noise))[got >= 0], rng)
        return np.minimum(drawn, self.limit - 1 - held).reshape(size)


@checks.plain
@dataclass(frozen=True)
class MonitorNoise(Law):
    """Lap(10 `cap`) + min(Lap(`inner`), `cap`), of ThresholdMonitor as printed; the outer part alone decides the loss."""

    cap: float
    inner: float

    def __post_init__(self) -> None:
        checks.positive(cap=self.cap, inner=self.inner)

    @property
    def scale(self) -> float:  # type: ignore[override]
        """Of the outer noise."""
        return 10 * self.cap

    @property
    def tail_constant(self) -> float:
        """C in Pr[noise >= z] = C e^(-z / scale), z >= cap: half of E[e^(min(v, cap) / scale)]."""
        a, b, d = self.scale, self.inner, self.cap
        rate = 1 / b - 1 / a
        return 0.25 * (a / (a + b) + d / b * float(exprel(-d * rate)) + math.exp(-d * rate))

    def log_sf(self, z: ArrayLike) -> Array:
        z = np.asarray(z, dtype=float)
        return np.where(z > 0, self._above(z), np.log1p(-np.exp(self._below(z))))

    def log_cdf(self, z: ArrayLike) -> Array:
        z = np.asarray(z, dtype=float)
        return np.where(z > 0, np.log1p(-np.exp(self._above(z))), self._below(z))

    def draw(self, size: Shape, rng: np.random.Generator) -> Array:
        """Each draw takes two numbers from `rng`, the outer part first, in the order of one draw after the other."""
        pairs = rng.laplace(0.0, np.array([self.scale, self.inner]), (*np.atleast_1d(size).tolist(), 2))
        return np.asarray(pairs[..., 0] + np.minimum(pairs[..., 1], self.cap))

    def _above(self, z: Array) -> Array:
        """log Pr[noise >= z] from z = 0 on."""
        near = np.exp(self._uncapped(np.clip(z, 0, self.cap))) - np.exp(self._capped(np.clip(z, 0, self.cap)))
        return np.where(z < self.cap, np.log(near), math.log(self.tail_constant) - np.maximum(z, self.cap) / self.scale)

    def _below(self, z: Array) -> Array:
        """log Pr[noise < z] up to z = 0."""
        return np.logaddexp(self._uncapped(-np.minimum(z, 0)), self._capped(np.minimum(z, 0)))

    def _capped(self, z: Array) -> Array:
        """log of what the cap takes from Pr[noise >= z], z <= cap."""
        a, b, d = self.scale, self.inner, self.cap
        return np.asarray(math.log(b / (a + b) / 4) - d / b + (z - d) / a)

    def _uncapped(self, z: Array) -> Array:
        """log Pr[Lap(scale) + Lap(inner) >= z], z >= 0: the inner part below 0, between 0 and z, above z."""
        a, b = self.scale, self.inner
        share = a / (a + b) / 4
        ends = np.logaddexp(math.log(share) - z / a, math.log(0.5 - share) - z / b)
        with np.errstate(divide="ignore"):
            between = np.log(z / (4 * b)) - z / max(a, b) + np.log(exprel(-z * abs(1 / a - 1 / b)))
        return np.asarray(np.logaddexp(ends, between))


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
        self._used, self._next = 0, _SHORTEST

    def next(self) -> Any:
        if self._used == len(self._block):
            self._refill()
        self._used += 1
        return self._block[self._used - 1].item()

    def take(self, count: int) -> NDArray[Any]:
        parts: list[NDArray[Any]] = []
        while left := count - sum(map(len, parts)):
            if self._used == len(self._block):
                self._refill()
            parts.append(part := self._block[self._used : self._used + left])
            self._used += len(part)
        return np.concatenate(parts) if parts else np.empty(0)

    def _refill(self) -> None:
        self._block, self._used = self._noise.draw(self._next, self._rng), 0
        self._next = min(2 * self._next, _LONGEST)
