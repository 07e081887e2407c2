"""Samplers against exact laws: the truth is accepted, a law that is 10 % wrong is rejected."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, binomtest, ks_2samp, multinomial, pearson3

from evolvingdp.core import sampling
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.sampling import fair_binomial, split_evenly
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.heavy_hitters import streams
from support import ALPHA, fits

N = 100_000


def test_sign_flip_keeps_a_bit_with_probability_sigmoid_epsilon():
    flip = SignFlip(1.0)
    reports = flip.randomize(np.ones(N, int), stream(0, "sign-flip"))
    kept = int((reports == 1).sum())
    assert binomtest(kept, N, flip.probabilities(1)[1]).pvalue > ALPHA
    assert binomtest(kept, N, SignFlip(1.1).probabilities(1)[1]).pvalue < ALPHA


def test_sums_of_flipped_signs_have_their_exact_law():
    plus, minus = 3, 2
    sums = SignFlip(1.0).sum_given_counts(np.full(N, plus), np.full(N, minus), stream(0, "sums"))

    def law(epsilon):
        keep = SignFlip(epsilon).keep
        exact = Counter()
        for a in range(plus + 1):
            for b in range(minus + 1):
                exact[2 * (a + b) - 5] += binom.pmf(a, plus, keep) * binom.pmf(b, minus, 1 - keep)
        return exact

    assert fits(Counter(sums.tolist()), law(1.0), N) > ALPHA
    assert fits(Counter(sums.tolist()), law(1.1), N) < ALPHA


@pytest.mark.parametrize("trials", [1, 5, 63, 64, 65, 300, 1087, 1088, 5000])
def test_fair_binomials_are_binomial_on_both_sides_of_every_switch(trials):
    drawn = fair_binomial(np.full(N, trials), stream(0, "fair", trials))
    edges = np.unique(binom.ppf(np.linspace(0, 1, 41)[1:-1], trials, 0.5).astype(int))
    seen = Counter(np.searchsorted(edges, drawn).tolist())

    def law(p):
        return dict(enumerate(np.diff(np.concatenate([[0], binom.cdf(edges, trials, p), [1]]))))

    assert fits(seen, law(0.5), N) > ALPHA
    assert fits(seen, law(0.55), N) < ALPHA


@pytest.mark.parametrize("counts", [[1], [2, 3], [4]])
@pytest.mark.parametrize("few", [8, 0.5])  # all users dealt one by one, or words of 3 and 4 users by multinomials
def test_splitting_is_multinomial_and_words_are_split_independently(counts, few, monkeypatch):
    monkeypatch.setattr(sampling, "_FEW", few)
    parts = 4
    rng = stream(0, "split", *counts)
    draws = 20_000
    seen = Counter(tuple(split_evenly(np.array(counts), parts, rng).ravel().tolist()) for _ in range(draws))

    def law(p):
        words = [{one: float(multinomial.pmf(one, count, p)) for one in _compositions(count, parts)} for count in counts]
        joint = itertools.product(*(word.items() for word in words))
        return {sum((one for one, _ in each), ()): math.prod(chance for _, chance in each) for each in joint}

    assert fits(seen, law([1 / 4] * 4), draws) > ALPHA
    assert fits(seen, law([0.275, 0.245, 0.24, 0.24]), draws) < ALPHA


def _compositions(total, parts):
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _compositions(total - first, parts - 1)]


def test_the_power_law_is_numpy_s_histogram():
    """The shortcut (extremes, then a multinomial) against the paper's recipe, at a size where both are quick."""
    n, repeats = 300, 3000

    def recipe(bins, rng):
        return np.sort(np.histogram(rng.power(15.0, n), bins)[0])[::-1]

    ours, theirs, wrong = stream(0, "ours"), stream(0, "theirs"), stream(0, "wrong")
    a = np.array([streams.power_law_counts(n, ours, n_items=50, power=15.0) for _ in range(repeats)])
    b = np.array([recipe(50, theirs) for _ in range(repeats)])
    c = np.array([recipe(55, wrong) for _ in range(repeats)])
    for position in (0, 5, 10, 25):
        assert ks_2samp(a[:, position], b[:, position]).pvalue > ALPHA
    assert min(ks_2samp(a[:, position], c[:, position]).pvalue for position in (0, 5, 10)) < ALPHA


def test_brown_counts_follow_the_shipped_table():
    counts = streams.brown_counts(10**6, stream(0, "brown"))
    assert counts.sum() == 10**6
    table = streams.brown.words()["count"]
    share = table[0] / table.sum()
    assert binomtest(int(counts[0]), 10**6, share).pvalue > ALPHA
    assert binomtest(int(counts[0]), 10**6, share * 1.1).pvalue < ALPHA


def test_large_counts_go_to_numpy_s_exact_sampler():
    """No normal approximation above the popcount's reach, nor in sums of reports: the same draws as numpy's own."""
    trials = np.array([1100, 10**6, 10**10])
    assert fair_binomial(trials, stream(0, "large")).tolist() == stream(0, "large").binomial(trials, 0.5).tolist()
    flip = SignFlip(1.0)
    plus, minus = np.array([10**4, 10**10]), np.array([10**6, 3])
    rng = stream(0, "sums")
    wrong_minus, wrong_plus = rng.binomial(minus, flip.flip), rng.binomial(plus, flip.flip)
    expected = plus - minus + 2 * (wrong_minus - wrong_plus)
    assert flip.sum_given_counts(plus, minus, stream(0, "sums")).tolist() == expected.tolist()


def test_a_quantile_is_the_least_count_that_is_reached_with_the_probability():
    """As scipy's, exactly: few and many trials, a chance of 0 and 1, and far out on either side."""
    shares = np.concatenate([stream(0, "quantile").random(200), [1e-12, 1e-6, 1 - 1e-6]])
    for trials in (0, 1, 40, 10**5, 10**9):
        for chance in (0.0, 1e-9, 1 / 365, 0.3, 0.97, 1.0):
            found = sampling.binomial_quantile(shares, trials, chance)
            assert found.tolist() == binom.ppf(shares, trials, chance).tolist()


def test_a_quantile_is_right_where_one_minus_its_share_is_1_and_a_tail_keeps_its_digits():
    """Out there scipy's own isf says `trials`, as 1 - 1e-18 is 1."""
    for trials in (1, 300, 10**6, 10**9):
        for chance in (1e-9, 0.01, 0.3):
            rare = int(trials - sampling.binomial_quantile(1e-18, trials, 1 - chance))
            above = sampling.binomial_sf([rare, rare - 1, -1, trials], trials, chance)
            assert above == pytest.approx(binom.sf([rare, rare - 1, -1, trials], trials, chance), rel=1e-9, abs=0)
            assert above[0] <= 1e-18 < above[1]


@pytest.mark.parametrize("skew", [0.0, 1e-4, 0.01, 0.5, 3.0])
def test_a_skewed_error_is_as_rare_as_pearson_s_third_law_says(skew):
    for errors in (-0.5, 0.0, 2.0, 6.0):
        assert sampling.skewed_sf(errors, skew) == pytest.approx(pearson3.sf(errors, skew), rel=1e-6)
    for share in (0.9, 0.5, 1e-3, 1e-9):
        assert sampling.skewed_isf(share, skew) == pytest.approx(pearson3.isf(share, skew), rel=1e-6, abs=1e-9)
