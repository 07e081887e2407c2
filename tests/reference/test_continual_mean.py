"""The fast continual means against the slow ones: step by step, line by line, node by node."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from evolvingdp.continual_mean import algorithms, choosing, coordinates, offline, online, streams, windows
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.continual_mean.prefix_sums import Anytime, BalancedTree, Banded, Buffered, Toeplitz, Tree
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Tape
from evolvingdp.core.seeds import stream
from literal_continual_mean import run as run_literally

N, M, STEPS = 300, 20, 3000
SETTINGS = {
    "naive": algorithms.naive(N, M, 5.0, horizon=STEPS),
    "wishful": algorithms.wishful(N, M, 5.0, 0.3),
    "single tree": algorithms.single_tree(N, M, 5.0, 0.3),
    "multiple trees": algorithms.multiple_trees(N, M, 5.0, 0.3),
    "full": algorithms.full(N, M, 500.0),
    "full, capped": algorithms.full(N, M, 500.0, capped=True),
    "recommended": choosing.users_alike(N, M, 50.0),
    "recommended, gaussian": choosing.users_alike(N, M, 50.0, delta=1e-6),
    "one tree, best": algorithms.naive(N, M, 5.0, horizon=STEPS, branching=0, integer=True, clip=True),
    "buffered": algorithms.naive(N, M, 5.0, delta=1e-6, horizon=STEPS, buffered=True),
    "bands, few allowed": algorithms.bands(N, 9, 5.0, excess="drop", branching=0, integer=True),
    "bands, integer Gaussian": algorithms.bands(N, M, 5.0, delta=1e-6, branching=4, honaker=True, integer=True),
    "bands, buffered": algorithms.bands(N, M, 5.0, delta=1e-6, buffered=True),
    "ternary trees": choosing.users_alike(N, M, 5.0, branching=3, integer=False),
}
STRUCTURES = [
    Tree(100),
    Tree(100, 3),
    Tree(100, honaker=True),
    Tree(100, 4, honaker=True),
    Tree(1, honaker=True),
    BalancedTree(100, 3),
    BalancedTree(100, 4),
    BalancedTree(3000, 19),
    BalancedTree(1),
    Toeplitz(100),
    Buffered(1),
    Buffered(3000),
    Banded(3000, 7),
    Banded(100, 200, True),
]


def step_by_step(settings, users, samples, rng):
    """A service that stops after a third of the stream, and goes on from what it has written down."""
    state = online.start(settings, rng)
    releases = []
    for user, sample in zip(users.tolist(), samples.tolist(), strict=True):
        if len(releases) == len(users) // 3:
            state = pickle.loads(pickle.dumps(state))
        state, release = online.step(settings, state, user, sample)
        releases.append(release)
    return releases


def assert_equal(settings, users, samples, seed=5):
    together = offline.release(settings, users, samples, stream(seed, "noise"))
    single = step_by_step(settings, users, samples, stream(seed, "noise"))
    np.testing.assert_array_equal([release.estimate for release in single], together.estimate)
    np.testing.assert_array_equal([release.standard_error for release in single], together.standard_error)
    np.testing.assert_array_equal([release.bias for release in single], together.bias)
    np.testing.assert_array_equal([release.samples for release in single], together.samples)
    assert single[-1].dropped == together.dropped
    return together


@pytest.mark.parametrize("order", streams.ORDERS)
@pytest.mark.parametrize("name", SETTINGS)
def test_online_and_offline_agree_bit_for_bit_on_every_order(name, order):
    rng = stream(0, "arrivals", order)
    users = streams.arrivals(order, N, M, STEPS, rng)
    assert_equal(SETTINGS[name], users, streams.bits(0.3, STEPS, rng))


@pytest.mark.parametrize("options", [{}, {"branching": 3, "honaker": False}])
def test_they_agree_where_levels_start_new_trees_with_narrower_intervals(options):
    rng = stream(0, "narrow")
    settings = choosing.users_alike(400, 256, 200.0, horizon=30_000, beta=0.5, **options)
    users = streams.arrivals("contiguous", 400, 256, 30_000, rng)
    opened = []
    once = online._open
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(online, "_open", lambda *args: (opened.append(args[1]), once(*args)))
        assert_equal(settings, users, streams.bits(0.3, 30_000, rng))
    assert len(opened) > settings.n_trees + 1  # more than one tree for some levels


@pytest.mark.parametrize("options", [{"honaker": True}, {"branching": 4}])
def test_they_agree_where_samples_are_real_and_some_are_dropped(options):
    rng = stream(0, "dropped")
    users, samples = rng.integers(0, N + 20, STEPS), rng.uniform(-1, 3, STEPS)
    settings = choosing.users_alike(
        N, 7, 50.0, excess="drop", resolution=2**20, horizon=1500, low=-1.0, high=3.0, integer=False, **options
    )
    assert assert_equal(settings, users, samples).dropped == STEPS - 1500


@pytest.mark.parametrize("name", ["naive", "one tree, best", "buffered", "bands, few allowed", "bands, integer Gaussian"])
def test_snapshots_of_a_service_are_those_of_the_whole_stream(name):
    rng, settings = stream(0, "snapshots"), SETTINGS[name]
    users = streams.arrivals("zipf", N, M, STEPS, rng)
    samples, state = streams.bits(0.3, STEPS, rng), online.start(settings, stream(5, "noise"))
    kept = [windows.snapshot(settings, state)]
    for step, (user, sample) in enumerate(zip(users.tolist(), samples.tolist(), strict=True), start=1):
        online.step(settings, state, user, sample)
        if step % 500 == 0:
            kept.append(windows.snapshot(settings, state))
    assert kept == windows.snapshots(settings, users, samples, stream(5, "noise"), range(0, STEPS + 1, 500))
    whole, released = (
        windows.between(settings, kept[0], kept[-1]),
        offline.release(settings, users, samples, stream(5, "noise")),
    )
    assert whole.estimate == pytest.approx(released.estimate[-1])
    assert (whole.bias, whole.samples) == (pytest.approx(released.bias[-1]), released.samples[-1])


@pytest.mark.parametrize("split", ["even", "harmonic"])
def test_noise_at_every_step_agrees_online_and_offline(split):
    rng = stream(0, "per step")
    users, samples = streams.arrivals("zipf", 50, 40, 500, rng), rng.random(500)
    mechanism = PerStepLaplace(600, 2.0, split)
    state = mechanism.start(stream(8, "noise"))
    single = [mechanism.step(state, user, sample)[1] for user, sample in zip(users.tolist(), samples.tolist(), strict=True)]
    np.testing.assert_array_equal(single, mechanism.release(users, samples, stream(8, "noise")))


@pytest.mark.parametrize("name", ["recommended", "recommended, gaussian"])
def test_the_state_does_not_grow_with_the_stream(name):
    settings = SETTINGS[name]
    users = streams.arrivals("round_robin", N, M, N * M, stream(0, "users")).tolist()
    state, sizes = online.start(settings, stream(0, "noise")), []
    for position, user in enumerate(users, start=1):
        online.step(settings, state, user, 1)
        if position in (N * M // 10, N * M):
            kept = (state.counts, state.sums, state.trees, state.intervals, state.buffers, state.early)
            sizes.append([len(part) for part in kept])
    assert sizes[0] == sizes[1]


def test_noise_without_an_end_agrees_one_by_one_and_together():
    together = Anytime().all(5000, Tape(Gaussian(2.0), stream(1, "tape")))
    advance = Anytime().online(Tape(Gaussian(2.0), stream(1, "tape")))
    np.testing.assert_array_equal([advance() for _ in range(5000)], together)
    np.testing.assert_array_equal(Anytime().all(3, Tape(Gaussian(2.0), stream(1, "tape"))), together[:3])


@pytest.mark.parametrize("kind", [Laplace(3.0), DiscreteLaplace(3.0), Gaussian(2.0), DiscreteGaussian(2.0)])
@pytest.mark.parametrize("sums", STRUCTURES)
def test_prefix_noise_agrees_one_by_one_and_together(sums, kind):
    together = sums.all(sums.capacity, Tape(kind, stream(1, "tape")))
    advance = sums.online(Tape(kind, stream(1, "tape")))
    np.testing.assert_array_equal([advance() for _ in range(sums.capacity)], together)
    with pytest.raises(ValueError, match="was asked for a prefix of"):
        advance()


@pytest.mark.parametrize("branching", [2, 3])
def test_a_plain_tree_is_the_sum_of_the_nodes_of_the_digits(branching):
    draws = Laplace(1.0).draw(4096, stream(2, "nodes"))[:200]  # node k ends at k
    fast = Tree(200, branching).all(200, Tape(Laplace(1.0), stream(2, "nodes")))
    for length in range(1, 201):
        total, end, block = 0.0, 0, branching**10
        while block:
            for _ in range(length // block % branching):
                end += block
                total += draws[end - 1]
            block //= branching
        assert fast[length - 1] == pytest.approx(total, abs=1e-12)


def test_honaker_is_the_best_linear_estimate_from_a_node_and_below():
    """Least squares over all nodes below a root of 8 leaves: the root's variance, and the refined root itself."""
    nodes = [range(first, first + size) for size in (1, 2, 4, 8) for first in range(0, 8, size)]
    design = np.array([[leaf in node for leaf in range(8)] for node in nodes], dtype=float)
    covariance = np.linalg.inv(design.T @ design)
    assert Tree(8, honaker=True).relative_variance(8) == pytest.approx(np.ones(8) @ covariance @ np.ones(8))
    draws = Gaussian(1.0).draw(4096, stream(3, "nodes"))[:15]
    ends = [(end, size) for end in range(1, 9) for size in (1, 2, 4, 8) if end % size == 0]  # the order of the draws
    noise = np.array([draws[ends.index((node.stop, len(node)))] for node in nodes])
    best = np.ones(8) @ covariance @ design.T @ noise
    assert Tree(8, honaker=True).all(8, Tape(Gaussian(1.0), stream(3, "nodes")))[-1] == pytest.approx(best)


def test_the_square_root_factorization_squares_to_running_sums():
    size = 64
    root = np.array([[Toeplitz(size).coefficients[i - j] if i >= j else 0.0 for j in range(size)] for i in range(size)])
    np.testing.assert_allclose(root @ root, np.tril(np.ones((size, size))), atol=1e-12)
    sums = Toeplitz(size)
    np.testing.assert_allclose(sums.relative_variance(np.arange(1, size + 1)), (root**2).sum(axis=1))
    assert sums.l2_of(1) ** 2 == pytest.approx((root**2).sum(axis=0).max())
    draws = Gaussian(1.0).draw(4096, stream(4, "z"))[:size]
    np.testing.assert_allclose(sums.all(size, Tape(Gaussian(1.0), stream(4, "z"))), root @ draws, atol=1e-12)


@pytest.mark.parametrize(("size", "buffers"), [(1, 2), (2, 3), (64, 2), (64, 8)])
def test_the_buffered_factorization_is_one_of_running_sums_with_falling_coefficients(size, buffers):
    sums = Buffered(size, buffers)
    first = sums.coefficients
    assert (first > 0).all()
    assert (np.diff(first) < 0).all()
    released = np.array([[first[i - j] if i >= j else 0.0 for j in range(size)] for i in range(size)])
    draws = np.eye(size)  # what one draw adds to all sums
    added = np.linalg.solve(released.T, np.tril(np.ones((size, size))).T).T @ draws
    np.testing.assert_allclose(sums.relative_variance(np.arange(1, size + 1)), (added**2).sum(axis=1), rtol=1e-9)
    noise = Gaussian(1.0).draw(4096, stream(4, "z"))[:size]
    np.testing.assert_allclose(sums.all(size, Tape(Gaussian(1.0), stream(4, "z"))), added @ noise, atol=1e-9)


def test_a_balanced_tree_adds_and_subtracts_the_blocks_of_the_digits():
    """Each prefix, from what each draw adds: an odd base, digits -2 to 2, blocks around the multiples of the next size."""
    sums = BalancedTree(62, 5)

    def digits(length):
        found = []
        for _ in range(3):
            digit = (length + 2) % 5 - 2
            found.append(digit)
            length = (length - digit) // 5
        return found[::-1]

    law = Laplace(1.0)
    noise = dict(zip(range(1, 63), sums.all(62, Tape(law, stream(2, "nodes"))), strict=True)) | {0: 0.0}
    for length in range(1, 63):
        first, second, third = digits(length)
        assert 25 * first + 5 * second + third == length
        assert sums.relative_variance(length) == abs(first) + abs(second) + abs(third)
        near, far = length - third, length - third - 5 * second  # prefixes with fewer digits
        steps = [noise[near + step] - noise[near + step - 1] for step in range(min(third, 0) + 1, max(third, 0) + 1)]
        assert noise[length] - noise[near] == pytest.approx(np.sign(third) * sum(steps))
        assert abs(near - far) == 5 * abs(second)


@pytest.mark.parametrize("name", ["single tree", "multiple trees", "full"])
@pytest.mark.parametrize("order", ["round_robin", "zipf"])
def test_the_algorithms_line_by_line_give_the_same_estimates(name, order):
    settings = SETTINGS[name].but(n_users=60) if name != "full" else algorithms.full(60, M, 5000.0, beta=0.5)
    rng = stream(0, "literal", order)
    users, samples = streams.arrivals(order, 60, M, 900, rng), streams.bits(0.3, 900, rng)
    fast = offline.release(settings, users, samples, stream(6, "noise"))
    rngs = stream(6, "noise").spawn(settings.n_trees)

    def supply(tree):
        tapes = []  # opened at the first draw, behind the median

        def draw():
            if not tapes:
                sums = settings.prefix_sums(settings.capacity_of(0))
                tapes.append(Tape(settings.noise(tree, sums, settings.user_sensitivity(tree)), rngs[tree]))
            return tapes[0].next()

        return draw

    slow = list(run_literally(settings, zip(users.tolist(), samples.tolist(), strict=True), supply, rngs))
    np.testing.assert_allclose(fast.estimate, [estimate for estimate, _ in slow], rtol=1e-9, atol=1e-9)
    if name == "full":
        assert set(slow[-1][1].values()) == {1}  # every median was drawn, once


def test_coordinates_are_one_mechanism_each():
    rng = stream(0, "coordinates")
    users = streams.arrivals("random", N, M, 500, rng)
    samples = np.stack([streams.bits(mean, 500, rng) for mean in (0.2, 0.8)], axis=1)
    settings = choosing.users_alike(N, M, 8.0)
    estimates = coordinates.release(settings, users, samples, stream(7, "noise"))
    children = stream(7, "noise").spawn(2)
    for column in (0, 1):
        alone = offline.release(settings.but(epsilon=4.0), users, samples[:, column], children[column])
        np.testing.assert_array_equal(estimates[:, column], alone.estimate)
