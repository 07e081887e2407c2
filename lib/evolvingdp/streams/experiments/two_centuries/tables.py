"""What figures, claims and the page make of the table: errors by guarantee, when what was noticed, and lists of words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE
from evolvingdp.experiment import Result
from evolvingdp.streams.experiments.two_centuries.methods import CENTRAL, EVERY, GUARANTEES, OPTIMAL, TREE, TUNED
from evolvingdp.streams.experiments.two_centuries.params import Params
from evolvingdp.streams.experiments.two_centuries.trusted import MONITOR

PROMISES = {
    "local, for ever": "nobody is trusted; epsilon for all that a user ever sends",
    "local, a report": "nobody is trusted; epsilon for each epoch's report",
    "central, for ever": "a curator is trusted; epsilon for all that is ever published of a user",
}
GUARANTEE = {
    **dict.fromkeys((ONCE, ONLINE, HINDSIGHT, CREWS, TUNED), "local, for ever"),
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


def known(result: Result[Params]) -> pd.DataFrame:
    """Each method of the followed share: its guarantee and the mean error, per thousand words."""
    found = errors(result.table).sort_values()
    largest = part(result.table, "share").groupby("method").error.max()
    refused = part(result.table, "refused")
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


def of_all_words(result: Result[Params]) -> pd.DataFrame:
    """Each method for all words: the largest error over words, and the recall of the most frequent ones."""
    found = part(result.table, "words").groupby("method", sort=False)[["max_error", "recall"]].mean()
    return pd.DataFrame(
        {
            "method": found.index,
            "largest error of a word, per thousand": list(map(_three, found.max_error)),
            "found of the ten most frequent": [f"{share:.0%}" for share in found.recall],
        }
    )


def when(result: Result[Params]) -> pd.DataFrame:
    """Of each watched word: when its share doubled or halved, and when that was noticed under each guarantee."""
    dates, found = result.params.counts.dates, part(result.table, "noticed")
    rows = []
    for word in result.params.watched:
        own = found[found.word == word]
        first = own.iloc[0]
        row = {"word": word, "happened": f"{dates[int(first.event)]}, {first.event_kind}" if first.event >= 0 else "never"}
        for guarantee in GUARANTEES:
            epochs = own[own.guarantee == guarantee].epoch.to_numpy()
            share, seen = float((epochs >= 0).mean()), np.sort(epochs[epochs >= 0]).astype(int)
            middle = dates[seen[(len(seen) - 1) // 2]] if len(seen) else ""
            row[guarantee] = "never" if share < 0.5 else middle if share == 1 else f"{middle}, in {share:.0%} of runs"
        rows.append(row)
    return pd.DataFrame(rows)


def hot_now(result: Result[Params], repetition: int = 0) -> pd.DataFrame:
    """A row per hot word and epoch of one run of ThresholdMonitor: date, word; words in the order in which they come."""
    every = part(result.table, "hot")
    found = every[(every.method == MONITOR) & (every.repetition == repetition)]
    dates = result.params.counts.dates
    rows = [(int(one.epoch), dates[int(one.epoch)], word) for one in found.itertuples() for word in str(one.listed).split()]
    return pd.DataFrame(rows, columns=["epoch", "date", "word"])


def running(table: pd.DataFrame) -> pd.DataFrame:
    """The mean error of the running mean over the later half of the epochs, and of an epoch by differences, by method."""
    found = part(table, "mean")
    late = found[found.epoch >= found.epoch.max() / 2]
    groups = late.groupby(["n_users", "method"], sort=False)
    means: pd.DataFrame = pd.concat([groups[["error", "own_error"]].mean(), groups.used.max()], axis=1).reset_index()
    return means


def of_means(result: Result[Params]) -> pd.DataFrame:
    """`running`, for the page."""
    found, horizon = running(result.table).sort_values(["n_users", "error"]), result.params.counts.horizon
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
