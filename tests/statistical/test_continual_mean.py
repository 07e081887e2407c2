"""The laws of noise and errors of the continual means; each check rejects a law that is 10 % wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from evolvingdp.continual_mean import algorithms, offline, streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.experiments.past_the_paper import rungs
from evolvingdp.continual_mean.prefix_sums import Toeplitz, Tree
from evolvingdp.core.noise import DiscreteLaplace, Laplace
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


@pytest.mark.parametrize(
    "sums", [Tree(100), Tree(100, 3), Tree(100, honaker=True), Tree(100, 3, honaker=True), Toeplitz(100)]
)
def test_prefix_noise_has_the_variance_that_is_stated(sums):
    mechanism = BinaryMechanism(100, 1.0, delta=1e-6, sums=sums)
    runs = np.array([mechanism.release(np.zeros(100), stream(0, "prefix", run)) for run in range(12_000)])
    for length in (1, 63, 64, 100):
        stated = mechanism.standard_error(length) ** 2
        assert variance_fits(runs[:, length - 1], stated) > ALPHA
        assert variance_fits(runs[:, length - 1], 1.1 * stated) < ALPHA


def test_a_laplace_tree_of_one_node_has_laplace_noise_of_the_calibrated_scale():
    mechanism = BinaryMechanism(1, 0.5, sensitivity=3.0)
    draws = np.array([mechanism.release([0.0], stream(0, "one", run))[0] for run in range(30_000)])
    assert kstest(draws / 6.0, "laplace").pvalue > ALPHA
    assert kstest(draws / 6.6, "laplace").pvalue < ALPHA
    assert mechanism.noise == Laplace(6.0)


@pytest.mark.parametrize("name", ["naive", "recommended"])
def test_the_standard_error_of_a_release_is_that_of_its_noise_and_samples(name):
    """Gaussian noise and fair bits, whose variance is the largest: estimates are nearly normal about 1/2."""
    make = {
        "naive": lambda: algorithms.naive(40, 4, 2.0, delta=1e-6),
        "recommended": lambda: algorithms.recommended(40, 4, 2.0, delta=1e-6, clip=False),
    }
    settings = make[name]()
    users = streams.arrivals("random", 40, 4, 160, stream(0, "users"))
    last = []
    for run in range(9000):
        samples = streams.bits(0.5, 160, stream(0, "samples", run))
        released = offline.release(settings, users, samples, stream(0, "noise", run))
        last.append(released.estimate[-1] - 0.5)
    stated = released.standard_error[-1] ** 2
    assert variance_fits(np.array(last), stated) > ALPHA
    assert variance_fits(np.array(last), 1.1 * stated) < ALPHA
    assert variance_fits(np.array(last), stated / 1.1) < ALPHA


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
