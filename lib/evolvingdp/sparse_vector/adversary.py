"""An explicit adversary against ThresholdMonitor: what its noise costs at least.

It asks, again and again, a query that only the first of two possible inputs of a user meets, and one that only the second
meets, both `position` above what the other users sum up to, until each input has counted `reports` (fresh users keep the
sum). The number of noes before is all that there is to know; its law is a pair of negative binomials. The loss found is a
**lower bound** on that of the mechanism, attained to 1e-40 by finitely many queries.
"""

from __future__ import annotations

import math

from scipy.optimize import minimize_scalar

from evolvingdp.core import checks
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.privacy import Array, difference, excess_mass, largest_epsilon, waiting_law


@checks.plain
def delta_attained(epsilon: float, noise: MonitorNoise | IntegerNoise, reports: int, position: float) -> float:
    """The delta that the adversary needs at `epsilon` under replacement; the others sum to the threshold less `position`."""
    return excess_mass(epsilon, *_losses(noise, reports, position))


def _losses(noise: MonitorNoise | IntegerNoise, reports: int, position: float) -> tuple[Array, Array]:
    """The privacy losses of all that can be seen, and their probabilities."""
    checks.integer_at_least(1, reports=reports)
    log_with, log_without = float(noise.log_sf(position - 1)), float(noise.log_sf(position))
    gain = float(noise.log_cdf(position) - noise.log_cdf(position - 1))  # of a no
    slow, quick = (waiting_law(reports, log, math.log(-math.expm1(log))) for log in (log_without, log_with))
    noes, law = difference(*slow, *quick)
    return gain * noes, law


@checks.plain
def epsilon_attained(delta: float, noise: MonitorNoise | IntegerNoise, reports: int) -> float:
    """The largest epsilon at which the adversary, at its best position, still needs more than `delta`.

    With integer noise that is one below the threshold, where it attains the bound.
    """

    def at(position: float) -> float:
        losses, law = _losses(noise, reports, position)
        return largest_epsilon(lambda epsilon: excess_mass(epsilon, losses, law) - delta)

    if isinstance(noise, IntegerNoise):
        return at(1 / noise.grid)
    best = minimize_scalar(lambda z: -at(z), bounds=(-noise.cap, noise.cap + 1), method="bounded", options={"xatol": 1e-3})
    return max(-float(best.fun), at(0.5))
