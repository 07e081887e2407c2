"""One stream of dated words under four guarantees: a row a method, epoch and run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result, engine
from evolvingdp.streams.experiments.two_centuries.claims import claims, values
from evolvingdp.streams.experiments.two_centuries.methods import GUARANTEES, clipped, followed, predicted, shares
from evolvingdp.streams.experiments.two_centuries.params import NOTEBOOK, Params
from evolvingdp.streams.experiments.two_centuries.trusted import hot_rows, mean_rows
from evolvingdp.streams.experiments.two_centuries.words import search_rows, word_rows


def run(params: Params, seed: int) -> Result[Params]:
    """Parts of the table: share (of the followed word, by epoch), users (its mean error by number of users), words, noticed,
    search, mean, hot, refused."""
    calls: list[tuple[Any, ...]] = [(part, params, seed) for part in (_shares, word_rows, search_rows, mean_rows, hot_rows)]
    calls += [(_users, params, seed, n_users) for n_users in params.n_users_sweep]
    table = pd.DataFrame(engine.rows(calls))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _shares(params: Params, seed: int) -> Iterator[dict[str, Any]]:
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


def _users(params: Params, seed: int, n_users: int) -> Iterator[dict[str, Any]]:
    truth = followed(params)
    for repetition in range(max(2, params.repetitions // 2)):
        found, _, _ = shares(params, n_users, stream(seed, "users", n_users, repetition))
        for method, estimates in found.items():
            error = float(np.abs(clipped(estimates) - truth).mean())
            yield {"part": "users", "method": method, "n_users": n_users, "repetition": repetition, "error": error}
