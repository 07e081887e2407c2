"""StableMonitor: ThresholdMonitor for elements that are in no list, with the noise that finds the smallest groups.

**Computes** in every step the elements whose noisy weight, the number of active users who hold them, reaches a threshold,
by `ThresholdMonitorEvolving.step_held`: an element that nobody holds is never reported.

**Guarantee.** (epsilon, delta)-differential privacy of all reports of all steps together, for **replacement** of one user's
inputs in all steps, whatever the streams. A user is deleted after `reports` reports, and after `moved` steps in which it
holds something: whoever comes in every step is seen in so many. The domain does not matter: the threshold grows with
ln(moved / delta), not with ln(steps |X| / beta). A part of delta pays for elements that one user alone holds.

| noise | grows with | finds the smaller groups |
|---|---|---|
| "gaussian" | reports, and slowly with `moved` | for days, weeks and epochs: up to some ten thousand moved queries |
| "integer" | reports alone, where what is moved is free | beyond |

**Source.** Ours; the integer noise is min(N, t - 1 - G) where the paper's is w + min(v, Delta_1).
"""

from __future__ import annotations

import math

from evolvingdp.core import checks
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import GaussianNoise
from evolvingdp.sparse_vector.privacy import check_privacy
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

NOISES = ("gaussian", "integer")
FOUND = 0.99


@checks.plain
def stable_monitor(
    epsilon: float, delta: float, reports: int, moved: int, noise: str = "best", *, n_events: int = 1, found: float = FOUND
) -> ThresholdMonitorEvolving:
    """The lowest threshold with this `noise`; "best": the one that finds `n_events` smallest groups, as `smallest_group`.

    Raises ValueError for parameters out of range.
    """
    check_privacy(epsilon, delta)
    checks.integer_at_least(1, reports=reports, moved=moved)
    checks.one_of(("best", *NOISES), noise=noise)
    if noise == "best":
        made = [stable_monitor(epsilon, delta, reports, moved, kind) for kind in NOISES]
        return min(made, key=lambda one: smallest_group(one, n_events, found))
    if noise == "integer":
        law: IntegerNoise | GaussianNoise = IntegerNoise.unlisted(epsilon, delta, reports, moved)
    else:
        law = GaussianNoise.calibrated(epsilon, delta, reports, moved, listed=False)
    return ThresholdMonitorEvolving(law, float(law.limit or 0), reports, moved=moved)


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
