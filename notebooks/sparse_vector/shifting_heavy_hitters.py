"""Example 1.4 made visible, error against the number of reports, a mis-set k, and the domain's price.

`run` has rows of parts example, n_users, tops, reports (a run each), groups, map and domain (computed); `methods` and `groups`
beside this module have what is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from evolvingdp.book.own import Release, checked
from evolvingdp.book.params import Metric
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.sparse_vector import groups, methods
from evolvingdp.notebooks.sparse_vector.groups import BOUND, RIVALS, group_rows, map_rows
from evolvingdp.notebooks.sparse_vector.methods import (
    FAMILIES,
    GAUSSIAN,
    HISTOGRAMS,
    MONITOR,
    ONE,
    REPEATED,
    STABLE,
    THEOREM,
    Target,
    calibrated,
    example_plan,
    smallest_users,
    target_of,
)
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import histogram
from evolvingdp.sparse_vector.shifting import planned_monitor
from evolvingdp.sparse_vector.shifting_simulation import simulate
from evolvingdp.sparse_vector.stable import NOISES, smallest_group, stable_monitor
from evolvingdp.streams import dated, reading

METRIC = Metric("monitor_A", "share of the events A that ThresholdMonitor finds")

CLAIMS = """
least_monitor >= 0.9                ThresholdMonitor finds A, B and C: smallest recall
least_stable >= 0.9                 StableMonitor finds A, B and C: smallest recall
most_repeated_AB <= 0.1             AboveThreshold, repeated, finds neither A nor B: larger recall
repeated_C >= 0.9                   AboveThreshold, repeated, finds C
gaussian_A <= 0.1                   AboveThreshold with Gaussian noise does not find A: recall
one_A <= 0.1                        AboveThreshold with one threshold does not find A: recall
most_histogram <= 0.1               A histogram in every step finds next to nothing: largest recall
most_theorem <= 0.1                 With Theorem 3.2's noise nothing is found: largest recall
chance_of_wrong >= 1e-6             A report of weight zero comes in at most beta/2 of the runs: p-value
stable_wrong <= 0                   StableMonitor never reports weight zero: runs in which it does
all_monitor >= 0.9                  For all n ThresholdMonitor finds A, B and C: smallest recall
all_stable >= 0.9                   For all n StableMonitor finds A, B and C: smallest recall
chance_of_missed >= 1e-6            An event is missed in at most beta/2 of these runs: p-value
all_histogram <= 0.1                For all n a histogram in every step finds next to nothing: largest recall
all_repeated_C >= 0.5               For all n AboveThreshold, repeated, finds most of C: smallest recall
all_gaussian_C >= 0.5               For all n AboveThreshold, Gaussian, finds most of C: smallest recall
? least_gaussian_few >= 0.5         With 10,000 users AboveThreshold, Gaussian finds most of A, B and C: smallest recall
? repeated_from_5 <= 0.1            From 100,000 users on AboveThreshold, repeated does not find A or B: largest recall
? gaussian_from_6 <= 0.1            From 1,000,000 users on AboveThreshold, Gaussian does not find A: largest recall
? gaussian_from_9 <= 0.1            From 1,000,000,000 users on AboveThreshold, Gaussian does not find A or B: largest recall
rival_over_stable >= 1              The smallest group found: the best rival's over StableMonitor's, smallest
stable_over_monitor <= 1.05         The smallest group of StableMonitor, with integer noise, over ThresholdMonitor's: largest
stable_over_bound <= 1.5            StableMonitor's over the lower bound, over noise scale times epsilon: largest
? normal_over_integer <= 1          Up to a thousand steps normal noise beats integer noise: largest ratio
? rival_over_best >= 1              Up to a thousand steps no rival beats the better of both: smallest ratio
growth_monitor <= 1.5               ThresholdMonitor's error hardly grows with the number of events: largest over smallest
? slope_repeated >= 0.4             AboveThreshold's grows like its square root: log-log slope over events, upper half
"""  # "finds" is nine in ten, "does not find" one in ten: bounds wide of what the methods' closed forms say, for any seed

ENOUGH = 100  # groups C of all runs at a number of users together
_LETTERS = list(FAMILIES)
_KEYS = {"monitor": MONITOR, "stable": STABLE, "repeated": REPEATED, "one": ONE, "gaussian": GAUSSIAN}


def check(params: Any) -> dict[str, Any]:
    """A group must fit: fewer users than the error have none."""
    if params.data:
        return checked(params, own_groups)
    for n_users in {params.n_users, *params.n_users_sweep}:
        sizes = example_plan(target_of(params), n_users, params.reports)[1]
        if max(sizes.values()) > n_users:
            raise ValueError(f"n_users must be >= {max(sizes.values())} for one group of each kind, got {n_users}")
    return {}


def run(params: Any, seed: int) -> pd.DataFrame:
    parts = (_sizes, group_rows, map_rows, _tops, _reports, _domain)
    return pd.DataFrame([row for rows in parts for row in rows(params, seed)])


def _runs(
    simulations: dict[str, methods.Simulation],
    params: Any,
    n_users: int,
    runs: int,
    row: dict[str, Any],
    seed: int,
    *name: Any,
) -> Iterator[dict[str, Any]]:
    """`row` with what each run of each method finds; the order of the events is drawn anew in every repetition, and is the
    same for all methods."""
    for repetition in range(runs):
        data = methods.example_stream(target_of(params), n_users, stream(seed, *name, "stream", repetition), params.reports)
        for method, simulation in simulations.items():
            outcome = simulation(data, stream(seed, *name, method, repetition))
            yield (
                row
                | {"method": method, "repetition": repetition, "absent": outcome.absent, "single": outcome.single}
                | outcome.recall(data)
            )


def _sizes(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Rows "n_users" for each number of users, of at least `ENOUGH` groups C; and "example" for the one of `n_users`."""
    for n_users in sorted({params.n_users, *params.n_users_sweep}):
        sizes = methods.example_stream(target_of(params), n_users, stream(seed, "sizes"), params.reports)
        simulations = methods.simulations(target_of(params), sizes, params.reports)
        row = {"n_users": n_users, "events": sizes.n_events}
        if n_users == params.n_users:
            for run in _runs(simulations, params, n_users, params.repetitions, row, seed, "example"):
                yield run | {"part": "example"}
        if n_users in params.n_users_sweep:
            runs = max(params.sweep_repetitions, math.ceil(ENOUGH / sizes.families[-1].n_groups))
            yield from _runs(simulations, params, n_users, runs, row | {"part": "n_users"}, seed, "n_users", n_users)


def _tops(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """The smallest weight at which all of `tops` events would have been found, for the noise of a run; k* = 3."""
    target = target_of(params)
    queries = methods.CURVE_HORIZON * target.n_elements
    gaussian = methods.every_step(target, methods.CURVE_HORIZON, methods.CURVE[-1])
    for tops in params.tops_sweep:
        own = planned_monitor(
            methods.calibrated(target, params.reports), methods.CURVE_HORIZON, target.n_elements, tops, target.beta
        )
        svt = {name: methods.lowest(target, name, tops, methods.CURVE_HORIZON, queries)[0] for name in methods.CURVE[1:-1]}
        for repetition in range(params.sweep_repetitions):
            setting = {"part": "tops", "tops": tops, "repetition": repetition}
            rng = stream(seed, "tops", tops, repetition)
            needed = own.monitor.threshold - own.monitor.noise.draw(tops, rng).min()
            yield setting | {"method": methods.MONITOR, "needed": needed, "bound": own.error}
            for name, method in svt.items():
                shift = 0.0 if method.shift is None else method.shift.draw(tops if method.refreshed else 1, rng)
                needed = method.threshold + float((shift - method.noise.draw(tops, rng)).max())
                yield setting | {"method": name, "needed": needed, "bound": method.error(tops, target.beta)}
            needed = gaussian.threshold - gaussian.noise.draw(tops, rng).min()
            yield setting | {"method": methods.CURVE[-1], "needed": needed, "bound": gaussian.error(tops, target.beta)}


def _reports(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """ThresholdMonitor with other values of k, on the stream that is made for `reports`."""
    sizes = methods.example_stream(target_of(params), params.n_users, stream(seed, "sizes"), params.reports)
    for reports in params.reports_sweep:
        chosen = {methods.MONITOR: partial(simulate, methods.monitor(target_of(params), sizes, reports).monitor)}
        row = {"part": "reports", "reports": reports}
        yield from _runs(chosen, params, params.n_users, params.sweep_repetitions, row, seed, "reports", reports)


def _domain(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """The threshold that keeps weight zero out; and how many such reports a threshold of ln(m / beta) alone makes."""
    for reports in sorted({1, params.reports, 10}):
        noise = methods.calibrated(target_of(params), reports).noise
        for bits in params.bits_sweep:
            queries = params.n_users * 2.0**bits
            yield {
                "part": "domain", "method": methods.MONITOR, "reports": reports, "bits": bits, "threshold": noise.isf(params.beta / (2 * queries)),
                "without_domain": noise.scale * math.log(params.n_users / params.beta),
                "false_reports": queries * float(noise.sf(noise.scale * math.log(params.n_users / params.beta))),
            }  # fmt: skip


def _claimed(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What only claims read."""
    example, part = table[table.part == "example"], table[table.part == "n_users"]
    mean, own = example.groupby("method")[_LETTERS].mean(), example[example.method == MONITOR]
    by_size = part.groupby(["method", "n_users"])[_LETTERS].mean()
    least, most = by_size.groupby(level="method").min(), by_size.groupby(level="method").max()
    sweep = part[part.method == MONITOR]
    wrong, missed = int((own.absent > 0).sum()), int((sweep[_LETTERS] < 1).any(axis=1).sum())
    found = {
        "least_monitor": _low(mean, MONITOR, "ABC"),
        "least_stable": _low(mean, STABLE, "ABC"),
        "most_repeated_AB": _high(mean, REPEATED, "AB"),
        "one_A": _high(mean, ONE, "A"),
        "most_histogram": max(_high(mean, name, "ABC") for name in HISTOGRAMS),
        "most_theorem": _high(mean, THEOREM, "ABC"),
        "chance_of_wrong": binomtest(wrong, len(own), params.beta / 2, alternative="greater").pvalue,
        "stable_wrong": (example[example.method == STABLE].absent > 0).sum(),
        "all_monitor": _low(least, MONITOR, "ABC"),
        "all_stable": _low(least, STABLE, "ABC"),
        "chance_of_missed": binomtest(missed, len(sweep), params.beta / 2, alternative="greater").pvalue,
        "all_histogram": max(_high(most, name, "ABC") for name in HISTOGRAMS),
        "all_repeated_C": _low(least, REPEATED, "C"),
        "all_gaussian_C": _low(least, GAUSSIAN, "C"),
    }
    users = by_size.index.get_level_values("n_users")
    few = by_size[users <= 10**4].groupby(level="method").min()
    if len(few):
        found["least_gaussian_few"] = _low(few, GAUSSIAN, "ABC")
    for power, letters, key in ((5, "AB", "repeated"), (6, "A", "gaussian"), (9, "AB", "gaussian")):
        large = by_size[users >= 10**power].groupby(level="method").max()
        if len(large):
            found[f"{key}_from_{power}"] = _high(large, _KEYS[key], letters)
    return found


def _low(mean: pd.DataFrame, method: str, letters: str) -> float:
    return float(mean.loc[[method], list(letters)].to_numpy().min())


def _high(mean: pd.DataFrame, method: str, letters: str) -> float:
    return float(mean.loc[[method], list(letters)].to_numpy().max())


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    target = target_of(params)
    found, sizes = example_plan(target, params.n_users, params.reports)
    mean = table[table.part == "example"].groupby("method")[_LETTERS].mean()
    values: dict[str, Any] = {"k": params.reports, "threshold": found.monitor.threshold, "error": found.error}
    for family, size in sizes.items():
        values |= {f"size_{family}": size, f"events_{family}": params.n_users // size}
        values |= {f"{name}_{family}": float(mean.loc[method, family]) for name, method in _KEYS.items()}
    needed = table[table.part == "tops"].groupby(["method", "tops"]).needed.mean()
    tops = sorted(params.tops_sweep)
    values |= {"tops_low": tops[0], "tops_high": tops[-1]}
    for name in ("monitor", "gaussian"):
        method = _KEYS[name]
        values |= {f"needed_{name}": float(needed[method, tops[-1]]), f"needed_{name}_low": float(needed[method, tops[0]])}
    values["growth_monitor"] = values["needed_monitor"] / values["needed_monitor_low"]
    values["slope_repeated"] = _slope(needed[REPEATED], tops)
    mis = table[table.part == "reports"].groupby("reports")[_LETTERS].mean()
    for reports in mis.index.astype(int):
        values |= {f"k{reports}_{family}": float(mis.loc[reports, family]) for family in FAMILIES}
    values["theorem_users"] = smallest_users(target, params.reports)
    sweep = table[table.part == "n_users"].groupby(["method", "n_users"])[_LETTERS].mean()
    for end, users in (("few", min(params.n_users_sweep)), ("many", max(params.n_users_sweep))):
        values[f"{end}_users"] = users
        values |= {f"gaussian_{end}_{family}": float(sweep[family][GAUSSIAN, users]) for family in FAMILIES}
    for period, steps in (("day", 365), ("week", 52)):
        values[f"group_{period}"] = smallest_group(methods.stable(target, steps, params.reports))
    values["rival_until"] = groups.rival_until(target, 365, 100)
    values |= _year_values(target, params.reports)
    return values | _group_values(params, table) | _map_values(table) | _claimed(params, table)


def _year_values(target: Target, reports: int) -> dict[str, Any]:
    """What each method finds in a year of days, as on the map; and of what is told once."""
    events, missed = groups.EVENTS * reports, 2 * (1 - groups.FOUND)
    sizes = groups.sizes_of(target, 365, reports, events)
    law = calibrate(target.epsilon, target.delta, reports, moved=365)
    first = methods.lowest(target, ONE, 1, 365, 365 * target.n_elements)
    once = histogram(target.epsilon, target.delta, 1, target.n_elements, kind="stable")
    return {
        "year_events": events,
        "year_stable": min(sizes[noise] for noise in NOISES),
        "year_listed": planned_monitor(law, 365, target.n_elements, events, missed).error,
        "year_gaussian": sizes[GAUSSIAN],
        "year_histogram": min(sizes[name] for name in HISTOGRAMS),
        "year_one": min(one.error(1, missed) for one in first),
        "once_histogram": once.error(events, missed),
    }


def _slope(needed: pd.Series, tops: list[int]) -> float:
    largest = tops[len(tops) // 2 :]
    if len(largest) < 2:
        return math.nan
    return float(np.polyfit(np.log(largest), np.log(needed[largest]), 1)[0])


def _group_values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """Nothing of groups depends on the seed."""
    sizes = table[table.part == "groups"].pivot(index="n_users", columns="method", values="size")
    rival = sizes[[*RIVALS, groups.EVERY]].min(axis=1) / sizes[STABLE]
    factor = sizes[STABLE] / sizes[BOUND]
    values: dict[str, Any] = {
        "rival_over_stable": rival.min(),
        "stable_over_monitor": (sizes[STABLE] / sizes[MONITOR]).max(),
        "stable_over_bound": factor.max() / calibrated(target_of(params), params.reports).scale / params.epsilon,
    }
    for end, users in (("few", sizes.index.min()), ("many", sizes.index.max())):
        values |= {f"group_{end}": int(users), f"group_{end}_stable": float(sizes[STABLE][users])}
        values |= {f"group_{end}_rival": float(rival[users]), f"group_{end}_factor": float(factor[users])}
    return values


def _map_values(table: pd.DataFrame) -> dict[str, Any]:
    """Normal over integer noise, and the best rival over the better of both; and where integers come to win."""
    sizes = groups.map_table(table)
    own, rivals = sizes[list(NOISES)].min(axis=1), sizes[[GAUSSIAN, *HISTOGRAMS]].min(axis=1)
    few = sizes.index.get_level_values("steps") <= 1000
    ratio = sizes.gaussian / sizes.integer
    values: dict[str, Any] = {"map_events": groups.EVENTS}
    if few.any():
        values |= {"normal_over_integer": ratio[few].max(), "rival_over_best": (rivals / own)[few].min()}
    return values | {"integers_from": min((steps for steps, _ in ratio[ratio > 1].index), default=math.inf)}


def recall(table: pd.DataFrame, part: str, by: str) -> pd.DataFrame:
    """Mean, deviation and number of the runs' recall: a row a method, value of `by` and family."""
    long = table[table.part == part].melt(["method", by], methods.FAMILIES, "family", "recall")
    return long.groupby(["method", by, "family"], sort=False).recall.agg(["mean", "std", "count"]).reset_index()


def score_table(table: pd.DataFrame) -> pd.DataFrame:
    part = table[table.part == "example"]
    rows = []
    for method in methods.METHODS:
        runs = part[part.method == method]
        shares = {f"recall {family}": f"{runs[family].mean():.4f}" for family in methods.FAMILIES}
        wrong = f"{int((runs.absent > 0).sum())} of {len(runs)}"
        rows.append({"method": method} | shares | {"runs with a report of weight zero": wrong})
    return pd.DataFrame(rows)


def own_groups(path: Any) -> reading.Groups:
    """(step, user, group), or (date, word, count), of whose users the first of a date are the first of every other."""
    if sorted(reading.columns_of(path)) != sorted(dated.COLUMNS):
        return reading.read_groups(path)
    counts = dated.read_counts(path)
    most = int(counts.counts.sum(axis=1).max())
    if most > OWN_USERS:
        raise ValueError(f"{path} must have at most {OWN_USERS:,} users at a date, got {most:,}; divide all counts alike")
    held = reading.nobody(path, "dates", counts.horizon, most)
    for date, row in enumerate(counts.counts):
        held[date, : row.sum()] = np.repeat(np.arange(len(row)), row)
    return reading.Groups(counts.name, counts.dates, counts.words, held)


OWN_USERS = 10**6  # of a date


def of_own(params: Any, seed: int) -> Release:
    """StableMonitor on the groups of a file, which no list has to name."""
    own = own_groups(params.data)
    steps, n_users = own.held.shape
    monitor = stable_monitor(params.epsilon, params.delta, params.reports, steps)
    state, rng, rows = monitor.start(n_users), stream(seed, "own"), []
    for step, held in enumerate(own.held):
        state, found = monitor.step_held(state, held, rng)
        weights = np.bincount(held[held >= 0], minlength=len(own.groups))
        told = set(found.tolist())
        seen = sorted(told | set(np.flatnonzero(weights >= monitor.threshold).tolist()))
        rows += [(own.steps[step], own.groups[group], int(group in told), int(weights[group])) for group in seen]
    table = pd.DataFrame(rows, columns=["step", "group", "reported", "truth"])
    promise = (
        f"({params.epsilon:g}, {params.delta:g})-differential privacy of everything that a user ever holds, for the first "
        f"{params.reports} reports of it; who takes part is public"
    )
    method = f"StableMonitor, from {monitor.threshold:,.0f} users on"
    return Release(own.name, "group", "step", method, promise, table, "events")
