"""ThresholdMonitor's exact privacy bound: never exceeded by enumerated adversaries, attained by an explicit one."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from evolvingdp.audit.exact import deltas
from evolvingdp.audit.queries import above_threshold_loss, halting_laws
from evolvingdp.audit.queries import monitor_laws as transcripts
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.adversary import delta_attained, epsilon_attained
from evolvingdp.sparse_vector.calibration import calibrate, tight_loss
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0])


def random_strategy(name, others, interval=False):
    def strategy(answers):
        rng = stream(0, "adversary", name, "".join("01"[a] for a in answers))
        draw = (lambda size: rng.random(size)) if interval else (lambda size: rng.integers(0, 2, size=size).astype(float))
        first, second = draw(2)
        return first, second, draw(others)

    return strategy


@pytest.mark.parametrize("unit", privacy.UNITS)
@pytest.mark.parametrize(
    ("reports", "cap", "inner"), [(1, 0.1, 0.0), (1, 0.3, 1.5), (2, 0.1, 2.2), (3, 0.2, 2.0), (3, 1.0, 0.0)]
)
def test_no_enumerated_adversary_exceeds_the_exact_bound(unit, reports, cap, inner):
    noise = MonitorNoise(cap, inner)
    bound = np.array([privacy.delta_of_epsilon(e, noise.scale, reports, unit) for e in EPSILONS])
    largest = np.zeros(len(EPSILONS))
    for number in range(6):
        monitor = ThresholdMonitorEvolving(noise, 0.5 + number % 3, reports)
        laws = transcripts(monitor, 4, random_strategy(f"{number}", 4), 8, unit == "add-remove")
        assert laws.sum(axis=1) == pytest.approx([1, 1])
        largest = np.maximum(largest, deltas(laws, EPSILONS))
        assert np.all(deltas(laws, EPSILONS) <= bound + 1e-12)
    assert largest[1] > 0.1 * bound[1]  # the adversaries do learn something
    # with a user deleted one report later, or with less noise, a greedy adversary exceeds the bound of this noise
    greedy = lambda answers: (1.0, 0.0, np.zeros(0)) if sum(answers) < reports else (0.0, 1.0, np.zeros(0))  # noqa: E731
    monitor = ThresholdMonitorEvolving(MonitorNoise(0.6 * cap, 0.0), 0.5, reports)
    laws = transcripts(monitor, 0, greedy, 10, unit == "add-remove")
    assert np.any(deltas(laws, EPSILONS) > bound)


@pytest.mark.parametrize("reports", [1, 2])
def test_no_enumerated_adversary_with_fractions_exceeds_the_renyi_bound(reports):
    noise = MonitorNoise(0.4, 2.0)
    for delta in (1e-2, 1e-3):
        epsilon = privacy.renyi_epsilon(delta, noise.scale, reports + 1)
        for number in range(6):
            monitor = ThresholdMonitorEvolving(noise, 0.3 + 0.4 * number, reports, "interval")
            laws = transcripts(monitor, 3, random_strategy(f"f{number}", 3, interval=True), 8, False)
            assert deltas(laws, [epsilon])[0] <= delta


def optimal_adversary(noise, reports, rounds, epsilon, unit, present=0):
    """An upper bound, close where the grid is fine, on what the best adversary of `rounds` queries gets at `epsilon`.

    Value iteration over r, the likelihood ratio of the worlds, and both counters. Values are convex in r, so linear
    interpolation never takes anything from the adversary.
    """
    log_r = np.linspace(-9, 9, 1201)
    r = np.exp(log_r)
    final = np.maximum(1 - math.exp(epsilon) * r, 0)
    # with Laplace noise the kinks at 0 and 1 are the best places; others stand for the tails
    places = np.concatenate([np.linspace(-0.5, 1.5, 9), [-3.0, 3.0, 8.0]])
    high, low = np.exp(noise.log_sf(places - 1)), np.exp(noise.log_sf(places))
    kinds = [(high, low, 0), (low, high, 1)]
    if unit == "add-remove":  # `present`: the world in which the user is there
        kinds = [(*kinds[present][:2], 0)]
    counters = list(product(range(reports + 1), range(reports + 1 if unit == "replacement" else 1)))
    value = dict.fromkeys(counters, final)
    for _ in range(rounds):
        new = {}
        for counter in counters:
            best = value[counter]
            for p, q, which in kinds:
                if counter[which] == reports:
                    continue
                after = tuple(c + (position == which) for position, c in enumerate(counter))
                yes = [p_ * np.interp(r * q_ / p_, r, value[after]) for p_, q_ in zip(p, q, strict=True)]
                no = [(1 - p_) * np.interp(r * (1 - q_) / (1 - p_), r, value[counter]) for p_, q_ in zip(p, q, strict=True)]
                best = np.maximum(best, np.max(np.array(yes) + np.array(no), axis=0))
            new[counter] = best
        value = new
    return float(np.interp(1.0, r, value[(0, 0)]))


@pytest.mark.parametrize(
    ("reports", "cap", "inner", "epsilon"), [(1, 0.3, 0.0, 0.8), (2, 0.4, 0.0, 0.8), (3, 0.5, 0.0, 1.0), (2, 0.4, 2.5, 0.8)]
)
def test_the_optimal_adversary_stays_below_the_bound_and_comes_close(reports, cap, inner, epsilon):
    noise = MonitorNoise(cap, inner)
    bound = privacy.delta_of_epsilon(epsilon, noise.scale, reports)
    best = optimal_adversary(noise, reports, 40, epsilon, "replacement")
    assert best <= bound * (1 + 2e-3)  # the grid gives the adversary a little
    assert best >= (0.85 if inner == 0 else 0.4) * bound
    assert best > privacy.delta_of_epsilon(epsilon, 1.15 * noise.scale, reports) or inner > 0  # a bound 15 % lower is broken


def test_add_remove_has_a_lower_bound_of_its_own():
    noise = MonitorNoise(0.3, 0.0)
    bound = privacy.delta_of_epsilon(0.8, noise.scale, 2, "add-remove")
    best = max(optimal_adversary(noise, 2, 60, 0.8, "add-remove", present) for present in (0, 1))
    assert 0.75 * bound <= best <= bound * (1 + 2e-3)


def test_an_explicit_adversary_attains_98_percent_of_the_bound():
    found = calibrate(1.0, 1e-6, 3)
    assert epsilon_attained(1e-6, MonitorNoise(found.noise.cap, 0.0), 3) >= 0.98
    assert 0.91 <= epsilon_attained(1e-6, found.noise, 3) <= 1


def test_the_explicit_adversary_s_law_is_that_of_its_transcripts():
    """At a size where a few queries are enough: enumerated, it gets what the closed form says, less the cut."""
    noise = MonitorNoise(0.5, 1.0)
    monitor = ThresholdMonitorEvolving(noise, 0.7, 1)

    def strategy(answers):
        return (1.0, 0.0, np.zeros(0)) if not any(answers) else (0.0, 1.0, np.zeros(0))

    laws = transcripts(monitor, 0, strategy, 13, False)
    exact = delta_attained(0.3, noise, 1, 0.7)
    assert 0.97 * exact <= np.maximum(laws[0] - math.exp(0.3) * laws[1], 0).sum() <= exact


def test_above_threshold_costs_at_most_its_epsilon():
    """All transcripts of Algorithm 2 by integration over the threshold; every query moves by one, up or down."""
    method = AboveThreshold.calibrated(1.0, 1e-6, 1, 0.0, composition="basic")
    assert 0.5 < above_threshold_loss(method, 5) <= 1.0


def test_svt_without_threshold_noise_keeps_its_renyi_promise():
    """Halting after c yeses of whatever kind: enumerated adaptive adversaries, both kinds of query mixed."""
    scale, reports = 3.0, 2
    method = AboveThreshold(0.0, reports, scale, 0.0, False)
    for delta in (3e-2, 1e-3):
        epsilon = privacy.renyi_epsilon(delta, scale, reports, shared=True)
        for kinds in ([1] * 10, [-1] * 10, [1, -1] * 5):
            assert deltas(halting_laws(method, kinds), [epsilon])[0] <= delta


def test_the_tight_proof_bounds_the_exact_loss():
    for reports in (1, 3, 20):
        found = calibrate(1.0, 1e-6, reports, method="tight-proof", unit="add-remove")
        assert tight_loss(found.noise, 1e-6, reports) == pytest.approx(1, rel=1e-6)
        assert privacy.epsilon_of_delta(1e-6, found.scale, reports, "add-remove") < 0.1
