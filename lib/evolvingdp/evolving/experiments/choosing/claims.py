"""The sentences that the chapter says about all methods together, and the numbers that its prose prints."""

from __future__ import annotations

import math

import pandas as pd

from evolvingdp.evolving.experiments.choosing.methods import MEMOIZED, OPTIMAL, TREES, TUNED, TWO_LAYERS, layered
from evolvingdp.evolving.experiments.choosing.params import Params
from evolvingdp.evolving.experiments.choosing.tables import geometric_mean, line, winners
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE, SIXTEEN
from evolvingdp.evolving.rivals.memoized import Memoized
from evolvingdp.experiment import Claim, Scalar, at_least, at_most, within

FACTOR = 2.0  # that the choice promises, of the best of all methods


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    online, late = winners(table, "mean_error", True), winners(table, "mean_error", False)
    largest = winners(table, "max_error", True)
    long = largest[(largest.epoch_length == max(params.map_lengths)) & (largest.n_users == min(params.map_users))]
    short = online[online.epoch_length == min(params.map_lengths)]
    sweeps = pd.concat([line(table, part).set_index("method") for part in ("horizon", "changes", "epoch_length")])
    lengths = line(table, "epoch_length").set_index(["method", "epoch_length"]).mean_error
    rare = line(table, "rare").groupby("method").mean_error.apply(geometric_mean)
    last = line(table, "rare").query("horizon == horizon.max()").set_index("method").mean_error
    half = Memoized.rappor(params.n_users, 8, 0.5, 0.5)
    crews, tuned = lengths.get((CREWS, max(params.epoch_lengths))), lengths.get((TUNED, max(params.epoch_lengths)))
    found = [
        at_most(
            "Online the choice stays within a factor of the best of all methods: the largest, less two of its standard errors",
            (online.factor - 2 * online.standard_error).max(),
            FACTOR,
        ),
        at_most(
            "In hindsight the choice stays within a factor of the best of all methods: the largest, less two of its standard errors",
            (late.factor - 2 * late.standard_error).max(),
            FACTOR,
        ),
        at_most(
            "The choice is close to the best in most settings: geometric mean of the factors, online", _mean(online), 1.1
        ),
        at_most(
            "The choice is close to the best in most settings: geometric mean of the factors, in hindsight", _mean(late), 1.1
        ),
        at_least(
            "In hindsight each user once, averaged, has the smallest mean error in most settings: share",
            float((late.best == HINDSIGHT).mean()),
            0.5,
        ),
        at_least(
            "With the longest epochs and the fewest users voting has the smallest largest error in most settings: share",
            float(long.best.isin([CREWS, TUNED]).mean()),
            0.5,
        ),
        at_most(
            "With the shortest epochs voting never has the smallest mean error: share",
            float(short.best.isin([CREWS, TUNED]).mean()) if min(params.map_lengths) == 1 else math.nan,
            0.0,
        ),
        at_least(
            "Recomputing with optimal composition is nowhere better than each user once: its smallest ratio",
            float((sweeps.loc[OPTIMAL].mean_error.to_numpy() / sweeps.loc[ONCE].mean_error.to_numpy()).min()),
            1.0,
        ),
        within(
            "Each user once does not need long epochs: its mean error with the longest over that with the shortest",
            lengths[ONCE, max(params.epoch_lengths)] / lengths[ONCE, min(params.epoch_lengths)],
            0.85,
            1.15,
        ),
        at_most(
            "Roles by lot beat THRESH, tuned, with the longest epochs: ratio of mean errors",
            math.nan if crews is None or tuned is None else crews / tuned,
            1.0,
        ),
        at_least(
            "Spending half of epsilon makes the error of Erlingsson et al. larger by a third or more: error over that with all of it",
            rare[TREES["erlingsson"]] / rare[TREES["erlingsson_exact"]],
            1.33,
        ),
        at_most(
            "The best randomizer, tuned, is the best of the trees: its error over the smallest of the others'",
            rare[TREES["best"]] / min(rare[method] for name, method in TREES.items() if name != "best"),
            1.0,
        ),
        at_most(
            "Each user once, averaged in hindsight, beats every tree: its error over that of the best",
            rare[HINDSIGHT] / rare[TREES["best"]],
            1.0,
        ),
        at_most(
            "Over long horizons the best tree beats each user once as reported: ratio of errors at the longest",
            last[TREES["best"]] / last[ONCE],
            1.0,
        ),
        within("Memoization with two layers of 0.5 each: exact loss of one report", half.transcript_loss(1), 0.119, 0.121),
        within(
            "Memoization with two layers of 0.5 each: exact loss of eight reports (promised for a bit that never changes: 0.5)",
            half.transcript_loss(8),
            1.26,
            1.28,
        ),
    ]
    return [claim for claim in found if not math.isnan(claim.value)]


def _mean(won: pd.DataFrame) -> float:
    return geometric_mean(won.factor)


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    online, late = winners(table, "mean_error", True), winners(table, "mean_error", False)
    largest = winners(table, "max_error", True)
    shown: dict[str, Scalar] = {
        "n_users": params.n_users,
        "horizon": params.horizon,
        "changes": params.changes,
        "epsilon": params.epsilon,
        "epoch_length": params.epoch_length,
        "settings": len(online),
        "map_runs": params.map_runs,
        "factor": FACTOR,
        "worst_online": float(online.factor.max()),
        "worst_late": float(late.factor.max()),
        "mean_factor_online": _mean(online),
        "mean_factor_late": _mean(late),
        "longest": max(params.map_lengths),
        "shortest": min(params.map_lengths),
    }
    names = {"tuned": TUNED, "crews": CREWS, "once": ONCE, "online": ONLINE, "detected": HINDSIGHT, "sixteen": SIXTEEN}
    for view, won in {"online": online, "late": late, "largest": largest}.items():
        for name, method in names.items():
            shown[f"won_{view}_{name}"] = int((won.best == method).sum())
        shown[f"won_{view}_votes"] = int(won.best.isin([CREWS, TUNED]).sum())
    short = online[online.epoch_length == min(params.map_lengths)]
    shown["won_short_votes"] = int(short.best.isin([CREWS, TUNED]).sum())
    rare = line(table, "rare").set_index(["method", "horizon"]).mean_error
    last = max(params.horizons)
    shown["last_horizon"] = last
    for name, method in (TREES | {"detected": HINDSIGHT, "once": ONCE, "memoized": TWO_LAYERS}).items():
        shown[f"rare_{name}"] = float(rare[method, last])
    for name, method in zip(("rappor", "loloha"), MEMOIZED, strict=False):
        shown[f"price_{name}"] = layered(method, params.n_users, last, params.epsilon).transcript_loss()
    return shown
