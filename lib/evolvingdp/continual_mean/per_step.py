"""The baseline of Section 1.1: the running mean with noise of its own at every step.

**Guarantee.** User-level epsilon-DP for all steps together; neighbours differ in all samples (in [0, 1]) of one user,
arrivals are public.  A user moves the mean at step t by at most M_t / t, M_t the largest number of samples that a user has
sent so far.

**Error.** Each of T steps has epsilon / T: noise of scale M_t T / (t epsilon).

**Exact sums** of samples that are rounded to multiples of 2^-20 (`core.exact`).

**Source.** George et al. (2022), Section 1.1.  Applies E-CM-17: no division of epsilon gives noise of scale M_t /
epsilon at all steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.settings import by_user
from evolvingdp.core import checks
from evolvingdp.core.exact import Grid


@checks.plain
@dataclass(frozen=True)
class PerStepLaplace:
    """Laplace noise at each of at most `horizon` steps."""

    horizon: int
    epsilon: float

    def __post_init__(self) -> None:
        checks.integer_at_least(1, horizon=self.horizon)
        checks.plain_integers(self, "horizon")
        checks.positive(epsilon=self.epsilon)
        if self.horizon > 2**33:
            raise ValueError(f"horizon must be at most 2^33, so that sums are exact, got {self.horizon}")

    @cached_property
    def _grid(self) -> Grid:
        return Grid(1.0, self.horizon)

    def release(self, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
        """The noisy means after each of the (user, sample), (T,) both, T <= horizon."""
        values, who = np.asarray(samples), np.asarray(users)
        if values.ndim == 1 and values.dtype.kind in "biuf" and (bad := ~((values >= 0) & (values <= 1))).any():
            raise ValueError(f"samples must lie in [0, 1], got {values[bad][0]} at position {int(np.argmax(bad))}")
        sums = np.cumsum(self._grid.steps(values, "samples"))
        if who.shape != values.shape or (who.size and who.dtype.kind not in "iu"):
            raise TypeError(f"users must be integers of shape {values.shape}, got {who.dtype} {who.shape}")
        if who.size and who.min() < 0:
            raise ValueError(f"users must be >= 0, got {who.min()} at position {who.argmin()}")
        steps = np.arange(1, len(sums) + 1)
        scale = most_samples(who) * (self.horizon / steps) / self.epsilon
        noisy: NDArray[np.float64] = sums * self._grid.step / steps + rng.laplace(0.0, 1.0, len(sums)) * scale
        return noisy


def most_samples(users: ArrayLike) -> NDArray[np.int64]:
    """M_t for every t: the largest number of samples that one user has contributed so far, (T,)."""
    _, who = np.unique(np.asarray(users), return_inverse=True)
    _, step, rank = by_user(who.astype(np.int64), np.arange(1, len(who) + 1))
    ranks = np.empty(len(who), dtype=np.int64)
    ranks[step - 1] = rank
    return np.maximum.accumulate(ranks)
