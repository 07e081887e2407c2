"""From Algorithms 2 and 6 to what we recommend, one switch at a time; (epsilon, delta), dimensions, and where nothing helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.continual_mean import algorithms, coordinates, offline, private_median, streams
from evolvingdp.continual_mean.arranged import arrange
from evolvingdp.continual_mean.experiments.past_the_paper import rungs
from evolvingdp.continual_mean.experiments.past_the_paper.claims import POPULATION_RUNS, claims, values
from evolvingdp.continual_mean.experiments.past_the_paper.params import SETTINGS, Params, sizes
from evolvingdp.continual_mean.experiments.scores import arranger, second_half
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result, engine

NOTEBOOK = "continual_mean/past_the_paper"
KEPT = 60  # steps
ORDER_RUNGS = (rungs.NAIVE, rungs.RECOMMENDED, rungs.RECOMMENDED_DELTA, rungs.ALIKE, rungs.ALIKE_DELTA)


def rung(params: Params, setting: str, name: str, order: str = "", seed: int = 0) -> UserMean:
    """The settings of a rung; users arrive in the setting's own order unless another is given."""
    own = "zipf" if setting == "zipf" else "random"
    return rungs.rung(name, *sizes(params, setting), params.delta, order or own, seed)


def data(params: Params, setting: str, seed: int, repetition: int) -> tuple[Any, Any]:
    """Users and bits of one run."""
    n_users, cap, _, horizon = sizes(params, setting)
    rng = stream(seed, "data", setting, repetition)
    users = streams.arrivals("zipf" if setting == "zipf" else "random", n_users, cap, horizon, rng)
    return users, streams.bits(params.mean, horizon, rng)


def run(params: Params, seed: int) -> Result[Params]:
    """A row per setting, rung and run: mean squared error over the second half of the stream, and what was predicted."""
    table = pd.DataFrame(engine.rows((part, params, seed, *name) for part, *name in _runs(params)))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _runs(params: Params) -> Iterator[tuple[Any, ...]]:
    """Part, setting or order, repetition: each has its own data and noise."""
    yield from ((_ladder, setting, repetition) for setting in SETTINGS for repetition in range(params.repetitions))
    few = range(2)
    yield from ((_dimensions, repetition) for repetition in few)
    yield from ((_orders, order, repetition) for order in streams.ORDERS for repetition in few)
    yield from ((_one_block, repetition) for repetition in few)
    yield from (
        (_populations, population, repetition) for population in rungs.POPULATIONS for repetition in range(POPULATION_RUNS)
    )


def _ladder(params: Params, seed: int, setting: str, repetition: int) -> Iterator[dict[str, Any]]:
    users, bits = data(params, setting, seed, repetition)
    arranged = arranger(users, bits)
    mean = algorithms.running_mean(bits)[len(bits) // 2 :]
    for name in rungs.LADDER:
        settings = rung(params, setting, name, seed=seed)
        released = offline.changes(settings, arranged(settings), stream(seed, "noise", setting, name, repetition))
        common = {"part": "ladder", "setting": setting, "repetition": repetition, "rung": name}
        yield common | second_half(released, mean) | {"used": float(released.samples[-1] / len(users))}


def _dimensions(params: Params, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """What a coordinate of d dimensions costs: the first coordinate's error, its budget being a share of all."""
    horizon = params.horizon
    pure, gaussian = (rung(params, "random", name, seed=seed) for name in (rungs.ALIKE, rungs.ALIKE_DELTA))
    kinds: dict[str, Callable[[int], UserMean]] = {
        "pure: epsilon / d": lambda d: coordinates.of_one(pure, d),
        "(eps, delta): optimal composition": lambda d: coordinates.of_one(pure, d, params.delta) if d > 1 else pure,
        "(eps, delta): Gaussian": lambda d: coordinates.of_one(gaussian, d),
    }
    users, bits = data(params, "random", seed, repetition)
    arranged, mean = arrange(pure, users, bits), algorithms.running_mean(bits)[horizon // 2 :]
    for name, kind in kinds.items():
        for dimension in params.dimensions:
            noise = stream(seed, "dimension", name, dimension, repetition)
            errors = second_half(offline.changes(kind(dimension), arranged, noise), mean)
            yield {"part": "dimensions", "rung": name, "dimension": dimension, "repetition": repetition, **errors}


def _orders(params: Params, seed: int, order: str, repetition: int) -> Iterator[dict[str, Any]]:
    """Algorithm 2, and the recommended estimates and those for users alike over time on every order of arrival."""
    n_users, cap, _, horizon = sizes(params, "random")
    steps = np.unique(np.round(np.geomspace(10, horizon, KEPT)).astype(np.int64))
    rng = stream(seed, "order data", order, repetition)
    users = streams.arrivals(order, n_users, cap, horizon, rng)
    bits = streams.bits(params.mean, horizon, rng)
    arranged, mean = arranger(users, bits), algorithms.running_mean(bits)
    for name in ORDER_RUNGS:
        settings = rung(params, "random", name, order, seed)
        noise = stream(seed, "order noise", order, name, repetition)
        released = offline.changes(settings, arranged(settings), noise).every_step()
        squares = (released.estimate - mean) ** 2
        for step in steps:
            yield {
                "part": "orders",
                "rung": name,
                "setting": order,
                "repetition": repetition,
                "step": int(step),
                "square": float(np.mean(squares[step - 1 : max(step, int(1.1 * step))])),
                "predicted": float(released.standard_error[step - 1] ** 2),
                "bias": float(released.bias[step - 1]),
            }


def _one_block(params: Params, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """Users alike, one after the other: Algorithm 3 with a prior from a private median of the first users' means.

    Each user is in the median or in the sums, all samples at once, so that either may cost epsilon.  An array holds one user,
    whose cost changes by 1 and not by 2: the median has twice the epsilon.
    """
    _, cap, epsilon, horizon = sizes(params, "random")
    level, complete = max(2, cap.bit_length()), horizon // cap
    first = private_median.n_arrays(2 * epsilon, level, 0.05)
    if complete < 2 * first:
        return  # too few users for both
    rng = stream(seed, "one block", repetition)
    users = streams.arrivals("contiguous", complete, cap, complete * cap, rng)
    bits = streams.bits(params.mean, len(users), rng)
    means = bits[: first * cap].reshape(first, cap).mean(axis=1)
    prior = private_median.draw(means, 2 * epsilon, level, rng)
    settings = algorithms.wishful(complete - first, cap, epsilon, prior, capped=True, branching=0, integer=True, clip=True)
    later = slice(first * cap, None)
    released = offline.release(settings, users[later] - first, bits[later], stream(seed, "one block noise", repetition))
    yield {"part": "one block", "repetition": repetition, "square": float((released.estimate[-1] - bits.mean()) ** 2)}


def _populations(params: Params, seed: int, population: str, repetition: int) -> Iterator[dict[str, Any]]:
    """Distance to the mean of all readings so far where each user has a mean of their own."""
    setting, _ = rungs.POPULATIONS[population]
    n_users, cap, _, horizon = sizes(params, setting)
    data = stream(seed, "population data", population, repetition)
    users, bits = streams.readings(population, "zipf" if setting == "zipf" else "random", n_users, cap, horizon, data)
    arranged, truth = arranger(users, bits), algorithms.running_mean(bits)[horizon // 2 :]
    for name in rungs.FOR_ALL_USERS:
        settings = rung(params, setting, name, seed=seed)
        noise = stream(seed, "population noise", population, name, repetition)
        errors = second_half(offline.changes(settings, arranged(settings), noise), truth)
        yield {"part": "populations", "rung": name, "setting": population, "repetition": repetition, **errors}
