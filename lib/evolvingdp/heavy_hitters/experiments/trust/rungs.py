"""The rungs of the ladder: which mechanism users send to whom they trust, at one central guarantee."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtri

from evolvingdp.heavy_hitters.experiments.trust.params import Params
from evolvingdp.heavy_hitters.olh import OLH
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.trust.prefix_counts import PrefixCounts, noise_tail
from evolvingdp.heavy_hitters.trust.shuffling import epsilon_of_a_report, fewest
from evolvingdp.heavy_hitters.word_tree import WordTree

LOCAL, GROUPS, SHUFFLED = "nobody (local)", "a shuffler, levels public", "a shuffler"
SERVERS, CURATOR = "one of two servers", "a curator"
RUNGS = (LOCAL, GROUPS, SHUFFLED, SERVERS, CURATOR)
SHARES = (0.15, 0.20, 0.65)  # of the users, by level; of epsilon where all are counted at every level:
BUDGETS = (0.10, 0.20, 0.70)  # the best of five by a power law of the ranks
MOST = 20_000_000  # candidates at one level
LARGEST = 10.0  # epsilon of a report of local hashing
LETTERS = WordTree((2, 2, 2))


def method(params: Params, rung: str, epsilon: float) -> PEM | PrefixCounts:
    """Its threshold lets one word that nobody holds pass, in expectation, among as many as it may ask for."""
    if rung == CURATOR:  # all words of the alphabet are counted at once
        return _counts(WordTree((6,)), epsilon, 1, (1.0,), 27**6)
    if rung == SERVERS:
        return _counts(LETTERS, epsilon, 2, BUDGETS, MOST)
    one = report_epsilon(params, rung, epsilon)
    error = OLH(one).standard_error(int(params.n_users * SHARES[-1])) / SHARES[-1]
    return PEM(LETTERS, one, -float(ndtri(1 / MOST)) * error, SHARES, MOST)


def report_epsilon(params: Params, rung: str, epsilon: float) -> float:
    """Of a user's report.  Where levels are public, the smallest level's users hide among themselves, who may be few."""
    if rung == LOCAL:
        return epsilon
    users, delta = fewest(params.n_users, min(SHARES) if rung == GROUPS else 1, params.delta)
    return _amplified(epsilon, delta, users)


@cache
def _amplified(epsilon: float, delta: float, n_users: int) -> float:
    return epsilon_of_a_report(epsilon, delta, n_users, lambda one: OLH(one).hash_values, LARGEST)


def _counts(tree: WordTree, epsilon: float, servers: int, shares: tuple[float, ...], most: int) -> PrefixCounts:
    law, values = noise_tail(PrefixCounts(tree, epsilon, 1, servers, shares).noise(tree.depth - 1), servers, 1)
    threshold = int(values[np.argmax(min(most, 26**6) * law[::-1].cumsum()[::-1] <= 1)])
    return PrefixCounts(tree, epsilon, threshold, servers, shares, most)
