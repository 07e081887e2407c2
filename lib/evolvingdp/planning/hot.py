"""What many hold now, and words without a list, seen by a trusted curator: monitors, AboveThreshold, histograms.

Each is as precise as the weight, in users, from which all `events` hot items are found with 97.5 %. Thresholds stand above
what ordinary items reach, in all periods: 2.5 % are for their counts, drawn for each user, and 2.5 % for the noise.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from scipy.stats import binom, norm

from evolvingdp.core.noise import Laplace
from evolvingdp.planning.answer import BETA, LAPLACE_95, CannotServeError, Expected, Method, rounded
from evolvingdp.planning.curated import needs_delta
from evolvingdp.planning.question import Question
from evolvingdp.sparse_vector.above_threshold import AboveThreshold, best_threshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, SHOWN, Histogram, histogram
from evolvingdp.sparse_vector.shifting import Plan, planned_monitor

HOT = ("hot",)


def _of_a_user(question: Question) -> None:
    if question.unit != "user":
        raise CannotServeError("it protects all that a user ever holds, which is more than is asked for", "--unit user")


def _ordinary(question: Question) -> float:
    """The count that no ordinary item reaches in any period, but for `BETA` / 2."""
    return float(binom.isf(BETA / 2 / question.periods / question.items, question.users, question.usual))


def _monitor(question: Question) -> Plan:
    """With the paper's noise or with normal noise, whichever finds more; a user holds one item a period."""
    _of_a_user(question)
    size = question.epsilon, needs_delta(question), question.taking_part
    laws = calibrate(*size), calibrate(*size, moved=question.periods)
    made = [planned_monitor(law, question.periods, question.items, question.events, BETA) for law in laws]
    best, usual = min(made, key=lambda one: one.error), _ordinary(question)
    return Plan(replace(best.monitor, threshold=best.monitor.threshold + usual), best.error + usual)


def _repeated(question: Question) -> AboveThreshold:
    _of_a_user(question)
    size = question.epsilon, needs_delta(question), question.events, question.periods * question.items
    made = best_threshold(*size, beta=BETA, moved=2 * question.periods)
    return replace(made, threshold=made.threshold + _ordinary(question))


def _histogram(question: Question) -> Histogram:
    """Of the kind that finds most."""
    size = question.epsilon, needs_delta(question), question.of_a_unit, question.items
    made = [histogram(*size, kind=kind, beta=BETA).above(_ordinary(question), question.periods, BETA) for kind in HISTOGRAMS]
    return min(made, key=lambda one: one.error(question.events, BETA))


def _expected(question: Question, weight: float) -> Expected:
    """Of a method that finds items from this weight on."""
    found = weight / question.users
    if found > 1:
        raise CannotServeError("more than all users would have to hold an item", f"--users {rounded(weight):.0f}")
    return Expected(None, found, found_from=found)


def _shown(question: Question) -> Histogram:
    """The words that enough readings are, without a list: of the two kinds of noise the one that shows more."""
    answers = question.periods if question.unit == "user" else question.pooled  # that one unit is in
    epsilon, delta, domain = question.epsilon, needs_delta(question), min(27**question.length, 2**60)
    made = [histogram(epsilon, delta, answers, domain, kind=kind, beta=BETA) for kind in SHOWN]
    return min(made, key=lambda one: one.error(1, 2 * BETA))


def _shown_expected(question: Question, settings: Histogram) -> Expected:
    everything = question.users * question.readings * question.pooled
    counted = question.users * (1 if question.unit == "user" else question.pooled * question.a_period)  # a unit moves one
    left_out = counted * (1 - counted / everything)  # readings that do not count: which do is chance

    def error(share: float) -> float:
        return math.hypot(settings.standard_error, math.sqrt(share * (1 - share) * left_out))

    level = settings.error(1, 2 * BETA) / counted
    if level > 1:
        raise CannotServeError("more than all users would have to hold a word")
    found = (settings.threshold + float(norm.isf(BETA)) * error(level)) / counted if left_out else level
    note = "" if question.level > found else f"a word of {question.level:.2g} of the users is not found"
    size = error(question.level) / counted
    if isinstance(settings.noise, Laplace) and not left_out:
        return Expected(size, LAPLACE_95 * size, found_from=found, note=note)
    return Expected.normal(size, found_from=found, note=note)


def _method(name: str, settle: Any, weight: Any) -> Method:
    return Method(name, HOT, settle, lambda q, made: _expected(q, weight(q, made)), "curator", ("period",))


METHODS = [
    _method("ThresholdMonitor", _monitor, lambda _, made: made.error),
    _method("AboveThreshold, repeated", _repeated, lambda q, made: made.error(q.events, BETA)),
    _method("a histogram in every period", _histogram, lambda q, made: made.error(q.events, BETA)),
    Method("stable histogram", ("words",), _shown, _shown_expected, "curator"),
]
