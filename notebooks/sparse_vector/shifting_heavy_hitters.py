"""Example 1.4 made visible, error against the number of reports, a mis-set k, the domain's price, and Brown documents.

`run` has rows of parts example, n_users, tops, reports, brown (a run each), groups and domain (computed); `methods`, `groups`
and `other_streams` beside this module have what is compared.
"""

from __future__ import annotations

import math
import re
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
from evolvingdp.notebooks.sparse_vector.groups import BOUND, EVENTS, GROUPS, gaussian_from, group_rows, map_rows, map_table
from evolvingdp.notebooks.sparse_vector.methods import (
    FAMILIES,
    FIND_BEST,
    GAUSSIAN,
    HISTOGRAMS,
    MONITOR,
    ONE,
    REPEATED,
    STABLE,
    THEOREM,
    calibrated,
    example_plan,
    smallest_users,
    target_of,
)
from evolvingdp.notebooks.sparse_vector.other_streams import brown_rows
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.shifting_simulation import simulate
from evolvingdp.sparse_vector.stable import NOISES, smallest_group, stable_monitor
from evolvingdp.streams import dated, reading

METRIC = Metric("monitor_A", "share of the events A that ThresholdMonitor finds", better="higher")

CLAIMS = """
least_monitor >= 0.9                ThresholdMonitor finds A, B and C: smallest recall
least_stable >= 0.9                 StableMonitor finds A, B and C: smallest recall
most_repeated_AB <= 0.1             AboveThreshold, repeated, finds neither A nor B: larger recall
repeated_C >= 0.9                   AboveThreshold, repeated, finds C
gaussian_A <= 0.1                   AboveThreshold with Gaussian noise does not find A: recall
one_A <= 0.1                        AboveThreshold with one threshold does not find A: recall
find_A <= 0.1                       Finding the step does not find A: recall
most_histogram <= 0.1               A histogram in every step finds next to nothing: largest recall
most_theorem <= 0.1                 With Theorem 3.2's noise nothing is found: largest recall
chance_of_wrong >= 1e-6             A report of weight zero comes in at most beta/2 of the runs: p-value
stable_wrong <= 0                   StableMonitor never reports weight zero: runs in which it does
all_monitor >= 0.9                  At all numbers of users ThresholdMonitor finds A, B and C: smallest recall
all_stable >= 0.9                   At all numbers of users StableMonitor finds A, B and C: smallest recall
chance_of_missed >= 1e-6            An event is missed in at most beta/2 of these runs: p-value
all_histogram <= 0.1                At all numbers of users a histogram in every step finds next to nothing: largest recall
all_repeated_C >= 0.5               At all numbers of users AboveThreshold, repeated finds most of C: smallest recall
all_gaussian_C >= 0.5               At all numbers of users AboveThreshold, Gaussian finds most of C: smallest recall
all_find_C >= 0.5                   At all numbers of users finding the step finds most of C: smallest recall
? least_gaussian_few >= 0.5         With 10,000 users AboveThreshold, Gaussian finds most of A, B and C: smallest recall
? least_find_few >= 0.5             With 10,000 users finding the step finds most of A, B and C: smallest recall
? repeated_from_5 <= 0.1            From 100,000 users on AboveThreshold, repeated does not find A or B: largest recall
? gaussian_from_6 <= 0.1            From 1,000,000 users on AboveThreshold, Gaussian does not find A: largest recall
? find_from_6 <= 0.1                From 1,000,000 users on finding the step does not find A: largest recall
? gaussian_from_9 <= 0.1            From 1,000,000,000 users on AboveThreshold, Gaussian does not find A or B: largest recall
? find_from_9 <= 0.1                From 1,000,000,000 users on finding the step does not find A or B: largest recall
rival_over_stable >= 1              The smallest group found with probability .99: the best rival's over StableMonitor's, smallest
stable_over_monitor <= 1.05         The smallest group of StableMonitor, with integer noise, over ThresholdMonitor's: largest
stable_over_bound <= 1.5            The smallest group of StableMonitor over the lower bound, in units of its noise scale times epsilon: largest
domains_ratio <= 1                  The smallest group of StableMonitor does not depend on the domain: largest over smallest
? normal_over_integer <= 1          Up to a thousand steps normal noise finds smaller groups than integer noise: largest ratio
? rival_over_best >= 1              Up to a thousand steps no rival finds smaller groups than the better of both: smallest ratio
growth_monitor <= 1.5               ThresholdMonitor's error hardly grows with the number of events: largest over smallest
? slope_repeated >= 0.4             AboveThreshold's grows like its square root: slope of log error over log events, upper half
gaussian_over_brown >= 1.5          On Brown, AboveThreshold with Gaussian noise, told how many words a document holds, finds more than ThresholdMonitor at its best k: ratio
brown_over_repeated >= 1.5          Without being told, on Brown, ThresholdMonitor finds more than AboveThreshold: ratio
"""  # "finds" is nine in ten, "does not find" one in ten: bounds wide of what the methods' closed forms say, for any seed

ENOUGH = 100  # groups C of all runs at a number of users together
_LETTERS = list(FAMILIES)
_NAMES = (("monitor", MONITOR), ("repeated", REPEATED), ("gaussian", GAUSSIAN))
_KEYS = {
    "repeated": REPEATED,
    "one": ONE,
    "gaussian": GAUSSIAN,
    "find": FIND_BEST,
}


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
    parts = (_sizes, group_rows, map_rows, _tops, _reports, _domain, brown_rows)
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
                yield run | {"part": "example", "setting": methods.setting(simulations[run["method"]].args[0])}
        if n_users in params.n_users_sweep:
            runs = max(params.sweep_repetitions, math.ceil(ENOUGH / sizes.families[-1].n_groups))
            yield from _runs(simulations, params, n_users, runs, row | {"part": "n_users"}, seed, "n_users", n_users)


def _tops(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """The smallest weight at which all of `tops` events would have been found, for the noise of a run; k* = 3."""
    target = target_of(params)
    queries = methods.CURVE_HORIZON * target.n_elements
    gaussian = methods.every_step(target, methods.CURVE_HORIZON, methods.CURVE[-1])
    for tops in params.tops_sweep:
        own = plan(methods.calibrated(target, params.reports), methods.CURVE_HORIZON, target.n_elements, tops, target.beta)
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
        "most_histogram": max(_high(mean, name, "ABC") for name in HISTOGRAMS),
        "most_theorem": _high(mean, THEOREM, "ABC"),
        "chance_of_wrong": binomtest(wrong, len(own), params.beta / 2, alternative="greater").pvalue,
        "stable_wrong": (example[example.method == STABLE].absent > 0).sum(),
        "all_monitor": _low(least, MONITOR, "ABC"),
        "all_stable": _low(least, STABLE, "ABC"),
        "chance_of_missed": binomtest(missed, len(sweep), params.beta / 2, alternative="greater").pvalue,
        "all_histogram": max(_high(most, name, "ABC") for name in HISTOGRAMS),
    }
    found |= {"most_repeated_AB": _high(mean, REPEATED, "AB"), "one_A": _high(mean, ONE, "A")}
    found |= {f"all_{key}_C": _low(least, name, "C") for key, name in _KEYS.items() if name != ONE}
    users = by_size.index.get_level_values("n_users")
    few = by_size[users <= 10**4].groupby(level="method").min()
    if len(few):
        found |= {f"least_{key}_few": _low(few, _KEYS[key], "ABC") for key in ("gaussian", "find")}
    for power, letters, keys in (
        (5, "AB", ("repeated",)), (6, "A", ("gaussian", "find")),
        (9, "AB", ("gaussian", "find")),
    ):  # fmt: skip
        large = by_size[users >= 10**power].groupby(level="method").max()
        if len(large):
            found |= {f"{key}_from_{power}": _high(large, _KEYS[key], letters) for key in keys}
    return found | _computed(params, table) | _of_other_streams(table)


def _computed(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """Nothing of groups depends on the seed."""
    part = table[table.part == "groups"]
    sizes = part.pivot(index=["n_users", "reports", "bits"], columns="method", values="size")
    rival = sizes[[name for name in GROUPS if name not in (STABLE, MONITOR)]].min(axis=1) / sizes[STABLE]
    scale = np.array([calibrated(target_of(params), int(k)).scale for k in sizes.index.get_level_values("reports")])
    domains = sizes[STABLE][sizes.index.get_level_values("n_users") == params.n_users].unstack("bits")
    needed = table[table.part == "tops"].groupby(["method", "tops"]).needed.mean()
    tops = sorted({int(count) for count in needed.index.get_level_values("tops")})
    return {
        "rival_over_stable": rival.min(),
        "stable_over_monitor": (sizes[STABLE] / sizes[MONITOR]).max(),
        "stable_over_bound": (sizes[STABLE] / sizes[BOUND] / scale / params.epsilon).max(),
        "domains_ratio": (domains.max(axis=1) / domains.min(axis=1)).max(),
        "growth_monitor": needed[MONITOR, tops[-1]] / needed[MONITOR, tops[0]],
        "slope_repeated": _slope(needed, REPEATED, tops),
    }


def _slope(needed: pd.Series, method: str, tops: list[int]) -> float:
    largest = tops[len(tops) // 2 :]
    if len(largest) < 2:
        return math.nan
    return float(np.polyfit(np.log(largest), np.log([needed[method, t] for t in largest]), 1)[0])


def _low(mean: pd.DataFrame, method: str, letters: str) -> float:
    return float(mean.loc[[method], list(letters)].to_numpy().min())


def _high(mean: pd.DataFrame, method: str, letters: str) -> float:
    return float(mean.loc[[method], list(letters)].to_numpy().max())


def _of_other_streams(table: pd.DataFrame) -> dict[str, Any]:
    brown = table[table.part == "brown"]
    allowed = brown.reports.where(brown.method == MONITOR, brown.total)
    best = brown.groupby(["method", allowed]).found.mean().groupby(level="method").max()
    return {
        "gaussian_over_brown": best[GAUSSIAN] / best[MONITOR],
        "brown_over_repeated": best[MONITOR] / best[REPEATED],
    }


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    found, sizes = example_plan(target_of(params), params.n_users, params.reports)
    example = table[table.part == "example"]
    mean = example.groupby("method")[_LETTERS].mean()
    needed = table[table.part == "tops"].groupby(["method", "tops"]).needed.mean()
    low, high = min(params.tops_sweep), max(params.tops_sweep)
    values: dict[str, Any] = {
        "k": params.reports, "runs": params.repetitions, "threshold": found.monitor.threshold, "error": found.error,
        "scale": found.monitor.noise.scale, "wrong_runs": int((example[example.method == MONITOR].absent > 0).sum()),
        "events": sum(params.n_users // size for size in sizes.values()),
    }  # fmt: skip
    for family, size in sizes.items():
        values[f"size_{family}"] = size
        values[f"events_{family}"] = params.n_users // size
        values |= {
            f"{name}_{family}": float(mean.loc[method, family])
            for name, method in (*_NAMES, ("find", FIND_BEST), ("stable", STABLE))
        }
    values |= {"tops_low": low, "tops_high": high}
    for name, method in _NAMES:
        values |= {f"needed_{name}": float(needed[method, high]), f"needed_{name}_low": float(needed[method, low])}
    mis = table[table.part == "reports"].groupby("reports")[_LETTERS].mean()
    for reports in mis.index.astype(int):
        values |= {f"k{reports}_{family}": float(mis.loc[reports, family]) for family in FAMILIES}
    values["above_beta"] = 0.5 * math.expm1(1 / found.monitor.noise.scale) * 10**9 / target_of(params).n_elements
    values["theorem_users"] = smallest_users(target_of(params), params.reports)
    domain = table[(table.part == "domain") & (table.reports == params.reports)].set_index("bits")
    values |= {f"threshold_{int(bits)}": float(domain.threshold[bits]) for bits in domain.index}
    sweep = table[table.part == "n_users"].groupby(["method", "n_users"])[_LETTERS].mean()
    for end, users in (("few", min(params.n_users_sweep)), ("many", max(params.n_users_sweep))):
        values[f"{end}_users"] = users
        for key, name in (("find", FIND_BEST), ("gaussian", GAUSSIAN)):
            values |= {f"{key}_{end}_{family}": float(sweep[family][name, users]) for family in FAMILIES}
    values["gaussian_from"] = gaussian_from(target_of(params), params.n_users)
    for period, steps in (("day", 365), ("week", 52)):
        values[f"group_{period}"] = smallest_group(methods.stable(target_of(params), steps, params.reports))
    values |= group_values(params, table) | brown_values(table)
    return values | map_values(table) | _claimed(params, table)


def group_values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """Sizes with the fewest and the most users, and the least and the largest factors."""
    part = table[(table.part == "groups") & (table.reports == params.reports) & (table.bits == params.domain_bits)]
    sizes = part.pivot(index="n_users", columns="method", values="size")
    values: dict[str, Any] = {"group_few": int(sizes.index.min()), "group_many": int(sizes.index.max())}
    keys = {"stable": STABLE, "monitor": MONITOR, "find": FIND_BEST, "gaussian": GAUSSIAN, "bound": BOUND}
    for end in ("few", "many"):
        line = sizes.loc[values[f"group_{end}"]]
        values |= {f"group_{end}_{key}": float(line[name]) for key, name in keys.items()}
        values[f"group_{end}_rival"] = float(
            line[[name for name in GROUPS if name not in (STABLE, MONITOR)]].min() / line[STABLE]
        )
        values[f"group_{end}_factor"] = float(line[STABLE] / line[BOUND])
    return values


def map_values(table: pd.DataFrame) -> dict[str, Any]:
    """Normal over integer noise, and the best rival over the better of both; and where integers come to win."""
    sizes = map_table(table)
    own, rivals = sizes[list(NOISES)].min(axis=1), sizes[[GAUSSIAN, *HISTOGRAMS]].min(axis=1)
    few = sizes.index.get_level_values("steps") <= 1000
    ratio = sizes.gaussian / sizes.integer
    values: dict[str, Any] = {"map_events": EVENTS}
    if few.any():
        values |= {"normal_over_integer": ratio[few].max(), "rival_over_best": (rivals / own)[few].min()}
    least = int(sizes.index.get_level_values("reports").min())
    lost = ratio[ratio > 1].index
    return values | {"map_least": least, "integers_from": min((steps for steps, _ in lost), default=math.inf)}


def brown_values(table: pd.DataFrame) -> dict[str, Any]:
    """The most words that each method finds, with the k or c at which it does."""
    part = table[table.part == "brown"]
    own = part[part.method == MONITOR].astype({"reports": int}).groupby("reports").found.mean()
    values: dict[str, Any] = {
        "brown_monitor": float(own.max()),
        "brown_best_k": int(own.index[int(own.to_numpy().argmax())]),
    }
    for key, method in _NAMES[1:]:
        found = part[part.method == method].groupby("total").found.mean()
        values |= {f"brown_{key}": float(found.max()), f"brown_{key}_c": int(found.index[int(found.to_numpy().argmax())])}
        values[f"brown_over_{key}"] = float(own.max() / found.max())
    return values


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
        chosen = {"runs with a report of weight zero": wrong, "its setting": runs.setting.iloc[0]}
        rows.append({"method": method} | shares | chosen)
    return pd.DataFrame(rows)


def group_table(table: pd.DataFrame) -> pd.DataFrame:
    """The smallest group, a row a setting; of AboveThreshold's kinds, the textbook's and the best."""
    part = table[table.part == "groups"].astype({"n_users": int, "reports": int, "bits": int})
    found = part.pivot(index=["n_users", "reports", "bits"], columns="method", values="size").sort_index()
    by_noise = found[[REPEATED, ONE, GAUSSIAN]]
    which = by_noise.idxmin(axis="columns").astype(str).str.split(", ").str[1]
    sizes = found[[groups.BOUND, *groups.GROUPS]].drop(columns=[ONE]).map("{:,.0f}".format)
    sizes[GAUSSIAN] = by_noise.min(axis="columns").map("{:,.0f}".format) + " (" + which + ")"
    sizes = sizes.rename(columns={GAUSSIAN: "AboveThreshold, its best kind"}).reset_index()
    sizes["n_users"] = sizes.n_users.map("{:,}".format)
    named = sizes.rename(columns={"n_users": "n", "reports": "k", "bits": "log2 |X|"}).astype(str)
    return named.rename(columns=lambda name: re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))  # a narrow head breaks between words


def own_groups(path: Any) -> reading.Groups:
    """(step, user, group), or (date, word, count), of whose users the first of a date are the first of every other."""
    if sorted(reading.columns_of(path)) != sorted(dated.COLUMNS):
        return reading.read_groups(path)
    counts = dated.read_counts(path)
    most = int(counts.counts.sum(axis=1).max())
    if most > OWN_USERS:
        raise ValueError(f"{path} must have at most {OWN_USERS:,} users at a date, got {most:,}; divide all counts alike")
    held = np.full((counts.horizon, most), -1, dtype=np.int64)
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
