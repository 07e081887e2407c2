"""Target charging (Cohen and Lyu 2023): what noisy comparisons cost that pay for all their yeses, whosever they are.

Re-derived, with the law of the number of calls that count in place of its tail bound. The exact analysis of ThresholdMonitor
knows besides that the hits are one outcome of the coins, which this one does not.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import expit
from scipy.stats import nbinom

from evolvingdp.core import accounting
from evolvingdp.sparse_vector.privacy import TooLongError


def charging_delta(epsilon: float, loss: float, hits: int) -> float:
    """The delta at `epsilon` > 0 of comparisons of this `loss` each, up to the yes number `hits`.

    They are as many randomized responses as come before the last hit. Their number is at most that of trials up to the hit
    number `hits`, each a hit with 1 / (1 + e^loss), whatever the responses are; it may be known to the analyst, and a cut at
    any number costs the probability of more.
    """
    calls, more = _calls(hits, float(expit(-loss)))
    low, high = 0, len(calls) - 1

    def cost(place: int) -> float:
        return accounting.delta_of_reports(loss, epsilon, int(calls[place])) + float(more[place])

    while high - low > 2:  # the first summand grows with the number of calls, the second falls
        third = (high - low) // 3
        one, other = low + third, high - third
        low, high = (low, other) if cost(one) <= cost(other) else (one, high)
    return min(1.0, *(cost(place) for place in range(low, high + 1)))


@lru_cache(maxsize=64)
def _calls(hits: int, hit_chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of calls, and the probabilities that more are needed for so many hits."""
    spare = nbinom.isf(1e-20, hits, hit_chance)
    if not spare < 1e6:
        raise TooLongError(f"hit_chance must be larger, or hits smaller: {hits} hits take up to {spare:.3g} calls")
    misses = np.arange(int(spare) + 2)
    return misses + hits, nbinom.sf(misses, hits, hit_chance)
