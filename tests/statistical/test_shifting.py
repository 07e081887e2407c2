"""Exact simulations against the literal algorithms, by chi-square at small size, and against a law 10 % wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.baselines import (
    HISTOGRAMS,
    Histogram,
    simulate_find_step,
    simulate_histogram,
    simulate_threshold,
)
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.shifting import solve
from evolvingdp.sparse_vector.shifting_simulation import simulate
from evolvingdp.sparse_vector.streams import ShiftingStream
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA

SMALL = ShiftingStream.make(12, {"A": 3, "B": 4, "C": 5}, stream(0, "stream"), n_elements=24)
NOISE = MonitorNoise(0.09, 1.4)


def pvalue(one, other):
    """Two samples of outcomes of the same law; rare outcomes are pooled."""
    keys = sorted(set(one) | set(other), key=lambda key: -(one[key] + other[key]))
    table = np.array([[sample[key] for key in keys] for sample in (one, other)])
    common = table.sum(axis=0) >= 20
    return chi2_contingency(
        np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])[:, : common.sum() + (~common).any()]
    ).pvalue


def statistics(found, absent, single):
    return tuple(int(found[SMALL.family == number].sum()) for number in range(3)), min(absent, 2), min(single, 2)


def literal(monitor, runs):
    seen = Counter()
    for run in range(runs):
        reported = solve(monitor, (SMALL.inputs(step) for step in range(SMALL.horizon)), 24, stream(0, "literal", run))
        found, absent, single = np.zeros(SMALL.n_events, bool), 0, 0
        for step, elements in enumerate(reported):
            held = Counter(SMALL.inputs(step).tolist())
            for element in elements.tolist():
                if element < SMALL.n_events and held[element]:
                    found[element] = True
                elif held[element]:
                    single += 1
                else:
                    absent += 1
        seen[statistics(found, absent, single)] += 1
    return seen


def simulated(monitor, runs, name="simulated"):
    outcomes = (simulate(monitor, SMALL, stream(0, name, run)) for run in range(runs))
    return Counter(statistics(outcome.found, outcome.absent, outcome.single) for outcome in outcomes)


@pytest.mark.parametrize("reports", [1, 2, 3])
def test_the_simulation_has_the_law_of_the_literal_solver(reports):
    monitor = ThresholdMonitorEvolving(NOISE, 4.2, reports)
    slow = literal(monitor, 3000)
    assert len(slow) > 20
    assert pvalue(slow, simulated(monitor, 12_000)) > ALPHA
    wrong = replace(monitor, noise=MonitorNoise(0.8 * NOISE.cap, 0.8 * NOISE.inner), threshold=4.0)
    assert pvalue(slow, simulated(wrong, 12_000)) < ALPHA


def literal_threshold(method, runs, per_step):
    """The literal repetition of AboveThreshold, element by element (or by the largest weight of each step)."""
    seen = Counter()
    weights = [np.bincount(SMALL.inputs(step), minlength=24) for step in range(SMALL.horizon)]
    for run in range(runs):
        rng = stream(0, "literal", "svt", run)
        state = method.start(rng)
        found, absent, single = np.zeros(SMALL.n_events, bool), 0, 0
        for step, weight in enumerate(weights):
            event = SMALL.event_at(step)
            asked = [(None, int(weight.max()))] if per_step else list(enumerate(weight.tolist()))
            for element, value in asked:
                if state.left == 0:
                    break
                state, release = method.step(state, value, rng)
                if release.above and event is not None and (per_step or element == event):
                    found[event] = True
                elif release.above:
                    single += value == 1
                    absent += value == 0
        seen[statistics(found, absent, single)] += 1
    return seen


@pytest.mark.parametrize(
    ("composition", "per_step"), [("basic", False), ("single", False), ("renyi", False), ("basic", True)]
)
def test_the_simulation_has_the_law_of_repeated_above_threshold(composition, per_step):
    method = replace(AboveThreshold.calibrated(18.0, 1e-2, 4, 0.0, composition=composition), threshold=4.5)
    slow = literal_threshold(method, 3000, per_step)
    assert len(slow) > 12

    def fast(method):
        seen = Counter()
        for run in range(12_000):
            rng = stream(0, "simulated", "svt", run)
            if per_step:
                outcome = simulate_find_step(method, Histogram("stable", 1e-3, 1.5), SMALL, rng)
                outcome = replace(outcome, single=0)
            else:
                outcome = simulate_threshold(method, SMALL, rng)
            seen[statistics(outcome.found, outcome.absent, outcome.single)] += 1
        return seen

    if per_step:
        slow = Counter({key: sum(n for k, n in slow.items() if k[0] == key[0]) for key in {(k[0], 0, 0) for k in slow}})
    assert pvalue(slow, fast(method)) > ALPHA
    assert pvalue(slow, fast(replace(method, query_scale=1.2 * method.query_scale, threshold=4.0))) < ALPHA


@pytest.mark.parametrize("kind", HISTOGRAMS)
def test_a_histogram_s_simulation_has_the_law_of_its_noise(kind):
    method = Histogram(kind, 1.3, 4.2)
    seen = Counter()
    for run in range(3000):
        rng = stream(0, "literal", kind, run)
        found, absent, single = np.zeros(SMALL.n_events, bool), 0, 0
        for step in range(SMALL.horizon):
            weight = np.bincount(SMALL.inputs(step), minlength=24)
            above = method.release(weight, rng)
            event = SMALL.event_at(step)
            if event is not None:
                found[event] = above[event]
            absent += int((above & (weight == 0)).sum())
            single += int((above & (weight == 1)).sum())
        seen[statistics(found, absent, single)] += 1

    def fast(method):
        outcomes = (simulate_histogram(method, SMALL, stream(0, "fast", kind, run)) for run in range(12_000))
        return Counter(statistics(outcome.found, outcome.absent, outcome.single) for outcome in outcomes)

    assert pvalue(seen, fast(method)) > ALPHA
    assert pvalue(seen, fast(replace(method, scale=1.43))) < ALPHA
