"""Reports that a shuffler mixes before anybody sees them: local methods at the larger epsilon that a report may then have.

A method is the local one, asked with the epsilon of a report; what that may be is `heavy_hitters.trust.shuffling`. A report
carries its hash function, row and level, so that nothing but the period in which it comes is known of its user. Where users
are dealt to periods, the bound is for the fewest that a period has, but with a thousandth of delta; where everybody reports
in every period, half of delta is for mixing, and half for composing the periods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from scipy.stats import binom

from evolvingdp.core import accounting
from evolvingdp.core.olh import OLH
from evolvingdp.heavy_hitters.trust.shuffling import epsilon_of_a_report
from evolvingdp.planning.answer import CannotServeError, Expected, Method
from evolvingdp.planning.question import Question

_RARE = 1e-3  # of delta: that a period has fewer reports
_LEAST_DELTA = 1e-12
_MOST_BIT, _MOST_HASH = 15.0, 10.0  # epsilon of a report: of the bound, and of local hashing
AGAINST = "against those who see only what the shuffler passes on"
SEVERAL = "a user sends several bits that depend on each other, and what a shuffler adds is known for one report"


@dataclass(frozen=True)
class Mixed:
    """What kind of reports a method sends: one of so many `values`, `hashed` or not; `once`: each user one in all."""

    once: bool
    values: Callable[[float, int], int]  # of a report at an epsilon, for a sketch of so many cells
    hashed: bool = True
    most: float = _MOST_HASH
    cells: Callable[[Question], int] = lambda _: 0

    def question(self, asked: Question) -> Question:
        """`asked` of the local method, with the epsilon of a report."""
        delta = asked.failure
        if not delta:
            raise CannotServeError("it needs a delta above 0", "--delta 1e-9")
        epsilon = asked.epsilon
        if self.once:
            users = 1 + int(binom.ppf(_RARE * delta, asked.users - 1, 1 / asked.periods))
            delta *= 1 - _RARE
        else:
            each = asked.unit == "report" and asked.statistic != "words"  # of whose readings a search reads one a period
            users = asked.users * (asked.readings if each else 1)
            if asked.reports_of_a_unit > 1:
                epsilon = accounting.optimal(epsilon, delta / 2, asked.periods)
                delta /= 2 * asked.periods
        if delta < _LEAST_DELTA:
            least = asked.failure * _LEAST_DELTA / delta
            raise CannotServeError(f"the bound is for a delta of {least:.2g} or more", f"--delta {1.1 * least:.2g}")
        one = epsilon if users < 2 else _amplified(epsilon, delta, users, self, self.cells(asked))
        return replace(asked, epsilon=one, unit=asked.unit if self.once or asked.unit == "report" else "period")


@lru_cache
def _amplified(epsilon: float, delta: float, users: int, mixed: Mixed, cells: int) -> float:
    return epsilon_of_a_report(epsilon, delta, users, lambda one: mixed.values(one, cells), mixed.most, mixed.hashed)


def bits(once: bool) -> Mixed:
    return Mixed(once, lambda *_: 2, hashed=False, most=_MOST_BIT)


def hashes(once: bool) -> Mixed:
    return Mixed(once, lambda one, _: OLH(one).hash_values)


def signs(once: bool) -> Mixed:
    """Of a row that the report names: two words have the same sign in half of the rows."""
    return Mixed(once, lambda *_: 2, most=_MOST_BIT)


def mixed(method: Method, reports: Mixed | str) -> Method:
    """The method behind a shuffler; or why its reports cannot be mixed."""
    if isinstance(reports, str):

        def refuse(_: Question) -> Any:
            raise CannotServeError(reports)

        return replace(method, name=f"{method.name}, shuffled", settle=refuse, trust="shuffler")

    def expect(question: Question, settings: Any, *streams: int) -> Expected:
        asked = reports.question(question)
        found = method.expect(asked, settings, *streams)
        note = f"a report alone has epsilon {asked.epsilon:.3g}"
        return replace(found, note="; ".join(filter(None, (note, found.note))))

    unit = "everything that a user ever sends" if reports.once else "{unit}; of all periods {for_ever}"
    return replace(
        method,
        name=f"{method.name}, shuffled",
        settle=lambda question: method.settle(reports.question(question)),
        expect=expect,
        guarantee=f"({{epsilon}}, {{delta}})-DP of {unit}, {AGAINST}",
        sends=f"{method.sends}; no name",
        notebook=lambda question: method.notebook(reports.question(question)),
        trust="shuffler",
        costly=True,
    )


def all_mixed(methods: list[Method], reports: dict[str, Mixed | str]) -> list[Method]:
    """Of those that are named."""
    return [mixed(method, reports[method.name]) for method in methods if method.name in reports]
