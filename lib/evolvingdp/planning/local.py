"""Means, counts and frequencies of a list that users report themselves, and what of a list is hot now.

A bit is one of two words. Formulas are those of `core.reports` and `evolving`; what depends on where changes are found is
simulated on streams whose changes are at random places: exactly below 1,000 periods, and from there on by `stretches` of
them, whose errors are up to 6 % smaller where nothing changes. Draws are the same for all users and epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import digamma, ndtri

from evolvingdp.core import checks
from evolvingdp.core.detection import detect_many
from evolvingdp.core.noise import Array
from evolvingdp.core.reports import BITS, Hashed, Report, best_report
from evolvingdp.core.sampling import binomial_quantile, binomial_sf
from evolvingdp.core.seeds import stream
from evolvingdp.evolving.constants import most_users, unit
from evolvingdp.evolving.rivals import reserve
from evolvingdp.evolving.rivals.choosing import filled, voted
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.planning.answer import BETA, CannotServeError, Expected, Method, rounded
from evolvingdp.planning.question import PERIOD, SHARES, Question
from evolvingdp.planning.shuffled import Mixed

_FEW_REPORTS = 20  # of an answer
_DRAWN = 12_000  # periods that a prediction simulates, of all its runs
_MOST_RUNS, _FEW_RUNS = 250, 10
_FINE, _COARSE = 32, 500  # `stretches`
_SEEN = 1.25  # how much larger a change has to be than the lowest threshold
_NORMAL = ndtri((np.arange(50) + 0.5) / 50)  # a normal error, as so many that are alike
_NORMAL /= _NORMAL.std()


@checks.draws
def moving(question: Question, rng: Generator) -> Array:
    """The share in every period, (periods,): it starts at the level and jumps up or down at random places, within [0, 1]."""
    shares = np.full(question.periods, question.level)
    for place in np.sort(rng.choice(question.periods - 1, size=question.moves, replace=False)) + 1:
        by = question.jump if rng.integers(2) else -question.jump
        shares[place:] = np.clip(shares[-1] + (by if 0 <= shares[-1] + by <= 1 else -by), 0, 1)
    return shares


@lru_cache(maxsize=16)
def _streams(alike: Question, runs: int) -> Array:
    rng = stream(0, "planner", "moves")
    return np.array([moving(alike, rng) for _ in range(runs)])


def _moving(question: Question) -> Array:
    """The shares of all periods of as many streams as tell a mean over places of changes, (runs, periods), the same for all
    users and epsilon, and drawn once for them."""
    runs = min(64, max(8, _DRAWN // question.periods)) if question.moves else 1
    return _streams(replace(question, users=1, epsilon=1.0), runs)


def stretches(shares: Array) -> NDArray[np.int64]:
    """The stretch, from 0, that each period is in, (periods, runs) both: of one share, and no longer than a `_FINE`th of its
    distance from the first or last period with it, nor than a `_COARSE`th of all: a search for changes loses little."""
    periods, here = len(shares), np.arange(len(shares))[:, None]
    moves = np.pad(np.diff(shares, axis=0) != 0, ((1, 1), (0, 0)))
    first = np.maximum.accumulate(np.where(moves[:-1], here, 0), axis=0)
    last = np.minimum.accumulate(np.where(moves[1:], here, 2 * periods)[::-1], axis=0)[::-1]
    lengths = np.minimum(np.minimum(here - first, last - here) // _FINE, periods // _COARSE)
    return np.floor(np.cumsum(1 / np.maximum(1, lengths), axis=0) + 1e-6).astype(np.int64) - 1


def averaged(question: Question, of_share: Callable[[Array], Array]) -> float:
    """The mean of a function of the share over all periods, where the share moves as it does."""
    return float(np.mean(of_share(_moving(question))))


def _report(question: Question, epsilon: float, kind: type[Report] | None) -> Report:
    """For a bit or a word of the level: the best one, or of a kind."""
    if question.statistic == "mean":
        return best_report(2, epsilon, BITS, question.level)
    return kind(question.items, epsilon) if kind else best_report(question.items, epsilon, BITS, question.level)


def _every(question: Question, kind: type[Report] | None = None) -> Report:
    return _report(question, question.epsilon / question.of_a_unit, kind)


def _of_reports(question: Question, settings: Report | Once) -> Expected:
    """Of the mean of all reports of an answer's periods, in each or once, whose errors are independent; the users' own is
    subtracted from the population's."""
    report, part = (settings, question.a_period) if isinstance(settings, Report) else (settings.report, 1 / question.periods)
    reports, everything = part * question.users * question.pooled, question.users * question.readings * question.pooled
    square = averaged(question, lambda one: report.variance(one) / reports - one * (1 - one) / everything)
    return Expected.normal(math.sqrt(max(square, 0.0)))


def enough_reports(question: Question) -> None:
    """Raise unless each answer has reports when users are dealt to periods."""
    reports = question.users * question.pooled / question.periods
    if reports < _FEW_REPORTS:
        raise CannotServeError(
            f"an answer has {reports:.3g} reports on average, and some have none",
            f"--users {rounded(_FEW_REPORTS * question.periods / question.pooled):.0f}",
        )


def _once(question: Question, kind: type[Report] | None = None) -> Once:
    enough_reports(question)
    return _watched(question, kind)


def _watched(question: Question, kind: type[Report] | None = None) -> Once:
    """The same, where periods without reports take over what others have."""
    report = _report(question, question.epsilon, kind)
    return Once(question.users, question.periods, question.epsilon, report.n_values, report=report)


def _reserve(question: Question) -> Reserve:
    return Reserve(question.users, question.periods, question.epsilon, question.moves)


def _thresh(question: Question) -> Thresh:
    """Of as many users as are best: thresholds grow with them, so that fewer may see a change earlier."""
    if question.periods < 2:
        raise CannotServeError("there is one period, and nothing to follow", "--periods 2")
    size = question.periods, question.readings, question.epsilon
    found, least, means = list[Thresh](), math.inf, _moving(question).T
    for users in _crowds(question):
        try:
            made = Thresh.tuned(users, *size, changes=question.moves, beta=BETA)
        except ValueError:
            if found:
                break
            raise
        bias, own = voted(made, means)
        if np.mean(own**2) >= least:  # and that of fewer users is larger
            break
        if (square := float(np.mean(bias**2 + own**2))) < least:
            found, least = [made], square
    return found[0]


def _crowds(question: Question) -> list[int]:
    """How many users may be best, most first: all who are sure to see a change, and fewer, where they vote by a threshold
    that one more would raise above a distance that there is."""
    size = question.periods, question.readings, BETA
    all_of_them = min(question.users, most_users(question.jump / _SEEN / 2, *size)) if question.moves else question.users
    if not all_of_them:
        raise CannotServeError(
            f"users vote for an update once their mean has moved by {2 * unit(question.users, *size):.2g} at least, and a "
            f"change of {question.jump:g} is not seen, or only just"
        )
    sure = 3 * math.sqrt(0.5 / question.readings)  # what a user sees of a change is off by a third of it
    distances = question.jump * np.arange(1, min(question.moves, 1 / (question.jump or 1)) + 1) - sure
    steps = np.divide.outer(distances, 2.0 * np.arange(1, question.periods.bit_length() + 1))
    fewer = {most_users(step, *size) for step in steps.ravel().tolist() if step > 0}
    return sorted({all_of_them} | {users for users in fewer if 0 < users < all_of_them}, reverse=True)


def _voted_expected(question: Question, settings: Thresh) -> Expected:
    bias, own = voted(settings, _moving(question).T)
    errors = (bias[..., None] + own[..., None] * _NORMAL).swapaxes(0, 1).reshape(bias.shape[1], -1)
    found = summed_up(question, errors, (question.moves + 1) / question.periods)
    return replace(found, own_error=0.0, note="where the number of changes is promised: after more its last estimate stays")


def summed_up(question: Question, errors: Array, weight: float, note: str = "") -> Expected:
    """Root mean square and 95 % over answers and streams, (runs, answers), of errors about the population's shares; what the
    users' own mean of an answer's periods adds is added, where a period's reports have so much `weight` in it."""
    of_one = averaged(question, lambda share: share * (1 - share)) / question.users / question.readings
    own = (1 / question.pooled - 2 * weight) * of_one
    squares = np.mean(errors**2, axis=1)
    square = float(np.mean(squares))
    whole = math.sqrt(max(square + own, 0.0))
    spread = float(np.std(squares, ddof=1)) / math.sqrt(len(squares)) / 2 / max(square, 1e-300) if len(squares) > 1 else 1.0
    within = float(np.quantile(np.abs(errors), 0.95)) * whole / max(math.sqrt(square), 1e-300)
    return Expected(whole, within, own_error=spread * whole, note=note)


def weight_of_a_period(question: Question, online: bool) -> float:
    """Of an answer's own periods, each, in the averages of stretches without a change, in hindsight or of what has come of
    them, that it is the mean of: of all pairs of periods, by how far they are apart; stretches are of one length."""
    stretch, apart = question.periods / (question.moves + 1), np.arange(question.pooled)
    if online:
        pairs = np.maximum(digamma(stretch + 1) - digamma(apart + 1), 0)
    else:
        pairs = np.where(apart, 2, 1) * np.maximum(1 - apart / stretch, 0)
    of_all = (1 - apart / question.pooled) / (1 - apart / question.periods)  # pairs in a window, of those in all periods
    return float(np.mean(pairs * of_all)) / stretch


@lru_cache(maxsize=4)
def _dealt(users: int, alike: Question, runs: int) -> tuple[NDArray[np.int64], Array, Array, Array]:
    """Of so many streams the stretches, (periods, runs), and of each its share, how many users report whom a lot deals to
    it, and a number for what they tell, (stretches, runs) each. They are from the same uniform numbers for all users, and
    the same for all epsilon: it is not by chance that more help."""
    moves = _streams(alike, runs).T
    placed = stretches(moves)
    shares, lengths = np.zeros((2, placed.max() + 1, runs))
    np.put_along_axis(shares, placed, moves, axis=0)
    np.add.at(lengths, (placed, np.arange(runs)), 1)
    uniform, left = stream(0, "planner", "reports").random((2, *shares.shape[::-1])).T, np.full(runs, float(users))
    reports = np.empty(shares.shape)
    for place, chance in enumerate(lengths / np.maximum(1, np.cumsum(lengths[::-1], axis=0)[::-1])):
        reports[place] = binomial_quantile(uniform[place, :, 0], left, chance)
        left = left - reports[place]
    return placed, shares, reports, uniform[..., 1]


@lru_cache(maxsize=4)
def _told(question: Question, settings: Once, runs: int) -> tuple[NDArray[np.int64], Array, Array, Array]:
    """Of so many streams (0: as many as there is time for) the same, with what is told in each stretch."""
    runs = runs or min(_MOST_RUNS, max(_FEW_RUNS, _DRAWN // question.periods))
    placed, shares, reports, uniform = _dealt(settings.n_users, replace(question, users=1, epsilon=1.0), runs)
    return placed, shares, reports, _estimates(settings.report, uniform, reports, shares)


def _estimates(report: Report, uniform: Array, reports: Array, shares: Array) -> Array:
    supports = binomial_quantile(uniform, reports, report.other + shares * (report.own - report.other))
    with np.errstate(invalid="ignore"):
        return np.asarray((supports / reports - report.other) / (report.own - report.other))


def _watched_expected(question: Question, settings: Once, streams: int = 0, online: bool = False) -> Expected:
    """A bit, or one word, in whose series changes are looked for."""
    placed, shares, reports, told = _told(question, settings, streams)
    fit = detect_many(told, reports, settings.report, online=online, horizon=question.periods)
    return _followed(question, fit.estimates, shares, placed, online)


def _followed(
    question: Question, estimates: Array, shares: Array, placed: NDArray[np.int64], online: bool = True
) -> Expected:
    """Those of a mean are clipped, and none is missing, as `follow` has them; a window has the mean of its periods."""
    mean = question.statistic == "mean"
    found = np.clip([filled(one) for one in estimates.T], 0, 1).T if mean else np.nan_to_num(estimates)
    sums = np.cumsum(np.pad(np.take_along_axis(found - shares, placed, axis=0).T, ((0, 0), (1, 0))), axis=1)
    errors = (sums[:, question.pooled :] - sums[:, : -question.pooled]) / question.pooled
    note = "the mean of the periods' answers" if question.pooled > 1 else ""
    return summed_up(question, errors, weight_of_a_period(question, online), note)


def _called_expected(question: Question, settings: Reserve, streams: int = 0) -> Expected:
    """Of crews that are called, in all runs at once."""
    placed, shares, reports, told = _told(question, settings.once, streams)
    uniform, report = stream(0, "planner", "crews").random(shares.shape), settings.report

    def joined(place: int, users: Array) -> Array:
        more = np.nan_to_num(_estimates(report, uniform[place], users, shares[place]))
        both = np.nan_to_num(told[place]) * reports[place] + more * users
        return np.asarray(both / np.maximum(1, reports[place] + users))

    return _followed(question, reserve.follow(settings, told, reports, joined), shares, placed)


def cut(question: Question, settings: Once, reports: Array | int) -> Array:
    """The support that an item must exceed among so many reports of a period: with 97.5 % none of all items in all periods
    does by chance, of which a share that is ordinary holds each."""
    report = settings.report
    ordinary = report.other + question.usual * (report.own - report.other)
    return reports - binomial_quantile(BETA / 2 / question.periods / question.items, reports, 1 - ordinary)


def _hot_expected(question: Question, settings: Once) -> Expected:
    """The least share at which all hot items are above the cut with 97.5 %, by the law of supports, however few report."""

    def missed(share: float) -> float:
        """By how much the chance to miss one is above what it may be."""
        users = question.users
        mean, spread = users / question.periods, math.sqrt(users / question.periods * (1 - 1 / question.periods))
        reports = np.unique(np.linspace(max(0, mean - 6 * spread), min(users, mean + 6 * spread), 201).round())
        weights = np.exp(-(((reports - mean) / (spread or 1.0)) ** 2) / 2)
        supported = settings.report.other + share * (settings.report.own - settings.report.other)
        rare = binomial_sf(reports - cut(question, settings, reports) - 1, reports, 1 - supported)
        return float(np.average(rare, weights=weights)) - BETA / 2 / question.events

    if missed(1.0) > 0:
        raise CannotServeError("more than all users would have to hold an item")
    root = float(scipy.optimize.brentq(missed, 0.1 / question.users, 1.0, xtol=1e-12, rtol=1e-5))
    found = min(1.0, root * (1 + 1e-5))
    return Expected(None, found, found)


_ONCE = Mixed(True, kind=Hashed)
_FOLLOW: dict[str, Any] = {"targets": ("period", "window"), "simulated": True, "in_steps": True}
_ONLINE = partial(_watched_expected, online=True)
METHODS = [
    Method("every user in every period", SHARES, _every, _of_reports, mixed=replace(_ONCE, once=False)),
    Method("each user once", SHARES, _once, _of_reports, mixed=_ONCE),
    Method("each user once, changes found afterwards", SHARES, _watched, _watched_expected, mixed=_ONCE, **_FOLLOW),
    Method("each user once, changes found as they come", SHARES, _watched, _ONLINE, mixed=_ONCE, **_FOLLOW),
    Method("each user once, with a reserve that is called at a change", ("mean",), _reserve, _called_expected, **_FOLLOW),
    Method("THRESH, tuned", ("mean",), _thresh, _voted_expected, targets=PERIOD),
    Method("each user once, and a cut", ("hot",), _once, _hot_expected, targets=PERIOD, mixed=_ONCE),
]
