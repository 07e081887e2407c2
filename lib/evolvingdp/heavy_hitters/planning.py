"""The TreeHist that finds words of the fewest users, whatever the others are, and what to expect of a search where it is
known who holds what.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from evolvingdp.core import checks
from evolvingdp.core.geometry import Geometry, geometry
from evolvingdp.core.olh import OLH
from evolvingdp.core.sampling import skewed_isf
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.heavy_hitters.word_tree import Nodes, WordTree

_SHARES = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)  # of the users who report whole words
_FIRST, _BEHIND = 5, 3  # letters: of one more there would be more than 20 million below a root, or 50 survivors
_ROWS = 8  # of a sketch, at least
WIDE = 1 << 14  # cells of a row
_TO_A_CELL = 10  # candidates: of more, many who nearly reach a cut by chance share their highest cells with a word
_CROWD = 0.1  # of the noise's variance is what words that share cells may add, where there is room for cells
_WORK = 1 << 22  # cells that a level's transforms take
_LOOK_UPS = 1 << 30  # of candidates in rows at a level: about ten seconds of a search
_LINES = 1 << 20  # cells of rows that take none, but are many to look up


def planned(
    epsilon: float,
    n_users: int,
    threshold: float | None = None,
    *,
    length: int = 6,
    missed: float = 0.05,
    strangers: float = 0.05,
    max_candidates: int = 20_000_000,
) -> TreeHist:
    """The TreeHist that finds words of the fewest users with probability 1 - `missed`, by `reach`, among trees and shares of
    the users for whole words; where all words can be asked for, all users report those.  Its threshold is the lowest that so
    few `strangers` are expected to reach, words that nobody holds, or `threshold`, where that is higher; its levels are cut
    so high that it asks for three quarters of `max_candidates` at most.

    Raises ValueError where no plan asks for so few, or each could find nothing.
    """
    checks.positive(epsilon=epsilon, strangers=strangers)
    checks.probability(missed=missed)
    checks.integer_at_least(2, n_users=n_users, length=length)
    checks.integer_at_least(1, max_candidates=max_candidates)
    if threshold is not None:
        checks.positive(threshold=threshold)
    space, least, best = geometry(float(epsilon), WIDE), float(n_users), None
    most = _enough_rows(space, math.inf)

    def cutting(made: TreeHist) -> TreeHist:
        return replace(made, threshold=max(made.threshold, with_few(made, n_users, strangers).threshold))

    def sized(made: TreeHist) -> tuple[float, TreeHist]:
        """How many times too much it asks for, and the same with as many rows as it needs and can look up."""
        lonely = n_users * made.threshold / made.level_error(made.tree.depth - 1, n_users) ** 2
        asked = max(_asked(made, n_users)[0])
        needed = _enough_rows(space, max(_ROWS * WIDE, asked / _TO_A_CELL))
        rows = max(needed, min(_enough_rows(space, lonely / _CROWD), int(_LOOK_UPS / asked)))
        return asked / min(0.75 * max_candidates, _LOOK_UPS / needed), replace(made, rows=rows)

    def over(log_cut: float, made: TreeHist) -> float:
        """How much too much it asks for, were no level cut lower."""
        return math.log(sized(replace(made, least_cut=math.exp(log_cut)))[0])

    tried = []
    for steps in _trees(length):
        for share in _SHARES[: None if len(steps) > 1 else 1]:
            made = TreeHist(WordTree(steps, length), epsilon, threshold or 1.0, most, WIDE, share, max_candidates)
            tried.append((reach(made := cutting(made), n_users, missed), made))
    for bound, made in sorted(tried, key=lambda one: one[0]):
        if bound >= least:  # with fewer rows, or higher cuts, it is no less
            break
        if over(0.0, made) > 0:
            if over(math.log(least), made) > 0:
                continue
            lowest = brentq(over, 0.0, math.log(least), (made,), xtol=1e-5)
            made = replace(made, least_cut=math.exp(lowest + 1e-5))
        made = cutting(sized(made)[1])
        if (users := reach(made, n_users, missed)) < least:
            least, best = users, made
    if best is None:
        raise ValueError(
            f"n_users must be more, or max_candidates, so that a search among words of {length} letters can end and find "
            f"one, got {n_users} and {max_candidates} for epsilon = {epsilon:g}"
        )
    return best


def with_few(settings: TreeHist, n_users: int, strangers: float = 0.05) -> TreeHist:
    """The same, with the lowest threshold that so few `strangers` are expected to reach, words that nobody holds: by known
    errors, and the most that words below it, which no fit takes out of the cells, may add to a stranger's."""
    last = settings.tree.depth - 1

    def needed(threshold: float) -> float:
        """At what a search asks for that has this one; the higher that is, the less."""
        rare = strangers / _asked(replace(settings, threshold=threshold), n_users)[0][last]
        few = skewed_isf(min(0.5, rare), settings.skew(last, n_users))
        shared = few**2 * _collisions(settings, n_users) / 2
        return shared + math.hypot(shared, few * settings.level_error(last, n_users))

    low = needed(high := needed(1.0))
    return replace(settings, threshold=high if low == high else needed(low))  # lower than high, and still high enough


def _collisions(settings: TreeHist, n_users: int) -> float:
    """The variance that words which share cells add to another's estimate, at most, for each of the users that the most
    frequent of them has."""
    return n_users / (settings.rows * settings.report.space.points)


def reach(settings: TreeHist, n_users: int, missed: float = 0.05) -> float:
    """How many users a word has that is found with probability 1 - `missed`, whatever others hold, inf where there is none.

    By the known standard errors, and the most that words below a cut may add by collisions.  Held prefixes that pass a cut
    are taken to be as many as can be, n_users / cut.
    """
    levels = []
    for level, cut in enumerate(_asked(settings, n_users)[1]):
        nobody, everybody = np.square(settings.level_errors(level, n_users, np.array([0.0, n_users]))).tolist()
        more = (everybody - nobody) / n_users  # a variance is linear in who holds a word
        levels.append((cut, nobody + cut * _collisions(settings, n_users), more))

    def lost(held: float) -> float:
        passed = (float(ndtr((held - cut) / math.sqrt(nobody + held * more))) for cut, nobody, more in levels)
        return 1 - missed - math.prod(passed)

    return math.inf if lost(n_users) > 0 else float(brentq(lost, min(cut for cut, *_ in levels), n_users, rtol=1e-4))


def _asked(settings: TreeHist, n_users: int) -> tuple[list[float], list[float]]:
    """Of `reach`: how many prefixes are asked for at each level, and the cuts."""
    survivors, asked, cuts = 1.0, list[float](), list[float]()
    for level in range(settings.tree.depth):
        asked.append(survivors * settings.tree.fan(level))
        cuts.append(settings.cut(level, n_users, asked[-1]))
        survivors = asked[-1] * settings.by_chance(level, n_users, cuts[-1]) + n_users / cuts[-1]
    return asked, cuts


def _enough_rows(space: Geometry, cells: float) -> int:
    """Rows of so many cells in all, as far as the server's transforms allow: points that are few, as they are for large
    epsilon, need more rows."""
    most = (_LINES if space.dimension == 2 else _WORK) // space.points
    return max(_ROWS, math.ceil(min(cells / space.points, most)))


def several_words(epsilon: float, n_users: int, words: int, holders: float = 0.0) -> tuple[float, float]:
    """Standard errors, in users, where each user has `words` words, of which `holders` users have the one asked about.

    First: the user reports one of them, drawn by lot, with `epsilon`.  Second: a report of each with `epsilon` / `words`.
    Of a rare word the first has the smaller error; of one that many hold the second may have it, at a large epsilon.
    """
    checks.positive(epsilon=epsilon)
    checks.integer_at_least(1, n_users=n_users, words=words)
    one, each = OLH(epsilon), OLH(epsilon / words)
    sampled = words * float(one.standard_errors(n_users, np.array([holders / words]))[0])
    whole = float(each.standard_errors(n_users * words, np.array([holders]))[0])
    return math.hypot(sampled, math.sqrt(holders * (words - 1))), whole


def _trees(length: int) -> list[tuple[int, ...]]:
    """Trees whose first level asks for all prefixes of up to five letters, and the others of three at most."""
    firsts = range(1, min(_FIRST, length) + 1)
    levels = [(first, -(-(length - first) // _BEHIND) + more) for first in firsts for more in (0, 1)]
    return [(first, *_even(length - first, behind)) for first, behind in levels if behind <= length - first]  # or alone


def _even(length: int, levels: int) -> tuple[int, ...]:
    return tuple(int(part) for part in np.diff(np.arange(levels + 1) * length // max(1, levels)))


@dataclass(frozen=True)
class Prospect:
    """What a search is expected to list, by the known standard errors.

    A node passes a cut with the normal probability of its count; errors of different levels are independent.  Nodes that
    nobody holds count too: below each survivor there are many, and a cut of few standard errors lets some of them
    through.  Where most that reach the last cut are such, `empty` is an upper bound: those that come near it mostly share a
    cell whose noise is high, which the joint fit divides among them, so that it lists two thirds of them, or fewer yet.
    """

    passed: NDArray[np.float64]  # the probability that each word is listed
    true: NDArray[np.bool_]  # whether it is to be found
    survivors: tuple[float, ...]  # of each level
    empty: float  # listed words that nobody holds

    @property
    def f1(self) -> tuple[float, float]:
        """Of expected numbers of hits and finds, and the standard deviation of one run's around it."""
        return f1_of(self.passed, self.empty, self.true)


def prospect(settings: TreeHist, leaves: Nodes, counts: NDArray[np.integer], heavy_from: float | None = None) -> Prospect:
    """Where counts[i] users hold leaves[i], and who has more than `heavy_from` is to be found, by default the threshold."""
    n_users, passed, survivors, empty = int(np.sum(counts)), np.ones(len(counts)), [1.0], 0.0
    for level in range(settings.tree.depth):
        prefixes, first, place = np.unique(settings.tree.prefixes(leaves, level), return_index=True, return_inverse=True)
        held = np.bincount(place, weights=counts, minlength=len(prefixes))[place]
        asked, below = survivors[-1] * settings.tree.fan(level), float(passed[first].sum())
        cut = settings.cut(level, n_users, asked)
        passed *= ndtr((held - cut) / settings.level_errors(level, n_users, held))
        empty = max(0.0, asked - below) * settings.by_chance(level, n_users, cut)
        survivors.append(empty + float(passed[first].sum()))
    true = np.asarray(counts) > (settings.threshold if heavy_from is None else heavy_from)
    return Prospect(passed, true, tuple(survivors[1:]), empty)


def f1_of(passed: NDArray[np.float64], empty: float, true: NDArray[np.bool_]) -> tuple[float, float]:
    """F1 of expected numbers, and its standard deviation by the delta method, where word i is listed with probability
    passed[i] and on the list if true[i], all independent, and `empty` words that nobody holds are listed in expectation."""
    both = float(passed.sum() + empty + true.sum())
    f1 = float(2 * passed[true].sum() / both)
    each = passed * (1 - passed)
    variance = each[true].sum() * (2 - f1) ** 2 + (each[~true].sum() + empty) * f1**2
    return f1, math.sqrt(float(variance)) / both
