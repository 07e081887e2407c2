"""Local randomizers with finite outputs.

**Guarantee.** Pure epsilon-differential privacy of one report, local model: the neighbouring inputs are any two values
that one user may hold.  `probabilities` is what `randomize` draws from and what the privacy tests enumerate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evolvingdp.core import checks


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

    @property
    def keep(self) -> float:
        """The probability of reporting x unchanged, e^epsilon / (e^epsilon + 1)."""
        return float(expit(self.epsilon))

    @property
    def flip(self) -> float:
        """The probability of reporting -x, 1 / (e^epsilon + 1), without the cancellation of 1 - keep."""
        return float(expit(-self.epsilon))

    @property
    def debias(self) -> float:
        """a = (e^epsilon + 1) / (e^epsilon - 1), at least 1."""
        return 1 / math.tanh(self.epsilon / 2)

    def probabilities(self, x: int) -> dict[int, float]:
        """The law of one report: {x: keep, -x: 1 - keep}, the small side without cancellation."""
        return {x: self.keep, -x: self.flip}

    def randomize(self, x: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.integer]:
        """(n,) of +-1 -> (n,) of +-1.  One draw per entry, so chunks do not change the result.

        Uniforms are multiples of 2^-53, so a flip's probability is `flip` rounded up to such a multiple: never less private.
        """
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
        """Which users report 1, (n,), with bits of mean `shares`: a draw per user.

        The rarer of the two reports is what a uniform number decides on. Uniforms are multiples of 2^-53, so that its
        probability is rounded up, and that of the other down: never less private. The other way round, a report of
        probability 1/(e^epsilon + 1) < 2^-53 would never be sent, and sending it would give its user away.
        """
        ones, zeros = self.report_one(shares), self.report_one(1 - np.asarray(shares))
        drawn, rare_one = rng.random(np.shape(shares)), ones <= zeros
        return np.asarray((drawn < np.where(rare_one, ones, zeros)) == rare_one)

    def sum_given_counts(
        self, plus: NDArray[np.integer], minus: NDArray[np.integer], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """The exact law of the sum of reports of `plus` users holding +1 and `minus` users holding -1, entrywise."""
        total: NDArray[np.int64] = plus - minus + 2 * (rng.binomial(minus, self.flip) - rng.binomial(plus, self.flip))
        return total
