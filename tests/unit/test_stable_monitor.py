"""Integer noise and StableMonitor: exact laws, an attained bound, and what nobody holds."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.adversary import delta_attained
from evolvingdp.sparse_vector.histograms import histogram
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.stable_monitor import StableMonitor, smallest_detectable
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA, fits

NOISES = {"plain": IntegerNoise(2.0), "limit": IntegerNoise(2.0, 5), "grid": IntegerNoise(2.0, None, 4)}


def law(noise, low=-60, high=60):
    """The probability of each multiple of 1 / grid."""
    z = np.arange(low * noise.grid, high * noise.grid + 1) / noise.grid
    return dict(zip(z.tolist(), (noise.sf(z) - noise.sf(z + 1 / noise.grid)).tolist(), strict=True))


@pytest.mark.parametrize("name", NOISES)
def test_integer_draws_have_the_closed_form_law(name):
    noise, draws = NOISES[name], 12_000
    seen = Counter(noise.sample(draws, stream(0, "integers", name)).tolist())
    assert fits(seen, law(noise), draws) > ALPHA
    wrong = IntegerNoise(2.2, noise.limit, noise.grid)
    assert fits(seen, law(wrong), draws) < ALPHA


@pytest.mark.parametrize("name", NOISES)
def test_tails_and_quantiles_agree(name):
    noise = NOISES[name]
    z = np.arange(-40, 41) / noise.grid
    assert noise.sf(z) + noise.cdf(z) == pytest.approx(1, abs=1e-14)
    for share in (0.3, 1e-3, 1e-9):
        high, low = noise.isf(share), noise.lower_quantile(share)
        assert float(noise.sf(high)) <= share < float(noise.sf(high - 1 / noise.grid))
        assert float(noise.cdf(low)) <= share < float(noise.cdf(low + 1 / noise.grid))


@pytest.mark.parametrize(("reports", "epsilon"), [(1, 1.0), (3, 0.5), (10, 3.0)])
def test_the_bound_is_attained_with_integers(reports, epsilon):
    """One below the threshold, where the answer is a randomized response of exactly 1 / (1 + e^lambda)."""
    noise = IntegerNoise.calibrated(epsilon, 1e-6, reports)
    p = 1 / (1 + math.exp(noise.loss))
    assert noise.sf([1, 0]) == pytest.approx([p, 1 - p], rel=1e-13)
    promised = privacy.delta_of_epsilon(epsilon, noise.scale, reports)
    assert delta_attained(epsilon, noise, reports, 1.0) == pytest.approx(promised, rel=1e-9)
    assert 0.998e-6 < promised <= 1e-6


def test_every_answer_is_a_mixture_of_three_and_a_rare_revelation():
    """The premise of the chapter's theorem on StableMonitor, at all sums."""
    for noise in (IntegerNoise(2.0, 30), IntegerNoise(20.0, 300)):
        s = np.arange(0, 4 * noise.limit)
        yes, no = noise.sf(noise.limit - s), noise.cdf(noise.limit - s)
        grow = math.exp(noise.loss)
        assert yes[0] == 0
        assert np.all(np.diff(yes) >= 0)
        assert np.all(yes[1:] - grow * yes[:-1] <= noise.revealed + 1e-15)
        assert np.all(no[:-1] <= grow * no[1:] + 1e-15)
        assert yes[1] == pytest.approx(noise.revealed)
    assert IntegerNoise(2.0).revealed == 0


def test_a_stable_monitor_spends_all_of_delta_and_not_more():
    made = StableMonitor.calibrated(1.0, 1e-6, 1000, 2**40, 3)
    noise = made.monitor.noise
    reports = privacy.delta_of_epsilon(1.0, noise.scale, 3)
    assert reports + 2000 * noise.revealed <= 1e-6
    assert reports + 2000 * IntegerNoise(noise.scale, noise.limit - 1).revealed > 0.99e-6
    assert made.monitor.threshold == noise.limit
    larger = StableMonitor.calibrated(1.0, 1e-6, 1000, 2**200, 3)
    assert larger.monitor == made.monitor  # the domain does not matter


def test_a_stable_monitor_reports_what_is_heavy_deletes_and_ends():
    made = StableMonitor(ThresholdMonitorEvolving(IntegerNoise(1e-3, 3), 3.0, 1), 3, 10)
    state, rng, seen = made.start(7), stream(0, "stable"), []
    for inputs in ([5, 5, 5, 5, 1, 1, 2], [5, 5, 5, 5, 7, 7, 7], [7] * 7):
        state, release = made.step(state, inputs, rng)
        seen.append(release.elements.tolist())
    assert seen == [[5], [7], []]  # all have counted once, and are deleted
    with pytest.raises(ValueError, match="horizon must be larger to go on: 3 steps are paid for"):
        made.step(state, [0] * 7, rng)


def test_noise_on_a_grid_serves_queries_with_fractions():
    noise = IntegerNoise.calibrated(1.0, 1e-6, 3, grid=8)
    assert noise.scale == pytest.approx(privacy.smallest_scale(1.0, 1e-6, 4 - 1 / 8), rel=1e-3)
    z = np.arange(-100, 100) / 8
    for step in (1, 3, 8):
        assert np.abs(noise.log_sf(z + step / 8) - noise.log_sf(z)).max() <= noise.loss * step / 8 * (1 + 1e-12)
    monitor = ThresholdMonitorEvolving(noise, 5.0, 3, "interval")
    _, above = monitor.run(monitor.start(4), stream(0, "values").integers(0, 9, size=(20, 4)) / 8, stream(0, "noise"))
    assert len(above) == 20


@pytest.mark.parametrize(("grid", "value"), [(1, 0.01), (2, 0.25), (8, 1e-9)])
def test_values_between_the_points_of_the_noise_s_grid_are_refused(grid, value):
    """The counter would pay for `value` where the answer's odds move by those of a whole step of the grid."""
    monitor = ThresholdMonitorEvolving(IntegerNoise.calibrated(1.0, 1e-6, 1, grid=grid), 40.0, 1, "interval")
    state, rng = monitor.start(3), stream(0, "noise")
    with pytest.raises(ValueError, match=f"multiples of 1/{grid}, the grid of its noise, got {value} for user 1"):
        monitor.step(state, None, lambda data: np.array([1.0, value, 0.0]), rng)
    monitor.step(state, None, lambda data: np.array([1.0, 1 / grid, 0.0]), rng)


def test_no_method_of_the_library_finds_less_than_the_lower_bound():
    for epsilon, delta, horizon in ((1.0, 1e-6, 10**6), (0.3, 1e-9, 1000), (4.0, 1e-3, 50)):
        least = smallest_detectable(epsilon, delta, horizon, 2**32)
        own = StableMonitor.calibrated(epsilon, delta, horizon, 2**32, 1).monitor
        assert own.threshold - own.noise.lower_quantile(0.01) > least
        step = histogram(epsilon, delta, 1, 2**32, kind="stable")
        assert step.error(1, 0.02) > smallest_detectable(epsilon, delta, 2, 2**32)
    assert smallest_detectable(1.0, 1e-6, 10**6, 2**32) == 27


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IntegerNoise(0.0), "least_scale must be > 0"),
        (lambda: IntegerNoise(1.0, 0), "limit must be >= 1, got 0"),
        (lambda: IntegerNoise(1.0, None, 3), "grid must be a power of two, got 3"),
        (lambda: IntegerNoise(1.0).isf(0.7), r"probability must lie in \(0, 0.5\], got 0.7"),
        (lambda: IntegerNoise(1.0).lower_quantile(0.0), r"probability must lie in \(0, 1\], got 0.0"),
        (lambda: StableMonitor.calibrated(1.0, 1e-6, 0, 10, 3), "horizon must be >= 1, got 0"),
        (lambda: StableMonitor.calibrated(1.0, 0.0, 10, 10, 3), r"delta must lie in \(0, 1\), got 0.0"),
        (lambda: smallest_detectable(1.0, 1e-6, 10, 10, 1.0), r"found must lie in \(0, 1\), got 1.0"),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
