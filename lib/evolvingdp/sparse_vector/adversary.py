"""An explicit adversary against ThresholdMonitor: what its noise costs at least.

It asks, again and again, a query that only the first of two possible inputs of a user meets, and one that only the second
meets, both `position` above what the other users sum up to, until each input has counted `reports` (fresh users keep the
sum). The number of noes before is all that there is to know; its law is a pair of negative binomials. The loss found is a
**lower bound** on that of the mechanism, attained to 1e-40 by finitely many queries.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln
from scipy.stats import nbinom

from evolvingdp.core import checks
from evolvingdp.sparse_vector.noise import Array, MonitorNoise

_TAIL = 1e-40


def delta_attained(epsilon: float, noise: MonitorNoise, reports: int, position: float) -> float:
    """The delta that the adversary needs at `epsilon` under replacement; the others sum to the threshold less `position`."""
    checks.integer_at_least(1, reports=reports)
    log_with, log_without = float(noise.log_sf(position - 1)), float(noise.log_sf(position))
    gain = float(noise.log_cdf(position) - noise.log_cdf(position - 1))  # of a no
    slow_first, slow = _waiting(reports, log_without)
    quick_first, quick = _waiting(reports, log_with)
    law = np.convolve(slow, quick[::-1])
    losses = gain * (slow_first - quick_first - len(quick) + 1 + np.arange(len(law)))
    above = losses > epsilon
    return float(np.sum(law[above] * -np.expm1(epsilon - losses[above])))


def _waiting(reports: int, log_yes: float) -> tuple[int, Array]:
    law = nbinom(reports, math.exp(log_yes))
    first, last = max(0, int(law.ppf(_TAIL)) - 1), int(law.isf(_TAIL)) + 1
    noes = np.arange(first, last + 1, dtype=float)
    log_no = math.log(-math.expm1(log_yes))
    return first, np.exp(gammaln(noes + reports) - gammaln(noes + 1) - gammaln(reports) + reports * log_yes + noes * log_no)


def epsilon_attained(delta: float, noise: MonitorNoise, reports: int) -> float:
    """The largest epsilon at which the adversary, at its best position, still needs more than `delta`."""

    def at(position: float) -> float:
        def excess(epsilon: float) -> float:
            return delta_attained(epsilon, noise, reports, position) - delta

        if excess(0.0) <= 0:
            return 0.0
        high = 1.0
        while excess(high) > 0:
            high *= 2
        return float(brentq(excess, 0.0, high, xtol=1e-10))

    best = minimize_scalar(lambda z: -at(z), bounds=(-noise.cap, noise.cap + 1), method="bounded", options={"xatol": 1e-3})
    return max(-float(best.fun), at(0.5))
