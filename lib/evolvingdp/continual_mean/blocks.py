"""Blocks of a user's own samples, projected on intervals: Algorithms 3 to 6, and the mean for users who are alike.

**Computes** at every step an estimate of the mean of all samples so far.  A user's samples are summed in blocks of 1, 1, 2,
4, ... samples (Algorithm 3: of all m); the sum of a full block is projected on an interval and becomes an element of the
running sums of its level.

**Guarantee.** User-level epsilon-DP for the whole sequence (users alike with `delta`: (epsilon, delta)-DP, Gaussian noise);
neighbours as in `settings`.  At most one element of a user enters each level's stream, so a level costs (width of the
interval) x (l1 or l2 of its running sums) / scale, and the levels' costs add up to epsilon (in squares, to mu^2).  The
medians of Algorithm 6 have half of epsilon.  An interval is made of public numbers: given, from a private median, or from
what the levels below have released.

**Error.** Intervals hold blocks where samples are independent with *one* mean, whoever sends them: for others nothing is
promised (`Release.bias` is the whole range).

**One engine.** An algorithm is a list of levels (`kind`); which blocks there are, when they are released and how wide their
intervals are is public, so that all of it runs over arrays: blocks are found by sorting, a stream of sums is one pass, and
only a median or a bootstrapped prior reads an earlier level.

**Source.** George et al. (2022), Algorithms 3 to 7; `alike` is ours.  Applies E-CM-2 (a block counts the samples it holds),
E-CM-3 (a level whose median is drawn is active from then on), E-CM-5 and E-CM-7 (whole levels), E-CM-6 (levels 0 and 1),
E-CM-10 (a stream holds equal elements each), E-CM-11 (sums are a user's own, in any order of arrival), E-CM-13 (m = 1).
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
from evolvingdp.continual_mean.prefix_sums import Buffered, Tree
from evolvingdp.continual_mean.settings import Array, Integers, Releases, Settings, by_user, ranks
from evolvingdp.core import accounting, checks
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Tape

KINDS = ("wishful", "single_tree", "multiple_trees", "full", "alike")  # Algorithms 3 to 6, and users alike


# Of users alike: standard errors that a bootstrapped prior may be off, and the fraction to which a level's interval has
# shrunk when it starts a new stream of sums.
DEVIATIONS, RESTART = 4.0, 0.7


class _Elements(NamedTuple):
    """What enters the streams of sums, in that order."""

    step: Integers
    level: Integers
    total: Integers  # secret


@checks.plain
@dataclass(frozen=True)
class Blocks(Settings):
    """One of `KINDS`; `algorithms` and `choosing.users_alike` make them."""

    kind: str = "full"  # Algorithms 3 to 6, or users alike
    beta: float = 0.05  # failure probability of the accuracy statements
    prior_mean: float | None = None  # around which blocks are projected; Algorithms 3 to 5 are given one
    branching: int = 2  # of trees; 0: the best tree of all for its capacity
    shares: tuple[float, ...] = ()  # of the budget, per level; default even

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(KINDS, kind=self.kind)
        checks.probability(beta=self.beta)
        checks.integer_at_least(0, branching=self.branching)
        checks.plain_integers(self, "branching")
        object.__setattr__(self, "shares", tuple(self.shares))
        given = self.kind in ("wishful", "single_tree", "multiple_trees")
        if given != (self.prior_mean is not None):
            raise ValueError(f'prior_mean must {"be given" if given else "be left out"} for "{self.kind}"')
        if self.prior_mean is not None and not self.low <= self.prior_mean <= self.high:
            raise ValueError(f"prior_mean must lie in [{self.low}, {self.high}], got {self.prior_mean!r}")
        if self.delta and (self.kind != "alike" or self.branching):
            raise ValueError('delta must be 0, but for kind "alike" with branching 0')
        count, total = len(self.shares), math.fsum(self.shares)
        if count and (count != self.n_trees or not math.isclose(total, 1, abs_tol=1e-9)):
            raise ValueError(f"shares must be {self.n_trees} numbers that sum to 1, got {count} that sum to {total:.6g}")
        if any(not share > 0 for share in self.shares):
            raise ValueError(f"shares must all be > 0, got {self.shares}")
        for tree in range(self.n_trees):
            moved = float(self.resolution * self.sizes[tree]) if self.kind == "alike" else self.user_sensitivity(tree)
            self.noise(tree, self.prefix_sums(self.capacity), moved)

    @cached_property
    def first_estimate(self) -> float:
        return (self.low + self.high) / 2 if self.prior_mean is None else self.prior_mean

    @property
    def top_level(self) -> int:
        """L = floor(log2 m): no user fills a block above it."""
        return 0 if self.kind == "wishful" else self.samples_per_user.bit_length() - 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Samples in a block, per level."""
        if self.kind == "wishful":
            return (self.samples_per_user,)
        return (1, *(2 ** (level - 1) for level in range(1, self.top_level + 1)))

    @property
    def n_trees(self) -> int:
        """Streams of sums, which share the budget."""
        return 1 if self.kind == "single_tree" else len(self.sizes)

    def tree_of(self, level: int) -> int:
        """Which stream takes the elements of a level."""
        return 0 if self.kind == "single_tree" else level

    @property
    def uses(self) -> int:
        """Elements of one user that enter a stream at most."""
        return len(self.sizes) if self.kind == "single_tree" else 1

    @property
    def capacity(self) -> int:
        """Elements that enter a stream at most: each of its users has filled a block."""
        return self.n_users * self.uses

    @property
    def median_epsilon(self) -> float:
        """Of one PrivateMedian: epsilon / (2 L)."""
        return self.epsilon / (2 * max(1, self.top_level))

    @cached_property
    def _concentration(self) -> tuple[float, ...]:
        """Per level: how far a block's sum may be from its mean, in samples, with probability 1 - beta over all users."""
        levels = 1.0 if self.kind == "wishful" else max(1.0, math.log2(self.samples_per_user))
        share = self.beta / 3 if self.kind == "full" else self.beta  # (9) divides delta by 3
        half = math.log(2 * self.n_users * levels / share) / 2
        return tuple(math.sqrt(half * self._block(level)) for level in range(len(self.sizes)))

    @cached_property
    def half_widths(self) -> tuple[float, ...]:
        """Delta_l of (2), (4) or (9), in samples: half of the interval that a block's sum is projected on."""
        return tuple(self._concentration[level] + self._prior_error(level) for level in range(len(self.sizes)))

    def _prior_error(self, level: int) -> float:
        size = self._block(level)
        if self.kind == "full":
            arrays = max(1.0, 16 / self.median_epsilon * math.log(2 ** (level / 2) / self._median_beta))
            return math.sqrt(2 * size * math.log(2 * arrays / self._median_beta))
        return size / math.sqrt(self.samples_per_user)

    @property
    def _median_beta(self) -> float:
        return self.beta / (3 * max(1, self.top_level))

    def _block(self, level: int) -> float:
        """2^(l-1), as the formulas of Delta_l have it: one half at level 0 of a doubling sequence."""
        return float(self.sizes[level]) if level or self.kind == "wishful" else 0.5

    @cached_property
    def sensitivities(self) -> tuple[float, ...]:
        """Per level, in grid units: how far a user can move an element, as the noise is calibrated (not for "alike")."""
        printed = []
        for level in range(len(self.sizes)):
            width = 2 * self.half_widths[level]
            if self.kind in ("single_tree", "multiple_trees"):  # (5), (7): the prior's error is at most sqrt(block)
                block = self.samples_per_user if self.kind == "single_tree" else self._block(level)
                width = 2 * (self._concentration[level] * math.sqrt(block / self._block(level)) + math.sqrt(block))
            printed.append(self.resolution * width)
        return tuple(printed)

    def user_sensitivity(self, tree: int) -> float:
        """The sum over a user's elements in stream `tree` of what they can move, grid units."""
        return self.uses * max(self.sensitivities) if self.kind == "single_tree" else self.sensitivities[tree]

    def projects(self, level: int) -> bool:
        """Whether level's elements are projected: levels 0 and 1 are not (E-CM-6)."""
        return self.kind == "wishful" or level > 1

    def waits_for(self, level: int) -> int:
        """How many of the users' first samples, at most a block each, must come before level's median; 0: no median."""
        if self.kind != "full" or not self.projects(level):
            return 0
        return self.sizes[level] * private_median.n_arrays(self.median_epsilon, level, self._median_beta)

    def interval(self, level: int, prior: float) -> tuple[int, int]:
        """The whole numbers within Delta of the prior (in samples), and within the range of the sum."""
        largest = self.sizes[level] * self.resolution
        center, half = prior * largest, self.half_widths[level] * self.resolution
        low, high = math.ceil(center - half), math.floor(center + half)
        if low > high:
            low = high = round(center)
        return min(max(low, 0), largest), min(max(high, 0), largest)

    def prefix_sums(self, capacity: int) -> Tree | Buffered:
        if self.delta:
            return Buffered(capacity)
        return Tree(capacity, self.branching) if self.branching else best_tree(capacity)

    def noise(self, tree: int, sums: Tree | Buffered, moved: float) -> Laplace | DiscreteLaplace | Gaussian:
        """The law of a draw when a user moves the elements of stream `tree` by `moved` in all."""
        share = self.shares[tree] / math.fsum(self.shares) if self.shares else 1 / self.n_trees
        if isinstance(sums, Buffered):
            change, budget = moved * sums.l2(1), accounting.gaussian_mu(self.epsilon, self.delta) * math.sqrt(share)
        else:
            epsilon = self.epsilon / 2 if self.kind == "full" and self.top_level > 0 else self.epsilon
            change, budget = moved * sums.l1, epsilon * share
        return noise_for(change, budget, delta=self.delta, integer=self.integer, elements=sums.capacity)

    def release(self, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> Releases:
        """All releases for the stream `users` (T,) in [0, n_users) and `samples` (T,) in [low, high]."""
        who, values = self.arrange(users, samples)
        kept, n_steps = self.kept(who), len(who)
        mine = np.flatnonzero(kept)
        user, step = by_user(who[mine], mine + 1)
        rank, value = ranks(user), values[step - 1]
        activations, read = _medians(self, n_steps, step, rank, value)
        elements = _released(_blocks(self, step, rank, value), activations, n_steps)
        sums = np.zeros((3, len(elements.step) + 1))  # weighted sum, samples and variance before the elements and after each
        for index, own in enumerate(rng.spawn(self.n_trees)):
            entering = np.full(len(elements.step), True) if self.n_trees == 1 else elements.level == index
            below = sums[:, 1:][:, entering]  # what the lower levels have released when an element enters
            priors = _priors(self, read, index, own)
            sums += _stream(self, elements.level[entering], elements.total[entering], index, priors, below, own)[
                :, np.append(0, np.cumsum(entering))
            ]
        total, held, variance = sums
        scale, empty = self.high - self.low, ~(held > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate, variance = self.low + self.unit * (total / held), variance * (self.unit / held) ** 2
        estimate[empty], variance[empty] = self.first_estimate, np.inf
        if self.clip:
            np.clip(estimate, self.low, self.high, out=estimate)
        steps = np.arange(1, n_steps + 1)
        now = np.searchsorted(elements.step, steps, side="right")  # of the release that stands at each step
        error = np.sqrt(np.maximum(variance[now] - 0.25 * scale**2 / steps, 0.0))
        samples = np.append(0, np.cumsum(np.asarray(self.sizes)[elements.level]))[now]
        return Releases(estimate[now], error, np.full(n_steps, scale), samples, n_steps - int(kept.sum()))


def _medians(
    settings: Blocks, n_steps: int, step: Integers, rank: Integers, value: Integers
) -> tuple[dict[int, int], dict[int, Integers]]:
    """Per level that waits for a median: the step that has brought enough, n_steps + 1 for never; what it reads (secret)."""
    activations, read = {}, {}
    for level in range(len(settings.sizes)):
        if needed := settings.waits_for(level):
            early = rank <= settings.sizes[level]
            steps, activations[level] = step[early], n_steps + 1
            if len(steps) >= needed:
                activations[level] = last = int(np.partition(steps, needed - 1)[needed - 1])
                read[level] = value[early][steps <= last]
    return activations, read


def _blocks(settings: Blocks, step: Integers, rank: Integers, value: Integers) -> _Elements:
    """Sums of full blocks, at the steps that fill them; in any order."""
    sizes = np.asarray(settings.sizes)
    if settings.kind == "wishful":
        ends = np.flatnonzero(rank % sizes[0] == 0)
        level = np.zeros(len(ends), dtype=np.int64)
    else:
        ends = np.flatnonzero(rank & (rank - 1) == 0)
        level = np.frexp(rank[ends])[1].astype(np.int64) - 1
    running = np.concatenate([[0], np.cumsum(value)])
    return _Elements(step[ends], level, running[ends + 1] - running[ends + 1 - sizes[level]])


def _released(blocks: _Elements, activations: dict[int, int], n_steps: int) -> _Elements:
    """The full blocks in order; a waiting level's are released at its activation, before the step's own."""
    filled, level, total = blocks
    activation = np.zeros(64, dtype=np.int64)
    activation[list(activations)] = list(activations.values())
    step, own = np.maximum(filled, activation[level]), filled >= activation[level]
    order = np.lexsort((filled, np.where(own, 0, level), own, step)) if activations else np.argsort(step)
    order = order[step[order] <= n_steps]  # the others wait for a median that is never drawn
    return _Elements(step[order], level[order], total[order])


def _priors(settings: Blocks, read: dict[int, Integers], index: int, rng: np.random.Generator) -> dict[int, float]:
    """The priors of the projected levels of stream `index`: given, or drawn at their activations."""
    levels = [level for level in range(len(settings.sizes)) if settings.tree_of(level) == index and settings.projects(level)]
    if settings.kind == "alike":
        return {}
    if settings.kind != "full":
        return dict.fromkeys(levels, (settings.first_estimate - settings.low) / (settings.high - settings.low))
    return {level: median(settings, level, read[level], rng) for level in levels if level in read}


def median(settings: Blocks, level: int, values: Integers, rng: np.random.Generator) -> float:
    """PrivateMedian of the users' first samples, sorted by user: arrays of a block's size, their means in [0, 1]."""
    means = values.reshape(-1, settings.sizes[level]).sum(axis=1) / (settings.sizes[level] * settings.resolution)
    return private_median.draw(means, settings.median_epsilon, level, rng)


def _stream(
    settings: Blocks,
    levels: Integers,
    totals: Integers,
    index: int,
    priors: dict[int, float],
    below: Array,
    rng: np.random.Generator,
) -> Array:
    """Weighted sum, samples and variance (3, elements + 1) that stream `index` contributes, first before any."""
    count, alike = len(levels), settings.kind == "alike"
    contributions, sizes = np.zeros((3, count + 1)), np.asarray(settings.sizes)
    starts, halves = _intervals(settings, index, below) if alike else ([0], np.zeros(1, dtype=np.int64))
    for first, last in zip(starts, [*starts[1:], count], strict=True):
        if first == last:
            continue
        part, projected, sensitivity = slice(first, last), totals[first:last].copy(), 0.0
        if alike:
            half = int(halves[first])
            low, high = _allowed(settings, index, half, below[:, first])
            np.clip(projected, low, high, out=projected)
            sensitivity = float(2 * half if half else high)
        else:
            sensitivity = settings.user_sensitivity(index)
        for level, prior in priors.items():
            chosen = levels[part] == level
            projected[chosen] = np.clip(projected[chosen], *settings.interval(level, prior))
        sums = settings.prefix_sums(settings.capacity - first)
        noise = settings.noise(index, sums, sensitivity)
        rows = contributions[:, first + 1 : last + 1]
        rows[0] = np.cumsum(projected) + sums.all(last - first, Tape(noise, rng))
        rows[1] = np.cumsum(sizes[levels[part]])
        rows[2] = rows[1] * (0.25 * settings.resolution**2) + sums.variances(last - first) * noise.variance
        if alike:  # levels weigh by their precision
            weight = rows[1] / rows[2]
            rows[:2] *= weight
            rows[2] *= weight * weight
        if first:
            rows += contributions[:, first : first + 1]  # what finished sums say
    return contributions


def _allowed(settings: Blocks, level: int, half: int, below: Array) -> tuple[int, int]:
    """What a block's sum is projected on: `half` around what the levels below say, all that it can be where that is 0."""
    size, resolution = settings.sizes[level], settings.resolution
    if not half:
        return 0, size * resolution
    center = round(min(max(float(below[0] / below[1]), 0.0), float(resolution)) * size)
    return max(center - half, 0), min(center + half, size * resolution)


def _intervals(settings: Blocks, level: int, below: Array) -> tuple[list[int], Integers]:
    """Where a bootstrapped level starts new sums, and half the width that each element would allow (0: all); public."""
    size, resolution = settings.sizes[level], settings.resolution
    largest = size * resolution
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(below[2]) / below[1] / resolution
        reach = resolution * (settings._concentration[level] + DEVIATIONS * size * error)
    half = np.where(below[1] > 0, np.ceil(np.nan_to_num(reach, nan=largest, posinf=largest)), largest).astype(np.int64)
    half = np.where(2 * half < largest, half, 0)
    widths = np.where(half, 2 * half, largest)
    starts = [0]
    while len(widths) and len(narrower := np.flatnonzero(widths[starts[-1] :] <= RESTART * widths[starts[-1]])):
        starts.append(starts[-1] + int(narrower[0]))
    return starts, half
