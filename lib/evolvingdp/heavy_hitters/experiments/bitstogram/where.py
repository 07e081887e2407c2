"""The map: which method of the chapter finds the best list without a dictionary, over epsilon, users and words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.experiments.bitstogram import variants
from evolvingdp.heavy_hitters.experiments.bitstogram.params import Params
from evolvingdp.heavy_hitters.experiments.lists import LETTERS, data, find, judge, leaves_of
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.planning import planned, predicted_f1

SEVERAL, ONE, FIXED, BUCKETS = "TreeHist, projective", "TreeHist, one bit", "PEM, fixed shares", "Bitstogram, one bit"
METHODS = (SEVERAL, ONE, FIXED, BUCKETS)
ONE_BIT = (ONE, BUCKETS)
SETTING = ["dataset", "n_users", "epsilon"]


def settings(params: Params) -> Iterator[tuple[str, int, float, int]]:
    """The synthetic words at every number of users, Brown at the largest."""
    for n_users in params.map_users:
        for dataset in ("synthetic", "brown") if n_users == max(params.map_users) else ("synthetic",):
            for epsilon in params.map_epsilons:
                for repetition in range(params.map_runs):
                    yield dataset, n_users, epsilon, repetition


def trial(
    params: Params, seed: int, dataset: str, n_users: int, epsilon: float, repetition: int
) -> Iterator[dict[str, Any]]:
    """A row per method, all on the same words: how good its list is.  A search that would never end lists nothing."""
    truth = data(params.n_items, dataset, n_users, seed, repetition)
    threshold = params.factor * math.isqrt(n_users)
    for method in METHODS:
        name = ("map", dataset, method, n_users, str(epsilon), repetition)
        predicted = math.nan, math.nan
        try:
            found, predicted = _found(method, epsilon, n_users, threshold, truth, seed, name)
        except ValueError:
            found = pd.DataFrame({"word": [], "estimate": [], "standard_error": []})
        setting = {"part": "map", "dataset": dataset, "variant": method, "n_users": n_users, "epsilon": epsilon}
        nobody = int((truth.reindex(found.word, fill_value=0) == 0).sum())
        setting |= dict(
            zip(("repetition", "nobody", "expected_f1", "f1_deviation"), (repetition, nobody, *predicted), strict=True)
        )
        yield setting | judge(found, truth, threshold)


def _found(
    method: str, epsilon: float, n_users: int, threshold: float, truth: pd.Series, seed: int, name: tuple[Any, ...]
) -> tuple[pd.DataFrame, tuple[float, float]]:
    """The list, the F1 that is expected of it, and its deviation (of PEM: nan)."""
    counts = truth.to_numpy()
    if method == FIXED:
        return find(PEM(LETTERS, epsilon, threshold), truth, seed, *name).words, (math.nan, math.nan)
    if method != BUCKETS:
        plan = _planned(epsilon, n_users, threshold, "projective" if method == SEVERAL else "hadamard")
        return find(plan, truth, seed, *name).words, predicted_f1(plan, leaves_of(plan.tree, truth.index), counts)
    drawn = Bitstogram(epsilon, threshold).draw_hashes(stream(seed, "hashes", *name))
    messages = variants.messages_of(drawn.settings, truth.index)
    found = drawn.search(drawn.simulate(messages, counts, stream(seed, "reports", *name)), n_users)
    return found.words, variants.predicted_f1(drawn, messages, counts, n_users)


@cache
def _planned(epsilon: float, n_users: int, threshold: float, compression: str) -> Any:
    return planned(epsilon, n_users, threshold, compression=compression)


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """Mean F1 over runs: a row a setting, a column a method."""
    part = table[table.part == "map"]
    means = part.astype({"n_users": int}).pivot_table(index=SETTING, columns="variant", values="f1", sort=False)
    return means[list(METHODS)].sort_index(ascending=[False, True, True])


def won(result: Result[Params]) -> pd.DataFrame:
    """By epsilon: mean F1 of each method over words and users, and who has the largest, also of those with one bit."""
    means = scores(result.table).groupby("epsilon").mean()
    shown = means.map("{:.3f}".format)
    shown["best"], shown["best with one bit"] = means.idxmax(axis=1), means[list(ONE_BIT)].idxmax(axis=1)
    return shown.rename_axis(columns=None).reset_index()
