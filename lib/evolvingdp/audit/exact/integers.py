"""Laws of integers that are drawn by comparing integers, without their formulas: all that a sampler may draw is answered.

`laplace_law` has masses of what `core.noise.DiscreteLaplace` draws, `gaussian_law` of `DiscreteGaussian`, both from the
shipped attempts; the law of `core.noise.IntegerNoise` is that of pairs of such numbers.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.draws import law_of, replaced
from evolvingdp.audit.exact.laws import pair_epsilon
from evolvingdp.core import noise
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise
from evolvingdp.core.seeds import stream

Array = NDArray[np.float64]
_MOST = 20  # comparisons are followed; it takes more with a probability of 1 / 20!


class _Answers:
    """Answers with which attempts have these rests, all of them accepted or none, this many whole scales, and this sign;
    `chances`: of these answers, for each attempt."""

    def __init__(
        self, scale: int, rest: NDArray[np.int64], whole: NDArray[np.int64], negative: bool, accepted: bool
    ) -> None:
        self._drawn = {scale: rest, 2: np.full(len(rest), int(negative))}
        self._whole, self._accepted, self._turn = whole, accepted, 0
        self._happens = noise._happens  # as it is shipped
        self.chances = np.ones(len(whole))

    def integers(self, low: int, high: int, size: int) -> NDArray[np.int64]:
        if low or size not in (0, len(self._whole)):
            raise AssertionError(f"an attempt must draw one rest and one sign, got {low}, {high}, {size}")
        return self._drawn[high][:size].copy()

    def happens(self, numerator: NDArray[np.int64], denominator: int, _: Any) -> NDArray[np.bool_]:
        """Of the rests, and then of one whole scale after the other."""
        asked = np.flatnonzero(self._whole >= self._turn - 1) if self._turn else np.arange(len(self._whole))
        yes = self._whole[asked] >= self._turn if self._turn else np.full(len(asked), self._accepted)
        kinds, which = np.unique(numerator, return_inverse=True)
        likely = event_law(self._happens, tuple(kinds.tolist()), denominator)[which]
        self.chances[asked] *= np.where(yes, likely, 1 - likely)
        self._turn += 1
        return yes


class _Turns:
    """A generator that answers comparisons with uniform integers: so often "yes", then "no", for all events alike."""

    def __init__(self, yes: int) -> None:
        self._left, self._high = yes, 1
        self.probability: Any = 1.0  # of these answers

    def integers(self, high: int, size: int) -> _Turns:
        self._high = high
        return self

    def __lt__(self, numerator: Any) -> NDArray[np.bool_]:
        below = np.minimum(numerator / self._high, 1.0)
        yes, self._left = self._left > 0, self._left - 1
        self.probability = self.probability * (below if yes else 1 - below)
        return np.full(len(numerator), yes)


@functools.lru_cache(maxsize=1 << 10)
def event_law(happens: Any, numerators: tuple[int, ...], denominator: int) -> Array:
    """How probable the events of `core.noise` are: the sum over all answers to their comparisons."""
    each = map(_Turns, range(_MOST))
    return sum((happens(np.array(numerators), denominator, turns) * turns.probability for turns in each), np.zeros(1))


def laplace_law(law: DiscreteLaplace, sizes: Sequence[int]) -> dict[int, float]:
    """Probabilities of numbers of these `sizes`, of either sign, in what `law` draws, up to one factor: of all rests and
    whole scales from which they are made."""
    masses, scale = defaultdict[int, float](float), law._numerator
    for size, negative, accepted in itertools.product(sizes, (False, True), (False, True)):
        whole, rest = np.divmod(size * noise._GRID + np.arange(noise._GRID), scale)
        answers: Any = _Answers(scale, rest, whole, negative, accepted)
        with replaced((noise, "_happens", answers.happens)):
            drawn = law._attempts(len(rest), answers)
        if len(drawn) != (len(rest) if accepted and (size or not negative) else 0):
            raise AssertionError("an attempt whose rest, or whose zero, is rejected must leave nothing")
        for number, chance in zip(drawn.tolist(), answers.chances if len(drawn) else (), strict=True):
            masses[number] += float(chance)
    return dict(sorted(masses.items()))


def gaussian_law(law: DiscreteGaussian, numbers: Sequence[int]) -> dict[int, float]:
    """Masses of `numbers` in what `law.draw` draws, up to one factor: those of the discrete Laplace draw that it asks for,
    each times the chance that its attempt is accepted, all answers to the comparisons followed."""
    scales = set[float]()

    def accepted(number: int) -> float:
        def drawn(own: DiscreteLaplace, size: int, rng: Any) -> NDArray[np.int64]:
            scales.add(own.scale)
            return np.full(size, number)

        def happens(numerator: NDArray[np.int64], denominator: int, rng: Any) -> NDArray[np.bool_]:
            each = np.exp(-numerator / denominator).tolist()  # as `event_law` finds
            return np.array([rng.choose([one, 1 - one]) == 0 for one in each], dtype=bool)

        with replaced((DiscreteLaplace, "draw", drawn), (noise, "_happens", happens)):
            return law_of(lambda rng: len(law._attempts(1, rng))).get(1, 0.0)

    chances = {number: accepted(number) for number in numbers}
    (scale,) = scales
    return {number: chance * math.exp(-abs(number) / scale) for number, chance in chances.items()}


def laplace_share() -> float:
    """The largest log ratio of numbers over their distance by the scale: next to each other; of large scales, on a grid of
    half the scale and around its multiples, up to the largest scale."""
    worst = 0.0
    for scale in (0.3, 3.0, 1000.0, 2.0**30 / 3, 2.0**46):
        near, half = max(1, int(scale) // 8), int(scale) // 2
        sizes = range(4) if scale < 10 else [0, *(k * half + off for k in range(1, 8) for off in (-near, near))]
        law = laplace_law(DiscreteLaplace(scale), tuple(sizes))
        gaps = np.diff(list(law)).astype(float)
        worst = max(worst, float((np.abs(np.diff(np.log(list(law.values())))) * scale / gaps).max()))
    return worst


def gaussian_share(delta: float) -> float:
    """The epsilon of numbers that differ by 1, at most, over that of masses exp(-z^2 / 2 s^2), at scales below and above 1;
    of large scales, masses near them."""
    worst = 0.0
    for scale in (0.3, 0.7, 2.5):
        numbers = np.arange(-math.ceil(9 * scale), math.ceil(9 * scale) + 1)
        printed = np.exp(-((numbers / scale) ** 2) / 2)
        drawn = np.array(list(gaussian_law(DiscreteGaussian(scale), numbers.tolist()).values()))
        found, promised = (
            pair_epsilon([np.append(law, 0) / law.sum(), np.append(0, law) / law.sum()], delta) for law in (drawn, printed)
        )
        worst = max(worst, found / promised)
    for scale in (2.0**16, 2.0**25):
        numbers = np.rint(scale * np.array([0, 0.5, -1, 2, -4])).astype(np.int64)
        law = gaussian_law(DiscreteGaussian(scale), numbers.tolist())
        if not np.allclose([law[number] / law[0] for number in law], np.exp(-((numbers / scale) ** 2) / 2)):
            raise AssertionError("a discrete Gaussian draw of a large scale must have its law")
    return worst


class _Pairs:
    """Stands for a discrete Laplace law: draws, then draws that are not negative, all pairs of such numbers at once."""

    def __init__(self, law: dict[int, float]) -> None:
        numbers, masses = np.array(list(law)), np.array(list(law.values()))
        held = numbers >= 0
        self._left = [np.tile(numbers[held], len(numbers)), np.repeat(numbers, held.sum())]
        self.chances = np.outer(masses / masses.sum(), masses[held] / masses[held].sum()).ravel()

    def draw(self, size: int, rng: Any) -> NDArray[np.int64]:
        return np.resize(self._left.pop(), size)  # of more than there are pairs the first are taken


def sampled_as_stated(noise: IntegerNoise, reach: int) -> bool:
    """Whether `draw`, of integers up to `reach`, has the law that `sf` and `cdf` state."""
    own, pairs, places = replace(noise), _Pairs(laplace_law(noise.law, range(reach + 1))), np.arange(-4, 5)
    vars(own)["law"] = pairs
    numbers = own.draw(len(pairs.chances), stream(0, "integers"))  # of which nothing is asked
    above, stated = [pairs.chances[numbers >= place].sum() for place in places], noise.sf(places)
    return bool(np.allclose(above, stated, rtol=1e-6, atol=1e-9) and np.allclose(1 - stated, noise.cdf(places), atol=1e-9))


def limited_loss(noise: IntegerNoise) -> float:
    """How far a yes, or a no, at any threshold gets likelier when the sum moves by 1, but for what is `revealed`."""
    numbers = np.arange(-40, noise.limit)
    upper, lower = noise.sf(numbers), noise.sf(numbers + 1)
    more = upper > noise.revealed * (1 + 1e-9)  # rounding
    told = np.log((upper[more] - noise.revealed) / np.maximum(lower[more], 1e-300))
    return float(max(told.max(), np.log(noise.cdf(numbers + 1) / noise.cdf(numbers)).max()))
