"""Words that no list has, which users report themselves: what a search finds, and how precisely.

Errors are those of the last level's reports; `heavy_hitters.planning` chooses the plan for words of a power law.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

from scipy.stats import norm

from evolvingdp.core.geometry import geometry
from evolvingdp.core.olh import OLH
from evolvingdp.heavy_hitters.planning import planned, sketch_size
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.planning.answer import BETA, CannotServeError, Expected, Method, rounded, turn
from evolvingdp.planning.local import enough_reports
from evolvingdp.planning.question import Question
from evolvingdp.planning.shuffled import Mixed

LARGEST = 10.0  # epsilon of a report of local hashing, whose values fit in 16 bits
_LEAST, _MOST = 4.0, 4 * 1.25**15  # thresholds, in standard errors of whole words


def _reports(question: Question) -> float:
    """Reports that one answer reads: those of its periods, where each user reports once, or of everybody in each of them."""
    return question.users * question.pooled / question.of_a_unit


@lru_cache
def _tree_hist(question: Question) -> TreeHist:
    """The lowest threshold, of steps of a quarter, at which a search can end; the rest as for `planned`."""
    if question.unit == "user":
        enough_reports(question)
    users = int(_reports(question))
    if users < 1000:
        raise CannotServeError(
            f"an answer has {users} reports, and a search needs 1,000", f"--users {_times(question, 1000)}"
        )
    epsilon = min(question.epsilon, LARGEST)  # a report at less epsilon than is allowed always serves
    error = OLH(epsilon).standard_error(users)

    @cache
    def search(factor: float) -> TreeHist | None:
        try:
            return planned(epsilon, users, factor * error, length=question.length)
        except ValueError:
            return None

    lowest = _LEAST
    if not search(_LEAST) and search(_MOST):
        lowest = turn(lambda factor: -1.0 if search(factor) else 1.0, _LEAST, _MOST, 0.05, _step_above)
    if not (found := search(lowest)):
        raise CannotServeError(
            f"no threshold lets a search among words of {question.length} letters end with {users:,} reports", "--length 6"
        )
    return found


def _step_above(factor: float) -> float:
    return float(_LEAST * 1.25 ** math.ceil(math.log(factor / _LEAST, 1.25) - 1e-9))


def _tree_hist_expected(question: Question, settings: TreeHist) -> Expected:
    """A word is found where its estimate reaches the last cut; those of earlier levels are looser."""
    users = int(_reports(question))
    error = settings.level_error(settings.tree.depth - 1, users, question.level * users)
    found = (settings.threshold + float(norm.isf(BETA)) * error) / users
    if found > 1:
        raise CannotServeError(
            f"a word would need {found:.3g} times all users to be found", f"--users {_times(question, 2 * found * users)}"
        )
    note = "" if question.level > found else f"a word of {question.level:.2g} of the users is not found"
    left_out = max(0.0, 1 / users - 1 / (question.users * question.pooled))  # whose words an answer reads is chance, too
    size = math.hypot(error / users, math.sqrt(question.level * (1 - question.level) * left_out))
    return Expected.normal(size, found_from=found, note=note)


def _times(question: Question, reports: float) -> str:
    """How many users make so many reports."""
    return f"{rounded(reports * question.users / _reports(question)):.0f}"


def _values(epsilon: float, question: Question) -> tuple[float, float]:
    space = geometry(epsilon, sketch_size(max(1, int(_reports(question))))[1])
    return 1 / space.share, space.common / space.points


METHODS = [
    Method("TreeHist", ("words",), _tree_hist, _tree_hist_expected, mixed=Mixed(None, _values)),
]
