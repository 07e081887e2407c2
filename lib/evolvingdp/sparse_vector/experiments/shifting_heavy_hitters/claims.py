"""The claims of the chapter on shifting heavy hitters, from the table of a run, and the numbers that its prose prints."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from evolvingdp.experiment import Claim, Scalar, at_least, at_most
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import (
    FAMILIES,
    FIND,
    FIND_BEST,
    HISTOGRAMS,
    MONITOR,
    RENYI,
    REPEATED,
    THEOREM,
    example_plan,
    smallest_users,
)
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.other_streams import STEPS, TYPES
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Params

_LETTERS = list(FAMILIES)
_NAMES = (("monitor", MONITOR), ("repeated", REPEATED), ("renyi", RENYI))


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    made = [*_example(table, params.beta), *_all_sizes(table, params.beta), *_curves(table), *_other_streams(table)]
    return [claim for claim in made if not math.isnan(claim.value)]


def _example(table: pd.DataFrame, beta: float) -> list[Claim]:
    example = table[table.part == "example"]
    mean = example.groupby("method")[_LETTERS].mean()
    own = example[example.method == MONITOR]
    wrong = int((own.absent > 0).sum())
    nothing = max(_high(mean, name, "ABC") for name in HISTOGRAMS)
    return [
        at_least("ThresholdMonitor finds A, B and C: smallest recall", _low(mean, MONITOR, "ABC"), 0.999),
        at_most("AboveThreshold, repeated, finds neither A nor B: larger recall", _high(mean, REPEATED, "AB"), 0.02),
        at_least("AboveThreshold, repeated, finds C", _low(mean, REPEATED, "C"), 0.9),
        at_most("Nor does it without threshold noise: larger recall of A, B", _high(mean, RENYI, "AB"), 0.02),
        at_most("A histogram in every step finds nothing: largest recall", nothing, 0.001),
        at_most("With Theorem 3.2's noise nothing is found: largest recall", _high(mean, THEOREM, "ABC"), 0.001),
        at_least(
            f"A report of weight zero comes in at most beta/2 of the runs ({wrong} of {len(own)}): p-value",
            float(binomtest(wrong, len(own), beta / 2, alternative="greater").pvalue),
            0.001,
        ),
    ]


def _all_sizes(table: pd.DataFrame, beta: float) -> list[Claim]:
    part = table[table.part == "n_users"]
    mean = part.groupby(["method", "n_users"])[_LETTERS].mean()
    least, most = mean.groupby(level="method").min(), mean.groupby(level="method").max()
    own = part[part.method == MONITOR]
    nothing = max(_high(most, name, "ABC") for name in HISTOGRAMS)
    missed = int((own[_LETTERS] < 1).any(axis=1).sum())
    made = [
        at_least("The same at all numbers of users: smallest recall of ThresholdMonitor", _low(least, MONITOR, "ABC"), 0.98),
        at_least(
            f"An event is missed in at most beta/2 of these runs ({missed} of {len(own)}): p-value",
            float(binomtest(missed, len(own), beta / 2, alternative="greater").pvalue),
            0.001,
        ),
        at_least("At all of them repeated AboveThreshold finds C: smallest recall", _low(least, REPEATED, "C"), 0.9),
        at_most("At all it finds neither A nor B: largest recall", _high(most, REPEATED, "AB"), 0.1),
        at_least("At all, without threshold noise it finds C: smallest recall", _low(least, RENYI, "C"), 0.9),
        at_most("At all, without threshold noise neither A nor B: largest recall", _high(most, RENYI, "AB"), 0.1),
        at_most("At all, a histogram in every step finds nothing: largest recall", nothing, 0.001),
        at_least("At all, find the step, then histogram, finds C: smallest recall", _low(least, FIND, "C"), 0.9),
        at_most("At all, find the step, then histogram, does not find A: largest recall", _high(most, FIND, "A"), 0.1),
        at_least("At all, with the best split it finds C: smallest recall", _low(least, FIND_BEST, "C"), 0.9),
    ]
    for first, letters, method in ((10**5, "A", FIND_BEST), (10**5, "AB", FIND), (10**7, "AB", FIND_BEST)):
        large = mean[mean.index.get_level_values("n_users") >= first].groupby(level="method").max()
        if len(large):
            name = f"{method}: largest recall of {' or '.join(letters)} from 10^{round(math.log10(first))} users on"
            made.append(at_most(name[0].upper() + name[1:], _high(large, method, letters), 0.1))
    return made


def _low(mean: pd.DataFrame, method: str, letters: str) -> float:
    return float(mean.loc[[method], list(letters)].to_numpy().min())


def _high(mean: pd.DataFrame, method: str, letters: str) -> float:
    return float(mean.loc[[method], list(letters)].to_numpy().max())


def _curves(table: pd.DataFrame) -> list[Claim]:
    needed = table[table.part == "tops"].groupby(["method", "tops"]).needed.mean()
    tops = sorted({int(count) for count in needed.index.get_level_values("tops")})
    growth = needed[MONITOR, tops[-1]] / needed[MONITOR, tops[0]]
    slope = "AboveThreshold's grows like its square root: slope of log error over log events, upper half"
    return [
        at_most("Error against the number of events, ThresholdMonitor: largest over smallest", growth, 1.5),
        at_least(slope, _slope(needed, REPEATED, tops), 0.4),
    ]


def _slope(needed: pd.Series, method: str, tops: list[int]) -> float:
    largest = tops[len(tops) // 2 :]
    if len(largest) < 2:
        return math.nan
    return float(np.polyfit(np.log(largest), np.log([needed[method, t] for t in largest]), 1)[0])


def _other_streams(table: pd.DataFrame) -> list[Claim]:
    general = table[table.part == "general"]
    shares = general[general.reports == general.participation].heavy_share
    brown = table[table.part == "brown"]
    allowed = brown.reports.where(brown.method == MONITOR, brown.total)
    best = brown.groupby(["method", allowed]).found.mean().groupby(level="method").max()
    ratio = float(best[MONITOR] / best.drop(MONITOR).max())
    return [
        at_least(
            "On a general stream, with k = k*, the heavy elements are found: smallest share", float(shares.min()), 0.999
        ),
        at_least(
            "On Brown, ThresholdMonitor at its best k finds more words than AboveThreshold at its best c: ratio", ratio, 1.5
        ),
    ]


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    found, sizes = example_plan(params.target, params.n_users, params.reports)
    example = table[table.part == "example"]
    mean = example.groupby("method")[_LETTERS].mean()
    needed = table[table.part == "tops"].groupby(["method", "tops"]).needed.mean()
    low, high = min(params.tops_sweep), max(params.tops_sweep)
    values: dict[str, Scalar] = {
        "n_users": params.n_users, "epsilon": params.epsilon, "delta": params.delta, "beta": params.beta, "k": params.reports,
        "runs": params.repetitions, "threshold": found.monitor.threshold, "error": found.error,
        "scale": found.monitor.noise.scale, "wrong_runs": int((example[example.method == MONITOR].absent > 0).sum()),
        "events": sum(params.n_users // size for size in sizes.values()), "copies": params.copies,
    }  # fmt: skip
    for family, size in sizes.items():
        values[f"size_{family}"] = size
        values[f"events_{family}"] = params.n_users // size
        values |= {f"{name}_{family}": float(mean.loc[method, family]) for name, method in (*_NAMES, ("find", FIND_BEST))}
    values |= {"tops_low": low, "tops_high": high} | {
        f"needed_{name}": float(needed[method, high]) for name, method in _NAMES
    }
    mis = table[table.part == "reports"].groupby("reports")[_LETTERS].mean()
    for reports in mis.index.astype(int):
        values |= {f"k{reports}_{family}": float(mis.loc[reports, family]) for family in FAMILIES}
    values["above_beta"] = 0.5 * math.expm1(found.monitor.noise.loss) * 10**9 / params.target.n_elements
    values["theorem_users"] = smallest_users(params.target, params.reports)
    domain = table[(table.part == "domain") & (table.reports == params.reports)].set_index("bits")
    values |= {f"threshold_{int(bits)}": float(domain.threshold[bits]) for bits in domain.index}
    sweep = table[(table.part == "n_users") & (table.method == FIND_BEST)].groupby("n_users")[_LETTERS].mean()
    values["find_few_users"] = int(sweep.index.min())
    values |= {f"find_few_{family}": float(sweep[family].iloc[0]) for family in FAMILIES}
    return values | brown_values(table) | general_values(table)


def general_values(table: pd.DataFrame) -> dict[str, Scalar]:
    part = table[table.part == "general"]
    return {
        "general_types": TYPES, "general_steps": STEPS, "general_k": int(part.participation.iloc[0]),
        "general_error": float(part.error.iloc[0]), "general_events": int(part.events.iloc[0]),
        "general_held": int(part.held.iloc[0]),
    }  # fmt: skip


def brown_values(table: pd.DataFrame) -> dict[str, Scalar]:
    """The most words that each method finds, with the k or c at which it does."""
    part = table[table.part == "brown"]
    own = part[part.method == MONITOR].astype({"reports": int}).groupby("reports").found.mean()
    values: dict[str, Scalar] = {
        "brown_monitor": float(own.max()),
        "brown_best_k": int(own.index[int(own.to_numpy().argmax())]),
    }
    for key, method in _NAMES[1:]:
        found = part[part.method == method].groupby("total").found.mean()
        values |= {f"brown_{key}": float(found.max()), f"brown_{key}_c": int(found.index[int(found.to_numpy().argmax())])}
        values[f"brown_over_{key}"] = float(own.max() / found.max())
    return values
