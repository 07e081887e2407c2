"""OLH and TreeHist: per-user path and simulation have one law; a 10 % wrong epsilon is rejected."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from string import ascii_lowercase

import numpy as np
import pytest
from scipy.stats import binom, binomtest, ks_2samp, norm

from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.planning import planned, prospect, several_words
from evolvingdp.heavy_hitters.tree_hist import Algorithm3, TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree
from evolvingdp.notebooks.heavy_hitters import predicted, treehist, trust
from evolvingdp.notebooks.heavy_hitters.lists import data, score
from support import ALPHA, fits

KEYS = np.array([3, 2**40, 77], dtype=np.uint64)
COUNTS = np.array([30, 10, 0])
N = int(COUNTS.sum())


def support_law(epsilon, count):
    oracle = OLH(epsilon)
    own = binom.pmf(np.arange(count + 1), count, oracle.own)
    others = binom.pmf(np.arange(N - count + 1), N - count, 1 / oracle.hash_values)
    return dict(enumerate(np.convolve(own, others)))


@pytest.mark.parametrize("path", ["per user", "simulation"])
def test_olh_supports_have_their_exact_law(path):
    oracle, draws = OLH(2.0), 20_000
    public, private = stream(0, path, "seeds"), stream(0, path, "noise")
    if path == "per user":
        users = np.repeat(KEYS, COUNTS)
        reports = oracle.report(np.tile(users, draws), public, private)
        supports = np.empty((draws, len(KEYS)), dtype=int)
        for position, key in enumerate(KEYS):
            agree = oracle._hash(reports.seeds, key) == reports.values
            supports[:, position] = agree.reshape(draws, N).sum(axis=1)
    else:
        supports = np.array([oracle.simulate_support(COUNTS, N, private) for _ in range(draws)])
    for position, count in enumerate(COUNTS):
        assert fits(Counter(supports[:, position].tolist()), support_law(2.0, int(count)), draws) > ALPHA
    assert fits(Counter(supports[:, 0].tolist()), support_law(2.2, 30), draws) < ALPHA
    correlation = np.corrcoef(supports.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(correlation) < 4.9 / np.sqrt(draws))  # asked for once, values do not share noise


def test_olh_s_support_counts_what_it_says():
    oracle = OLH(1.0)
    users = np.repeat(KEYS, COUNTS)
    reports = oracle.report(users, stream(0, "seeds"), stream(0, "noise"))
    by_hand = [sum(oracle._hash(reports.seeds, key) == reports.values) for key in KEYS]
    assert oracle.support(reports, KEYS).tolist() == by_hand
    merged = oracle.report(users[:7], stream(0, "seeds"), stream(0, "noise"))
    assert len((merged + reports).seeds) == 47


def test_olh_s_standard_errors_are_those_of_its_estimates():
    """Of values that nobody, some and all users hold; 10 % more or less would be 14 deviations off."""
    oracle, holders, draws = OLH(2.0), np.array([0, 3_000, 10_000]), 10_000
    supports = np.array([oracle.simulate_support(holders, 10_000, stream(0, "support", draw)) for draw in range(draws)])
    measured = oracle.estimate(supports, 10_000).std(axis=0)
    assert np.all(np.abs(measured / oracle.standard_errors(10_000, holders) - 1) < 4.9 / np.sqrt(2 * draws))
    assert oracle.standard_error(10_000) == pytest.approx(oracle.standard_errors(10_000, holders)[0])


def test_who_draws_one_of_several_words_has_the_stated_error():
    """Of 30,000 users with 4 words each, 9,000 have the one asked about; 10 % more or less would be 10 deviations off."""
    oracle, words, holders, draws = OLH(2.0), 4, 9_000, 5_000
    rng = stream(0, "drawn words")
    told = rng.binomial(holders, 1 / words, size=draws)
    estimates = words * oracle.estimate(oracle.simulate_support(told, 30_000, rng), 30_000)
    stated, each = several_words(2.0, 30_000, words, holders)
    assert abs(estimates.mean() - holders) < 4.9 * stated / np.sqrt(draws)
    assert abs(estimates.std() / stated - 1) < 4.9 / np.sqrt(2 * draws)
    assert each == pytest.approx(OLH(0.5).standard_errors(120_000, np.array([9_000]))[0])


def test_a_report_of_each_of_several_words_wins_for_a_word_that_many_hold_at_a_large_epsilon():
    """Of a million users a tenth hold it: which of two words they draw is chance, and is most of the error."""
    assert np.divide(*several_words(10.0, 10**6, 2, 100_000)) > 1.3
    assert np.divide(*several_words(10.0, 10**6, 2)) < 1
    assert np.divide(*several_words(1.0, 10**6, 2, 100_000)) < 1


@pytest.mark.parametrize("kind", ["TreeHist", "Algorithm 3"])
def test_tree_hist_s_two_paths_have_one_law(kind):
    tree, runs = WordTree((1, 1), length=2), 400  # from 300 on 10 % are missed with probability 1e-6
    words, counts = ["ab", "ac", "zz"], np.array([2700, 500, 100])
    leaves = tree.encode(words)
    users = np.repeat(leaves, counts, axis=0)

    def leaf_estimates(path, epsilon):
        if kind == "TreeHist":
            drawn = TreeHist(tree, epsilon, 400.0, rows=4, width=16).draw_hashes(stream(0, "hashes"))
        else:
            drawn = Algorithm3.draw(tree, 2 * epsilon, 400.0, 4, 16, stream(0, "hashes"))
        public, private = stream(0, path, kind, "slots"), stream(0, path, kind, "noise")
        estimates = []
        for _ in range(runs):
            collect = path == "collect"
            reports = drawn.collect(users, public, private) if collect else drawn.simulate(leaves, counts, private)
            estimate = drawn.oracles[1].estimate(reports.levels[1], tree.keys(leaves[:1]), "mean")[0]
            estimates.append([estimate / drawn.oracles[1].users_of_a_report, reports.levels[0].n_reports])
        return np.array(estimates)

    ours, theirs, wrong = leaf_estimates("collect", 2.0), leaf_estimates("simulate", 2.0), leaf_estimates("simulate", 2.2)
    for column in (0, 1):
        assert ks_2samp(ours[:, column], theirs[:, column]).pvalue > ALPHA
    assert ks_2samp(ours[:, 0], wrong[:, 0]).pvalue < ALPHA  # sums before they are debiased


def test_the_joint_fit_removes_collisions_between_the_words_asked_for():
    tree = WordTree((2, 2, 2))
    words = ["aaaaaa", "bbbbbb", "cccccc", "dddddd"]
    counts = np.array([5_000_000, 2_000_000, 1_000_000, 100_000])
    leaves = tree.encode(words)
    errors = {"mean": [], "joint": []}
    for run in range(200):
        drawn = TreeHist(tree, 2.0, 1000.0, rows=4, width=16).draw_hashes(stream(0, "hashes", run))
        oracle = drawn.oracles[2]
        sketch = oracle.simulate(tree.keys(leaves), counts, stream(0, "noise", run))
        for estimator, found in errors.items():
            found.append(oracle.estimate(sketch, tree.keys(leaves), estimator) - counts)
    mean, joint = (np.sqrt(np.mean(np.square(found))) for found in errors.values())
    assert joint < 3 * oracle.standard_error(int(counts.sum()), "joint")
    assert mean > 20 * joint
    bias = np.mean(errors["joint"], axis=0)
    assert np.all(np.abs(bias) < 4.9 * np.std(errors["joint"], axis=0) / np.sqrt(200))


def test_the_joint_fit_is_not_biased_by_nodes_that_were_selected_for_their_collisions():
    """A word at twelve times the cut lifts those that share one of its 16 cells to three quarters of the cut, where noise
    picks some of them: fitted with them, it would lose the cells in which noise is high."""
    tree, runs = WordTree((1, 1), length=2), 150
    leaves = tree.encode([a + b for a in ascii_lowercase for b in ascii_lowercase])
    counts = np.full(26 * 26, 1_200)
    counts[1] = 176_000
    settings = TreeHist(tree, 2.0, 14_700.0, rows=16, width=64, leaf_share=0.8)
    errors = []
    for run in range(runs):
        drawn = settings.draw_hashes(stream(0, "hashes", run))
        words = drawn.search(drawn.simulate(leaves, counts, stream(0, "noise", run)), int(counts.sum())).words
        errors.append(words.set_index("word").estimate["ab"] - 176_000)
    assert abs(np.mean(errors)) < 4.9 * np.std(errors) / np.sqrt(runs)


def test_expected_f1_predicts_what_runs_measure():
    tree = WordTree((1, 1), length=2)
    rng = stream(0, "expected")
    words = [a + b for a in "abcdefghij" for b in "klmnopqrst"]
    counts = np.sort(rng.integers(1_000, 25_000, size=100))[::-1]
    leaves = tree.encode(words)
    protocol = TreeHist(tree, 1.0, 12_000.0, rows=16, width=4096)
    truth = {word for word, count in zip(words, counts, strict=True) if count > 12_000}
    scores = []
    for run in range(60):
        drawn = protocol.draw_hashes(stream(0, "hashes", run))
        found = drawn.search(drawn.simulate(leaves, counts, rng), int(counts.sum()))
        scores.append(score(found.words.word, truth)["f1"])
    assert abs(np.mean(scores) - prospect(protocol, leaves, counts).f1[0]) < 4.9 * np.std(scores) / np.sqrt(60) + 0.005


def test_the_probability_that_a_word_is_found_is_how_often_searches_find_it(monkeypatch):
    """As Section 4 ran it: the recall of words above the cut, with few rows and cells, so that whole numbers and collisions
    count; 10 % are missed with probability 1e-6."""
    monkeypatch.setattr(treehist, "ROWS", 9)
    monkeypatch.setattr(treehist, "WIDTH", 128)
    tree, runs = WordTree((1, 1), length=2), 1_200
    words = [a + b for a, b in zip(ascii_lowercase, reversed(ascii_lowercase), strict=True)]
    leaves, counts = tree.encode(words), np.full(26, 3000)

    def recalls(epsilon, recall, runs):
        settings = treehist.Rung(epsilon, 1_100.0, tree, shared=True)
        drawn = (settings.draw_hashes(stream(0, "hashes", run)) for run in range(runs))
        return np.array([recall(protocol, stream(0, recall.__name__, run)) for run, protocol in enumerate(drawn)])

    def searched(protocol, rng):
        return np.isin(words, protocol.simulate_search(leaves, counts, rng).words.word).mean()

    def computed(protocol, rng):
        return protocol.found(leaves, counts, leaves, rng).mean()

    measured = recalls(1.0, searched, runs)

    def distance(epsilon):
        expected = recalls(epsilon, computed, runs // 4)
        return abs(measured.mean() - expected.mean()) / np.sqrt(measured.var() / runs + 4 * expected.var() / runs)

    assert distance(1.0) < 4.9
    assert distance(1.1) > 4.9


def test_the_median_reaches_a_cut_when_more_than_half_of_the_rows_do():
    reached = predicted._more_than_half(np.array([[0.5, 1.0], [0.5, 0.0], [0.2, 0.3]]))
    assert np.allclose(reached, [0.25 + 0.5 * 0.2, 0.3])


def test_nodes_pass_a_cut_by_chance_as_often_as_stated_where_few_reports_support_one():
    """Some five reports, 16,000 / 2,981, where 11 to 13 are asked for: a normal law has less than half as many."""
    settings, n_users = TreeHist(WordTree((1, 1), length=2), 8.0, 100.0, 8, 2048, 0.8), 20_000
    error, strangers, passing = settings.level_error(1, n_users), np.arange(10**6, 10**6 + 20_000, dtype=np.uint64), []
    report = error * settings.skew(1, n_users)  # what one counts for
    cuts = report * (np.arange(11, 13, 0.1) + 0.05 - 16_000 / 2_981)
    for draw in range(10):
        oracle = settings.draw_hashes(stream(0, "by chance", draw)).oracles[1]
        sketch = oracle.simulate(np.arange(16_000, dtype=np.uint64), np.ones(16_000, int), stream(0, "noise", draw))
        estimates = oracle.estimate(sketch, strangers, "mean") / settings.shares[1]
        passing.append((estimates[:, None] >= cuts).mean())
    stated = np.mean([settings.by_chance(1, n_users, cut) for cut in cuts])
    assert np.mean(passing) == pytest.approx(stated, rel=0.2)
    assert np.mean(passing) > 2 * norm.sf(cuts / error).mean()


def test_a_level_s_error_has_who_was_dealt_to_it():
    """Which fifth of a word's 200 users is most of the error of a prefix at a large epsilon."""
    settings, runs = TreeHist(WordTree((1, 1), length=2), 8.0, 100.0, 8, 2048, 0.8), 300
    leaves, counts = settings.tree.encode([a + "b" for a in ascii_lowercase]), np.append([200], np.full(25, 80))
    key, errors = settings.tree.prefixes(leaves, 0)[:1], []
    for run in range(runs):
        oracle = settings.draw_hashes(stream(0, "dealt", run)).oracles[0]
        held = replace(settings.draw_hashes(stream(0)), oracles=()).simulate_held(leaves, counts, stream(0, "dealing", run))
        sketch = oracle.simulate(*held[0], stream(0, "dealt", "noise", run))
        errors.append(oracle.estimate(sketch, key, "mean")[0] / settings.shares[0] - 200)
    ratio = np.sqrt(np.mean(np.square(errors))) / settings.level_error(0, int(counts.sum()), 200)
    assert abs(ratio - 1) < 4.9 / math.sqrt(2 * runs)


@pytest.mark.parametrize(
    ("epsilon", "threshold", "too_few"), [(6.0, 200.0, 1), (8.0, 200.0, 2), (10.0, 200.0, 1), (7.0, 150.0, 2)]
)
def test_a_plan_finds_at_a_large_epsilon_what_is_expected_although_a_row_has_few_points(epsilon, threshold, too_few):
    """Brown with 100,000 users, and round numbers.  Of one row or two, most of the words are lost."""
    words, draws = data(100, "brown", 100_000, 0, 0), 2
    plan = planned(epsilon, 100_000, threshold)
    leaves, counts = plan.tree.encode(words.index), words.to_numpy()
    truth = set(words.index[counts > plan.threshold])

    def f1(settings, draw):
        drawn = settings.draw_hashes(stream(draw, "large"))
        found = drawn.simulate_search(leaves, counts, stream(draw, "large", "noise"))
        return score(found.words.word, truth)["f1"]

    expected, deviation = prospect(plan, leaves, counts).f1
    found = np.mean([f1(plan, draw) for draw in range(draws)])
    assert abs(found - expected) < 3.9 * deviation / math.sqrt(draws) + 0.01
    assert f1(replace(plan, rows=too_few), 0) < expected - 0.5


def test_supports_that_reach_a_cut_are_drawn_without_the_others():
    """Of 80,000 keys that nobody holds: how many reach it, how far and where; holders' supports as without a cut."""
    oracle, n_reports, held, empty = OLH(1.0), 200, 50, 80_000
    least = math.floor(oracle.expected_support(30.0, n_reports)) - 1
    assert oracle.estimate(np.array([least]), n_reports) < 30.0 <= oracle.estimate(np.array([least + 2]), n_reports)
    counts = np.append(np.full(held, 60), np.zeros(empty, dtype=int))
    drawn = oracle.simulate_support(counts, n_reports, stream(0, "reaching"), least)
    alone = oracle.simulate_support(counts[:held], n_reports, stream(0, "reaching"))
    assert drawn[:held].tolist() == alone.tolist()
    seen = Counter(drawn[held:].tolist())
    assert min(seen.keys() - {0}) == least

    def law(chance):
        reaching = {value: float(binom.pmf(value, n_reports, chance)) for value in range(least, n_reports + 1)}
        return reaching | {0: 1 - sum(reaching.values())}

    assert fits(seen, law(1 / oracle.hash_values), empty) > ALPHA
    assert fits(seen, law(1.1 / oracle.hash_values), empty) < ALPHA
    places = np.flatnonzero(drawn[held:])
    first, right = np.count_nonzero(places < empty // 2), np.count_nonzero(places < 0.55 * empty)
    assert binomtest(first, len(places), 0.5).pvalue > ALPHA
    assert binomtest(right, len(places), 0.5).pvalue < ALPHA


@pytest.mark.parametrize(("epsilon", "level"), [(0.5, 0), (4.0, 2), (40.0, 1)])
def test_noise_of_two_servers_that_a_simulation_draws_has_the_law_of_what_each_adds(epsilon, level):
    """`trust` draws geometric numbers for the two discrete Laplace ones."""
    counted = trust.Counted(epsilon, threshold=1.0)
    places = np.arange(-2000, 2001)
    law = np.convolve(counted.noise(level).pmf(places), counted.noise(level).pmf(places), mode="same")
    assert law.sum() == pytest.approx(1.0, abs=1e-6)
    drawn = counted.drawn(level, 50_000, stream(0, "two servers", level))
    assert fits(Counter(drawn.tolist()), dict(zip(places.tolist(), law.tolist(), strict=True)), len(drawn)) > ALPHA
