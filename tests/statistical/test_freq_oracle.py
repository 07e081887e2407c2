"""The per-user path and the exact simulation have one law, and theory predicts the error."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import count_sketch, theory
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from support import ALPHA, fits

KEYS = np.array([0, 1], dtype=np.uint64)
COUNTS = np.array([2, 1])
DRAWS = 12_000  # from 11,400 on the likelihood ratio misses the wrong law with probability 1e-6


def exact_law(oracle, epsilon):
    """The law of the sketch of 3 users, enumerated over slots and reports: sums (flattened) -> probability."""
    randomizer = SignFlip(epsilon)
    rows, width = oracle.hashes.rows, oracle.hashes.width
    law = Counter({(0,) * (rows * width): 1.0})
    for key in np.repeat(KEYS, COUNTS):
        user = Counter()
        for slot in range(rows * width):
            bit = int(oracle.true_bits(np.array([key]), np.array([slot]))[0])
            for report, probability in randomizer.probabilities(bit).items():
                user[slot, (report,)] += probability / (rows * width)
        law = _add(law, user)
    return law


def _add(law, user):
    total = Counter()
    for sums, p in law.items():
        for (start, report), q in user.items():
            after = list(sums)
            for offset, y in enumerate(report):
                after[start + offset] += y
            total[tuple(after)] += p * q
    return total


def likely(observed, law, other):
    """p-value of `observed` outcomes under `law` by the mean of log law / other: nothing tells `other` from fewer draws."""
    ratio = {outcome: math.log(p / other[outcome]) for outcome, p in law.items()}
    mean = sum(p * ratio[outcome] for outcome, p in law.items())
    variance = sum(p * (ratio[outcome] - mean) ** 2 for outcome, p in law.items())
    draws = observed.total()
    seen = sum(times * ratio[outcome] for outcome, times in observed.items()) / draws
    return 2 * norm.sf(abs(seen - mean) / math.sqrt(variance / draws))


@pytest.mark.parametrize("path", ["per user", "groups", "users"])
def test_both_paths_have_the_exact_law_of_a_tiny_sketch(path, monkeypatch):
    for name in ("_AT_ONCE", "_DEALT"):
        monkeypatch.setattr(count_sketch, name, 2)  # a block of the simulation is one row, so there are two
    monkeypatch.setattr(count_sketch, "_BINOMIAL", 0 if path == "groups" else 100)  # whichever way is cheaper
    oracle = FreqOracle(MultiplyShift.draw(2, 2, stream(0, "hashes")), 2.0)
    public, private = stream(0, path, "slots"), stream(0, path, "noise")
    users = np.repeat(KEYS, COUNTS)
    dealt = itertools.cycle((8, 0))  # users a row up to which they are dealt one by one, and not by word

    def draw():
        if path == "per user":
            return oracle.collect(users, public, private)
        monkeypatch.setattr(count_sketch, "_RARE", next(dealt))
        return oracle.simulate(KEYS, COUNTS, private)

    seen = Counter(tuple(draw().sums.ravel().tolist()) for _ in range(DRAWS))
    true, wrong = exact_law(oracle, 2.0), exact_law(oracle, 2.2)
    assert fits(seen, true, DRAWS) > ALPHA
    assert likely(seen, true, wrong) > ALPHA
    assert likely(seen, wrong, true) < ALPHA


@pytest.mark.parametrize(
    ("n_users", "rows", "width"), [(10**6, 285, 1024), (10**4, 285, 1024), (10**5, 101, 64), (10**5, 100, 64)]
)
def test_theory_predicts_the_error_with_collisions_and_rounding(n_users, rows, width):
    keys = np.arange(40, dtype=np.uint64)
    counts = np.full(40, n_users // 40)
    errors = []
    for repetition in range(60):
        rng = stream(0, "theory", rows, width, n_users, repetition)
        oracle = FreqOracle(MultiplyShift.draw(rows, width, rng), 2.0)
        errors.append(oracle.estimate(oracle.simulate(keys, counts, rng), keys) - counts)
    expected = theory.median_error(counts[1:], n_users, 2.0, rows, width, truth=n_users // 40)
    ratio = np.mean(np.square(errors)) / expected**2
    assert 0.85 < ratio < 1.15  # words of one run share rows, so the effective number of errors is below 2,400


@pytest.mark.parametrize(("rows", "runs"), [(1, 9_000), (9, 1_200)])  # 10 % are missed with probability 1e-6
def test_the_variance_of_a_row_is_that_of_the_theorem(rows, runs):
    """Theorem 2 of the chapter, over hashes, slots and noise, from independent runs."""
    keys, counts = np.arange(8, dtype=np.uint64), np.arange(5, 13)
    width, epsilon = 4, 1.0
    rng = stream(0, "variance", rows)
    a, pairs = SignFlip(epsilon).debias, counts * (counts - 1)
    expected = counts.sum() * rows * a**2 - counts + (pairs.sum() - pairs) / width
    errors, squares = np.empty((2, runs))
    for run in range(runs):
        oracle = FreqOracle(MultiplyShift.draw(rows, width, rng), epsilon)
        scaled = (oracle.row_estimates(oracle.simulate(keys, counts, rng), keys) - counts) / np.sqrt(expected)
        errors[run], squares[run] = scaled.mean(), np.square(scaled).mean()
    assert abs(errors.mean()) < 4.9 * errors.std() / np.sqrt(runs)
    deviation = squares.std() / np.sqrt(runs)
    assert abs(squares.mean() - 1) < 4.9 * deviation
    assert abs(squares.mean() / 1.1 - 1) > 4.9 * deviation


@pytest.mark.parametrize("share", [0.6, 1.0])
def test_a_word_s_own_holders_lower_its_error(share):
    """Rows share the users who hold the word: theory without `truth` is wrong by 12 to 25 %."""
    n_users, rows, runs = 10**4, 31, 3500  # 12 % are missed with probability 1e-6
    held = int(share * n_users)
    keys, counts = np.array([0, 1], dtype=np.uint64), np.array([held, n_users - held])
    estimates = np.empty(runs)
    for run in range(runs):
        rng = stream(0, "own", run)
        oracle = FreqOracle(MultiplyShift.draw(rows, 2**10, rng), 2.0)
        estimates[run] = oracle.estimate(oracle.simulate(keys, counts, rng), keys[:1])[0]
    deviation = np.sqrt(np.mean((estimates - held) ** 2))
    tolerance = 4.9 / np.sqrt(2 * runs)
    with_own = theory.median_error(counts[1:], n_users, 2.0, rows, 2**10, truth=held)
    without = theory.median_error(counts[1:], n_users, 2.0, rows, 2**10)
    assert abs(deviation / with_own - 1) < tolerance
    assert abs(deviation / without - 1) > tolerance
