"""Laws of what is told step by step, enumerated from the library's own steps where what they draw are integers, or choices.

A step is forced to each answer that may come next, and its probability is read from the noise's distribution function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.probes import discrete_law
from evolvingdp.sparse_vector.integer_noise import IntegerNoise

Array = NDArray[np.float64]


def _transcripts(
    branches: Callable[[Any, tuple[Any, ...]], Iterable[tuple[Any, float, Any]]],
    state: Any,
    probability: float = 1.0,
    so_far: tuple[Any, ...] = (),
) -> Iterator[tuple[tuple[Any, ...], float]]:
    """All sequences of answers, with probabilities: `branches(state, so_far)` has (answer, its probability, state) of each
    answer that may come next, and is empty at the end."""
    following = list(branches(state, so_far))
    for answer, share, after in following:
        yield from _transcripts(branches, after, probability * share, (*so_far, answer))
    if not following:
        yield so_far, probability


def _as_rows(laws: Sequence[dict[Any, float]]) -> Array:
    outcomes = sorted(set().union(*laws), key=repr)
    return np.array([[law.get(outcome, 0.0) for outcome in outcomes] for law in laws])


class Fixed:
    """Stands for noise that is this number, and is drawn once."""

    def __init__(self, value: float) -> None:
        self.value, self._drawn = value, False

    def draw(self, rng: Any) -> float:
        if self._drawn:
            raise AssertionError("a step must have one draw")
        self._drawn = True
        return self.value


class _Pairs:
    """Stands for a discrete Laplace law: draws, then draws that are not negative, all pairs of such numbers at once."""

    def __init__(self, law: dict[int, float]) -> None:
        (first, chances), (second, others) = _normed(law), _normed({one: mass for one, mass in law.items() if one >= 0})
        self._left = [np.tile(second, len(first)), np.repeat(first, len(second))]
        self.chances = np.outer(chances, others).ravel()

    def draw(self, size: int, rng: Any) -> NDArray[np.int64]:
        return np.resize(self._left.pop(), size)  # of more than there are pairs the first are taken


def _normed(law: dict[int, float]) -> tuple[list[int], list[float]]:
    masses = np.array(list(law.values()))
    return list(law), (masses / masses.sum()).tolist()


@cache
def _sampled(noise: IntegerNoise, reach: int) -> dict[Any, float]:
    """The law of `sample`, of draws up to `reach` of its grid."""
    own, pairs, nothing = replace(noise), _Pairs(discrete_law(noise._law, reach)), cast(Any, None)
    vars(own)["_law"] = pairs
    numbers, places = np.unique(own.sample(len(pairs.chances), nothing), return_inverse=True)
    return dict(zip(numbers.tolist(), np.bincount(places, pairs.chances).tolist(), strict=True))


def sampled_as_stated(noise: IntegerNoise, reach: int) -> bool:
    """Whether `sample` has the law that `sf` and `cdf` state."""
    mass, grid = _sampled(noise, reach), noise.grid
    places = np.arange(-4 * grid, 4 * grid + 1) / grid
    above = [math.fsum(share for number, share in mass.items() if number >= place) for place in places]
    stated = noise.sf(places)
    return bool(np.allclose(above, stated, rtol=1e-6, atol=1e-9) and np.allclose(1 - stated, noise.cdf(places), atol=1e-9))


def limited_loss(noise: IntegerNoise, reach: int) -> float:
    """How far a yes, or a no, at any threshold gets likelier when the sum moves by 1, but for what is `revealed`: from the
    draws of the sampler, all that `reach` numbers can be."""
    mass = _sampled(noise, reach)
    yes = np.cumsum([mass.get(number, 0.0) for number in range(reach, -reach, -1)])[::-1]  # Pr[noise >= number]
    near = slice(reach - reach // 5, -1)  # what is out of reach would be felt far below
    lower, upper = yes[1:][near], yes[:-1][near]
    more = upper > noise.revealed * (1 + 1e-9)  # rounding
    told = np.log((upper[more] - noise.revealed) / np.maximum(lower[more], 1e-300))
    return float(max(told.max(), np.log((1 - lower) / (1 - upper)).max()))
