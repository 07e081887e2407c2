"""The probability that a search of the paper's kind finds a word, given who shares a cell with whom."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from evolvingdp.heavy_hitters.sketches import simulation
from evolvingdp.heavy_hitters.tree_hist import Protocol, TreeHist


def found_probability(
    protocol: Protocol,
    leaves: NDArray[np.uint64],
    counts: NDArray[np.integer],
    asked: NDArray[np.uint64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """The probability that a search finds each leaf of `asked`, (asked,), given a draw of all but the noise of others.

    Its mean over draws is the probability without any condition, and differs little from draw to draw: `rng` only deals
    the users to levels and rows and flips the signs of those who share a cell with a prefix of the leaf.  The signs that
    all others add to the cell are fair coins, and the median of an odd number of independent rows reaches a cut when
    more than half of the rows do: a tail of a binomial in each row, of a sum of unequal coins over rows.  So whole
    numbers and collisions are accounted for, unlike in `expected_f1`.  For the median, an odd number of rows, no final
    phase, and no level with more than `max_survivors` survivors.  Levels count as independent: two prefixes of a word share
    a cell in one of `width` rows.
    """
    settings = protocol.settings
    if settings.estimator != "median" or settings.rows % 2 == 0 or settings.plan == "two_reports":
        raise ValueError(
            "protocol must take the median of an odd number of rows, without a final phase, "
            f"got estimator {settings.estimator!r}, rows {settings.rows}, plan {settings.plan!r}"
        )
    n_users, levels = int(np.sum(counts)), range(settings.tree.depth)
    cuts = np.array([settings.cut(level, n_users) * settings.shares[level] for level in levels])  # in users of the level
    nodes = np.array([protocol.keys(asked, level) for level in levels])
    found = np.ones(len(asked))
    for own_levels, (oracle, held) in zip(_levels_of_sketches(settings), protocol.holders(leaves, counts, rng), strict=True):
        plus, minus = simulation.holders(oracle.hashes, *held, rng)
        rows = np.arange(settings.rows)[:, None]
        cells, signs = oracle.hashes.cells_and_signs(rows, nodes[own_levels].ravel()[None, :])
        same, other = np.where(signs > 0, (plus[rows, cells], minus[rows, cells]), (minus[rows, cells], plus[rows, cells]))
        elsewhere = (plus + minus).sum(axis=1, keepdims=True) - same - other
        own = oracle.client.randomizer.sum_given_counts(same, other, rng)
        needed = np.repeat(cuts[own_levels] / oracle.users_of_a_report, len(asked))
        heads = np.ceil((needed - own + elsewhere) / 2)  # of the fair coins: own + 2 heads - elsewhere must reach it
        reached = _more_than_half(binom.sf(heads - 1, elsewhere, 0.5))
        found *= reached.reshape(-1, len(asked)).prod(axis=0)
    return found


def _levels_of_sketches(settings: TreeHist) -> list[list[int]]:
    levels = list(range(settings.tree.depth))
    return [levels] if settings.shared_sketch else [[level] for level in levels]


def _more_than_half(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(more than half of independent events happen), (events, cases) -> (cases,)."""
    n_events, n_cases = probabilities.shape
    law = np.zeros((n_events + 1, n_cases))
    law[0] = 1
    for p in probabilities:
        law[1:] = law[1:] * (1 - p) + law[:-1] * p
        law[0] *= 1 - p
    return np.asarray(law[n_events // 2 + 1 :].sum(axis=0))
