"""The runs of the TreeHist experiment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result, engine
from evolvingdp.heavy_hitters.experiments.lists import data, judge
from evolvingdp.heavy_hitters.experiments.treehist.claims import claims, values
from evolvingdp.heavy_hitters.experiments.treehist.ladder import (
    AS_RUN,
    BEST,
    FINAL_CUT,
    LADDER,
    OLH_PEM,
    PROJECTIVE,
    VARIANTS,
    find,
    leaves_of,
    protocol,
)
from evolvingdp.heavy_hitters.experiments.treehist.params import PAPER_TABLE_2, Params
from evolvingdp.heavy_hitters.experiments.treehist.predicted import found_probability
from evolvingdp.heavy_hitters.planning import expected_f1, known_f1
from evolvingdp.heavy_hitters.tree_hist import TreeHist

NOTEBOOK = "heavy_hitters/treehist"


def run(params: Params, seed: int) -> Result[Params]:
    """A row per run: how many words were found, how many of them are heavy, and the estimates' error."""
    table = pd.DataFrame(engine.rows((_trial, params, seed, *setting) for setting in _settings(params)))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _settings(params: Params) -> Iterator[tuple[str, str, str, int, float, int]]:
    for dataset in PAPER_TABLE_2:
        for variant in (*VARIANTS, OLH_PEM):
            for repetition in range(params.repetitions):
                yield dataset, "ladder", variant, params.n_users, params.epsilon, repetition
    for variant in (BEST, OLH_PEM):
        for repetition in range(params.sweep_repetitions):
            for epsilon in params.epsilon_sweep:
                yield "brown", "epsilon", variant, params.n_users, epsilon, repetition
            for n_users in params.n_users_sweep:
                yield "brown", "n_users", variant, n_users, params.epsilon, repetition


def _trial(
    params: Params, seed: int, dataset: str, sweep: str, variant: str, n_users: int, epsilon: float, repetition: int
) -> Iterator[dict[str, Any]]:
    """The row of one run; of Algorithm 3 two rows, as printed and with the final list cut."""
    truth = data(params.n_items, dataset, n_users, seed, repetition)
    method = protocol(params, variant, n_users, epsilon)
    name = (dataset, sweep, variant, n_users, str(epsilon), repetition)
    found = find(method, truth, seed, *name)
    setting = {
        "dataset": dataset,
        "sweep": sweep,
        "variant": variant,
        "n_users": n_users,
        "epsilon": epsilon,
        "repetition": repetition,
        "candidates": int(found.path.candidates.sum()),
    }
    leaves, counts = leaves_of(method.tree, truth.index), truth.to_numpy()
    if variant in (BEST, PROJECTIVE) and isinstance(method, TreeHist):
        setting |= {"expected_f1": expected_f1(method, leaves, counts), "known_f1": known_f1(method, counts)}
    if variant == AS_RUN and isinstance(method, TreeHist):
        drawn = method.draw_hashes(stream(seed, "hashes", *name))
        heavy = leaves[counts > method.threshold]
        setting["expected_recall"] = found_probability(drawn, leaves, counts, heavy, stream(seed, "deal", *name)).mean()
    yield setting | judge(found.words, truth, method.threshold)
    if variant + FINAL_CUT in LADDER:
        cut = found.words[found.words.estimate >= method.threshold]
        yield setting | {"variant": variant + FINAL_CUT} | judge(cut, truth, method.threshold)
