"""The runs of the experiment on trust."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result, engine
from evolvingdp.heavy_hitters.experiments.lists import data
from evolvingdp.heavy_hitters.experiments.trust.claims import claims, values
from evolvingdp.heavy_hitters.experiments.trust.params import Params
from evolvingdp.heavy_hitters.experiments.trust.rungs import LETTERS, RUNGS, method
from evolvingdp.heavy_hitters.pem import PEM

NOTEBOOK = "heavy_hitters/trust"


def run(params: Params, seed: int) -> Result[Params]:
    """A row per rung, epsilon and run: how many of the listed words somebody holds, and how many nobody."""
    settings = [(repetition, epsilon) for repetition in range(params.repetitions) for epsilon in params.epsilon_sweep]
    table = pd.DataFrame(engine.rows((_trial, params, seed, *setting) for setting in settings))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _trial(params: Params, seed: int, repetition: int, epsilon: float) -> Iterator[dict[str, Any]]:
    truth = data(100, "brown", params.n_users, seed, repetition)
    truth = truth[truth > 0]
    leaves, counts = LETTERS.encode(truth.index), truth.to_numpy()
    for rung in RUNGS:
        mechanism = method(params, rung, epsilon)
        found = mechanism.simulate(leaves, counts, stream(seed, "noise", rung, str(epsilon), repetition))
        held = truth.reindex(found.words.word, fill_value=0).to_numpy()
        yield {
            "rung": rung,
            "epsilon": epsilon,
            "repetition": repetition,
            "distinct": len(truth),
            "report_epsilon": mechanism.epsilon if isinstance(mechanism, PEM) else float("nan"),
            "threshold": mechanism.threshold,
            "words": int((held > 0).sum()),
            "false": int((held == 0).sum()),
            "candidates": int(found.path.candidates.max()),
        }
