"""StableMonitor: shifting heavy hitters by ThresholdMonitor with integer noise that never reports what nobody holds.

**Computes** in each of `horizon` steps the elements whose noisy weight, the number of active users who hold them, reaches an
integer threshold; users are deleted after `reports` reports.

**Guarantee.** (epsilon, delta)-differential privacy of all reports of all steps together, for **replacement** of one
user's inputs in all steps, whatever the streams; after `horizon` steps it refuses to go on. A share of delta pays for the
reports as in ThresholdMonitor, the rest for the 2 `horizon` queries that a user moves, of which each reveals it with
probability `IntegerNoise.revealed` at most (chapter). The domain does not matter: an element that nobody holds is never
reported, so that the threshold grows with ln(horizon / delta), not with ln(horizon |X| / beta).

**Source.** Ours; the noise is min(N, t - 1 - G) where the paper's is w + min(v, Delta_1). The state is **secret**, the
release public. `step` costs users and reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evolvingdp.core import checks
from evolvingdp.sparse_vector.histograms import SHARES, Reported
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.privacy import check_privacy, smallest_scale
from evolvingdp.sparse_vector.threshold_monitor import State, ThresholdMonitorEvolving, checked_inputs


@dataclass(frozen=True, repr=False)
class StableState:
    """Secret, of these `settings`: the counters. `left`: steps that are still paid for, which everybody can count."""

    settings: StableMonitor
    counters: State
    left: int


@checks.plain
@dataclass(frozen=True)
class StableMonitor:
    """`monitor` with noise that has its threshold as `limit`. Make one with `calibrated`."""

    monitor: ThresholdMonitorEvolving
    horizon: int
    n_elements: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, horizon=self.horizon, n_elements=self.n_elements)
        noise = self.monitor.noise
        if not isinstance(noise, IntegerNoise) or noise.limit is None or self.monitor.threshold < noise.limit:
            raise ValueError(f"monitor must have integer noise with a limit up to its threshold, got {self.monitor!r}")

    @classmethod
    def calibrated(cls, epsilon: float, delta: float, horizon: int, n_elements: int, reports: int) -> StableMonitor:
        """The share of delta with the lowest threshold.  Raises ValueError for parameters out of range."""
        check_privacy(epsilon, delta)
        checks.integer_at_least(1, horizon=horizon, n_elements=n_elements, reports=reports)
        noise = min((_noise(epsilon, delta, horizon, reports, share) for share in SHARES), key=lambda made: made.limit or 0)
        return cls(ThresholdMonitorEvolving(noise, float(noise.limit or 0), reports), horizon, n_elements)

    def error(self, n_events: int, beta: float = 0.05) -> float:
        """The weight from which `n_events` events are all found with probability 1 - beta / 2, while nobody is deleted."""
        checks.integer_at_least(1, n_events=n_events)
        checks.probability(beta=beta)
        return self.monitor.threshold - self.monitor.noise.lower_quantile(beta / (2 * n_events))

    def start(self, n_users: int) -> StableState:
        """The state before the first step; secret."""
        return StableState(self, self.monitor.start(n_users), self.horizon)

    def step(self, state: StableState, inputs: ArrayLike, rng: np.random.Generator) -> tuple[StableState, Reported]:
        """Report on users who hold `inputs` (n_users,).  Raises ValueError once `horizon` steps are over."""
        checks.state(state, StableState, self)
        if state.left == 0:
            raise ValueError(f"horizon must be larger to go on: {self.horizon} steps are paid for, and over")
        counters = state.counters
        held = checked_inputs(inputs, counters.n_users, self.n_elements)
        present, weights = np.unique(held[counters.active], return_counts=True)
        elements = present[weights + self.monitor.noise.sample(len(present), rng) >= self.monitor.threshold]
        if len(elements):
            counters = self.monitor.counted(counters, np.isin(held, elements).astype(float))
        return StableState(self, counters, state.left - 1), Reported(elements)


def _noise(epsilon: float, delta: float, horizon: int, reports: int, share: float) -> IntegerNoise:
    """`share` of delta for the scale, and the lowest limit at which what 2 `horizon` queries reveal fits the rest."""
    scale = IntegerNoise(smallest_scale(epsilon, share * delta, reports)).scale
    once = IntegerNoise(scale, 1)
    excess = math.log(once.revealed * 2 * horizon / ((1 - share) * delta))
    return IntegerNoise(scale, 1 + max(0, math.ceil(excess * scale)))


@checks.plain
def smallest_detectable(epsilon: float, delta: float, horizon: int, n_elements: int, found: float = 0.99) -> int:
    """A lower bound, in users: no (epsilon, delta)-private method of any kind finds a smaller group with probability
    `found`. That holds also for methods that report, on average over all steps, one element that nobody holds, and for
    users who are in one event only. The proof is on the chapter's page.
    """
    check_privacy(epsilon, delta)
    checks.integer_at_least(2, horizon=horizon, n_elements=n_elements)
    checks.probability(found=found)
    per_user = delta / math.expm1(epsilon)
    quiet = math.floor(math.log((0.5 + per_user) / (1 / n_elements + per_user)) / epsilon)
    rest = math.log((max(found - 0.5, 0.0) + per_user) / (0.5 / horizon + per_user)) / epsilon
    return max(1, quiet + math.ceil(rest))
