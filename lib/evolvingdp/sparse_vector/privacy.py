"""What ThresholdMonitor costs with Laplace noise: exactly for queries in {0, 1}, where integer noise attains the bound.

**Source.** Our analysis by waiting times, in place of the paper's Theorems 3.2 and 3.8; proofs are on the chapter's page. It
holds for noise whose tails change by a factor of e^(1 / scale) at most where the sum moves by 1. Queries in [0, 1] cost
what `reports` + 1 do, since the last report may overshoot.

**Units.** "replacement": one user's whole input is another one, in every step (Definition 4.3); "add-remove": one user is
there or not (Theorem 3.2). With replacement each of the two inputs has a counter of its own, so the loss is that of two
sequences (E-SV-2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, log_expit

from evolvingdp.core import checks
from evolvingdp.core.noise import DiscreteLaplace, Laplace

Array = NDArray[np.float64]

UNITS = ("replacement", "add-remove")
_WEAK = 1.0  # a scale to start from where epsilon is large: at a loss of 1 an answer all sums are short
_TAIL = 1e-40  # mass that the sums leave out; it is added to delta
_RAREST = 1e-300  # chance of a yes that is waited for
_RARE = 1e-12  # below it 1 less a chance rounds, and no waiting time fits
_HUGE = 1e12  # stands for an infinite epsilon where a minimum is searched
_CELLS = 1 << 17  # waiting times that fit one sum


class TooLongError(ValueError):
    """So little noise that the waiting times do not fit a sum."""


def check_privacy(epsilon: float, delta: float) -> None:
    checks.positive(epsilon=epsilon)
    checks.probability(delta=delta)


@checks.plain
def delta_of_epsilon(epsilon: float, scale: float, reports: float, unit: str = "replacement") -> float:
    """The delta at `epsilon` >= 0 of a ThresholdMonitor with outer noise Lap(`scale`), users deleted after `reports`.

    An upper bound for queries in {0, 1} and any number of adaptive rounds; `reports` >= 1 need not be whole (module).
    Absolute precision 1e-40, relative 1e-9.  Raises ValueError where noise is so small that the sum would not fit.
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be >= 0 and finite, got {epsilon!r}")
    checks.positive(scale=scale)
    _check_reports(reports)
    checks.one_of(UNITS, unit=unit)
    every = loss_distributions(scale, reports, unit)
    return max(excess_mass(epsilon, losses, law) for losses, law in every) + 4 * _TAIL


def loss_distributions(scale: float, reports: float, unit: str = "replacement") -> list[tuple[Array, Array]]:
    """Privacy losses (increasing, multiples of 1 / scale) and their probabilities, all but 4e-40: what composes.

    One pair for replacement, which is symmetric; for add-remove that of the user who is absent, and who is present.
    """
    loss = 1 / scale
    log_rare, log_likely = float(log_expit(-loss)), float(log_expit(loss))
    slow, slow_law = waiting_law(reports, log_rare, log_likely)
    quick, quick_law = waiting_law(reports, log_likely, log_rare)
    if unit == "add-remove":
        return [(loss * (slow - reports), slow_law), (loss * (reports - quick)[::-1], quick_law[::-1])]
    noes, law = _difference(slow, slow_law, quick, quick_law)
    return [(loss * noes, law)]


def _difference(slow: Array, slow_law: Array, quick: Array, quick_law: Array) -> tuple[Array, Array]:
    """Values and law of the difference of two independent waiting times."""
    law = np.convolve(slow_law, quick_law[::-1])
    return slow[0] - quick[-1] + np.arange(len(law)), law


def excess_mass(epsilon: float, losses: Array, law: Array) -> float:
    """The delta at `epsilon` of privacy `losses` with these probabilities."""
    above = losses > epsilon
    return float(np.sum(law[above] * -np.expm1(epsilon - losses[above])))


def _waits(reports: float, chance: float) -> tuple[float, float]:
    """Noes before that yes, but for `_TAIL` on each side: as `scipy.stats.nbinom`, whose module takes long to load."""
    mean = reports * (1 - chance) / chance

    def fewer(noes: float) -> float:
        return math.log(max(betainc(reports, noes + 1, chance), _RAREST) / _TAIL)

    def more(noes: float) -> float:
        return math.log(max(betainc(noes + 1, reports, 1 - chance), _RAREST) / _TAIL)

    most = mean + 1
    while more(most) > 0:
        most *= 2
    low = scipy.optimize.brentq(fewer, 0.0, mean) if fewer(0.0) < 0 else 0.0
    high = scipy.optimize.brentq(more, mean, most) if more(mean) > 0 else mean
    return math.ceil(low), math.ceil(high)


@lru_cache(maxsize=64)
def waiting_law(reports: float, log_yes: float, log_no: float) -> tuple[Array, Array]:
    """How many noes come before the yes number `reports`: consecutive values, and their probabilities.

    All but 1e-40 on each side.  Raises TooLongError where that is more than fits.
    """
    chance, loss = math.exp(log_yes), abs(log_yes - log_no)
    if not chance > _RAREST:
        raise TooLongError(f"scale must be larger: at loss {loss:.3g} a yes comes too rarely to be waited for")
    low, high = _waits(reports, chance) if chance > _RARE else (0.0, reports / chance)
    if high - low > _CELLS:
        raise TooLongError(
            f"scale must be larger, or reports smaller: the waiting time for {reports} reports at loss {loss:.3g} "
            f"spreads over {high - low:.0f} values, {_CELLS} fit"
        )
    noes = np.arange(max(0.0, low - 1), high + 2)
    log_law = gammaln(noes + reports) - gammaln(noes + 1) - gammaln(reports) + reports * log_yes + noes * log_no
    return noes, np.exp(log_law)


@checks.plain
def epsilon_of_delta(delta: float, scale: float, reports: float, unit: str = "replacement") -> float:
    """The smallest epsilon at which `delta_of_epsilon` is at most `delta`, which is at least 1e-30."""
    _check_delta(delta)
    return largest_epsilon(lambda epsilon: delta_of_epsilon(epsilon, scale, reports, unit) - delta)


def largest_epsilon(excess: Callable[[float], float]) -> float:
    """Where the falling function `excess` becomes negative, to 1e-12; 0 where it is so from the start."""
    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-12, rtol=1e-12))


@checks.plain
def smallest_scale(epsilon: float, delta: float, reports: float, unit: str = "replacement") -> float:
    """The smallest scale of the outer noise for which `delta_of_epsilon(epsilon)` is at most `delta`."""
    checks.positive(epsilon=epsilon)
    _check_delta(delta)
    _check_reports(reports)
    checks.one_of(UNITS, unit=unit)
    start = max(_WEAK, 64 * math.sqrt(reports) / epsilon)
    return least_scale(lambda scale: math.log(delta_of_epsilon(epsilon, scale, reports, unit) / delta), start)


def _check_delta(delta: float) -> None:
    checks.finite(delta=delta)
    if not 1e-30 <= delta < 1:
        raise ValueError(f"delta must lie in [1e-30, 1), got {delta!r}")


def _check_reports(reports: float) -> None:
    checks.positive(reports=reports)
    if reports < 1:
        raise ValueError(f"reports must be >= 1, got {reports!r}")


def least_scale(excess: Callable[[float], float], start: float, precise: float = 1e-13) -> float:
    """Where the falling function `excess` of a scale becomes negative, from above, to a relative `precise`.

    Where it cannot be computed below the start, for sums that are too long, it counts as positive: more noise.
    """

    @cache  # the search for a bracket has met its ends
    def at(log_scale: float) -> float:
        try:
            return min(excess(math.exp(log_scale)), _HUGE)
        except TooLongError:
            return _HUGE

    high = math.log(start)
    while excess(math.exp(high)) > 0:
        high += 1
    while at(high - 1) <= 0:  # from above: too little noise makes long sums
        high -= 1
    root = float(scipy.optimize.brentq(at, high - 1, high, xtol=precise))
    while at(root) > 0:
        root += precise
    return math.exp(root)


@checks.plain
def delta_attained(epsilon: float, noise: Laplace | DiscreteLaplace, reports: int, position: float) -> float:
    """What an explicit adversary needs at `epsilon` under replacement: a lower bound on the delta of the mechanism.

    It asks, again and again, a query that only the first of a user's two inputs meets, and one that only the second meets,
    where the others sum to the threshold less `position`, until each input has counted `reports`; fresh users keep the sum.
    The number of noes before is all that there is to know. Attained to 1e-40 by finitely many queries.
    """
    checks.integer_at_least(1, reports=reports)
    log_with, log_without = float(noise.log_sf(position - 1)), float(noise.log_sf(position))
    gain = float(noise.log_cdf(position) - noise.log_cdf(position - 1))  # of a no
    slow, quick = (waiting_law(reports, log, math.log(-math.expm1(log))) for log in (log_without, log_with))
    noes, law = _difference(*slow, *quick)
    return excess_mass(epsilon, gain * noes, law)


@checks.plain
def epsilon_attained(delta: float, noise: Laplace | DiscreteLaplace, reports: int) -> float:
    """The largest epsilon at which that adversary, at its best position, still needs more than `delta`."""

    def at(position: float) -> float:
        return largest_epsilon(lambda epsilon: delta_attained(epsilon, noise, reports, position) - delta)

    if isinstance(noise, DiscreteLaplace):
        return at(1)
    best = scipy.optimize.minimize_scalar(lambda z: -at(z), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-3})
    return max(-float(best.fun), at(0.5))
