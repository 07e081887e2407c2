"""A `UserMean` step by step: State is secret, Release is public.

Memory: two numbers a user; log n numbers a tree, and up to two thousand that are worked out ahead; and, while a level waits
for its median, the samples that the median will read (the algorithm must keep them).  A step that raises leaves the state as
it was.  A state belongs to the settings that started it, others refuse it; one that is copied and goes on twice repeats its
noise: go on with one copy.  Applies E-CM-3 (a level whose median is drawn is active from then on) and E-CM-10 (a stream
holds equal elements each, and 1 is a power of two).
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from evolvingdp.continual_mean import private_median
from evolvingdp.continual_mean.prefix_sums import PrefixSums
from evolvingdp.continual_mean.sums.trees import Ahead
from evolvingdp.continual_mean.user_mean import Interval, UserMean
from evolvingdp.core import checks
from evolvingdp.core.noise import Tape


class Release(NamedTuple):
    """Public.  Errors are distances to the mean of all samples so far, those that were dropped included.

    `standard_error` is that of the noise, exactly, and of what samples that are left out or weigh less than others add if
    samples are independent with one mean and variance range^2/4.  `bias`: what the latter can be for any users and values;
    the whole range where blocks are projected or levels weighted.
    """

    estimate: float
    standard_error: float
    bias: float
    samples: int  # in the estimate
    dropped: int  # samples beyond a cap, where excess is "drop"


@dataclass(repr=False, slots=True)
class TreeState:
    """One tree: its current prefix sum, and what the finished ones say."""

    rng: np.random.Generator
    elements: int = 0  # of all its prefix sums
    width: float = math.inf  # of the current interval, grid units; only for a bootstrapped prior
    narrows: bool = False  # whether the interval may become narrow enough for new prefix sums
    sums: PrefixSums | None = None
    node_variance: float = 0.0
    advance: Ahead | None = None  # noise of the next prefix
    variances: list[float] = field(default_factory=list)  # of the prefix sums to come, the next one last
    length: int = 0  # elements of the current prefix sum
    held: int = 0  # samples of the current prefix sum
    total: int = 0
    done: tuple[float, float, float] = (0.0, 0.0, 0.0)  # what finished prefix sums add to the tree's three numbers below


@dataclass(repr=False, slots=True)
class State:
    """Secret.  `step` changes it in place and returns it."""

    settings: UserMean
    sizes: tuple[int, ...]  # of the settings
    counts: list[int]  # samples seen of each user
    sums: list[int]  # of each user's unfinished block
    trees: list[TreeState]
    weighted: list[float]  # per tree: what it says of its samples' sum, weighted; how many, weighted; the weighted variance
    samples: list[float]
    spreads: list[float]
    intervals: list[Interval | None]  # per level; None: not projected
    waiting: list[int]  # levels without a median yet, ascending
    buffers: dict[int, list[int]]
    filled: list[int]  # at b: samples that count for a median of level b and above, but not below
    missing: int  # samples, until the lowest waiting level has its median
    batch: int  # the sum of the samples of an unfinished batch
    early: array[int]  # user, rank, value of the samples that a median may read
    step: int = 0
    dropped: int = 0
    used: int = 0
    estimate: float = math.nan  # of the last release
    variance: float = math.inf  # of it about the samples' mean


def start(settings: UserMean, rng: np.random.Generator) -> State:
    """No sample yet.  Each tree has its own stream of noise, split off `rng`."""
    levels = range(len(settings.sizes))
    trees = [TreeState(child, narrows=settings.prior == "bootstrap") for child in rng.spawn(settings.n_trees)]
    if settings.prior != "bootstrap":
        for index, tree in enumerate(trees):
            _open(settings, index, tree, settings.user_sensitivity(index))
    given = settings.prior == "given"
    prior = settings.relative_prior
    return State(
        settings=settings,
        sizes=settings.sizes,
        counts=[0] * settings.n_users,
        sums=[0] * settings.n_users,
        trees=trees,
        weighted=[0.0] * len(trees),
        samples=[0.0] * len(trees),
        spreads=[0.0] * len(trees),
        intervals=[settings.interval(level, prior) if given and settings.projects(level) else None for level in levels],
        waiting=[level for level in levels if settings.waits_for(level)],
        buffers={level: [] for level in levels if settings.waits_for(level)},
        filled=[0] * (len(settings.sizes) + 1),
        missing=next(filter(None, map(settings.waits_for, levels)), 0),
        batch=0,
        early=array("q"),
        estimate=settings.first_estimate,
    )


def step(settings: UserMean, state: State, user: int, sample: float) -> tuple[State, Release]:
    """User `user` in [0, n_users) contributes `sample`; Release is the estimate after it."""
    if type(state) is not State or state.settings is not settings:
        checks.state(state, State, settings)
        state.settings = settings  # equal, as after pickling: the next step sees that at once
    value = _valid(settings, state, user, sample)
    state.step += 1
    if value is None:
        state.dropped += 1
        return state, _restate(settings, state)
    state.counts[user] = rank = state.counts[user] + 1
    changed = _activate(settings, state, user, rank, value) if state.waiting else False
    level = _finished(settings, rank)
    if settings.batch > 1:
        state.batch += value
        if (state.step - state.dropped) % settings.batch == 0:
            _add(settings, state, 0, state.batch)
            state.batch, changed = 0, True
    elif level is None:
        state.sums[user] += value
    else:
        if state.sizes[level] > 1:
            value += state.sums[user]
            state.sums[user] = 0
        if level in state.buffers:
            state.buffers[level].append(value)
        else:
            _add(settings, state, level, value)
            changed = True
    if changed:
        _estimate(settings, state)
    return state, _restate(settings, state)


def _valid(settings: UserMean, state: Any, user: int, sample: float) -> int | None:
    """The sample in grid units; None where it is beyond a cap and dropped.  Changes nothing."""
    low, high, resolution = settings.low, settings.high, settings.resolution
    if type(sample) is not int and type(sample) is not float:
        checks.number(sample=sample)
        sample = float(sample)
    if type(user) is not int or user < 0:
        checks.integer_at_least(0, user=user)
    if not low <= sample <= high:
        raise ValueError(f"sample must lie in [{low:g}, {high:g}], got {sample!r}")
    steps = (sample - low) / (high - low) * resolution
    value = round(steps)
    if resolution == 1 and steps != value:
        raise ValueError(
            f"sample must be {low:g} or {high:g} where resolution is 1, got {sample!r}; 2**20 takes real values"
        )
    if (
        state.step - state.dropped < settings.max_steps
        and user < settings.n_users
        and state.counts[user] < settings.samples_per_user
    ):
        return value if value < resolution else resolution
    if settings.excess == "drop":
        return None
    if state.step - state.dropped >= settings.max_steps:
        reason = f"horizon is {settings.max_steps}: there is no room for another sample"
    elif user >= settings.n_users:
        reason = f"user must be below n_users = {settings.n_users}, got {user!r}"
    else:
        reason = f"user {user} has contributed samples_per_user = {settings.samples_per_user} samples already"
    raise ValueError(f'{reason}; excess="drop" leaves such samples out')


def _finished(settings: UserMean, rank: int) -> int | None:
    """The level whose block the rank-th sample of a user completes."""
    if settings.blocks == "doubling":
        return rank.bit_length() - 1 if rank & (rank - 1) == 0 else None
    if settings.blocks == "bands":
        return (rank - 1).bit_length()
    return 0 if settings.blocks == "single" or rank % settings.sizes[0] == 0 else None


def _open(settings: UserMean, index: int, tree: TreeState, sensitivity: float) -> None:
    """New prefix sums for the elements to come."""
    tree.sums = settings.prefix_sums(settings.capacity_of(index) - tree.elements)
    noise = settings.noise(index, tree.sums, sensitivity)
    tree.node_variance = noise.variance
    tree.advance = tree.sums.online(Tape(noise, tree.rng))
    tree.length = tree.held = tree.total = 0
    tree.variances = []


def _variances(tree: TreeState) -> list[float]:
    """Of the noise of the current prefix sum, last, and of the next ones, up to a thousand."""
    assert tree.sums is not None
    ahead = range(tree.length, min(tree.length + min(tree.length + 16, 1024), tree.sums.capacity + 1))
    found: list[float] = (tree.sums.relative_variance(ahead) * tree.node_variance)[::-1].tolist()
    return found


def _add(settings: UserMean, state: State, level: int, total: int) -> None:
    """Project a block's sum and put it into its tree."""
    index = 0 if settings.one_tree else level
    tree, resolution, size = state.trees[index], settings.resolution, state.sizes[level]
    if tree.narrows:
        _bootstrap(settings, state, level, tree)
    interval = state.intervals[level]
    assert tree.advance is not None
    tree.total += min(max(total, interval.low), interval.high) if interval else total
    left = tree.advance.left
    noisy = tree.total + (left.pop() if left else tree.advance())
    tree.elements += 1
    tree.length += 1
    tree.held = held = tree.held + size
    state.used += size
    if not tree.variances:
        tree.variances = _variances(tree)
    spread = tree.variances.pop() + held * (0.25 * resolution * resolution)
    weight = held / spread if settings.weights == "precision" else 1.0
    state.weighted[index] = tree.done[0] + weight * noisy
    state.samples[index] = tree.done[1] + weight * held
    state.spreads[index] = tree.done[2] + weight * weight * spread


def _bootstrap(settings: UserMean, state: State, level: int, tree: TreeState) -> None:
    """New prefix sums with a narrower interval, if the levels below have become precise enough; all of it is public."""
    largest = settings.sizes[level] * settings.resolution
    half, samples = 0, sum(state.samples[:level])
    if samples > 0:
        half = settings.bootstrap_half(level, math.sqrt(sum(state.spreads[:level])) / samples / settings.resolution)
    width = 2 * half if half else largest
    if not width <= settings.restart * tree.width:
        return
    tree.width = width
    tree.narrows = (2 * settings.bootstrap_half(level, 0.0) or largest) <= settings.restart * width
    state.intervals[level] = None
    if half:
        center = round(
            min(max(sum(state.weighted[:level]) / samples, 0.0), float(settings.resolution)) * settings.sizes[level]
        )
        state.intervals[level] = Interval(max(center - half, 0), min(center + half, largest))
    tree.done = state.weighted[level], state.samples[level], state.spreads[level]
    _open(settings, level, tree, float(width))


def _activate(settings: UserMean, state: State, user: int, rank: int, value: int) -> bool:
    """Count the sample for the medians to come; draw those that are due, lowest level first, and empty their buffers."""
    top = state.waiting[-1]
    needed_from = (rank - 1).bit_length() + 1  # the lowest level whose arrays take the rank-th sample
    if needed_from > top:
        return False
    state.early.extend((user, rank, value))
    state.filled[needed_from] += 1
    if needed_from <= state.waiting[0]:
        state.missing -= 1
    changed = False
    while state.missing <= 0:
        level = state.waiting.pop(0)
        users, ranks, values = np.frombuffer(state.early, dtype=np.int64).reshape(-1, 3).T
        counted = np.flatnonzero(ranks <= settings.sizes[level])
        by_user = counted[np.argsort(users[counted], kind="stable")]
        prior = median(settings, level, values[by_user], state.trees[level].rng)
        del users, ranks, values
        state.intervals[level] = settings.interval(level, prior)
        for total in state.buffers.pop(level):
            _add(settings, state, level, total)
            changed = True
        if not state.waiting:
            state.early = array("q")
            break
        above = state.waiting[0]
        state.missing = settings.waits_for(above) - sum(state.filled[: above + 1])
    return changed


def median(settings: UserMean, level: int, values: np.ndarray, rng: np.random.Generator) -> float:
    """PrivateMedian of the users' first samples, sorted by user: arrays of a block's size, their means in [0, 1]."""
    means = values.reshape(-1, settings.sizes[level]).sum(axis=1) / (settings.sizes[level] * settings.resolution)
    return private_median.draw(means, settings.median_epsilon, level, rng)


def _estimate(settings: UserMean, state: State) -> None:
    """The release's estimate, and its variance about the mean that samples with one mean have."""
    samples = state.used if settings.weights == "samples" else sum(state.samples)
    if samples:
        low, high = settings.low, settings.high
        unit = (high - low) / settings.resolution
        estimate = low + unit * (sum(state.weighted) / samples)
        if settings.clip:
            estimate = min(max(estimate, low), high)
        error = unit * math.sqrt(sum(state.spreads)) / samples
        state.estimate, state.variance = estimate, error * error


def _restate(settings: UserMean, state: State) -> Release:
    """The last estimate, with its errors about the mean of all samples so far; public."""
    scale, step, used = settings.high - settings.low, state.step, state.used
    square = state.variance - 0.25 * (scale * scale) / step
    error = math.sqrt(square) if square > 0 else 0.0
    bias = scale * (step - used) / step if settings.any_users else scale
    return tuple.__new__(Release, (state.estimate, error, bias, used, state.dropped))  # half the time of its constructor


def levels(state: State) -> list[tuple[float, float]]:
    """Public: of each level that has released something its mean, in grid units, and the square of its standard error.

    They are functions of noisy sums alone; `theory.disagreement` compares them.
    """
    columns = zip(state.weighted, state.samples, state.spreads, strict=True)
    return [(total / samples, spread / samples**2) for total, samples, spread in columns if samples > 0]
