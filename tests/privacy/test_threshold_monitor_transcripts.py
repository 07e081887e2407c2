"""ThresholdMonitor's exact privacy bound: never exceeded by enumerated adversaries, attained by an explicit one."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from evolvingdp.audit.exact.laws import deltas
from evolvingdp.core.noise import Laplace
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.calibration import paper_noise
from evolvingdp.sparse_vector.threshold_monitor import State, ThresholdMonitorEvolving

EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0])


class Forced:
    """Stands for a generator: all noise has this sign and no end."""

    def __init__(self, above):
        self.value = 1e15 if above else -1e15

    def laplace(self, loc, scale, size):
        return np.full(size, self.value)


def merged_laws(monitor, moves, depth, absent=False):
    """Probabilities of all answers to `depth` queries in both worlds, (2, laws), for one user whose inputs after n yeses are
    `moves[n]`, then 0; equal ratios are merged."""
    steps, states = [], [monitor.start(1), monitor.start(1)]
    for first, second in [*moves, *[(0.0, 0.0)] * depth][:depth]:
        yes, after = [], []
        for state, mine in zip(states, (first, 0.0 if absent else second), strict=True):
            yes.append(float(monitor.noise.sf(monitor.threshold - mine * state.active[0])))
            assert monitor.step(state, [mine], lambda data: data, Forced(False))[0] is state
            after.append(monitor.step(state, [mine], lambda data: data, Forced(True))[0])
        steps.append((1 - np.array(yes), np.array(yes)))
        states = after
    laws = [np.ones((1, 2))]  # after n yeses: the probabilities in both worlds, a row a likelihood ratio
    for rounds in range(depth):
        parts = [[] for _ in range(rounds + 2)]
        for n, law in enumerate(laws):
            for above in (0, 1):
                parts[n + above].append(law * steps[n][above])
        laws = [merged(np.concatenate(part)) for part in parts]
    return np.concatenate(laws).T


def merged(law):
    """Rows of the same log ratio, to nine digits, added up."""
    ratios = np.rint(1e9 * np.log(law[:, 0] / law[:, 1]))
    places = np.unique(ratios, return_inverse=True)[1]
    return np.column_stack([np.bincount(places, mass) for mass in law.T])


def greedy(reports, fraction=1.0):
    """The first input until it is deleted, then the second; with a `fraction` < 1 the last report overshoots."""
    until = [fraction] * reports + [1.0] * (fraction < 1)
    return [(value, 0.0) for value in until] + [(0.0, value) for value in until]


class DeletesOneReportLater(ThresholdMonitorEvolving):
    def _asked(self, state, values, reported):
        after = super()._asked(state, values, reported)
        return after if after is state else State(self, after.counted, after.moves, after.counted <= self.reports)


@pytest.mark.parametrize("unit", privacy.UNITS)
@pytest.mark.parametrize("reports", [1, 3])
def test_a_greedy_adversary_stays_below_the_exact_bound_and_breaks_it_where_something_is_missing(unit, reports):
    """By the shipped steps; with less noise, or where a user is deleted one report later, it learns more. Others are added
    to both worlds' sums alike, and answers about them are followed by the ledger's row."""
    noise, moves = Laplace(2.0), greedy(reports)
    bound = np.array([privacy.delta_of_epsilon(e, noise.scale, reports, unit) for e in EPSILONS])

    def learned(kind, scale, moves):
        laws = merged_laws(kind(Laplace(scale), 0.5, reports), moves, 40, unit == "add-remove")
        assert laws.sum(axis=1) == pytest.approx([1, 1])
        return np.array(deltas(laws, EPSILONS))

    right = learned(ThresholdMonitorEvolving, 2.0, moves)
    assert np.all(right <= bound + 1e-12)
    assert right[1] > 0.1 * bound[1]
    assert np.any(learned(ThresholdMonitorEvolving, 1.2, moves) > bound)
    assert np.any(learned(DeletesOneReportLater, 2.0, greedy(reports + 1)) > bound)


@pytest.mark.parametrize("unit", privacy.UNITS)
@pytest.mark.parametrize("reports", [1, 2, 3])
def test_queries_with_fractions_cost_one_report_more_and_no_less(reports, unit):
    """Greed with 0.99, and 1 at the end, attains nearly what `reports` + 1 cost."""
    epsilons = np.array([0.02, 0.05, 0.1])
    monitor = ThresholdMonitorEvolving(Laplace(20.0), 0.5, reports, "interval")
    attained = np.array(deltas(merged_laws(monitor, greedy(reports, 0.99), 40, unit == "add-remove"), epsilons))
    binary, interval = (
        np.array([privacy.delta_of_epsilon(epsilon, 20.0, budget, unit) for epsilon in epsilons])
        for budget in (reports, reports + 1)
    )
    assert np.all(attained <= interval)
    assert attained == pytest.approx(interval, rel=0.04)
    assert np.all(attained > 1.1 * binary)


def best_with_fractions(grid, scale, reports, rounds, epsilon):
    """What the best adversary of `rounds` coins gets at `epsilon`, exactly: queries in multiples of 1 / `grid`.

    Value iteration over the likelihood ratio e^(j lambda / grid), which coins move on its lattice, and both counters.
    """
    loss, full = 1 / scale / grid, reports * grid
    final = np.maximum(1 - np.exp(epsilon + loss * np.arange(-40 * grid, 40 * grid + 1)), 0)
    place = np.arange(len(final))

    def moved(value, steps):
        return value[np.clip(place + steps, 0, len(place) - 1)]

    counters = list(product(range(full + 1), repeat=2))
    value = dict.fromkeys(counters, final)
    for _ in range(rounds):
        new = {}
        for counter in counters:
            best = value[counter]
            for which, y in product((0, 1), range(1, grid + 1)):
                if counter[which] == full:
                    continue
                after = tuple(min(full, c + y * (place == which)) for place, c in enumerate(counter))
                yes, sign = 1 / (1 + math.exp(-y * loss if which == 0 else y * loss)), 1 - 2 * which
                best = np.maximum(best, yes * moved(value[after], -sign * y) + (1 - yes) * moved(value[counter], sign * y))
            new[counter] = best
        value = new
    return float(value[(0, 0)][40 * grid])


@pytest.mark.parametrize(("grid", "reports", "scale"), [(1, 2, 3.0), (4, 1, 3.0), (4, 1, 1.0), (2, 2, 3.0)])
def test_the_best_adversary_with_fractions_stays_below_its_bound(grid, reports, scale):
    best = best_with_fractions(grid, scale, reports, 60, 0.8)
    assert best <= privacy.delta_of_epsilon(0.8, scale, reports + 1 - 1 / grid) * (1 + 1e-9)
    assert best >= 0.8 * privacy.delta_of_epsilon(0.8, scale, reports + 1 - 1 / grid)
    if grid > 1:
        assert best > privacy.delta_of_epsilon(0.8, scale, reports + 0.5 - 1 / grid)
    else:
        assert best == pytest.approx(privacy.delta_of_epsilon(0.8, scale, reports), rel=1e-6)


@pytest.mark.parametrize("inner", [2.05, 4.0, 14.0, 50.0])
def test_the_share_of_yeses_above_the_cap_s_reach_is_an_infimum(inner):
    noise = paper_noise(inner)
    share = 2 * noise.tail_constant * math.exp(-noise.cap / noise.scale)
    y = np.linspace(-20 * noise.scale, 20 * noise.scale, 2001)
    ratios = np.exp(noise.log_sf(y) - Laplace(10 * noise.cap).log_sf(y - noise.cap))
    assert ratios.min() == pytest.approx(share, rel=1e-9)
    assert ratios[-1] == pytest.approx(share, rel=1e-9)
    assert np.all(np.diff(ratios) <= 1e-12)
