"""AboveThreshold: the sparse vector technique, which halts at the first yes, and its repetitions.

**Computes** yes or no for adaptively chosen queries of sensitivity 1, until `reports` of them, c, have been yes.

**Guarantee.** For neighbours that change every query by at most 1 (replacement of a user as well as add-remove), all answers
together: epsilon-differentially private with `composition` "basic" and "single", (epsilon, delta) with the others;
"gaussian" for a user who moves at most `moved` queries, and queries that are integers where it is `stable`.

| composition | what is done | noise of a query, of the threshold |
|---|---|---|
| basic, advanced, optimal | Algorithm 2 again after each yes, its epsilon composed c times | Lap(4 / e), fresh Lap(2 / e) |
| single | one threshold (Lyu, Su and Li 2017): epsilon split as 1 : (2c)^(2/3) | Lap(2c / e2), Lap(1 / e1) |
| renyi | no threshold noise; each yes is paid as in the chapter's supermartingale, for queries in [0, 1] | Lap(scale), 0 |
| gaussian | no threshold noise; a price for each yes and for each query that moves (`gaussian`) | N(0, scale^2), 0 |

`split` is the share of e (with "single" of epsilon) for the threshold, where not the table's. `noise` = "exponential" draws
both noises from the exponential law of the same scale, of which only the upward shift is used: by one of the threshold, by
two of the query that is a yes (Liu et al. 2024; re-derived). With `stable` a query of value 0 is never a yes: a query that
only one user meets then tells of that user with the probability that delta is charged for.

**Source.** Algorithm 2 and Theorem 2.5; `core.accounting` composes. The state is **secret**, the release public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from evolvingdp.core import accounting, checks
from evolvingdp.sparse_vector import noise as noises
from evolvingdp.sparse_vector.gaussian import smallest_gaussian_scale
from evolvingdp.sparse_vector.privacy import check_privacy, smallest_renyi_scale
from evolvingdp.sparse_vector.threshold_monitor import ABOVE, BELOW, Release

COMPOSITIONS = ("basic", "advanced", "optimal", "single", "renyi", "gaussian")


@dataclass(frozen=True, repr=False)
class SvtState:
    """Secret. `shift`: the noise of the threshold; `left`: yes answers that are left, which everybody can count."""

    shift: float
    left: int


@checks.plain
@dataclass(frozen=True)
class AboveThreshold:
    """`reports` = 1 with "basic" is Algorithm 2. Make one with `calibrated`."""

    threshold: float
    reports: int  # c: yes answers, after which it halts
    query_scale: float  # of the noise on each query
    threshold_scale: float  # of the noise on the threshold; 0: none
    refreshed: bool  # whether the threshold gets new noise after a yes
    noise: str = "laplace"
    stable: bool = False  # a query of value 0 is never a yes; queries are integers

    def __post_init__(self) -> None:
        checks.finite(threshold=self.threshold)
        checks.integer_at_least(1, reports=self.reports)
        checks.positive(query_scale=self.query_scale)
        checks.one_of(noises.KINDS, noise=self.noise)
        if not 0 <= self.threshold_scale < math.inf:
            raise ValueError(f"threshold_scale must be >= 0 and finite, got {self.threshold_scale!r}")

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        reports: int,
        threshold: float,
        *,
        composition: str = "optimal",
        noise: str = "laplace",
        split: float | None = None,
        moved: float = math.nan,
    ) -> AboveThreshold:
        """Raises ValueError for parameters out of range; `delta` is not used by "basic" and "single"."""
        check_privacy(epsilon, delta)
        checks.integer_at_least(1, reports=reports)
        checks.one_of(COMPOSITIONS, composition=composition)
        checks.one_of(("laplace", "exponential"), noise=noise)
        if composition in ("renyi", "gaussian"):
            if noise != "laplace" or split is not None:
                raise ValueError(f"split and noise must be left out for composition={composition!r}: it has one noise")
            if composition == "renyi":
                return cls(threshold, reports, smallest_renyi_scale(epsilon, delta, reports, shared=True), 0.0, False)
            scale = smallest_gaussian_scale(epsilon, delta, reports, moved)
            return cls(threshold, reports, scale, 0.0, False, "gaussian")
        single = composition == "single"
        if split is None:
            split = 1 / (1 + (2 * reports) ** (2 / 3)) if single else 0.5
        checks.probability(split=split)
        one = epsilon if single else each_epsilon(epsilon, delta, reports, composition)
        moves = 2 * (reports if single else 1)
        return cls(threshold, reports, moves / ((1 - split) * one), 1 / (split * one), not single, noise)

    @classmethod
    def stable_gaussian(cls, epsilon: float, delta: float, reports: int, moved: float) -> AboveThreshold:
        """The lowest threshold that is `stable`, with "gaussian": a quarter of delta pays for what one user alone meets."""
        noise = cls.calibrated(epsilon, 0.75 * delta, reports, 0.0, composition="gaussian", moved=moved)
        least = 1 + noises.isf("gaussian", delta / (4 * moved), noise.query_scale)
        return replace(noise, threshold=least, stable=True)

    def start(self, rng: np.random.Generator) -> SvtState:
        """The state before the first query; secret."""
        return SvtState(self._shift(rng), self.reports)

    def step(self, state: SvtState, value: float, rng: np.random.Generator) -> tuple[SvtState, Release]:
        """Answer a query with this `value`.  Raises ValueError once it has halted: nothing may be asked any more."""
        checks.state(state, SvtState)
        if state.left == 0:
            raise ValueError(f"reports must be larger to go on: it has halted after {self.reports}")
        if not math.isfinite(value):
            raise ValueError(f"value must be finite, got {value!r}")
        noisy = value + noises.draw(self.noise, self.query_scale, rng)
        if noisy < self.threshold + state.shift or (self.stable and value <= 0):
            return state, BELOW
        left = state.left - 1
        return SvtState(self._shift(rng) if self.refreshed and left else state.shift, left), ABOVE

    def sf(self, z: Any) -> noises.Array:
        """Pr[noise of a query >= z]."""
        return noises.sf(self.noise, z, self.query_scale)

    def crossing(self, z: float) -> float:
        """Pr[noise of a query - noise of the threshold >= z]: a query z below the threshold is answered yes."""
        q, r = self.query_scale, self.threshold_scale
        if r == 0:
            return float(self.sf(z))
        if self.noise == "exponential":
            return q / (q + r) * math.exp(-z / q) if z >= 0 else 1 - r / (q + r) * math.exp(z / r)
        far = abs(z)
        mean = (2 + far / q) / 4 if math.isclose(q, r) else (q**2 - r**2 * math.exp(far / q - far / r)) / (2 * (q**2 - r**2))
        tail = mean * math.exp(-far / q)
        return tail if z >= 0 else 1 - tail

    def _shift(self, rng: np.random.Generator) -> float:
        return float(noises.draw(self.noise, self.threshold_scale, rng))


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
