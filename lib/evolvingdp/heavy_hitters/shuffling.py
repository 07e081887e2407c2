"""What local reports cost together once a shuffler has mixed them: privacy amplification, computed, not a formula's bound.

**Computes** delta at a total epsilon, the total epsilon at a delta, and the largest epsilon of one report that both allow.

**Guarantee.** (epsilon, delta)-differential privacy of the multiset of all reports; neighbouring inputs differ in the word
of one user.  It holds against those who see what the shuffler passes on and nothing of who sent it.  Whatever is public
about a user (a level, a row, a hash seed) divides the users: `n_users` is then that of the smallest group who look alike,
and where groups are drawn by lot a number that hardly ever is larger than theirs (`fewest`), not the expected one.

**Error.** An upper bound, exact for one adversary: who is told whose reports did not come from the blanket.  The grid of
its sums raises epsilon by less than 1 %.  More than 10^10 users are taken for 10^10.

**Source.** The blanket of Balle et al. (2019), computed as in Su et al. (2025) instead of bounded; re-derived for reports
one in g of which supports a word.  A report is uniform, whatever the word, with probability g / (p + g - 1), p =
e^epsilon: the blanket.  Such a report that supports the user's word only is worth p - e, e = e^total; the other word only
1 - p e, both p - p e, neither 1 - e.  Delta is the mean of the n reports' worth, where it is above 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import logsumexp

from evolvingdp.core import checks
from evolvingdp.core.olh import OLH
from evolvingdp.core.sampling import binomial_quantile

_GRID = 16  # 2^16 points, or more where the sums of so many users need them
_FINEST = 22  # 2^22 points at most: the bound holds on any grid, and is looser on a coarse one
_CROWD = 10**10
_TAIL = 42.0  # e^-42 of the sums' law may be beyond either end of the grid: it is added to delta
_LEAST_DELTA = 1e-12
_RARE = 1e-3  # of delta: that a lot has fewer users
_MOST = 15.0  # epsilon of a report
_NEAR = 1e-6  # relative: the epsilon of a report that is allowed


@checks.plain
@dataclass(frozen=True)
class Shuffled:
    """`n_users` reports of `epsilon` each, in random order, of which one in `values` supports a word: more likely the own.

    `both`: the share of all possible reports that support two given words.  Of local hashing with g values, hash function
    included, it is 1/g^2 (`hashed`); of randomized response on g words 0.
    """

    epsilon: float  # of one report
    n_users: int
    values: float
    both: float = 0.0

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        checks.integer_at_least(2, n_users=self.n_users)
        checks.finite(values=self.values, both=self.both)
        if not (self.values >= 2 and 0 <= self.both * self.values <= 1):
            raise ValueError(f"values must be 2 or more, and both 0 to 1/values, got {self.values!r} and {self.both!r}")
        if self.epsilon > _MOST:
            raise ValueError(f"epsilon must be at most {_MOST:g}, got {self.epsilon:g}")

    def delta(self, epsilon: float) -> float:
        """The delta at total `epsilon`, 0 or more."""
        if not 0 <= epsilon <= _MOST:
            raise ValueError(f"epsilon must be from 0 to {_MOST:g}, got {epsilon!r}")
        n, g, p, e = min(self.n_users, _CROWD), self.values, math.exp(self.epsilon), math.exp(epsilon)
        if e >= p:  # or so near that doubles do not tell them apart
            return max(0.0, self.epsilon - epsilon)
        blanket, both, own = g / (p + g - 1), self.both, 1 / g - self.both
        worth = np.array([p - e, 1 - p * e, p - p * e, 1 - e, 0.0])
        chances = np.array([own * blanket, own * blanket, both * blanket, (1 - 2 * own - both) * blanket, 1 - blanket])
        # the sum is looked at where it is likely if large worths are made more likely: where its mean is 0
        tilt = _centre(worth, chances)
        tilted = chances * np.exp(tilt * worth)
        deviation = math.sqrt(n * float(tilted @ worth**2) / tilted.sum())
        more = math.sqrt(2 * _TAIL) / deviation
        reach = (n * (_log_mean(worth, chances, tilt + more) - _log_mean(worth, chances, tilt)) + _TAIL) / more
        size = 1 << min(max(_GRID, math.ceil(math.log2(4 * reach / (p - e)))), _FINEST)
        step = 2 * reach / size
        aligned = e - 1 if e - 1 >= step else p - e  # most reports, or else those that count, stay as they are
        step = aligned / max(1, math.floor(aligned / step))
        places = np.floor(worth / step)  # without moving its mean: delta grows, as it is the mean of a convex function
        upper = worth / step - places
        places, chances = np.append(places, places + 1), np.append(chances * (1 - upper), chances * upper)
        scale = _log_mean(places * step, chances, tilt)
        one = np.zeros(size)
        np.add.at(one, places.astype(np.int64) % size, chances * np.exp(tilt * places * step - scale))
        law = scipy.fft.irfft(scipy.fft.rfft(one) ** n, size)[: size // 2]  # of sums of 0 and more
        sums = np.arange(size // 2) * step
        inside = math.exp(n * scale) * float(np.maximum(law, 0) @ (sums * np.exp(-tilt * sums))) / n
        far = tilt + more
        beyond = (p - e + step) * math.exp(min(0.0, n * _log_mean(places * step, chances, far) - far * size / 2 * step))
        return min(1.0, inside * (1 + 1e-9 + n * 1e-15) + beyond)  # doubles round

    def total_epsilon(self, delta: float) -> float:
        """The total epsilon at `delta`, from 1e-12 to 1; never more than that of one report."""
        _check(delta)
        return _last(lambda epsilon: self.delta(epsilon) / delta, self.epsilon, 0.0, 1e-5 * self.epsilon)


def epsilon_of_a_report(
    epsilon: float, delta: float, n_users: int, values: Callable[[float], tuple[float, float]], most: float
) -> float:
    """The largest epsilon, up to `most`, of reports that are (`epsilon`, `delta`)-private once shuffled.

    `values`: the values and both of `Shuffled` at a given epsilon, with which they may grow.  Never less than `epsilon`.
    """
    checks.positive(epsilon=epsilon, most=most)
    _check(delta)
    most = max(most, epsilon)

    def report(more: float) -> float:
        return min(epsilon * math.exp(more), most)

    def spent(more: float) -> float:
        one = report(more)
        return Shuffled(one, n_users, *values(one)).delta(epsilon) / delta

    def same(start: float) -> float:
        """The last place from `start` on whose reports have as many values."""
        if values(report(start)) == values(most):
            return end
        return _bisected(lambda more: values(report(more)) == values(report(start)), start, end)

    end = math.log(most / epsilon)
    last = _last(spent, 0.0, end, _NEAR)
    # delta falls where a report gets another value: beyond the first place where it is spent there may be others
    while (start := max(math.nextafter(same(last), math.inf), last + _NEAR)) < end and spent(start) <= 1:
        last = _last(spent, start, same(start), _NEAR)
    return report(last)


def hashed(epsilon: float) -> tuple[float, float]:
    """Values and both of local hashing at its best."""
    return (values := OLH(epsilon).hash_values), values**-2


def fewest(n_users: int, share: float, delta: float) -> tuple[int, float]:
    """How many look alike, and the delta that is left, where each of `n_users` falls into a part of this `share` by lot.

    In so many cases as a thousandth of delta there are fewer, in addition to the user in question.
    """
    checks.integer_at_least(1, n_users=n_users)
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}")
    if share == 1:
        return n_users, delta
    return 1 + int(binomial_quantile(_RARE * delta, n_users - 1, share)), (1 - _RARE) * delta


def _log_mean(worth: NDArray[np.float64], chances: NDArray[np.float64], tilt: float) -> float:
    """The logarithm of the mean of e^(tilt worth)."""
    return float(logsumexp(tilt * worth, b=chances))


def _centre(worth: NDArray[np.float64], chances: NDArray[np.float64]) -> float:
    """The tilt at which the mean of worth e^(tilt worth) is 0, for a mean of 0 or less without."""

    def mean(tilt: float) -> float:
        return float(chances * np.exp(tilt * (worth - worth[0])) @ worth)

    high = 1 / worth[0]
    while mean(high) <= 0:
        high *= 2
    return float(scipy.optimize.brentq(mean, 0.0, high)) if mean(0.0) < 0 else 0.0


def _last(spent: Callable[[float], float], good: float, other: float, near: float) -> float:
    """Where all is `spent` (a share, 1 at most, which holds at `good`), towards `other`, or up to `near` before it."""
    excess = lru_cache(lambda place: math.log(max(spent(place), 1e-300)))
    if excess(other) <= 0:
        return other
    if excess(good) >= 0:
        return good
    place = float(scipy.optimize.brentq(excess, good, other, xtol=near / 2, rtol=1e-12))
    back = math.copysign(near / 2, good - other)
    while excess(place) > 0:
        place = min(place + back, good) if back > 0 else max(place + back, good)
    return place


def _bisected(holds: Callable[[float], bool], good: float, bad: float) -> float:
    """The last double from `good` on at which it `holds`, as it does at `good` and not at `bad`."""
    while good < (middle := (good + bad) / 2) < bad:
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _check(delta: float) -> None:
    checks.finite(delta=delta)
    if not _LEAST_DELTA <= delta < 1:
        raise ValueError(f"delta must be at least {_LEAST_DELTA:g} and below 1, got {delta!r}")
