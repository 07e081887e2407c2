"""Laws of integers that are drawn by comparing integers, without their formulas: all that a sampler may draw is answered.

`discrete_law` has the law of what `core.noise.DiscreteLaplace` draws, `masses_of` a few numbers of it at any scale,
`gaussian_law` that of `DiscreteGaussian`, from the shipped `draw`; the law of `sparse_vector.noise.IntegerNoise` is
that of pairs of such numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.audit.exact.draws import law_of
from evolvingdp.audit.exact.laws import pair_epsilon
from evolvingdp.core import noise
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace
from evolvingdp.sparse_vector.noise import IntegerNoise

Array = NDArray[np.float64]
_MOST = 20  # comparisons are followed; it takes more with a probability of 1 / 20!


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner` has this `value` for as long as a probe runs."""
    kept = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


class Steps:
    """Answers with which the discrete sampler's attempts have these rests, numbers of whole scales, and signs."""

    def __init__(self, rest: ArrayLike, whole: ArrayLike, negative: ArrayLike) -> None:
        self.asked: list[int] = []
        self._sized = (np.asarray(rest), np.asarray(negative, dtype=np.int64))
        self._whole = np.asarray(whole)
        self._turn, self._again = 0, False

    @property
    def sized(self) -> int:
        """How many arrays of uniform numbers have been drawn."""
        return len(self.asked)

    def integers(self, low: int, high: int | None = None, size: int = 1) -> Any:
        if high is None:
            return self  # to be compared
        self.asked.append(int(high))
        if self.sized == 1:
            self._whole = np.broadcast_to(self._whole, size)
        return np.broadcast_to(self._sized[self.sized - 1], size).copy()

    def __lt__(self, numerator: Any) -> NDArray[np.bool_]:
        """Every rest is accepted, then `whole` events happen and one does not: "no" at once, or "yes" and then "no"."""
        if self._again:
            self._again = False
            return np.zeros(len(numerator), dtype=bool)
        goes_on = self._whole >= self._turn
        if self._turn:
            self._whole = self._whole[goes_on]
        self._turn += 1
        self._again = not goes_on.all()
        return ~goes_on


class _Rejected:
    """Answers with which all rests of the first attempts are rejected; those of the second are accepted."""

    def __init__(self) -> None:
        self.batches, self._rounds, self._after = 0, 0, Steps(0, 0, False)

    def integers(self, low: int, high: int | None = None, size: int = 1) -> Any:
        if high is None and self.batches < 3:
            return self  # to be compared
        self.batches += high is not None
        if self.batches < 3:  # rests of 1, then signs
            return np.full(size, self.batches == 1, dtype=np.int64)
        return self._after.integers(low, high, size)

    def __lt__(self, numerator: Any) -> NDArray[np.bool_]:
        self._rounds += 1
        return np.full(len(numerator), self._rounds % 2 == 1)


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


def event_law(numerator: NDArray[np.int64], denominator: int) -> Array:
    """How probable the events of `core.noise` are: the sum over all answers to their comparisons."""
    happens = np.zeros(len(numerator))
    for turns in map(_Turns, range(_MOST)):
        happens += noise._happens(numerator, denominator, turns) * turns.probability  # type: ignore[arg-type]
    return happens


@functools.cache
def discrete_law(law: DiscreteLaplace, largest: int) -> dict[int, float]:
    """Probabilities of -`largest` to `largest` in what `law.draw` draws, up to one factor: all its integers enumerated."""
    rejected, scale = _Rejected(), _uniform_below(law)
    law.draw(1, rejected)  # type: ignore[arg-type]
    if rejected.batches < 4:
        raise AssertionError("a draw must be attempted again where all rests are rejected")
    wholes = range(math.ceil((largest + 1) * noise._GRID / scale))
    choices = (choice.ravel() for choice in np.meshgrid(range(scale), wholes, (0, 1), indexing="ij"))
    return _masses(law, range(-largest, largest + 1), *choices)


def masses_of(law: DiscreteLaplace, numbers: Sequence[int]) -> dict[int, float]:
    """The same of a few `numbers`, however large the scale is: of the integers from which they are drawn, if they are."""
    held = np.repeat(numbers, noise._GRID)
    totals = np.abs(held) * noise._GRID + np.tile(np.arange(noise._GRID), len(numbers))
    whole, rest = np.divmod(totals, _uniform_below(law))
    return _masses(law, numbers, rest, whole, (held < 0).astype(np.int64))


def _uniform_below(law: DiscreteLaplace) -> int:
    """Below what the rests are uniform."""
    first = Steps(0, 0, False)
    law.draw(1, first)  # type: ignore[arg-type]
    return first.asked[0]


def _masses(law: DiscreteLaplace, numbers: Sequence[int], rest: Any, whole: Any, negative: Any) -> dict[int, float]:
    """What these attempts add to the probabilities of `numbers`, times the scale: each is as probable as the events that the
    sampler asks for, of its rest and then of one whole scale after the other."""
    events: list[tuple[NDArray[np.int64], int]] = []
    happens, far = noise._happens, int(whole.max()) + 2 + 2 * noise._GRID // _uniform_below(law)

    def asked(numerator: NDArray[np.int64], denominator: int, rng: Any) -> NDArray[np.bool_]:
        events.append((np.array(numerator), denominator))
        return happens(numerator, denominator, rng)

    with replaced(noise, "_happens", asked):
        accepted, drawn = _drawn(law, rest, whole, negative, far)
    (rests, scale), *wholes = events
    kinds = {
        (value, below) for top, below in wholes for value in (top[:1] if (top == top[0]).all() else np.unique(top)).tolist()
    }
    (one,) = {float(event_law(np.array([value]), below)[0]) for value, below in kinds}
    masses = (event_law(rests[: 2 * len(rest) : 2], scale) * one**whole * (1 - one) / 2)[accepted]
    return {number: float(masses[drawn == number].sum()) for number in numbers}


def _drawn(
    law: DiscreteLaplace, rest: Any, whole: Any, negative: Any, far: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which of these attempts the sampler accepts, and what it makes of those.

    After each attempt it is offered another, of `far` scales, which it accepts: between two of those there is one number
    or, where an attempt is rejected, none.
    """
    size = 2 * len(rest)
    offered = np.zeros((3, 5 * size // 3 + 8), dtype=np.int64)  # so many attempts for that many draws
    offered[1] = far
    offered[:, :size:2] = rest, whole, negative
    drawn = law.draw(size, Steps(*offered))  # type: ignore[arg-type]
    after = np.flatnonzero(drawn == drawn.max())[: len(rest)]
    accepted = np.diff(after, prepend=-1) == 2
    return accepted, drawn[after[accepted] - 1]


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

        with replaced(DiscreteLaplace, "draw", drawn), replaced(noise, "_happens", happens):
            return law_of(lambda rng: len(law._attempts(1, rng))).get(1, 0.0)

    chances = {number: accepted(number) for number in numbers}
    (scale,) = scales
    return {number: chance * math.exp(-abs(number) / scale) for number, chance in chances.items()}


def laplace_loss(law: DiscreteLaplace, largest: int = 2) -> float:
    """The largest log ratio of neighbouring numbers up to `largest`; from there on the law goes on in the same way."""
    masses = discrete_law(law, largest)
    return max(abs(math.log(masses[number] / masses[number + 1])) for number in range(-largest, largest))


def large_laplace_share() -> float:
    """The largest log ratio, over 1 / scale, of numbers on a grid of half the scale and around its multiples, up to the
    largest scale."""
    worst = 0.0
    for scale in (1000.0, 2.0**30 / 3, 2.0**46):
        near = int(scale) // 8
        numbers = [0, *sorted(k * int(scale) // 2 + off for k in range(1, 8) for off in (-near, near))]
        for sign in (1, -1):
            law = masses_of(DiscreteLaplace(scale), [sign * number for number in numbers])
            logs, gaps = -np.diff(np.log(list(law.values()))), np.diff(numbers)
            worst = max(worst, float((np.abs(logs) * scale / gaps).max()))
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
        (first, chances), (second, others) = _normed(law), _normed({one: mass for one, mass in law.items() if one >= 0})
        self._left = [np.tile(second, len(first)), np.repeat(first, len(second))]
        self.chances = np.outer(chances, others).ravel()

    def draw(self, size: int, rng: Any) -> NDArray[np.int64]:
        return np.resize(self._left.pop(), size)  # of more than there are pairs the first are taken


def _normed(law: dict[int, float]) -> tuple[list[int], list[float]]:
    masses = np.array(list(law.values()))
    return list(law), (masses / masses.sum()).tolist()


@functools.cache
def _sampled(noise: IntegerNoise, reach: int) -> dict[Any, float]:
    """The law of `draw`, of integers up to `reach`."""
    own, pairs, nothing = replace(noise), _Pairs(discrete_law(noise.law, reach)), cast(Any, None)
    vars(own)["law"] = pairs
    numbers, places = np.unique(own.draw(len(pairs.chances), nothing), return_inverse=True)
    return dict(zip(numbers.tolist(), np.bincount(places, pairs.chances).tolist(), strict=True))


def sampled_as_stated(noise: IntegerNoise, reach: int) -> bool:
    """Whether `draw` has the law that `sf` and `cdf` state."""
    mass, places = _sampled(noise, reach), np.arange(-4, 5)
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
