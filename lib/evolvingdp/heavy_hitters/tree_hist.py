"""TreeHist: find the frequent words of a huge dictionary by descending its prefix tree with frequency oracles.

**Computes** a list of words with estimates of how many users hold them, without knowing the words in advance.

**Guarantee.** Pure epsilon-local differential privacy per user: `TreeHist` has one report of epsilon from each, `Algorithm3`
two of epsilon/2, which compose.  Neighbouring inputs are any two words of one user.  Which level a user reports to is public
and independent of the word.

**Error.** `TreeHist.level_error`. Algorithm 3's medians err by about sqrt(pi/2) a sqrt(n/q) at a level that the share q of
the users reports to, a = coth(epsilon/4); Theorem 5.2's threshold eta is `theory.paper_threshold`.

**Source.** `Algorithm3` is Algorithm 3 of Bassily et al. (2020).  Applies E-HH-7: the final report uses fresh indices.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.geometry import geometry
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.sampling import skewed_sf
from evolvingdp.heavy_hitters.count_sketch import FreqOracle, Sketch
from evolvingdp.heavy_hitters.listing import HeavyHitters, Reports, adaptive_cut, descend
from evolvingdp.heavy_hitters.sketches.projective import PointReport, ProjectiveOracle
from evolvingdp.heavy_hitters.word_tree import Nodes, WordTree

Held = tuple[NDArray[np.uint64], NDArray[np.int64]]  # keys, and how many users hold each
_NEAR = 0.75  # of the cut: what a joint fit is asked for
_FAR = (64.0, 16.0, 4.0)  # times that
_CROWDED = 1.1  # times the noise of cells
_FEW = 1 / 8  # of a row's cells


@checks.draws
@dataclass(frozen=True, eq=False)
class Levels(ABC):
    """A search with its public hash functions: collects (or simulates) reports and searches them.

    Each user reports a prefix to one level, drawn publicly by `shares`; a level's oracle estimates its prefixes.
    """

    tree: WordTree
    shares: tuple[float, ...]  # of the users, by level
    oracles: tuple[FreqOracle, ...]
    final: FreqOracle | None  # of whole words, from everybody's second report

    def collect(self, leaves: Nodes, public: np.random.Generator, private: np.random.Generator) -> Reports:
        """Per-user path: user i, who holds the word at leaves[i], (n,), reports a prefix, and to `final` the word."""
        leaves = self.tree.checked(leaves)
        groups = np.searchsorted(np.cumsum(self.shares)[:-1], public.random(len(leaves)), side="right").astype(np.int8)
        told = (self.tree.prefixes(leaves[groups == level], level) for level in range(self.tree.depth))
        levels = tuple(oracle.collect(keys, public, private) for oracle, keys in zip(self.oracles, told, strict=True))
        return Reports(levels, self.final.collect(self.tree.keys(leaves), public, private) if self.final else None)

    def simulate(self, leaves: Nodes, counts: NDArray[np.integer], rng: np.random.Generator) -> Reports:
        """Reports with exactly the law of `collect` when counts[i] users hold leaves[i]."""
        sketches = tuple(self.simulate_sketches(leaves, counts, rng))
        return Reports(sketches[: self.tree.depth], *sketches[self.tree.depth :])

    def simulate_sketches(self, leaves: Nodes, counts: NDArray[np.integer], rng: np.random.Generator) -> Iterator[Sketch]:
        """Those of `simulate`, the final one last, each drawn when it is asked for."""
        for oracle, users in zip(self.oracles, self.simulate_held(leaves, counts, rng), strict=True):
            yield oracle.simulate(*users, rng)
        if self.final:
            yield self.final.simulate(self.tree.keys(leaves), counts, rng)

    def simulate_held(self, leaves: Nodes, counts: NDArray[np.integer], rng: np.random.Generator) -> list[Held]:
        """Users dealt to levels: the prefixes that each level is told, and how many users hold each."""
        leaves = self.tree.checked(leaves)
        groups, told = rng.multinomial(checks.counts_of_keys(counts, leaves), self.shares).T, []
        for level, group in enumerate(groups):
            prefixes, place = np.unique(self.tree.prefixes(leaves, level), return_inverse=True)
            told.append((prefixes, np.bincount(place, weights=group, minlength=len(prefixes)).astype(np.int64)))
        return told

    def search(self, reports: Reports, n_users: int) -> HeavyHitters:
        """Raises ValueError unless `reports` are those of `n_users` users, and TooManyCandidatesError rather than ask for
        more than `max_candidates`."""
        reports.check(self.oracles, self.final, n_users)
        return self._search(iter((*reports.levels, *([reports.final] if reports.final else []))), n_users)

    def simulate_search(self, leaves: Nodes, counts: NDArray[np.integer], rng: np.random.Generator) -> HeavyHitters:
        """The exact law of `search` after `simulate`, one sketch at a time."""
        return self._search(self.simulate_sketches(leaves, counts, rng), int(np.sum(counts)))

    @abstractmethod
    def _search(self, sketches: Iterator[Sketch], n_users: int) -> HeavyHitters:
        """What is listed, by the sketches of `simulate_sketches`."""


@checks.plain
@dataclass(frozen=True)
class TreeHist:
    """One projective report a user: most report whole words, the others prefixes, and what is asked for is fitted jointly.

    `threshold`: the count that a word must reach, in users.  Levels above the last are cut at
    max(threshold - 3 standard errors of a word there, 2 of a word that nobody holds) of that level, so that a word at the
    threshold is rarely lost early, or higher where more than about 200 words that nobody holds would pass, and no lower than
    `least_cut`: prefixes that are held and pass a cut are n_users / cut at most.
    Of one level, all users report whole words.
    """

    tree: WordTree  # of letters, bits or bytes, and how many a level
    epsilon: float  # of a user, who reports once
    threshold: float  # users
    rows: int = 16  # hash functions of a level
    width: int = 2**16  # cells of a row, at least
    leaf_share: float = 0.8  # of the users report whole words
    max_candidates: int = 20_000_000  # asked for at one level: a search that would ask for more stops with an error
    least_cut: float = 0.0  # users: a level above the last is cut no lower; what it loses counts in `planning.reach`

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon, threshold=self.threshold)
        checks.integer_at_least(1, rows=self.rows, max_candidates=self.max_candidates)
        checks.integer_at_least(2, width=self.width)
        checks.probability(leaf_share=self.leaf_share)
        checks.finite(least_cut=self.least_cut)
        if self.least_cut < 0:
            raise ValueError(f"least_cut must be >= 0, got {self.least_cut!r}")

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of the users who report to each level; they sum to 1."""
        above = self.tree.depth - 1
        return (*[(1 - self.leaf_share) / above] * above, self.leaf_share) if above else (1.0,)

    def level_error(self, level: int, n_users: int, held: float = 0.0) -> float:
        """Standard error of a level's estimate of a word that `held` users hold, in users of the whole population."""
        return float(self.level_errors(level, n_users, np.array([held]))[0])

    def level_errors(self, level: int, n_users: int, held: NDArray[Any]) -> NDArray[np.float64]:
        """The same of many words, from the known noise and who of a word's holders is dealt to the level."""
        share = self.shares[level]
        return self.dealt(level, self.report.standard_errors(max(1, round(n_users * share)), held * share) / share, held)

    @cached_property
    def report(self) -> PointReport:
        """The law of a report."""
        space = geometry(self.epsilon, self.width)
        return PointReport(space.points, self.epsilon, space)

    def dealt(self, level: int, errors: NDArray[np.float64], held: NDArray[Any]) -> NDArray[np.float64]:
        """These `errors` of reports, and who of `held` users was dealt to the level."""
        return np.asarray(np.hypot(errors, np.sqrt(np.maximum(held, 0) * (1 / self.shares[level] - 1))))

    def cut(self, level: int, n_users: int, asked: float = 0.0) -> float:
        """The count that a node's estimate must reach at `level`, in users, where it is one of `asked`."""
        if level == self.tree.depth - 1:
            return self.threshold
        nobody, held = self.level_errors(level, n_users, np.array([0.0, self.threshold])).tolist()
        return max(self.least_cut, adaptive_cut(self.threshold, nobody, asked, held, self.skew(level, n_users)))

    def skew(self, level: int, n_users: int) -> float:
        """Of the error of a word that nobody holds: of how many reports support it."""
        share = self.report.other
        return (1 - 2 * share) / math.sqrt(max(1.0, n_users * self.shares[level]) * share * (1 - share))

    def by_chance(self, level: int, n_users: int, cut: float) -> float:
        """The probability that the estimate of a word that nobody holds reaches `cut` at `level`."""
        return skewed_sf(cut / self.level_error(level, n_users), self.skew(level, n_users))

    def draw_hashes(self, public: np.random.Generator) -> Protocol:
        """The protocol with hash functions drawn: what is published before anybody reports."""
        oracles = tuple(ProjectiveOracle.draw(self.rows, self.width, self.epsilon, public) for _ in self.shares)
        return Protocol(self.tree, self.shares, oracles, None, self)


@checks.draws
@dataclass(frozen=True, eq=False)
class Protocol(Levels):
    """Of a `TreeHist`."""

    oracles: tuple[ProjectiveOracle, ...]
    settings: TreeHist

    def _search(self, sketches: Iterator[Sketch], n_users: int) -> HeavyHitters:
        settings, sketch = self.settings, self.oracles[0].empty()

        def ask(level: int, parents: Nodes, asked: int) -> tuple[Nodes, NDArray[np.float64], float, float]:
            nonlocal sketch
            sketch, cut = next(sketches), settings.cut(level, n_users, asked)
            nodes = self._standing_out(level, sketch, parents, cut)
            by_chance = asked * settings.by_chance(level, n_users, cut)
            return *self._fit(level, sketch, nodes, cut, by_chance), settings.level_error(level, n_users), cut

        words, estimates, path = descend(self.tree, ask, settings.max_candidates)
        errors = self.oracles[-1].standard_errors(sketch, self.tree.keys(words), "joint") / self.shares[-1]
        errors = settings.dealt(self.tree.depth - 1, errors, estimates)
        return HeavyHitters.of(self.tree.decode(words), estimates, errors, path)

    def _standing_out(self, level: int, sketch: Sketch, parents: Nodes, cut: float) -> Nodes:
        """The children of `parents` that seem to come near the cut.  Who stands out from a block of them is taken out of the
        cells before the next one is read: those who collide with a word are many more than words.  Where cells show more
        than noise, who is far above the cut is taken out before: a word that collides with fewer than others seems rarer."""
        oracle, least = self.oracles[level], _NEAR * cut * self.shares[level]  # a collision may push a word below the cut
        cells, found = oracle.cell_estimates(sketch), [parents[:0, :0].reshape(0, sum(self.tree.steps[: level + 1]))]
        most, noise = cells.size // 2, self._noise(level, sketch)  # more would be fitted to noise
        fitted, read = np.zeros_like(cells), cells
        for bar in (*(far * least for far in _FAR), least):
            if bar > least and np.sqrt(np.mean(np.square(cells - fitted))) < _CROWDED * noise:
                continue
            for nodes in self.tree.below(parents, level):
                nodes = nodes[oracle.reaching(read, sketch.n_reports, self.tree.keys(nodes), bar, "mean")]
                listed, left = oracle.standing_out(read, self.tree.keys(nodes), bar, most)
                if listed.any():
                    found.append(nodes[listed])
                    most -= len(found[-1])
                    fitted = fitted + (read - left)
                    read = (cells - fitted) * self._trust(level, sketch, fitted)
        nodes = np.concatenate(found)
        return nodes[np.sort(np.unique(self.tree.keys(nodes), return_index=True)[1])]

    def _noise(self, level: int, sketch: Sketch) -> float:
        """Standard error of a cell that no word is in."""
        oracle = self.oracles[level]
        return oracle.standard_error(max(1, sketch.n_reports), "mean") * math.sqrt(oracle.hashes.rows)

    def _trust(self, level: int, sketch: Sketch, fitted: NDArray[np.float64]) -> NDArray[np.float64]:
        """How well cells that hold `fitted` users can be read, beside one that no word is in, by their variances: how a
        word's users fell on rows is unknown."""
        rare = self._noise(level, sketch) ** 2
        return np.asarray(rare / (rare + self.oracles[level].users_of_a_report * np.maximum(fitted, 0)))

    def _weighted(
        self, level: int, sketch: Sketch, keys: NDArray[np.uint64], estimates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """These joint `estimates` (keys,), moved by what they leave of a key's cells, each as it can be trusted."""
        oracle = self.oracles[level]
        fitted = oracle.joint_fit(keys).cells_of(estimates)
        rows = np.arange(oracle.hashes.rows)[:, None]
        places = rows, oracle.hashes.cells(rows, keys[None, :])
        trust = self._trust(level, sketch, fitted[places] - estimates)
        left = (oracle.cell_estimates(sketch) - fitted)[places]
        return np.asarray(estimates + (trust * left).sum(axis=0) / trust.sum(axis=0))

    def _fit(
        self, level: int, sketch: Sketch, nodes: Nodes, cut: float, by_chance: float
    ) -> tuple[Nodes, NDArray[np.float64]]:
        """Fit who stands out jointly, leave out what misses the cut, and fit the rest again; heaviest first.

        A node that nobody holds comes near the cut by a collision with a word, and then most likely where that cell's noise
        is high: the fit gives it the noise, and takes it from the word, which then may miss the cut, too.  So only the worse
        half is left out at a time, and who is left has a second chance.  But all at once where `by_chance`, how many that
        nobody holds are expected to reach the cut, is more than half of those who do, and where nodes are many beside a
        row's cells: who is fitted wrongly then spoils the fit of most others.
        """
        oracle, share = self.oracles[level], self.shares[level]
        while len(nodes):
            keys = self.tree.keys(nodes)
            estimates = self._weighted(level, sketch, keys, oracle.estimate(sketch, keys, "joint")) / share
            order = np.argsort(-estimates, kind="stable")
            nodes, estimates = nodes[order], estimates[order]
            reached = int(np.count_nonzero(estimates >= cut))
            if reached == len(nodes):
                return nodes, estimates
            at_once = by_chance > max(1, reached) / 2 or len(nodes) > oracle.hashes.width * _FEW
            nodes = nodes[: reached if at_once else (len(nodes) + reached) // 2]
        return nodes, np.zeros(0)


@checks.draws
@dataclass(frozen=True, eq=False)
class Algorithm3(Levels):
    """Algorithm 3, two reports a user (lines 1-3 and 12 are `collect`); without `final` the list is the last level's, and a
    user reports once."""

    threshold: float  # 2 eta, users
    max_candidates: int = 20_000_000

    @classmethod
    def draw(
        cls, tree: WordTree, epsilon: float, threshold: float, rows: int, width: int, public: np.random.Generator
    ) -> Algorithm3:
        """Medians of `rows` rows (t) of `width` cells (m), and half of `epsilon` for each of a user's two reports."""
        checks.positive(epsilon=epsilon, threshold=threshold)
        oracles = [FreqOracle(MultiplyShift.draw(rows, width, public), epsilon / 2) for _ in range(tree.depth + 1)]
        return cls(tree, (1 / tree.depth,) * tree.depth, tuple(oracles[:-1]), oracles[-1], threshold)

    def _search(self, sketches: Iterator[Sketch], n_users: int) -> HeavyHitters:
        sketch = self.oracles[0].empty()

        def ask(level: int, prefixes: Nodes, _: int) -> tuple[Nodes, NDArray[np.float64], float, float]:
            nonlocal sketch
            sketch, oracle, share = next(sketches), self.oracles[level], self.shares[level]
            cells = oracle.cell_estimates(sketch)  # lines 5-7: of the users dealt to this level
            kept = np.concatenate(  # lines 8-10
                [
                    nodes[oracle.reaching(cells, sketch.n_reports, self.tree.keys(nodes), self.threshold * share)]
                    for nodes in self.tree.below(prefixes, level)
                ]
            )
            estimates = oracle.read(cells, self.tree.keys(kept), "median") / share
            return kept, estimates, oracle.standard_error(max(1, sketch.n_reports)) / share, self.threshold

        last, share = self.oracles[-1], self.shares[-1]
        words, estimates, path = descend(self.tree, ask, self.max_candidates)  # lines 4-11
        if self.final and len(words):  # line 13
            last, share, sketch = self.final, 1.0, next(sketches)
            estimates = last.estimate(sketch, self.tree.keys(words))
        errors = last.standard_errors(sketch, self.tree.keys(words), "median") / share
        return HeavyHitters.of(self.tree.decode(words), estimates, errors, path)
