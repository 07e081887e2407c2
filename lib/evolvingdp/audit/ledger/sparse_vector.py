"""Entries of the ledger for answers about a threshold: AboveThreshold, ThresholdMonitor, and histograms in every step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.exact import queries
from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon
from evolvingdp.audit.ledger.entry import ADVERSARY, COMPOSED, EXACT, FORMULA, Entry
from evolvingdp.audit.ledger.mutant import broken
from evolvingdp.sparse_vector import baselines, gaussian, privacy, shifting, shifting_simulation
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.adversary import epsilon_attained
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, Histogram, HistogramEveryStep, histogram
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.stable_monitor import StableMonitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitor, ThresholdMonitorEvolving

_EPSILON, _DELTA, _LARGE = 1.0, 1e-6, 1e-2
_TWELVE = 12.0  # an epsilon with little noise, so that few cells of a threshold's noise are followed
_REPLACED = "replacement of a user"


def entries() -> Iterator[Entry]:
    yield from _above_threshold()
    yield from _monitor()
    yield from _calibrations()
    yield from _histograms()
    yield from _find_steps()
    yield from _integers()
    yield from _rivals()


def _entry(
    id: str, name: str, covers: tuple[Any, ...], how: str, promised: float, measure: Any, mutant: str,
    change: tuple[str, str, str], delta: float = 0.0, neighbours: str = _REPLACED, sampler_test: str = "",
) -> Entry:  # fmt: skip
    return Entry(
        id, "sparse_vector", name, covers, "all answers, a user in all steps", neighbours, how, promised, measure, mutant,
        broken(measure, *change), delta, sampler_test,
    )  # fmt: skip


def _above_threshold() -> Iterator[Entry]:
    path = "sparse_vector/above_threshold.py"
    less = (path, "noisy = value + noises.draw(", "noisy = value + 0.9 * noises.draw(")
    stale = (
        path,
        "SvtState(self._shift(rng) if self.refreshed and left else state.shift, left)",
        "SvtState(state.shift, left)",
    )
    unpaid = (
        path,
        "else each_epsilon(epsilon, delta, reports, composition)",
        "else each_epsilon(epsilon, delta, 1, composition)",
    )

    def made(epsilon: float, composition: str, reports: int, delta: float = _DELTA) -> AboveThreshold:
        return AboveThreshold.calibrated(epsilon, delta, reports, 0.0, composition=composition)

    def entry(id: str, name: str, epsilon: float, measure: Any, mutant: str, change: Any, delta: float = 0.0) -> Entry:
        covers = (AboveThreshold, baselines.repeated_threshold)
        return _entry(
            f"above_threshold_{id}", f"AboveThreshold, {name}", covers, EXACT, epsilon, measure, mutant, change, delta,
            "every query moves by at most 1",
        )  # fmt: skip

    yield entry(
        "once", "until the first yes", _EPSILON, lambda: queries.threshold_loss(made(_EPSILON, "basic", 1), 7),
        "10 % less noise on queries", less,
    )  # fmt: skip
    turns = (1, -1, -1)
    for composition, delta, mutant, change in (
        ("basic", 0.0, "the threshold keeps its noise", stale),
        ("advanced", _LARGE, "budget for one yes", unpaid),
        ("optimal", _LARGE, "budget for one yes", unpaid),
    ):
        yield entry(
            composition, f"twice, {composition} composition", _TWELVE,
            lambda composition=composition, delta=delta: queries.threshold_loss(
                made(_TWELVE, composition, 2, delta or _DELTA), len(turns), delta, turns
            ),
            mutant, change, delta,
        )  # fmt: skip
    yield entry(
        "single", "one threshold for two reports", _TWELVE, lambda: queries.threshold_loss(made(_TWELVE, "single", 2), 5),
        "goes on for a third yes", (path, "left = state.left - 1", "left = state.left - (state.left < self.reports)"),
    )  # fmt: skip
    yield entry(
        "renyi", "without threshold noise", _EPSILON, lambda: queries.halting_loss(made(_EPSILON, "renyi", 2, _LARGE), 8, _LARGE),
        "noise of one report for all", (path, "smallest_renyi_scale(epsilon, delta, reports, shared=True)", "smallest_renyi_scale(epsilon, delta, 1, shared=True)"), _LARGE,
    )  # fmt: skip


_COVERS: tuple[Any, ...] = (
    ThresholdMonitorEvolving, ThresholdMonitor, MonitorNoise, calibrate, shifting.solve, shifting.plan,
    shifting_simulation.simulate,
)  # fmt: skip


def _monitor() -> Iterator[Entry]:
    path = "sparse_vector/threshold_monitor.py"
    later = (path, "return State(counted, counted < self.reports)", "return State(counted, counted <= self.reports)")
    names = {
        "step": "step by step", "users": "by users", "run": "all at once", "fixed": "fixed data", "elements": "all elements",
    }  # fmt: skip
    changes = {
        "run": (path, "(counted >= self.reports) & state", "(counted > self.reports) & state"),
        "elements": (path, "np.bincount(held[state.active], minlength", "np.bincount(held, minlength"),
    }

    def loss(way: str) -> float:
        monitor = ThresholdMonitorEvolving.calibrated(calibrate(_TWELVE, _LARGE, 1), 0.5)
        return loss_of(lambda world, rng: queries.alternating(monitor, world, 5, rng, way), (0, 1), _LARGE)

    for way in queries.WAYS:
        yield _entry(
            f"threshold_monitor_{way}", f"ThresholdMonitor, {names[way]}", _COVERS, EXACT, _TWELVE, partial(loss, way),
            "users who have counted enough still count" if way == "elements" else "deleted one report too late",
            changes.get(way, later), _LARGE,
        )  # fmt: skip
    reports = 3

    def attained() -> float:
        noise = calibrate(_EPSILON, _DELTA, reports).noise
        return epsilon_attained(_DELTA, MonitorNoise(queries.outer_scale(noise) / 10, noise.inner), reports)

    yield _entry(
        "threshold_monitor_attained", "ThresholdMonitor, exact calibration, attained", _COVERS, ADVERSARY, _EPSILON, attained,
        "10 % less noise is drawn", (
            "sparse_vector/noise.py", "laplace(0.0, self.scale) + min", "0.9 * laplace(0.0, self.scale) + min"
        ), _DELTA,
    )  # fmt: skip

    def fractions() -> float:
        """The most that a few adaptive adversaries learn."""
        noise = calibrate(_EPSILON, _LARGE, 1, method="renyi", queries="interval").noise

        def learned(number: int, strategy: queries.Strategy) -> float:
            monitor = ThresholdMonitorEvolving(noise, 0.5 + number, 1, "interval")
            return loss_of(lambda world, rng: queries.adaptive(monitor, world, strategy, 4, rng), (0, 1), _LARGE)

        return max(learned(number, strategy) for number, strategy in enumerate(queries.strategies(3)))

    yield _entry(
        "threshold_monitor_interval", "ThresholdMonitor, queries in [0, 1]", _COVERS, EXACT, _EPSILON, fractions,
        "noise for queries in {0, 1}",
        ("sparse_vector/calibration.py", 'reports + (queries == "interval")', "reports"), _LARGE,
    )  # fmt: skip


def _calibrations() -> Iterator[Entry]:
    """The loss that the analysis sees at the scale that the sampler draws with."""
    reports, path = 3, "sparse_vector/calibration.py"

    def loss(method: str, unit: str) -> float:
        scale = queries.outer_scale(calibrate(_EPSILON, _DELTA, reports, method=method, unit=unit).noise)
        return privacy.epsilon_of_delta(_DELTA, scale, reports, unit)

    ours = (path, "cap = scale / 10", "cap = 0.9 * scale / 10")
    paper = (
        path,
        "return MonitorNoise(inner * math.log(inner), inner)",
        "return MonitorNoise(0.9 * inner * math.log(inner), inner)",
    )
    for method in ("theorem", "epochs", "tight-proof", "renyi", "exact"):
        for unit in privacy.UNITS:
            yield _entry(
                f"threshold_monitor_{method}_{unit}".replace("-", "_"), f"ThresholdMonitor, calibration {method}, {unit}",
                _COVERS, FORMULA, _EPSILON, partial(loss, method, unit), "10 % less noise",
                ours if method in ("renyi", "exact") else paper, _DELTA,
                _REPLACED if unit == "replacement" else "a user more or less",
                "test_samples_have_the_closed_form_law",
            )  # fmt: skip


def _histograms() -> Iterator[Entry]:
    steps, covers = 5, (Histogram, HistogramEveryStep, histogram, baselines.simulate_histogram)
    path = "sparse_vector/histograms.py"

    def pieces(kind: str) -> float:
        made = histogram(_EPSILON, _DELTA, steps, 10, kind=kind)
        one, alone = queries.one_step(made)
        normal = made.law == "gaussian"
        left = _DELTA - (2 if normal else 1) * steps * alone
        if left <= 0:
            return math.inf
        return gaussian_epsilon(steps * one, left) if normal else composed_epsilon(one, 2 * steps, left)

    def online(kind: str) -> float:
        method = HistogramEveryStep.calibrated(_EPSILON, _LARGE, 2, 3, kind=kind)
        users = [np.zeros(2, dtype=np.int64)] * 3
        if not queries.refused(method, users):
            return math.inf
        return queries.reported_loss(method, _LARGE)

    less = (path, "array + noise.draw(self.law,", "array + 0.9 * noise.draw(self.law,")
    for kind in HISTOGRAMS:
        name = f"histogram_{kind}".replace(" ", "_")
        yield _entry(
            name, f"histogram in every step, {kind}", covers, COMPOSED, _EPSILON, partial(pieces, kind), "10 % less noise",
            less, _DELTA,
        )  # fmt: skip
    free = (path, "HistogramState(state.n_users, state.left - 1)", "HistogramState(state.n_users, state.left)")
    for kind in HISTOGRAMS:
        yield _entry(
            f"histogram_{kind}_online".replace(" ", "_"), f"histogram in every step, {kind}, all reports", covers, EXACT,
            _EPSILON, partial(online, kind), "steps are never used up", free, _LARGE,
        )  # fmt: skip


def _find_steps() -> Iterator[Entry]:
    covers, path = (FindStep, baselines.simulate_find_step), "sparse_vector/find_step.py"
    whole = (path, "share * epsilon, delta / 2, reports, threshold,", "epsilon, delta / 2, reports, threshold,")
    late = (
        path,
        "histogram((1 - share) * epsilon, delta / 2, reports, n_elements",
        "histogram((1 - share) * epsilon, delta / 2, 1, n_elements",
    )

    def loss(epsilon: float, reports: int, composition: str, kind: str) -> float:
        method = FindStep.calibrated(epsilon, _LARGE, reports, 0.0, 3, composition=composition, kind=kind)
        # the threshold of the search where that of the histogram is, so that both are in doubt
        method = replace(method, search=replace(method.search, threshold=method.shown.threshold))
        return queries.reported_loss(method, _LARGE)

    for composition, kind, epsilon, reports, mutant, change in (
        ("optimal", "stable", _TWELVE, 1, "the search has all of epsilon", whole),
        ("renyi", "stable gaussian", _EPSILON, 2, "histograms are paid for once", late),
    ):
        yield _entry(
            f"find_step_{composition}", f"find the step, then histogram, {composition}, all answers", covers, EXACT, epsilon,
            partial(loss, epsilon, reports, composition, kind), mutant, change, _LARGE,
        )  # fmt: skip


def _integers() -> Iterator[Entry]:
    """Integer noise: attained, and as a bound; and with what nobody holds left out."""
    sampler = "test_integer_draws_have_the_closed_form_law"
    path = "sparse_vector/integer_noise.py"

    def attained() -> float:
        return epsilon_attained(_DELTA, IntegerNoise.calibrated(_EPSILON, _DELTA, 3), 3)

    yield _entry(
        "integer_noise", "ThresholdMonitor, integer noise, attained", (IntegerNoise,), ADVERSARY, _EPSILON, attained,
        "a scale 10 % less", (path, "return cls(scale, None, grid)", "return cls(0.9 * scale, None, grid)"), _DELTA,
    )  # fmt: skip
    covers, steps = (StableMonitor, StableMonitor.calibrated), 10**6
    stable = "sparse_vector/stable_monitor.py"

    def bound() -> float:
        method = StableMonitor.calibrated(_EPSILON, _DELTA, steps, 2**32, 3)
        noise = method.monitor.noise
        spent = 2 * steps * IntegerNoise(noise.scale, int(method.monitor.threshold)).revealed
        return privacy.epsilon_of_delta(_DELTA - spent, noise.scale, 3) if spent < _DELTA else math.inf

    yield _entry(
        "stable_monitor", "StableMonitor, calibration", covers, FORMULA, _EPSILON, bound, "a threshold of one user less",
        (stable, "return IntegerNoise(scale, 1 + max(0, math.ceil(excess * scale)))",
         "return IntegerNoise(scale, max(1, math.ceil(excess * scale)))"), _DELTA, sampler_test=sampler,
    )  # fmt: skip

    def learned() -> float:
        """All reports of three steps; the others' weights lie around the threshold, or are 0."""
        small, worst = StableMonitor.calibrated(_EPSILON, _LARGE, 3, 3, 1), 0.0
        limit = int(small.monitor.threshold)
        for first, second in ((-1, -limit), (0, 0), (-1, 0), (-limit, -limit)):
            held = [[0] * (limit + first) + [1] * (limit + second) + [2]] * 3
            worst = max(
                worst, loss_of(lambda world, rng, held=held: queries.stable(small, held, world, rng), (0, 1), _LARGE)
            )
        return worst

    yield _entry(
        "stable_monitor_online", "StableMonitor, all reports", covers, EXACT, _EPSILON, learned,
        "those who were reported are not counted", (stable, "if len(elements):", "if len(elements) > len(held):"), _LARGE,
    )  # fmt: skip


def _rivals() -> Iterator[Entry]:
    """Exponential and normal noise, and both parts of finding a step accounted together."""
    moved, path = "every query moves by at most 1", "sparse_vector/above_threshold.py"
    covers = (AboveThreshold, baselines.repeated_threshold, gaussian.smallest_gaussian_scale)

    def exponential() -> float:
        made = AboveThreshold.calibrated(_TWELVE, _DELTA, 2, 0.0, composition="single", noise="exponential", split=0.25)
        return queries.threshold_loss(made, 4)

    yield _entry(
        "above_threshold_exponential", "AboveThreshold, exponential noise", covers, EXACT, _TWELVE, exponential,
        "no factor for reports", (path, "moves = 2 * (reports if single else 1)", "moves = 2"), neighbours=moved,
    )  # fmt: skip

    def normal() -> float:
        made = AboveThreshold.calibrated(_EPSILON, _LARGE, 2, 0.0, composition="gaussian", moved=8)
        return queries.halting_loss(made, 8, _LARGE)

    yield _entry(
        "above_threshold_gaussian", "AboveThreshold, Gaussian noise", covers, EXACT, _EPSILON, normal, "noise of one report",
        (path, "scale = smallest_gaussian_scale(epsilon, delta, reports, moved)",
         "scale = smallest_gaussian_scale(epsilon, delta, 1, moved)"), _LARGE, moved,
    )  # fmt: skip

    def joint(noise: str) -> float:
        method = FindStep.joint(_EPSILON, _LARGE, 2, 0.0, 3, 2, noise=noise)
        return queries.reported_loss(
            replace(method, search=replace(method.search, threshold=method.shown.threshold)), _LARGE
        )

    for noise in ("gaussian", "laplace"):
        yield _entry(
            f"find_step_joint_{noise}", f"find the step, accounted together, {noise} search", (FindStep, FindStep.joint), EXACT,
            _EPSILON, partial(joint, noise), "what is shown is paid for once",
            ("sparse_vector/find_step.py", "gaussian.ALL, 2 * reports)", "gaussian.ALL, 1)"), _LARGE,
        )  # fmt: skip
