"""The tables that the page on THRESH shows, from a row a run: errors per method, slopes, and what other streams do."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from evolvingdp.evolving import baselines
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE
from evolvingdp.evolving.experiments.thresh.params import Params
from evolvingdp.evolving.experiments.thresh.scenarios import (
    BASELINES,
    CHANGES,
    OPTIMAL,
    PAPER,
    RIVALS,
    TUNED,
    by_lot,
    protocols,
)
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.experiment import Result

DELTA = 1e-6  # of the (epsilon, delta) baselines
REPORTS = dict.fromkeys(RIVALS, "1") | {CREWS: "1, or votes"}  # of a user
CLIPPED = 0.15  # a mean error above is no longer that of the noise: estimates are clipped


def curve(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """Mean error with its standard deviation over runs, per method and point of the sweep."""
    grouped = table[table.part == part].groupby(["method", part], sort=False)
    columns = grouped[["mean_error", "max_error"]]
    runs = grouped.size().rename("runs")
    return pd.concat([columns.mean(), columns.std().add_suffix("_sd"), runs], axis=1).reset_index()


def slope(table: pd.DataFrame, method: str) -> float:
    """Of log mean error against log T from T = 64 on, where the clipping of the estimates to [0, 1] does not matter."""
    line = curve(table, "horizon")
    line = line[(line.method == method) & (line.mean_error < CLIPPED) & (line.horizon >= 64)]
    if len(line) < 2:
        return math.nan
    return float(np.polyfit(np.log(line.horizon), np.log(line.mean_error), 1)[0])


def summary(result: Result[Params]) -> pd.DataFrame:
    """Over time: errors, updates and loss per method."""
    table, horizon, epsilon = result.table, result.params.horizon, result.params.epsilon
    rows = []
    for method, runs in table[table.part == "time"].groupby("method", sort=False):
        thresh = method in (PAPER, TUNED)
        rows.append(
            {
                "method": str(method).replace("epsilon", "$\\epsilon$"),
                "mean error": f"{runs.mean_error.mean():.4f} (sd {runs.mean_error.std():.4f})",
                "largest error of a run, mean": f"{runs.max_error.mean():.4f}",
                "proved bound": f"{runs.bound.iloc[0]:.3f}" if thresh else "–",
                "updates": f"{runs.updates.mean():.1f}" if thresh else "–",
                "reports of a user": "in each update" if thresh else REPORTS.get(str(method), f"{horizon}"),
                "loss": f"{runs.spent.max():.2f} of {epsilon:g}" if thresh else f"{epsilon:g}",
            }
        )
    return pd.DataFrame(rows)


def other_streams(result: Result[Params]) -> pd.DataFrame:
    """Other streams: errors, updates, and epochs in which an update was wanted that nobody could pay for."""
    table, rows = result.table, []
    for name, runs in table[table.part == "scenario"].groupby("scenario", sort=False):
        ours, theirs = (runs[runs.method == name] for name in (TUNED, OPTIMAL))
        others = {
            name: runs[runs.method == method].mean_error.mean()
            for name, method in {"roles by lot": CREWS, "once, online": ONLINE, "once, in hindsight": HINDSIGHT}.items()
        }
        rows.append(
            {
                "stream": name,
                "THRESH, tuned: mean error": f"{ours.mean_error.mean():.4f}",
                "largest error of a run, mean": f"{ours.max_error.mean():.4f}",
                "updates": f"{ours.updates.mean():.1f}",
                "flagged epochs": f"{ours.frozen.mean():.0f}",
                "every epoch, optimal": f"{theirs.mean_error.mean():.4f}",
            }
            | {name: "–" if math.isnan(error) else f"{error:.4f}" for name, error in others.items()}
        )
    return pd.DataFrame(rows)


def predicted_delay(settings: Thresh, size: float, change: int) -> int:
    """Epochs from `change` until the first whose threshold is below the change's size, when all vote; without noise."""
    for epoch in range(change, settings.horizon + 1):
        if settings.threshold(epoch) < size:
            return epoch - change
    return settings.horizon - change


def recomputed(every: int) -> str:
    return f"every {every} epochs, basic"


def predicted_error(params: Params, method: str, n_users: int, horizon: int) -> float:
    """Mean absolute error of one estimate if it is normal with the standard error at mean 1/2; THRESH: after each change;
    averaged in hindsight: as if it were known when changes come."""
    if method in (ONCE, HINDSIGHT):
        one = math.sqrt(2 / math.pi) * Once(n_users, horizon, params.epoch_length, params.epsilon).standard_error
        stretches = (
            np.diff([0.0, *(share for share, _ in CHANGES), 1.0]) if method == HINDSIGHT else np.ones(horizon) / horizon
        )
        return one * float(np.sqrt(stretches).sum()) / math.sqrt(horizon)
    if method == CREWS:
        crews = by_lot(params, n_users, horizon)
        return math.nan if crews is None else crews.predicted_error
    if method in BASELINES:
        one = baselines.epsilon_of_report(params.epsilon, horizon, BASELINES[method], DELTA)
        return math.sqrt(2 / math.pi) * baselines.standard_error(n_users, one)
    return math.sqrt(2 / math.pi) * protocols(params, n_users, horizon)[method].standard_error
