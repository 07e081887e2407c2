"""Promises that no small run shows: what pieces compose to, calibrations for long runs, and samplers of integers.

- "exact law": all integers that a sampler may draw are enumerated (`exact.integers`), or one of two parts is integrated;
- "composition": the exact loss of many pieces, against what the library's accounting gives each of them;
- "adversary": what one adversary learns, exactly: a lower bound that an upper bound meets;
- "formula": the analysis that noise is calibrated with, at the scale that its sampler draws with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.stats import norm

from evolvingdp.audit.exact import integers
from evolvingdp.audit.exact.laws import composed_epsilon, pair_epsilon, smallest_epsilon
from evolvingdp.core import accounting
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, IntegerNoise, Laplace, MonitorNoise
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.sparse_vector import calibration, privacy
from evolvingdp.sparse_vector.moved_queries import delta_of_moved, smallest_moved_scale
from evolvingdp.sparse_vector.stable import stable_monitor

LAW, COMPOSED, ADVERSARY, FORMULA = HOW = ("exact law", "composition", "adversary", "formula")
_EPSILON, _DELTA, _REPORTS = 0.8, 1e-6, 3  # no epsilon is 1: its inverse would be the same


@dataclass(frozen=True)
class Measured:
    """What is promised, and the most that is lost, both epsilons at `delta`; of the worst of `tried` settings."""

    promised: float
    loss: float
    delta: float = 0.0
    settings: str = ""
    tried: int = 1


@dataclass(frozen=True)
class Entry:
    """A row of the ledger, and how it is measured: alone, or the worst of so many settings drawn with a seed."""

    id: str
    chapter: str
    mechanism: str
    unit: str
    neighbours: str
    how: str
    measure: Callable[..., Measured]


def formulas() -> Iterator[Entry]:
    yield from _accounting()
    yield from _integers()
    yield from _chapters()
    yield from _calibrations()


def _accounting() -> Iterator[Entry]:
    def row(id: str, name: str, unit: str, measure: Callable[[], float]) -> Entry:
        words = (unit, "any two sequences of values")
        return Entry(id, "core", name, *words, COMPOSED, lambda: Measured(_EPSILON, measure(), _DELTA))

    advanced, many = (partial(law, _EPSILON, _DELTA) for law in (accounting.advanced, accounting.optimal))
    yield row("advanced_composition", "Advanced composition", "100 reports", lambda: _composed(advanced(100), 100))
    yield row("optimal_composition", "Optimal composition", "40 reports", lambda: _composed(many(40), 40))
    pieces = lambda: composed_epsilon(many(30_000), 30_000, _DELTA)  # noqa: E731
    yield row("optimal_composition_many", "Optimal composition", "30,000 reports", pieces)
    for id, name, law in (("gaussian", "Mu", accounting.gaussian_mu), ("concentrated", "Rho", accounting.concentrated_rho)):
        yield Entry(
            f"{id}_accounting", "core", f"{name} of Gaussian noise", "Gaussian noise", "numbers that differ by 1", COMPOSED,
            partial(_accounted, law),
        )  # fmt: skip


def _accounted(law: Callable[[float, float], float]) -> Measured:
    """The worst at a small and at a large epsilon, between which textbooks' formulas end."""
    found = []
    for epsilon in (_EPSILON, 10 * _EPSILON):
        mu = law(epsilon, _DELTA)
        found.append(Measured(epsilon, _normal(mu if law is accounting.gaussian_mu else math.sqrt(2 * mu)), _DELTA))
    return max(found, key=lambda one: one.loss / one.promised)


def _composed(one: float, reports: int) -> float:
    """The epsilon of randomized responses, from the laws of all reports together, report by report."""
    law, keep = np.ones(1), 1 / (1 + math.exp(-one))
    for _ in range(reports):
        law = np.convolve(law, [1 - keep, keep])
    return pair_epsilon([law, law[::-1]], _DELTA)


def _normal(mu: float) -> float:
    """The epsilon of Gaussian noise, from the tails of the loss, which is normal."""
    spread = norm(mu * mu / 2, mu)
    return smallest_epsilon(lambda epsilon: spread.sf(epsilon) - np.exp(epsilon + spread.logcdf(-epsilon)) - _DELTA)


def _integers() -> Iterator[Entry]:
    def row(id: str, name: str, share: Callable[[], float], delta: float = 0.0) -> Entry:
        words = ("a number", "numbers that differ by 1", LAW)
        return Entry(id, "core", f"{name}, as a share", *words, lambda: Measured(1.0, share(), delta))

    yield row("discrete_laplace_law", "Discrete Laplace noise", integers.laplace_share)
    yield row("discrete_gaussian_law", "Discrete Gaussian noise", partial(integers.gaussian_share, _DELTA), _DELTA)


def _chapters() -> Iterator[Entry]:
    def permanent() -> Measured:
        settings = Rappor(n_bits=2, n_cohorts=1, one_from_zero=0.1, one_from_one=0.9)
        return Measured(settings.epsilon_permanent, settings.epsilon_of_reports(60))

    yield Entry(
        "rappor_permanent", "heavy_hitters", "RAPPOR, 60 reports of one word", "all reports of one word", "any two words",
        FORMULA, permanent,
    )  # fmt: skip


def _calibrations() -> Iterator[Entry]:
    """Of ThresholdMonitor, whose worst adversary is too long to be followed."""

    def row(id: str, name: str, how: str, measure: Callable[[], float], neighbours: str = "replacement of a user") -> Entry:
        words = ("all answers, a user in all steps", neighbours)
        return Entry(id, "sparse_vector", name, *words, how, lambda: Measured(_EPSILON, measure(), _DELTA))

    def loss(method: str, unit: str) -> float:
        scale = outer_scale(calibration.calibrate(_EPSILON, _DELTA, _REPORTS, method=method, unit=unit).noise)
        return privacy.epsilon_of_delta(_DELTA, scale, _REPORTS, unit)

    for method in calibration.METHODS:
        for unit in privacy.UNITS:
            yield row(
                f"threshold_monitor_{method}_{unit}".replace("-", "_"), f"ThresholdMonitor, calibration {method}", FORMULA,
                partial(loss, method, unit), "a user is replaced" if unit == "replacement" else "a user more or less",
            )  # fmt: skip

    def attained() -> float:
        noise = calibration.calibrate(_EPSILON, _DELTA, _REPORTS).noise
        return privacy.epsilon_attained(_DELTA, Laplace(outer_scale(noise)), _REPORTS)

    yield row("threshold_monitor_attained", "ThresholdMonitor, exact calibration, attained", ADVERSARY, attained)

    def whole() -> float:
        scale = calibration.calibrate(_EPSILON, _DELTA, _REPORTS).scale
        return privacy.epsilon_attained(_DELTA, DiscreteLaplace(scale), _REPORTS)

    yield row("integer_noise", "ThresholdMonitor, integer noise, attained", ADVERSARY, whole)

    def stable() -> float:
        """Whoever holds something alone is told of too rarely to be counted in delta."""
        steps = 10**6
        method = stable_monitor(_EPSILON, _DELTA, _REPORTS, steps, "integer")
        noise: Any = method.noise
        spent = 2 * steps * IntegerNoise(noise.scale, int(method.threshold)).revealed
        return privacy.epsilon_of_delta(_DELTA - spent, noise.scale, _REPORTS) if spent < _DELTA else math.inf

    yield row("stable_monitor_calibrated", "StableMonitor, calibration for a million steps", FORMULA, stable)

    def normal() -> float:
        """The epsilon at which the queries that a user moves cost delta, at the scale that is drawn."""
        drawn = normal_scale(Gaussian(smallest_moved_scale(_EPSILON, _DELTA, _REPORTS, 30)))
        return smallest_epsilon(lambda epsilon: delta_of_moved(epsilon, drawn, _REPORTS, 30) - _DELTA)

    yield row("threshold_monitor_normal", "ThresholdMonitor, normal noise, 30 queries", FORMULA, normal)

    def limited() -> Measured:
        """It must be drawn as `sf` and `cdf` state."""
        noise = IntegerNoise(1.4, 2)
        alike = all(integers.sampled_as_stated(*kind) for kind in ((noise, 34), (IntegerNoise(0.7, 1), 17)))
        return Measured(1 / noise.scale, integers.limited_loss(noise) if alike else math.inf)

    def printed() -> Measured:
        """The most by which logarithms of yes and no change; it must be drawn as `sf` and `cdf` state."""
        noises = MonitorNoise(0.3, 2.0), MonitorNoise(2.0, 1.5)
        if not all(map(drawn_as_stated, noises)):
            return Measured(1.0, math.inf)
        z = [np.linspace(-9.0, 9.0, 2001) * noise.scale for noise in noises]
        changes = [
            noise.scale * np.abs(log(at + 1) - log(at)).max()
            for noise, at in zip(noises, z, strict=True)
            for log in (noise.log_sf, noise.log_cdf)
        ]
        return Measured(1.0, float(max(changes)))

    def exact(id: str, name: str, measure: Callable[[], Measured]) -> Entry:
        return Entry(id, "sparse_vector", name, "a sum", "sums that differ by 1", LAW, measure)

    yield exact("integer_noise_limited", "Integer noise with a limit", limited)
    yield exact("monitor_noise", "Noise of ThresholdMonitor as printed, as a share", printed)


class _Standard:
    """A generator of this law, and of no other, whose draws are these multiples of the scale that is asked for."""

    def __init__(self, law: str, multiples: Any) -> None:
        self._multiples = multiples
        setattr(self, law, self._drawn)

    def _drawn(self, loc: float, scale: Any, size: Any) -> Any:
        return loc + scale * np.resize(self._multiples, size)


def outer_scale(noise: Any) -> float:
    """By how much the noise that is drawn moves with its outer part."""
    low, high = (float(noise.draw(1, _Standard("laplace", [outer, 0.0]))[0]) for outer in (0.0, 1.0))
    return high - low


def drawn_as_stated(noise: Any, inner: int = 1 << 17) -> bool:
    """Whether `MonitorNoise` is drawn with the tails that it states: those of Laplace noise moved by what is drawn with an
    outer part of 0, averaged over so many quantiles of the inner part."""
    upper = (np.arange(inner // 2) + 0.5) / inner
    quantiles = np.append(np.log(2 * upper), -np.log(2 * upper))
    pairs = (np.column_stack([np.full(inner, outer), quantiles]) for outer in (0.0, 1.0))
    moved, one = (noise.draw(inner, cast(Any, _Standard("laplace", pair))) for pair in pairs)
    z = np.linspace(-3.0, 3.0, 13) * noise.scale
    found = [np.mean(Laplace(1.0).sf((each - moved) / (one - moved))) for each in z]
    return bool(np.allclose(found, noise.sf(z), rtol=1e-3))


def normal_scale(noise: Gaussian) -> float:
    """The scale that is drawn with."""
    return float(noise.draw(1, cast(Any, _Standard("normal", [1.0])))[0])
