"""The paper's algorithms on its problem: error over time on five arrival orders, against the cap, and where each one wins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.continual_mean import algorithms, offline, streams
from evolvingdp.continual_mean.arranged import arrange
from evolvingdp.continual_mean.experiments.scores import second_half
from evolvingdp.continual_mean.experiments.user_mean.claims import claims, values
from evolvingdp.continual_mean.experiments.user_mean.params import Params
from evolvingdp.continual_mean.experiments.user_mean.tables import (
    FULL,
    MEAN,
    METHODS,
    MULTIPLE,
    NAIVE,
    PER_STEP,
    PRIVATE,
    SINGLE,
    kept_steps,
    settings,
)
from evolvingdp.continual_mean.per_step import PerStepLaplace
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
    made = {name: settings(params, name, params.n_users, params.samples_per_user, params.horizon) for name in PRIVATE}
    for order in streams.ORDERS:
        for repetition in range(params.repetitions):
            rng = stream(seed, "data", order, repetition)
            users = streams.arrivals(order, params.n_users, params.samples_per_user, params.horizon, rng)
            bits = streams.bits(params.mean, params.horizon, rng)
            arranged = arrange(made[NAIVE], users, bits)
            for name in METHODS:
                noise = stream(seed, "noise", order, name, repetition)
                if name == MEAN:
                    got = algorithms.running_mean(bits)
                elif name == PER_STEP:
                    got = PerStepLaplace(len(bits), params.epsilon).release(users, bits, noise)
                else:
                    got = offline.changes(made[name], arranged, noise).every_step().estimate
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
            arranged = arrange(settings(params, NAIVE, n_users, cap, horizon), users, bits)
            for name in (NAIVE, SINGLE, MULTIPLE):
                made = settings(params, name, n_users, cap, horizon)
                got = offline.changes(made, arranged, stream(seed, "cap noise", name, cap, repetition)).every_step()
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
        arranged = arrange(settings(params, NAIVE, n_users, each, horizon), users, bits)
        for cap in params.loose_caps:
            for name in (NAIVE, SINGLE, MULTIPLE, FULL):
                made = settings(params, name, n_users, cap, horizon)
                got = offline.changes(made, arranged, stream(seed, "loose noise", name, cap, repetition))
                square = second_half(got, params.mean)["square"]
                yield {"part": "loose", "method": name, "cap": cap, "repetition": repetition, "square": square}
