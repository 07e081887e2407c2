"""Populations whose users differ from each other: what the accuracy of means by blocks rests on.

A block's sum is projected on an interval that holds it where samples are independent with one mean.  Users who differ have
sums outside of it; and users who differ *and* are the more active ones weigh less than their samples where levels are
weighted by precision.  Privacy rests on neither.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

from evolvingdp.continual_mean import streams
from evolvingdp.continual_mean.ladder import (
    EQUAL,
    EQUAL_DELTA,
    FOR_ALL_USERS,
    RECOMMENDED_DELTA,
    UNPROJECTED,
    UNPROJECTED_DELTA,
)
from evolvingdp.core import checks
from evolvingdp.experiment import Claim, at_least, at_most

POPULATIONS = ("beta", "two kinds", "active kind")


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


def readings(
    population: str, order: str, n_users: int, cap: int, horizon: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Users (horizon,) and their bits, each of its user's own mean."""
    means = user_means(population, n_users, rng)
    users = streams.arrivals(order, n_users, cap, horizon, rng)
    return users, (rng.random(horizon) < means[users]).astype(np.int64)


def over_stated(runs: int, errors: int) -> float:
    """Largest of `errors` normal errors, root mean square of `runs`, over its stated one: exceeded once in 1000 tries."""
    return math.sqrt(chi2.ppf(1 - 1e-3 / errors, runs) / runs)


def claims(errors: pd.DataFrame, runs: int) -> list[Claim]:
    """Where users differ, some stated errors are wrong and others hold.

    `errors`: a row per rung (of `FOR_ALL_USERS`) and setting (of `POPULATIONS`), measured (rmse) and stated (predicted).
    """
    table = errors.set_index(["rung", "setting"])
    over = table.rmse / table.predicted
    equal = [over[name, population] for name in (EQUAL, EQUAL_DELTA) for population in POPULATIONS]
    unprojected = [over[name, kind] for name in (UNPROJECTED, UNPROJECTED_DELTA) for kind in ("beta", "two kinds")]
    return [
        at_least(
            "Users of two kinds, full users: the recommended (eps, delta) estimate's error over the one that it states",
            over[RECOMMENDED_DELTA, "two kinds"],
            3,
        ),
        at_least(
            "The most active are of one kind: the same of all recommended estimates, also without projection, at least",
            min(over[name, "active kind"] for name in FOR_ALL_USERS if name not in (EQUAL, EQUAL_DELTA)),
            3,
        ),
        at_most(
            "Without projection the stated error is not too small where full users differ: largest measured over stated",
            max(unprojected),
            over_stated(runs, len(unprojected)),
        ),
        at_most(
            "and Algorithm 2's, with a wide tree or the square root, is not for any population",
            max(equal),
            over_stated(runs, len(equal)),
        ),
    ]
