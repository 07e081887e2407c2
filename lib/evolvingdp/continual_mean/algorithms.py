"""The paper's algorithms as settings, the mean with noise at every step, and that without privacy.

**Source.** George et al. (2022), Algorithms 2 to 6 and Section 1.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.settings import most_samples
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import checks


def naive(n_users: int, samples_per_user: int, epsilon: float, **options: Any) -> UserMean:
    """Algorithm 2: every sample is an element of one binary tree, and a user has `samples_per_user` of them.

    Error O(1/sqrt(t) + m log^1.5(T) / (t epsilon)), equation (1) of the paper.
    """
    tree = {} if options.get("delta") else {"branching": 2}
    return UserMean(n_users, samples_per_user, epsilon, **tree | options)


def wishful(n_users: int, samples_per_user: int, epsilon: float, prior_mean: float, **options: Any) -> Blocks:
    """Algorithm 3: a user's sum of all m samples is projected and becomes an element; nothing before the first full user.

    `prior_mean` must be within 1/sqrt(m) of the mean, for accuracy; privacy holds for any that is not computed from the
    data.  Sums are a user's own, in any order of arrival (E-CM-11), so that privacy does not rest on contiguous users.
    """
    return Blocks(n_users, samples_per_user, epsilon, kind="wishful", prior_mean=prior_mean, **options)


def single_tree(n_users: int, samples_per_user: int, epsilon: float, prior_mean: float, **options: Any) -> Blocks:
    """Algorithm 4: blocks of 1, 1, 2, 4, ... samples of a user, all in one binary tree."""
    return Blocks(n_users, samples_per_user, epsilon, kind="single_tree", prior_mean=prior_mean, **options)


def multiple_trees(n_users: int, samples_per_user: int, epsilon: float, prior_mean: float, **options: Any) -> Blocks:
    """Algorithm 5: a tree per block size, so that the noise is that of the blocks in use."""
    return Blocks(n_users, samples_per_user, epsilon, kind="multiple_trees", prior_mean=prior_mean, **options)


def full(n_users: int, samples_per_user: int, epsilon: float, **options: Any) -> Blocks:
    """Algorithm 6: as Algorithm 5, but sums of a block size wait until a private median is drawn, and are then
    projected around it."""
    return Blocks(n_users, samples_per_user, epsilon, kind="full", **options)


@checks.draws
def per_step(settings: UserMean, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
    """The baseline of Section 1.1, (T,): the running mean with Laplace noise of its own at every step.

    User-level epsilon-DP for all steps together: a user moves the mean at step t by at most M_t / t, M_t the largest number
    of samples that a user has sent so far, and each of T = horizon steps has epsilon / T, so that the scale is
    M_t T / (t epsilon); no division of epsilon gives M_t / epsilon at all steps (E-CM-17).  Dimensions share epsilon; how
    `settings` sum samples is not taken from them.
    """
    if settings.delta or settings.integer or settings.excess != "error":
        raise ValueError(f'settings must have delta 0, integer False and excess "error", got {settings}')
    who, values = settings.arrange(users, samples)
    settings.kept(who)
    steps, noise = np.arange(1, len(who) + 1), rng.laplace(0.0, 1.0, len(who))
    noise *= (settings.high - settings.low) * most_samples(who) * (settings.max_steps / steps) / settings.budget
    means = settings.low + settings.unit * np.cumsum(values) / steps + noise
    return np.clip(means, settings.low, settings.high) if settings.clip else means


def running_mean(samples: ArrayLike) -> NDArray[np.float64]:
    """The mean of the first t samples, without privacy."""
    values = np.asarray(samples, dtype=float)
    means: NDArray[np.float64] = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means
