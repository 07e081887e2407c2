"""The law of what shipped code returns, by following every decision that its draws can lead to.

Code is handed a `Follower` instead of a generator. What it draws is not a number but an `Uncertain` one, of which only its
law is known; where the code compares it, both answers are followed, each with its exact probability given what earlier
answers have told. `law_of` runs the code once for each sequence of answers. Nothing is sampled and nothing is put on a grid,
with one exception: where code makes a float of a continuous draw (the noise of a threshold that it keeps), one of its cells
between integers is followed, each with its exact probability. Shifts by an integer then cost what they cost in truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import binom

_MOST_WAYS = 1 << 10  # of one draw
_REACH, _CELLS = 25.0, 500.0  # scales, and cells: what lies further out is one cell


class NotFollowedError(RuntimeError):
    """What is computed with a draw, or how many values it has, is more than can be followed. No refusal of a mechanism."""


class TooManyWaysError(NotFollowedError):
    """A law has more ways than were to be followed."""


@dataclass(frozen=True, eq=False)
class Law:
    """Of draws in [low, high): `above(z)` is Pr[N >= z] and `below(z)` Pr[N < z], without cancellation in their tails.

    `atoms`: single numbers are likely, as of integers.
    """

    scale: float
    above: Callable[[float], float]
    below: Callable[[float], float]
    low: float = -math.inf
    high: float = math.inf
    atoms: bool = False

    def mass(self, low: float, high: float) -> float:
        """Of an interval; computed in the tail where it lies in one."""
        if low >= 0:
            return self.above(low) - self.above(high)
        return self.below(high) - self.below(low) if high <= 0 else 1.0 - self.below(low) - self.above(high)


def _symmetric(scale: float, tail: Callable[[float], float]) -> Law:
    return Law(scale, tail, lambda z: tail(-z))


def _grid(z: float) -> float:
    """`Generator.random` draws each multiple of 2^-53 below 1 alike: what is rarer comes too often, or never."""
    return (2**53 - math.ceil(min(max(z, 0.0), 1.0) * 2.0**53)) * 2.0**-53


UNIFORM = Law(1.0, _grid, lambda z: 1.0 - _grid(z), 0.0, 1.0)
laplace = lru_cache(1 << 12)(lambda scale: _symmetric(scale, lambda z: math.exp(-z / scale) / 2))
normal = lru_cache(1 << 12)(lambda scale: _symmetric(scale, lambda z: float(ndtr(-z / scale))))
exponential = cache(lambda scale: Law(scale, lambda z: math.exp(-z / scale), lambda z: -math.expm1(-z / scale), 0.0))


def stated(noise: Any, atoms: bool) -> Law:
    """The law that a noise states by its `sf` and `cdf`; that its sampler has it is another check."""

    def tail(of: Callable[[float], Any], z: float) -> float:
        return 0.0 if math.isinf(z) else float(of(z))

    return Law(noise.scale, partial(tail, noise.sf), partial(tail, noise.cdf), atoms=atoms)


@contextmanager
def replaced(*probes: tuple[Any, str, Any]) -> Iterator[None]:
    """Each owner has this value under this name, for as long as a probe runs."""
    kept = [(owner, name, vars(owner)[name]) for owner, name, _ in probes]
    for owner, name, value in probes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


class Follower:
    """Stands for a generator; `path` says which way to go at each of the first decisions, later ones take the first way."""

    def __init__(self, path: Sequence[int] = ()) -> None:
        self._path = path
        self.taken: list[int] = []
        self.ways: list[int] = []
        self.probability = 1.0

    def choose(self, chances: list[float]) -> int:
        """One of several ways; those that are impossible are not followed."""
        possible: Sequence[int] = range(len(chances))
        if not min(chances) > 0:
            possible = [way for way in possible if chances[way] > 0]
        if len(possible) == 1:
            return possible[0]
        if not 1 < len(possible) <= _MOST_WAYS:
            raise NotFollowedError(
                f"a draw must have at most {_MOST_WAYS} possible values to be followed, got {len(possible)}"
            )
        depth = len(self.taken)
        place = self._path[depth] if depth < len(self._path) else 0
        way = possible[place]
        self.taken.append(place)
        self.ways.append(len(possible))
        self.probability *= chances[way]
        return way

    def drawn(self, law: Law, size: Any) -> Any:
        """One draw, or independent ones in an array of this size."""
        if size is None:
            return Uncertain(self, law)
        found = np.empty(size, dtype=object)
        found.ravel()[:] = [Uncertain(self, law) for _ in range(found.size)]
        return found

    def _scaled(self, law: Callable[[float], Law], loc: float, scale: Any, size: Any) -> Any:
        return loc + self.drawn(law(float(scale)), size)

    def random(self, size: Any = None) -> Any:
        return self.drawn(UNIFORM, size)

    def laplace(self, loc: float = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._scaled(laplace, loc, scale, size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return self._scaled(exponential, 0.0, scale, size)

    def normal(self, loc: float = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._scaled(normal, loc, scale, size)

    def integers(self, low: ArrayLike, high: ArrayLike | None = None, size: Any = None, dtype: Any = np.int64) -> Any:
        first, last = (0, low) if high is None else (low, high)
        spans = np.subtract(last, first)
        return (np.asarray(first) + self._chosen(_even, spans if size is None else np.broadcast_to(spans, size))).astype(
            dtype
        )

    def binomial(self, n: ArrayLike, p: ArrayLike) -> Any:
        return self._chosen(_binomial, n, p)

    def multinomial(self, n: ArrayLike, pvals: ArrayLike) -> Any:
        """Place after place, a binomial of those that are left."""
        shares = np.asarray(pvals, dtype=float)
        left = np.array(np.broadcast_to(n, np.broadcast_shapes(np.shape(n), shares.shape[:-1])))
        counts: list[Any] = []
        rest: Any = 1.0
        for place in range(shares.shape[-1] - 1):
            share = shares[..., place]
            counts.append(
                self.binomial(left, np.clip(np.divide(share, rest, out=np.ones(share.shape), where=rest > 0), 0, 1))
            )
            left, rest = left - counts[-1], rest - share
        return np.stack([*counts, left], axis=-1)

    def choice(self, n: int, size: int, replace: bool, shuffle: bool) -> Any:
        """Sets of so many of the first `n` numbers."""
        if replace:
            raise NotFollowedError("a choice that puts back is not followed")
        listed = list(itertools.combinations(range(n), size))
        return np.array(listed[self.choose(_even(len(listed)))], dtype=np.int64)

    def _chosen(self, chances: Callable[..., list[float]], *of: ArrayLike) -> Any:
        """A way for each of these numbers, or pairs of them."""
        each = np.broadcast_arrays(*of)
        ways = [self.choose(chances(*one)) for one in zip(*(part.ravel().tolist() for part in each), strict=True)]
        return np.array(ways, dtype=np.int64).reshape(each[0].shape)[()]


@lru_cache(maxsize=1 << 10)
def _even(ways: int) -> list[float]:
    """The chances of so many ways that are all alike."""
    return [1 / ways] * ways


@lru_cache(maxsize=1 << 12)
def _binomial(n: int, p: float) -> list[float]:
    return list(binom.pmf(np.arange(n + 1), n, p).tolist())


class Uncertain:
    """`offset` + `factor` x of a draw x: numbers are added, it is scaled, and compared, which asks the follower which way to
    go, with exact probabilities given what earlier comparisons have told. Arrays of these are numpy's, of objects."""

    __slots__ = ("factor", "known", "law", "offset", "owner")

    def __init__(self, owner: Follower, law: Law) -> None:
        self.owner, self.law, self.known = owner, law, [law.low, law.high]  # shared by all that is computed from it
        self.offset, self.factor = 0.0, 1.0

    def _moved(self, offset: float, factor: float) -> Uncertain:
        other = object.__new__(Uncertain)
        other.owner, other.law, other.known, other.offset, other.factor = self.owner, self.law, self.known, offset, factor
        return other

    def __add__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self._moved(self.offset + _number(other), self.factor)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, by: Any) -> Any:
        return NotImplemented if isinstance(by, np.ndarray) else self._moved(self.offset * _number(by), self.factor * by)

    __rmul__ = __mul__

    def __truediv__(self, by: Any) -> Any:
        return self * (1 / by)

    def __neg__(self) -> Any:
        return self * -1.0

    def __lt__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if other is self:  # as searches of numpy ask, for nan
            return False
        below = self._below((_number(other) - self.offset) / self.factor)
        return below if self.factor > 0 else not below

    def __ge__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else not self < other

    def __le__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not self.law.atoms:
            return self < other
        if self.factor < 0:
            raise NotFollowedError("integer noise is compared with numbers, and not turned around")
        return self < math.nextafter(_number(other), math.inf)

    def __gt__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else not self <= other

    def __eq__(self, other: Any) -> Any:
        raise NotFollowedError("a draw is compared with numbers by < and >=, not by ==")

    __hash__ = None  # type: ignore[assignment]

    def _below(self, cut: float) -> bool:
        """Whether the draw lies below `cut`; what is not known yet is decided, and then known."""
        low, high = self.known
        if cut <= low or cut >= high:
            return cut >= high
        lower, upper = self.law.mass(low, cut), self.law.mass(cut, high)
        answer = self.owner.choose([lower / (lower + upper), upper / (lower + upper)]) == 0
        self.known[answer] = cut  # the upper end of what is below
        return answer

    def __float__(self) -> float:
        """The middle of the cell between integers in which it lies."""
        last = math.ceil(abs(self.factor) * min(_REACH * self.law.scale, _CELLS))
        cell = self.owner.choose(_cells(self.law, *self.known, abs(self.factor), last))
        return self.offset + math.copysign(1.0, self.factor) * (cell - last + 0.5)


def _number(other: Any) -> float:
    if isinstance(other, Uncertain):
        raise NotFollowedError("a draw is compared with numbers, and not with other draws")
    return float(other)


@lru_cache(maxsize=1 << 12)
def _cells(law: Law, low: float, high: float, factor: float, last: int) -> list[float]:
    """The chances that `factor` times a draw that lies in [low, high) lies in each of its cells."""
    edges = np.clip(np.array([-math.inf, *range(1 - last, last), math.inf]) / factor, low, high)
    chances = np.array([law.mass(*ends) if ends[0] < ends[1] else 0.0 for ends in itertools.pairwise(edges.tolist())])
    return list((chances / chances.sum()).tolist())


def _ways(run: Callable[[Any], Any], most: float) -> Iterator[tuple[Any, float]]:
    """What `run` returns when it is handed a generator, on each of its ways, and their probabilities."""
    path: list[int] = []
    for number in itertools.count():
        if number >= most:
            raise TooManyWaysError(f"the law must have at most {most} ways")
        follow = Follower(path)
        output = run(follow)
        yield output, follow.probability
        path, ways = follow.taken, follow.ways
        while path and path[-1] + 1 == ways[-1]:
            path.pop()
            ways.pop()
        if not path:
            return
        path[-1] += 1


def law_of(run: Callable[[Any], Any], most: float = math.inf) -> dict[Hashable, float]:
    """The law of what `run` returns (`frozen`) when it is handed a generator; raises `TooManyWaysError`."""
    law: dict[Hashable, float] = {}
    for output, probability in _ways(run, most):
        seen = frozen(output)
        law[seen] = law.get(seen, 0.0) + probability
    return law


def numbers_of(output: Any) -> tuple[list[Any], list[Any]]:
    """The numbers in an output, and all else that can be seen of it: types, shapes, flags, texts."""
    numbers: list[Any] = []
    rest: list[Any] = []

    def see(value: Any) -> None:
        kind = type(value)
        if kind in (bool, str, np.bool_) or value is None:
            rest.append((kind.__name__, value))
        elif isinstance(value, np.ndarray):
            rest.append((value.dtype.str, value.shape))
            for one in value.ravel().tolist():
                see(one)
        elif isinstance(value, int | float | np.number):
            rest.append(kind.__name__)
            numbers.append(value)
        elif isinstance(value, list | tuple):
            rest.append((kind.__name__, len(value)))
            for one in value:
                see(one)
        elif is_dataclass(value):
            rest.append(kind.__name__)
            for each in fields(value):
                see(getattr(value, each.name))
        else:
            raise TypeError(f"an output must be numbers, flags and texts, got {kind}")

    see(output)
    return numbers, rest


def frozen(output: Any) -> Hashable:
    """What can be seen of an output, as something to count: integers, other numbers to nine digits, and all else."""
    if type(output) in (bool, int, str):
        return output  # type: ignore[no-any-return]
    numbers, rest = numbers_of(output)
    return tuple(map(_rounded, numbers)), tuple(rest)


@lru_cache(maxsize=1 << 12, typed=True)  # or a double would be what an integer of its size is, and the other way round
def _rounded(value: Any) -> Any:
    return int(value) if isinstance(value, int | np.integer) else "nan" if value != value else float(f"{value:.9g}")
