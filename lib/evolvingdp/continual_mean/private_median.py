"""Private medians: `draw`, the paper's PrivateMedian, answers with the middle of a bin; `draw_between` with any number.

**PrivateMedian**, a prior for the mean from the users' first samples, by the exponential mechanism.

**Computes** the middle of one of ceil(1 / (2 * 2^(-l/2))) bins of [0, 1], near the median of the means of K arrays.

**Guarantee.** epsilon-DP, unit: all samples of one user; the arrival pattern, and with it the layout of the arrays, is
public.  One user fills parts of at most two arrays, so that the cost c(y) changes by at most 2 (attained) and
exp(-epsilon/4 c) suffices.

**Error.** |prior - mean| <= 2 sqrt(2^(-l) ln(2K/delta)) with probability 1 - delta - beta (Claim E.1).

**Source.** Algorithm 7 of George et al. (2022).  Applies E-CM-8:  K is rounded up, and the condition of Algorithm 6 asks
for K full arrays.  Which samples fill them the paper leaves open; here the first 2^(l-1) of each user, users by id.

**Between order statistics** the density at y in [0, 1] is proportional to exp(-epsilon c(y) / (2 moved)), where c(y) is the
least |i - K/2| of the ranks i that an x within `width` of y can have, #{Y < x} to #{Y <= x}.

**Guarantee.** epsilon-DP where a person moves at most `moved` of the K values, whose number is public: at each x both
ends of the ranks, and so the least distance c, move by at most `moved`, the weight at each y by a factor of at most
e^(epsilon/2), and their integral as well.  A short gap beside a long one attains it.  A user of the continual means moves
two arrays, a record is one value.

**Error.** Within `width` of the range of the values with probability 1 - exp(-epsilon (K - 1) / (4 moved)) / width: beyond
it c is K/2, and c is at most 1/2 on a stretch of at least `width`.  Without a width, equal values tell nothing: no gap is
near.

**Source.** Smith (2011), the exponential mechanism between order statistics; the width is as in Asi and Duchi (2020).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    middles = bins(level)
    nearest = np.argmin(np.abs(means[:, None] - middles[None, :]), axis=1)
    votes = np.bincount(nearest, minlength=len(middles))
    below = np.cumsum(votes) - votes
    above = len(means) - below - votes
    cost = np.maximum(below, above)
    weights = np.exp(-epsilon / 4 * (cost - cost.min()))
    law: NDArray[np.float64] = weights / weights.sum()
    return law


def draw(means: NDArray[np.float64], epsilon: float, level: int, rng: np.random.Generator) -> float:
    """One private prior from the means of the arrays, each in [0, 1]."""
    law = probabilities(means, epsilon, level)
    place = int(np.searchsorted(np.cumsum(law), rng.random(), side="right"))
    return float(bins(level)[min(place, len(law) - 1)])


def law_between(
    values: ArrayLike, epsilon: float, moved: int = 2, width: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges (K + 2,) in [0, 1] and probabilities (K + 1,): the law is uniform between two edges.

    `values` (K,) in [0, 1], of which one person moves at most `moved`; `width` in [0, 1/2].  Raises TypeError, ValueError.
    """
    checks.positive(epsilon=epsilon)
    checks.integer_at_least(1, moved=moved)
    checks.number(width=width)
    if not 0 <= width <= 0.5:
        raise ValueError(f"width must lie in [0, 0.5], got {width!r}")
    given = np.asarray(values)
    if given.ndim != 1 or given.dtype.kind not in "biuf" or not len(given):
        raise TypeError(f"values must be a one-dimensional array of one or more numbers, got {given.dtype} {given.shape}")
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"values must lie in [0, 1], got {given[~((given >= 0) & (given <= 1))][0]}")
    count = len(given)
    outwards = np.sign(2 * np.arange(count) + 1 - count)  # from the median
    edges = np.concatenate([[0.0], np.clip(np.sort(given.astype(float)) + width * outwards, 0.0, 1.0), [1.0]])
    with np.errstate(divide="ignore"):
        logs = np.log(np.diff(edges)) - epsilon / (2 * moved) * np.abs(np.arange(count + 1) - count / 2)
    weights = np.exp(logs - logs.max())
    return edges, weights / weights.sum()


def draw_between(values: ArrayLike, epsilon: float, rng: np.random.Generator, moved: int = 2, width: float = 0.0) -> float:
    """One private median; arguments as for `law_between`."""
    edges, law = law_between(values, epsilon, moved, width)
    ends = np.cumsum(law)
    place = int(np.searchsorted(ends / ends[-1], rng.random(), side="right"))
    low, high = edges[place : place + 2].tolist()
    drawn: float = low + (high - low) * rng.random()
    return drawn
