"""The fast continual means against the slow ones: step by step, line by line, matrix by matrix."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from evolvingdp.continual_mean import algorithms, choosing, prefix_sums, streams
from evolvingdp.continual_mean.prefix_sums import Buffered, Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import DiscreteLaplace, Laplace, Tape
from evolvingdp.core.seeds import stream
from literal_continual_mean import run as run_literally

N, M, STEPS = 300, 20, 3000
COMMON = {"horizon": STEPS, "excess": "drop"}
MEANS = {
    "naive": algorithms.naive(N, M, 5.0, **COMMON),
    "batches": UserMean(N, 12, 5.0, batch=7, integer=True, clip=True, **COMMON),
    "real values, few steps": UserMean(
        N, 9, 50.0, horizon=1500, excess="drop", batch=3, low=-1.0, high=3.0, resolution=2**20
    ),
    "Gaussian": UserMean(N, M, 5.0, 1e-6, **COMMON),
    "as far as they may reach": UserMean(N, M, 5.0, 1e-6, batch=11, decay=0.9, reach=4.0, **COMMON),
    "a cap and a reach": UserMean(N, 8, 5.0, 1e-6, batch=11, decay=0.1, reach=2.8, **COMMON),
    "users alike": UserMean(N, 8, 5.0, batch=11, alike=True, low=-1.0, high=3.0, **COMMON),
    "users alike, Gaussian": UserMean(N, M, 5.0, 1e-6, batch=11, decay=0.9, reach=4.0, alike=True, clip=True, **COMMON),
    "a short filter": UserMean(N, M, 5.0, 1e-6, batch=1, decay=0.8, reach=2.0, **COMMON),
}


@pytest.mark.parametrize("order", streams.ORDERS)
@pytest.mark.parametrize("name", MEANS)
def test_step_by_step_and_all_at_once_agree_on_every_order(name, order):
    """A service that stops after a third of the stream, and goes on from what it has written down."""
    settings, rng = MEANS[name], stream(0, "arrivals", order)
    users = streams.arrivals(order, N, M, STEPS, rng)
    bits = streams.bits(0.3, STEPS, rng) if settings.resolution == 1 else rng.uniform(-1, 3, STEPS)
    together = settings.release(users, bits, stream(5, "noise"))
    state, told = settings.start(stream(5, "noise")), []
    for step, (user, sample) in enumerate(zip(users.tolist(), bits.tolist(), strict=True)):
        if step == STEPS // 3:
            state = pickle.loads(pickle.dumps(state))
        state, release = settings.step(state, user, sample)
        told.append(release)
    for place, one in enumerate((together.estimate, together.standard_error, together.bias)):
        np.testing.assert_allclose([release[place] for release in told], one, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal([release.samples for release in told], together.samples)
    assert told[-1].dropped == together.dropped
    assert together.dropped > 0 or name in ("naive", "Gaussian") or order == "round_robin"


def test_a_sample_is_dropped_where_it_would_bring_its_user_too_far_by_the_matrix_of_the_filter():
    """Sample by sample, with norms of columns of C as it is; whole groups of a batch give the same."""
    settings = UserMean(6, 17, 1.0, 1e-6, batch=4, decay=0.8, reach=5.0, excess="drop", horizon=120)
    size, rng = settings.sums.capacity, stream(0, "columns")
    column = settings.sums.coefficients(size)
    matrix = sum(np.diag(np.full(size - late, column[late]), -late) for late in range(size))
    for order in range(5):
        users = rng.integers(0, 6, 120) if order else np.repeat(np.arange(6), 20)
        held, sent, kept = np.zeros((6, size)), [0] * 6, 0
        for step, user in enumerate(users.tolist()):
            more = held[user] + np.eye(size)[step // 4]
            sent[user] += 1
            if np.linalg.norm(matrix @ more) <= 5.0 * (1 + 1e-9) and sent[user] <= 17:
                held[user], kept = more, kept + 1
        assert max(sent) > 17  # the cap counts what is sent, also what the reach has dropped
        release = settings.release(users, np.zeros(120, dtype=int), stream(0, "noise"))
        assert (release.samples[-1], release.dropped) == (kept, 120 - kept)
        assert 0 < kept < 120


SUMS = [
    *(Tree(100, base, balanced) for base in (2, 3, 4, 5) for balanced in (False, True)),
    Tree(1), Tree(3000, 2), Tree(3000, 19, True), Tree(3000, 3001),
    Buffered(1), Buffered(100), Buffered(3000), Buffered(3000, 0.25),
]  # fmt: skip


@pytest.mark.parametrize("kind", [Laplace(3.0), DiscreteLaplace(3.0)])
@pytest.mark.parametrize("sums", SUMS, ids=str)
def test_prefix_noise_agrees_one_by_one_and_together(sums, kind, monkeypatch):
    monkeypatch.setattr(prefix_sums, "FIRST", 64)
    monkeypatch.setattr(prefix_sums, "LONGEST", 256)
    together = sums.all(sums.capacity, Tape(kind, stream(1, "tape")))
    np.testing.assert_allclose(sums.all(sums.capacity // 3, Tape(kind, stream(1, "tape"))), together[: sums.capacity // 3])
    first = noises = sums.online(Tape(kind, stream(1, "tape")))
    for length in range(1, sums.capacity + 1):
        noise, variance, noises = noises.of(length)
        assert noise == together[length - 1]
        assert variance == pytest.approx(float(sums.relative_variance(length)))
    assert first.of(1)[0] == together[0]  # also once others are known
    assert (together.dtype.kind == "i") == (kind == DiscreteLaplace(3.0) and isinstance(sums, Tree))
    with pytest.raises(ValueError, match="was asked for a prefix of"):
        noises.of(sums.capacity + 1)


@pytest.mark.parametrize("decay", [1.0, 0.8])
def test_buffers_are_close_to_the_square_root_that_they_stand_for(decay):
    step = np.arange(1, 64)
    exact = np.append(1.0, np.cumprod(decay * (1 - 0.5 / step)))
    np.testing.assert_allclose(Buffered(64, decay).coefficients(64), exact, atol=0.02)  # other rules are off by 0.3


@pytest.mark.parametrize("name", ["single tree", "multiple trees", "full"])
@pytest.mark.parametrize("order", ["round_robin", "zipf"])
def test_the_algorithms_line_by_line_give_the_same_estimates(name, order):
    """Medians are drawn alike; noise is not, as a tree draws level by level: both run without, and with other noise laws."""
    settings = {
        "single tree": algorithms.single_tree(60, M, 5.0, 0.3),
        "multiple trees": algorithms.multiple_trees(60, M, 5.0, 0.3),
        "full": algorithms.full(60, M, 5000.0, beta=0.5),
    }[name]
    rng = stream(0, "literal", order)
    users, samples = streams.arrivals(order, 60, M, 900, rng), streams.bits(0.3, 900, rng)
    pairs = list(zip(users.tolist(), samples.tolist(), strict=True))
    rngs = [Quiet(child) for child in stream(6, "noise").spawn(settings.n_trees)]
    slow = list(run_literally(settings, pairs, lambda tree: lambda: 0.0, rngs))
    fast = settings.release(users, samples, Quiet(stream(6, "noise")))
    np.testing.assert_allclose(fast.estimate, [estimate for estimate, _ in slow], rtol=1e-9, atol=1e-9)
    if name == "full":
        assert set(slow[-1][1].values()) == {1}  # every median was drawn, once


class Quiet:
    """A generator without noise, but for what places medians."""

    def __init__(self, rng):
        self.rng, self.random = rng, rng.random

    def spawn(self, count):
        return [Quiet(child) for child in self.rng.spawn(count)]

    def laplace(self, loc, scale, size):
        return np.zeros(size)


def test_a_plain_tree_is_the_sum_of_the_nodes_of_the_digits():
    """A prefix's noise is that of the prefix without its last digit, and of the blocks of that digit."""
    for base, sums in ((2, Tree(200, 2)), (3, Tree(200, 3))):
        noise = np.append(0.0, sums.all(200, Tape(Laplace(1.0), stream(2, "nodes"))))
        for length in range(1, 201):
            block = max(base**level for level in range(9) if length % base**level == 0)
            digit = length // block % base
            assert sums.relative_variance(length) == sums.relative_variance(length - digit * block) + digit
        differences = noise[1:] - noise[:-1]
        assert len(np.unique(np.round(differences, 9))) == 200  # each step has noise of its own


def test_coordinates_are_one_mechanism_each():
    rng = stream(0, "coordinates")
    users = streams.arrivals("random", N, M, 500, rng)
    samples = np.stack([streams.bits(mean, 500, rng) for mean in (0.2, 0.8)], axis=1)
    settings = choosing.recommended(N, M, 8.0, horizon=500)
    released = settings.but(dimensions=2).release_all(users, samples, stream(7, "noise"))
    children = stream(7, "noise").spawn(2)
    for column in (0, 1):
        alone = settings.but(epsilon=4.0).release(users, samples[:, column], children[column])
        np.testing.assert_array_equal(released[column].estimate, alone.estimate)
