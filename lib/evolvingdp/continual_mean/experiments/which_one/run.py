"""Which mean for which stream: errors, measured and stated, over how much of their cap users send; windows and days."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.continual_mean import algorithms, offline, streams, windows
from evolvingdp.continual_mean.experiments.scores import arranger
from evolvingdp.continual_mean.experiments.which_one.claims import claims, values
from evolvingdp.continual_mean.experiments.which_one.params import Params
from evolvingdp.continual_mean.experiments.which_one.tables import ALIKE, ORDERS, POPULATIONS, horizon, made, windowed
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result, engine

NOTEBOOK = "continual_mean/which_one"


def run(params: Params, seed: int) -> Result[Params]:
    """A row per order, fill, population, kind, mean, run and part of the stream; and per window and run."""
    jobs = [(_map, order, fill, population) for order in ORDERS for fill in params.fills for population in POPULATIONS]
    table = pd.DataFrame(engine.rows((part, params, seed, *name) for part, *name in (*jobs, (_windows,))))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _map(params: Params, seed: int, order: str, fill: float, population: str) -> Iterator[dict[str, Any]]:
    steps = horizon(params, fill)
    for repetition in range(params.repetitions):
        rng = stream(seed, "map", order, str(fill), population, repetition)
        users, bits = streams.readings("active kind", order, params.n_users, params.samples_per_user, steps, rng)
        samples = streams.bits(0.3, steps, rng) if population == ALIKE else bits
        arranged, truth = arranger(users, samples), algorithms.running_mean(samples)
        for (name, kind), settings in made(params, order, fill, seed).items():
            noise = stream(seed, "map noise", order, str(fill), population, name, kind, repetition)
            released = offline.changes(settings, arranged(settings), noise).every_step()
            for part, some in {"early": slice(steps // 100, steps // 50), "late": slice(steps // 2, steps)}.items():
                common = {"part": part, "order": order, "fill": fill, "population": population, "name": name, "kind": kind}
                yield common | {
                    "repetition": repetition,
                    "square": float(np.mean((released.estimate[some] - truth[some]) ** 2)),
                    "noise": float(np.mean(released.standard_error[some] ** 2)),
                    "bias": float(np.mean(released.bias[some] ** 2)),
                }


def _windows(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Means of each day: distance to the day's own mean, and as stated."""
    steps = horizon(params, 0.25)
    ends = np.linspace(0, steps, params.days + 1).astype(int)
    for repetition in range(params.repetitions):
        rng = stream(seed, "windows", repetition)
        users = streams.arrivals("random", params.n_users, params.samples_per_user, steps, rng)
        bits = streams.bits(0.3, steps, rng)
        for (name, kind), mean in windowed(params, seed).items():
            noise = stream(seed, "windows noise", name, kind, repetition)
            if isinstance(mean, windows.Days):
                days = np.repeat(np.arange(params.days), np.diff(ends))
                kept = [windows.START, *mean.release(users, bits, days, noise)]
            else:
                kept = windows.snapshots(mean, users, bits, noise, ends.tolist())
            for day, pair in enumerate(itertools.pairwise(kept)):
                found = windows.between(mean, *pair)
                yield {
                    "part": "days",
                    "name": name,
                    "kind": kind,
                    "repetition": repetition,
                    "square": float((found.estimate - bits[ends[day] : ends[day + 1]].mean()) ** 2),
                    "noise": found.standard_error**2,
                    "bias": found.bias**2,
                }
