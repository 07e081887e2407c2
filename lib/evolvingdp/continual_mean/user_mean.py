"""The settings of a continual private mean: blocks, trees, priors, and what each costs; Algorithms 2 to 6 among them.

**Computes** at every step an estimate of the mean of all samples so far, from a stream in which users come back.

**Guarantee.** User-level epsilon-DP for the whole sequence (`delta` > 0: (epsilon, delta)-DP with Gaussian noise).
Neighbours differ in the values of all samples of one user; who arrives when is the same in both, and public (E-CM-4).

**How.** A user's samples are summed in blocks of 1, 1, 2, 4, ... samples (`blocks="doubling"`); the sum of a full block is
projected on an interval and becomes an element of a stream of prefix sums (`prefix_sums`).  At most one element of a user
enters each level's stream, so a level costs (width of the interval) x (l1 or l2 of its prefix sums) / scale, and the
levels' costs add up to epsilon (in squares, to mu^2, with Gaussian noise).  With `blocks="single"` every sample is an
element of one stream, which a user enters m times; or the sum of `batch` consecutive samples of the stream, whoever sends
them, is one: m samples move the batches by m in l1, however many share one, and the last release stands until a batch is
full.  With `"bands"` the samples from a user's (2^(l-1) + 1)-th to the 2^l-th have a stream.  Both cost what `uses` elements
move (`l2_of`).  Values are whole numbers of grid steps, so that sums are exact.

**Source.** George et al. (2022), Section 3; what `recommended` adds is proved in `book/continual_mean.md`.  Applies E-CM-2
(a block counts the samples it holds), E-CM-4, E-CM-5 and E-CM-7 (whole levels), E-CM-6 (levels 0 and 1), E-CM-12 (caps),
E-CM-13 (m = 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean import private_median
from evolvingdp.continual_mean.binary_mechanism import best_tree, budget, calibrate, finite_scale, normal
from evolvingdp.continual_mean.prefix_sums import Buffered, PrefixSums, Tree
from evolvingdp.continual_mean.streams import to_grid
from evolvingdp.core import checks
from evolvingdp.core.noise import Noise

BLOCKS = ("single", "bands", "whole", "doubling")
PRIORS = ("none", "given", "median", "bootstrap")
WEIGHTS = ("samples", "precision")
EXCESS = ("error", "drop")


class Interval(NamedTuple):
    """What a block's sum is projected on, in grid units."""

    low: int
    high: int


@checks.plain
@dataclass(frozen=True)
class UserMean:
    """A continual mean for at most `n_users` users of `samples_per_user` samples each; every choice is one argument."""

    n_users: int  # at most, see excess
    samples_per_user: int  # of a user, at most, see excess
    epsilon: float  # of a user, over the whole stream
    delta: float = 0.0  # 0: Laplace noise, pure epsilon-DP; else Gaussian noise
    beta: float = 0.05  # failure probability of the accuracy statements
    horizon: int | None = None  # steps; default n_users * samples_per_user
    blocks: str = "doubling"  # of one sample; of one, in bands with a tree each; all samples of a user; of 1, 1, 2, 4, ...
    one_tree: bool = False  # all levels in one tree (Algorithm 4)
    prior: str = "median"  # around which blocks are projected: nowhere, prior_mean, a private median, or the estimate so far
    prior_mean: float | None = None  # if given, and the estimate before the first release; default the middle
    exact_start: bool = False  # levels 0 and 1, whose elements are samples, have sensitivity 1 and not 2 Delta
    capped: bool = False  # a sensitivity is never more than the range of a block's sum
    weights: str = "samples"  # of the levels: by their samples, or by how precise their sums are
    branching: int = 2  # of trees; 0: the best tree of all for its capacity (`best_tree`)
    honaker: bool = False  # a node is averaged with the sum of its children, by variance
    buffered: bool = False  # a factorization of a few buffers instead of trees; with delta
    batch: int = 1  # samples of the stream in an element, with blocks "single" and Laplace noise
    shares: tuple[float, ...] = field(default=())  # of the trees' budget, per level; default even
    dimensions: int = 1  # of d coordinates with Gaussian noise, which share (epsilon, delta)
    clip: bool = False  # releases to [low, high]
    integer: bool = False  # noise, and all sums in integers
    low: float = 0.0  # of the range of samples
    high: float = 1.0  # of the range of samples
    resolution: int = 1  # grid steps in the range; 1 for bits
    prior_deviations: float = 4.0  # standard errors that a bootstrapped prior may be off
    restart: float = 0.7  # a level starts a new tree when its interval has shrunk to this fraction
    excess: str = "error"  # samples of further users, or beyond the cap: refused, or left out and counted

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, samples_per_user=self.samples_per_user)
        checks.integer_at_least(1, resolution=self.resolution, dimensions=self.dimensions, batch=self.batch)
        checks.plain_integers(self, "n_users", "samples_per_user", "resolution", "dimensions", "batch")
        checks.number(delta=self.delta, beta=self.beta, low=self.low, high=self.high, restart=self.restart)
        object.__setattr__(self, "shares", tuple(self.shares))
        checks.positive(epsilon=self.epsilon, prior_deviations=self.prior_deviations)
        checks.one_of(BLOCKS, blocks=self.blocks)
        checks.one_of(PRIORS, prior=self.prior)
        checks.one_of(WEIGHTS, weights=self.weights)
        checks.one_of(EXCESS, excess=self.excess)
        checks.probability(beta=self.beta, restart=self.restart)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta!r}")
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            raise ValueError(f"low must be below high, their distance finite, got {self.low!r} and {self.high!r}")
        if self.prior_mean is not None and not self.low <= self.prior_mean <= self.high:
            raise ValueError(f"prior_mean must lie in [{self.low}, {self.high}], got {self.prior_mean!r}")
        if self.horizon is not None:
            checks.integer_at_least(1, horizon=self.horizon)
            checks.plain_integers(self, "horizon")
        if self.buffered and (self.integer or not self.delta):
            raise ValueError("buffered must go with delta > 0, and real noise: it releases no integers")
        if self.branching == 0 and self.delta:
            raise ValueError("branching 0, the best tree, must go with delta = 0: buffered is better than trees otherwise")
        if self.dimensions > 1 and not self.delta:
            raise ValueError("dimensions above 1 must go with delta > 0; otherwise give each coordinate its own epsilon")
        if self.prior == "median" and self.delta:
            raise ValueError('prior "median" must go with delta = 0; "bootstrap" needs no budget of its own')
        if self.prior in ("median", "bootstrap") and (self.one_tree or self.blocks != "doubling"):
            raise ValueError(f'prior "{self.prior}" must go with blocks "doubling" and a tree per level')
        if self.blocks == "bands" and (self.one_tree or self.prior != "none"):
            raise ValueError('blocks "bands" must go with prior "none" and a tree per band')
        if self.batch > 1 and (self.blocks != "single" or self.prior != "none" or self.delta):
            raise ValueError(f'batch must be 1, but for blocks "single" with prior "none" and delta 0, got {self.batch}')
        given, total = len(self.shares), math.fsum(self.shares)
        if given and (given != self.n_trees or not math.isclose(total, 1, abs_tol=1e-9)):
            raise ValueError(f"shares must be {self.n_trees} numbers that sum to 1, got {given} that sum to {total:.6g}")
        if any(not share > 0 for share in self.shares):
            raise ValueError(f"shares must all be > 0, got {self.shares}")
        self._check_sizes()

    def _check_sizes(self) -> None:
        """All sums, and all integer noise, must fit in 64 bits; all noise must have a finite variance."""
        if self.n_users >= 2**31:
            raise ValueError(f"n_users must be below 2^31, got {self.n_users}")
        places, cap = self.n_users * self.samples_per_user, 2**60 // self.n_users
        if places > 2**60:
            raise ValueError(f"samples_per_user must be at most {cap} for {self.n_users} users, got {self.samples_per_user}")
        if places * self.resolution > 2**60:
            raise ValueError(
                f"resolution must be at most {2**60 // places} for {self.n_users} users of "
                f"{self.samples_per_user} samples, so that sums are exact, got {self.resolution}"
            )
        for tree in range(self.n_trees if self.integer or not self.delta else 0):
            full = self.resolution * self.sizes[tree] if self.prior == "bootstrap" else self.user_sensitivity(tree)
            capacity, uses = self.capacity_of(tree), self.uses(tree)
            sums, most = self.prefix_sums(capacity), 2**25 if self.delta else 2**46
            moved = full / uses * sums.l2_of(uses) if self.delta else float(full) * sums.l1
            scale = finite_scale(moved, self._tree_budget(tree))
            if self.integer and not (scale <= most and scale * capacity <= 2**54):
                raise ValueError(
                    f"resolution must be lower, or integer=False: level {tree} needs integer noise of scale {scale:.3g}, "
                    f"too much for 64 bits with {capacity} elements; got resolution {self.resolution}"
                )

    @property
    def first_estimate(self) -> float:
        """What is released before any element: the prior."""
        return (self.low + self.high) / 2 if self.prior_mean is None else self.prior_mean

    @property
    def relative_prior(self) -> float:
        return (self.first_estimate - self.low) / (self.high - self.low)

    @cached_property
    def max_steps(self) -> int:
        places = self.n_users * self.samples_per_user
        return min(places, self.horizon) if self.horizon else places

    @property
    def top_level(self) -> int:
        """L = floor(log2 m): no user fills a block above it."""
        return self.samples_per_user.bit_length() - 1 if self.blocks == "doubling" else 0

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Samples in an element, per level."""
        if self.blocks == "doubling":
            return (1, *(2 ** (level - 1) for level in range(1, self.top_level + 1)))
        if self.blocks == "bands":
            return (1,) * (1 + (self.samples_per_user - 1).bit_length())
        return (self.samples_per_user if self.blocks == "whole" else self.batch,)

    @property
    def n_trees(self) -> int:
        """How many share the budget."""
        return 1 if self.one_tree else len(self.sizes)

    def tree_of(self, level: int) -> int:
        """Which tree takes the elements of a level."""
        return 0 if self.one_tree else level

    def uses(self, tree: int) -> int:
        """Elements of one user that enter a tree at most."""
        if self.blocks == "bands":
            return min(1 << tree, self.samples_per_user) - (1 << tree) // 2
        if self.blocks == "single":
            return self.samples_per_user
        return len(self.sizes) if self.one_tree else 1

    def capacity_of(self, tree: int) -> int:
        """Elements that enter a tree at most."""
        uses, before = self.uses(tree), (1 << tree) // 2
        if self.blocks == "bands":  # whoever enters it has sent that many before
            return max(1, min(self.n_users * uses, self.max_steps * uses // (before + uses)))
        return max(1, self.max_steps // self.batch) if self.blocks == "single" else self.n_users * uses

    @cached_property
    def any_users(self) -> bool:
        """Whether all samples in the estimate weigh the same, and none is projected."""
        return self.weights == "samples" and not any(map(self.projects, range(len(self.sizes))))

    @property
    def tree_epsilon(self) -> float:
        """What the trees have of epsilon: Algorithm 6 gives half of it to the medians."""
        return self.epsilon / 2 if self.prior == "median" and self.top_level > 0 else self.epsilon

    @property
    def median_epsilon(self) -> float:
        """Of one PrivateMedian: epsilon / (2 L)."""
        return self.epsilon / (2 * max(1, self.top_level))

    @cached_property
    def _concentration(self) -> tuple[float, ...]:
        """Per level: how far a block's sum may be from its mean, in samples, with probability 1 - beta over all users."""
        levels = max(1.0, math.log2(self.samples_per_user)) if self.blocks == "doubling" else 1.0
        share = self.beta / 3 if self.prior == "median" else self.beta  # (9) divides delta by 3
        half = math.log(2 * self.n_users * levels / share) / 2
        return tuple(math.sqrt(half * self._block(level)) for level in range(len(self.sizes)))

    @cached_property
    def half_widths(self) -> tuple[float, ...]:
        """Delta_l of (2), (4) or (9), in samples: half of the interval that a block's sum is projected on."""
        return tuple(self._concentration[level] + self._prior_error(level) for level in range(len(self.sizes)))

    def _prior_error(self, level: int) -> float:
        size = self._block(level)
        if self.prior == "median":
            arrays = max(1.0, 16 / self.median_epsilon * math.log(2 ** (level / 2) / self._median_beta))
            return math.sqrt(2 * size * math.log(2 * arrays / self._median_beta))
        return size / math.sqrt(self.samples_per_user)

    @property
    def _median_beta(self) -> float:
        return self.beta / (3 * max(1, self.top_level))

    @cached_property
    def sensitivities(self) -> tuple[float, ...]:
        """Per level, in grid units: how far a user can move an element, as the noise is calibrated (not for "bootstrap")."""
        printed = []
        for level, size in enumerate(self.sizes):
            if self.prior == "none":
                printed.append(float(size if self.blocks != "single" else 1))  # of a sample, whatever batch it is in
                continue
            width = 2 * self.half_widths[level]
            if self.prior == "given" and self.blocks == "doubling":  # (7), (5): the prior's error is at most sqrt(block)
                block = self.samples_per_user if self.one_tree else self._block(level)
                width = 2 * (self._concentration[level] * math.sqrt(block / self._block(level)) + math.sqrt(block))
            if (self.exact_start and level <= 1) or self.capped:
                width = min(width, float(size))
            printed.append(width)
        return tuple(self.resolution * width for width in printed)

    def projects(self, level: int) -> bool:
        """Whether level's elements are projected: levels 0 and 1 are not (E-CM-6), nor where the interval holds all sums."""
        if self.prior == "none" or (self.blocks == "doubling" and level <= 1):
            return False
        return not self.capped or 2 * self.half_widths[level] < self.sizes[level]

    def waits_for(self, level: int) -> int:
        """How many of the users' first samples, at most a block each, must come before level's median; 0: no median."""
        if self.prior != "median" or not self.projects(level):
            return 0
        return self.sizes[level] * private_median.n_arrays(self.median_epsilon, level, self._median_beta)

    def interval(self, level: int, prior: float) -> Interval:
        """The whole numbers within Delta of the prior (in samples), and within the range of the sum."""
        largest = self.sizes[level] * self.resolution
        center, half = prior * largest, self.half_widths[level] * self.resolution
        low, high = math.ceil(center - half), math.floor(center + half)
        if low > high:
            low = high = round(center)
        return Interval(min(max(low, 0), largest), min(max(high, 0), largest))

    def bootstrap_half(self, level: int, prior_error: float) -> int:
        """Half the width, grid units, of an interval around a prior of this standard error; 0: no projection."""
        size = self.sizes[level]
        half = math.ceil(self.resolution * (self._concentration[level] + self.prior_deviations * size * prior_error))
        return half if 2 * half < size * self.resolution else 0

    def prefix_sums(self, capacity: int) -> PrefixSums:
        if self.buffered:
            return Buffered(capacity)
        return Tree(capacity, self.branching, self.honaker) if self.branching else best_tree(capacity)

    def noise(self, tree: int, sums: PrefixSums, sensitivity: float) -> Noise:
        """The law of a node's noise when a user moves the elements of `tree` by `sensitivity` in all."""
        if self.delta:
            moved = sensitivity / self.uses(tree) * sums.l2_of(self.uses(tree))
            return normal(sums, moved, self._tree_budget(tree), self.integer)
        return calibrate(sums, self._tree_budget(tree), 0.0, sensitivity, integer=self.integer)

    def _share(self, tree: int) -> float:
        return self.shares[tree] / math.fsum(self.shares) if self.shares else 1 / self.n_trees

    def _tree_budget(self, tree: int) -> float:
        if self.delta:  # squares of mu add up, over trees and coordinates
            return self._mu * math.sqrt(self._share(tree) / self.dimensions)
        return self.tree_epsilon * self._share(tree)

    @property
    def tree_budget(self) -> float:
        """What one stream of sums may cost that has all of the budget of one coordinate; with delta a mu."""
        return self._mu / math.sqrt(self.dimensions) if self.delta else self.epsilon

    @cached_property
    def _mu(self) -> float:
        return budget(self.epsilon, self.delta, self.integer)

    def _block(self, level: int) -> float:
        """2^(l-1), as the formulas of Delta_l have it: one half at level 0 of a doubling sequence."""
        return 0.5 if level == 0 and self.blocks == "doubling" else float(self.sizes[level])

    def user_sensitivity(self, tree: int) -> float:
        """The sum over a user's elements in `tree` of what they can move, grid units."""
        return self.uses(tree) * (max(self.sensitivities) if self.one_tree else self.sensitivities[tree])

    def encode(self, samples: ArrayLike) -> NDArray[np.int64]:
        """Samples (T,) in [low, high] as whole numbers of grid steps; raises ValueError with the first that is none."""
        return to_grid(samples, self.low, self.high, self.resolution)

    def but(self, **changes: Any) -> Self:
        """The same settings with some changed."""
        return replace(self, **changes)
