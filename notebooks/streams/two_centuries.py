"""One stream of dated words under four guarantees: a row a method, epoch and run.

Parts of the table: share (of the followed word, by epoch), users (its mean error by number of users), words, noticed, mean,
hot, refused.  `share`, `words` and `trusted` beside this module have the methods.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom, norm, poisson

from evolvingdp.book import engine
from evolvingdp.book.labels import Label
from evolvingdp.book.own import Release
from evolvingdp.book.params import Metric
from evolvingdp.core import accounting
from evolvingdp.core.noise import Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import Once, Thresh
from evolvingdp.notebooks.evolving.split_users import HINDSIGHT, ONCE
from evolvingdp.notebooks.streams import trusted, words
from evolvingdp.notebooks.streams.share import (
    CENTRAL,
    EVERY,
    GUARANTEES,
    OPTIMAL,
    SMOOTH,
    TREE,
    TUNED,
    clipped,
    counted,
    five_deviations,
    followed,
    predicted,
    shares,
    standard_errors,
    watched,
    word_of,
)
from evolvingdp.sparse_vector import histogram
from evolvingdp.sparse_vector.gaussian import ALL, smallest_gaussian_scale
from evolvingdp.streams.addresses import SHIPPED

METRIC = Metric("error_once", "mean error of the followed share, each user reporting once for ever")

CLAIMS = """
low_once <= off_once <= high_once           The stated standard error is true, local, for ever: RMS error over it
covered_once >= least_covered_once          95% intervals cover the truth, local, for ever: share of epochs
low_every <= off_every <= high_every        The stated standard error is true, local, a report: RMS error over it
covered_every >= least_covered_every        95% intervals cover the truth, local, a report: share of epochs
low_central <= off_central <= high_central  The stated standard error is true, central, for ever: RMS error over it
covered_central >= least_covered_central    95% intervals cover the truth, central, for ever: share of epochs
early <= most_early                         Nothing is noticed before it happens, but for four standard errors: false alarms
? farthest_monitor <= reach_monitor         A word on the wrong side is next to the line (ThresholdMonitor, nobody deleted): farthest share
? farthest_histogram <= reach_histogram     The same (histogram in every epoch): farthest share
ratio_composed >= 1                         Recomputing with optimal composition is no better than each user once: ratio of mean errors
ratio_differences >= 1                      Differences of Algorithm 2's running sums have more noise than each epoch's own: ratio
? drift_tuned >= 2                          Drift defeats THRESH: its mean error over that of each user once
? smoothed_fewest <= 0.6                    With the fewest users a smoother helps, in hindsight: error over that as reported
? smoothed_averaged <= 1                    There it helps more than averages between detected changes: ratio of errors
? smoothed_most <= 1.02                     With the most it does no harm: error over that as reported
? averaged_most >= 1                        There averages do: the same ratio
? half <= largest_used <= half              Blocks of 1, 1, 2, 4, ... use only a power of two of samples: the largest
"""

ALARM = 1e-3  # of a query, at which noises are compared: false alarms are decided far out
RARE = 1e-6  # how rarely a claim that counts may fail where the theory is true


def check(params: Any) -> dict[str, Any]:
    """The file by its full name: the notebook runs in another folder.  Raises ValueError for a file or words that do not fit."""
    try:
        counts = counted(params)
    except ValueError as error:
        raise ValueError(f"data {error}") from None
    for name, given in {"word": [params.word] if params.word else [], "watch": params.watch}.items():
        for word in given:
            try:
                counts.place(word)
            except ValueError as error:
                raise ValueError(f"{name} {error}") from None
    if 2 * params.window > counts.horizon:
        raise ValueError(
            f"window must be at most {counts.horizon // 2}, half of the {counts.horizon} epochs, got {params.window}"
        )
    return {} if params.data in SHIPPED else {"data": os.path.abspath(os.path.expanduser(params.data))}


def run(params: Any, seed: int) -> pd.DataFrame:
    parts = (_shares, words.word_rows, trusted.mean_rows, trusted.hot_rows)
    calls: list[tuple[Any, ...]] = [(part, params, seed) for part in parts]
    calls += [(_users, params, seed, n_users) for n_users in params.n_users_sweep]
    return pd.DataFrame(engine.rows(calls))


def _shares(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    truth = followed(params)
    errors = {method: predicted(params, method, params.n_users) for method in GUARANTEES.values()}
    for repetition in range(params.repetitions):
        found, refused, last = shares(params, params.n_users, stream(seed, "shares", repetition))
        for method, estimates in found.items():
            for epoch, estimate in enumerate(estimates):
                yield {
                    "part": "share", "method": method, "repetition": repetition, "epoch": epoch, "estimate": float(estimate),
                    "truth": float(truth[epoch]), "error": float(abs(clipped(estimates[epoch : epoch + 1])[0] - truth[epoch])),
                    "predicted": float(errors[method][epoch]) if method in errors else np.nan,
                    "last_update": last.get(method, -1),
                }  # fmt: skip
        if not repetition:
            for method, why in refused.items():
                yield {"part": "refused", "method": method, "why": why}


def _users(params: Any, seed: int, n_users: int) -> Iterator[dict[str, Any]]:
    truth = followed(params)
    for repetition in range(params.repetitions):
        found, _, _ = shares(params, n_users, stream(seed, "users", n_users, repetition))
        for method, estimates in found.items():
            error = float(np.abs(clipped(estimates) - truth).mean())
            yield {"part": "users", "method": method, "n_users": n_users, "repetition": repetition, "error": error}


def _claimed(params: Any, table: pd.DataFrame) -> dict[str, float]:
    """First what theory says of any data; then, for the inaugural addresses, what was seen at one seed and is tried at others."""
    found, mean, share = dict[str, float](), errors(table), part(table, "share")
    for name, method in zip(("once", "every", "central"), GUARANTEES.values(), strict=True):
        own = share[share.method == method]
        off = ((own.estimate - own.truth) / own.predicted).dropna().to_numpy()
        reach = five_deviations(len(off), 6.0 if method == CENTRAL else 3.0)
        found[f"off_{name}"] = float(np.sqrt(np.mean(off**2)))
        found |= {f"low_{name}": 1 - reach, f"high_{name}": 1 + reach}
        found[f"covered_{name}"] = float((abs(off) <= 1.96).mean())
        found[f"least_covered_{name}"] = binom.ppf(RARE, len(off), 0.95 if method != CENTRAL else 0.94) / len(off)
    noticed = part(table, "noticed")
    tests = words.TESTS * len(noticed) * counted(params).horizon
    found["early"] = int(noticed.early.sum())
    found["most_early"] = float(poisson.isf(RARE, tests * norm.sf(words.DEVIATIONS)))
    for name, method in {"monitor": trusted.MONITOR, "histogram": trusted.EVERY}.items():
        found[f"farthest_{name}"], found[f"reach_{name}"] = _hot(params, table, method)
    found["ratio_composed"] = mean[OPTIMAL] / mean[ONCE]
    found["ratio_differences"] = _noise_of_differences(params, share)
    return found | (_of_addresses(params, table) if params.data == "inaugural" and not params.word else {})


def _noise_of_differences(params: Any, share: pd.DataFrame) -> float:
    """Over that of the noise in every epoch. Both are added to the same users' totals, which cancel: the errors themselves hold
    the drawing of the users' words, too, and that is most of them where there are many users."""
    estimates = share.pivot_table(index=["repetition", "epoch"], columns="method", values="estimate")
    apart = float(((estimates[TREE] - estimates[CENTRAL]) ** 2).mean())
    own = Laplace(counted(params).horizon / params.epsilon).variance / params.n_users**2
    return math.sqrt(max(0.0, apart / own - 1))


def _hot(params: Any, table: pd.DataFrame, method: str) -> tuple[float, float]:
    """No word is on the wrong side by more than the noise and the drawing of words can explain, in all queries of all runs."""
    counts = counted(params)
    queries = params.repetitions * counts.counts.size
    beta = RARE / (2 * queries)
    if method == trusted.MONITOR:
        noise = trusted.monitor(params, counts.horizon).noise
        reach = noise.isf(beta)
    else:
        scale = histogram(params.epsilon, params.delta, counts.horizon, counts.counts.shape[1], kind="gaussian").noise.scale
        reach = norm.isf(beta) * scale
    drawn = norm.isf(beta) * math.sqrt(params.hot / params.n_users) * 1.5
    own = part(table, "hot")
    own = own[own.method == method]
    return own[own.left > 0.9999].farthest.max(), reach / params.n_users + drawn


def _of_addresses(params: Any, table: pd.DataFrame) -> dict[str, float]:
    """Chosen after one look, at seed 1; tried at seeds that nobody has looked at."""
    mean, users = errors(table), part(table, "users").groupby(["n_users", "method"]).error.mean()
    used = part(table, "mean").groupby("method").used.max()
    return {
        "drift_tuned": _ratio(mean, TUNED, ONCE),
        "smoothed_fewest": _ratio(users[min(params.n_users_sweep)], SMOOTH, ONCE),
        "smoothed_averaged": _ratio(users[min(params.n_users_sweep)], SMOOTH, HINDSIGHT),
        "smoothed_most": _ratio(users[max(params.n_users_sweep)], SMOOTH, ONCE),
        "averaged_most": _ratio(users[max(params.n_users_sweep)], HINDSIGHT, ONCE),
        "half": 1 << (counted(params).horizon.bit_length() - 1),
        "largest_used": float(used[["Algorithm 4", "Algorithm 5", "Algorithm 6"]].max()),
    }


def _ratio(mean: pd.Series, method: str, other: str) -> float:
    return float(mean[method] / mean[other]) if method in mean.index else math.nan


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    counts, mean, truth = counted(params), errors(table), followed(params)
    dates, half, horizon = counts.dates, counts.horizon // 2, counts.horizon
    shown: dict[str, Any] = {
        "word": word_of(params),
        "epochs": horizon,
        "first_date": dates[0],
        "last_date": dates[-1],
        "share_first_half": 1000 * float(truth[:half].mean()),
        "share_second_half": 1000 * float(truth[half:].mean()),
        "all_reports": horizon * params.epsilon,
        "all_reports_delta": _composed(params),
        "epoch_scale": Laplace(horizon / params.epsilon).scale,
        "fewest_users": min(params.n_users_sweep),
        "most_users": max(params.n_users_sweep),
    }
    users = part(table, "users").groupby(["method", "n_users"]).error.mean()
    names = {"once": ONCE, "tuned": TUNED, "every": EVERY, "central": CENTRAL, "differences": TREE}
    shown |= {f"error_{name}": 1000 * float(mean.get(method, 0.5)) for name, method in names.items()}
    for side, size in {"fewest": min(params.n_users_sweep), "most": max(params.n_users_sweep)}.items():
        for name, method in {"once": ONCE, "smooth": SMOOTH, "hindsight": HINDSIGHT, "tuned": TUNED}.items():
            shown[f"error_{name}_{side}"] = 1000 * float(users.get((method, size), 0.5))
    share = part(table, "share")
    own = share[share.method == TUNED].last_update
    shown["last_update_tuned"] = dates[int(own.median())] if len(own) else "never"
    noticed = part(table, "noticed")
    followed_events = noticed[noticed.word == word_of(params)]
    for name, guarantee in zip(("once", "every", "central"), GUARANTEES, strict=True):
        epochs = np.sort(followed_events[followed_events.guarantee == guarantee].epoch.to_numpy())
        middle = int(epochs[len(epochs) // 2]) if len(epochs) else -1
        shown[f"noticed_{name}"] = dates[middle] if middle >= 0 else "never"
        theirs = noticed[noticed.guarantee == guarantee]
        shown[f"words_noticed_{name}"] = int(((theirs.epoch >= 0).groupby(theirs.word).mean() >= 0.5).sum())
    event = int(followed_events.event.iloc[0]) if len(followed_events) else -1
    shown["happened"] = dates[event] if event >= 0 else "never"
    shown["happened_how"] = str(followed_events.event_kind.iloc[0]) if event >= 0 else ""
    shown["watched"] = len(watched(params))
    of_words = part(table, "words").groupby("method")[["max_error", "recall"]].mean()
    for name, method in {"split": words.SPLIT, "report": words.REPORTS}.items():
        shown[f"recall_{name}"] = float(of_words.recall.get(method, 0.0))
    kinds = {"split": words.SPLIT, "averaged": words.AVERAGED, "heavy": words.HEAVY}
    for name, method in kinds.items():
        shown[f"word_error_{name}"] = 1000 * float(of_words.max_error.get(method, 1.0))
    shown["split_error"] = 1000 * Once(params.n_users, horizon, params.epsilon, len(counts.words)).standard_error()
    means = running(table).set_index(["n_users", "method"])
    kinds = {"naive": "Algorithm 2", "recommended": "recommended", "full": "Algorithm 6"}
    kinds |= {"alone": trusted.ALONE, "gaussian": trusted.ALONE_DELTA}
    for name, method in kinds.items():
        shown[f"running_{name}"] = 1000 * float(means.error[params.sample_users, method])
    for name in ("naive", "alone"):
        shown[f"own_{name}"] = 1000 * float(means.own_error[params.sample_users, kinds[name]])
    used = part(table, "mean").query("method == 'Algorithm 6'").used.max()
    shown["used_until"] = dates[int(used) - 1]
    hot = part(table, "hot")
    for name, method in {"monitor": trusted.MONITOR, "histogram": trusted.EVERY}.items():
        own_hot = hot[hot.method == method]
        shown[f"hot_wrong_{name}"] = float(own_hot.wrong.sum() / params.repetitions)
    shown["hot_listed"] = float(hot[hot.method == trusted.MONITOR].found.sum() / params.repetitions)
    shown["left"] = float(hot.left.min())
    shown["monitor_noise"] = trusted.monitor(params, horizon).noise.isf(ALARM)
    answers = smallest_gaussian_scale(params.epsilon, params.delta, ALL, 2 * horizon)  # a user moves two queries a step
    shown["answers_noise"] = norm.isf(ALARM) * answers
    shown["histogram_noise"] = (
        norm.isf(ALARM) * histogram(params.epsilon, params.delta, horizon, 2, kind="gaussian").noise.scale
    )
    if params.data not in SHIPPED:
        shown["released"] = of_own(params, table).line
    return shown | _planned(params) | _claimed(params, table)


def of_own(params: Any, table: pd.DataFrame) -> Release:
    """The followed word by the plainest method that trusts nobody, for ever, in the first run; intervals are the method's,
    at the estimate."""
    counts, first = counted(params), part(table, "share").query("method == @ONCE and repetition == 0").sort_values("epoch")
    told = first.estimate.to_numpy()
    off = 1.96 * standard_errors(params, ONCE, params.n_users, told.clip(0, 1))
    shown = pd.DataFrame({"date": counts.dates, "estimate": told, "low": told - off, "high": told + off})
    promise = f"pure {params.epsilon:g}-local differential privacy of everything that a user ever sends"
    return Release(
        counts.name, "date", "share of the followed word", "one report of each user", promise,
        shown.assign(truth=first.truth.to_numpy()), "series",
    )  # fmt: skip


def _composed(params: Any) -> float:
    """What all reports of one user cost together with optimal composition, at `delta`."""
    low, high = params.epsilon, counted(params).horizon * params.epsilon
    for _ in range(40):
        middle = (low + high) / 2
        enough = accounting.optimal(middle, params.delta, counted(params).horizon) >= params.epsilon
        low, high = (low, middle) if enough else (middle, high)
    return high


def _planned(params: Any) -> dict[str, Any]:
    """The smallest change of the share that THRESH can vote for, per thousand; 1000: it cannot."""
    size = (params.n_users, counted(params).horizon, params.words_per_user, params.epsilon)
    try:
        made = Thresh.tuned(*size, changes=params.changes)
    except ValueError:
        return {"threshold_tuned": 1000.0, "estimates_tuned": 0}
    return {"threshold_tuned": 1000 * made.threshold(1), "estimates_tuned": made.estimate_cap}


GUARANTEE = {
    **dict.fromkeys((ONCE, SMOOTH, HINDSIGHT, TUNED), "local, for ever"),
    OPTIMAL: "local, for ever, with a delta",
    EVERY: "local, a report",
    **dict.fromkeys((CENTRAL, TREE), "central, for ever"),
}


def part(table: pd.DataFrame, name: str) -> pd.DataFrame:
    return table[table.part == name]


def errors(table: pd.DataFrame) -> pd.Series:
    """The mean error of the followed share over epochs and runs, by method."""
    return part(table, "share").groupby("method", sort=False).error.mean()


def _three(share: float) -> str:
    """A share per thousand with three digits, the last ones 0 as well."""
    return f"{1000 * share:#.3g}".rstrip(".")


def known(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Each method of the followed share: its guarantee and the mean error, per thousand words."""
    found = errors(table).sort_values()
    largest = part(table, "share").groupby("method").error.max()
    refused = part(table, "refused")
    rows = [
        {
            "method": method,
            "guarantee": GUARANTEE[method],
            "mean error, per thousand": _three(error),
            "largest": _three(largest[method]),
        }
        for method, error in found.items()
    ]
    rows += [
        {"method": one.method, "guarantee": one.why, "mean error, per thousand": "refused", "largest": ""}
        for one in refused.itertuples()
    ]
    return pd.DataFrame(rows)


def of_all_words(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Each method for all words: the largest error over words, and the recall of the most frequent ones."""
    found = part(table, "words").groupby("method", sort=False)[["max_error", "recall"]].mean()
    return pd.DataFrame(
        {
            "method": found.index,
            "largest error of a word, per thousand": list(map(_three, found.max_error)),
            "found of the ten most frequent": [f"{share:.0%}" for share in found.recall],
        }
    )


def when(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Of each watched word: when its share doubled or halved, and when that was noticed under each guarantee."""
    dates, found = counted(params).dates, part(table, "noticed")
    rows = []
    for word in watched(params):
        own = found[found.word == word]
        first = own.iloc[0]
        row = {
            "word": Label(word),
            "happened": f"{dates[int(first.event)]}, {first.event_kind}" if first.event >= 0 else "never",
        }
        for guarantee in GUARANTEES:
            epochs = own[own.guarantee == guarantee].epoch.to_numpy()
            share, seen = float((epochs >= 0).mean()), np.sort(epochs[epochs >= 0]).astype(int)
            middle = dates[seen[(len(seen) - 1) // 2]] if len(seen) else ""
            row[guarantee] = "never" if share < 0.5 else middle if share == 1 else f"{middle}, in {share:.0%} of runs"
        rows.append(row)
    return pd.DataFrame(rows)


def hot_now(params: Any, table: pd.DataFrame, repetition: int = 0) -> pd.DataFrame:
    """A row per hot word and epoch of one run of ThresholdMonitor: date, word; words in the order in which they come."""
    every = part(table, "hot")
    found = every[(every.method == trusted.MONITOR) & (every.repetition == repetition)]
    dates = counted(params).dates
    rows = [
        (int(one.epoch), dates[int(one.epoch)], word) for one in found.itertuples() for word in json.loads(str(one.listed))
    ]
    return pd.DataFrame(rows, columns=["epoch", "date", "word"])


def running(table: pd.DataFrame) -> pd.DataFrame:
    """The mean error of the running mean over the later half of the epochs, and of an epoch by differences, by method."""
    found = part(table, "mean")
    late = found[found.epoch >= found.epoch.max() / 2]
    groups = late.groupby(["n_users", "method"], sort=False)
    means: pd.DataFrame = pd.concat([groups[["error", "own_error"]].mean(), groups.used.max()], axis=1).reset_index()
    return means


def of_means(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """`running`, for the page."""
    found, horizon = running(table).sort_values(["n_users", "error"]), counted(params).horizon
    return pd.DataFrame(
        {
            "users": [f"{int(users):,}" for users in found.n_users],
            "method": found.method,
            "running mean, error per thousand": list(map(_three, found.error)),
            "an epoch by differences": list(map(_three, found.own_error)),
            "samples of a user that it used": [
                "all" if np.isnan(used) or used == horizon else f"{used:.0f}" for used in found.used
            ],
        }
    )
