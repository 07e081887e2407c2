"""Exact loss of mechanisms with finitely many outputs: from the laws of their outputs, one for each neighbouring input.

A law is a mapping from outputs to probabilities, read from the object that samples; or laws are rows over the same outputs.
For neighbouring inputs with laws P, Q: the loss is max ln P(o)/Q(o), the smallest epsilon of pure differential privacy; its
delta at epsilon the hockey-stick divergence, the sum of max(0, P(o) - e^epsilon Q(o)).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from evolvingdp.core import accounting

Law = Mapping[Any, float]
_SUM = 1e-9


def rows(laws: Iterable[Law]) -> NDArray[np.float64]:
    """`laws` as rows over all outputs.  Raises ValueError unless each holds probabilities >= 0 that sum to 1."""
    every = list(laws)
    for law in every:
        total = math.fsum(law.values())
        if not abs(total - 1) <= _SUM or not min(law.values()) >= 0:
            raise ValueError(f"law must hold probabilities >= 0 that sum to 1, got a sum of {total!r}")
    places: dict[Any, int] = {}
    columns = [[places.setdefault(output, len(places)) for output in law] for law in every]
    table = np.zeros((len(every), len(places)))
    for row, law, own in zip(table, every, columns, strict=True):
        row[own] = list(law.values())
    return table


def worst_loss(laws: Iterable[Law]) -> float:
    """The largest log likelihood ratio between any two of `laws`; inf where only one of them can show an output."""
    table = rows(laws)
    most, least = table.max(axis=0), table.min(axis=0)
    with np.errstate(divide="ignore"):
        return float(np.log(most[most > 0] / least[most > 0]).max())


def worst_delta(laws: Iterable[Law], epsilon: float) -> float:
    """The largest hockey-stick divergence at `epsilon` between any two of `laws`, in both directions."""
    return max(deltas(pair, [epsilon])[0] for pair in itertools.combinations(rows(laws), 2))


def deltas(pair: ArrayLike, epsilons: Iterable[float]) -> list[float]:
    """The larger of both directions' delta at each epsilon, for two laws as rows over the same outputs."""
    one, other = np.asarray(pair, dtype=float)
    return [
        float(max(np.maximum(one - math.exp(e) * other, 0).sum(), np.maximum(other - math.exp(e) * one, 0).sum()))
        for e in epsilons
    ]


def epsilon_at(laws: Iterable[Law], delta: float) -> float:
    """The smallest epsilon at which `worst_delta` is at most `delta`; inf where none is."""
    if delta <= 0:
        return worst_loss(laws)
    return max(pair_epsilon(pair, delta) for pair in itertools.combinations(rows(laws), 2))


def pair_epsilon(pair: ArrayLike, delta: float) -> float:
    """The smallest epsilon at which `deltas` of two laws, rows over the same outputs, is at most `delta`; inf where none is.

    It is the largest ln((P(E) - delta) / Q(E)) over events E, and the largest is one of those that a likelihood ratio cuts
    off (Neyman and Pearson).
    """
    one, other = np.asarray(pair, dtype=float)
    worst = 0.0
    for p, q in ((one, other), (other, one)):
        order = np.argsort(np.arctan2(q, p))  # by falling p / q, which may be infinite
        above, below = np.cumsum(p[order]) - delta, np.cumsum(q[order])
        with np.errstate(divide="ignore"):
            worst = max(worst, float(np.log(above[above > 0] / below[above > 0]).max(initial=0.0)))
    return worst


def product(laws: Iterable[Law]) -> dict[tuple[Hashable, ...], float]:
    """The law of independent outputs together."""
    together: dict[tuple[Hashable, ...], float] = {(): 1.0}
    for law in laws:
        together = {(*seen, output): p * q for seen, p in together.items() for output, q in law.items()}
    return together


def gaussian_epsilon(mu_squared: float, delta: float) -> float:
    """The epsilon at `delta` of Gaussian mechanisms whose squared mu add up to this."""
    if mu_squared == math.inf:
        return math.inf
    return smallest_epsilon(lambda epsilon: accounting.delta_of_gaussian(math.sqrt(mu_squared), epsilon) - delta)


def composed_epsilon(one: float, pieces: int, delta: float) -> float:
    """The epsilon at `delta` of `pieces` mechanisms with a loss of `one` each, at worst."""
    return smallest_epsilon(lambda epsilon: accounting.delta_of_reports(one, epsilon, pieces) - delta)


def smallest_epsilon(falling: Callable[[float], float]) -> float:
    """Where a delta less what is allowed, as a function of epsilon, has fallen to 0; inf where it stays above."""
    low, high = 1e-12, 1.0
    if falling(low) <= 0:
        return 0.0
    while falling(high) > 0:
        high *= 2
        if high > 1e6:
            return math.inf
    return float(brentq(falling, low, high, xtol=1e-13, rtol=1e-13))
