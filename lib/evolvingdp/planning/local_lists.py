"""Frequencies of the words of a list that users report themselves, and what of a list is hot now.

A word that a fraction f of the users hold has the errors of `core.reports`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.stats import binom, norm

from evolvingdp.core.detection import detect
from evolvingdp.core.reports import Hashed, Report, Sign, best_report
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_simulation
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crews
from evolvingdp.evolving.rivals.crews import Crews
from evolvingdp.evolving.rivals.once import BITS, Once
from evolvingdp.planning import changing, local_means, shuffled
from evolvingdp.planning.answer import BETA, CannotServeError, Expected, Method, OnTheEdgeError
from evolvingdp.planning.commands import oracle_run, words_heavy_run
from evolvingdp.planning.question import MOST_USERS, Question, in_options

LIST = ("frequencies",)
_MOST_LISTED = 2**20  # from here on a report, and its error, is the same for any list
_SIMULATED_WORDS, _WORDS_DRAWN, _STREAMS = 2**16, 2**19, 120  # at most, of HEAVYTHRESH: of a list, of all, streams


def _report(question: Question, epsilon: float, kind: type[Report] | None = None) -> Report:
    """Of a kind, or the best one for a word of the level."""
    words = min(question.items, _MOST_LISTED)
    return best_report(words, epsilon, BITS, question.level) if kind is None else kind(words, epsilon)


def _every_period(question: Question, composition: str, kind: type[Report] | None = None) -> Report:
    return _report(question, local_means.report_epsilon(question, composition), kind)


def _every_period_expected(question: Question, settings: Report) -> Expected:
    reports = question.users * question.reports.a_period * question.pooled
    return _of_words(question, settings, reports)


def _of_words(question: Question, report: Report, reports: float) -> Expected:
    return local_means.about_the_users(question, lambda share: float(report.variance(share)), reports)


def _once(question: Question, kind: type[Report] | None = None) -> Once:
    local_means.enough_reports(question)
    report = _report(question, question.epsilon, kind)
    return Once(question.users, question.periods, question.epsilon, report.n_values, report=report)


def _once_expected(question: Question, settings: Once) -> Expected:
    return _of_words(question, settings.report, question.users * question.pooled / question.periods)


def _detected(question: Question, kind: type[Report] | None = None) -> Once:
    settings = _once(question, kind)
    local_means.detectable(question, lambda share: float(settings.report.variance(share)))
    return settings


def _detected_expected(question: Question, settings: Once, streams: int, online: bool) -> Expected:
    """One word, by the law of its own series, in which changes are looked for."""
    report, rng, errors = settings.report, stream(0, "planner", "words", str(online)), []
    for _ in range(local_means.rounds(question, streams)):
        means = changing.moving(question, rng)
        (reports,) = settings.lots.split(np.array([question.users]), rng)
        supports = report.draw_one(rng.binomial(reports, means), reports, rng)
        with np.errstate(invalid="ignore"):
            found = (supports / reports - report.other) / (report.own - report.other)
        errors.append(detect(found, reports, report.largest_variance, online=online).estimates - means)
    return local_means.summed_up(errors, local_means.own(question, local_means.weight_of_a_period(question, online)))


def _crews(question: Question) -> Crews:
    if question.periods < 2:
        raise CannotServeError("there is one period, and nothing to follow", "--periods 2")
    if question.items == 2:
        raise CannotServeError("one of two words is a share, for which `mean` has THRESH with roles by lot", "--items 3")
    if question.items > _SIMULATED_WORDS:
        raise CannotServeError(
            f"more than {_SIMULATED_WORDS:,} words take too long to simulate", f"--items {_SIMULATED_WORDS}"
        )
    size = question.users, question.periods, question.readings, question.epsilon, question.items
    try:
        settings = Crews.plan(*size, changes=question.moves)
    except ValueError as error:
        raise CannotServeError(in_options(str(error))) from None
    if question.moves:
        by = question.jump if question.level + question.jump <= 1 else -question.jump
        data = changing.words(question, np.array([question.level, max(0.0, question.level + by)]))
        assert isinstance(settings.voting, HeavyThresh)
        local_means.seen(settings.votes, heavy_simulation.Hashed(settings.voting, data).largest_move(0, 1), question)
    return settings


def _crews_expected(question: Question, settings: Crews, streams: int) -> Expected:
    """Votes are about all words: the others share what the one leaves evenly."""
    rng, errors = stream(0, "planner", "heavy"), []
    for _ in range(min(local_means.rounds(question, streams), max(6, _WORDS_DRAWN // question.items), _STREAMS)):
        data = changing.words(question, means := changing.moving(question, rng))
        try:
            found = crews.simulate(settings, data, rng)
        except ValueError:  # Hoeffding's inequality decides no vote
            raise OnTheEdgeError(
                f"it is not certain that all users vote alike: a change of {question.jump:g} is too near a threshold"
            ) from None
        errors.append(np.array([release.estimate[0] for release in found]) - means)
    own = local_means.own(question, local_means.weight_of_a_period(question, False))
    return replace(local_means.summed_up(errors, own), note=local_means.PROMISED)


def cut(question: Question, settings: Once, reports: ArrayLike) -> NDArray[np.float64]:
    """The support that an item must exceed among so many reports of a period: with 97.5 % none of all items in all periods
    does by chance."""
    return np.asarray(binom.isf(BETA / 2 / question.periods / question.items, reports, settings.report.other))


def _hot_expected(question: Question, settings: Once) -> Expected:
    """The least share at which all hot items are above the cut with 97.5 %, by the law of supports, however few report."""

    def missed(share: float, users: int) -> float:
        """By how much the chance to miss one is above what it may be."""
        mean, spread = users / question.periods, math.sqrt(users / question.periods * (1 - 1 / question.periods))
        reports = np.unique(np.linspace(max(0, mean - 6 * spread), min(users, mean + 6 * spread), 201).round())
        weights = norm.pdf(reports, mean, spread or 1.0)
        report = settings.report
        supported = report.other + share * (report.own - report.other)
        rare = binom.cdf(cut(question, settings, reports), reports, supported)
        return float(np.average(rare, weights=weights)) - BETA / 2 / question.events

    users = question.users
    if missed(1.0, users) > 0:
        while missed(1.0, users) > 0:
            users *= 2
        nearest = f"--users {local_means.up(users)}" if users <= MOST_USERS else ""
        raise CannotServeError("more than all users would have to hold an item", nearest)
    found = brentq(missed, 0.0, 1.0, args=(users,), xtol=1e-9, rtol=1e-4)
    return Expected(None, found, found=found)


_PURE = "pure epsilon-local DP of everything that a user ever sends"
_SENT, _SERVER = "a set of words, or a hash: 256 bits at most", "a sum for each word, or a hash for each report and word"
METHODS = [
    Method(
        "the best report from every user in every period", LIST,
        lambda q: _every_period(q, "basic"), _every_period_expected,
        "pure epsilon-local DP of {unit}; of all periods {for_ever}", "nothing", f"{_SENT} {{each}}", _SERVER,
        "be precise where epsilon has to pay for many periods", oracle_run, mixed=shuffled.HASH,
        settle_mixed=lambda q: _every_period(q, "basic", Hashed),
    ),
    Method(
        "the best report from every user in every period, composed with delta", LIST,
        lambda q: _every_period(q, "optimal"), _every_period_expected,
        "({epsilon}, {delta})-local DP of {unit}", "nothing", f"{_SENT} {{each}}", _SERVER,
        "have a pure guarantee", oracle_run,
    ),
    Method(
        "each user once, the best report", LIST, _once, _once_expected,
        _PURE, "nothing: any data, any number of changes", f"{_SENT}, once", _SERVER,
        "answer for words that are not on the list", oracle_run, mixed=shuffled.ONE_HASH,
        settle_mixed=lambda q: _once(q, Hashed),
    ),
    Method(
        "each user once, one sign (FreqOracle, Hadamard)", LIST, lambda q: _once(q, Sign), _once_expected,
        _PURE, "nothing: any data, any number of changes", "1 bit, and log2 of the list's length of public bits, once",
        "a sketch, one transform a period", "be as precise as the best report where epsilon is above 1", oracle_run,
        mixed=shuffled.ONE_SIGN,
    ),
    Method(
        "each user once, the best report, changes found afterwards", LIST,
        _detected, lambda q, s, streams=0: _detected_expected(q, s, streams, False),
        f"{_PURE}; averaging costs nothing", "jumps, and few of them", f"{_SENT}, once",
        f"{_SERVER}, periods^2 operations", "answer before all periods are over", words_heavy_run,
        targets=("period",), simulated=True, mixed=shuffled.ONE_HASH, settle_mixed=lambda q: _detected(q, Hashed),
    ),
    Method(
        "each user once, the best report, changes found as they come", LIST,
        _detected, lambda q, s, streams=0: _detected_expected(q, s, streams, True),
        f"{_PURE}; averaging costs nothing", "jumps, and few of them", f"{_SENT}, once",
        f"{_SERVER}, periods^2 operations", "see a change at once", words_heavy_run,
        targets=("period",), simulated=True, mixed=shuffled.ONE_HASH, settle_mixed=lambda q: _detected(q, Hashed),
    ),
    Method(
        "HEAVYTHRESH with roles by lot", LIST,
        _crews, lambda q, settings, streams=0: _crews_expected(q, settings, streams),
        _PURE, "long periods, changes that all users see, other words that share the rest evenly",
        "voters 1 bit a period, reporters once", f"votes, and {_SERVER}",
        "follow a drift", words_heavy_run, targets=("period",), simulated=True, mixed=shuffled.SEVERAL,
    ),
    Method(
        "each user once, the best report, and a cut", ("hot",), _once, _hot_expected,
        _PURE, "a list of the items", f"{_SENT}, once", _SERVER,
        "see an item between two periods", oracle_run, targets=("period",), mixed=shuffled.ONE_HASH,
        settle_mixed=lambda q: _once(q, Hashed),
    ),
]  # fmt: skip
