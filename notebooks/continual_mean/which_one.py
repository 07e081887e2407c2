"""Which mean for which stream: errors, measured and stated, over how much of their cap users send; windows and days.

Users of at most m samples, who together send a part of what they may: T/(nm).  `run` gives a row per order, fill, population,
kind, mean and run, per day and run, and per way to the last days and their number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2

from evolvingdp.book import engine
from evolvingdp.book.params import Metric
from evolvingdp.book.words import digits
from evolvingdp.continual_mean import algorithms, choosing, streams, windows
from evolvingdp.continual_mean.binary_mechanism import best_tree, calibrate
from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.continual_mean.scores import second_half

METRIC = Metric("day_alone", "stated error of one day with noise of its own, pure")

CLAIMS = """
most_over_stated <= allowed_over_stated   Errors for any users are as stated, noise and bias, but for chance: largest measured over stated
worst_recommended <= 1.01       Recommended states at most 1 % more than a cap of m (it is chosen at 13 moments): largest ratio
ratio_at_least <= 0.5           In random order the cap decides where T/(nm) is least: recommended over a cap of m, stated, pure
ratio_at_most >= 0.7            In random order the cap hardly matters where T/(nm) is most: recommended over a cap of m, stated, pure
least_differing >= 1            Where Zipf's most active are of one kind, the mean for users alike errs more: over recommended
day_tree / day_alone >= 1       A day's own noise is no more than a difference of running sums has, stated, pure: ratio
most_day_over_stated <= 1.2     Days err no more than they state, noise and bias: largest ratio
"""

ORDERS = {"random": "random order", "zipf": "Zipf users", "contiguous": "one after the other"}
ALIKE, DIFFER = "alike", "differ"
POPULATIONS = {ALIKE: "users alike", DIFFER: "a tenth always sends 1"}
PURE, DELTA = "pure", "(eps, delta)"
KINDS = (PURE, DELTA)
WIDE, RECOMMENDED, USERS_ALIKE = "cap m", "recommended", "for users alike"
ALONE, TREE = "days with noise of their own", "running sums of days"


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per order, fill, population, kind, mean and run; per day and run; and per way to the last days and their number."""
    jobs = [(_map, order, fill, population) for order in ORDERS for fill in params.fills for population in POPULATIONS]
    return pd.DataFrame(engine.rows((part, params, seed, *name) for part, *name in (*jobs, (_days,), (_widths,))))


def _map(params: Any, seed: int, order: str, fill: float, population: str) -> Iterator[dict[str, Any]]:
    steps = horizon(params, fill)
    for repetition in range(params.repetitions):
        rng = stream(seed, "map", order, str(fill), population, repetition)
        users, bits = streams.readings("active kind", order, params.n_users, params.samples_per_user, steps, rng)
        samples = streams.bits(0.3, steps, rng) if population == ALIKE else bits
        means, truth = made(params, order, fill, seed), algorithms.running_mean(samples)
        for (name, kind), settings in means.items():
            noise = stream(seed, "map noise", order, str(fill), population, name, kind, repetition)
            late = second_half(settings.release(users, samples, noise), truth[steps // 2 :])
            cell = {"part": "late", "order": order, "fill": fill, "population": population, "name": name, "kind": kind}
            noise_and_bias = {"noise": late["predicted"], "bias": late["bias"] ** 2}
            yield cell | {"repetition": repetition, "square": late["square"]} | noise_and_bias


def _days(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Means of each day: distance to the day's own mean, and as stated."""
    steps = horizon(params, 0.25)
    ends = np.linspace(0, steps, params.days + 1).astype(int)
    for repetition in range(params.repetitions):
        rng = stream(seed, "windows", repetition)
        users = streams.arrivals("random", params.n_users, params.samples_per_user, steps, rng)
        bits = streams.bits(0.3, steps, rng)
        for kind, days in windowed(params, seed).items():
            noise = stream(seed, "windows noise", kind, repetition)
            told = days.release(users, bits, np.repeat(np.arange(params.days), np.diff(ends)), noise)
            for day, pair in enumerate(itertools.pairwise([windows.START, *told])):
                found = days.between(*pair)
                square = float((found.estimate - bits[ends[day] : ends[day + 1]].mean()) ** 2)
                common = {"part": "days", "kind": kind, "repetition": repetition, "square": square}
                yield common | {"noise": found.standard_error**2, "bias": found.bias**2}


def horizon(params: Any, fill: float) -> int:
    return max(100, round(fill * params.n_users * params.samples_per_user))


@cache
def made(params: Any, order: str, fill: float, seed: int) -> dict[tuple[str, str], UserMean | Blocks]:
    """The means that are compared, by name and kind; chosen by another stream whose users arrive in the same order."""
    n_users, cap, steps = params.n_users, params.samples_per_user, horizon(params, fill)
    before = streams.arrivals(order, n_users, cap, steps, stream(seed, "stream before", order, str(fill)))
    found: dict[tuple[str, str], UserMean | Blocks] = {}
    for kind, delta in {PURE: 0.0, DELTA: params.delta}.items():
        size: Any = {"n_users": n_users, "samples_per_user": cap, "epsilon": params.epsilon, "delta": delta}
        size |= {"horizon": steps, "excess": "drop"}
        chosen = choosing.recommended(**size, arrivals=before)
        batch = 1 if delta else chosen.batch  # pure, they differ by the cap alone
        found[WIDE, kind] = UserMean(**size, clip=True, integer=not delta, batch=batch)
        found[RECOMMENDED, kind] = chosen
        found[USERS_ALIKE, kind] = choosing.users_alike(**size, arrivals=before)
    return found


@cache
def windowed(params: Any, seed: int) -> dict[str, windows.Days]:
    """Days by kind, at the cap that is recommended without delta."""
    size: Any = params.n_users, made(params, "random", 0.25, seed)[RECOMMENDED, PURE].samples_per_user, params.epsilon
    options: Any = {"horizon": horizon(params, 0.25), "clip": True, "excess": "drop"}
    means = {PURE: UserMean(*size, integer=True, **options), DELTA: UserMean(*size, params.delta, **options)}
    return {kind: windows.Days(mean, params.days, params.per_day) for kind, mean in means.items()}


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Per cell of the map: root mean square error, stated standard error and bias, and both together."""
    by = ["order", "fill", "population", "name", "kind"]
    means = table[table.part == "late"].groupby(by, sort=False)[["square", "noise", "bias"]].mean()
    roots = (means**0.5).rename(columns={"square": "rmse"})
    return roots.assign(stated=(means.noise + means.bias) ** 0.5).reset_index()


def apart(sums: Tree, first: Any, last: Any) -> NDArray[np.float64]:
    """Blocks whose noise is in the difference of two running sums: both add, or subtract, the others, which cancel."""
    one, two = sums.places(np.asarray(first)), sums.places(np.asarray(last))
    total = np.zeros(len(one[0]))
    for level in range(sums.height):
        low, high = one[level] - sums.branching * one[level + 1], two[level] - sums.branching * two[level + 1]
        total += np.where(one[level + 1] == two[level + 1], np.abs(high - low), np.abs(low) + np.abs(high))
    return total


def _widths(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Exact standard error of the mean over the last days, by how many: before clipping, if no sample is dropped."""
    steps, days = horizon(params, 0.25), windowed(params, seed)
    ends = np.linspace(0, steps, params.days + 1).astype(int)
    widths = np.unique(np.round(np.geomspace(1, params.days, 13)).astype(int))
    used, first = steps - ends[-1 - widths], params.days - widths
    tree, held = best_tree(params.days), min(days[PURE].settings.samples_per_user, params.days * params.per_day)
    of_tree = calibrate(tree, params.epsilon, 0.0, 1.0, integer=True, uses=held).variance * apart(tree, first, params.days)
    variances = {(ALONE, kind): one.noise.variance * widths for kind, one in days.items()} | {(TREE, PURE): of_tree}
    for (name, kind), variance in variances.items():
        for width, error in zip(widths.tolist(), np.sqrt(variance) / used, strict=True):
            yield {"part": "width", "name": name, "kind": kind, "width": width, "error": float(error)}


def stated(table: pd.DataFrame) -> pd.DataFrame:
    """The page's table: what each mean states, noise and bias, by T/(nm); for users alike, if they are, noise alone."""
    frame = errors(table)
    frame = frame[frame.population == ALIKE]
    both = np.where(frame.name == USERS_ALIKE, frame.noise, frame.stated)
    frame = frame.assign(error=[digits(min(1.0, error)) for error in both])
    wide = frame.pivot(index=["order", "kind", "name"], columns="fill", values="error")
    shown = wide.loc[list(itertools.product(ORDERS, KINDS, (WIDE, RECOMMENDED, USERS_ALIKE)))].reset_index()
    shown["order"] = shown.order.map(ORDERS)
    return shown.rename(columns={"name": "mean"} | {fill: f"T/(nm) = {fill:.3g}" for fill in wide.columns})


def longest(frame: pd.DataFrame) -> int:
    """Up to how many days noise of each day's own has the least error, pure; 0 if never."""
    wide = frame[frame.kind == PURE].pivot(index="width", columns="name", values="error")
    best = wide.idxmin(axis="columns") == ALONE
    return int(wide.index[best.cummin()].max()) if best.iloc[0] else 0


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read: late errors by order, least or most T/(nm), mean and population, pure, and of days."""
    frame, least, most = errors(table), min(params.fills), max(params.fills)
    any_users = frame[frame.name != USERS_ALIKE]
    excess = (any_users.rmse - any_users.bias).clip(lower=0) / any_users.noise
    late = frame[frame.population == ALIKE].set_index(["name", "kind", "order", "fill"]).stated
    ratio = late[RECOMMENDED] / late[WIDE]
    cells = frame.set_index(["population", "order", "fill", "kind", "name"]).rmse
    day = table[table.part == "days"].groupby("kind")[["square", "noise", "bias"]].mean()
    by_days = table[(table.part == "width") & (table.width == 1)].set_index(["name", "kind"]).error
    return {
        "most_over_stated": excess.max(),
        "allowed_over_stated": math.sqrt(chi2.ppf(1 - 1e-3 / len(excess), params.repetitions) / params.repetitions),
        "worst_recommended": ratio.max(),
        "ratio_at_least": ratio[PURE, "random", least],
        "ratio_at_most": ratio[PURE, "random", most],
        "least_differing": min(
            cells[DIFFER, "zipf", least, kind, USERS_ALIKE] / cells[DIFFER, "zipf", least, kind, RECOMMENDED]
            for kind in KINDS
        ),
        "day_alone": by_days[ALONE, PURE],
        "day_alone_delta": by_days[ALONE, DELTA],
        "day_tree": by_days[TREE, PURE],
        "most_day_over_stated": np.sqrt(day.square / (day.noise + day.bias)).max(),
        "least": least,
        "random_least_wide": cells[ALIKE, "random", least, PURE, WIDE],
        "random_least_recommended": cells[ALIKE, "random", least, PURE, RECOMMENDED],
        "zipf_least_alike_differ": cells[DIFFER, "zipf", least, PURE, USERS_ALIKE],
        "zipf_least_wide_differ": cells[DIFFER, "zipf", least, PURE, WIDE],
        "zipf_least_recommended_differ": cells[DIFFER, "zipf", least, PURE, RECOMMENDED],
        "contiguous_most_alike_differ": cells[DIFFER, "contiguous", most, PURE, USERS_ALIKE],
        "contiguous_most_recommended_differ": cells[DIFFER, "contiguous", most, PURE, RECOMMENDED],
    }
