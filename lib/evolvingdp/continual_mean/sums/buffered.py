"""A factorization of running sums by a few exponentials: C_j = sum_i w_i p_i^j, close to the square root.

**Computes** buffered linear Toeplitz noise (Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024): as `toeplitz`, but
with a number a buffer in memory instead of one a step, and with everything in closed form.

**Privacy** and **error**: as `toeplitz.Toeplitz`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from evolvingdp.continual_mean.sums.toeplitz import Array, FilteredNoise, l2_of_columns
from evolvingdp.continual_mean.sums.trees import BLOCK
from evolvingdp.core import checks
from evolvingdp.core.noise import Tape


@dataclass(frozen=True)
class Buffered:
    """C_j = sum_i w_i p_i^j, close to the square root; then B is of that kind as well, and its noise needs `buffers` sums.

    f_j, the j-th entry of the square root, is the integral of u^j / (pi sqrt(u (1 - u))) over [0, 1]: the trapezoidal
    rule in log(u / (1 - u)), whose first node and step minimize the largest error over as many steps as the next power
    of two.
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

    def l2_of(self, uses: int, gap: int = 1) -> float:
        """Largest change in l2 when `uses` elements, at least `gap` steps apart, change by at most one each.

        In closed form where `gap` is 1.
        """
        if gap > 1:
            return l2_of_columns(self.coefficients, uses, gap)
        weights, poles, *_ = self._sums
        return _l2_of(weights, poles, self.capacity, min(uses, self.capacity))

    @cached_property
    def _terms(self) -> tuple[Array, Array, Array, float]:
        """The variance of sum k is first + amounts_0 k + sum of amounts_i (1 - e^(logs_i k)); e^(logs_i k) for a block."""
        _, _, own, rates, constant = self._sums
        amounts, both = _geometric(own, rates)
        logs = np.log1p(-both[1:])
        inside = np.exp(np.outer(logs, np.arange(1, BLOCK + 1)))
        return amounts, logs, inside, constant * (constant + 2 * float(own.sum()))

    @cached_property
    def _known(self) -> dict[int, Array]:
        return {}

    def _block(self, number: int) -> Array:
        """Variances of a block of steps; the last one asked for is kept."""
        if number not in self._known:
            amounts, logs, inside, first = self._terms
            decayed = (amounts[1:] * np.exp(logs * (number * BLOCK))) @ inside
            steps = np.arange(1, BLOCK + 1) + number * BLOCK
            self._known.clear()
            self._known[number] = first + amounts[0] * steps + (float(amounts[1:].sum()) - decayed)
        return self._known[number]

    def variances(self, count: int) -> Array:
        blocks = [self._block(number) for number in range(-(-count // BLOCK))]
        return np.concatenate(blocks)[:count] if blocks else np.zeros(0)

    def relative_variance(self, lengths: ArrayLike) -> Array:
        asked = np.asarray(lengths, dtype=np.int64)
        numbers, places = np.divmod(asked - 1, BLOCK)
        found = np.zeros(asked.shape)
        for number in np.unique(numbers[asked > 0]).tolist():
            here = numbers == number
            found[here] = self._block(number)[places[here]]
        return found

    def difference_variance(self, first: ArrayLike, last: ArrayLike) -> Array:
        """Of the noise of prefix `last` minus that of prefix `first`; in closed form."""
        one, two = np.broadcast_arrays(np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64))
        _, _, own, rates, constant = self._sums
        later = own * (1 - rates) ** (two - one)[..., None].astype(float)  # of b_(k + last - first), at k = 0
        both = rates[:, None] + rates - rates[:, None] * rates
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = -np.expm1(one[..., None, None] * np.log1p(-both)) / both
        terms[..., 0, 0] = one
        shared = np.einsum("...i,j,...ij->...", later, own, terms)
        shared += constant * (one > 0) * (later.sum(axis=-1) + (constant + own.sum()) * (one == two))
        apart: Array = np.maximum(self.relative_variance(one) + self.relative_variance(two) - 2 * shared, 0.0)
        return apart

    @property
    def filters(self) -> tuple[float, list[tuple[float, Array]]]:
        """B z is the first number times z plus the weighted sum of these recursions of z."""
        _, _, own, rates, constant = self._sums
        weighted = zip(own.tolist(), rates.tolist(), strict=True)
        return constant, [(weight, np.array([1.0, rate - 1.0])) for weight, rate in weighted]

    def all(self, count: int, tape: Tape) -> Array:
        """Noise of the prefixes of length 1 to `count`."""
        return FilteredNoise(self, tape).all(count)

    def online(self, tape: Tape) -> FilteredNoise:
        return FilteredNoise(self, tape)


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
        with np.errstate(divide="ignore", invalid="ignore"):  # rules far off have poles of 1, and are never the best
            weights, poles, own, rates, constant = _exponentials(rule[0], math.exp(rule[1]), buffers)
            amounts, both = _geometric(own, rates)
            late = amounts[0] * capacity + amounts[1:] @ -np.expm1(capacity * np.log1p(-both[1:]))
            late += constant * (constant + 2 * float(own.sum()))
            return 2 * math.log(_l2_of(weights, poles, capacity, 1)) + math.log(late)

    wide = math.log((math.log(capacity + 1) + 4) / buffers)
    found = minimize(error, (-1.0, wide), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    return float(found.x[0]), math.exp(float(found.x[1]))
