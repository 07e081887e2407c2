"""Factorizations of running sums for Gaussian noise: the square root, and its approximation by a few exponentials.

**Computes** noise B z for the running sums A x, where A = B C is all ones on and below the diagonal and z is white: the
release is a function of C x + z.  `Toeplitz` has B = C, the square root (Fichtenberger, Henzinger and Upadhyay 2023; Bennett
1977).  `Buffered` has C_j = sum_i w_i p_i^j: buffered linear Toeplitz noise (Dvijotham, McMahan, Pillutla, Steinke and
Thakurta 2024), a number a buffer in memory instead of one a step.

**Privacy.** If the entries of the first column of C are >= 0 and do not increase, elements that change by at most 1 each, k
in all, move C x by at most `l2_of(k)`, the norm of the sum of the first k columns: entries of C^T C are >= 0, and fall with
the gap of two columns and with the later of them.  It is attained.

**Error.** `relative_variance(k)`: variance of the noise of the k-th sum over that of one draw, exact and public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.signal import fftconvolve, lfilter

from evolvingdp.core import checks
from evolvingdp.core.noise import Tape

Array = NDArray[np.float64]
_BLOCK, _LONG = 1 << 10, 1 << 14  # steps whose noise and variances a buffered factorization works out at once


def check_count(count: int, capacity: int) -> None:
    if count > capacity:
        raise ValueError(f"a sum of capacity {capacity} was asked for a prefix of {count} elements")


@dataclass(repr=False)
class Replay:
    """Hands over numbers that are known already, one a call."""

    values: Array
    used: int = 0

    def __call__(self) -> float:
        if self.used >= len(self.values):
            check_count(self.used + 1, len(self.values))
        self.used += 1
        return float(self.values[self.used - 1])


@dataclass(frozen=True)
class Toeplitz:
    """The square root of the all-ones lower triangle: entries f_(i-j) with f_j = C(2j, j) / 4^j.  Gaussian noise only."""

    capacity: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity)
        checks.plain_integers(self, "capacity")

    @cached_property
    def coefficients(self) -> Array:
        """f_0 = 1, f_j = f_(j-1) (2j - 1) / (2j)."""
        step = np.arange(1, self.capacity, dtype=float)
        return np.concatenate([[1.0], np.cumprod((2 * step - 1) / (2 * step))])

    @cached_property
    def _squares(self) -> Array:
        return np.concatenate([[0.0], np.cumsum(self.coefficients**2)])

    @property
    def l1(self) -> float:
        return float(np.sum(self.coefficients))

    def l2_of(self, uses: int) -> float:
        """Largest change in l2 when `uses` elements change by at most one each."""
        sums = np.concatenate([np.zeros(min(uses, self.capacity)), np.cumsum(self.coefficients)])
        return float(np.linalg.norm(sums[-self.capacity :] - sums[: self.capacity]))

    def relative_variance(self, lengths: ArrayLike) -> Array:
        return self._squares[np.asarray(lengths, dtype=np.int64)]

    def variance_at(self, length: int) -> float:
        return float(self._squares[length])

    def variances(self, count: int) -> Array:
        return self._squares[1 : count + 1]

    def all(self, count: int, tape: Tape) -> Array:
        """Noise of the prefixes of length 1 to `count`; always drawn for the whole capacity, then cut."""
        check_count(count, self.capacity)
        noise: Array = fftconvolve(tape.take(self.capacity), self.coefficients)[:count]
        return noise

    def online(self, tape: Tape) -> Replay:
        """As `all`; the noise does not depend on data, so it is drawn at once and kept (one number per element)."""
        return Replay(self.all(self.capacity, tape))


@dataclass(frozen=True)
class Buffered:
    """C_j = sum_i w_i p_i^j, close to the square root; then B is of that kind as well, and its noise needs `buffers` sums.

    f_j is the integral of u^j / (pi sqrt(u (1 - u))) over [0, 1]: the trapezoidal rule in log(u / (1 - u)), whose first node
    and step are those of the least largest error at the next power of two.
    """

    capacity: int
    buffers: int = 8

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity)
        checks.integer_at_least(2, buffers=self.buffers)
        checks.plain_integers(self, "capacity", "buffers")

    @cached_property
    def _sums(self) -> tuple[Array, Array, Array, Array, float]:
        return _exponentials(*_best_rule(1 << (self.capacity - 1).bit_length(), self.buffers), self.buffers)

    @property
    def coefficients(self) -> Array:
        """The first column of C."""
        weights, poles, *_ = self._sums
        return np.power.outer(poles, np.arange(self.capacity)).T @ weights

    @property
    def l1(self) -> float:
        return float(np.sum(self.coefficients))

    def l2_of(self, uses: int) -> float:
        """Largest change in l2 when `uses` elements change by at most one each; in closed form."""
        weights, poles, *_ = self._sums
        return _l2_of(weights, poles, self.capacity, min(uses, self.capacity))

    @cached_property
    def _terms(self) -> tuple[Array, Array, Array, float]:
        """The variance of sum k is first + amounts_0 k + sum of amounts_i (1 - e^(logs_i k)); e^(logs_i k) for a block."""
        _, _, own, rates, constant = self._sums
        amounts, both = _geometric(own, rates)
        logs = np.log1p(-both[1:])
        inside = np.exp(np.outer(logs, np.arange(1, _BLOCK + 1)))
        return amounts, logs, inside, constant * (constant + 2 * float(own.sum()))

    @cached_property
    def _known(self) -> dict[int, Array]:
        return {}

    def _block(self, number: int) -> Array:
        """Variances of a block of steps; the last one asked for is kept."""
        if number not in self._known:
            amounts, logs, inside, first = self._terms
            decayed = (amounts[1:] * np.exp(logs * (number * _BLOCK))) @ inside
            steps = np.arange(1, _BLOCK + 1) + number * _BLOCK
            self._known.clear()
            self._known[number] = first + amounts[0] * steps + (float(amounts[1:].sum()) - decayed)
        return self._known[number]

    def variance_at(self, length: int) -> float:
        number, place = divmod(int(length) - 1, _BLOCK)
        return float(self._block(number)[place]) if length else 0.0

    def variances(self, count: int) -> Array:
        blocks = [self._block(number) for number in range(-(-count // _BLOCK))]
        return np.concatenate(blocks)[:count] if blocks else np.zeros(0)

    def relative_variance(self, lengths: ArrayLike) -> Array:
        asked = np.asarray(lengths, dtype=np.int64)
        return np.array([self.variance_at(length) for length in asked.ravel().tolist()]).reshape(asked.shape)

    def all(self, count: int, tape: Tape) -> Array:
        """Noise of the prefixes of length 1 to `count`."""
        check_count(count, self.capacity)
        noise = BufferedNoise(self, tape)
        parts = [noise.take(min(_LONG, count - start)) for start in range(0, count, _LONG)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def online(self, tape: Tape) -> BufferedNoise:
        return BufferedNoise(self, tape)


@dataclass(repr=False)
class BufferedNoise:
    """The noise of the prefixes one after the other; it keeps a number a buffer, and a block of noise ahead."""

    sums: Buffered
    tape: Tape
    held: list[Array] = field(default_factory=list)
    ahead: list[float] = field(default_factory=list)
    used: int = 0

    def take(self, count: int) -> Array:
        _, _, weights, rates, constant = self.sums._sums
        held = self.held = self.held or [np.zeros(1) for _ in rates]
        white = self.tape.take(count)
        noise: Array = constant * white
        for place, (weight, rate) in enumerate(zip(weights.tolist(), rates.tolist(), strict=True)):
            part, held[place] = lfilter([1.0], [1.0, rate - 1.0], white, zi=held[place])
            part *= weight
            noise += part
        return noise

    def __call__(self) -> float:
        place = self.used % _BLOCK
        if place == 0:
            check_count(self.used + 1, self.sums.capacity)
            self.ahead = self.take(min(_BLOCK, self.sums.capacity - self.used)).tolist()
        check_count(self.used + 1, self.sums.capacity)
        self.used += 1
        return self.ahead[place]


def _exponentials(start: float, step: float, count: int) -> tuple[Array, Array, Array, Array, float]:
    """Weights and poles of C; weights of B, one minus its poles (0 first), and its constant.

    With r(x) = sum w_i / (1 - p_i x), B has 1 / ((1 - x) r(x)): a pole at 1, and one at each zero of r, between those of r.
    """
    place = start + step * np.arange(count)
    below, above = 1 / (1 + np.exp(-place)), 1 / (1 + np.exp(place))  # p and 1 - p
    weights = step / math.pi * np.sqrt(below * above)
    reflected = np.eye(count) - np.outer(np.sqrt(weights), np.sqrt(weights)) / weights.sum()
    zeros = np.sort(np.linalg.eigvalsh(reflected @ np.diag(above) @ reflected))[1:]  # 1 - zero; the first is of the vector
    slopes = (weights * below / np.subtract.outer(above, zeros).T ** 2).sum(axis=1)
    own = np.append(1 / (weights / above).sum(), 1 / (zeros * slopes))
    return weights, below, own, np.append(0.0, zeros), 1 / float((weights / below).sum())


def _geometric(weights: Array, rates: Array) -> tuple[Array, Array]:
    """Sum over j < k of (sum_i weights_i (1 - rates_i)^j)^2 is amounts_0 k + sum of amounts_i (1 - (1 - rates_i)^k).

    `rates` begin with 0.
    """
    first, second = np.triu_indices(len(weights))
    both = rates[first] + rates[second] - rates[first] * rates[second]
    products = weights[first] * weights[second] * np.where(first == second, 1.0, 2.0)
    amounts = np.append(products[0], products[1:] / both[1:])
    return amounts, both


def _l2_of(weights: Array, poles: Array, capacity: int, uses: int) -> float:
    """Norm of the sum of the first `uses` columns of C: rows that are still growing, then exponentials again."""
    rates = 1 - poles
    growing = (1 - np.power.outer(poles, np.arange(1, uses)).T) @ (weights / rates)
    falling = weights * (1 - poles**uses) / rates
    amounts, both = _geometric(np.append(0.0, falling), np.append(0.0, rates))
    rows = capacity - uses + 1
    return math.sqrt(float((growing**2).sum() + amounts[1:] @ -np.expm1(rows * np.log1p(-both[1:]))))


@cache
def _best_rule(capacity: int, buffers: int) -> tuple[float, float]:
    """The first node and the step of the trapezoidal rule with the least error of the last sum."""

    def error(rule: Any) -> float:
        weights, poles, own, rates, constant = _exponentials(rule[0], math.exp(rule[1]), buffers)
        amounts, both = _geometric(own, rates)
        late = amounts[0] * capacity + amounts[1:] @ -np.expm1(capacity * np.log1p(-both[1:]))
        late += constant * (constant + 2 * float(own.sum()))
        return 2 * math.log(_l2_of(weights, poles, capacity, 1)) + math.log(late)

    wide = math.log((math.log(capacity + 1) + 4) / buffers)
    found = minimize(error, (-1.0, wide), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    return float(found.x[0]), math.exp(float(found.x[1]))
