"""How many reports a guarantee is about: a method's error, what epsilon pays for, and the sentence that promises it, all
count with one object. Imports no numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

UNIT = {
    "report": "one report",
    "period": "all that a user sends in a period",
    "user": "everything that a user ever sends",
}


@dataclass(frozen=True)
class Reports:
    """`a_period` reports of one user in each of the `periods` in which it reports, and the `unit` that epsilon is for.

    A curator's data count in the same way: what of a user goes into a period's total by itself.
    """

    unit: str
    a_period: int
    periods: int

    @property
    def in_all(self) -> int:
        """Of one user."""
        return self.a_period * self.periods

    @property
    def of_a_unit(self) -> int:
        """Whose losses together are epsilon."""
        return {"report": 1, "period": self.a_period, "user": self.in_all}[self.unit]

    def together(self, epsilon: float, delta: float = 0.0) -> tuple[float, float]:
        """What (epsilon, delta) for a unit say of all that a user ever sends; delta inf where they say nothing.

        The units of one period are read together, so that theirs is the bound for groups, delta (e^(r epsilon) - 1) /
        (e^epsilon - 1) for r of them; periods compose.
        """
        units = self.in_all // self.of_a_unit
        alike = max(1, units // self.periods)
        if not delta:
            return units * epsilon, 0.0
        if alike * epsilon > 700:  # beyond floats, and beyond 1
            return units * epsilon, math.inf
        return units * epsilon, units // alike * delta * math.expm1(alike * epsilon) / math.expm1(epsilon)

    def told(self, epsilon: float, delta: float = 0.0) -> str:
        """`together` in words."""
        if self.of_a_unit == self.in_all:
            return "together the same"
        whole, failure = self.together(epsilon, delta)
        if not failure:
            return f"together it is {whole:g}"
        return f"together it is ({whole:g}, {_up(failure)})" if failure < 1 else "together no bound below 1 is left of delta"


def _up(delta: float) -> str:
    """Two digits, rounded up."""
    unit = 10.0 ** (math.floor(math.log10(delta)) - 1)
    return f"{math.ceil(delta / unit - 1e-9) * unit:.2g}"
