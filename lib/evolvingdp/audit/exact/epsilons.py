"""The epsilon at a delta: of Gaussian noise, of composed pure mechanisms, of any delta that falls."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from evolvingdp.core import accounting


def gaussian_epsilon(mu_squared: float, delta: float) -> float:
    """The epsilon at `delta` of Gaussian mechanisms whose squared mu add up to this."""
    return smallest_epsilon(lambda epsilon: accounting.delta_of_gaussian(math.sqrt(mu_squared), epsilon) - delta)


def composed_epsilon(one: float, pieces: int, delta: float) -> float:
    """The epsilon at `delta` of `pieces` mechanisms with a loss of `one` each, at worst."""
    return smallest_epsilon(lambda epsilon: accounting.delta_of_reports(one, epsilon, pieces) - delta)


def smallest_epsilon(falling: Callable[[float], float]) -> float:
    """Where a delta less what is allowed, as a function of epsilon, has fallen to 0; inf where it stays above."""
    low, high = 1e-12, 1.0
    if falling(low) <= 0:
        return 0.0
    while falling(high) > 0:
        high *= 2
        if high > 1e6:
            return math.inf
    return float(brentq(falling, low, high, xtol=1e-13, rtol=1e-13))
