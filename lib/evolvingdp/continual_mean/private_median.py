"""PrivateMedian: a prior for the mean from the users' first samples, by the exponential mechanism on a public grid.

**Computes** the middle of one of ceil(1 / (2 * 2^(-l/2))) bins of [0, 1], near the median of the means of K arrays.

**Guarantee.** epsilon-DP, unit: all samples of one user; the arrival pattern, and with it the layout of the arrays, is
public.  One user fills parts of at most two arrays, so that the cost c(y) changes by at most 2 (attained) and
exp(-epsilon/4 c) suffices.

**Error.** |prior - mean| <= 2 sqrt(2^(-l) ln(2K/delta)) with probability 1 - delta - beta (Claim E.1).

**Source.** Algorithm 7 of George et al. (2022).  Applies E-CM-8:  K is rounded up, and the condition of Algorithm 6 asks
for K full arrays.  Which samples fill them the paper leaves open; here the first 2^(l-1) of each user, users by id.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks


def n_arrays(epsilon: float, level: int, beta: float) -> int:
    """K = ceil(16 / epsilon * ln(2^(level/2) / beta))."""
    checks.positive(epsilon=epsilon, beta=beta)
    return max(1, math.ceil(16 / epsilon * math.log(2 ** (level / 2) / beta)))


def bins(level: int) -> NDArray[np.float64]:
    """Middles of the bins of [0, 1] of length 2 * 2^(-level/2); the last may be shorter.  One at levels 1, 2 (E-CM-9)."""
    length = min(2 * 2 ** (-level / 2), 1.0)
    edges = np.append(np.arange(0, 1 - 1e-12, length), 1.0)
    middles: NDArray[np.float64] = (edges[1:] + edges[:-1]) / 2
    return middles


def probabilities(means: NDArray[np.float64], epsilon: float, level: int) -> NDArray[np.float64]:
    """The law of the released middle, given the means (K,) of the arrays: what `draw` samples from."""
    checks.positive(epsilon=epsilon)
    checks.integer_at_least(1, level=level)
    if means.ndim != 1 or not len(means) or not ((means >= 0) & (means <= 1)).all():
        raise ValueError(f"means must be one-dimensional, one or more numbers in [0, 1], got shape {means.shape}")
    middles = bins(level)
    nearest = np.argmin(np.abs(means[:, None] - middles[None, :]), axis=1)
    votes = np.bincount(nearest, minlength=len(middles))
    below = np.cumsum(votes) - votes
    above = len(means) - below - votes
    cost = np.maximum(below, above)
    weights = np.exp(-epsilon / 4 * (cost - cost.min()))
    law: NDArray[np.float64] = weights / weights.sum()
    return law


@checks.draws
def draw(means: NDArray[np.float64], epsilon: float, level: int, rng: np.random.Generator) -> float:
    """One private prior from the means of the arrays, each in [0, 1]."""
    law = probabilities(means, epsilon, level)
    place = int(np.searchsorted(np.cumsum(law), rng.random(), side="right"))
    return float(bins(level)[min(place, len(law) - 1)])
