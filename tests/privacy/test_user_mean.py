"""User-level privacy of the continual means: the exact change of all that is released, against the noise."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from evolvingdp.audit.exact import sensitivity
from evolvingdp.audit.exact.probes import Chosen
from evolvingdp.audit.exact.sensitivity import binary_cost, hides, neighbours, user_mean_cost, user_mean_costs
from evolvingdp.continual_mean import algorithms, choosing, coordinates, offline, private_median, streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Anytime, BalancedTree, Banded, Buffered, Toeplitz, Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import accounting
from evolvingdp.core.noise import DiscreteLaplace, Tape
from evolvingdp.core.seeds import stream

NARROW = {"beta": 0.9, "prior_deviations": 0.2}  # intervals are narrow in a stream this short
CASES = {
    "naive": algorithms.naive(4, 8, 1.0),
    "wishful": algorithms.wishful(4, 8, 1.0, 0.4),
    "single tree": algorithms.single_tree(4, 8, 1.0, 0.4),
    "multiple trees": algorithms.multiple_trees(4, 8, 1.0, 0.4),
    "multiple trees, capped": algorithms.multiple_trees(4, 8, 1.0, 0.4, capped=True, beta=0.9),
    "full": algorithms.full(4, 8, 1000.0, beta=0.9),
    "one tree, best": algorithms.naive(4, 8, 1.0, branching=0),
    "one tree, buffered": algorithms.naive(4, 8, 1.0, delta=1e-6, buffered=True),
    "bands": algorithms.bands(4, 7, 1.0, branching=0, integer=True),
    "bands, Gaussian tree": algorithms.bands(4, 8, 1.0, delta=1e-6, honaker=True),
    "recommended": choosing.users_alike(4, 8, 1.0, integer=False),
    "recommended, integer": choosing.users_alike(4, 8, 1.0),
    "ternary": choosing.users_alike(4, 8, 1.0, integer=False, branching=3),
    "recommended, long blocks": choosing.users_alike(4, 64, 400.0, integer=False, **NARROW),
    "recommended, long blocks, integer": choosing.users_alike(4, 64, 400.0, **NARROW),
}


@pytest.mark.parametrize("order", ["contiguous", "round_robin", "random"])
@pytest.mark.parametrize("name", CASES)
def test_a_user_moves_all_node_sums_by_no_more_than_the_noise_allows(name, order):
    settings = CASES[name]
    steps = settings.n_users * settings.samples_per_user
    users = streams.arrivals(order, settings.n_users, settings.samples_per_user, steps, stream(0, "order"))
    pairs = list(neighbours(users))
    costs = user_mean_costs(settings, users, pairs)
    allowed = accounting.gaussian_mu(settings.epsilon, settings.delta) ** 2 if settings.delta else settings.tree_epsilon
    assert max(costs) <= allowed * (1 + 1e-12)
    assert hides(settings, users, *pairs[int(np.argmax(costs))])


@pytest.mark.parametrize("name", ["naive", "multiple trees", "full", "recommended, integer", "ternary"])
def test_a_change_of_the_nodes_that_lacks_one_hides_nothing(monkeypatch, name):
    """The check that the release is the same after noise has moved has power: one node less, and it is not."""
    settings = CASES[name]
    users = streams.arrivals("round_robin", 4, 8, 32, stream(0, "order"))
    one = np.zeros(32, dtype=int)
    pair = one, np.where(users == 0, 1, one)
    assert hides(settings, users, *pair)
    real = sensitivity.node_changes

    def lacking(*arguments):
        changes = real(*arguments)
        ((change, drawn), *rest) = changes[0]
        return [[(np.where(np.arange(len(change)) == np.flatnonzero(change)[0], 0, change), drawn), *rest], *changes[1:]]

    monkeypatch.setattr(sensitivity, "node_changes", lacking)
    assert not hides(settings, users, *pair)


def test_a_narrow_interval_is_what_makes_long_blocks_private():
    """With the interval's width doubled behind the noise's back, the same check fails: it has power."""
    settings = CASES["recommended, long blocks"]
    users = streams.arrivals("round_robin", 4, 64, 256, stream(0, "order"))
    pairs = list(neighbours(users))
    honest = max(user_mean_costs(settings, users, pairs))
    with pytest.MonkeyPatch.context() as patch:
        real = UserMean.noise
        patch.setattr(UserMean, "noise", lambda self, tree, sums, width: real(self, tree, sums, width / 2))
        assert max(user_mean_costs(settings, users, pairs)) > settings.epsilon >= honest


@pytest.mark.parametrize(
    ("settings", "attained"),
    [
        (algorithms.naive(8, 1, 1.0), 1.0),  # element 1 of 8 is in 4 nodes
        (choosing.users_alike(8, 1, 1.0, integer=False), 1.0),
        (choosing.users_alike(8, 8, 1.0, integer=False), 1.0),  # level 0 to 3, each tree full
    ],
)
def test_the_bound_is_attained_where_the_cap_is_tight(settings, attained):
    steps = settings.n_users * settings.samples_per_user
    users = streams.arrivals("round_robin", settings.n_users, settings.samples_per_user, steps, stream(0, "order"))
    zeros = np.zeros(steps, dtype=int)
    assert user_mean_cost(settings, users, zeros, (users == 0).astype(int)) == pytest.approx(attained)


@pytest.mark.parametrize("buffered", [True, False])
def test_gaussian_settings_have_the_mu_of_their_epsilon_and_delta(buffered):
    settings = choosing.users_alike(8, 8, 1.0, 1e-6, buffered=buffered, branching=2)
    users = streams.arrivals("round_robin", 8, 8, 64, stream(0, "order"))
    zeros = np.zeros(64, dtype=int)
    squared = user_mean_cost(settings, users, zeros, (users == 0).astype(int))
    assert squared == pytest.approx(accounting.gaussian_mu(1.0, 1e-6) ** 2)  # user 0 comes first everywhere: the worst place
    assert accounting.delta_of_gaussian(math.sqrt(squared), 1.0) == pytest.approx(1e-6)
    of_four = coordinates.of_one(settings, 4)
    assert user_mean_cost(of_four, users, zeros, (users == 0).astype(int)) * 4 == pytest.approx(squared)


def test_gaussian_delta_agrees_with_the_integral():
    x = np.linspace(-12, 14, 400_001)
    mu, epsilon = 0.7, 0.9
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi), np.exp(-((x - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
    integral = np.trapezoid(np.maximum(density[1] - math.exp(epsilon) * density[0], 0), x)
    assert accounting.delta_of_gaussian(mu, epsilon) == pytest.approx(integral, rel=1e-5)
    assert accounting.delta_of_gaussian(accounting.gaussian_mu(2.0, 1e-6), 2.0) == pytest.approx(1e-6)


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


def test_binary_mechanism_is_attained_and_a_tenth_less_noise_is_not_private():
    mechanism = BinaryMechanism(8, 1.0)
    assert binary_cost(mechanism, 8) == pytest.approx(1.0)
    mutant = BinaryMechanism(8, 1.0 / 0.9)
    assert mutant.noise.scale == pytest.approx(0.9 * mechanism.noise.scale)
    assert binary_cost(mutant, 8) > 1.0


def test_discrete_laplace_never_has_less_than_the_scale_asked_for():
    law = DiscreteLaplace(1.7)
    assert 1.7 <= law._numerator / 1024 < 1.7 + 1 / 1024


def test_medians_and_trees_add_up_to_epsilon():
    """The epsilons that reach the exponential mechanism, and the exact change of the trees, in one run of Algorithm 6."""
    settings = algorithms.full(12, 8, 6000.0, beta=0.9)
    users = streams.arrivals("round_robin", 12, 8, 96, stream(0, "order"))
    spent = []
    real = private_median.probabilities
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            private_median, "probabilities", lambda m, epsilon, level: spent.append(epsilon) or real(m, epsilon, level)
        )
        offline.release(settings, users, np.zeros(96, dtype=int), stream(0, "noise"))
    assert len(spent) == settings.top_level - 1  # levels 2 to L
    assert max(spent) == pytest.approx(settings.epsilon / (2 * settings.top_level))
    worst = max(user_mean_costs(settings, users, neighbours(users)))
    assert worst + sum(spent) <= settings.epsilon


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


def test_composed_coordinates_spend_the_delta_they_may():
    one = coordinates.of_one(algorithms.full(100, 16, 8.0), 64, 1e-6)
    assert accounting.delta_of_reports(one.epsilon, 8.0, 64) == pytest.approx(1e-6, rel=1e-6)


@dataclass(frozen=True)
class Fixed:
    values: np.ndarray
    variance: float = 1.0

    def draw(self, size, rng):
        return np.concatenate([self.values, np.zeros(size - len(self.values), dtype=self.values.dtype)])


@pytest.mark.parametrize("sums", [Tree(9, 2, True), Tree(9, 3, True), Tree(9, 2)])
def test_with_integer_noise_the_outputs_are_a_function_of_the_noisy_nodes(sums):
    """Two streams, and noise moved by the difference of their node sums: the same nodes must give the same outputs, exactly.

    A sum plus a rounded combination of the noise would not do: how it is rounded tells the sum.
    """
    one, other = np.zeros(9, dtype=int), np.array([1, 0, 0, 1, 1, 0, 0, 0, 1])
    draws = DiscreteLaplace(3.0).draw(40, stream(0, "nodes"))
    blocks = [sums.branching**level for level in range(sums.height)]
    ends = [(end, block) for end in range(1, 10) for block in blocks if end % block == 0]
    if not sums.honaker:
        ends = [(end, max(block for block in blocks if end % block == 0)) for end in range(1, 10)]
    change = np.array([sum(other[end - block : end]) - sum(one[end - block : end]) for end, block in ends])
    outputs = []
    for elements, tape in ((one, draws[: len(ends)]), (other, draws[: len(ends)] - change)):
        noise = sums.all(9, Tape(Fixed(tape), stream(0, "unused")))
        assert noise.dtype.kind == "i"
        outputs.append(np.cumsum(elements) + noise)
    np.testing.assert_array_equal(*outputs)


def test_a_level_that_opens_narrower_trees_costs_no_more():
    settings = choosing.users_alike(400, 256, 200.0, horizon=30_000, integer=False, beta=0.5)
    users = streams.arrivals("contiguous", 400, 256, 30_000, stream(0, "order"))
    one = streams.bits(0.5, len(users), stream(0, "bits"))
    assert 0 < user_mean_cost(settings, users, one, np.where(users == 3, 1, one)) <= settings.epsilon
    opened = []
    real = UserMean.noise
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UserMean, "noise", lambda self, tree, *rest: opened.append(tree) or real(self, tree, *rest))
        offline.release(settings, users, one, stream(0, "noise"))
    assert len(opened) > len(set(opened))


@pytest.mark.parametrize("sums", [Toeplitz(8), Buffered(8, 3), Tree(8, honaker=True), Tree(8, 3), Toeplitz(3)])
def test_several_elements_of_a_user_move_what_is_released_by_no_more_than_is_charged(sums):
    """All places of up to four elements, and all signs of their changes; the first places are the worst, and attain it."""
    of_one = np.array([sensitivity.released(sums, unit) for unit in np.eye(sums.capacity)])
    for uses in range(1, min(4, sums.capacity) + 1):
        places = np.array(list(itertools.combinations(range(sums.capacity), uses)))
        signs = np.array(list(itertools.product((-1, 1), repeat=uses)))
        moved = np.einsum("su,puk->spk", signs, of_one[places])
        norms = np.linalg.norm(moved, axis=2)
        assert norms.max() <= sums.l2_of(uses) * (1 + 1e-12)
        if not isinstance(sums, Tree) or sums.honaker:
            assert np.linalg.norm(of_one[:uses].sum(axis=0)) == pytest.approx(sums.l2_of(uses))
        assert sums.l2_of(uses) <= uses * sums.l2_of(1) * (1 + 1e-12)
        assert (np.abs(moved).sum(axis=2) <= uses * sums.l1 * (1 + 1e-12)).all()


@pytest.mark.parametrize("capacity", [1, 2, 100, 5000])
def test_the_factorizations_have_the_coefficients_that_the_charge_for_several_elements_rests_on(capacity):
    banded = Banded(capacity, 9), Banded(capacity, 90, True)
    columns = [sums.coefficients for sums in (Toeplitz(capacity), Buffered(capacity), Buffered(capacity, 2), *banded)]
    for column in (*columns, Anytime().coefficients_of(capacity)):
        assert (column >= 0).all()
        assert (np.diff(column) <= 0).all()


@pytest.mark.parametrize("gap", [2, 3])
@pytest.mark.parametrize("sums", [Toeplitz(9), Buffered(9, 3), Banded(9, 3), Banded(9, 3, True), Tree(9, honaker=True)])
def test_elements_that_are_far_apart_move_less_and_what_is_charged_is_attained(sums, gap):
    """All places of two or three elements at least `gap` apart, and all signs."""
    of_one = np.array([sensitivity.released(sums, unit) for unit in np.eye(9)])
    for uses in (2, 3):
        places = [p for p in itertools.combinations(range(9), uses) if min(np.diff(p)) >= gap]
        signs = np.array(list(itertools.product((-1, 1), repeat=uses)))
        norms = np.linalg.norm(np.einsum("su,puk->spk", signs, of_one[np.array(places)]), axis=2)
        assert norms.max() <= sums.l2_of(uses, gap) * (1 + 1e-12)
        if not isinstance(sums, Tree):
            assert norms.max() == pytest.approx(sums.l2_of(uses, gap))
        assert sums.l2_of(uses, gap) < sums.l2_of(uses)


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
        assert 0.9 < sensitivity.discrete_gaussian_epsilon(mechanism) < 1
        assert sensitivity.discrete_gaussian_epsilon(BinaryMechanism(horizon, 1.2, delta=1e-6, integer=True)) > 1


@pytest.mark.parametrize(("branching", "integer"), [(2, False), (3, True), (4, True), (5, False)])
def test_a_balanced_tree_hides_every_element_at_the_noise_it_adds(branching, integer):
    """Noise that is moved by the change of the nodes, those with elements to come included, gives the same sums."""
    mechanism = BinaryMechanism(12, 1.0, integer=integer, sums=BalancedTree(12, branching))
    costs = []
    for element in np.eye(12, dtype=int):
        moved, silent = -sensitivity.released(mechanism.structure, element), Chosen()
        first = mechanism.release(np.zeros(12, dtype=int), silent)
        np.testing.assert_array_equal(mechanism.release(element, Chosen(moved=[moved])), first)
        costs.append(sensitivity.cost(moved, silent.asked[0]))
    assert max(costs) <= 1
    assert max(costs) == pytest.approx(1, rel=1e-3 if integer else 1e-12)  # the scale of integers is rounded up


@pytest.mark.parametrize("resolution", [1, 3])
def test_an_interval_is_never_wider_than_its_noise_is_for(resolution):
    """One narrow interval that binds at both ends, and no slack: a rounding outwards would cost more than epsilon."""
    widths = []
    for prior in np.linspace(0.3, 0.7, 41):
        settings = algorithms.wishful(4, 64, 1.0, float(prior), beta=0.9, resolution=resolution)
        interval = settings.interval(0, settings.relative_prior)
        assert 0 < interval.low < interval.high < 64 * resolution
        widths.append((interval.high - interval.low) / settings.sensitivities[0])
    assert 1 - 1 / settings.sensitivities[0] <= max(widths) <= 1
    worst = algorithms.wishful(4, 64, 1.0, float(np.linspace(0.3, 0.7, 41)[np.argmax(widths)]), beta=0.9)
    assert 0.95 < sensitivity.worst_user_mean_cost(worst, "contiguous", (0,)) <= 1


@pytest.mark.parametrize("estimate", [-0.5, 0.5, 1.5])
def test_a_bootstrapped_prior_that_noise_has_put_outside_the_range_is_moved_to_its_end(estimate):
    """All totals of a block of 256 bits, projected by a tree whose lower levels say `estimate` nearly exactly."""
    settings = choosing.users_alike(300, 512, 1.0, 1e-6, beta=0.9, prior_deviations=1e-9)
    half = settings.bootstrap_half(9, 0.0)
    totals, level = np.arange(257), np.full(257, 9)
    below = np.tile([[1e6 * estimate], [1e6], [0.0]], (1, 257))
    _, (part,) = offline._tree(settings, level, totals, 9, {}, below, stream(0, "noise"))
    center = round(min(max(estimate, 0.0), 1.0) * 256)
    np.testing.assert_array_equal(part.elements, np.clip(totals, max(center - half, 0), min(center + half, 256)))
