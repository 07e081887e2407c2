"""PEM: the prefix-extension method on OLH, where the paper's TreeHist stands today.

**Guarantee.** Pure epsilon-local differential privacy per user: one OLH report of the prefix at one level, drawn publicly;
neighbouring inputs are any two words of one user.

**Source.** Wang, Li and Jha, Locally differentially private heavy hitter identification (2021), with this chapter's tree,
threshold and adaptive cuts instead of a fixed number of survivors, so that it compares with `TreeHist` at equal terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.heavy_hitters.olh import OLH, LocalHashes
from evolvingdp.heavy_hitters.tree_hist import HeavyHitters, adaptive_cut, candidates_at
from evolvingdp.heavy_hitters.word_tree import WordTree

Support = Callable[[NDArray[np.uint64], int], NDArray[np.int64]]  # nodes, level -> their support


@dataclass(frozen=True)
class PEM:
    """`shares[l]` of the users report their prefix at level l; cuts are those of an adaptive `TreeHist`."""

    tree: WordTree
    epsilon: float  # of a user: each reports once
    threshold: float
    shares: tuple[float, ...] = (0.05, 0.10, 0.85)
    max_candidates: int = 20_000_000

    def __post_init__(self) -> None:
        checks.positive(
            epsilon=self.epsilon, threshold=self.threshold, **{f"shares[{i}]": s for i, s in enumerate(self.shares)}
        )
        if len(self.shares) != self.tree.depth or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(f"shares must be {self.tree.depth} numbers that sum to 1, got {self.shares}")

    @property
    def oracle(self) -> OLH:
        return OLH(self.epsilon)

    def collect(
        self, leaves: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator
    ) -> list[LocalHashes]:
        """Per-user path: one report of each user, by level."""
        level_of = np.searchsorted(np.cumsum(self.shares)[:-1], public.random(len(leaves)), side="right")
        return [
            self.oracle.report(self.tree.prefixes(leaves[level_of == level], level), public, private)
            for level in range(self.tree.depth)
        ]

    def search(self, reports: list[LocalHashes]) -> HeavyHitters:
        """Descend the tree on the users' reports; the cost is users times candidates."""
        sizes = [len(level.seeds) for level in reports]
        return self._descend(lambda nodes, level: self.oracle.support(reports[level], nodes), sizes)

    def simulate(self, leaves: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> HeavyHitters:
        """The exact law of `collect` and `search` when counts[i] users hold leaves[i]; cost independent of the users."""
        checks.counts(counts=counts)
        groups = rng.multinomial(counts, self.shares).T

        def support(nodes: NDArray[np.uint64], level: int) -> NDArray[np.int64]:
            prefixes, place = np.unique(self.tree.prefixes(leaves, level), return_inverse=True)
            held = np.bincount(place, weights=groups[level], minlength=len(prefixes)).astype(np.int64)
            position = np.minimum(np.searchsorted(prefixes, nodes), len(prefixes) - 1)
            own = np.where(prefixes[position] == nodes, held[position], 0)
            return self.oracle.simulate_support(own, int(groups[level].sum()), rng)

        return self._descend(support, [int(group.sum()) for group in groups])

    def _descend(self, support: Support, sizes: list[int]) -> HeavyHitters:
        nodes, estimates, error = np.zeros(1, dtype=np.uint64), np.zeros(1), 0.0
        path = []
        for level, (size, share) in enumerate(zip(sizes, self.shares, strict=True)):
            asked = candidates_at(level, len(nodes), self.tree, self.max_candidates)
            error = self.oracle.standard_error(size) / share
            last = level == self.tree.depth - 1
            cut = self.threshold if last else adaptive_cut(self.threshold, error)
            nodes = self.tree.children(nodes, level)
            estimates = self.oracle.estimate(support(nodes, level), size) / share
            nodes, estimates = nodes[estimates >= cut], estimates[estimates >= cut]
            path.append({"level": level, "candidates": asked, "survivors": len(nodes), "standard_error": error, "cut": cut})
        order = np.argsort(-estimates, kind="stable")
        words = pd.DataFrame({"word": self.tree.decode(nodes[order]), "estimate": estimates[order], "standard_error": error})
        return HeavyHitters(words, pd.DataFrame(path))
