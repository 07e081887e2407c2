"""LocalRnd: one private bit about a user's word.

**Guarantee.** Pure epsilon-local differential privacy per report: one randomized response on one bit that is a function of
the user's word and of public randomness; neighbouring inputs are any two words of one user.

**Source.** Algorithm 1 of Bassily et al. (2020): lines 1-7 are `assign` and `report`.  Epsilon here is that of one report
(line 7 has epsilon/2 because TreeHist asks each user twice).  Applies E-HH-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks, hadamard
from evolvingdp.core.hashing import HashFamily
from evolvingdp.core.randomizers import SignFlip


@checks.plain
@dataclass(frozen=True)
class LocalRnd:
    """Algorithm 1, the user's side.  epsilon-DP per report, pure, local."""

    hashes: HashFamily
    epsilon: float  # of one report

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)

    @property
    def randomizer(self) -> SignFlip:
        """The coin of a report."""
        return SignFlip(self.epsilon)

    def assign(self, n_users: int, public: np.random.Generator) -> NDArray[np.int64]:
        """Line 1: a uniform slot = row * width + column (j_i, r_i) per user, (n_users,).  Public."""
        return public.integers(0, self.hashes.rows * self.hashes.width, size=n_users)

    def true_bits(self, keys: NDArray[np.uint64], slots: NDArray[np.int64]) -> NDArray[np.int8]:
        """Lines 2-6: x_i = g_j(v_i) W[r_i, h_j(v_i)], (n,) of +-1.  Secret: never leaves the user's device."""
        rows = slots >> (self.hashes.width.bit_length() - 1)
        columns = slots & (self.hashes.width - 1)
        cells, signs = self.hashes.cells_and_signs(rows, keys)
        return signs * hadamard.signs(columns, cells)

    def report(
        self, keys: NDArray[np.uint64], slots: NDArray[np.int64], private: np.random.Generator
    ) -> NDArray[np.integer]:
        """Lines 2-8: one private bit y_i a user, (n,) of +-1.  Drawn once and then fixed (E-HH-1)."""
        checks.one_each(keys=keys, slots=slots)
        return self.randomizer.randomize(self.true_bits(keys, slots), private)
