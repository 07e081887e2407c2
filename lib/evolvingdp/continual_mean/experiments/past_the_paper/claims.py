"""Past the paper: what the page claims, and the numbers that prose prints."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.stats import chi2

from evolvingdp.continual_mean.experiments.past_the_paper import rungs
from evolvingdp.continual_mean.experiments.past_the_paper.params import SETTINGS, Params
from evolvingdp.continual_mean.experiments.past_the_paper.rungs import (
    EQUAL,
    EQUAL_DELTA,
    FOR_ALL_USERS,
    RECOMMENDED_DELTA,
    UNPROJECTED,
    UNPROJECTED_DELTA,
)
from evolvingdp.continual_mean.experiments.past_the_paper.tables import part
from evolvingdp.continual_mean.prefix_sums import best_branching
from evolvingdp.experiment import Claim, Scalar, at_least, at_most

POPULATION_RUNS = 2  # each error is many times the stated one, or not


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    errors = part(table, "ladder", ["rung", "setting"]).set_index(["rung", "setting"])
    rmse = errors.rmse
    over_full = rmse[rungs.RECOMMENDED] / rmse[rungs.FULL]
    rival = np.minimum(rmse[rungs.NAIVE], rmse[rungs.NAIVE_WIDE])
    over_rival = rmse[rungs.RECOMMENDED] / rival
    both = errors.loc[[rungs.RECOMMENDED, rungs.RECOMMENDED_DELTA]]
    found = [
        *(
            at_most(f"The recommended estimate's error over that of corrected Algorithm 6, {title}", over_full[setting], 0.2)
            for setting, title in SETTINGS.items()
        ),
        *(
            at_most(f"and over that of Algorithm 2, even with a wide tree, {title}", over_rival[setting], 0.2)
            for setting, title in SETTINGS.items()
            if setting != "full"
        ),
        at_most(
            "The stated standard error is not too small: largest measured over stated, recommended rungs",
            (both.rmse / both.predicted).max(),
            over_stated(params.repetitions, 6),
        ),
    ]
    found += _where_users_differ(part(table, "populations", ["rung", "setting"]), POPULATION_RUNS)
    given, paper = (one.model_dump(exclude={"repetitions", "dimensions"}) for one in (params, Params.make("paper")))
    if given == paper:
        found += [
            at_most(
                "Corrected Algorithm 6 (levels 0 and 1 exact), random order: distance to .105",
                abs(rmse[rungs.START, "random"] - 0.105),
                0.02,
            ),
            at_most("Recommended, pure, random order", rmse[rungs.RECOMMENDED, "random"], 0.004),
            at_most("Recommended, (epsilon, delta), random order", rmse[rungs.RECOMMENDED_DELTA, "random"], 0.001),
            at_most("Recommended, pure, full users", rmse[rungs.RECOMMENDED, "full"], 0.010),
            at_most("and over Algorithm 2, even with a wide tree", over_rival["full"], 1.0),
            at_most("Naive binary tree, full users: distance to .018", abs(rmse[rungs.NAIVE, "full"] - 0.018), 0.004),
            at_most("Recommended, pure, Zipf users", rmse[rungs.RECOMMENDED, "zipf"], 0.006),
        ]
    by_dimension = part(table, "dimensions", ["rung", "dimension"]).set_index(["rung", "dimension"]).predicted
    largest = max(params.dimensions)
    found.append(
        at_least(
            f"In {largest} dimensions Gaussian noise beats epsilon / d: ratio of stated errors",
            by_dimension["pure: epsilon / d", largest] / by_dimension["(eps, delta): Gaussian", largest],
            3,
        )
    )
    return found


def over_stated(runs: int, errors: int) -> float:
    """Largest of `errors` normal errors, root mean square of `runs`, over its stated one: exceeded once in 1000 tries."""
    return math.sqrt(chi2.ppf(1 - 1e-3 / errors, runs) / runs)


def _where_users_differ(errors: pd.DataFrame, runs: int) -> list[Claim]:
    """Where users differ, some stated errors are wrong and others hold.

    `errors`: a row per rung (of `FOR_ALL_USERS`) and setting (of `POPULATIONS`), measured (rmse) and stated (predicted).
    """
    table = errors.set_index(["rung", "setting"])
    over = table.rmse / table.predicted
    equal = [over[name, population] for name in (EQUAL, EQUAL_DELTA) for population in rungs.POPULATIONS]
    unprojected = [over[name, kind] for name in (UNPROJECTED, UNPROJECTED_DELTA) for kind in ("beta", "two kinds")]
    active = [over[name, "active kind"] for name in FOR_ALL_USERS if name not in (EQUAL, EQUAL_DELTA)]
    return [
        at_least(
            "Users of two kinds, full users: the recommended (eps, delta) estimate's error over the one that it states",
            over[RECOMMENDED_DELTA, "two kinds"],
            3,
        ),
        at_least(
            "The most active are of one kind: the same of all recommended estimates, also without projection, at least",
            min(active),
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


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    errors = part(table, "ladder", ["rung", "setting"]).set_index(["rung", "setting"])
    scores = {
        f"{setting}_{name}": float(errors.rmse[long, setting]) for setting in SETTINGS for long, name in rungs.KEYS.items()
    }
    for row in part(table, "populations", ["rung", "setting"]).to_dict("records"):
        name = f"{row['setting']}_{rungs.POPULATION_KEYS[row['rung']]}".replace(" ", "_")
        scores |= {name: float(row["rmse"]), f"{name}_stated": float(row["predicted"])}
    projected = table[table.part == "projected"].set_index("setting").share
    scores |= {f"{setting}_projected": float(projected[setting]) for setting in SETTINGS}
    orders = part(table, "orders", ["rung", "setting", "step"])
    ends = orders[orders.step == orders.step.max()].set_index(["rung", "setting"]).rmse
    return {
        **params.model_dump(exclude={"mean", "repetitions", "dimensions"}),
        "runs": params.repetitions,
        "branching": best_branching(params.n_users),
        "contiguous_recommended": float(ends[rungs.RECOMMENDED, "contiguous"]),
        "contiguous_naive": float(ends[rungs.NAIVE, "contiguous"]),
        "contiguous_root": float(ends[rungs.RECOMMENDED_DELTA, "contiguous"]),
        **scores,
    }
