"""The paper's algorithms by the names that tables and figures print, and their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.continual_mean import algorithms, streams, theory
from evolvingdp.continual_mean.experiments.user_mean.params import Params
from evolvingdp.continual_mean.per_step import most_samples
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream

MEAN = "no privacy"
PER_STEP = "Laplace at every step"
NAIVE = "Algorithm 2 (naive)"
WISHFUL = "Algorithm 3 (wishful)"
SINGLE = "Algorithm 4 (one tree)"
MULTIPLE = "Algorithm 5 (many trees)"
FULL = "Algorithm 6 (full)"
PRIVATE: dict[str, Callable[..., UserMean]] = {
    NAIVE: algorithms.naive,
    WISHFUL: algorithms.wishful,
    SINGLE: algorithms.single_tree,
    MULTIPLE: algorithms.multiple_trees,
    FULL: algorithms.full,
}
METHODS = [MEAN, PER_STEP, *PRIVATE]
NEEDS_PRIOR = (WISHFUL, SINGLE, MULTIPLE)
POINTS = 40  # steps at which errors are kept


def settings(params: Params, name: str, n_users: int, cap: int, horizon: int, order: str = "") -> UserMean:
    """The algorithm called `name`; the prior is above or below the mean by 1/sqrt(cap)."""
    options: dict[str, Any] = {"beta": params.beta, "horizon": horizon}
    if name in NEEDS_PRIOR:
        off = 1 / math.sqrt(cap)
        options["prior_mean"] = params.mean + off if params.mean + off <= 1 else max(0.0, params.mean - off)
    return PRIVATE[name](n_users, cap, params.epsilon, **options)


def kept_steps(horizon: int) -> NDArray[np.int64]:
    return np.unique(np.round(np.geomspace(1, horizon, POINTS)).astype(np.int64))


def bounds(params: Params, seed: int) -> pd.DataFrame:
    """The explicit bounds of `theory` for Algorithms 2, 4, 5 and 6 on the random order, at the kept steps."""
    users = streams.arrivals(
        "random", params.n_users, params.samples_per_user, params.horizon, stream(seed, "data", "random", 0)
    )
    steps = kept_steps(params.horizon)
    largest = most_samples(users)[steps - 1]
    frames = []
    for name in (NAIVE, SINGLE, MULTIPLE, FULL):
        made = settings(params, name, params.n_users, params.samples_per_user, params.horizon)
        frames.append(
            pd.DataFrame({"method": name, "step": steps, "bound": theory.error_bound(made, steps, largest, params.beta)})
        )
    return pd.concat(frames, ignore_index=True)
