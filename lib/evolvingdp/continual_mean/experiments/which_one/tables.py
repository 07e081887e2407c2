"""Which mean for which stream: the means compared, their errors by how much of their cap users send, and windows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from evolvingdp.continual_mean import algorithms, choosing, streams, windows
from evolvingdp.continual_mean.binary_mechanism import best_tree
from evolvingdp.continual_mean.experiments.which_one.params import Params
from evolvingdp.continual_mean.prefix_sums import Buffered
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.experiment.describe import digits

ORDERS = {"random": "random order", "zipf": "Zipf users", "contiguous": "one after the other"}
ALIKE, DIFFER = "alike", "differ"
POPULATIONS = {ALIKE: "users alike", DIFFER: "a tenth always sends 1"}
PURE, DELTA = "pure", "(eps, delta)"
KINDS = (PURE, DELTA)
WIDE, RECOMMENDED, START, USERS_ALIKE = "cap m", "recommended", "recommended for the start", "for users alike"
ANY_USERS = (WIDE, RECOMMENDED, START)
DIFFERENCE, ALONE, TREE = "difference of running sums", "days with noise of their own", "running sums of days"


def horizon(params: Params, fill: float) -> int:
    return max(100, round(fill * params.n_users * params.samples_per_user))


@cache
def made(params: Params, order: str, fill: float, seed: int) -> dict[tuple[str, str], UserMean]:
    """The means that are compared, by name and kind; chosen by another stream whose users arrive in the same order."""
    n_users, cap, steps = params.n_users, params.samples_per_user, horizon(params, fill)
    before = streams.arrivals(order, n_users, cap, steps, stream(seed, "stream before", order, str(fill)))
    found = {}
    for kind in KINDS:
        delta = params.delta if kind == DELTA else 0.0
        wide = algorithms.naive(n_users, cap, params.epsilon, horizon=steps, clip=True, excess="drop")
        found[WIDE, kind] = wide.but(**{"delta": delta, "buffered": True} if delta else {"branching": 0, "integer": True})
        given = {RECOMMENDED: before, START: before[: max(2, steps // 50)], USERS_ALIKE: before}
        for name, expected in given.items():
            make = choosing.users_alike if name == USERS_ALIKE else choosing.recommended
            found[name, kind] = make(n_users, cap, params.epsilon, delta, arrivals=expected, horizon=steps, excess="drop")
    return found


@cache
def windowed(params: Params, seed: int) -> dict[tuple[str, str], UserMean | windows.Days]:
    """What windows are read from: the recommended mean, and days, at the same guarantee and cap."""
    found: dict[tuple[str, str], UserMean | windows.Days] = {}
    for kind in KINDS:
        mean = made(params, "random", 0.25, seed)[RECOMMENDED, kind]
        found[DIFFERENCE, kind] = mean
        found[ALONE, kind] = windows.Days(mean, params.days, params.per_day)
        sums = Buffered(params.days) if kind == DELTA else best_tree(params.days)
        found[TREE, kind] = windows.Days(mean, params.days, params.per_day, sums)
    return found


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Per cell of the map: root mean square error, stated standard error and bias, and both together."""
    by = ["part", "order", "fill", "population", "name", "kind"]
    means = table[table.part.isin(("early", "late"))].groupby(by, sort=False)[["square", "noise", "bias"]].mean()
    roots = (means**0.5).rename(columns={"square": "rmse"})
    return roots.assign(stated=(means.noise + means.bias) ** 0.5).reset_index()


def days(table: pd.DataFrame) -> pd.DataFrame:
    """Per way to a value a day: root mean square error over all days and runs, and as stated."""
    means = table[table.part == "days"].groupby(["name", "kind"], sort=False)[["square", "noise", "bias"]].mean()
    return (means**0.5).rename(columns={"square": "rmse"})


@cache
def by_width(params: Params, seed: int) -> pd.DataFrame:
    """Exact standard error of the mean over the last days, by how many: before clipping, if no sample is dropped."""
    steps, rows = horizon(params, 0.25), []
    ends = np.linspace(0, steps, params.days + 1).astype(int)
    for (name, kind), mean in windowed(params, seed).items():
        for width in np.unique(np.round(np.geomspace(1, params.days, 13)).astype(int)).tolist():
            pair = []
            for day in (params.days - width, params.days):
                done = int(ends[day])
                pair.append(windows.Snapshot(done, done, 0.0, (day,) if isinstance(mean, windows.Days) else (done,)))
            if isinstance(mean, windows.Days) or mean.blocks == "single":
                rows.append({"name": name, "kind": kind, "width": width, "error": windows.standard_error(mean, *pair)})
    return pd.DataFrame(rows)


def stated(result: Result[Params]) -> pd.DataFrame:
    """The page's table: what each mean states, noise and bias, by T/(nm); for users alike, if they are, noise alone."""
    frame = errors(result.table)
    frame = frame[frame.population == ALIKE]
    both = np.where(frame.name == USERS_ALIKE, frame.noise, frame.stated)
    frame = frame.assign(error=[digits(min(1.0, error)) for error in both])
    wide = frame.pivot(index=["part", "order", "kind", "name"], columns="fill", values="error")
    asked = [
        (part, order, kind, name)
        for part, names in (("late", (WIDE, RECOMMENDED, USERS_ALIKE)), ("early", (RECOMMENDED, START, USERS_ALIKE)))
        for order in ORDERS
        for kind in KINDS
        for name in names
    ]
    shown = wide.loc[asked].reset_index()
    shown["order"] = shown.order.map(ORDERS)
    return shown.rename(columns={"part": "error", "name": "mean"} | {fill: f"T/(nm) = {fill:.3g}" for fill in wide.columns})
