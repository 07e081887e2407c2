"""Users split over epochs, and with a reserve: users one by one and the simulation have one exact law; detection keeps its
false-alarm rate."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, binomtest, ks_2samp

from evolvingdp.core.detection import detect, detect_many
from evolvingdp.core.geometry import Geometry
from evolvingdp.core.reports import Hashed, Projective, Sign, Subset
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import streams
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.reserve import Reserve
from support import ALPHA, fits

PATHS = ("users", "simulation")
SIZES, MEANS = [400, 200], [[0.5, 0.8], [0.1, 1.0]]
NAMES = ("words", "public", "private")


def tallied(path, settings, data, rng):
    return (
        once.simulate(settings, data, rng) if path == "simulation" else once.run(settings, data, **dict.fromkeys(NAMES, rng))
    )


def ones_law(epsilon):
    """Ones of the second of two epochs, whose bits of group 0 have mean .8 in all: each user is one with half its chance."""
    report = Subset(2, epsilon)
    chances = [(report.other + mean * (report.own - report.other)) / 2 for mean in (0.8, 1.0)]
    masses = (binom.pmf(np.arange(size + 1), size, chance) for size, chance in zip(SIZES, chances, strict=True))
    return dict(enumerate(np.convolve(*masses)))


@pytest.mark.parametrize("path", PATHS)
def test_ones_of_an_epoch_have_their_exact_law(path):
    data = streams.BitStream.make(SIZES, MEANS, 10)
    settings, draws, rng = Once(600, 2, 2.0), 1_500, stream(0, "ones", path)
    observed: Counter = Counter()
    reports = np.zeros(2, dtype=int)
    for _ in range(draws):
        tally = tallied(path, settings, data, rng)
        observed[int(tally.sums[1, 1])] += 1
        reports += tally.reports
    assert fits(observed, ones_law(2.0), draws) > ALPHA
    assert fits(observed, ones_law(2.2), draws) < ALPHA
    assert reports.sum() == 600 * draws
    assert binomtest(int(reports[0]), 600 * draws, 0.5).pvalue > ALPHA


def test_a_reserve_has_one_law_on_both_paths():
    """Epochs of the second and the last call, and two estimates; a tenth less epsilon is rejected."""
    data = streams.WordStream.make([900, 600], [[0.8, 0.1, 0.1], [0.2, 0.2, 0.6]], [[0] * 4 + [1] * 4, [0] * 8], 3)
    rows = {}
    for name, path, runs, epsilon in (
        ("users", "users", 300, 3.0), ("simulation", "simulation", 900, 3.0), ("wrong", "simulation", 900, 2.7),
    ):  # fmt: skip
        settings = Reserve(1500, 8, epsilon, 1, 3, report=Subset(3, epsilon))
        found = []
        for run in range(runs):
            rng = stream(0, "reserve", name, run)
            if path == "simulation":
                releases = reserve.simulate(settings, data, rng)
            else:
                releases = reserve.run(settings, data, **dict.fromkeys(NAMES, rng))
            called = [release.epoch for release in releases if release.called]
            assert called[0] == 1
            second = called[1] if len(called) > 1 else 99
            away = releases[0].estimate[0] - 0.8
            found.append((second, called[-1], releases[-1].estimate[2], away, away**2))
        rows[name] = np.array(found)
    for column in range(4):
        assert ks_2samp(rows["users"][:, column], rows["simulation"][:, column], method="asymp").pvalue > ALPHA / 4
    exact = [float(Subset(3, epsilon).variance(0.8)) / (settings.cell + 1125 / 8) for epsilon in (3.0, 2.4)]
    ratios = rows["simulation"][:, 4].mean() / np.array(exact)
    assert abs(ratios[0] - 1) < 4.9 * math.sqrt(2 / 900) + 0.05  # the number of steady reports varies
    assert abs(ratios[1] - 1) > 4.9 * math.sqrt(2 / 900)


SHARES = np.array([0.4, 0.1, 0.1, 0.1, 0.3])


def many(users, tally, online):
    told, reports = users.estimates(tally)[:, 1:], tally.reports[:, None]
    return detect_many(told, reports, users.report.largest_variance, online=online)


def called(users, number):
    """As many changes as crews are called, but for the first, on constant data of its own."""
    size, constant = [users.n_users], np.zeros((1, users.horizon))
    data = streams.BitStream.make(size, constant + 0.5, 10)
    if users.n_words > 2:
        data = streams.WordStream.make(size, SHARES, constant.astype(int), 10)
    settings = Reserve(users.n_users, users.horizon, users.epsilon, 3, users.n_words, report=users.report)
    releases = reserve.simulate(settings, data, stream(0, "called", number))
    return SimpleNamespace(changes=sum(release.called for release in releases) - 1)


WAYS = {  # every public way to look for changes, and the mistakes that it once made or could make
    "bits": lambda users, tally: users.detect(tally),
    "bits online": lambda users, tally: users.detect(tally, online=True),
    "bits, the largest variance": lambda users, tally: detect(
        users.estimates(tally)[:, 1], tally.reports, users.report.variance(0.5)
    ),
    "words": lambda users, tally: users.detect(tally),
    "words online": lambda users, tally: users.detect(tally, online=True),
    "one word": lambda users, tally: users.detect(tally, words=np.array([0])),
    "one word online": lambda users, tally: users.detect(tally, words=np.array([0]), online=True),
    "bits, of many series": lambda users, tally: many(users, tally, False),
    "bits, of many series online": lambda users, tally: many(users, tally, True),
    "bits, a reserve's calls online": lambda users, tally: called(users, int(tally.sums[0, 1])),
    "words, a reserve's calls online": lambda users, tally: called(users, int(tally.sums[0, 1])),
    "bits, half the variance": lambda users, tally: detect(
        users.estimates(tally)[:, 1], tally.reports, users.report.variance(0.5) / 2
    ),
    "words, that of a rare one": lambda users, tally: detect(
        users.estimates(tally), tally.reports, users.report.variance(0.0)
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_constant_means_are_divided_at_most_as_often_as_is_stated(way, epsilon):
    """At most 5 % in hindsight, 6 to 20 % online; half the variance, or at epsilon = 4 that of a rare word, finds more."""
    runs, found = 150, 0
    settings = Once(20_000, 60, epsilon, 5, report=Hashed(5, epsilon)) if "word" in way else Once(20_000, 60, epsilon)
    for run in range(runs):
        rng = stream(0, "constant", run)
        if "word" in way:
            data = streams.WordStream.make([20_000], SHARES, np.zeros((1, 60), dtype=int), 10)
            found += WAYS[way](settings, once.simulate(settings, data, rng)).changes > 0
        else:
            data = streams.BitStream.make([20_000], np.full((1, 60), 0.5), 10)
            found += WAYS[way](settings, once.simulate(settings, data, rng)).changes > 0
    too_often = binomtest(found, runs, 0.2 if "online" in way else 0.05, alternative="greater").pvalue < ALPHA
    assert too_often == ("half" in way or ("rare" in way and epsilon == 4.0))


@pytest.mark.parametrize("shares", [(0.5, 0.5, 0.0, 0.0, 0.0), (0.9, 0.05, 0.05)])
@pytest.mark.parametrize("way", ["words", "words online", "words, a reserve's calls online", "words, each as if alone"])
def test_few_words_of_the_default_report_change_no_oftener_though_their_reports_add_up_to_one(way, shares, monkeypatch):
    """One value a user: with the variance of each word alone there are 12 % in hindsight, and 50 % online."""
    n_users, runs, found = 2_000_000, 300 if way == "words" else 100, 0
    settings = Once(n_users, 60, 4.0, len(shares))
    assert settings.report == Subset(len(shares), 4.0)
    monkeypatch.setitem(globals(), "SHARES", np.array(shares))
    data = streams.WordStream.make([n_users], np.array(shares), np.zeros((1, 60), dtype=int), 10)
    for run in range(runs):
        tally = once.simulate(settings, data, stream(0, "few", run))
        if way in WAYS:
            found += WAYS[way](settings, tally).changes > 0
        else:
            told = settings.estimates(tally)
            found += detect(told, tally.reports, settings.report.largest_variance, online=True).changes > 0
    too_often = binomtest(found, runs, 0.2 if "online" in way or "alone" in way else 0.05, alternative="greater")
    assert (too_often.pvalue < ALPHA) == ("alone" in way)


KINDS = {
    "one value": Subset(5, 4.0),
    "two values": Subset(5, 4.0, 2),
    "a hash": Hashed(5, 4.0),
    "a sign": Sign(5, 4.0),
    "a point": Projective(5, 4.0, Geometry(2, 3)),
}


@pytest.mark.parametrize("words", [None, [1]], ids=["all words", "one word"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_report_changes_oftener_than_is_stated(kind, words):
    """At most 5 % in hindsight and 16 % online (60 epochs); with a third of the variance many more."""
    settings, looked = Once(200_000, 60, 4.0, 5, report=KINDS[kind]), None if words is None else np.array(words)
    data = streams.WordStream.make([200_000], [0.5, 0.5, 0, 0, 0], np.zeros((1, 60), dtype=int), 1)
    runs, found = 60, np.zeros(3, dtype=int)
    for run in range(runs):
        tally = once.simulate(settings, data, stream(0, "kinds", kind, run))
        told, variance = settings.estimates(tally), settings.report.variance(np.array(data.truth[0]))
        fits = [settings.detect(tally, words=looked, online=online) for online in (False, True)]
        fits.append(detect(told, tally.reports, np.maximum(variance / 3, 1e-9), words=looked))
        found += [fit.changes > 0 for fit in fits]
    chances = [
        binomtest(many, runs, p, alternative="greater").pvalue
        for many, p in zip(found.tolist(), (0.05, 0.16, 0.05), strict=True)
    ]
    assert min(chances[:2]) > ALPHA
    assert chances[2] < ALPHA


@pytest.mark.parametrize("alone", [False, True])
def test_points_of_a_space_change_no_oftener_where_most_users_hold_one_word(alone):
    """Words on a line through it are supported together: with the variance of each word alone most streams change."""
    settings = Once(2_000_000, 30, 3.0, 200, report=Projective(200, 3.0, Geometry(17, 3)))
    law, runs, found = np.r_[0.9, np.full(199, 0.1 / 199)], 60, 0
    data = streams.WordStream.make([2_000_000], law, np.zeros((1, 30), dtype=int), 1)
    for run in range(runs):
        tally = once.simulate(settings, data, stream(0, "points", run))
        variance = settings.report.largest_variance if alone else settings.report.largest_together
        found += detect(settings.estimates(tally), tally.reports, variance, online=True).changes > 0
    assert (binomtest(found, runs, 0.2, alternative="greater").pvalue < ALPHA) == alone


def test_a_word_is_watched_once():
    settings = Once(2_000, 4, 1.0, 5)
    tally = once.simulate(
        settings, streams.WordStream.make([2_000], np.full(5, 0.2), np.zeros((1, 4), dtype=int), 1), stream(0, "one")
    )
    with pytest.raises(ValueError, match=r"^words must be different ones, got \[1, 1\]$"):
        settings.detect(tally, words=[1, 1])


def test_a_rare_share_s_change_is_found_with_the_variance_of_a_rare_share():
    """From .02 to .024, at epsilon = 4: it saves 40 variances of what is there, and 6 of a fair bit; the penalty is 12."""
    settings = Once(400_000, 60, 4.0)
    data = streams.BitStream.make([400_000], streams.steps(60, 0.02, {31: 0.024}), 1)
    found = np.zeros(2)
    for run in range(40):
        tally = once.simulate(settings, data, stream(0, "rare", run))
        own = settings.estimates(tally)[:, 1]
        fits = settings.detect(tally), detect(own, tally.reports, settings.report.variance(0.5))
        found += [fit.changes > 0 for fit in fits]
    assert found[0] > 35
    assert found[1] < 10


def test_detected_estimates_have_the_standard_error_of_their_segments():
    """Two changes of eight standard errors."""
    settings = Once(60_000, 60, 1.0)
    data = streams.BitStream.make([60_000], streams.steps(60, 0.3, {21: 0.6, 41: 0.1}), 10)
    spread, scores = settings.report.variance(0.5), []
    for run in range(120):
        fit = settings.detect(once.simulate(settings, data, stream(0, "segments", run)))
        error = fit.estimates[:, 1] - data.truth
        scores += (error / fit.standard_errors(float(spread)))[[10, 30, 50]].tolist()
    true = math.sqrt(float(np.mean(settings.report.variance([0.3, 0.6, 0.1]))) / float(spread))
    ratio = math.sqrt(float(np.mean(np.square(scores)))) / true
    assert abs(ratio - 1) < 4.9 / math.sqrt(2 * len(scores))
    assert abs(1.35 * ratio - 1) > 4.9 / math.sqrt(2 * len(scores))


def test_detection_lowers_the_error_of_words_too():
    laws = np.full((2, 200), 0.4 / 195)
    laws[0, :5], laws[1, 5:10] = 0.12, 0.12
    laws[0, 5:10] = laws[1, :5] = 0.0
    data = streams.WordStream.make([10**6], laws / laws.sum(axis=1, keepdims=True), [[0] * 20 + [1] * 20], 10)
    settings = Once(10**6, 40, 1.0, 200)
    tally = once.simulate(settings, data, stream(0, "words"))
    raw, fit = settings.estimates(tally), settings.detect(tally)
    assert np.unique(fit.starts).tolist() == [0, 20]
    errors = [float(np.sqrt(np.mean((each - data.truth) ** 2))) for each in (raw, fit.estimates)]
    assert errors[1] == pytest.approx(errors[0] / math.sqrt(20), rel=0.15)
