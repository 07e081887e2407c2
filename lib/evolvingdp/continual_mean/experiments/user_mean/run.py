"""The paper's algorithms on its problem: error over time on five arrival orders, against the cap, and where each one wins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.continual_mean import algorithms, offline, streams
from evolvingdp.continual_mean.experiments.user_mean.claims import claims, values
from evolvingdp.continual_mean.experiments.user_mean.methods import (
    FULL,
    METHODS,
    MULTIPLE,
    NAIVE,
    SINGLE,
    estimates,
    kept_steps,
    settings,
)
from evolvingdp.continual_mean.experiments.user_mean.params import Params
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result

NOTEBOOK = "continual_mean/user_mean"


def run(params: Params, seed: int) -> Result[Params]:
    """A row per part, method, order or cap, run and kept step: the estimate's error."""
    rows = [*_orders(params, seed), *_caps(params, seed), *_loose(params, seed)]
    table = pd.DataFrame(rows)
    return Result(NOTEBOOK, params, seed, table, claims(params, table, seed), values(params, table, seed))


def _orders(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    steps = kept_steps(params.horizon)
    for order in streams.ORDERS:
        for repetition in range(params.repetitions):
            rng = stream(seed, "data", order, repetition)
            users = streams.arrivals(order, params.n_users, params.samples_per_user, params.horizon, rng)
            bits = streams.bits(params.mean, params.horizon, rng)
            for name in METHODS:
                make = partial(settings, params, name, params.n_users, params.samples_per_user, params.horizon)
                got = estimates(params, name, make, users, bits, stream(seed, "noise", order, name, repetition))
                window = np.abs(got - params.mean)
                for step in steps:
                    yield {
                        "part": "orders",
                        "method": name,
                        "order": order,
                        "repetition": repetition,
                        "step": int(step),
                        "error": float(window[step - 1]),
                        "square": float(np.mean(np.square(window[step - 1 : max(step, int(1.2 * step))]))),
                    }


def _caps(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Users who use up their cap, in turns: the released mean against the mean of the data over the last quarter."""
    n_users = params.n_users
    for cap in params.cap_sweep:
        horizon = n_users * cap
        users = streams.arrivals("round_robin", n_users, cap, horizon, stream(seed))
        for repetition in range(params.repetitions):
            bits = streams.bits(params.mean, horizon, stream(seed, "cap data", cap, repetition))
            for name in (NAIVE, SINGLE, MULTIPLE):
                made = settings(params, name, n_users, cap, horizon)
                got = offline.release(made, users, bits, stream(seed, "cap noise", name, cap, repetition))
                tail = slice(-(horizon // 4), None, max(1, cap // 4))
                error = got.estimate[tail] - algorithms.running_mean(bits)[tail]
                noise = got.standard_error[tail] ** 2 - 0.25 / got.samples[tail]
                yield {
                    "part": "caps",
                    "method": name,
                    "cap": cap,
                    "repetition": repetition,
                    "square": float(np.mean(np.square(error)) * horizon**2),
                    "exact": float(np.mean(noise) * horizon**2),
                }


def _loose(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Users with few samples under larger and larger caps: who pays for what nobody does?"""
    n_users, each = params.loose_users, params.loose_samples
    horizon = n_users * each
    for repetition in range(params.repetitions):
        rng = stream(seed, "loose data", repetition)
        users = streams.arrivals("random", n_users, each, horizon, rng)
        bits = streams.bits(params.mean, horizon, rng)
        for cap in params.loose_caps:
            for name in (NAIVE, SINGLE, MULTIPLE, FULL):
                made = settings(params, name, n_users, cap, horizon)
                got = offline.release(made, users, bits, stream(seed, "loose noise", name, cap, repetition)).estimate
                tail = got[horizon // 2 :] - params.mean
                yield {
                    "part": "loose",
                    "method": name,
                    "cap": cap,
                    "repetition": repetition,
                    "square": float(np.mean(np.square(tail))),
                }
