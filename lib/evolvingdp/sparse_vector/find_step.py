"""Find the step, then histogram: AboveThreshold says in which steps something is heavy, and only these are counted.

**Computes** in every step whether the largest weight exceeds a threshold; if so, a stable histogram of that step. After
`reports` such steps it halts.

**Guarantee.** (epsilon, delta)-differential privacy of all answers and reports together, for **replacement** of one user's
inputs in all steps, whatever the streams: the largest weight moves by at most 1, two weights of a histogram by 1 each.
`calibrated`: the search and the histograms get a share of epsilon and half of delta each; the losses add up, the choice of a
step is post-processing of the search's answers. `joint`: their Renyi divergences add up; after `horizon` steps it stops, as
each moves the search's query.

**Source.** Algorithm 2 with `histograms` and `gaussian`; what one would do without ThresholdMonitor. The state is
**secret**, the release public.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.sparse_vector import gaussian
from evolvingdp.sparse_vector import noise as noises
from evolvingdp.sparse_vector.above_threshold import AboveThreshold, SvtState
from evolvingdp.sparse_vector.histograms import SHOWN, Histogram, histogram
from evolvingdp.sparse_vector.privacy import check_privacy
from evolvingdp.sparse_vector.threshold_monitor import checked_inputs

_NOTHING: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


@lru_cache(maxsize=256)
def _joint_scale(epsilon: float, delta: float, reports: int, horizon: int, noise: str, ratio: float) -> float:
    """Of the search: a user moves the largest weight of every step, and two weights of each that is shown."""

    def cost(order: float, scale: float) -> float:
        shown = gaussian.search_cost(order, ratio * scale, gaussian.ALL, 2 * reports)
        if noise == "laplace":
            return shown + gaussian.laplace_cost(order, scale, reports)
        return shown + gaussian.search_cost(order, scale, reports, horizon)

    return gaussian.smallest_joint(epsilon, delta, cost)


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
    asked: int = 0  # steps so far


@checks.plain
@dataclass(frozen=True)
class FindStep:
    """`search` for the largest weight, `shown` in the steps that it finds. Make one with `calibrated`."""

    search: AboveThreshold
    shown: Histogram
    n_elements: int
    horizon: int | None = None  # steps, after which it stops; None: only the reports are counted

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_elements=self.n_elements)
        if self.horizon is not None:
            checks.integer_at_least(1, horizon=self.horizon)
        checks.one_of(SHOWN, shown=self.shown.kind)  # of the others the number of reports is a draw, and may not fit

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        reports: int,
        threshold: float,
        n_elements: int,
        *,
        composition: str = "optimal",
        noise: str = "laplace",
        share: float = 0.5,
        kind: str = "stable",
    ) -> FindStep:
        """`share` of `epsilon` and half of `delta` go to the search, the rest to a histogram of this `kind`.

        Raises ValueError for parameters out of range.
        """
        checks.probability(share=share)
        checks.one_of(SHOWN, kind=kind)
        search = AboveThreshold.calibrated(
            share * epsilon, delta / 2, reports, threshold, composition=composition, noise=noise
        )
        return cls(search, histogram((1 - share) * epsilon, delta / 2, reports, n_elements, kind=kind), n_elements)

    @classmethod
    def joint(
        cls, epsilon: float, delta: float, reports: int, threshold: float, n_elements: int, horizon: int,
        *, noise: str = "gaussian", ratio: float = 1.0,
    ) -> FindStep:  # fmt: skip
        """`noise` "gaussian" or "laplace" for the search, `ratio` times its scale of normal noise for what is shown.

        A quarter of `delta` is for showing elements that one user alone holds.
        """
        check_privacy(epsilon, delta)
        checks.integer_at_least(1, reports=reports, horizon=horizon)
        checks.one_of(("laplace", "gaussian"), noise=noise)
        checks.positive(ratio=ratio)
        scale = _joint_scale(epsilon, 0.75 * delta, reports, horizon, noise, ratio)
        least = 1 + noises.isf("gaussian", delta / (8 * reports), ratio * scale)
        search = AboveThreshold(threshold, reports, scale, 0.0, False, noise, moved=horizon if noise == "gaussian" else 0)
        return cls(search, Histogram("stable gaussian", ratio * scale, least), n_elements, horizon)

    def start(self, n_users: int, rng: np.random.Generator) -> FindState:
        """The state before the first step; secret."""
        checks.integer_at_least(1, n_users=n_users)
        return FindState(self, n_users, self.search.start(rng))

    def step(self, state: FindState, inputs: ArrayLike, rng: np.random.Generator) -> tuple[FindState, Found]:
        """Answer for users who hold `inputs` (n_users,).  Raises ValueError once it has halted, as the search does."""
        checks.state(state, FindState, self)
        if state.asked == self.horizon:
            raise ValueError(f"horizon must be larger to go on: {self.horizon} steps are paid for, and over")
        held = checked_inputs(inputs, state.n_users, self.n_elements)
        largest = int(np.unique(held, return_counts=True)[1].max())
        search, release = self.search.step(state.search, largest, rng)
        elements = self.shown.reported(held, self.n_elements, rng) if release.above else _NOTHING
        return FindState(self, state.n_users, search, state.asked + 1), Found(release.above, elements)
