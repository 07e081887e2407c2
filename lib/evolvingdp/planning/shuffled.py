"""Reports that a shuffler mixes before anybody sees them: local methods at the larger epsilon that a report may then have.

A method is the local one, asked with the epsilon of a report; what that may be is `heavy_hitters.trust.shuffling`. A report
carries its hash function, row and level, so that nothing but the period in which it comes is known of its user; or the level
is public, and a user hides among those of the smallest level. Where users are dealt to periods or levels, the bound is for
the fewest of a lot, but with a thousandth of delta; where everybody reports in every period, half of delta is for mixing,
and half for composing the periods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from evolvingdp.core import accounting
from evolvingdp.core.olh import OLH
from evolvingdp.heavy_hitters.trust.shuffling import epsilon_of_a_report, fewest
from evolvingdp.planning.answer import CannotServeError, Expected, Method
from evolvingdp.planning.question import UNIT, Question
from evolvingdp.planning.texts import Text, of

_LEAST_DELTA = 1e-12
_MOST_BIT, _MOST_HASH = 15.0, 10.0  # epsilon of a report: of the bound, and of local hashing
_PROMISED = {True: UNIT["user"], False: "{unit}; of all periods {mixed_for_ever}", None: "{lot}"}
_AGAINST = "against those who see only what the shuffler passes on"
SEVERAL = "a user sends several bits that depend on each other, and what a shuffler adds is known for one report"


@dataclass(frozen=True)
class Mixed:
    """What kind of reports a method sends: one of so many `values`, `hashed` or not.

    `once`: each user one in all, or one a period; None: in all where all that a user ever sends is protected. `share`: of
    the users, in the smallest part that is public.
    """

    once: bool | None
    values: Callable[[float, int], int]  # of a report at an epsilon, for a sketch of so many cells
    hashed: bool = True
    most: float = _MOST_HASH
    cells: Callable[[Question], int] = lambda _: 0
    share: float = 1.0
    name: str = "shuffled"
    notebook: str = ""  # in which reports are mixed

    def question(self, asked: Question) -> Question:
        """`asked` of the local method, with the epsilon of a report."""
        delta, epsilon, users = asked.failure, asked.epsilon, asked.users
        if not delta:
            raise CannotServeError("it needs a delta above 0", "--delta 1e-9")
        once = asked.unit == "user" if self.once is None else self.once
        if not once:
            users *= asked.reports.a_period if self.once is False else 1  # a search reads one of the readings of a period
            if (reports := asked.reports.of_a_unit) > 1:
                epsilon = accounting.optimal(epsilon, delta / 2, reports)
                delta /= 2 * reports
        lot = self.share / (asked.periods if once else 1)
        users, delta = fewest(users, lot, delta)
        if delta < _LEAST_DELTA:
            least = asked.failure * _LEAST_DELTA / delta
            raise CannotServeError(f"the bound is for a delta of {least:.2g} or more", f"--delta {1.1 * least:.2g}")
        one = epsilon if users < 2 else _amplified(epsilon, delta, users, self, self.cells(asked))
        return replace(asked, epsilon=one, unit=asked.unit if once or asked.unit == "report" else "period")


@lru_cache(maxsize=1024)
def _amplified(epsilon: float, delta: float, users: int, mixed: Mixed, cells: int) -> float:
    return epsilon_of_a_report(epsilon, delta, users, lambda one: mixed.values(one, cells), mixed.most, mixed.hashed)


def _hash_values(epsilon: float, _: int) -> int:
    return OLH(epsilon).hash_values


def _two(*_: float) -> int:
    return 2


BIT, ONE_BIT = (Mixed(once, _two, hashed=False, most=_MOST_BIT) for once in (False, True))
HASH, ONE_HASH = (Mixed(once, _hash_values) for once in (False, True))
ONE_SIGN = Mixed(True, _two, most=_MOST_BIT)  # of a row that the report names: two words have the same sign in half of them
SEARCH = Mixed(None, _hash_values, notebook="evolvingdp run heavy_hitters/trust")


def mixed(method: Method) -> Method:
    """The method behind a shuffler; or why its reports cannot be mixed."""
    reports = method.mixed
    if not isinstance(reports, Mixed):

        def refuse(_: Question) -> Any:
            raise CannotServeError(str(reports))

        return replace(method, name=f"{method.name}, shuffled", settle=refuse, trust="shuffler")
    settle = method.settle_mixed or method.settle

    def expect(question: Question, settings: Any, *streams: int) -> Expected:
        asked = reports.question(question)
        found = method.expect(asked, settings, *streams)
        note = f"a report alone has epsilon {asked.epsilon:.3g}"
        return replace(found, note="; ".join(filter(None, (note, found.note))))

    return replace(
        method,
        name=f"{method.name}, {reports.name}",
        settle=lambda question: settle(reports.question(question)),
        expect=expect,
        trust="shuffler",
        mixed=reports,
        asked=reports.question,
    )


def mixed_text(method: Method) -> Text:
    """What is said of a method, mixed or not."""
    told, reports = of(method.name), method.mixed
    if method.trust != "shuffler" or not isinstance(reports, Mixed):
        return told
    return told._replace(
        guarantee=f"({{epsilon}}, {{delta}})-DP of {_PROMISED[reports.once]}, {_AGAINST}",
        sends=f"{told.sends}; no name",
        notebook=reports.notebook or told.notebook,
    )
