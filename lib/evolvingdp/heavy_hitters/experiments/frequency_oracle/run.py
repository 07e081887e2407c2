"""The runs of the experiment with the frequency oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.core import hashing
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.experiments.frequency_oracle.claims import claims, values
from evolvingdp.heavy_hitters.experiments.frequency_oracle.params import Params
from evolvingdp.heavy_hitters.experiments.frequency_oracle.tables import SETTING, data

NOTEBOOK = "heavy_hitters/frequency_oracle"
HASHES: dict[str, type[hashing.MultiplyShift | hashing.ShaPrefix]] = {
    "pairwise": hashing.MultiplyShift,
    "sha256": hashing.ShaPrefix,
}
BROWN_WORDS = 200  # how many of the most frequent words are asked for in each run


def run(params: Params, seed: int) -> Result[Params]:
    """Every setting `repetitions` times; the table has a row per setting, run and queried word, in users."""
    rows = [row for setting in _settings(params) for row in _trials(params, setting, seed)]
    table = pd.concat(rows, ignore_index=True)
    table["z"] = (table.estimate - table.truth) / table.standard_error
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table, seed))


def _settings(params: Params) -> Iterator[dict[str, Any]]:
    base = {
        "n_users": params.n_users,
        "epsilon": params.epsilon,
        "width": params.width,
        "compression": params.compression,
        "hashes": "pairwise",
    }
    for sweep, swept in _sweeps(params).items():
        for value in swept:
            yield {"dataset": "power law", "sweep": sweep, **base, sweep: value}
    for epsilon in params.epsilon_sweep:
        yield {"dataset": "brown", "sweep": "epsilon", **base, "epsilon": epsilon}
    for compression in ("none", "hadamard"):
        yield {"dataset": "brown", "sweep": "compression", **base, "compression": compression}


def _sweeps(params: Params) -> dict[str, tuple[Any, ...]]:
    return {
        "n_users": params.n_users_sweep,
        "epsilon": params.epsilon_sweep,
        "width": params.width_sweep,
        "hashes": tuple(HASHES),
    }


def _trials(params: Params, setting: dict[str, Any], seed: int) -> Iterator[pd.DataFrame]:
    keys, counts = data(params, setting["dataset"], setting["n_users"], seed)
    asked = np.argsort(-counts, kind="stable")[:BROWN_WORDS]
    expected_error = theory.median_error(
        counts[counts > 0], setting["n_users"], setting["epsilon"], params.rows, setting["width"], truth=counts[asked]
    )
    name = [str(setting[column]) for column in SETTING]
    for repetition in range(params.repetitions):
        public = stream(seed, "hashes", *name, repetition)
        hashes = HASHES[setting["hashes"]].draw(params.rows, setting["width"], public)
        oracle = FreqOracle(hashes, setting["epsilon"], setting["compression"])
        reports = stream(seed, "reports", *name, repetition)
        yield pd.DataFrame(
            {
                **setting,
                "repetition": repetition,
                "rank": np.arange(1, len(asked) + 1),
                "truth": counts[asked],
                "estimate": oracle.simulate_estimates(keys, counts, keys[asked], reports),
                "standard_error": expected_error,
            }
        )
