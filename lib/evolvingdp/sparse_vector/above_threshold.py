"""AboveThreshold: the sparse vector technique, which halts at the first yes, and its repetitions.

**Computes** yes or no for adaptively chosen queries of sensitivity 1, until `reports` of them, c, have been yes.

**Guarantee.** For neighbours that change every query by at most 1 (replacement of a user as well as add-remove), all answers
together: epsilon-differentially private with `kind` "one" and for c = 1, (epsilon, delta) with the others; "gaussian" for a
user who moves at most `moved` queries, where it stops: each `step` counts for one, each time step of `step_elements` for
two. So does what is `stable`, where queries are integers and with "one" each `step` counts for two.

| kind | what is done | noise of a query, of the threshold |
|---|---|---|
| repeated | Algorithm 2 again after each yes, its epsilon e composed optimally c times | Lap(4 / e), fresh Lap(2 / e) |
| one | one threshold (Lyu, Su and Li 2017): epsilon split as 1 : (2c)^(2/3) | Exp(2c / e2), Exp(1 / e1) |
| gaussian | no threshold noise; a price for each yes and for each query that moves (`gaussian`) | N(0, scale^2), none |

`split` is the share of e (with "one" of epsilon) for the threshold, where not the table's. With `stable` a query of value 0
is never a yes, and delta, or a part of it, pays for queries that one user alone meets.

**Source.** Algorithm 2 and Theorem 2.5; Liu et al. (2024) for exponential noise. State **secret**, release public.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import exprel

from evolvingdp.core import accounting, checks
from evolvingdp.core.noise import Array, Exponential, Gaussian, Laplace
from evolvingdp.sparse_vector.gaussian import smallest_gaussian_scale
from evolvingdp.sparse_vector.privacy import check_privacy

LARGEST_VALUE = 2.0**53
KINDS = ("repeated", "one", "gaussian")
SPLITS = (None, 0.05, 0.1, 0.2, 0.3, 0.4)  # of epsilon, for the threshold's noise; None: as set


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
    noise: Laplace | Exponential | Gaussian  # of each query
    shift: Laplace | Exponential | None = None  # of the threshold, of the same kind
    refreshed: bool = False  # whether the threshold gets new noise after a yes
    stable: bool = False  # a query of value 0 is never a yes; queries are integers
    moved: int = 0  # queries that one user moves at most, where they are paid for

    def __post_init__(self) -> None:
        checks.finite(threshold=self.threshold)
        checks.integer_at_least(1, reports=self.reports)
        if isinstance(self.noise, Gaussian) or self.stable:
            checks.integer_at_least(1, moved=self.moved)
        elif self.moved:
            raise ValueError(f"moved must be 0 for {self.noise!r}, which does not pay for them, got {self.moved!r}")
        if self.shift is not None and type(self.shift) is not type(self.noise):
            raise ValueError(f"shift must be of the same kind as {self.noise!r}, got {self.shift!r}")

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
        checks.integer_at_least(0, moved=moved)
        checks.one_of(KINDS, kind=kind)
        if kind == "gaussian":
            if split is not None:
                raise ValueError(f"split must be left out for kind={kind!r}, which has one noise, got {split!r}")
            checks.integer_at_least(1, moved=moved)
            return cls(threshold, reports, Gaussian(smallest_gaussian_scale(epsilon, delta, reports, moved)), moved=moved)
        if moved:
            raise ValueError(f"moved must be left out for kind={kind!r}, which does not pay for it, got {moved!r}")
        one = kind == "one"
        if split is None:
            split = 1 / (1 + (2 * reports) ** (2 / 3)) if one else 0.5
        checks.probability(split=split)
        each = epsilon if one or reports == 1 else accounting.optimal(epsilon, delta, reports)
        moves = 2 * (reports if one else 1)
        law = Exponential if one else Laplace
        return cls(threshold, reports, law(moves / ((1 - split) * each)), law(1 / (split * each)), not one)

    @classmethod
    def stable_gaussian(cls, epsilon: float, delta: float, reports: int, moved: int) -> AboveThreshold:
        """The lowest threshold that is `stable`, with "gaussian": a quarter of delta pays for what one user alone meets."""
        check_privacy(epsilon, delta)
        made = cls.calibrated(epsilon, 0.75 * delta, reports, 0.0, kind="gaussian", moved=moved)
        return replace(made, threshold=1 + made.noise.isf(delta / (4 * moved)), stable=True)

    @classmethod
    def stable_one(
        cls, epsilon: float, delta: float, reports: int, moved: int, *, split: float | None = None
    ) -> AboveThreshold:
        """The lowest threshold that is `stable`, with "one": delta pays for what one user alone meets.

        Of two moved queries the one that is met now costs a yes at 1, the one that would be met elsewhere a yes at 0."""
        check_privacy(epsilon, delta)
        checks.integer_at_least(1, reports=reports)
        checks.integer_at_least(2, moved=moved)
        if split is None:  # about the least sum of threshold and error: one event is found but for e^-4
            split = 1 / (1 + math.sqrt(2 * reports * math.log(moved / delta) / 4))
        made = cls.calibrated(epsilon, delta, reports, 0.0, kind="one", split=split)
        scale = made.noise.scale
        pair = scale / (scale + made.shift.scale) * (1 + math.exp(-1 / scale)) if made.shift else 2.0
        threshold = 1 + made.noise.isf(min(1.0, 2 * delta / (moved * pair)))
        return replace(made, threshold=threshold, stable=True, moved=moved)

    def start(self, rng: np.random.Generator) -> SvtState:
        """The state before the first query; secret."""
        return SvtState(self, self._shift(rng), self.reports, self.moved or math.inf)

    def step(self, state: SvtState, value: float, rng: np.random.Generator) -> tuple[SvtState, bool]:
        """Answer a query with this `value`, up to 2^53.  Raises ValueError once it has halted: it answers nothing more."""
        state = self._paid(state, 1 if self.shift is None else 2)
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
        checks.integer_at_least(1, n_elements=n_elements)
        held = checks.integer_array("inputs", inputs, below=n_elements)
        if not self.stable:
            checks.fits_in_memory("a weight for each element", 8.0 * n_elements, "lower n_elements")
        weights = np.bincount(held, minlength=0 if self.stable else n_elements)
        above: list[int] = []
        for element in np.flatnonzero(weights) if self.stable else range(n_elements):
            if state.left:
                state, yes = self._answer(state, float(weights[element]), rng)
                above += [int(element)] * yes
        return state, np.array(above, dtype=np.int64)

    def _paid(self, state: SvtState, moves: int) -> SvtState:
        """The state after paying for queries of which a user moves so many."""
        checks.state(state, SvtState, self)
        if state.left == 0:
            raise ValueError(f"reports must be larger to go on: it has halted after {self.reports}")
        if state.moves < moves:
            raise ValueError(f"moved must be larger to go on: {self.moved} moved queries are paid for")
        return replace(state, moves=state.moves - moves)

    def _answer(self, state: SvtState, value: float, rng: np.random.Generator) -> tuple[SvtState, bool]:
        noisy = value + self.noise.draw(1, rng)[0]
        if noisy < self.threshold + state.shift or (self.stable and value <= 0):
            return state, False
        left = state.left - 1
        return replace(state, shift=self._shift(rng) if self.refreshed and left else state.shift, left=left), True

    def _shift(self, rng: np.random.Generator) -> float:
        return 0.0 if self.shift is None else float(self.shift.draw(1, rng)[0])

    def crossing(self, z: ArrayLike) -> Array:
        """Pr[noise of a query - noise of the threshold >= z]: a query z below the threshold is answered yes."""
        if self.shift is None:
            return self.noise.sf(z)
        z, q, r = np.asarray(z, dtype=float), self.noise.scale, self.shift.scale
        far = np.abs(z)
        if isinstance(self.noise, Exponential):
            return np.asarray(np.where(z >= 0, q / (q + r) * np.exp(-far / q), 1 - r / (q + r) * np.exp(-far / r)))
        q, r = max(q, r), min(q, r)  # the law is the same
        tail = (0.5 + far * r / (2 * q * (q + r)) * exprel(-far * (1 / r - 1 / q))) * np.exp(-far / q)
        return np.asarray(np.where(z >= 0, tail, 1 - tail))

    def silent(self, queries: int, beta: float) -> AboveThreshold:
        """With the lowest threshold at which `queries` queries of value zero are all noes but for `beta` / 2, in `reports`
        equal stretches, each with its own threshold noise."""
        checks.integer_at_least(1, queries=queries)
        checks.probability(beta=beta)
        if self.shift is None:
            return replace(self, threshold=self.noise.isf(beta / (2 * queries)))
        q, r = self.noise.scale, self.shift.scale
        stretches = self.reports if self.refreshed else 1
        log = math.log(queries / stretches) - (math.log(2) if isinstance(self.noise, Laplace) else 0.0)

        def excess(threshold: float) -> float:
            return stretches * some_yes(log - threshold / q, q, r, isinstance(self.noise, Exponential)) - beta / 2

        high = q * (log + 1) + (q + r) * math.log(4e6 * stretches / beta)
        return replace(self, threshold=float(scipy.optimize.brentq(excess, 0.0, high, rtol=1e-10)))

    def error(self, n_events: int, beta: float = 0.05) -> float:
        """The weight from which `n_events` events are all found with probability 1 - beta / 2, by a union bound."""
        checks.integer_at_least(1, n_events=n_events)
        checks.probability(beta=beta)
        share, scale = beta / (2 * n_events), self.noise.scale + (self.shift.scale if self.shift else 0.0)
        high = 2 * scale * math.log(10 / share)
        missed = scipy.optimize.brentq(lambda z: 1 - self.crossing(-z) - share, -scale, high, xtol=1e-9 * scale)
        return self.threshold + float(missed)


def some_yes(log: float, q: float, r: float, exponential: bool) -> float:
    """E[min(1, e^(log - shift / q))] over the threshold's noise `shift` of scale r; 1 where it is above about 1/2."""
    first = q * log  # up to this shift it is 1
    if exponential:
        return math.exp(log) * q / (q + r) if first <= 0 else 1 - r / (q + r) * math.exp(-first / r)
    if first >= 0:
        return 1.0
    gap = -first * (1 / q - 1 / r)
    grown = math.exp(log) * float(exprel(gap)) if gap < 1 else (math.exp(log + gap) - math.exp(log)) / gap
    below = -first * grown  # e^log times the integral of e^(shift / r - shift / q) up to 0
    return math.exp(first / r) / 2 + (below + math.exp(log) * q * r / (q + r)) / (2 * r)


@checks.plain
def best_threshold(
    epsilon: float,
    delta: float,
    reports: int,
    queries: int,
    kinds: tuple[str, ...] = KINDS,
    beta: float = 0.05,
    *,
    moved: int = 0,
    goal: Callable[[AboveThreshold], float] | None = None,
) -> AboveThreshold:
    """Of `kinds` and `SPLITS` what has the smallest `goal`, usually `error` for `reports` events; each `silent`."""
    methods = [
        AboveThreshold.calibrated(
            epsilon, delta, reports, 0.0, kind=kind, split=split, moved=moved if kind == "gaussian" else 0
        ).silent(queries, beta)
        for kind in kinds
        for split in (SPLITS if kind != "gaussian" else (None,))
    ]
    return min(methods, key=goal or (lambda method: method.error(reports, beta)))
