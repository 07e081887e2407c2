"""What yes/no answers cost that normal noise decides: a price for each query that a user moves, and one for each yes.

**Computes** the least scale of normal noise for answers "sum + N(0, scale^2) >= threshold", asked adaptively, no noise on
the threshold, so that all answers together are (epsilon, delta)-private for one user who moves at most `moved` of the
queries, each by 1, where at most `reports` answers are yes.

**Why.** Let q and p be the probabilities of a yes in two worlds, R the likelihood ratio of the transcript so far. Each query
multiplies the mean of R^order by 1 + q expm1(order ln(p/q)) + (1-q) expm1(order ln((1-p)/(1-q))). If a yes is discounted by
e^-theta and every moved query by e^-eta, with eta large enough at all positions of the sum and in both directions, the
discounted power is a supermartingale, so that the Renyi divergence is at most (reports theta + moved eta) / (order - 1).

**Source.** Zhu and Wang (2020); two prices, ours, in place of their bound. `moved_queries` has a sharper one, for one user.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy
from scipy.special import log_ndtr

from evolvingdp.core import checks
from evolvingdp.sparse_vector.privacy import Array, check_privacy, least_scale

_POSITIONS = np.linspace(-9.0, 12.0, 841)  # of the threshold above the sum, in scales; beyond it answers are too rare
_BETWEEN = 1.005  # what a price may be higher between two positions
_STEEP = 4.0  # order / scale: up to here the dearest yes lies within the positions
ALL = math.inf  # reports: any number of them, all answers are paid as queries


@lru_cache(maxsize=64)
def _logarithms(scale: float) -> tuple[Array, Array, Array, Array]:
    """For a query that moves up (row 0), and down: probabilities of yes and no, and the logarithms of their ratios."""
    here, there = ((log_ndtr(-z), log_ndtr(z)) for z in (_POSITIONS, _POSITIONS - 1 / scale))
    yes, no = (np.stack(pair) for pair in zip(here, there, strict=True))
    gain, loss = (np.stack([second - first, first - second]) for first, second in zip(here, there, strict=True))
    return np.exp(yes), np.exp(no), gain, loss


def _answers(order: float, scale: float, way: int | None) -> tuple[Array, Array] | None:
    """With e^-theta on each yes, 1 + price is the largest a e^-theta + b: a, b; None where `order` is too large."""
    if order > _STEEP * scale:
        return None
    yes, no, gain, loss = (one if way is None else one[way] for one in _logarithms(scale))
    return yes * np.exp(order * gain), no * np.expm1(order * loss) - yes


def _price(answers: tuple[Array, Array], theta: float) -> float:
    return math.log1p(max(0.0, _BETWEEN * float((answers[0] * math.exp(-theta) + answers[1]).max())))


def search_cost(order: float, scale: float, reports: float, moved: float, way: int | None = None) -> float:
    """(order - 1) times the divergence of all answers, for the best theta; of queries that move up (`way` 0), down (1), or
    either way, as the adversary likes."""
    answers = _answers(order, scale, way)
    alone = math.inf if answers is None else moved * _price(answers, 0.0)
    if math.isinf(reports) or answers is None:
        return alone
    best = scipy.optimize.minimize_scalar(
        lambda log: reports * math.exp(log) + moved * _price(answers, math.exp(log)),
        bounds=(math.log(order / scale**2) - 1, math.log(40 * order / scale**2) + 4),
        method="bounded",
        options={"xatol": 0.03},
    )
    return min(alone, float(best.fun))


@checks.plain
@lru_cache(maxsize=4096)
def smallest_gaussian_scale(epsilon: float, delta: float, reports: float, moved: float) -> float:
    """The least scale; `reports` = `ALL` for any number of yeses, as in a histogram in every step."""
    check_privacy(epsilon, delta)
    checks.positive(moved=moved)
    return smallest_joint(epsilon, delta, lambda order, scale: search_cost(order, scale, reports, moved))


def smallest_joint(epsilon: float, delta: float, cost: Callable[[float, float], float]) -> float:
    """The least scale at which mechanisms of this total `cost(order, scale)` are (epsilon, delta)-private, to 2e-3."""

    def excess(scale: float) -> float:
        def bound(log_excess: float) -> float:
            order = 1 + math.exp(log_excess)
            spent = cost(order, scale)
            return min(1e6, _converted(spent / (order - 1), order, delta)) if spent < math.inf else 1e6

        middle = math.log(2 * math.log(1 / delta) / epsilon)
        best = scipy.optimize.minimize_scalar(
            bound, bounds=(middle - 3, middle + 2.5), method="bounded", options={"xatol": 0.02}
        )
        return float(best.fun) - epsilon

    return least_scale(excess, 7.0, 1e-3)


def joint_delta(epsilon: float, cost: Callable[[float], float]) -> float:
    """The delta at `epsilon` of mechanisms of this total `cost(order)`, an upper bound; `_converted` solved for it."""

    def bound(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        spent = cost(order) + (order - 1) * (math.log1p(-1 / order) - epsilon) - math.log(order)
        return min(1e6, spent)

    tried = np.linspace(-4.0, 9.0, 40)
    near = float(tried[np.argmin([bound(one) for one in tried])])
    best = scipy.optimize.minimize_scalar(bound, bounds=(near - 0.4, near + 0.4), method="bounded", options={"xatol": 1e-3})
    return math.exp(min(0.0, float(best.fun)))


def _converted(divergence: float, order: float, delta: float) -> float:
    """The epsilon at `delta`, by Proposition 12 of Canonne, Kamath and Steinke (2020)."""
    return max(0.0, divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1))
