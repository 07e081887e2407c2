"""Counts of prefixes, simulated: the noise of nodes that somebody holds, how many others pass, which, and how far."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.draws import Follower, frozen, law_of
from evolvingdp.audit.exact.laws import epsilon_at, rows
from evolvingdp.audit.exact.probes import discrete_law
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.heavy_hitters.trust.prefix_counts import PrefixCounts

_FAR = 3  # numbers that noise of a small scale hardly ever exceeds
_RARE = 1e-6


class _Lots:
    """A follower whose binomial numbers are `lucky`, noted with their laws, and which draws no letter twice."""

    def __init__(self, follow: Follower, lucky: int) -> None:
        self.asked: list[tuple[int, float]] = []
        self._follow, self._lucky, self._left = follow, lucky, list(range(1, 27))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._follow, name)

    def binomial(self, n: int, p: float) -> int:
        self.asked.append((int(n), float(p)))
        return self._lucky

    def integers(self, low: int, high: int, size: tuple[int, int], dtype: Any) -> NDArray[Any]:
        drawn = [self._left.pop(self.choose([1 / len(self._left)] * len(self._left))) for _ in range(size[0])]
        return np.array(drawn, dtype=dtype).reshape(size)


class _Whole(DiscreteLaplace):
    """Draws each number up to `_FAR` that the sampler draws, or with a `_Lots` that has lucky nodes 0."""

    def draw(self, size: int, rng: Any) -> NDArray[np.int64]:
        law = _law(self.scale)
        if rng._lucky:
            return np.zeros(size, dtype=np.int64)
        return np.array([list(law)[rng.choose(list(law.values()))] for _ in range(size)], dtype=np.int64)


@cache
def _law(scale: float) -> dict[int, float]:
    law = discrete_law(DiscreteLaplace(scale), _FAR)
    total = sum(law.values())
    return {number: mass / total for number, mass in law.items()}


@dataclass(frozen=True)
class _Followed(PrefixCounts):
    def noise(self, level: int) -> DiscreteLaplace:
        return _Whole(super().noise(level).scale)


def prefix_loss(settings: PrefixCounts, word: str, counts: tuple[int, int]) -> float:
    """What `simulate` tells, up to rare noise, of how many of two numbers of users hold a word of one letter.

    Raises AssertionError where its nodes have not the law of counts to which each server adds noise of its own.
    """
    made = _Followed(**{one.name: getattr(settings, one.name) for one in fields(settings)})
    leaves, own, cut = made.tree.encode([word]), _law(made.noise(0).scale), made.cut(0)
    sums: dict[int, float] = {0: 1.0}
    for _ in range(made.servers):
        together: dict[int, float] = {}
        for (one, p), (other, q) in itertools.product(sums.items(), own.items()):
            together[one + other] = together.get(one + other, 0.0) + p * q
        sums = together
    passing = {number: mass for number, mass in sums.items() if number >= cut}

    def simulated(held: int, lucky: int, follow: Any) -> Any:
        rng: Any = _Lots(follow, lucky)
        found = made.simulate(leaves, np.array([held]), rng).words
        ((n, p),) = rng.asked
        if n != 25 or not np.isclose(p, sum(passing.values()), rtol=1e-3):
            raise AssertionError("as many of the others must pass as noise lets")
        return sorted(zip(found.iloc[:, 0].tolist(), found.iloc[:, 1].tolist(), strict=True))

    def must(law: dict[Any, float], printed: dict[Any, float]) -> None:
        if np.abs(np.subtract(*rows([law, printed]))).sum() > _RARE:
            raise AssertionError("what is simulated must have the law of the search")

    shown = []
    for held in counts:
        shown.append(law_of(lambda rng, held=held: simulated(held, 0, rng)))  # type: ignore[misc]
        printed: dict[Any, float] = {}
        for number, mass in sums.items():
            told = frozen([(word, float(held + number))] if held + number >= cut else [])
            printed[told] = printed.get(told, 0.0) + mass
        must(shown[-1], printed)
    total = sum(passing.values())
    others = [chr(letter) for letter in range(ord("a"), ord("z") + 1) if chr(letter) != word]
    lone = {
        frozen(sorted([(word, float(counts[0])), (letter, float(number))])): mass / total / len(others)
        for letter, (number, mass) in itertools.product(others, passing.items())
    }
    must(law_of(lambda rng: simulated(counts[0], 1, rng)), lone)
    return epsilon_at(shown, _RARE)
