"""Scenes of running sums: every structure of prefix sums, with both kinds of noise, all at once and step by step; and of
settings that a numerical search finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.continual_mean import binary_mechanism, choosing, offline, online, streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.sums.anytime import Anytime
from evolvingdp.continual_mean.sums.balanced import BalancedTree
from evolvingdp.continual_mean.sums.banded import Banded
from evolvingdp.continual_mean.sums.buffered import Buffered
from evolvingdp.continual_mean.sums.recorded import RecordedSums
from evolvingdp.continual_mean.sums.toeplitz import Toeplitz
from evolvingdp.continual_mean.sums.trees import Tree
from evolvingdp.continual_mean.user_mean import WEIGHTS, UserMean
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Tape


def _structures(capacity: int) -> Iterator[Any]:
    for branching, honaker in product((2, 3, 5), (False, True)):
        yield outcome(Tree, capacity, branching, honaker)
    for branching in (3, 5, 19, 4):
        yield outcome(BalancedTree, capacity, branching)
    yield from (outcome(Banded, capacity, width) for width in (1, 4))
    yield from (outcome(Toeplitz, capacity), Anytime())


def structures(rng: np.random.Generator) -> Iterator[Any]:
    for capacity in (1, 6, 40):
        yield from every_call(_structures(capacity), capacity, rng)


def every_call(built: Iterable[Any], capacity: int, rng: np.random.Generator) -> Iterator[Any]:
    for sums in built:
        yield sums
        if isinstance(sums, str):
            continue
        count = min(capacity, 33)
        yield (
            sums.l1,
            outcome(sums.l2_of, 3),
            [outcome(sums.l2_of, *pair) for pair in ((1, 1), (2, 1), (5, 1), (3, 4), (40, 1))],
        )
        yield sums.variances(count), sums.relative_variance(np.arange(1, count + 1)), outcome(sums.variances, capacity + 1)
        yield outcome(sums.difference_variance, np.array([0, 1, count // 2]), np.array([count, count, count]))
        for noise in (Laplace(2.0), Gaussian(2.0), DiscreteLaplace(2.0)):
            yield outcome(sums.all, count, Tape(noise, rng))
            ahead = outcome(sums.online, Tape(noise, rng))
            yield ahead if isinstance(ahead, str) else [outcome(ahead) for _ in range(count)]


def long_streams(rng: np.random.Generator) -> Iterator[Any]:
    for sums in (
        Tree(5000, 3, True),
        Tree(5000),
        BalancedTree(5000, 5),
        Banded(5000, 8),
        Toeplitz(5000),
        Anytime(),
    ):
        yield sums.l2_of(1), sums.l2_of(3), outcome(sums.l2_of, 3, 100), sums.relative_variance([1, 1023, 1025, 5000])
        yield sums.all(5000, Tape(Gaussian(1.0), rng))[::37], sums.difference_variance([0, 1024], [1025, 5000])
        yield sums.variances(3000)[::97]
        ahead = sums.online(Tape(Gaussian(1.0), rng))
        yield [ahead() for _ in range(2500)][::37]


def mechanisms(rng: np.random.Generator) -> Iterator[Any]:
    elements = rng.integers(0, 2, 13)
    for delta, integer, uses, gap in product((0.0, 1e-6), (False, True), (1, 3), (1, 4)):
        for sums in (None, *_structures(13)):
            if isinstance(sums, str):
                continue
            made = outcome(BinaryMechanism, 13, 1.3, 1.0, delta, integer, sums, uses, gap)
            yield made
            if isinstance(made, str):
                continue
            yield made.structure, made.noise, made.standard_error([1, 9, 13]), made.release(elements, rng)
            state = made.start(rng)
            for element in elements.tolist():
                state, released = made.step(state, element)
                yield released
            yield outcome(made.step, state, 1)
    for epsilon, delta, sensitivity in product((0.1, 5.0), (0.0, 1e-9), (1.0, 7.0)):
        for sums in (Tree(30), Toeplitz(30)):
            yield outcome(binary_mechanism.calibrate, sums, epsilon, delta, sensitivity, uses=2, gap=3)
            yield outcome(binary_mechanism.calibrate, sums, epsilon, delta, sensitivity, integer=True)
        yield outcome(binary_mechanism.budget, epsilon, delta), outcome(binary_mechanism.budget, epsilon, delta, True)
    for wrong in ({"horizon": 0}, {"epsilon": 0.0}, {"sensitivity": -1.0}, {"delta": 1.0}, {"uses": 0}, {"sums": Tree(5)}):
        yield outcome(BinaryMechanism, **({"horizon": 30, "epsilon": 1.0} | wrong))
    made = BinaryMechanism(30, 1.3, integer=True)
    yield (
        outcome(made.release, np.full(30, 0.5), rng),
        outcome(made.release, np.full(31, 1), rng),
        outcome(made.release, [3], rng),
    )
    for capacity in (1, 10, 1000, 10**6):
        yield (
            binary_mechanism.best_branching(capacity),
            binary_mechanism.best_branching(capacity, False),
            binary_mechanism.best_tree(capacity),
        )
    yield binary_mechanism.printed_sums([1, 1, 1, 1, 1, 1, 1, 1]), outcome(binary_mechanism.finite_scale, 1e300, 1e-300)


def recorded_streams(rng: np.random.Generator) -> Iterator[Any]:
    for n_steps, branching in product((1, 2, 9, 40), (0, 2, 5)):
        made = outcome(RecordedSums, n_steps, 0.8, 2.0, branching)
        yield made
        if not isinstance(made, str):
            yield (
                made.blocks,
                made.noise,
                made.standard_error(np.arange(1, n_steps + 1)),
                made.release(np.ones(n_steps), rng),
            )
            yield outcome(made.release, np.full(n_steps, 9.0), rng), outcome(made.release, np.ones(n_steps + 1), rng)


def searched_means(rng: np.random.Generator) -> Iterator[Any]:
    arrivals = streams.arrivals("zipf", 9, 4, 30, rng)
    for delta, options in product((0.0, 1e-6), ({}, {"horizon": 25, "integer": True, "resolution": 8})):
        for given in (None, arrivals):
            for choose in (choosing.recommended, choosing.users_alike):
                settings = outcome(choose, 9, 4, 1.5, delta, given, **options)
                yield settings
                if isinstance(settings, UserMean) and given is not None and not options:
                    yield offline.release(settings, arrivals, np.ones(30), rng)
                    yield choosing.shares_for(settings, arrivals)
                    times = list(choosing.expected_counts(settings, arrivals))
                    yield times, choosing.late_error(settings, times)
                    yield [choosing.noise_variances(settings, choosing.elements(settings, counts)) for _, counts in times]


def searched_buffers(rng: np.random.Generator) -> Iterator[Any]:
    for capacity, count in product((1, 6, 40, 5000), (1, 3, 8)):
        sums = outcome(Buffered, capacity, count)
        yield from every_call([sums], capacity, rng)
        if isinstance(sums, str):
            continue
        made = outcome(BinaryMechanism, capacity, 1.3, 2.0, 1e-6, False, sums, 2, 3)
        if not isinstance(made, str):
            yield made, made.noise, made.release(np.ones(min(capacity, 99)), rng), made.standard_error([1, capacity])
    users = rng.integers(0, 12, 64)
    for blocks, weights, capped, dimensions in product(("single", "bands", "doubling"), WEIGHTS, (False, True), (1, 3)):
        options: dict[str, Any] = {
            "prior": "bootstrap" if blocks == "doubling" else "none",
            "excess": "drop",
            "capped": capped,
            "buffered": True,
        }
        settings = UserMean(9, 8, 40.0, 1e-6, blocks=blocks, weights=weights, dimensions=dimensions, **options)
        yield offline.release(settings, users, users % 2, rng), settings.sensitivities
        state = online.start(settings, rng)
        for user in users.tolist():
            state, released = online.step(settings, state, user, user % 2)
            yield released


def searched_bands(rng: np.random.Generator) -> Iterator[Any]:
    for capacity, width in ((6, 3), (40, 4)):
        sums = Banded(capacity, width, best=True)
        yield (
            sums.coefficients,
            sums.noise_coefficients,
            sums.l2_of(1),
            sums.l2_of(3),
            sums.l2_of(3, 4),
            sums.variances(capacity),
        )
        yield sums.all(capacity, Tape(Gaussian(1.0), rng)), sums.difference_variance([0, 1], [3, 6])


def scenes() -> dict[str, Scene]:
    every = (structures, long_streams, mechanisms, recorded_streams)
    found = (searched_means, searched_buffers, searched_bands)
    return {f"sums_{scene.__name__}": scene for scene in every} | {scene.__name__: scene for scene in found}
