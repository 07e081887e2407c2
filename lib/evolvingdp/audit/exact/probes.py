"""Generators whose draws are chosen: what a mechanism's own sampler asks for, and what the mechanism makes of the answer.

A `Chosen` is handed to a mechanism instead of a generator. It notes law and scale of each block of noise as the sampler
hands them over, and moves the noise by what an audit wants to hide. `discrete_law` answers the integer draws of
`core.noise.DiscreteLaplace` in all ways, and so has the law of what that draws without its formula; `masses_of` does that
for a few numbers of a law of any scale.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.audit.exact.draws import law_of
from evolvingdp.core import noise
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace

Array = NDArray[np.float64]
LAPLACE, NORMAL = "laplace", "normal"
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


class Drawn(NamedTuple):
    """What a sampler asks for: density or mass ~ exp(-|z| / scale), or N(0, scale^2)."""

    law: str
    scale: float


class Chosen:
    """Noise of `rng`, or 0 without one; block k is moved by `moved[k]`, a sequence that may be shorter than the block.

    `asked` has an item a block. `children` are those of `spawn`, and child i is moved by `moved[i]`.
    """

    def __init__(self, rng: np.random.Generator | None = None, moved: Sequence[Any] = ()) -> None:
        self.asked: list[Drawn] = []
        self.children: list[Chosen] = []
        self._rng, self._moved, self._steps = rng, moved, Steps(0, 0, False)

    def spawn(self, count: int) -> list[Chosen]:
        own = [None] * count if self._rng is None else self._rng.spawn(count)
        moved = [*self._moved, *[()] * (count - len(self._moved))]
        self.children = [Chosen(rng, part) for rng, part in zip(own, moved, strict=True)]
        return self.children

    def random(self) -> float:
        return 0.0  # the place of a median: the first bin, whatever the data

    def laplace(self, loc: float, scale: float, size: int | None = None) -> Any:
        return loc + (self._block(LAPLACE, scale, 1)[0] if size is None else self._block(LAPLACE, scale, size))

    def normal(self, loc: float, scale: float, size: int) -> Array:
        return loc + self._block(NORMAL, scale, size)

    def integers(self, low: int, high: int | None = None, size: int = 1) -> Any:
        """The steps of the discrete sampler, answered so that it draws the whole numbers next to this block."""
        if high is not None and self._steps.sized != 1:  # the first step of a block; the signs are the second
            wanted = np.rint(self._block(LAPLACE, high / noise._GRID, size)).astype(np.int64)
            whole, rest = np.divmod(np.abs(wanted) * noise._GRID, high)
            self._steps = Steps(rest, whole, wanted < 0)
        return self._steps.integers(low, high, size)

    def _block(self, law: str, scale: float, size: int) -> Array:
        block = np.zeros(size) if self._rng is None else getattr(self._rng, law)(0.0, scale, size)
        if len(self.asked) < len(self._moved):
            part = np.asarray(self._moved[len(self.asked)], dtype=float)
            block[: len(part)] += part
        self.asked.append(Drawn(law, float(scale)))
        return block


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
