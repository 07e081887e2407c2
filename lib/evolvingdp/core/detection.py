"""Change detection: averages of independent estimates between detected changes, which costs no privacy.

**Computes** a piecewise constant fit to independent estimates, one an epoch, such as those of `once`. Of all divisions into
segments it takes the one with the least sum of squared standardized residuals plus a `penalty` for each change (optimal
partitioning), and estimates each segment's mean. Of reports, whose variance depends on the share, squares are deviances, by
a likelihood ratio (`Report.curve`). Words change together: their residuals are added up.
*Retrospective*: an epoch's segment reaches over later epochs, so that its estimate comes late. *Online*: the estimate is the
mean of the last segment of the best division of the epochs so far.

**Privacy.** It reads nothing but releases, so their guarantee holds for what it makes of them: free post-processing.

**Error.** Where all means are constant and noise is normal, the retrospective fit has no change with probability
1 - `false_alarm`. Online each epoch has a best division of its own, so that a cut somewhere in all T epochs is likelier:
with .05 it was seen in 7 % of streams of 12 epochs without a change, 11 % of 60 and 14 % of 365; of five kinds of reports,
of one word or five together, at epsilon 1 and 4 and from 300 reports an epoch on, in up to 16 % of 60 and 22 % of 365. A
few reports are not normal, but their deviances err no more: of a word that .1, 2 or 30 % hold, at epsilon .5, 2 and 8, with
1, 5, 20 or 300 reports an epoch, changes were seen in hindsight in at most 3 % of streams of 30, 200 and 1,000 epochs,
online in up to 17 % of 30 and 20 % of 200; of 50 or 200 words at epsilon 8, with 10 to 200 reports, in hardly any. Where
changes are found at their places, an estimate has the standard error of all reports of its segment; it is worse where one
is too small to be found, or found an epoch off: for changes of 1.4 standard errors of an epoch, online, by up to a fifth
than the best moving mean. Where a mean moves all the time, segments blur it, and the mean square of their residuals, 1 +
bias^2 / variance, tells: above 2 and two standard errors of it `detect` returns the releases as they are, and says so
(`explained`).

**Source.** Jackson et al., An algorithm for optimal partitioning of data on an interval (2005); Yao (1988) for penalties
that grow as 2 ln T. The penalty here is a union bound over all divisions. Segments that began more than 512 epochs ago are
tried from every second place, more than 1,024 ago from every fourth, and from the best: time O(T log T d), for d words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evolvingdp.core import checks
from evolvingdp.core.reports import Report

_CHANGES = 60  # of the union bound; divisions with more add less than a millionth to it
_FORGOTTEN, _NEAR = 32, 256  # epochs after which it is looked for what can begin no later segment; which are looked at all
_ROUNDED = 1e-6  # more than rounding can change what a division saves
_NOTHING = 1e-300  # the weight of a segment without reports, which saves nothing

Array = NDArray[np.float64]
Curve = Callable[[Array], Array] | None  # of shares (`Report.curve`); None: squares


@lru_cache(maxsize=64)
def penalty(horizon: int, dimensions: int = 1, false_alarm: float = 0.05) -> float:
    """What a change must lower the squared residuals by, in variances: chosen before any data, from public numbers.

    k changes lower those of constant means by a chi-square variable with k `dimensions` degrees of freedom, and there are
    C(T - 1, k) places for them: the penalty at which sum_k C(T - 1, k) P(chi2_{k dimensions} >= k penalty) = false_alarm.
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
    return float(scipy.optimize.brentq(excess, 0.0, high))


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
        return int(np.count_nonzero(np.diff(self.starts, axis=0)))

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
    """The best division of the epochs so far, told one after the other, of several series, whose words change together.

    A segment saves, added up over words, (sum of its weighted values)^2 / (sum of its weights) of squared residuals; with
    prefix sums S and W the best division up to t saves best(t) = max over s of best(s) + (S(t) - S(s))^2 / (W(t) - W(s)) -
    cost. A change at t saves no less than none, so that s is of no use after t where it saves less than best(t) even without
    the cost (Killick, Fearnhead and Eckley 2012).
    """

    def __init__(self, horizon: int, series: int, words: int, cost: float, curve: Curve = None) -> None:
        self.cost, self.curve, self.epoch, self.count, self.rows = cost, curve, 0, 0, np.arange(series)
        self.sums, self.held = np.zeros((2, horizon + 1, series, words))  # of what can begin a last segment: before it
        self.best, self.starts = np.zeros((horizon + 1, series)), np.zeros(horizon + 1, dtype=np.int64)
        self.segments = np.zeros((horizon + 1, series), dtype=np.int64)
        self.before = np.zeros((series, words)), np.zeros((series, words)), np.zeros(series)
        self.now = (*self.before, np.zeros(series))
        self.saved = self.best[:0]

    def push(self, values: Array, weights: Array) -> NDArray[np.int64]:
        """Where last segments begin (from 0), (series,), once an epoch has these values, and weights, (series, words)."""
        if not self.epoch:
            self.level = values  # sums of differences round less
        elif not self.epoch % _FORGOTTEN:  # the others can begin no later segment, or hardly a better one than a neighbour
            starts = self.starts[: self.count]
            apart = 2 ** np.log2(np.maximum((self.epoch - starts) // _NEAR, 1)).astype(np.int64)
            kept = (self.saved > self.now[3] - _ROUNDED).any(axis=1) & (starts % apart == 0)
            kept[self.saved.argmax(axis=0)] = True
            kept = np.flatnonzero(kept)
            self.count = len(kept)
            for each in (self.sums, self.held, self.best, self.starts):
                each[: self.count] = each[kept]
        self.before, saved, at = self.now[:3], self.now[3], self.count
        self.sums[at], self.held[at], self.best[at], self.starts[at] = *self.before[:2], saved, self.epoch
        self.count += 1
        self.epoch += 1
        return self.last(values, weights)

    def last(self, values: Array, weights: Array) -> NDArray[np.int64]:
        """The same, with other values and weights for the epoch that was told last."""
        away, alive = values - self.level, slice(self.count)
        heavy = away * weights
        squares = self.before[2] + self._saves(heavy.copy(), weights + _NOTHING).sum(axis=1)
        total, among = self.before[0] + heavy, self.before[1] + weights
        saved = self._saves(total - self.sums[alive], among - self.held[alive] + _NOTHING)
        self.saved = saved[..., 0] if saved.shape[2] == 1 else saved.sum(axis=2)
        self.saved += self.best[alive]
        place = self.saved.argmax(axis=0)
        begins: NDArray[np.int64] = self.starts[place]
        self.segments[self.epoch] = self.segments[begins, self.rows] + 1
        self.now = total, among, squares, self.saved[place, self.rows] - self.cost
        return begins

    def _saves(self, sums: Array, weights: Array) -> Array:
        if self.curve is None:
            return sums * sums / weights
        return 2 * weights * self.curve(self.level + sums / weights)

    @property
    def residuals(self) -> Array:
        """Squared, of the best divisions, (series,)."""
        return np.asarray(self.now[2] - self.now[3] - self.cost * self.segments[self.epoch])


def _weighed(variance: ArrayLike | Report, reports: Array, shares: Array, looked: int) -> tuple[Curve, Array]:
    """What squares are in `Search`, and weights (..., words), of reports (...), where these shares (..., words) are held."""
    many = reports[..., None] + np.zeros_like(shares)
    if not isinstance(variance, Report):
        return None, many / np.asarray(variance, dtype=float)
    if looked == 1:
        return variance.curve, many
    usual = reports.mean(axis=0)[:, None] if reports.ndim > 1 else reports[:, None]
    return partial(variance.curve_together, reports=usual), many / variance.crowded(shares)


def _unexplained(looked: NDArray[np.int64]) -> Array:
    """Squared residuals of so many entries, above which segments do not explain them."""
    return np.asarray(2 * looked + 5 * np.sqrt(looked))


class Watch:
    """Online detection in `series`, one epoch after the other. After the last epoch that was told, of each series: the
    `estimate` of all words, (series, n_words), the first epoch (from 0) of its segment, `start`, the `reports` behind it,
    and whether segments explain the releases, (series,) each."""

    def __init__(
        self,
        horizon: int,
        n_words: int,
        words: NDArray[np.int64] | None = None,
        false_alarm: float = 0.05,
        series: int = 1,
    ) -> None:
        self.words: slice | NDArray[np.int64] = slice(None) if words is None else words
        looked = n_words if words is None else len(words)
        self.search = Search(horizon, series, looked, penalty(horizon, looked, false_alarm))
        self.totals, self.held = np.zeros((horizon + 1, series, n_words)), np.zeros((horizon + 1, series))
        self.start, self.reports, self.explained = np.zeros(series, int), np.zeros(series), np.ones(series, bool)
        self.estimate, self.looked, self.epoch = np.full((series, n_words), np.nan), np.zeros(series, int), 0

    def tell(self, estimates: Array, reports: ArrayLike, variance: ArrayLike | Report, again: bool = False) -> Watch:
        """An epoch with these estimates, (series, n_words), of so many reports each, (series,), of which one has `variance`;
        `again`: the last one, of which more is known."""
        shape, rows = self.estimate.shape, self.search.rows
        many = np.asarray(reports, dtype=float) + np.zeros(shape[0])
        there = many[:, None] > 0
        told, self.epoch = np.where(there, estimates, 0.0), self.epoch + (not again)
        now, words, find = self.epoch, (slice(None), self.words), self.search.last if again else self.search.push
        self.totals[now], self.held[now] = self.totals[now - 1] + told * many[:, None], self.held[now - 1] + many
        curve, weights = _weighed(variance, many, np.nan_to_num(self.estimate, nan=1.0), told[words].shape[1])
        self.search.curve = self.search.curve or curve  # the first epoch's, that of all
        self.start = find(told[words], weights[words])
        self.reports = self.held[now] - self.held[self.start, rows]
        among, nothing = self.reports[:, None], np.full(shape, np.nan)
        self.estimate = np.divide(self.totals[now] - self.totals[self.start, rows], among, out=nothing, where=among > 0)
        self.looked = self.looked + there[:, 0] * (told[words].shape[1] * (not again))
        self.explained = self.search.residuals <= _unexplained(self.looked)
        if not self.explained.all():
            fits = self.explained[:, None]
            self.estimate = np.where(fits, self.estimate, np.where(there, told, np.nan))
            self.start = np.where(self.explained, self.start, now - 1)
            self.reports = np.where(self.explained, self.reports, many)
        return self


def detect(
    estimates: Array,
    reports: NDArray[np.integer],
    variance: ArrayLike | Report,
    *,
    words: NDArray[np.int64] | None = None,
    false_alarm: float = 0.05,
    online: bool = False,
) -> Fit:
    """Fit `estimates`, (T,) or (T, n_words); those of epoch t are means of reports[t] reports, of which one has `variance`:
    a number, an array that goes with the shape of `estimates`, or the `Report`, where it depends on what is estimated.

    Changes are looked for in `words`, all unless given. Entries without reports may be nan. `variance` is public: an upper
    bound costs power, not false alarms; one that is too low finds changes where there are none.
    """
    values, counted = np.asarray(estimates, dtype=float), np.asarray(reports, dtype=float)
    if values.ndim not in (1, 2) or counted.shape != values.shape[:1] or not values.size:
        raise ValueError(f"reports must have one entry per epoch of estimates, got {counted.shape} for {values.shape}")
    if not np.all(counted >= 0) or not counted.sum() > 0 or not np.all(np.isfinite(values[counted > 0])):
        raise ValueError("reports must be >= 0 and not all 0, and estimates finite where there are any")
    table = values.reshape(len(values), 1, -1)
    known = variance if isinstance(variance, Report) else _spread(variance, values.shape).reshape(table.shape)
    fit = _fit(table, counted[:, None], known, words, false_alarm, online)
    return Fit(fit.estimates.reshape(values.shape), fit.starts[:, 0], fit.reports[:, 0], fit.explained[:, 0])


def detect_many(
    estimates: Array,
    reports: Array,
    variance: ArrayLike | Report,
    *,
    false_alarm: float = 0.05,
    online: bool = False,
    horizon: int | None = None,
) -> Fit:
    """What `detect` makes of each column of `estimates`, (T, series), by itself, from as many `reports`: of that shape; with
    the `penalty` of so long a `horizon`, T unless given."""
    told, counted = estimates[..., None], np.asarray(reports, dtype=float)
    given = variance if isinstance(variance, Report) else np.asarray(variance, dtype=float)[..., None]
    known = given if isinstance(given, Report) else np.broadcast_to(given, told.shape)
    fit = _fit(told, counted, known, None, false_alarm, online, horizon)
    return Fit(fit.estimates[..., 0], fit.starts, fit.reports, fit.explained)


def _spread(variance: ArrayLike, shape: tuple[int, ...]) -> Array:
    given = np.asarray(variance, dtype=float)
    if given.ndim > len(shape) or any(n not in (1, m) for n, m in zip(given.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(f"variance must go with estimates of shape {shape}, got shape {given.shape}")
    if not np.all(given > 0) or not np.all(np.isfinite(given)):
        raise ValueError(f"variance must be > 0 and finite, got {variance!r}")
    return np.broadcast_to(given, shape)


def _fit(
    table: Array,
    counted: Array,
    variance: Array | Report,
    words: NDArray[np.int64] | None,
    false_alarm: float,
    online: bool,
    horizon: int | None = None,
) -> Fit:
    """Of series, (T, series, n_words), from counted (T, series) reports."""
    if online:
        epochs, series, n_words = table.shape
        watch, found = Watch(horizon or epochs, n_words, words, false_alarm, series), []
        for epoch, (told, many) in enumerate(zip(table, counted, strict=True)):
            watch.tell(told, many, variance if isinstance(variance, Report) else variance[epoch])
            found.append((watch.estimate, watch.start, watch.reports, watch.explained))
        return Fit(*(np.array(each) for each in zip(*found, strict=True)))
    told, looked = np.where(counted[..., None] > 0, table, 0.0), table.shape[2] if words is None else len(words)
    curve, weights = _weighed(variance, counted, np.ones_like(told), looked)
    search = partial(_divided, told, counted, words=words, false_alarm=false_alarm, horizon=horizon or len(told))
    fit = search(curve, weights)
    curve, again = _weighed(variance, counted, np.nan_to_num(fit.estimates, nan=1.0), looked)
    return fit if np.array_equal(again, weights) else search(curve, again)


def _divided(
    told: Array,
    counted: Array,
    curve: Curve,
    weights: Array,
    words: NDArray[np.int64] | None,
    false_alarm: float,
    horizon: int,
) -> Fit:
    """In hindsight, by the best divisions with these weights."""
    (epochs, series, _), columns = told.shape, slice(None) if words is None else words
    looked = told[..., columns]
    search = Search(horizon, series, looked.shape[2], penalty(horizon, looked.shape[2], false_alarm), curve)
    begins = np.array([search.push(*each) for each in zip(looked, weights[..., columns], strict=True)])
    explained = search.residuals <= _unexplained(np.count_nonzero(counted, axis=0) * looked.shape[2])
    fitted, among = np.where(counted[..., None] > 0, told, np.nan), counted.copy()
    starts = np.repeat(np.arange(epochs)[:, None], series, axis=1)
    for row in np.flatnonzero(explained):
        end = epochs
        while end:
            first = int(begins[end - 1, row])
            part = slice(first, end), row
            held = counted[part].sum()
            fitted[part] = counted[part] @ told[part] / held if held else np.nan
            starts[part], among[part], end = first, held, first
    return Fit(fitted, starts, among, np.repeat(explained[None], epochs, axis=0))
