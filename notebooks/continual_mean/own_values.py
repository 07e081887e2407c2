"""The recommended running mean on a reader's own samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.book.own import Release
from evolvingdp.continual_mean import recommended
from evolvingdp.continual_mean.settings import finest
from evolvingdp.core.seeds import stream
from evolvingdp.streams.reading import read_values

_SHOWN = 500  # steps of a file


def released(params: Any, delta: float, seed: int) -> Release:
    """After every step, or of a long file after 500 of them: the mean so far, with what noise and dropped samples can do."""
    own = read_values(params.data, params.low, params.high)
    each = int(np.bincount(own.users).max())
    size, horizon = (max(2, len(own.names)), max(2, each), params.epsilon), len(own.users)
    bounds = {"low": params.low, "high": params.high, "resolution": finest(*size, horizon)}
    settings = recommended(*size, delta, horizon=horizon, **bounds)
    found = settings.release(own.users, own.values, stream(seed, "own"))
    steps = np.unique(np.linspace(1, len(own.users), min(_SHOWN, len(own.users))).round().astype(int))
    at = steps - 1
    estimate, off = found.estimate[at], 1.96 * found.standard_error[at]
    truth = np.cumsum(own.values)[at] / steps
    table = pd.DataFrame(
        {
            "step": steps,
            "estimate": estimate,
            "low": np.maximum(estimate - off, params.low),
            "high": np.minimum(estimate + off, params.high),
            "truth": truth,
        }
    )
    if delta:
        promise = f"({params.epsilon:g}, {delta:g})-differential privacy of all samples of a user"
    else:
        promise = f"pure {params.epsilon:g}-differential privacy of all samples of a user"
    promise += f"; at most {each:,} a user, and who arrives when, are public"
    return Release(own.name, "step", "mean so far", "the recommended running mean", promise, table, "series")
