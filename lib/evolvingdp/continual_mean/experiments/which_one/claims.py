"""Which mean for which stream: what the page claims, and the numbers that prose prints."""

from __future__ import annotations

import math

import pandas as pd
from scipy.stats import chi2

from evolvingdp.continual_mean.experiments.which_one.params import Params
from evolvingdp.continual_mean.experiments.which_one.tables import (
    ALIKE,
    ALONE,
    ANY_USERS,
    DELTA,
    DIFFER,
    DIFFERENCE,
    KINDS,
    PURE,
    RECOMMENDED,
    START,
    TREE,
    USERS_ALIKE,
    WIDE,
    days,
    errors,
)
from evolvingdp.experiment import Claim, Scalar, at_least, at_most


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    frame, day = errors(table), days(table)
    any_users = frame[frame.name.isin(ANY_USERS)]
    excess = (any_users.rmse - any_users.bias).clip(lower=0) / any_users.noise
    late = frame[(frame.part == "late") & (frame.population == ALIKE)].set_index(["name", "kind", "order", "fill"]).stated
    ratio = late[RECOMMENDED] / late[WIDE]
    least, most = min(params.fills), max(params.fills)
    zipf = frame[(frame.population == DIFFER) & (frame.order == "zipf") & (frame.part == "late")]
    differing = zipf.set_index(["name", "kind", "fill"]).rmse
    over = (day.rmse**2 / (day.noise**2 + day.bias**2)) ** 0.5
    return [
        at_most(
            "Errors of what is for any users are as stated, noise and bias, but for chance: largest measured over stated, all cells",
            float(excess.max()),
            math.sqrt(chi2.ppf(1 - 1e-3 / len(excess), params.repetitions) / params.repetitions),
        ),
        at_most(
            "In the second half what is recommended states at most 1 % more than a cap of m, as it is chosen at 41 moments only: largest ratio",
            float(ratio.max()),
            1.01,
        ),
        at_most(
            f"In random order the cap decides where T/(nm) is {least:.2g}: recommended over a cap of m, stated, pure",
            float(ratio[PURE, "random", least]),
            0.5,
        ),
        at_least(
            f"In random order the cap hardly matters where T/(nm) is {most:g}: recommended over a cap of m, stated, the smaller of pure and with delta",
            min(float(ratio[kind, "random", most]) for kind in KINDS),
            0.7,
        ),
        at_least(
            "Where Zipf's most active are of one kind and the cap is far, the mean for users alike errs more: over recommended",
            min(float(differing[USERS_ALIKE, kind, least] / differing[RECOMMENDED, kind, least]) for kind in KINDS),
            1.0,
        ),
        at_least(
            "A day with noise of its own has less than half the error of a difference of running sums, stated: the smaller ratio",
            min(float(day.noise[DIFFERENCE, kind] / day.noise[ALONE, kind]) for kind in KINDS),
            2,
        ),
        at_most("Days err no more than they state, noise and bias: largest ratio, all ways", float(over.max()), 1.2),
    ]


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    frame, day = errors(table), days(table)
    ways = {"difference": DIFFERENCE, "alone": ALONE, "tree": TREE}
    kinds = {"": PURE, "_delta": DELTA}
    shown = {f"day_{way}{end}": float(day.noise[name, kind]) for way, name in ways.items() for end, kind in kinds.items()}
    cells = frame.set_index(["part", "population", "order", "fill", "name", "kind"]).rmse
    means = {"wide": WIDE, "recommended": RECOMMENDED, "alike": USERS_ALIKE}
    ends = {"least": min(params.fills), "most": max(params.fills)}
    for order in ("random", "zipf", "contiguous"):
        for which, fill in ends.items():
            for mean, name in means.items():
                for end, kind in kinds.items():
                    shown[f"{order}_{which}_{mean}{end}"] = float(cells["late", ALIKE, order, fill, name, kind])
                    shown[f"{order}_{which}_{mean}{end}_differ"] = float(cells["late", DIFFER, order, fill, name, kind])
    return {
        "n_users": params.n_users,
        "samples_per_user": params.samples_per_user,
        "epsilon": params.epsilon,
        "days": params.days,
        "per_day": params.per_day,
        "runs": params.repetitions,
        "least": ends["least"],
        "start_early": float(cells["early", ALIKE, "random", 0.25, START, PURE]) if 0.25 in params.fills else math.nan,
        "recommended_early": float(cells["early", ALIKE, "random", 0.25, RECOMMENDED, PURE])
        if 0.25 in params.fills
        else math.nan,
        **shown,
    }
