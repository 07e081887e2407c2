"""Local randomizers with finite outputs.

**Guarantee.** Pure epsilon-differential privacy of one report, local model: the neighbouring inputs are any two values
that one user may hold.  Uniform doubles are multiples of 2^-53, and so is every probability that they decide on: that of a
report which is not one's own is rounded up (`rounded_up`), and all others follow from it.  `probabilities` is exactly what
`randomize` draws from and what the privacy tests enumerate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evolvingdp.core import checks

_GRID = 2.0**53
_ROOM = 1 + 2.0**-50  # for how far a probability may be from its formula, once it is computed in doubles


def rounded_up(probability: float) -> float:
    """The least multiple of 2^-53 above 0 that is at least `probability`, computed in doubles from an epsilon."""
    return max(1, math.ceil(probability * _ROOM * _GRID)) / _GRID


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
