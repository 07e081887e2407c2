"""Dyadic trees and memoization: both paths have the law that enumeration gives, and the errors that theory gives."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest, chi2, norm

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import ChangeTree, Memoized, ThresholdStream, streams
from evolvingdp.evolving.rivals import memoized, signs, tree
from evolvingdp.evolving.rivals.threshold_stream import truncate
from support import ALPHA, fits

MEANS = [0.3, 0.8, 0.4]
DRAWS, RUNS = 1200, 2000


def two_paths(module, settings, data, name):
    for run in range(DRAWS):
        rng = stream(0, name, run)
        yield "users", module.run(settings, data, bits=rng, private=rng)
        yield "simulation", module.simulate(settings, data, rng)


def of_two(law):
    """The law of the sum of two independent outcomes, tuples of integers."""
    both: Counter = Counter()
    for (one, p), (other, q) in itertools.product(law.items(), repeat=2):
        both[tuple(a + b for a, b in zip(one, other, strict=True))] += p * q
    return both


@pytest.mark.parametrize(("make", "k"), [(signs.best, 3), (signs.erlingsson, 2), (signs.future_rand, 30)])
def test_flips_follow_their_law(make, k):
    law, wrong = make(k, 2.0), make(k, 1.6 if k == 30 else 2.2)
    flips = law.flips(60_000, stream(0, "flips", k))
    if k == 30:
        counts = Counter(flips.sum(axis=1).tolist())
        laws = [dict(enumerate(signs._ways(k) * each.pattern)) for each in (law, wrong)]
    else:
        counts = Counter(map(tuple, flips.astype(int).tolist()))
        rows = list(itertools.product((0, 1), repeat=k))
        laws = [{row: each.pattern[sum(row)] for row in rows} for each in (law, wrong)]
    assert fits(counts, laws[0], len(flips)) > ALPHA
    assert fits(counts, laws[1], len(flips)) < ALPHA


def level_law(sums, law):
    """(inputs, outputs): of a level's reports, as bits of a number, for each row of `sums`, over all flips and coins."""
    flips = np.array(list(itertools.product((False, True), repeat=law.changes)))
    coins = np.array(list(itertools.product((-1, 1), repeat=sums.shape[1])), dtype=np.int8)
    chances = np.ones(len(flips))
    for place in range(law.changes):
        flipped = law.flip_chances[place, flips[:, :place].sum(axis=1)]
        chances *= np.where(flips[:, place], flipped, 1 - flipped)
    laws = np.zeros((len(sums), 2 ** sums.shape[1]))
    for of_row, row in zip(laws, sums, strict=True):
        for flip, chance in zip(flips, chances, strict=True):
            sent = tree.reports(row[None].repeat(len(coins), axis=0), flip[None].repeat(len(coins), axis=0), coins)
            np.add.at(of_row, (sent > 0) @ (1 << np.arange(sums.shape[1])), chance / len(coins))
    return laws


def test_both_paths_of_a_tree_have_the_enumerated_law():
    """Two users, three epochs, of which two changes are followed."""
    settings, data = ChangeTree(2, 3, 3.0, 2), ThresholdStream.make(2, MEANS)
    shares, bits = data.kinds()
    one: Counter = Counter()
    for level, law in enumerate(settings.signs):
        sums = tree.partial_sums(truncate(bits, 2), level)
        laws = shares @ level_law(sums, law)
        for number, mass in enumerate(laws):
            sent = [2 * (number >> node & 1) - 1 for node in range(settings.nodes[level])]
            empty = [[0] * m for m in settings.nodes]
            empty[level] = sent
            one[(*(int(level == each) for each in range(2)), *itertools.chain(*empty))] += settings.shares[level] * mass
    seen: dict[str, Counter] = {"users": Counter(), "simulation": Counter()}
    for path, tally in two_paths(tree, settings, data, "tree"):
        seen[path][tuple(np.concatenate([tally.users, *tally.sums]).tolist())] += 1
    for counts in seen.values():
        assert fits(counts, of_two(one), DRAWS) > ALPHA


@pytest.mark.parametrize("path", ["users", "simulation"])
def test_nodes_move_by_the_gain_and_not_by_a_tenth_less(path):
    n = 1_000_000
    settings, data = ChangeTree(n, 4, 1.0, 2), ThresholdStream.make(n, [0.9, 0.9, 0.1, 0.1])
    rng = stream(0, "gain", path)
    tally = tree.simulate(settings, data, rng) if path == "simulation" else tree.run(settings, data, bits=rng, private=rng)
    kinds, bits = data.kinds()
    for level, node in ((0, 0), (0, 2), (1, 0), (1, 1)):
        move, users = kinds @ tree.partial_sums(bits, level)[:, node], tally.users[level]
        for wrong, accepted in ((1.0, True), (0.9, False)):
            mean = wrong * settings.gains[level] * move
            z = (tally.sums[level][node] / users - mean) / np.sqrt((1 - mean**2) / users)
            assert (2 * norm.sf(abs(z)) > ALPHA) == accepted


def test_a_tree_errs_by_its_standard_errors():
    """Also what is averaged over a node and its halves; 2000 runs tell 10 % of a standard error."""
    settings = ChangeTree(10_000, 4, 1.0, 2)
    data = ThresholdStream.make(10_000, [0.5, 0.6, 0.4, 0.7])
    runs = [settings.estimates(tree.simulate(settings, data, stream(0, "errors", run))) for run in range(RUNS)]
    bias = data.truncation_bias(2)
    assert bias == pytest.approx([0, 0, 0, -0.2])
    errors = (np.array(runs) - data.truth - bias) / settings.standard_errors
    for epoch in range(4):
        assert abs(errors[:, epoch].mean()) * np.sqrt(RUNS) < norm.isf(ALPHA / 2)
        assert min(chi2.sf(np.sum(errors[:, epoch] ** 2), RUNS), chi2.cdf(np.sum(errors[:, epoch] ** 2), RUNS)) > ALPHA
        assert chi2.cdf(np.sum((errors[:, epoch] / 1.1) ** 2), RUNS) < ALPHA


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("fresh", [False, True])
def test_both_paths_of_memoization_have_the_enumerated_law(fresh, hashed):
    settings = Memoized(2, 3, 1.5, 2.0, hashed)
    data = streams.BitStream.make([2], MEANS, 1) if fresh else ThresholdStream.make(2, MEANS)
    one: Counter = Counter()
    rows = np.array(list(itertools.product((0, 1), repeat=3)), dtype=np.uint8)
    shares, bits = (np.where(rows, MEANS, 1 - np.array(MEANS)).prod(axis=1), rows) if fresh else data.kinds()
    if hashed:
        shares, bits = np.append(shares / 2, 0.5), np.vstack([bits, [1, 1, 1]])  # the rest cannot tell bits apart
    slip, flip = 1 - 1 / (1 + np.exp(-1.5)), 1 - 1 / (1 + np.exp(-2.0))
    for (share, held), a, noise in itertools.product(
        zip(shares, bits, strict=True), itertools.product((0, 1), repeat=2), rows
    ):
        mass = share * np.prod(np.where(a, slip, 1 - slip)) * np.prod(np.where(noise, flip, 1 - flip))
        answers = np.array([[a[0], 1 - a[1]]], dtype=np.uint8)
        one[tuple(memoized.reports(held[None], answers, noise[None].astype(bool))[0].tolist())] += mass
    seen: dict[str, Counter] = {"users": Counter(), "simulation": Counter()}
    for path, ones in two_paths(memoized, settings, data, f"memoized {fresh} {hashed}"):
        seen[path][tuple(ones.tolist())] += 1
    for counts in seen.values():
        assert fits(counts, of_two(one), DRAWS) > ALPHA


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("path", ["users", "simulation"])
def test_reports_agree_as_often_as_two_layers_say(path, hashed):
    n, means = 500_000, np.array([0.9, 0.2])
    settings, data = (
        Memoized(n, 2, 1.0, 1.0, hashed),
        streams.BitStream.make([n // 2, n // 2], [[0.95, 0.1], [0.85, 0.3]], 1),
    )
    rng = stream(0, "agree", path, int(hashed))
    ones = (
        memoized.simulate(settings, data, rng)
        if path == "simulation"
        else memoized.run(settings, data, bits=rng, private=rng)
    )
    base = settings.agree - settings.spread
    for seen, mean in zip(ones, means, strict=True):
        assert binomtest(int(seen), n, base + settings.spread * mean).pvalue > ALPHA
        assert binomtest(int(seen), n, base + 0.9 * settings.spread * mean).pvalue < ALPHA or mean < 0.5
