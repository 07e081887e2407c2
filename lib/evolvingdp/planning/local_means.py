"""Means and counts that users report themselves: everybody in every period, each user once, changes found, THRESH, trees.

Formulas are those of `core.randomizers` and `evolving`; what depends on where changes fall is simulated, exactly, on streams
whose changes are at random places (`changing`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from evolvingdp.core.detection import penalty
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines
from evolvingdp.evolving.rivals.choosing import Settings, choose, follow
from evolvingdp.evolving.rivals.crews import Crews
from evolvingdp.evolving.rivals.few_changes import ChangeTree, Memoized
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.planning import changing, shuffled
from evolvingdp.planning.answer import CannotServeError, Expected, Method, OnTheEdgeError
from evolvingdp.planning.commands import once_run
from evolvingdp.planning.question import Question, in_options

MEANS = ("mean", "counts")
_EDGE = 2.5  # a change whose power is within this factor of the penalty is only just detectable
_FEW_REPORTS = 20  # of an answer
_DRAWN = 16_000  # epochs that a prediction simulates
PROMISED = "where the number of changes is promised: after more of them its last estimate stays"
_ENOUGH = 10**8  # readings of which a user's mean is known to four digits: more change nothing
_COUNTED = 350_000  # counts of updates that it looks at, of THRESH


def report_epsilon(question: Question, composition: str) -> float:
    """Of each period's report of everybody."""
    reports = question.reports.of_a_unit
    if composition != "basic":
        if not question.failure:
            raise CannotServeError("delta is 0, and composing reports needs one", "--delta 1e-9")
        if reports == 1:
            raise CannotServeError("there is one report for epsilon to pay for, and nothing to compose")
    return baselines.epsilon_of_report(question.epsilon, reports, composition, question.failure or 0.5)


@lru_cache
def _levels(question: Question) -> tuple[list[float], NDArray[np.int64]]:
    """The shares of all periods of some streams, and how often each occurs."""
    rng = stream(0, "planner", "levels")
    drawn = [
        changing.moving(question, rng) for _ in range(min(64, max(8, _DRAWN // question.periods)) if question.moves else 1)
    ]
    values, counts = np.unique(np.round(np.concatenate(drawn), 9), return_counts=True)
    return values.tolist(), counts


def averaged(question: Question, of_share: Callable[[float], float]) -> float:
    """The mean of a function of the share over all periods, where the share moves as it does."""
    values, counts = _levels(question)
    return float(np.average([of_share(value) for value in values], weights=counts))


def about_the_users(question: Question, variance: Callable[[float], float], reports: float) -> Expected:
    """Of the mean of so many reports, each of this variance about the population's share; the users' own is subtracted."""

    def square(share: float) -> float:
        return variance(share) / reports - share * (1 - share) / (question.users * question.readings * question.pooled)

    return Expected.normal(math.sqrt(max(averaged(question, square), 0.0)))


def every_period(question: Question, randomizer: SignFlip) -> Expected:
    """Errors of periods are independent, so that those of a window average out."""
    reports = question.users * question.reports.a_period * question.pooled
    return about_the_users(question, randomizer.variance, reports)


def enough_reports(question: Question) -> None:
    """Raise unless each answer has reports when users are dealt to periods."""
    reports = question.users * question.pooled / question.periods
    if reports < _FEW_REPORTS:
        raise OnTheEdgeError(
            f"an answer has {reports:.3g} reports on average, and some have none",
            f"--users {up(_FEW_REPORTS * question.periods / question.pooled)}",
        )


def up(value: float) -> str:
    """Two digits, rounded up."""
    unit = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit) * unit}"


def _once(question: Question) -> Once:
    enough_reports(question)
    return Once(question.users, question.periods, question.epsilon)


def _once_expected(question: Question, settings: Once) -> Expected:
    reports = question.users * question.pooled / question.periods
    return about_the_users(question, lambda share: float(settings.report.variance(share)), reports)


def _made(question: Question, make: Callable[[int, int, int, float], Settings]) -> Any:
    """Settings for the sizes of the question; raises with the reason where they are refused."""
    if question.periods < 2:
        raise CannotServeError("there is one period, and nothing to follow", "--periods 2")
    try:
        return make(question.users, question.periods, question.readings, question.epsilon)
    except ValueError as refused:
        raise CannotServeError(in_options(str(refused))) from None


def _detected(question: Question) -> Once:
    once = _once(question)
    detectable(question, lambda share: float(once.report.variance(share)))
    return once


def _reserve(question: Question) -> Reserve:
    enough_reports(question)
    made: Reserve = _made(question, lambda users, periods, _, epsilon: Reserve(users, periods, epsilon, question.moves))
    detectable(question, lambda share: float(made.report.variance(share)) / made.steady)
    return made


def detectable(question: Question, variance: Callable[[float], float]) -> None:
    """Raise where a change of the mean is only just what `detect` sees, in reports that each have this variance."""
    if question.periods < 2:
        raise CannotServeError("there is one period, and nothing to follow", "--periods 2")
    stretch = question.periods / (question.moves + 1)
    square = averaged(question, variance) * question.periods / question.users
    power = question.jump**2 * stretch / 2 / (square * penalty(question.periods))
    if question.moves and 1 / _EDGE < power < _EDGE:
        raise OnTheEdgeError(
            f"a change of {question.jump:g} is only just detectable: it lowers the residuals by {power:.2g} times the "
            "penalty, and the error depends on which changes are seen"
        )


def _crews(question: Question) -> Crews:
    made: Crews = _made(question, lambda *size: Crews.plan(*size, changes=question.moves))
    seen(made.votes, question.jump, question)
    return made


def _tuned(question: Question) -> Thresh:
    made: Thresh = _made(question, lambda *size: Thresh.tuned(*size, changes=question.moves))
    seen(made, question.jump, question)
    return made


def seen(voting: Thresh, move: float, question: Question) -> None:
    """Raise unless users see a change that moves what they compare by so much."""
    lowest = voting.threshold(1 << voting.levels)
    if question.moves and move < 1.25 * lowest:
        kind = OnTheEdgeError if move > 0.8 * lowest else CannotServeError
        raise kind(f"the lowest threshold that users vote by is {lowest:.2g}, and a change of {question.jump:g} is not seen")


def rounds(question: Question, streams: int) -> int:
    """How many streams a prediction simulates; 0: as many as it has time for."""
    return streams or min(250, max(6, _DRAWN // question.periods))


def own(question: Question, weight: float) -> float:
    """What the users' own mean of a period adds to the square of an error about the population's, for estimates in which
    this period's reports have so much weight."""
    return (1 - 2 * weight) * averaged(question, lambda share: share * (1 - share)) / question.users / question.readings


def weight_of_a_period(question: Question, online: bool) -> float:
    """In the average of a stretch without a change, in hindsight, or of those of its periods that have come."""
    stretch = question.periods / (question.moves + 1)
    return float(digamma(stretch + 1) - digamma(1)) / stretch if online else 1 / stretch


def _simulated(
    question: Question, settings: Settings, streams: int, detected: bool = False, online: bool = False
) -> Expected:
    """About the users' own means."""
    rng, errors, most = stream(0, "planner", type(settings).__name__, str(detected)), [], rounds(question, streams)
    if isinstance(settings, Crews | Thresh):  # an update looks at about sqrt(readings) counts
        if question.readings > _ENOUGH:
            with suppress(CannotServeError):  # a change that only more readings show
                fewer = replace(question, readings=_ENOUGH)
                settings = _crews(fewer) if isinstance(settings, Crews) else _tuned(fewer)
                question = fewer
        afford = _COUNTED / math.sqrt(question.readings) / (question.moves + 1)
        most = min(most, 200, max(2, int(afford / 12)) if streams else max(8, int(afford)))
    for _ in range(most):
        data = changing.bits(question, rng)
        errors.append(follow(settings, data, rng, detected, online) - data.truth)
    weight = weight_of_a_period(question, online or not detected)
    if isinstance(settings, Once) and not detected:
        weight = 1 / settings.every
    note = PROMISED if isinstance(settings, Crews | Thresh) else ""
    return replace(summed_up(errors, own(question, weight)), note=note)


def summed_up(errors: list[NDArray[np.float64]], own: float) -> Expected:
    """Root mean square and 95 % over periods and streams; `own`: the variance of the users' own means."""
    sizes = np.abs(np.concatenate(errors))
    square = float(np.mean(sizes**2))
    whole = math.sqrt(max(square + own, 0.0))
    return Expected(whole, float(np.quantile(sizes, 0.95)) * whole / max(math.sqrt(square), 1e-300))


def _pooled_periods(question: Question) -> Once:
    made: Any = _made(
        question, lambda *size: choose(*size, changes=question.moves, promised=True, methods=("once",)).settings["once"]
    )
    if made.every == 1:
        raise CannotServeError("a new estimate in every period is best, as in 'each user once'")
    assert isinstance(made, Once)
    return made


def _tree(question: Question) -> ChangeTree:
    if question.readings > 1:
        raise CannotServeError("it is for one bit a period", "--readings 1")
    if not question.own_changes:
        raise CannotServeError("it needs a limit on the changes of one user's own bit", "--own-changes 2")
    return ChangeTree(question.users, question.periods, question.epsilon, question.own_changes)


def _tree_expected(question: Question, settings: ChangeTree) -> Expected:
    return Expected.normal(
        math.sqrt(float(np.mean(settings.standard_errors**2))),
        note="a bound, nearly reached where few bits change at a time",
    )


def _memoized(question: Question) -> Any:
    reason = "its epsilon is for a value that never changes, and not for a sequence"
    if question.epsilon >= 0.02 and question.periods > 1:
        periods = min(question.periods, 64)
        two = Memoized(question.epsilon, question.epsilon / 2)
        reason += f": {periods} periods of two layers cost {two.transcript_loss(periods):.3g}, and one layer has no limit"
    raise CannotServeError(reason)


_SERVER = "two counters a period"
METHODS = [
    Method(
        "every user in every period", MEANS,
        lambda q: SignFlip(report_epsilon(q, "basic")), every_period,
        "pure epsilon-local DP of {unit}; of all periods {for_ever}",
        "nothing", "1 bit {each}", _SERVER,
        "be precise where epsilon has to pay for many periods", once_run, mixed=shuffled.BIT,
    ),
    Method(
        "every user in every period, composed with delta", MEANS,
        lambda q: SignFlip(report_epsilon(q, "optimal")), every_period,
        "({epsilon}, {delta})-local DP of {unit}", "nothing", "1 bit {each}", _SERVER,
        "have a pure guarantee", once_run,
    ),
    Method(
        "each user once", MEANS, _once, _once_expected,
        "pure epsilon-local DP of everything that a user ever sends",
        "nothing: any data, any number of changes", "1 bit in all periods together", _SERVER,
        "say anything about a single user, or use what a user would answer later", once_run, mixed=shuffled.ONE_BIT,
    ),
    Method(
        "each user once, for several periods", MEANS,
        _pooled_periods, lambda q, s, streams=0: _simulated(q, s, streams),
        "pure epsilon-local DP of everything that a user ever sends",
        "few changes: one within a stretch of periods is seen at the next", "1 bit in all periods together", _SERVER,
        "see a change before the next stretch", once_run, targets=("period",), simulated=True, mixed=shuffled.ONE_BIT,
    ),
    Method(
        "each user once, changes found afterwards", MEANS,
        _detected, lambda q, s, streams=0: _simulated(q, s, streams, detected=True),
        "pure epsilon-local DP of everything that a user ever sends; averaging costs nothing",
        "jumps, and few of them; a drift is blurred, and says so", "1 bit in all periods together",
        "two counters a period, periods^2 operations at the end", "answer before all periods are over", once_run,
        targets=("period",), simulated=True, mixed=shuffled.ONE_BIT,
    ),
    Method(
        "each user once, changes found as they come", MEANS,
        _detected, lambda q, s, streams=0: _simulated(q, s, streams, detected=True, online=True),
        "pure epsilon-local DP of everything that a user ever sends; averaging costs nothing",
        "jumps, and few of them", "1 bit in all periods together", "two counters a period, periods^2 operations",
        "see a change at once: its averages hold periods before it", once_run, targets=("period",), simulated=True,
        mixed=shuffled.ONE_BIT,
    ),
    Method(
        "each user once, with a reserve that is called at a change", MEANS,
        _reserve, lambda q, s, streams=0: _simulated(q, s, streams),
        "pure epsilon-local DP of everything that a user ever sends",
        "jumps; with more than planned it goes on without a reserve", "1 bit in all periods together",
        "two counters a period, periods^2 operations", "promise a user in which period it will be asked", once_run,
        targets=("period",), simulated=True, mixed="whoever is called can be followed through the shuffler",
    ),
    Method(
        "THRESH with roles by lot", MEANS,
        _crews, lambda q, s, streams=0: _simulated(q, s, streams),
        "pure epsilon-local DP of everything that a user ever sends",
        "long periods, changes that all users see, no more than planned", "voters 1 bit a period, reporters 1 in all",
        "a vote and an estimate a period", "follow a drift, or more changes than planned", once_run,
        targets=("period",), simulated=True, mixed=shuffled.SEVERAL,
    ),
    Method(
        "THRESH, tuned", MEANS,
        _tuned, lambda q, s, streams=0: _simulated(q, s, streams),
        "pure epsilon-local DP of everything that a user ever sends",
        "long periods, changes that all users see, no more than planned", "1 bit a period, 1 more at each update",
        "a vote and an estimate a period", "follow a drift, or more changes than planned", once_run,
        targets=("period",), simulated=True, mixed=shuffled.SEVERAL,
    ),
    Method(
        "changes on a dyadic tree", MEANS, _tree, _tree_expected,
        "pure epsilon-local DP of everything that a user ever sends",
        "a user's own bit changes at most {own_changes} times", "1 bit after each 2^h periods, h by lot",
        "sums of the tree's nodes", "count users whose bit changes more often", once_run, targets=("period",),
        mixed=shuffled.SEVERAL,
    ),
    Method(
        "memoized answers (RAPPOR, dBitFlipPM, LOLOHA)", MEANS, _memoized, every_period,
        "", "", "", "", "", once_run, mixed=shuffled.FOLLOWED,
    ),
]  # fmt: skip
