"""The rungs from Algorithms 2 and 6 to what we recommend: each has its own switch and those of the rungs before it."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.continual_mean import algorithms, choosing, streams
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import checks
from evolvingdp.core.seeds import stream

KEYS = {  # what each is called in the names of a result's values
    (NAIVE := "Algorithm 2, binary tree"): "naive",
    (CAP := "+ a cap of 2T/n"): "cap",
    (RECOMMENDED := "recommended, pure"): "recommended",
    (NAIVE_ROOT := "Algorithm 2, square root, (eps, delta)"): "naive_root",
    (RECOMMENDED_DELTA := "recommended, (eps, delta)"): "root",
    (FULL := "Algorithm 6, corrected"): "full",
    (START := "+ levels 0 and 1 exact"): "start",
    (CAPPED := "+ sensitivities capped"): "capped",
    (WEIGHTED := "+ weights by precision"): "weighted",
    (NO_MEDIANS := "+ no medians, no projection"): "no_medians",
    (BOOTSTRAP := "+ bootstrapped prior"): "bootstrap",
    (SHARES := "+ best trees and shares"): "shares",
    (ALIKE := "users alike, pure"): "alike",
    (ALIKE_DELTA := "users alike, (eps, delta)"): "alike_root",
}
LADDER = tuple(KEYS)
ANY_USERS = (NAIVE, CAP, RECOMMENDED, NAIVE_ROOT, RECOMMENDED_DELTA)  # what these state holds for any users
FOR_ALL_USERS = (RECOMMENDED, RECOMMENDED_DELTA, ALIKE, ALIKE_DELTA)
POPULATIONS = {
    "beta": ("full", "means from Beta(3, 7), full users"),
    "two kinds": ("full", "a tenth always sends 1, full users"),
    "active kind": ("zipf", "the most active tenth always sends 1, Zipf users"),
}


@cache
def rung(
    name: str, n_users: int, cap: int, epsilon: float, horizon: int, delta: float, order: str = "random", seed: int = 0
) -> UserMean:
    """The settings of one of `LADDER`; `delta` is for those with Gaussian noise.

    The recommended ones are chosen by another stream whose users arrive in this `order`, as last month's might have.
    """
    checks.one_of(LADDER, name=name)
    if name in (RECOMMENDED, RECOMMENDED_DELTA, ALIKE, ALIKE_DELTA):
        make = choosing.recommended if name in (RECOMMENDED, RECOMMENDED_DELTA) else choosing.users_alike
        own_delta = delta if name in (RECOMMENDED_DELTA, ALIKE_DELTA) else 0.0
        before = _stream_before(order, n_users, cap, horizon, seed)
        return make(n_users, cap, epsilon, own_delta, arrivals=before, horizon=horizon)
    if name in (NAIVE, CAP, NAIVE_ROOT):
        made = algorithms.naive(n_users, cap, epsilon, horizon=horizon)
        if name == CAP:
            return made.but(samples_per_user=min(cap, max(1, 2 * horizon // n_users)), excess="drop")
        return made if name == NAIVE else made.but(delta=delta, buffered=True)
    made = algorithms.full(n_users, cap, epsilon, horizon=horizon)
    switches: dict[str, dict[str, Any]] = {
        START: {"exact_start": True},
        CAPPED: {"capped": True},
        WEIGHTED: {"weights": "precision"},
        NO_MEDIANS: {"prior": "none"},
        BOOTSTRAP: {"prior": "bootstrap"},
    }
    if name == SHARES:
        switches[SHARES] = {"branching": 0, "shares": choosing.shares_for(made.but(prior="bootstrap", capped=True))}
    for switch, change in switches.items():
        if LADDER.index(switch) <= LADDER.index(name):
            made = made.but(**change)
    return made


@lru_cache(maxsize=1)  # rungs of a setting follow each other
def _stream_before(order: str, n_users: int, cap: int, horizon: int, seed: int) -> NDArray[np.int64]:
    return streams.arrivals(order, n_users, cap, horizon, stream(seed, "stream before", order))


def check(name: str, n_users: int, cap: int, epsilon: float, horizon: int, dimensions: int) -> None:
    """Raise ValueError with the parameter `name` where the epsilon is too small for integer noise on some rung."""
    epsilon_of_one, even = epsilon / dimensions, (1 / cap.bit_length(),) * cap.bit_length()
    try:
        algorithms.naive(n_users, cap, epsilon_of_one, horizon=horizon, integer=True, branching=0)
        try:  # every level with less than any choice of shares would leave it: then no choice need be made
            choosing.users_alike(n_users, cap, choosing.FLOOR * epsilon_of_one, horizon=horizon, shares=even)
        except ValueError:
            choosing.users_alike(n_users, cap, epsilon_of_one, horizon=horizon)
    except ValueError:
        raise ValueError(
            f"{name} must be larger, or users, samples, horizon and dimensions fewer, so that integer noise fits in 64 "
            f"bits, got {name} = {epsilon:g}"
        ) from None
