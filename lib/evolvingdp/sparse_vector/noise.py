"""The noise of ThresholdMonitor, in closed form: the paper's Lap(10 cap) + min(Lap(inner), cap), and normal noise.

**Computes** distribution function, survival function and their logarithms, without cancellation in either tail (of the
paper's the upper is exactly geometric, C e^(-z / scale) from `cap` on), and draws samples. A law says what its price counts:
with `per_query` not only a user's reports but its queries, too; with a `limit` it serves elements that are in no list, from
that threshold on. Whole-number noise is in `integer_noise`.

**Source.** Line 3 of Algorithms 3 and 5: `cap` is Delta (Delta_1), `inner` the scale of v (Delta_2), `scale` = 10 cap
that of w. Split at v = 0, z and cap, each part is an integral of exponentials. Normal noise: `moved_queries`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import exprel, log_ndtr, ndtr, ndtri

from evolvingdp.core import checks
from evolvingdp.sparse_vector.moved_queries import smallest_moved_scale
from evolvingdp.sparse_vector.privacy import Array

KINDS = ("laplace", "gaussian", "exponential")  # the last of mean `scale`, never negative


def sf(kind: str, z: ArrayLike, scale: float) -> Array:
    """Pr[noise >= z]."""
    z = np.asarray(z, dtype=float) / scale
    if kind == "gaussian":
        return np.asarray(ndtr(-z))
    tail = np.exp(-np.maximum(z, 0.0))
    return tail if kind == "exponential" else np.where(z > 0, tail / 2, 1 - np.exp(np.minimum(z, 0.0)) / 2)


def isf(kind: str, share: float, scale: float) -> float:
    """What the noise reaches with probability `share`, at most 1/2."""
    return -scale * (float(ndtri(share)) if kind == "gaussian" else math.log(share * (1 + (kind == "laplace"))))


def draw(kind: str, scale: float, rng: np.random.Generator, **size: Any) -> Any:
    """One number, or an array of `size`."""
    if kind == "exponential":
        return rng.exponential(scale, **size)
    return (rng.normal if kind == "gaussian" else rng.laplace)(0.0, scale, **size)


def rare_count(trials: int, share: float, rng: np.random.Generator) -> int:
    """Binomial(trials, share), also where 1 - share rounds to 1: then Poisson, `share` at most away in total variation."""
    return int(rng.poisson(trials * share) if share < 1e-12 else rng.binomial(trials, share))


@checks.plain
@dataclass(frozen=True)
class GaussianNoise:
    """N(0, scale^2), for users who are deleted after a number of reports, and of queries in which they count."""

    scale: float
    limit: float | None = None  # the least threshold for elements that are in no list; None: for none
    per_query = True

    def __post_init__(self) -> None:
        checks.positive(scale=self.scale)
        if self.limit is not None:
            checks.positive(limit=self.limit)

    @classmethod
    def calibrated(cls, epsilon: float, delta: float, reports: int, moved: int, *, listed: bool = True) -> GaussianNoise:
        """The least scale for users who are deleted after `reports` reports, and after `moved` queries that they are in.

        Not `listed`: for elements that are asked about only where somebody holds them. `ALONE` of delta pays for those that
        nobody else does: a yes of one user m sf((t-1)/scale), and that there is none in the other world -m ln cdf(t/scale).
        """
        if listed:
            return cls(smallest_moved_scale(epsilon, delta, reports, moved))
        scale = smallest_moved_scale(epsilon, (1 - ALONE) * delta, reports, moved)

        def spent(limit: float) -> float:
            return moved * float(ndtr((1 - limit) / scale) - log_ndtr(limit / scale)) - ALONE * delta

        high = 2 + scale * float(-ndtri(min(0.5, ALONE * delta / (2 * moved))))
        return cls(scale, float(brentq(spent, 0.0, high, xtol=1e-9 * high)) * (1 + 1e-8) if spent(0.0) > 0 else 1e-9)

    def sf(self, z: ArrayLike) -> Array:
        """Pr[noise >= z]."""
        return sf("gaussian", z, self.scale)

    def cdf(self, z: ArrayLike) -> Array:
        """Pr[noise < z]."""
        return sf("gaussian", -np.asarray(z, dtype=float), self.scale)

    def log_sf(self, z: ArrayLike) -> Array:
        return np.asarray(log_ndtr(-np.asarray(z, dtype=float) / self.scale))

    def log_cdf(self, z: ArrayLike) -> Array:
        return self.log_sf(-np.asarray(z, dtype=float))

    def isf(self, probability: float) -> float:
        """The z with Pr[noise >= z] = `probability`."""
        checks.probability(probability=probability)
        return -self.scale * float(ndtri(probability))

    def lower_quantile(self, probability: float) -> float:
        """The z with Pr[noise < z] = `probability`."""
        return -self.isf(probability)

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.normal(0.0, self.scale, size)

    def draw(self, rng: np.random.Generator) -> float:
        """One draw: the next that `sample` would make."""
        return float(rng.normal(0.0, self.scale))


ALONE = 0.2  # of delta, for elements that one user alone holds


@dataclass(frozen=True)
class MonitorNoise:
    """Lap(10 cap) + min(Lap(inner), cap); `inner` = 0 leaves Lap(10 cap) alone."""

    cap: float
    inner: float
    per_query = False
    limit = None

    def __post_init__(self) -> None:
        checks.positive(cap=self.cap)
        if not 0 <= self.inner < math.inf:
            raise ValueError(f"inner must be >= 0 and finite, got {self.inner!r}")

    @property
    def scale(self) -> float:
        """Of the outer Laplace noise, which alone decides the privacy loss."""
        return 10 * self.cap

    @property
    def loss(self) -> float:
        """lambda: by how much the logarithms of `sf` and `cdf` change at most when the value moves by 1."""
        return 1 / self.scale

    @property
    def tail_constant(self) -> float:
        """C in Pr[noise >= z] = C e^(-z / scale), z >= cap: half of E[e^(min(v, cap) / scale)]."""
        if self.inner == 0:
            return 0.5
        a, b, d = self.scale, self.inner, self.cap
        rate = 1 / b - 1 / a
        return 0.25 * (a / (a + b) + d / b * float(exprel(-d * rate)) + math.exp(-d * rate))

    def sf(self, z: ArrayLike) -> Array:
        """Pr[noise >= z], relative precision about 1e-13 down to 1e-300."""
        return np.exp(self.log_sf(z))

    def cdf(self, z: ArrayLike) -> Array:
        """Pr[noise < z], in the lower tail as exact as `sf` is in the upper one."""
        return np.exp(self.log_cdf(z))

    def log_sf(self, z: ArrayLike) -> Array:
        return self._both(z)[0]

    def log_cdf(self, z: ArrayLike) -> Array:
        return self._both(z)[1]

    def isf(self, probability: float) -> float:
        """The z with Pr[noise >= z] = probability, where that is in the geometric tail; raises ValueError elsewhere."""
        highest = float(self.sf(self.cap)) if self.inner else 0.5
        if not 0 < probability <= highest:
            raise ValueError(f"probability must lie in (0, {highest:.4g}], the geometric tail, got {probability!r}")
        return self.scale * (math.log(self.tail_constant) - math.log(probability))

    def lower_quantile(self, probability: float) -> float:
        """The z with Pr[noise < z] = `probability`, which must be at most Pr[noise < 0]."""
        if not 0 < probability <= float(self.cdf(0.0)):
            raise ValueError(f"probability must lie in (0, {float(self.cdf(0.0)):.4g}], got {probability!r}")
        low, goal = -self.scale, math.log(probability)
        while float(self.log_cdf(low)) > goal:
            low *= 2
        return float(brentq(lambda z: float(self.log_cdf(z)) - goal, low, 0.0, xtol=1e-13 * self.scale, rtol=1e-15))

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Array:
        """Independent draws; each takes two numbers from `rng`, w first, in the order of one draw after the other."""
        shape = (size,) if isinstance(size, int) else size
        pairs = rng.laplace(0.0, 1.0, size=(*shape, 2)) * np.array([self.scale, self.inner])  # faster than of two scales
        return np.asarray(pairs[..., 0] + np.minimum(pairs[..., 1], self.cap))

    def draw(self, rng: np.random.Generator) -> float:
        """One draw: the next that `sample` would make."""
        laplace = rng.laplace
        noise: float = laplace(0.0, self.scale) + min(laplace(0.0, self.inner), self.cap)
        return noise

    def _both(self, z: ArrayLike) -> tuple[Array, Array]:
        """Logarithms of survival and distribution function; each computed directly where it is the smaller one."""
        z = np.asarray(z, dtype=float)
        a, b, d = self.scale, self.inner, self.cap
        if b == 0:
            tail = -np.abs(z) / a - math.log(2)
            rest = np.log1p(-np.exp(tail))
            return np.where(z > 0, tail, rest), np.where(z > 0, rest, tail)
        decay = math.exp(-d * (1 / a + 1 / b))
        low, mid = np.minimum(z, 0), np.minimum(np.maximum(z, 0), d)
        outer = 0.25 * (a / (a + b) * (1 - decay) + decay)
        log_cdf = np.logaddexp(low / a + math.log(outer), low / b + math.log(0.5 - a / (4 * (a + b))))
        log_cdf = np.logaddexp(log_cdf, self._log_blend(-low) - math.log(4 * b))
        tail = math.log(self.tail_constant) - np.maximum(z, d) / a
        middle = np.exp(-mid / a) * a / (4 * (a + b)) + self._blend(mid) / (4 * b)
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

    def _blend(self, length: Array) -> Array:
        return np.exp(self._log_blend(length))
