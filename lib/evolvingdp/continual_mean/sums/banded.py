"""Banded factorizations of running sums: for people who come back, but not before as many steps as there are bands.

**Computes** noise B z with C lower triangular Toeplitz whose first column has `width` entries, and B = A C^-1: a recursion
over the last `width` numbers.  By default C is the square root's, cut off (Kalinin and Lampert 2024, "BSR"); `best` has the
entries with the least error over the stream, a banded factorization as Choquette-Choo et al. (2023) have it, restricted to
Toeplitz matrices (they optimize over all banded ones).

**Privacy** and **error**: as `toeplitz.Toeplitz`.  Where a person's elements are at least `width` steps apart the columns do
not meet: k elements cost sqrt(k) times what one costs (`l2_of(k, gap)`), which no matrix with more bands allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.optimize import minimize

from evolvingdp.continual_mean.sums.toeplitz import Array, Factorization, FilteredNoise, Toeplitz
from evolvingdp.core import checks
from evolvingdp.core.noise import Tape


@dataclass(frozen=True)
class Banded(Factorization):
    """`width` bands; `best`: with the entries of the least root mean square error over the stream."""

    capacity: int
    width: int
    best: bool = False

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity, width=self.width)
        checks.plain_integers(self, "capacity", "width")

    @cached_property
    def bands(self) -> Array:
        width = min(self.width, self.capacity)
        return _optimized(self.capacity, width) if self.best and width > 1 else Toeplitz(width).coefficients

    @cached_property
    def coefficients(self) -> Array:
        return np.concatenate([self.bands, np.zeros(self.capacity - len(self.bands))])

    @property
    def filters(self) -> tuple[float, list[tuple[float, Array]]]:
        return 0.0, [(1.0, np.convolve(self.bands, [1.0, -1.0]))]

    @cached_property
    def noise_coefficients(self) -> Array:
        from scipy.signal import lfilter  # as in `toeplitz`

        unit = np.zeros(self.capacity)
        unit[0] = 1.0
        column: Array = lfilter([1.0], self.filters[1][0][1], unit)
        return column

    def all(self, count: int, tape: Tape) -> Array:
        """Noise of the prefixes of length 1 to `count`."""
        return FilteredNoise(self, tape).all(count)

    def online(self, tape: Tape) -> FilteredNoise:
        """What returns the noise of one prefix after the other; it keeps `width` numbers."""
        return FilteredNoise(self, tape)


@cache
def _optimized(capacity: int, width: int) -> Array:
    """1 = c_0 >= c_1 >= ... >= 0 with the least |c|^2 times the sum of the variances of all prefixes.

    b = 1 / ((1 - z) c(z)) is constant to rounding from a few dozen widths on; its derivative by c_j is -b / c, j later.
    """
    from scipy.signal import lfilter

    length = min(capacity, 64 * width)
    weights = np.arange(capacity, capacity - length, -1.0)
    rest = (capacity - length) * (capacity - length + 1) / 2  # of the steps from there on

    def error(falls: Array) -> tuple[float, Array]:
        bands = np.concatenate([[1.0], 1 - np.cumsum(falls)])
        own = np.cumsum(lfilter([1.0], bands, np.eye(1, length)[0]))
        by_band = lfilter([1.0], bands, own)
        last = 1 / bands.sum()
        total, square = float(weights @ own**2 + rest * last**2), float(bands @ bands)
        late = np.array([(weights * own)[shift:] @ by_band[: length - shift] for shift in range(1, width)])
        slope = 2 * bands[1:] / square - 2 * (late + rest * last**3) / total
        return float(np.log(square) + np.log(total)), -np.cumsum(slope[::-1])[::-1]

    start = -np.diff(Toeplitz(width).coefficients)
    found = minimize(error, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * (width - 1), options={"maxiter": 500})
    return np.concatenate([[1.0], np.maximum(1 - np.cumsum(found.x), 0.0)])
