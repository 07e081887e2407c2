"""A `UserMean` over a whole stream at once: the same releases, bit for bit, as step by step with the same generator.

Who arrives when is public, and decides which blocks there are, when they are released and how wide their intervals are:
blocks are found by sorting, a tree is one pass, and only a median or a bootstrapped prior reads an earlier tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.arranged import Arranged, arrange
from evolvingdp.continual_mean.online import median
from evolvingdp.continual_mean.prefix_sums import PrefixSums
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import Noise, Tape


@dataclass(frozen=True, eq=False)
class Releases:
    """Public: one entry per step, as in `Release`; `dropped` is of the whole stream."""

    estimate: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    bias: NDArray[np.float64]
    samples: NDArray[np.int64]  # in the estimate
    dropped: int


class Part(NamedTuple):
    """What enters one object of prefix sums, in order (secret), and the law of a node's noise."""

    elements: NDArray[np.int64]
    sums: PrefixSums
    noise: Noise


@dataclass(frozen=True, eq=False)
class Exposed:
    """One tree of a release: noise hides `parts`, the rest is public, and later trees rely on it."""

    parts: tuple[Part, ...]
    priors: dict[int, float]
    contributions: NDArray[np.float64]  # as `_tree` returns them


@dataclass(frozen=True, eq=False)
class Changes:
    """Public: the estimates where they change, first before any element; steps between two changes repeat the last."""

    step: NDArray[np.int64]  # the first with each release: 1, then not falling (of equal steps the last counts)
    estimate: NDArray[np.float64]
    variance: NDArray[np.float64]  # about the mean that samples with one mean have
    samples: NDArray[np.int64]
    settings: UserMean
    n_steps: int
    dropped: int

    @property
    def lasting(self) -> NDArray[np.int64]:
        """At how many steps each of them is what is released."""
        return np.diff(self.step, append=self.n_steps + 1)

    def since(self, first: int) -> Changes:
        """Those of the steps from `first` on."""
        start = int(np.searchsorted(self.step, first, side="right")) - 1
        left = {name: getattr(self, name)[start:] for name in ("estimate", "variance", "samples")}
        return replace(self, step=np.maximum(self.step[start:], first), **left)

    def every_step(self) -> Releases:
        """What is released at each of the steps, from the first of these changes on."""
        index: Any = slice(None) if (self.lasting == 1).all() else np.repeat(np.arange(len(self.step)), self.lasting)
        samples = self.samples[index]
        steps, scale = np.arange(self.n_steps + 1 - len(samples), self.n_steps + 1), self.settings.high - self.settings.low
        error: NDArray[np.float64] = np.sqrt(np.maximum(self.variance[index] - 0.25 * (scale * scale) / steps, 0.0))
        bias: NDArray[np.float64] = (
            scale * (steps - samples) / steps if self.settings.any_users else np.full(len(steps), scale)
        )
        return Releases(self.estimate[index], error, bias, samples, self.dropped)


class _Read(NamedTuple):
    """From which step on a level's elements are released, n_steps + 1 for never; and what its median has read (secret)."""

    step: int
    values: NDArray[np.int64] | None


class _Elements(NamedTuple):
    """What enters the trees, in that order."""

    step: NDArray[np.int64]
    level: NDArray[np.int64]
    total: NDArray[np.int64]  # secret


def release(settings: UserMean, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator) -> Releases:
    """All releases for the stream `users` (T,) in [0, n_users) and `samples` (T,) in [low, high]."""
    return changes(settings, arrange(settings, users, samples), rng).every_step()


def changes(settings: UserMean, arranged: Arranged, rng: np.random.Generator) -> Changes:
    """The releases for a stream, at the steps where they change; raises ValueError if it is not within `settings`' caps."""
    arranged.check(settings)
    elements, sums = _run(settings, arranged, rng)
    unit = (settings.high - settings.low) / settings.resolution
    estimate, held, variance = sums  # in place: arrays of a number a sample are slow to get
    empty = ~(held > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate /= held
        error = np.sqrt(variance, out=variance)
        error *= unit
        error /= held
    error *= error
    estimate *= unit
    estimate += settings.low
    estimate[empty], variance[empty] = settings.first_estimate, np.inf
    if settings.clip:
        np.clip(estimate, settings.low, settings.high, out=estimate)
    return Changes(
        np.append(1, elements.step),
        estimate,
        variance,
        np.append(0, _running_samples(settings, elements.level)),
        settings,
        arranged.n_steps,
        arranged.n_steps - len(arranged.users),
    )


def exposed(
    settings: UserMean, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator, public: Sequence[Exposed] = ()
) -> list[Exposed]:
    """A `release`'s trees, secret, for an audit; `public`: those of another run, whose priors and intervals are taken."""
    trees: list[Exposed] = []
    _run(settings, arrange(settings, users, samples), rng, trees, public)
    return trees


def _run(
    settings: UserMean,
    arranged: Arranged,
    rng: np.random.Generator,
    trees: list[Exposed] | None = None,
    public: Sequence[Exposed] = (),
) -> tuple[_Elements, NDArray[np.float64]]:
    """All elements; weighted sum, samples and variance before them and after each; fills `trees` where there is one."""
    waits = {level: settings.waits_for(level) for level in range(len(settings.sizes)) if settings.waits_for(level)}
    blocks = settings.blocks, settings.sizes[0]  # sizes tell batches, too
    order = blocks, *waits.items()
    if blocks not in arranged.known:
        arranged.known[blocks] = _blocks(settings, arranged)
    if order not in arranged.known:
        medians = _medians(settings, arranged, waits)
        elements = arranged.known[blocks]
        if settings.blocks != "single":
            elements = _elements(elements, medians, arranged.n_steps)
        arranged.known[order] = medians, elements
    read, elements = arranged.known[order]
    sums = np.zeros((3, len(elements.step) + 1))
    mine: Any = slice(None)
    for index, own in enumerate(rng.spawn(settings.n_trees)):
        if settings.n_trees > 1:
            entering = elements.level == index
            mine, latest = np.flatnonzero(entering), np.append(0, np.cumsum(entering))
        priors = public[index].priors if public else _priors(settings, read, index, own)
        below = sums[:, 1:][:, mine if settings.prior == "bootstrap" else slice(0)]
        entered = elements.level[mine], elements.total[mine]
        released, parts = _tree(settings, *entered, index, priors, below, None if public else own)
        contributions = public[index].contributions if public else released
        if trees is not None:
            trees.append(Exposed(tuple(parts), priors, contributions))
        if settings.n_trees == 1:
            sums = contributions
        elif contributions.shape[1] > 1:
            for row, contributed in zip(sums, contributions, strict=True):
                row += contributed[latest]
    return elements, sums


def _medians(settings: UserMean, arranged: Arranged, waits: dict[int, int]) -> dict[int, _Read]:
    """Per level that waits for a median: when it has seen enough, and what it reads."""
    if not waits:
        return {}  # before anything is sorted
    read, (steps, ranks, values) = {}, arranged.by_user
    for level, needed in sorted(waits.items(), reverse=True):
        early = ranks <= settings.sizes[level]
        steps, ranks, values = steps[early], ranks[early], values[early]  # all that a lower level reads is among these
        read[level] = _Read(arranged.n_steps + 1, None)
        if len(steps) >= needed:
            step = int(np.partition(steps, needed - 1)[needed - 1])
            read[level] = _Read(step, values[steps <= step])
    return read


def _blocks(settings: UserMean, arranged: Arranged) -> _Elements:
    """Sums of full blocks, at the steps that fill them; in any order, but for single samples."""
    if settings.blocks == "single":
        step, value, batch = arranged.step, arranged.values[arranged.step - 1], settings.batch
        if batch > 1:
            full = len(step) // batch
            step, value = step[batch - 1 :: batch], value[: full * batch].reshape(full, batch).sum(axis=1)
        return _Elements(step, np.zeros(len(step), dtype=np.int64), value)
    step, rank, value = arranged.by_user
    if settings.blocks == "bands":
        return _Elements(step, np.frexp(rank - 1)[1].astype(np.int64), value)
    sizes = np.asarray(settings.sizes)
    if settings.blocks == "doubling":
        ends = np.flatnonzero(rank & (rank - 1) == 0)
        level = np.frexp(rank[ends])[1].astype(np.int64) - 1
    else:
        ends = np.flatnonzero(rank % sizes[0] == 0)
        level = np.zeros(len(ends), dtype=np.int64)
    running = np.concatenate([[0], np.cumsum(value)])
    total = running[ends + 1] - running[ends + 1 - sizes[level]]
    return _Elements(step[ends], level, total)


def _elements(blocks: _Elements, read: dict[int, _Read], n_steps: int) -> _Elements:
    """The full blocks in order; a waiting level's are released at its activation, before the step's own."""
    filled, level, total = blocks
    activation = np.zeros(64, dtype=np.int64)
    for waiting, seen in read.items():
        activation[waiting] = seen.step
    step = np.maximum(filled, activation[level])
    own = filled >= activation[level]
    if not own.all():
        order = np.lexsort((filled, np.where(own, 0, level), own, step))
    elif 8 * len(step) < n_steps:
        order = np.argsort(step)
    else:  # no two at one step: faster than sorting
        place = np.zeros(n_steps + 1, dtype=np.int64)
        place[step] = np.arange(1, len(step) + 1)
        order = place[place > 0] - 1
    order = order[step[order] <= n_steps]  # the others wait for a median that is never drawn
    return _Elements(step[order], level[order], total[order])


def _priors(settings: UserMean, read: dict[int, _Read], index: int, rng: np.random.Generator) -> dict[int, float]:
    """The priors of the levels of tree `index`, at their activations; or the given one."""
    levels = [level for level in range(len(settings.sizes)) if settings.tree_of(level) == index and settings.projects(level)]
    if settings.prior == "given":
        return dict.fromkeys(levels, settings.relative_prior)
    values = {level: read[level].values for level in levels if level in read}
    return {level: median(settings, level, seen, rng) for level, seen in values.items() if seen is not None}


def _tree(
    settings: UserMean,
    levels: NDArray[np.int64],
    totals: NDArray[np.int64],
    index: int,
    priors: dict[int, float],
    below: NDArray[np.float64],
    rng: np.random.Generator | None,
) -> tuple[NDArray[np.float64], list[Part]]:
    """Weighted sum, samples and variance (3, elements + 1) that tree `index` contributes, first before any; its parts. Those
    alone, and zeros, without a generator."""
    count, parts = len(levels), []
    contributions = np.zeros((3, count + 1))
    starts, halves = _intervals(settings, index, below) if settings.prior == "bootstrap" else ([0], np.zeros(1))
    for first, last in zip(starts, [*starts[1:], count], strict=True):
        if first == last:
            continue
        part = slice(first, last)
        projected = totals[part].copy() if settings.prior != "none" else totals[part]
        sensitivity = settings.user_sensitivity(index)
        if settings.prior == "bootstrap":
            half, largest = int(halves[first]), settings.sizes[index] * settings.resolution
            sensitivity = float(2 * half if half else largest)
            if half:
                prior = min(max(below[0, first] / below[1, first], 0.0), float(settings.resolution))
                center = round(prior * settings.sizes[index])
                np.clip(projected, max(center - half, 0), min(center + half, largest), out=projected)
        for level, prior in priors.items():
            interval = settings.interval(level, prior)
            chosen = levels[part] == level
            projected[chosen] = np.clip(projected[chosen], interval.low, interval.high)
        sums = settings.prefix_sums(settings.capacity_of(index) - first)
        noise = settings.noise(index, sums, sensitivity)
        parts.append(Part(projected, sums, noise))
        if rng is None:
            continue
        noisy = np.cumsum(projected) + sums.all(last - first, Tape(noise, rng))
        rows = contributions[:, first + 1 : last + 1]
        rows[0], rows[1] = noisy, _running_samples(settings, levels[part])
        np.multiply(rows[1], 0.25 * settings.resolution * settings.resolution, out=rows[2])
        rows[2] += sums.variances(last - first) * noise.variance
        if settings.weights == "precision":
            weight = rows[1] / rows[2]
            rows[:2] *= weight
            rows[2] *= weight * weight
        if first:
            rows += contributions[:, first : first + 1]  # what finished prefix sums say
    return contributions, parts


def _running_samples(settings: UserMean, levels: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many samples the first k elements, of these levels, hold."""
    if settings.blocks == "doubling":
        return np.cumsum(np.asarray(settings.sizes)[levels])
    return np.arange(1, len(levels) + 1) * settings.sizes[0]


def _intervals(settings: UserMean, level: int, below: NDArray[np.float64]) -> tuple[list[int], NDArray[np.int64]]:
    """Where the bootstrapped level starts new prefix sums, and half the width that each element would allow; public."""
    size, resolution = settings.sizes[level], settings.resolution
    largest = size * resolution
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(below[2]) / below[1] / resolution
        reach = resolution * (settings._concentration[level] + settings.prior_deviations * size * error)
    half = np.where(below[1] > 0, np.ceil(np.nan_to_num(reach, nan=largest, posinf=largest)), largest).astype(np.int64)
    half = np.where(2 * half < largest, half, 0)
    widths = np.where(half, 2 * half, largest)
    starts = [0]
    while len(widths) and len(narrower := np.flatnonzero(widths[starts[-1] :] <= settings.restart * widths[starts[-1]])):
        starts.append(starts[-1] + int(narrower[0]))
    return starts, half
