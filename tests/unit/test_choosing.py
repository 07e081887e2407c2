"""Choosing a protocol from public inputs: predictions by hand, who is chosen where, and that no data are read."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import streams
from evolvingdp.evolving.rivals.choosing import METHODS, choose, noise
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.detection import penalty
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.notebooks.evolving import choosing, split_users
from evolvingdp.notebooks.evolving.choosing import random_means


def test_without_changes_predictions_are_those_of_noise():
    choice = choose(10**6, 64, 10**6, 1.0, changes=0)
    assert tuple(choice.predicted) == METHODS
    crews = CrewThresh.plan(10**6, 64, 10**6, 1.0, changes=0)
    assert choice.settings["crews"] == crews
    assert choice.predicted["crews"] == pytest.approx(noise(crews.standard_error()))
    assert choice.predicted["detected"] == pytest.approx(noise(Once(10**6, 64, 10**6, 1.0).standard_error / 8))
    assert choice.predicted["once"] == pytest.approx(noise(Once(10**6, 64, 10**6, 1.0, every=64).standard_error))
    assert noise(1e-4) == pytest.approx(1e-4 * math.sqrt(2 / math.pi))
    assert noise(100.0) == pytest.approx(0.5)


def test_changes_cost_their_size_until_they_are_seen():
    few, lasts = 8, 128 / 9
    choice = choose(10**7, 128, 10**6, 1.0, changes=few)
    sizes = (np.arange(10**4) + 0.5) / 10**4
    shares = 2 * (1 - sizes) / 10**4
    crews = choice.settings["crews"]
    seen_at = [min((t for t in range(8) if crews.voting.threshold(1 << t) < size), default=None) for size in sizes]
    waits = np.array([lasts if at is None else min(lasts, (2**at - 1) / 2) for at in seen_at])
    stale = few / 128 * float(shares @ (waits * sizes))
    assert choice.predicted["crews"] == pytest.approx(noise(crews.standard_error()) + stale, rel=0.02)
    variance = Once(10**7, 128, 10**6, 1.0).standard_error ** 2
    seen = sizes**2 * lasts / 2 > variance * penalty(128)
    places = few / 128 * float(shares @ (np.where(seen, 1.5 * variance / sizes**2, 2 * lasts / 3) * sizes))
    assert choice.predicted["detected"] == pytest.approx(noise(math.sqrt(variance / lasts)) + places, rel=0.02)
    every = choice.settings["once"].every
    held = few / 128 * (every - 1) / 2 / 3  # changes are of size 1/3 in the mean
    assert choice.predicted["once"] == pytest.approx(noise(choice.settings["once"].standard_error) + held, rel=1e-3)


@pytest.mark.parametrize(
    ("inputs", "changes", "online", "method"),
    [
        ((10**6, 1024, 10**6, 1.0), 3, True, "crews"),  # few and large changes, long epochs
        ((10**6, 1024, 10**3, 1.0), 3, True, "detected"),  # thresholds that no change exceeds
        ((10**6, 1024, 1, 1.0), 3, False, "detected"),  # a bit an epoch
        ((10**7, 16, 10**6, 1.0), 3, False, "detected"),
        ((10**5, 128, 10**6, 5.0), 3, True, "crews"),
        ((10**6, 256, 1, 1.0), 255, True, "once"),  # a new mean in every epoch: segments of one epoch explain nothing
        ((10**6, 256, 1, 1.0), 255, False, "once"),
        ((10**6, 256, 1, 1.0), 31, True, "detected"),
    ],
)
def test_the_method_that_a_reader_would_expect_is_chosen(inputs, changes, online, method):
    choice = choose(*inputs, changes=changes, online=online)
    assert choice.method == method
    assert choice.predicted[method] == min(choice.predicted.values())
    assert set(choice.predicted) | set(choice.refused) == set(METHODS)


def test_what_is_impossible_says_why_and_is_not_run():
    choice = choose(10**4, 64, 1, 1.0, changes=3)
    assert set(choice.refused) == {"crews", "tuned"}
    assert "n_users must be at least" in choice.refused["crews"]
    data = streams.BitStream.make([10**4], np.full(64, 0.5), 1)
    with pytest.raises(ValueError, match="method must be one of detected, once, got 'crews'"):
        choice.simulate(data, stream(0, "crews"), "crews")
    for bad in ({"changes": -1}, {"changes": 1, "n_users": 0}, {"changes": 1, "epsilon": math.nan}):
        size = {"n_users": 10, "horizon": 4, "epoch_length": 5, "epsilon": 1.0} | bad
        with pytest.raises(ValueError, match="must be"):
            choose(**size)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_an_estimate_of_every_epoch(method):
    choice = choose(10**5, 24, 10**6, 4.0, changes=1)
    data = streams.BitStream.make([10**5], streams.steps(24, 0.2, {10: 0.7}), 10**6)
    estimates = choice.simulate(data, stream(0, "method", method), method)
    assert estimates.shape == (24,)
    assert np.abs(estimates - data.truth).mean() < 4 * choice.predicted[method]


def test_epochs_without_reports_hold_the_last_estimate():
    choice = choose(5, 64, 10, 1.0, changes=0)
    data = streams.BitStream.make([5], np.full(64, 0.5), 10)
    for method in choice.settings:
        assert np.all(np.isfinite(choice.simulate(data, stream(0, "few"), method)))


def test_predictions_are_near_what_is_measured():
    """Means that are drawn as the prediction supposes: within a half, in the mean over 24 streams."""
    for online in (False, True):
        choice = choose(10**6, 128, 10**6, 1.0, changes=3, online=online)
        for method in ("crews", "detected"):
            errors = []
            for run in range(24):
                rng = stream(0, "predicted", str(online), method, run)
                data = streams.BitStream.make([10**6], np.repeat(rng.random(4), 32), 10**6)
                errors.append(np.abs(choice.simulate(data, rng, method) - data.truth).mean())
            assert 2 / 3 < np.mean(errors) / choice.predicted[method] < 3 / 2


def test_a_winner_has_the_smallest_mean_over_streams_and_the_choice_is_compared_with_it():
    """Two streams by hand: periods count as each user once, what needs later epochs only in hindsight."""
    errors = {
        split_users.ONCE: (0.2, 0.4),
        choosing.split(2): (0.1, 0.3),
        choosing.TUNED: (0.4, 0.4),
        split_users.HINDSIGHT: (0.1, 0.1),
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
    assert largest["best"] == choosing.TUNED


def test_random_means_change_as_often_as_asked_and_are_the_same_for_all_horizons():
    short, long = (random_means(horizon, 3, stream(0, "means")) for horizon in (16, 400))
    assert [np.count_nonzero(np.diff(means)) for means in (short, long)] == [3, 3]
    assert list(dict.fromkeys(short)) == list(dict.fromkeys(long))
    assert np.count_nonzero(np.diff(random_means(8, 7, stream(0, "every")))) == 7


def test_a_choice_among_some_methods_is_that_among_all_without_the_others():
    size = (10**7, 128, 10**6, 1.0)
    whole = choose(*size, changes=3)
    for method in METHODS:
        one = choose(*size, changes=3, methods=(method,))
        assert (one.method, one.settings) == (method, {method: whole.settings[method]})
    with pytest.raises(ValueError, match="n_users must be at least"):
        choose(100, 128, 10**6, 1.0, changes=3, methods=("crews",))
    for wrong in ((), ("crews", "naive")):
        with pytest.raises(ValueError, match="methods must be some of crews, tuned, detected, once"):
            choose(*size, changes=3, methods=wrong)
