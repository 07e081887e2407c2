"""The claims of the chapter on shifting heavy hitters, from the table of a run, and the numbers that its prose prints."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from evolvingdp.experiment import Claim, Scalar, at_least, at_most
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.groups import (
    BOUND,
    GROUPS,
    best_alone,
    gaussian_from,
    with_least_laplace,
    with_threshold_noise,
)
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import (
    EXPONENTIAL,
    FAMILIES,
    FIND,
    FIND_BEST,
    GAUSSIAN,
    HISTOGRAMS,
    MONITOR,
    RENYI,
    REPEATED,
    STABLE,
    THEOREM,
    calibrated,
    example_plan,
    smallest_users,
)
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.other_streams import STEPS, TYPES
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Params
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.target import Target

_LETTERS = list(FAMILIES)
_NAMES = (("monitor", MONITOR), ("repeated", REPEATED), ("gaussian", GAUSSIAN))
FINDS, MISSES = 0.9, 0.1  # shares that "finds" and "does not find" stand for
ALPHA = 1e-6


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    made = [*_example(table, params.beta), *_all_sizes(table, params.beta), *_groups(params, table)]
    made += [*_curves(table), *_other_streams(table)]
    return [claim for claim in made if not math.isnan(claim.value)]


def _example(table: pd.DataFrame, beta: float) -> list[Claim]:
    """Bounds are wide of what the methods' closed forms say, so that they hold for any seed, and where the paper says more
    than a number, its words: "finds" is nine in ten, "does not find" one in ten."""
    example = table[table.part == "example"]
    mean = example.groupby("method")[_LETTERS].mean()
    own = example[example.method == MONITOR]
    wrong = int((own.absent > 0).sum())
    nothing = max(_high(mean, name, "ABC") for name in HISTOGRAMS)
    return [
        at_least("ThresholdMonitor finds A, B and C: smallest recall", _low(mean, MONITOR, "ABC"), FINDS),
        at_least("StableMonitor finds A, B and C: smallest recall", _low(mean, STABLE, "ABC"), FINDS),
        at_most("AboveThreshold, repeated, finds neither A nor B: larger recall", _high(mean, REPEATED, "AB"), MISSES),
        at_least("AboveThreshold, repeated, finds C", _low(mean, REPEATED, "C"), FINDS),
        at_most(
            "AboveThreshold with exponential noise finds neither A nor B: larger recall",
            _high(mean, EXPONENTIAL, "AB"),
            MISSES,
        ),
        at_most(
            "AboveThreshold without threshold noise finds neither A nor B: larger recall", _high(mean, RENYI, "AB"), MISSES
        ),
        at_most("AboveThreshold with Gaussian noise does not find A: recall", _high(mean, GAUSSIAN, "A"), MISSES),
        at_most("Finding the step, at its best, does not find A: recall", _high(mean, FIND_BEST, "A"), MISSES),
        at_most("A histogram in every step finds next to nothing: largest recall", nothing, MISSES),
        at_most("With Theorem 3.2's noise nothing is found: largest recall", _high(mean, THEOREM, "ABC"), MISSES),
        at_least(
            f"A report of weight zero comes in at most beta/2 of the runs ({wrong} of {len(own)}): p-value",
            float(binomtest(wrong, len(own), beta / 2, alternative="greater").pvalue),
            ALPHA,
        ),
        at_most(
            "StableMonitor never reports weight zero: runs in which it does",
            float((example[example.method == STABLE].absent > 0).sum()),
            0,
        ),
    ]


def _all_sizes(table: pd.DataFrame, beta: float) -> list[Claim]:
    part = table[table.part == "n_users"]
    mean = part.groupby(["method", "n_users"])[_LETTERS].mean()
    users = mean.index.get_level_values("n_users")
    least, most = mean.groupby(level="method").min(), mean.groupby(level="method").max()
    own = part[part.method == MONITOR]
    nothing = max(_high(most, name, "ABC") for name in HISTOGRAMS)
    missed = int((own[_LETTERS] < 1).any(axis=1).sum())
    made = [
        at_least(
            "At all numbers of users ThresholdMonitor finds A, B and C: smallest recall", _low(least, MONITOR, "ABC"), FINDS
        ),
        at_least(
            "At all numbers of users StableMonitor finds A, B and C: smallest recall", _low(least, STABLE, "ABC"), FINDS
        ),
        at_least(
            f"An event is missed in at most beta/2 of these runs ({missed} of {len(own)}): p-value",
            float(binomtest(missed, len(own), beta / 2, alternative="greater").pvalue),
            ALPHA,
        ),
        at_most("At all numbers of users a histogram in every step finds next to nothing: largest recall", nothing, MISSES),
    ]
    made += [
        at_least(f"At all numbers of users {name} finds most of C: smallest recall", _low(least, name, "C"), 0.5)
        for name in (REPEATED, EXPONENTIAL, RENYI, GAUSSIAN, FIND_BEST)
    ]
    few = mean[users <= 10**4].groupby(level="method").min()
    if len(few):
        made += [
            at_least(f"With 10,000 users {name} finds most of A, B and C: smallest recall", _low(few, name, "ABC"), 0.5)
            for name in (GAUSSIAN, FIND_BEST)
        ]
    for first, letters, names in (
        (10**5, "AB", (REPEATED, EXPONENTIAL, RENYI)), (10**5, "A", (FIND,)), (10**6, "A", (GAUSSIAN, FIND_BEST)),
        (10**9, "AB", (GAUSSIAN, FIND_BEST)),
    ):  # fmt: skip
        large = mean[users >= first].groupby(level="method").max()
        if len(large):
            what = f"From {first:,} users on"
            which = " or ".join(letters)
            made += [
                at_most(f"{what} {name} does not find {which}: largest recall", _high(large, name, letters), MISSES)
                for name in names
            ]
    return made


def _groups(params: Params, table: pd.DataFrame) -> list[Claim]:
    """What is computed: nothing here depends on the seed."""
    part = table[table.part == "groups"]
    sizes = part.pivot(index=["n_users", "reports", "bits"], columns="method", values="size")
    rival = sizes[[name for name in GROUPS if name not in (STABLE, MONITOR)]].min(axis=1) / sizes[STABLE]
    scale = np.array([calibrated(params.target, int(k)).scale for k in sizes.index.get_level_values("reports")])
    domains = sizes[STABLE][sizes.index.get_level_values("n_users") == params.n_users].unstack("bits")
    return [
        at_least(
            "The smallest group found with probability .99: the best rival's over StableMonitor's, smallest",
            rival.min(),
            1.0,
        ),
        at_most(
            "The smallest group of StableMonitor, with integer noise, over ThresholdMonitor's: largest",
            (sizes[STABLE] / sizes[MONITOR]).max(),
            1.05,
        ),
        at_most(
            "The smallest group of StableMonitor over the lower bound, in units of its noise scale times epsilon: largest",
            (sizes[STABLE] / sizes[BOUND] / scale / params.epsilon).max(),
            1.5,
        ),
        at_most(
            "The smallest group of StableMonitor does not depend on the domain: largest over smallest",
            (domains.max(axis=1) / domains.min(axis=1)).max(),
            1.0,
        ),
        at_least(
            "AboveThreshold with Gaussian noise on the threshold, too, over the best without, 1 to 400 reports: smallest",
            min(with_threshold_noise(*one) / best_alone(*one) for one in _alone(params)),
            1.0,
        ),
        at_least(
            "AboveThreshold with Laplace noise on queries alone, as little as any analysis allows, over the best: smallest",
            min(with_least_laplace(*one) / best_alone(*one) for one in _alone(params)),
            1.0,
        ),
    ]


def _alone(params: Params) -> list[tuple[Target, int, int]]:
    return [(params.target, params.n_users, reports) for reports in (1, 40, 400)]


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
        at_most("ThresholdMonitor's error hardly grows with the number of events: largest over smallest", growth, 1.5),
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
    return [
        at_least(
            "On a general stream, with k = k*, the heavy elements are found: smallest share", float(shares.min()), 0.999
        ),
        at_least(
            "On Brown, AboveThreshold with Gaussian noise, told how many words a document holds, finds more than "
            "ThresholdMonitor at its best k: ratio",
            best[GAUSSIAN] / best[MONITOR],
            1.5,
        ),
        at_least(
            "Without being told, on Brown, ThresholdMonitor finds more than AboveThreshold: ratio",
            best[MONITOR] / best[REPEATED],
            1.5,
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
    values["above_beta"] = 0.5 * math.expm1(found.monitor.noise.loss) * 10**9 / params.target.n_elements
    values["theorem_users"] = smallest_users(params.target, params.reports)
    domain = table[(table.part == "domain") & (table.reports == params.reports)].set_index("bits")
    values |= {f"threshold_{int(bits)}": float(domain.threshold[bits]) for bits in domain.index}
    sweep = table[table.part == "n_users"].groupby(["method", "n_users"])[_LETTERS].mean()
    for end, users in (("few", min(params.n_users_sweep)), ("many", max(params.n_users_sweep))):
        values[f"{end}_users"] = users
        for key, name in (("find", FIND_BEST), ("gaussian", GAUSSIAN)):
            values |= {f"{key}_{end}_{family}": float(sweep[family][name, users]) for family in FAMILIES}
    for one in _alone(params):
        values[f"noisy_threshold_{one[2]}"] = with_threshold_noise(*one)
        values[f"least_laplace_{one[2]}"] = with_least_laplace(*one)
        values[f"best_alone_{one[2]}"] = best_alone(*one)
    values["gaussian_from"] = gaussian_from(params.target, params.n_users)
    return values | group_values(params, table) | brown_values(table) | general_values(table)


def group_values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    """Sizes with the fewest and the most users, and the least and the largest factors."""
    part = table[(table.part == "groups") & (table.reports == params.reports) & (table.bits == params.domain_bits)]
    sizes = part.pivot(index="n_users", columns="method", values="size")
    values: dict[str, Scalar] = {"group_few": int(sizes.index.min()), "group_many": int(sizes.index.max())}
    keys = {"stable": STABLE, "monitor": MONITOR, "find": FIND_BEST, "gaussian": GAUSSIAN, "bound": BOUND}
    for end in ("few", "many"):
        line = sizes.loc[values[f"group_{end}"]]
        values |= {f"group_{end}_{key}": float(line[name]) for key, name in keys.items()}
        values[f"group_{end}_rival"] = float(
            line[[name for name in GROUPS if name not in (STABLE, MONITOR)]].min() / line[STABLE]
        )
        values[f"group_{end}_factor"] = float(line[STABLE] / line[BOUND])
    return values


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
