"""Choosing a protocol from public inputs: runs without noise by hand, who is chosen where, and what the notebook reads."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from planner_truth import bits

from evolvingdp.core.reports import Subset
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import streams
from evolvingdp.evolving.rivals import choosing as rivals
from evolvingdp.evolving.rivals import once
from evolvingdp.evolving.rivals.choosing import PLANNED, choose
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.notebooks.evolving import choosing, split_users
from evolvingdp.notebooks.evolving.choosing import random_means
from evolvingdp.planning import planner
from evolvingdp.planning.local import moving
from evolvingdp.planning.question import Question

METHODS = ("tuned", "detected", "reserve", "once", "smoothed")


def folded(standard_error, bias=0.0):
    """E |bias + error|, and 1/2 at most, by summing up."""
    z = np.linspace(-9, 9, 20_001)
    mean = np.average(np.abs(bias + standard_error * z), weights=np.exp(-z * z / 2))
    return 0.5 * math.tanh(2 * mean)


def test_without_changes_predictions_are_those_of_noise():
    choice = choose(10**6, 64, 10**6, 1.0, changes=0, promised=True, online=True)
    assert set(choice.predicted) == set(METHODS) - {"smoothed"}  # which reads later epochs
    tuned = Thresh.tuned(10**6, 64, 10**6, 1.0, changes=0, spare=0)
    assert choice.settings["tuned"] == tuned
    once, means = Once(10**6, 64, 1.0), rivals.streams(64, 0)[PLANNED][0]
    update = math.sqrt(tuned.estimate_randomizer.variance(float(means[0])) / 10**6)
    assert choice.predicted["tuned"] == {PLANNED: pytest.approx(folded(update), rel=1e-6)}
    one = math.sqrt(float(once.report.variance(means[0])) * 64 / 10**6)
    so_far = [folded(one / math.sqrt(epochs)) for epochs in range(1, 65)]
    assert choice.predicted["detected"][PLANNED] == pytest.approx(np.mean(so_far), rel=1e-6)
    late = choose(10**6, 64, 10**6, 1.0, changes=0, promised=True)
    assert late.predicted["detected"][PLANNED] == pytest.approx(folded(one / 8), rel=1e-6)
    assert late.settings["once"] == Once(10**6, 64, 1.0, every=64)


def of_one(run, settings, means, *others):
    """Of a single stream, (horizon,)."""
    bias, errors = run(settings, means[:, None], *others)
    return bias[:, 0], errors[:, 0]


def test_streams_are_predicted_together_as_each_by_itself():
    """A reserve is called at a change of its own stream."""
    table = np.array([means for each in rivals.streams(48, 2).values() for means in each]).T
    settings, voting = Once(10**6, 48, 1.0), Thresh.tuned(10**6, 48, 10**6, 4.0, changes=2)
    runs = {rivals._watched: (settings, [9000, 9000, 2000]), rivals._averaged: (settings,), rivals.voted: (voting,)}
    for run, (made, *others) in runs.items():
        together, alone = run(made, table, *others), [of_one(run, made, means, *others) for means in table.T]
        np.testing.assert_allclose(together, np.moveaxis(alone, 0, 2), rtol=1e-9, atol=1e-12)


def test_a_level_has_the_bias_and_the_noise_of_its_weights():
    settings, means = Once(64_000, 64, 1.0), streams.drift(64, 0.2, 0.6)
    one = np.sqrt(settings.report.variance(means) / 1000)
    bias, errors = of_one(rivals._levelled, settings, means, 1e-9)  # an average of all
    assert bias == pytest.approx(means.mean() - means, abs=0.002)
    assert errors == pytest.approx(np.full(64, np.sqrt(np.mean(one**2) / 64)), rel=0.02)
    bias, errors = of_one(rivals._levelled, settings, means, 1e9)  # the releases
    assert np.abs(bias).max() < 1e-6
    assert errors == pytest.approx(one, rel=1e-6)
    bias, errors = of_one(rivals._levelled, settings, means, 1.0)
    decay = (3 - math.sqrt(5)) / 2  # of 1 and steps as large as the noise: lambda + 1 / lambda = 3
    assert np.abs(bias[16:-16]).max() < 1e-6
    assert errors[32] == pytest.approx(
        one[32] * math.sqrt((1 + decay**2) / (1 - decay**2)) * (1 - decay) / (1 + decay), rel=0.01
    )


def test_a_vote_is_late_until_the_threshold_is_below_the_change_and_never_after_the_last_update():
    voting = Thresh.tuned(10**6, 16, 10**5, 4.0, changes=1, spare=0)
    assert voting.threshold(1) > 0.05 > voting.threshold(8)
    means = streams.steps(16, 0.3, {6: 0.35, 12: 0.9})
    bias, errors = of_one(rivals.voted, voting, means)
    first = next(epoch for epoch in range(6, 17) if voting.threshold(epoch) < 0.05)
    at_last = [0.3] * (first - 1) + [0.35] * (17 - first)
    assert errors == pytest.approx([math.sqrt(voting.estimate_randomizer.variance(mean) / 10**6) for mean in at_last])
    assert bias[:5].tolist() == [0.0] * 5
    assert bias[5 : first - 1] == pytest.approx([-0.05] * (first - 6))
    assert bias[first - 1 : 11] == pytest.approx([0.0] * (12 - first))
    assert bias[11:] == pytest.approx([0.35 - 0.9] * 5)  # nobody is left to report


def test_a_segment_without_noise_begins_where_the_change_is_and_a_reserve_joins_it():
    settings, means = Once(80_000, 16, 1.0), streams.steps(16, 0.2, {9: 0.8})
    bias, errors = of_one(rivals._watched, settings, means, [])
    assert bias == pytest.approx(np.zeros(16), abs=1e-12)
    own = np.sqrt(settings.report.variance(means) / 5000)
    assert errors == pytest.approx(own / np.sqrt([*range(1, 9), *range(1, 9)]))
    with_crews = of_one(rivals._watched, settings, means, [4000, 4000, 1000])[1]
    assert with_crews[[0, 8]] == pytest.approx(own[[0, 8]] * math.sqrt(5000 / 9000))
    assert with_crews[7] == pytest.approx(own[7] * math.sqrt(5000 / 44_000))
    averaged = of_one(rivals._averaged, settings, means)
    assert averaged[1] == pytest.approx(own / math.sqrt(8))


@pytest.mark.parametrize("online", [False, True])
def test_the_choice_has_the_smallest_regret_of_all_but_a_tenth(online):
    choice = choose(2 * 10**6, 52, 10**6, 1.0, changes=3, online=online)
    assert choice.regret[choice.method] <= 1.1 * min(choice.regret.values())
    for method, errors in choice.predicted.items():
        worst = max(errors[name] / min(each[name] for each in choice.predicted.values()) for name in errors)
        assert choice.regret[method] >= worst * (1 - 1e-12)  # a period of another length may be the best
    assert set(choice.predicted["once"]) == set(choosing.STREAMS) == set(rivals.streams(52, 3))
    assert f"{choice.method}: on every stream at most {choice.regret[choice.method]:.2f} times" in str(choice)


@pytest.mark.parametrize(
    ("inputs", "changes", "options", "methods"),
    [
        ((10**6, 256, 10**6, 1.0), 3, {"online": True, "promised": True}, {"reserve"}),  # few and large changes
        ((10**6, 256, 10**6, 1.0), 3, {"online": True}, {"reserve", "detected"}),  # but what if there are more
        ((10**6, 256, 1, 1.0), 3, {}, {"smoothed"}),  # a bit an epoch
        (
            (10**5, 128, 1, 1.0),
            127,
            {"promised": True},
            {"once", "detected", "smoothed"},
        ),  # a new mean in every epoch: averages say so
    ],
)
def test_the_method_that_a_reader_would_expect_is_chosen(inputs, changes, options, methods):
    choice = choose(*inputs, changes=changes, **options)
    assert choice.method in methods
    assert set(choice.predicted) | set(choice.refused) == set(METHODS)


def test_advice_survives_a_wrong_plan():
    """Three changes planned; on a drift, and with twice as many, votes fail by forty times, and the choice does not."""
    size, rng = (2 * 10**6, 52, 10**6, 1.0), stream(0, "wrong plan")
    choice = choose(*size, changes=3, online=True)
    for means in (streams.drift(52, 0.2, 0.6), streams.steps(52, 0.2, {1 + 7 * k: (0.2, 0.7)[k % 2] for k in range(1, 7)})):
        data = streams.BitStream.make([2 * 10**6], means, 10**6)
        errors = [np.abs(choice.simulate(data, rng, method) - data.truth).mean() for method in (None, "tuned")]
        assert errors[0] < 0.012
        assert errors[1] > 5 * errors[0]


def test_what_is_impossible_says_why_and_is_not_run():
    choice = choose(10**4, 64, 1, 1.0, changes=3)
    assert set(choice.refused) == {"tuned", "reserve"}
    assert "epsilon must be > 2.099" in choice.refused["tuned"]
    assert "online must be True for a reserve" in choice.refused["reserve"]
    data = streams.BitStream.make([10**4], np.full(64, 0.5), 1)
    with pytest.raises(ValueError, match=r"method must be one of .*, got 'tuned'"):
        choice.simulate(data, stream(0, "tuned"), "tuned")
    for bad in (
        {"changes": -1},
        {"changes": 1, "n_users": 0},
        {"changes": 1, "epsilon": math.nan},
        {"changes": 1, "epoch_length": 0},
    ):
        size = {"n_users": 10, "horizon": 4, "epoch_length": 5, "epsilon": 1.0} | bad
        with pytest.raises(ValueError, match="must be"):
            choose(**size)


@pytest.mark.parametrize("method", METHODS)
def test_predictions_are_near_what_is_measured_and_every_epoch_has_an_estimate(method):
    """On the very streams, each a few times: within a third."""
    size = (10**6, 48, 10**6, 4.0)
    choice = choose(*size, changes=2, online=method != "smoothed")
    for name in (PLANNED, "constant", "drift" if method == "smoothed" else "week"):
        errors = []
        for turn, means in enumerate(rivals.streams(48, 2)[name]):
            data = streams.BitStream.make([10**6], means, 10**6)
            for run in range(
                14 if name == PLANNED or method == "smoothed" else 40
            ):  # an error of one update varies by .75 of its mean
                estimates = choice.simulate(data, stream(0, "measured", method, name, turn, run), method)
                assert estimates.shape == (48,)
                errors.append(np.abs(estimates - data.truth).mean())
        assert 2 / 3 < np.mean(errors) / choice.predicted[method][name] < 3 / 2


def test_epochs_without_reports_hold_the_last_estimate():
    choice = choose(5, 64, 10, 1.0, changes=0)
    data = streams.BitStream.make([5], np.full(64, 0.5), 10)
    for method in choice.settings:
        assert np.all(np.isfinite(choice.simulate(data, stream(0, "few"), method)))


def test_a_winner_has_the_smallest_mean_over_streams_and_the_choice_is_compared_with_it():
    """Two streams by hand: periods count as each user once, votes told the number as votes, what needs later epochs only in
    hindsight, another guarantee never."""
    errors = {
        split_users.ONCE: (0.2, 0.4),
        choosing.split(2): (0.1, 0.3),
        choosing.TUNED: (0.4, 0.4),
        choosing.TOLD: (0.5, 0.3),
        split_users.HINDSIGHT: (0.1, 0.1),
        split_users.SMOOTHED: (0.1, 0.15),
        choosing.OPTIMAL: (0.0, 0.0),
        choosing.CHOSEN: (0.2, 0.4),
        choosing.CHOSEN_LATE: (0.1, 0.1),
        split_users.SIXTEEN: (0.0, 0.0),  # another name of one of the periods
    }
    setting = {"part": "map"} | dict.fromkeys(choosing.SETTING, 1)
    rows = [
        setting | {"method": method, "mean_error": error, "max_error": 1 - error}
        for method, both in errors.items()
        for error in both
    ]
    table = pd.DataFrame(rows)
    (online,), (late,), (largest,) = (
        choosing.winners(table, *view).to_dict("records")
        for view in (("mean_error", True), ("mean_error", False), ("max_error", True))
    )
    assert (online["best"], online["error"], online["factor"]) == (split_users.ONCE, pytest.approx(0.2), pytest.approx(1.5))
    assert online["standard_error"] == pytest.approx(1.5 * np.hypot(1 / 3, 1 / 2))  # 0.1 each, of means of 0.3 and 0.2
    assert (late["best"], late["factor"]) == (split_users.HINDSIGHT, pytest.approx(1.0))
    assert largest["best"] in (choosing.TUNED, split_users.ONCE)


@pytest.mark.parametrize(("horizon", "n_users"), [(60, 20_000), (40, 500)])
def test_streams_that_are_followed_together_are_followed_each_by_itself(horizon, n_users):
    """With the same draws; what is smoothed has draws of its own."""
    means = [choosing.drawn(kind, horizon, 3, stream(0, "means", kind))[0] for kind in choosing.STREAMS]
    data = [streams.BitStream.make([n_users], each, 4) for each in means]
    alone, reserved = Once(n_users, horizon, 1.0), Reserve(n_users, horizon, 1.0, 3)
    methods = (split_users.ONCE, split_users.ONLINE, split_users.HINDSIGHT)
    called = split_users.all_with_reserve(reserved, data, [stream(0, "crews", row) for row in range(len(data))])
    rngs = [stream(0, "once", row) for row in range(len(data))]
    together = split_users.all_reported_once(data, 1.0, rngs, *methods, smoothing=stream(0, "smooth"))
    for row, (one, found) in enumerate(zip(data, together, strict=True)):
        crews = rivals.follow(reserved, one, stream(0, "crews", row))
        np.testing.assert_array_equal(np.clip(called[:, row], 0, 1), crews)
        tally = once.simulate(alone, one, stream(0, "once", row))
        np.testing.assert_array_equal(found[split_users.ONCE], alone.estimates(tally)[:, 1])
        for kind in methods[1:]:
            fit = alone.detect(tally, online=kind == split_users.ONLINE).estimates[:, 1]
            np.testing.assert_allclose(found[kind], fit, rtol=0, atol=1e-12)
        smoothed = alone.smooth(tally, stream(0, "alone", row)).estimates[:, 1]
        apart = np.abs(found[split_users.SMOOTHED] - smoothed).max()
        assert apart < alone.standard_error() / 2, "the same smoother with other draws"


@pytest.mark.parametrize("kind", choosing.STREAMS)
def test_drawn_streams_are_of_their_kind(kind):
    means, count = choosing.drawn(kind, 60, 3, stream(0, "drawn", kind))
    assert means.shape == (60,)
    assert 0 <= means.min() <= means.max() <= 1
    changes = np.count_nonzero(np.diff(means))
    told = {"constant": 0, PLANNED: 3, "twice": 6, "four times": 12}
    assert count == told.get(kind, 0)
    assert changes == count if kind in told else changes > 12


def test_random_means_change_as_often_as_asked_and_are_the_same_for_all_horizons():
    short, long = (random_means(horizon, 3, stream(0, "means")) for horizon in (16, 400))
    assert [np.count_nonzero(np.diff(means)) for means in (short, long)] == [3, 3]
    assert list(dict.fromkeys(short)) == list(dict.fromkeys(long))
    assert np.count_nonzero(np.diff(random_means(8, 7, stream(0, "every")))) == 7


def planned(name, question):
    method = next(method for method in planner.asked(question) if method.name == name)
    return planner.expected(method, question)


def test_the_planner_and_the_notebook_have_the_same_numbers_for_a_list():
    """Of a word that one user in k holds; the planner leaves out what the users' own share is off by."""
    table, users = choosing.reports(), 1_000_000
    for n_values, epsilon in ((4, 1.0), (16, 3.0), (128, 6.0)):
        rows = table[(table.n_values == n_values) & (table.epsilon == epsilon) & (table.bits <= 256)]
        size = {"items": n_values, "share": 1 / n_values, "changes": 0}
        told = planned("each user once", Question("frequencies", users=users, periods=20, epsilon=epsilon, **size))
        variance = rows.error.min() ** 2 * 20 - (1 - 1 / n_values) / n_values
        assert told.standard_error == pytest.approx(math.sqrt(variance / users), rel=1e-9)


def test_the_planner_and_the_notebook_have_the_same_numbers_for_a_mean():
    """What the notebook's functions measure on the planner's streams, within both standard errors; a quarter more is not."""
    question, runs = Question(users=200_000, periods=40, epsilon=1.0, change=0.2, changes=2, readings=1000), 200
    names = {"": split_users.ONCE, ", changes found afterwards": split_users.HINDSIGHT}
    names[", changes found as they come"] = split_users.ONLINE
    squares = {name: np.empty(runs) for name in names}
    for run in range(runs):
        rng = stream(0, "planner and notebook", run)
        data = bits(question, rng)
        found = split_users.reported_once(data, question.epsilon, rng, *names.values())
        for name, own in names.items():
            squares[name][run] = np.mean((found[own] - data.truth) ** 2)
    for name, each in squares.items():
        told, measured = planned("each user once" + name, question), math.sqrt(each.mean())
        off = math.hypot(told.own_error, each.std() / math.sqrt(runs) / 2 / measured)
        assert abs(told.standard_error - measured) < 4.9 * off
        assert abs(1.25 * told.standard_error - measured) > 4.9 * off


RESERVE, VOTED = "each user once, with a reserve that is called at a change", "THRESH, tuned"


@pytest.mark.parametrize(
    ("name", "question"),
    [
        (RESERVE, Question(users=200_000, periods=40, epsilon=1.0, change=0.2, changes=2, readings=1000)),
        (VOTED, Question(users=1_000_000, periods=128, epsilon=1.0, change=0.3, changes=3, readings=1_000_000)),
    ],
    ids=["reserve", "THRESH"],
)
def test_the_planner_and_the_notebook_have_the_same_numbers_for_what_waits_for_a_change(name, question):
    """What `follow`, by which the notebook measures, has on the planner's streams; a quarter more or less is not."""
    settings, runs = planner.settled(next(one for one in planner.asked(question) if one.name == name), question), 120
    told, squares = planned(name, question), np.empty(runs)
    for run in range(runs):
        rng = stream(0, "waiting", name, run)
        data = bits(replace(question, users=settings.n_users), rng)
        squares[run] = np.mean((rivals.follow(settings, data, rng, online=True) - data.truth) ** 2)
    measured = math.sqrt(squares.mean())
    off = math.hypot(told.own_error, squares.std() / math.sqrt(runs) / 2 / measured)
    assert abs(told.standard_error - measured) < 4.9 * off
    assert min(abs(factor * told.standard_error - measured) for factor in (0.75, 1.25)) > 4.9 * off


def test_the_planner_s_call_for_a_list_has_the_error_that_it_predicts():
    """Its settings and its call of `detect`, as printed, within both standard errors; online that of all words is not."""
    question, runs = Question("frequencies", users=1_000_000, periods=52, epsilon=4.0, items=100, changes=2), 40
    told = {one.method: one for one in planner.plan(question).predictions if "changes found" in one.method}
    calls = {name: re.search(r"detect\(.*\)", one.assumes)[0] for name, one in told.items()}
    every = "each user once, changes found as they come"
    calls["all words"] = "detect(tally, online=True)"
    squares = {name: np.empty(runs) for name in calls}
    for run in range(runs):
        rng = stream(0, "planner and a list", run)
        share = moving(question, rng)
        shares, places = np.unique(share, return_inverse=True)
        laws = np.column_stack([shares, *[(1 - shares) / 99] * 99])
        settings = eval(told[every].settings, {"Once": Once, "Subset": Subset})
        tally = once.simulate(settings, streams.WordStream.make([question.users], laws, places[None], 1), rng)
        for name, call in calls.items():
            found = eval(f"settings.{call}", {"settings": settings, "tally": tally, "np": np, "word": 0})
            squares[name][run] = np.mean((np.nan_to_num(found.estimates[:, 0]) - share) ** 2)
    assert len(told) == 2
    for name, each in squares.items():
        one, measured = told.get(name, told[every]), math.sqrt(each.mean())
        off = math.hypot(one.own_error, each.std() / math.sqrt(runs) / 2 / measured)
        assert (abs(one.standard_error - measured) < 4.9 * off) == (name in told)
