"""What local reports cost together once a shuffler has mixed them: privacy amplification, computed, not a formula's bound.

**Computes** delta at a total epsilon, the total epsilon at a delta, and the largest epsilon of one report that both allow.

**Guarantee.** (epsilon, delta)-differential privacy of the multiset of all reports; neighbouring inputs differ in the word
of one user.  It holds against those who see what the shuffler passes on and nothing of who sent it.  Whatever is public
about a user (a level, a row, a hash seed) divides the users: `n_users` is then that of the smallest group who look alike,
and where groups are drawn by lot a number that hardly ever is larger than theirs (`fewest`), not the expected one.

**Error.** An upper bound, exact for one adversary: who is told whose reports did not come from the blanket.  Where many
values of M, of C, or more than `steps` of A + B are likely, some are taken together: epsilon is then up to 1 % too high.

**Source.** The blanket of Balle et al. (2019), computed as in Su et al. (2025) instead of bounded; re-derived for reports of
one of g values.  A report is uniform, whatever the word, with probability l = g / (p + g - 1), p = e^epsilon: the blanket.
Of the M reports that are from it or the user's own, A support the user's word only, B the other word only, C both: the
likelihoods of the words are as h A + h C + l M to h B + h C + l M, with h = (p - 1) l.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainc
from scipy.stats import binom

from evolvingdp.core import checks

_NEVER = 1e-26  # times as many as are looked at is less than a tail's e^-42
_TAIL = 42.0  # e^-42 of a binomial's law on either side may be left out: it is added to delta
_GROUPS = 4, 64  # of sizes of the blanket, each taken for its least: the fewest and the most
_FINE = 0.01  # of the blanket: how wide a group is
_KNOTS = np.array([-2.0, -0.7, 0.7, 2.0])  # standard deviations of C: between them, and to its ends, it is interpolated
_ENDS = slice(None, -1), slice(1, None)
_LEAST_DELTA = 1e-12
_RARE = 1e-3  # of delta: that a lot has fewer users
_MOST = 15.0  # epsilon of a report


@checks.plain
@dataclass(frozen=True)
class Shuffled:
    """`n_users` reports of `epsilon` each, in random order, one of `values` values: one's own more likely than any other.

    `hashed`: the value is that of a random hash function, which is part of the report (`OLH.hash_values`; for projective
    reports the order of their space).  Else the word itself is one of `values`.
    """

    epsilon: float  # of one report
    n_users: int
    values: int
    hashed: bool = True
    steps: int = 2048

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        checks.integer_at_least(2, n_users=self.n_users, values=self.values, steps=self.steps)
        if self.epsilon > _MOST:
            raise ValueError(f"epsilon must be at most {_MOST:g}, got {self.epsilon:g}")

    @property
    def blanket(self) -> float:
        """The probability that a report is uniform, whatever the word."""
        return self.values / (math.exp(self.epsilon) + self.values - 1)

    def delta(self, epsilon: float) -> float:
        """The delta at total `epsilon`, 0 or more."""
        if not 0 <= epsilon <= _MOST:
            raise ValueError(f"epsilon must be from 0 to {_MOST:g}, got {epsilon!r}")
        low, high = _range(self.n_users - 1, self.blanket)
        mean = 1 + (self.n_users - 1) * self.blanket
        groups = max(_GROUPS[0], min(math.ceil((high - low) / mean / _FINE), self.steps // 32, _GROUPS[1]))
        edges = np.unique(np.linspace(low, high + 1, groups + 1).astype(np.int64))
        shares = -np.diff(_at_least(edges, self.n_users - 1, self.blanket))
        sizes = edges[:-1] + 1
        return min(1.0, self._delta(epsilon, sizes, shares[: len(sizes)]) + 5 * math.exp(self.epsilon - _TAIL))

    def _delta(self, epsilon: float, sizes: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
        """With `sizes` reports from the blanket, the user's included, (groups,), each so likely; it falls with them.

        Of A + B from `least` to `most` A is drawn for `most`, and what it is compared with is that of `least`.
        """
        e, low = math.exp(epsilon), self.blanket
        gap = math.expm1(self.epsilon) * low
        one = (1 - 1 / self.values) / self.values if self.hashed else 1 / self.values  # supports one given word only
        steps = [_ends(*_range(int(size), 2 * one), self.steps) for size in sizes]
        reports, weights = (np.repeat(part, [len(step) - 1 for step in steps]) for part in (sizes, shares))
        least, most = (np.concatenate([step[part] + 1 - place for step in steps]) for place, part in enumerate(_ENDS))
        ends = zip(steps, sizes, strict=True)
        told = np.concatenate([-np.diff(_at_least(step + 1, size, 2 * one)) for step, size in ends])
        told = weights * told / reports
        likely = told > _NEVER
        least, most, reports, told = least[likely], most[likely], reports[likely], told[likely]
        if self.hashed:
            both, chance = _interpolated(reports - most, self.values**-2 / (1 - 2 * one))
            told = (told * chance).ravel()
            least, most, reports = (np.broadcast_to(part, both.shape).ravel() for part in (least, most, reports))
            both = both.ravel()
        else:
            both = np.zeros(len(least), dtype=np.int64)
        needed = gap * e * least + (e - 1) * (low * reports + gap * both)
        first = np.ceil(needed / (gap * (1 + e)) - 1e-9)  # of A: from here on the user's word is e^epsilon times as likely
        near = (first <= most) & ((2 * first - most) ** 2 < 120.0 * most)  # beyond, Hoeffding's bound is e^-60
        most, first, needed, told = most[near], first[near], needed[near], told[near]
        beyond, up = _at_least(first, most - 1, 0.5), _at_least(first - 1, most - 1, 0.5)
        gain = gap * (1 + e) * most / 2 * up - needed * (up + beyond) / 2
        return float(told @ np.maximum(gain, 0))

    def total_epsilon(self, delta: float) -> float:
        """The total epsilon at `delta`, from 1e-12 to 1; never more than that of one report."""
        _check(delta)
        return _last(lambda epsilon: self.delta(epsilon) / delta, self.epsilon, 0.0, 1e-5 * self.epsilon)


def epsilon_of_a_report(
    epsilon: float,
    delta: float,
    n_users: int,
    values: Callable[[float], int],
    most: float,
    hashed: bool = True,
    rough: bool = False,
) -> float:
    """The largest epsilon, up to `most`, of reports that are (`epsilon`, `delta`)-private once shuffled.

    `values`: how many values a report of a given epsilon has, those of a hash function if `hashed`.  Never less than
    `epsilon`.  `rough`: in a tenth of the time, and most often up to 3 % less.
    """
    checks.positive(epsilon=epsilon, most=most)
    _check(delta)
    most = max(most, epsilon)

    def report(more: float) -> float:
        return min(epsilon * math.exp(more), most)

    def spent(more: float, steps: int) -> float:
        one = report(more)
        return Shuffled(one, n_users, values(one), hashed, steps).delta(epsilon) / delta

    high = math.log(most / epsilon)
    low = _last(lambda more: spent(more, 256), 0.0, high, 1e-2 if rough else 1e-3)
    if rough:
        return report(low)
    above = low + 0.03  # where the last place is, nearly always
    while above < high and spent(above, 2048) <= 1:
        low, above = above, above + 0.1
    return report(_last(lambda more: spent(more, 2048), low, min(above, high), 1e-4))


def fewest(n_users: int, share: float, delta: float) -> tuple[int, float]:
    """How many look alike, and the delta that is left, where each of `n_users` falls into a part of this `share` by lot.

    In so many cases as a thousandth of delta there are fewer, in addition to the user in question.
    """
    checks.integer_at_least(1, n_users=n_users)
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    if share == 1:
        return n_users, delta
    return 1 + int(binom.ppf(_RARE * delta, n_users - 1, share)), (1 - _RARE) * delta


def _least(trials: Any, probability: float) -> Any:
    """Below which a binomial falls with probability e^-_TAIL at most (Chernoff); 0 or more, shape of `trials`."""
    mean = trials * probability
    return np.floor(np.maximum(0, mean - np.sqrt(2 * _TAIL * mean)))


def _range(trials: int, probability: float) -> tuple[int, int]:
    """Where a binomial is but for its tails (above: trials less so many failures, or Bernstein's inequality)."""
    mean, above = trials * probability, trials - int(_least(trials, 1 - probability))
    return int(_least(trials, probability)), min(
        above, math.ceil(mean + _TAIL / 3 + math.hypot(_TAIL / 3, math.sqrt(2 * _TAIL * mean)))
    )


def _at_least(count: NDArray[Any], trials: Any, probability: float) -> NDArray[np.float64]:
    """The probability that a binomial is `count` or more."""
    inside = betainc(np.minimum(np.maximum(count, 1), np.maximum(trials, 1)), np.maximum(trials - count + 1, 1), probability)
    return np.where(count <= 0, 1.0, np.where(count > trials, 0.0, inside))


def _interpolated(trials: NDArray[np.int64], probability: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Values (knots, n) and weights with which a convex falling function of a binomial has at least its mean.

    Between two knots a convex function is below its chord; beyond the last it is below its value there.  What the first
    leaves out is a tail of e^-_TAIL.
    """
    mean = trials * probability
    knots = np.round(mean + _KNOTS[:, None] * np.sqrt(mean * (1 - probability)))
    ends = _least(trials, probability)[None, :], np.minimum(trials, np.ceil(mean + 7 + 7 * np.sqrt(mean)))[None, :]
    values = np.sort(np.concatenate([ends[0], np.clip(knots, *ends), ends[1]]), axis=0).astype(np.int64)
    above = _at_least(values, trials, probability)
    above_mean = mean * _at_least(values - 1, trials - 1, probability)  # what those above contribute to the mean
    width, inside = np.diff(values, axis=0), -np.diff(above, axis=0)
    upper = np.where(width, (-np.diff(above_mean, axis=0) - values[:-1] * inside) / np.maximum(width, 1), 0.0)
    weights = np.zeros(values.shape)
    weights[:-1] += inside - upper
    weights[1:] += upper
    weights[-1] += above[-1]
    return values, np.maximum(weights, 0)


def _ends(first: int, last: int, steps: int) -> NDArray[np.int64]:
    """Of equal steps from below `first`, and 0 or more, to `last`."""
    width = -(-(last + 1 - first) // steps)
    return np.append(np.arange(max(first, 1) - 1, last, width), last)


def _last(spent: Callable[[float], float], good: float, other: float, near: float) -> float:
    """Where all is `spent` (a share, 1 at most, which holds at `good`), towards `other`, or up to `near` before it."""
    excess = lru_cache(lambda place: math.log(max(spent(place), 1e-300)))
    if excess(other) <= 0:
        return other
    if excess(good) >= 0:
        return good
    place, back = float(brentq(excess, good, other, xtol=near / 2, rtol=1e-12)), math.copysign(near / 2, good - other)
    while excess(place) > 0:
        place = min(place + back, good) if back > 0 else max(place + back, good)
    return place


def _check(delta: float) -> None:
    if not _LEAST_DELTA <= delta < 1:
        raise ValueError(f"delta must be at least {_LEAST_DELTA:g} and below 1, got {delta!r}")
