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
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.heavy_hitters.listing import HeavyHitters, adaptive_cut, descend
from evolvingdp.heavy_hitters.word_tree import WordTree

Nodes: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]
_FAR = 45  # scales: beyond is e^-45 of the noise


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
        if self.tree.shorter or self.tree.unit != "letters":
            raise ValueError(f"tree must have words of one length, in letters, got {self.tree}")

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

    def passing(self, level: int) -> float:
        """The probability that a node which nobody holds reaches the cut of `level`."""
        return float(noise_tail(self.noise(level), self.servers, self.cut(level))[0].sum())

    def search(self, leaves: Nodes, counts: NDArray[np.integer], private: Sequence[np.random.Generator]) -> HeavyHitters:
        """`counts[i]` users hold `leaves[i]`; each server has its own generator.  Every candidate is counted."""
        if len(private) != self.servers:
            raise ValueError(f"private must be a generator for each of {self.servers} servers, got {len(private)}")

        def noisy(parents: Nodes, held: tuple[Nodes, Counts], level: int) -> tuple[Nodes, Counts]:
            nodes = self.tree.children(parents, level)
            sums = np.zeros(len(nodes), dtype=np.int64)
            sums[np.searchsorted(nodes, held[0])] = held[1]
            for rng in private:
                sums += self.noise(level).draw(len(nodes), rng)
            return nodes, sums

        return self._descend(leaves, counts, noisy)

    def simulate(self, leaves: Nodes, counts: NDArray[np.integer], rng: np.random.Generator) -> HeavyHitters:
        """The exact law of `search`, at a cost that does not grow with the candidates.

        Of the nodes that nobody holds, it is drawn how many reach the cut, which, and how far.
        """

        def noisy(parents: Nodes, held: tuple[Nodes, Counts], level: int) -> tuple[Nodes, Counts]:
            sums = held[1] + sum(self.noise(level).draw(len(held[0]), rng) for _ in range(self.servers))
            total = len(parents) * 26 ** self.tree.steps[level]
            lucky = int(rng.binomial(total - len(held[0]), self.passing(level)))
            law, values = noise_tail(self.noise(level), self.servers, self.cut(level))
            drawn = rng.choice(values, size=lucky, p=law / law.sum()) if lucky else np.zeros(0, dtype=np.int64)
            empty = self._empty(parents, held[0], level, lucky, rng)
            return np.append(held[0], empty), np.append(sums, drawn)

        return self._descend(leaves, counts, noisy)

    def _empty(self, parents: Nodes, held: Nodes, level: int, size: int, rng: np.random.Generator) -> Nodes:
        """So many different children of `parents` that are not in `held`, at random."""
        letters, found = self.tree.steps[level], np.zeros(0, dtype=np.uint64)
        places = np.uint64(27) ** np.arange(letters, dtype=np.uint64)
        while len(found) < size:
            digits = rng.integers(1, 27, size=(size - len(found), letters), dtype=np.uint64)
            some = rng.choice(parents, size=len(digits)) * np.uint64(self.tree.fan(level)) + digits @ places
            some = some[~np.isin(some, held) & ~np.isin(some, found)]
            found = np.append(found, some[np.sort(np.unique(some, return_index=True)[1])])
        return found

    def _descend(self, leaves: Nodes, counts: NDArray[np.integer], noisy: Any) -> HeavyHitters:
        leaves, tree = self.tree.checked(leaves), self.tree
        counts = checks.counts_of_keys(counts, leaves)

        def ask(level: int, parents: Nodes, _: int) -> tuple[Nodes, Counts, float, float]:
            prefixes, place = np.unique(tree.prefixes(leaves, level), return_inverse=True)
            below = np.isin(prefixes // np.uint64(tree.fan(level)), parents)
            held = np.bincount(place, weights=counts, minlength=len(prefixes)).astype(np.int64)
            nodes, sums = noisy(parents, (prefixes[below], held[below]), level)
            return nodes[sums >= self.cut(level)], sums[sums >= self.cut(level)], self.error(level), self.cut(level)

        nodes, sums, path = descend(tree, ask, self.max_candidates)
        errors = np.full(len(nodes), self.error(tree.depth - 1))
        return HeavyHitters.of(tree.decode(nodes), sums.astype(float), errors, path)


@cache
def noise_tail(noise: DiscreteLaplace, servers: int, cut: int) -> tuple[NDArray[np.float64], Counts]:
    """The law of the sum of the servers' noise from `cut` on: probabilities and values."""
    scale = 0.5 / math.asinh(math.sqrt(0.5 / noise.variance))  # as it is rounded up
    far = math.ceil(_FAR * scale) + 1
    one = np.exp(-np.abs(np.arange(-far, far + 1)) / scale)
    law = one / one.sum()
    for _ in range(servers - 1):
        law = np.convolve(law, one / one.sum())
    values = np.arange(len(law)) - len(law) // 2
    return law[values >= cut], values[values >= cut]
