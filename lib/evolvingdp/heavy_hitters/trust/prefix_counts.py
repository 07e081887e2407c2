"""Counts of prefixes with integer noise: what two servers learn, one of them honest, and what a curator may release.

**Computes** a list of words with estimates and standard errors, without knowing the words in advance: the tree is descended
on the true counts of prefixes plus noise, and nothing but these sums is seen.

**Guarantee.** Pure epsilon-differential privacy of all noisy counts, against everybody who does not know one server's
noise: each server adds a full share, since it knows its own.  Neighbouring inputs differ in the word of one user, which
moves two counts a level by 1.  This is the ideal functionality of Poplar; that two servers compute it without seeing a
count is cryptography, so that security is computational there, and not implemented here.  `servers=1` is a curator.

**Source.** Boneh et al. (2021) for the functionality; noise of each server as in their Section 6, as integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.heavy_hitters.listing import HeavyHitters, adaptive_cut, descend
from evolvingdp.heavy_hitters.word_tree import Nodes, WordTree

_AT_ONCE = 1 << 20  # candidates


@checks.plain
@dataclass(frozen=True)
class PrefixCounts:
    """`shares[l]` of epsilon are spent on level l; cuts are those of an adaptive `TreeHist`."""

    tree: WordTree
    epsilon: float  # of all levels
    threshold: float  # users
    servers: int = 2
    shares: tuple[float, ...] = (1.0,)
    max_candidates: int = 20_000_000  # asked for at one level

    def __post_init__(self) -> None:
        checks.integer_at_least(1, servers=self.servers, max_candidates=self.max_candidates)
        checks.positive(epsilon=self.epsilon, threshold=self.threshold)
        checks.positive(**{f"shares[{i}]": share for i, share in enumerate(self.shares)})
        if len(self.shares) != self.tree.depth or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(f"shares must be {self.tree.depth} numbers that sum to 1, got {self.shares}")

    def noise(self, level: int) -> DiscreteLaplace:
        """What each server adds to each count of `level`; shares that sum to a little more than 1 are no more epsilon."""
        return DiscreteLaplace(2 * max(1.0, math.fsum(self.shares)) / (self.epsilon * self.shares[level]))

    def error(self, level: int) -> float:
        """Standard error of a count at `level`, in users."""
        return math.sqrt(self.servers * self.noise(level).variance)

    def cut(self, level: int) -> int:
        """The noisy count that a node must reach at `level`."""
        last = level == self.tree.depth - 1
        return math.ceil(self.threshold if last else adaptive_cut(self.threshold, self.error(level)))

    def search(self, leaves: Nodes, counts: NDArray[np.integer], private: Sequence[np.random.Generator]) -> HeavyHitters:
        """`counts[i]` users hold `leaves[i]`; each server has its own generator.  Every candidate is counted."""
        if len(private) != self.servers:
            raise ValueError(f"private must be a generator for each of {self.servers} servers, got {len(private)}")
        leaves, tree = self.tree.checked(leaves), self.tree
        counts = checks.counts_of_keys(counts, leaves)

        def ask(level: int, parents: Nodes, _: int) -> tuple[Nodes, NDArray[np.int64], float, float]:
            prefixes = _exact(leaves[:, : sum(tree.steps[: level + 1])])
            held, place = np.unique(prefixes, return_inverse=True)
            users, cut, found = np.bincount(place, weights=counts).astype(np.int64), self.cut(level), []
            size = max(1, _AT_ONCE // tree.fan(level))
            for first in range(0, max(1, len(parents)), size):
                nodes = tree.children(parents[first : first + size], level)
                keys, sums = _exact(nodes), np.zeros(len(nodes), dtype=np.int64)
                own = np.isin(keys, held)
                sums[own] = users[np.searchsorted(held, keys[own])]
                for rng in private:
                    sums += self.noise(level).draw(len(nodes), rng)
                found.append((nodes[sums >= cut], sums[sums >= cut]))
            nodes, sums = (np.concatenate(parts) for parts in zip(*found, strict=True))
            return nodes, sums, self.error(level), cut

        nodes, sums, path = descend(tree, ask, self.max_candidates)
        errors = np.full(len(nodes), self.error(tree.depth - 1))
        return HeavyHitters.of(tree.decode(nodes), sums.astype(float), errors, path)


def _exact(nodes: Nodes) -> NDArray[np.bytes_]:
    """Nodes of one level as values of their own, (nodes,): two with one hash would be counted together, and a user twice."""
    return np.ascontiguousarray(nodes).view(f"S{nodes.shape[1]}")[:, 0]
