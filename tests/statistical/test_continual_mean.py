"""The laws of noise and errors of the continual means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from chosen import Chosen
from scipy.stats import chi2, kstest, norm

from evolvingdp.continual_mean import choosing, streams, windows
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import Laplace
from evolvingdp.core.seeds import stream
from support import ALPHA


def test_a_laplace_tree_of_one_node_has_laplace_noise_of_the_calibrated_scale():
    mechanism = BinaryMechanism(1, 0.5, sensitivity=3.0)
    draws = mechanism.noise.draw(100_000, stream(0, "one"))
    assert mechanism.release([0.0], stream(0, "one"))[0] == draws[0]
    assert kstest(draws / 6.0, "laplace").pvalue > ALPHA
    assert kstest(draws / 6.6, "laplace").pvalue < ALPHA
    assert mechanism.noise == Laplace(6.0)


def test_the_error_of_a_window_is_the_one_that_is_stated():
    """The last 20 of 60 samples: what each draw of noise adds, found by running the mechanism, has the variance stated."""
    days = windows.Days(UserMean(12, 5, 2.0, 1e-6), 6, 2)
    users, bits = np.arange(60) % 12, streams.bits(0.4, 60, stream(0, "window", "bits"))

    def window(rng):
        kept = days.release(users, bits, np.repeat(np.arange(6), 10), rng)
        return days.between(kept[3], kept[5])

    silent = Chosen()
    found = window(silent)
    assert found.estimate == pytest.approx(bits[40:].mean())
    assert (found.samples, found.dropped, found.bias) == (20, 0, 0)
    added = np.array([window(Chosen(moved=[unit])).estimate for unit in np.eye(120)]) - found.estimate
    assert math.sqrt((added**2).sum()) * silent.asked[0].scale == pytest.approx(found.standard_error)


@pytest.mark.parametrize("name", ["Gaussian batches", "reach, some dropped", "users alike"])
def test_the_standard_error_of_a_release_is_that_of_its_noise_and_samples(name):
    """Of fair bits, whose variance is the largest.  An estimate is linear in samples and draws: what each adds is found by
    running the mechanism, and is all that it does, as other runs show."""
    settings = {
        "Gaussian batches": UserMean(40, 4, 2.0, 1e-6, batch=10),
        "reach, some dropped": UserMean(40, 4, 2.0, 1e-6, batch=3, decay=0.9, reach=1.9, excess="drop"),
        "users alike": UserMean(40, 3, 2.0, 1e-6, batch=7, alike=True, excess="drop"),
    }[name]
    users = streams.arrivals("random", 40, 4, 160, stream(0, "users"))

    def last(samples, rng):
        return settings.release(users, samples, rng).estimate[-1]

    none, silent = np.zeros(160, dtype=int), Chosen()
    rest = last(none, silent)
    several = len(silent.children)
    scales = [child.asked[0].scale for child in silent.children or [silent]]
    of_sample = np.array([last(unit, Chosen()) for unit in np.eye(160, dtype=int)]) - rest
    units = np.eye(160)
    moves = [[[[unit] if tree == own else [] for tree in range(several)] for unit in units] for own in range(several)]
    of_draw = np.array([[last(none, Chosen(moved=moved)) for moved in of_tree] for of_tree in moves or [units[:, None]]])
    of_draw -= rest
    for run in range(10):
        samples, noise = streams.bits(0.5, 160, stream(0, "samples", run)), stream(0, "noise", run)
        drawn = [rng.normal(0, scale, 160) for rng, scale in zip(noise.spawn(several) or [noise], scales, strict=True)]
        simulated = rest + samples @ of_sample + np.einsum("td,td->", of_draw, np.array(drawn))
        assert last(samples, stream(0, "noise", run)) == pytest.approx(simulated)
    stated = settings.release(users, none, stream(0, "noise")).standard_error[-1] ** 2
    scaled = of_draw * np.array(scales)[:, None]
    exact = ((of_sample - 1 / 160) ** 2).sum() / 4 + (scaled**2).sum()
    assert exact == pytest.approx(stated, rel=1e-6)


N_USERS, MOST, STEPS = 300, 128, 6000
RUNS = 4
HONEST = np.sqrt(chi2.ppf(1 - ALPHA, RUNS) / RUNS)


def over_stated(make, population, order, given):
    """Root mean square over runs, early and late, of what the distance to the mean has beyond the stated bias, over the
    standard error; `given`: whether the settings were chosen by arrivals in this order, or by none.
    """
    before = streams.arrivals(order, N_USERS, MOST, STEPS, stream(0, "before", order)) if given else None
    settings = make(N_USERS, MOST, 4.0, 1e-6, arrivals=before, horizon=STEPS)
    excess = []
    for run in range(RUNS):
        users, bits = streams.readings(population, order, N_USERS, MOST, STEPS, stream(0, "differ", population, order, run))
        released = settings.release(users, bits, stream(0, "noise", population, order, run))
        off = np.abs(released.estimate - np.cumsum(bits) / np.arange(1, STEPS + 1))
        excess.append((np.maximum(off - released.bias, 0) / released.standard_error)[[STEPS // 10, STEPS // 2, -1]])
    return np.sqrt(np.mean(np.square(excess), axis=0))


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("order", streams.ORDERS)
@pytest.mark.parametrize("population", streams.POPULATIONS)
def test_what_is_recommended_states_errors_that_hold_for_any_users_in_any_order(population, order, given):
    assert (over_stated(choosing.recommended, population, order, given) < HONEST).all()


@pytest.mark.parametrize("run", range(20))
def test_it_holds_for_random_users_and_orders(run):
    """Numbers of samples, means and orders drawn at random; the settings were chosen for another horizon and cap."""
    rng = stream(0, "random users", run)
    users = np.repeat(np.arange(200), rng.geometric(1 / rng.integers(2, 60), 200))
    rng.shuffle(users[: rng.integers(len(users))])
    means = rng.beta(*rng.uniform(0.1, 2, 2), 200)
    uniform = rng.random(len(users))
    most, steps, delta = int(rng.integers(4, 200)), int(rng.integers(500, 9000)), 1e-6 if run < 10 else 0.0
    for make, one_mean in ((choosing.recommended, False), (choosing.users_alike, False), (choosing.users_alike, True)):
        bits = (uniform < (means[0] if one_mean else means[users])).astype(int)
        settings = make(200, most, 2.0, delta, horizon=steps)
        released = settings.release(users, bits, stream(0, "random users", "noise", run))
        off = np.abs(released.estimate - np.cumsum(bits) / np.arange(1, len(bits) + 1))
        excess = np.maximum(off - (0 if one_mean else released.bias), 0) / released.standard_error
        assert (excess[[9, len(bits) // 2, -1]] < norm.isf(ALPHA / 6)).all()


def test_where_the_most_active_differ_users_alike_err_more_than_the_standard_error_and_the_bias_covers_it():
    """Where those who are left out have other values than the rest, all of the bias."""
    settings = choosing.users_alike(N_USERS, MOST, 4.0, horizon=STEPS)
    users, bits = streams.readings("active kind", "zipf", N_USERS, MOST, STEPS, stream(0, "differ", "bias"))
    kept = settings.keeps(users)
    kept[STEPS - STEPS % settings.batch :] = False
    for values in (bits, kept.astype(int), 1 - kept):
        released = settings.release(users, values, stream(0, "noise", "bias"))
        off, chance = abs(released.estimate[-1] - values.mean()), norm.isf(ALPHA / 2) * released.standard_error[-1]
        assert chance < off < released.bias[-1] + chance < 1
    assert off == pytest.approx(released.bias[-1], abs=chance)


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
