"""Randomizers of a sparse sequence of signs: zeros become fair coins, the signs of at most k changes are flipped together.

**Computes** a report of +-1 for every entry of a sequence in {-1, 0, 1} with at most k entries other than 0. A zero is
reported as a fair coin. The i-th other entry is reported with its sign flipped or not; whether the first, second, ... are
flipped is one exchangeable law of k coins, of which a user with fewer changes uses the first ones. So each report can be
sent when its entry is known. With d the number of flips among k, the law is a vector of k + 1 probabilities:

- `erlingsson`: a user picks one of k places and answers there with randomized response at epsilon, elsewhere with fair
  coins. That is q(d) = 2^-k (1 + tanh(epsilon/2) (1 - 2d/k)) for one pattern of d flips.
- `future_rand`: k independent flips at epsilon' = epsilon / (5 sqrt(k)), drawn anew, uniformly from what is outside, where d
  is outside an annulus low <= d <= high.
- `best`: one q for d <= t, another, e^epsilon times smaller, for d > t, with the best t. Since a bounded ratio makes a
  linear program of the choice of q, it has the largest gain of all exchangeable laws: the limit of what such a randomizer
  can do.

**Guarantee.** Pure, of the whole sequence of reports; neighbouring inputs are any two sequences with at most k entries other
than 0. Reports of one input have probabilities between 2^k min q and 2^k max q times that of fair coins, and both are
reached, by the same reports for inputs with k changes: the loss is exactly `loss` = ln(max q / min q). Fewer changes give
averages of these.

**Error.** A report has mean `gain` times the entry: E(1 - 2d/k). Erlingsson: tanh(epsilon/2) / k. FutureRand: at most
tanh(epsilon'/2), with any annulus, since leveling what is outside only moves mass to larger d. Best: at odd k and small
epsilon tanh(epsilon/2) C(k-1, (k-1)/2) / 2^(k-1), about tanh(epsilon/2) sqrt(2 / (pi k)): at small epsilon four times
FutureRand's.

**Source.** Erlingsson et al. (2019), Amplification by shuffling, Section 4, who spend epsilon/2 of a budget of epsilon,
though what they do has a loss of no more than they spend; Ohrimenko, Wirth and Wu (2022), Randomize the future. Both are
re-derived; their errors' orders, k / epsilon and sqrt(k) / epsilon, are those of 1 / `gain`. Of the latter we know the
construction and epsilon', not the annulus: it is the one with the largest gain of all whose exact loss is at most epsilon
(below k = 25 nothing is drawn anew), so that the printed one can do no better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evolvingdp.core import checks

MOST_CHANGES = 1000  # 2^-k is a float


@dataclass(frozen=True, eq=False)
class Signs:
    """Exchangeable flips of k signs: `pattern` (k + 1,), the probability of each one pattern with d flips."""

    pattern: NDArray[np.float64]

    @property
    def changes(self) -> int:
        return len(self.pattern) - 1

    @property
    def gain(self) -> float:
        """The mean of a report whose entry is 1."""
        flips = np.arange(self.changes + 1)
        return float(np.sum(_ways(self.changes) * self.pattern * (1 - 2 * flips / self.changes)))

    @property
    def loss(self) -> float:
        """The exact epsilon of all reports of a user with at most `changes` changes, and room for as many."""
        return float(np.log(self.pattern.max() / self.pattern.min()))

    @cached_property
    def flip_chances(self) -> NDArray[np.float64]:
        """(k, k): entry [i, f] is the chance that a change is flipped after i changes of which f were flipped."""
        k = self.changes
        chances, following = np.zeros((k, k)), self.pattern
        for seen in range(k - 1, -1, -1):  # `following`: of one pattern of the first seen + 1 flips
            before = following[:-1] + following[1:]
            chances[seen, : seen + 1] = following[1:] / before
            following = before
        return chances

    def flips(self, users: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """(users, k) of what `flip_chances` says, each user's by itself."""
        chances, flipped = self.flip_chances, np.zeros(users, dtype=np.int64)
        drawn = np.empty((users, self.changes), dtype=bool)
        for seen in range(self.changes):
            drawn[:, seen] = rng.random(users) < chances[seen, flipped]
            flipped += drawn[:, seen]
        return drawn


@checks.plain
def erlingsson(changes: int, epsilon: float) -> Signs:
    """One of `changes` places answers, with all of `epsilon`."""
    _check(changes, epsilon)
    flips = np.arange(changes + 1)
    return Signs(0.5**changes * (1 + math.tanh(epsilon / 2) * (1 - 2 * flips / changes)))


@checks.plain
def future_rand(changes: int, epsilon: float) -> Signs:
    """At most `epsilon`: flips at epsilon' = epsilon / (5 sqrt(k)), and the annulus that leaves them the largest gain."""
    _check(changes, epsilon)
    one, flips = epsilon / (5 * math.sqrt(changes)), np.arange(changes + 1)
    pattern = np.exp(-one * flips - changes * np.log1p(math.exp(-one)))
    low, high = np.meshgrid(flips, flips, indexing="ij")  # every annulus
    weights, heights = _ways(changes), 1 - 2 * flips / changes

    def outside(values: NDArray[np.float64]) -> NDArray[np.float64]:
        below, above = np.cumsum(values) - values, np.cumsum(values[::-1])[::-1] - values
        return np.asarray(below[low] + above[high])

    level = outside(weights * pattern) / np.maximum(outside(weights), 1)  # of each pattern that is drawn anew
    loss = np.log(np.maximum(pattern[low], level) / np.where(level > 0, np.minimum(pattern[high], level), pattern[high]))
    lost = outside(weights * pattern * heights) - level * outside(weights * heights)
    row, column = np.unravel_index(np.argmin(np.where((low <= high) & (loss <= epsilon), lost, np.inf)), lost.shape)
    anew = (flips < row) | (flips > column)
    pattern[anew] = level[row, column]
    return Signs(pattern)


@checks.plain
def best(changes: int, epsilon: float) -> Signs:
    """The largest gain of all exchangeable laws whose loss is `epsilon`."""
    _check(changes, epsilon)
    flips = np.arange(changes + 1)
    patterns = [np.where(flips <= most, 1.0, math.exp(-epsilon)) for most in range((changes + 1) // 2)]
    laws = [Signs(pattern / np.sum(_ways(changes) * pattern)) for pattern in patterns]
    return max(laws, key=lambda law: law.gain)


def _ways(changes: int) -> NDArray[np.float64]:
    return np.asarray(special.comb(changes, np.arange(changes + 1)))


def _check(changes: int, epsilon: float) -> None:
    checks.positive(epsilon=epsilon)
    checks.integer_at_least(1, changes=changes)
    if changes > MOST_CHANGES:
        raise ValueError(f"changes must be at most {MOST_CHANGES}, got {changes}")
