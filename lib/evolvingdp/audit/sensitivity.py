"""Mechanisms that add noise to sums: the exact change of everything released, against the scale of the noise.

With Laplace noise the loss of two neighbouring inputs is at most the sum over nodes of |change| / scale, and exactly that
in the worst outcome; with Gaussian noise the sum of squares of change / deviation is mu^2, and mu gives the exact delta at
every epsilon (`core.accounting`). Neither needs samples; both read the noise that the mechanism draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean import offline, streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.per_step import PerStepLaplace, most_samples
from evolvingdp.continual_mean.prefix_sums import PrefixSums, Toeplitz, Tree, height
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Noise
from evolvingdp.core.seeds import stream

Array = NDArray[np.float64]


def released(sums: PrefixSums, elements: ArrayLike) -> Array:
    """All that a tree or a factorization releases of `elements`, before noise."""
    values = np.asarray(elements, dtype=float)
    if isinstance(sums, Toeplitz):
        return np.convolve(values, sums.coefficients)[: len(values)]
    if not isinstance(sums, Tree):
        raise TypeError(f"sums must be a Tree or a Toeplitz, got {sums!r}")
    nodes, base = [], sums.branching
    for level in range(height(max(1, len(values)), base)):
        block = base**level
        for number, end in enumerate(range(block, len(values) + 1, block), start=1):
            if sums.honaker or number % base:  # plain trees never need the last of b siblings
                nodes.append(float(values[end - block : end].sum()))
    return np.array(nodes)


def cost(change: Array, noise: Noise) -> float:
    """l1 change over the scale for Laplace noise, squared l2 change over the variance for Gaussian noise."""
    if isinstance(noise, Gaussian):
        return float(np.sum(change**2)) / noise.variance
    if not isinstance(noise, Laplace | DiscreteLaplace):
        raise TypeError(f"noise must be Laplace, DiscreteLaplace or Gaussian, got {noise!r}")
    return float(np.sum(np.abs(change))) / noise.scale


def binary_cost(mechanism: BinaryMechanism, n_elements: int) -> float:
    """The largest `cost` over the element that changes, by `sensitivity`, in a stream of `n_elements`."""
    worst = 0.0
    for place in range(n_elements):
        moved = np.zeros(n_elements)
        moved[place] = mechanism.sensitivity
        worst = max(worst, cost(released(mechanism.structure, moved), mechanism.noise))
    return worst


def user_mean_cost(settings: UserMean, users: ArrayLike, one: ArrayLike, other: ArrayLike, seed: int = 0) -> float:
    """The `cost` of all trees together between two samples of one user; all that is public is that of the first."""
    public = offline.exposed(settings, users, one, stream(seed, "release"))
    changed = offline.exposed(settings, users, other, stream(seed, "release"), public)
    total = 0.0
    for tree, neighbour in zip(public, changed, strict=True):
        for part, moved in zip(tree.parts, neighbour.parts, strict=True):
            change = released(part.sums, part.elements) - released(part.sums, moved.elements)
            total += cost(change, part.noise)
    return total


def neighbours(
    users: ArrayLike, who: tuple[int, ...] = (0, 1), seed: int = 0
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of samples that differ in those of one user: zeros against all patterns (or ones, above 8 samples)."""
    arrived = np.asarray(users)
    background = streams.bits(0.5, len(arrived), stream(seed, "neighbours"))
    for user in who:
        places = np.flatnonzero(arrived == user)
        patterns = itertools.product((0, 1), repeat=len(places)) if len(places) <= 8 else iter([(1,) * len(places)])
        for pattern in patterns:
            one, other = background.copy(), background.copy()
            one[places], other[places] = 0, pattern
            yield one, other


def worst_user_mean_cost(settings: UserMean, order: str = "round_robin", who: tuple[int, ...] = (0, 1)) -> float:
    """The largest `user_mean_cost` over `neighbours` in a full stream whose users arrive in `order`."""
    steps = settings.n_users * settings.samples_per_user
    users = streams.arrivals(order, settings.n_users, settings.samples_per_user, steps, stream(0, "order"))
    return max(user_mean_cost(settings, users, one, other) for one, other in neighbours(users, who))


def per_step_cost(settings: PerStepLaplace, users: ArrayLike) -> float:
    """The worst |change| / scale summed over steps: a user's samples, all 0 or all 1, in a mean at every step."""
    who, worst = np.asarray(users), 0.0
    steps = np.arange(1, len(who) + 1)
    scales = settings.scale(steps, most_samples(who))
    for user in np.unique(who):
        worst = max(worst, float(np.sum(np.cumsum(who == user) / steps / scales)))
    return worst
