"""Words drawn afresh: in every step each user holds one element, drawn independently from the law of that step, or none.

All that a monitor's counters depend on is how many users have counted how often: those of one count are alike, so that what
they hold is multinomial. `simulate` is exact at a cost of elements, steps and `reports`, whatever the number of users.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


def simulate(
    monitor: ThresholdMonitorEvolving, n_users: int, laws: ArrayLike, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which elements are reported, (steps, elements), and how many users are not yet deleted after each step, (steps,).

    `laws` (steps, elements): the probability of holding each; what is missing to 1 holds none of them. The law of
    `ThresholdMonitorEvolving.step_elements`.  Raises ValueError for laws that are none, and where users would be deleted for
    the steps that they are in.
    """
    checks.integer_at_least(1, n_users=n_users)
    table = np.atleast_2d(np.asarray(laws, dtype=float))
    if monitor.moved is not None and monitor.moved < len(table):
        raise ValueError(f"moved must be at least the steps, {len(table)}, got {monitor.moved}")
    if not np.all(table >= 0) or not np.all(table.sum(axis=1) <= 1 + 1e-9):
        raise ValueError("laws must hold rows of probabilities that sum to 1 at most")
    counted = np.zeros(monitor.reports + 1, dtype=np.int64)  # users by how often they counted; the last are deleted
    counted[0] = n_users
    above, active = np.zeros(table.shape, dtype=bool), np.zeros(len(table), dtype=np.int64)
    for step, law in enumerate(table):
        held = rng.multinomial(counted[:-1], np.append(law, max(0.0, 1 - law.sum())))[:, :-1]
        weights = held.sum(axis=0)
        above[step] = weights + monitor.noise.draw(len(weights), rng) >= monitor.threshold
        moved = held[:, above[step]].sum(axis=1)
        counted[:-1] -= moved
        counted[1:] += moved
        active[step] = counted[:-1].sum()
    return above, active
