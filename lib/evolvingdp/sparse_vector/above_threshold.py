"""AboveThreshold: the sparse vector technique, which halts at the first yes, and its repetitions.

**Computes** yes or no for adaptively chosen queries of sensitivity 1, until `reports` of them, c, have been yes.

**Guarantee.** For neighbours that change every query by at most 1 (replacement of a user as well as add-remove), all answers
together: epsilon-differentially private with `composition` "basic" and "single", (epsilon, delta) with the others.

| composition | what is done | noise of a query, of the threshold |
|---|---|---|
| basic, advanced, optimal | Algorithm 2 again after each yes, its epsilon composed c times | Lap(4 / e), fresh Lap(2 / e) |
| single | one threshold (Lyu, Su and Li 2017): epsilon split as 1 : (2c)^(2/3) | Lap(2c / e2), Lap(1 / e1) |
| renyi | no threshold noise; each yes is paid as in the chapter's supermartingale, for queries in [0, 1] | Lap(scale), 0 |

**Source.** Algorithm 2 and Theorem 2.5; `core.accounting` composes. The state is **secret**, the release public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from evolvingdp.core import accounting, checks
from evolvingdp.sparse_vector.privacy import check_privacy, smallest_renyi_scale
from evolvingdp.sparse_vector.threshold_monitor import ABOVE, BELOW, Release

COMPOSITIONS = ("basic", "advanced", "optimal", "single", "renyi")


@dataclass(frozen=True, repr=False)
class SvtState:
    """Secret. `shift`: the noise of the threshold; `left`: yes answers that are left, which everybody can count."""

    shift: float
    left: int


@dataclass(frozen=True)
class AboveThreshold:
    """`reports` = 1 with "basic" is Algorithm 2. Make one with `calibrated`."""

    threshold: float
    reports: int  # c
    query_scale: float
    threshold_scale: float
    refreshed: bool  # whether the threshold gets new noise after a yes

    def __post_init__(self) -> None:
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold!r}")
        checks.integer_at_least(1, reports=self.reports)
        checks.positive(query_scale=self.query_scale)
        if not 0 <= self.threshold_scale < math.inf:
            raise ValueError(f"threshold_scale must be >= 0 and finite, got {self.threshold_scale!r}")

    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, reports: int, threshold: float, *, composition: str = "optimal"
    ) -> AboveThreshold:
        """Raises ValueError for parameters out of range; `delta` is not used by "basic" and "single"."""
        check_privacy(epsilon, delta)
        checks.integer_at_least(1, reports=reports)
        checks.one_of(COMPOSITIONS, composition=composition)
        if composition == "single":
            first = epsilon / (1 + (2 * reports) ** (2 / 3))
            return cls(threshold, reports, 2 * reports / (epsilon - first), 1 / first, False)
        if composition == "renyi":
            scale = smallest_renyi_scale(epsilon, delta, reports, shared=True)
            return cls(threshold, reports, scale, 0.0, False)
        one = each_epsilon(epsilon, delta, reports, composition)
        return cls(threshold, reports, 4 / one, 2 / one, True)

    def start(self, rng: np.random.Generator) -> SvtState:
        return SvtState(self._shift(rng), self.reports)

    def step(self, state: SvtState, value: float, rng: np.random.Generator) -> tuple[SvtState, Release]:
        """Answer a query with this `value`.  Raises ValueError once it has halted: nothing may be asked any more."""
        if state.left == 0:
            raise ValueError(f"reports must be larger to go on: it has halted after {self.reports}")
        if not math.isfinite(value):
            raise ValueError(f"value must be finite, got {value!r}")
        if value + rng.laplace(0.0, self.query_scale) < self.threshold + state.shift:
            return state, BELOW
        left = state.left - 1
        return SvtState(self._shift(rng) if self.refreshed and left else state.shift, left), ABOVE

    def _shift(self, rng: np.random.Generator) -> float:
        return float(rng.laplace(0.0, self.threshold_scale))


def each_epsilon(epsilon: float, delta: float, pieces: int, composition: str) -> float:
    """The epsilon of each of `pieces` pure mechanisms that compose to (`epsilon`, `delta`)."""
    if composition == "basic":
        return accounting.basic(epsilon, pieces)
    if composition == "advanced":
        return accounting.advanced(epsilon, delta, pieces)
    return _optimal(epsilon, delta, pieces)


LARGEST_SUM = 20_000  # pieces up to which core.accounting sums over all outcomes


@lru_cache(maxsize=256)
def _optimal(epsilon: float, delta: float, pieces: int) -> float:
    """`accounting.optimal`; for many pieces the sum is over 13 standard deviations, the mass outside goes to delta."""
    if pieces <= LARGEST_SUM:
        return max(accounting.optimal(epsilon, delta, pieces), accounting.basic(epsilon, pieces))
    low = high = accounting.basic(epsilon, pieces)  # which costs no delta
    while _many(high, epsilon, pieces) < delta:
        low, high = high, 2 * high
    return float(brentq(lambda one: _many(one, epsilon, pieces) - delta, low, high, rtol=1e-9))


def _many(one: float, epsilon: float, pieces: int) -> float:
    """`accounting.delta_of_reports` from the outcomes near the expected one, plus the probability of the others."""
    keep = float(expit(one))
    spread = 13 * math.sqrt(pieces * keep * (1 - keep))
    truthful = np.arange(math.floor(pieces * keep - spread), math.ceil(min(pieces, pieces * keep + spread)) + 1)
    losses = (2.0 * truthful - pieces) * one
    truthful, losses = truthful[losses > epsilon], losses[losses > epsilon]
    return float(np.sum(binom.pmf(truthful, pieces, keep) * -np.expm1(epsilon - losses))) + 1e-30
