"""What many hold now, and words without a list, seen by a trusted curator: monitors, AboveThreshold, histograms.

Each is as precise as the weight, in users, from which all `events` hot items are found with 97.5 %. At its threshold no
ordinary item is reported in any period, but for 2.5 %: the law of their counts, drawn for each user, and that of the noise
together.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
import scipy
from scipy.special import ndtri

from evolvingdp.core.noise import Array, IntegerNoise, Laplace
from evolvingdp.core.sampling import binomial_sf
from evolvingdp.planning.answer import BETA, CannotServeError, Expected, Method, rounded
from evolvingdp.planning.curated import needs_delta
from evolvingdp.planning.question import PERIOD, SO_FAR, Question
from evolvingdp.sparse_vector.above_threshold import KINDS, SPLITS, AboveThreshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, SHOWN, Histogram, histogram
from evolvingdp.sparse_vector.stable import NOISES, smallest_group, stable_monitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Made = TypeVar("Made", ThresholdMonitorEvolving, AboveThreshold, Histogram)

HOT = ("hot",)
PLACES = 2000  # to which counts of ordinary items are rounded up
RARE = 70.0  # a count e^-70 rarely reached stands for all beyond it


@lru_cache(maxsize=64)
def _ordinary(users: int, usual: float) -> tuple[Array, Array]:
    """Counts of an ordinary item in a period, rounded up, and their chances."""
    mean, variance = users * usual, users * usual * (1 - usual)
    reach = RARE / 3 + math.sqrt(RARE**2 / 9 + 2 * RARE * variance)  # by Bernstein's inequality
    counts = np.linspace(max(0.0, mean - 5 * math.sqrt(variance)), min(users, mean + reach), PLACES)
    counts = np.unique(np.append(np.ceil(counts), users))
    chances = np.diff(-binomial_sf(counts, users, usual), prepend=-1.0)
    return counts, chances


def _quiet(question: Question, made: Made) -> Made:
    """`made` with the lowest threshold that is quiet, its own at least where it asks only of items that somebody holds."""
    sf = made.crossing if isinstance(made, AboveThreshold) else made.noise.sf  # the chance of a yes z below the threshold
    held = made.unlisted if isinstance(made, ThresholdMonitorEvolving) else made.stable
    counts, chances = _ordinary(question.users, question.usual)
    if held:
        counts, chances = counts[counts > 0], chances[counts > 0]
    allowed = BETA / 2 / question.periods / question.items

    def excess(threshold: float) -> float:
        return math.log(max(float(chances @ sf(threshold - counts)), 1e-300) / allowed)

    low = high = made.threshold if held else 0.0
    while excess(high) > 0:
        low, high = high, 2 * high + 1
    found = float(scipy.optimize.brentq(excess, low, high)) * (1 + 1e-9) if low < high else low
    return replace(made, threshold=float(math.ceil(found)) if isinstance(made.noise, IntegerNoise) else found)


def _weight(question: Question, made: Made) -> float:
    """From which all hot items are found, in users, of whom one holds one item a period."""
    if isinstance(made, ThresholdMonitorEvolving):
        return smallest_group(made, question.events, 1 - BETA / 2)
    return made.error(question.events, BETA)


def _best(question: Question, made: list[Made]) -> Made:
    """The one that finds most, each at its quiet threshold."""
    return min((_quiet(question, one) for one in made), key=lambda one: _weight(question, one))


def _listed(question: Question) -> ThresholdMonitorEvolving:
    size = question.epsilon, needs_delta(question), question.taking_part
    laws = calibrate(*size), calibrate(*size, moved=question.periods)
    return _best(question, [ThresholdMonitorEvolving.calibrated(law, 0.0) for law in laws])


def _stable(question: Question) -> ThresholdMonitorEvolving:
    size = question.epsilon, needs_delta(question), question.taking_part, question.periods
    return _best(question, [stable_monitor(*size, noise) for noise in NOISES])


def _repeated(question: Question) -> AboveThreshold:
    """Of all kinds and splits, of a list or of what is held, what finds most."""
    size, moved = (question.epsilon, needs_delta(question), question.events), 2 * question.periods
    made = [AboveThreshold.calibrated(*size, 0.0, kind=kind, split=split) for kind in KINDS[:2] for split in SPLITS]
    made.append(AboveThreshold.calibrated(*size, 0.0, kind="gaussian", moved=moved))
    made.append(AboveThreshold.stable_gaussian(*size, moved))
    made += [AboveThreshold.stable_one(*size, moved, split=split) for split in SPLITS]
    return _best(question, made)


def _histogram(question: Question) -> Histogram:
    """Of the kind that finds most."""
    size = question.epsilon, needs_delta(question), question.of_a_unit, question.items
    return _best(question, [histogram(*size, kind=kind) for kind in HISTOGRAMS])


def _expected(question: Question, settings: Any) -> Expected:
    """Of a method that finds items from a weight on."""
    found = (weight := _weight(question, settings)) / question.users
    if found > 1:
        raise CannotServeError("more than all users would have to hold an item", f"--users {rounded(weight):.0f}")
    return Expected(None, found, found_from=found)


def _shown(question: Question, once: bool = False) -> Histogram:
    """The words that enough readings are, without a list: of the two kinds of noise the one that shows more."""
    answers = 1 if once else question.periods if question.unit == "user" else question.pooled  # that one unit is in
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
    found = (settings.threshold + float(-ndtri(BETA)) * error(level)) / counted if left_out else level
    note = "" if question.level > found else f"a word of {question.level:.2g} of the users is not found"
    size = error(question.level) / counted
    return Expected.normal(size, isinstance(settings.noise, Laplace) and not left_out, found_from=found, note=note)


METHODS = [
    Method("ThresholdMonitor", HOT, _listed, _expected, "curator", PERIOD, of_a_user=True),
    Method("StableMonitor", HOT, _stable, _expected, "curator", PERIOD, of_a_user=True),
    Method("AboveThreshold, repeated", HOT, _repeated, _expected, "curator", PERIOD, of_a_user=True),
    Method("a histogram in every period", HOT, _histogram, _expected, "curator", PERIOD),
    Method("stable histogram", ("words",), _shown, _shown_expected, "curator"),
    Method("stable histogram, once at the end", ("words",), partial(_shown, once=True), _shown_expected, "curator", SO_FAR),
]
