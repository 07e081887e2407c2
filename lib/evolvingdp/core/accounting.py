"""What many reports cost together: basic, advanced and optimal composition of randomized response; Gaussian privacy.

`basic`, `advanced` and `optimal` return the epsilon of one report such that `n_reports` reports of one user, each a
function of other data of that user, satisfy the total guarantee: pure `epsilon` for basic composition, (epsilon, delta) for
the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import scipy
from scipy.special import expit, log_ndtr, ndtr

from evolvingdp.core import checks
from evolvingdp.core.sampling import binomial_sf

_LEAST = math.ulp(0.0)  # a delta that is not 0 is not rounded to it, which would promise pure privacy
_FEW, _MANY = 500, 20_000  # reports up to which all outcomes are summed, and beyond which sums are rounded up


@checks.plain
def basic(epsilon: float, n_reports: int) -> float:
    """epsilon / n_reports: pure differential privacy."""
    checks.positive(epsilon=epsilon)
    checks.integer_at_least(1, n_reports=n_reports)
    return epsilon / n_reports


@checks.plain
def advanced(epsilon: float, delta: float, n_reports: int) -> float:
    """Dwork, Rothblum and Vadhan (2010): epsilon = e sqrt(2 k ln(1/delta)) + k e (exp(e) - 1), solved for e.

    Never less than `basic`, which holds as well.
    """
    _check(epsilon, delta, n_reports)

    def excess(one: float) -> float:
        return one * math.sqrt(2 * n_reports * math.log(1 / delta)) + n_reports * one * math.expm1(one) - epsilon

    return max(basic(epsilon, n_reports), _root(excess))


@checks.plain
def optimal(epsilon: float, delta: float, n_reports: int) -> float:
    """The largest epsilon of one report that `delta_of_reports` allows: no analysis of k reports can do better."""
    _check(epsilon, delta, n_reports)
    return _optimal(epsilon, delta, n_reports)


@cache  # every run of an experiment asks it again
def _optimal(epsilon: float, delta: float, n_reports: int) -> float:
    def excess(one: float) -> float:
        return delta_of_reports(one, epsilon, n_reports) - delta

    return _root(excess)


def _root(increasing: Callable[[float], float]) -> float:
    """The end of where `increasing` is at most 0, between 0 and 700 (e^700 is the largest power that is a number)."""
    high = 1.0
    while increasing(high) < 0 and high < 700:
        high = min(2 * high, 700.0)
    if increasing(high) < 0:
        return high
    root = float(scipy.optimize.brentq(increasing, 1e-300, high, xtol=1e-15, rtol=1e-13))
    while increasing(root) > 0:  # the finder may end a little beyond
        root *= 1 - 1e-13
    return root


@checks.plain
def together(epsilon: float, delta: float, alike: int, n_reports: int = 1) -> tuple[float, float]:
    """What (epsilon, delta) of each says of `n_reports` times `alike` of them.

    Those that are alike are a group, whose delta is (e^(r epsilon) - 1) / (e^epsilon - 1) times that of one for r of them;
    groups compose.  A delta of 1 says nothing.
    """
    checks.positive(epsilon=epsilon)
    checks.integer_at_least(1, alike=alike, n_reports=n_reports)
    if delta:
        checks.probability(delta=delta)
    grown = (alike - 1) * epsilon + math.log(math.expm1(-alike * epsilon) / math.expm1(-epsilon))  # the group's logarithm
    return alike * n_reports * epsilon, delta and math.exp(min(0.0, math.log(n_reports * delta) + grown))


@checks.plain
def delta_of_reports(epsilon_of_one: float, epsilon: float, n_reports: int) -> float:
    """The exact delta at `epsilon` of `n_reports` randomized responses (Kairouz, Oh and Viswanath 2015).

    The privacy loss of j truthful-looking among k reports is (2j - k) e, binomially distributed; randomized response is
    the worst of all mechanisms with that epsilon. Beyond 500 reports the outcomes within 13 standard deviations are summed,
    and 1e-30 is added for the others.
    """
    checks.positive(epsilon_of_one=epsilon_of_one, epsilon=epsilon)
    checks.integer_at_least(1, n_reports=n_reports)
    keep, low, high = float(expit(epsilon_of_one)), 0, n_reports
    if n_reports > _FEW:
        mean, spread = n_reports * keep, 13 * math.sqrt(n_reports * keep * (1 - keep))
        low, high = math.floor(mean - spread), math.ceil(min(n_reports, mean + spread))
    truthful = np.arange(low, high + 1)
    gain = -np.expm1(np.minimum(0.0, epsilon - (2.0 * truthful - n_reports) * epsilon_of_one))
    found = float(binomial_sf(truthful - 1, n_reports, keep) @ np.diff(gain, prepend=0.0))  # it grows: parts are positive
    if epsilon >= n_reports * epsilon_of_one:
        return 0.0
    return max(found, _LEAST) if n_reports <= _FEW else (1 + 1e-7 * (n_reports > _MANY)) * found + 1e-30


@checks.plain
def delta_of_gaussian(mu: float, epsilon: float) -> float:
    """The exact delta at `epsilon` of Gaussian mechanisms whose mu (l2 sensitivity over scale) add up, squared, to mu^2.

    Balle and Wang (2018), Theorem 8; adaptive composition of Gaussian mechanisms is Gaussian (Dong, Roth and Su 2022).
    """
    checks.positive(mu=mu, epsilon=epsilon)
    return max(float(ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))), _LEAST)


@checks.plain
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu of Gaussian differential privacy that implies (epsilon, delta)."""
    _check(epsilon, delta, 1)
    return _root(lambda mu: delta_of_gaussian(mu, epsilon) - delta)


@checks.plain
def delta_of_concentrated(rho: float, epsilon: float) -> float:
    """A bound on the delta at `epsilon` of rho-zero-concentrated mechanisms (Canonne, Kamath and Steinke 2020, Cor. 13).

    The least over a > 1 of exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1); any a gives a bound.
    """
    checks.positive(rho=rho, epsilon=epsilon)

    # its logarithm is convex in a and falls at the first of these; the slope is concave, so that no step of Newton's passes
    # the least
    excess, step = min(max(1e-9, (epsilon / rho - 1) / 2), 1e9), 1.0
    while step > 1e-9 * excess:
        slope = rho * (1 + 2 * excess) - epsilon - math.log1p(1 / excess)
        step = -slope / (2 * rho + 1 / (excess * (1 + excess)))
        excess += max(0.0, step)
    order = 1 + excess
    log_delta = excess * (order * rho - epsilon) - order * math.log1p(1 / excess) - math.log(excess)
    return max(math.exp(min(log_delta, 0.0)), _LEAST)


@checks.plain
def concentrated_rho(epsilon: float, delta: float) -> float:
    """The largest rho of zero-concentrated privacy that is known to imply (epsilon, delta)."""
    _check(epsilon, delta, 1)
    return _root(lambda rho: delta_of_concentrated(rho, epsilon) - delta)


def _check(epsilon: float, delta: float, n_reports: int) -> None:
    checks.positive(epsilon=epsilon, delta=delta)
    checks.integer_at_least(1, n_reports=n_reports)
    if not delta < 1:
        raise ValueError(f"delta must be < 1, got {delta!r}")
