"""Every method on the same streams: along horizons, changes and lengths of an epoch, on a map, and on bits that hardly change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core.seeds import stream
from evolvingdp.evolving.experiments.choosing.claims import claims, values
from evolvingdp.evolving.experiments.choosing.methods import all_errors, choices, rare_errors
from evolvingdp.evolving.experiments.choosing.params import NOTEBOOK, Params
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.streams import BitStream
from evolvingdp.experiment import Result, engine


def run(params: Params, seed: int) -> Result[Params]:
    """A row per method and stream (part: horizon, changes, epoch_length, map or rare): mean and largest error over epochs."""
    calls: list[tuple[Any, ...]] = [(_sweep, params, seed, part) for part in ("horizon", "changes", "epoch_length")]
    calls += [(_map, params, seed, n_users) for n_users in params.map_users]
    table = pd.DataFrame(engine.rows([*calls, (_rare, params, seed)]))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def random_means(horizon: int, changes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Means that are uniform on [0, 1], with changes at so many places that are."""
    means = rng.random(changes + 1)
    places = np.sort(rng.choice(np.arange(1, horizon), size=changes, replace=False))
    return np.asarray(means[np.searchsorted(places, np.arange(horizon), side="right")])


def _sweep(params: Params, seed: int, part: str) -> Iterator[dict[str, Any]]:
    """One size at a time. A repetition has the same means at all points of a sweep, as far as it has as many."""
    sweeps: dict[str, tuple[int, ...]] = {
        "horizon": params.horizons,
        "changes": params.changes_sweep,
        "epoch_length": params.epoch_lengths,
    }
    for value in sweeps[part]:
        sizes = {"horizon": params.horizon, "changes": params.changes, "epoch_length": params.epoch_length, part: value}
        size = (params.n_users, sizes["horizon"], sizes["epoch_length"], params.epsilon)
        chosen = choices(size, sizes["changes"])
        for repetition in range(params.repetitions):
            means = random_means(sizes["horizon"], sizes["changes"], stream(seed, "means", repetition))
            data = BitStream.make([params.n_users], means, sizes["epoch_length"])
            for row in all_errors(size, chosen, data, stream(seed, part, value, repetition)):
                yield {"part": part, "repetition": repetition} | sizes | row


def _map(params: Params, seed: int, n_users: int) -> Iterator[dict[str, Any]]:
    """All settings, each on streams of its own: on `map_runs` with a change in one of eight epochs, and on twice as many with
    two, whose sizes make more of a difference."""
    for horizon, epsilon, length in itertools.product(params.map_horizons, params.map_epsilons, params.map_lengths):
        size = (n_users, horizon, length, epsilon)
        for changes in (2, horizon // 8):
            chosen = choices(size, changes)
            setting = {
                "n_users": n_users,
                "horizon": horizon,
                "epsilon": epsilon,
                "epoch_length": length,
                "changes": changes,
            }
            for repetition in range(2 * params.map_runs if changes == 2 else params.map_runs):
                rng = stream(seed, "map", *map(str, (*size, changes)), repetition)
                data = BitStream.make([n_users], random_means(horizon, changes, rng), length)
                for row in all_errors(size, chosen, data, rng):
                    yield {"part": "map", "repetition": repetition} | setting | row


def _rare(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Users with one bit an epoch, 1 when the mean is above their own fixed threshold."""
    for horizon in params.horizons:
        for repetition in range(params.repetitions):
            means = random_means(horizon, params.changes, stream(seed, "means", repetition))
            data = ThresholdStream.make(params.n_users, means)
            for row in rare_errors(data, params.epsilon, stream(seed, "rare", horizon, repetition)):
                yield {"part": "rare", "repetition": repetition, "horizon": horizon} | row
