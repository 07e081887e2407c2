"""Exact loss of mechanisms with finitely many outputs: from the laws of their outputs, one for each neighbouring input.

A law is a mapping from outputs to probabilities, read from the object that samples. For neighbouring inputs with laws P, Q:
`loss` is max ln P(o)/Q(o), the smallest epsilon of pure differential privacy; `delta` the hockey-stick divergence
sum of max(0, P(o) - e^epsilon Q(o)), the smallest delta at epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

Law = Mapping[Any, float]
_SUM = 1e-9


def check(law: Law) -> None:
    """Raise ValueError unless `law` is one: probabilities >= 0 that sum to 1."""
    total = math.fsum(law.values())
    if not abs(total - 1) <= _SUM or not all(mass >= 0 for mass in law.values()):
        raise ValueError(f"law must hold probabilities >= 0 that sum to 1, got a sum of {total!r}")


def loss(first: Law, second: Law) -> float:
    """The largest log likelihood ratio of `first` to `second`; inf where only `first` can show an output."""
    worst = 0.0
    for output, mass in first.items():
        if mass > 0:
            other = second.get(output, 0.0)
            worst = max(worst, math.log(mass / other) if other > 0 else math.inf)
    return worst


def worst_loss(laws: Iterable[Law]) -> float:
    """The largest `loss` between any two of `laws`, in both directions."""
    every = list(laws)
    for law in every:
        check(law)
    return max((loss(one, other) for one, other in itertools.permutations(every, 2)), default=0.0)


def delta(first: Law, second: Law, epsilon: float) -> float:
    """The hockey-stick divergence of `first` from `second` at `epsilon`."""
    return math.fsum(max(0.0, mass - math.exp(epsilon) * second.get(output, 0.0)) for output, mass in first.items())


def worst_delta(laws: Iterable[Law], epsilon: float) -> float:
    """The largest `delta` between any two of `laws`, in both directions."""
    every = list(laws)
    for law in every:
        check(law)
    return max((delta(one, other, epsilon) for one, other in itertools.permutations(every, 2)), default=0.0)


def epsilon_at(laws: Sequence[Law], delta_allowed: float) -> float:
    """The smallest epsilon at which `worst_delta` is at most `delta_allowed`; inf where none is."""
    if delta_allowed <= 0:
        return worst_loss(laws)
    if worst_delta(laws, 0.0) <= delta_allowed:
        return 0.0
    if worst_delta(laws, 700.0) > delta_allowed:
        return math.inf
    return float(brentq(lambda epsilon: worst_delta(laws, epsilon) - delta_allowed, 0.0, 700.0, xtol=1e-12))


def product(laws: Iterable[Law]) -> dict[tuple[Hashable, ...], float]:
    """The law of independent outputs together."""
    together: dict[tuple[Hashable, ...], float] = {(): 1.0}
    for law in laws:
        together = {(*seen, output): p * q for seen, p in together.items() for output, q in law.items()}
    return together


def deltas(pair: ArrayLike, epsilons: Iterable[float]) -> list[float]:
    """The larger of both directions' delta at each epsilon, for two laws as rows over the same outputs."""
    one, other = np.asarray(pair, dtype=float)
    return [
        float(max(np.maximum(one - math.exp(e) * other, 0).sum(), np.maximum(other - math.exp(e) * one, 0).sum()))
        for e in epsilons
    ]
