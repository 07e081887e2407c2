"""The paper's algorithms by the names that the page prints: bounds, errors with bands, slopes, when Algorithm 6 pays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean import algorithms, streams, theory
from evolvingdp.continual_mean.experiments.scores import ORDER_NAMES, root_mean_square
from evolvingdp.continual_mean.experiments.user_mean.params import Params
from evolvingdp.continual_mean.per_step import most_samples
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.experiment.describe import digits

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


def settings(params: Params, name: str, n_users: int, cap: int, horizon: int) -> UserMean:
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


def rmse(table: pd.DataFrame, part: str, by: list[str]) -> pd.DataFrame:
    """Root mean square over runs with a 95% band, per method and `by`."""
    by = ["method", *by]
    return root_mean_square(table[table.part == part].set_index(by).square, by)


def slopes(params: Params, table: pd.DataFrame) -> pd.DataFrame:
    """Per method and order: the slope of log error against log t over the last two thirds of the decades."""
    frame = rmse(table, "orders", ["order", "step"])
    late = frame[frame.step >= params.horizon ** (1 / 3)]
    rows = [
        {"method": method, "order": order, "slope": slope(mine.step, mine.rmse), "at the end": float(mine.rmse.iloc[-1])}
        for (method, order), mine in late.groupby(["method", "order"], sort=False)
        if (mine.rmse > 0).all()
    ]
    return pd.DataFrame(rows)


def slope_table(result: Result[Params]) -> pd.DataFrame:
    """Error at the end of the stream (fitted slope), per method and order."""
    frame = slopes(result.params, result.table)
    shown = frame.assign(
        text=[f"{digits(end, 3)} ({fit:.2f})" for end, fit in zip(frame["at the end"], frame.slope, strict=True)]
    )
    wide = shown.pivot(index="method", columns="order", values="text").reindex(METHODS)[list(ORDER_NAMES)]
    return wide.rename(columns=ORDER_NAMES).reset_index()


def noise_powers(params: Params, table: pd.DataFrame) -> dict[str, float]:
    """Slope of the calculated noise's logarithm against the cap's, of each method that is run where users use up their caps."""
    exact = table[table.part == "caps"].groupby(["method", "cap"], sort=False).exact.first()
    caps = list(params.cap_sweep)
    return {name: slope(caps, np.sqrt(exact[name].loc[caps])) for name in (NAIVE, SINGLE, MULTIPLE)}


def slope(x: Any, y: Any) -> float:
    """Of log y against log x, by least squares."""
    return float(np.polyfit(np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float)), 1)[0])


def diversity(params: Params, seed: int) -> pd.DataFrame:
    """Per order: the first of a grid of steps from which on the diversity condition (11) holds, as a fraction of the stream."""
    made = settings(params, FULL, params.n_users, params.samples_per_user, params.horizon)
    rows = []
    for order in streams.ORDERS:
        users = streams.arrivals(
            order, params.n_users, params.samples_per_user, params.horizon, stream(seed, "data", order, 0)
        )
        first = diverse_from(made, users)
        rows.append(
            {
                "order": ORDER_NAMES[order],
                "diversity condition holds from": "never" if math.isinf(first) else f"{first:.0%} of the stream",
            }
        )
    return pd.DataFrame(rows)


def diverse_from(made: UserMean, users: ArrayLike, points: int = 200) -> float:
    """From which of `points` even steps on the diversity condition (11) holds to the end, as a fraction; inf for never."""
    who = np.asarray(users)
    grid = np.linspace(1, len(who), points).astype(np.int64)
    counts, holds, last = np.zeros(made.n_users, dtype=np.int64), [], 0
    for step in grid:
        counts += np.bincount(who[last:step], minlength=made.n_users)
        last = int(step)
        holds.append(theory.diverse(made, counts))
    failing = np.flatnonzero(~np.array(holds))
    if not len(failing):
        return 0.0
    return float(grid[failing[-1] + 1] / len(who)) if failing[-1] + 1 < len(grid) else math.inf


def advantage(epsilon: float, beta: float) -> pd.DataFrame:
    """Exact: noise of Algorithm 2 over that of Algorithm 6 when all users have used up their caps, on a grid of n and m."""
    rows = []
    for n_users in (10**3, 10**4, 10**5, 10**6):
        for power in range(4, 25, 2):
            naive, full = (make(n_users, 2**power, epsilon, beta=beta) for make in (algorithms.naive, algorithms.full))
            rows.append(
                {
                    "n_users": n_users,
                    "cap": 2**power,
                    "epsilon": epsilon,
                    "ratio": _average_noise(naive) / _average_noise(full),
                    "diverse": n_users >= theory.arrays_needed(full, 2**power),
                }
            )
    return pd.DataFrame(rows)


def _average_noise(made: UserMean) -> float:
    """Standard deviation of the noise of the sum, half of each tree's digits being 1."""
    variance = 0.0
    for tree in range(made.n_trees):
        sums = made.prefix_sums(made.capacity_of(0))
        variance += sums.l1 / 2 * made.noise(tree, sums, made.user_sensitivity(tree)).variance
    return math.sqrt(variance)
