"""What can be said of a search beforehand: which words it finds, for how many it asks, and its F1 if it knew the words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.planning import f1_of
from evolvingdp.heavy_hitters.tree_hist import Held, TreeHist


def found_probability(
    oracle: FreqOracle, held: Held, nodes: NDArray[np.uint64], cuts: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """The probability that the medians of each word's `nodes` (levels, words) all reach `cuts` (levels,), (words,), given a
    draw of all but the noise of others in the one sketch that all levels share.

    Its mean over draws is the probability without any condition, and differs little from draw to draw: `rng` only deals
    the users to rows and flips the signs of those who share a cell with a prefix of the word.  The signs that
    all others add to the cell are fair coins, and the median of an odd number of independent rows reaches a cut when
    more than half of the rows do: a tail of a binomial in each row, of a sum of unequal coins over rows.  So whole
    numbers and collisions are accounted for, unlike in `prospect`.  Levels count as independent: two prefixes of a word
    share a cell in one of `width` rows.
    """
    plus, minus = oracle.holders(*held, rng).swapaxes(0, 1)
    rows, asked = np.arange(oracle.hashes.rows)[:, None], nodes.ravel()[None, :]
    cells, signs = oracle.hashes.cells(rows, asked), oracle.hashes.signs(rows, asked)
    same, other = np.where(signs > 0, (plus[rows, cells], minus[rows, cells]), (minus[rows, cells], plus[rows, cells]))
    elsewhere = (plus + minus).sum(axis=1, keepdims=True) - same - other
    own = oracle.randomizer.sum_given_counts(same, other, rng)
    needed = np.repeat(cuts / oracle.users_of_a_report, nodes.shape[1])
    heads = np.ceil((needed - own + elsewhere) / 2)  # of the fair coins: own + 2 heads - elsewhere must reach it
    reached = _more_than_half(binom.sf(heads - 1, elsewhere, 0.5))
    return np.asarray(reached.reshape(nodes.shape).prod(axis=0))


def _more_than_half(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(more than half of independent events happen), an odd number of them, (events, cases) -> (cases,)."""
    n_events, n_cases = probabilities.shape
    law = np.zeros((n_events + 1, n_cases))
    law[0] = 1
    for p in probabilities:
        law[1:] = law[1:] * (1 - p) + law[:-1] * p
        law[0] *= 1 - p
    return np.asarray(law[n_events // 2 + 1 :].sum(axis=0))


def expected_candidates(settings: Any, n_users: int) -> float:
    """How many nodes that nobody holds a search by normal errors asks for at the level where it asks for most; `settings`:
    a TreeHist, or another search that has its tree, cuts and by_chance."""
    survivors, most = 1.0, 0.0
    for level in range(settings.tree.depth):
        asked = survivors * settings.tree.fan(level)
        cut = settings.cut(level, n_users, asked)
        survivors, most = asked * settings.by_chance(level, n_users, cut), max(most, asked)
    return most


def known_f1(settings: TreeHist, counts: NDArray[Any], heavy_from: float) -> float:
    """The F1 that normal errors predict if the words that somebody holds were known and all users reported whole words, and
    those that seem to have `heavy_from` users were listed.

    What finding the words costs is the distance to it: no plan with these reports has a smaller error.
    """
    passed = ndtr((counts - heavy_from) / settings.report.standard_errors(int(counts.sum()), counts))
    return f1_of(passed, 0.0, counts > heavy_from)[0]
