"""Which mean for which stream: errors, measured and stated, over how much of their cap users send; windows and days.

Users of at most m samples, who together send a part of what they may: T/(nm).  `run` gives a row per order, fill, population,
kind, mean, run and part of the stream, and per window and run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from evolvingdp.book import engine
from evolvingdp.book.params import Metric
from evolvingdp.book.words import digits
from evolvingdp.continual_mean import algorithms, choosing, streams, windows
from evolvingdp.continual_mean.binary_mechanism import best_tree
from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.prefix_sums import Buffered
from evolvingdp.continual_mean.settings import arrange
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream

METRIC = Metric("day_alone", "stated error of one day with noise of its own, pure")

CLAIMS = """
most_over_stated <= allowed_over_stated   Errors of what is for any users are as stated, noise and bias, but for chance: largest measured over stated, all cells
worst_recommended <= 1.01       In the second half what is recommended states at most 1 % more than a cap of m, as it is chosen at 41 moments only: largest ratio
ratio_at_least <= 0.5           In random order the cap decides where T/(nm) is least: recommended over a cap of m, stated, pure
ratio_at_most >= 0.7            In random order the cap hardly matters where T/(nm) is most: recommended over a cap of m, stated, pure
least_differing >= 1            Where Zipf's most active are of one kind and the cap is far, the mean for users alike errs more: over recommended
least_day_gain >= 1             A day with noise of its own has no more error than a difference of running sums of days, stated: the smaller ratio
most_day_over_stated <= 1.2     Days err no more than they state, noise and bias: largest ratio, all ways
"""

ORDERS = {"random": "random order", "zipf": "Zipf users", "contiguous": "one after the other"}
ALIKE, DIFFER = "alike", "differ"
POPULATIONS = {ALIKE: "users alike", DIFFER: "a tenth always sends 1"}
PURE, DELTA = "pure", "(eps, delta)"
KINDS = (PURE, DELTA)
WIDE, RECOMMENDED, START, USERS_ALIKE = "cap m", "recommended", "recommended for the start", "for users alike"
ANY_USERS = (WIDE, RECOMMENDED, START)
ALONE, TREE = "days with noise of their own", "running sums of days"


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per order, fill, population, kind, mean, run and part of the stream; and per window and run."""
    jobs = [(_map, order, fill, population) for order in ORDERS for fill in params.fills for population in POPULATIONS]
    return pd.DataFrame(engine.rows((part, params, seed, *name) for part, *name in (*jobs, (_windows,))))


def _map(params: Any, seed: int, order: str, fill: float, population: str) -> Iterator[dict[str, Any]]:
    steps = horizon(params, fill)
    for repetition in range(params.repetitions):
        rng = stream(seed, "map", order, str(fill), population, repetition)
        users, bits = streams.readings("active kind", order, params.n_users, params.samples_per_user, steps, rng)
        samples = streams.bits(0.3, steps, rng) if population == ALIKE else bits
        means, truth = made(params, order, fill, seed), algorithms.running_mean(samples)
        arranged = arrange(means[WIDE, PURE], users, samples)
        for (name, kind), settings in means.items():
            noise = stream(seed, "map noise", order, str(fill), population, name, kind, repetition)
            released = settings.release_of(arranged, noise)
            for part, some in {"early": slice(steps // 100, steps // 50), "late": slice(steps // 2, steps)}.items():
                common = {"part": part, "order": order, "fill": fill, "population": population, "name": name, "kind": kind}
                yield common | {
                    "repetition": repetition,
                    "square": float(np.mean((released.estimate[some] - truth[some]) ** 2)),
                    "noise": float(np.mean(released.standard_error[some] ** 2)),
                    "bias": float(np.mean(released.bias[some] ** 2)),
                }


def _windows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Means of each day: distance to the day's own mean, and as stated."""
    steps = horizon(params, 0.25)
    ends = np.linspace(0, steps, params.days + 1).astype(int)
    for repetition in range(params.repetitions):
        rng = stream(seed, "windows", repetition)
        users = streams.arrivals("random", params.n_users, params.samples_per_user, steps, rng)
        bits = streams.bits(0.3, steps, rng)
        for (name, kind), mean in windowed(params, seed).items():
            noise = stream(seed, "windows noise", name, kind, repetition)
            days = np.repeat(np.arange(params.days), np.diff(ends))
            kept = [windows.START, *mean.release(users, bits, days, noise)]
            for day, pair in enumerate(itertools.pairwise(kept)):
                found = mean.between(*pair)
                yield {
                    "part": "days",
                    "name": name,
                    "kind": kind,
                    "repetition": repetition,
                    "square": float((found.estimate - bits[ends[day] : ends[day + 1]].mean()) ** 2),
                    "noise": found.standard_error**2,
                    "bias": found.bias**2,
                }


def horizon(params: Any, fill: float) -> int:
    return max(100, round(fill * params.n_users * params.samples_per_user))


@cache
def made(params: Any, order: str, fill: float, seed: int) -> dict[tuple[str, str], UserMean | Blocks]:
    """The means that are compared, by name and kind; chosen by another stream whose users arrive in the same order."""
    n_users, cap, steps = params.n_users, params.samples_per_user, horizon(params, fill)
    before = streams.arrivals(order, n_users, cap, steps, stream(seed, "stream before", order, str(fill)))
    found: dict[tuple[str, str], UserMean | Blocks] = {}
    for kind in KINDS:
        delta = params.delta if kind == DELTA else 0.0
        given = {RECOMMENDED: before, START: before[: max(2, steps // 50)], USERS_ALIKE: before}
        for name, expected in given.items():
            make: Any = choosing.users_alike if name == USERS_ALIKE else choosing.recommended
            found[name, kind] = make(n_users, cap, params.epsilon, delta, arrivals=expected, horizon=steps, excess="drop")
        batch = 1 if delta else found[RECOMMENDED, kind].batch  # pure, they differ by the cap alone
        common: dict[str, Any] = {"horizon": steps, "clip": True, "excess": "drop", "integer": not delta, "batch": batch}
        found[WIDE, kind] = UserMean(n_users, cap, params.epsilon, delta, **common)
    return found


@cache
def windowed(params: Any, seed: int) -> dict[tuple[str, str], windows.Days]:
    """What windows are read from: days at the same guarantee, and at the cap that is recommended without delta."""
    found, cap = {}, made(params, "random", 0.25, seed)[RECOMMENDED, PURE].samples_per_user
    for kind in KINDS:
        delta, steps = params.delta if kind == DELTA else 0.0, horizon(params, 0.25)
        options: dict[str, Any] = {"horizon": steps, "clip": True, "integer": not delta, "excess": "drop"}
        mean = UserMean(params.n_users, cap, params.epsilon, delta, **options)
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
def by_width(params: Any, seed: int) -> pd.DataFrame:
    """Exact standard error of the mean over the last days, by how many: before clipping, if no sample is dropped."""
    steps, rows = horizon(params, 0.25), []
    ends = np.linspace(0, steps, params.days + 1).astype(int)
    for (name, kind), mean in windowed(params, seed).items():
        for width in np.unique(np.round(np.geomspace(1, params.days, 13)).astype(int)).tolist():
            pair = []
            for day in (params.days - width, params.days):
                done = int(ends[day])
                pair.append(windows.Snapshot(done, done, 0.0, day))
            rows.append({"name": name, "kind": kind, "width": width, "error": mean.standard_error(*pair)})
    return pd.DataFrame(rows)


def stated(table: pd.DataFrame) -> pd.DataFrame:
    """The page's table: what each mean states, noise and bias, by T/(nm); for users alike, if they are, noise alone."""
    frame = errors(table)
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


def longest(frame: pd.DataFrame) -> int:
    """Up to how many days noise of each day's own has the least error; 0 if never."""
    wide = frame.pivot(index="width", columns="name", values="error")
    best = wide.idxmin(axis="columns") == ALONE
    return int(wide.index[best.cummin()].max()) if best.iloc[0] else 0


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read: late errors by order, least or most T/(nm), mean, kind and population, and of days."""
    frame, day = errors(table), days(table)
    any_users = frame[frame.name.isin(ANY_USERS)]
    excess = (any_users.rmse - any_users.bias).clip(lower=0) / any_users.noise
    late = frame[(frame.part == "late") & (frame.population == ALIKE)].set_index(["name", "kind", "order", "fill"]).stated
    ratio, ends = late[RECOMMENDED] / late[WIDE], {"least": min(params.fills), "most": max(params.fills)}
    cells = frame.set_index(["part", "population", "order", "fill", "name", "kind"]).rmse
    far = frame[
        (frame.part == "late") & (frame.population == DIFFER) & (frame.order == "zipf") & (frame.fill == ends["least"])
    ]
    differing = far.set_index(["name", "kind"]).rmse
    found: dict[str, Any] = {
        "most_over_stated": excess.max(),
        "allowed_over_stated": math.sqrt(chi2.ppf(1 - 1e-3 / len(excess), params.repetitions) / params.repetitions),
        "worst_recommended": ratio.max(),
        "ratio_at_least": ratio[PURE, "random", ends["least"]],
        "ratio_at_most": ratio[PURE, "random", ends["most"]],
        "least_differing": min(differing[USERS_ALIKE, kind] / differing[RECOMMENDED, kind] for kind in KINDS),
        "least_day_gain": min(day.noise[TREE, kind] / day.noise[ALONE, kind] for kind in KINDS),
        "most_day_over_stated": np.sqrt(day.rmse**2 / (day.noise**2 + day.bias**2)).max(),
        "least": ends["least"],
    }
    for end, kind in {"": PURE, "_delta": DELTA}.items():
        ways = {"alone": ALONE, "tree": TREE}
        found |= {f"day_{way}{end}": day.noise[name, kind] for way, name in ways.items()}
        for (order, (which, fill)), (mean, name) in itertools.product(
            itertools.product(ORDERS, ends.items()), {"wide": WIDE, "recommended": RECOMMENDED, "alike": USERS_ALIKE}.items()
        ):
            key = f"{order}_{which}_{mean}{end}"
            found |= {key: cells["late", ALIKE, order, fill, name, kind]}
            found |= {f"{key}_differ": cells["late", DIFFER, order, fill, name, kind]}
    for short, name in {"start": START, "recommended": RECOMMENDED}.items():
        found[f"{short}_early"] = cells.get(("early", ALIKE, "random", 0.25, name, PURE), math.nan)
    return found
