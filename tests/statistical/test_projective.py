"""Projective-geometry response: one law of all paths, unbiased estimates, errors as stated and intervals that cover."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from support import ALPHA, fits

KEYS, COUNTS = np.array([3, 2**40], dtype=np.uint64), np.array([20, 10])


def keep(oracle):
    return oracle.response.gain + oracle.space.share


def support_law(oracle, own, others):
    """Of the number of reports that support a point that `own` users have and `others` do not."""
    mine = binom.pmf(np.arange(own + 1), own, keep(oracle))
    chance = binom.pmf(np.arange(others + 1), others, oracle.space.share)
    return dict(enumerate(np.convolve(mine, chance)))


@pytest.mark.parametrize("path", ["collect", "simulate"])
def test_the_reports_that_support_a_word_s_point_have_their_exact_law(path):
    """One row; 1,000 draws of 30 users: 10 % more epsilon is rejected from 900 on."""
    oracle, draws = ProjectiveOracle.draw(1, 30, 1.5, stream(0, "hashes")), 1_000
    wrong = replace(oracle, epsilon=1.1 * 1.5)
    cells = oracle.hashes.cells(np.zeros(1, dtype=int), KEYS)
    private, public = stream(0, path, "noise"), stream(0, path, "rows")
    seen = []
    for _ in range(draws):
        if path == "collect":
            sketch = oracle.collect(np.repeat(KEYS, COUNTS), public, private)
        else:
            sketch = oracle.simulate(KEYS, COUNTS, private)
        assert sketch.n_reports == sketch.sums.sum() == 30
        seen.append(oracle.space.supporting(sketch.sums[0])[cells])
    for place, own in enumerate(COUNTS):
        sums = Counter(np.array(seen)[:, place].tolist())
        assert fits(sums, support_law(oracle, own, 30 - own), draws) > ALPHA
    differences = np.array(seen) @ [2, 1]
    expected = keep(wrong) * 50 + 40 * wrong.space.share
    truth = keep(oracle) * 50 + 40 * oracle.space.share
    deviation = differences.std() / np.sqrt(draws)
    assert abs(differences.mean() - truth) < 4.9 * deviation
    assert abs(differences.mean() - expected) > 4.9 * deviation


@pytest.mark.parametrize("estimator", ["mean", "joint"])
def test_estimates_are_unbiased_and_their_intervals_cover(estimator):
    """400 words on 8 rows of 400 cells, one of them heavy and 20 not asked for, over 15 draws of hash functions."""
    keys, counts, runs = np.arange(400, dtype=np.uint64) ** 2, np.full(400, 500), 15
    counts[:3] = 20_000, 8_000, 4_000
    asked = np.delete(np.arange(400), np.arange(100, 120))
    z = np.empty((runs, len(asked)))
    for run in range(runs):
        oracle = ProjectiveOracle.draw(8, 300, 2.0, stream(0, "hashes", run))
        sketch = oracle.simulate(keys, counts, stream(0, "noise", run))
        errors = oracle.estimate(sketch, keys[asked], estimator) - counts[asked]
        z[run] = errors / oracle.standard_errors(sketch, keys[asked], estimator)
    assert abs(z.mean()) < 4.9 * z.mean(axis=1).std() / np.sqrt(runs)
    if estimator == "joint":
        assert abs(np.mean(np.square(z)) - 1) < 0.1
        assert abs(np.mean(np.abs(z) < 1.96) - 0.95) < 0.015
        assert np.mean(np.abs(1.1 * z) < 1.96) < 0.935


def test_a_heavy_word_s_stated_error_is_that_of_many_runs():
    """Half of the users hold it: without their own variance the stated error is 40 % too small."""
    oracle, counts, runs = ProjectiveOracle.draw(2, 15, 3.0, stream(0, "hashes")), np.array([2000, 2000]), 500
    estimates, stated = np.empty((2, runs))
    for run in range(runs):
        sketch = oracle.simulate(KEYS, counts, stream(0, "noise", run))
        estimates[run] = oracle.estimate(sketch, KEYS, "joint")[0]
        stated[run] = oracle.standard_errors(sketch, KEYS, "joint")[0] if run < 50 else stated[:50].mean()
    assert abs(estimates.std() / np.sqrt(np.mean(np.square(stated))) - 1) < 4.9 / np.sqrt(2 * runs)


@pytest.mark.parametrize("epsilon", [5.0, 6.0, 8.0])
def test_words_that_nobody_holds_have_no_offset_in_common(epsilon):
    """The mean of 200,000 estimates, their spread, and their tail."""
    keys, counts = np.arange(3_000, dtype=np.uint64), np.full(3_000, 60)
    unheld, z, reach = np.arange(10**6, 10**6 + 200_000, dtype=np.uint64), [], []
    for run in range(6):
        oracle = ProjectiveOracle.draw(64, 100, epsilon, stream(1, "hashes", run))
        assert oracle.space.dimension == 2
        estimates = oracle.estimate(oracle.simulate(keys, counts, stream(1, "noise", run)), unheld, "mean")
        each = np.hypot(oracle.standard_error(180_000, "mean"), np.sqrt((counts**2).sum() / 64 / oracle.space.points))
        z.append(estimates / each)
        reach.append(np.mean(z[-1] > 2))
    z = np.array(z)
    assert np.abs(z.mean(axis=1)).max() < 4.9 * np.sqrt(1 / 200_000 + 1 / 64 / oracle.space.points)  # words, and free cells
    assert abs(z.std() - 1) < 0.05
    assert np.abs(np.array(reach) - 0.0228).max() < 0.008
