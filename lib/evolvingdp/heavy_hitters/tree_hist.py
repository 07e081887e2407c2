"""TreeHist: find the frequent words of a huge dictionary by descending its prefix tree with frequency oracles.

**Computes** a list of words with estimates of how many users hold them, without knowing the words in advance.

**Guarantee.** Pure epsilon-local differential privacy per user: plan `two_reports` sends two reports of epsilon/2 (they
compose), the other plans one report of epsilon.  Neighbouring inputs are any two words of one user.  Which level a user
reports to is public and independent of the word.

**Error.** At a level that the share q of the users reports to, an estimate's standard error is about
sqrt(pi/2) a sqrt(n/q) (median) or a sqrt(n/q) (mean), a = coth(epsilon'/2) for reports of epsilon'; Theorem 5.2's threshold
eta is `theory.paper_threshold`.

**Source.** Algorithm 3 of Bassily et al. (2020): `plan="two_reports"`, `pruning="fixed"` at 2 eta, `final_cut=False`.  Its
lines 4-11 are the loop of `Protocol.search`, line 13 the end.  Section 4 ran something else: `plan="one_report"`,
`shared_sketch=True`.  Applies E-HH-7: the final report uses fresh indices.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.count_sketch import COMPRESSIONS, ESTIMATORS, FreqOracle, Sketch
from evolvingdp.heavy_hitters.listing import HeavyHitters, Reports, adaptive_cut
from evolvingdp.heavy_hitters.sketches import projective
from evolvingdp.heavy_hitters.sketches.geometry import geometry
from evolvingdp.heavy_hitters.sketches.pursuit import standing_out
from evolvingdp.heavy_hitters.word_tree import WordTree, candidates_at

PLANS = ("two_reports", "one_report", "split")
PRUNINGS = ("fixed", "adaptive")
_LEVEL = np.uint64(60)  # prefixes are below 2^60: the level stands above them in a hashed key
_AT_ONCE = 1 << 20  # candidates
_NEAR = 0.75  # of the cut: what a joint fit is asked for


@checks.plain
@dataclass(frozen=True)
class TreeHist:
    """Algorithm 3 and its variants; each choice is one argument.

    `threshold`: the count that a word must reach, in users.  `pruning="fixed"` cuts every level there, `"adaptive"` at
    max(threshold - 3 standard errors, 2 standard errors) of that level, so that a word at the threshold is rarely lost
    early, or higher where more than about 200 words that nobody holds would pass.  `final_cut`: whether the final list is
    cut at the threshold too (in Algorithm 3 it is not).

    `max_survivors` of a level go on, those with the largest estimates; how many others reached the cut stands in the
    path's column `dropped`, and a warning says so.
    """

    tree: WordTree  # of letters or bits, and how many a level
    epsilon: float  # of a user, over all of the user's reports
    threshold: float  # users
    rows: int = 285  # t: hash functions of a level
    width: int = 4096  # m: cells of a row (projective: at least so many points)
    plan: str = "split"  # prefix and word, epsilon/2 each; one level; one level, most users the last
    leaf_share: float = 0.75  # of the users report whole words, where the plan is "split"
    pruning: str = "adaptive"  # at the threshold, or by the standard error of the level
    estimator: str = "joint"  # of a word from its rows
    final_cut: bool = True  # whether words below the threshold are left out
    shared_sketch: bool = False  # one sketch for all levels, as in Section 4's experiments: three times the noise
    compression: str = "hadamard"  # one bit; a sign for every cell, as the paper ran it; several bits, less error
    max_survivors: int = 100_000  # of a level
    max_candidates: int = 20_000_000  # asked for at one level: a search that would ask for more stops with an error

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon, threshold=self.threshold)
        checks.integer_at_least(1, rows=self.rows, max_survivors=self.max_survivors, max_candidates=self.max_candidates)
        if self.compression == "projective":
            checks.integer_at_least(2, width=self.width)
        else:
            checks.power_of_two(width=self.width)
        checks.one_of(PLANS, plan=self.plan)
        checks.one_of(PRUNINGS, pruning=self.pruning)
        checks.one_of(ESTIMATORS, estimator=self.estimator)
        checks.one_of((*COMPRESSIONS, "projective"), compression=self.compression)
        if self.plan == "split":
            checks.probability(leaf_share=self.leaf_share)
        if self.plan == "split" and self.tree.depth == 1:
            raise ValueError(f"plan split needs a tree of two levels or more, got steps {self.tree.steps}")
        if self.shared_sketch and self.plan == "split":
            raise ValueError("shared_sketch must be False where levels have unequal shares (plan split)")

    @property
    def epsilon_of_a_report(self) -> float:
        """Of each of the reports that a user sends."""
        return self.epsilon / 2 if self.plan == "two_reports" else self.epsilon

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the users who report to each level; they sum to 1."""
        depth = self.tree.depth
        if self.plan == "split":
            return (*[(1 - self.leaf_share) / (depth - 1)] * (depth - 1), self.leaf_share)
        return (1 / depth,) * depth

    def level_error(self, level: int, n_users: int, held: float = 0.0) -> float:
        """Standard error of a level's estimates, in users of the whole population, from the known noise: of a word that
        nobody holds, or, of projective reports, that `held` users hold."""
        share = self.shares[level]
        if self.shared_sketch:
            return self.report_error(n_users, held) / share
        return self.report_error(max(1, round(n_users * share)), held * share) / share

    def report_error(self, n_reports: int, held: float = 0.0) -> float:
        """Standard error of the estimates from `n_reports` reports, in users among those who reported, of whom `held` hold
        the word. One-bit reports have nearly the same of all words."""
        if self.compression == "projective":
            report = projective.PointReport(self.epsilon_of_a_report, geometry(float(self.epsilon_of_a_report), self.width))
            return report.standard_error(n_reports, self.rows if self.estimator == "median" else 1, held)
        if self.estimator == "median":
            return theory.noise_standard_error(n_reports, self.epsilon_of_a_report, self.rows)
        return theory.mean_standard_error(n_reports, self.epsilon_of_a_report)

    def cut(self, level: int, n_users: int, asked: float = 0.0) -> float:
        """The count that a node's estimate must reach at `level`, in users, where it is one of `asked`."""
        last = self.plan != "two_reports" and level == self.tree.depth - 1
        if self.pruning == "fixed" or last:
            return self.threshold
        return adaptive_cut(self.threshold, self.level_error(level, n_users), asked)

    def draw_hashes(self, public: np.random.Generator) -> Protocol:
        """The protocol with hash functions drawn: what is published before anybody reports."""
        phases = self.tree.depth + (self.plan == "two_reports")
        oracles = [self._draw(public) for _ in range(1 if self.shared_sketch else phases)]
        return Protocol(self, tuple(oracles * phases if self.shared_sketch else oracles))

    def _draw(self, public: np.random.Generator) -> FreqOracle:
        if self.compression == "projective":
            return projective.ProjectiveOracle.draw(self.rows, self.width, self.epsilon_of_a_report, public)
        return FreqOracle(MultiplyShift.draw(self.rows, self.width, public), self.epsilon_of_a_report, self.compression)


@dataclass(frozen=True, eq=False)
class Protocol:
    """A TreeHist with its public hash functions: collects (or simulates) reports and searches them."""

    settings: TreeHist
    oracles: tuple[FreqOracle, ...]  # one per level; in the plan `two_reports` one more for the final phase

    def collect(self, leaves: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator) -> Reports:
        """Per-user path: user i holds the word at leaves[i], (n,)."""
        leaves = self.settings.tree.checked(leaves)
        groups = self._assign(len(leaves), public)
        levels = tuple(
            oracle.collect(self.keys(leaves[groups == level], level), public, private)
            for level, oracle in enumerate(self._level_oracles)
        )
        if self.settings.shared_sketch:
            levels = (sum(levels[1:], levels[0]),)
        final = self._final_oracle
        return Reports(levels, final.collect(leaves, public, private) if final else None)

    @property
    def _level_oracles(self) -> tuple[FreqOracle, ...]:
        return self.oracles[: self.settings.tree.depth]

    @property
    def _final_oracle(self) -> FreqOracle | None:
        return self.oracles[-1] if self.settings.plan == "two_reports" else None

    def _assign(self, n_users: int, public: np.random.Generator) -> NDArray[np.int8]:
        """The level that each user reports to, (n_users,).  Public, independent of words."""
        edges = np.cumsum(self.settings.shares)[:-1]
        return np.searchsorted(edges, public.random(n_users), side="right").astype(np.int8)

    def simulate(self, leaves: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> Reports:
        """Reports with exactly the law of `collect` when counts[i] users hold leaves[i]."""
        leaves = self.settings.tree.checked(leaves)
        levels = tuple(oracle.simulate(*held, rng) for oracle, held in self.holders(leaves, counts, rng))
        final = self._final_oracle
        return Reports(levels, final.simulate(leaves, counts, rng) if final else None)

    def simulate_search(
        self, leaves: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator
    ) -> HeavyHitters:
        """The exact law of `search` after `simulate`: a sketch is drawn when the search comes to it, and then forgotten."""
        leaves = self.settings.tree.checked(leaves)
        held = self.holders(leaves, counts, rng)
        shared = held[0][0].simulate(*held[0][1], rng) if self.settings.shared_sketch else None
        final = self._final_oracle
        return self._descend(
            lambda level: shared or held[level][0].simulate(*held[level][1], rng),
            (lambda: final.simulate(leaves, counts, rng)) if final else None,
            int(np.sum(counts)),
        )

    def holders(
        self, leaves: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator
    ) -> list[tuple[FreqOracle, tuple[NDArray[np.uint64], NDArray[np.int64]]]]:
        """Users dealt to levels: each oracle of the levels with the keys it is told and how many users hold each.

        A shared sketch is one oracle that is told all levels, since the search adds their reports up anyway.
        """
        counts = checks.counts_of_keys(counts, leaves)
        groups = rng.multinomial(counts, self.settings.shares).T
        held = []
        for level in range(self.settings.tree.depth):
            prefixes, place = np.unique(self.settings.tree.prefixes(leaves, level), return_inverse=True)
            users = np.bincount(place, weights=groups[level], minlength=len(prefixes)).astype(np.int64)
            held.append((self._tag(prefixes, level), users))
        if self.settings.shared_sketch:
            keys, users = (np.concatenate(parts) for parts in zip(*held, strict=True))
            return [(self.oracles[0], (keys, users))]
        return list(zip(self._level_oracles, held, strict=True))

    def check(self, reports: Reports, n_users: int) -> None:
        """Raise ValueError unless `reports` are those of `n_users` users to these oracles."""
        checks.integer_at_least(0, n_users=n_users)
        final = self._final_oracle
        levels = self._level_oracles[: 1 if self.settings.shared_sketch else None]
        if len(levels) != len(reports.levels) or (final is None) != (reports.final is None):
            wanted = f"{len(levels)} sketches of levels and {0 if final is None else 1} of a final phase"
            raise ValueError(f"reports must be {wanted} for plan {self.settings.plan}, got {reports}")
        for oracle, sketch in zip((*levels, final), (*reports.levels, reports.final), strict=True):
            if oracle is not None and sketch is not None:
                oracle.check(sketch)
        held = sum(level.n_reports for level in reports.levels)
        if n_users != held or (reports.final is not None and reports.final.n_reports != held):
            also = f" and {reports.final.n_reports} to the final phase" if reports.final else ""
            raise ValueError(f"n_users must be the number of users who reported, {held} to the levels{also}, got {n_users}")

    def search(self, reports: Reports, n_users: int) -> HeavyHitters:
        """Descend the tree.  Raises TooManyCandidatesError rather than ask for more than `max_candidates`; warns where more
        than `max_survivors` reach the cut, and counts them in `path.dropped`.
        """
        self.check(reports, n_users)
        final = reports.final
        sketches = reports.levels * (self.settings.tree.depth if self.settings.shared_sketch else 1)
        return self._descend(lambda level: sketches[level], None if final is None else lambda: final, n_users)

    def _descend(self, sketch_of: Callable[[int], Sketch], final: Callable[[], Sketch] | None, n_users: int) -> HeavyHitters:
        settings = self.settings
        survivors, estimates, path = np.zeros(1, dtype=np.uint64), np.zeros(1), []
        for level in range(settings.tree.depth):
            asked = candidates_at(level, len(survivors), settings.tree, settings.max_candidates)
            error, cut, sketch = settings.level_error(level, n_users), settings.cut(level, n_users, asked), sketch_of(level)
            survivors, estimates, dropped = self._prune(sketch, survivors, level, cut)
            row = {"level": level, "candidates": asked, "survivors": len(survivors), "dropped": dropped}
            path.append(row | {"standard_error": error, "cut": cut})
        last, share = self.oracles[settings.tree.depth - 1], settings.shares[-1]
        if final is not None and len(survivors):
            last, share, sketch = self.oracles[-1], 1.0, final()
            estimates = last.estimate(sketch, survivors, settings.estimator)
        kept = estimates >= (settings.threshold if settings.final_cut else -np.inf)
        keys = survivors if final is not None else self._tag(survivors, level)
        errors = last.standard_errors(sketch, keys, settings.estimator) / share
        if settings.compression == "projective":  # one bit's known noise has it already: who was dealt to the level
            errors = np.hypot(errors, np.sqrt(np.maximum(estimates, 0) * (1 - share) / share))
        return HeavyHitters.of(settings.tree.decode(survivors[kept]), estimates[kept], errors[kept], path)

    def _prune(
        self, sketch: Sketch, parents: NDArray[np.uint64], level: int, cut: float
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64], int]:
        """The children of `parents` whose estimates reach `cut`, at most `max_survivors`, with their estimates, and how many
        others reached it (for a joint fit: came near it before the fit).
        """
        settings, oracle = self.settings, self.oracles[level]
        first_pass, first_cut = settings.estimator, cut
        if settings.estimator == "joint":  # a collision may push a word below the cut, until it is fitted away
            first_pass, first_cut = "mean", _NEAR * cut
        kept, values = [], []
        for some in _blocks(parents, max(1, _AT_ONCE // settings.tree.fan(level))):
            nodes, share = settings.tree.children(some, level), settings.shares[level]
            near, estimates = oracle.reaching(sketch, self._tag(nodes, level), first_cut * share, first_pass)
            kept.append(nodes[near])
            values.append(estimates / share)
        nodes, estimates = np.concatenate(kept), np.concatenate(values)
        best = np.argsort(-estimates, kind="stable")[: settings.max_survivors]
        dropped = len(nodes) - len(best)
        if dropped:
            warnings.warn(
                f"level {level}: {dropped} of {len(nodes)} nodes that reach the cut were dropped, max_survivors is "
                f"{settings.max_survivors}: raise max_survivors or threshold",
                stacklevel=3,
            )
        nodes, estimates = nodes[best], estimates[best]
        if settings.estimator == "joint":
            nodes, estimates = self._fit(sketch, nodes, level, cut)
        return nodes, estimates, dropped

    def _fit(
        self, sketch: Sketch, nodes: NDArray[np.uint64], level: int, cut: float
    ) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """List who stands out, heaviest first; fit jointly, leave out what misses the cut, and fit the rest again.

        A node that nobody holds comes near the cut by a collision with a word, and then most likely where that cell's noise
        is high: the fit would give it the noise, and take it from the word.
        """
        oracle, share = self.oracles[level], self.settings.shares[level]
        nodes = nodes[standing_out(oracle, sketch, self._tag(nodes, level), _NEAR * cut * share)]
        while len(nodes):
            estimates = oracle.estimate(sketch, self._tag(nodes, level), "joint") / share
            if np.all(estimates >= cut):
                return nodes, estimates
            nodes = nodes[estimates >= cut]
        return nodes, np.zeros(0)

    def keys(self, leaves: NDArray[np.uint64], level: int) -> NDArray[np.uint64]:
        """What the oracle of `level` is asked for when `leaves` are the words."""
        return self._tag(self.settings.tree.prefixes(leaves, level), level)

    def _tag(self, prefixes: NDArray[np.uint64], level: int) -> NDArray[np.uint64]:
        """Keys that differ between levels, so that one sketch can hold several."""
        return prefixes | (np.uint64(level + 1) << _LEVEL) if self.settings.shared_sketch else prefixes


def _blocks(nodes: NDArray[np.uint64], size: int) -> Iterator[NDArray[np.uint64]]:
    for first in range(0, max(len(nodes), 1), size):  # no nodes are one empty block
        yield nodes[first : first + size]
