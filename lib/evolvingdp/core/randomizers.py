"""Local randomizers with finite outputs.

**Guarantee.** Pure epsilon-differential privacy of one report, local model: the neighbouring inputs are any two values
that one user may hold.  `probabilities` is exactly what `randomize` draws from and what the privacy tests enumerate.

Uniform doubles are multiples of 2^-53, and so is every probability that they decide on: that of a
report which is not one's own is rounded up (`rounded_up`), and all others follow from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from evolvingdp.core import checks

_GRID = 2.0**53
_ROOM = 1 + 2.0**-50  # for how far a probability may be from its formula, once it is computed in doubles


def rounded_up(probability: float) -> float:
    """The least multiple of 2^-53 above 0 that is at least `probability`, computed in doubles from an epsilon."""
    return max(1, math.ceil(probability * _ROOM * _GRID)) / _GRID


@checks.draws
class Support(ABC):
    """The law of a report that supports values: all that errors depend on, whatever is sent.

    The user's own value with probability `own`, each other one with `other`.
    """

    @property
    @abstractmethod
    def own(self) -> float: ...

    @property
    @abstractmethod
    def other(self) -> float: ...

    @property
    def gain(self) -> float:
        """What a holder adds to a value's support, on average, over what others do."""
        return self.own - self.other

    def variance(self, frequency: ArrayLike) -> NDArray[np.float64]:
        """Of the estimate of a value with this frequency from one report of a random user; of m reports, one m-th."""
        supported = self.other + np.minimum(np.maximum(frequency, 0), 1) * self.gain
        return np.asarray(supported * (1 - supported) / self.gain**2)

    def standard_errors(self, n_reports: int, holders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the estimates, in users, of values that `holders` of `n_reports` users hold.

        Holders support their value with probability `own`, others with `other`: their binomials have different variances.
        """
        held, own, other = np.minimum(np.maximum(holders, 0), n_reports), self.own, self.other
        variance = held * own * (1 - own) + (n_reports - held) * other * (1 - other)
        return np.asarray(np.sqrt(variance) / (own - other))

    def standard_error(self, n_reports: int, held: float = 0.0) -> float:
        """The same of one value, in users; of a rare one unless it is said how many hold it."""
        return float(self.standard_errors(n_reports, np.array([held]))[0])

    def estimate(self, support: NDArray[np.integer], n_reports: int) -> NDArray[np.float64]:
        """Unbiased frequencies, in users."""
        return np.asarray((support - n_reports * self.other) / self.gain)

    def expected_support(self, held: float, n_reports: int) -> float:
        """Of a value with `held` users: `estimate` turned around."""
        return n_reports * self.other + held * self.gain

    def draw_one(self, held: NDArray[np.integer], n_reports: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
        """Of values held by so many of those who report, how many support each, by itself: the law of one entry alone."""
        return np.asarray(rng.binomial(held, self.own) + rng.binomial(np.asarray(n_reports) - held, self.other))


@checks.plain
@dataclass(frozen=True)
class SignFlip:
    """Flip x in {-1,+1} with probability 1/(e^epsilon + 1).  epsilon-DP per report; E[debias * report] = x.

    Source: line 7 of Algorithm 1 (LocalRnd), which has epsilon/2 because each user reports twice, and
    Algorithm 4 (the randomizer R) of Bassily, Nissim, Stemmer and Thakurta (2020).
    """

    epsilon: float  # one report, not one user's lifetime

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        if not self.flip < 0.5:
            raise ValueError(
                f"epsilon must be at least 1e-14, below which random doubles toss a fair coin, got {self.epsilon!r}"
            )

    @property
    def keep(self) -> float:
        """The probability of reporting x unchanged, e^epsilon / (e^epsilon + 1) rounded down: 1 - flip, exactly."""
        return 1 - self.flip

    @property
    def flip(self) -> float:
        """The probability of reporting -x, 1 / (e^epsilon + 1) rounded up to a multiple of 2^-53."""
        return rounded_up(float(expit(-self.epsilon)))

    @property
    def debias(self) -> float:
        """a = 1 / (keep - flip) = (e^epsilon + 1) / (e^epsilon - 1), at least 1."""
        return 1 / (self.keep - self.flip)

    def probabilities(self, x: int) -> dict[int, float]:
        """The law of one report: {x: keep, -x: flip}."""
        return {x: self.keep, -x: self.flip}

    def randomize(self, x: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.integer]:
        """+-1 -> +-1 of the same shape and a signed type.  One draw per entry, so chunks do not change the result.

        Raises before any draw for an entry that is neither: it would be told apart by its size.
        """
        x = checks.signs(x)
        return np.where(rng.random(x.shape) < self.flip, -x, x)

    def report_one(self, share: NDArray[np.floating] | float) -> Any:
        """The probability of reporting 1 instead of 0 for a user whose bits have mean `share`:
        (1 + share (e^epsilon - 1)) / (e^epsilon + 1), which is epsilon-DP for any two shares in [0, 1]."""
        return self.flip + share * (self.keep - self.flip)

    def variance(self, share: float = 0.5) -> float:
        """Of the unbiased estimate from one report of `report_one`; 1/2 has the largest, debias^2 / 4."""
        one = float(self.report_one(share))
        return one * (1 - one) * self.debias**2

    def draw_reports(self, shares: NDArray[np.floating], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Which users report 1, (n,), with bits of mean `shares` in [0, 1]: a draw per user.

        The rarer of the two reports is what a uniform number decides on: its probability is rounded up, and that of the
        other down.  Neither is below `flip`.
        """
        checks.shares(shares=shares)
        ones, zeros = self.report_one(shares), self.report_one(1 - np.asarray(shares))
        drawn, rare_one = rng.random(np.shape(shares)), ones <= zeros
        return np.asarray((drawn < np.where(rare_one, ones, zeros)) == rare_one)

    def sum_given_counts(
        self, plus: NDArray[np.integer], minus: NDArray[np.integer], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """The exact law of the sum of reports of `plus` users holding +1 and `minus` users holding -1, entrywise."""
        total: NDArray[np.int64] = plus - minus + 2 * (rng.binomial(minus, self.flip) - rng.binomial(plus, self.flip))
        return total
