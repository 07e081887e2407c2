"""Entries of the ledger for ThresholdMonitor: step by step, all at once, its calibrations, and integer noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

from evolvingdp.audit import refusals
from evolvingdp.audit.exact import enumerated, queries
from evolvingdp.audit.ledger.entry import ADVERSARY, EXACT, FORMULA, Entry
from evolvingdp.audit.ledger.mutant import broken
from evolvingdp.sparse_vector import privacy, shifting, shifting_simulation, threshold_monitor
from evolvingdp.sparse_vector.adversary import epsilon_attained
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.stable_monitor import StableMonitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitor, ThresholdMonitorEvolving

EPSILON, DELTA, LARGE = 1.0, 1e-6, 1e-2
TWELVE = 12.0  # an epsilon with little noise, so that few cells of a threshold's noise are followed
REPLACED = "replacement of a user"
_COVERS: tuple[Any, ...] = (
    ThresholdMonitorEvolving, ThresholdMonitor, MonitorNoise, calibrate, shifting.solve, shifting.plan,
    shifting_simulation.simulate,
)  # fmt: skip


def entries() -> Iterator[Entry]:
    yield from _monitor()
    yield from _calibrations()
    yield from _integers()


def entry(
    id: str, name: str, covers: tuple[Any, ...], how: str, promised: float, measure: Any, mutant: str,
    change: tuple[str, str, str], delta: float = 0.0, neighbours: str = REPLACED, sampler_test: str = "",
) -> Entry:  # fmt: skip
    return Entry(
        id, "sparse_vector", name, covers, "all answers, a user in all steps", neighbours, how, promised, measure, mutant,
        broken(measure, *change), delta, sampler_test,
    )  # fmt: skip


def _monitor() -> Iterator[Entry]:
    path = "sparse_vector/threshold_monitor.py"
    later = (
        path,
        "return State(self, counted, counted < self.reports)",
        "return State(self, counted, counted <= self.reports)",
    )
    names = {
        "step": "step by step", "run": "all at once", "fixed": "fixed data", "elements": "all elements",
    }  # fmt: skip
    changes = {
        "run": (path, "(counted >= self.reports) & state", "(counted > self.reports) & state"),
        "elements": (path, "np.bincount(held[state.active], minlength", "np.bincount(held, minlength"),
    }

    def loss(way: str) -> float:
        """All queries at once: in one block, and in some."""
        monitor = ThresholdMonitorEvolving.calibrated(calibrate(TWELVE, LARGE, 1), 0.5)

        def asked() -> float:
            return queries.alternating_loss(monitor, 5, LARGE, way)

        with mock.patch.object(threshold_monitor, "_FEWEST", 1), mock.patch.object(threshold_monitor, "_CELLS", 4):
            blocks = asked() if way == "run" else 0.0
            alike = way != "run" or queries.run_as_steps(replace(monitor, reports=7))
        return max(asked(), blocks) if alike else math.inf

    for way in queries.WAYS:
        yield entry(
            f"threshold_monitor_{way}", f"ThresholdMonitor, {names[way]}", _COVERS, EXACT, TWELVE, partial(loss, way),
            "users who have counted enough still count" if way == "elements" else "deleted one report too late",
            changes.get(way, later), LARGE,
        )  # fmt: skip
    yield entry(
        "threshold_monitor_refused", "ThresholdMonitor: what is out of range is refused", (*_COVERS, ThresholdMonitor), EXACT, TWELVE,
        lambda: refusals.refused(refusals.sparse_vector(), partial(loss, "step")), "values above 1 pass",
        (path, "good = (array >= 0) & (array <= 1)", "good = array >= 0"), LARGE,
    )  # fmt: skip
    reports = 3

    def attained() -> float:
        noise = calibrate(EPSILON, DELTA, reports).noise
        return epsilon_attained(DELTA, MonitorNoise(queries.outer_scale(noise) / 10, noise.inner), reports)

    yield entry(
        "threshold_monitor_attained", "ThresholdMonitor, exact calibration, attained", _COVERS, ADVERSARY, EPSILON, attained,
        "10 % less noise is drawn", (
            "sparse_vector/noise.py", "laplace(0.0, self.scale) + min", "0.9 * laplace(0.0, self.scale) + min"
        ), DELTA,
    )  # fmt: skip

    def fractions() -> float:
        """The most that a few adaptive adversaries learn."""
        noise = calibrate(EPSILON, LARGE, 1, queries="interval").noise

        def learned(number: int, strategy: queries.Strategy) -> float:
            monitor = ThresholdMonitorEvolving(noise, 0.5 + number, 1, "interval")
            return queries.adaptive_loss(monitor, strategy, 4, LARGE)

        return max(learned(number, strategy) for number, strategy in enumerate(queries.strategies(3)))

    yield entry(
        "threshold_monitor_interval", "ThresholdMonitor, queries in [0, 1]", _COVERS, EXACT, EPSILON, fractions,
        "noise for queries in {0, 1}",
        ("sparse_vector/calibration.py", 'reports + (queries == "interval")', "reports"), LARGE,
    )  # fmt: skip


def _calibrations() -> Iterator[Entry]:
    """The loss that the analysis sees at the scale that the sampler draws with."""
    reports, path = 3, "sparse_vector/calibration.py"

    def loss(method: str, unit: str) -> float:
        scale = queries.outer_scale(calibrate(EPSILON, DELTA, reports, method=method, unit=unit).noise)
        return privacy.epsilon_of_delta(DELTA, scale, reports, unit)

    ours = (path, "cap = scale / 10", "cap = 0.9 * scale / 10")
    paper = (
        path,
        "return MonitorNoise(inner * math.log(inner), inner)",
        "return MonitorNoise(0.9 * inner * math.log(inner), inner)",
    )
    for method in ("theorem", "epochs", "tight-proof", "renyi", "exact"):
        for unit in privacy.UNITS:
            yield entry(
                f"threshold_monitor_{method}_{unit}".replace("-", "_"), f"ThresholdMonitor, calibration {method}, {unit}",
                _COVERS, FORMULA, EPSILON, partial(loss, method, unit), "10 % less noise",
                ours if method in ("renyi", "exact") else paper, DELTA,
                REPLACED if unit == "replacement" else "a user more or less",
                "test_samples_have_the_closed_form_law",
            )  # fmt: skip


def _integers() -> Iterator[Entry]:
    """Integer noise: attained, and as a bound; and with what nobody holds left out."""
    sampler = "test_integer_draws_have_the_closed_form_law"
    path = "sparse_vector/integer_noise.py"

    def attained() -> float:
        return epsilon_attained(DELTA, IntegerNoise.calibrated(EPSILON, DELTA, 3), 3)

    yield entry(
        "integer_noise", "ThresholdMonitor, integer noise, attained", (IntegerNoise,), ADVERSARY, EPSILON, attained,
        "a scale 10 % less", (path, "return cls(scale, None, grid)", "return cls(0.9 * scale, None, grid)"), DELTA,
    )  # fmt: skip
    yield entry(
        "integer_noise_grid", "ThresholdMonitor, integer noise, fractions", (IntegerNoise,), ADVERSARY, EPSILON,
        lambda: epsilon_attained(DELTA, IntegerNoise.calibrated(EPSILON, DELTA, 3, grid=4), 3), "scale for whole reports",
        (path, "reports + 1 - 1 / grid, unit)", "reports, unit)"), DELTA,
    )  # fmt: skip

    def limited() -> float:
        """All kinds of this noise must be drawn as `sf` and `cdf` state."""
        noise = IntegerNoise(1.4, 2)
        kinds = ((IntegerNoise(0.7), 17), (IntegerNoise(0.7, None, 4), 68), (noise, 34), (IntegerNoise(0.7, 1, 2), 34))
        alike = all(enumerated.sampled_as_stated(*kind) for kind in kinds)
        return enumerated.limited_loss(noise, 34) / noise.loss if alike else math.inf

    yield entry(
        "integer_noise_limited", "integer noise with a limit, times its scale", (IntegerNoise,), EXACT, 1.0, limited,
        "the limit cuts off", (path, "self.limit * self.grid - 1 - self._geometric(count, rng))", "self.limit * self.grid - 1)"),
        neighbours="sums that differ by 1",
    )  # fmt: skip
    covers, steps = (StableMonitor, StableMonitor.calibrated), 10**6
    stable = "sparse_vector/stable_monitor.py"

    def bound() -> float:
        method = StableMonitor.calibrated(EPSILON, DELTA, steps, 2**32, 3)
        noise = method.monitor.noise
        spent = 2 * steps * IntegerNoise(noise.scale, int(method.monitor.threshold)).revealed
        return privacy.epsilon_of_delta(DELTA - spent, noise.scale, 3) if spent < DELTA else math.inf

    yield entry(
        "stable_monitor", "StableMonitor, calibration", covers, FORMULA, EPSILON, bound, "a threshold of one user less",
        (stable, "return IntegerNoise(scale, 1 + max(0, math.ceil(excess * scale)))",
         "return IntegerNoise(scale, max(1, math.ceil(excess * scale)))"), DELTA, sampler_test=sampler,
    )  # fmt: skip

    def learned() -> float:
        """All reports of three steps; the others' weights lie around the threshold, or are 0."""
        small, worst = StableMonitor.calibrated(EPSILON, LARGE, 3, 3, 1), 0.0
        if not queries.refused(small, [range(3)] * 4):
            return math.inf
        limit = int(small.monitor.threshold)
        for first, second in ((-1, -limit), (0, 0), (-1, 0), (-limit, -limit)):
            held = [[0] * (limit + first) + [1] * (limit + second) + [2]] * 3
            worst = max(worst, queries.stable_loss(small, held, LARGE))
        return worst

    yield entry(
        "stable_monitor_online", "StableMonitor, all reports", covers, EXACT, EPSILON, learned,
        "those who were reported are not counted", (stable, "if len(elements):", "if len(elements) > len(held):"), LARGE,
    )  # fmt: skip
