"""Laws of noise that only this chapter has: the paper's, and two for elements that are in no list.

| law | what | for |
|---|---|---|
| `MonitorNoise` | Lap(10 cap) + min(Lap(inner), cap) | Algorithms 3 and 5 as printed: the inner part buys nothing |
| `IntegerNoise` | min(N, limit - 1 - G), N discrete Laplace, G geometric | a sum of 0 never reaches `limit` |
| `GaussianNoise` | N(0, scale^2) | elements of no list, from the threshold `limit` on |

As in `core.noise`, `sf(z)` is Pr[noise >= z] and `cdf(z)` Pr[noise < z], without cancellation in either tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import exprel

from evolvingdp.core import checks
from evolvingdp.core.noise import Array, DiscreteLaplace, Gaussian, Law, Shape


def lower_quantile(noise: Law, probability: float) -> float:
    """The largest z <= 0 with Pr[noise < z] <= `probability`, to rounding."""
    if not 0 < probability <= 1:
        raise ValueError(f"probability must lie in (0, 1], got {probability!r}")
    goal, low, high = math.log(probability), 0.0, noise.scale
    if float(noise.log_cdf(0.0)) <= goal:
        return 0.0
    while float(noise.log_cdf(-high)) > goal:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if float(noise.log_cdf(-middle)) <= goal else (middle, high)
    return -high


@checks.plain
@dataclass(frozen=True)
class GaussianNoise(Gaussian):
    """N(0, `scale`^2), where `limit` is the least threshold for elements that are in no list."""

    limit: float

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale, limit=self.limit)


@checks.plain
@dataclass(frozen=True)
class IntegerNoise(Law):
    """A sum s reaches the threshold `limit` with probability Pr[N >= limit - s] (1 - e^(-s / scale)), which is 0 for s = 0.

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
        return math.ceil(self.least_scale * 1024) / 1024

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

    def isf(self, probability: float) -> int:
        """An integer that a draw reaches with at most this probability, which is at most 1/2: that of N."""
        return min(self.limit, self.law.isf(probability))

    def draw(self, size: Shape, rng: np.random.Generator) -> NDArray[np.int64]:
        count = math.prod(np.atleast_1d(size).tolist())
        drawn = self.law.draw(count, rng)
        held = np.zeros(0, dtype=np.int64)
        while len(held) < count:
            more = self.law.draw(2 * (count - len(held)), rng)
            held = np.concatenate([held, more[more >= 0]])
        return np.minimum(drawn, self.limit - 1 - held[:count]).reshape(size)


@checks.plain
@dataclass(frozen=True)
class MonitorNoise(Law):
    """Lap(10 `cap`) + min(Lap(`inner`), `cap`); the outer part alone decides the privacy loss."""

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
        return self._both(z)[0]

    def log_cdf(self, z: ArrayLike) -> Array:
        return self._both(z)[1]

    def isf(self, probability: float) -> float:
        """The z with Pr[noise >= z] = `probability`, where that is in the geometric tail; raises ValueError elsewhere."""
        highest = float(self.sf(self.cap))
        if not 0 < probability <= highest:
            raise ValueError(f"probability must lie in (0, {highest:.4g}], the geometric tail, got {probability!r}")
        return self.scale * (math.log(self.tail_constant) - math.log(probability))

    def draw(self, size: Shape, rng: np.random.Generator) -> Array:
        """Each draw takes two numbers from `rng`, the outer part first, in the order of one draw after the other."""
        pairs = rng.laplace(0.0, np.array([self.scale, self.inner]), (*np.atleast_1d(size).tolist(), 2))
        return np.asarray(pairs[..., 0] + np.minimum(pairs[..., 1], self.cap))

    def _both(self, z: ArrayLike) -> tuple[Array, Array]:
        """Logarithms of survival and distribution function, each computed directly where it is the smaller one: split at
        v = 0, z and cap, each part is an integral of exponentials."""
        z = np.asarray(z, dtype=float)
        a, b, d = self.scale, self.inner, self.cap
        decay = math.exp(-d * (1 / a + 1 / b))
        low, mid = np.minimum(z, 0), np.minimum(np.maximum(z, 0), d)
        outer = 0.25 * (a / (a + b) * (1 - decay) + decay)
        log_cdf = np.logaddexp(low / a + math.log(outer), low / b + math.log(0.5 - a / (4 * (a + b))))
        log_cdf = np.logaddexp(log_cdf, self._log_blend(-low) - math.log(4 * b))
        tail = math.log(self.tail_constant) - np.maximum(z, d) / a
        middle = np.exp(-mid / a) * a / (4 * (a + b)) + np.exp(self._log_blend(mid)) / (4 * b)
        middle += np.exp(-mid / b) / 2 - a / (4 * (a + b)) * (np.exp(-mid / b) - np.exp(mid / a) * decay)
        middle -= np.exp(mid / a) * decay / 4
        upper = np.where(z < d, np.log(np.minimum(middle, 1.0)), tail)
        with np.errstate(divide="ignore"):
            return (
                np.where(z <= 0, np.log1p(-np.exp(np.minimum(log_cdf, 0))), upper),
                np.where(z <= 0, log_cdf, np.log1p(-np.exp(np.minimum(upper, 0)))),
            )

    def _log_blend(self, length: Array) -> Array:
        """log of the integral of e^(-s / scale - (length - s) / inner) over s from 0 to length >= 0."""
        a, b = self.scale, self.inner
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(length) - length / max(a, b) + np.log(exprel(-length * abs(1 / a - 1 / b))))
