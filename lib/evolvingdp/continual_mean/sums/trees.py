"""Noise for all prefix sums of a stream from trees: binary, b-ary, and with Honaker's estimator.

**Computes** z_1, z_2, ...: noise such that (x_1 + ... + x_k) + z_k is a function of sums of x over blocks of b^h elements,
each with independent noise.

**Privacy.** An element enters at most `height` nodes of a tree, so that one element's change by s moves the nodes by at most
s * height in l1 and s * sqrt(height) in l2; k elements by k times that in l1, and by s * `l2_of(k)` in l2.

**Error.** `relative_variance(k)`: variance of z_k over that of one draw; `difference_variance(j, k)`: that of z_k - z_j.
Exact and public.

**Source.** Algorithm 1 (BinaryMechanism) of George et al. (2022) with E-CM-1 and E-CM-5; Honaker (2015), estimation from
below.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.noise import Tape

BLOCK = 1 << 10  # steps whose noise or variances are worked out at once; a tape's blocks are multiples of it


def check_count(count: int, capacity: int) -> None:
    if count > capacity:
        raise ValueError(f"a sum of capacity {capacity} was asked for a prefix of {count} elements")


def height(count: int, branching: int = 2) -> int:
    """floor(log_b count) + 1: how many nodes an element of a tree over `count` elements enters at most (E-CM-5)."""
    checks.integer_at_least(1, count=count)
    checks.integer_at_least(2, branching=branching)
    levels = 1
    while branching**levels <= count:
        levels += 1
    return levels


@dataclass(repr=False)
class Ahead(ABC):
    """The noise of the prefixes one after the other, worked out for several at once."""

    left: list[Any] = field(default_factory=list, init=False)  # of what is worked out, the next one last

    @abstractmethod
    def more(self) -> list[Any]:
        """That of the next prefixes; raises ValueError if there is none."""

    def __call__(self) -> Any:
        if not self.left:
            self.left = self.more()[::-1]
        return self.left.pop()


def loads_l2(total: int, most: int, blocks: list[int]) -> float:
    """Largest change in l2 of the sums over blocks of these sizes when elements change by `total` in all, each by at most
    `most`: exact, and attained by elements side by side, but for blocks that they do not fill."""
    full = [size * most for size in blocks]
    return math.sqrt(sum(total // held * held**2 + (total % held) ** 2 for held in full))


def blocks_l2(uses: int, blocks: list[int], gap: int = 1) -> float:
    """Largest change in l2 of the sums over blocks of these sizes when `uses` elements, `gap` apart, change by at most one.

    A level's squares add up to most where the elements fill as few of its blocks as they can.
    """
    most = [-(-size // gap) for size in blocks]  # elements in a block
    return math.sqrt(sum(uses // held * held**2 + (uses % held) ** 2 for held in most))


@dataclass(frozen=True)
class Tree:
    """Sums over blocks of b^h elements.  Plain: of each b siblings the first b-1 (the last is never needed); N nodes.

    `honaker` releases all nodes, at the same sensitivity, and estimates each from its own release and its descendants'.
    With integer noise the estimates are rounded to integers, by integer arithmetic: what is added to an integer sum is
    then a function of the noisy nodes alone, as round(s + z) = s + round(z), and no rounding of the noise can tell the
    sum.
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
        """Block sizes, of which a running sum may need all."""
        return height(self.capacity, self.branching)

    @property
    def l1(self) -> float:
        """Change of what is released, in l1, when one element changes by one."""
        return float(self.height)

    def l2_of(self, uses: int, gap: int = 1) -> float:
        """Largest change in l2 when `uses` elements, at least `gap` steps apart, change by at most one each."""
        return blocks_l2(min(uses, -(-self.capacity // gap)), [self.branching**level for level in range(self.height)], gap)

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
        left = np.asarray(lengths, dtype=np.int64)
        total = np.zeros(left.shape)
        for variance in self._node_variance:
            left, digit = np.divmod(left, self.branching)
            total = total + digit * variance
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

    def difference_variance(self, first: ArrayLike, last: ArrayLike) -> NDArray[np.float64]:
        """Of the noise of prefix `last` minus that of prefix `first` (any shapes, 0 <= first <= last <= capacity).

        Blocks that both add cancel.  Where the larger digits part, the first block that only `last` adds holds all that
        `first` adds below; by Honaker's estimates their errors are correlated, through the children's weights.
        """
        one, two = np.broadcast_arrays(np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64))
        total, below = np.zeros(one.shape), np.zeros(one.shape)  # below: what the block of `last` shares with `first`
        for level, variance in enumerate(self._node_variance):
            (one, low), (two, high) = np.divmod(one, self.branching), np.divmod(two, self.branching)
            if self.honaker and level:
                below = below * (1 - variance)  # the weight of the children
            parted, same = one == two, low == high
            total = np.where(parted, total + (high - low) * variance - 2 * below * ~same, total + (high + low) * variance)
            if self.honaker:
                below = below + low * variance
            if parted.all():
                break
        return total

    def all(self, count: int, tape: Tape) -> NDArray[Any]:
        """Noise of the prefixes of length 1 to `count`."""
        check_count(count, self.capacity)
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

    def online(self, tape: Tape) -> TreeNoise:
        """What returns, at the k-th call, the noise of the prefix of length k."""
        return TreeNoise(self, tape)


@dataclass(repr=False)
class TreeNoise(Ahead):
    """It keeps two numbers a level; a plain tree a block of noise ahead as well."""

    sums: Tree
    tape: Tape
    last: list[Any] = field(init=False)  # noise of the last prefix whose length is a multiple of b^h
    children: list[Any] = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        self.last, self.children = [0] * (self.sums.height + 1), [0] * (self.sums.height + 1)

    def more(self) -> list[Any]:
        sums, last, base, found = self.sums, self.last, self.sums.branching, []
        check_count(self.count + 1, sums.capacity)
        nodes = [self.tape.next()] if sums.honaker else self.tape.take(min(BLOCK, sums.capacity - self.count)).tolist()
        for node in nodes:
            self.count = rest = self.count + 1
            level = 0
            if sums.honaker:
                level, node = self._estimate(node)
            else:
                while not rest % base:
                    rest //= base
                    level += 1
            prefix = node + last[level]
            for lower in range(level + 1):
                last[lower] = prefix
            found.append(prefix)
        return found

    def _estimate(self, node: Any) -> tuple[int, Any]:
        """The height of the largest node that ends here, and the estimate of its noise."""
        sums, children, base, level, rest = self.sums, self.children, self.sums.branching, 0, self.count
        integer = isinstance(node, int)
        while True:
            place = rest % base
            children[level + 1] = node if place == 1 else children[level + 1] + node
            if place:
                return level, sums._rounded(node, level) if integer else node
            rest //= base
            level += 1
            weight = sums._node_variance[level]
            below, node = children[level], self.tape.next()
            node = base**level * node + below if integer else weight * node + (1 - weight) * below
