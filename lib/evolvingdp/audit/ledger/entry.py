"""An entry of the privacy ledger: a mechanism, its promise, and what is measured.

No number in it is entered by hand: promises are parameters of the mechanism that is measured, at a size where that takes
well under a second. An entry is verified in one of these ways:

- "exact": all outputs for all neighbouring inputs of a small domain, or all integers of a sampler, are enumerated, or
  integrated;
- "by sensitivity": the mechanism runs on noise that is moved so as to hide a neighbour, with the scale that its sampler is
  handed;
- "exact piece, composed": one piece is exact, and so is the composition of many (`core.accounting`);
- "explicit adversary": what one adversary learns, exactly: a lower bound that an upper bound meets;
- "formula": the analysis that the noise is calibrated with, at the noise in use; `sampler_test` runs the sampler.

All but formulas run the public entry point that ships, on chosen noise or following all that it may draw (`exact.draws`).
`measured` is an epsilon, at the entry's delta: the worst case found. A mechanism is tight where it reaches the promise; where
it does not, what was measured is `pinned`, so that a change of the law shows even where the promise still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evolvingdp.audit.ledger.pins import PINS

EXACT, SENSITIVITY, COMPOSED = "exact", "by sensitivity", "exact piece, composed"
FORMULA, ADVERSARY = "formula", "explicit adversary"
HOW = (EXACT, SENSITIVITY, COMPOSED, FORMULA, ADVERSARY)
SLACK = 1e-9  # relative: what rounding may add to a measured loss
_TIGHT = 1e-6
TEST = "test_the_guarantee_is_kept"


@dataclass(frozen=True)
class Entry:
    """One mechanism in one setting. `measure()` is an epsilon at `delta`."""

    id: str
    chapter: str
    mechanism: str
    covers: tuple[Any, ...]  # classes and functions of the library that this entry is about
    unit: str
    neighbours: str
    how: str
    promised: float
    measure: Callable[[], float]
    delta: float = 0.0
    sampler_test: str = ""  # of a formula: the test that the sampler has the law that the formula is about

    @property
    def pinned(self) -> float | None:
        """The recorded loss of an entry that does not reach its promise, by which a change of the law shows; None if it
        does."""
        return PINS.get(self.id)

    def holds(self, measured: float) -> bool:
        """Both verdicts: the promise is kept, and the loss of a loose row is what it was."""
        return kept(measured, self.promised) and unchanged(measured, self.pinned)

    @property
    def guarantee(self) -> str:
        """The promise in words."""
        return f"({self.promised:.4g}, {self.delta:.4g})" if self.delta else f"{self.promised:.4g}, pure"

    @property
    def test(self) -> str:
        """What verifies it."""
        return self.sampler_test or f"{TEST}[{self.id}]"


def kept(measured: float, promised: float) -> bool:
    return measured <= promised * (1 + SLACK)


def unchanged(measured: float, pinned: float | None) -> bool:
    """Whether a loose row still has the loss that it had."""
    return pinned is None or abs(measured / pinned - 1) <= _TIGHT


def tight(measured: float, promised: float) -> bool:
    return abs(measured / promised - 1) <= _TIGHT
