"""Factorizations of running sums into lower triangular Toeplitz matrices, for Gaussian noise; the square root is one.

**Computes** noise B z for the running sums A x, where A = B C is all ones on and below the diagonal and z is white: the
release is a function of C x + z.  `Toeplitz` has B = C, the square root (Fichtenberger, Henzinger and Upadhyay 2023; Bennett
1977); `Banded` and `Anytime` are others.

**Privacy.** If the entries of the first column of C are >= 0 and do not increase, k elements that change by at most 1 each,
at least g steps apart, move C x by at most `l2_of(k, g)`, the norm of the sum of columns 1, 1 + g, 1 + 2g, ..., k in all:
entries of C^T C are >= 0, and fall with the gap of two columns and with the later of them.  A person with elements in
those columns attains the bound.

**Error.** `relative_variance(k)`: variance of the noise of the k-th sum over that of one draw; `difference_variance(j, k)`:
that of the k-th minus the j-th.  Exact and public.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.sums.trees import BLOCK, Ahead, check_count
from evolvingdp.core import checks
from evolvingdp.core.noise import Tape

Array = NDArray[np.float64]
_LONG = 1 << 14  # steps whose noise is worked out at once, of a stream that has ended


def l2_of_columns(first: Array, uses: int, gap: int) -> float:
    """Norm of the sum of columns 1, 1 + gap, ... (`uses` of them, where there are so many) of the Toeplitz matrix."""
    rows = -(-len(first) // gap)
    sums = np.concatenate([first, np.zeros(rows * gap - len(first))]).reshape(rows, gap).cumsum(axis=0)
    sums[uses:] -= sums[:-uses].copy() if uses < rows else 0.0
    return float(np.linalg.norm(sums.ravel()[: len(first)]))


def loads_of_columns(first: Array, total: int, most: int) -> float:
    """Largest norm of a sum of columns with weights 0 to `most` that add up to `total`.

    It is convex in the weights: largest where as many as can be are `most`, one is the rest, and columns are the first ones;
    which of them has the rest is tried.
    """
    full, rest = divmod(total, most)
    used = min(full + (rest > 0), len(first))
    sums = np.convolve(first, np.ones(used))[: len(first)]
    if full >= len(first) or not rest:
        return most * float(np.linalg.norm(sums))
    less, own = most - rest, np.cumsum(first**2)[::-1]
    squares = [less * own[place] - 2 * most * (first[: len(first) - place] @ sums[place:]) for place in range(used)]
    return float(np.sqrt(most**2 * (sums @ sums) + less * max(squares)))


@dataclass(repr=False)
class Replay(Ahead):
    """Hands over numbers that are known already."""

    values: Array
    used: int = 0

    def more(self) -> list[float]:
        check_count(self.used + 1, len(self.values))
        self.used += BLOCK
        found: list[float] = self.values[self.used - BLOCK : self.used].tolist()
        return found


def differences(own: Array, first: ArrayLike, last: ArrayLike) -> Array:
    """Variance of noise B z at `last` minus at `first`, from the first column of B; a pass over it for each distance."""
    one, two = np.broadcast_arrays(np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64))
    squares, shared = np.concatenate([[0.0], np.cumsum(own**2)]), np.zeros(one.shape)
    for distance in np.unique(two - one).tolist():
        mine = two - one == distance
        longest = int(one[mine].max(initial=0))
        products = np.concatenate([[0.0], np.cumsum(own[:longest] * own[distance : distance + longest])])
        shared[mine] = products[one[mine]]
    apart: Array = np.maximum(squares[one] + squares[two] - 2 * shared, 0.0)
    return apart


class Filters(Protocol):
    """Noise B z by recursions: the first of `filters` times z, plus the weighted sum of z through 1 / (each denominator)."""

    @property
    def capacity(self) -> int: ...

    @property
    def filters(self) -> tuple[float, list[tuple[float, Array]]]: ...


@dataclass(repr=False)
class FilteredNoise(Ahead):
    """It keeps the state of each recursion, and a block of noise ahead."""

    sums: Filters
    tape: Tape
    held: list[Any] = field(default_factory=list)
    used: int = 0

    def take(self, count: int) -> Any:
        """The next `count`: the same numbers, however they are asked for."""
        from scipy.signal import lfilter  # a third of a second: whoever only checks parameters does not wait for it

        constant, filters = self.sums.filters
        white = self.tape.take(count)
        if white.dtype.kind == "i":  # sums of draws, which stay integers: a float would round them from 2^53 on
            sums = np.cumsum(white) + (self.held[0] if self.held else 0)
            self.held = [sums[-1]]
            return sums
        held = self.held = self.held or [np.zeros(len(below) - 1) for _, below in filters]
        noise = constant * white
        for place, (weight, below) in enumerate(filters):
            part, held[place] = lfilter([1.0], below, white, zi=held[place])
            part *= weight
            noise += part
        return noise

    def all(self, count: int) -> Array:
        check_count(count, self.sums.capacity)
        parts = [self.take(min(_LONG, count - start)) for start in range(0, count, _LONG)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def more(self) -> list[float]:
        check_count(self.used + 1, self.sums.capacity)
        self.used += BLOCK
        found: list[float] = self.take(min(BLOCK, self.sums.capacity + BLOCK - self.used)).tolist()
        return found


class Factorization(ABC):
    """What follows from the first columns of C and of B."""

    capacity: int

    @property
    @abstractmethod
    def coefficients(self) -> Array:
        """The first column of C, (capacity,)."""

    @property
    @abstractmethod
    def noise_coefficients(self) -> Array:
        """The first column of B, (capacity,)."""

    @cached_property
    def _squares(self) -> Array:
        return np.concatenate([[0.0], np.cumsum(self.noise_coefficients**2)])

    @property
    def l1(self) -> float:
        return float(np.sum(self.coefficients))

    def l2_of(self, uses: int, gap: int = 1) -> float:
        """Largest change in l2 when `uses` elements, at least `gap` steps apart, change by at most one each."""
        return l2_of_columns(self.coefficients, uses, gap)

    def relative_variance(self, lengths: ArrayLike) -> Array:
        return self._squares[np.asarray(lengths, dtype=np.int64)]

    def variances(self, count: int) -> Array:
        return self._squares[1 : count + 1]

    def difference_variance(self, first: ArrayLike, last: ArrayLike) -> Array:
        """Of the noise of prefix `last` minus that of prefix `first`."""
        return differences(self.noise_coefficients, first, last)


@dataclass(frozen=True)
class Toeplitz(Factorization):
    """The square root of the all-ones lower triangle: entries f_(i-j) with f_j = C(2j, j) / 4^j.  Gaussian noise only."""

    capacity: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity)
        checks.plain_integers(self, "capacity")

    @cached_property
    def coefficients(self) -> Array:
        """f_0 = 1, f_j = f_(j-1) (2j - 1) / (2j); of B as well."""
        step = np.arange(1, self.capacity, dtype=float)
        return np.concatenate([[1.0], np.cumprod((2 * step - 1) / (2 * step))])

    @property
    def noise_coefficients(self) -> Array:
        return self.coefficients

    def all(self, count: int, tape: Tape) -> Array:
        """Noise of the prefixes of length 1 to `count`; always drawn for the whole capacity, then cut."""
        from scipy.signal import fftconvolve

        check_count(count, self.capacity)
        noise: Array = fftconvolve(tape.take(self.capacity), self.coefficients)[:count]
        return noise

    def online(self, tape: Tape) -> Replay:
        """As `all`; the noise does not depend on data, so it is drawn at once and kept (one number per element)."""
        return Replay(self.all(self.capacity, tape))
