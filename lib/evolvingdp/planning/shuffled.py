"""Reports that a shuffler mixes before anybody sees them: local methods at the larger epsilon that a report may then have.

A method is the local one, asked with the epsilon of a report; what that may be is `heavy_hitters.shuffling`. A report
carries its hash function, row and level, so that nothing but the period in which it comes is known of its user. Where users
are dealt to periods, the bound is for the fewest of a lot, but with a thousandth of delta; where everybody reports in every
period, half of delta is for mixing, and half for composing the periods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from evolvingdp.core import accounting
from evolvingdp.heavy_hitters.shuffling import epsilon_of_a_report, fewest, hashed
from evolvingdp.planning.answer import CannotServeError, Expected, Method
from evolvingdp.planning.question import Question

_LEAST_DELTA = 1e-12
_MOST_BIT, _MOST_HASH = 15.0, 10.0  # epsilon of a report: of the bound, and of local hashing


Values = Callable[[float, Question], tuple[float, float]]


def _hashed(epsilon: float, _: Question) -> tuple[float, float]:
    return hashed(epsilon)


@dataclass(frozen=True)
class Mixed:
    """What kind of reports a method sends, that are not bits: `values` and both of `Shuffled` at an epsilon.

    `once`: each user one in all, or one a period; None: in all where all that a user ever sends is protected. `settle`:
    where others are to be mixed than are sent without.
    """

    once: bool | None
    values: Values = _hashed
    settle: Callable[..., Any] | None = None

    def question(self, asked: Question) -> Question:
        """`asked` of the local method, with the epsilon of a report."""
        delta, epsilon, users = asked.failure, asked.epsilon, asked.users
        if not delta:
            raise CannotServeError("it needs a delta above 0", "--delta 1e-9")
        once = asked.unit == "user" if self.once is None else self.once
        if not once:
            users *= asked.a_period if self.once is False else 1  # a search reads one of the readings of a period
            if (reports := asked.of_a_unit) > 1:
                epsilon = accounting.optimal(epsilon, delta / 2, reports)
                delta /= 2 * reports
        users, delta = fewest(users, 1 / asked.periods if once else 1, delta)
        if delta < _LEAST_DELTA:
            least = asked.failure * _LEAST_DELTA / delta
            raise CannotServeError(f"the bound is for a delta of {least:.2g} or more", f"--delta {1.1 * least:.2g}")
        one = epsilon if users < 2 else _amplified(epsilon, delta, users, self.values, asked)
        return replace(asked, epsilon=one, unit=asked.unit if once or asked.unit == "report" else "period")


@lru_cache(maxsize=1024)
def _amplified(epsilon: float, delta: float, users: int, values: Values, asked: Question) -> float:
    """Above what reports are made for, theirs serves, too."""
    if asked.statistic == "mean":
        return epsilon_of_a_report(min(epsilon, _MOST_BIT), delta, users, lambda _: (2, 0.0), _MOST_BIT)
    return epsilon_of_a_report(min(epsilon, _MOST_HASH), delta, users, lambda one: values(one, asked), _MOST_HASH)


ONCE = Mixed(True)


def mixed(method: Method, reports: Mixed) -> Method:
    """The method behind a shuffler."""
    settle = reports.settle or method.settle

    def expect(question: Question, settings: Any, *streams: int) -> Expected:
        asked = reports.question(question)
        found = method.expect(asked, settings, *streams)
        note = f"a report alone has epsilon {asked.epsilon:.3g}"
        return replace(found, note="; ".join(filter(None, (note, found.note))))

    return replace(
        method,
        name=f"{method.name}, shuffled",
        settle=lambda question: settle(reports.question(question)),
        expect=expect,
        trust="shuffler",
    )
