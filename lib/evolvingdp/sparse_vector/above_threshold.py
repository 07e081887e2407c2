"""AboveThreshold: the sparse vector technique, which halts at the first yes, and its repetitions.

**Computes** yes or no for adaptively chosen queries of sensitivity 1, until `reports` of them, c, have been yes.

**Guarantee.** For neighbours that change every query by at most 1 (replacement of a user as well as add-remove), all answers
together: epsilon-differentially private with `kind` "one" and for c = 1, (epsilon, delta) with the others; "gaussian" for a
user who moves at most `moved` queries, where it stops: each `step` counts for one, each time step of `step_elements` for
two, and queries are integers where it is `stable`.

| kind | what is done | noise of a query, of the threshold |
|---|---|---|
| repeated | Algorithm 2 again after each yes, its epsilon e composed optimally c times | Lap(4 / e), fresh Lap(2 / e) |
| one | one threshold (Lyu, Su and Li 2017): epsilon split as 1 : (2c)^(2/3) | Exp(2c / e2), Exp(1 / e1) |
| gaussian | no threshold noise; a price for each yes and for each query that moves (`gaussian`) | N(0, scale^2), 0 |

`split` is the share of e (with "one" of epsilon) for the threshold, where not the table's. Of exponential noise only the
upward shift is used: by one of the threshold, by two of the query that is a yes (Liu et al. 2024; re-derived). With `stable`
a query of value 0 is never a yes: a query that only one user meets then tells of that user with the probability that delta
is charged for.

**Source.** Algorithm 2 and Theorem 2.5; `core.accounting` composes. The state is **secret**, the release public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, exprel
from scipy.stats import binom

from evolvingdp.core import accounting, checks
from evolvingdp.sparse_vector import noise as noises
from evolvingdp.sparse_vector.gaussian import smallest_gaussian_scale
from evolvingdp.sparse_vector.privacy import Array, check_privacy
from evolvingdp.sparse_vector.threshold_monitor import ABOVE, BELOW, Release, checked_inputs

LARGEST_VALUE = 2.0**53
NOISE = {"repeated": "laplace", "one": "exponential", "gaussian": "gaussian"}  # of each kind


@dataclass(frozen=True, repr=False)
class SvtState:
    """Secret, of these `settings`. `shift`: the noise of the threshold, which a copy of the state has, too; `left`: yes
    answers that are left, `moves`: queries that a user may still move (infinite where they are free); these are public."""

    settings: AboveThreshold
    shift: float
    left: int
    moves: float


@checks.plain
@dataclass(frozen=True)
class AboveThreshold:
    """`reports` = 1 with "repeated" is Algorithm 2. Make one with `calibrated`."""

    threshold: float
    reports: int  # c: yes answers, after which it halts
    query_scale: float  # of the noise on each query
    threshold_scale: float  # of the noise on the threshold; 0: none
    refreshed: bool  # whether the threshold gets new noise after a yes
    noise: str = "laplace"
    stable: bool = False  # a query of value 0 is never a yes; queries are integers
    moved: int = 0  # queries that one user moves at most, where Gaussian noise pays for them

    def __post_init__(self) -> None:
        checks.finite(threshold=self.threshold)
        checks.integer_at_least(1, reports=self.reports)
        checks.positive(query_scale=self.query_scale)
        checks.one_of(noises.KINDS, noise=self.noise)
        if self.noise == "gaussian":
            checks.integer_at_least(1, moved=self.moved)
        elif self.moved:
            raise ValueError(f"moved must be 0 for noise={self.noise!r}, which does not pay for them, got {self.moved!r}")
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
        kind: str = "repeated",
        split: float | None = None,
        moved: int = 0,
    ) -> AboveThreshold:
        """Raises ValueError for parameters out of range; `delta` is not used by "one", nor for one report."""
        check_privacy(epsilon, delta)
        checks.integer_at_least(1, reports=reports)
        checks.one_of(tuple(NOISE), kind=kind)
        if kind == "gaussian":
            if split is not None:
                raise ValueError(f"split must be left out for kind={kind!r}, which has one noise, got {split!r}")
            checks.integer_at_least(1, moved=moved)
            scale = smallest_gaussian_scale(epsilon, delta, reports, moved)
            return cls(threshold, reports, scale, 0.0, False, "gaussian", moved=moved)
        if moved:
            raise ValueError(f"moved must be left out for kind={kind!r}, which does not pay for it, got {moved!r}")
        one = kind == "one"
        if split is None:
            split = 1 / (1 + (2 * reports) ** (2 / 3)) if one else 0.5
        checks.probability(split=split)
        each = epsilon if one or reports == 1 else each_epsilon(epsilon, delta, reports)
        moves = 2 * (reports if one else 1)
        return cls(threshold, reports, moves / ((1 - split) * each), 1 / (split * each), not one, NOISE[kind])

    @classmethod
    def stable_gaussian(cls, epsilon: float, delta: float, reports: int, moved: int) -> AboveThreshold:
        """The lowest threshold that is `stable`, with "gaussian": a quarter of delta pays for what one user alone meets."""
        noise = cls.calibrated(epsilon, 0.75 * delta, reports, 0.0, kind="gaussian", moved=moved)
        least = 1 + noises.isf("gaussian", delta / (4 * moved), noise.query_scale)
        return replace(noise, threshold=least, stable=True)

    def start(self, rng: np.random.Generator) -> SvtState:
        """The state before the first query; secret."""
        return SvtState(self, self._shift(rng), self.reports, self.moved or math.inf)

    def step(self, state: SvtState, value: float, rng: np.random.Generator) -> tuple[SvtState, Release]:
        """Answer a query with this `value`, up to 2^53.  Raises ValueError once it has halted: it answers nothing more."""
        state = self._paid(state, 1)
        checks.finite(value=value)
        if not abs(float(value)) <= LARGEST_VALUE:  # beyond, neighbours that differ by 1 may be further apart as floats
            raise ValueError(f"value must lie in [-2^53, 2^53], got {value!r}")
        return self._answer(state, float(value), rng)

    def step_elements(
        self, state: SvtState, inputs: ArrayLike, n_elements: int, rng: np.random.Generator
    ) -> tuple[SvtState, NDArray[np.int64]]:
        """All queries "holds x", x < `n_elements` in order, of users who hold `inputs` (n_users,): the elements above.

        What is not asked any more after the last yes is not above.  Raises ValueError once it has halted.
        """
        state = self._paid(state, 2)  # what a user holds, and what another in its place would
        held = checked_inputs(inputs, len(np.atleast_1d(np.asarray(inputs))), n_elements)
        if not self.stable:
            checks.fits_in_memory("a weight for each element", 8.0 * n_elements, "lower n_elements")
        weights = np.bincount(held, minlength=0 if self.stable else n_elements)
        above: list[int] = []
        for element in np.flatnonzero(weights) if self.stable else range(n_elements):
            if state.left:
                state, release = self._answer(state, float(weights[element]), rng)
                above += [int(element)] * release.above
        return state, np.array(above, dtype=np.int64)

    def _paid(self, state: SvtState, moves: int) -> SvtState:
        """The state after paying for queries of which a user moves so many."""
        checks.state(state, SvtState, self)
        if state.left == 0:
            raise ValueError(f"reports must be larger to go on: it has halted after {self.reports}")
        if state.moves < moves:
            raise ValueError(f"moved must be larger to go on: {self.moved} moved queries are paid for")
        return replace(state, moves=state.moves - moves)

    def _answer(self, state: SvtState, value: float, rng: np.random.Generator) -> tuple[SvtState, Release]:
        noisy = value + noises.draw(self.noise, self.query_scale, rng)
        if noisy < self.threshold + state.shift or (self.stable and value <= 0):
            return state, BELOW
        left = state.left - 1
        return replace(state, shift=self._shift(rng) if self.refreshed and left else state.shift, left=left), ABOVE

    def sf(self, z: Any) -> Array:
        """Pr[noise of a query >= z]."""
        return noises.sf(self.noise, z, self.query_scale)

    def crossing(self, z: float) -> float:
        """Pr[noise of a query - noise of the threshold >= z]: a query z below the threshold is answered yes."""
        q, r = self.query_scale, self.threshold_scale
        if r == 0:
            return float(self.sf(z))
        if self.noise == "exponential":
            return q / (q + r) * math.exp(-z / q) if z >= 0 else 1 - r / (q + r) * math.exp(z / r)
        far, q, r = abs(z), max(q, r), min(q, r)  # the law is the same
        mean = 0.5 + far * r / (2 * q * (q + r)) * float(exprel(-far * (1 / r - 1 / q)))
        tail = mean * math.exp(-far / q)
        return tail if z >= 0 else 1 - tail

    def _shift(self, rng: np.random.Generator) -> float:
        return float(noises.draw(self.noise, self.threshold_scale, rng))


LARGEST_SUM = 20_000  # pieces up to which core.accounting sums over all outcomes


@lru_cache(maxsize=256)
def each_epsilon(epsilon: float, delta: float, pieces: int) -> float:
    """The epsilon of each of `pieces` pure mechanisms that compose to (`epsilon`, `delta`) optimally; for many pieces the
    sum is over 13 standard deviations, the mass outside goes to delta."""
    if pieces <= LARGEST_SUM:
        return max(accounting.optimal(epsilon, delta, pieces), accounting.basic(epsilon, pieces))
    low = high = accounting.basic(epsilon, pieces)  # which costs no delta
    while _many(high, epsilon, pieces) < delta:
        low, high = high, 2 * high
    return (1 - 1e-8) * float(brentq(lambda one: _many(one, epsilon, pieces) - delta, low, high, rtol=1e-9))


def _many(one: float, epsilon: float, pieces: int) -> float:
    """`accounting.delta_of_reports` from the outcomes near the expected one, plus the probability of the others."""
    keep = float(expit(one))
    spread = 13 * math.sqrt(pieces * keep * (1 - keep))
    truthful = np.arange(math.floor(pieces * keep - spread), math.ceil(min(pieces, pieces * keep + spread)) + 1)
    losses = (2.0 * truthful - pieces) * one
    truthful, losses = truthful[losses > epsilon], losses[losses > epsilon]
    return float(np.sum(binom.pmf(truthful, pieces, keep) * -np.expm1(epsilon - losses))) + 1e-30
