"""Scenes of the sparse vector chapter's rivals, successors and adversary."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.audit.recorded.sparse_vector.streams import shifting_examples
from evolvingdp.sparse_vector import adversary, baselines, find_step, histograms
from evolvingdp.sparse_vector import noise as noises
from evolvingdp.sparse_vector.above_threshold import COMPOSITIONS, AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, Histogram, HistogramEveryStep
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.stable_monitor import StableMonitor, smallest_detectable
from evolvingdp.sparse_vector.successors.target_charging import TargetCharging
from evolvingdp.sparse_vector.successors.values import corrected, selection_bias, step_with_value
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

_NAN, _INF = math.nan, math.inf
_TARGETS = ((0.05, 1e-9), (1.0, 1e-6), (5.0, 1e-3), (12.0, 1e-9))
_WORDS = np.array([0, 0, 0, 0, 1, 1, 1, 4, 4, 7])  # what users hold


def histogram_scales(_: np.random.Generator) -> Iterator[Any]:
    for (epsilon, delta), kind in itertools.product(_TARGETS, HISTOGRAMS):
        for horizon, n_elements, beta in ((1, 1, 0.05), (300, 2**32, 1e-3)):
            made = histograms.histogram(epsilon, delta, horizon, n_elements, kind=kind, beta=beta)
            yield made, made.law, made.stable, made.standard_error, made.sf([-3.0, 0.0, 5.0, made.threshold])
            yield [made.error(n_events, beta) for n_events in (1, 1000)], made.error(1, 1.5)
    yield histograms.SHARES, histograms.histogram(1.0, 1e-6, 4, 9), HistogramEveryStep.calibrated(1.0, 1e-6, 4, 9)
    wrongs: tuple[dict[str, Any], ...] = ({"epsilon": 0}, {"delta": 1}, {"horizon": 0}, {"n_elements": 0}, {"kind": "any"})
    for wrong in (*wrongs, {"beta": 0.0}, {"beta": 1.0}):
        given = {"epsilon": 1.0, "delta": 1e-6, "horizon": 2, "n_elements": 5, **wrong}
        for kind in (*HISTOGRAMS, "any")[:: 1 + 9 * ("kind" in wrong)]:
            yield outcome(histograms.histogram, **{"kind": kind, **given}), outcome(HistogramEveryStep.calibrated, **given)
    for wrong_one in (("any", 1.0, 1.0), ("laplace", 0.0, 1.0), ("laplace", 1.0, _INF)):
        yield outcome(Histogram, *wrong_one)
    yield outcome(HistogramEveryStep, made, 0, 4), outcome(HistogramEveryStep, made, 3, 0)


def histogram_steps(rng: np.random.Generator) -> Iterator[Any]:
    for kind, (scale, threshold) in itertools.product(HISTOGRAMS, ((0.4, 2.5), (3.0, -1.0), (2.0, 4.0))):
        one = Histogram(kind, scale, threshold)
        for weights in (np.array([0, 0, 0, 1, 2, 3, 50]), np.zeros(0, dtype=int)):
            yield one.release(weights, rng), one.noisy(weights, rng)
        for wrong in ([-1, 2], [0.5], [_NAN]):
            yield outcome(one.release, wrong, rng), outcome(one.noisy, wrong, rng)
        for n_elements, horizon in ((8, 1), (40, 6)):
            method = HistogramEveryStep(one, horizon, n_elements)
            state = counting = method.start(len(_WORDS))
            for step in range(horizon):
                state, seen = method.step(state, _WORDS if step % 3 else _WORDS // 2, rng)
                yield state, seen, one.reported(_WORDS[:step], n_elements, rng)
                if isinstance(counted := outcome(method.count, counting, _WORDS, rng), str):
                    yield counted
                else:
                    counting = counted[0]
                    yield counted
            yield outcome(method.step, state, _WORDS, rng), outcome(method.count, counting, _WORDS, rng)
            fresh = method.start(3)
            for wrong in ([0, 1], [0, 1, n_elements], [0, 1, -1], [0.5, 0, 0]):
                yield outcome(method.step, fresh, wrong, rng), outcome(method.count, fresh, wrong, rng)
            yield outcome(method.start, 0), outcome(method.step, None, _WORDS, rng), rng.integers(2**32)


def finding_steps(rng: np.random.Generator) -> Iterator[Any]:
    for (epsilon, delta), reports in zip(_TARGETS, (1, 6, 2, 30), strict=True):
        for composition, noise, kind, share in (
            ("optimal", "laplace", "stable", 0.5),
            ("single", "exponential", "stable gaussian", 0.2),
            ("renyi", "laplace", "stable gaussian", 0.9),
        ):
            yield FindStep.calibrated(
                epsilon, delta, reports, 9.0, 30, composition=composition, noise=noise, share=share, kind=kind
            )
        for noise, ratio, horizon in (("gaussian", 2.0, 50), ("laplace", 0.5, 50))[epsilon > 1 :]:
            yield outcome(FindStep.joint, epsilon, delta, reports, 5.0, 30, horizon, noise=noise, ratio=ratio)
    yield FindStep.calibrated(1.0, 1e-6, 3, 9.0, 30), FindStep.joint(1.0, 1e-6, 6, 5.0, 30, 50)
    yield find_step._joint_scale(1.0, 1e-6, 3, 50, "laplace", 3.0)
    for share, kind, reports, n_elements in (
        (0.0, "stable", 1, 3),
        (0.5, "laplace", 1, 3),
        (0.5, "stable", 0, 3),
        (0.5, "stable", 1, 0),
    ):
        yield outcome(FindStep.calibrated, 1.0, 1e-6, reports, 2.0, n_elements, share=share, kind=kind)
    for epsilon, delta in ((0.0, 0.1), (1.0, 0.0), (1.0, 1.0), (1.0, 1.2), (_INF, 0.1), (_NAN, 0.1)):
        yield outcome(FindStep.joint, epsilon, delta, 2, 2.0, 5, 5), outcome(FindStep.calibrated, epsilon, delta, 2, 2.0, 5)
    for noise, ratio, horizon in (("exponential", 1.0, 5), ("laplace", 0.0, 5), ("laplace", 1.0, 0)):
        yield outcome(FindStep.joint, 1.0, 1e-6, 2, 2.0, 5, horizon, noise=noise, ratio=ratio)
    for kind, reports, refreshed, stable in itertools.product(noises.KINDS, (1, 4), (False, True), (False, True)):
        search = AboveThreshold(3.5, reports, 0.7, 0.5 * refreshed, refreshed, kind)
        method = FindStep(search, Histogram("stable" if stable else "laplace", 0.6, 2.0), 9)
        state = method.start(len(_WORDS), rng)
        for step in range(8):
            if isinstance(answered := outcome(method.step, state, _WORDS if step % 2 else np.arange(10) % 9, rng), str):
                yield answered
                break
            state = answered[0]
            yield answered
        for wrong in (_WORDS + 2, _WORDS[1:], _WORDS - 1):
            yield outcome(method.step, method.start(10, rng), wrong, rng), rng.integers(2**32)
        yield outcome(method.start, 0, rng), outcome(method.step, None, _WORDS, rng)


def rivals_calibrated(_: np.random.Generator) -> Iterator[Any]:
    for (epsilon, delta), composition in itertools.product(_TARGETS[:3], COMPOSITIONS):
        for reports, queries, beta in ((1, 1, 0.05), (9, 1000, 1e-4), (9, 2**40, 0.5)):
            laplace = composition in ("renyi", "gaussian")
            for noise, split in (("laplace", None),) if laplace else (("laplace", None), ("exponential", 0.1)):
                method = outcome(
                    baselines.repeated_threshold,
                    *(epsilon, delta, reports, queries),
                    composition=composition, beta=beta, noise=noise, split=split, moved=25,
                )  # fmt: skip
                yield method
                if not isinstance(method, str):
                    yield [outcome(baselines.threshold_error, method, n_events, beta) for n_events in (1, 300)]
    yield baselines.repeated_threshold(1.0, 1e-6, 3, 100), baselines.threshold_error(method, 5)
    kinds = COMPOSITIONS[1:]
    yield baselines.SPLITS
    for noise, moved, goal in (("laplace", 25, None), ("exponential", _NAN, lambda one: one.threshold)):
        some = kinds if noise == "laplace" else kinds[:3]
        yield baselines.best_composition(1.0, 1e-6, 9, 1000, some, noise=noise, moved=moved, goal=goal)
        yield baselines.best_composition(1.0, 1e-6, 1, 9, some, 0.3, noise=noise, moved=moved, goal=goal)
    for queries, beta in ((0, 0.05), (3, 0.0), (3, 1.0)):
        yield outcome(baselines.repeated_threshold, 1.0, 1e-6, 2, queries, beta=beta)
        yield outcome(baselines.threshold_error, method, queries, beta)


def rivals_simulated(rng: np.random.Generator) -> Iterator[Any]:
    for stream in shifting_examples(rng):
        size, spread = float(stream.sizes.max()), math.log(stream.horizon * stream.n_elements)
        for kind, reports, refreshed, ratio, stable in (
            ("laplace", 1, True, 0.5, False),
            ("laplace", 12, True, 0.3, True),
            ("exponential", 3, False, 1.0, False),
            ("gaussian", 40, False, 0.0, False),
            ("gaussian", 40, True, 0.0, True),
        ):
            scale = size / spread
            method = AboveThreshold(size - 0.4, reports, scale, ratio * scale, refreshed, kind, stable)
            yield baselines.simulate_threshold(method, stream, rng)
            if stream.n_elements <= 100:
                low = AboveThreshold(1.6, 2 * reports, 0.7, 0.3 * ratio, refreshed, kind, stable)
                yield [baselines.simulate_threshold(low, stream, rng) for _ in range(4)]
            for at in (size - 0.2, 3.0):
                scale = at / math.log(stream.horizon + 1)
                search = AboveThreshold(at, reports, scale, ratio * scale, refreshed, kind, stable)
                shown = Histogram("stable" if stable else "stable gaussian", at / 5, at)
                yield baselines.simulate_find_step(FindStep(search, shown, stream.n_elements), stream, rng)
            yield baselines.ask(method, size * np.array([0.2, 0.5, 1.0, 1.0, 1.3, 0.0, 1.0, 2.0]), rng)
            yield baselines.ask(method, np.zeros(0), rng), rng.integers(2**32)
            yield baselines.ask(replace(method, threshold=0.5), np.array([0, 1, 0, 0, 2, 0]), rng)
        for kind in HISTOGRAMS:
            yield baselines.simulate_histogram(Histogram(kind, size / 7 + 0.1, size), stream, rng)


def stable_monitors(rng: np.random.Generator) -> Iterator[Any]:
    for (epsilon, delta), horizon, reports in zip(_TARGETS[1:], (100, 7, 10**6), (3, 1, 6), strict=True):
        method = StableMonitor.calibrated(epsilon, delta, horizon, 50, reports)
        yield method, method.error(1), method.error(1000, 0.5), outcome(method.error, 0), outcome(method.error, 1, 1.0)
    for epsilon, delta, horizon in ((0.9, 0.9, 1),):
        yield StableMonitor.calibrated(epsilon, delta, horizon, 5, 1)
    for given in ((0.0, 1e-6, 1, 1, 1), (1.0, 1.0, 1, 1, 1), (1.0, 0.1, 0, 1, 1), (1.0, 0.1, 1, 0, 1), (1.0, 0.1, 1, 1, 0)):
        yield outcome(StableMonitor.calibrated, *given)
    for scale, limit, reports, horizon in ((0.3, 1, 1, 3), (1.0, 2, 3, 15), (3.0, 4, 2, 8)):
        method = StableMonitor(ThresholdMonitorEvolving(IntegerNoise(scale, limit), float(limit), reports), horizon, 9)
        for inputs in (_WORDS, np.arange(9), np.zeros(1, dtype=int)):
            state = method.start(len(inputs))
            for step in range(horizon):
                state, seen = method.step(state, inputs if step % 3 else inputs // 2, rng)
                yield seen, state.left, state.counters.counted.astype(int), state.counters.active
            yield outcome(method.step, state, inputs, rng), outcome(method.step, state.counters, inputs, rng)
            for wrong in (inputs[1:], inputs + 9, inputs - 9, inputs + 0.5):
                yield outcome(method.step, method.start(len(inputs)), wrong, rng), rng.integers(2**32)
    yield (
        outcome(method.start, 0),
        outcome(StableMonitor, method.monitor, 0, 3),
        outcome(StableMonitor, method.monitor, 3, 0),
    )
    for (epsilon, delta), horizon, n_elements, found in itertools.product(_TARGETS, (2, 10**6), (2, 2**40), (0.3, 0.99)):
        yield smallest_detectable(epsilon, delta, horizon, n_elements, found)
    for settings in ((1.0, 0.1, 1, 2), (1.0, 0.1, 2, 1), (1.0, 0.1, 2, 2, 1.0), (0.0, 0.1, 2, 2), (0.5, 1e-3, 99, 99)):
        yield outcome(smallest_detectable, *settings)


def target_charging(rng: np.random.Generator) -> Iterator[Any]:
    for one, hits in ((0.01, 1), (0.5, 2), (2.0, 3), (0.1, 30)):
        for method in (TargetCharging.comparisons(one, hits), TargetCharging(one, hits, 0.9)):
            yield method, method.start()
            for epsilon in (0.05, 1.0, 5.0):
                yield (delta := method.delta_of_epsilon(epsilon)), math.log(max(delta, 1e-300))
        yield [method.epsilon_of_delta(delta) for delta in (1e-9, 0.1)] if hits < 3 else method.epsilon_of_delta(0.9999)
    yield (
        TargetCharging.comparisons(0.1, 2).epsilon_of_delta(1e-6),
        outcome(TargetCharging(1.0, 5, 1e-5).delta_of_epsilon, 1.0),
    )
    for hits, chance in ((1, 0.5), (4, 0.3), (3, 0.999)):
        method = TargetCharging(0.5, hits, chance)
        left = method.start()
        for _ in range(14):
            if isinstance(
                answered := outcome(method.step, left, lambda own: own.integers(4), lambda out: out > 1, rng), str
            ):
                yield answered, rng.integers(2**32)
                break
            left = answered[0]
            yield answered
    for wrong in ((0.0, 1, 0.5), (1.0, 0, 0.5), (1.0, 1, 0.0), (1.0, 1, 1.0)):
        yield outcome(TargetCharging, *wrong)
    for value in (0.0, _INF, _NAN, 1.0):
        yield outcome(method.delta_of_epsilon, value), outcome(method.epsilon_of_delta, value)


def values_shown(rng: np.random.Generator) -> Iterator[Any]:
    for law, threshold, reports in (
        (MonitorNoise(0.2, 0.0), 3.0, 2),
        (IntegerNoise(1.0), 8, 30),
        (MonitorNoise(0.3, 1.0), 9.0, 1),
    ):
        monitor = ThresholdMonitorEvolving(law, threshold, reports)
        state = monitor.start(12)
        for step in range(20):
            state, seen = step_with_value(monitor, state, np.arange(12), lambda held: held % 3 != step % 4, rng)  # noqa: B023
            yield seen, state.active, state.counted.astype(int)
        wrong = ThresholdMonitorEvolving(law, threshold, reports, "interval")
        yield outcome(step_with_value, wrong, state, np.ones(12), np.abs, rng), rng.integers(2**32)
        yield outcome(step_with_value, monitor, state, np.ones(11), np.abs, rng), rng.integers(2**32)
        yield outcome(step_with_value, monitor, 0, np.ones(12), np.abs, rng), rng.integers(2**32)
    for above, scale in itertools.product((-30.0, -1.0, 0.0, 1e-3, 2.0, 90.0), (0.3, 1.0, 20.0, 0.0)):
        yield outcome(selection_bias, above, scale), outcome(corrected, 5.0 + above, 5.0, scale)
    yield outcome(corrected, _NAN, 0.0, 1.0), corrected(1.0, 0.0, 1.0), corrected(1.0001, 0.0, 1.0)


def adversaries(_: np.random.Generator) -> Iterator[Any]:
    for law, reports in (
        (MonitorNoise(0.5, 0.0), 1),
        (MonitorNoise(2.0, 2.3), 3),
        (IntegerNoise(3.0), 2),
        (IntegerNoise(2.0, None, 4), 5),
    ):
        for position, epsilon in itertools.product((-0.5, 0.0, 0.5, 1.0, 3.0), (0.0, 0.5, 4.0)):
            yield (delta := adversary.delta_attained(epsilon, law, reports, position)), math.log(max(delta, 1e-300))
        yield [adversary.epsilon_attained(delta, law, reports) for delta in (1e-9, 1e-2)]
    yield outcome(adversary.delta_attained, 1.0, law, 0, 0.0), outcome(adversary.epsilon_attained, 1e-3, law, 0)


def scenes() -> dict[str, Scene]:
    rivals = (histogram_scales, histogram_steps, finding_steps, rivals_calibrated, rivals_simulated)
    others = (stable_monitors, target_charging, values_shown, adversaries)
    return {f"sparse_{scene.__name__}": scene for scene in (*rivals, *others)}
