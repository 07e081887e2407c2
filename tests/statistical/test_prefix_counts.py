"""Noisy counts of prefixes have the exact law of the servers' noise."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from string import ascii_lowercase

import numpy as np
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import word_tree
from evolvingdp.heavy_hitters.trust.prefix_counts import PrefixCounts
from evolvingdp.heavy_hitters.word_tree import WordTree
from support import ALPHA, fits

TREE, PAIRS = WordTree((1, 2), length=3), WordTree((1, 1), length=2)
HELD = [
    first + second + third for first in ascii_lowercase[:25] for second in ascii_lowercase[:8] for third in ascii_lowercase
]


def sums(settings):
    """The law of the noise of all servers together at the second level."""
    law = reduce(np.convolve, [settings.noise(1).pmf(np.arange(-200, 201))] * settings.servers)
    return dict(enumerate(law.tolist(), start=-(len(law) // 2)))


@pytest.mark.parametrize("servers", [1, 2])
def test_a_list_has_its_exact_law(servers):
    """Sums of words below 25 frequent letters: the servers' noise, of a word that is held and of one that nobody holds."""
    settings = PrefixCounts(TREE, 1.0, 4.0, servers, (0.1, 0.9))
    leaves, counts = TREE.encode(HELD), np.full(len(HELD), 100)
    held, empty = Counter(), Counter()
    for run in range(4):
        found = settings.search(leaves, counts, [stream(0, "search", server, run) for server in range(servers)])
        assert found.words.word.is_unique
        below = found.words[found.words.word < "z"]  # nobody's prefix may survive
        own = below.word.isin(HELD)
        held.update((below.estimate[own] - 100).astype(int).tolist())
        empty.update(below.estimate[~own].astype(int).tolist())
    assert held.total() == 4 * len(HELD)
    draws = 4 * (25 * 26**2 - len(HELD))
    empty[0] = draws - empty.total()  # those that miss the cut

    def laws(epsilon):
        listed = sums(PrefixCounts(TREE, epsilon, 4.0, servers, (0.1, 0.9)))
        passing = {value: mass for value, mass in listed.items() if value >= 4}
        return listed, passing | {0: 1 - sum(passing.values())}

    for observed, true, wrong in zip((held, empty), laws(1.0), laws(1.1), strict=True):
        assert fits(observed, true, observed.total()) > ALPHA
        assert fits(observed, wrong, observed.total()) < ALPHA


@pytest.mark.parametrize(
    "tree",
    [
        WordTree((1, 2), length=3, shorter=True),
        WordTree((5, 5, 5), length=3, unit="bits", shorter=True),
        WordTree((1,) * 9, length=9, unit="bytes", shorter=True),
    ],
    ids=str,
)
def test_a_user_is_counted_once_a_level_whatever_the_hash_of_its_word(tree, monkeypatch):
    """Keys are a public hash where digits do not fit 64 bits: somebody can find words that share one.  Here all do."""
    monkeypatch.setattr(word_tree, "scramble", np.zeros_like)
    leaves, counts = tree.encode(["ab", "abc", "zz"]), np.array([1000, 2000, 3000])
    settings = PrefixCounts(tree, 50.0 * tree.depth, 500.0, 1, (1 / tree.depth,) * tree.depth)
    found = settings.search(leaves, counts, [stream(0, "whole")]).words.set_index("word").estimate
    assert dict(found.round(-1)) == {"zz": 3000, "abc": 2000, "ab": 1000}


def test_words_below_a_prefix_that_misses_its_cut_are_not_counted():
    settings = PrefixCounts(PAIRS, 50.0, 90.0, 2, (0.5, 0.5))
    leaves, counts = PAIRS.encode(["ab", "ac", "zz"]), np.array([100, 50, 40])
    found = settings.search(leaves, counts, [stream(0, "one"), stream(0, "two")])
    assert found.words.word.tolist() == ["ab"]
    assert found.path.survivors.tolist() == [1, 1]
    assert found.path.candidates.tolist() == [26, 26]


def test_errors_are_those_of_the_servers_noise():
    settings = PrefixCounts(PAIRS, 1.0, 12.0, 2, (0.4, 0.6))
    assert settings.error(1) ** 2 == pytest.approx(sum(mass * value**2 for value, mass in sums(settings).items()))
    assert settings.cut(1) == 12
    assert settings.noise(0).scale == pytest.approx(5.0)
    assert settings.cut(0) == np.ceil(2 * settings.error(0))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"shares": (0.5, 0.6)}, "shares must be 2 numbers that sum to 1"),
        ({"shares": (1.2, -0.2)}, r"shares\[1\] must be > 0"),
        ({"servers": 0}, "servers must be"),
    ],
)
def test_what_has_no_meaning_is_refused(change, says):
    with pytest.raises(ValueError, match=says):
        PrefixCounts(**({"tree": PAIRS, "epsilon": 1.0, "threshold": 5.0, "shares": (0.5, 0.5)} | change))


def test_each_server_needs_a_generator_of_its_own():
    with pytest.raises(ValueError, match="private must be a generator for each of 2 servers, got 1"):
        PrefixCounts(PAIRS, 1.0, 4.0, 2, (0.4, 0.6)).search(PAIRS.encode(["ab"]), np.array([3]), [stream(0, "one")])


def test_shares_that_sum_to_more_than_1_by_rounding_spend_no_more_epsilon():
    settings = PrefixCounts(PAIRS, 1e-3, 4.0, 1, (0.25, 0.75 + 5e-10))
    spent = sum(2 / settings.noise(level)._numerator * 1024 for level in range(2))  # two counts a level move by one
    assert spent <= 1e-3
    many = np.array([2**52, 2**52])  # at 2^53 a running total in doubles would move by 2 where one user moves it by 1
    with pytest.raises(ValueError, match=r"counts must sum to less than 2\^53"):
        settings.search(PAIRS.encode(["aa", "ab"]), many, [stream(0)])
