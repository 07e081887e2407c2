"""Noise for all prefix sums of a stream: trees (binary, b-ary, with Honaker's estimator) and the square-root factorization.

**Computes** z_1, z_2, ...: noise such that (x_1 + ... + x_k) + z_k is a function of sums of x over few nodes, each with
independent noise.  A `Tree` releases the sums over blocks of b^h elements.  `Toeplitz` releases C x + noise, where
C C = (all ones below the diagonal), and multiplies by C again (Fichtenberger, Henzinger and Upadhyay 2023; Bennett 1977).

**Privacy.** An element enters at most `height` nodes of a tree, so that one element's change by s moves the nodes by at most
s * height in l1 and s * sqrt(height) in l2; of the factorization by s * `l2` in l2.

**Error.** `relative_variance(k)`: variance of z_k over that of one draw, exact and public.

**Source.** Algorithm 1 (BinaryMechanism) of George et al. (2022) with E-CM-1 and E-CM-5; Honaker (2015), estimation from
below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import fftconvolve

from evolvingdp.core import checks
from evolvingdp.core.noise import Tape


def height(count: int, branching: int = 2) -> int:
    """floor(log_b count) + 1: how many nodes an element of a tree over `count` elements enters at most (E-CM-5)."""
    checks.integer_at_least(1, count=count)
    checks.integer_at_least(2, branching=branching)
    levels = 1
    while branching**levels <= count:
        levels += 1
    return levels


@dataclass(frozen=True)
class Tree:
    """Sums over blocks of b^h elements.  Plain: of each b siblings the first b-1 (the last is never needed); N nodes.

    `honaker` releases all nodes, at the same sensitivity, and estimates each from its own release and its descendants'.
    With integer noise the estimates are rounded to integers, in integers: what is added to an integer sum is then a
    function of the noisy nodes alone, as round(s + z) = s + round(z), and no rounding of the noise can tell the sum.
    """

    capacity: int
    branching: int = 2
    honaker: bool = False

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity)
        checks.integer_at_least(2, branching=self.branching)
        checks.plain_integers(self, "capacity", "branching")

    @cached_property
    def height(self) -> int:
        return height(self.capacity, self.branching)

    @property
    def l1(self) -> float:
        """Change of what is released, in l1, when one element changes by one."""
        return float(self.height)

    @property
    def l2(self) -> float:
        return float(np.sqrt(self.height))

    @cached_property
    def _node_variance(self) -> list[float]:
        """Of the estimate of a node, by its height, over the variance of one draw."""
        variances = [1.0]
        for _ in range(1, self.height):
            children = self.branching * variances[-1]
            variances.append(children / (1 + children) if self.honaker else 1.0)
        return variances

    def relative_variance(self, lengths: ArrayLike) -> NDArray[np.float64]:
        """Of the noise of the prefixes of these lengths (any shape, 0 to capacity), over the variance of one draw."""
        variances: NDArray[np.float64] = self.variance_at(np.asarray(lengths, dtype=np.int64))
        return variances

    def variance_at(self, length: Any) -> Any:
        """The same for one length, faster."""
        total = 0.0
        for variance in self._node_variance:
            length, digit = divmod(length, self.branching)
            total = total + digit * variance  # of numbers and of arrays
        return total

    def variances(self, count: int) -> NDArray[np.float64]:
        """The same for the lengths 1 to `count`, faster."""
        totals = np.zeros(1)
        for variance in self._node_variance:  # from lengths of h digits to those of h + 1
            if len(totals) > count:
                break
            digits = np.arange(min(self.branching, count // len(totals) + 1))
            totals = (totals + digits[:, None] * variance).ravel()
        return totals[1 : count + 1]

    def all(self, count: int, tape: Tape) -> NDArray[Any]:
        """Noise of the prefixes of length 1 to `count`."""
        self._fits(count)
        prefix = self._refined(count, tape) if self.honaker else np.concatenate([[0], tape.take(count)])
        for level in reversed(range(height(max(count, 1), self.branching))):
            block = self.branching**level
            for digit in range(1, self.branching):
                ends = prefix[digit * block :: self.branching * block]
                ends += prefix[(digit - 1) * block :: self.branching * block][: len(ends)]
        return prefix[1:]

    def _refined(self, count: int, tape: Tape) -> NDArray[np.float64]:
        """At k the estimate of the noise of the largest node that ends at k; position 0 is empty."""
        levels = height(max(count, 1), self.branching)
        blocks = [self.branching**level for level in range(levels)]
        nodes = np.zeros(count, dtype=np.int64)  # that end at each element
        for block in blocks:
            nodes[block - 1 :: block] += 1
        first = np.cumsum(nodes) - nodes  # of the draws for them
        drawn = tape.take(int(nodes.sum()))
        integer = drawn.dtype.kind == "i"
        prefix = np.zeros(count + 1, dtype=drawn.dtype)
        estimates = np.empty(0, dtype=drawn.dtype)  # with integers, times 1 + b + ... + b^level
        for level, block in enumerate(blocks):
            own = drawn[first[block - 1 :: block] + level]
            if level:
                below = estimates[: len(own) * self.branching].reshape(-1, self.branching)
                children = below[:, 0].copy()
                for child in range(1, self.branching):
                    children += below[:, child]
                weight = self._node_variance[level]
                own = block * own + children if integer else weight * own + (1 - weight) * children
            estimates = own
            prefix[block::block] = self._rounded(own, level) if integer else own
        return prefix

    def _rounded(self, scaled: Any, level: int) -> Any:
        """The nearest integers to `scaled` over 1 + b + ... + b^level, halves upwards; by integer arithmetic."""
        whole = (self.branching ** (level + 1) - 1) // (self.branching - 1)
        return (2 * scaled + whole) // (2 * whole)

    def online(self, tape: Tape) -> Callable[[], Any]:
        """A function whose k-th call returns the noise of the prefix of length k; it keeps `height` numbers."""
        last = [0] * (self.height + 1)  # noise of the last prefix whose length is a multiple of b^h
        children: list[Any] = [0] * (self.height + 1)
        return partial(self._advance, tape, last, children, [0])

    def _advance(self, tape: Tape, last: list[Any], children: list[Any], counted: list[int]) -> Any:
        """Noise of the next prefix, the one of length `counted` + 1: a method, so that a state can be pickled."""
        base, weights = self.branching, self._node_variance
        self._fits(counted[0] + 1)
        counted[0] += 1
        level, rest, node = 0, counted[0], tape.next()
        while True:
            if self.honaker:
                if level and isinstance(node, int):
                    node = base**level * node + children[level]
                elif level:
                    node = weights[level] * node + (1 - weights[level]) * children[level]
                children[level + 1] = node if rest % base == 1 else children[level + 1] + node
            if rest % base:
                break
            rest //= base
            level += 1
            if self.honaker:
                node = tape.next()
        if self.honaker and isinstance(node, int):
            node = self._rounded(node, level)
        prefix = node + last[level]
        last[: level + 1] = [prefix] * (level + 1)
        return prefix

    def _fits(self, count: int) -> None:
        if count > self.capacity:
            raise ValueError(f"a tree of capacity {self.capacity} was asked for a prefix of {count} elements")


@cache
def best_branching(capacity: int, honaker: bool = True, largest: int = 32) -> int:
    """The branching with the least l1-calibrated error, exact, averaged over evenly spread lengths up to `capacity`."""
    lengths = np.unique(np.linspace(1, capacity, 4096).astype(np.int64))

    def error(branching: int) -> float:
        tree = Tree(capacity, branching, honaker)
        return float(np.mean(tree.relative_variance(lengths))) * tree.l1**2

    return min(range(2, largest + 1), key=error)


@dataclass(frozen=True)
class Toeplitz:
    """The square root of the all-ones lower triangle: entries f_(i-j) with f_j = C(2j, j) / 4^j.  Gaussian noise only."""

    capacity: int

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity)
        checks.plain_integers(self, "capacity")

    @cached_property
    def coefficients(self) -> NDArray[np.float64]:
        """f_0 = 1, f_j = f_(j-1) (2j - 1) / (2j)."""
        step = np.arange(1, self.capacity, dtype=float)
        return np.concatenate([[1.0], np.cumprod((2 * step - 1) / (2 * step))])

    @cached_property
    def _squares(self) -> NDArray[np.float64]:
        return np.concatenate([[0.0], np.cumsum(self.coefficients**2)])

    @property
    def l1(self) -> float:
        return float(np.sum(self.coefficients))

    @property
    def l2(self) -> float:
        return float(np.sqrt(self._squares[-1]))

    def relative_variance(self, lengths: ArrayLike) -> NDArray[np.float64]:
        return self._squares[np.asarray(lengths, dtype=np.int64)]

    def variance_at(self, length: int) -> float:
        return float(self._squares[length])

    def variances(self, count: int) -> NDArray[np.float64]:
        return self._squares[1 : count + 1]

    def all(self, count: int, tape: Tape) -> NDArray[np.float64]:
        """Noise of the prefixes of length 1 to `count`; always drawn for the whole capacity, then cut."""
        if count > self.capacity:
            raise ValueError(f"a factorization of capacity {self.capacity} was asked for a prefix of {count} elements")
        noise: NDArray[np.float64] = fftconvolve(tape.take(self.capacity), self.coefficients)[:count]
        return noise

    def online(self, tape: Tape) -> Callable[[], Any]:
        """As `all`; the noise does not depend on data, so it is drawn at once and kept (one number per element)."""
        return partial(next, iter(self.all(self.capacity, tape).tolist()))


PrefixSums = Tree | Toeplitz
