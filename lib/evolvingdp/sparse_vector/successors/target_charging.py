"""Target charging: any private algorithms, asked adaptively, pay only when their output hits a target.

**Computes** the outputs of calls of algorithms that are each `epsilon`-differentially private, until `hits` of them have
hit the target that was named with the call.

**Guarantee.** (epsilon, delta) of `delta_of_epsilon`, for all outputs together, for the unit of the single calls, if each
output's law is, for every two neighbours, a mixture of a common one and of two that are `epsilon`-close and hit the target
with probability at least `hit_chance` each. 1 / (1 + e^epsilon) serves where the target is a yes of a noisy comparison with
a threshold (the chapter's coins). That is the caller's promise: no check can see it.

**Against ThresholdMonitor.** It pays for all hits, of whoever; ThresholdMonitor pays per user, for comparisons only. For
one user's `hits`, both lose the same 1 / (1 + e^epsilon) to waiting; the exact analysis of ThresholdMonitor knows besides
that the hits are one outcome of the coins, which this one does not.

**Source.** Cohen and Lyu (2023); re-derived, with the law of the number of calls that count in place of its tail bound. The
algorithms' state is **secret**; what is left is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from scipy.special import expit
from scipy.stats import nbinom

from evolvingdp.core import accounting, checks
from evolvingdp.sparse_vector.privacy import TooLongError, check_privacy, largest_epsilon

T = TypeVar("T")


@dataclass(frozen=True)
class TargetCharging:
    """`epsilon` of one call, `hits` after which it halts, and the chance of a hit."""

    epsilon: float
    hits: int
    hit_chance: float

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        checks.integer_at_least(1, hits=self.hits)
        checks.probability(hit_chance=self.hit_chance)

    @classmethod
    def comparisons(cls, epsilon: float, hits: int) -> TargetCharging:
        """For noisy comparisons with a threshold, whose target is a yes."""
        return cls(epsilon, hits, float(expit(-epsilon)))

    def start(self) -> int:
        """The hits that are left."""
        return self.hits

    def step(
        self, left: int, call: Callable[[np.random.Generator], T], target: Callable[[T], bool], rng: np.random.Generator
    ) -> tuple[int, T]:
        """What is left, and the output of `call`.  Raises ValueError once it has halted."""
        if left == 0:
            raise ValueError(f"hits must be larger to go on: it has halted after {self.hits}")
        output = call(rng)
        return left - bool(target(output)), output

    def delta_of_epsilon(self, epsilon: float) -> float:
        """The delta at `epsilon` of all outputs: of as many randomized responses as come before the last hit.

        Their number is at most that of trials up to the hit number `hits`, each a hit with `hit_chance`, whatever the
        responses are; it may be known to the analyst, and a cut at any number costs the probability of more.
        """
        if not 0 < epsilon < math.inf:
            raise ValueError(f"epsilon must be > 0 and finite, got {epsilon!r}")
        calls, more = _calls(self.hits, self.hit_chance)
        low, high = 0, len(calls) - 1

        def cost(place: int) -> float:
            return accounting.delta_of_reports(self.epsilon, epsilon, int(calls[place])) + float(more[place])

        while high - low > 2:  # the first summand grows with the number of calls, the second falls
            third = (high - low) // 3
            one, other = low + third, high - third
            low, high = (low, other) if cost(one) <= cost(other) else (one, high)
        return min(1.0, *(cost(place) for place in range(low, high + 1)))

    def epsilon_of_delta(self, delta: float) -> float:
        """The smallest epsilon at which `delta_of_epsilon` is at most `delta`."""
        check_privacy(1.0, delta)
        return largest_epsilon(lambda epsilon: self.delta_of_epsilon(max(epsilon, 1e-9)) - delta)


@lru_cache(maxsize=64)
def _calls(hits: int, hit_chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of calls, and the probabilities that more are needed for so many hits."""
    spare = nbinom.isf(1e-20, hits, hit_chance)
    if not spare < 1e6:
        raise TooLongError(f"hit_chance must be larger, or hits smaller: {hits} hits take up to {spare:.3g} calls")
    misses = np.arange(int(spare) + 2)
    return misses + hits, nbinom.sf(misses, hits, hit_chance)
