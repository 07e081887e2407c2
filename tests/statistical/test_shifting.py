"""Exact simulations against the literal algorithms, by chi-square at small size, and against a law 10 % wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import literal as reference
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.baselines import simulate_find_step, simulate_histogram, simulate_threshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, Histogram, HistogramEveryStep
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.shifting import solve
from evolvingdp.sparse_vector.shifting_simulation import simulate
from evolvingdp.sparse_vector.streams import ShiftingStream
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA, pvalue

SMALL = ShiftingStream.make(12, {"A": 3, "B": 4, "C": 5}, stream(0, "stream"), n_elements=24)
NOISE = MonitorNoise(0.09, 1.4)


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


def literal_threshold(method, runs):
    """The literal repetition of AboveThreshold, element by element."""
    seen = Counter()
    weights = [np.bincount(SMALL.inputs(step), minlength=24) for step in range(SMALL.horizon)]
    for run in range(runs):
        rng = stream(0, "literal", "svt", run)
        state = method.start(rng)
        found, absent, single = np.zeros(SMALL.n_events, bool), 0, 0
        for step, weight in enumerate(weights):
            event = SMALL.event_at(step)
            for element, value in enumerate(weight.tolist()):
                if state.left == 0:
                    break
                state, release = method.step(state, value, rng)
                if release.above and event is not None and element == event:
                    found[event] = True
                elif release.above:
                    single += value == 1
                    absent += value == 0
        seen[statistics(found, absent, single)] += 1
    return seen


@pytest.mark.parametrize("composition", ["basic", "single", "renyi"])
def test_the_simulation_has_the_law_of_repeated_above_threshold(composition):
    method = replace(AboveThreshold.calibrated(18.0, 1e-2, 4, 0.0, composition=composition), threshold=4.5)
    slow = literal_threshold(method, 3000)
    assert len(slow) > 12

    def fast(method):
        outcomes = (simulate_threshold(method, SMALL, stream(0, "simulated", "svt", run)) for run in range(12_000))
        return Counter(statistics(outcome.found, outcome.absent, outcome.single) for outcome in outcomes)

    assert pvalue(slow, fast(method)) > ALPHA
    assert pvalue(slow, fast(replace(method, query_scale=1.2 * method.query_scale, threshold=4.0))) < ALPHA


INPUTS = [SMALL.inputs(step) for step in range(SMALL.horizon)]
WEIGHTS = [np.bincount(inputs, minlength=24) for inputs in INPUTS]


def seen_in(reported):
    """The statistics of the elements reported in each step."""
    found, absent, single = np.zeros(SMALL.n_events, bool), 0, 0
    for elements, weights in zip(reported, WEIGHTS, strict=True):
        for element in elements:
            if weights[element] > 1:
                found[element] = True
            absent += weights[element] == 0
            single += weights[element] == 1
    return statistics(found, int(absent), int(single))


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_finding_the_step_has_one_law_line_by_line_online_and_simulated(composition):
    """With what is shown after a found step, events as well as elements of one user."""
    search = replace(AboveThreshold.calibrated(18.0, 1e-2, 4, 0.0, composition=composition), threshold=4.5)
    method = FindStep(search, Histogram("stable", 0.9, 3.6), 24)

    def line_by_line(run):
        rng = stream(0, "literal", "find", run)
        answers = reference.find_step(method.search, method.shown, [one.tolist() for one in INPUTS], 24, rng)
        return seen_in([one or [] for one in answers])

    def online(run):
        rng = stream(0, "online", "find", run)
        state, reported = method.start(12, rng), [[] for _ in INPUTS]
        for step, inputs in enumerate(INPUTS):
            if state.search.left:
                state, found = method.step(state, inputs, rng)
                reported[step] = found.elements
        return seen_in(reported)

    def fast(method):
        outcomes = (simulate_find_step(method, SMALL, stream(0, "fast", "find", run)) for run in range(8000))
        return Counter(statistics(one.found, one.absent, one.single) for one in outcomes)

    slow = Counter(line_by_line(run) for run in range(2500))
    assert len(slow) > 20
    assert sum(count for key, count in slow.items() if key[2]) > 100  # elements of one user are shown
    assert pvalue(slow, Counter(online(run) for run in range(2500))) > ALPHA
    assert pvalue(slow, fast(method)) > ALPHA
    assert pvalue(slow, fast(replace(method, shown=replace(method.shown, scale=0.7)))) < ALPHA
    assert pvalue(slow, fast(replace(method, search=replace(search, threshold=4.0)))) < ALPHA


@pytest.mark.parametrize("kind", HISTOGRAMS)
def test_a_histogram_in_every_step_has_one_law_line_by_line_online_and_simulated(kind):
    method = HistogramEveryStep(Histogram(kind, 1.3, 4.2), SMALL.horizon, 24)

    def line_by_line(run):
        rng = stream(0, "literal", kind, run)
        return seen_in([reference.histogram_step(method.one, inputs.tolist(), 24, rng) for inputs in INPUTS])

    def online(run):
        rng, state, reported = stream(0, "online", kind, run), method.start(12), []
        for inputs in INPUTS:
            state, release = method.step(state, inputs, rng)
            reported.append(release.elements)
        return seen_in(reported)

    def fast(one):
        outcomes = (simulate_histogram(one, SMALL, stream(0, "fast", kind, run)) for run in range(8000))
        return Counter(statistics(outcome.found, outcome.absent, outcome.single) for outcome in outcomes)

    slow = Counter(line_by_line(run) for run in range(2000))
    assert pvalue(slow, Counter(online(run) for run in range(2000))) > ALPHA
    assert pvalue(slow, fast(method.one)) > ALPHA
    assert pvalue(slow, fast(replace(method.one, scale=1.43))) < ALPHA
