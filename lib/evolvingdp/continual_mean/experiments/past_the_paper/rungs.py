"""The rungs from Algorithms 2 and 6 to what we recommend: each has its own switch and those of the rungs before it."""

from __future__ import annotations

from typing import Any

from evolvingdp.continual_mean import algorithms
from evolvingdp.continual_mean.prefix_sums import best_branching
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import checks

KEYS = {  # what each is called in the names of a result's values
    (MEAN := "no privacy"): "mean",
    (NAIVE := "Algorithm 2, binary tree"): "naive",
    (NAIVE_WIDE := "Algorithm 2, wide tree"): "naive_wide",
    (FULL := "Algorithm 6, corrected"): "full",
    (START := "+ levels 0 and 1 exact"): "start",
    (CAPPED := "+ sensitivities capped"): "capped",
    (WEIGHTED := "+ weights by precision"): "weighted",
    (NO_MEDIANS := "+ no medians, no projection"): "no_medians",
    (BOOTSTRAP := "+ bootstrapped prior"): "bootstrap",
    (HONAKER := "+ Honaker's estimates"): "honaker",
    (SHARES := "+ budget shares"): "shares",
    (WIDE := "+ wide trees"): "wide",
    (INTEGER := "+ integer noise, clipped"): "recommended",
    (GAUSSIAN := "(eps, delta): Gaussian tree"): "gaussian",
    (ROOT := "(eps, delta): square root"): "root",
}
LADDER = tuple(name for name in KEYS if name != MEAN)
RECOMMENDED, RECOMMENDED_DELTA = INTEGER, ROOT

UNPROJECTED = "no projection"  # the recommended ones with prior="none"
UNPROJECTED_DELTA = "no projection, (eps, delta)"
EQUAL = NAIVE_WIDE  # every reading has the same weight
EQUAL_DELTA = "Algorithm 2, square root, (eps, delta)"
POPULATION_KEYS = {
    RECOMMENDED: "recommended",
    RECOMMENDED_DELTA: "root",
    UNPROJECTED: "unprojected",
    UNPROJECTED_DELTA: "unprojected_root",
    EQUAL: "equal",
    EQUAL_DELTA: "equal_root",
}
FOR_ALL_USERS = tuple(POPULATION_KEYS)
POPULATIONS = {
    "beta": ("full", "means from Beta(3, 7), full users"),
    "two kinds": ("full", "a tenth always sends 1, full users"),
    "active kind": ("zipf", "the most active tenth always sends 1, Zipf users"),
}


def rung(name: str, n_users: int, cap: int, epsilon: float, horizon: int, delta: float) -> UserMean:
    """The settings of one of `LADDER` or `FOR_ALL_USERS`; `delta` is for those with Gaussian noise."""
    checks.one_of((*LADDER, *FOR_ALL_USERS), name=name)
    if name in (UNPROJECTED, UNPROJECTED_DELTA):
        recommended = RECOMMENDED if name == UNPROJECTED else RECOMMENDED_DELTA
        return rung(recommended, n_users, cap, epsilon, horizon, delta).but(prior="none")
    if name in (NAIVE, NAIVE_WIDE, EQUAL_DELTA):
        made = algorithms.naive(n_users, cap, epsilon, horizon=horizon)
        if name == NAIVE:
            return made
        if name == EQUAL_DELTA:
            return made.but(delta=delta, toeplitz=True, clip=True)
        return made.but(branching=best_branching(made.capacity), honaker=True, integer=True, clip=True)
    if name in (GAUSSIAN, ROOT):
        return algorithms.recommended(n_users, cap, epsilon, delta, horizon=horizon, toeplitz=name == ROOT)
    made = algorithms.full(n_users, cap, epsilon, horizon=horizon)
    switches: dict[str, dict[str, Any]] = {
        START: {"exact_start": True},
        CAPPED: {"capped": True},
        WEIGHTED: {"weights": "precision"},
        NO_MEDIANS: {"prior": "none"},
        BOOTSTRAP: {"prior": "bootstrap"},
        HONAKER: {"honaker": True},
        SHARES: {"shares": algorithms.shares_for(made)},
        WIDE: {"branching": best_branching(n_users)},
        INTEGER: {"integer": True, "clip": True},
    }
    for switch, change in switches.items():
        if LADDER.index(switch) <= LADDER.index(name):
            made = made.but(**change)
    return made


def check(name: str, n_users: int, cap: int, epsilon: float, horizon: int, dimensions: int) -> None:
    """Raise ValueError with the parameter `name` where the epsilon is too small for integer noise on some rung."""
    try:
        rung(EQUAL, n_users, cap, epsilon, horizon, 0.0)
        rung(RECOMMENDED, n_users, cap, epsilon / dimensions, horizon, 0.0)
    except ValueError:
        raise ValueError(
            f"{name} must be larger, or users, samples, horizon and dimensions fewer, so that integer noise fits in 64 "
            f"bits, got {name} = {epsilon:g}"
        ) from None
