"""From how often an event happened on each of two inputs to what epsilon is not below.

P and Q are the event's probabilities on the two inputs; (epsilon, delta)-privacy says P <= e^epsilon Q + delta. The counts
are two independent binomial ones. Both limits hold at the stated confidence for every P and Q and every number of runs:

- **separate**: ln((p - delta) / q) with Clopper-Pearson limits p <= P and q >= Q, each at half of the error probability;
- **joint**: given how often the event happened in all, the first count has Fisher's noncentral hypergeometric law, of which
  the odds ratio psi = P (1 - Q) / (Q (1 - P)) is the parameter, so its exact conditional limit costs only one error. With P
  and psi known, P / Q = psi (1 - P) + P, which falls with P where psi > 1, and (P - delta) / Q = (P / Q)(1 - delta / P):
  a tenth of the error probability pays for the limits of P. Better where the event is rare; poor where it is not.

Which of the two is meant has to be said before the counts are seen.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, gammaln
from scipy.stats import norm

__all__ = ["joint", "predicted", "separate"]

_FOR_P = 0.1  # of the error probability of `joint`


def _limits(hits: int, runs: int, error: float) -> tuple[float, float]:
    """Clopper-Pearson's, each missed with at most this probability."""
    low = float(betaincinv(hits, runs - hits + 1, error)) if hits else 0.0
    high = float(betaincinv(hits + 1, runs - hits, 1 - error)) if hits < runs else 1.0
    return low, high


def separate(hits: tuple[int, int], runs: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Lower limit of epsilon from hits[0] and hits[1] of `runs` runs each; never below 0, which holds for all."""
    error = (1 - confidence) / 2
    low, high = _limits(hits[0], runs, error)[0] - delta, _limits(hits[1], runs, error)[1]
    return math.log(low / high) if low > high else 0.0


def joint(hits: tuple[int, int], runs: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Lower limit of epsilon from hits[0] and hits[1] of `runs` runs each; never below 0, which holds for all."""
    error = 1 - confidence
    odds = _odds_ratio(hits, runs, (1 - _FOR_P) * error)
    low, high = _limits(hits[0], runs, _FOR_P * error / (2 if delta else 1))
    if odds <= 1 or low <= delta:
        return 0.0
    return max(0.0, math.log(odds * (1 - high) + high) + (math.log1p(-delta / low) if delta else 0.0))


def _odds_ratio(hits: tuple[int, int], runs: int, error: float) -> float:
    """Fisher's exact lower limit, 0 where the first count is as small as it can be."""
    both = sum(hits)
    first = np.arange(max(0, both - runs), min(runs, both) + 1)
    if hits[0] == first[0]:
        return 0.0
    ways = -gammaln(first + 1) - gammaln(runs - first + 1) - gammaln(both - first + 1) - gammaln(runs - both + first + 1)

    def excess(log_odds: float) -> float:
        """The probability of the first count or more, over what is allowed."""
        logs = ways + first * log_odds
        weights = np.exp(logs - logs.max())
        return math.log(max(weights[first >= hits[0]].sum() / weights.sum(), 1e-300) / error)

    most = 2 * math.log(2 * runs) + 5
    return math.exp(float(brentq(excess, -most, most, xtol=1e-10))) if excess(most) > 0 > excess(-most) else 0.0


def predicted(first: Any, second: Any, runs: int, delta: float, errors: float) -> Any:
    """ln((p - delta) / q) for arrays of hits, less so many standard errors: what chooses among events, no limit.

    The errors are those of the logarithm, or of p and q apart where that shows more: few hits have no standard error.
    """
    first, second = np.asarray(first), np.asarray(second)
    p, q = (first + 0.5) / (runs + 1), (second + 0.5) / (runs + 1)
    more = np.maximum(p - delta, 1e-12)
    error = float(norm.sf(errors))
    low = np.where(first > 0, betaincinv(np.maximum(first, 1), runs - first + 1, error), 0.0)
    high = np.where(second < runs, betaincinv(second + 1, np.maximum(runs - second, 1), 1 - error), 1.0)
    together = np.log(more / q) - errors * np.sqrt(p * (1 - p) / more**2 / runs + (1 - q) / q / runs)
    return np.maximum(np.maximum(together, np.log(np.maximum(low - delta, 1e-12) / high)), 0.0)
