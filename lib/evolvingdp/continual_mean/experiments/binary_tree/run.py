"""Running sums of a long stream: Algorithm 1, better trees, and a factorization, measured against their exact errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.continual_mean import streams
from evolvingdp.continual_mean.experiments.binary_tree.claims import claims, values
from evolvingdp.continual_mean.experiments.binary_tree.params import Params
from evolvingdp.continual_mean.experiments.binary_tree.tables import APPROXIMATE, PER_STEP, PURE, mechanism, variances
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result

NOTEBOOK = "continual_mean/binary_tree"
BINS = 24  # of steps, of equal ratio


def edges(params: Params) -> NDArray[np.int64]:
    """First steps of the bins, and the step after the last."""
    return np.unique(np.round(np.geomspace(1, params.horizon + 1, BINS + 1)).astype(np.int64))


def run(params: Params, seed: int) -> Result[Params]:
    """A row per mechanism, run and bin of steps: mean squared error, measured and exact."""
    table = pd.DataFrame(list(_rows(params, seed)))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _rows(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    first = edges(params)
    for name in (*PURE, *APPROXIMATE):
        exact = np.add.reduceat(variances(params, name), first[:-1] - 1) / np.diff(first)
        for repetition in range(params.repetitions):
            bits = streams.bits(0.5, params.horizon, stream(seed, "bits", repetition))
            noise = stream(seed, "noise", name, repetition)
            if name == PER_STEP:
                error = noise.laplace(0.0, params.horizon / params.epsilon, params.horizon)
            else:
                error = mechanism(params, name).release(bits, noise) - np.cumsum(bits)
            measured = np.add.reduceat(error**2, first[:-1] - 1) / np.diff(first)
            for place, (square, variance) in enumerate(zip(measured, exact, strict=True)):
                yield {
                    "mechanism": name,
                    "repetition": repetition,
                    "first": int(first[place]),
                    "last": int(first[place + 1]) - 1,
                    "mean_square": float(square),
                    "exact": float(variance),
                }
