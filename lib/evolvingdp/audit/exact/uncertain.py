"""Numbers of which only the law is known: what code that is handed a `draws.Follower` computes with.

They are added to numbers and to each other, scaled, and compared; a comparison asks the follower which way to go, with exact
probabilities given what earlier comparisons have told.
"""

from __future__ import annotations

import itertools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray
from scipy.special import ndtr

_REACH, _CELLS = 25.0, 500.0  # scales, and cells: what lies further out is one cell
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


class NotFollowedError(RuntimeError):
    """What is computed with a draw, or how many values it has, is more than can be followed. No refusal of a mechanism."""


class Law(ABC):
    """A draw of which it is known that it lies in [low, high); `atoms`: single numbers are likely, as of integers."""

    low, high = -math.inf, math.inf
    atoms = False

    def __init__(self, scale: float) -> None:
        self.scale = scale

    @abstractmethod
    def mass(self, low: float, high: float) -> float:
        """Of an interval; computed in the tail where it lies in one."""

    def below(self, cut: float, follow: Any) -> bool:
        """Whether it lies below `cut`; what is not known yet is decided, and then known."""
        if cut <= self.low or cut >= self.high:
            return cut >= self.high
        lower, upper = self.mass(self.low, cut), self.mass(cut, self.high)
        answer: bool = follow.choose([lower / (lower + upper), upper / (lower + upper)]) == 0
        self.low, self.high = (self.low, cut) if answer else (cut, self.high)
        return answer


class _Symmetric(Law):
    """A law that is symmetric about 0."""

    @abstractmethod
    def tail(self, z: float) -> float:
        """Beyond z >= 0."""

    def mass(self, low: float, high: float) -> float:
        if low >= high:
            return 0.0
        if low >= 0:
            return self.tail(low) - self.tail(high)
        return self.tail(-high) - self.tail(-low) if high <= 0 else 1.0 - self.tail(-low) - self.tail(high)


class Uniform(Law):
    low, high = 0.0, 1.0

    def mass(self, low: float, high: float) -> float:
        return max(0.0, min(high, 1.0) - max(low, 0.0))


class GridUniform(Uniform):
    """Each multiple of 2^-53 below 1 with the same probability, as `Generator.random` draws them."""

    def mass(self, low: float, high: float) -> float:
        first, last = (math.ceil(min(max(edge, 0.0), 1.0) * 2.0**53) for edge in (low, high))
        return max(0, last - first) * 2.0**-53


class Laplace(_Symmetric):
    def tail(self, z: float) -> float:
        return math.exp(-z / self.scale) / 2 if self.scale else 0.0 if z else 0.5


class Exponential(Law):
    low = 0.0

    def mass(self, low: float, high: float) -> float:
        return math.exp(-max(low, 0.0) / self.scale) - math.exp(-max(high, 0.0) / self.scale)


class Normal(_Symmetric):
    def tail(self, z: float) -> float:
        return float(ndtr(-z / self.scale))


class Stated(Law):
    """The law that integer noise states by its `sf` and `cdf`; that its sampler has it is another check."""

    atoms = True

    def __init__(self, noise: Any) -> None:
        super().__init__(noise.scale)
        self._noise = noise

    def mass(self, low: float, high: float) -> float:
        tail = self._noise.sf if low >= 0 else self._noise.cdf
        return float(abs(tail(low) - tail(high)))


class _Sum(Law):
    """x + g y of two independent draws, given what is known of both when they are first compared together."""

    def __init__(self, x: Law, g: float, y: Law) -> None:
        if not all(isinstance(one, _Symmetric) for one in (x, y)):
            raise TypeError("only Laplace and normal draws are compared with each other; others with numbers")
        self._key = ((type(x), x.scale, x.low, x.high), g, (type(y), y.scale, y.low, y.high))

    def mass(self, low: float, high: float) -> float:
        """Of an interval of which one end is infinite, or of the smaller tails' difference."""
        (under_low, over_low), (under_high, over_high) = _beyond(*self._key, low), _beyond(*self._key, high)
        return max(0.0, under_high - under_low if under_high < 0.5 else over_low - over_high)


@lru_cache(maxsize=1 << 12)
def _beyond(x: Any, g: float, y: Any, cut: float) -> tuple[float, float]:
    """P(x + g y < cut) and P(x + g y > cut), by integration over y; of each draw its law, scale and limits are given."""
    if math.isinf(cut):
        return (1.0, 0.0) if cut > 0 else (0.0, 1.0)
    kind, scale, low, high = y
    low, high = max(low, -40 * scale), min(high, 40 * scale)
    kinks = sorted({low, high, *(kink for kink in (0.0, cut / g) if low < kink < high)})
    edges = np.unique(np.concatenate([np.linspace(a, b, 25) for a, b in itertools.pairwise(kinks)]))
    half = np.diff(edges)[:, None] / 2
    at = edges[:-1, None] + half + half * _NODES
    weight = half * _WEIGHTS * np.exp(-np.abs(at) / scale if kind is Laplace else -((at / scale) ** 2) / 2)
    weight /= weight.sum()
    law, ends = x[0](x[1]), np.clip(cut - g * at, x[2], x[3])
    whole = law.mass(x[2], x[3])
    parts = [np.array([law.mass(x[2], end) for end in ends.flat]), np.array([law.mass(end, x[3]) for end in ends.flat])]
    under, over = (float((part.reshape(at.shape) * weight).sum()) / whole for part in parts)
    return under, over


@lru_cache(maxsize=1 << 12)
def _cells(kind: Any, scale: float, low: float, high: float, factor: float, last: int) -> list[float]:
    """The chances that `factor` times a draw that lies in (low, high) lies in each of its cells."""
    law, edges = kind(scale), np.array([-math.inf, *range(1 - last, last), math.inf]) / factor
    chances = np.array([law.mass(max(a, low), min(b, high)) for a, b in itertools.pairwise(edges)])
    shares: list[float] = (chances / chances.sum()).tolist()
    return shares


class Uncertain:
    """offset + f x + g y + ..., of draws x, y, ...: numbers are added, it is scaled, and compared."""

    __array_ufunc__ = None
    __slots__ = ("follow", "offset", "terms")

    def __init__(self, follow: Any, offset: float, terms: tuple[tuple[float, Law], ...]) -> None:
        self.follow, self.offset, self.terms = follow, offset, terms

    def _with(self, other: Any, sign: float) -> Any:
        if isinstance(other, float | int):
            return Uncertain(self.follow, self.offset + sign * other, self.terms)
        if isinstance(other, np.ndarray | Array):
            return NotImplemented
        if isinstance(other, Uncertain):
            merged: dict[Law, float] = {law: factor for factor, law in self.terms}
            for factor, law in other.terms:
                merged[law] = merged.get(law, 0.0) + sign * factor
            terms = tuple((factor, law) for law, factor in merged.items() if factor)
            return Uncertain(self.follow, self.offset + sign * other.offset, terms)
        return Uncertain(self.follow, self.offset + sign * float(other), self.terms)

    def __add__(self, other: Any) -> Any:
        return self._with(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, -1.0)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, factor: Any) -> Any:
        if isinstance(factor, np.ndarray | Array):
            return NotImplemented
        terms = tuple((float(factor) * one, law) for one, law in self.terms if factor)
        return Uncertain(self.follow, float(factor) * self.offset, terms)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Any:
        return self * (1 / factor)

    def __neg__(self) -> Any:
        return self * -1.0

    def __lt__(self, other: Any) -> Any:
        if type(other) is float and len(self.terms) == 1:  # nearly always: without the difference
            ((factor, law),) = self.terms
            below = law.below((other - self.offset) / factor, self.follow)
            return below if factor > 0 else not below
        difference = self._with(other, -1.0)
        return difference if difference is NotImplemented else difference._negative()

    def __ge__(self, other: Any) -> Any:
        below = self.__lt__(other)
        return below if below is NotImplemented else not below

    def __le__(self, other: Any) -> Any:
        if not any(law.atoms for _, law in self.terms):
            return self.__lt__(other)
        if len(self.terms) > 1 or self.terms[0][0] < 0 or isinstance(other, Uncertain):
            raise NotFollowedError("integer noise is compared with numbers, and not turned around")
        return self.__lt__(math.nextafter(float(other), math.inf))

    def __gt__(self, other: Any) -> Any:
        below = self.__le__(other)
        return below if below is NotImplemented else not below

    def _negative(self) -> bool:
        if len(self.terms) > 2:
            raise NotFollowedError(f"a comparison is of at most two draws, got {len(self.terms)}")
        if not self.terms:
            return self.offset < 0
        if len(self.terms) == 1:
            ((factor, law),) = self.terms
            below = law.below(-self.offset / factor, self.follow)
            return below if factor > 0 else not below
        ((f, x), (g, y)) = self.terms
        key = (x, y, g / f)
        if key not in self.follow.sums:
            self.follow.sums[key] = _Sum(x, g / f, y)
        below = self.follow.sums[key].below(-self.offset / f, self.follow)
        return below if f > 0 else not below

    def __float__(self) -> float:
        """The middle of the cell between integers in which it lies."""
        if not self.terms:
            return self.offset
        ((factor, law),) = self.terms
        if law.scale == 0:
            return self.offset
        last = math.ceil(abs(factor) * min(_REACH * law.scale, _CELLS))
        kind: Any = type(law)
        cell: int = self.follow.choose(_cells(kind, law.scale, law.low, law.high, abs(factor), last))
        return self.offset + math.copysign(1.0, factor) * (cell - last + 0.5)


class Array(NDArrayOperatorsMixin):
    """`Uncertain` numbers; comparisons give arrays of bool."""

    def __init__(self, entries: NDArray[Any]) -> None:
        self.entries = entries
        self.shape, self.size, self.ndim = entries.shape, entries.size, entries.ndim

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, key: Any) -> Any:
        found = self.entries[key]
        return Array(found) if isinstance(found, np.ndarray) else found

    def tolist(self) -> Any:
        return self.entries.tolist()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            return NotImplemented
        of_each = _OPERATORS.get(ufunc)
        if of_each is None:
            return NotImplemented
        operands = [value.entries if isinstance(value, Array) else value for value in inputs]
        shape = np.broadcast(*operands).shape
        compared = ufunc in _COMPARISONS
        result = map(of_each, *[_flat(operand, shape) for operand in operands])
        shaped = np.fromiter(result, dtype=bool if compared else object, count=math.prod(shape)).reshape(shape)
        return shaped if compared else Array(shaped)


def _flat(operand: Any, shape: tuple[int, ...]) -> Iterable[Any]:
    """`operand`, broadcast to `shape`, one after the other: as Python's own numbers, which are faster one by one."""
    if np.ndim(operand) == 0:
        return itertools.repeat(operand.item() if isinstance(operand, np.ndarray | np.generic) else operand)
    array = np.asarray(operand)
    flat: list[Any] = (array if array.shape == shape else np.broadcast_to(array, shape)).ravel().tolist()
    return flat


_COMPARISONS: dict[Any, Callable[..., Any]] = {
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
}
_OPERATORS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.negative: operator.neg,
    np.minimum: min,
    np.maximum: max,
    **_COMPARISONS,
}
