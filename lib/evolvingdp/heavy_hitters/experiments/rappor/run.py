"""The runs of the experiment with RAPPOR."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.heavy_hitters import streams
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.experiments.lists import score
from evolvingdp.heavy_hitters.experiments.rappor.claims import claims, values
from evolvingdp.heavy_hitters.experiments.rappor.params import Params
from evolvingdp.heavy_hitters.experiments.rappor.tables import BROWN_METHODS, rappor
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.rappor_decoding import decode

NOTEBOOK = "heavy_hitters/rappor"
ROWS, WIDTH = 285, 4096  # of the frequency oracle, as in Section 4
UNKNOWN = 9  # Demo 3 forgets the candidates whose number ends in 9


def candidates(params: Params) -> NDArray[np.uint64]:
    """Nine tenths of the values that occur, and strangers."""
    everyone = np.arange(1, params.n_values + params.n_strangers + 1, dtype=np.uint64)
    asked: NDArray[np.uint64] = everyone[(everyone % 10 != UNKNOWN) | (everyone > params.n_values)]
    return asked


def run(params: Params, seed: int) -> Result[Params]:
    """A row per candidate and data set of Demo 3 (frequencies as fractions of the reports), a row per run on Brown."""
    demo = [_demo(params, seed, repetition) for repetition in range(params.repetitions)]
    brown = [row for repetition in range(params.brown_repetitions) for row in _brown(params, seed, repetition)]
    table = pd.concat([*demo, pd.DataFrame(brown)], ignore_index=True)
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _demo(params: Params, seed: int, repetition: int) -> pd.DataFrame:
    """One data set: what RAPPOR and FreqOracle say of every candidate."""
    values = streams.demo_3(params.n_clients, params.n_reports, stream(seed, "data", repetition), n_values=params.n_values)
    total = values.size
    asked = candidates(params)
    present, held = np.unique(values, return_counts=True)
    truth = pd.Series(held, index=present).reindex(asked, fill_value=0).to_numpy()
    settings = rappor(params)
    cohorts = np.arange(params.n_clients) % params.n_cohorts  # as in Google's generator
    protocol = settings.draw_hashes(stream(seed, "RAPPOR hashes", repetition))
    pairs = streams.repeated_values(values, cohorts, params.n_cohorts)
    counts = protocol.simulate_pairs(*pairs, stream(seed, "RAPPOR", repetition))
    decoded = decode(protocol, counts, asked)
    hashes = MultiplyShift.draw(ROWS, WIDTH, stream(seed, "oracle hashes", repetition))
    oracle = FreqOracle(hashes, settings.epsilon_of_reports(1))
    sketch = oracle.simulate(present, held, stream(seed, "oracle", repetition))
    listed = decoded.listed(params.false_discovery_rate)
    frame = pd.DataFrame(
        {
            "part": "demo 3",
            "repetition": repetition,
            "value": asked.astype(int),
            "truth": truth / total,
            "rappor": decoded.words.estimate / total,
            "unbiased": decoded.words.unbiased / total,
            "standard_error": decoded.words.standard_error / total,
            "p_value": decoded.words.p_value,
            "listed": listed.astype(int),
            "listed_at_a_tenth": decoded.listed(0.1).astype(int),
            "rappor_listed": np.where(listed, decoded.words.estimate, 0.0) / total,
            "dispersion": decoded.dispersion,
        }
    )
    for estimator in ("median", "mean"):
        frame[f"oracle_{estimator}"] = oracle.estimate(sketch, asked, estimator) / total
    return frame


def _brown(params: Params, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """A dictionary of all Brown words at one loss per user: who finds the words above 15 sqrt(n) users?"""
    counts = streams.brown_counts(params.n_users, stream(seed, "brown", repetition))
    keys = streams.brown_keys()
    threshold = 15 * math.isqrt(params.n_users)
    heavy = counts > threshold
    protocol = Rappor.one_shot(params.epsilon, n_bits=64, n_cohorts=128).draw_hashes(
        stream(seed, "brown RAPPOR hashes", repetition)
    )
    decoded = decode(protocol, protocol.simulate(keys, counts, stream(seed, "brown RAPPOR", repetition)), keys)
    hashes = MultiplyShift.draw(16, 2**16, stream(seed, "brown oracle hashes", repetition))
    oracle = FreqOracle(hashes, params.epsilon)
    sketch = oracle.simulate(keys, counts, stream(seed, "brown oracle", repetition))
    estimates = (decoded.words.unbiased.to_numpy(), oracle.estimate(sketch, keys, "joint"))
    errors = (float(decoded.words.standard_error.mean()), oracle.standard_error(params.n_users, "joint"))
    for method, estimate, error in zip(BROWN_METHODS, estimates, errors, strict=True):
        found = pd.Series(np.flatnonzero(estimate >= threshold))
        yield {
            "part": "brown",
            "repetition": repetition,
            "method": method,
            **score(found, set(np.flatnonzero(heavy))),
            "rmse": float(np.sqrt(np.mean(np.square(estimate - counts)))),
            "standard_error": error,
        }
