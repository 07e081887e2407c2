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
from scipy.stats import binom, chi2, kstest

from evolvingdp.core.noise import Gaussian, GaussianNoise, IntegerNoise, Laplace, MonitorNoise
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.histograms import Histogram
from evolvingdp.sparse_vector.shifting import solve
from evolvingdp.sparse_vector.shifting_simulation import (
    crossing,
    simulate,
    simulate_drawn,
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


@pytest.mark.parametrize("threshold", [5.0, 3.5, 2.0])
def test_each_event_of_a_family_is_found_as_often(threshold):
    """Whichever is rarer, found or missed; of a law by which every event is found a tenth more or less it is not true."""
    noise, runs = Laplace(1.0), 4000
    found = sum(crossing(noise, threshold, SMALL, stream(0, "crossing", run)).astype(int) for run in range(runs))
    chance = noise.sf(threshold - SMALL.sizes)
    variance = runs * chance * (1 - chance)
    assert chi2.sf(np.sum((found - runs * chance) ** 2 / variance), SMALL.n_events) > ALPHA
    tenth = 0.1 * runs * np.minimum(chance, 1 - chance) * np.where(np.arange(SMALL.n_events) % 2, 1, -1)
    assert chi2.sf(np.sum((found + tenth - runs * chance) ** 2 / variance), SMALL.n_events) < ALPHA


def literal_threshold(method):
    """The literal repetition of AboveThreshold, element by element."""

    def draw(rng):
        state, reported = method.start(rng), [[] for _ in WEIGHTS]
        for step, weights in enumerate(WEIGHTS.tolist()):
            for element, value in enumerate(weights):
                if state.left:
                    state, release = method.step(state, value, rng)
                    if release:
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
    method = Histogram(law(1.3), 4.2, SMALL.horizon, 24, stable)
    kind = f"{law.__name__} {stable}"
    law = law_of_a_histogram(method)

    def online(rng):
        state, reported = method.start(12), []
        for now in INPUTS:
            state, release = method.step(state, now, rng)
            reported.append(release.tolist())
        return seen_in(reported)

    line_by_line = sample(lambda rng: seen_in([histogram_step(method, now, rng) for now in LISTS]), kind, 1000)
    assert fits(line_by_line, law, 1000) > ALPHA
    assert fits(sample(online, f"online {kind}", 1000), law, 1000) > ALPHA
    assert fits(simulated(simulate_histogram, method, kind, runs), law, runs) > ALPHA
    wrong = replace(method, noise=replace(method.noise, scale=1.43))
    assert fits(simulated(simulate_histogram, wrong, kind, runs), law, runs) < ALPHA


LAWS = np.array([[0.5, 0.2], [0.6, 0.1], [0.3, 0.6], [0.5, 0.3]])  # the rest holds neither
USERS, RUNS = 40, 1500
DRAWN = ThresholdMonitorEvolving(MonitorNoise(0.3, 1.0), 14.0, 2)


def by_users(rng):
    """Reports and active users of every step, from `step_elements` with a third element for those who hold neither."""
    state, seen = DRAWN.start(USERS), []
    for law in LAWS:
        held = rng.choice(3, size=USERS, p=[*law, 1 - law.sum()])
        weights = np.bincount(held[state.active], minlength=3)[:2]
        above = weights + DRAWN.noise.draw(2, rng) >= DRAWN.threshold
        state = DRAWN._asked(state, 1, np.append(above, False)[held] if above.any() else None)
        seen += [*above.tolist(), int(state.active.sum()) // 8]
    return tuple(seen[3:])


def by_counts(rng, laws=LAWS):
    above, active = simulate_drawn(DRAWN, USERS, laws, rng)
    return tuple(np.column_stack([above, active // 8])[1:].astype(int).ravel().tolist())


def test_words_drawn_afresh_counts_of_users_have_the_law_of_users():
    one = Counter(tuple(map(int, by_users(stream(0, "literal", run)))) for run in range(RUNS))
    assert pvalue(one, Counter(by_counts(stream(0, "counted", run)) for run in range(RUNS))) > ALPHA
    wrong = Counter(by_counts(stream(0, "wrong", run), 0.9 * LAWS) for run in range(RUNS))
    assert pvalue(one, wrong) < ALPHA, "probabilities 10 % too small are rejected"


def test_laws_that_are_none_are_refused():
    with pytest.raises(ValueError, match="laws must hold rows of probabilities that sum to 1 at most"):
        simulate_drawn(DRAWN, USERS, [[0.7, 0.4]], stream(0, "refused"))


@pytest.mark.parametrize(("cap", "inner"), [(2.0969, 2.3978), (0.5, 6.0)])
def test_samples_have_the_closed_form_law(cap, inner):
    noise = MonitorNoise(cap, inner)
    samples = noise.draw(40_000, stream(0, "monitor", "samples"))
    assert kstest(samples, noise.cdf).pvalue > ALPHA
    assert kstest(samples, MonitorNoise(1.1 * cap, 1.1 * inner).cdf).pvalue < ALPHA
    one = stream(0, "monitor", "samples")
    assert [float(noise.draw(1, one)[0]) for _ in range(50)] == samples[:50].tolist()
