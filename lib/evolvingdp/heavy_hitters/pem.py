"""PEM: the prefix-extension method on OLH, today's counterpart of the paper's TreeHist.

**Computes** a list of words with estimates and standard errors, without knowing the words in advance.

**Guarantee.** Pure epsilon-local differential privacy per user: one OLH report of the prefix at one level, drawn publicly;
neighbouring inputs are any two words of one user.

**Source.** Wang, Li and Jha, Locally differentially private heavy hitter identification (2021), with this chapter's tree,
threshold and adaptive cuts instead of a fixed number of survivors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.heavy_hitters.listing import HeavyHitters, Nodes, adaptive_cut, descend
from evolvingdp.heavy_hitters.olh import OLH, LocalHashes
from evolvingdp.heavy_hitters.word_tree import WordTree

Support = Callable[..., NDArray[np.int64]]  # nodes, level, least = 0 -> their support, or 0 below least


@dataclass(frozen=True, eq=False)
class PrefixReports:
    """What the server holds: the OLH reports of each level, and for which settings they were made.  Merge with `+`."""

    levels: tuple[LocalHashes, ...]
    settings: str

    def __add__(self, other: PrefixReports) -> PrefixReports:
        if self.settings != other.settings:
            raise ValueError(f"reports must be of one PEM to be merged, got one of {self.settings}, one of {other.settings}")
        return PrefixReports(tuple(a + b for a, b in zip(self.levels, other.levels, strict=True)), self.settings)


@checks.plain
@dataclass(frozen=True)
class PEM:
    """`shares[l]` of the users report their prefix at level l; cuts are those of an adaptive `TreeHist`."""

    tree: WordTree  # of letters or bits, and how many a level
    epsilon: float  # of a user: each reports once
    threshold: float  # users
    shares: tuple[float, ...] = (0.05, 0.10, 0.85)  # of the users, by level
    max_candidates: int = 20_000_000  # asked for at one level

    def __post_init__(self) -> None:
        checks.integer_at_least(1, max_candidates=self.max_candidates)
        checks.positive(
            epsilon=self.epsilon, threshold=self.threshold, **{f"shares[{i}]": s for i, s in enumerate(self.shares)}
        )
        if len(self.shares) != self.tree.depth or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError(f"shares must be {self.tree.depth} numbers that sum to 1, got {self.shares}")
        _ = self.oracle  # refuses an epsilon that local hashing cannot serve

    @property
    def oracle(self) -> OLH:
        """What each level asks."""
        return OLH(self.epsilon)

    @property
    def fingerprint(self) -> str:
        """What users and server must share: a search does not read reports of another tree, epsilon or shares."""
        return f"steps {self.tree.steps} {self.tree.unit}, epsilon {float(self.epsilon)!r}, shares {self.shares}"

    def collect(
        self, leaves: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator
    ) -> PrefixReports:
        """Per-user path: one report of each user, of the prefix at a level drawn publicly."""
        leaves = self.tree.checked(leaves)
        level_of = np.searchsorted(np.cumsum(self.shares)[:-1], public.random(len(leaves)), side="right")
        return PrefixReports(
            tuple(
                self.oracle.report(self.tree.prefixes(leaves[level_of == level], level), public, private)
                for level in range(self.tree.depth)
            ),
            self.fingerprint,
        )

    def search(self, reports: PrefixReports) -> HeavyHitters:
        """Descend the tree on the users' reports; the cost is users times candidates."""
        if reports.settings != self.fingerprint:
            raise ValueError(f"reports must be made for {self.fingerprint}, got some for {reports.settings}")
        sizes = [len(level.seeds) for level in reports.levels]
        return self._descend(lambda nodes, level, _: self.oracle.support(reports.levels[level], nodes), sizes)

    def simulate(self, leaves: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> HeavyHitters:
        """The exact law of `collect` and `search` when counts[i] users hold leaves[i]; cost independent of the users."""
        support, sizes = self.supports(leaves, counts, rng)
        return self._descend(support, sizes)

    def supports(
        self, leaves: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator
    ) -> tuple[Support, list[int]]:
        """How to draw the supports of nodes, ascending and each asked for once, and how many users report to each level.

        Below `least` the support of a node that nobody holds may be 0 instead: a search does not look at it.
        """
        leaves = self.tree.checked(leaves)
        counts = checks.counts_of_keys(counts, leaves)
        groups = rng.multinomial(counts, self.shares).T

        def support(nodes: NDArray[np.uint64], level: int, least: int = 0) -> NDArray[np.int64]:
            prefixes, place = np.unique(self.tree.prefixes(leaves, level), return_inverse=True)
            held = np.bincount(place, weights=groups[level], minlength=len(prefixes)).astype(np.int64)
            own, found = np.zeros(len(nodes), dtype=np.int64), np.searchsorted(nodes, prefixes)
            known = found < len(nodes)
            known[known] = nodes[found[known]] == prefixes[known]
            own[found[known]] = held[known]
            return self.oracle.simulate_support(own, int(groups[level].sum()), rng, least)

        return support, [int(group.sum()) for group in groups]

    def _descend(self, support: Support, sizes: list[int]) -> HeavyHitters:
        def ask(level: int, parents: Nodes, asked: int) -> tuple[Nodes, NDArray[np.float64], float, float]:
            size, share = sizes[level], self.shares[level]
            error = self.oracle.standard_error(size) / share  # of a node that nobody holds
            cut = self.threshold if level == self.tree.depth - 1 else adaptive_cut(self.threshold, error, asked)
            nodes = self.tree.children(parents, level)
            least = math.floor(self.oracle.expected_support(cut * share, size)) - 1  # the estimates decide, not rounding
            estimates = self.oracle.estimate(support(nodes, level, least), size) / share
            return nodes[estimates >= cut], estimates[estimates >= cut], error, cut

        nodes, estimates, path = descend(self.tree, ask, self.max_candidates)
        return HeavyHitters.of(self.tree.decode(nodes), estimates, self.standard_errors(estimates, sizes[-1]), path)

    def standard_errors(self, held: NDArray[np.float64], n_reports: int) -> NDArray[np.float64]:
        """Of the estimates of words with `held` users, (words,), when `n_reports` users report whole words; in users."""
        share = self.shares[-1]
        noise = self.oracle.standard_errors(n_reports, share * held) / share
        return np.asarray(np.sqrt(noise**2 + np.maximum(held, 0) * (1 - share) / share))
