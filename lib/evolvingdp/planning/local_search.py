"""Words that no list has, which users report themselves: what a search finds, and how precisely.

Errors are those of the last level's reports; `heavy_hitters.planning` chooses the plan that finds words of the fewest users.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import ndtri

from evolvingdp.core.geometry import Geometry, geometry
from evolvingdp.core.olh import OLH
from evolvingdp.heavy_hitters.planning import WIDE, planned, reach
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.planning.answer import BETA, CannotServeError, Expected, Method, rounded, rung
from evolvingdp.planning.local import enough_reports
from evolvingdp.planning.question import Question
from evolvingdp.planning.shuffled import MOST_HASH, Mixed

_AT_LEAST = 4 - float(ndtri(BETA))  # standard errors that are found: of hundreds of candidates some reach less by chance
_RUNGS = 16  # of epsilon that are tried: to less than a third


def _reports(question: Question) -> int:
    """Reports that one answer reads: those of its periods, where each user reports once, or of everybody in each of them."""
    return max(1, int(question.users * question.pooled / question.of_a_unit))


def _tree_hist(question: Question) -> TreeHist:
    """The one that finds most at this epsilon or less, as a report may always use less: sketches for a large epsilon, which
    have few points, can need higher cuts. Of one geometry the largest epsilon finds most."""
    if question.unit == "user":
        enough_reports(question)
    if (users := _reports(question)) < 1000:
        nearest = f"--users {rounded(1000 * question.users / users):.0f}"
        raise CannotServeError(f"an answer has {users} reports, and a search needs 1,000", nearest)
    best, least, epsilon, tried = None, float(users), min(question.epsilon, MOST_HASH), set[Geometry]()
    for _ in range(_RUNGS):
        if _AT_LEAST * OLH(epsilon).standard_error(users) >= least:
            break
        made = None if geometry(epsilon, WIDE) in tried else _search(epsilon, users, question.length)
        if made and (found := reach(made, users, BETA)) < least:
            best, least = made, found
        tried.add(geometry(epsilon, WIDE))
        epsilon = _less(epsilon)
    if not best:
        raise CannotServeError(
            f"no threshold lets a search among words of {question.length} letters end with {users:,} reports, and find one",
            "--length 6" if question.length > 6 else "",
        )
    return best


def _less(epsilon: float) -> float:
    """The round number below, or above it the largest at which reports have more dimensions, and many points again."""
    low, more = rung(0.99 * epsilon), geometry(epsilon, WIDE).dimension + 0.5
    if geometry(low, WIDE).dimension < more:
        return low
    return rounded(brentq(lambda one: geometry(one, WIDE).dimension - more, low, epsilon, xtol=1e-9), 7, up=False)


@lru_cache(maxsize=512)
def _search(epsilon: float, users: int, length: int) -> TreeHist | None:
    try:
        return planned(epsilon, users, length=length, missed=BETA, strangers=BETA)
    except ValueError:
        return None


def _tree_hist_expected(question: Question, settings: TreeHist) -> Expected:
    users = _reports(question)
    found = reach(settings, users, BETA) / users
    note = "" if question.level > found else f"a word of {question.level:.2g} of the users is not found"
    left_out = max(0.0, 1 / users - 1 / (question.users * question.pooled))  # whose words an answer reads is chance, too
    error = settings.level_error(settings.tree.depth - 1, users, question.level * users) / users
    size = math.hypot(error, math.sqrt(question.level * (1 - question.level) * left_out))
    return Expected.normal(size, found_from=found, note=note)


def _values(epsilon: float) -> tuple[float, float]:
    space = geometry(epsilon, WIDE)
    return 1 / space.share, space.common / space.points


METHODS = [
    Method("TreeHist", ("words",), _tree_hist, _tree_hist_expected, mixed=Mixed(None, _values), in_steps=True),
]
