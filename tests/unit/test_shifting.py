"""Streams and plans for shifting heavy hitters: partitions by hand, thresholds, and what cannot work."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from evolvingdp.core import accounting
from evolvingdp.core.noise import Exponential, Gaussian, Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.sparse_vector import groups, methods, shifting_heavy_hitters
from evolvingdp.planning.planner import plan
from evolvingdp.planning.question import Question
from evolvingdp.sparse_vector import gaussian
from evolvingdp.sparse_vector.above_threshold import SPLITS, AboveThreshold, best_threshold, some_yes
from evolvingdp.sparse_vector.calibration import calibrate
from evolvingdp.sparse_vector.histograms import SHARES, Histogram, histogram, stable_histogram
from evolvingdp.sparse_vector.shifting import planned_monitor, solve
from evolvingdp.sparse_vector.shifting_simulation import ask, simulate, simulate_threshold
from evolvingdp.sparse_vector.stable import smallest_group, stable_monitor
from evolvingdp.sparse_vector.streams.example import ShiftingStream, example_sizes
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

HISTOGRAM = Histogram(Laplace(1.0), 3.0, 2, 4, True)
EVERY_STEP = Histogram(Gaussian(1.0), 3.0, 2, 4)
STREAM = ShiftingStream.make(60, {"A": 7, "B": 10, "C": 20}, stream(0, "stream"), n_elements=200)


def test_families_are_partitions_and_every_event_is_held_by_its_group_alone():
    assert [one.n_groups for one in STREAM.families] == [8, 6, 3]
    assert len(set(STREAM.steps.tolist())) == STREAM.n_events == 17
    for number, one in enumerate(STREAM.families):
        groups = [STREAM.members(event) for event in np.flatnonzero(STREAM.family == number)]
        assert len(np.unique(np.concatenate(groups))) == one.n_groups * one.size
    for user in range(60):
        assert sorted(STREAM.events_of(user)) == [e for e in range(17) if user in STREAM.members(e)]
    for event, step in enumerate(STREAM.steps.tolist()):
        weights = np.bincount(STREAM.inputs(step), minlength=200)
        assert weights[event] == STREAM.sizes[event]
        assert weights.sum() == 60
        assert sorted(set(weights.tolist())) == [0, 1, STREAM.sizes[event]]
    queries = [np.bincount(STREAM.inputs(step), minlength=200) for step in range(60)]
    assert STREAM.absent_queries == sum(int((weights == 0).sum()) for weights in queries)
    assert STREAM.single_queries == sum(int((weights == 1).sum()) for weights in queries)


def test_example_1_4_has_the_sizes_and_events_of_the_table():
    for n_users, smallest, events in ((10**4, 853, 25), (10**6, 1034, 1383), (10**9, 1313, 827_847)):
        sizes = example_sizes(n_users, smallest)
        assert sum(n_users // size for size in sizes.values()) == events
    assert example_sizes(10**6, 1033.2) == {"A": 1034, "B": 3163, "C": 10_000}


def test_a_plan_keeps_its_two_promises():
    found = planned_monitor(calibrate(1.0, 1e-6, 3), 10**6, 2**32, 1383)
    assert found.monitor.threshold == pytest.approx(817.6, abs=0.1)
    assert found.error == pytest.approx(1032.1, abs=0.1)
    noise = found.monitor.noise
    assert 10**6 * 2**32 * float(noise.sf(found.monitor.threshold)) == pytest.approx(0.025)
    assert 1383 * float(noise.cdf(found.monitor.threshold - found.error)) == pytest.approx(0.025)


@pytest.mark.parametrize("kind", ["repeated", "one", "gaussian"])
def test_repeated_above_threshold_s_threshold_keeps_its_promise(kind):
    rng, queries = stream(0, "silent"), 10**6
    moved = queries if kind == "gaussian" else 0
    method = AboveThreshold.calibrated(1.0, 1e-6, 4, 0.0, kind=kind, moved=moved).silent(queries, 0.4)
    stretches = 4 if method.refreshed else 1
    shifts = 0.0 if method.shift is None else method.shift.draw((20_000, stretches), rng)
    loud = 1 - (1 - method.noise.sf(method.threshold + shifts)) ** (queries / stretches)
    assert 0.09 < np.mean(1 - np.prod(np.atleast_2d(1 - loud), axis=1)) < 0.2


@pytest.mark.parametrize("law", [Laplace, Exponential])
@pytest.mark.parametrize("scales", [(4.0, 2.0), (3.0, 3.0), (2.0, 5.0)])
def test_a_query_crosses_a_noisy_threshold_with_its_closed_form(law, scales):
    rng, method = stream(0, "difference"), AboveThreshold(0.0, 1, *map(law, scales))
    one, other = (law(scale).draw(200_000, rng) for scale in scales)
    for z in (-6.0, -1.0, 1.0, 6.0):
        assert np.mean(one - other >= z) == pytest.approx(method.crossing(z), abs=0.006)
    log = -2.0
    some = np.minimum(1, np.exp(log - other / scales[0])).mean()
    assert some_yes(log, *scales, law is Exponential) == pytest.approx(some, rel=0.02)


def test_the_best_rival_is_no_worse_than_any_of_its_grid():
    best = best_threshold(1.0, 1e-6, 20, 10**9, moved=10**9)
    for kind in ("repeated", "one"):
        for split in SPLITS:
            one = AboveThreshold.calibrated(1.0, 1e-6, 20, 0.0, kind=kind, split=split).silent(10**9, 0.05)
            assert best.error(20) <= one.error(20) * (1 + 1e-9)


def test_a_split_spends_epsilon():
    method = AboveThreshold.calibrated(1.0, 1e-6, 5, 0.0, kind="one", split=0.3)
    assert (method.shift.scale, method.noise.scale) == pytest.approx((1 / 0.3, 10 / 0.7))
    piece = AboveThreshold.calibrated(1.0, 1e-6, 1, 0.0, split=0.4)
    assert 1 / piece.shift.scale + 2 / piece.noise.scale == pytest.approx(1.0)
    assert piece.shift == Laplace(2.5)  # the first yes is pure, as Algorithm 2


def test_yes_or_no_tells_less_than_a_number():
    """All answers of a histogram: about sqrt(2 / pi) of the Gaussian mechanism's noise for the same Renyi bound."""
    numbers = math.sqrt(2000) / accounting.gaussian_mu(1.0, 1e-6)
    answers = gaussian.smallest_gaussian_scale(1.0, 1e-6, gaussian.ALL, 2000)
    assert math.sqrt(2 / math.pi) < answers / numbers < 1.1 * math.sqrt(2 / math.pi)
    few = gaussian.smallest_gaussian_scale(1.0, 1e-6, 3, 2000)
    assert few < 0.5 * answers


def test_a_stable_search_never_finds_what_nobody_holds_and_shows_one_user_rarely():
    method = AboveThreshold.stable_gaussian(1.0, 1e-2, 3, 20)
    assert 20 * float(method.noise.sf(method.threshold - 1)) == pytest.approx(1e-2 / 4)
    single = AboveThreshold.stable_one(0.1, 1e-2, 3, 20)
    assert 10 * float(single.crossing([single.threshold - 1, single.threshold]).sum()) == pytest.approx(1e-2)
    loud, rng = replace(method, threshold=-1e9), stream(0, "stable")
    state = loud.start(stream(0, "start"))
    assert not loud.step(state, 0, rng)[1]
    assert loud.step(state, 1, rng)[1]
    assert ask(loud, np.array([0, 1, 0, 0, 2]), rng).tolist() == [False, True, False, False, True]


@pytest.mark.parametrize("n_elements", [10**5, 2**32])
def test_a_stable_search_takes_no_longer_in_a_larger_domain(n_elements):
    """Nothing but what users hold can be found, so the same draws find the same."""
    method = AboveThreshold(4.0, 8, Gaussian(1.0), stable=True, moved=10**6)
    streams = (replace(STREAM, n_elements=size) for size in (77, n_elements))
    small, large = (simulate_threshold(method, one, stream(0, "domain")) for one in streams)
    assert small.found.any()
    assert (small.found.tolist(), small.absent, small.single) == (large.found.tolist(), 0, large.single)


def test_an_extreme_monitor_finds_everything_or_nothing():
    sure = ThresholdMonitorEvolving(Laplace(1e-03), 5.5, 3)
    outcome = simulate(sure, STREAM, stream(0, "sure"))
    assert outcome.found.all()
    assert (outcome.absent, outcome.single) == (0, 0)
    assert outcome.recall(STREAM) == {"A": 1, "B": 1, "C": 1}
    deleted = simulate(ThresholdMonitorEvolving(Laplace(1e-03), 5.5, 1), STREAM, stream(0, "sure"))
    first = int(np.argmin(STREAM.steps))
    assert deleted.found[first]
    assert not deleted.found.all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ShiftingStream.make(60, {"A": 61}, stream(0, "s")),
            r"sizes must lie in \[2, 60\], the users, got 61 for A",
        ),
        (lambda: ShiftingStream.make(60, {}, stream(0, "s")), "sizes must name 1 to 4 families, got 0"),
        (lambda: ShiftingStream.make(60, dict.fromkeys("ABCDE", 2), stream(0, "s")), "families, got 5: A, B, C, D, E"),
        (lambda: ShiftingStream.make(60, {"A": 2}, stream(0, "s"), horizon=5), "horizon must be >= 30"),
        (lambda: ShiftingStream.make(60, {"A": 6}, stream(0, "s"), n_elements=50), "n_elements must be >= events"),
        (lambda: ShiftingStream.make(60, {"A": 1}, stream(0, "s")), "sizes must lie in .* got 1 for A"),
        (lambda: example_sizes(100, -1.0), "smallest must be > 0 and finite, got -1.0"),
        (
            lambda: planned_monitor(calibrate(1.0, 1e-6, 3, moved=5), 6, 10, 1),
            "horizon must be at most the 5 queries that `moved` of the noise allows, got 6",
        ),
        (
            lambda: solve(ThresholdMonitorEvolving(Laplace(10.0), 1.0, 1), [[0, 1], [0, 1, 1]], 2, stream(0, "n")),
            "inputs must hold 2 users in every step, as at the start",
        ),
        (lambda: Histogram(Laplace(1.0), 3.0, 2, 4), "noise must be Gaussian where all elements are listed, got Laplace"),
        (lambda: AboveThreshold(1.0, 1, Laplace(1.0), Exponential(1.0)), "shift must be of the same kind as Laplace"),
        (lambda: EVERY_STEP.start(0), "n_users must be >= 1, got 0"),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_histogram_s_error_is_where_it_misses_rarely():
    for law in (Gaussian, Laplace):
        method = Histogram(law(3.0), 10.0, 1, 9, True)
        assert 7 * float(1 - method.noise.sf(10 - method.error(7, 0.05))) == pytest.approx(0.025)


@pytest.mark.parametrize(("n_users", "reports"), [(400, 1), (4000, 3), (9999, 3), (300, 5)])
def test_the_smallest_group_is_the_first_size_that_is_enough_for_all_groups_of_it(n_users, reports):
    """Where no size is just enough: the next one down has a group more, which needs more."""

    def needed(events: int) -> float:
        return 20 * math.sqrt(events) + 13.0

    enough = [size for size in range(1, n_users + 1) if size >= needed(groups.events(n_users, reports, size))]
    found = groups._with_reports(needed, n_users, reports)
    assert math.ceil(found) == min(enough)


def test_every_method_runs_on_example_1_4_and_the_monitor_finds_its_groups():
    target = methods.Target(1.0, 1e-6, 0.05, 2**32)
    data = methods.example_stream(target, 10**5, stream(0, "example"))
    simulated = methods.simulations(target, data)
    assert tuple(simulated) == methods.METHODS
    recall = {name: one(data, stream(0, "run", name)).recall(data) for name, one in simulated.items()}
    assert min(recall[methods.MONITOR].values()) == min(recall[methods.STABLE].values()) == 1
    assert recall[methods.REPEATED]["C"] > 0.5
    assert all(max(recall[name].values()) == 0 for name in (methods.THEOREM, *methods.HISTOGRAMS))
    assert recall[methods.GAUSSIAN]["B"] >= 0.8 > recall[methods.ONE]["B"]
    textbook = methods.repeated(target, data, methods.REPEATED)
    assert data.families[1].size < textbook.threshold < data.families[2].size


def test_the_smallest_group_is_found_as_often_as_it_says():
    """By 40,000 draws of the methods' noise at its size, told the number of events; rivals get worse with more users."""
    target, rng = methods.Target(1.0, 1e-6, 0.05, 2**32), stream(0, "smallest")
    few, many = (groups.smallest_groups(target, n_users, 3) for n_users in (4000, 10**6))
    own = methods.stable(target, 4000, 3)
    seen = np.mean(own.noise.draw(40_000, rng) + few[methods.STABLE] >= own.threshold)
    assert 0.99 <= seen + 0.002 < 0.996
    c = groups.events(4000, 3, few[methods.REPEATED])
    method = methods.lowest(target, methods.REPEATED, c, 4000, 4000 * 2**32, groups._alone)[0]
    shift = method.shift.draw(40_000, rng)
    assert np.mean(few[methods.REPEATED] + method.noise.draw(40_000, rng) - shift >= method.threshold) == (
        pytest.approx(0.99, abs=0.006)
    )
    assert few[groups.BOUND] < few[methods.STABLE] < min(few[name] for name in groups.RIVALS)
    assert many[methods.GAUSSIAN] / many[methods.STABLE] > 3 * few[methods.GAUSSIAN] / few[methods.STABLE]


def test_histograms_pay_for_two_weights_in_every_step():
    """Replacing a user moves two elements by one in each of 8 steps: distance 16 in sum, 4 in the Euclidean norm."""
    gaussian = histogram(1.0, 1e-6, 8, 100, kind="gaussian")
    assert 4 / gaussian.noise.scale == pytest.approx(accounting.gaussian_mu(1.0, 1e-6))
    laplace = stable_histogram(1.0, 1e-6, 10_000, 100, False, 0.5)
    assert accounting.delta_of_reports(1 / laplace.noise.scale, 1.0, 20_000) == pytest.approx(
        5e-7
    )  # 16 pieces of 1, not 8 of 2
    for kind, both in (("stable gaussian", 2), ("stable", 1)):  # shown in one input, and with normal noise in the other
        made = histogram(1.0, 1e-6, 8, 100, kind=kind)
        every = {share: stable_histogram(1.0, 1e-6, 8, 100, both == 2, share) for share in SHARES}
        assert made in every.values()
        assert made.threshold == min(one.threshold for one in every.values())
        for share, one in every.items():
            assert 8 * both * float(one.noise.sf(one.threshold - 1)) == pytest.approx((1 - share) * 1e-6)
    assert 4 / stable_histogram(1.0, 1e-6, 8, 100, True, 0.5).noise.scale == pytest.approx(accounting.gaussian_mu(1.0, 5e-7))


def test_the_paper_s_constants_need_more_than_10_to_the_14_users():
    target = methods.Target(1.0, 1e-6, 0.05, 2**32)
    printed, exact = (methods.smallest_users(target, 3, method) for method in ("theorem", "exact"))
    assert printed > 1e14
    assert exact < 10**4
    assert exact == pytest.approx(1000, rel=1e-3)  # where a group C has as many users as there are
    assert example_sizes(999, 1.0)["C"] > 999
    for n_users, enough in ((1.01 * printed, True), (0.99 * printed, False)):
        size = example_sizes(round(n_users), 1.0)["C"]
        found = planned_monitor(methods.calibrated(target, 3, "theorem"), round(n_users), 2**32, round(n_users) // size)
        assert (size >= found.error) == enough


@pytest.mark.parametrize("law", [Laplace(3.0), Gaussian(3.0), Laplace(0.25), Gaussian(0.3)])
def test_noisy_weights_have_the_error_that_is_stated(law):
    """Rounded, too, where most noise is rounded away: a twelfth more variance was a third too much error there."""
    method = Histogram(law, 20.0, 1, 9, True)
    squares = (method.noisy(np.full(40_000, 100), stream(0, repr(law))) - 100) ** 2
    deviations = 4 * np.std(squares) / np.mean(squares) / 2 / math.sqrt(40_000)
    assert math.sqrt(np.mean(squares)) == pytest.approx(method.standard_error, rel=deviations)


def test_noisy_weights_of_what_nobody_holds_are_told_where_all_are_listed_alone():
    nobody, rng = np.zeros(1000, dtype=np.int64), stream(0, "nobody")
    told = [np.isfinite(Histogram(Gaussian(3.0), 0.0, 1, 9, stable).noisy(nobody, rng)).mean() for stable in (True, False)]
    assert told[0] == 0
    assert told[1] == pytest.approx(0.5, abs=0.08)


def test_a_histogram_tells_noisy_weights_of_what_it_reports_and_ends_after_the_steps_that_are_paid_for():
    held, method = (
        np.repeat([7, 11, 27**6 - 1, 5], [5000, 900, 2000, 1]),
        histogram(1.0, 1e-6, 2, 27**6, kind="stable gaussian"),
    )
    state, rng = method.start(len(held)), stream(0, "counted")
    for _ in range(2):
        state, shown = method.count(state, held, rng)
        assert shown.elements.tolist() == [7, 11, 27**6 - 1]
        assert np.all(shown.weights >= method.threshold - 0.5)
        assert np.all(shown.weights == np.rint(shown.weights))
        assert np.all(np.abs(shown.weights - [5000, 900, 2000]) < 6 * method.standard_error)
        assert np.ptp(shown.weights - [5000, 900, 2000]) > 0
    with pytest.raises(ValueError, match="horizon must be larger to go on: 2 steps are paid for, and over"):
        method.count(state, held, rng)
    elements = method.step(method.start(len(held)), held, stream(0, "counted"))[1]
    assert elements.tolist() == [7, 11, 27**6 - 1]  # with the same draws


def test_a_rival_wins_where_each_user_is_in_nearly_all_events():
    """Up to the number that is found, and not with one event more."""
    target = methods.Target(1.0, 1e-6, 0.05, 2**32)
    most = groups.rival_until(target, 365, 100)
    assert 100 < most < 300
    own = methods.stable(target, 365, 100)
    for events, wins in ((most, True), (most + 1, False)):
        made = methods.lowest(target, methods.GAUSSIAN, events, 365, 365 * target.n_elements)
        assert (min(one.error(events, 0.02) for one in made) < smallest_group(own, events)) == wins


def test_the_map_the_page_and_the_planner_agree():
    """On the noise that finds the smallest groups, on that no rival does, and on the page's year of days."""
    params = SimpleNamespace(
        epsilon=1.0, delta=1e-6, beta=0.05, domain_bits=32, map_steps=[10, 365, 10_000], map_reports=[1, 3]
    )
    shown = groups.map_table(pd.DataFrame(groups.map_rows(params, 0)))
    for (steps, reports), sizes in shown.drop(columns=groups.BOUND).iterrows():
        asked = {
            "periods": steps,
            "taking_part": reports,
            "events": groups.EVENTS * reports,
            "ordinary": 0.0,
            "items": 2**32,
        }
        best = plan(Question("hot", "curator", delta=1e-6, **asked)).predictions[0]
        made = stable_monitor(1.0, 1e-6, reports, steps, sizes.idxmin())
        assert (best.method, best.settings) == ("StableMonitor", repr(made))
    told = shifting_heavy_hitters._year_values(methods.target_of(params), 3)
    own = shown.loc[365, 3].drop(groups.BOUND)
    assert (told["year_events"], told["year_stable"], told["year_gaussian"]) == (300, own.min(), own[methods.GAUSSIAN])
    assert told["year_stable"] < min(told[f"year_{name}"] for name in ("listed", "gaussian", "histogram"))
