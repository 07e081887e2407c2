"""The sentences that the chapter says about THRESH's numbers, and the numbers that its prose prints."""

from __future__ import annotations

import math

import pandas as pd

from evolvingdp.evolving.constants import paper_error_bound
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE, SIXTEEN
from evolvingdp.evolving.experiments.thresh.params import HORIZON_SWEEP_USERS, Params
from evolvingdp.evolving.experiments.thresh.scenarios import (
    ADVANCED,
    CHANGES,
    METHODS,
    NAIVE,
    OPTIMAL,
    PAPER,
    TUNED,
    protocols,
)
from evolvingdp.evolving.experiments.thresh.tables import curve, predicted_error, recomputed, slope
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.experiment import Claim, Scalar, at_least, at_most, within


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    time = table[table.part == "time"].groupby("method")
    error = time.mean_error.mean()
    sizes = table[(table.part == "size") & (table.share > 1.3)]
    drift = curve(table.assign(drift=table["size"]), "drift").set_index(["method", "drift"]).mean_error
    rare = recomputed(params.horizon // 16)
    users = curve(table, "n_users").set_index(["method", "n_users"]).mean_error
    most, fewest = max(params.n_users_sweep), min(params.n_users_sweep)
    thresh = table[(table.part == "time") & table.method.isin([PAPER, TUNED])]
    settings = protocols(params, params.n_users, params.horizon)
    lasting = [method for method in (PAPER, TUNED) if settings[method].changes >= len(CHANGES)]
    bounded = thresh[thresh.method.isin(lasting)]
    loss = float((thresh.spent / params.epsilon).max())
    found = [
        at_most("No user ever spends more than epsilon: largest share over all runs", loss, 1.0),
        at_least(
            "Every change is found: fewest updates in a run, tuned", float(time.updates.min()[TUNED]), len(CHANGES) + 1
        ),
        at_most(
            "The proved bound holds where the caps pay for all changes: largest error over bound",
            float((bounded.max_error / bounded.bound).max()),
            1.0,
        ),
        at_most("Theorem 4.3's bound holds, too", float(bounded.max_error.max() / _theorem(params)), 1.0),
        at_most("THRESH, tuned, over recomputation with epsilon/T: mean error", error[TUNED] / error[NAIVE], 0.2),
        at_most("THRESH, tuned, over recomputation with optimal composition", error[TUNED] / error[OPTIMAL], 0.5),
        at_most(
            "Each user once has a smaller mean error than recomputing with optimal composition",
            error[ONCE] / error[OPTIMAL],
            1.0,
        ),
        at_most(
            "Averaged in hindsight, each user once has a smaller mean error than THRESH, tuned",
            error[HINDSIGHT] / error[TUNED],
            1.0,
        ),
        at_most("and averaged online, too", error[ONLINE] / error[TUNED], 1.0),
        at_least(
            "THRESH keeps the smaller largest error online: that of each user once, averaged online, over it",
            time.max_error.mean()[ONLINE] / time.max_error.mean()[TUNED],
            1.0,
        ),
        at_least(
            "Roles by lot, too: the largest error of each user once, averaged online, over theirs",
            time.max_error.mean()[ONLINE] / time.max_error.mean().get(CREWS, math.nan),
            1.0,
        ),
        within(
            "Their standard error explains them: measured over predicted mean error",
            error.get(CREWS, math.nan) / predicted_error(params, CREWS, params.n_users, params.horizon),
            0.6,
            1.4,
        ),
        within(
            "Averaged in hindsight, each user once is about as good as if it were known when changes come: ratio",
            error[HINDSIGHT] / predicted_error(params, HINDSIGHT, params.n_users, params.horizon),
            0.6,
            1.4,
        ),
        at_most(
            "Splitting users over 16 periods beats splitting epsilon, where nothing moves: ratio of mean errors",
            drift[SIXTEEN, 0.0] / drift[rare, 0.0],
            0.5,
        ),
        at_most(
            "The known standard error explains each user once: measured over predicted mean error, largest over the horizons",
            max(
                line.mean_error / predicted_error(params, ONCE, HORIZON_SWEEP_USERS, int(line.horizon))
                for line in curve(table, "horizon").query("method == @ONCE").itertuples()
            ),
            1.15,
        ),
        within("Recomputation's error grows linearly with T: slope", slope(table, NAIVE), 0.8, 1.1),
        within("With advanced composition like sqrt(T): slope", slope(table, ADVANCED), 0.4, 0.6),
        at_most("THRESH's grows more slowly than any power measured for the others: slope", slope(table, TUNED), 0.3),
        at_least(
            "With the paper's b the error does not fall with n: error at most users over that at fewest",
            users[PAPER, most] / users[PAPER, fewest],
            0.7,
        ),
        at_most("Changes well above the top threshold are found at once: longest delay", float(sizes.delay.max()), 0.0),
        at_most(
            "On a drift of .4 each user once, averaged online, is better than THRESH, tuned: ratio of mean errors",
            drift[ONLINE, 0.4] / drift[TUNED, 0.4],
            1.0,
        ),
        at_least(
            "On a drift of .4 recomputing 16 times is better: THRESH's error over that",
            drift[TUNED, 0.4] / drift[rare, 0.4],
            1.0,
        ),
    ]
    if (params.n_users, params.horizon, params.epoch_length, params.epsilon) == (10**6, 1024, 10**6, 1.0):
        found += [
            at_most("Mean error with the paper's constants", error[PAPER], 0.010),
            at_most("Mean error, tuned", error[TUNED], 0.006),
            at_most("Mean error, roles by lot", error[CREWS], 0.0028),
            at_most(
                "Mean error, each user once, averaged in hindsight",
                error[HINDSIGHT] if params.repetitions >= 40 else math.nan,
                0.002,
            ),
        ]
    return [claim for claim in found if not math.isnan(claim.value)]


def _theorem(params: Params) -> float:
    return paper_error_bound(params.n_users, params.horizon, params.epoch_length, params.beta)


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    time = table[table.part == "time"].groupby("method")
    settings = protocols(params, params.n_users, params.horizon)
    names = dict(zip(("paper", "tuned", "naive", "advanced", "optimal"), METHODS, strict=True))
    names |= {"once": ONCE, "online": ONLINE, "detected": HINDSIGHT, "crews": CREWS, "sixteen": SIXTEEN}
    shown: dict[str, Scalar] = {
        "n_users": params.n_users,
        "horizon": params.horizon,
        "epoch_length": params.epoch_length,
        "epsilon": params.epsilon,
        "runs": params.repetitions,
        "top_threshold": settings[TUNED].threshold(1),
        "bottom_threshold": 2 * settings[TUNED].unit,
        "bound_paper": settings[PAPER].error_bound,
        "bound_tuned": settings[TUNED].error_bound,
        "bound_theorem": _theorem(params),
        "a_paper": settings[PAPER].vote_epsilon,
        "a_tuned": settings[TUNED].vote_epsilon,
        "b_paper": settings[PAPER].estimate_epsilon,
        "b_tuned": settings[TUNED].estimate_epsilon,
        "printed_loss": Thresh.printed(
            params.n_users, params.horizon, params.epoch_length, params.epsilon, beta=params.beta
        ).privacy_loss,
    }
    drifts = table[table.part == "drift"].groupby(["size", "method"]).mean_error.mean()
    shown["drift_basic"], shown["drift_sixteen"] = (
        float(drifts[0, method]) for method in (recomputed(params.horizon // 16), SIXTEEN)
    )
    for short, method in names.items():
        if (0.4, method) in drifts.index:
            shown[f"moved_{short}"] = float(drifts[0.4, method])
    for short, method in names.items():
        if method not in time.groups:
            continue
        shown[f"error_{short}"] = float(time.mean_error.mean()[method])
        shown[f"largest_{short}"] = float(time.max_error.max()[method])
        if not math.isnan(slope(table, method)):
            shown[f"slope_{short}"] = slope(table, method)
    return shown
