"""User-level privacy of the continual means: the exact change of all that is released, against the noise."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

from evolvingdp.audit.exact.laws import pair_epsilon
from evolvingdp.continual_mean import algorithms, private_median, streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Buffered, Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import accounting
from evolvingdp.core.seeds import stream
from literal_continual_mean import released

SMALL = {"decay": (0.5, 0.9, 1.0), "batch": (1, 2, 3)}


@pytest.mark.parametrize(("decay", "batch"), list(itertools.product(*SMALL.values())))
def test_whatever_a_user_sends_and_whenever_its_samples_move_no_more_than_its_reach(decay, batch):
    """Every set of steps of one user among nine, every sign of each change: norms by the matrix of the filter.

    The worst change is of one sign, and some set of steps comes within a tenth of what is paid for.
    """
    settings = UserMean(2, 9, 1.0, 1e-6, horizon=9, batch=batch, decay=decay, reach=2.6, excess="drop", low=-1.0, high=3.0)
    size = settings.sums.capacity
    column = settings.sums.coefficients(size)
    matrix = sum(np.diag(np.full(size - late, column[late]), -late) for late in range(size))
    scale = settings.noise.scale * settings.budget / settings.resolution
    worst, dropped = 0.0, 0
    for mine in itertools.product((0, 1), repeat=9):
        users = 1 - np.array(mine)
        kept = settings.keeps(users) & (users == 0)
        dropped += sum(mine) - kept.sum()
        steps = np.flatnonzero(kept[: size * batch])
        columns = matrix[:, steps // batch]
        if not len(steps):
            continue
        signs = np.array(list(itertools.product((-1, 1), repeat=len(steps))))
        norms = np.linalg.norm(columns @ signs.T, axis=0)
        assert norms.argmax() in (0, len(signs) - 1)  # all down, or all up
        worst = max(worst, float(norms.max()))
    assert 0.9 * 2.6 < worst <= scale <= 2.6 * (1 + 1e-8)
    assert dropped > 0


@pytest.mark.parametrize("level", [3, 4, 6])
def test_private_median_costs_epsilon_and_attains_it(level):
    """All ways in which one user, who fills parts of two arrays, can move them between bins."""
    middles, epsilon = private_median.bins(level), 0.8
    worst = odds = 0.0
    for rest in itertools.product((0, len(middles) - 1), repeat=4):
        for one, other in itertools.product(itertools.product(range(len(middles)), repeat=2), repeat=2):
            laws = [private_median.probabilities(middles[[*rest, *mine]], epsilon, level) for mine in (one, other)]
            loss = np.log(laws[0] / laws[1])
            worst = max(worst, float(np.max(np.abs(loss))))
            odds = max(odds, float(np.ptp(loss)))
    assert worst <= epsilon * (1 + 1e-12)
    assert odds == pytest.approx(epsilon)  # a bin's cost grows by 2, another's falls by 2: 4 * epsilon / 4


def test_medians_and_trees_add_up_to_epsilon(monkeypatch):
    """The epsilons that reach the exponential mechanism, and what the trees' noise pays for, in a run of Algorithm 6."""
    settings = algorithms.full(12, 8, 6000.0, beta=0.9)
    users = streams.arrivals("round_robin", 12, 8, 96, stream(0, "order"))
    spent, real = [], private_median.probabilities
    with monkeypatch.context() as patch:
        patch.setattr(private_median, "probabilities", lambda *given: spent.append(given[1]) or real(*given))
        settings.release(users, np.zeros(96, dtype=int), stream(0, "noise"))
    assert len(spent) == settings.top_level - 1  # levels 2 to L
    assert max(spent) == pytest.approx(settings.epsilon / (2 * settings.top_level))
    pairs = zip(settings.levels, settings.noises, strict=True)
    trees = math.fsum(one.moved * settings.sums.l1 / noise.scale for one, noise in pairs)
    assert sum(spent) <= settings.epsilon / 2 == pytest.approx(trees)


class Uniform:
    def __init__(self, value):
        self.value = value

    def random(self):
        return self.value


def test_the_median_that_is_drawn_has_the_law_that_is_verified():
    """One uniform number decides: it is the bin whose share of [0, 1], one after the other, holds it."""
    means = np.array([0.1, 0.3, 0.35, 0.8, 0.9])

    def drawn(uniform):
        return private_median.draw(means, 1.5, 5, Uniform(uniform))

    def holds(epsilon):
        ends = np.cumsum(private_median.probabilities(means, epsilon, 5))
        grid = [*np.linspace(0, 1, 500, endpoint=False), *(ends[:-1] - 1e-9), *(ends[:-1] + 1e-9)]
        return [drawn(uniform) for uniform in grid] == private_median.bins(5)[np.searchsorted(ends, grid)].tolist()

    assert holds(1.5)
    assert not holds(1.65)
    rng = stream(0, "drawn")
    assert private_median.draw(means, 1.5, 5, stream(0, "drawn")) == drawn(rng.random())  # and that is all that it draws


@pytest.mark.parametrize("sums", [Buffered(8), Buffered(8, 0.2), Tree(8), Tree(8, 3), Buffered(3)])
def test_several_elements_of_a_user_move_what_is_released_by_no_more_than_is_charged(sums):
    """All places of up to four elements, and all signs of their changes; the first places are the worst, and attain it."""
    of_one = np.array([released(sums, unit) for unit in np.eye(sums.capacity)])
    for uses in range(1, min(4, sums.capacity) + 1):
        places = np.array(list(itertools.combinations(range(sums.capacity), uses)))
        signs = np.array(list(itertools.product((-1, 1), repeat=uses)))
        moved = np.einsum("su,puk->spk", signs, of_one[places])
        norms = np.linalg.norm(moved, axis=2)
        assert norms.max() <= sums.l2(uses) * (1 + 1e-12)
        if not isinstance(sums, Tree):
            assert np.linalg.norm(of_one[:uses].sum(axis=0)) == pytest.approx(sums.l2(uses))
        else:
            assert (np.abs(moved).sum(axis=2) <= uses * sums.l1 * (1 + 1e-12)).all()


@pytest.mark.parametrize("capacity", [1, 2, 100, 5000])
def test_the_factorizations_have_the_coefficients_that_the_charge_for_several_elements_rests_on(capacity):
    for decay in (0.1, 0.2, 0.9, 1.0):
        column = Buffered(capacity, decay).coefficients(capacity)
        assert (column >= 0).all()
        assert (np.diff(column) <= 0).all()


def exact_epsilon(mechanism):
    """Of all discrete Gaussian noise together, for an element that changes by 1: the loss is a function of the sum of the
    noise of the nodes that the element is in, all of which move by 1."""
    nodes = max(int(np.abs(released(mechanism.structure, element)).sum()) for element in np.eye(mechanism.horizon))
    far = math.ceil(12 * math.sqrt(mechanism.noise.variance))
    law = functools.reduce(np.convolve, [mechanism.noise.pmf(np.arange(-far, far + 1))] * nodes)
    return pair_epsilon([np.append(law, np.zeros(nodes)), np.append(np.zeros(nodes), law)], mechanism.delta)


def test_concentrated_privacy_bounds_the_exact_delta_of_discrete_gaussian_noise():
    """One to five nodes that move by one: the exact epsilon is below what is accounted, and 20 % more is not enough."""
    for rho in (0.02, 0.5):
        for epsilon in (0.5, 2.0):
            assert accounting.delta_of_gaussian(math.sqrt(2 * rho), epsilon) < accounting.delta_of_concentrated(rho, epsilon)
            orders = np.geomspace(1e-3, 30, 2000) + 1
            bounds = np.exp((orders - 1) * (orders * rho - epsilon)) * (1 - 1 / orders) ** orders / (orders - 1)
            assert accounting.delta_of_concentrated(rho, epsilon) == pytest.approx(min(bounds.min(), 1), rel=1e-3)
    assert accounting.delta_of_concentrated(accounting.concentrated_rho(1.0, 1e-6), 1.0) == pytest.approx(1e-6)
    for horizon in (1, 4, 16):
        mechanism = BinaryMechanism(horizon, 1.0, delta=1e-6, integer=True)
        assert 0.9 < exact_epsilon(mechanism) < 1
        assert exact_epsilon(BinaryMechanism(horizon, 1.2, delta=1e-6, integer=True)) > 1


@pytest.mark.parametrize("resolution", [1, 3])
def test_an_interval_is_never_wider_than_its_noise_is_for(resolution):
    """One narrow interval that binds at both ends, and no slack: a rounding outwards would cost more than epsilon."""
    widths = []
    for prior in np.linspace(0.3, 0.7, 41):
        settings = algorithms.wishful(4, 64, 1.0, float(prior), beta=0.9, resolution=resolution)
        low, high = settings.interval(0, float(prior))
        assert 0 < low < high < 64 * resolution
        widths.append((high - low) / settings.levels[0].moved)
    assert 1 - 1 / settings.levels[0].moved <= max(widths) <= 1
