"""The paper's algorithms as settings of `UserMean`, the mean without privacy, and what we recommend.

`start`, `step` and `release` of `online` and `offline` run any of them.  **Source.** George et al. (2022),
Algorithms 2 to 6.  Applies E-CM-11 (`wishful`); the others through `UserMean`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.prefix_sums import best_branching
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import checks


@checks.plain
def naive(n_users: int, samples_per_user: int, epsilon: float, **options: Any) -> UserMean:
    """Algorithm 2: every sample is an element of one binary tree, and a user has `samples_per_user` of them.

    Error O(1/sqrt(t) + m log^1.5(T) / (t epsilon)), equation (1).
    """
    return UserMean(n_users, samples_per_user, epsilon, blocks="single", prior="none", **options)


@checks.plain
def wishful(n_users: int, samples_per_user: int, epsilon: float, prior_mean: float, **options: Any) -> UserMean:
    """Algorithm 3: a user's sum of all m samples is projected and becomes an element; nothing before the first full user.

    `prior_mean` must be within 1/sqrt(m) of the mean, for accuracy; privacy holds for any that is not computed from the
    data.  Sums are a user's own, in any order of arrival (E-CM-11), so that privacy does not rest on contiguous users.
    """
    return UserMean(n_users, samples_per_user, epsilon, blocks="whole", prior="given", prior_mean=prior_mean, **options)


@checks.plain
def single_tree(n_users: int, samples_per_user: int, epsilon: float, prior_mean: float, **options: Any) -> UserMean:
    """Algorithm 4: blocks of 1, 1, 2, 4, ... samples of a user, all in one binary tree."""
    return UserMean(n_users, samples_per_user, epsilon, one_tree=True, prior="given", prior_mean=prior_mean, **options)


@checks.plain
def multiple_trees(n_users: int, samples_per_user: int, epsilon: float, prior_mean: float, **options: Any) -> UserMean:
    """Algorithm 5: a tree per block size, so that the noise is that of the blocks in use."""
    return UserMean(n_users, samples_per_user, epsilon, prior="given", prior_mean=prior_mean, **options)


@checks.plain
def full(n_users: int, samples_per_user: int, epsilon: float, **options: Any) -> UserMean:
    """Algorithm 6: as 5, each block size with a private median as prior, before which its sums wait."""
    return UserMean(n_users, samples_per_user, epsilon, **options)


@checks.plain
def recommended(n_users: int, samples_per_user: int, epsilon: float, delta: float = 0.0, **options: Any) -> UserMean:
    """No medians and no waiting, noise only for what a block can move, every sum weighted by what it knows.

    For samples that are independent with one mean, whoever sends them.  Users who differ have blocks outside the interval
    of `prior="bootstrap"`, and the mean is then off by many times what it states: `prior="none"` projects nothing.  If the
    more active users differ from the others the weights err, too: take `naive`, in which each sample has the same weight.
    Levels that users typically reach, if they share the horizon evenly, get most of the budget (`shares_for`). delta = 0:
    Honaker's estimates on wide trees with integer noise, so that the guarantee holds in floating point; delta > 0:
    Gaussian noise with the square-root factorization.
    """
    chosen: dict[str, Any] = {
        "prior": "bootstrap",
        "exact_start": True,
        "capped": True,
        "weights": "precision",
        "clip": True,
    }
    draft = UserMean(n_users, samples_per_user, epsilon, horizon=options.get("horizon"))
    chosen["shares"] = shares_for(draft)
    if delta:
        chosen |= {"delta": delta, "toeplitz": True}
    else:
        chosen |= {"honaker": True, "integer": True, "branching": best_branching(n_users)}
    return UserMean(n_users, samples_per_user, epsilon, **chosen | options)


def shares_for(settings: UserMean) -> tuple[float, ...]:
    """Budget shares per level from what is public: users, cap and horizon.

    An element of level l moves by about 2^(l/2); the noise variances' sum is least, at a given total epsilon, for shares in
    proportion to its power 2/3, 2^(l/3).  That holds up to the level of horizon / n_users samples; above it few users come,
    and the shares halve from level to level.  Any shares are private: this is a choice of utility.
    """
    typical = math.log2(max(1.0, settings.max_steps / settings.n_users))
    level = np.arange(len(settings.sizes))
    weights = np.where(level < typical, 2 ** ((level - typical) / 3), 2 ** -(level - typical))
    return tuple((weights / weights.sum()).tolist())


def running_mean(samples: ArrayLike) -> NDArray[np.float64]:
    """The mean of the first t samples, without privacy."""
    values = np.asarray(samples, dtype=float)
    means: NDArray[np.float64] = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means
