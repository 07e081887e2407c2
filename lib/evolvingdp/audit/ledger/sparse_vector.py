"""Entries of the ledger for answers about a threshold: AboveThreshold, ThresholdMonitor, and histograms in every step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from evolvingdp.audit.exact import queries
from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon, pair_epsilon, smallest_epsilon
from evolvingdp.audit.ledger.entry import ADVERSARY, BOUND, COMPOSED, EXACT, SENSITIVITY, Entry
from evolvingdp.core import accounting
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import baselines, privacy, shifting, shifting_simulation
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.adversary import epsilon_attained
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, Histogram, HistogramEveryStep, histogram
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitor, ThresholdMonitorEvolving

_EPSILON, _DELTA = 1.0, 1e-6
_CHAPTER, _UNIT = "sparse_vector", "all answers, a user in all steps"
_REPLACED = "replacement of a user"


def entries() -> Iterator[Entry]:
    yield from _above_threshold()
    yield from _monitor()
    yield from _histograms()


def _above_threshold() -> Iterator[Entry]:
    moved = "every query moves by at most 1"

    def made(composition: str, reports: int, delta: float = _DELTA) -> AboveThreshold:
        return AboveThreshold.calibrated(_EPSILON, delta, reports, 0.0, composition=composition)

    def entry(id: str, name: str, how: str, measure: Any, mutant: str, broken: Any, delta: float = 0.0) -> Entry:
        covers = (AboveThreshold, baselines.repeated_threshold)
        return Entry(
            f"above_threshold_{id}", _CHAPTER, f"AboveThreshold, {name}", covers, _UNIT, moved, how, _EPSILON,
            measure, mutant, broken, delta,
        )  # fmt: skip

    once = made("basic", 1)

    def piece(composition: str, reports: int = 3) -> float:
        """The exact loss of one of the runs that are composed."""
        whole = made(composition, reports)
        return queries.above_threshold_loss(AboveThreshold(0.0, 1, whole.query_scale, whole.threshold_scale, False), 5, 6001)

    unhalted = AboveThreshold(0.0, 4, once.query_scale, once.threshold_scale, False)
    yield entry(
        "once", "until the first yes", EXACT, lambda: queries.above_threshold_loss(once, 6, 6001),
        "goes on after the first yes, with the same noise", lambda: queries.above_threshold_loss(unhalted, 6, 2001),
    )  # fmt: skip
    for composition, delta, extra in (("basic", 0.0, 5), ("advanced", _DELTA, 40), ("optimal", _DELTA, 5)):

        def loss(runs: int, composition: str = composition, delta: float = delta) -> float:
            one = piece(composition)
            return composed_epsilon(one, runs, delta) if delta else runs * one

        yield entry(
            composition, f"three times, {composition} composition", COMPOSED, partial(loss, 3),
            f"halts after {extra} reports instead of 3", partial(loss, extra), delta,
        )  # fmt: skip
    single = made("single", 2)
    more = AboveThreshold(0.0, 4, single.query_scale, single.threshold_scale, False)
    yield entry(
        "single", "one threshold for two reports", EXACT, lambda: queries.above_threshold_loss(single, 5, 6001),
        "halts after 4 reports instead of 2", lambda: queries.above_threshold_loss(more, 7, 2001),
    )  # fmt: skip
    shared, delta = made("renyi", 2, 1e-2), 1e-2

    def halting(scale: float) -> float:
        method = AboveThreshold(0.0, 2, scale, 0.0, False)
        return max(pair_epsilon(queries.halting_laws(method, kinds), delta) for kinds in ([1] * 10, [-1] * 10, [1, -1] * 5))

    yield entry(
        "renyi", "without threshold noise", EXACT, lambda: halting(shared.query_scale),
        "noise of one report for all answers", lambda: halting(1 / _EPSILON), delta,
    )  # fmt: skip


def _monitor() -> Iterator[Entry]:
    covers: tuple[Any, ...] = (
        ThresholdMonitorEvolving, ThresholdMonitor, MonitorNoise, calibrate, shifting.solve, shifting.plan,
        shifting_simulation.simulate,
    )  # fmt: skip
    reports = 3

    def entry(
        id: str, name: str, unit: str, how: str, measure: Any, mutant: str, broken: Any, delta: float = _DELTA
    ) -> Entry:
        neighbours = _REPLACED if unit == "replacement" else "a user more or less"
        return Entry(
            f"threshold_monitor_{id}", _CHAPTER, f"ThresholdMonitor, {name}", covers, _UNIT, neighbours, how, _EPSILON,
            measure, mutant, broken, delta,
        )  # fmt: skip

    exact = calibrate(_EPSILON, _DELTA, reports).noise
    yield entry(
        "attained", "exact calibration, attained", "replacement", ADVERSARY,
        lambda: epsilon_attained(_DELTA, exact, reports), "deleted one report too late",
        lambda: epsilon_attained(_DELTA, exact, reports + 1),
    )  # fmt: skip
    smallest = {unit: privacy.smallest_scale(_EPSILON, _DELTA, reports, unit) for unit in privacy.UNITS}
    for method in ("theorem", "epochs", "tight-proof", "renyi", "exact"):
        for unit, least in smallest.items():
            scale = calibrate(_EPSILON, _DELTA, reports, method=method, unit=unit).scale
            yield entry(
                f"{method}_{unit}".replace("-", "_"), f"calibration {method}, {unit}", unit, BOUND,
                partial(privacy.epsilon_of_delta, _DELTA, scale, reports, unit),
                "10 % less noise than the least that is private",
                partial(privacy.epsilon_of_delta, _DELTA, 0.9 * least, reports, unit),
            )  # fmt: skip
    interval = calibrate(_EPSILON, 1e-2, 1, method="renyi", queries="interval").noise

    def fractions(noise: MonitorNoise) -> float:
        """The most that a few random adaptive adversaries learn, all their transcripts enumerated."""
        worst = 0.0
        for number in range(3):

            def strategy(answers: tuple[bool, ...], number: int = number) -> tuple[float, float, Any]:
                rng = stream(0, "adversary", number, "".join("01"[answer] for answer in answers))
                first, second = rng.integers(0, 2), rng.random()
                return float(first), (1.0 - first) * second, rng.random(2)

            monitor = ThresholdMonitorEvolving(noise, 0.5 + number, 1, "interval")
            worst = max(worst, pair_epsilon(queries.monitor_laws(monitor, 2, strategy, 7), 1e-2))
        return worst

    yield entry(
        "interval", "queries in [0, 1]", "replacement", EXACT, lambda: fractions(interval), "a tenth of the noise",
        lambda: fractions(MonitorNoise(interval.cap / 10, 0.0)), 1e-2,
    )  # fmt: skip


def _histograms() -> Iterator[Entry]:
    steps, covers = 5, (Histogram, HistogramEveryStep, histogram, baselines.simulate_histogram)

    def loss(kind: str, horizon: int) -> float:
        """A user moves two weights by 1 in each of `horizon` steps; the noise is that for `steps`."""
        made = histogram(_EPSILON, _DELTA, steps, 10, kind=kind)
        alone = float(made.sf(made.threshold - 1)) if made.stable else 0.0  # that an element only this user holds is shown
        normal = made.law == "gaussian"
        left = _DELTA - (2 if normal else 1) * horizon * alone
        if left <= 0:
            return math.inf
        if normal:
            return gaussian_epsilon(2 * horizon / made.scale**2, left)
        return composed_epsilon(1 / made.scale, 2 * horizon, left)

    for kind in HISTOGRAMS:
        yield Entry(
            f"histogram_{kind}".replace(" ", "_"), _CHAPTER, f"histogram in every step, {kind}", covers, _UNIT, _REPLACED,
            SENSITIVITY, _EPSILON, partial(loss, kind, steps), "a step more than is paid for",
            partial(loss, kind, steps + 1), _DELTA,
        )  # fmt: skip

    for kind in HISTOGRAMS:
        online = HistogramEveryStep.calibrated(_EPSILON, 1e-2, 2, 3, kind=kind)
        less = replace(online, one=replace(online.one, scale=online.one.scale / 2))
        yield Entry(
            f"histogram_{kind}_online".replace(" ", "_"), _CHAPTER, f"histogram in every step, {kind}, all reports", covers,
            _UNIT, _REPLACED, EXACT, _EPSILON, partial(_learned, online, 1e-2), "half of the noise",
            partial(_learned, less, 1e-2), 1e-2,
        )  # fmt: skip
    yield from _find_steps()


def _learned(method: HistogramEveryStep | FindStep, delta: float) -> float:
    """The most that a few adversaries learn at `delta`, all transcripts of two steps enumerated: the others' weights
    lie around the threshold, or are 0."""
    laws_of: Any = queries.histogram_laws if isinstance(method, HistogramEveryStep) else queries.find_step_laws
    one_step = method.one if isinstance(method, HistogramEveryStep) else method.shown
    middle, worst = math.ceil(one_step.threshold), 0.0
    for first, second in ((-2, 1), (1, -2), (-2, -2), (1, 1), (-middle, -middle), (1, -middle)):
        for same in (True, False):
            weights = [middle + first, middle + second]
            one = [*weights, 2 * middle + 4 - sum(weights)]  # so that the number of users stays
            others = [one, one if same else [one[1], one[0], one[2]]]
            worst = max(worst, pair_epsilon(laws_of(method, others), delta))
    return worst


def _find_steps() -> Iterator[Entry]:
    half = _EPSILON / 2
    covers = (FindStep, baselines.simulate_find_step)
    search = AboveThreshold.calibrated(half, _DELTA / 2, 3, 0.0)
    shown = histogram(half, _DELTA / 2, 3, 10, kind="stable")

    def both(reports: int) -> float:
        """epsilon at which the deltas of the search and of what is shown add up to delta."""
        one, alone = 4 / search.query_scale, reports * float(shown.sf(shown.threshold - 1))

        def excess(epsilon: float) -> float:
            found = accounting.delta_of_reports(one, epsilon / 2, reports)
            return found + accounting.delta_of_reports(1 / shown.scale, epsilon / 2, 2 * reports) + alone - _DELTA

        return smallest_epsilon(excess)

    yield Entry(
        "find_step", _CHAPTER, "find the step, then histogram", covers, _UNIT, _REPLACED, COMPOSED,
        _EPSILON, lambda: both(3), "two reports more than are paid for", lambda: both(5), _DELTA,
    )  # fmt: skip
    for composition, kind in (("optimal", "stable"), ("renyi", "stable gaussian")):

        def made(epsilon: float, composition: str = composition, kind: str = kind) -> FindStep:
            """With the threshold of the search where that of the histogram is, so that both are in doubt."""
            method = FindStep.calibrated(epsilon, _DELTA, 2, 0.0, 3, composition=composition, kind=kind)
            return replace(method, search=replace(method.search, threshold=method.shown.threshold))

        yield Entry(
            f"find_step_online_{composition}", _CHAPTER, f"find the step, then histogram, {composition}, all answers",
            covers, _UNIT, _REPLACED, EXACT, _EPSILON, partial(_learned, made(_EPSILON), _DELTA),
            "the noise of eight times epsilon", partial(_learned, made(8 * _EPSILON), _DELTA), _DELTA,
        )  # fmt: skip
