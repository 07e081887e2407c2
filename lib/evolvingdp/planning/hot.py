"""What many hold now, and words without a list, seen by a trusted curator: monitors, AboveThreshold, histograms.

Each is as precise as the weight, in users, from which all `events` hot items are found with 97.5 %. Thresholds stand above
what ordinary items reach: 2.5 % are for their counts, drawn for each user, in all periods and items, and 2.5 % for the noise
on them. So an alarm says that a count is above what is ordinary for all items, not that it is above its own past: for that,
`step` of a monitor takes a `past` that is public. Formulas: `sparse_vector`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar

from scipy.stats import binom, norm

from evolvingdp.core.noise import Gaussian, Laplace
from evolvingdp.planning.answer import BETA, LAPLACE_95, CannotServeError, Expected, Method
from evolvingdp.planning.curated import needs_delta
from evolvingdp.planning.local import up
from evolvingdp.planning.question import Question
from evolvingdp.sparse_vector.above_threshold import AboveThreshold, best_threshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, SHOWN, Histogram, histogram
from evolvingdp.sparse_vector.moved_queries import smallest_moved_scale
from evolvingdp.sparse_vector.shifting import Plan, planned_monitor
from evolvingdp.sparse_vector.stable import NOISES, smallest_group, stable_monitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

HOT = ("hot",)
_moved, _made_stable = lru_cache(smallest_moved_scale), lru_cache(stable_monitor)  # a second each, and no users in them
M = TypeVar("M", ThresholdMonitorEvolving, Histogram)


def _of_a_user(question: Question) -> None:
    if question.unit != "user":
        raise CannotServeError("it protects all that a user ever holds, which is more than is asked for", "--unit user")


def _ordinary(question: Question) -> float:
    """The count that no ordinary item reaches in any period, but for `BETA` / 2."""
    return float(binom.isf(BETA / 2 / question.periods / question.items, question.users, question.usual))


def _above(question: Question, made: M) -> M:
    """`made` at a threshold that is no lower than its own, and above ordinary items with their noise, but for `BETA` / 2."""
    quiet = _ordinary(question) + made.noise.isf(BETA / 2 / question.periods / question.items)
    return replace(made, threshold=max(made.threshold, quiet))


def _monitor(question: Question) -> Plan:
    """With the paper's noise or with normal noise, whichever finds more; a user holds one item a period."""
    _of_a_user(question)
    size = question.epsilon, needs_delta(question), question.taking_part
    normal = Gaussian(_moved(*size, question.periods))
    laws = calibrate(*size), ThresholdMonitorEvolving(normal, 0.0, question.taking_part, moved=question.periods)
    made = [planned_monitor(law, question.periods, question.items, question.events, BETA) for law in laws]
    best, usual = min(made, key=lambda one: one.error), _ordinary(question)
    return Plan(replace(best.monitor, threshold=best.monitor.threshold + usual), best.error + usual)


def _stable(question: Question) -> ThresholdMonitorEvolving:
    _of_a_user(question)
    size = question.epsilon, needs_delta(question), question.taking_part, question.periods
    made = (_made_stable(*size, noise) for noise in NOISES)
    every = [_above(question, one) for one in made]
    return min(every, key=lambda one: smallest_group(one, question.events, 1 - BETA / 2))


def _repeated(question: Question) -> AboveThreshold:
    _of_a_user(question)
    size = question.epsilon, needs_delta(question), question.events, question.periods * question.items
    made = best_threshold(*size, beta=BETA, moved=2 * question.periods)
    return replace(made, threshold=made.threshold + _ordinary(question))


def _histogram(question: Question, kind: str) -> Histogram:
    reports = question.reports.of_a_unit
    made = histogram(question.epsilon, needs_delta(question), reports, question.items, kind=kind, beta=BETA)
    return _above(question, made)


def _expected(question: Question, weight: float) -> Expected:
    """Of a method that finds items from this weight on."""
    found = weight / question.users
    if found > 1:
        raise CannotServeError("more than all users would have to hold an item", f"--users {up(weight)}")
    return Expected(None, found, found=found)


def _readings_shown(question: Question) -> int:
    """What one answer counts: all readings, one of a user and period, or one of a user, as a unit moves by one."""
    if question.unit == "user":
        return question.users
    return question.users * question.pooled * question.reports.a_period


def _shown(question: Question) -> Histogram:
    """The words that enough readings are, without a list: of the two kinds of noise the one that shows more."""
    answers = question.periods if question.unit == "user" else question.pooled  # that one unit is in
    epsilon, delta, domain = question.epsilon, needs_delta(question), min(27**question.length, 2**60)
    made = [histogram(epsilon, delta, answers, domain, kind=kind, beta=BETA) for kind in SHOWN]
    return min(made, key=lambda one: one.error(1, 2 * BETA))


def _shown_expected(question: Question, settings: Histogram) -> Expected:
    counted, everything = _readings_shown(question), question.users * question.readings * question.pooled
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
        return Expected(size, LAPLACE_95 * size, found=found, note=note)
    return Expected.normal(size, found=found, note=note)


def _method(name: str, settle: Any, weight: Any) -> Method:
    return Method(name, HOT, settle, lambda q, made: _expected(q, weight(q, made)), "curator", ("period",))


METHODS = [
    _method("ThresholdMonitor", _monitor, lambda q, made: made.error),
    _method("StableMonitor", _stable, lambda q, made: smallest_group(made, q.events, 1 - BETA / 2)),
    _method("AboveThreshold, repeated", _repeated, lambda q, made: made.error(q.events, BETA)),
    *(
        _method(
            f"a histogram in every period, {kind}",
            partial(_histogram, kind=kind),
            lambda q, made: made.error(q.events, BETA),
        )
        for kind in HISTOGRAMS
    ),
    Method("stable histogram", ("words",), _shown, _shown_expected, "curator"),
]
