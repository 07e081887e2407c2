"""The paper's algorithms on its problem: error over time on five arrival orders, against the cap, and where each one wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.continual_mean import algorithms, offline, streams, theory, where_it_wins
from evolvingdp.continual_mean.per_step import PerStepLaplace, most_samples
from evolvingdp.continual_mean.scores import root_mean_square, slope
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, parameter, within

NOTEBOOK = "continual_mean/user_mean"
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
ORDER_NAMES = {
    "contiguous": "contiguous",
    "round_robin": "round robin",
    "random": "random",
    "zipf": "Zipf",
    "dominant": "dominant",
}
POINTS = 40  # steps at which errors are kept

Cap = Annotated[int, Field(ge=2, le=2**20)]


class Params(experiment.Params):
    """Bits of one mean. Algorithms 3 to 5 are given a prior that is off by 1/sqrt(m), as far as the theorems allow."""

    n_users: int = parameter(1000, symbol="$n$", unit="users", meaning="users", ge=10, le=10**6)
    samples_per_user: int = parameter(64, symbol="$m$", unit="samples", meaning="samples of a user at most", ge=2, le=2**16)
    epsilon: float = parameter(4.0, symbol=r"$\epsilon$", meaning="privacy loss of a user", ge=1e-6, le=1000)
    beta: float = parameter(0.05, symbol=r"$\delta$", meaning="failure probability of accuracy", gt=0, lt=1)
    mean: float = parameter(0.3, symbol=r"$\mu$", meaning="mean of the bits", ge=0, le=1)
    repetitions: int = parameter(3, symbol="", unit="runs", meaning="runs on each order, new data and noise", ge=2, le=1000)
    cap_sweep: tuple[Cap, ...] = parameter((16, 64, 256), symbol="$m$", meaning="caps that full users use up", min_length=2)
    loose_users: int = parameter(2000, symbol="$n$", unit="users", meaning="users where the cap is loose", ge=10, le=10**6)
    loose_samples: int = parameter(16, symbol="$M_T$", unit="samples", meaning="samples a user has there", ge=2, le=1024)
    loose_caps: tuple[Cap, ...] = parameter((16, 256, 4096), symbol="$m$", meaning="caps compared there", min_length=2)

    metric = experiment.Metric("full_end", "root mean square error of Algorithm 6 at the stream's end, random order")
    presets = {
        "paper": {
            "n_users": 2000,
            "samples_per_user": 256,
            "repetitions": 10,
            "cap_sweep": (16, 32, 64, 128, 256, 512),
            "loose_users": 20_000,
            "loose_caps": (16, 64, 256, 1024, 4096, 16384, 65536),
        }
    }

    _each_once = field_validator("cap_sweep", "loose_caps")(experiment.distinct)

    @model_validator(mode="after")
    def _caps(self) -> Self:
        if min(self.loose_caps) < self.loose_samples:
            raise ValueError(f"loose_caps must be at least loose_samples = {self.loose_samples}, got {min(self.loose_caps)}")
        return self

    @property
    def horizon(self) -> int:
        return self.n_users * self.samples_per_user


def settings(params: Params, name: str, n_users: int, cap: int, horizon: int, order: str = "") -> UserMean:
    """The algorithm called `name`; the prior is above or below the mean by 1/sqrt(cap)."""
    options: dict[str, Any] = {"beta": params.beta, "horizon": horizon}
    if name in NEEDS_PRIOR:
        off = 1 / math.sqrt(cap)
        options["prior_mean"] = params.mean + off if params.mean + off <= 1 else max(0.0, params.mean - off)
    return PRIVATE[name](n_users, cap, params.epsilon, **options)


def estimates(
    params: Params, name: str, make: Callable[[], UserMean], users: Any, bits: Any, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The estimates of the method called `name` after every step."""
    if name == MEAN:
        return algorithms.running_mean(bits)
    if name == PER_STEP:
        return PerStepLaplace(len(bits), params.epsilon).release(users, bits, rng)
    return offline.release(make(), users, bits, rng).estimate


def run(params: Params, seed: int) -> Result[Params]:
    """A row per part, method, order or cap, run and kept step: the estimate's error."""
    rows = [*_orders(params, seed), *_caps(params, seed), *_loose(params, seed)]
    table = pd.DataFrame(rows)
    return Result(NOTEBOOK, params, seed, table, _claims(params, table, seed), _values(params, table, seed))


def kept_steps(horizon: int) -> NDArray[np.int64]:
    return np.unique(np.round(np.geomspace(1, horizon, POINTS)).astype(np.int64))


def _orders(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    steps = kept_steps(params.horizon)
    for order in streams.ORDERS:
        for repetition in range(params.repetitions):
            rng = stream(seed, "data", order, repetition)
            users = streams.arrivals(order, params.n_users, params.samples_per_user, params.horizon, rng)
            bits = streams.bits(params.mean, params.horizon, rng)
            for name in METHODS:
                make = partial(settings, params, name, params.n_users, params.samples_per_user, params.horizon)
                got = estimates(params, name, make, users, bits, stream(seed, "noise", order, name, repetition))
                window = np.abs(got - params.mean)
                for step in steps:
                    yield {
                        "part": "orders",
                        "method": name,
                        "order": order,
                        "repetition": repetition,
                        "step": int(step),
                        "error": float(window[step - 1]),
                        "square": float(np.mean(np.square(window[step - 1 : max(step, int(1.2 * step))]))),
                    }


def _caps(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Users who use up their cap, in turns: the released mean against the mean of the data over the last quarter."""
    n_users = params.n_users
    for cap in params.cap_sweep:
        horizon = n_users * cap
        users = streams.arrivals("round_robin", n_users, cap, horizon, stream(seed))
        for repetition in range(params.repetitions):
            bits = streams.bits(params.mean, horizon, stream(seed, "cap data", cap, repetition))
            for name in (NAIVE, SINGLE, MULTIPLE):
                made = settings(params, name, n_users, cap, horizon)
                got = offline.release(made, users, bits, stream(seed, "cap noise", name, cap, repetition))
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


def _loose(params: Params, seed: int) -> Iterator[dict[str, Any]]:
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
                got = offline.release(made, users, bits, stream(seed, "loose noise", name, cap, repetition)).estimate
                tail = got[horizon // 2 :] - params.mean
                yield {
                    "part": "loose",
                    "method": name,
                    "cap": cap,
                    "repetition": repetition,
                    "square": float(np.mean(np.square(tail))),
                }


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
    shown = frame.assign(text=[f"{end:.3g} ({fit:.2f})" for end, fit in zip(frame["at the end"], frame.slope, strict=True)])
    wide = shown.pivot(index="method", columns="order", values="text").reindex(METHODS)[list(ORDER_NAMES)]
    return wide.rename(columns=ORDER_NAMES).reset_index()


def diversity(params: Params, seed: int) -> pd.DataFrame:
    """Per order: the first of a grid of steps from which on the diversity condition (11) holds, as a fraction of the stream."""
    made = settings(params, FULL, params.n_users, params.samples_per_user, params.horizon)
    rows = []
    for order in streams.ORDERS:
        users = streams.arrivals(
            order, params.n_users, params.samples_per_user, params.horizon, stream(seed, "data", order, 0)
        )
        first = where_it_wins.diverse_from(made, users)
        rows.append(
            {"order": ORDER_NAMES[order], "holds from": "never" if math.isinf(first) else f"{first:.0%} of the stream"}
        )
    return pd.DataFrame(rows)


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


def _claims(params: Params, table: pd.DataFrame, seed: int) -> list[Claim]:
    caps = rmse(table, "caps", ["cap"])
    exact = table[table.part == "caps"].groupby(["method", "cap"]).exact.first()
    measured = caps.set_index(["method", "cap"]).rmse
    loose = rmse(table, "loose", ["cap"]).set_index(["method", "cap"]).rmse
    tight, wide = min(params.loose_caps), max(params.loose_caps)
    bound = bounds(params, seed)
    errors = table[(table.part == "orders") & (table.order == "random")]
    joined = errors.merge(bound, on=["method", "step"])
    active = joined[(joined.method != FULL) | (joined.step >= params.horizon / 2)]
    claims = [
        within(
            "Algorithm 2's noise grows with m: slope of log noise against log m",
            slope(params.cap_sweep, measured[NAIVE].loc[list(params.cap_sweep)]),
            0.8,
            1.3,
        ),
        at_most(
            "Algorithm 5's noise grows with sqrt(m) and logarithms: slope, below Algorithm 2's by",
            slope(params.cap_sweep, measured[MULTIPLE].loc[list(params.cap_sweep)])
            - slope(params.cap_sweep, measured[NAIVE].loc[list(params.cap_sweep)]),
            -0.15,
        ),
        at_most(
            "Algorithm 2's noise is the calculated one: largest relative distance over caps",
            float((measured[NAIVE] / np.sqrt(exact[NAIVE]) - 1).abs().max()),
            0.5,
        ),
        at_most(
            "A loose cap costs Algorithm 6 little: its error at the largest cap over that at the smallest, relative to Algorithm 2's",
            (loose[FULL, wide] / loose[FULL, tight]) / (loose[NAIVE, wide] / loose[NAIVE, tight]),
            0.5,
        ),
        at_most(
            "The bounds hold: share of (run, step) on the random order whose error exceeds the bound",
            float((active.error > active.bound).mean()),
            params.beta,
        ),
    ]
    map_ = where_it_wins.advantage(params.epsilon, params.beta)
    wins = map_[(map_.ratio > 1) & map_.diverse]
    claims.append(
        at_least("Algorithm 6 beats Algorithm 2 with full users only at caps of at least", float(wins.cap.min()), 2**10)
    )
    return claims


def _values(params: Params, table: pd.DataFrame, seed: int) -> dict[str, Scalar]:
    caps = rmse(table, "caps", ["cap"]).set_index(["method", "cap"]).rmse
    loose = rmse(table, "loose", ["cap"]).set_index(["method", "cap"]).rmse
    fitted = slopes(params, table).set_index(["method", "order"])["at the end"]
    tight, wide = min(params.loose_caps), max(params.loose_caps)
    made = settings(params, FULL, params.n_users, params.samples_per_user, params.horizon)
    map_ = where_it_wins.advantage(params.epsilon, params.beta)
    short = {NAIVE: "naive", SINGLE: "single", MULTIPLE: "multiple", FULL: "full", WISHFUL: "wishful", MEAN: "mean"}
    return {
        "n_users": params.n_users,
        "samples_per_user": params.samples_per_user,
        "horizon": params.horizon,
        "epsilon": params.epsilon,
        "runs": params.repetitions,
        "arrays": theory.arrays_needed(made, params.samples_per_user),
        "first_win": int(map_[map_.ratio > 1].cap.min()),
        "largest_ratio": float(map_.ratio.max()),
        **{
            f"{short[name]}_slope": slope(params.cap_sweep, caps[name].loc[list(params.cap_sweep)])
            for name in (NAIVE, SINGLE, MULTIPLE)
        },
        **{f"{short[name]}_tight": float(loose[name, tight]) for name in (NAIVE, MULTIPLE, FULL)},
        **{f"{short[name]}_wide": float(loose[name, wide]) for name in (NAIVE, MULTIPLE, FULL)},
        **{f"{short[name]}_end": float(fitted[name, "random"]) for name in (NAIVE, SINGLE, MULTIPLE, FULL, MEAN)},
    }
