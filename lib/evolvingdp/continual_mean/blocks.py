"""Blocks of a user's own samples, projected on intervals: Algorithms 3 to 6.

**Computes** at every step an estimate of the mean of all samples so far.  A user's samples are summed in blocks of 1, 1, 2,
4, ... samples (Algorithm 3: of all m); the sum of a full block is projected on an interval and becomes an element of the
running sums of its level.

**Guarantee.** User-level epsilon-DP for the whole sequence; neighbours as in `settings`.  At most one element of a user
enters each level's sums, so a level costs (width of the interval) x l1 / scale, and the levels' costs add up to epsilon; in
Algorithm 4 all are in one tree.  The medians of Algorithm 6 have half of epsilon.  An interval is made of public numbers:
given, or from a private median.

**Error.** Intervals hold blocks where samples are independent with *one* mean, whoever sends them: for others nothing is
promised (`Release.bias` is the whole range).

**One engine.** An algorithm is a list of `Level`s.  Which blocks there are and when they are released is public, so that all
of it runs over arrays: blocks are found by sorting, and a tree is one pass.

**Source.** George et al. (2022), Algorithms 3 to 7.  Applies E-CM-2 (a block counts the samples it holds), E-CM-3 (a level
whose median is drawn is active from then on), E-CM-5 and E-CM-7 (whole levels), E-CM-6 (levels 0 and 1), E-CM-10 (a stream
holds equal elements each), E-CM-11 (sums are a user's own, in any order of arrival), E-CM-13 (m = 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evolvingdp.continual_mean import private_median
from evolvingdp.continual_mean.binary_mechanism import best_tree, noise_for
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.continual_mean.settings import Integers, Releases, Settings, by_user, ranks
from evolvingdp.core import checks
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Tape

KINDS = ("wishful", "single_tree", "multiple_trees", "full")  # Algorithms 3 to 6


class Level(NamedTuple):
    """Of an algorithm: blocks of one size."""

    size: int  # samples in a block
    tree: int  # that full blocks enter
    half: float  # Delta_l of (2), (4) or (9), in samples: half of the interval that a block's sum is projected on
    moved: float  # what a user may move it by, as the paper's noise is for, in grid steps
    projects: bool  # levels 0 and 1 do not (E-CM-6)
    waits: int  # for so many of the users' first samples, at most a block each, and then a median; 0: the prior is given


class _Elements(NamedTuple):
    """What enters the trees, in that order."""

    step: Integers
    level: Integers
    total: Integers  # secret


@checks.plain
@dataclass(frozen=True)
class Blocks(Settings):
    """One of `KINDS`; `algorithms` makes them."""

    kind: str = "full"
    beta: float = 0.05  # failure probability of the accuracy statements
    prior_mean: float | None = None  # around which blocks are projected; Algorithms 3 to 5 are given one
    branching: int = 2  # of trees; 0: the best tree of all for its capacity

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(KINDS, kind=self.kind)
        checks.probability(beta=self.beta)
        checks.integer_at_least(0, branching=self.branching)
        checks.plain_integers(self, "branching")
        given = self.kind != "full"
        if given != (self.prior_mean is not None):
            raise ValueError(f'prior_mean must {"be given" if given else "be left out"} for "{self.kind}"')
        if self.prior_mean is not None:
            checks.finite(prior_mean=self.prior_mean)
            if not self.low <= self.prior_mean <= self.high:
                raise ValueError(f"prior_mean must lie in [{self.low}, {self.high}], got {self.prior_mean!r}")
        if self.delta:
            raise ValueError(f"delta must be 0, as blocks have Laplace noise, got {self.delta!r}")
        _ = self.noises

    @cached_property
    def first_estimate(self) -> float:
        return (self.low + self.high) / 2 if self.prior_mean is None else self.prior_mean

    @property
    def top_level(self) -> int:
        """L = floor(log2 m): no user fills a block above it."""
        return 0 if self.kind == "wishful" else self.samples_per_user.bit_length() - 1

    @property
    def median_epsilon(self) -> float:
        """Of one PrivateMedian: epsilon / (2 L)."""
        return self.epsilon / (2 * max(1, self.top_level))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """A block's sum is within `near` of its mean with probability 1 - beta over all users and levels."""
        whole, full, one_tree = (self.kind == kind for kind in ("wishful", "full", "single_tree"))
        m, found = self.samples_per_user, []
        beta, each = (self.beta / 3, self.beta / (3 * max(1, self.top_level))) if full else (self.beta, 0.0)  # (9)
        chances = math.log(2 * self.n_users * (1.0 if whole else max(1.0, math.log2(m))) / beta) / 2
        for level in range(self.top_level + 1):
            size = m if whole else 2 ** max(level - 1, 0)
            block = float(size) if level or whole else 0.5  # 2^(l-1), as formulas have it: one half at level 0
            near, off, waits = math.sqrt(chances * block), block / math.sqrt(m), 0
            if full:
                arrays = max(1.0, 16 / self.median_epsilon * math.log(2 ** (level / 2) / each))
                off = math.sqrt(2 * block * math.log(2 * arrays / each))
                waits = size * private_median.n_arrays(self.median_epsilon, level, each) if level > 1 else 0
            paid = near + off
            if not (whole or full):  # (5), (7): the prior's error is at most sqrt(block)
                paid = math.sqrt(m if one_tree else block) * (math.sqrt(chances) + 1)
            moved = self.resolution * 2 * paid
            found.append(Level(size, 0 if one_tree else level, near + off, moved, whole or level > 1, waits))
        return tuple(found)

    @property
    def n_trees(self) -> int:
        """They share the budget."""
        return 1 if self.kind == "single_tree" else len(self.levels)

    @property
    def uses(self) -> int:
        """Elements of one user that enter a tree at most."""
        return len(self.levels) if self.kind == "single_tree" else 1

    @cached_property
    def sums(self) -> Tree:
        """Each of the trees: each user fills a block of each of its levels at most."""
        capacity = self.n_users * self.uses
        return Tree(capacity, self.branching) if self.branching else best_tree(capacity)

    @cached_property
    def noises(self) -> tuple[Laplace | DiscreteLaplace | Gaussian, ...]:
        """Per tree: of a draw, for all that a user's elements in it may move."""
        budget = (self.epsilon / 2 if self.kind == "full" and self.top_level > 0 else self.epsilon) / self.n_trees
        moved = [self.uses * max(one.moved for one in self.levels if one.tree == tree) for tree in range(self.n_trees)]
        size = self.sums.capacity
        return tuple(
            noise_for(each * self.sums.l1, budget, delta=0.0, integer=self.integer, elements=size) for each in moved
        )

    def interval(self, level: int, prior: float) -> tuple[int, int]:
        """The whole numbers within Delta of the prior (in samples), and within the range of the sum."""
        largest = self.levels[level].size * self.resolution
        center, half = prior * largest, self.levels[level].half * self.resolution
        low, high = math.ceil(center - half), math.floor(center + half)
        if low > high:
            low = high = round(center)
        return min(max(low, 0), largest), min(max(high, 0), largest)

    def release(self, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> Releases:
        """All releases for the stream `users` (T,) in [0, n_users) and `samples` (T,) in [low, high]."""
        who, values = self.arrange(users, samples)
        kept, n_steps, rngs = self.kept(who), len(who), rng.spawn(self.n_trees)
        mine = np.flatnonzero(kept)
        user, step = by_user(who[mine], mine + 1)
        rank, value = ranks(user), values[step - 1]
        opens, priors = np.zeros(len(self.levels), dtype=np.int64), {}  # public: from which step each level releases
        for level, one in enumerate(self.levels):
            if one.waits:
                early = rank <= one.size
                steps, opens[level] = step[early], n_steps + 1
                if len(steps) >= one.waits:
                    opens[level] = last = np.partition(steps, one.waits - 1)[one.waits - 1]
                    priors[level] = median(self, level, value[early][steps <= last], rngs[one.tree])
            elif one.projects:
                priors[level] = (self.first_estimate - self.low) / (self.high - self.low)
        step, level_of, total = _released(_blocks(self, step, rank, value), opens, n_steps)
        for level, prior in priors.items():
            total[level_of == level] = total[level_of == level].clip(*self.interval(level, prior))
        tree_of, moved = np.array([one.tree for one in self.levels])[level_of], np.zeros((2, len(step)))
        for tree, (noise, own) in enumerate(zip(self.noises, rngs, strict=True)):  # what each element adds to all sums
            entering = np.flatnonzero(tree_of == tree)
            moved[0, entering] = total[entering] + np.diff(self.sums.all(len(entering), Tape(noise, own)), prepend=0)
            moved[1, entering] = np.diff(self.sums.variances(len(entering)), prepend=0) * noise.variance
        held, steps = np.cumsum(np.array([one.size for one in self.levels])[level_of]), np.arange(1, n_steps + 1)
        now = np.searchsorted(step, steps, side="right")  # of the release that stands at each step
        means = self.low + self.unit * (np.cumsum(moved[0]) / held)
        if self.clip:
            np.clip(means, self.low, self.high, out=means)
        variance = np.cumsum(moved[1]) * (self.unit / held) ** 2
        estimate, variance = np.append(self.first_estimate, means)[now], np.append(np.inf, variance)[now]
        scale, samples = self.high - self.low, np.append(0, held)[now]
        variance += 0.25 * scale**2 * (1 / np.maximum(samples, 1) - 1 / steps)
        error = np.sqrt(np.maximum(variance, 0))
        return Releases(estimate, error, np.full(n_steps, scale), samples, n_steps - int(kept.sum()))


def _blocks(settings: Blocks, step: Integers, rank: Integers, value: Integers) -> _Elements:
    """Sums of full blocks, at the steps that fill them; in any order."""
    sizes = np.array([one.size for one in settings.levels])
    if settings.kind == "wishful":
        ends = np.flatnonzero(rank % sizes[0] == 0)
        level = np.zeros(len(ends), dtype=np.int64)
    else:
        ends = np.flatnonzero(rank & (rank - 1) == 0)
        level = np.frexp(rank[ends])[1].astype(np.int64) - 1
    running = np.concatenate([[0], np.cumsum(value)])
    return _Elements(step[ends], level, running[ends + 1] - running[ends + 1 - sizes[level]])


def _released(blocks: _Elements, opens: Integers, n_steps: int) -> _Elements:
    """The full blocks in order; a waiting level's are released when it opens, before the step's own."""
    filled, level, total = blocks
    step, own = np.maximum(filled, opens[level]), filled >= opens[level]
    order = np.lexsort((filled, np.where(own, 0, level), own, step))
    order = order[step[order] <= n_steps]  # the others wait for a median that is never drawn
    return _Elements(step[order], level[order], total[order])


@checks.draws
def median(settings: Blocks, level: int, values: Integers, rng: np.random.Generator) -> float:
    """PrivateMedian of the users' first samples, sorted by user: arrays of a block's size, their means in [0, 1]."""
    size = settings.levels[level].size
    means = values.reshape(-1, size).sum(axis=1) / (size * settings.resolution)
    return private_median.draw(means, settings.median_epsilon, level, rng)
