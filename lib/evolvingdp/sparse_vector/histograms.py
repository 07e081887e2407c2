"""A private histogram in every step: noisy weights of all elements, those above a threshold are reported.

**Computes** in each of `horizon` steps the elements whose noisy weight, the number of users who hold them, is at least
`threshold`; the stable kinds, which need no list of the elements, tell the noisy weights, too (`count`).

**Guarantee.** (epsilon, delta)-differential privacy of all reports of all steps together, for **replacement** of one user's
inputs in all steps (two weights move by 1 in each), whatever the streams; after `horizon` steps it refuses to go on.

| kind | noise | how the budget is spent |
|---|---|---|
| gaussian | normal, on every element of the domain | composed exactly |
| stable | Laplace, on the elements that somebody holds | optimally, with a part of delta for showing that one is held |
| stable gaussian | normal, on the elements that somebody holds | exactly, with a part of delta as before |

The stable ones split delta at the one of `SHARES` with the lowest threshold.

**Source.** Dwork, McSherry, Nissim and Smith (2006); stability as in Bun, Nissim and Stemmer (2016). The state is
**secret**, the release public. `step` costs users and reports: the elements that nobody holds are drawn by number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import accounting, checks
from evolvingdp.core.noise import Array, Gaussian, Laplace
from evolvingdp.core.sampling import rare_count
from evolvingdp.sparse_vector.privacy import check_privacy
from evolvingdp.sparse_vector.threshold_monitor import checked_inputs

HISTOGRAMS = ("gaussian", "stable", "stable gaussian")
SHOWN = ("stable", "stable gaussian")  # the kinds that need no list of the elements
SHARES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.98)  # of delta, for the noise of a stable histogram


@dataclass(frozen=True)
class Reported:
    """What everybody sees of a step: `elements` (reports,), increasing."""

    elements: NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """What everybody sees of a step that counts: `elements` (reports,), increasing, and their noisy `weights` (reports,)."""

    elements: NDArray[np.int64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class HistogramState:
    """Secret, as all states, and of these `settings`; it keeps no data. `left`: steps that are still paid for."""

    settings: HistogramEveryStep
    n_users: int
    left: int


@checks.plain
@dataclass(frozen=True)
class Histogram:
    """The noisy weights of one step; the `stable` ones leave out the elements that nobody holds."""

    noise: Gaussian | Laplace
    threshold: float
    stable: bool = False

    def __post_init__(self) -> None:
        checks.finite(threshold=self.threshold)
        if not self.stable and not isinstance(self.noise, Gaussian):
            raise ValueError(f"noise must be Gaussian where all elements are listed, got {self.noise!r}")

    @property
    def standard_error(self) -> float:
        """Of a noisy weight, which is rounded."""
        return math.sqrt(self.noise.variance + 1 / 12)

    def noisy(self, weights: ArrayLike, rng: np.random.Generator) -> Array:
        """For `weights` (elements,) of all of the domain, or of what is held: those reported, noisy and rounded to whole
        numbers, NaN for the others (elements,). One draw decides and is told, so that the weights cost nothing more."""
        above, noisy = self._drawn(weights, rng)
        return np.where(above, np.rint(noisy), np.nan)

    def _drawn(self, weights: ArrayLike, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Array]:
        checks.counts(weights=weights)
        array = np.asarray(weights, dtype=np.int64)
        noisy = array + self.noise.draw(array.shape, rng)
        above = noisy >= self.threshold
        return np.asarray(above & (array > 0) if self.stable else above), noisy

    def reported(self, inputs: NDArray[np.int64], n_elements: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The reported elements, increasing, for `inputs` (n_users,), without a draw for each of the domain."""
        held, weights = np.unique(inputs, return_counts=True)
        if not self.stable:  # before the draws, and the same whatever is held
            expected = n_elements * float(self.noise.sf(self.threshold))
            checks.fits_in_memory("the list of reports", 64.0 * (expected + 10 * math.sqrt(expected)), "raise threshold")
        above = held[self._drawn(weights, rng)[0]]
        if self.stable:
            return above
        count = rare_count(n_elements - len(held), float(self.noise.sf(self.threshold)), rng)
        ranks = rng.choice(n_elements - len(held), size=count, replace=False, shuffle=False)  # among those nobody holds
        absent = ranks + np.searchsorted(held - np.arange(len(held)), ranks, side="right")
        return np.sort(np.concatenate([above, absent]).astype(np.int64))

    def error(self, n_events: int, beta: float) -> float:
        """The weight from which all events are found with probability 1 - beta / 2."""
        return self.threshold + self.noise.isf(min(beta / (2 * n_events), 0.5))


@checks.plain
def histogram(
    epsilon: float, delta: float, horizon: int, n_elements: int, *, kind: str = "gaussian", beta: float = 0.05
) -> Histogram:
    """The noise of one of `horizon` steps, (`epsilon`, `delta`)-private together; `beta` as in `shifting.plan`."""
    check_privacy(epsilon, delta)
    checks.integer_at_least(1, horizon=horizon, n_elements=n_elements)
    checks.one_of(HISTOGRAMS, kind=kind)
    checks.probability(beta=beta)
    normal = kind != "stable"
    if kind in SHOWN:
        made = (stable_histogram(epsilon, delta, horizon, normal, share) for share in SHARES)
        return min(made, key=lambda one: one.threshold)
    noise = _noise(epsilon, delta, horizon, normal)
    return Histogram(noise, noise.isf(beta / (2 * horizon * n_elements)))


def _noise(epsilon: float, delta: float, horizon: int, normal: bool) -> Gaussian | Laplace:
    """In each step two weights move by 1: Laplace noise composes as 2 `horizon` pieces of loss 1 / scale."""
    if normal:
        return Gaussian(math.sqrt(2 * horizon) / accounting.gaussian_mu(epsilon, delta))
    return Laplace(1 / accounting.optimal(epsilon, delta, 2 * horizon))


def stable_histogram(epsilon: float, delta: float, horizon: int, normal: bool, share: float) -> Histogram:
    """`share` of delta for the noise, the rest for showing an element that one user holds, in all steps together.

    With normal noise half of the rest: the other input's element is seen not to be shown, at a loss that is not bounded.
    """
    noise = _noise(epsilon, share * delta, horizon, normal)
    return Histogram(noise, 1 + noise.isf((1 - share) * delta / (horizon * (1 + normal))), stable=True)


@checks.plain
@dataclass(frozen=True)
class HistogramEveryStep:
    """`one` in each of `horizon` steps, of users who hold one of `n_elements` elements. Make one with `calibrated`."""

    one: Histogram
    horizon: int
    n_elements: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, horizon=self.horizon, n_elements=self.n_elements)

    @classmethod
    def calibrated(
        cls, epsilon: float, delta: float, horizon: int, n_elements: int, *, kind: str = "gaussian", beta: float = 0.05
    ) -> HistogramEveryStep:
        """As `histogram`, which raises for parameters out of range."""
        return cls(histogram(epsilon, delta, horizon, n_elements, kind=kind, beta=beta), horizon, n_elements)

    def start(self, n_users: int) -> HistogramState:
        """The state before the first step."""
        checks.integer_at_least(1, n_users=n_users)
        return HistogramState(self, n_users, self.horizon)

    def step(self, state: HistogramState, inputs: ArrayLike, rng: np.random.Generator) -> tuple[HistogramState, Reported]:
        """Report on users who hold `inputs` (n_users,).  Raises ValueError once `horizon` steps are over."""
        state, held = self._pay(state, inputs)
        return state, Reported(self.one.reported(held, self.n_elements, rng))

    def count(self, state: HistogramState, inputs: ArrayLike, rng: np.random.Generator) -> tuple[HistogramState, Counted]:
        """`step` with the weights, of a stable kind.  Raises ValueError for the others, and as `step`."""
        if not self.one.stable:
            raise ValueError(f"one must be stable to tell weights, got {self.one!r}")
        state, held = self._pay(state, inputs)
        elements, weights = np.unique(held, return_counts=True)
        noisy = self.one.noisy(weights, rng)
        return state, Counted(elements[~np.isnan(noisy)], noisy[~np.isnan(noisy)])

    def _pay(self, state: HistogramState, inputs: ArrayLike) -> tuple[HistogramState, NDArray[np.int64]]:
        checks.state(state, HistogramState, self)
        if state.left == 0:
            raise ValueError(f"horizon must be larger to go on: {self.horizon} steps are paid for, and over")
        return HistogramState(self, state.n_users, state.left - 1), checked_inputs(inputs, state.n_users, self.n_elements)
