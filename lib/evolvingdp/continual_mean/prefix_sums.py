"""Noise for all prefix sums of a stream: trees, and a filter of eight buffers.

**Computes** z_1, z_2, ...: noise such that (x_1 + ... + x_k) + z_k is a function of C x + white noise, where a row of C sums
a block of elements (trees), or C is lower triangular Toeplitz (`Buffered`) and z = B w with B C = A, all ones on and below
the diagonal.

**Privacy.** One element that changes by 1 changes C x by `l1` in l1 (trees); `uses` elements that change by 1 each by
`l2(uses)` in l2.  Entries of C are >= 0, so that the worst change has one sign; the filter's coefficients do not increase,
so that the inner product of two columns falls with their distance and with the later of them (Theorem "What several
elements cost").

**Error.** `relative_variance(k)`: variance of z_k over that of one draw.  Exact and public.

**Source.** Algorithm 1 of George et al. (2022) with E-CM-1 and E-CM-5; negative digits: Andersson, Pagh, Steiner and
Torkamani (2025); the square root: Fichtenberger, Henzinger and Upadhyay (2023) and Henzinger, Upadhyay and Upadhyay (2023),
with a decay: Choquette-Choo et al. (2024); buffers: Dvijotham, McMahan, Pillutla, Steinke and Thakurta (2024).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.noise import Tape

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
LEAST_DECAY = 0.1  # below it poles of buffers are too near each other to be told apart
FIRST, LONGEST = 1 << 10, 1 << 14  # prefixes whose noise is worked out at once: as many as there have been, within these
BUFFERS = 8


@dataclass(frozen=True)
class PrefixSums(ABC):
    """Of at most `capacity` elements."""

    capacity: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity)
        checks.plain_integers(self, "capacity")

    @abstractmethod
    def l2(self, uses: int) -> float:
        """Largest change of C x in l2: see above."""

    @abstractmethod
    def relative_variance(self, lengths: ArrayLike) -> Array:
        """Of the noise of the prefixes of these lengths (any shape, 0 to capacity), over the variance of one draw."""

    @abstractmethod
    def part(self, first: int, count: int, tape: Tape, held: Any) -> tuple[NDArray[Any], Any]:
        """Noise of the `count` prefixes after that of length `first`, and what the next part needs; `held`: the same of the
        part before, None at first."""

    def variances(self, count: int) -> Array:
        """`relative_variance` of the lengths 1 to `count`."""
        return self.relative_variance(np.arange(1, count + 1))

    def online(self, tape: Tape) -> Noises:
        """Before the first prefix; secret."""
        return Noises(self, tape)

    def all(self, count: int, tape: Tape) -> NDArray[Any]:
        """Noise of the prefixes of length 1 to `count`: that of `online`."""
        noises, parts = self.online(tape), [np.zeros(0, dtype=np.int64)]
        while noises.last < count:
            noises = noises.after()
            parts.append(noises.noise)
        return np.concatenate(parts)[:count]


class Noises:
    """Noise of consecutive prefixes, worked out in parts, always the same ones; secret.  No call changes what it returns."""

    def __init__(self, sums: PrefixSums, tape: Tape, first: int = 0, count: int = 0, held: Any = None) -> None:
        self.sums, self._tape, self.first, self.last = sums, tape, first, first + count
        self.noise: NDArray[Any] = np.zeros(0, dtype=np.int64)
        self._next: Noises | None = None
        if count:
            self.noise, held = sums.part(first, count, tape, held)
        self._held = held

    @cached_property
    def _listed(self) -> tuple[list[Any], list[float]]:
        """Noise and relative variances, as far as prefixes are asked for one by one."""
        return self.noise.tolist(), self.sums.relative_variance(np.arange(self.first + 1, self.last + 1)).tolist()

    def after(self) -> Noises:
        """The next part; raises ValueError if there is none."""
        if self._next is None:
            count = min(max(FIRST, min(self.last, LONGEST)), self.sums.capacity - self.last)
            if count <= 0:
                raise ValueError(f"a sum of capacity {self.last} was asked for a prefix of {self.last + 1} elements")
            self._next = Noises(self.sums, self._tape, self.last, count, self._held)
        return self._next

    def of(self, length: int) -> tuple[Any, float, Noises]:
        """Noise of the prefix of this length, which is in this part or begins the next, and its relative variance; and the
        part that it is in."""
        if length > self.last:
            return self.after().of(length)
        place, (noise, variances) = length - self.first - 1, self._listed
        return noise[place], variances[place], self


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

    def l2(self, uses: int) -> float:
        """A level's squares add up to most where the elements fill as few of its blocks as they can."""
        uses, full = min(uses, self.capacity), [self.branching**level for level in range(self.height)]
        return math.sqrt(sum(uses // held * held**2 + (uses % held) ** 2 for held in full))

    def relative_variance(self, lengths: ArrayLike) -> Array:
        """How many blocks it adds or subtracts: its digits' absolute values added up."""
        places = self.places(np.asarray(lengths, dtype=np.int64))
        digits = [np.abs(place - self.branching * above) for place, above in itertools.pairwise(places)]
        return np.asarray(np.sum(digits, axis=0, dtype=float))

    def variances(self, count: int) -> Array:
        """The same of all at once: numbers of one more digit are those of the others, once for each of its values."""
        base, low = self.branching, self.below
        digits = np.abs(np.arange(-low, base - low, dtype=float))
        found, before = np.zeros(1), 0  # of numbers from -before on
        while (len(found) - before - 1) + len(found) * (base - 1 - low) < count:
            found, before = np.add.outer(digits, found).ravel(), before + low * len(found)
        highest = np.arange((count + before) // len(found) + 1, dtype=float)
        return np.asarray(np.add.outer(highest, found).ravel()[before + 1 : before + 1 + count])

    def part(self, first: int, count: int, tape: Tape, held: Any) -> tuple[NDArray[Any], Any]:
        """Held: per level the running sum of its blocks' noise from some block on; a prefix needs differences of two."""
        base, kept = self.branching, []
        found: NDArray[Any] = np.zeros(count, dtype=np.int64)
        levels = itertools.pairwise(self.places(np.arange(first + 1, first + count + 1)))
        for (place, above), (low, known) in zip(
            levels, held or [(0, np.zeros(1, dtype=np.int64))] * self.height, strict=True
        ):
            center = base * above
            new = np.arange(low + len(known), max(int(place[-1]), int(center[-1])) + 1)
            needed = (new - base + self.below) % base != 0  # the block between two groups of siblings is in no prefix
            drawn = tape.take(int(needed.sum()))
            noise = np.zeros(len(new), dtype=drawn.dtype if len(drawn) else known.dtype)
            noise[needed] = drawn
            known = np.concatenate([known, known[-1] + np.cumsum(noise)])
            found = found + (known[place - low] - known[center - low])
            last = min(int(place[-1]), int(center[-1]))
            kept.append((last, known[last - low :]))
        return found, kept


@dataclass(frozen=True)
class Buffered(PrefixSums):
    """C_j = sum of w_i p_i^j, eight terms, close to the coefficients of (1 - decay z)^(-1/2): its noise needs a number a
    term, and all is in closed form.

    Without decay that is the square root of the matrix of running sums, the best for one element a person; a decay is better
    for people who come back, as columns that are far apart have less in common.

    Without decay the j-th coefficient is the integral of 1 / pi u^(j - 1/2) (1 - u)^(-1/2) over [0, 1]: the trapezoidal rule
    in log(u / (1 - u)).  Its first node and step have within a five-hundredth the least error of the last sum, for one
    element a person and up to 2^40 of them.  A decay multiplies the poles.  B is of that kind, too, with a pole at 1 and a
    constant.
    """

    decay: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.finite(decay=self.decay)
        if not LEAST_DECAY <= self.decay <= 1:
            raise ValueError(f"decay must lie in [{LEAST_DECAY}, 1], got {self.decay!r}")

    @cached_property
    def terms(self) -> tuple[Array, Array, Array, Array, float]:
        """Weights and poles of C, whose first entry is 1; weights of B, one minus its poles (0 first), and its constant."""
        size = math.log2(self.capacity)
        step = 1.76 + 0.054 * size
        place = -6.2 + 0.154 * size + step * np.arange(BUFFERS)
        poles, left = 1 / (1 + np.exp(-place)), 1 / (1 + np.exp(place))
        return exponentials(np.sqrt(poles * left), self.decay * poles, left + (1 - self.decay) * poles)

    @cached_property
    def logs(self) -> Array:
        """Of the poles."""
        return np.log(self.terms[1])

    def coefficients(self, count: int) -> Array:
        """The first of the first column of C."""
        weights, *_ = self.terms
        return np.asarray(weights @ np.exp(self.logs[:, None] * np.arange(count)))

    def l2(self, uses: int) -> float:
        """After the last of the elements a column's poles are left."""
        uses, (weights, poles, *_) = min(uses, self.capacity), self.terms
        head, left = np.cumsum(self.coefficients(uses)), self.capacity - uses
        tail = _norm(weights * poles * np.expm1(uses * np.log(poles)) / (poles - 1), poles, left) if left else 0.0
        return math.hypot(float(np.linalg.norm(head)), tail)

    @cached_property
    def _amounts(self) -> tuple[Array, Array, float]:
        """The variance of sum k is the last + amounts_0 k + sum of amounts_i (1 - e^(logs_i k))."""
        _, _, own, rates, constant = self.terms
        amounts, both = _geometric(own, rates)
        return amounts, np.log1p(-both[1:]), constant * (constant + 2 * float(own.sum()))

    def relative_variance(self, lengths: ArrayLike) -> Array:
        amounts, logs, first = self._amounts
        asked = np.asarray(lengths, dtype=float)
        found = first * (asked > 0) + amounts[0] * asked
        for amount, log in zip(amounts[1:].tolist(), logs.tolist(), strict=True):
            found -= amount * np.expm1(log * asked)
        return np.asarray(found)

    def part(self, first: int, count: int, tape: Tape, held: Any) -> tuple[NDArray[Any], Any]:
        """Held: a number a buffer.  B w is the constant times w plus the weighted sum of recursions of w."""
        from scipy.signal import lfilter

        _, _, own, rates, constant = self.terms
        white, kept = tape.take(count), []
        noise: Array = constant * white
        for weight, rate, before in zip(own.tolist(), rates.tolist(), held or [np.zeros(1)] * len(own), strict=True):
            recursion, after = lfilter([1.0], [1.0, rate - 1.0], white, zi=before)
            noise += weight * recursion
            kept.append(after)
        return noise, kept


def exponentials(weights: Array, poles: Array, left: Array) -> tuple[Array, Array, Array, Array, float]:
    """As `Buffered.terms` has them, for weights in any unit; `left`: one minus the poles, precisely.

    With r(x) = sum w_i / (1 - p_i x), B has 1 / ((1 - x) r(x)): a pole at 1, and one at each zero of r, between those of r.
    """
    weights = weights / weights.sum()
    reflected = np.eye(len(weights)) - np.outer(np.sqrt(weights), np.sqrt(weights))
    zeros = np.sort(np.linalg.eigvalsh(reflected @ np.diag(left) @ reflected))[1:]  # 1 - zero; the first is of the vector
    slopes = (weights * poles / np.subtract.outer(left, zeros).T ** 2).sum(axis=1)
    own = np.append(1 / (weights / left).sum(), 1 / (zeros * slopes))
    return weights, poles, own, np.append(0.0, zeros), 1 / float((weights / poles).sum())


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
