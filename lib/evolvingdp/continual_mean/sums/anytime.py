"""A factorization of running sums without an end: for a stream whose length nobody knows.

**Computes** noise B z with C(x) = (1 - x)^(-1/2) (1 + (L(x) - 1) / 12)^(-3/2) and B(x) = (1 - x)^(-1/2) (1 + (L(x) - 1) /
12)^(3/2), L(x) = ln(1 / (1 - x)) / x: then B C = A for every length, and the columns of the infinite C have a finite norm,
as their squares fall like 1 / (k ln^3 k).  A logarithmic perturbation of the square root as Jacobsen and Fawaz (2025) have
it; the shift by 12 is ours, and keeps the variance within about twice that of the square root for a length that is known.

**Privacy**: as `toeplitz.Toeplitz`, with the norm of a whole infinite column: the integral of |C|^2 over the unit circle.
**Error**: variances grow with ln(t)^4; memory with t, as all draws are needed; time, amortized, with ln(t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.sums.toeplitz import Array, differences, l2_of_columns
from evolvingdp.continual_mean.sums.trees import Ahead, check_count
from evolvingdp.core.noise import Tape

_SHIFT, _POWER = 12.0, 1.5
_FIRST = 1 << 10  # steps whose noise is worked out at once, at first; then as many as there have been
_KNOWN = 1 << 16  # rows that `l2_of` adds up; the others are bounded


@dataclass(frozen=True)
class Anytime:
    """Running sums of any length up to 2^40, at a noise that does not depend on it.  Gaussian noise only."""

    @property
    def capacity(self) -> int:
        return 1 << 40

    def coefficients_of(self, count: int) -> Array:
        """The first `count` entries of the first column of C."""
        return _column(-_POWER, (max(count, _FIRST) - 1).bit_length())[:count]

    @property
    def l1(self) -> float:
        return math.inf

    def l2_of(self, uses: int, gap: int = 1) -> float:
        """An upper bound for columns without an end, `uses` elements at least `gap` steps apart; exact to 1e-9 for one.

        Of more than one, rows that are not added up are at most sqrt(uses) times the norm of what their columns have left.
        """
        if uses == 1:
            return math.sqrt(_square())
        known = max(_KNOWN, 2 * uses * gap)
        column = self.coefficients_of(known)
        left = _square() - float(column[: known - (uses - 1) * gap] @ column[: known - (uses - 1) * gap])
        return math.sqrt(l2_of_columns(column, uses, gap) ** 2 + uses**2 * left)

    def variances(self, count: int) -> Array:
        """Of the prefixes of length 1 to `count`, over the variance of one draw."""
        return np.cumsum(_column(_POWER, (max(count, _FIRST) - 1).bit_length())[:count] ** 2)

    def relative_variance(self, lengths: ArrayLike) -> Array:
        asked = np.asarray(lengths, dtype=np.int64)
        return np.concatenate([[0.0], self.variances(int(asked.max(initial=1)))])[asked]

    def difference_variance(self, first: ArrayLike, last: ArrayLike) -> Array:
        """Of the noise of prefix `last` minus that of prefix `first`."""
        return differences(_column(_POWER, max(10, int(np.max(last, initial=1)).bit_length())), first, last)

    def all(self, count: int, tape: Tape) -> Array:
        """Noise of the prefixes of length 1 to `count`."""
        check_count(count, self.capacity)
        noise = AnytimeNoise(tape)
        parts: list[Array] = []
        while sum(map(len, parts)) < count:
            parts.append(noise.take())
        return np.concatenate(parts)[:count] if parts else np.zeros(0)

    def online(self, tape: Tape) -> AnytimeNoise:
        return AnytimeNoise(tape)


@dataclass(repr=False)
class AnytimeNoise(Ahead):
    """Worked out for as many steps as there have been, again and again."""

    tape: Tape
    white: Array = field(default_factory=lambda: np.zeros(0))

    def take(self) -> Array:
        from scipy.signal import fftconvolve  # as in `toeplitz`

        done = len(self.white)
        self.white = np.concatenate([self.white, self.tape.take(max(done, _FIRST))])
        noise: Array = fftconvolve(self.white, _column(_POWER, len(self.white).bit_length() - 1))[done : len(self.white)]
        return noise

    def more(self) -> list[float]:
        found: list[float] = self.take().tolist()
        return found


def _perturbed(x: Any, power: float) -> Any:
    """(1 + (L(x) - 1) / shift)^power at complex numbers."""
    return (1 + (-np.log(1 - x) / x - 1) / _SHIFT) ** power


@cache
def _column(power: float, bits: int) -> NDArray[np.float64]:
    """The first 2^bits coefficients of (1 - x)^(-1/2) times the perturbation: a Fourier sum on a circle inside the disc.

    What is aliased is below 1e-12 of the coefficients, and rounding is multiplied by at most 1e3.
    """
    points = 4 << bits
    radius = 10 ** (-12 / points)
    circle = radius * np.exp(2j * np.pi * np.arange(points // 2 + 1) / points)  # the other half is conjugate
    values = (1 - circle) ** -0.5 * _perturbed(circle, power)
    column: NDArray[np.float64] = np.fft.hfft(values, points)[: 1 << bits] / points / radius ** np.arange(1 << bits)
    return column


@cache
def _square() -> float:
    """Squared norm of an infinite column of C: its mean square on the unit circle, over s = -ln|1 - x| where x is near 1."""

    from scipy.integrate import quad

    def weight(angle: float) -> float:
        log = complex(-math.log(2 * math.sin(angle / 2)), (math.pi - angle) / 2)
        size: float = abs(1 + (log * complex(math.cos(angle), -math.sin(angle)) - 1) / _SHIFT)
        return math.exp(-2 * _POWER * math.log(size))

    def near(s: float) -> float:
        angle = 2 * math.asin(math.exp(-s) / 2)
        return weight(angle) / math.cos(angle / 2)

    far, _ = quad(lambda angle: weight(angle) / (2 * math.sin(angle / 2)), 1, math.pi, epsabs=1e-12)
    middle, _ = quad(near, -math.log(2 * math.sin(0.5)), 300, epsabs=1e-12, limit=500)
    rest = _SHIFT * (1 + 299 / _SHIFT) ** (1 - 2 * _POWER) / (2 * _POWER - 1)  # |1 + (s + i y - 1) / 12| >= 1 + (s - 1) / 12
    return float(far + middle + rest) / math.pi * (1 + 1e-9)
