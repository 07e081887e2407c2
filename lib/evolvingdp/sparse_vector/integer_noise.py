"""Integer noise for ThresholdMonitor: exact sampling, and a form that never reports what nobody holds.

**Computes** discrete Laplace noise N, Pr[N = z] proportional to e^(-|z| / scale), drawn by integer arithmetic alone, with
closed forms of both tails. With a `limit` t it is min(N, t - 1 - G), G geometric with Pr[G >= g] = e^(-g / scale): a sum s
then reaches the threshold t with probability Pr[N >= t - s] (1 - e^(-s / scale)), which is 0 for s = 0.

**Guarantee.** That of `privacy` for queries in {0, 1} and a threshold that is an integer: at sums t - 1 and t the bound
is attained, and no draw is out of reach, however many queries there are. With a limit each query that a user moves adds
at most `revealed` to delta (chapter); `grid` = g draws multiples of 1 / g, for queries that are multiples of it, too,
of which a user's last report may overshoot by 1 - 1 / g.

**Source.** Ours. The sampler is `core.noise.DiscreteLaplace`, whose `scale` is a multiple of 1/1024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.sparse_vector.privacy import Array, smallest_scale

SHARES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.98)  # of delta, for the noise where elements are in no list


@checks.plain
@dataclass(frozen=True)
class IntegerNoise:
    """`scale` in users, rounded up by the sampler; `limit` (a threshold) in users, where sums of 0 must not reach it."""

    least_scale: float
    limit: int | None = None
    grid: int = 1

    def __post_init__(self) -> None:
        checks.positive(least_scale=self.least_scale)
        checks.power_of_two(grid=self.grid)
        if self.limit is not None:
            checks.integer_at_least(1, limit=self.limit)

    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, reports: int, *, unit: str = "replacement", grid: int = 1
    ) -> IntegerNoise:
        """The least scale for ThresholdMonitor by the exact analysis, as in `calibration`."""
        checks.integer_at_least(1, reports=reports)
        checks.power_of_two(grid=grid)
        scale = smallest_scale(epsilon, delta, reports + 1 - 1 / grid, unit)
        return cls(scale, None, grid)

    @classmethod
    def unlisted(cls, epsilon: float, delta: float, reports: int, moved: int) -> IntegerNoise:
        """For elements that are asked about only where somebody holds them, by users who are deleted after `reports`
        reports, and after `moved` queries that they are in: the least limit, over the shares of delta for what 2 `moved`
        queries reveal."""
        checks.positive(epsilon=epsilon)
        checks.integer_at_least(1, reports=reports, moved=moved)
        made = []
        for share in SHARES:
            scale = cls(smallest_scale(epsilon, share * delta, reports)).scale
            excess = math.log(cls(scale, 1).revealed * 2 * moved / ((1 - share) * delta))
            made.append(cls(scale, 1 + max(0, math.ceil(excess * scale))))
        return min(made, key=lambda one: one.limit or 0)

    @property
    def per_query(self) -> bool:
        """Whether each query that a user is in has a price."""
        return self.limit is not None

    @cached_property
    def _law(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.least_scale * self.grid)

    @cached_property
    def scale(self) -> float:
        return math.ceil(self.least_scale * self.grid * 1024) / 1024 / self.grid

    @property
    def loss(self) -> float:
        """lambda: by how much the logarithms of `sf` and `cdf` change at most when the value moves by 1."""
        return 1 / self.scale

    @property
    def revealed(self) -> float:
        """Pr[yes | s + 1] - e^lambda Pr[yes | s] at most: what a query that a user moves adds to delta."""
        if self.limit is None:
            return 0.0
        step = self.loss / self.grid
        return math.exp(-self.loss * self.limit) * math.expm1(self.loss) / (1 + math.exp(-step))

    def sf(self, z: ArrayLike) -> Array:
        """Pr[noise >= z]."""
        return np.exp(self.log_sf(z))

    def cdf(self, z: ArrayLike) -> Array:
        """Pr[noise < z]."""
        return np.exp(self.log_cdf(z))

    def log_sf(self, z: ArrayLike) -> Array:
        return self._both(z)[0]

    def log_cdf(self, z: ArrayLike) -> Array:
        return self._both(z)[1]

    def isf(self, probability: float) -> float:
        """The smallest number with Pr[noise >= z] <= `probability`, which is at most 1/2."""
        if not 0 < probability <= 0.5:
            raise ValueError(f"probability must lie in (0, 0.5], got {probability!r}")
        return self._first(lambda z: float(self.log_sf(z)) <= math.log(probability), -math.log(probability))

    def lower_quantile(self, probability: float) -> float:
        """The largest z <= 0 with Pr[noise < z] <= `probability`."""
        if not 0 < probability <= 1:
            raise ValueError(f"probability must lie in (0, 1], got {probability!r}")
        return -self._first(lambda z: float(self.log_cdf(-z)) <= math.log(probability), -math.log(probability))

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Array:
        shape = (size,) if isinstance(size, int) else size
        count = math.prod(shape)
        drawn = self._law.draw(count, rng)
        if self.limit is not None:
            drawn = np.minimum(drawn, self.limit * self.grid - 1 - self._geometric(count, rng))
        return (drawn / self.grid).reshape(shape)

    def draw(self, rng: np.random.Generator) -> float:
        return float(self.sample(1, rng)[0])

    def _geometric(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Discrete Laplace draws, those that are not negative."""
        drawn = np.zeros(0, dtype=np.int64)
        while len(drawn) < count:
            more = self._law.draw(2 * (count - len(drawn)), rng)
            drawn = np.concatenate([drawn, more[more >= 0]])
        return drawn[:count]

    def _first(self, enough: Callable[[float], bool], length: float) -> float:
        """The smallest number on the grid from 0 on that is `enough`, by bisection."""
        low, high = -1, math.ceil((length + 2) * self.scale * self.grid)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle / self.grid) else (middle, high)
        return high / self.grid

    def _both(self, z: ArrayLike) -> tuple[Array, Array]:
        """Logarithms of survival and distribution function, each computed directly where it is the smaller one."""
        up = np.ceil(np.asarray(z, dtype=float) * self.grid)  # noise >= z is noise >= up
        step = self.loss / self.grid
        rare = -step * np.where(up > 0, up, 1 - up) - math.log1p(math.exp(-step))
        rest = np.log1p(-np.exp(rare))
        log_sf, log_cdf = np.where(up > 0, rare, rest), np.where(up > 0, rest, rare)
        if self.limit is None:
            return log_sf, log_cdf
        left = -step * np.maximum(self.limit * self.grid - up, 0.0)  # log Pr[G >= limit - z]
        with np.errstate(divide="ignore"):
            return log_sf + np.log(-np.expm1(left)), np.logaddexp(log_cdf, log_sf + left)
