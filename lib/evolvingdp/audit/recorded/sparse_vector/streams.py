"""Scenes of the sparse vector chapter's streams, their solvers and exact simulations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.sparse_vector import noise as noises
from evolvingdp.sparse_vector import shifting, shifting_simulation
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.streams import drawn, example, general
from evolvingdp.sparse_vector.streams.example import ShiftingStream
from evolvingdp.sparse_vector.streams.general import GeneralStream
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

_NAN, _INF = math.nan, math.inf
_TARGETS = ((0.05, 1e-9), (1.0, 1e-6), (5.0, 1e-3), (12.0, 1e-9))
_WORDS = np.array([0, 0, 0, 0, 1, 1, 1, 4, 4, 7])  # what users hold


def shifting_examples(rng: np.random.Generator) -> Iterator[ShiftingStream]:
    yield ShiftingStream.make(2, {"A": 2}, rng, n_elements=9)
    yield ShiftingStream.make(5, {"A": 5}, rng, horizon=200, n_elements=12)
    yield ShiftingStream.make(30, {"A": 3, "B": 7}, rng, n_elements=60)
    yield ShiftingStream.make(64, {"A": 2, "B": 5, "C": 16}, rng, horizon=900, n_groups={"A": 20, "B": 3, "C": 4})
    yield ShiftingStream.make(41, dict(zip("ABCD", (4, 8, 8, 41), strict=True)), rng, horizon=30, n_elements=100)
    yield ShiftingStream.make(10**6, {"A": 50_000, "B": 200_000}, rng, horizon=10**5)


def shifting_streams(rng: np.random.Generator) -> Iterator[Any]:
    for stream in shifting_examples(rng):
        yield stream, stream.n_events, stream.family_sizes, stream.sizes, stream.events_in, stream.participation
        yield stream.single_queries, stream.absent_queries
        yield [stream.event_at(step) for step in range(min(stream.horizon, 50))]
        yield [stream.events_of(user) for user in range(min(stream.n_users, 45))]
        yield [np.sort(stream.members(event))[:50] for event in range(min(stream.n_events, 12))]
        yield [stream.inputs(step) for step in range(4)] if stream.n_users < 100 else stream.events_of(10**6 - 1)
    for n_users, sizes, settings in (
        (10, {"A": 1}, {}),
        (10, {"A": 11}, {}),
        (10, {"A": 2}, {"n_groups": {"A": 6}}),
        (10, {"A": 2}, {"n_groups": {"A": 0}}),
        (10, {"A": 2}, {"horizon": 4}),
        (10, {"A": 2}, {"horizon": 5, "n_elements": 15}),
        (10, {"A": 2}, {"horizon": 5, "n_elements": 14}),
        (10, dict.fromkeys("ABCDE", 5), {}),
        (0, {"A": 2}, {}),
    ):
        yield outcome(ShiftingStream.make, n_users, sizes, rng, **settings), rng.integers(2**32)
    yield [
        example._distinct(count, below, rng) for count, below in ((0, 1), (5, 14), (5, 15), (5, 16), (300, 1000), (30, 95))
    ]
    for n_users, smallest in ((1, 0.5), (16, 3.0), (10**4, 7.1), (10**6, 100), (4**10, 1e-3), (9, 0.0)):
        yield outcome(example.example_sizes, n_users, smallest)


def general_streams(rng: np.random.Generator) -> Iterator[Any]:
    made = [
        general.random_stream(1, 1, 1, 1, rng, vocabulary=1, held=1),
        general.random_stream(500, 20, 6, 90, rng, vocabulary=12, held=3, exponent=0.0, drift=0.5),
        general.random_stream(10**6, 30, 4, 2**40, rng, vocabulary=40, exponent=1.5, drift=0.2, stay=0.9),
        general.random_stream(30, 30, 5, 50, rng, vocabulary=50, stay=0.0, drift=1.0),
        general.random_stream(60, 9, 4, 5000, rng),
        GeneralStream(
            np.array([1, 5]), (np.array([2]), np.array([], dtype=int)), (csr_array([[1, 1]]), csr_array((0, 2))), 9
        ),
    ]
    for stream in made:
        yield stream.users, stream.elements, [now.toarray() for now in stream.held], stream.n_elements, stream.weights
        yield stream.n_users, stream.n_entries, stream.absent_queries
        yield [column.toarray() for column in stream.by_type[:1]], [stream.participation(at) for at in (0, 1, 6, 7.5, 10**7)]
        middle = max(1, stream.n_users // 4)
        for law, threshold, reports in (
            (IntegerNoise(middle / 20), middle, 1),
            (IntegerNoise(middle / 9), float(middle), 3),
            (MonitorNoise(middle / 90, 0.0), middle / 2, 2),
            (IntegerNoise(middle / 9), middle / 3, 40),
        ):
            monitor = ThresholdMonitorEvolving(law, threshold, reports)
            yield general.simulate(monitor, stream, rng)
            counted = np.zeros(len(stream.users), dtype=np.int64)
            yield [general.answer(monitor, stream, step % len(stream.held), counted, rng) for step in (0, 0, 1)], counted
    wrongs: tuple[dict[str, Any], ...] = ({"n_types": 11}, {"vocabulary": 31}, {"exponent": -1.0}, {"exponent": _INF})
    for wrong in (
        *wrongs,
        {"drift": 1.1},
        {"stay": -0.1},
        {"stay": _NAN},
        {"held": 0},
        {"vocabulary": 0},
        {"horizon": 10**12},
    ):
        given = {"n_users": 10, "n_types": 10, "horizon": 2, "n_elements": 30, "vocabulary": 30, **wrong}
        yield outcome(general.random_stream, rng=rng, **given), rng.integers(2**32)


def drawn_streams(rng: np.random.Generator) -> Iterator[Any]:
    for n_users, reports, threshold in ((1, 1, 0.5), (50, 1, 10.0), (5000, 3, 500.0), (10**6, 20, 1e5), (30, 2, -1.0)):
        for law in (MonitorNoise(threshold**2 / 1000 + 0.01, 0.0), IntegerNoise(0.3 + abs(threshold) / 10)):
            monitor = ThresholdMonitorEvolving(law, threshold, reports)
            for laws in (np.tile([0.5, 0.3, 0.1], (8, 1)), np.eye(4), [0.2, 0.8], np.zeros((2, 3)), np.full((5, 6), 1 / 6)):
                yield drawn.simulate(monitor, n_users, laws, rng)
    for laws in ([-0.1, 0.5], [0.5, 0.6], [_NAN], [1.0 + 1e-10], [1.0 + 1e-8]):
        yield outcome(drawn.simulate, monitor, 5, laws, rng), rng.integers(2**32)
    yield outcome(drawn.simulate, monitor, 0, [0.5], rng)


def shifting_solvers(rng: np.random.Generator) -> Iterator[Any]:
    for (epsilon, delta), horizon, reports in zip(_TARGETS, (1, 100, 7, 10**6), (1, 3, 2, 6), strict=True):
        for queries, method in (("binary", "exact"), ("interval", "theorem")):
            promise = calibrate(epsilon, delta, reports, queries=queries, method=method)
            for n_elements, n_events, beta in ((1, 1, 0.05), (2**32, 10**5, 1e-3), (50, 1, 0.999), (50, 20, 0.5)):
                yield shifting.plan(promise, horizon, n_elements, n_events, beta)
            yield shifting.plan(promise, horizon, 9, 3), outcome(shifting.plan, promise, 0, 9, 3)
            yield outcome(shifting.plan, promise, 5, 9, 0), outcome(shifting.plan, promise, 5, 9, 3, 1.0)
    for stream in list(shifting_examples(rng))[:-1]:
        for law, reports in ((MonitorNoise(0.05, 0.2), 1), (IntegerNoise(1.5), 2), (IntegerNoise(1.0, 3), 9)):
            monitor = ThresholdMonitorEvolving(law, 3.0, reports)
            inputs = [stream.inputs(step) for step in range(min(stream.horizon, 9))]
            yield shifting.solve(monitor, inputs, stream.n_events + stream.n_users, rng)
    yield shifting.solve(monitor, [], 5, rng), outcome(shifting.solve, monitor, [[0, 1], [0, 1, 2]], 5, rng)


def shifting_simulations(rng: np.random.Generator) -> Iterator[Any]:
    for stream in shifting_examples(rng):
        size = float(np.median(stream.sizes))
        for law, threshold, reports in (
            (MonitorNoise(size / 40 + 0.01, 0.1), size, 1),
            (IntegerNoise(size / 20 + 0.3), size, 1),
            (IntegerNoise(size / 3), math.ceil(size) - 1, 2),
            (IntegerNoise(size / 5), math.ceil(size) - 1, 1),
            (IntegerNoise(size / 4), math.ceil(size) + 2, 4),
            (IntegerNoise(size / 9 + 0.2, math.ceil(size)), math.ceil(size), 3),
        ):
            if law.sf(threshold - 1) * stream.single_queries > 3000:
                continue
            monitor = ThresholdMonitorEvolving(law, threshold, reports)
            found = shifting_simulation.simulate(monitor, stream, rng)
            yield found, found.recall(stream), rng.integers(2**32)
        for share in (0.0, 0.48, 0.5, 0.52, 1.0):
            yield shifting_simulation.crossing(partial(np.full_like, fill_value=share, dtype=float), size, stream, rng)
        for scale, at in ((0.3, size), (2.0, size + 1), (9.0, size - 3)):
            yield shifting_simulation.crossing(lambda z, scale=scale: noises.sf("laplace", z, scale), at, stream, rng)  # type: ignore[misc]
    for trials, share in ((0, 0.3), (10, 0.3), (10**12, 1e-12), (10**13, 0.9e-12), (5, 1.0), (10**15, 1e-15)):
        yield [shifting_simulation.rare_count(trials, share, rng) for _ in range(5)]


def scenes() -> dict[str, Scene]:
    streams = (shifting_streams, general_streams, drawn_streams, shifting_solvers, shifting_simulations)
    return {f"sparse_{scene.__name__}": scene for scene in streams}
