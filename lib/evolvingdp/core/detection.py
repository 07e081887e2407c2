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
standard error of all reports of its segment; it is worse where one is too small to be found, or found an epoch off. Where a
mean moves all the time, segments blur it, and the mean square of their residuals, 1 + bias^2 / variance, tells: above 2 and
two standard errors of it `detect` returns the releases as they are, and says so (`explained`).

**Source.** Jackson et al., An algorithm for optimal partitioning of data on an interval (2005); Yao (1988) for penalties
that grow as 2 ln T. The penalty here is a union bound over all divisions. Time O(T^2 d) at most, for d words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from evolvingdp.core import checks

_CHANGES = 60  # of the union bound; divisions with more add less than a millionth to it
_PASSES = 3  # over variances that depend on what is estimated
_SAME = 0.02  # of a variance: what finds hardly another change
_ROUNDED = 1e-6  # more than rounding can change what a division saves
_NOTHING = 1e-300  # the weight of a segment without reports, which saves nothing

Array = NDArray[np.float64]
Variance = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]  # the largest between two shares


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


class Search:
    """The best division of the epochs so far, told one epoch after the other.

    A segment saves, added up over words, (sum of its weighted values)^2 / (sum of its weights) of squared residuals; with
    prefix sums S and W the best division up to t saves best(t) = max over s of best(s) + (S(t) - S(s))^2 / (W(t) - W(s)) -
    cost. A change at t saves no less than none, so that s is of no use after t where it saves less than best(t) even without
    the cost (Killick, Fearnhead and Eckley 2012).
    """

    def __init__(self, horizon: int, words: int, cost: float) -> None:
        self.cost, self.epoch, self.count = cost, 0, 0
        shape = (words, horizon + 1) if words > 1 else (horizon + 1,)  # one word needs no sum over words
        self.sums, self.held = np.zeros((2, *shape))  # of what can begin the last segment, by number: before it
        self.best, self.starts = np.zeros(horizon + 1), np.zeros(horizon + 1, dtype=np.int64)
        self.segments = np.zeros(horizon + 1, dtype=np.int64)
        self.before: tuple[Any, Any, float] = (np.zeros(shape[:-1]), np.zeros(shape[:-1]), 0.0)
        self.now: tuple[Any, Any, float, float] = (*self.before, 0.0)
        self.saved = self.best[:0]

    def push(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> int:
        """Where the last segment begins (from 0) once an epoch has these values, and weights, (words,)."""
        if not self.epoch:
            self.level = values  # sums of differences round less
        elif (left := int(np.count_nonzero(kept := self.saved > self.now[3] - _ROUNDED))) < self.count:
            alive, self.count = slice(self.count), left  # the others can begin no later segment
            for each in (self.sums, self.held, self.best, self.starts):
                each[..., :left] = each[..., alive][..., kept]
        self.before, saved = self.now[:3], self.now[3]
        at = (..., self.count)
        self.sums[at], self.held[at], self.best[self.count], self.starts[self.count] = *self.before[:2], saved, self.epoch
        self.count += 1
        self.epoch += 1
        return self.last(values, weights)

    def last(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> int:
        """The same, with other values and weights for the epoch that was told last."""
        away = values - self.level
        heavy = away * weights
        squares = self.before[2] + float(heavy @ away)
        if len(values) == 1:
            total, among = self.before[0] + heavy[0], self.before[1] + weights[0]
        else:
            total, among = self.before[0] + heavy, self.before[1] + weights
        alive = slice(self.count)
        moved = total[..., None] - self.sums[..., alive]
        self.saved = moved * moved / (among[..., None] - self.held[..., alive] + _NOTHING)
        if len(values) > 1:
            self.saved = self.saved.sum(axis=0)
        self.saved += self.best[alive]
        place = int(self.saved.argmax())
        begins, best = int(self.starts[place]), float(self.saved[place]) - self.cost
        self.segments[self.epoch] = self.segments[begins] + 1
        self.now = total, among, squares, best
        return begins

    @property
    def residuals(self) -> float:
        """Squared, of the best division."""
        return float(self.now[2] - self.now[3] - self.cost * self.segments[self.epoch])


class Watch:
    """Online detection, one epoch after the other. After the last epoch that was told: the `estimate` of all words, the
    first epoch (from 0) of its segment, `start`, the `reports` behind it, and whether segments explain the releases."""

    def __init__(
        self, horizon: int, n_words: int, words: NDArray[np.int64] | None = None, false_alarm: float = 0.05
    ) -> None:
        self.words: Any
        self.words, dimensions = (slice(None), n_words) if words is None else (words, len(words))
        self.search = Search(horizon, dimensions, penalty(horizon, dimensions, false_alarm))
        self.totals, self.held = np.zeros((horizon + 1, n_words)), np.zeros(horizon + 1)
        self.start, self.reports, self.explained, self.estimate = 0, 0.0, True, np.full(n_words, np.nan)
        self.epoch = self.looked = 0

    def tell(
        self,
        estimates: NDArray[np.float64],
        reports: float,
        variance: NDArray[np.float64] | Variance,
        again: bool = False,
    ) -> Watch:
        """An epoch with these estimates, (n_words,), of so many reports each, of which one has `variance`; `again`: the
        last one, of which more is known."""
        told = estimates if reports > 0 else np.zeros_like(self.estimate)
        now, looked = self.epoch + (not again), told[self.words]
        total, held = self.totals[now - 1] + told * reports, float(self.held[now - 1] + reports)
        self.epoch, self.totals[now], self.held[now] = now, total, held
        spread = variance(np.zeros_like(told), np.ones_like(told)) if callable(variance) else variance
        find = self.search.last if again else self.search.push
        for turn in range(_PASSES):
            self.start = (self.search.last if turn else find)(looked, (reports / spread)[self.words])
            self.reports = held - float(self.held[self.start])
            self.estimate = (total - self.totals[self.start]) / self.reports if self.reports else np.full_like(told, np.nan)
            if not callable(variance) or not self.reports:
                break
            error = 2 * np.sqrt(spread / self.reports)
            low, high = np.maximum(self.estimate - error, 0.0), np.minimum(self.estimate + error, 1.0)
            before, spread = spread, variance(np.minimum(low, 1.0), np.maximum(high, 0.0))
            if (np.abs(spread - before) <= _SAME * before).all():
                break
        self.looked += len(looked) * (reports > 0 and not again)
        self.explained = self.search.residuals <= _unexplained(self.looked)
        if not self.explained:
            self.estimate = told if reports > 0 else np.full_like(told, np.nan)
            self.start, self.reports = now - 1, float(reports)
        return self


def detect(
    estimates: NDArray[np.float64],
    reports: NDArray[np.integer],
    variance: ArrayLike | Variance,
    *,
    words: NDArray[np.int64] | None = None,
    false_alarm: float = 0.05,
    online: bool = False,
) -> Fit:
    """Fit `estimates`, (T,) or (T, n_words); those of epoch t are means of reports[t] reports, of which one has `variance`:
    a number, or an array that goes with the shape of `estimates`. Or, where it depends on the share that is estimated, a
    function that says the largest between two shares: it is asked what shares within two standard errors of each epoch's own
    estimate can have, as often as changes that are found may move estimates, and online of no later epoch.

    Changes are looked for in `words`, all unless given. Entries without reports may be nan. `variance` is public: an upper
    bound costs power, not false alarms; one that is too low finds changes where there are none.
    """
    values, counted = np.asarray(estimates, dtype=float), np.asarray(reports, dtype=float)
    if values.ndim not in (1, 2) or counted.shape != values.shape[:1] or not values.size:
        raise ValueError(f"reports must have one entry per epoch of estimates, got {counted.shape} for {values.shape}")
    if not np.all(counted >= 0) or not counted.sum() > 0 or not np.all(np.isfinite(values[counted > 0])):
        raise ValueError("reports must be >= 0 and not all 0, and estimates finite where there are any")
    table = values.reshape(len(values), -1)
    spread = variance if callable(variance) else _spread(variance, values.shape).reshape(table.shape)
    if online:
        watch, found = Watch(*table.shape, words, false_alarm), []
        for epoch, (told, many) in enumerate(zip(table, counted, strict=True)):
            watch.tell(told, many, spread if callable(spread) else spread[epoch])
            found.append((watch.estimate, watch.start, watch.reports, watch.explained))
        fitted, starts, among, explained = (np.array(each) for each in zip(*found, strict=True))
    elif callable(spread):
        low, high = np.zeros_like(table), np.ones_like(table)
        known = spread(low, high)
        for _ in range(_PASSES + 1):
            fitted, starts, among, explained = _late(table, counted, known, words, false_alarm)
            error = 2 * np.sqrt(np.divide(known, among[:, None], out=np.full(known.shape, np.inf), where=among[:, None] > 0))
            low, high = np.nan_to_num(fitted - error, nan=0.0), np.nan_to_num(fitted + error, nan=1.0)
            before, known = known, spread(np.clip(low, 0, 1), np.clip(high, 0, 1))
            if np.allclose(known, before, rtol=_SAME, atol=0):
                break
    else:
        fitted, starts, among, explained = _late(table, counted, spread, words, false_alarm)
    return Fit(fitted.reshape(values.shape), starts, among, explained)


def _spread(variance: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    given = np.asarray(variance, dtype=float)
    if given.ndim > len(shape) or any(n not in (1, m) for n, m in zip(given.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(f"variance must go with estimates of shape {shape}, got shape {given.shape}")
    if not np.all(given > 0) or not np.all(np.isfinite(given)):
        raise ValueError(f"variance must be > 0 and finite, got {variance!r}")
    return np.broadcast_to(given, shape)


def _unexplained(looked: int) -> float:
    """Squared residuals of so many entries, above which segments do not explain them."""
    return 2 * looked + 5 * math.sqrt(looked)


def _late(
    table: NDArray[np.float64],
    counted: NDArray[np.float64],
    variance: NDArray[np.float64],
    words: NDArray[np.int64] | None,
    false_alarm: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """In hindsight: `Fit` of a table, (T, n_words)."""
    horizon, told = len(table), np.where(counted[:, None] > 0, table, 0.0)
    columns = slice(None) if words is None else words
    looked, weights = told[:, columns], (counted[:, None] / variance)[:, columns]
    search = Search(horizon, looked.shape[1], penalty(horizon, looked.shape[1], false_alarm))
    begins, residuals = np.zeros(horizon, dtype=np.int64), 0.0
    for epoch in range(horizon):
        begins[epoch], residuals = search.push(looked[epoch], weights[epoch]), search.residuals
    if residuals > _unexplained(np.count_nonzero(counted) * looked.shape[1]):
        own = np.where(counted[:, None] > 0, told, np.nan)
        return own, np.arange(horizon), counted, np.zeros(horizon, dtype=bool)
    fitted, starts, among, end = np.empty_like(told), np.empty(horizon, dtype=np.int64), np.empty(horizon), horizon
    while end:
        first = int(begins[end - 1])
        starts[first:end], among[first:end] = first, (held := counted[first:end].sum())
        fitted[first:end] = counted[first:end] @ told[first:end] / held if held else np.nan
        end = first
    return fitted, starts, among, np.ones(horizon, dtype=bool)


class _Searches:
    """`detection.Search` of each row, without leaving out what can begin no later segment."""

    def __init__(self, runs: int, horizon: int, cost: float) -> None:
        self.cost, self.rows = cost, np.arange(runs)
        self.sums, self.held, self.best, self.squares = np.zeros((4, runs, horizon + 1))
        self.segments = np.zeros((runs, horizon + 1), dtype=np.int64)
        self.level = np.zeros(runs)

    def tell(self, epoch: int, values: Array, weights: Array) -> NDArray[np.int64]:
        """Where the last segment of each row begins once this epoch, from 0, has these values and weights, (runs,)."""
        if not epoch:
            self.level = values
        away = values - self.level
        total, among = self.sums[:, epoch] + weights * away, self.held[:, epoch] + weights
        saved = total[:, None] - self.sums[:, : epoch + 1]
        saved *= saved
        saved /= among[:, None] - self.held[:, : epoch + 1] + _NOTHING
        saved += self.best[:, : epoch + 1]
        begins = saved.argmax(axis=1)
        self.sums[:, epoch + 1], self.held[:, epoch + 1] = total, among
        self.best[:, epoch + 1] = saved[self.rows, begins] - self.cost
        self.squares[:, epoch + 1] = self.squares[:, epoch] + weights * away * away
        self.segments[:, epoch + 1] = self.segments[self.rows, begins] + 1
        return np.asarray(begins)

    def residuals(self, epoch: int) -> Array:
        """Squared, of the best division of the epochs before this one."""
        return np.asarray(self.squares[:, epoch] - self.best[:, epoch] - self.cost * self.segments[:, epoch])


def detect_many(
    estimates: Array,
    reports: Array,
    variance: Variance,
    *,
    online: bool,
    false_alarm: float = 0.05,
) -> Array:
    """The estimates that `detect` makes of each row of `estimates`, (runs, T), from as many `reports`."""
    counted = np.asarray(reports, dtype=float)
    told = np.where(counted > 0, estimates, 0.0)
    cost = penalty(told.shape[1], 1, false_alarm)
    return _online_many(told, counted, variance, cost) if online else _late_many(told, counted, variance, cost)


def _errors_many(spread: Array, among: Array) -> Array:
    return np.asarray(2 * np.sqrt(np.divide(spread, among, out=np.full(spread.shape, np.inf), where=among > 0)))


def _online_many(told: Array, counted: Array, variance: Variance, cost: float) -> Array:
    runs, horizon = told.shape
    search, rows = _Searches(runs, horizon, cost), np.arange(runs)
    held, totals = np.zeros((2, runs, horizon + 1))
    np.cumsum(counted, axis=1, out=held[:, 1:])
    np.cumsum(told * counted, axis=1, out=totals[:, 1:])
    looked = np.cumsum(counted > 0, axis=1)
    found = np.empty_like(told)
    largest = variance(np.zeros(runs), np.ones(runs))
    for epoch in range(horizon):
        spread, open_ = largest, np.ones(runs, dtype=bool)
        for _ in range(_PASSES):
            begins = search.tell(epoch, told[:, epoch], counted[:, epoch] / spread)
            among = held[:, epoch + 1] - held[rows, begins]
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = (totals[:, epoch + 1] - totals[rows, begins]) / among
            error = _errors_many(spread, among)
            low, high = np.maximum(mean - error, 0.0), np.minimum(mean + error, 1.0)
            after = variance(np.nan_to_num(np.minimum(low, 1.0)), np.nan_to_num(np.maximum(high, 0.0), nan=1.0))
            open_ &= (among > 0) & (np.abs(after - spread) > _SAME * spread)
            if not open_.any():
                break
            spread = np.where(open_, after, spread)
        bad = search.residuals(epoch + 1) > [_unexplained(n) for n in looked[:, epoch]]
        own = np.where(counted[:, epoch] > 0, told[:, epoch], np.nan)
        found[:, epoch] = np.where(bad, own, mean)
    return found


def _late_many(told: Array, counted: Array, variance: Variance, cost: float) -> Array:
    fitted, open_ = np.empty_like(told), np.arange(len(told))
    known = variance(np.zeros_like(told), np.ones_like(told))
    for _ in range(_PASSES + 1):
        fitted[open_], among = _divided_many(told[open_], counted[open_], known, cost)
        error = _errors_many(known, among)
        low = np.clip(np.nan_to_num(fitted[open_] - error, nan=0.0), 0, 1)
        high = np.clip(np.nan_to_num(fitted[open_] + error, nan=1.0), 0, 1)
        after = variance(low, high)
        on = (np.abs(after - known) > _SAME * known).any(axis=1)
        if not on.any():
            break
        open_, known = open_[on], after[on]
    return fitted


def _divided_many(told: Array, counted: Array, spread: Array, cost: float) -> tuple[Array, Array]:
    """The fit, and the reports of each epoch's segment."""
    runs, horizon = told.shape
    search = _Searches(runs, horizon, cost)
    weights = counted / spread
    begins = np.stack([search.tell(epoch, told[:, epoch], weights[:, epoch]) for epoch in range(horizon)], axis=1)
    bad = search.residuals(horizon) > [_unexplained(n) for n in np.count_nonzero(counted, axis=1)]
    fitted, among = np.where(counted > 0, told, np.nan), counted.copy()
    for row in np.flatnonzero(~bad):
        end = horizon
        while end:
            first = int(begins[row, end - 1])
            part = slice(first, end)
            among[row, part] = held = counted[row, part].sum()
            fitted[row, part] = counted[row, part] @ told[row, part] / held if held else math.nan
            end = first
    return fitted, among
