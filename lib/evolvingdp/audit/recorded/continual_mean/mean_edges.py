"""Scenes of the mean of a stream: ends of ranges, caps, refusals, calibration at its limits; formulas."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome, taken
from evolvingdp.continual_mean import (
    algorithms,
    arranged,
    offline,
    online,
    private_median,
    streams,
    theory,
    windows,
)
from evolvingdp.continual_mean.sums.banded import Banded
from evolvingdp.continual_mean.sums.toeplitz import Toeplitz
from evolvingdp.continual_mean.sums.trees import Tree
from evolvingdp.continual_mean.user_mean import UserMean

_NAN, _INFINITE = float("nan"), float("inf")
Options = dict[str, Any]


def at_the_ends(rng: np.random.Generator) -> Iterator[Any]:
    """All samples at one end of the range: estimates leave it, and intervals are cut by it."""
    users = np.repeat(np.arange(30), 16)
    kinds: tuple[tuple[str, Options], ...] = (("bootstrap", {}), ("bootstrap", {"delta": 1e-6}), ("median", {}))
    for end, (prior, more) in product((0.0, 1.0), kinds):
        settings = UserMean(30, 16, 2000.0, beta=0.9, prior=prior, capped=True, resolution=8, **more)
        samples = np.full(len(users), end)
        yield offline.release(settings, users, samples, rng).estimate[::5]
        state = online.start(settings, rng)
        for user in users.tolist():
            state, told = online.step(settings, state, user, end)
            if user % 10 == 9:
                yield told
        yield state.intervals, [(tree.width, tree.narrows, tree.elements, tree.length) for tree in state.trees]
    for end in (0.0, 1.0):
        given = algorithms.multiple_trees(30, 16, 50.0, end, resolution=8, beta=0.9)
        yield [given.interval(level, prior) for level in range(5) for prior in (0.0, 0.02, 0.5, 0.98, 1.0)]
        yield given.first_estimate, offline.release(given, users, 1 - (users % 2), rng).estimate[::9]


def limits(_: np.random.Generator) -> Iterator[Any]:
    """Where integer noise no longer fits, per level; and the largest sums."""
    for delta, (blocks, prior, one_tree) in product(
        (0.0, 1e-6),
        (("single", "none", False), ("bands", "none", False), ("doubling", "bootstrap", False), ("doubling", "none", True)),
    ):
        options = {"blocks": blocks, "prior": prior, "one_tree": one_tree, "delta": delta}
        for n_users, cap, epsilon in ((40, 6, 0.05), (1000, 5, 1.0)):
            sizes = [1, 3 << 40, *(3 << bits for bits in (range(12, 20) if delta else range(33, 39)))]
            made = [outcome(UserMean, n_users, cap, epsilon, resolution=size, integer=True, **options) for size in sizes]
            yield ["taken" if isinstance(one, UserMean) else one for one in made]
            made = [outcome(UserMean, n_users, cap, epsilon, resolution=1 << bits, **options) for bits in (45, 50, 52, 53)]
            yield ["taken" if isinstance(one, UserMean) else one for one in made]
    refused: tuple[Options, ...] = (
        {"n_users": 2**31 - 1, "samples_per_user": 2**29, "prior": "none"},
        {"n_users": 2**31 - 1, "samples_per_user": 2**30, "prior": "none"},
        {"n_users": 2**30, "samples_per_user": 2**30, "prior": "none"},
        {"n_users": 2**30, "samples_per_user": 2**20, "resolution": 2**10, "prior": "none"},
        {"n_users": 2**30, "samples_per_user": 2**20, "resolution": 2**10 + 1, "prior": "none"},
        {"epsilon": 1e-160, "resolution": 2**40},
        {"epsilon": 1e-148},
        {"branching": 0, "delta": 1e-6, "prior": "none"},
        {"dimensions": 2, "prior": "none"},
        {"prior": "median", "delta": 1e-6},
        {"prior": "median", "one_tree": True},
        {"prior": "bootstrap", "blocks": "whole"},
        {"prior": "given", "blocks": "bands"},
        {"one_tree": True, "prior": "none", "blocks": "bands"},
        {"toeplitz": True, "prior": "none"},
        {"buffered": True, "prior": "none", "delta": 1e-6, "integer": True},
        {"prior": "none", "shares": (0.5, 0.5, 0.0)},
        {"prior": "none", "shares": (0.5, 0.3, 0.2 + 1e-7)},
        {"prior": "none", "shares": (0.5, 0.3, 0.2 + 1e-12)},
        *({"horizon": value} for value in (0, 1, 2.0, True)),
        *({"delta": value} for value in (-1e-9, 0.999, _NAN)),
        *({"beta": value} for value in (0.0, 1.0, 1.5, 0.999)),
        *({"restart": value} for value in (0.0, 1.0, -0.5)),
        *({"low": value} for value in (1.0, 0.999, -_INFINITE, -1e150)),
        *({"prior_mean": value, "prior": "given"} for value in (-0.01, 0.0, 1.0, 1.01, _NAN)),
        *({"prior_deviations": value} for value in (0.0, _INFINITE, 1e-3)),
        *({"dimensions": value, "delta": 1e-6, "prior": "none"} for value in (0, 1, 2)),
        *({name: "x"} for name in ("prior", "weights", "excess")),
    )
    for changes in refused:
        yield outcome(UserMean, **({"n_users": 4, "samples_per_user": 5, "epsilon": 1.0} | changes))


def formulas(rng: np.random.Generator) -> Iterator[Any]:
    """All that is handed on, over sizes and budgets."""
    for n_users, cap, epsilon, beta in (
        (1, 1, 1.0, 0.05), (1, 64, 12.0, 0.9), (3, 2, 0.05, 0.3), (10**6, 33, 5.0, 1e-9), (70, 1023, 300.0, 0.7),
        (50, 9, 1e4, 0.99),
    ):  # fmt: skip
        for prior, delta, capped, start in product(
            ("none", "given", "median", "bootstrap"), (0.0, 1e-9), (False, True), (False, True)
        ):
            options = {"prior": prior, "capped": capped, "exact_start": start, "resolution": 16, "prior_mean": 0.2}
            settings = outcome(UserMean, n_users, cap, epsilon, delta, beta, **options)
            if isinstance(settings, str):
                yield settings
                continue
            levels, trees = range(len(settings.sizes)), range(settings.n_trees)
            yield settings.half_widths, settings.sensitivities, settings.tree_epsilon, settings.median_epsilon
            yield [(settings.projects(level), settings.waits_for(level)) for level in levels]
            yield [settings.bootstrap_half(level, error) for level in levels for error in (0.0, 0.003, 0.1)]
            yield [settings.noise(tree, Tree(9), settings.user_sensitivity(tree)) for tree in trees]
            yield theory.arrays_needed(settings, cap), settings.any_users, settings.max_steps
    for blocks, cap, horizon, more in product(
        ("single", "bands", "whole"), (1, 2, 3, 8, 9), (None, 1, 7, 10**4), (0.0, 1e-9)
    ):
        settings = UserMean(20, cap, 0.7, more, prior="none", blocks=blocks, horizon=horizon)
        trees = range(settings.n_trees)
        yield [(settings.uses(tree), settings.capacity_of(tree), settings.user_sensitivity(tree)) for tree in trees]
        yield [settings.noise(tree, Tree(9), settings.user_sensitivity(tree)) for tree in trees], settings.sizes
        yield outcome(theory.error_bound, settings, [1, 30], [1, 4], 0.2)
    kinds: tuple[Options, ...] = ({"delta": 1e-6}, {"weights": "precision"}, {"blocks": "bands"}, {"blocks": "whole"})
    for changes in (*kinds, {"one_tree": True}, {"samples_per_user": 1}):
        given: Options = {"samples_per_user": 9, "prior": "none", "resolution": 4} | changes
        settings = UserMean(20, epsilon=1.0, **given)
        yield outcome(theory.error_bound, settings, [[1, 30]], [[0, 40]], 0.2)
    looked = [(0.4, 0.01), (0.7, 0.02), (0.1, 0.3)]
    for delta, looks, far in product((0.0, 1e-6), (1, 7, 0), (1.0, 30.0)):
        settings = UserMean(20, 9, 1.0, delta, prior="none")
        for seen in ([], looked[:1], looked[:2], looked):
            bound = outcome(theory.disagreement, settings, [(far * mean, square) for mean, square in seen], looks)
            yield bound, bound if isinstance(bound, str) else np.log(max(bound, 1e-300))
    for counts in ([], [0, 0], [5, 1], np.full(40, 3), np.full(3000, 3), np.append(np.full(300, 2), 50)):
        yield [theory.diverse(UserMean(9, 8, epsilon, prior="none"), counts) for epsilon in (1.0, 9.0, 50.0, 2e3, 1e5)]
    yield theory.laplace_sum_tail([[0.5], [3.0]], 1e-9), outcome(theory.laplace_sum_tail, 1.0, 0.0)


def caps(rng: np.random.Generator) -> Iterator[Any]:
    """Samples beyond caps, of any numbers that users may have; twice with what is known already."""
    users = np.array([0, 3, 1, 0, 0, 2, 4, 1, 0, 5, 2, 2, 2, 3, 9, 0, 1])
    samples = (np.arange(len(users)) % 3 == 0).astype(float)
    for blocks, excess, horizon, n_users in product(
        ("single", "doubling"), ("drop", "error"), (None, 16, 11, 1), (10, 5, 4)
    ):
        for cap in (1, 2, 3, 6):
            settings = UserMean(n_users, cap, 50.0, prior="none", blocks=blocks, excess=excess, horizon=horizon)
            yield outcome(offline.release, settings, users, samples, rng)
            state, steps = online.start(settings, rng), []
            for user, sample in zip(users.tolist(), samples.tolist(), strict=True):
                steps.append(outcome(online.step, settings, state, user, sample))
            yield [one if isinstance(one, str) else one[1] for one in steps], state.counts, state.used, state.dropped
    settings = UserMean(9, 4, 50.0, excess="drop")
    for who in (
        np.array([2**64 - 1, 2**63, 3], dtype=np.uint64), [2**31, 2**32, 2**32 + 1], [0, -1, 2], [0.0, 1.0, 2.0],
        [[0, 1, 2]], [0, 1], np.array([True, False, True]), np.array([1, 2, 3], dtype=np.int8),
    ):  # fmt: skip
        for excess in ("drop", "error"):
            yield outcome(offline.release, settings.but(excess=excess), who, [1.0, 0.0, 1.0], rng)
    yield offline.release(settings, [], [], rng), outcome(offline.release, settings, [], [1.0], rng)
    wide = settings.but(n_users=2**31 - 1, samples_per_user=2, blocks="single", prior="none")
    yield offline.release(wide, [10**6, 2**31 - 2, 10**6, 10**6], [1, 0, 1, 1], rng)
    for who in ([], [7], [3, 3, 8], [10**9, 3, 10**9], [10**6, 5, 5], [10**6 + 30, 5, 5]):
        packed = arranged.Arranged(
            np.array(who, dtype=np.int64), np.arange(1, len(who) + 1), np.ones(len(who), int), (0, 1, 1)
        )
        yield packed.most, packed.n_steps
        yield [outcome(packed.check, wide.but(samples_per_user=cap, horizon=room)) for cap in (1, 2) for room in (2, 3)]
    stream = np.tile(np.arange(9), 4)
    for grid in ({}, {"resolution": 3}, {"low": -1.0}, {"high": 2.0}):
        packed = arranged.arrange(settings.but(prior="none", **grid), stream, np.full(36, grid.get("high", 1.0)))
        for one in (settings.but(prior="none"), settings, settings.but(blocks="whole", prior="none"), settings):
            told: Any = outcome(offline.changes, one.but(epsilon=5e3, beta=0.9, **grid), packed, rng)
            yield told, outcome(offline.changes, one, packed, rng)
        if not isinstance(told, str):
            yield told.lasting, told.since(1), told.since(20).every_step(), told.since(36).every_step()
    shown = algorithms.full(9, 8, 3e3, beta=0.9, resolution=4)
    two = [offline.exposed(shown, np.repeat(np.arange(9), 8), rng.random(72), rng) for _ in range(2)]
    again = offline.exposed(shown, np.repeat(np.arange(9), 8), rng.random(72), rng, two[0])
    yield [(tree.parts, tree.priors, tree.contributions) for tree in [*two[1], *again]]


def refused_steps(rng: np.random.Generator) -> Iterator[Any]:
    for grid in ({}, {"resolution": 8}, {"low": -3.0, "high": 0.5, "resolution": 7}, {"low": 2.0, "high": 4.0}):
        settings = UserMean(4, 3, 9.0, prior="none", **grid)
        state = online.start(settings, rng)
        for sample in (
            0,
            1,
            True,
            2,
            3.99,
            0.5,
            0.25,
            -3,
            np.float64(0.5),
            np.int8(1),
            "1",
            None,
            _NAN,
            _INFINITE,
            1 + 1e-12,
        ):
            told = outcome(online.step, settings, state, 0, sample)
            yield told if isinstance(told, str) else told[1]
            state = state if isinstance(told, str) else online.start(settings, rng)
            yield outcome(settings.encode, [sample]), outcome(streams.to_grid, sample, 0.0, 1.0, 4)
        for user in (-1, 3, 4, 1.0, np.int64(2), True, "0", None):
            yield taken(online.step, settings, online.start(settings, rng), user, settings.low)
    for wrong in (None, settings, 0):
        yield taken(online.step, settings, wrong, 0, 2.0)
    for values in ([[0, 1]], ["a"], [], np.array([True, False]), [0.5 / 7, 1.5 / 7, 0.4999 / 7], [1, 0, 2]):
        yield [outcome(streams.to_grid, values, 0.0, high, steps) for high in (1.0, 2.0) for steps in (1, 7)]


def windows_of_days(rng: np.random.Generator) -> Iterator[Any]:
    users, samples = rng.integers(0, 7, 90), rng.integers(0, 9, 90) / 4 - 1.0
    day = np.sort(rng.integers(0, 7, 90))
    day[day == 4] = 5  # a day without samples
    options = {"excess": "drop", "low": -1.0, "high": 1.0, "resolution": 8}
    for cap, per_day, n_days, delta, epsilon in product((1, 5, 12), (1, 3, 20), (7, 9), (0.0, 1e-9), (0.1, 8.0)):
        settings = algorithms.naive(6, cap, epsilon, delta=delta, clip=cap == 5, **options)
        kinds = (None, Tree(9), Tree(n_days, 3, True), Banded(n_days, 2), Toeplitz(12)) if delta else (None, Tree(n_days, 3))
        for sums in kinds:
            made = outcome(windows.Days, settings, n_days, per_day, sums)
            yield made if isinstance(made, str) else (made.noise, made.structure.capacity)
        closed = [windows.START, *made.release(users, np.minimum(samples, 1), day, rng)]
        yield closed[:: 1 + cap // 12]
        for first, last in ((0, 1), (4, 5), (4, 6), (5, 5), (6, 2), (2, n_days)):
            yield outcome(windows.between, made, closed[first], closed[last])
            yield outcome(windows.standard_error, made, closed[first], closed[last])
        yield outcome(made.release, users, samples, day, rng)
    for when in (day.astype(float), day[:-1], day + 3, day - 1, np.zeros(90, int), np.full(90, 8)):
        yield outcome(made.release, users, np.minimum(samples, 1), when, rng)
    for kind in (UserMean(6, 5, 2.0), algorithms.wishful(6, 5, 2.0, 0.5), settings.but(delta=0.0, integer=True)):
        yield outcome(windows.Days, kind, 5, 2), outcome(windows.Days, kind, 0, 2), outcome(windows.Days, kind, 5, 0)
        yield outcome(windows.snapshot, kind, online.start(kind, rng))
        yield outcome(windows.Days, kind, 5, 2, Tree(4)), outcome(windows.Days, kind, 5, 2, Toeplitz(5))
    for made in (algorithms.bands(7, 9, 30.0, clip=True, **options), algorithms.naive(7, 9, 30.0, delta=1e-6, **options)):
        seen = windows.snapshots(made, users, np.minimum(samples, 1), rng, (0, 1, 2, 13, 63, 80, 89, 90))
        yield seen, [outcome(windows.between, made, one, two) for one, two in product(seen, seen)]


def median_laws(rng: np.random.Generator) -> Iterator[Any]:
    for level, epsilon, count in product((0, 1, 2, 3, 4, 7, 10), (0.05, 1.0, 12.0, 900.0), (1, 2, 5, 40)):
        means = np.rint(rng.random(count) * 8) / 8
        law = private_median.probabilities(means, epsilon, level)
        yield law, np.log(np.maximum(law, 1e-300)), private_median.draw(means, epsilon, level, rng)
        yield outcome(private_median.n_arrays, epsilon, level, 0.99), outcome(private_median.n_arrays, epsilon, level, 1e-9)
        for moved, width in ((1, 0.0), (2, 0.0), (3, 0.02), (2, 0.5)):
            edges, law = private_median.law_between(means, epsilon, moved, width)
            yield edges, law, np.log(np.maximum(law, 1e-300))
            yield private_median.draw_between(means, epsilon, rng, moved, width)
    settings = UserMean(20, 512, 600.0, beta=0.5, resolution=16)
    for level, array in product((1, 2, 4), (3, 9)):  # so few that noise decides
        grid = rng.integers(0, 17, array * settings.sizes[level])
        yield [online.median(settings, level, grid, rng) for _ in range(20)]
    users = np.tile(np.arange(5), 250)
    state = online.start(settings, rng)
    for user in users.tolist():  # medians of users: three of five have 0 only; of samples as they come: near 0.4
        state, told = online.step(settings, state, user, float(user % 5 < 2))
    yield offline.release(settings, users, np.where(users % 5 < 2, 1.0, 0.0), rng).estimate[-1], state.intervals, told
    for values in ([0.0], [1.0, 1.0], [0, 1], [True], [0.3] * 7, [], [[0.3]], ["a"], [1.01], [-0.01], [_NAN]):
        for moved, width in ((2, 0.0), (1, 0.5), (0, 0.1), (1, 0.51), (1, -0.01), (1, _NAN)):
            yield outcome(private_median.law_between, values, 1.0, moved, width)
    for epsilon, beta in ((0.0, 0.1), (1.0, 0.0), (-1.0, 0.1), (1.0, 1.0)):
        yield outcome(private_median.n_arrays, epsilon, 3, beta), outcome(private_median.law_between, [0.3], epsilon)


def scenes() -> dict[str, Scene]:
    every = (
        at_the_ends,
        limits,
        formulas,
        caps,
        refused_steps,
        windows_of_days,
        median_laws,
    )
    return {f"means_{scene.__name__}": scene for scene in every}
