"""Frequencies of the words of a list that users report themselves, and what of a list is hot now.

A word that a fraction f of the users hold has the errors of `evolving.rivals.once_words`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.stats import binom, norm

from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_simulation
from evolvingdp.evolving.rivals import crew_words
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.rivals.once_words import OnceWords, WordTally
from evolvingdp.planning import changing, local_means, shuffled
from evolvingdp.planning.answer import BETA, CannotServeError, Expected, Method, OnTheEdgeError
from evolvingdp.planning.commands import oracle_run, words_heavy_run
from evolvingdp.planning.question import MOST_USERS, Question, in_options

LIST = ("frequencies",)
_SIMULATED_WORDS, _WORDS_DRAWN, _STREAMS = 2**16, 2**19, 120  # at most, of HEAVYTHRESH: of a list, of all, streams


def _every_period(question: Question, composition: str) -> OLH:
    return OLH(local_means.report_epsilon(question, composition))


def _every_period_expected(question: Question, settings: OLH) -> Expected:
    reports = question.users * question.reports.a_period * question.pooled
    return _of_words(question, OnceWords(1, 1, 2, settings.epsilon), reports)


def _of_words(question: Question, settings: OnceWords, reports: float) -> Expected:
    return local_means.about_the_users(question, lambda share: float(settings.variances(share)), reports)


def _once(question: Question, oracle: str) -> OnceWords:
    local_means.enough_reports(question)
    return OnceWords(question.users, question.periods, question.items, question.epsilon, oracle)


def _once_expected(question: Question, settings: OnceWords) -> Expected:
    return _of_words(question, settings, question.users * question.pooled / question.periods)


def _detected(question: Question, online: bool) -> OnceWords:
    settings = _once(question, "olh")
    local_means.detectable(question, lambda share: float(settings.variances(share)))
    return settings


def _detected_expected(question: Question, settings: OnceWords, streams: int, online: bool) -> Expected:
    """The word and all others: the law of its own series, in which changes are looked for."""
    one = replace(settings, n_words=2)
    rng, errors = stream(0, "planner", "words", str(online)), []
    for _ in range(local_means.rounds(question, streams)):
        means = changing.moving(question, rng)
        (reports,) = one.lots.split(np.array([question.users]), rng)
        supports = one.local_hash.simulate_support(rng.binomial(reports, means), reports, rng)
        found = one.detect(WordTally(reports, supports[:, None]), words=np.array([0]), online=online)
        errors.append(found.estimates[:, 0] - means)
    return local_means.summed_up(errors, local_means.own(question, local_means.weight_of_a_period(question, online)))


def _crews(question: Question) -> CrewWords:
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
        settings = CrewWords.plan(*size, changes=question.moves)
    except ValueError as error:
        raise CannotServeError(in_options(str(error))) from None
    if question.moves:
        by = question.jump if question.level + question.jump <= 1 else -question.jump
        data = changing.words(question, np.array([question.level, max(0.0, question.level + by)]))
        local_means.seen(settings.voting.voting, heavy_simulation.Hashed(settings.voting, data).largest_move(0, 1), question)
    return settings


def _crews_expected(question: Question, settings: CrewWords, streams: int) -> Expected:
    """Votes are about all words: the others share what the one leaves evenly."""
    rng, errors = stream(0, "planner", "heavy"), []
    for _ in range(min(local_means.rounds(question, streams), max(6, _WORDS_DRAWN // question.items), _STREAMS)):
        data = changing.words(question, means := changing.moving(question, rng))
        try:
            found = crew_words.simulate(settings, data, rng).public
        except ValueError:  # Hoeffding's inequality decides no vote
            raise OnTheEdgeError(
                f"it is not certain that all users vote alike: a change of {question.jump:g} is too near a threshold"
            ) from None
        errors.append(np.array([release.estimate[0] for release in found]) - means)
    return local_means.summed_up(errors, local_means.own(question, local_means.weight_of_a_period(question, False)))


def _hot(question: Question) -> OnceWords:
    return _once(question, "olh")


def cut(question: Question, settings: OnceWords, reports: ArrayLike) -> NDArray[np.float64]:
    """The support that an item must exceed among so many reports of a period: with 97.5 % none of all items in all periods
    does by chance."""
    return np.asarray(binom.isf(BETA / 2 / question.periods / question.items, reports, 1 / settings.local_hash.hash_values))


def _hot_expected(question: Question, settings: OnceWords) -> Expected:
    """The least share at which all hot items are above the cut with 97.5 %, by the law of supports, however few report."""

    def missed(share: float, users: int) -> float:
        """By how much the chance to miss one is above what it may be."""
        mean, spread = users / question.periods, math.sqrt(users / question.periods * (1 - 1 / question.periods))
        reports = np.unique(np.linspace(max(0, mean - 6 * spread), min(users, mean + 6 * spread), 201).round())
        weights = norm.pdf(reports, mean, spread or 1.0)
        oracle = settings.local_hash
        supported = share * oracle.keep + (1 - share) / oracle.hash_values
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
METHODS = [
    Method(
        "OLH from every user in every period", LIST,
        lambda q: _every_period(q, "basic"), _every_period_expected,
        "pure epsilon-local DP of {unit}; of all periods {for_ever}",
        "nothing", "a seed of 64 bits and a number below e^epsilon + 1 {each}", "a hash for each report and word",
        "be precise where epsilon has to pay for many periods", oracle_run, mixed=shuffled.HASH,
    ),
    Method(
        "OLH from every user in every period, composed with delta", LIST,
        lambda q: _every_period(q, "optimal"), _every_period_expected,
        "({epsilon}, {delta})-local DP of {unit}",
        "nothing", "a seed of 64 bits and a number below e^epsilon + 1 {each}", "a hash for each report and word",
        "have a pure guarantee", oracle_run,
    ),
    Method(
        "each user once, OLH", LIST, lambda q: _once(q, "olh"), _once_expected,
        _PURE, "nothing: any data, any number of changes", "a seed of 64 bits and a number below e^epsilon + 1, once",
        "a hash for each report and word", "answer for words that are not asked for", oracle_run,
        mixed=shuffled.ONE_HASH,
    ),
    Method(
        "each user once, one sign (FreqOracle, Hadamard)", LIST, lambda q: _once(q, "hadamard"), _once_expected,
        _PURE, "nothing: any data, any number of changes", "1 bit, and log2 of the list's length of public bits, once",
        "a sketch, one transform a period", "be as precise as OLH where epsilon is above 1", oracle_run,
        mixed=shuffled.ONE_SIGN,
    ),
    Method(
        "each user once, OLH, changes found afterwards", LIST,
        lambda q: _detected(q, False), lambda q, s, streams=0: _detected_expected(q, s, streams, False),
        f"{_PURE}; averaging costs nothing", "jumps, and few of them", "a seed of 64 bits and a small number, once",
        "a hash for each report and word, periods^2 operations", "answer before all periods are over", words_heavy_run,
        targets=("period",), simulated=True, mixed=shuffled.ONE_HASH,
    ),
    Method(
        "each user once, OLH, changes found as they come", LIST,
        lambda q: _detected(q, True), lambda q, s, streams=0: _detected_expected(q, s, streams, True),
        f"{_PURE}; averaging costs nothing", "jumps, and few of them", "a seed of 64 bits and a small number, once",
        "a hash for each report and word, periods^2 operations", "see a change at once", words_heavy_run,
        targets=("period",), simulated=True, mixed=shuffled.ONE_HASH,
    ),
    Method(
        "HEAVYTHRESH with roles by lot", LIST,
        _crews, lambda q, settings, streams=0: _crews_expected(q, settings, streams),
        _PURE, "long periods, changes that all users see, other words that share the rest evenly",
        "voters 1 bit a period, reporters once", "votes, and a hash for each report and word",
        "follow a drift", words_heavy_run, targets=("period",), simulated=True, mixed=shuffled.SEVERAL,
    ),
    Method(
        "each user once, OLH, and a cut", ("hot",), _hot, _hot_expected,
        _PURE, "a list of the items", "a seed of 64 bits and a small number, once", "a hash for each report and item",
        "see an item between two periods", oracle_run, targets=("period",), mixed=shuffled.ONE_HASH,
    ),
]  # fmt: skip
