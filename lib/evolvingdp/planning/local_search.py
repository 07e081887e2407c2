"""Words that no list has, which users report themselves: what a search finds, and how precisely.

Errors are those of the last level's reports; `heavy_hitters.planning` chooses the plan for words of a power law.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.stats import norm

from evolvingdp.core.olh import OLH
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.planning import planned, sketch_size
from evolvingdp.heavy_hitters.sketches.geometry import geometry
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.planning import local, shuffled
from evolvingdp.planning.answer import BETA, CannotServeError, Expected, Method
from evolvingdp.planning.question import Question

NO_LIST = ("words",)
LARGEST = 10.0  # epsilon of a report of local hashing, whose values fit in 16 bits
_LEAST_SHARE = 0.15  # of the users, at a level that is public: those of one level hide among themselves
_FACTORS = [4 * 1.25**step for step in range(16)]  # thresholds, in standard errors of whole words


def _reports(question: Question) -> float:
    """Reports that one answer reads: those of its periods, where each user reports once, or of everybody in each of them."""
    return question.users * question.pooled / question.reports.of_a_unit


def _epsilon(question: Question) -> float:
    """Of a report: local hashing ends at 10, and a report at less epsilon than is allowed always serves."""
    return min(question.epsilon, LARGEST)


def _reporters(question: Question) -> int:
    return max(1, int(_reports(question)))


@lru_cache
def _tree_hist(question: Question, least_share: float = 0.0, rows_collide: bool = True) -> TreeHist:
    """The lowest threshold, of steps of a quarter, at which a search can end; the rest as for `planned`."""
    if question.unit == "user":
        local.enough_reports(question)
    users = _reporters(question)
    if users < 1000:
        raise CannotServeError(
            f"an answer has {users} reports, and a search needs 1,000", f"--users {_times(question, 1000)}"
        )
    epsilon = _epsilon(question)
    error = OLH(epsilon).standard_error(users)
    low, high, found = 0, len(_FACTORS), None
    size: Any = {"length": question.length, "least_share": least_share, "rows_collide": rows_collide}
    while low < high:
        middle = (low + high) // 2 if found or low else 0  # mostly the first
        try:
            found, high = planned(epsilon, users, _FACTORS[middle] * error, **size), middle
        except ValueError:
            low = middle + 1
    if found is None:
        raise CannotServeError(
            f"no threshold lets a search among words of {question.length} letters end with {users:,} reports", "--length 6"
        )
    return found


def _tree_hist_expected(question: Question, settings: TreeHist) -> Expected:
    users, last = _reporters(question), settings.tree.depth - 1
    share, held = settings.shares[last], question.level * users
    noise = settings.level_error(last, users, held)
    error = math.hypot(noise, math.sqrt(held * (1 - share) / share))
    return _search_expected(question, settings.threshold, error, users)


def _pem(question: Question, least_share: float = 0.0) -> PEM:
    like = _tree_hist(question, least_share, rows_collide=False)
    return PEM(like.tree, like.epsilon, like.threshold, like.shares)


def _pem_expected(question: Question, settings: PEM) -> Expected:
    users = _reporters(question)
    error = float(settings.standard_errors(np.array([question.level * users]), round(settings.shares[-1] * users))[0])
    return _search_expected(question, settings.threshold, error, users)


def _search_expected(question: Question, threshold: float, error: float, users: int) -> Expected:
    """A word is found where its estimate reaches the last cut; those of earlier levels are looser."""
    found = (threshold + float(norm.isf(BETA)) * error) / users
    if found > 1:
        raise CannotServeError(
            f"a word would need {found:.3g} times all users to be found", f"--users {_times(question, 2 * found * users)}"
        )
    note = "" if question.level > found else f"a word of {question.level:.2g} of the users is not found"
    return Expected.normal(math.hypot(error / users, _dealt(question, users)), found=found, note=note)


def _dealt(question: Question, users: int) -> float:
    """Which users' words an answer reads is chance, too."""
    return math.sqrt(question.level * (1 - question.level) * max(0.0, 1 / users - 1 / (question.users * question.pooled)))


def _times(question: Question, reports: float) -> str:
    """How many users make so many reports."""
    return local.up(reports * question.users / _reports(question))


def _order(epsilon: float, cells: int) -> int:
    return geometry(epsilon, cells).order


def _cells(question: Question) -> int:
    return sketch_size(_reporters(question))[1]


METHODS = [
    Method(
        "TreeHist", NO_LIST, _tree_hist, _tree_hist_expected, mixed=replace(shuffled.SEARCH, values=_order, cells=_cells)
    ),
    Method("PEM", NO_LIST, _pem, _pem_expected, mixed=shuffled.SEARCH),
]


def _levels_public(method: Method) -> Method:
    """Behind a shuffler that passes on the reports of each level by itself."""
    assert isinstance(method.mixed, shuffled.Mixed)
    kind = replace(method.mixed, share=_LEAST_SHARE, name="shuffled, levels public")
    return replace(method, settle=partial(method.settle, least_share=_LEAST_SHARE), mixed=kind, trust="shuffler")


METHODS += [_levels_public(method) for method in METHODS]
