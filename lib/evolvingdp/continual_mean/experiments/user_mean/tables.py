"""When Algorithm 6 pays: its calculated noise against Algorithm 2's, and the step from which its condition holds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evolvingdp.continual_mean import algorithms, theory
from evolvingdp.continual_mean.user_mean import UserMean


def advantage(epsilon: float, beta: float) -> pd.DataFrame:
    """Exact: noise of Algorithm 2 over that of Algorithm 6 when all users have used up their caps, on a grid of n and m."""
    rows = []
    for n_users in (10**3, 10**4, 10**5, 10**6):
        for power in range(4, 25, 2):
            naive, full = (make(n_users, 2**power, epsilon, beta=beta) for make in (algorithms.naive, algorithms.full))
            rows.append(
                {
                    "n_users": n_users,
                    "cap": 2**power,
                    "epsilon": epsilon,
                    "ratio": _average_noise(naive) / _average_noise(full),
                    "diverse": n_users >= theory.arrays_needed(full, 2**power),
                }
            )
    return pd.DataFrame(rows)


def _average_noise(made: UserMean) -> float:
    """Standard deviation of the noise of the sum, half of each tree's digits being 1."""
    variance = 0.0
    for tree in range(made.n_trees):
        sums = made.prefix_sums(made.capacity)
        variance += sums.l1 / 2 * made.noise(tree, sums, made.user_sensitivity(tree)).variance
    return math.sqrt(variance)


def diverse_from(made: UserMean, users: ArrayLike, points: int = 200) -> float:
    """From which of `points` even steps on the diversity condition (11) holds to the end, as a fraction; inf for never."""
    who = np.asarray(users)
    grid = np.linspace(1, len(who), points).astype(np.int64)
    counts, holds, last = np.zeros(made.n_users, dtype=np.int64), [], 0
    for step in grid:
        counts += np.bincount(who[last:step], minlength=made.n_users)
        last = int(step)
        holds.append(theory.diverse(made, counts))
    failing = np.flatnonzero(~np.array(holds))
    if not len(failing):
        return 0.0
    return float(grid[failing[-1] + 1] / len(who)) if failing[-1] + 1 < len(grid) else math.inf
