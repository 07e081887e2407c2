"""Who arrives when, and with what: arrival orders with at most m samples a user, and the samples.

The arrival pattern is public (E-CM-4); the samples are secret.  `readings` are of users who differ from each other: sums of
their blocks are outside of intervals that hold those of samples with one mean; and where few samples of each are kept, the
more active ones weigh less than their samples.  Privacy rests on neither.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks

POPULATIONS = ("beta", "two kinds", "active kind")
ORDERS = ("contiguous", "round_robin", "random", "zipf", "dominant")


@checks.draws
@checks.plain
def arrivals(order: str, n_users: int, samples_per_user: int, horizon: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The user of each of `horizon` steps, (horizon,), none more than `samples_per_user` times.

    contiguous: user after user, as many samples each as are allowed; round_robin: one sample each in turn; random: a random
    sequence of the n * m places; zipf: user i sends in proportion to 1 / (i+1), or the cap where that is less, spread over
    all steps (where all users use up their caps, that is random); dominant: user 0 has each step with probability 1/2 until
    its cap is used up, the others share what is left at random.
    """
    checks.one_of(ORDERS, order=order)
    checks.integer_at_least(1, n_users=n_users, samples_per_user=samples_per_user, horizon=horizon)
    if horizon > n_users * samples_per_user:
        raise ValueError(
            f"horizon must be at most n_users * samples_per_user = {n_users * samples_per_user}, got {horizon}: "
            "raise one of the two"
        )
    if order == "contiguous":
        return np.arange(horizon) // samples_per_user
    if order == "round_robin":
        return np.arange(horizon) % n_users
    if order == "dominant":
        own = np.flatnonzero(rng.random(horizon) < 0.5)[:samples_per_user]
        others = np.delete(np.arange(horizon), own)[: (n_users - 1) * samples_per_user]
        users = np.zeros(horizon, dtype=np.int64)  # when the others are used up, the last steps are user 0's
        users[others] = 1 + _shuffled(_even(n_users - 1, samples_per_user, len(others), rng), rng)
        return users
    counts = _even if order == "random" else _zipf
    return _shuffled(counts(n_users, samples_per_user, horizon, rng), rng)


def _shuffled(counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    users = np.repeat(np.arange(len(counts)), counts)
    rng.shuffle(users)
    return users


def _even(n_users: int, cap: int, horizon: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of `horizon` random places of n * m each user has, (n_users,)."""
    return rng.multivariate_hypergeometric(np.full(n_users, cap), horizon, method="marginals")


def _zipf(n_users: int, cap: int, horizon: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many samples each user has, (n_users,), their sum `horizon`."""
    counts = np.zeros(n_users, dtype=np.int64)
    while (left := horizon - int(counts.sum())) > 0:
        free = np.where(counts < cap, 1 / np.arange(1, n_users + 1), 0.0)
        counts = np.minimum(counts + rng.multinomial(left, free / free.sum()), cap)
    return counts


@checks.draws
@checks.plain
def bits(mean: float, horizon: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`horizon` independent bits of this mean."""
    if not 0 <= mean <= 1:
        raise ValueError(f"mean must lie in [0, 1], got {mean!r}")
    return (rng.random(horizon) < mean).astype(np.int64)


@checks.draws
def user_means(population: str, n_users: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Each user's own mean, (n_users,).

    beta: drawn from Beta(3, 7); two kinds: a tenth, drawn at random, always sends 1, the others 0; active kind: the tenth
    with the smallest ids, in the order "zipf" the most active ones, always sends 1, the others 0.
    """
    checks.one_of(POPULATIONS, population=population)
    checks.integer_at_least(1, n_users=n_users)
    if population == "beta":
        return rng.beta(3, 7, n_users)
    means = np.zeros(n_users)
    means[: -(-n_users // 10)] = 1
    return rng.permutation(means) if population == "two kinds" else means


@checks.draws
def readings(
    population: str, order: str, n_users: int, cap: int, horizon: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Users (horizon,) and their bits, each of its user's own mean."""
    means = user_means(population, n_users, rng)
    users = arrivals(order, n_users, cap, horizon, rng)
    return users, (rng.random(horizon) < means[users]).astype(np.int64)
