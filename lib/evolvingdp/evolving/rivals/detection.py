"""Change detection: averages of independent estimates between detected changes, which costs no privacy.

**Computes** a piecewise constant fit to independent estimates of known variance, one an epoch, such as those of `once`. Of
all divisions into segments it takes the one with the least sum of squared standardized residuals plus a `penalty` for each
change (optimal partitioning), and estimates each segment's mean. Words change together: their residuals are added up.
*Retrospective*: an epoch's segment reaches over later epochs, so that its estimate comes late. *Online*: the estimate is the
mean of the last segment of the best division of the epochs so far. It is there when the epoch ends, as that of THRESH.

**Privacy.** It reads nothing but releases, so their guarantee holds for what it makes of them: free post-processing.

**Error.** Where all means are constant and noise is normal, the retrospective fit has no change with probability
1 - `false_alarm`. Online each epoch has a best division of its own, so that a cut somewhere in all T epochs is likelier:
with .05 it was seen in 6 to 20 % of streams without a change. Where changes are found at their places, an estimate has the
standard error of all reports of its segment. It is worse where a change is too small to be found, or found an epoch off its
place; `bound` is true for any data. Where a mean moves all the time, segments blur it. The residuals tell: their mean square
is 1 + bias^2 / variance, so that above 2 the releases themselves have the smaller error. Beyond that, and two standard
errors of it, `detect` returns the releases as they are, and says so (`explained`).

**Source.** Jackson et al., An algorithm for optimal partitioning of data on an interval (2005); Yao (1988) for penalties
that grow as 2 ln T. The penalty here is a union bound over all divisions. Time O(T^2), with T^2 d more for d words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from evolvingdp.core import checks

_CHANGES = 60  # of the union bound; divisions with more add less than a millionth to it
_AT_ONCE = 64  # epochs whose best divisions are looked for together
_PASSES = 3  # over variances that depend on what is estimated
_SAME = 0.02  # of a variance: what finds hardly another change
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
    """Fit `estimates`, (T,) or (T, n_words); those of epoch t are means of reports[t] reports, of which one has `variance`:
    a number, or an array that goes with the shape of `estimates`.

    Changes are looked for in `words`, all unless given. Entries without reports may be nan. `variance` is public: an upper
    bound costs power, not false alarms; one that is too low finds changes where there are none. For reports whose variance
    depends on what is estimated, `Once.detect` and `OnceWords.detect` know it.
    """
    values, counted, spread = np.asarray(estimates, dtype=float), np.asarray(reports, dtype=float), np.asarray(variance)
    if values.ndim not in (1, 2) or counted.shape != values.shape[:1] or not values.size:
        raise ValueError(f"reports must have one entry per epoch of estimates, got {counted.shape} for {values.shape}")
    if spread.ndim > values.ndim or any(
        n not in (1, m) for n, m in zip(spread.shape[::-1], values.shape[::-1], strict=False)
    ):
        raise ValueError(f"variance must go with estimates of shape {values.shape}, got shape {spread.shape}")
    if not np.all(spread > 0) or not np.all(np.isfinite(spread)):
        raise ValueError(f"variance must be > 0 and finite, got {variance!r}")
    if not np.all(counted >= 0) or not counted.sum() > 0 or not np.all(np.isfinite(values[counted > 0])):
        raise ValueError("reports must be >= 0 and not all 0, and estimates finite where there are any")
    table = np.where(counted[:, None] > 0, values.reshape(len(values), -1), 0.0)
    weights = counted[:, None] / np.broadcast_to(spread, values.shape).reshape(table.shape)
    looked, precise = (table, weights) if words is None else (table[:, words], weights[:, words])
    cost = penalty(len(looked), looked.shape[1], false_alarm)
    starts, residuals = _last_segments(looked - np.average(looked, axis=0, weights=precise), precise, cost)
    looked_at = np.cumsum(counted > 0) * looked.shape[1]
    explained = residuals <= 2 * looked_at + 5 * np.sqrt(looked_at)
    ends = np.arange(1, len(values) + 1)
    if not online:
        starts, explained = _traced(starts), np.full(len(values), explained[-1])
        ends = np.append(np.flatnonzero(np.diff(starts)) + 1, len(values))  # one for each segment
    firsts = starts[ends - 1]
    totals, held = _prefixes(table * counted[:, None]), _prefixes(counted)
    among = held[ends] - held[firsts]
    unknown = np.full((len(ends), table.shape[1]), np.nan)
    means = np.divide(totals[ends] - totals[firsts], among[:, None], out=unknown, where=among[:, None] > 0)
    segment = np.searchsorted(ends, np.arange(len(values)), side="right")
    table[counted == 0] = np.nan
    fitted = np.where(explained[:, None], means[segment], table).reshape(values.shape)
    starts = np.where(explained, starts, np.arange(len(values)))
    return Fit(fitted, starts, np.where(explained, among[segment], counted), explained)


def detect_at(
    estimates: NDArray[np.float64],
    reports: NDArray[np.integer],
    largest: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    **options: Any,
) -> Fit:
    """`detect` where a report's variance depends on the share that is estimated: `largest` of them between two shares.

    It starts from the largest of all, and then takes what shares within two standard errors of each epoch's own estimate
    can have, three times, since changes that are found move estimates, or until none moves by a fiftieth. Online an
    epoch's variance reads no later epoch.
    """
    lowest, highest = np.zeros(np.shape(estimates)), np.ones(np.shape(estimates))
    variance = largest(lowest, highest)
    fit = detect(estimates, reports, variance, **options)
    for _ in range(_PASSES):
        counted = fit.reports.reshape(-1, *[1] * (variance.ndim - 1))
        error = 2 * np.sqrt(np.divide(variance, counted, out=np.full(variance.shape, np.inf), where=counted > 0))
        low, high = np.nan_to_num(fit.estimates - error, nan=0.0), np.nan_to_num(fit.estimates + error, nan=1.0)
        before, variance = variance, largest(np.clip(low, 0, 1), np.clip(high, 0, 1))
        if np.allclose(variance, before, rtol=_SAME, atol=0):
            break
        fit = detect(estimates, reports, variance, **options)
    return fit


def _last_segments(
    values: NDArray[np.float64], weights: NDArray[np.float64], cost: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Of the best division of epochs 0 to t, for every t: where the last segment begins, and the squared residuals, (T,); of
    `values` and their `weights`, (T, words).

    A segment saves, added up over words, (sum of its weighted values)^2 / (sum of its weights) of squared residuals; with
    prefix sums S and W the best division up to t saves best(t) = max over s of best(s) + (S(t) - S(s))^2 / (W(t) - W(s)) -
    cost. A change at t saves no less than none, so that s is of no use after t where it saves less than best(t) even without
    the cost.
    """
    sums, held = _prefixes(values * weights).T.copy(), _prefixes(weights).T.copy()
    best, last, alive = np.zeros(len(values) + 1), np.zeros(len(values) + 1, dtype=np.int64), 0
    for start in range(1, len(values) + 1, _AT_ONCE):
        stop = min(start + _AT_ONCE, len(values) + 1)
        before = np.arange(alive, start)
        if len(sums) == 1:
            before = before[_worth(sums[0], held[0], best, last[start - 1], alive, start, stop)]
        now, since = np.arange(start, stop)[:, None], np.append(before, np.arange(start, stop))
        saved = np.full((stop - start, len(since)), -cost)
        for total, weight in zip(sums, held, strict=True):
            among = weight[now] - weight[since]
            saved += np.divide(np.square(total[now] - total[since]), among, out=np.zeros_like(among), where=among > 0)
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
    residuals = _prefixes((values**2 * weights).sum(axis=1)) - best - cost * np.array(segments)
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
