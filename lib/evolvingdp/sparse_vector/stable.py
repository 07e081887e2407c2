"""StableMonitor: ThresholdMonitor for elements that are in no list, with the noise that finds the smallest groups.

**Computes** in every step the elements whose noisy weight, the number of active users who hold them, reaches a threshold,
by `ThresholdMonitorEvolving.step_held`: an element that nobody holds is never reported.

**Guarantee.** (epsilon, delta)-differential privacy of all reports of all steps together, for **replacement** of one user's
inputs in all steps, whatever the streams. A user is deleted after `reports` reports, and after `moved` steps in which it
holds something. A part of delta pays for elements that one user alone holds. Noise "gaussian" grows slowly with `moved` and
finds the smaller groups up to some ten thousand; "integer" noise grows with `reports` alone.

**Source.** Ours; the proofs are on the chapter's page.
"""

from __future__ import annotations

import math

import scipy
from scipy.special import ndtri

from evolvingdp.core import checks
from evolvingdp.core.noise import GaussianNoise, IntegerNoise
from evolvingdp.sparse_vector.moved_queries import smallest_moved_scale
from evolvingdp.sparse_vector.privacy import check_privacy, smallest_scale
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

NOISES = ("gaussian", "integer")
FOUND = 0.99
SHARES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.98)  # of delta, for integer noise
ALONE = 0.2  # of delta, for elements that one user alone holds, with normal noise


@checks.plain
def stable_monitor(
    epsilon: float, delta: float, reports: int, moved: int, noise: str = "best", *, n_events: int = 1, found: float = FOUND
) -> ThresholdMonitorEvolving:
    """The monitor of the lowest threshold with this `noise`; "best": the one that finds `n_events` smallest groups, as
    `smallest_group`. `reports`: of a user; `moved`: steps in which a user holds anything.

    The monitor's `delta(epsilon)` computes its guarantee anew from what it holds.  Raises ValueError for parameters out of
    range.
    """
    check_privacy(epsilon, delta)
    checks.integer_at_least(1, reports=reports, moved=moved)
    checks.one_of(("best", *NOISES), noise=noise)
    if noise == "best":
        made = [stable_monitor(epsilon, delta, reports, moved, kind) for kind in NOISES]
        return min(made, key=lambda one: smallest_group(one, n_events, found))
    law = (_integer if noise == "integer" else _gaussian)(epsilon, delta, reports, moved)
    return ThresholdMonitorEvolving(law, float(law.limit), reports, moved=moved)


def _integer(epsilon: float, delta: float, reports: int, moved: int) -> IntegerNoise:
    """The least limit, over the shares of delta for what 2 `moved` queries reveal; for few queries basic composition, which
    needs no delta, pays for their answers."""
    reports, made = min(reports, moved), []
    scales = {share: smallest_scale(epsilon, share * delta, reports) for share in SHARES} | {1e-6: 2 * moved / epsilon}
    for share, scale in scales.items():
        one = IntegerNoise(scale, 1)
        excess = math.log(one.revealed * 2 * moved / ((1 - share) * delta))
        made.append(IntegerNoise(one.least_scale, 1 + max(0, math.ceil(excess * one.scale))))
    return min(made, key=lambda one: one.limit)


def _gaussian(epsilon: float, delta: float, reports: int, moved: int) -> GaussianNoise:
    """`ALONE` of delta pays for elements that nobody else holds, the rest for the others."""
    scale = smallest_moved_scale(epsilon, (1 - ALONE) * delta, reports, moved)

    def spent(limit: float) -> float:
        return moved * GaussianNoise(scale, limit).revealed - ALONE * delta

    high = 2 + scale * float(-ndtri(min(0.5, ALONE * delta / (2 * moved))))
    limit = float(scipy.optimize.brentq(spent, 1e-9, high, xtol=1e-9 * high)) * (1 + 1e-8) if spent(1e-9) > 0 else 1e-9
    return GaussianNoise(scale, limit)


@checks.plain
def smallest_group(monitor: ThresholdMonitorEvolving, n_events: int = 1, found: float = FOUND) -> float:
    """The weight from which `n_events` events are all found with probability `found`, while nobody is deleted."""
    checks.integer_at_least(1, n_events=n_events)
    checks.probability(found=found)
    return monitor.threshold - monitor.noise.lower_quantile((1 - found) / n_events)


@checks.plain
def smallest_detectable(epsilon: float, delta: float, horizon: int, n_elements: int, found: float = FOUND) -> int:
    """A lower bound, in users: no (epsilon, delta)-private method of any kind finds a smaller group with probability
    `found`. That holds also for methods that report, on average over all steps, one element that nobody holds, and for
    users who are in one event only. The proof is on the chapter's page.
    """
    check_privacy(epsilon, delta)
    checks.integer_at_least(2, horizon=horizon, n_elements=n_elements)
    checks.probability(found=found)
    per_user = delta / math.expm1(epsilon)
    quiet = math.floor(math.log((0.5 + per_user) / (1 / n_elements + per_user)) / epsilon)
    rest = math.log((max(found - 0.5, 0.0) + per_user) / (0.5 / horizon + per_user)) / epsilon
    return max(1, quiet + math.ceil(rest))
