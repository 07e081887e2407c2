"""An entry of the privacy ledger: a mechanism, its promise, what is measured, and a mutant that fails.

Nothing in it is typed: promises are parameters of the mechanism that is measured, at a size where that takes well under a
second. An entry is verified

- "exact": all outputs for all neighbouring inputs of a small domain, or all integers of a sampler, are enumerated, or
  integrated;
- "by sensitivity": the mechanism runs on noise that is moved so as to hide a neighbour, with the scale that its sampler is
  handed;
- "exact piece, composed": one piece is exact, and so is the composition of many (`core.accounting`);
- "exact bound": the analysis that the noise is calibrated with is evaluated at the noise in use;
- "explicit adversary": what one adversary learns, exactly: a lower bound that an upper bound meets.

`measured` is an epsilon, at the entry's delta: the worst case found. A mechanism is tight where it reaches the promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

EXACT, SENSITIVITY, COMPOSED = "exact", "by sensitivity", "exact piece, composed"
BOUND, ADVERSARY = "exact bound", "explicit adversary"
HOW = (EXACT, SENSITIVITY, COMPOSED, BOUND, ADVERSARY)
SLACK = 1e-9  # relative: what rounding may add to a measured loss
_TIGHT = 1e-6
TEST = "test_the_guarantee_is_kept"


@dataclass(frozen=True)
class Entry:
    """One mechanism in one setting. `measure()` and `broken()`, of the mutant, are epsilons at `delta`."""

    id: str
    chapter: str
    mechanism: str
    covers: tuple[Any, ...]  # classes and functions of the library that this entry is about
    unit: str
    neighbours: str
    how: str
    promised: float
    measure: Callable[[], float]
    mutant: str
    broken: Callable[[], float]
    delta: float = 0.0

    @property
    def guarantee(self) -> str:
        return f"({self.promised:.4g}, {self.delta:.4g})" if self.delta else f"{self.promised:.4g}, pure"

    @property
    def test(self) -> str:
        return f"{TEST}[{self.id}]"


def kept(measured: float, promised: float) -> bool:
    return measured <= promised * (1 + SLACK)


def tight(measured: float, promised: float) -> bool:
    return abs(measured / promised - 1) <= _TIGHT
