"""The smoother: a local level against dense linear algebra, the choice by halves, intervals near jumps, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from evolvingdp.core import smoothing
from evolvingdp.core.seeds import stream
from evolvingdp.core.smoothing import smooth
from evolvingdp.evolving.rivals import once
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.streams import BitStream, steps

PERIODS, SERIES, NOISE = 60, 30, 0.01
TIME = np.arange(PERIODS)
STREAMS = {
    "jump": np.where(TIME < 22, 0.3, 0.5),
    "small jump": np.where(TIME < 36, 0.3, 0.33),
    "often a jump": np.repeat([0.3, 0.34, 0.4, 0.5, 0.47, 0.31, 0.35, 0.37, 0.48, 0.46, 0.33, 0.3], 5),
    "drift": 0.3 + 0.1 * TIME / PERIODS,
    "adoption": 0.05 + 0.8 / (1 + np.exp(-10 * (TIME / PERIODS - 0.5))),
}


def noisy(truth, *names):
    rng = stream(0, "smoothing", *names)
    variances = NOISE**2 * rng.uniform(0.7, 1.4, (PERIODS, SERIES))
    return truth[:, None] + rng.normal(size=variances.shape) * np.sqrt(variances), variances, rng


def test_the_local_level_is_that_of_dense_linear_algebra():
    rng = stream(0, "smoothing", "dense")
    known, variances = np.arange(12) != 4, rng.uniform(0.5, 2.0, 12)
    values = np.cumsum(rng.normal(size=12)) + rng.normal(size=12) * np.sqrt(variances)
    walk = np.minimum.outer(np.arange(12), np.arange(12)).astype(float)

    def levels(step):
        return 1e4 + step * walk

    def unlikely(log_step):
        among = levels(np.exp(log_step))[np.ix_(known, known)] + np.diag(variances[known])
        return -multivariate_normal.logpdf(values[known], np.full(known.sum(), values[0]), among)

    step = np.exp(minimize_scalar(unlikely, bounds=(-6, 4), method="bounded").x)
    gain = levels(step)[:, known] @ np.linalg.inv(levels(step)[np.ix_(known, known)] + np.diag(variances[known]))
    width = np.diag(levels(step) - gain @ levels(step)[known])
    given = np.where(known, variances, np.inf)[:, None]
    found, spread = smoothing._local_level(np.where(known, values, 0.0)[:, None], given)
    assert found[:, 0] == pytest.approx(values[0] + gain @ (values - values[0])[known], abs=1e-3)
    assert spread[:, 0] == pytest.approx(width, rel=2e-3)


def test_what_is_constant_has_the_weighted_mean_as_its_level():
    values, variances = np.array([[1.0], [3.0], [1.5], [2.5]]), np.array([[4.0], [4.0], [2.0], [4.0]])
    found, width = smoothing._local_level(values, variances)
    weights = 1 / variances / (1 / variances).sum()
    assert found == pytest.approx(np.full((4, 1), (weights * values).sum()), rel=1e-5)
    assert width == pytest.approx(np.full((4, 1), 1 / (1 / variances).sum()), rel=1e-5)


@pytest.mark.parametrize("name", STREAMS)
def test_halves_choose_averages_for_jumps_and_a_level_for_drifts_and_intervals_cover(name):
    truth = STREAMS[name]
    values, variances, rng = noisy(truth, name)
    found = smooth(values, variances, rng)
    covered = (found.low <= truth[:, None]) & (truth[:, None] <= found.high)
    if not name.startswith("often"):  # there, either
        assert found.averaged.mean() >= 0.8 if "jump" in name else found.averaged.mean() <= 0.2
    assert covered.mean() >= 0.93
    if "jump" in name:
        jumps = np.flatnonzero(np.diff(truth))
        assert np.mean([covered[max(0, jump - 1) : jump + 3] for jump in jumps]) >= 0.88
    assert np.abs(found.estimates - truth[:, None]).mean() <= 0.9 * np.abs(values - truth[:, None]).mean()


def test_a_missing_period_is_filled_and_moves_nothing():
    values, variances, _ = noisy(STREAMS["drift"], "missing")
    gone = variances.copy()
    gone[30] = np.inf
    rows = [np.where(np.arange(PERIODS)[:, None] == 30, other, values) for other in (np.nan, 1e6)]
    first, second = (smooth(each, gone, stream(0, "smoothing", "halves")) for each in rows)
    assert (first.estimates == second.estimates).all()
    assert first.estimates[30] == pytest.approx(first.estimates[[29, 31]].mean(axis=0), abs=0.005)


def test_noise_that_is_correlated_from_period_to_period_is_refused():
    rng, refused = stream(0, "smoothing", "correlated"), 0
    for _ in range(20):
        steps_, correlation = rng.normal(size=PERIODS), 0.95
        noise = [steps_[0]]
        for step in steps_[1:]:
            noise.append(correlation * noise[-1] + np.sqrt(1 - correlation**2) * step)
        try:
            smooth(0.3 + NOISE * np.array(noise), np.full(PERIODS, NOISE**2), rng)
        except ValueError as error:
            refused += "independent from period to period" in str(error)
    assert refused == 20
    for name, truth in STREAMS.items():
        smoothing.independent(*noisy(truth, name, "independent")[:2])


@pytest.mark.parametrize(
    ("values", "variances", "said"),
    [
        (np.zeros(3), np.eye(3), "variances must have the shape of estimates"),
        (np.zeros(3), 1.0, "variances must have the shape of estimates"),
        (np.zeros(1), np.ones(1), "T >= 2"),
        (np.zeros(3), np.array([1.0, 0.0, 1.0]), "variances must be > 0"),
        (np.array([0.0, np.nan, 0.0]), np.ones(3), "estimates finite"),
        (np.zeros((3, 2)), np.array([[1.0, np.inf]] * 3), "finite somewhere in each series"),
    ],
)
def test_what_is_no_series_is_refused(values, variances, said):
    with pytest.raises(ValueError, match=said):
        smooth(values, variances, stream(0, "smoothing", "refused"))


def test_users_once_are_smoothed_with_the_variances_of_what_is_estimated():
    """At epsilon 6 a share near 0 has a fiftieth of the variance of 1/2: with that of 1/2, neighbours would be too alike."""
    data = BitStream.make([200_000], steps(40, 0.01, {21: 0.5})[None], 1)
    settings, rng = Once(200_000, 40, 6.0), stream(0, "smoothing", "once")
    tally = once.simulate(settings, data, rng)
    found, truth = settings.smooth(tally, rng), data.truth
    assert ((found.low[:, 1] <= truth) & (truth <= found.high[:, 1])).mean() >= 0.9
    widths = (found.high - found.low)[:, 1]
    assert widths[:20].mean() <= 0.5 * widths[20:].mean()
