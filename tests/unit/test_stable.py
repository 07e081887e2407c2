"""Integer noise and StableMonitor: exact laws, an attained bound, and what nobody holds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.adversary import delta_attained
from evolvingdp.sparse_vector.baselines import threshold_error
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, histogram
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.moved_queries import smallest_moved_scale
from evolvingdp.sparse_vector.noise import GaussianNoise, MonitorNoise
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.stable import smallest_detectable, smallest_group, stable_monitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA, fits

LISTED = ThresholdMonitorEvolving(GaussianNoise(1.0, 4.0), 3.0, 1, moved=5)
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


def test_a_stable_monitor_with_integer_noise_spends_all_of_delta_and_not_more():
    made = stable_monitor(1.0, 1e-6, 3, 1000, "integer")
    noise = made.noise
    reports = privacy.delta_of_epsilon(1.0, noise.scale, 3)
    assert reports + 2000 * noise.revealed <= 1e-6
    assert reports + 2000 * IntegerNoise(noise.scale, noise.limit - 1).revealed > 0.99e-6
    assert made.threshold == noise.limit


@pytest.mark.parametrize(("delta", "moved"), [(1e-6, 365), (1e-3, 2), (0.05, 1)])
def test_a_stable_monitor_with_normal_noise_pays_for_elements_of_one_user(delta, moved):
    """A yes of the user alone in m queries, and that there is none in m where the other input is; up to 1e-8."""
    made = stable_monitor(1.0, delta, 3, moved, "gaussian")
    t, scale = made.threshold, made.noise.scale
    alone = moved * (norm.sf((t - 1) / scale) - math.log1p(-norm.sf(t / scale)))
    assert alone == pytest.approx(0.2 * delta, rel=1e-4)
    assert alone <= 0.2 * delta
    assert scale == smallest_moved_scale(1.0, 0.8 * delta, 3, moved)


@pytest.mark.parametrize("noise", [IntegerNoise(1e-3, 3), GaussianNoise(1e-3, 3.0)])
def test_a_stable_monitor_reports_what_is_heavy_and_deletes(noise):
    made = ThresholdMonitorEvolving(noise, 3.0, 2, moved=4)
    state, rng, seen = made.start(7), stream(0, "stable"), []
    for inputs in ([5, 5, 5, 5, 1, 1, 2], [5, 5, 5, 5, 7, 7, 7], [7, 7, 7, 7, 7, 7, 7], [1, 1, 1, 7, 7, 7, 7], [7] * 7):
        state, found = made.step_held(state, inputs, rng)
        seen.append(found.tolist())
    assert seen == [[5], [5, 7], [7], [], []]  # four have counted twice, then three; all have been in four steps
    assert not state.active.any()
    few = replace(made, moved=1)
    state, found = few.step_held(few.start(4), [5, 5, 5, 1], rng)
    assert (found.tolist(), few.step_held(state, [1, 1, 1, 1], rng)[1].tolist()) == ([5], [])


@pytest.mark.parametrize("noise", [IntegerNoise(2.0, 4), GaussianNoise(2.0, 4.0)])
def test_a_step_of_elements_in_no_list_has_the_law_of_a_draw_for_each(noise):
    """Reports and counters; of elements that one user holds the number is drawn."""
    runs, held = 4000, np.array([9, 9, 9, 4, 4, 1, 2, 7, 5])
    made = ThresholdMonitorEvolving(noise, 4.0, 1, moved=1)
    _, weights = np.unique(held, return_counts=True)
    rng, seen, loud = stream(0, "held", str(noise)), Counter(), Counter()
    for _ in range(runs):
        state, found = made.step_held(made.start(len(held)), held, rng)
        assert np.array_equal(state.counted, np.isin(held, found))
        seen.update(found.tolist())
        loud[len(np.intersect1d(found, [1, 2, 5, 7]))] += 1
    for element, weight in zip(np.unique(held).tolist(), weights.tolist(), strict=True):
        chance = float(noise.sf(4.0 - weight))
        assert binomtest(seen[element], runs, chance).pvalue > ALPHA
        assert binomtest(seen[element], runs, min(1.0, 1.6 * chance)).pvalue < ALPHA  # that of a weight of one more
    law = binom.pmf(np.arange(5), 4, float(noise.sf(3.0)))
    assert fits(loud, dict(enumerate(law.tolist())), runs) > ALPHA  # one by one independent


def test_a_user_s_queries_are_counted_where_the_noise_pays_for_them():
    """`run` and `step` alike; noes count, too, and values of 0 do not."""
    monitor = ThresholdMonitorEvolving(GaussianNoise(1e-3), 1.5, 2, moved=3)
    table = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1], [0, 1, 1]])
    state, told = monitor.start(3), []
    for row in table:
        state, release = monitor.step(state, row, np.asarray, stream(0, "quiet"))
        told.append(release.above)
    assert told == [False, False, True, True, False, False]  # user 0 is out after the third, user 1 after two reports
    assert (state.moves.tolist(), state.active.tolist()) == ([5, 3, 3], [False, False, False])
    values = stream(0, "values").integers(0, 2, (60, 9))
    wide = ThresholdMonitorEvolving(GaussianNoise(2.0), 3.0, 4, moved=11)
    one, other = wide.start(9), wide.start(9)
    first, second, every = stream(0, "noise"), stream(0, "noise"), []
    for part in (values[:25], values[25:]):
        other, answers = wide.run(other, part, second)
        every += answers.tolist()
    for row, above in zip(values, every, strict=True):
        one, release = wide.step(one, row, np.asarray, first)
        assert release.above == above
    for name in ("counted", "moves", "active"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert not one.active.all()
    assert len(set(every)) == 2


def test_the_best_noise_finds_the_smallest_groups():
    """Normal noise for few steps, integers for many; with a short list normal noise at a threshold that keeps it quiet."""
    for reports, moved, best in ((3, 100, GaussianNoise), (1, 10**6, IntegerNoise)):
        every = [stable_monitor(1.0, 1e-6, reports, moved, noise) for noise in ("gaussian", "integer")]
        made = stable_monitor(1.0, 1e-6, reports, moved)
        assert isinstance(made.noise, best)
        assert smallest_group(made) == min(map(smallest_group, every))
        assert made in every
    listed = ThresholdMonitorEvolving(GaussianNoise.calibrated(1.0, 1e-6, 3, 100), 0.0, 3, moved=100)
    planned = plan(listed, 100, 10, 1, 0.02)
    assert planned.monitor.threshold == pytest.approx(listed.noise.isf(1e-5))
    assert planned.error < smallest_group(stable_monitor(1.0, 1e-6, 3, 100))


@pytest.mark.parametrize(("steps", "reports"), [(12, 3), (52, 3), (365, 1), (10**6, 1)])
def test_no_trivial_rival_finds_smaller_groups_than_what_is_recommended(steps, reports):
    """The other noise; one counter for all reports, which it is told; all elements of a list; a histogram in every step."""
    events, beta = 100 * reports, 0.02
    own = smallest_group(stable_monitor(1.0, 1e-6, reports, steps, n_events=events), events)
    rivals = [smallest_group(stable_monitor(1.0, 1e-6, reports, steps, noise), events) for noise in ("gaussian", "integer")]
    rivals.append(threshold_error(AboveThreshold.stable_gaussian(1.0, 1e-6, events, 2 * steps), events, beta))
    rivals += [histogram(1.0, 1e-6, steps, 2**32, kind=kind).error(events, beta) for kind in HISTOGRAMS]
    normal = GaussianNoise.calibrated(1.0, 1e-6, reports, steps)
    for law in (calibrate(1.0, 1e-6, reports), ThresholdMonitorEvolving(normal, 0.0, reports, moved=steps)):
        rivals.append(plan(law, steps, 2**32, events, beta).error)
    assert own <= min(rivals)


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
        assert smallest_group(stable_monitor(epsilon, delta, 1, horizon)) > least
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
        (lambda: stable_monitor(1.0, 1e-6, 3, 0), "moved must be >= 1, got 0"),
        (lambda: stable_monitor(1.0, 0.0, 3, 10), r"delta must lie in \(0, 1\), got 0.0"),
        (lambda: stable_monitor(1.0, 1e-6, 3, 10, "laplace"), "noise must be one of best, gaussian, integer, got 'laplace'"),
        (lambda: smallest_group(stable_monitor(1.0, 1e-6, 3, 10), 0), "n_events must be >= 1, got 0"),
        (lambda: GaussianNoise(0.0), "scale must be > 0"),
        (lambda: GaussianNoise(1.0, -1.0), "limit must be > 0"),
        (lambda: ThresholdMonitorEvolving(GaussianNoise(1.0), 3.0, 1), "moved must be given, and queries binary, for"),
        (
            lambda: ThresholdMonitorEvolving(GaussianNoise(1.0), 3.0, 1, "interval", 5),
            "moved must be given, and queries binary",
        ),
        (
            lambda: ThresholdMonitorEvolving(MonitorNoise(1.0, 0.0), 3.0, 1, moved=5),
            "moved must be left out for noise that pays",
        ),
        (lambda: LISTED.step_held(LISTED.start(2), [0, 1], stream(0, "n")), "noise must have a limit up to the threshold"),
        (lambda: smallest_detectable(1.0, 1e-6, 10, 10, 1.0), r"found must lie in \(0, 1\), got 1.0"),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
