"""Change detection: averages of independent estimates between detected changes, which costs no privacy.

**Computes** a piecewise constant fit to independent estimates of known variance, one an epoch, such as those of `once`. Of
all divisions into segments it takes the one with the least sum of squared standardized residuals plus a `penalty` for each
change (optimal partitioning), and estimates each segment's mean. Words change together: their residuals are added up.
*Retrospective*: an epoch's segment reaches over later epochs, so that its estimate comes late. *Online*: the estimate is the
mean of the last segment of the best division of the epochs so far. It is there when the epoch ends, as that of THRESH.

**Privacy.** It reads nothing but releases, so their guarantee holds for what it makes of them: free post-processing.

**Error.** Where all means are constant and noise is normal, the retrospective fit has no change with probability
1 - `false_alarm`. Where changes are found at their places, an estimate has the standard error of all reports of its segment.
It is worse where a change is too small to be found, or found an epoch off its place; `bound` is true for any data.
Where a mean moves all the time, segments blur it. The residuals tell: their mean square is 1 + bias^2 / variance, so that
above 2 the releases themselves have the smaller error. Beyond that, and two standard errors of it, `detect` returns the
releases as they are, and says so (`explained`).

**Source.** Jackson et al., An algorithm for optimal partitioning of data on an interval (2005); Yao (1988) for penalties
that grow as 2 ln T. The penalty here is a union bound over all divisions. Time O(T^2), with T^2 d more for d words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from evolvingdp.core import checks

_CHANGES = 60  # of the union bound; divisions with more add less than a millionth to it
_AT_ONCE = 64  # epochs whose best divisions are looked for together
_ROUNDED = 1e-6  # more than rounding can change what a division saves


@lru_cache(maxsize=64)
def penalty(horizon: int, dimensions: int = 1, false_alarm: float = 0.05) -> float:
    """What a change must lower the squared residuals by, in variances: chosen before any data, from public numbers.

    k changes lower those of constant means by a chi-square variable with k `dimensions` degrees of freedom, and there are
    C(T - 1, k) places for them: the penalty at which sum_k C(T - 1, k) P(chi2_{k dimensions} >= k penalty) = false_alarm.
    About 2 ln T + 3.5 in one dimension: 17.4 at T = 1024.
    """
    checks.integer_at_least(1, horizon=horizon, dimensions=dimensions)
    checks.probability(false_alarm=false_alarm)
    changes = np.arange(1, min(horizon - 1, _CHANGES) + 1)
    if not len(changes):
        return 0.0
    places = special.gammaln(horizon) - special.gammaln(changes + 1) - special.gammaln(horizon - changes)

    def excess(candidate: float) -> float:
        tails = special.gammaincc(changes * dimensions / 2, changes * candidate / 2)
        with np.errstate(divide="ignore"):  # a tail below the least float is none
            return float(special.logsumexp(places + np.log(tails))) - math.log(false_alarm)

    high = dimensions + 60 + 6 * math.log(horizon) + 20 * math.sqrt(2 * dimensions)
    return float(optimize.brentq(excess, 0.0, high))


@checks.plain
@dataclass(frozen=True, eq=False)
class Fit:
    """Of every epoch, (T,): its estimate, the first epoch (from 0) of its segment, the reports behind the estimate, and
    whether segments explain the releases, online those so far; where they do not, the estimate is the release itself."""

    estimates: NDArray[np.float64]  # (T,) or (T, n_words)
    starts: NDArray[np.int64]
    reports: NDArray[np.float64]
    explained: NDArray[np.bool_]

    @property
    def changes(self) -> int:
        """Changes found; online, how often the segment's first epoch moved."""
        return int(np.count_nonzero(np.diff(self.starts)))

    def standard_errors(self, variance: float) -> NDArray[np.float64]:
        """(T,): of the mean of as many reports of this `variance`, if the segment holds no change."""
        nothing = np.full(len(self.reports), np.inf)
        return np.asarray(np.sqrt(np.divide(variance, self.reports, out=nothing, where=self.reports > 0)))


def bound(
    fit: Fit, estimates: NDArray[np.float64], reports: NDArray[np.integer], variance: float, beta: float = 0.05
) -> NDArray[np.float64]:
    """(T,): the fit's error in all epochs is at most this with probability 1 - beta, **for any data**: its distance from the
    epoch's own estimate, and sqrt(2 ln(2 T / beta) variance / reports), Hoeffding's bound on that one's error; inf without.

    For means of bits whose `variance` is that of a fair one, as `Once.variance` is."""
    checks.probability(beta=beta)
    own = replace(fit, reports=np.asarray(reports, dtype=float)).standard_errors(variance)
    away = np.abs(fit.estimates - np.where(np.asarray(reports) > 0, estimates, 0.0))
    return away + math.sqrt(2 * math.log(2 * len(own) / beta)) * own


def frequent(estimates: NDArray[np.float64], reports: NDArray[np.integer], variances: ArrayLike) -> NDArray[np.int64]:
    """The words, (k,), k >= 1, whose average over all epochs exceeds the standard error of one average epoch: the others add
    noise to the search for changes, and hardly a change.

    Where means are constant and noise is normal, averages are independent of all differences between epochs, so that the
    choice does not raise false alarms. It reads all epochs, and so is for a retrospective fit.
    """
    weights = np.asarray(reports, dtype=float)
    average = np.average(np.where(weights[:, None] > 0, estimates, 0.0), axis=0, weights=weights)
    ratio = average / np.sqrt(np.asarray(variances) / weights.mean())
    return np.flatnonzero((ratio > 1) | (ratio == ratio.max()))


def detect(
    estimates: NDArray[np.float64],
    reports: NDArray[np.integer],
    variance: ArrayLike,
    *,
    words: NDArray[np.int64] | None = None,
    false_alarm: float = 0.05,
    online: bool = False,
) -> Fit:
    """Fit `estimates`, (T,) or (T, n_words); those of epoch t are means of reports[t] reports, of which one has `variance`,
    a number or (n_words,).

    Changes are looked for in `words`, all unless given. Entries without reports may be nan. `variance` is public: an upper
    bound costs power, not false alarms.
    """
    values, weights, spread = np.asarray(estimates, dtype=float), np.asarray(reports, dtype=float), np.asarray(variance)
    if values.ndim not in (1, 2) or weights.shape != values.shape[:1] or not values.size:
        raise ValueError(f"reports must have one entry per epoch of estimates, got {weights.shape} for {values.shape}")
    if not np.all(spread > 0) or not np.all(np.isfinite(spread)):
        raise ValueError(f"variance must be > 0 and finite, got {variance!r}")
    if not np.all(weights >= 0) or not weights.sum() > 0 or not np.all(np.isfinite(values[weights > 0])):
        raise ValueError("reports must be >= 0 and not all 0, and estimates finite where there are any")
    table = np.where(weights[:, None] > 0, values.reshape(len(values), -1), 0.0)
    standard = table / np.sqrt(spread)
    if words is not None:
        standard = standard[:, words]
    cost = penalty(len(standard), standard.shape[1], false_alarm)
    starts, residuals = _last_segments(standard - np.average(standard, axis=0, weights=weights), weights, cost)
    looked_at = np.cumsum(weights > 0) * standard.shape[1]
    explained = residuals <= 2 * looked_at + 5 * np.sqrt(looked_at)
    ends = np.arange(1, len(values) + 1)
    if not online:
        starts, explained = _traced(starts), np.full(len(values), explained[-1])
        ends = np.append(np.flatnonzero(np.diff(starts)) + 1, len(values))  # one for each segment
    firsts = starts[ends - 1]
    totals, held = _prefixes(table * weights[:, None]), _prefixes(weights)
    counted = held[ends] - held[firsts]
    unknown = np.full((len(ends), table.shape[1]), np.nan)
    means = np.divide(totals[ends] - totals[firsts], counted[:, None], out=unknown, where=counted[:, None] > 0)
    segment = np.searchsorted(ends, np.arange(len(values)), side="right")
    table[weights == 0] = np.nan
    fitted = np.where(explained[:, None], means[segment], table).reshape(values.shape)
    starts = np.where(explained, starts, np.arange(len(values)))
    return Fit(fitted, starts, np.where(explained, counted[segment], weights), explained)


def _last_segments(
    values: NDArray[np.float64], weights: NDArray[np.float64], cost: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Of the best division of epochs 0 to t, for every t: where the last segment begins, and the squared residuals, (T,).

    A segment saves |sum of its weighted values|^2 / (sum of its weights) of squared residuals; with prefix sums S and W the
    best division up to t saves best(t) = max over s of best(s) + |S(t) - S(s)|^2 / (W(t) - W(s)) - cost. A change at t saves
    no less than none, so that s is of no use after t where it saves less than best(t) even without the cost.
    """
    sums, held = _prefixes(values * weights[:, None]), _prefixes(weights)
    best, last = np.zeros(len(values) + 1), np.zeros(len(values) + 1, dtype=np.int64)
    products, alive = None if values.shape[1] == 1 else sums @ sums.T, 0
    for start in range(1, len(values) + 1, _AT_ONCE):
        stop = min(start + _AT_ONCE, len(values) + 1)
        before = np.arange(alive, start)
        if products is None:
            before = before[_worth(sums[:, 0], held, best, last[start - 1], alive, start, stop)]
        now, since = np.arange(start, stop)[:, None], np.append(before, np.arange(start, stop))
        if products is None:
            moved = np.square(sums[now, 0] - sums[since, 0])
        else:
            diagonal = np.diagonal(products)
            moved = diagonal[now] - 2 * products[now, since] + diagonal[since]
        among = held[now] - held[since]
        saved = np.divide(moved, among, out=np.zeros_like(moved), where=among > 0) - cost
        saved[:, len(before) :][since[len(before) :] >= now] = -np.inf
        kept = (saved[:, : len(before)] + best[before]).max(axis=1)
        best[start:stop] = settled = kept
        while True:  # as often as there are changes in a row within what is looked for together
            best[start:stop] = np.maximum(kept, (saved[:, len(before) :] + best[start:stop]).max(axis=1))
            if np.array_equal(best[start:stop], settled):
                break
            settled = best[start:stop].copy()
        saved += best[since]
        last[start:stop] = since[saved.argmax(axis=1)]
        alive = int(since[np.argmax(saved[-1] + cost > settled[-1] - _ROUNDED)])
    segments = [0]
    for begins in last[1:].tolist():
        segments.append(segments[begins] + 1)
    residuals = _prefixes((values**2).sum(axis=1) * weights) - best - cost * np.array(segments)
    return last[1:], residuals[1:]


def _worth(
    sums: NDArray[np.float64],
    held: NDArray[np.float64],
    best: NDArray[np.float64],
    last: np.int64,
    alive: int,
    start: int,
    stop: int,
) -> NDArray[np.bool_]:
    """Which epochs from `alive` to before `start` can begin the last segment of one from `start` to before `stop`, (n,).

    The others, some in a row at a time, save less than a segment from `last` does, although the most of each of their
    numbers is put together. Values are taken from the mean of the last segment, which moves no division's rank and makes
    sums nearly level.
    """
    long = held[start - 1] - held[last]
    mean = (sums[start - 1] - sums[last]) / long if long > 0 else 0.0
    level, moved = (part[alive:stop] for part in (best - mean * (2 * sums - mean * held), sums - mean * held))
    firsts = np.arange(0, start - alive, _AT_ONCE)
    ends = np.append(firsts[1:], start - alive) - 1
    most = np.maximum.reduceat(level[: start - alive], firsts)
    lowest, highest = (extreme.reduceat(moved[: start - alive], firsts) for extreme in (np.minimum, np.maximum))
    now = moved[start - alive :, None]
    among, own = held[start:stop, None] - held[alive + ends], held[start:stop] - held[last]
    with np.errstate(divide="ignore", invalid="ignore"):
        may = most + np.square(np.maximum(now - lowest, highest - now)) / among
        does = level[last - alive] + np.square(moved[start - alive :] - moved[last - alive]) / own
    return np.repeat(~np.all(may < does[:, None] - _ROUNDED, axis=0), ends - firsts + 1)


def _traced(last: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first epoch of each epoch's segment in the best division of all epochs, (T,)."""
    starts, end = np.empty_like(last), len(last)
    while end:
        first = int(last[end - 1])
        starts[first:end] = first
        end = first
    return starts


def _prefixes(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the first 0, 1, ..., T entries, (T + 1, ...)."""
    return np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
