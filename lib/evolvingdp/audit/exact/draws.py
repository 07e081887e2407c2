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
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, poisson

from evolvingdp.audit.exact.laws import epsilon_at
from evolvingdp.audit.exact.uncertain import (
    Array,
    Exponential,
    GridUniform,
    Laplace,
    Law,
    Normal,
    NotFollowedError,
    Stated,
    Uncertain,
    Uniform,
)

_MOST_WAYS = 1 << 10  # of one draw


class Follower:
    """Stands for a generator; `path` says which way to go at each of the first decisions, later ones take the first way."""

    def __init__(self, path: Sequence[int] = ()) -> None:
        self._path = path
        self.taken: list[int] = []
        self.ways: list[int] = []
        self.probability = 1.0
        self.sums: dict[Any, Law] = {}  # of two draws, that have been compared

    def choose(self, chances: Any) -> int:
        """One of several ways; those that are impossible are not followed."""
        listed: list[float] = chances if type(chances) is list else np.asarray(chances, dtype=float).tolist()
        possible: Sequence[int] = range(len(listed))
        if not min(listed) > 0:
            possible = [way for way in possible if listed[way] > 0]
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
        self.probability *= listed[way]
        return way

    def _draws(self, law: type[Law], scale: Any, loc: Any, size: Any) -> Any:
        loc, alike = float(loc), isinstance(scale, float | int) or np.ndim(scale) == 0
        if size is None and alike:
            return Uncertain(self, loc, ((1.0, law(float(scale))),) if scale else ())
        shape = np.shape(scale) if size is None else _shape(size)
        if alike:
            scales = [float(scale)] * math.prod(shape)
        else:
            scales = np.broadcast_to(np.asarray(scale, dtype=float), shape).ravel().tolist()
        entries = (Uncertain(self, loc, ((1.0, law(one)),) if one else ()) for one in scales)
        return Array(np.fromiter(entries, dtype=object, count=len(scales)).reshape(shape))

    def random(self, size: Any = None) -> Any:
        return self._draws(Uniform, 1.0, 0.0, size)

    def laplace(self, loc: float = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._draws(Laplace, scale, loc, size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return self._draws(Exponential, scale, 0.0, size)

    def normal(self, loc: float = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._draws(Normal, scale, loc, size)

    def stated(self, noise: Any, size: int | tuple[int, ...]) -> Any:
        """Integer noise, each by the law that it states."""
        shape = _shape(size)
        entries = (Uncertain(self, 0.0, ((1.0, Stated(noise)),)) for _ in range(math.prod(shape)))
        return Array(np.fromiter(entries, dtype=object, count=math.prod(shape)).reshape(shape))

    def integers(self, low: ArrayLike, high: ArrayLike | None = None, size: Any = None, dtype: Any = np.int64) -> Any:
        first, last = (0, low) if high is None else (low, high)
        shape = np.broadcast(first, last).shape if size is None else _shape(size)
        spans = _each(np.subtract(last, first), shape)
        drawn = np.array([self.choose(_even(span)) for span in spans], dtype=np.int64).reshape(shape)
        return (np.asarray(first) + drawn).astype(dtype)

    def binomial(self, n: ArrayLike, p: ArrayLike, size: Any = None) -> Any:
        shape = np.broadcast(n, p).shape if size is None else _shape(size)
        drawn = [self.choose(_binomial(*one)) for one in zip(_each(n, shape), _each(p, shape), strict=True)]
        return np.array(drawn, dtype=np.int64).reshape(shape) if shape else drawn[0]

    def poisson(self, lam: ArrayLike) -> Any:
        """Of small means alone: up to 19, beyond which nothing of the law is left."""
        shape = np.shape(lam)
        drawn = [self.choose(poisson.pmf(np.arange(20), one).tolist()) for one in _each(lam, shape)]
        return np.array(drawn, dtype=np.int64).reshape(shape) if shape else drawn[0]

    def choice(
        self, n: Any, size: int, replace: bool = True, p: ArrayLike | None = None, shuffle: bool = True
    ) -> NDArray[Any]:
        values = np.arange(n) if np.ndim(n) == 0 else np.asarray(n)
        if replace:
            chances = np.full(len(values), 1 / len(values)) if p is None else np.asarray(p)
            return np.array([values[self.choose(chances)] for _ in range(size)], dtype=values.dtype)
        listed = list(itertools.combinations(values.tolist(), size))
        return np.array(listed[self.choose(_even(len(listed)))], dtype=values.dtype)


class OnGrid(Follower):
    """The same of uniform numbers as they are drawn, multiples of 2^-53: what is rarer comes too often, or never."""

    def random(self, size: Any = None) -> Any:
        return self._draws(GridUniform, 1.0, 0.0, size)


def _shape(size: Any) -> tuple[int, ...]:
    return (int(size),) if np.ndim(size) == 0 else tuple(size)


def _each(values: Any, shape: tuple[int, ...]) -> list[Any]:
    """`values`, broadcast to `shape`, one after the other: as Python's own numbers, which are faster one by one."""
    array = np.asarray(values)
    if array.ndim == 0:
        return [array.item()] * math.prod(shape)
    return (array if array.shape == shape else np.broadcast_to(array, shape)).ravel().tolist()


@lru_cache(maxsize=1 << 10)
def _even(ways: int) -> list[float]:
    """The chances of so many ways that are all alike."""
    return [1 / ways] * ways


@lru_cache(maxsize=1 << 12)
def _binomial(n: int, p: float) -> list[float]:
    chances: list[float] = binom.pmf(np.arange(n + 1), n, p).tolist()
    return chances


class TooManyWaysError(NotFollowedError):
    """A law has more ways than were to be followed."""


def _ways(run: Callable[[Any], Any], kind: type[Follower] = Follower, most: float = math.inf) -> Iterator[tuple[Any, float]]:
    """What `run` returns when it is handed a generator, on each of its ways, and their probabilities."""
    path: list[int] = []
    for number in itertools.count():
        if number >= most:
            raise TooManyWaysError(f"the law must have at most {most} ways")
        follow = kind(path)
        output = run(follow)
        yield output, follow.probability
        path, ways = follow.taken, follow.ways
        while path and path[-1] + 1 == ways[-1]:
            path.pop()
            ways.pop()
        if not path:
            return
        path[-1] += 1


def law_of(run: Callable[[Any], Any], kind: type[Follower] = Follower, most: float = math.inf) -> dict[Hashable, float]:
    """The law of what `run` returns (`frozen`) when it is handed a generator of this kind; raises `TooManyWaysError`."""
    law: dict[Hashable, float] = {}
    for output, probability in _ways(run, kind, most):
        seen = frozen(output)
        law[seen] = law.get(seen, 0.0) + probability
    return law


def loss_of(run: Callable[[Any, Any], Any], inputs: Iterable[Any], delta: float = 0.0) -> float:
    """The smallest epsilon at `delta` between the laws of `run(input, rng)` for any two of `inputs`."""
    return epsilon_at([law_of(lambda rng, one=one: run(one, rng)) for one in inputs], delta)  # type: ignore[misc]


def frozen(output: Any) -> Hashable:
    """What can be seen of an output, as something to count: its type's fields, shapes and values."""
    kind: Any = type(output)
    if kind in (int, bool, str):
        return output  # type: ignore[no-any-return]
    if kind is float:
        return _rounded(output)
    if isinstance(output, list | tuple):
        return tuple(map(frozen, output))
    if isinstance(output, np.ndarray | np.generic):
        held = output.tolist()
        if output.ndim == 0:
            return frozen(held)
        return output.shape, tuple(held) if output.ndim == 1 and output.dtype.kind in "biu" else frozen(held)
    if isinstance(output, dict):
        return tuple((key, frozen(value)) for key, value in sorted(output.items(), key=repr))
    if is_dataclass(output) and kind is not type:
        return (kind.__name__, *[frozen(getattr(output, name)) for name in _fields(kind)])
    return output  # type: ignore[no-any-return]


@lru_cache(maxsize=1 << 12)
def _rounded(value: float) -> float | str:
    return "nan" if math.isnan(value) else float(f"{value:.9g}")


@lru_cache(maxsize=1 << 8)
def _fields(kind: Any) -> list[str]:
    return [one.name for one in fields(kind)]
