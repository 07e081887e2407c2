"""Reports of one of several values: users one by one and the simulation have one exact joint law."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest

from evolvingdp.core.geometry import Geometry
from evolvingdp.core.reports import Hashed, Projective, Sign, Subset
from evolvingdp.core.seeds import stream
from support import ALPHA, fits

LAW = np.array([0.6, 0.3, 0.1])


def set_law(report):
    """Which words one user supports."""
    law: Counter = Counter()
    for word in range(3):
        for one, chance in report.probabilities(word).items():
            law[tuple(int(value in one) for value in range(3))] += LAW[word] * chance
    return law


def support_law(report):
    """Its own with probability p, each other with probability 1/g, independently."""
    law: Counter = Counter()
    for word, pattern in itertools.product(range(3), itertools.product((0, 1), repeat=3)):
        chances = [report.own if each == word else report.other for each in range(3)]
        law[pattern] += LAW[word] * math.prod(c if bit else 1 - c for c, bit in zip(chances, pattern, strict=True))
    return law


def row_law(report):
    """The row and sign that one user sends."""
    law, signs = Counter(), np.array([[1, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]])
    for row, word, kept in itertools.product(range(4), range(3), (True, False)):
        sums = [0] * 4
        sums[row] = int(signs[row, word]) * (1 if kept else -1)
        law[tuple(sums)] += LAW[word] / 4 * (report.own if kept else 1 - report.own)
    return law


def point_law(report):
    """The point that one user sends: one of those that support the own, or any."""
    space, law = report.space, Counter()
    for word, point in itertools.product(range(3), range(space.points)):
        supports = (point - word) % space.points in space.block
        chance = report.lie / space.points + supports * (1 - report.lie) / space.size
        law[tuple(int(each == point) for each in range(space.points))] += LAW[word] * chance
    return law


KINDS = {
    "one": (lambda epsilon: Subset(3, epsilon), set_law),
    "two": (lambda epsilon: Subset(3, epsilon, 2), set_law),
    "hashed": (lambda epsilon: Hashed(3, epsilon), support_law),
    "point": (lambda epsilon: Projective(3, epsilon, Geometry(2, 3)), point_law),
    "sign": (lambda epsilon: Sign(3, epsilon), row_law),
}


@pytest.mark.parametrize("path", ["users", "simulation"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_one_user_adds_to_all_words_has_its_exact_joint_law(kind, path):
    (make, law), draws, rng, public = KINDS[kind], 12_000, stream(0, kind, path), stream(0, kind, "public")
    report, observed = make(2.0), Counter()
    for _ in range(draws):
        if path == "simulation":
            sums = report.draw_sums(np.array([1]), LAW[None], rng)
        else:
            sums = report.collect(rng.choice(3, 1, p=LAW), public, rng)
        observed[tuple(sums.tolist())] += 1
    assert fits(observed, law(report), draws) > ALPHA
    assert fits(observed, law(make(0.5)), draws) < ALPHA


@pytest.mark.parametrize("path", ["users", "simulation"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_sums_of_two_users_have_their_exact_joint_law(size, path):
    """Of five values; one holds the second, the other the fourth: sets of several are filled up value by value."""
    report, rng, draws = Subset(5, 1.0, size), stream(0, "two", size, path), 20_000
    held = np.bincount([1, 3], minlength=5)

    def law(report):
        both: Counter = Counter()
        for (one, p), (other, q) in itertools.product(*(report.probabilities(value).items() for value in (1, 3))):
            both[tuple(np.bincount([*one, *other], minlength=5).tolist())] += p * q
        return both

    observed: Counter = Counter()
    for _ in range(draws):
        sums = report._supports(held, rng) if path == "simulation" else report.collect(np.array([1, 3]), rng, rng)
        observed[tuple(sums.tolist())] += 1
    assert fits(observed, law(report), draws) > ALPHA
    assert fits(observed, law(Subset(5, 1.2, size)), draws) < ALPHA


@pytest.mark.parametrize("path", ["users", "simulation", "one"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_word_that_all_hold_is_supported_with_probability_own(kind, path):
    """Word 0, whose sign is + in all rows of the Hadamard matrix; an epsilon 10 % off is rejected."""
    if path == "one" and kind == "sign":
        return  # it draws supports, and the sums of signs are none
    n_users, (make, _), rng = 100_000, KINDS[kind], stream(0, kind, path)
    report = make(2.0)
    if path == "simulation":
        sums = report.draw_sums(np.array([n_users]), np.eye(1, 3), rng)
    elif path == "one":
        sums = np.array([report.draw_one(np.int64(n_users), n_users, rng), report.draw_one(np.int64(0), n_users, rng)])
    else:
        sums = report.collect(np.zeros(n_users, dtype=int), stream(0, kind, "public"), rng)
    if kind == "point" and path != "one":
        assert fits(Counter(dict(enumerate(sums.tolist()))), report.probabilities(0), n_users) > ALPHA
        sums = report.space.supporting(sums)
    own = (n_users + int(sums.sum())) // 2 if kind == "sign" else int(sums[0])
    assert binomtest(own, n_users, report.own).pvalue > ALPHA
    assert binomtest(own, n_users, 0.9 * report.own).pvalue < ALPHA
    if kind != "sign":
        assert binomtest(int(sums[1]), n_users, report.other).pvalue > ALPHA
        assert binomtest(int(sums[1]), n_users, 0.9 * report.other).pvalue < ALPHA
