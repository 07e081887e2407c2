"""Scenes of the sparse vector chapter: the monitor in all its entries, and AboveThreshold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.sparse_vector import above_threshold, noise
from evolvingdp.sparse_vector.above_threshold import COMPOSITIONS, AboveThreshold
from evolvingdp.sparse_vector.calibration import QUERIES, calibrate
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitor, ThresholdMonitorEvolving, checked_inputs

_NAN, _INF = math.nan, math.inf
_TARGETS = ((0.05, 1e-9), (1.0, 1e-6), (5.0, 1e-3), (12.0, 1e-9))
_LAWS: tuple[MonitorNoise | IntegerNoise, ...] = (
    MonitorNoise(0.1, 0.0),
    MonitorNoise(0.2, 1.3),
    MonitorNoise(2.0, 0.05),
    IntegerNoise(0.4),
    IntegerNoise(3.0),
    IntegerNoise(2.5, 4),
    IntegerNoise(0.75, None, 4),
    IntegerNoise(1.0, 3, 2),
)


def _monitors() -> Iterator[tuple[ThresholdMonitorEvolving, int]]:
    """Monitors with numbers of users."""
    users = itertools.cycle(((1, 1, 1.0), (6, 2, 2.0), (30, 3, 12.0), (9, 20, -3.0), (5, 1, 2.5)))
    for law in _LAWS:
        n_users, reports, threshold = next(users)
        for queries in QUERIES:
            yield ThresholdMonitorEvolving(law, threshold, reports, queries), n_users


def _table(monitor: ThresholdMonitorEvolving, shape: tuple[int, int], rng: np.random.Generator) -> Any:
    """Values of queries that the monitor accepts, few users at a time."""
    table = (rng.random(shape) < rng.random((shape[0], 1))).astype(float)
    parts = getattr(monitor.noise, "grid", 4)
    return table if monitor.queries == "binary" else table * rng.integers(1, parts + 1, shape) / parts


def monitor_steps(rng: np.random.Generator) -> Iterator[Any]:
    for monitor, n_users in _monitors():
        state = monitor.start(n_users)
        seen = []
        for values in _table(monitor, (25, n_users), rng):
            data = np.where(values > 0, values * 8, -3.0)
            state, release = monitor.step(state, data, lambda held: np.maximum(held, 0) / 8, rng)
            seen.append((release.above, state.active, (state.counted * 4).astype(int)))
        again = [monitor.step(state, np.ones(n_users), np.abs, rng)[1].above for _ in range(4)]
        yield [np.array(part) for part in zip(*seen, strict=True)], again, state.n_users, state.live
        yield (
            outcome(monitor.step, state, np.ones((2, n_users)), np.abs, rng),
            outcome(monitor.step, "state", 1, np.abs, rng),
        )
        yield outcome(monitor.step, state, np.full(n_users, _NAN), np.abs, rng), rng.integers(2**32)


def monitor_users(rng: np.random.Generator) -> Iterator[Any]:
    for monitor, n_users in _monitors():
        if monitor.queries == "interval":
            continue
        state = monitor.start(n_users)
        for place in range(25):
            users = rng.permutation(n_users)[: rng.integers(n_users + 1)]
            state, release = monitor.step_users(state, users.tolist() if place % 2 else set(users), rng)
            yield release.above, state.active, state.counted.astype(int)
        for wrong in ([0, 0], [n_users], [-1], [0.0], [True], ["0"], [np.uint8(0), 0]):
            yield outcome(monitor.step_users, state, wrong, rng), rng.integers(2**32)
        yield outcome(monitor.step_users, None, [], rng)


def monitor_elements(rng: np.random.Generator) -> Iterator[Any]:
    for monitor, n_users in _monitors():
        for n_elements in (1, 5):
            state, literal, inputs = monitor.start(n_users), monitor.start(n_users), np.zeros(n_users, dtype=int)
            for step in range(5):
                inputs = inputs if step == 3 else np.minimum(rng.geometric(0.5, n_users) - 1, n_elements - 1)
                state, above = monitor.step_elements(state, inputs, n_elements, rng)
                literal, first = monitor.step(literal, inputs, lambda held: held == 0, rng)
                yield above, state.active, state.counted.astype(int), literal.counted.astype(int), first.above
        for wrong in (inputs[1:], inputs - 1, inputs + 50, inputs + 0.5, inputs[None]):
            yield outcome(monitor.step_elements, state, wrong, 50, rng), outcome(checked_inputs, wrong, n_users, 50)
        yield outcome(checked_inputs, inputs, n_users, 0), checked_inputs(inputs, n_users, 50), rng.integers(2**32)


def monitor_runs(rng: np.random.Generator) -> Iterator[Any]:
    for monitor, n_users in _monitors():
        state = monitor.start(n_users)
        for rows in (0, 1, 15, 16, 17, 150):
            state, above = monitor.run(state, _table(monitor, (rows, n_users), rng) if rows else np.zeros((0, n_users)), rng)
            yield above, state.active, (state.counted * 4).astype(int)
        yield monitor.run(state, np.ones(n_users), rng)[1], monitor.run(state, np.ones((3, n_users), dtype=bool), rng)[1]
        yield (
            outcome(monitor.run, state, np.ones((2, n_users + 1)), rng),
            outcome(monitor.run, 0, np.ones((2, n_users)), rng),
        )
        yield rng.integers(2**32)
    for reports in (1, 2, 40):
        monitor = ThresholdMonitorEvolving(IntegerNoise(4.0), 12.0, reports)
        state, above = monitor.run(monitor.start(300), rng.random((900, 300)) < 0.02, rng)
        yield above, state.active, state.counted.astype(int)


def monitor_values(rng: np.random.Generator) -> Iterator[Any]:
    good = (
        [0, 1, 1],
        [False, True, False],
        [0.0, -0.0, 1.0],
        [[1, 1, 1], [0, 0, 1]],
        [0.25, 0.5, 1.0],
        [5e-324, 1 - 2**-53, 0],
    )
    wrong = (
        [0, 1, 2],
        [_NAN, 0, 1],
        [0, -1, 1],
        [0, 1 + 2**-52, 1],
        [0, 0.125, 1],
        [0, _INF, 1],
        [0, 1],
        [[1], [1], [1]],
        1,
    )
    for law, queries in itertools.product((_LAWS[0], _LAWS[3], _LAWS[6]), QUERIES):
        monitor = ThresholdMonitorEvolving(law, 1.0, 2, queries)
        state = monitor.start(3)
        for values in (*good, *wrong):
            yield outcome(monitor.values, state, values)
        for _ in range(3):
            state = monitor.counted(state, np.array([0.5, 1.0, 0.0]))
            yield state, state.live, [monitor._weights(state, monitor.values(state, values)) for values in good[:4]]
        yield outcome(monitor.start, 0)
    many = ThresholdMonitorEvolving(_LAWS[0], 1.0, 2, "interval")
    state, table = many.start(200), rng.random((20, 200))
    yield [many._weights(state, row) == weight for row, weight in zip(table, many._weights(state, table), strict=True)]
    for settings in ((_NAN, 1), (1.0, 0), (1.0, 1, "all"), (1.0, 1.5)):
        yield outcome(ThresholdMonitorEvolving, _LAWS[0], *settings)


def _asked(step: int, held: Any) -> Any:
    return (held % 5 == step % 5) | (held < step)


def monitor_fixed(rng: np.random.Generator) -> Iterator[Any]:
    for epsilon, delta, reports, queries, threshold in (
        (8.0, 1e-3, 2, "binary", 3.0),
        (5.0, 1e-3, 4, "interval", 6),
        (1.0, 1e-6, 1, "binary", 40),
    ):
        promise = calibrate(epsilon, delta, reports, queries=queries)
        monitor = ThresholdMonitor.calibrated(promise, threshold)
        yield monitor, promise, promise.scale
        data = np.arange(12)
        state = monitor.start(data)
        for step in range(30):
            before, (state, release) = state, monitor.step(state, partial(_asked, step), rng)
            yield release.above, state is before, state.counters.active, state.counters.counted.astype(int), state.data
        yield outcome(monitor.step, state.counters, np.isfinite, rng), outcome(monitor.start, []), rng.integers(2**32)


def above_threshold_calibrated(_: np.random.Generator) -> Iterator[Any]:
    for (epsilon, delta), reports, composition in itertools.product(_TARGETS, (1, 2, 9, 100), COMPOSITIONS):
        if reports not in ((1, 9) if composition in ("gaussian", "renyi") else (1, 2, 9, 100)[: 3 + (epsilon == 1)]):
            continue
        yield outcome(AboveThreshold.calibrated, epsilon, delta, reports, 7.0, composition=composition, moved=25)
        if reports < 9 and composition not in ("renyi", "gaussian"):
            yield AboveThreshold.calibrated(
                epsilon, delta, reports, 7.0, split=0.2, composition=composition, noise="exponential"
            )
    yield AboveThreshold.calibrated(1.0, 1e-6, 3, 2.0), AboveThreshold.calibrated(1.0, 1e-6, 3, 2.0, split=0.7)
    for (epsilon, delta), reports, moved in zip(_TARGETS[1:3], (3, 50), (1e4, 1), strict=True):
        yield AboveThreshold.stable_gaussian(epsilon, delta, reports, moved)
    refused: tuple[dict[str, Any], ...] = (
        {"composition": "renyi", "split": 0.5},
        {"composition": "gaussian"},
        {"composition": "gaussian", "noise": "exponential", "moved": 3},
        {"composition": "best"},
        {"noise": "gaussian"},
        {"split": 1.0},
        {"split": 0.0},
    )
    for settings in refused:
        yield outcome(AboveThreshold.calibrated, 1.0, 1e-6, 3, 2.0, **settings)
    for epsilon, delta, reports in ((0.0, 1e-6, 1), (1.0, 0.0, 1), (1.0, 1.0, 1), (1.0, 0.1, 0), (_INF, 0.1, 1)):
        for composition in COMPOSITIONS:
            yield outcome(AboveThreshold.calibrated, epsilon, delta, reports, 2.0, composition=composition, moved=3)
    for wrong in (
        (_NAN, 1, 1, 1, True),
        (1, 0, 1, 1, True),
        (1, 1, 0, 1, True),
        (1, 1, 1, -1, True),
        (1, 1, 1, 1, True, ""),
    ):
        yield outcome(AboveThreshold, *wrong)
    for epsilon, delta, pieces in ((1.0, 1e-6, 1), (0.3, 1e-9, 20), (9.0, 1e-3, 7), (30.0, 1e-4, 2)):
        yield [above_threshold.each_epsilon(epsilon, delta, pieces, way) for way in COMPOSITIONS[:3]]


def above_threshold_long(_: np.random.Generator) -> Iterator[Any]:
    for epsilon, delta, pieces in ((1.0, 1e-6, 20_001), (0.2, 1e-9, 300_000), (2000.0, 1e-3, 20_001), (3.0, 1e-6, 19_999)):
        yield above_threshold.each_epsilon(epsilon, delta, pieces, "optimal")
    for one, epsilon, pieces in ((0.01, 1.0, 30_000), (1e-4, 1.0, 25_000), (0.5, 5000.0, 25_000), (6.0, 149_995.0, 25_000)):
        yield (delta := above_threshold._many(one, epsilon, pieces)), math.log(delta)


def above_threshold_steps(rng: np.random.Generator) -> Iterator[Any]:
    values = (0, -1.0, 1, 3, 2.5, 12, 0)
    for kind, reports, threshold_scale, refreshed in itertools.product(noise.KINDS, (1, 2, 7), (0.0, 1.5), (False, True)):
        for threshold, stable in ((2.0, False), (-2.0, True), (6.0, True)):
            method = AboveThreshold(threshold, reports, 1.2, threshold_scale, refreshed, kind, stable)
            state = method.start(rng)
            for value in itertools.islice(itertools.cycle(values), 18):
                if isinstance(answered := outcome(method.step, state, value, rng), str):
                    yield answered
                    break
                state = answered[0]
                yield answered
            yield outcome(method.step, state, _NAN, rng), outcome(method.step, None, 1.0, rng), rng.integers(2**32)
    for q, r, kind in itertools.product((0.5, 2.0, 30.0), (0.0, 0.5, 7.0, 2.0 + 1e-12), noise.KINDS):
        method = AboveThreshold(1.0, 1, q, r, True, kind)
        yield [outcome(method.crossing, z) for z in (-60.0, -1.5, 0.0, 0.7, 9.0, 80.0)], method.sf([-3.0, 0.0, 0.2, 5.0])
        yield np.log([method.crossing(z) for z in (0.0, 0.7, 9.0)])


def scenes() -> dict[str, Scene]:
    monitors = (monitor_steps, monitor_users, monitor_elements, monitor_runs, monitor_values, monitor_fixed)
    every = (*monitors, above_threshold_calibrated, above_threshold_long, above_threshold_steps)
    return {f"sparse_{scene.__name__}": scene for scene in every}
