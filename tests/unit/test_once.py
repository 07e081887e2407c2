"""Users split over epochs, and change detection: by hand, against all divisions, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from evolvingdp.core import detection
from evolvingdp.core.detection import Search, detect, frequent, penalty
from evolvingdp.core.reports import Hashed, Sign, Subset
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines, streams
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.once import Lots, Once, State, Tally
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.notebooks.evolving import split_users

ONE_GROUP, TWO_GROUPS = (streams.BitStream.make([10] * groups, [[0.5] * 8] * groups, 1) for groups in (1, 2))
LN3 = math.log(3)  # a bit is kept with probability 3/4
KINDS = (Subset, Hashed, Sign)


def test_lots_name_the_first_epoch_of_each_period_and_values_stay_until_the_next():
    lots = Lots(1000, 10, every=4)
    assert lots.epochs.tolist() == [1, 5, 9]
    assert lots.hold(np.array([7.0, 8.0, 9.0])).tolist() == [7.0] * 4 + [8.0] * 4 + [9.0] * 2
    assert set(lots.deal(stream(0, "lots")).tolist()) == {1, 5, 9}
    assert lots.split(np.array([400, 600]), stream(0, "split")).sum(axis=1).tolist() == [400, 600]


def test_a_mean_is_estimated_from_the_reports_of_its_epoch():
    settings = Once(100, 3, LN3)
    estimates = settings.estimates(Tally(np.array([8, 0, 4]), np.array([[4, 4], [0, 0], [1, 3]])))
    assert estimates[[0, 2], 1] == pytest.approx([0.5, 1.0])  # (share - 1/4) / (1/2)
    assert np.isnan(estimates[1]).all()
    assert settings.standard_error() == pytest.approx(math.sqrt(3 / 100))  # coth(ln(3) / 2) = 2, over 2
    assert Once(100, 3, LN3, 9).standard_error() == Once(100, 3, LN3, 9).standard_error(0.0)


def test_users_report_in_the_epoch_of_their_lot_and_only_there():
    settings = Once(5, 3, 30.0, every=2)
    state, rng = State(0, np.array([1, 3, 3, 1, 3]), settings), stream(0, "reports")

    def step(state, ones):
        ones = np.array(ones)
        return once.step(settings, state, np.stack([10 - ones, ones], axis=1), rng, rng)

    state, first = step(state, [10, 0, 0, 10, 0])
    state, second = step(state, [10] * 5)
    state, third = step(state, [0, 10, 10, 0, 0])
    assert [tally.reports.tolist() for tally in (first, second, third)] == [[2], [], [3]]
    assert [tally.sums.tolist() for tally in (first, second, third)] == [[[0, 2]], [], [[1, 2]]]
    assert (first + third).sums.tolist() == [[1, 4]]
    with pytest.raises(ValueError, match="horizon must be larger"):
        step(state, [10] * 5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_reports_one_of_its_words_of_its_epoch(kind):
    settings = Once(3, 2, 9.0, 4, report=kind(4, 9.0))
    counts = np.array([[0, 5, 0, 0], [0, 0, 0, 2], [1, 0, 0, 0]])
    state, merged = State(0, np.array([1, 2, 1]), settings), []
    public, private = stream(0, "public"), stream(0, kind.__name__)
    dealt, first = once.step(settings, state, counts, public, private)
    for _ in range(400):  # OLH keeps a word with probability one half: one report would say little
        state, second = once.step(settings, dealt, counts, public, private)
        assert [first.reports.tolist(), second.reports.tolist()] == [[2], [1]]
        merged.append(settings.estimates(second)[0])
    assert np.mean(merged, axis=0) == pytest.approx([0, 0, 0, 1], abs=0.25)  # five standard errors


def test_a_penalty_is_the_quantile_that_its_union_bound_asks_for():
    assert penalty(2) == pytest.approx(chi2.isf(0.05, 1))  # one place for one change
    three = penalty(3, 4, 0.01)  # two places for one change, one for two
    assert 2 * chi2.sf(three, 4) + chi2.sf(2 * three, 8) == pytest.approx(0.01)
    assert penalty(1024) == pytest.approx(17.447, abs=1e-3)
    assert penalty(1024, 2) > penalty(1024) > penalty(512)
    assert penalty(1) == 0.0
    for horizon in (200, 2**16):  # divisions with more changes than are counted add nothing
        changes = np.arange(61, min(horizon - 1, 300))
        logs = changes * np.log(horizon) - np.cumsum(np.log(np.arange(1, changes[-1] + 1)))[60:]
        assert np.exp(logs + chi2.logsf(changes * penalty(horizon), changes)).sum() < 1e-6


def test_a_step_of_ten_standard_errors_is_found_where_it_is():
    estimates, reports = np.array([0.1, -0.1, math.nan, 10.0, 10.2]), np.array([2, 2, 0, 1, 3])
    fit = detect(estimates, reports, 1.0)
    assert fit.starts.tolist() in ([0, 0, 0, 3, 3], [0, 0, 2, 2, 2])
    assert fit.estimates[[0, 1, 3, 4]] == pytest.approx([0.0, 0.0, 10.15, 10.15])
    assert fit.reports[[0, 3]].tolist() == [4, 4]
    assert fit.changes == 1
    assert fit.standard_errors(1.0)[[0, 3]] == pytest.approx([0.5, 0.5])
    online = detect(estimates, reports, 1.0, online=True)
    assert online.estimates[[0, 1, 3, 4]] == pytest.approx([0.1, 0.0, 10.0, 10.15])
    assert online.reports[[0, 1]].tolist() == [2, 4]


def best_division(values, weights, cost):
    """All divisions, tried one after the other: the first epoch of each epoch's segment in the best."""
    best = math.inf
    for cuts in itertools.product((False, True), repeat=len(values) - 1):
        segment = np.concatenate([[0], np.cumsum(cuts)])
        left = cost * sum(cuts)
        for part in range(segment[-1] + 1):
            inside, heavy = values[segment == part], weights[segment == part][:, None]
            mean = (heavy * inside).sum(axis=0) / heavy.sum()
            left += (heavy * (inside - mean) ** 2).sum()
        if left < best:
            best, starts = left, np.flatnonzero(np.concatenate([[True], cuts]))[segment]
    return starts


def last_segments(values, weights, cost):
    """The recursion itself, epoch by epoch: where the last segment of the best division begins."""
    sums, held = (np.concatenate([[0.0 * part[0]], np.cumsum(part, axis=0)]) for part in (values * weights, weights))
    best, starts = np.zeros(len(values) + 1), np.zeros(len(values), dtype=np.int64)
    for now in range(1, len(values) + 1):
        among, moved = held[now] - held[:now], (sums[now] - sums[:now]) ** 2
        saved = best[:now] + np.where(among > 0, moved / np.maximum(among, 1e-300), 0.0).sum(axis=1) - cost
        starts[now - 1], best[now] = saved.argmax(), saved.max()
    return starts


@pytest.mark.parametrize("n_words", [1, 3])
@pytest.mark.parametrize("mean", ["level", "steps", "slow", "drift", "spikes"])
def test_long_divisions_are_those_of_the_recursion_epoch_by_epoch(n_words, mean):
    """With many epochs that cannot begin the last segment and are forgotten."""
    rng = stream(0, "long", n_words, mean)
    horizon = 337
    turns = np.arange(horizon)[:, None]
    means = {
        "level": 0.0 * turns,
        "steps": 4.0 * (turns // 61 % 3),
        "slow": 0.5 * (turns // 150),
        "drift": 0.2 * turns,
        "spikes": 6.0 * (turns % 97 < 2),
    }[mean]
    weights = rng.integers(0, 3, size=horizon)[:, None] * rng.uniform(0.5, 2.0, size=(horizon, n_words))
    values = np.where(weights > 0, means + rng.normal(size=(horizon, n_words)), 0.0)
    values, cost = values - np.average(values, axis=0, weights=weights), penalty(horizon, n_words, 0.5)
    search = Search(horizon, 1, n_words, cost)
    found = [int(search.push(*each)[0]) for each in zip(values[:, None], weights[:, None], strict=True)]
    assert found == last_segments(values, weights, cost).tolist()


@pytest.mark.parametrize("places", [(), (1_001,), (777, 2_345, 2_351)])
def test_of_epochs_long_ago_few_are_looked_at_and_the_best_is_among_them(places):
    rng, horizon, cost = stream(0, "old", len(places)), 4_000, penalty(4_000)
    means = 3.0 * (np.searchsorted(places, np.arange(horizon), side="right") % 2)
    values, search = (means + rng.normal(size=horizon))[:, None], Search(horizon, 1, 1, cost)
    found = [int(search.push(each[None], np.ones((1, 1)))[0]) for each in values]
    assert search.count < 1_400
    cuts, end = [], horizon
    while end := found[end - 1]:
        cuts.append(end)
    last = last_segments(values - values.mean(), np.ones((horizon, 1)), cost)
    best, end = [], horizon
    while end := last[end - 1]:
        best.append(end)
    assert cuts == best
    assert len(cuts) == len(places)


@pytest.mark.parametrize("n_words", [None, 3])
def test_the_division_is_the_best_of_all_and_online_that_of_the_epochs_so_far(n_words):
    found = 0
    for run in range(6):
        rng = stream(0, "divisions", run, n_words or 0)
        shape = (9,) if n_words is None else (9, n_words)
        blocks = np.repeat(rng.integers(0, 2, size=(3, *shape[1:])), 3, axis=0)  # means that last for three epochs
        values, weights = rng.normal(size=shape) + 3.0 * blocks, rng.integers(1, 4, size=9)
        variance = 1.0 if n_words is None else np.array([0.5, 1.0, 2.0])
        cost = penalty(9, n_words or 1)
        table = values.reshape(9, -1) / np.sqrt(variance)
        fit = detect(values, weights, variance)
        assert fit.starts.tolist() == best_division(table, weights, cost).tolist()
        found += fit.changes
        first = fit.starts == fit.starts[4]
        assert fit.estimates[4] == pytest.approx(np.average(values[first], axis=0, weights=weights[first]))
        now = detect(values, weights, variance, online=True)
        for epoch in (2, 5, 8):  # the same cost, which is that of the whole horizon
            last = best_division(table[: epoch + 1], weights[: epoch + 1], cost)[-1]
            assert now.starts[epoch] == last
            segment = slice(last, epoch + 1)
            assert now.estimates[epoch] == pytest.approx(np.average(values[segment], axis=0, weights=weights[segment]))
    assert found > 4


def test_releases_stay_as_they_are_where_segments_do_not_explain_them():
    """Means that alternate by four standard errors: a segment of all leaves residuals of 1 + 4 on average."""
    values = np.tile([-2.0, 2.0], 100) + stream(0, "noise").normal(size=200)
    fit = detect(values, np.ones(200), 1.0)
    assert fit.estimates.tolist() == values.tolist()
    assert not fit.explained.any()
    assert fit.reports.tolist() == [1.0] * 200
    online = detect(values, np.ones(200), 1.0, online=True)
    assert online.explained[0]
    assert not online.explained[30:].any()
    slow = detect(values / 5, np.ones(200), 1.0)  # bias of .4 standard errors, and less noise than is stated
    assert slow.explained.all()
    assert slow.changes == 0


def test_changes_are_looked_for_in_the_frequent_words_and_all_words_are_averaged():
    values = np.zeros((4, 3))
    values[:, 0] = [1.0, 1.0, 9.0, 9.0]
    values[:, 2] = 0.4
    reports = np.full(4, 4)
    assert frequent(values, reports, np.ones(3)).tolist() == [0]  # averages 5, 0 and .4, standard errors 1/2
    assert frequent(values, reports, 0.5).tolist() == [0, 2]
    fit = detect(values, reports, np.ones(3), words=np.array([0]))
    assert fit.estimates.tolist() == values.tolist()
    assert detect(values, reports, np.ones(3), words=np.array([1, 2])).changes == 0


@pytest.mark.parametrize("online", [False, True])
def test_variances_of_epochs_and_words_weigh_what_they_belong_to(online):
    """Twice the variance in an epoch is the same as half the reports there."""
    rng = stream(0, "weights")
    values, spread = rng.normal(size=(40, 2)) + 3.0 * (np.arange(40)[:, None] > 22), rng.uniform(0.5, 2.0, size=(40, 1))
    once_each = detect(values, np.ones(40), spread, online=online)
    assert once_each.changes > 0
    assert once_each.starts.tolist() == detect(values, 1 / spread[:, 0], 1.0, online=online).starts.tolist()
    single = detect(values[:, 0], np.ones(40), spread[:, 0], online=online)
    assert single.starts.tolist() == detect(values, np.ones(40), spread, words=np.array([0]), online=online).starts.tolist()


@pytest.mark.parametrize("n_words", [2, 4])
def test_online_nothing_that_comes_later_moves_an_estimate(n_words):
    settings, rng = Once(9000, 60, 3.0, n_words), stream(0, "later")
    means = np.where(np.arange(60) < 30, 0.1, 0.6)
    laws = np.column_stack([*[(1 - means) / (n_words - 1)] * (n_words - 1), means])
    data = streams.WordStream.make([9000], laws, np.arange(60)[None, :], 1)
    tally, other = (once.simulate(settings, data, rng) for _ in range(2))
    parts = ((tally.reports, other.reports), (tally.sums, other.sums))
    mixed = Tally(*(np.concatenate([first[:40], second[40:]]) for first, second in parts))
    now, changed = (settings.detect(each, online=True) for each in (tally, mixed))
    assert now.starts[39] > 0
    assert np.array_equal(now.estimates[:40], changed.estimates[:40])
    assert not np.array_equal(now.estimates[40:], changed.estimates[40:])


def test_more_reports_of_the_last_epoch_are_as_good_as_all_of_them_at_once():
    values, reports = stream(0, "more").normal(size=(30, 2)) + 3.0 * (np.arange(30)[:, None] > 15), np.arange(2.0, 32.0)
    spread = np.array([0.5, 2.0])
    one, two = detection.Watch(30, 2), detection.Watch(30, 2)
    for told, many in zip(values, reports, strict=True):
        one.tell(told, many, spread)
        two.tell(told + 5.0, many / 3, spread)
        two.tell(told, many, spread, again=True)
        assert [two.start[0], two.reports[0], two.explained[0]] == [one.start[0], one.reports[0], one.explained[0]]
        assert two.estimate == pytest.approx(one.estimate)
    assert one.start[0] > 0


@pytest.mark.parametrize("absorb", [True, False])
@pytest.mark.parametrize("window", [1, 3, 8, 40])
def test_no_window_asks_more_users_than_there_are_and_releases_follow_the_mean(absorb, window):
    """LDP-IDS: a constant mean, then a jump in each epoch; users who are asked within a window must be different ones."""
    means = np.concatenate([np.full(20, 0.3), np.resize([0.9, 0.1], 20)])
    data = streams.BitStream.make([10**8], means, 1)
    estimates, asked = baselines.within_windows(data, 2.0, stream(0, "windows"), window=window, absorb=absorb)
    within = np.convolve(asked, np.ones(window), "valid")
    assert within.max() <= 10**8
    assert asked.min() >= 10**8 // (2 * window)
    assert np.abs(estimates[:20] - 0.3).max() < 0.02
    released = np.flatnonzero(np.diff(estimates, prepend=np.nan) != 0)
    reports = asked[released] - 10**8 // (2 * window)
    assert (np.abs(estimates[released] - means[released]) <= 6 * np.sqrt(0.5 / reports)).all()
    part = 10**8 // (2 * window)
    if absorb:  # a release uses up what was saved in the epochs before it, and as many have none after it
        for place, each in zip(released, (asked[released] - part) // part, strict=True):
            assert (estimates[place : place + each] == estimates[place]).all()
        assert ((asked[released] - part) // part).max() >= min(4, window)
    else:  # half of what the window has left
        for place, each in zip(released, reports, strict=True):
            own = asked[max(0, place - window + 1) : place] - part
            assert each == (10**8 // 2 - own.sum()) // 2


def test_a_reserve_s_users_have_one_role_each_and_a_crew_is_called_once():
    """Three changes, of 20 standard errors and more."""
    settings = Reserve(4_000, 12, 4.0, 3)
    steady, *crews = settings.parts
    roles = reserve.start(settings, stream(0, "roles")).roles
    assert np.bincount(-roles[roles < 0]).tolist() == [0, *crews]
    assert [np.sum(roles > 0), np.sum(roles == 0)] == [steady, 4_000 - steady - sum(crews)]
    data = streams.BitStream.make([4_000], streams.steps(12, 0.1, {4: 0.9, 7: 0.1, 10: 0.9}), 1)
    rngs = {name: stream(0, "called", name) for name in ("words", "public", "private")}
    called = [release for release in reserve.run(settings, data, **rngs) if release.called]
    assert [release.epoch for release in called[:4]] == [1, 4, 7, 10]
    assert [release.crews_left for release in called] == [4, 3, 2, 1, 0][: len(called)]


def test_users_split_over_periods_hold_each_period_s_estimate():
    data = streams.BitStream.make([10**6], [[0.2] * 4 + [0.8] * 4], 100)
    estimates = split_users.periods(data, 1.0, stream(0, "recompute"), 4)
    assert len(set(estimates.tolist())) == 2
    settings = Once(10**6, 8, 1.0, every=4)
    assert np.abs(estimates - data.truth).max() < 5 * settings.standard_error()
    expected = once.simulate(settings, data, stream(0, "recompute"))
    assert estimates[[0, 4]] == pytest.approx(settings.estimates(expected)[:, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Once(10, 4, 1.0, every=5), "every must be at most the horizon, 4, got 5"),
        (lambda: Once(10, 4, 1.0, 3, report=Subset(3, 2.0)), "report must be one of 3 values with epsilon 1.0"),
        (lambda: Once(10, 4, 1.0, 3, report=Subset(4, 1.0)), "report must be one of 3 values with epsilon 1.0"),
        (lambda: penalty(4, false_alarm=math.nan), "false_alarm must lie in"),
        (lambda: detect(np.zeros(3), np.ones(2), 1.0), "one entry per epoch"),
        (lambda: detect(np.zeros(2), np.ones(2), math.nan), "variance must be > 0"),
        (lambda: detect(np.zeros(2), np.ones(2), np.ones(3)), r"variance must go with estimates of shape \(2,\)"),
        (lambda: detect(np.array([0.0, math.nan]), np.ones(2), 1.0), "finite where there are any"),
        (lambda: detect(np.zeros(2), np.zeros(2), 1.0), "not all 0"),
        (
            lambda: once.simulate(Once(2, 2, 1.0), streams.BitStream.make([2], [[0.5]], 1), stream(0)),
            "stream must have horizon = 2, got 1",
        ),
        (
            lambda: once.simulate(Once(2, 1, 1.0, 3), streams.WordStream.make([2], [[0.5, 0.5]], [[0]], 1), stream(0)),
            "stream must have n_words = 3, got 2",
        ),
        (
            lambda: baselines.within_windows(TWO_GROUPS, 1.0, stream(0, "x"), window=2),
            "stream must have one group of users, got 2",
        ),
        (
            lambda: baselines.within_windows(ONE_GROUP, 1.0, stream(0, "x"), window=6),
            "window must be at most n_users / 2, 5, got 6",
        ),
    ],
)
def test_what_cannot_work_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
