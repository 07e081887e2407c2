"""Reports that a shuffler mixes before anybody sees them: local methods at the larger epsilon that a report may then have.

A method is the local one, asked with the epsilon of a report; what that may be is `heavy_hitters.shuffling`. A report
carries its hash function, row and level, so that nothing but the period in which it comes is known of its user. Where users
are dealt to periods, the bound is for the fewest of a lot, but with a thousandth of delta; where everybody reports in every
period, half of delta is for mixing, and half for composing the periods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from evolvingdp.core import accounting
from evolvingdp.core.reports import Report
from evolvingdp.heavy_hitters.shuffling import epsilon_of_a_report, fewest, hashed
from evolvingdp.planning.answer import CannotServeError, Method
from evolvingdp.planning.curated import needs_delta
from evolvingdp.planning.question import Question

_LEAST_DELTA = 1e-12
MOST_HASH = 10.0  # epsilon of a report of local hashing, whose values fit in 16 bits
_BIT = (lambda _: (2.0, 0.0), 15.0)  # of any bit, and the most that the bound is for

_amplified = lru_cache(maxsize=1024)(epsilon_of_a_report)


@dataclass(frozen=True)
class Mixed:
    """What kind of reports a method sends, that are not bits: `values` and both of `Shuffled` at an epsilon.

    `once`: each user one in all, or one a period; None: in all where all that a user ever sends is protected. `kind`: of the
    reports, where others are to be mixed than are sent without.
    """

    once: bool | None
    values: Callable[[float], tuple[float, float]] = hashed
    kind: type[Report] | None = None

    def question(self, asked: Question) -> Question:
        """`asked` of the local method, with the epsilon of a report."""
        delta, epsilon, users = needs_delta(asked), asked.epsilon, asked.users
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
        values, most = _BIT if asked.statistic == "mean" else (self.values, MOST_HASH)
        if users > 1:  # above what reports are made for, theirs serves, too
            epsilon = _amplified(min(epsilon, most), delta, users, values, most)
        return replace(asked, epsilon=epsilon, unit=asked.unit if once or asked.unit == "report" else "period")


def mixed(method: Method, reports: Mixed) -> Method:
    """The method behind a shuffler."""
    settle = partial(method.settle, kind=reports.kind) if reports.kind else method.settle
    return replace(method, name=f"{method.name}, shuffled", settle=settle, trust="shuffler")
