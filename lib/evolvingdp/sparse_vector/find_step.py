"""Find the step, then histogram: AboveThreshold says in which steps something is heavy, and only these are counted.

**Computes** in every step whether the largest weight exceeds a threshold; if so, a stable histogram of that step. After
`reports` such steps it halts.

**Guarantee.** (epsilon, delta)-differential privacy of all answers and reports together, for **replacement** of one user's
inputs in all steps, whatever the streams: the largest weight moves by at most 1, two weights of a histogram by 1 each.
Search and histograms have normal noise and are accounted together, their Renyi divergences add up; after `horizon` steps it
stops, as each moves the search's query.

**Source.** Algorithm 2 with `histograms` and `gaussian`; what one would do without ThresholdMonitor. The state is
**secret**, the release public.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.noise import Gaussian
from evolvingdp.sparse_vector import gaussian
from evolvingdp.sparse_vector.above_threshold import AboveThreshold, SvtState
from evolvingdp.sparse_vector.histograms import Histogram
from evolvingdp.sparse_vector.privacy import check_privacy
from evolvingdp.sparse_vector.threshold_monitor import checked_inputs


@dataclass(frozen=True)
class Found:
    """What everybody sees of a step: whether it is `above`, and then the `elements` (reports,) reported, increasing."""

    above: bool
    elements: NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class FindState:
    """Secret: that of the search."""

    settings: FindStep
    n_users: int
    search: SvtState


@checks.plain
@dataclass(frozen=True)
class FindStep:
    """`search` for the largest weight, `shown` in the steps that it finds. Make one with `calibrated`."""

    search: AboveThreshold
    shown: Histogram
    n_elements: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_elements=self.n_elements)
        if not self.shown.stable:  # of the others the number of reports is a draw, and may not fit
            raise ValueError(f"shown must be stable, got {self.shown!r}")

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        reports: int,
        threshold: float,
        n_elements: int,
        horizon: int,
        *,
        ratio: float = 1.0,
    ) -> FindStep:
        """What is shown has `ratio` times the noise of the search; a quarter of `delta` is for showing elements that one
        user alone holds.  Raises ValueError for parameters out of range.
        """
        check_privacy(epsilon, delta)
        checks.integer_at_least(1, reports=reports, horizon=horizon)
        checks.positive(ratio=ratio)
        scale = _scale(epsilon, 0.75 * delta, reports, horizon, ratio)
        noise = Gaussian(ratio * scale)
        shown = Histogram(noise, 1 + noise.isf(delta / (8 * reports)), stable=True)
        return cls(AboveThreshold(threshold, reports, Gaussian(scale), moved=horizon), shown, n_elements)

    def start(self, n_users: int, rng: np.random.Generator) -> FindState:
        """The state before the first step; secret."""
        checks.integer_at_least(1, n_users=n_users)
        return FindState(self, n_users, self.search.start(rng))

    def step(self, state: FindState, inputs: ArrayLike, rng: np.random.Generator) -> tuple[FindState, Found]:
        """Answer for users who hold `inputs` (n_users,).  Raises ValueError once it has halted, as the search does."""
        checks.state(state, FindState, self)
        held = checked_inputs(inputs, state.n_users, self.n_elements)
        largest = int(np.unique(held, return_counts=True)[1].max())
        search, release = self.search.step(state.search, largest, rng)
        elements = self.shown.reported(held, self.n_elements, rng) if release.above else np.zeros(0, dtype=np.int64)
        return FindState(self, state.n_users, search), Found(release.above, elements)


@lru_cache(maxsize=256)
def _scale(epsilon: float, delta: float, reports: int, horizon: int, ratio: float) -> float:
    """Of the search: a user moves the largest weight of every step, and two weights of each that is shown."""

    def cost(order: float, scale: float) -> float:
        shown = gaussian.search_cost(order, ratio * scale, gaussian.ALL, 2 * reports)
        return shown + gaussian.search_cost(order, scale, reports, horizon)

    return gaussian.smallest_joint(epsilon, delta, cost)
