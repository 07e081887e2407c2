"""Means, counts and frequencies of a list that users report themselves, and what of a list is hot now.

A bit is one of two words. Formulas are those of `core.reports` and `evolving`; what depends on where changes fall is
simulated, exactly, on streams whose changes are at random places (`changing`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import digamma
from scipy.stats import binom, norm

from evolvingdp.core.detection import detect_many
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.reports import Hashed, Report, Sign, best_report
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines
from evolvingdp.evolving.rivals.choosing import Settings, choose, follow
from evolvingdp.evolving.rivals.few_changes import ChangeTree
from evolvingdp.evolving.rivals.once import BITS, Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.planning import changing, shuffled
from evolvingdp.planning.answer import BETA, CannotServeError, Expected, Method
from evolvingdp.planning.question import MOST_USERS, Question, in_options

MEANS, LIST, PERIOD = ("mean", "counts"), ("frequencies",), ("period",)
PROMISED = "where the number of changes is promised: after more of them its last estimate stays"
_FEW_REPORTS = 20  # of an answer
_DRAWN, _FOLLOWED = 12_000, 2_500  # periods that a prediction simulates: of all its runs at once, or one by one
_MOST_RUNS, _FEW_RUNS = 250, 5
_ENOUGH = 10**8  # readings of which a user's mean is known to four digits: more change nothing
_COUNTED = 350_000  # counts of updates that it looks at, of THRESH
_MOST_LISTED = 2**20  # from here on a report, and its error, is the same for any list

Array = NDArray[np.float64]


def report_epsilon(question: Question, composition: str) -> float:
    """Of each period's report of everybody."""
    reports = question.reports.of_a_unit
    if composition != "basic":
        if not question.failure:
            raise CannotServeError("delta is 0, and composing reports needs one", "--delta 1e-9")
        if reports == 1:
            raise CannotServeError("there is one report for epsilon to pay for, and nothing to compose")
    return baselines.epsilon_of_report(question.epsilon, reports, composition, question.failure or 0.5)


def _report(question: Question, epsilon: float, kind: type[Report] | None = None) -> Report:
    """Of a kind, or the best one for a word of the level."""
    words = 2 if question.statistic in MEANS else min(question.items, _MOST_LISTED)
    return best_report(words, epsilon, BITS, question.level) if kind is None else kind(words, epsilon)


def _every(question: Question, composition: str, kind: type[Report] | None = None) -> SignFlip | Report:
    epsilon = report_epsilon(question, composition)
    return SignFlip(epsilon) if question.statistic in MEANS else _report(question, epsilon, kind)


def _every_expected(question: Question, report: SignFlip | Report) -> Expected:
    """Errors of periods are independent, so that those of a window average out."""
    return _of_reports(question, report, question.users * question.reports.a_period * question.pooled)


def _of_reports(question: Question, report: SignFlip | Report, reports: float) -> Expected:
    """Of the mean of so many reports about the population's share; the users' own is subtracted."""
    everything = question.users * question.readings * question.pooled
    return Expected.normal(
        math.sqrt(
            max(averaged(question, lambda one: float(report.variance(one)) / reports - one * (1 - one) / everything), 0.0)
        )
    )


@lru_cache
def _moving(question: Question, runs: int) -> Array:
    """The shares of all periods of so many streams, (runs, periods)."""
    rng = stream(0, "planner", "moves")
    return np.array([changing.moving(question, rng) for _ in range(runs)])


def averaged(question: Question, of_share: Callable[[float], float]) -> float:
    """The mean of a function of the share over all periods, where the share moves as it does."""
    about_shares = replace(question, users=1, epsilon=1.0, delta=None, readings=1)  # which nothing of these moves
    drawn = _moving(about_shares, min(64, max(8, _DRAWN // question.periods)) if question.moves else 1)
    values, counts = np.unique(np.round(drawn, 9), return_counts=True)
    return float(np.average([of_share(value) for value in values.tolist()], weights=counts))


def enough_reports(question: Question) -> None:
    """Raise unless each answer has reports when users are dealt to periods."""
    reports = question.users * question.pooled / question.periods
    if reports < _FEW_REPORTS:
        raise CannotServeError(
            f"an answer has {reports:.3g} reports on average, and some have none",
            f"--users {up(_FEW_REPORTS * question.periods / question.pooled)}",
        )


def up(value: float) -> str:
    """Two digits, rounded up."""
    unit = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit) * unit}"


def _once(question: Question, kind: type[Report] | None = None) -> Once:
    enough_reports(question)
    report = _report(question, question.epsilon, kind)
    return Once(question.users, question.periods, question.epsilon, report.n_values, report=report)


def _once_expected(question: Question, settings: Once) -> Expected:
    return _of_reports(question, settings.report, question.users * question.pooled / question.periods)


def _made(question: Question, make: Callable[[int, int, int, float], Any]) -> Any:
    """Settings for the sizes of the question; raises with the reason where they are refused."""
    if question.periods < 2:
        raise CannotServeError("there is one period, and nothing to follow", "--periods 2")
    try:
        return make(question.users, question.periods, question.readings, question.epsilon)
    except ValueError as refused:
        raise CannotServeError(in_options(str(refused))) from None


def _watched(question: Question, kind: type[Report] | None = None) -> Once:
    return _made(question, lambda *_: _once(question, kind))  # type: ignore[no-any-return]


def _pooled_periods(question: Question) -> Once:
    made = _made(question, lambda *size: choose(*size, changes=question.moves, promised=True, methods=("once",)))
    settings: Once = made.settings["once"]
    if settings.every == 1:
        raise CannotServeError("a new estimate in every period is best, as in 'each user once'")
    return settings


def _reserve(question: Question) -> Reserve:
    enough_reports(question)
    return _made(question, lambda users, periods, _, epsilon: Reserve(users, periods, epsilon, question.moves))  # type: ignore[no-any-return]


def _thresh(question: Question) -> Thresh:
    """Refused where users do not see a change by so much."""
    made: Thresh = _made(question, lambda *size: Thresh.tuned(*size, changes=question.moves))
    lowest = made.threshold(1 << made.levels)
    if question.moves and question.jump < 1.25 * lowest:
        only = "not seen" if question.jump < 0.8 * lowest else "only just seen, or not"
        raise CannotServeError(
            f"the lowest threshold that users vote by is {lowest:.2g}, a change of {question.jump:g} is {only}"
        )
    return made


def _runs(question: Question, streams: int, drawn: int) -> int:
    """How many streams a prediction simulates; 0: as many as it has time for."""
    return streams or min(_MOST_RUNS, max(_FEW_RUNS, drawn // question.periods))


def summed_up(question: Question, errors: Array, weight: float, note: str = "") -> Expected:
    """Root mean square and 95 % over periods and streams, (runs, periods), of errors about the population's shares; what the
    users' own mean of a period adds is added, for estimates in which this period's reports have so much `weight`."""
    own = (1 - 2 * weight) * averaged(question, lambda share: share * (1 - share)) / question.users / question.readings
    squares = np.mean(errors**2, axis=1)
    square = float(np.mean(squares))
    whole = math.sqrt(max(square + own, 0.0))
    spread = float(np.std(squares, ddof=1)) / math.sqrt(len(squares)) / 2 / max(square, 1e-300) if len(squares) > 1 else 1.0
    within = float(np.quantile(np.abs(errors), 0.95)) * whole / max(math.sqrt(square), 1e-300)
    return Expected(whole, within, note=note, own=spread)


def weight_of_a_period(question: Question, online: bool) -> float:
    """In the average of a stretch without a change, in hindsight, or of those of its periods that have come."""
    stretch = question.periods / (question.moves + 1)
    return float(digamma(stretch + 1) - digamma(1)) / stretch if online else 1 / stretch


def _reported(question: Question, settings: Once, runs: int) -> tuple[Array, Array, Array]:
    """The share, how many report, and the estimate, (runs, lots), of each lot: uniform numbers are the same whatever the
    question's users and epsilon are, so that more of them help in a simulation, too, and whatever numpy's version is."""
    lots = settings.lots
    shares = _moving(replace(question, users=1, epsilon=1.0, delta=None, readings=1), runs)[:, lots.epochs - 1]
    uniform, left = stream(0, "planner", "reports").random((2, *shares.shape)), np.full(runs, float(settings.n_users))
    reports = np.empty(shares.shape)
    for lot in range(shares.shape[1]):
        reports[:, lot] = binom.ppf(uniform[0, :, lot], left, 1 / (shares.shape[1] - lot))
        left = left - reports[:, lot]
    report = settings.report
    supports = binom.ppf(uniform[1], reports, report.other + shares * (report.own - report.other))
    with np.errstate(invalid="ignore"):
        return shares, reports, (supports / reports - report.other) / (report.own - report.other)


def _watched_expected(question: Question, settings: Once, streams: int = 0, online: bool = False) -> Expected:
    """A bit, or one word, in whose series changes are looked for."""
    shares, reports, told = _reported(question, settings, _runs(question, streams, _DRAWN))
    found = detect_many(told, reports, settings.report.largest_variance, online=online)
    found = _within(found) if question.statistic in MEANS else np.nan_to_num(found)
    return summed_up(question, found - shares, weight_of_a_period(question, online))


def _within(estimates: Array) -> Array:
    """As `follow`: a period without an estimate has the last one; all lie in [0, 1]."""
    last = np.maximum.accumulate(np.where(np.isnan(estimates), -1, np.arange(estimates.shape[1])), axis=1)
    held = np.take_along_axis(estimates, np.maximum(last, 0), axis=1)
    return np.clip(np.where(last < 0, 0.5, held), 0, 1)


def _pooled_expected(question: Question, settings: Once, streams: int = 0) -> Expected:
    runs = _runs(question, streams, _DRAWN)
    _, _, told = _reported(question, settings, runs)
    shares = _moving(replace(question, users=1, epsilon=1.0, delta=None, readings=1), runs)
    return summed_up(question, settings.lots.hold(_within(told).T).T - shares, 1 / settings.every)


def _followed(question: Question, settings: Settings, streams: int = 0) -> Expected:
    """Of votes and calls, run by run."""
    rng, runs = stream(0, "planner", type(settings).__name__), _runs(question, streams, _FOLLOWED)
    if isinstance(settings, Thresh):  # an update looks at about sqrt(readings) counts
        if question.readings > _ENOUGH:
            with suppress(CannotServeError):  # a change that only more readings show
                fewer = replace(question, readings=_ENOUGH)
                settings, question = _thresh(fewer), fewer
        afford = _COUNTED / math.sqrt(question.readings) / (question.moves + 1)
        runs = min(_runs(question, streams, _DRAWN), 200, max(2, int(afford / 12)) if streams else max(8, int(afford)))
    errors = []
    for _ in range(runs):
        data = changing.bits(question, rng)
        errors.append(follow(settings, data, rng) - data.truth)
    note = PROMISED if isinstance(settings, Thresh) else ""
    return summed_up(question, np.array(errors), weight_of_a_period(question, True), note)


def _tree(question: Question) -> ChangeTree:
    if question.readings > 1:
        raise CannotServeError("it is for one bit a period", "--readings 1")
    if not question.own_changes:
        raise CannotServeError("it needs a limit on the changes of one user's own bit", "--own-changes 2")
    return ChangeTree(question.users, question.periods, question.epsilon, question.own_changes)


def _tree_expected(question: Question, settings: ChangeTree) -> Expected:
    error = math.sqrt(float(np.mean(settings.standard_errors**2)))
    return Expected.normal(error, note="a bound, nearly reached where few bits change at a time")


def cut(question: Question, settings: Once, reports: ArrayLike) -> Array:
    """The support that an item must exceed among so many reports of a period: with 97.5 % none of all items in all periods
    does by chance, of which a share that is ordinary holds each."""
    report = settings.report
    ordinary = report.other + question.usual * (report.own - report.other)
    return np.asarray(binom.isf(BETA / 2 / question.periods / question.items, reports, ordinary))


def _hot_expected(question: Question, settings: Once) -> Expected:
    """The least share at which all hot items are above the cut with 97.5 %, by the law of supports, however few report."""

    def missed(share: float, users: int) -> float:
        """By how much the chance to miss one is above what it may be."""
        mean, spread = users / question.periods, math.sqrt(users / question.periods * (1 - 1 / question.periods))
        reports = np.unique(np.linspace(max(0, mean - 6 * spread), min(users, mean + 6 * spread), 201).round())
        weights = norm.pdf(reports, mean, spread or 1.0)
        supported = settings.report.other + share * (settings.report.own - settings.report.other)
        rare = binom.cdf(cut(question, settings, reports), reports, supported)
        return float(np.average(rare, weights=weights)) - BETA / 2 / question.events

    users = question.users
    if missed(1.0, users) > 0:
        while missed(1.0, users) > 0 and users <= MOST_USERS:
            users *= 2
        nearest = f"--users {up(users)}" if users <= MOST_USERS else ""
        raise CannotServeError("more than all users would have to hold an item", nearest)
    found = brentq(missed, 0.0, 1.0, args=(users,), xtol=1e-9, rtol=1e-4)
    return Expected(None, found, found=found)


_WATCHED: dict[str, Any] = {"targets": PERIOD, "simulated": True}
_ONLINE = partial(_watched_expected, online=True)
METHODS = [
    Method("every user in every period", MEANS, lambda q: _every(q, "basic"), _every_expected, mixed=shuffled.BIT),
    Method(
        "every user in every period, composed with delta", MEANS, lambda q: _every(q, "optimal"), _every_expected),
    Method("each user once", MEANS, _once, _once_expected, mixed=shuffled.ONE_BIT),
    Method(
        "each user once, for several periods", MEANS, _pooled_periods, _pooled_expected, mixed=shuffled.ONE_BIT, **_WATCHED),
    Method(
        "each user once, changes found afterwards", MEANS, _watched, _watched_expected, mixed=shuffled.ONE_BIT, **_WATCHED),
    Method("each user once, changes found as they come", MEANS, _watched, _ONLINE, mixed=shuffled.ONE_BIT, **_WATCHED),
    Method(
        "each user once, with a reserve that is called at a change", MEANS, _reserve, _followed,
        mixed="whoever is called can be followed through the shuffler", **_WATCHED),
    Method("THRESH, tuned", MEANS, _thresh, _followed, mixed=shuffled.SEVERAL, **_WATCHED),
    Method("changes on a dyadic tree", MEANS, _tree, _tree_expected, targets=PERIOD, mixed=shuffled.SEVERAL),
    Method(
        "the best report from every user in every period", LIST, lambda q: _every(q, "basic"), _every_expected,
        mixed=shuffled.HASH, settle_mixed=lambda q: _every(q, "basic", Hashed)),
    Method(
        "the best report from every user in every period, composed with delta", LIST, lambda q: _every(q, "optimal"),
        _every_expected),
    Method(
        "each user once, the best report", LIST, _once, _once_expected,
        mixed=shuffled.ONE_HASH, settle_mixed=partial(_once, kind=Hashed)),
    Method(
        "each user once, one sign (FreqOracle, Hadamard)", LIST, partial(_once, kind=Sign), _once_expected,
        mixed=shuffled.ONE_SIGN),
    Method(
        "each user once, the best report, changes found afterwards", LIST, _watched, _watched_expected,
        mixed=shuffled.ONE_HASH, settle_mixed=partial(_watched, kind=Hashed), **_WATCHED),
    Method(
        "each user once, the best report, changes found as they come", LIST, _watched, _ONLINE,
        mixed=shuffled.ONE_HASH, settle_mixed=partial(_watched, kind=Hashed), **_WATCHED),
    Method(
        "each user once, the best report, and a cut", ("hot",), _once, _hot_expected, targets=PERIOD,
        mixed=shuffled.ONE_HASH, settle_mixed=partial(_once, kind=Hashed)),
]  # fmt: skip
