"""The paper's algorithms on its problem: error over time on five arrival orders, against the cap, and where each one wins.

Bits of one mean.  Algorithms 3 to 5 are given a prior that is off by 1/sqrt(m), as far as the theorems allow.  `run` gives a
row per part, method, order or cap, run and kept step, `values` the numbers that claims and prose read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evolvingdp.book.own import Release, checked
from evolvingdp.book.params import Metric
from evolvingdp.book.words import digits
from evolvingdp.continual_mean import algorithms, streams, theory
from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.settings import most_samples
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.continual_mean.own_values import released
from evolvingdp.notebooks.continual_mean.scores import ORDER_NAMES, root_mean_square, second_half
from evolvingdp.streams import reading

METRIC = Metric("full_end", "root mean square error of Algorithm 6 at the stream's end, random order")

CLAIMS = """
0.8 <= naive_slope <= 1.3      Algorithm 2's noise grows with m: slope of log noise, calculated, against log m
multiple_slope - naive_slope <= -0.15   Algorithm 5's noise grows with sqrt(m) and logarithms: its slope minus Algorithm 2's
0.6 <= over_exact <= 1.5       The noise is the calculated one: error over it, root mean square over Algorithms 2, 4 and 5
full_wide / full_tight / (naive_wide / naive_tight) <= 0.5   A loose cap costs Algorithm 6 little: its error at the largest cap over that at the smallest, relative to Algorithm 2's
share_beyond <= beta           The bounds hold: share of (run, step), random order, above the bound
? first_diverse_win >= 1024      Algorithm 6 beats Algorithm 2 with full users only at caps of at least
"""

MEAN = "no privacy"
PER_STEP = "Laplace at every step"
NAIVE = "Algorithm 2 (naive)"
WISHFUL = "Algorithm 3 (wishful)"
SINGLE = "Algorithm 4 (one tree)"
MULTIPLE = "Algorithm 5 (many trees)"
FULL = "Algorithm 6 (full)"
PRIVATE: dict[str, Callable[..., UserMean | Blocks]] = {
    NAIVE: algorithms.naive,
    WISHFUL: algorithms.wishful,
    SINGLE: algorithms.single_tree,
    MULTIPLE: algorithms.multiple_trees,
    FULL: algorithms.full,
}
METHODS = [MEAN, PER_STEP, *PRIVATE]
NEEDS_PRIOR = (WISHFUL, SINGLE, MULTIPLE)
POINTS = 40  # steps at which errors are kept
SHORT = {"naive": NAIVE, "single": SINGLE, "multiple": MULTIPLE, "full": FULL}  # in values' names


def check(params: Any) -> dict[str, Any]:
    """Raise ValueError where users have more samples than a cap allows, or no value lies between the bounds."""
    if not params.low < params.high:
        raise ValueError(f"low must be less than high = {params.high:g}, got {params.low:g}")
    if params.data:
        return checked(params, reading.read_values, params.low, params.high)
    if min(params.loose_caps) < params.loose_samples:
        raise ValueError(f"loose_caps must be at least loose_samples = {params.loose_samples}, got {min(params.loose_caps)}")
    return {}


def length(params: Any) -> int:
    """T of the five orders; with all of n * m every user is full, and Zipf's order is the random one."""
    return max(1, round(params.fill * params.n_users * params.samples_per_user))


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per part, method, order or cap, run and kept step: the estimate's error, and on the random order its bound."""
    return pd.DataFrame([*_orders(params, seed), *_caps(params, seed), *_loose(params, seed)])


def _orders(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    steps, limits = kept_steps(length(params)), bounds(params, seed).set_index(["method", "step"]).bound
    made = {name: settings(params, name, params.n_users, params.samples_per_user, length(params)) for name in PRIVATE}
    for order in streams.ORDERS:
        for repetition in range(params.repetitions):
            rng = stream(seed, "data", order, repetition)
            users = streams.arrivals(order, params.n_users, params.samples_per_user, length(params), rng)
            bits = streams.bits(params.mean, length(params), rng)
            for name in METHODS:
                noise = stream(seed, "noise", order, name, repetition)
                if name == MEAN:
                    got = algorithms.running_mean(bits)
                elif name == PER_STEP:
                    got = algorithms.per_step(made[NAIVE], users, bits, noise)
                else:
                    got = made[name].release(users, bits, noise).estimate
                window = np.abs(got - params.mean)
                for step in steps:
                    yield {
                        "part": "orders",
                        "method": name,
                        "order": order,
                        "repetition": repetition,
                        "step": int(step),
                        "bound": limits.get((name, step), math.nan) if order == "random" else math.nan,
                        "error": float(window[step - 1]),
                        "square": float(np.mean(np.square(window[step - 1 : max(step, int(1.2 * step))]))),
                    }


def _caps(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Users who use up their cap, in turns: the released mean against the mean of the data over the last quarter."""
    n_users = params.n_users
    for cap in params.cap_sweep:
        horizon = n_users * cap
        users = streams.arrivals("round_robin", n_users, cap, horizon, stream(seed))
        for repetition in range(params.repetitions):
            bits = streams.bits(params.mean, horizon, stream(seed, "cap data", cap, repetition))
            for name in (NAIVE, SINGLE, MULTIPLE):
                made = settings(params, name, n_users, cap, horizon)
                got = made.release(users, bits, stream(seed, "cap noise", name, cap, repetition))
                tail = slice(-(horizon // 4), None, max(1, cap // 4))
                error = got.estimate[tail] - algorithms.running_mean(bits)[tail]
                noise = got.standard_error[tail] ** 2 - 0.25 / got.samples[tail]
                yield {
                    "part": "caps",
                    "method": name,
                    "cap": cap,
                    "repetition": repetition,
                    "square": float(np.mean(np.square(error)) * horizon**2),
                    "exact": float(np.mean(noise) * horizon**2),
                }


def _loose(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Users with few samples under larger and larger caps: who pays for what nobody does?"""
    n_users, each = params.loose_users, params.loose_samples
    horizon = n_users * each
    for repetition in range(params.repetitions):
        rng = stream(seed, "loose data", repetition)
        users = streams.arrivals("random", n_users, each, horizon, rng)
        bits = streams.bits(params.mean, horizon, rng)
        for cap in params.loose_caps:
            for name in (NAIVE, SINGLE, MULTIPLE, FULL):
                made = settings(params, name, n_users, cap, horizon)
                got = made.release(users, bits, stream(seed, "loose noise", name, cap, repetition))
                square = second_half(got, params.mean)["square"]
                yield {"part": "loose", "method": name, "cap": cap, "repetition": repetition, "square": square}


def settings(params: Any, name: str, n_users: int, cap: int, horizon: int) -> UserMean | Blocks:
    """The algorithm called `name`; the prior is above or below the mean by 1/sqrt(cap)."""
    options: dict[str, Any] = {"horizon": horizon} | ({} if name == NAIVE else {"beta": params.beta})
    if name in NEEDS_PRIOR:
        off = 1 / math.sqrt(cap)
        options["prior_mean"] = params.mean + off if params.mean + off <= 1 else max(0.0, params.mean - off)
    return PRIVATE[name](n_users, cap, params.epsilon, **options)


def kept_steps(horizon: int) -> NDArray[np.int64]:
    return np.unique(np.round(np.geomspace(1, horizon, POINTS)).astype(np.int64))


def bounds(params: Any, seed: int) -> pd.DataFrame:
    """The explicit bounds of `theory` for Algorithms 2, 4, 5 and 6 on the random order, at the kept steps."""
    users = streams.arrivals(
        "random", params.n_users, params.samples_per_user, length(params), stream(seed, "data", "random", 0)
    )
    steps = kept_steps(length(params))
    largest = most_samples(users)[steps - 1]
    frames = []
    for name in (NAIVE, SINGLE, MULTIPLE, FULL):
        made = settings(params, name, params.n_users, params.samples_per_user, length(params))
        frames.append(
            pd.DataFrame({"method": name, "step": steps, "bound": theory.error_bound(made, steps, largest, params.beta)})
        )
    return pd.concat(frames, ignore_index=True)


def rmse(table: pd.DataFrame, part: str, by: list[str]) -> pd.DataFrame:
    """Root mean square over runs with a 95% band, per method and `by`."""
    by = ["method", *by]
    return root_mean_square(table[table.part == part].set_index(by).square, by)


def slopes(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Per method and order: the slope of log error against log t over the last two thirds of the decades."""
    frame = rmse(table, "orders", ["order", "step"])
    late = frame[frame.step >= length(params) ** (1 / 3)]
    rows = [
        {"method": method, "order": order, "slope": slope(mine.step, mine.rmse), "at the end": float(mine.rmse.iloc[-1])}
        for (method, order), mine in late.groupby(["method", "order"], sort=False)
        if (mine.rmse > 0).all()
    ]
    return pd.DataFrame(rows)


def slope_table(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Error at the end of the stream (fitted slope), per method and order."""
    frame = slopes(params, table)
    shown = frame.assign(
        text=[f"{digits(end, 3)} ({fit:.2f})" for end, fit in zip(frame["at the end"], frame.slope, strict=True)]
    )
    wide = shown.pivot(index="method", columns="order", values="text").reindex(METHODS)[list(ORDER_NAMES)]
    return wide.rename(columns=ORDER_NAMES).reset_index()


def noise_powers(params: Any, table: pd.DataFrame) -> dict[str, float]:
    """Slope of the calculated noise's logarithm against the cap's, of each method that is run where users use up their caps."""
    exact = table[table.part == "caps"].groupby(["method", "cap"], sort=False).exact.first()
    caps = list(params.cap_sweep)
    return {name: slope(caps, np.sqrt(exact[name].loc[caps])) for name in (NAIVE, SINGLE, MULTIPLE)}


def slope(x: Any, y: Any) -> float:
    """Of log y against log x, by least squares."""
    return float(np.polyfit(np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float)), 1)[0])


def diversity(params: Any, seed: int) -> pd.DataFrame:
    """Per order: the first of a grid of steps from which on the diversity condition (11) holds, as a fraction of the stream."""
    made = algorithms.full(params.n_users, params.samples_per_user, params.epsilon, beta=params.beta)
    rows = []
    for order in streams.ORDERS:
        users = streams.arrivals(
            order, params.n_users, params.samples_per_user, length(params), stream(seed, "data", order, 0)
        )
        first = diverse_from(made, users)
        rows.append(
            {
                "order": ORDER_NAMES[order],
                "diversity condition holds from": "never" if math.isinf(first) else f"{first:.0%} of the stream",
            }
        )
    return pd.DataFrame(rows)


def diverse_from(made: Blocks, users: ArrayLike, points: int = 200) -> float:
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
            naive = algorithms.naive(n_users, 2**power, epsilon)
            full = algorithms.full(n_users, 2**power, epsilon, beta=beta)
            rows.append(
                {
                    "n_users": n_users,
                    "cap": 2**power,
                    "epsilon": epsilon,
                    "ratio": math.sqrt(naive.sums.l1 / 2 * naive.noise.variance) / _average_noise(full),
                    "diverse": n_users >= theory.arrays_needed(full, 2**power),
                }
            )
    return pd.DataFrame(rows)


def _average_noise(made: Blocks) -> float:
    """Standard deviation of the noise of the sum, half of each tree's digits being 1."""
    return math.sqrt(made.sums.l1 / 2 * sum(noise.variance for noise in made.noises))


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read, by short names of the methods (`SHORT`)."""
    caps, errors = table[table.part == "caps"], table[(table.part == "orders") & (table.order == "random")]
    loose = rmse(table, "loose", ["cap"]).set_index(["method", "cap"]).rmse
    tight, wide = min(params.loose_caps), max(params.loose_caps)
    bounded = errors[errors.bound.notna()]
    active = bounded[(bounded.method != FULL) | (bounded.step >= length(params) / 2)]
    ahead = advantage(params.epsilon, params.beta)
    ahead = ahead[ahead.ratio > 1]
    made = algorithms.full(params.n_users, params.samples_per_user, params.epsilon, beta=params.beta)
    ends = slopes(params, table).set_index(["method", "order"])["at the end"]
    powers = noise_powers(params, table)
    return {
        "over_exact": math.sqrt((caps.square / caps.exact).mean()),
        "share_beyond": (active.error > active.bound).mean(),
        "first_diverse_win": ahead[ahead.diverse].cap.min(),
        "first_win": ahead.cap.min(),
        "arrays": theory.arrays_needed(made, params.samples_per_user),
        "full_wide_share": loose[FULL, wide] / params.mean if params.mean else math.inf,
        "full_end": ends[FULL, "random"],
        **{f"{short}_slope": powers[name] for short, name in SHORT.items() if name in powers},
        **{f"{short}_tight": loose[name, tight] for short, name in SHORT.items()},
        **{f"{short}_wide": loose[name, wide] for short, name in SHORT.items()},
    }


def of_own(params: Any, seed: int) -> Release:
    """The recommended running mean of a file's samples."""
    return released(params, 0.0, seed)
