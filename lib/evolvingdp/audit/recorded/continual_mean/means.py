"""Scenes of the mean of a stream: every combination of options that some draw of them meets, online and offline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome, taken
from evolvingdp.continual_mean import (
    algorithms,
    arranged,
    coordinates,
    offline,
    online,
    per_step,
    private_median,
    streams,
    theory,
    windows,
)
from evolvingdp.continual_mean.sums.trees import Tree
from evolvingdp.continual_mean.user_mean import WEIGHTS, UserMean

_CHOICES: dict[str, tuple[Any, ...]] = {
    "blocks": ("single", "bands", "whole", "doubling", "doubling", "doubling"),
    "prior": ("none", "given", "median", "bootstrap"),
    "one_tree": (False, False, False, True),
    "prior_mean": (None, 0.3),
    "delta": (0.0, 0.0, 1e-6),
    "exact_start": (False, True),
    "capped": (False, True),
    "weights": ("samples", "precision"),
    "branching": (2, 3, 0),
    "honaker": (False, True),
    "toeplitz": (False, False, True),
    "clip": (False, True),
    "integer": (False, True),
    "resolution": (1, 16),
    "dimensions": (1, 1, 3),
    "epsilon": (0.5, 4.0, 60.0),
    "samples_per_user": (1, 2, 8, 11),
    "restart": (0.7, 0.95),
    "horizon": (None, 70),
    "beta": (0.05, 0.4),
}
_DRAWN = 300


def _settings(rng: np.random.Generator) -> Iterator[UserMean | str]:
    for _ in range(_DRAWN):
        options = {name: values[int(rng.integers(len(values)))] for name, values in _CHOICES.items()}
        yield outcome(UserMean, n_users=9, excess="drop", **options)


def _stream(rng: np.random.Generator) -> tuple[Any, Any]:
    users = rng.integers(0, 12, 64)
    return users, (rng.random(64) < 0.7).astype(float)


def user_mean(rng: np.random.Generator) -> Iterator[Any]:
    for settings in _settings(rng):
        if isinstance(settings, str):
            yield settings
            continue
        users, samples = _stream(rng)
        yield outcome(offline.release, settings, users, samples, rng)
        state, seed = online.start(settings, rng), settings.first_estimate
        yield seed
        for user, sample in zip(users.tolist(), samples.tolist(), strict=True):
            state, released = online.step(settings, state, user, sample)
            yield released
        yield online.levels(state), state.used, state.dropped
        yield outcome(windows.snapshot, settings, state)


def active(rng: np.random.Generator) -> Iterator[Any]:
    """Caps so large, and budgets so generous, that medians are drawn, intervals clamp on both sides and trees restart."""
    for n_users, cap, mixed in ((40, 16, True), (12, 128, False), (6, 128, True)):
        users = np.repeat(np.arange(n_users), cap)
        users = (rng.permutation(users) if mixed else users)[:1300]
        samples = np.where(users % 3 == 0, 6.0, np.rint(16 * rng.beta(8, 3, len(users))) / 2 - 2.0) * np.where(
            users == 1, 0.0, 1.0
        )
        for prior, delta, epsilon in product(_CHOICES["prior"], (0.0, 1e-6), (300.0, 3000.0)):
            for more in ({}, {"capped": True, "exact_start": True, "clip": True}, {"integer": True, "restart": 0.95}):
                options = {"prior": prior, "delta": delta, "beta": 0.5, "low": -2.0, "high": 6.0, "resolution": 16}
                weights = WEIGHTS[bool(more)]
                settings = outcome(UserMean, n_users, cap, epsilon, weights=weights, **options, **more)
                yield settings
                if isinstance(settings, str):
                    continue
                released = offline.release(settings, users, samples, rng)
                later = offline.changes(settings, arranged.arrange(settings, users, samples), rng)
                yield later.since(50).every_step().estimate[::9], later.lasting, later.since(1).step[::9]
                yield released.estimate[::7], released.standard_error[::7], released.bias[-1], released.samples[::50]
                state = online.start(settings, rng)
                for place, (user, sample) in enumerate(zip(users.tolist(), samples.tolist(), strict=True)):
                    state, told = online.step(settings, state, user, sample)
                    if place % 29 == 0:
                        yield told
                levels = online.levels(state)
                yield levels, theory.disagreement(settings, levels, 3), state.intervals, told


def medians(rng: np.random.Generator) -> Iterator[Any]:
    """So many users that medians are drawn whose noise decides, online and offline."""
    users = rng.permutation(np.repeat(np.arange(40), 64))
    samples = np.rint(16 * rng.beta(2, 1 + users % 5)) / 16
    for capped in (False, True):
        settings = UserMean(40, 64, 60.0, beta=0.5, resolution=16, capped=capped)
        yield offline.release(settings, users, samples, rng).estimate[::41]
        state = online.start(settings, rng)
        for place, (user, sample) in enumerate(zip(users.tolist(), samples.tolist(), strict=True)):
            state, told = online.step(settings, state, user, sample)
            if place % 41 == 0:
                yield told
        yield state.intervals, state.waiting, told


def user_mean_settings(rng: np.random.Generator) -> Iterator[Any]:
    for settings in _settings(rng):
        yield settings
        if isinstance(settings, str):
            continue
        levels, trees = range(len(settings.sizes)), range(settings.n_trees)
        yield settings.relative_prior, settings.max_steps, settings.top_level, settings.sizes, settings.any_users
        yield settings.tree_epsilon, outcome(lambda settings=settings: settings.median_epsilon), settings.half_widths
        yield settings.sensitivities, [settings.tree_of(level) for level in levels]
        yield [(settings.uses(tree), settings.capacity_of(tree), settings.user_sensitivity(tree)) for tree in trees]
        yield [(settings.projects(level), settings.waits_for(level)) for level in levels]
        yield [(settings.interval(level, 0.4), settings.bootstrap_half(level, 0.1)) for level in levels]
        for tree in trees:
            sums = settings.prefix_sums(settings.capacity_of(tree))
            yield sums, settings.noise(tree, sums, settings.user_sensitivity(tree)), sums.variances(min(5, sums.capacity))
        yield outcome(theory.error_bound, settings, np.array([3, 40]), np.array([2, 8]), 0.1)
        yield outcome(theory.arrays_needed, settings, 5), outcome(theory.diverse, settings, np.array([3, 2, 1]))
    for changes in (
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"low": 2.0},
        {"shares": (0.5, 0.5)},
        {"n_users": 2**31},
        {"blocks": "x"},
    ):
        yield outcome(UserMean, **({"n_users": 4, "samples_per_user": 4, "epsilon": 1.0} | changes))
    shares = UserMean(
        9, 8, 2.0, prior="given", shares=(0.4, 0.3, 0.2, 0.1), excess="drop", low=-1.0, high=3.0, resolution=40
    )
    users, samples = _stream(rng)
    yield offline.release(shares, users, 2 * samples - 0.5, rng), outcome(offline.release, shares, users, 9 * samples, rng)
    strict = replace(shares, excess="error")
    yield (
        outcome(offline.release, strict, users, samples, rng),
        outcome(offline.release, strict, np.arange(64) % 9, samples, rng),
    )
    yield (
        shares.encode([-1.0, 0.1, 2.95]),
        outcome(shares.encode, [4.0]),
        shares.but(epsilon=1.0),
        outcome(shares.but, blocks="single"),
    )


def named(rng: np.random.Generator) -> Iterator[Any]:
    users, samples = _stream(rng)
    size = (12, 11, 3.0)
    for settings in (
        algorithms.naive(*size), algorithms.bands(*size), algorithms.wishful(*size, 0.4), algorithms.full(*size),
        algorithms.single_tree(*size, 0.4), algorithms.multiple_trees(*size, 0.4),
    ):  # fmt: skip
        yield (
            settings,
            offline.release(settings, users, samples, rng),
            outcome(windows.snapshots, settings, users, samples, rng, (5, 64)),
        )
        yield coordinates.of_one(settings, 3), outcome(coordinates.of_one, settings, 3, 1e-6)
        table = np.stack([samples, 1 - samples], axis=1)
        yield (
            outcome(coordinates.release, settings, users, table, rng),
            outcome(coordinates.release, settings, users, table, rng, 1e-6),
        )
    normal = algorithms.naive(*size, delta=1e-6)
    yield coordinates.of_one(normal, 3), coordinates.release(normal, users, np.stack([samples] * 3, axis=1), rng)
    exposed = offline.exposed(algorithms.full(12, 11, 40.0), users, samples, rng)
    yield [(tree.parts, tree.priors, tree.contributions) for tree in exposed]
    yield algorithms.running_mean(samples), arranged.by_user(users, np.arange(64)), arranged.grid(normal)


def days(rng: np.random.Generator) -> Iterator[Any]:
    users, samples = _stream(rng)
    day = np.sort(rng.integers(0, 6, 64))
    for delta, per_day, integer in product((0.0, 1e-6), (1, 3), (False, True)):
        settings = algorithms.naive(12, 8, 3.0, delta=delta, integer=integer, excess="drop", resolution=4)
        for sums in (None, Tree(6), Tree(6, 2, True)):
            made = outcome(windows.Days, settings, 6, per_day, sums)
            if isinstance(made, str):
                yield made
                continue
            closed = [windows.START, *made.release(users, samples, day, rng)]
            yield closed, made.noise, made.structure
            yield [windows.between(made, closed[a], closed[b]) for a, b in ((0, 1), (0, 6), (2, 5))]
            yield [windows.standard_error(made, closed[a], closed[b]) for a, b in ((0, 1), (0, 6), (2, 5))]
        seen = windows.snapshots(settings, users, samples, rng, (1, 16, 63))
        yield seen, windows.between(settings, seen[0], seen[2]), windows.standard_error(settings, seen[1], seen[2])
    made = windows.Days(algorithms.naive(12, 8, 3.0, excess="drop"), 2, 3)
    state = made.start(rng)
    for _ in range(3):
        yield taken(made.step, state, 3, 1.0)
        if isinstance(closed_day := outcome(made.close, state), str):
            yield closed_day
            break
        state, told = closed_day
        yield told
    yield taken(made.step, made.start(rng), 12, 1.0), taken(made.step, made.start(rng), 0, 1.5)
    yield outcome(made.release, users, samples, day, rng), outcome(made.release, users, samples, day[::-1], rng)
    yield outcome(windows.Days, algorithms.full(12, 8, 3.0), 6, 1), outcome(windows.Days, algorithms.naive(12, 8, 3.0), 6, 9)


def medians_and_steps(rng: np.random.Generator) -> Iterator[Any]:
    for level, epsilon in product((1, 3, 6), (0.3, 2.0)):
        means = rng.random(7)
        yield (
            private_median.bins(level),
            private_median.probabilities(means, epsilon, level),
            private_median.n_arrays(epsilon, level, 0.1),
        )
        yield [private_median.draw(means, epsilon, level, rng) for _ in range(9)]
        for moved, width in ((2, 0.0), (1, 0.1)):
            yield private_median.law_between(means, epsilon, moved, width)
            yield [private_median.draw_between(means, epsilon, rng, moved, width) for _ in range(5)]
    users, samples = _stream(rng)
    for split in ("even", "halves", "harmonic", "x"):
        made = outcome(per_step.PerStepLaplace, 64, 2.0, split)
        yield made
        if not isinstance(made, str):
            yield made.release(users, samples, rng), made.scale([1, 7, 64], [1, 3, 9]), per_step.most_samples(users)
            state = made.start(rng)
            for user, sample in zip(users.tolist(), samples.tolist(), strict=True):
                state, released = made.step(state, user, sample)
                yield released
    for user, sample in ((0, 1.5), (0, -0.5), (-1, 1.0), (0, float("nan"))):
        made = per_step.PerStepLaplace(64, 2.0)
        yield taken(made.step, made.start(rng), user, sample), outcome(made.release, [user], [sample], rng)
        settings = UserMean(9, 8, 2.0)
        yield taken(online.step, settings, online.start(settings, rng), user, sample)
        yield outcome(offline.release, settings, [user], [sample], rng), outcome(streams.to_grid, [sample], 0.0, 1.0, 4)
    packed = arranged.arrange(UserMean(9, 8, 2.0), np.repeat([0, 1], 8), np.ones(16))
    for other in (
        UserMean(9, 7, 2.0),
        UserMean(1, 16, 2.0),
        UserMean(9, 8, 2.0, resolution=2),
        UserMean(9, 8, 2.0, horizon=15),
    ):
        yield taken(packed.check, other), taken(offline.changes, other, packed, rng)
    state = online.start(UserMean(2, 1, 2.0), rng)
    yield [taken(online.step, UserMean(2, 1, 2.0), state, user, 1.0) for user in (0, 0, 1, 2)]
    for order, cap in product(streams.ORDERS, (3, 40)):
        yield outcome(streams.arrivals, order, 9, cap, 25, rng), outcome(streams.readings, "beta", order, 9, cap, 25, rng)
    for population in streams.POPULATIONS:
        yield streams.user_means(population, 20, rng), streams.readings(population, "random", 9, 4, 20, rng)
    yield streams.bits(0.3, 20, rng), streams.to_grid([0.1, 0.94], 0.0, 1.0, 7), theory.laplace_sum_tail([1.0, 2.0], 0.1)
    yield private_median.law_between(means, 1.0), private_median.draw_between(means, 1.0, rng), private_median.bins(0)


def scenes() -> dict[str, Scene]:
    every = (user_mean, active, medians, user_mean_settings, named, days, medians_and_steps)
    return {f"means_{scene.__name__}": scene for scene in every}
