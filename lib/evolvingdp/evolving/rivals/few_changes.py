"""What is made for bits that hardly change: dyadic trees and memoization, by their exact numbers. Nothing is drawn here.

**Trees.** A lot gives each user a level h; after each stretch of 2^h epochs it reports by how much its bit moved over it: a
sign, or a fair coin where it did not. A user whose bit changes at most k times has at most k entries other than 0, whose
signs are flipped with a law that depends only on how many are flipped: `pattern`, (k + 1,). The loss of all that a user
sends is exactly ln(max / min) of it. `erlingsson`: one of k places answers with randomized response, the others with coins.
`best`: the largest gain of all such laws (a linear program), with FutureRand's (Ohrimenko, Wirth and Wu 2022) among them.

**Memoization.** A device draws one answer to 0 and one to 1, each by randomized response at `permanent`, and in each epoch
sends the answer to its bit through randomized response at `report`. **Its promise is another one**: `permanent` bounds what
is told about a bit *that never changes*. Between any two sequences of bits the loss of all reports is `layers_loss`,
exactly: let s be reports of 1 less those of 0 in epochs of one bit. Given both answers reports are independent, so a
sequence has probability (...)^T f(s of its 1s) f(-s of its 0s), f(s) = p1 e^(bs) + (1 - p1) e^(-bs), b = report / 2. Sums
s_0, s_1 of one and r_0, r_1 of the other sequence occur together in T epochs if and only if s_0 + s_1 = r_0 + r_1, no |.| +
|.| is larger than T, and T is of their parity.

**Source.** Erlingsson et al. (2019); RAPPOR, Erlingsson, Pihur and Korolova (2014); Ding, Kulkarni and Yekhanin (2017).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evolvingdp.core import checks

if TYPE_CHECKING:  # whose import takes as long as a plan
    import pandas as pd

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
def tree(
    n_users: int, horizon: int, epsilon: float, changes: int, randomizer: str = "best"
) -> tuple[NDArray[np.float64], float]:
    """Standard errors of all epochs, (horizon,), and the exact loss of all that a user sends, `epsilon` at most. `changes`
    of a bit are followed, then a client reports as if it stayed. Errors are a bound, nearly reached where few bits change
    at a time. With "best" a level with fewer nodes than changes plans for as many as it has nodes, levels in more use are
    drawn more often, and a node is averaged with the sum of its halves (Honaker 2015)."""
    checks.integer_at_least(1, n_users=n_users, horizon=horizon, changes=changes)
    checks.positive(epsilon=epsilon)
    checks.one_of(RANDOMIZERS, randomizer=randomizer)
    if changes > MOST_CHANGES:
        raise ValueError(f"changes must be at most {MOST_CHANGES}, got {changes}")
    levels, tuned = np.arange(horizon.bit_length()), randomizer == "best"
    if tuned:
        laws = [best(min(changes, horizon >> level), epsilon) for level in levels.tolist()]
    else:
        laws = [erlingsson(changes, epsilon / 2 if randomizer == "erlingsson" else epsilon)] * len(levels)
    gains = np.array([law.gain for law in laws])
    uses = np.count_nonzero(np.arange(1, horizon + 1)[:, None] >> levels & 1, axis=0)
    weights = np.sqrt(uses) / gains if tuned else np.ones(len(levels))
    precision = n_users * weights / weights.sum() * gains**2  # of a node's own reports
    for level in levels[1:] if tuned else ():
        precision[level] += precision[level - 1] / 2
    sums = np.zeros(horizon + 1)
    for level in levels[::-1].tolist():
        ends = np.arange(1 << level, horizon + 1, 2 << level)
        sums[ends] = sums[ends - (1 << level)] + 1 / precision[level]
    return np.sqrt(sums[1:]), max(law.loss for law in laws)


@checks.plain
def layers_error(n_users: int, permanent: float, report: float) -> float:
    """Standard error of an epoch's mean near 1/2, which has the largest; errors of different epochs are alike."""
    checks.positive(permanent=permanent, report=report)
    return 1 / (2 * math.tanh(permanent / 2) * math.tanh(report / 2) * math.sqrt(n_users))


@checks.plain
def layers_loss(horizon: int, permanent: float, report: float) -> float:
    """The exact epsilon of a user's reports in `horizon` epochs, between any two sequences of bits."""
    checks.integer_at_least(1, horizon=horizon)
    checks.positive(permanent=permanent, report=report)
    sums, worst = np.arange(-horizon, horizon + 1), 0.0
    keep, slip = (-np.logaddexp(0, sign * permanent) for sign in (-1, 1))
    logs = np.logaddexp(keep + sums * report / 2, slip - sums * report / 2)  # ln f
    for total in range(-horizon, 1, 2):  # the other half by exchange of 0 and 1
        first = sums[np.abs(sums) + np.abs(total - sums) <= horizon]
        both = logs[first + horizon] + logs[first - total + horizon]  # f(s_1) f(-s_0)
        worst = max(worst, float(both.max() - both.min()))
    return worst


def few_changes(n_users: int, horizon: int, epsilon: float, changes: int) -> pd.DataFrame:
    """A row per method: the root mean square of its standard errors over epochs, and the exact loss of all that a user
    sends. Trees are for bits that change at most `changes` times, memoization for a bit that never changes: a device whose
    bit moves shows other answers, so that no epsilon holds from two epochs on.

    Memoization has `epsilon`, half of it for a second layer, or one layer, of a bit for each of two values with half of
    epsilon (dBitFlipPM)."""
    rows = []
    for randomizer in RANDOMIZERS:
        errors, loss = tree(n_users, horizon, epsilon, changes, randomizer)
        rows.append((f"tree, {randomizer}", float(np.sqrt(np.mean(errors**2))), loss))
    layers = epsilon, epsilon / 2
    kept = math.tanh(epsilon / 4)  # of a bit's mean, in what is sent of it
    rows.append(
        ("one layer (dBitFlipPM)", math.sqrt((1 + kept**2) / 8 / n_users) / kept, math.inf if horizon > 1 else epsilon)
    )
    rows.append(("two layers (RAPPOR)", layers_error(n_users, *layers), layers_loss(horizon, *layers)))
    import pandas as pd

    return pd.DataFrame(rows, columns=["method", "standard_error", "exact_loss"])
