"""Noise for all prefix sums of a stream: one `Tree`, and one `Filter` that is given by its coefficients.

**Computes** z_1, z_2, ...: noise such that (x_1 + ... + x_k) + z_k is a function of C x + white noise, where a row of C sums
a block of elements (trees), or C is lower triangular Toeplitz (filters) and z = B w with B C = A, all ones on and below the
diagonal.

**Privacy.** One element that changes by 1 changes C x by `l1` in l1; elements that change by `total` in all, each by at most
`most`, by `l2(total, most)` in l2.  Entries of C are >= 0, so that the worst change has one sign; a filter's coefficients do
not increase, so that the inner product of two columns falls with their distance and with the later of them (Theorem "What
several elements cost").

**Error.** `relative_variance(k)`: variance of z_k over that of one draw; `difference_variance(j, k)`: that of z_k - z_j.
Exact and public.

**Source.** Algorithm 1 of George et al. (2022) with E-CM-1 and E-CM-5; negative digits: Andersson, Pagh, Steiner and
Torkamani (2025); the square root: Fichtenberger, Henzinger and Upadhyay (2023) and Henzinger, Upadhyay and Upadhyay (2023),
with a decay: Choquette-Choo et al. (2024); buffers: Dvijotham, McMahan, Pillutla, Steinke and Thakurta (2024).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from evolvingdp.core import checks
from evolvingdp.core.noise import Tape

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
LEAST_DECAY = 0.1  # below it poles of buffers are too near each other to be told apart
FIRST, LONGEST = 1 << 10, 1 << 14  # prefixes whose noise is worked out at once: as many as there have been, within these


@dataclass(repr=False)
class Ahead(ABC):
    """The noise of the prefixes one after the other; secret.  It is worked out for many at once: `left`, the next one
    last."""

    capacity: int
    tape: Tape
    count: int = 0  # prefixes that have been worked out
    left: list[Any] = field(default_factory=list)

    @abstractmethod
    def block(self, count: int) -> NDArray[Any]:
        """That of the next `count` prefixes."""

    def part(self) -> int:
        """How many are worked out next, if there are so many."""
        return max(FIRST, min(self.count, LONGEST))

    def more(self) -> NDArray[Any]:
        """That of the next prefixes, always the same parts; raises ValueError if there is none."""
        count = min(self.part(), self.capacity - self.count)
        if count <= 0:
            raise ValueError(f"a sum of capacity {self.capacity} was asked for a prefix of {self.capacity + 1} elements")
        found = self.block(count)
        self.count += count
        return found

    def __call__(self) -> Any:
        if not self.left:
            self.left = self.more()[::-1].tolist()
        return self.left.pop()


@dataclass(frozen=True)
class PrefixSums(ABC):
    """Of at most `capacity` elements."""

    capacity: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity)
        checks.plain_integers(self, "capacity")

    @property
    @abstractmethod
    def l1(self) -> float:
        """Change of C x in l1 when one element changes by one."""

    @abstractmethod
    def l2(self, total: int, most: int = 1) -> float:
        """Largest change of C x in l2: see above."""

    @abstractmethod
    def relative_variance(self, lengths: ArrayLike) -> Array:
        """Of the noise of the prefixes of these lengths (any shape, 0 to capacity), over the variance of one draw."""

    @abstractmethod
    def difference_variance(self, first: ArrayLike, last: ArrayLike) -> Array:
        """Of the noise of prefix `last` minus that of prefix `first` (any shapes, 0 <= first <= last <= capacity)."""

    @abstractmethod
    def online(self, tape: Tape) -> Ahead:
        """What returns, at the k-th call, the noise of the prefix of length k."""

    def variances(self, count: int) -> Array:
        """`relative_variance` of the lengths 1 to `count`."""
        return self.relative_variance(np.arange(1, count + 1))

    def all(self, count: int, tape: Tape) -> NDArray[Any]:
        """Noise of the prefixes of length 1 to `count`: that of `online`."""
        noise, parts = self.online(tape), [np.zeros(0, dtype=np.int64)]
        while noise.count < count:
            parts.append(noise.more())
        return np.concatenate(parts)[:count]


@dataclass(frozen=True)
class Tree(PrefixSums):
    """Sums over blocks of b^h elements.  Plain: a prefix adds blocks by its digits, 0 to b - 1; with b above `capacity` each
    element has noise of its own.

    `balanced`: digits from -(b-1)/2, rounded up, to b/2, rounded down.  A block that is subtracted, or that is added before
    it ends, holds elements to come, which cancel from the sum: a prefix needs only that block's noise.  Private for Laplace
    noise, also if elements depend on earlier releases (proof in `book/continual_mean_in_depth.md`).
    """

    branching: int = 2
    balanced: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer_at_least(2, branching=self.branching)
        checks.plain_integers(self, "branching")

    @property
    def below(self) -> int:
        """Blocks of a size that are subtracted at most."""
        return (self.branching - 1) // 2 if self.balanced else 0

    @cached_property
    def height(self) -> int:
        """The least number of digits that can write `capacity`: block sizes, of which a prefix may need all (E-CM-5)."""
        above = self.branching - 1 - self.below
        levels, reach = 1, above
        while reach < self.capacity:
            levels, reach = levels + 1, reach * self.branching + above
        return levels

    def places(self, lengths: Integers) -> list[Integers]:
        """Per level h the multiple of b^h that the digits from h on write, over b^h; a prefix adds the blocks from b times
        the place on the level above to its place."""
        base, found = self.branching, []
        for level in range(self.height + 1):
            reach = self.below * (base**level - 1) // (base - 1)
            found.append((lengths + reach) // base**level)
        return found

    @property
    def l1(self) -> float:
        return float(self.height)

    def l2(self, total: int, most: int = 1) -> float:
        """A level's squares add up to most where the elements fill as few of its blocks as they can."""
        total, full = min(total, most * self.capacity), [most * self.branching**level for level in range(self.height)]
        return math.sqrt(sum(total // held * held**2 + (total % held) ** 2 for held in full))

    def relative_variance(self, lengths: ArrayLike) -> Array:
        """How many blocks it adds or subtracts: its digits' absolute values added up."""
        return self.difference_variance(0, lengths)

    def difference_variance(self, first: ArrayLike, last: ArrayLike) -> Array:
        """Blocks that both add, or both subtract, cancel: they are among the same siblings, on the same side."""
        one, two = (self.places(np.asarray(given, dtype=np.int64)) for given in (first, last))
        total = np.zeros(np.broadcast_shapes(one[0].shape, two[0].shape))
        for level in range(self.height):
            low, high = one[level] - self.branching * one[level + 1], two[level] - self.branching * two[level + 1]
            total += np.where(one[level + 1] == two[level + 1], np.abs(high - low), np.abs(low) + np.abs(high))
        return total

    def online(self, tape: Tape) -> TreeNoise:
        return TreeNoise(self.capacity, tape, sums=self)


@dataclass(repr=False)
class TreeNoise(Ahead):
    """Per level the running sum of its blocks' noise, from `low` on: a prefix needs differences of two of these."""

    sums: Tree = Tree(1)
    running: list[NDArray[Any]] = field(default_factory=list)
    low: list[int] = field(default_factory=list)

    def block(self, count: int) -> NDArray[Any]:
        sums, base = self.sums, self.sums.branching
        places = sums.places(np.arange(self.count + 1, self.count + count + 1))
        found: NDArray[Any] = np.zeros(count, dtype=np.int64)
        for level, (place, above) in enumerate(itertools.pairwise(places)):
            if level == len(self.low):
                self.low.append(0)
                self.running.append(np.zeros(1, dtype=np.int64))
            center, low, known = base * above, self.low[level], self.running[level]
            new = np.arange(low + len(known), max(int(place[-1]), int(center[-1])) + 1)
            needed = (new - base + sums.below) % base != 0  # the block between two groups of siblings is in no prefix
            drawn = self.tape.take(int(needed.sum()))
            noise = np.zeros(len(new), dtype=drawn.dtype if len(drawn) else known.dtype)
            noise[needed] = drawn
            known = np.concatenate([known, known[-1] + np.cumsum(noise)])
            found = found + (known[place - low] - known[center - low])
            self.low[level] = kept = min(int(place[-1]), int(center[-1]))
            self.running[level] = known[kept - low :]
        return found


def height(count: int, branching: int = 2) -> int:
    """floor(log_b count) + 1: how many nodes an element of a plain tree over `count` elements enters at most (E-CM-5)."""
    return Tree(count, branching).height


@dataclass(frozen=True)
class Filter(PrefixSums):
    """C with the coefficients of (1 - decay z)^(-1/2).

    Without decay: the square root of the matrix of running sums, the best for one element a person.  A decay is better for
    people who come back: columns that are far apart have less in common.
    """

    decay: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not LEAST_DECAY <= self.decay <= 1:
            raise ValueError(f"decay must lie in [{LEAST_DECAY}, 1], got {self.decay!r}")

    def _powers(self, power: float) -> Array:
        """The coefficients of (1 - decay z)^-power: f_0 = 1, f_j = f_(j-1) decay (j - 1 + power) / j."""
        step = np.arange(1, self.capacity, dtype=float)
        return np.concatenate([[1.0], np.cumprod(self.decay * ((step - 1 + power) / step))])

    @cached_property
    def coefficients(self) -> Array:
        """The first column of C."""
        return self._powers(0.5)

    @cached_property
    def noise_coefficients(self) -> Array:
        """The first column of B."""
        return self._powers(0.5) if self.decay == 1 else np.cumsum(self._powers(-0.5))

    @cached_property
    def _squares(self) -> Array:
        return np.concatenate([[0.0], np.cumsum(self.noise_coefficients**2)])

    @property
    def l1(self) -> float:
        return float(np.sum(self.coefficients))

    def l2(self, total: int, most: int = 1) -> float:
        """It is convex in what the elements change by: largest where as many as can be change by `most`, one by the rest,
        and columns are the first ones; which of them has the rest is tried."""
        column, length = self.coefficients, self.capacity
        full, rest = divmod(min(total, most * length), most)
        used, sums = full + (rest > 0), np.cumsum(column)
        sums[used:] -= sums[: length - used].copy()
        if not rest:
            return most * float(np.linalg.norm(sums))
        less, own = most - rest, np.cumsum(column**2)[::-1]
        squares = [less * own[at] - 2 * most * (column[: length - at] @ sums[at:]) for at in range(used)]
        return float(np.sqrt(most**2 * (sums @ sums) + less * max(squares)))

    def relative_variance(self, lengths: ArrayLike) -> Array:
        return self._squares[np.asarray(lengths, dtype=np.int64)]

    def difference_variance(self, first: ArrayLike, last: ArrayLike) -> Array:
        """A pass over B's first column for each distance."""
        own = self.noise_coefficients
        one, two = np.broadcast_arrays(np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64))
        shared = np.zeros(one.shape)
        for distance in np.unique(two - one).tolist():
            mine = two - one == distance
            longest = int(one[mine].max(initial=0))
            products = np.concatenate([[0.0], np.cumsum(own[:longest] * own[distance : distance + longest])])
            shared[mine] = products[one[mine]]
        apart: Array = np.maximum(self.relative_variance(one) + self.relative_variance(two) - 2 * shared, 0.0)
        return apart

    def online(self, tape: Tape) -> Ahead:
        return FilterNoise(self.capacity, tape, sums=self)


@dataclass(repr=False)
class FilterNoise(Ahead):
    """It keeps all draws, and convolves them again when there are twice as many."""

    sums: Filter = Filter(1)
    white: NDArray[Any] = field(default_factory=lambda: np.zeros(0))

    def part(self) -> int:
        return max(FIRST, self.count)

    def block(self, count: int) -> NDArray[Any]:
        from scipy.signal import fftconvolve

        self.white = np.concatenate([self.white, self.tape.take(count)])
        noise: Array = fftconvolve(self.white, self.sums.noise_coefficients[: len(self.white)])[self.count : len(self.white)]
        return noise


@dataclass(frozen=True)
class Buffered(Filter):
    """C_j = sum_i w_i p_i^j, close to those of `Filter`: its noise needs a number a buffer, and all is in closed form.

    Without decay the j-th coefficient is the integral of 1 / pi u^(j - 1/2) (1 - u)^(-1/2) over [0, 1]: the trapezoidal rule
    in log(u / (1 - u)), whose first node and step have the least error of the last of as many sums as the next power of two,
    for one element a person.  A decay multiplies the poles.  B is of that kind, too, with a pole at 1 and a constant.
    """

    buffers: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer_at_least(2, buffers=self.buffers)
        checks.plain_integers(self, "buffers")

    @cached_property
    def sums(self) -> tuple[Array, Array, Array, Array, float]:
        """Weights and poles of C, whose first entry is 1; weights of B, one minus its poles (0 first), and its constant."""
        rule = _best_rule(1 << (self.capacity - 1).bit_length(), self.buffers)
        weights, poles, own, rates, constant = _exponentials(*rule, self.buffers, self.decay)
        first = float(weights.sum())
        return weights / first, poles, own * first, rates, constant * first

    @cached_property
    def coefficients(self) -> Array:
        weights, poles, *_ = self.sums
        return _added(weights, poles, self.capacity)

    @cached_property
    def noise_coefficients(self) -> Array:
        _, _, own, rates, constant = self.sums
        column = _added(own, 1 - rates, self.capacity)
        column[0] += constant
        return column

    def l2(self, total: int, most: int = 1) -> float:
        """In closed form where all that change do so by `most`: after the last of them a column's poles are left."""
        full, rest = divmod(min(total, most * self.capacity), most)
        if rest:
            return super().l2(total, most)
        weights, poles, *_ = self.sums
        head, left = np.cumsum(_added(weights, poles, full)), self.capacity - full
        tail = _norm(weights * poles * np.expm1(full * np.log(poles)) / (poles - 1), poles, left) if left else 0.0
        return most * math.hypot(float(np.linalg.norm(head)), tail)

    @cached_property
    def _terms(self) -> tuple[Array, Array, float]:
        """The variance of sum k is the last + amounts_0 k + sum of amounts_i (1 - e^(logs_i k))."""
        _, _, own, rates, constant = self.sums
        amounts, both = _geometric(own, rates)
        return amounts, np.log1p(-both[1:]), constant * (constant + 2 * float(own.sum()))

    def relative_variance(self, lengths: ArrayLike) -> Array:
        amounts, logs, first = self._terms
        asked = np.asarray(lengths, dtype=float)
        found = first * (asked > 0) + amounts[0] * asked
        for amount, log in zip(amounts[1:].tolist(), logs.tolist(), strict=True):
            found -= amount * np.expm1(log * asked)
        return np.asarray(found)

    def online(self, tape: Tape) -> BufferedNoise:
        return BufferedNoise(self.capacity, tape, sums=self)


@dataclass(repr=False)
class BufferedNoise(Ahead):
    """A number a buffer: B z is the constant times z plus the weighted sum of recursions of z."""

    sums: Buffered = Buffered(1)
    held: list[Any] = field(default_factory=list)

    def block(self, count: int) -> Array:
        from scipy.signal import lfilter

        _, _, own, rates, constant = self.sums.sums
        white = self.tape.take(count)
        self.held = self.held or [np.zeros(1)] * len(own)
        noise: Array = constant * white
        for place, (weight, rate) in enumerate(zip(own.tolist(), rates.tolist(), strict=True)):
            part, self.held[place] = lfilter([1.0], [1.0, rate - 1.0], white, zi=self.held[place])
            noise += weight * part
        return noise


def _added(weights: Array, poles: Array, length: int) -> Array:
    """Sum of weights_i poles_i^j for j below `length`: a product of powers of blocks and powers within one."""
    size = 1 << (length.bit_length() + 1) // 2
    within, before = np.arange(size), size * np.arange(-(-length // size))
    added: Array = (weights[:, None] * np.power.outer(poles, before)).T @ np.power.outer(poles, within)
    return added.ravel()[:length]


def _exponentials(start: float, step: float, count: int, decay: float = 1.0) -> tuple[Array, Array, Array, Array, float]:
    """As `Buffered.sums` has them.

    With r(x) = sum w_i / (1 - p_i x), B has 1 / ((1 - x) r(x)): a pole at 1, and one at each zero of r, between those of r.
    """
    place = start + step * np.arange(count)
    below, above = 1 / (1 + np.exp(-place)), 1 / (1 + np.exp(place))  # p and 1 - p
    weights = step / math.pi * np.sqrt(below * above)
    below, above = decay * below, above + (1 - decay) * below
    reflected = np.eye(count) - np.outer(np.sqrt(weights), np.sqrt(weights)) / weights.sum()
    zeros = np.sort(np.linalg.eigvalsh(reflected @ np.diag(above) @ reflected))[1:]  # 1 - zero; the first is of the vector
    slopes = (weights * below / np.subtract.outer(above, zeros).T ** 2).sum(axis=1)
    own = np.append(1 / (weights / above).sum(), 1 / (zeros * slopes))
    return weights, below, own, np.append(0.0, zeros), 1 / float((weights / below).sum())


def _geometric(weights: Array, rates: Array) -> tuple[Array, Array]:
    """Sum over j < k of (sum_i weights_i (1 - rates_i)^j)^2 is amounts_0 k + sum of amounts_i (1 - (1 - rates_i)^k).

    `rates` begin with 0.
    """
    first, second = np.triu_indices(len(weights))
    both = rates[first] + rates[second] - rates[first] * rates[second]
    products = weights[first] * weights[second] * np.where(first == second, 1.0, 2.0)
    amounts = np.append(products[0], products[1:] / both[1:])
    return amounts, both


def _norm(weights: Array, poles: Array, capacity: int) -> float:
    """Of the first column of C."""
    amounts, both = _geometric(np.append(0.0, weights), np.append(0.0, 1 - poles))
    return math.sqrt(float(amounts[1:] @ -np.expm1(capacity * np.log1p(-both[1:]))))


@cache
def _best_rule(capacity: int, buffers: int) -> tuple[float, float]:
    """The first node and the step of the trapezoidal rule."""

    def error(rule: Any) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):  # rules far off have poles of 1, and are never the best
            weights, poles, own, rates, constant = _exponentials(rule[0], math.exp(rule[1]), buffers)
            amounts, both = _geometric(own, rates)
            late = amounts[0] * capacity + amounts[1:] @ -np.expm1(capacity * np.log1p(-both[1:]))
            late += constant * (constant + 2 * float(own.sum()))
            return 2 * math.log(_norm(weights, poles, capacity)) + math.log(late)

    wide = math.log((math.log(capacity + 1) + 4) / buffers)
    found = minimize(error, (-1.0, wide), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    return float(found.x[0]), math.exp(float(found.x[1]))
