"""Integer noise and StableMonitor: exact laws, an attained bound, and what nobody holds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from rivals import better
from scipy.stats import binom, binomtest, norm

from evolvingdp.core.noise import DiscreteLaplace, Gaussian, GaussianNoise, IntegerNoise, Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.above_threshold import KINDS, SPLITS, AboveThreshold, best_threshold
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, histogram
from evolvingdp.sparse_vector.moved_queries import smallest_moved_scale
from evolvingdp.sparse_vector.shifting import planned_monitor
from evolvingdp.sparse_vector.stable import smallest_detectable, smallest_group, stable_monitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving
from support import ALPHA, fits

LISTED = ThresholdMonitorEvolving(GaussianNoise(1.0, 4.0), 3.0, 1, moved=5)
NOISES = [IntegerNoise(2.0, 5), IntegerNoise(0.7, 1)]


@pytest.mark.parametrize("noise", NOISES)
def test_tails_and_quantiles_agree(noise):
    z = np.arange(-40, 41)
    assert noise.sf(z) + noise.cdf(z) == pytest.approx(1, abs=1e-14)
    for share in (0.3, 1e-3, 1e-9):
        assert float(noise.sf(noise.isf(share))) <= share
        low = round(noise.lower_quantile(share), 9)
        assert float(noise.cdf(low)) <= share < float(noise.cdf(low + 1))


def test_few_queries_with_integer_noise_are_paid_for_one_by_one():
    """Of one query of each input a yes or no costs 1 / scale at most, and delta is for what is revealed alone."""
    noise = stable_monitor(1.0, 1e-6, 1, 1, "integer").noise
    assert (noise.scale, noise.limit) == (2.0, 28)
    assert 2 * noise.revealed <= 1e-6 < 2 * IntegerNoise(2.0, 27).revealed


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


@pytest.mark.parametrize("noise", [IntegerNoise(1e-3, 2), GaussianNoise(1e-3, 2.0)])
def test_who_holds_nothing_is_in_no_query(noise):
    made = ThresholdMonitorEvolving(noise, 2.0, 1, moved=2)
    state, found = made.step_held(made.start(5), [-1, -1, -1, 0, 0], stream(0, "none"))
    assert (found.tolist(), state.counted.tolist(), state.moves.tolist()) == ([0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"inputs must lie in .* got -2"):
        made.step_held(state, [-2, -1, -1, 0, 0], stream(0, "none"))


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
    """Noes count, too, and values of 0 do not."""
    monitor = ThresholdMonitorEvolving(Gaussian(1e-3), 1.5, 2, moved=3)
    table = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1], [0, 1, 1]])
    state, told = monitor.start(3), []
    for row in table:
        state, release = monitor.step(state, row, np.asarray, stream(0, "quiet"))
        told.append(release)
    assert told == [False, False, True, True, False, False]  # user 0 is out after the third, user 1 after two reports
    assert (state.moves.tolist(), state.active.tolist()) == ([5, 3, 3], [False, False, False])


@pytest.mark.parametrize("noise", ["gaussian", "integer"])
def test_more_reports_than_steps_cost_nothing(noise):
    """A user is deleted after the steps at the latest."""
    assert stable_monitor(1, 1e-6, 30, 2, noise).noise == stable_monitor(1, 1e-6, 2, 2, noise).noise


def test_the_best_noise_finds_the_smallest_groups():
    """Normal noise for few steps, integers for many; with a short list normal noise at a threshold that keeps it quiet."""
    for reports, moved, best in ((3, 100, GaussianNoise), (1, 10**6, IntegerNoise)):
        every = [stable_monitor(1.0, 1e-6, reports, moved, noise) for noise in ("gaussian", "integer")]
        made = stable_monitor(1.0, 1e-6, reports, moved)
        assert isinstance(made.noise, best)
        assert smallest_group(made) == min(map(smallest_group, every))
        assert made in every
    listed = calibrate(1.0, 1e-6, 3, moved=100)
    planned = planned_monitor(listed, 100, 10, 1, 0.02)
    assert planned.monitor.threshold == pytest.approx(listed.noise.isf(1e-5))
    assert planned.error < smallest_group(stable_monitor(1.0, 1e-6, 3, 100))


def test_integer_noise_that_pays_query_by_query_is_found_enough_at_any_epsilon():
    for epsilon in stream(0, "epsilons").uniform(0.5, 20.0, 200):
        assert stable_monitor(epsilon, 1e-6, 1, 1, "integer").delta(epsilon) <= 1e-6


@pytest.mark.parametrize(("noise", "reports", "moved"), [
    ("gaussian", 1, 1), ("gaussian", 3, 100), ("gaussian", 30, 1000), ("gaussian", 1, 10**6),
    ("integer", 1, 1), ("integer", 3, 100), ("integer", 2, 10**6),
])  # fmt: skip
def test_a_monitor_tells_what_it_costs_and_that_is_what_was_asked_for(noise, reports, moved):
    """Computed anew from the noise; and more where it is less, or where a user counts in more."""
    made = stable_monitor(1.0, 1e-6, reports, moved, noise)
    assert 0.6e-6 < made.delta(1.0) <= 1e-6
    assert made.delta(0.9) > 1.5e-6 or (noise, reports, moved) == ("integer", 1, 1)
    law = made.noise
    less = replace(law, limit=law.limit - 2) if noise == "integer" else replace(law, scale=0.95 * law.scale)
    assert replace(made, noise=less).delta(1.0) > 1e-6
    assert replace(made, noise=replace(law, limit=max(1, math.floor(0.9 * law.limit)))).delta(1.0) > 1e-6
    assert replace(made, moved=3 * moved).delta(1.0) > 1e-6
    with pytest.raises(ValueError, match="unit must be replacement where moved queries are counted, got 'add-remove'"):
        made.delta(1.0, "add-remove")


@pytest.mark.parametrize("how", [
    {}, {"queries": "interval"}, {"unit": "add-remove"}, {"moved": 59}, {"method": "theorem"}, {"method": "epochs"},
])  # fmt: skip
def test_a_calibration_that_promises_more_than_its_noise_keeps_is_refused(how):
    made = calibrate(1.0, 1e-6, 3, **how)
    assert ThresholdMonitorEvolving.calibrated(made, 5.0).delta(1.0, made.unit) <= 1e-6
    least = made.scale if made.method == "exact" else calibrate(1.0, 1e-6, 3).scale
    law = Gaussian if made.moved else Laplace
    lies = [{"noise": law(0.999 * least)}, {"noise": GaussianNoise(made.scale, 1e-9)}, {"noise": Gaussian(9.0)}]
    if made.method == "exact":
        lies += [{"epsilon": 0.99}, {"delta": 0.9e-6}, {"reports": 4}]
    if made.unit == "add-remove":
        lies.append({"unit": "replacement"})
    for lie in lies:
        with pytest.raises(ValueError, match="noise must have a scale of at least"):
            replace(made, **lie)
    assert replace(made, noise=law(least)).scale == least


def _group(epsilon, delta, reports, steps, noise="best", *, events=1):
    return smallest_group(stable_monitor(epsilon, delta, reports, steps, noise, n_events=events), events)


@pytest.mark.parametrize(("recommended", "queries", "reports", "events"), [
    ("normal", 100, 3, 300), ("Laplace", 10**6, 3, 300),  # queries of one's own: on both sides of `normal_until`
    ("one", 100, 1, 1), ("one", 100, 8, 8),  # a handful of yeses, to queries of one's own
    ("one, stable", 365, 1, 1), ("one, stable", 100, 2, 2), ("one, stable", 365, 3, 3),  # and of what somebody holds
    ("one counter", 365, 100, 10), ("one counter", 365, 100, 174),  # everybody in nearly all of the events
    ("histogram, stable", 1, 1, 1), ("histogram, stable", 1, 1, 100),  # told once
    ("unlisted", 12, 3, 300), ("unlisted", 52, 3, 300), ("unlisted", 365, 1, 100), ("unlisted", 10**6, 1, 100),
])  # fmt: skip
def test_no_trivial_rival_does_better_than_what_the_page_recommends(recommended, queries, reports, events):
    """Another law, one counter or one a user, a threshold with noise or without, a histogram, queries joined by twos: the
    smallest count that is found with 99 %, where queries of value 0 are all noes with 97.5 %."""
    privacy, elements = (1.0, 1e-6), 1 if recommended in ("normal", "Laplace", "one") else 2**32
    each, wanted = min(reports, events), 1 if recommended == "one" else events  # what a user counts in, what is to be found

    def sizes(queries):
        def listed(moved=None):
            noise = calibrate(*privacy, each, moved=moved).noise
            return noise.isf(0.025 / (queries * elements)) - noise.lower_quantile(0.01 / wanted)

        def svt(kind):
            own = queries * (2 if elements > 1 else 1) if kind == "gaussian" else 0
            made = best_threshold(
                *privacy, events, queries * elements, (kind,), moved=own, goal=lambda one: one.error(wanted, 0.02)
            )
            return made.error(wanted, 0.02)

        every = {kind: partial(svt, kind) for kind in KINDS} | {"Laplace": listed, "normal": partial(listed, queries)}
        every |= {
            f"histogram, {kind}": lambda kind=kind: histogram(*privacy, queries, max(elements, 2), kind=kind).error(
                wanted, 0.02
            )
            for kind in HISTOGRAMS
        }
        if elements > 1:  # elsewhere a query of value 0 may be a yes
            every["one counter"] = lambda: AboveThreshold.stable_gaussian(*privacy, events, 2 * queries).error(wanted, 0.02)
            every["one, stable"] = lambda: min(
                AboveThreshold.stable_one(*privacy, events, 2 * queries, split=split).error(wanted, 0.02) for split in SPLITS
            )
            unlisted = {"": "best", ", gaussian": "gaussian", ", integer": "integer"}
            every |= {
                f"unlisted{name}": partial(_group, *privacy, each, queries, noise, events=wanted)
                for name, noise in unlisted.items()
            }
        return every

    rivals = sizes(queries)
    own = rivals.pop(recommended)()
    if queries > 1:
        rivals["joined"] = lambda: 2 * sizes(queries // 2)[recommended]()
    assert better(own, rivals, by=0.0) == {}


@pytest.mark.parametrize(("steps", "reports", "lasts"), [(365, 3, 7), (100, 1, 2)])
def test_where_what_is_hot_stays_hot_joined_steps_find_the_smallest_groups(steps, reports, lasts):
    """Against a report in every step, and against never asking again: recommended is the longest step that can wait."""
    joined = _group(1.0, 1e-6, reports, math.ceil(steps / lasts))
    rivals = {
        "reported in every step": lambda: _group(1.0, 1e-6, reports * lasts, steps),
        "not asked again": lambda: _group(1.0, 1e-6, reports, steps),
    }
    assert better(joined, rivals, by=0.0) == {}
    assert len(better(rivals["not asked again"](), {"joined": lambda: joined})) == 1  # and more than a tenth smaller


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
        (lambda: IntegerNoise(1.0, 9).isf(1.7), r"probability must lie in \(0, 1\], got 1.7"),
        (lambda: ThresholdMonitorEvolving(Gaussian(1.0), 3.0, 1), "moved must be an integer >= 1, got None"),
        (
            lambda: ThresholdMonitorEvolving(Gaussian(1.0), 3.0, 1, "interval", 5),
            "queries must be binary for",
        ),
        (
            lambda: ThresholdMonitorEvolving(DiscreteLaplace(10.0), 3.0, 1, moved=5),
            "moved must be left out for noise that pays",
        ),
        (lambda: LISTED.step_held(LISTED.start(2), [0, 1], stream(0, "n")), "noise must have a limit up to the threshold"),
        (lambda: smallest_detectable(1.0, 1e-6, 10, 10, 1.0), r"found must lie in \(0, 1\), got 1.0"),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
