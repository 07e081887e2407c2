"""The laws of noise and errors of the continual means; each check rejects a law that is 10 % wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from evolvingdp.audit.exact.probes import Chosen
from evolvingdp.continual_mean import algorithms, offline, streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.experiments.past_the_paper import rungs
from evolvingdp.continual_mean.prefix_sums import Toeplitz, Tree
from evolvingdp.core.noise import DiscreteLaplace, Laplace, Tape
from evolvingdp.core.seeds import stream
from support import ALPHA, fits


def variance_fits(draws, variance):
    """Two-sided p-value for the variance of normal draws with mean 0."""
    below = chi2.cdf(np.sum(np.square(draws)) / variance, len(draws))
    return 2 * min(below, 1 - below)


@pytest.mark.parametrize("scale", [0.4, 2.5, 30.0])
def test_discrete_laplace_has_its_law(scale):
    draws = DiscreteLaplace(scale).draw(400_000, stream(0, "discrete", round(10 * scale)))
    exact = np.ceil(scale * 1024) / 1024
    support = np.arange(-int(40 * scale) - 40, int(40 * scale) + 41)

    def law(scale):
        weights = np.exp(-np.abs(support) / scale)
        return dict(zip(support.tolist(), (weights / weights.sum()).tolist(), strict=True))

    assert fits(Counter(draws.tolist()), law(exact), len(draws)) > ALPHA
    assert fits(Counter(draws.tolist()), law(1.1 * exact), len(draws)) < ALPHA
    assert DiscreteLaplace(scale).variance == pytest.approx(sum(p * z * z for z, p in law(exact).items()), rel=1e-6)


@dataclass(frozen=True)
class Given:
    """Noise whose first draws are given."""

    first: np.ndarray
    variance: float = 1.0

    def draw(self, size, rng):
        return np.concatenate([self.first, np.zeros(size - len(self.first))])


@pytest.mark.parametrize(
    "sums", [Tree(100), Tree(100, 3), Tree(100, honaker=True), Tree(100, 3, honaker=True), Toeplitz(100)]
)
def test_prefix_noise_has_the_variance_that_is_stated(sums):
    """Noise is linear in its draws: what each draw adds gives all variances, and runs without number."""
    mechanism = BinaryMechanism(100, 1.0, delta=1e-6, sums=sums)
    added = np.array([sums.all(100, Tape(Given(unit), None)) for unit in np.eye(200)])
    assert not added[-1].any()  # there are no more draws
    np.testing.assert_allclose((added**2).sum(axis=0), sums.relative_variance(np.arange(1, 101)), rtol=1e-12)
    released = mechanism.release(np.zeros(100), stream(0, "prefix"))
    np.testing.assert_allclose(released, mechanism.noise.draw(200, stream(0, "prefix")) @ added, atol=1e-8 * released.std())
    runs = mechanism.noise.draw(25_000 * 200, stream(0, "prefix", "runs")).reshape(-1, 200) @ added[:, [0, 62, 63, 99]]
    for place, length in enumerate((1, 63, 64, 100)):
        stated = mechanism.standard_error(length) ** 2
        assert variance_fits(runs[:, place], stated) > ALPHA
        assert variance_fits(runs[:, place], 1.1 * stated) < ALPHA


def test_a_laplace_tree_of_one_node_has_laplace_noise_of_the_calibrated_scale():
    mechanism = BinaryMechanism(1, 0.5, sensitivity=3.0)
    draws = mechanism.noise.draw(100_000, stream(0, "one"))
    assert mechanism.release([0.0], stream(0, "one"))[0] == draws[0]
    assert kstest(draws / 6.0, "laplace").pvalue > ALPHA
    assert kstest(draws / 6.6, "laplace").pvalue < ALPHA
    assert mechanism.noise == Laplace(6.0)


@pytest.mark.parametrize("name", ["naive", "recommended"])
def test_the_standard_error_of_a_release_is_that_of_its_noise_and_samples(name):
    """Gaussian noise and fair bits, whose variance is the largest: estimates are nearly normal about 1/2.

    An estimate is linear in samples and draws.  What each adds is found by running the mechanism; that is all of what it
    does, as other runs show; and so it is run many times at once.
    """
    make = {
        "naive": lambda: algorithms.naive(40, 4, 2.0, delta=1e-6),
        "recommended": lambda: algorithms.recommended(40, 4, 2.0, delta=1e-6, clip=False),
    }
    settings = make[name]()
    users = streams.arrivals("random", 40, 4, 160, stream(0, "users"))

    def last(samples, rng):
        return offline.release(settings, users, samples, rng).estimate[-1]

    none, silent, trees = np.zeros(160, dtype=int), Chosen(), range(settings.n_trees)
    rest = last(none, silent)
    scales = [drawn.scale for child in silent.children for drawn in child.asked]
    assert len(scales) == settings.n_trees
    of_sample = np.array([last(unit, Chosen()) for unit in np.eye(160, dtype=int)]) - rest
    moves = [[[[unit] if tree == own else [] for tree in trees] for unit in np.eye(160)] for own in trees]
    of_draw = np.array([[last(none, Chosen(moved=moved)) for moved in of_tree] for of_tree in moves])
    of_draw -= rest

    def simulated(samples, noise):  # (runs, 160), (runs, trees, 160)
        return rest + samples @ of_sample + np.einsum("rtd,td->r", noise, of_draw)

    for run in range(20):
        samples = streams.bits(0.5, 160, stream(0, "samples", run))
        children = stream(0, "noise", run).spawn(settings.n_trees)
        noise = [child.normal(0, scale, 160) for child, scale in zip(children, scales, strict=True)]
        assert last(samples, stream(0, "noise", run)) == pytest.approx(simulated(samples[None], np.array([noise]))[0])
    samples = streams.bits(0.5, 25_000 * 160, stream(0, "samples")).reshape(-1, 160)
    noise = stream(0, "noise").normal(size=(25_000, settings.n_trees, 160)) * np.array(scales)[:, None]
    stated = offline.release(settings, users, none, stream(0, "noise")).standard_error[-1] ** 2
    measured = simulated(samples, noise) - 0.5
    assert variance_fits(measured, stated) > ALPHA
    assert variance_fits(measured, 1.1 * stated) < ALPHA
    assert variance_fits(measured, stated / 1.1) < ALPHA
    scaled = of_draw * np.array(scales)[:, None]
    assert (of_sample**2).sum() / 4 + (scaled**2).sum() == pytest.approx(stated, rel=1e-6)


def over_stated(population, order, name):
    """Root mean square over four runs of the last estimate's distance to the mean of all readings, over what it states."""
    n_users, cap, horizon = 500, 512, 500 * 512 if order == "random" else 100_000
    settings = rungs.rung(name, n_users, cap, 4.0, horizon, 1e-6)
    ratios = []
    for run in range(4):
        users, bits = streams.readings(population, order, n_users, cap, horizon, stream(0, "differ", order, run))
        released = offline.release(settings, users, bits, stream(0, "noise", order, name, run))
        ratios.append((released.estimate[-1] - bits.mean()) / released.standard_error[-1])
    return np.sqrt(np.mean(np.square(ratios)))


HONEST = np.sqrt(chi2.ppf(1 - ALPHA, 4) / 4)


@pytest.mark.parametrize(
    ("population", "order", "name", "honest"),
    [
        ("two kinds", "random", rungs.RECOMMENDED_DELTA, False),
        ("two kinds", "random", rungs.UNPROJECTED_DELTA, True),
        ("two kinds", "random", rungs.EQUAL_DELTA, True),
        ("active kind", "zipf", rungs.RECOMMENDED, False),
        ("active kind", "zipf", rungs.UNPROJECTED_DELTA, False),
        ("active kind", "zipf", rungs.EQUAL, True),
        ("active kind", "zipf", rungs.EQUAL_DELTA, True),
    ],
)
def test_where_users_differ_the_stated_error_holds_without_projection_or_without_weights(population, order, name, honest):
    assert (over_stated(population, order, name) < HONEST) is np.bool_(honest)


def test_populations_are_what_they_say():
    rng = stream(0, "populations")
    assert streams.user_means("active kind", 25, rng).tolist() == [1.0] * 3 + [0.0] * 22
    mixed = streams.user_means("two kinds", 1000, rng)
    assert mixed.sum() == 100
    assert mixed[:100].sum() < 50
    beta = streams.user_means("beta", 20_000, rng)
    assert kstest(beta, "beta", (3, 7)).pvalue > ALPHA
    assert kstest(beta, "beta", (3.3, 7.7)).pvalue < ALPHA
    users, bits = streams.readings("two kinds", "random", 50, 40, 2000, rng)
    assert set(np.bincount(users, bits) / 40) == {0.0, 1.0}  # each user is of one kind
    with pytest.raises(ValueError, match="population must be one of beta, two kinds, active kind, got 'odd'"):
        streams.user_means("odd", 5, rng)
