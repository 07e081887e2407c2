"""Noise for all prefix sums of a stream from a tree with negative digits.

**Computes** z_1, z_2, ...: noise such that (x_1 + ... + x_k) + z_k is a function of sums of x over blocks, each with
independent noise; blocks are added or subtracted.

**Privacy.** That of `BalancedTree`, with Laplace noise.  **Error.** `relative_variance`, `difference_variance`, exact.

**Source.** Andersson, Pagh, Steiner and Torkamani (2025).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.sums.trees import Ahead, blocks_l2, check_count
from evolvingdp.core import checks
from evolvingdp.core.noise import Tape


@dataclass(frozen=True)
class BalancedTree:
    """Sums over blocks of b^h elements with digits from -(b-1)/2 to b/2, rounded down: few blocks are added or subtracted.

    A block that is subtracted, or that is added before it ends, holds elements to come, which cancel from the sum. A
    running sum needs only that block's noise, which does not depend on data.  Private for Laplace noise, also if
    elements depend on earlier releases (proof in `book/continual_mean.md`); Gaussian noise is refused.
    """

    capacity: int
    branching: int = 19

    def __post_init__(self) -> None:
        checks.integer_at_least(1, capacity=self.capacity)
        checks.integer_at_least(2, branching=self.branching)
        checks.plain_integers(self, "capacity", "branching")

    @cached_property
    def below(self) -> int:
        """Blocks of a size that are subtracted at most."""
        return (self.branching - 1) // 2

    @cached_property
    def height(self) -> int:
        """The least number of digits that can write `capacity`."""
        levels, reach = 1, self.branching // 2
        while reach < self.capacity:
            levels, reach = levels + 1, reach * self.branching + self.branching // 2
        return levels

    @property
    def l1(self) -> float:
        return float(self.height)

    def l2_of(self, uses: int, gap: int = 1) -> float:
        """An upper bound on what `uses` elements, `gap` steps apart, move the noisy values by, in l2."""
        return blocks_l2(min(uses, self.capacity), [self.branching**level for level in range(self.height)], gap)

    def relative_variance(self, lengths: ArrayLike) -> NDArray[np.float64]:
        """The variance of a running sum's noise, in units of that of one block: how many blocks it adds or subtracts,
        its digits' absolute values added up."""
        left = np.asarray(lengths, dtype=np.int64)
        total = np.zeros(left.shape)
        for _ in range(self.height):
            left, digit = np.divmod(left + self.below, self.branching)
            total += np.abs(digit - self.below)
        return total

    def difference_variance(self, first: ArrayLike, last: ArrayLike) -> NDArray[np.float64]:
        """Of the noise of prefix `last` minus that of prefix `first`: the blocks between their places in the same group."""
        one, two = np.broadcast_arrays(np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64))
        total = np.zeros(one.shape)
        for _ in range(self.height):
            one, low = np.divmod(one + self.below, self.branching)
            two, high = np.divmod(two + self.below, self.branching)
            apart = np.abs(low - self.below) + np.abs(high - self.below)
            total = total + np.where(one == two, np.abs(high - low), apart)
        return total

    def variances(self, count: int) -> NDArray[np.float64]:
        """The same for the lengths 1 to `count`, faster."""
        tops, sizes, totals = [count], np.abs(np.arange(self.branching) - self.below), np.zeros(1)
        for _ in range(self.height - 1):
            tops.append((tops[-1] + self.below) // self.branching)
        for top in reversed(tops):  # from lengths in blocks of a size to those in blocks of the next smaller one
            totals = (totals[:, None] + sizes).ravel()[self.below : self.below + top + 1]
        return totals[1:]

    def all(self, count: int, tape: Tape) -> NDArray[Any]:
        """Noise of the prefixes of length 1 to `count`; a group of siblings is drawn at the first prefix that needs one."""
        check_count(count, self.capacity)
        base, reach, first, levels = self.branching, 0, [], []
        for level in range(self.height):
            reach = reach * base + self.below  # of all digits up to this level's
            groups = np.arange((count + reach) // base ** (level + 1) + 1)
            first.append(np.maximum(groups * base ** (level + 1) - reach, 1))
            levels.append(np.full(len(groups), -level))
        place = np.empty(sum(map(len, first)), dtype=np.int64)
        place[np.lexsort((np.concatenate(levels), np.concatenate(first)))] = np.arange(len(place))
        nodes = tape.take(len(place) * (base - 1)).reshape(-1, base - 1)
        ends = np.cumsum([len(times) for times in first])
        center = np.zeros(1, dtype=nodes.dtype)
        for level in reversed(range(self.height)):
            end = int(ends[level])
            drawn = nodes[place[end - len(first[level]) : end]]
            center = center[: len(drawn), None]
            added = center + np.cumsum(drawn[:, self.below :], axis=1)
            subtracted = center - np.cumsum(drawn[:, : self.below], axis=1)[:, ::-1]
            center = np.concatenate([subtracted, center, added], axis=1).ravel()[self.below :]
        return center[1 : count + 1]

    def online(self, tape: Tape) -> BalancedNoise:
        """What returns, at the k-th call, the noise of the prefix of length k; it keeps b numbers a level."""
        return BalancedNoise(self, tape)


@dataclass(repr=False)
class BalancedNoise(Ahead):
    """It keeps the noise of the prefixes around the current one, per level."""

    sums: BalancedTree
    tape: Tape
    groups: list[list[Any]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of the current one in its group; not kept for the lowest
    count: int = 0  # of those up to the end of the lowest group

    def _group(self, center: Any) -> list[Any]:
        """The siblings around a prefix of a higher level, with their draws."""
        sums = self.sums
        drawn = self.tape.take(sums.branching - 1).tolist()
        subtracted = [center - noise for noise in accumulate(drawn[: sums.below])]
        return [*subtracted[::-1], center, *(center + noise for noise in accumulate(drawn[sums.below :]))]

    def more(self) -> list[Any]:
        sums, first, level = self.sums, 0, 1
        check_count(self.count + 1, sums.capacity)
        if self.count:
            self.places[1] += 1
            while self.places[level] == sums.branching:
                self.places[level] = 0
                level += 1
                self.places[level] += 1
            for lower in reversed(range(level)):
                self.groups[lower] = self._group(self.groups[lower + 1][self.places[lower + 1]])
        else:
            self.groups, self.places = [self._group(0) for _ in range(sums.height)][::-1], [sums.below] * sums.height
            first = sums.below + 1
        found = self.groups[0][first : first + sums.capacity - self.count]
        self.count += len(found)
        return found
