"""Exact simulations against the literal algorithms, by chi-square at small size, and against a law 10 % wrong.

Sample sizes are what the power asks for: under each wrong law, estimated once from 15,000 runs, the chi-square statistic
is on average at least five of its standard deviations above what ALPHA allows: missed less than once in a million.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from evolvingdp.core.noise import Gaussian, Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import Histogram, HistogramEveryStep
from evolvingdp.sparse_vector.noise import GaussianNoise, IntegerNoise, MonitorNoise
from evolvingdp.sparse_vector.shifting import solve
from evolvingdp.sparse_vector.shifting_simulation import (
    simulate,
    simulate_find_step,
    simulate_histogram,
    simulate_threshold,
)
from evolvingdp.sparse_vector.streams.example import ShiftingStream
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA, fits, pvalue

SMALL = ShiftingStream.make(12, {"A": 3, "B": 4, "C": 5}, stream(0, "stream"), n_elements=24)
INPUTS = [SMALL.inputs(step) for step in range(SMALL.horizon)]
LISTS = [inputs.tolist() for inputs in INPUTS]
WEIGHTS = np.array([np.bincount(inputs, minlength=24) for inputs in INPUTS])
ABSENT, SINGLE = 3, 4  # beside the families 0, 1, 2
KINDS = np.where(WEIGHTS == 0, ABSENT, SINGLE)
KINDS[SMALL.steps, np.arange(SMALL.n_events)] = SMALL.family
NOISE = MonitorNoise(0.09, 1.4)


def capped(counts):
    """How many events of each family, absent elements and elements of one user are reported; of the latter at most two."""
    a, b, c, absent, single = counts
    return a, b, c, min(absent, 2), min(single, 2)


def seen_in(reported):
    """Of the elements reported in each step."""
    kinds = [kinds[element] for kinds, elements in zip(KINDS, reported, strict=True) for element in elements]
    return capped(np.bincount(kinds, minlength=5).tolist() if kinds else [0] * 5)


def sample(draw: Callable, name: str, runs: int) -> Counter:
    """`runs` outcomes of `draw`, which is given a generator."""
    rng = stream(0, name)
    return Counter(draw(rng) for _ in range(runs))


def simulated(simulate, method, name, runs):
    def draw(rng):
        outcome = simulate(method, SMALL, rng)
        return capped([*np.bincount(SMALL.family[outcome.found], minlength=3).tolist(), outcome.absent, outcome.single])

    return sample(draw, f"simulated {name}", runs)


def test_the_statistics_tell_every_event_absent_and_single_element():
    assert np.bincount(KINDS.ravel()).tolist() == [
        *np.bincount(SMALL.family).tolist(), SMALL.absent_queries, SMALL.single_queries,
    ]  # fmt: skip
    assert np.array_equal(WEIGHTS[KINDS < ABSENT], SMALL.family_sizes[KINDS[KINDS < ABSENT]])


@pytest.mark.parametrize("reports", [1, 2, 3])
def test_the_simulation_has_the_law_of_the_literal_solver(reports):
    monitor = ThresholdMonitorEvolving(NOISE, 4.2, reports)
    slow = sample(lambda rng: seen_in([one.tolist() for one in solve(monitor, INPUTS, 24, rng)]), "literal", 1400)
    assert len(slow) > 20
    assert pvalue(slow, simulated(simulate, monitor, "monitor", 1400)) > ALPHA
    wrong = replace(monitor, noise=MonitorNoise(0.8 * NOISE.cap, 0.8 * NOISE.inner), threshold=4.0)
    assert pvalue(slow, simulated(simulate, wrong, "monitor", 1400)) < ALPHA


@pytest.mark.parametrize(
    ("noise", "other"), [(IntegerNoise(1.0, 4), IntegerNoise(1.5, 4)), (GaussianNoise(1.2, 4.0), GaussianNoise(1.6, 4.0))]
)
def test_the_simulation_has_the_law_of_a_stable_monitor(noise, other):
    monitor = ThresholdMonitorEvolving(noise, 4.0, 2, moved=SMALL.horizon)
    slow = sample(lambda rng: seen_in([one.tolist() for one in solve(monitor, INPUTS, 24, rng)]), "literal stable", 400)
    assert len(slow) > 12
    assert pvalue(slow, simulated(simulate, monitor, "stable", 1600)) > ALPHA
    assert pvalue(slow, simulated(simulate, replace(monitor, noise=other), "stable", 1600)) < ALPHA
    with pytest.raises(ValueError, match="moved must be at least the steps"):
        simulate(replace(monitor, moved=SMALL.horizon - 1), SMALL, stream(0, "few"))


def literal_threshold(method):
    """The literal repetition of AboveThreshold, element by element."""

    def draw(rng):
        state, reported = method.start(rng), [[] for _ in WEIGHTS]
        for step, weights in enumerate(WEIGHTS.tolist()):
            for element, value in enumerate(weights):
                if state.left:
                    state, release = method.step(state, value, rng)
                    if release.above:
                        reported[step].append(element)
        return seen_in(reported)

    return draw


SEARCHES = {
    "repeated": AboveThreshold(0.0, 4, Laplace(4 / 4.5), Laplace(2 / 4.5), True),
    "one": AboveThreshold.calibrated(18.0, 1e-2, 4, 0.0, kind="one"),
    "gaussian": AboveThreshold(0.0, 4, Gaussian(1.0), moved=10**6),
    "stable": AboveThreshold(0.0, 4, Gaussian(1.0), stable=True, moved=10**6),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_simulation_has_the_law_of_repeated_above_threshold(name):
    method = replace(SEARCHES[name], threshold=4.5)
    slow = sample(literal_threshold(method), "literal svt", 700)
    assert len(slow) > 12
    wrong = replace(method, noise=replace(method.noise, scale=1.2 * method.noise.scale), threshold=4.0)
    assert pvalue(slow, simulated(simulate_threshold, method, "svt", 2800)) > ALPHA
    assert pvalue(slow, simulated(simulate_threshold, wrong, "svt", 2800)) < ALPHA


def histogram_step(one, inputs, rng):
    """The elements reported in one step, line by line: a draw for each of the domain, weights counted user by user."""
    reported = []
    for element in range(24):
        weight = inputs.count(element)
        if one.stable and weight == 0:
            continue
        draw = rng.normal if isinstance(one.noise, Gaussian) else rng.laplace
        if weight + draw(0.0, one.noise.scale) >= one.threshold:
            reported.append(element)
    return reported


def find_step(search, shown, rng):
    """For each step nothing where the search says no (or has halted), else the elements that are shown."""
    answers = []
    left = search.reports
    for inputs in LISTS:
        answers.append([])
        if left == 0:
            continue
        largest = max(inputs.count(element) for element in set(inputs))
        if largest + rng.normal(0.0, search.noise.scale) < search.threshold:
            continue
        left -= 1
        answers[-1] = histogram_step(shown, inputs, rng)
    return answers


def test_finding_the_step_has_one_law_line_by_line_online_and_simulated():
    """With what is shown after a found step, events as well as elements of one user."""
    search = AboveThreshold(4.5, 4, Gaussian(0.9), moved=SMALL.horizon)
    method = FindStep(search, Histogram(Laplace(0.9), 3.6, True), 24)

    def online(rng):
        state, reported = method.start(12, rng), [[] for _ in INPUTS]
        for step, inputs in enumerate(INPUTS):
            if state.search.left:
                state, found = method.step(state, inputs, rng)
                reported[step] = found.elements.tolist()
        return seen_in(reported)

    slow = sample(lambda rng: seen_in(find_step(method.search, method.shown, rng)), "literal find", 1600)
    fast = simulated(simulate_find_step, method, "find", 8000)
    assert len(slow) > 20
    assert sum(count for key, count in slow.items() if key[4]) > 64  # elements of one user are shown
    assert pvalue(slow, fast) > ALPHA
    assert pvalue(sample(online, "online find", 1600), fast) > ALPHA
    for wrong in (
        replace(method, shown=replace(method.shown, noise=Laplace(0.7))),
        replace(method, search=replace(search, threshold=4.0)),
    ):
        assert pvalue(slow, simulated(simulate_find_step, wrong, "find", 8000)) < ALPHA


def law_of_a_histogram(one):
    """Of the statistics, from the chance of each weight: all elements are independent."""
    counts = np.bincount(KINDS.ravel()).tolist()
    weights = [*SMALL.family_sizes.tolist(), 0, 1]
    chances = [0.0 if one.stable and weight == 0 else float(one.noise.sf(one.threshold - weight)) for weight in weights]
    laws = [binom(count, chance).pmf(np.arange(count + 1)) for count, chance in zip(counts, chances, strict=True)]
    laws[3:] = [np.array([*law[:2], law[2:].sum()]) for law in laws[3:]]
    outcomes = product(*(range(len(law)) for law in laws))
    return {outcome: float(np.prod([law[n] for law, n in zip(laws, outcome, strict=True)])) for outcome in outcomes}


@pytest.mark.parametrize(("law", "stable", "runs"), [(Gaussian, False, 1600), (Laplace, True, 8000), (Gaussian, True, 1600)])
def test_a_histogram_in_every_step_has_one_law_line_by_line_online_and_simulated(law, stable, runs):
    method = HistogramEveryStep(Histogram(law(1.3), 4.2, stable), SMALL.horizon, 24)
    kind, made = f"{law.__name__} {stable}", method.one
    law = law_of_a_histogram(made)

    def online(rng):
        state, reported = method.start(12), []
        for now in INPUTS:
            state, release = method.step(state, now, rng)
            reported.append(release.elements.tolist())
        return seen_in(reported)

    line_by_line = sample(lambda rng: seen_in([histogram_step(method.one, now, rng) for now in LISTS]), kind, 1000)
    assert fits(line_by_line, law, 1000) > ALPHA
    assert fits(sample(online, f"online {kind}", 1000), law, 1000) > ALPHA
    assert fits(simulated(simulate_histogram, method.one, kind, runs), law, runs) > ALPHA
    wrong = replace(method.one, noise=replace(method.one.noise, scale=1.43))
    assert fits(simulated(simulate_histogram, wrong, kind, runs), law, runs) < ALPHA
