"""What is made for bits that hardly change: dyadic trees and memoization, by their exact numbers. Nothing is drawn here.

**Trees.** A lot gives each user a level h; after each stretch of 2^h epochs it reports by how much its bit moved over it: a
sign, or a fair coin where it did not. A user whose bit changes at most k times has at most k entries other than 0, and the
signs of these are flipped with a law that depends only on how many are flipped: `pattern` (k + 1,), the probability of each
one pattern with d flips. The loss of all that a user sends is exactly ln(max / min) of it; a report's mean is `gain` times
its entry. `erlingsson`: one of k places answers with randomized response, the others with coins. `best`: the largest gain of
all such laws, one probability for d <= t, another, e^epsilon times smaller, beyond (a linear program); with FutureRand's
(Ohrimenko, Wirth and Wu 2022) among them.

**Memoization.** A device draws one answer to 0 and one to 1, each by randomized response at `permanent_epsilon`, and in each
epoch sends the answer to its bit through randomized response at `report_epsilon`, or as it is. **Its promise is another
one**: `permanent_epsilon` bounds what is told about a bit *that never changes*. Between any two sequences of bits the loss
of all reports is `transcript_loss`, exactly: let s be reports of 1 less those of 0 in epochs of one bit. Given both answers
reports are independent, so a sequence has probability (...)^T f(s of its 1s) f(-s of its 0s), f(s) = p1 e^(bs) + (1 - p1)
e^(-bs), b = report_epsilon / 2. Sums s_0, s_1 of one and r_0, r_1 of the other sequence occur together in T epochs if and
only if s_0 + s_1 = r_0 + r_1, no |.| + |.| is larger than T, and T is of their parity.

**Source.** Erlingsson et al. (2019); RAPPOR, Erlingsson, Pihur and Korolova (2014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from evolvingdp.core import checks

MOST_CHANGES = 1000  # 2^-k is a float
RANDOMIZERS = ("erlingsson", "erlingsson_exact", "best")


@dataclass(frozen=True, eq=False)
class Signs:
    """Exchangeable flips of k signs, by `pattern`."""

    pattern: NDArray[np.float64]

    @property
    def gain(self) -> float:
        """The mean of a report whose entry is 1."""
        changes = len(self.pattern) - 1
        return float(np.sum(_ways(changes) * self.pattern * (1 - 2 * np.arange(changes + 1) / changes)))

    @property
    def loss(self) -> float:
        """The exact epsilon of all reports of a user with at most k changes, and room for as many."""
        return float(np.log(self.pattern.max() / self.pattern.min()))


def erlingsson(changes: int, epsilon: float) -> Signs:
    """One of `changes` places answers, with all of `epsilon`."""
    flips = np.arange(changes + 1)
    return Signs(0.5**changes * (1 + math.tanh(epsilon / 2) * (1 - 2 * flips / changes)))


def best(changes: int, epsilon: float) -> Signs:
    """The largest gain of all exchangeable laws whose loss is `epsilon`."""
    flips = np.arange(changes + 1)
    patterns = [np.where(flips <= most, 1.0, math.exp(-epsilon)) for most in range((changes + 1) // 2)]
    laws = [Signs(pattern / np.sum(_ways(changes) * pattern)) for pattern in patterns]
    return max(laws, key=lambda law: law.gain)


def _ways(changes: int) -> NDArray[np.float64]:
    return np.asarray(special.comb(changes, np.arange(changes + 1)))


@checks.plain
@dataclass(frozen=True)
class ChangeTree:
    """`horizon` epochs; `epsilon` of all that a user sends; `changes` of a bit that are followed, then a client reports as
    if its bit stayed. With "best" a level with fewer nodes than changes plans for as many as it has nodes, levels in more
    use are drawn more often, and a node is averaged with the sum of its halves (Honaker 2015)."""

    n_users: int
    horizon: int
    epsilon: float
    changes: int
    randomizer: str = "best"

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, horizon=self.horizon, changes=self.changes)
        checks.positive(epsilon=self.epsilon)
        checks.one_of(RANDOMIZERS, randomizer=self.randomizer)
        if self.changes > MOST_CHANGES:
            raise ValueError(f"changes must be at most {MOST_CHANGES}, got {self.changes}")

    @property
    def nodes(self) -> NDArray[np.int64]:
        """How many of each level, (levels,), end by the horizon: of 1, 2, 4, ... epochs."""
        return self.horizon >> np.arange(self.horizon.bit_length())

    @cached_property
    def signs(self) -> tuple[Signs, ...]:
        """Each level's randomizer."""
        if self.randomizer == "best":
            return tuple(best(min(self.changes, int(m)), self.epsilon) for m in self.nodes)
        epsilon = self.epsilon / 2 if self.randomizer == "erlingsson" else self.epsilon
        return (erlingsson(self.changes, epsilon),) * len(self.nodes)

    @property
    def privacy_loss(self) -> float:
        """The exact loss of all that a user sends: the largest over levels."""
        return max(law.loss for law in self.signs)

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """Of each level, (levels,): what a report of a change is on average."""
        return np.array([law.gain for law in self.signs])

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The probability of each level, (levels,)."""
        levels, epochs = np.arange(len(self.nodes)), np.arange(1, self.horizon + 1)
        uses = np.count_nonzero(epochs[:, None] >> levels & 1, axis=0)
        weights = np.sqrt(uses) / self.gains if self.randomizer == "best" else np.ones(len(levels))
        return np.asarray(weights / weights.sum())

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Of every epoch, (horizon,), before any data: a bound, nearly reached where few bits change at a time."""
        own = self.n_users * self.shares * self.gains**2  # precision of a node's own reports
        total = own.copy()
        for level in range(1, len(own) if self.randomizer == "best" else 0):
            total[level] += total[level - 1] / 2  # averaged with the sum of its halves
        sums, variances = np.zeros(self.horizon + 1), 1 / total
        for level in range(len(own) - 1, -1, -1):
            ends = np.arange(1 << level, self.horizon + 1, 2 << level)
            sums[ends] = sums[ends - (1 << level)] + variances[level]
        return np.sqrt(sums[1:])


@checks.plain
@dataclass(frozen=True)
class Memoized:
    """`permanent_epsilon` of the answer to each value, `report_epsilon` of the noise on every report: RAPPOR for one bit."""

    permanent_epsilon: float
    report_epsilon: float

    def __post_init__(self) -> None:
        checks.positive(permanent_epsilon=self.permanent_epsilon, report_epsilon=self.report_epsilon)

    def standard_error(self, n_users: int) -> float:
        """Of an epoch's mean near 1/2, which has the largest; errors of different epochs are alike."""
        kept = math.tanh(self.permanent_epsilon / 2) * math.tanh(self.report_epsilon / 2)
        return 1 / (2 * kept * math.sqrt(n_users))

    def transcript_loss(self, horizon: int) -> float:
        """The exact epsilon of a user's reports in `horizon` epochs, between any two sequences of bits."""
        checks.integer_at_least(1, horizon=horizon)
        sums, worst = np.arange(-horizon, horizon + 1), 0.0
        logs = self._log_factor(sums)
        for total in range(-horizon, 1, 2):  # the other half by exchange of 0 and 1
            first = sums[np.abs(sums) + np.abs(total - sums) <= horizon]
            both = logs[first + horizon] + logs[first - total + horizon]  # f(s_1) f(-s_0)
            worst = max(worst, float(both.max() - both.min()))
        return worst

    def _log_factor(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln f."""
        tilt = sums * self.report_epsilon / 2
        keep, slip = (-np.logaddexp(0, sign * self.permanent_epsilon) for sign in (-1, 1))
        return np.asarray(np.logaddexp(keep + tilt, slip - tilt))


def few_changes(n_users: int, horizon: int, epsilon: float, changes: int) -> pd.DataFrame:
    """A row per method: the root mean square of its standard errors over epochs, and the exact loss of all that a user
    sends; trees for bits that change at most `changes` times, memoization with `epsilon` for a bit that never changes, and
    half of it for the second layer."""
    rows = []
    for randomizer in RANDOMIZERS:
        tree = ChangeTree(n_users, horizon, epsilon, changes, randomizer)
        rows.append((f"tree, {randomizer}", float(np.sqrt(np.mean(tree.standard_errors**2))), tree.privacy_loss))
    layers = Memoized(epsilon, epsilon / 2)
    rows.append(("two layers (RAPPOR)", layers.standard_error(n_users), layers.transcript_loss(horizon)))
    return pd.DataFrame(rows, columns=["method", "standard_error", "exact_loss"])
