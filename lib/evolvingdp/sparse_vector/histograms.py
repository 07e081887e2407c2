"""A private histogram in every step: noisy weights of all elements, those above a threshold are told with their weight.

**Computes** in each of `horizon` steps the elements whose noisy weight, the number of users who hold them, is at least
`threshold`, and these weights.

**Guarantee.** (epsilon, delta)-differential privacy of all releases of all steps together, for **replacement** of one user's
inputs in all steps (two weights move by 1 in each), whatever the streams; after `horizon` steps it refuses to go on.

Kind "gaussian" has normal noise on every element of the domain, composed exactly; "stable" Laplace and "stable gaussian"
normal noise on the elements that somebody holds, with a part of delta (of `SHARES`, what gives the lowest threshold) for
showing that one is held.

**Source.** Dwork, McSherry, Nissim and Smith (2006); stability as in Bun, Nissim and Stemmer (2016). The state is
**secret**, the release public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import accounting, checks
from evolvingdp.core.noise import Array, Gaussian, Laplace
from evolvingdp.sparse_vector.privacy import check_privacy

HISTOGRAMS = ("gaussian", "stable", "stable gaussian")
SHOWN = ("stable", "stable gaussian")  # the kinds that need no list of the elements
SHARES = (1e-6, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)  # of delta, for the noise of a stable histogram


@dataclass(frozen=True)
class Counted:
    """What everybody sees of a step: `elements` (told,), increasing, and their noisy `weights` (told,), whole numbers."""

    elements: NDArray[np.int64]
    weights: Array


@dataclass(frozen=True, repr=False)
class HistogramState:
    """Secret, as all states, and of these `settings`; it keeps no data. `left`: steps that are still paid for."""

    settings: Histogram
    n_users: int
    left: int


@checks.plain
@dataclass(frozen=True)
class Histogram:
    """One in each of `horizon` steps, of users who hold one of `n_elements`; the `stable` ones leave out what nobody holds.
    Make one with `histogram`."""

    noise: Gaussian | Laplace
    threshold: float
    horizon: int
    n_elements: int
    stable: bool = False

    def __post_init__(self) -> None:
        checks.finite(threshold=self.threshold)
        checks.integer_at_least(1, horizon=self.horizon, n_elements=self.n_elements)
        if not self.stable and not isinstance(self.noise, Gaussian):
            raise ValueError(f"noise must be Gaussian where all elements are listed, got {self.noise!r}")

    @property
    def standard_error(self) -> float:
        """Of a noisy weight, which is rounded: exactly where noise is small, which is then mostly rounded away."""
        if self.noise.scale > 10:
            return math.sqrt(self.noise.variance + 1 / 12)
        weight = np.arange(1.0, 500.0)
        return math.sqrt(2 * float((2 * weight - 1) @ self.noise.sf(weight - 0.5)))

    def start(self, n_users: int) -> HistogramState:
        """The state before the first step."""
        checks.integer_at_least(1, n_users=n_users)
        return HistogramState(self, n_users, self.horizon)

    def step(
        self, state: HistogramState, inputs: ArrayLike, rng: np.random.Generator
    ) -> tuple[HistogramState, NDArray[np.int64]]:
        """The elements, increasing, that are told of users who hold `inputs` (n_users,).  Raises ValueError once `horizon`
        steps are over."""
        state, elements, weights = self._paid(state, inputs)
        return state, elements[self._drawn(weights, rng)[0]]

    def count(self, state: HistogramState, inputs: ArrayLike, rng: np.random.Generator) -> tuple[HistogramState, Counted]:
        """`step` with the weights: the draw that decides is told."""
        state, elements, weights = self._paid(state, inputs)
        noisy = self.noisy(weights, rng)
        told = ~np.isnan(noisy)
        return state, Counted(elements[told], noisy[told])

    def noisy(self, weights: ArrayLike, rng: np.random.Generator) -> Array:
        """For one step's `weights` (elements,) of all of the domain, or of what is held: those told, rounded to whole
        numbers, NaN for the others (elements,)."""
        checks.counts(weights=weights)
        above, noisy = self._drawn(np.asarray(weights, dtype=np.int64), rng)
        return np.where(above, np.rint(noisy), np.nan)

    def _drawn(self, weights: NDArray[np.int64], rng: np.random.Generator) -> tuple[NDArray[np.bool_], Array]:
        noisy = weights + self.noise.draw(weights.shape, rng)
        above = noisy >= self.threshold
        return np.asarray(above & (weights > 0) if self.stable else above), noisy

    def _paid(self, state: HistogramState, inputs: ArrayLike) -> tuple[HistogramState, NDArray[np.int64], NDArray[np.int64]]:
        """The state after a step, and its elements and their weights."""
        checks.state(state, HistogramState, self)
        if state.left == 0:
            raise ValueError(f"horizon must be larger to go on: {self.horizon} steps are paid for, and over")
        held = checks.integer_array("inputs", inputs, below=self.n_elements, entries=state.n_users)
        after = HistogramState(self, state.n_users, state.left - 1)
        if self.stable:
            return after, *np.unique(held, return_counts=True)
        checks.fits_in_memory("a weight for each element", 32.0 * self.n_elements, "take a stable kind")
        return after, np.arange(self.n_elements), np.bincount(held, minlength=self.n_elements)

    def error(self, n_events: int, beta: float) -> float:
        """The weight from which all events are found with probability 1 - beta / 2."""
        return self.threshold + self.noise.isf(min(beta / (2 * n_events), 0.5))


@checks.plain
def histogram(
    epsilon: float, delta: float, horizon: int, n_elements: int, *, kind: str = "gaussian", beta: float = 0.05
) -> Histogram:
    """(`epsilon`, `delta`)-private in all of `horizon` steps together; `beta` as in `shifting.planned_monitor`."""
    check_privacy(epsilon, delta)
    checks.integer_at_least(1, horizon=horizon, n_elements=n_elements)
    checks.one_of(HISTOGRAMS, kind=kind)
    checks.probability(beta=beta)
    normal = kind != "stable"
    if kind in SHOWN:
        made = (stable_histogram(epsilon, delta, horizon, n_elements, normal, share) for share in SHARES)
        return min(made, key=lambda one: one.threshold)
    noise = _noise(epsilon, delta, horizon, normal)
    return Histogram(noise, noise.isf(beta / (2 * horizon * n_elements)), horizon, n_elements)


def _noise(epsilon: float, delta: float, horizon: int, normal: bool) -> Gaussian | Laplace:
    """In each step two weights move by 1: Laplace noise composes as 2 `horizon` pieces of loss 1 / scale."""
    if normal:
        return Gaussian(math.sqrt(2 * horizon) / accounting.gaussian_mu(epsilon, delta))
    return Laplace(1 / accounting.optimal(epsilon, delta, 2 * horizon))


def stable_histogram(epsilon: float, delta: float, horizon: int, n_elements: int, normal: bool, share: float) -> Histogram:
    """`share` of delta for the noise, the rest for showing an element that one user holds, in all steps together.

    With normal noise half of the rest: the other input's element is seen not to be shown, at a loss that is not bounded.
    """
    noise = _noise(epsilon, share * delta, horizon, normal)
    return Histogram(noise, 1 + noise.isf((1 - share) * delta / (horizon * (1 + normal))), horizon, n_elements, stable=True)
