"""Users split over epochs, and with a reserve: users one by one and the simulation have one exact law; detection keeps its
false-alarm rate."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

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


def crowd(law, epsilon, report=None, size=20_000, horizon=60, runs=150, online=0.2):
    """Users who hold words by one law for ever, how often they are tried, and how many of these may change online."""
    settings = Once(size, horizon, epsilon, len(law), report=report)
    if len(law) == 2:
        return settings, streams.BitStream.make([size], np.full((1, horizon), law[1]), 10), runs, online
    return settings, streams.WordStream.make([size], np.array(law), np.zeros((1, horizon), dtype=int), 10), runs, online


HALVES, MANY = (0.5, 0.5, 0, 0, 0), {"size": 2_000_000}
KINDS = (Subset(5, 4.0), Subset(5, 4.0, 2), Hashed(5, 4.0), Sign(5, 4.0), Projective(5, 4.0, Geometry(2, 3)))
CROWDS = {
    **{f"bits at {epsilon}": crowd((0.5, 0.5), epsilon) for epsilon in (1.0, 4.0)},
    **{f"hashes at {epsilon}": crowd((0.4, 0.1, 0.1, 0.1, 0.3), epsilon, Hashed(5, epsilon)) for epsilon in (1.0, 4.0)},
    **{f"kind {place}": crowd(HALVES, 4.0, kind, 200_000, runs=60, online=0.16) for place, kind in enumerate(KINDS)},
    "few": crowd(HALVES, 4.0, runs=300, **MANY),  # one value each of the default: reports of all words add up to one
    "mostly one": crowd((0.9, 0.05, 0.05), 4.0, runs=300, **MANY),
    "lines": crowd((0.9, *[0.1 / 199] * 199), 3.0, Projective(200, 3.0, Geometry(17, 3)), horizon=30, runs=60, **MANY),
}  # of "lines" those through the word of most users are supported together


def by(variance, online=False, words=None):
    def looked(settings, data, tally, run):
        told = settings.estimates(tally)
        told = told[:, 1] if settings.n_words == 2 else told
        return detect(told, tally.reports, variance(settings.report, data), words=words, online=online).changes

    return looked


def own(**more):
    return lambda settings, data, tally, run: settings.detect(tally, **more).changes


def many(online):
    def looked(settings, data, tally, run):
        told, reports = settings.estimates(tally)[:, 1:], tally.reports[:, None]
        return detect_many(told, reports, settings.report, online=online).changes

    return looked


def called(settings, data, tally, run):
    """As many changes as crews are called, but for the first."""
    crews = Reserve(settings.n_users, settings.horizon, settings.epsilon, 3, settings.n_words, report=settings.report)
    return sum(release.called for release in reserve.simulate(crews, data, stream(0, "called", run))) - 1


def third(report, data):
    return np.maximum(report.variance(np.array(data.truth[0])) / 3, 1e-9)


class Alone(Subset):
    """Whose values are taken for independent ones."""

    def curve_together(self, shares, reports=np.inf):
        return self.curve(shares)


ONE = np.array([1])
WAYS = {  # every public way to look for changes, and mistakes that it once made or could make: of whom, and whose are seen
    "own": (own(), ".", "never"),
    "own online": (own(online=True), ".", "never"),
    "one word": (own(words=ONE), "hashes|kind", "never"),
    "one word online": (own(words=ONE, online=True), "hashes|kind", "never"),
    "the largest variance": (by(lambda report, _: report.variance(0.5)), "bits", "never"),
    "many series": (many(False), "bits", "never"),
    "many series online": (many(True), "bits", "never"),
    "calls online": (called, "bits|hashes|few|mostly", "never"),
    "half the variance": (by(lambda report, _: report.variance(0.5) / 2), "bits", "."),
    "that of a rare word": (by(lambda report, _: report.variance(0.0)), "hashes", "4.0"),
    "each as if alone online": (by(lambda report, _: Alone(report.n_values, report.epsilon), True), "few|mostly", "."),
    "a third of the variance": (by(third), "kind", "."),
    "a third of the variance, one word": (by(third, words=ONE), "kind", "."),
}


@lru_cache(maxsize=1)
def tallies(name):
    settings, data, runs, _ = CROWDS[name]
    return [once.simulate(settings, data, stream(0, "constant", name, run)) for run in range(runs)]


@pytest.mark.parametrize(
    ("name", "way"), [(name, way) for name in CROWDS for way, (_, whose, _) in WAYS.items() if re.search(whose, name)]
)
def test_constant_means_are_divided_at_most_as_often_as_is_stated(name, way):
    """At most 5 % in hindsight, 6 to 20 % online, for every kind of report; mistakes are seen."""
    assert [CROWDS[few][0].report for few in ("few", "mostly one")] == [Subset(5, 4.0), Subset(3, 4.0)]  # the default
    settings, data, runs, online = CROWDS[name]
    look, _, seen = WAYS[way]
    found = sum(look(settings, data, tally, run) > 0 for run, tally in enumerate(tallies(name)))
    too_often = binomtest(found, runs, online if "online" in way else 0.05, alternative="greater").pvalue < ALPHA
    assert too_often == bool(re.search(seen, name)), found


@pytest.mark.parametrize(("words", "n_words", "users"), [(ONE, 2, 1), (ONE, 2, 5), (None, 4, 3)])
def test_few_reports_of_a_rare_word_make_no_changes(words, n_words, users):
    """Whose counts are 0 and 1, at a large epsilon: of squares over the variance at an epoch's own estimate it was .48."""
    settings, found = Once(users * 1_000, 1_000, 8.0, n_words, report=Subset(n_words, 8.0)), 0
    law = np.array([0.98 - 0.02 * (n_words - 2), *[0.02] * (n_words - 1)])
    data = streams.WordStream.make([users * 1_000], law, np.zeros((1, 1_000), dtype=int), 1)
    for run in range(60):
        found += (
            settings.detect(once.simulate(settings, data, stream(0, "few", n_words, users, run)), words=words).changes > 0
        )
    assert binomtest(found, 60, 0.05, alternative="greater").pvalue > ALPHA, found


def test_counts_of_about_one_add_up_to_no_change_of_many_words():
    """Whose deviances have a mean above 1: of 200 words, were nothing added to a count, .95 of streams changed online."""
    settings, found = Once(2_000, 40, 8.0, 200), 0
    data = streams.WordStream.make([2_000], np.full(200, 1 / 200), np.zeros((1, 40), dtype=int), 1)
    for run in range(30):
        found += settings.detect(once.simulate(settings, data, stream(0, "ones", run)), online=True).changes > 0
    assert binomtest(found, 30, 0.16, alternative="greater").pvalue > ALPHA, found


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
