"""Scenes of the mean with noise at every step, of synthetic streams, and of means of several coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome, taken
from evolvingdp.continual_mean import (
    algorithms,
    coordinates,
    per_step,
    streams,
)
from evolvingdp.continual_mean.sums.trees import Tree
from evolvingdp.continual_mean.user_mean import WEIGHTS

_NAN = float("nan")


def baselines(rng: np.random.Generator) -> Iterator[Any]:
    for horizon, epsilon, split in product((1, 2, 9, 100), (0.05, 1.0, 12.0), ("even", "harmonic")):
        made = per_step.PerStepLaplace(horizon, epsilon, split)
        yield made.scale(np.arange(1, horizon + 1), np.arange(1, horizon + 1) % 4 + 1), made.scale(1, 5)
        for users in (np.arange(horizon), np.zeros(horizon, int), rng.integers(-3, 4, horizon), [2**40] * horizon):
            yield per_step.most_samples(users), made.release(users, np.ones(horizon), rng)
            state, told = made.start(rng), []
            for user in np.asarray(users).tolist():
                state, released = made.step(state, user, 0.25)
                told.append(released)
            yield told, state.most, taken(made.step, state, 0, 1.0)
        for values in (np.ones(horizon + 1), [[0.5]], [1.01], [-0.01], [_NAN], []):
            yield outcome(made.release, np.zeros(np.size(values), int), values, rng)
        yield (
            [taken(made.step, made.start(rng), 0, sample) for sample in (0, 1, 1.01, -0.01, _NAN)],
            taken(made.step, None, 0, 0),
        )
    for wrong in ((0, 1.0), (2.0, 1.0), (3, 0.0), (3, 1.0, "x"), (3, _NAN)):
        yield outcome(per_step.PerStepLaplace, *wrong)
    for order, cap, horizon in product(streams.ORDERS, (1, 4, 30), (1, 6, 19, 24, 200)):
        yield outcome(streams.arrivals, order, 6, cap, horizon, rng)
        yield outcome(streams.arrivals, order, 6, cap, horizon, rng, exponent=3.0, share=0.9)
    for options in ({"share": 0.0}, {"share": 1.0}, {"exponent": 0.0}, {"order": "x"}, {"horizon": 0}, {"n_users": 0}):
        given = {"order": "zipf", "n_users": 6, "samples_per_user": 4, "horizon": 5} | options
        yield outcome(lambda given=given: streams.arrivals(rng=rng, **given))
    yield streams.arrivals("zipf", 500, 3, 1400, rng, exponent=400.0), streams.arrivals("dominant", 1, 5, 5, rng)
    for population, count in product((*streams.POPULATIONS, "x"), (0, 1, 10, 11)):
        yield outcome(streams.user_means, population, count, rng)
    yield [outcome(streams.bits, mean, 30, rng) for mean in (0, 1, 0.5, -0.1, 1.1, _NAN)]


def several_coordinates(rng: np.random.Generator) -> Iterator[Any]:
    users, table = np.repeat(np.arange(6), 4), rng.integers(0, 2, (24, 3))
    for delta, count, more in product((0.0, 1e-6), (1, 2, 30, 0), (0.0, 1e-6, 1e-3)):
        for epsilon in (0.05, 1.0, 12.0):
            one = outcome(coordinates.of_one, algorithms.naive(6, 4, epsilon, delta=delta), count, more)
            yield one if isinstance(one, str) else (one.epsilon, one.dimensions, one.noise(0, Tree(9), 3.0))
    for delta, more in product((0.0, 1e-6), (0.0, 1e-6)):
        settings = algorithms.naive(6, 4, 3.0, delta=delta)
        for values in (table, table[:, :1], table[:, :0], table[:, 0], 2 * table, table[:-1]):
            state = rng.bit_generator.state["state"]["state"]
            yield outcome(coordinates.release, settings, users, values, rng, more)
            yield state == rng.bit_generator.state["state"]["state"]
    for weights, clip in product(WEIGHTS, (False, True)):
        settings = replace(algorithms.single_tree(6, 4, 0.4, 0.3), weights=weights, clip=clip)
        yield coordinates.release(settings, users, table, rng), algorithms.running_mean(table[:, 0])
    yield algorithms.running_mean([]), algorithms.running_mean([3.0])


def scenes() -> dict[str, Scene]:
    return {f"means_{scene.__name__}": scene for scene in (baselines, several_coordinates)}
