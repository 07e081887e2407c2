"""From Algorithm 6 to what we recommend, one switch at a time; (epsilon, delta), dimensions, and where nothing helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evolvingdp.continual_mean import algorithms, coordinates, offline, streams
from evolvingdp.continual_mean.arranged import arrange
from evolvingdp.continual_mean.experiments.past_the_paper import rungs
from evolvingdp.continual_mean.experiments.past_the_paper.claims import POPULATION_RUNS, claims, values
from evolvingdp.continual_mean.experiments.past_the_paper.params import SETTINGS, Params, sizes
from evolvingdp.continual_mean.experiments.scores import second_half
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result, engine

NOTEBOOK = "continual_mean/past_the_paper"
KEPT = 60  # steps


def rung(params: Params, setting: str, name: str) -> UserMean:
    """The settings of a rung."""
    return rungs.rung(name, *sizes(params, setting), params.delta)


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
    few = range(min(3, params.repetitions))
    yield from ((_dimensions, repetition) for repetition in few)
    yield from ((_orders, order, repetition) for order in streams.ORDERS for repetition in few)
    yield from (
        (_populations, population, repetition) for population in rungs.POPULATIONS for repetition in range(POPULATION_RUNS)
    )


def _ladder(params: Params, seed: int, setting: str, repetition: int) -> Iterator[dict[str, Any]]:
    users, bits = data(params, setting, seed, repetition)
    arranged = arrange(rung(params, setting, rungs.NAIVE), users, bits)
    common = {"part": "ladder", "setting": setting, "repetition": repetition}
    mean = algorithms.running_mean(bits)[len(bits) // 2 :]
    yield common | {"rung": rungs.MEAN, "square": float(np.mean((mean - params.mean) ** 2))}
    for name in rungs.LADDER:
        noise = stream(seed, "noise", setting, name, repetition)
        released = offline.changes(rung(params, setting, name), arranged, noise)
        used = float(released.samples[-1] / len(users))
        yield common | {"rung": name, **second_half(released, params.mean), "used": used}
    if not repetition:
        noise = stream(seed, "noise", setting, "projected")
        share = projected_share(rung(params, setting, rungs.RECOMMENDED), users, bits, noise)
        yield {"part": "projected", "setting": setting, "share": share}


def _dimensions(params: Params, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """What a coordinate of d dimensions costs: the first coordinate's error, its budget being a share of all."""
    n_users, cap, epsilon, horizon = sizes(params, "random")
    pure = algorithms.recommended(n_users, cap, epsilon, horizon=horizon)
    gaussian = algorithms.recommended(n_users, cap, epsilon, params.delta, horizon=horizon)
    kinds: dict[str, Callable[[int], UserMean]] = {
        "pure: epsilon / d": lambda d: coordinates.of_one(pure, d),
        "(eps, delta): optimal composition": lambda d: coordinates.of_one(pure, d, params.delta) if d > 1 else pure,
        "(eps, delta): Gaussian": lambda d: coordinates.of_one(gaussian, d),
    }
    arranged = arrange(pure, *data(params, "random", seed, repetition))
    for name, kind in kinds.items():
        for dimension in params.dimensions:
            noise = stream(seed, "dimension", name, dimension, repetition)
            errors = second_half(offline.changes(kind(dimension), arranged, noise), params.mean)
            yield {"part": "dimensions", "rung": name, "dimension": dimension, "repetition": repetition, **errors}


def _orders(params: Params, seed: int, order: str, repetition: int) -> Iterator[dict[str, Any]]:
    """The recommended estimates over time on every order of arrival."""
    n_users, cap, _, horizon = sizes(params, "random")
    steps = np.unique(np.round(np.geomspace(10, horizon, KEPT)).astype(np.int64))
    rng = stream(seed, "order data", order, repetition)
    users = streams.arrivals(order, n_users, cap, horizon, rng)
    arranged = arrange(rung(params, "random", rungs.NAIVE), users, streams.bits(params.mean, horizon, rng))
    for name in (rungs.NAIVE, rungs.RECOMMENDED, rungs.RECOMMENDED_DELTA):
        noise = stream(seed, "order noise", order, name, repetition)
        released = offline.changes(rung(params, "random", name), arranged, noise).every_step()
        squares = (released.estimate - params.mean) ** 2
        for step in steps:
            yield {
                "part": "orders",
                "rung": name,
                "setting": order,
                "repetition": repetition,
                "step": int(step),
                "square": float(np.mean(squares[step - 1 : max(step, int(1.1 * step))])),
                "predicted": float(released.standard_error[step - 1] ** 2),
            }


def _populations(params: Params, seed: int, population: str, repetition: int) -> Iterator[dict[str, Any]]:
    """Distance to the mean of all readings so far where each user has a mean of their own."""
    setting, _ = rungs.POPULATIONS[population]
    n_users, cap, _, horizon = sizes(params, setting)
    data = stream(seed, "population data", population, repetition)
    users, bits = streams.readings(population, "zipf" if setting == "zipf" else "random", n_users, cap, horizon, data)
    arranged = arrange(rung(params, setting, rungs.NAIVE), users, bits)
    truth = algorithms.running_mean(bits)[horizon // 2 :]
    for name in rungs.FOR_ALL_USERS:
        noise = stream(seed, "population noise", population, name, repetition)
        errors = second_half(offline.changes(rung(params, setting, name), arranged, noise), truth)
        yield {"part": "populations", "rung": name, "setting": population, "repetition": repetition, **errors}


def projected_share(settings: UserMean, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> float:
    """Of the blocks that a release with bootstrapped priors uses, the share that meets an interval narrower than its range.

    Public: the intervals' widths follow from the arrivals.
    """
    if settings.prior != "bootstrap":
        raise ValueError(f'settings must have prior "bootstrap", got {settings.prior!r}')
    blocks = projected = 0
    for level, tree in enumerate(offline.exposed(settings, users, samples, rng)):
        for part in tree.parts:
            whole = settings.noise(level, part.sums, float(settings.sizes[level] * settings.resolution))
            blocks += len(part.elements)
            projected += len(part.elements) if part.noise.variance < whole.variance else 0
    return projected / blocks if blocks else 0.0
