"""Entries of the ledger for ThresholdMonitor: step by step, all at once, its calibrations, and integer noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from evolvingdp.audit.exact import enumerated, queries
from evolvingdp.audit.exact.probes import replaced
from evolvingdp.audit.ledger.entry import ADVERSARY, EXACT, FORMULA, Entry
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
    id: str, name: str, covers: tuple[Any, ...], how: str, promised: float, measure: Any, delta: float = 0.0, neighbours: str = REPLACED, sampler_test: str = "",
) -> Entry:  # fmt: skip
    return Entry(
        id, "sparse_vector", name, covers, "all answers, a user in all steps", neighbours, how, promised, measure,
        delta, sampler_test,
    )  # fmt: skip


def _monitor() -> Iterator[Entry]:
    names = {
        "step": "step by step", "run": "all at once", "fixed": "fixed data", "elements": "all elements",
    }  # fmt: skip

    def loss(way: str) -> float:
        """All queries at once: in one block, and in some."""
        monitor = ThresholdMonitorEvolving.calibrated(calibrate(TWELVE, LARGE, 1), 0.5)

        def asked() -> float:
            return queries.alternating_loss(monitor, 5, LARGE, way)

        with replaced(threshold_monitor, "_FEWEST", 1), replaced(threshold_monitor, "_CELLS", 4):
            blocks = asked() if way == "run" else 0.0
            alike = way != "run" or queries.run_as_steps(replace(monitor, reports=7))
        return max(asked(), blocks) if alike else math.inf

    for way in queries.WAYS:
        yield entry(
            f"threshold_monitor_{way}", f"ThresholdMonitor, {names[way]}", _COVERS, EXACT, TWELVE, partial(loss, way),
            LARGE,
        )  # fmt: skip
    reports = 3

    def attained() -> float:
        noise = calibrate(EPSILON, DELTA, reports).noise
        return epsilon_attained(DELTA, MonitorNoise(queries.outer_scale(noise) / 10, noise.inner), reports)

    yield entry(
        "threshold_monitor_attained", "ThresholdMonitor, exact calibration, attained", _COVERS, ADVERSARY, EPSILON, attained,
        DELTA,
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
        LARGE,
    )  # fmt: skip


def _calibrations() -> Iterator[Entry]:
    """The loss that the analysis sees at the scale that the sampler draws with."""
    reports, _path = 3, "sparse_vector/calibration.py"

    def loss(method: str, unit: str) -> float:
        scale = queries.outer_scale(calibrate(EPSILON, DELTA, reports, method=method, unit=unit).noise)
        return privacy.epsilon_of_delta(DELTA, scale, reports, unit)

    for method in ("theorem", "epochs", "tight-proof", "renyi", "exact"):
        for unit in privacy.UNITS:
            yield entry(
                f"threshold_monitor_{method}_{unit}".replace("-", "_"), f"ThresholdMonitor, calibration {method}, {unit}",
                _COVERS, FORMULA, EPSILON, partial(loss, method, unit),
                DELTA,
                REPLACED if unit == "replacement" else "a user more or less",
                "test_samples_have_the_closed_form_law",
            )  # fmt: skip


def _integers() -> Iterator[Entry]:
    """Integer noise: attained, and as a bound; and with what nobody holds left out."""
    sampler = "test_integer_draws_have_the_closed_form_law"

    def attained() -> float:
        return epsilon_attained(DELTA, IntegerNoise.calibrated(EPSILON, DELTA, 3), 3)

    yield entry(
        "integer_noise", "ThresholdMonitor, integer noise, attained", (IntegerNoise,), ADVERSARY, EPSILON, attained,
        DELTA,
    )  # fmt: skip
    yield entry(
        "integer_noise_grid", "ThresholdMonitor, integer noise, fractions", (IntegerNoise,), ADVERSARY, EPSILON,
        lambda: epsilon_attained(DELTA, IntegerNoise.calibrated(EPSILON, DELTA, 3, grid=4), 3),
        DELTA,
    )  # fmt: skip

    def limited() -> float:
        """All kinds of this noise must be drawn as `sf` and `cdf` state."""
        noise = IntegerNoise(1.4, 2)
        kinds = ((IntegerNoise(0.7), 17), (IntegerNoise(0.7, None, 4), 68), (noise, 34), (IntegerNoise(0.7, 1, 2), 34))
        alike = all(enumerated.sampled_as_stated(*kind) for kind in kinds)
        return enumerated.limited_loss(noise, 34) / noise.loss if alike else math.inf

    yield entry(
        "integer_noise_limited", "integer noise with a limit, times its scale", (IntegerNoise,), EXACT, 1.0, limited,
        neighbours="sums that differ by 1",
    )  # fmt: skip
    covers, steps = (StableMonitor, StableMonitor.calibrated), 10**6

    def bound() -> float:
        method = StableMonitor.calibrated(EPSILON, DELTA, steps, 2**32, 3)
        noise = method.monitor.noise
        spent = 2 * steps * IntegerNoise(noise.scale, int(method.monitor.threshold)).revealed
        return privacy.epsilon_of_delta(DELTA - spent, noise.scale, 3) if spent < DELTA else math.inf

    yield entry(
        "stable_monitor", "StableMonitor, calibration", covers, FORMULA, EPSILON, bound,
        DELTA, sampler_test=sampler,
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
        LARGE,
    )  # fmt: skip
