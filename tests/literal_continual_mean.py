"""Algorithms 4, 5 and 6 line by line, slow, for comparison: each repair can be taken back.

The reference that `blocks` is tested against, and the means to show what the printed lines do.  Bits only.
The lines are those of E-CM-1, E-CM-2, E-CM-3 and E-CM-10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from evolvingdp.continual_mean.binary_mechanism import printed_sums
from evolvingdp.continual_mean.blocks import Blocks, median
from evolvingdp.continual_mean.prefix_sums import FIRST, Buffered, Tree

PRINTED = ("sum", "total", "inactive", "set")  # the lines that can be left as printed


@dataclass
class BinMech:
    """Algorithm 1 as Section 3 uses it: Stream, NoisyPartialSums, Sum."""

    noise: Callable[[], float]
    printed: frozenset[str]
    stream: list[int] = field(default_factory=list)
    noisy_partial_sums: list[float] = field(default_factory=list)

    def append(self, element: int) -> None:
        if "set" in self.printed and element in self.stream:
            return  # Stream U {x} holds an element once
        self.stream.append(element)
        t = len(self.stream)
        largest = t & -t
        self.noisy_partial_sums.append(sum(self.stream[t - largest : t]) + self.noise())

    def sum(self) -> float:
        if not self.stream:
            return 0.0
        if "sum" in self.printed:
            return float(printed_sums(self.noisy_partial_sums)[-1])
        total, index = 0.0, 0
        for j in reversed(range(len(self.stream).bit_length())):
            if len(self.stream) >> j & 1:
                index += 1 << j
                total += self.noisy_partial_sums[index - 1]
        return total


def run(
    settings: Blocks,
    stream: Iterable[tuple[int, int]],
    noise: Callable[[int], Callable[[], float]],
    rngs: list[np.random.Generator],
    printed: Iterable[str] = (),
) -> Iterator[tuple[float, dict[int, int]]]:
    """The estimate after each (user, bit), and how often each level's median has been drawn.

    `noise(tree)` returns that tree's supply of node noise; the generators in `rngs`, per tree, draw the medians.
    """
    as_printed = frozenset(printed)
    if unknown := as_printed - set(PRINTED):
        raise ValueError(f"printed must be among {', '.join(PRINTED)}, got {', '.join(sorted(unknown))}")
    mechanisms = [BinMech(noise(tree), as_printed) for tree in range(settings.n_trees)]
    prior = dict.fromkeys(range(len(settings.levels)), settings.first_estimate)
    inactive = [level for level, one in enumerate(settings.levels) if one.waits]
    buffers: dict[int, list[int]] = {level: [] for level in inactive}
    samples: dict[int, list[int]] = {}
    total, medians = 0, dict.fromkeys(inactive, 0)

    def project(level: int, value: int) -> int:
        if not settings.levels[level].projects:
            return value
        low, high = settings.interval(level, prior[level])
        return min(max(value, low), high)

    for user, bit in stream:
        mine = samples.setdefault(user, [])
        mine.append(bit)
        for level in list(inactive):
            one = settings.levels[level]
            size = one.size
            if sum(min(len(theirs), size) for theirs in samples.values()) < one.waits:
                continue
            first = [theirs[:size] for _, theirs in sorted(samples.items())]
            values = np.array([value for theirs in first for value in theirs])[: one.waits]
            prior[level] = median(settings, level, values, rngs[one.tree])
            medians[level] += 1
            mechanism = mechanisms[one.tree]
            if "inactive" in as_printed:  # the level stays in Inactive, its buffer stays full: again at every step
                mechanism.stream.clear()
                mechanism.noisy_partial_sums.clear()
            for value in buffers[level]:
                mechanism.append(project(level, value))
            total += size * len(buffers[level])
            if "inactive" not in as_printed:
                inactive.remove(level)
                buffers[level] = []
        count = len(mine)
        if count & (count - 1) == 0:
            level = count.bit_length() - 1
            value = sum(mine[count // 2 :]) if level else bit
            if level in inactive:
                buffers[level].append(value)
            else:
                mechanisms[settings.levels[level].tree].append(project(level, value))
                total += count if "total" in as_printed else settings.levels[level].size
        yield (sum(mechanism.sum() for mechanism in mechanisms) / total if total else settings.first_estimate), dict(medians)


def released(sums: Any, elements: Any) -> np.ndarray:
    """All that a tree or a filter adds noise to, in the order of the noise."""
    values = np.asarray(elements, dtype=float)
    if isinstance(sums, Buffered):
        return np.convolve(values, sums.coefficients(len(values)))[: len(values)]
    if not isinstance(sums, Tree):
        raise TypeError(f"sums must be a Tree or Buffered, got {sums!r}")
    running = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.minimum(tree_nodes(sums), len(values))
    return np.asarray(running[ends[:, 1]] - running[ends[:, 0]])


@cache
def tree_nodes(sums: Tree) -> np.ndarray:
    """(nodes, 2): from which to which length of a prefix each block is, in the order of their noise: level by level.

    A prefix adds the blocks up to the multiple of a level's block size that its digits from there on write, beginning with
    the multiple of the next larger one; the block between two groups of siblings is in no prefix.
    """
    if sums.capacity > FIRST:
        raise ValueError(f"capacity must be at most {FIRST}, where all nodes are drawn at once, got {sums.capacity}")
    base, nodes, lengths = sums.branching, [], np.arange(1, sums.capacity + 1)
    for level in range(sums.height):
        reach = sums.below * sum(base**lower for lower in range(level))
        place = (lengths + reach) // base**level
        center = base * ((lengths + reach + sums.below * base**level) // base ** (level + 1))
        pairs = [range(min(ends), max(ends)) for ends in zip(place.tolist(), center.tolist(), strict=True)]
        used = {block for pair in pairs for block in pair}
        last = max(int(place.max()), int(center.max()))
        drawn = [block for block in range(last) if (block + 1 - base + sums.below) % base]
        assert used <= set(drawn)  # each block that a prefix needs has noise of its own
        nodes += [(block * base**level, (block + 1) * base**level) for block in drawn]
    return np.array(nodes)
