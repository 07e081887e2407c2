"""Scenes of what the sparse vector chapter's mechanisms cost: noise, privacy losses, calibration, prices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from operator import sub
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.sparse_vector import calibration, gaussian, noise, privacy
from evolvingdp.sparse_vector.calibration import METHODS, QUERIES, calibrate
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.privacy import UNITS

_NAN, _INF = math.nan, math.inf
_TARGETS = ((0.05, 1e-9), (1.0, 1e-6), (5.0, 1e-3), (12.0, 1e-9))


def privacy_losses(_: np.random.Generator) -> Iterator[Any]:
    for scale, reports, unit in itertools.product((0.15, 0.5, 18.0, 150.0), (1, 1.75, 3, 40), UNITS):
        for epsilon in (0.0, 0.05, 1.0, 5.0, 12.0):
            delta = outcome(privacy.delta_of_epsilon, epsilon, scale, reports, unit)
            yield delta if isinstance(delta, str) else (delta, math.log(delta))
        for delta in (1e-30, 1e-3, 0.9999):
            yield privacy.epsilon_of_delta(delta, scale, reports, unit) if scale in (0.5, 18.0) and reports != 3 else 0.0
    yield privacy.delta_of_epsilon(1.0, 5.0, 2), privacy.epsilon_of_delta(1e-6, 5.0, 2), privacy.smallest_scale(1.0, 1e-6, 2)
    for scale, reports, unit in itertools.product((0.3, 4.0), (1, 2.5, 6), UNITS):
        for losses, law in privacy.loss_distributions(scale, reports, unit):
            yield losses[:30], losses[-30:], len(losses), np.log(law[:30]), np.log(law[-30:]), law[::9]
    for reports, log_yes in ((1, -0.1), (4, -3.0), (2.5, -1e-3), (1, -60.0), (1, -7.2), (30, -9.5), (1, -11.0)):
        found = outcome(privacy.waiting_law, reports, log_yes, math.log(-math.expm1(log_yes)))
        yield (
            found
            if isinstance(found, str)
            else (len(found[0]), found[0][[0, -1]], found[1][::997], np.log(found[1][[0, -1]]))
        )
    slow, quick, law = np.arange(3.0, 6.0), np.arange(1.0, 5.0), np.array([0.2, 0.3, 0.5])
    yield privacy.difference(slow, law, quick, np.array([0.1, 0.2, 0.3, 0.4]))
    yield [privacy.excess_mass(epsilon, slow, law) for epsilon in (0.0, 3.0, 4.0, 4.5, 9.0)]
    yield [privacy.largest_epsilon(partial(sub, start)) for start in (0.0, 0.9, 3.0, 700.0)]


def privacy_scales(_: np.random.Generator) -> Iterator[Any]:
    for (epsilon, delta), reports, unit in itertools.product((*_TARGETS, (80.0, 1e-12)), (1, 4.5, 30), UNITS):
        if (epsilon == 5) != (reports == 4.5):
            yield privacy.smallest_scale(epsilon, delta, reports, unit)
        elif epsilon <= 5:
            yield [privacy.smallest_renyi_scale(epsilon, delta, reports, shared=one, unit=unit) for one in (False, True)]
    yield privacy.smallest_scale(600.0, 1e-3, 1), privacy.smallest_scale(1e-3, 0.3, 1), privacy.smallest_scale(0.5, 0.99, 1)
    for scale, budget, delta in itertools.product((0.02, 0.04, 0.4, 3.0, 90.0), (0.5, 200), (1e-9, 0.3)):
        yield privacy.renyi_epsilon(delta, scale, budget), privacy.renyi_epsilon(delta, scale, budget, shared=True)
        yield privacy.renyi_epsilon(delta, scale, budget, unit="add-remove")
    for order, scale in itertools.product((1.001, 1.5, 2.0, 7.0, 60.0), (0.01, 0.5, 2.0, 20.0)):
        yield privacy.renyi_rates(order, scale)
    for divergence, order, delta in ((0.1, 2.0, 1e-6), (3.0, 9.0, 1e-9), (0.0, 1.5, 0.9), (0.01, 40.0, 0.5)):
        yield privacy.renyi_to_epsilon(divergence, order, delta)


def privacy_refusals(_: np.random.Generator) -> Iterator[Any]:
    calls: tuple[tuple[Callable[..., float], tuple[float, float, float]], ...] = (
        (privacy.delta_of_epsilon, (1.0, 2.0, 3)),
        (privacy.smallest_scale, (1.0, 1e-6, 3)),
        (privacy.epsilon_of_delta, (0.1, 2.0, 3)),
        (privacy.renyi_epsilon, (1e-6, 2.0, 3)),
        (privacy.smallest_renyi_scale, (1.0, 1e-6, 3)),
    )
    for call, right in calls:
        for place, wrong in itertools.product(range(3), (0.0, -1.0, 1.0, _INF, _NAN, 1e-31, "1")):
            if (call, place) != (privacy.smallest_renyi_scale, 2):
                found = outcome(call, *right[:place], wrong, *right[place + 1 :])
                yield found if isinstance(found, str) else float(found)
        yield outcome(call, *right, unit="user")


def monitor_calibration(_: np.random.Generator) -> Iterator[Any]:
    for (epsilon, delta), method, unit, queries in itertools.product(_TARGETS, METHODS, UNITS, QUERIES):
        reports = 1 if epsilon == 12 else 4
        if epsilon < 5 or method in ("exact", "renyi") or queries == "interval":
            yield outcome(calibrate, epsilon, delta, reports, method=method, unit=unit, queries=queries)
    yield calibrate(1.0, 1e-6, 2), calibrate(1.0, 1e-6, 2).scale, calibrate(1.0, 1e-6, 2, method="tight-proof")
    for method in METHODS:
        yield outcome(calibrate, 900.0, 1e-200, 1, method=method), outcome(calibrate, 1500.0, 1e-9, 1, method=method)
        for epsilon, delta in ((0.0, 0.1), (1.0, 1.0), (1.0, 0.0), (_INF, 0.1)):
            yield outcome(calibrate, epsilon, delta, 1, method=method, unit="add-remove")
    wrongs: tuple[dict[str, Any], ...] = ({"method": "best"}, {"unit": "user"}, {"queries": "any"}, {"reports": 0})
    for wrong in (*wrongs, {"epsilon": 0.0}, {"delta": 1.0}, {"delta": 0.0}):
        yield outcome(calibrate, **{"epsilon": 1.0, "delta": 1e-6, "reports": 2, **wrong})
    for inner in (1.0, 2.0, 2.0001, 17.0, 1e6, _INF, _NAN):
        yield outcome(calibration.paper_noise, inner)
    for inner, delta, reports in ((0.1, 1e-6, 1), (0.5, 1e-2, 30), (2.0, 1e-9, 400)):
        yield calibration.theorem_loss(inner, delta, reports)
    for inner, delta, reports in itertools.product((2.01, 6.0, 90.0, 4000.0), (1e-12, 0.9), (1, 12, 3000)):
        yield calibration.tight_loss(calibration.paper_noise(inner), delta, reports)
    for epsilon, delta, reports in ((1.0, 0.5, 30), (2.0, 0.2, 7)):
        yield calibration._epochs(epsilon, delta, reports)
    least = calibration.tight_loss(calibration.paper_noise(2.000001), 1e-3, 2)
    yield least, [calibrate(least + by, 1e-3, 2, method="tight-proof", unit="add-remove") for by in (-0.4, 0.4)]


def noises(rng: np.random.Generator) -> Iterator[Any]:
    for kind, scale in itertools.product(noise.KINDS, (0.2, 1.0, 33.0)):
        yield noise.sf(kind, np.array([-70.0, -1.0, 0.0, 1e-3, 0.9, 40.0]), scale), noise.sf(kind, 0, scale)
        yield [noise.isf(kind, share, scale) for share in (1e-300, 1e-9, 0.03, 0.5)]
        yield noise.draw(kind, scale, rng), noise.draw(kind, scale, rng, size=3), noise.draw(kind, scale, rng, size=(2, 2))
    for cap, inner in itertools.product((0.01, 0.3, 25.0), (0.0, 0.01, 3.0, 250.0, 1e4)):
        law = MonitorNoise(cap, inner)
        yield law.scale, law.loss, law.tail_constant
        places = np.array([-60.0, -9.0, -0.3, -1e-6, 0.0, 1e-6, 0.02, 0.09, 0.0999, 0.1, 0.2, 3.0, 65.0]) * 10 * cap
        yield law.log_sf(places), law.log_cdf(places), law.sf(places[::2]), law.cdf(places[::2]), law.sf(1), law.cdf(-1)
        for share in (1e-200, 1e-3, 0.3, 0.47, 0.5, 0.53, 0.56, 0.0):
            yield outcome(law.isf, share), outcome(law.lower_quantile, share)
        yield law.sample(3, rng), law.draw(rng), law.sample((2, 2), rng), law.sample(0, rng), law.draw(rng)
    wrongs: tuple[tuple[Any, Any], ...] = ((0.0, 1.0), (1.0, -1.0), (1.0, _INF), (1.0, _NAN), (_INF, 1.0), ("1", 1.0))
    for wrong in wrongs:
        yield outcome(MonitorNoise, *wrong)


def integer_noises(rng: np.random.Generator) -> Iterator[Any]:
    for scale, limit, grid in itertools.product((0.05, 3.00001, 60.0), (None, 1, 6, 500), (1, 4)):
        law = IntegerNoise(scale, limit, grid)
        yield law, law.scale, law.loss, law.revealed, math.log(law.revealed or 1.0)
        places = np.array([-400.0, -7.0, -1.0, -0.5, -1e-9, 0.0, 1e-9, 0.25, 1.0, 5.0, 5.5, 6.0, 7.0, 499.0, 500.0, 600.0])
        yield law.log_sf(places), law.log_cdf(places), law.sf(places[4:8]), law.cdf(places[4:8]), law.sf(1), law.cdf(1)
        for share in (1e-99, 0.47, 0.5, 0.8, 1.0, 0.0, 1.1):
            yield outcome(law.isf, share), outcome(law.lower_quantile, share)
        yield law.sample(12, rng), law.draw(rng), law.sample((2, 2), rng), law.sample(0, rng), law.draw(rng)
    for (epsilon, delta), unit, grid in itertools.product(_TARGETS, UNITS, (1, 4)):
        yield IntegerNoise.calibrated(epsilon, delta, 1 if epsilon < 4 else 8, unit=unit, grid=grid)
    yield IntegerNoise.calibrated(1.0, 1e-6, 3), outcome(IntegerNoise.calibrated, 1.0, 1e-6, 0)
    wrongs: tuple[tuple[Any, ...], ...] = ((0.0,), (_INF,), (1.0, 0), (1.0, 1.5), (1.0, None, 3), (1.0, None, 0))
    for wrong in wrongs:
        yield outcome(IntegerNoise, *wrong), outcome(IntegerNoise.calibrated, 1.0, 1e-6, 3, grid=wrong[-1])


def gaussian_costs(_: np.random.Generator) -> Iterator[Any]:
    for order, scale in (
        (1.5, 0.7),
        (2.0, 0.5),
        (2.0001, 0.5),
        (3.0, 2.0),
        (5.0, 12.0),
        (30.0, 9.0),
        (8.0, 70.0),
        (4.0, 0.9),
    ):
        yield [gaussian.price(order, scale, theta) for theta in (0.0, 1e-3, 0.05, 2.0)]
        for reports, moved in ((1, 1), (5, 1000), (300, 40), (gaussian.ALL, 20), (3, 1e6)):
            yield gaussian.search_cost(order, scale, reports, moved)
            yield gaussian.threshold_cost(order, scale, 0.5 + reports % 2, min(reports, 99), 4 * moved, moved)
        yield gaussian.laplace_cost(order, scale, 1), gaussian.laplace_cost(order, scale, 12)
    for epsilon, delta in _TARGETS:
        for reports, moved in ((1, 25), (9, 25), (gaussian.ALL, 50))[2 * (epsilon > 5) :]:
            yield gaussian.smallest_gaussian_scale(epsilon, delta, reports, moved)
        yield gaussian.smallest_joint(epsilon, delta, lambda order, scale: order * (order - 1) / (2 * scale**2))
    for wrong in ((0.0, 1e-6, 1, 1), (1.0, 0.0, 1, 1), (1.0, 1e-6, 1, _NAN), (1.0, 1e-6, 1, 0)):
        yield outcome(gaussian.smallest_gaussian_scale, *wrong)


def scenes() -> dict[str, Scene]:
    losses = (privacy_losses, privacy_scales, privacy_refusals, monitor_calibration)
    return {f"sparse_{scene.__name__}": scene for scene in (*losses, noises, integer_noises, gaussian_costs)}
