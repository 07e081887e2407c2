"""Users split over epochs: users one by one and the simulation have one exact law; detection keeps its false-alarm rate."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import streams
from evolvingdp.evolving.rivals import once, once_words
from evolvingdp.evolving.rivals.detection import bound, detect
from evolvingdp.evolving.rivals.once import Once
from evolvingdp.evolving.rivals.once_words import OnceWords
from support import ALPHA, fits

PATHS = ("users", "simulation")
SIZES, MEANS, LATE = [400, 200], [[0.5, 0.9], [0.1, 1.0]], [[0.5, 0.7], [0.1, 1.0]]


def ones_law(epsilon):
    """Ones of the second of two epochs, whose bits of group 0 have mean .8 in all: each user is one with half its chance."""
    settings = Once(600, 2, 10, epsilon)
    chances = [float(settings.randomizer.report_one(mean)) / 2 for mean in (0.8, 1.0)]
    masses = (binom.pmf(np.arange(size + 1), size, chance) for size, chance in zip(SIZES, chances, strict=True))
    return dict(enumerate(np.convolve(*masses)))


@pytest.mark.parametrize("path", PATHS)
def test_ones_of_an_epoch_have_their_exact_law(path):
    data = streams.BitStream.make(SIZES, MEANS, 10, late=[0, 5], late_means=LATE)
    settings, draws, rng = Once(600, 2, 10, 2.0), 1_500, stream(0, "ones", path)
    observed: Counter = Counter()
    reports = np.zeros(2, dtype=int)
    for _ in range(draws):
        tally = (
            once.simulate(settings, data, rng) if path == "simulation" else once.run(settings, data, bits=rng, private=rng)
        )
        observed[int(tally.ones[1])] += 1
        reports += tally.reports
    assert fits(observed, ones_law(2.0), draws) > ALPHA
    assert fits(observed, ones_law(2.2), draws) < ALPHA
    assert reports.sum() == 600 * draws
    assert binomtest(int(reports[0]), 600 * draws, 0.5).pvalue > ALPHA


LAW = np.array([0.6, 0.3, 0.1])


def support_law(settings):
    """Which words one user supports: its own with probability p, each other with probability 1/g, independently."""
    own, other = settings.local_hash.keep, 1 / settings.local_hash.hash_values
    law = Counter()
    for word, pattern in itertools.product(range(3), itertools.product((0, 1), repeat=3)):
        chances = [own if each == word else other for each in range(3)]
        law[pattern] += LAW[word] * math.prod(c if bit else 1 - c for c, bit in zip(chances, pattern, strict=True))
    return law


def row_law(settings):
    """The row and sign that one user sends."""
    law, signs = Counter(), np.array([[1, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]])
    for row, word, kept in itertools.product(range(4), range(3), (True, False)):
        sums = [0] * 4
        sums[row] = int(signs[row, word]) * (1 if kept else -1)
        law[tuple(sums)] += LAW[word] / 4 * (settings.sign.keep if kept else settings.sign.flip)
    return law


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("oracle", "law"), [("olh", support_law), ("hadamard", row_law)])
def test_what_one_user_adds_to_all_words_has_its_exact_joint_law(oracle, law, path):
    data = streams.WordStream.make([1], LAW, [[0]], 4)
    settings, draws, rng = OnceWords(1, 1, 3, 2.0, oracle), 2_000, stream(0, oracle, path)
    public, observed = stream(0, oracle, "public"), Counter()
    for _ in range(draws):
        if path == "simulation":
            tally = once_words.simulate(settings, data, rng)
        else:
            tally = once_words.run(settings, data, words=rng, public=public, private=rng)
        observed[tuple(tally.sums[0].tolist())] += 1
    assert fits(observed, law(settings), draws) > ALPHA
    assert fits(observed, law(OnceWords(1, 1, 3, 3.0, oracle)), draws) < ALPHA


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("oracle", once_words.ORACLES)
def test_a_word_that_all_hold_is_supported_with_probability_keep(oracle, path):
    """Word 0, whose sign is + in all rows of the Hadamard matrix; an epsilon 10 % off is rejected."""
    n_users = 20_000
    data = streams.WordStream.make([n_users], [[1.0, 0.0]], [[0]], 1)
    settings = OnceWords(n_users, 1, 2, 2.0, oracle)
    rng = stream(0, oracle, path)
    if path == "simulation":
        tally = once_words.simulate(settings, data, rng)
    else:
        tally = once_words.run(settings, data, words=rng, public=stream(0, oracle, "public"), private=rng)
    if oracle == "olh":
        assert binomtest(int(tally.sums[0, 0]), n_users, settings.local_hash.keep).pvalue > ALPHA
        assert binomtest(int(tally.sums[0, 1]), n_users, 1 / settings.local_hash.hash_values).pvalue > ALPHA
        wrong = OLH(2.2, values=settings.local_hash.hash_values)
        assert binomtest(int(tally.sums[0, 0]), n_users, wrong.keep).pvalue < ALPHA
    else:
        plus = (n_users + int(tally.sums[0].sum())) // 2
        assert binomtest(plus, n_users, settings.sign.keep).pvalue > ALPHA
        assert binomtest(plus, n_users, SignFlip(2.2).keep).pvalue < ALPHA


@pytest.mark.parametrize("oracle", once_words.ORACLES)
def test_the_paths_have_the_stated_moments_for_groups_that_change(oracle):
    """Standardized errors of both paths have mean 0 and variance 1; 10 % off the standard error is rejected."""
    data = streams.WordStream.make([300, 200], [[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]], [[0, 1], [1, 1]], 3)
    settings = OnceWords(500, 2, 3, 1.5, oracle)
    public, rng = stream(0, "public"), stream(0, "moments", oracle)
    for path, runs in (("users", 150), ("simulation", 1500)):
        away = []
        for _ in range(runs):
            if path == "simulation":
                tally = once_words.simulate(settings, data, rng)
            else:
                tally = once_words.run(settings, data, words=rng, public=public, private=rng)
            error = settings.estimates(tally) - data.truth
            away.append(error / np.sqrt(settings.variances(data.truth) / tally.reports[:, None]))
        scores = np.array(away)
        assert np.abs(scores.mean(axis=0)).max() < 5.2 / math.sqrt(runs)
        ratio = math.sqrt(float((scores**2).mean()))
        independent = runs * 2  # epochs; words share the noise of their reports at most
        assert abs(ratio - 1) < 4.9 / math.sqrt(2 * independent)
        if path == "simulation":
            assert abs(1.1 * ratio - 1) > 4.9 / math.sqrt(2 * independent)


WAYS = {  # every public way to look for changes, and the mistakes that it once made or could make
    "bits": lambda once_bits, tally: once_bits.detect(tally),
    "bits online": lambda once_bits, tally: once_bits.detect(tally, online=True),
    "bits, the largest variance": lambda once_bits, tally: detect(
        once_bits.estimates(tally), tally.reports, once_bits.variance
    ),
    "words": lambda words, tally: words.detect(tally),
    "words online": lambda words, tally: words.detect(tally, online=True),
    "one word": lambda words, tally: words.detect(tally, words=np.array([0])),
    "one word online": lambda words, tally: words.detect(tally, words=np.array([0]), online=True),
    "bits, half the variance": lambda once_bits, tally: detect(
        once_bits.estimates(tally), tally.reports, once_bits.variance / 2
    ),
    "words, that of a rare one": lambda words, tally: detect(words.estimates(tally), tally.reports, words.variances(0.0)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_constant_means_are_divided_at_most_as_often_as_is_stated(way, epsilon):
    """At most 5 % in hindsight, 6 to 20 % online; half the variance, or at epsilon = 4 that of a rare word, finds more."""
    runs, shares, found = 150, np.array([0.4, 0.1, 0.1, 0.1, 0.3]), 0
    settings = OnceWords(20_000, 60, 5, epsilon) if "word" in way else Once(20_000, 60, 10, epsilon)
    for run in range(runs):
        rng = stream(0, "constant", run)
        if "word" in way:
            data = streams.WordStream.make([20_000], shares, np.zeros((1, 60), dtype=int), 10)
            found += WAYS[way](settings, once_words.simulate(settings, data, rng)).changes > 0
        else:
            data = streams.BitStream.make([20_000], np.full((1, 60), 0.5), 10)
            found += WAYS[way](settings, once.simulate(settings, data, rng)).changes > 0
    too_often = binomtest(found, runs, 0.2 if "online" in way else 0.05, alternative="greater").pvalue < ALPHA
    assert too_often == ("half" in way or ("rare" in way and epsilon == 4.0))


def test_a_rare_share_s_change_is_found_with_the_variance_of_a_rare_share():
    """From .02 to .024, at epsilon = 4: it saves 40 variances of what is there, and 6 of a fair bit; the penalty is 12."""
    settings = Once(400_000, 60, 1, 4.0)
    data = streams.BitStream.make([400_000], streams.steps(60, 0.02, {31: 0.024}), 1)
    found = np.zeros(2)
    for run in range(40):
        tally = once.simulate(settings, data, stream(0, "rare", run))
        fits = settings.detect(tally), detect(settings.estimates(tally), tally.reports, settings.variance)
        found += [fit.changes > 0 for fit in fits]
    assert found[0] > 35
    assert found[1] < 10


def test_detected_estimates_have_the_standard_error_of_their_segments_and_the_bound_holds():
    """Two changes of eight standard errors; the bound for any data holds for a spike, too, which no standard error does."""
    settings = Once(60_000, 60, 10, 1.0)
    means = streams.steps(60, 0.3, {21: 0.6, 41: 0.1})
    data = streams.BitStream.make([60_000], means, 10)
    scores = []
    for run in range(120):
        tally = once.simulate(settings, data, stream(0, "segments", run))
        fit = settings.detect(tally)
        error = fit.estimates - data.truth
        scores += (error / fit.standard_errors(settings.variance))[[10, 30, 50]].tolist()
        held = bound(fit, settings.estimates(tally), tally.reports, settings.variance, beta=1e-6)
        assert np.all(np.abs(error) <= held)
    share = settings.randomizer.report_one(np.array([0.3, 0.6, 0.1]))  # `variance` is that of a fair bit
    true = math.sqrt(float(np.mean(4 * share * (1 - share))))
    ratio = math.sqrt(float(np.mean(np.square(scores)))) / true
    assert abs(ratio - 1) < 4.9 / math.sqrt(2 * len(scores))
    assert abs(1.35 * ratio - 1) > 4.9 / math.sqrt(2 * len(scores))


def test_detection_lowers_the_error_of_words_too():
    laws = np.full((2, 200), 0.4 / 195)
    laws[0, :5], laws[1, 5:10] = 0.12, 0.12
    laws[0, 5:10] = laws[1, :5] = 0.0
    data = streams.WordStream.make([10**6], laws / laws.sum(axis=1, keepdims=True), [[0] * 20 + [1] * 20], 10)
    settings = OnceWords(10**6, 40, 200, 1.0)
    tally = once_words.simulate(settings, data, stream(0, "words"))
    raw, fit = settings.estimates(tally), settings.detect(tally)
    assert np.unique(fit.starts).tolist() == [0, 20]
    errors = [float(np.sqrt(np.mean((each - data.truth) ** 2))) for each in (raw, fit.estimates)]
    assert errors[1] == pytest.approx(errors[0] / math.sqrt(20), rel=0.15)
