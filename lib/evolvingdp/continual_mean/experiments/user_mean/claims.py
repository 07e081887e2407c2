"""The paper's algorithms: what the page claims, and the numbers that prose prints."""

from __future__ import annotations

import math

import pandas as pd

from evolvingdp.continual_mean import theory
from evolvingdp.continual_mean.experiments.user_mean.params import Params
from evolvingdp.continual_mean.experiments.user_mean.tables import (
    FULL,
    MEAN,
    MULTIPLE,
    NAIVE,
    SINGLE,
    WISHFUL,
    advantage,
    bounds,
    noise_powers,
    rmse,
    settings,
    slopes,
)
from evolvingdp.experiment import Claim, Scalar, at_least, at_most, within


def claims(params: Params, table: pd.DataFrame, seed: int) -> list[Claim]:
    caps = table[table.part == "caps"]
    power = noise_powers(params, table)
    loose = rmse(table, "loose", ["cap"]).set_index(["method", "cap"]).rmse
    tight, wide = min(params.loose_caps), max(params.loose_caps)
    bound = bounds(params, seed)
    errors = table[(table.part == "orders") & (table.order == "random")]
    joined = errors.merge(bound, on=["method", "step"])
    active = joined[(joined.method != FULL) | (joined.step >= params.horizon / 2)]
    found = [
        within("Algorithm 2's noise grows with m: slope of log noise, calculated, against log m", power[NAIVE], 0.8, 1.3),
        at_most(
            "Algorithm 5's noise grows with sqrt(m) and logarithms: its slope minus Algorithm 2's",
            power[MULTIPLE] - power[NAIVE],
            -0.15,
        ),
        within(
            "The noise is the calculated one: error over it, root mean square of all caps and runs of Algorithms 2, 4 and 5",
            math.sqrt((caps.square / caps.exact).mean()),
            0.6,
            1.5,
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
    map_ = advantage(params.epsilon, params.beta)
    wins = map_[(map_.ratio > 1) & map_.diverse]
    found.append(
        at_least("Algorithm 6 beats Algorithm 2 with full users only at caps of at least", float(wins.cap.min()), 2**10)
    )
    return found


def values(params: Params, table: pd.DataFrame, seed: int) -> dict[str, Scalar]:
    loose = rmse(table, "loose", ["cap"]).set_index(["method", "cap"]).rmse
    fitted = slopes(params, table).set_index(["method", "order"])["at the end"]
    tight, wide = min(params.loose_caps), max(params.loose_caps)
    made = settings(params, FULL, params.n_users, params.samples_per_user, params.horizon)
    map_ = advantage(params.epsilon, params.beta)
    short = {NAIVE: "naive", SINGLE: "single", MULTIPLE: "multiple", FULL: "full", WISHFUL: "wishful", MEAN: "mean"}
    return {
        **params.model_dump(include={"n_users", "samples_per_user", "epsilon", "fill"}),
        "full_wide_share": float(loose[FULL, wide]) / params.mean if params.mean else math.inf,
        "horizon": params.horizon,
        "runs": params.repetitions,
        "arrays": theory.arrays_needed(made, params.samples_per_user),
        "first_win": int(map_[map_.ratio > 1].cap.min()),
        "largest_ratio": float(map_.ratio.max()),
        **{f"{short[name]}_slope": power for name, power in noise_powers(params, table).items()},
        **{f"{short[name]}_tight": float(loose[name, tight]) for name in (NAIVE, MULTIPLE, FULL)},
        **{f"{short[name]}_wide": float(loose[name, wide]) for name in (NAIVE, MULTIPLE, FULL)},
        **{f"{short[name]}_end": float(fitted[name, "random"]) for name in (NAIVE, SINGLE, MULTIPLE, FULL, MEAN)},
    }
