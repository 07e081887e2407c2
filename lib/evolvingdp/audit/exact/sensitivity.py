"""Mechanisms that add noise to sums: the exact change of the noise that hides a change of the data, over the noise's scale.

If a release of one input and one of its neighbour are the same when noise j is moved by y_j, the loss of the two is at most
the sum of |y_j| / scale with Laplace noise, and exactly that where the release determines the noise; with Gaussian noise
the sum of squares of y_j / deviation is mu^2, and mu gives the exact delta at every epsilon (`core.accounting`). Neither
needs samples. The mechanism itself runs, on a generator (`probes.Chosen`) that sees what its samplers ask for: `solved`
finds y from what a unit of each noise does to the release; for the means of users who come back y is the change of the
node sums (`released`), and `hides` runs the mechanism on both inputs to see that it is one.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter

from evolvingdp.audit.exact.laws import pair_epsilon
from evolvingdp.audit.exact.probes import NORMAL, Chosen, Drawn
from evolvingdp.continual_mean import blocks, coordinates, streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.blocks import Blocks, Exposed, Part
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.continual_mean.prefix_sums import FIRST, Filter, PrefixSums, Tree
from evolvingdp.continual_mean.recorded import RecordedSums
from evolvingdp.continual_mean.settings import arrange
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import Gaussian, Laplace, Noise
from evolvingdp.core.seeds import stream

Array = NDArray[np.float64]
Mean = UserMean | Blocks
Sums = Callable[[Array, Chosen], ArrayLike]  # n numbers, and n sums of them and of noise


def cost(moved: Array, drawn: Drawn) -> float:
    """l1 norm over the scale for Laplace noise, squared l2 norm over the variance for Gaussian noise."""
    if drawn.law == NORMAL:
        return float(np.sum(moved**2)) / drawn.scale**2
    return float(np.sum(np.abs(moved))) / drawn.scale


def solved(sums: Sums, n_numbers: int, changes: Iterable[Array]) -> float:
    """The largest `cost` over `changes` of the numbers: the noise that hides each is the solution of linear equations.

    Infinite where some number has no noise of its own. Raises ValueError unless `sums` draws one block of noise.
    """
    silent = Chosen()
    rest = np.asarray(sums(np.zeros(n_numbers), silent))
    (drawn,) = silent.asked
    units = [np.asarray(sums(np.zeros(n_numbers), Chosen(moved=[unit]))) - rest for unit in np.eye(n_numbers)]
    try:
        moved = [np.linalg.solve(np.array(units).T, np.asarray(sums(change, Chosen())) - rest) for change in changes]
    except np.linalg.LinAlgError:
        return math.inf
    return max(cost(one, drawn) for one in moved)


def noise_cost(noise: Noise) -> float:
    """Of a number that changes by 1; infinite where draws far out are not what the generator drew."""
    if isinstance(noise, Laplace | Gaussian):
        far = [Chosen(moved=[[sign * 80 * noise.scale]]) for sign in (-1, 1)]
        if any(abs(noise.draw(1, rng)[0]) != 80 * noise.scale for rng in far):  # type: ignore[arg-type]
            return math.inf
    return solved(lambda number, rng: number + noise.draw(1, rng), 1, [np.ones(1)])  # type: ignore[arg-type]


def binary_cost(mechanism: BinaryMechanism, n_elements: int, sensitivity: float | None = None) -> float:
    """Of the elements that change, at worst, by `sensitivity` each (default: the mechanism's), in a stream of `n_elements`:
    as many as one person may have, and as far apart as they must be.

    The larger of all sums at once and step by step.
    """

    apart = [
        places
        for places in itertools.combinations(range(n_elements), min(mechanism.uses, -(-n_elements // mechanism.gap)))
        if all(later - place >= mechanism.gap for place, later in itertools.pairwise(places))
    ]
    by = mechanism.sensitivity if sensitivity is None else sensitivity
    changes = [np.eye(n_elements)[list(places)].sum(axis=0) * by for places in apart]
    shown = (mechanism.release, functools.partial(_steps, mechanism))
    return max(solved(sums, n_elements, changes) for sums in shown)  # type: ignore[arg-type]


def _steps(mechanism: BinaryMechanism, elements: Array, rng: Chosen) -> list[float]:
    state, sums = mechanism.start(rng), []  # type: ignore[arg-type]
    for element in elements.tolist():
        state, release = mechanism.step(state, element)
        sums.append(release)
    return sums


def per_step_cost(settings: PerStepLaplace, users: ArrayLike) -> float:
    """Of a user whose samples, all 0 or all 1, are in a mean at every step: the worst user."""
    who = np.asarray(users)

    def means(samples: Array, rng: Chosen) -> Array:
        return settings.release(who, samples, rng)  # type: ignore[arg-type]

    return solved(means, len(who), [(who == user).astype(float) for user in np.unique(who)])


def released(sums: PrefixSums, elements: ArrayLike) -> Array:
    """All that a tree or a filter adds noise to, in the order of the noise."""
    values = np.asarray(elements, dtype=float)
    if isinstance(sums, Filter):
        return np.convolve(values, sums.coefficients)[: len(values)]
    if not isinstance(sums, Tree):
        raise TypeError(f"sums must be a Tree or a Filter, got {sums!r}")
    running = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.minimum(tree_nodes(sums), len(values))
    return np.asarray(running[ends[:, 1]] - running[ends[:, 0]])


@functools.cache
def tree_nodes(sums: Tree) -> NDArray[np.int64]:
    """(nodes, 2): from which to which length of a prefix each block is, in the order of their noise: level by level.

    A prefix adds the blocks up to the multiple of a level's block size that its digits from there on write, beginning with
    the multiple of the next larger one; the block between two groups of siblings is in no prefix.
    """
    if sums.capacity > FIRST:
        raise ValueError(f"capacity must be at most {FIRST}, where all nodes are drawn at once, got {sums.capacity}")
    base, nodes, lengths = sums.branching, [], np.arange(1, sums.capacity + 1)
    for level in range(sums.height):
        reach = sums.below * sum(base**lower for lower in range(level))
        place = (lengths + reach) // base**level
        center = base * ((lengths + reach + sums.below * base**level) // base ** (level + 1))
        pairs = [range(min(ends), max(ends)) for ends in zip(place.tolist(), center.tolist(), strict=True)]
        used = {block for pair in pairs for block in pair}
        last = max(int(place.max()), int(center.max()))
        drawn = [block for block in range(last) if (block + 1 - base + sums.below) % base]
        assert used <= set(drawn)  # each block that a prefix needs has noise of its own
        nodes += [(block * base**level, (block + 1) * base**level) for block in drawn]
    return np.array(nodes)


def discrete_gaussian_epsilon(mechanism: BinaryMechanism) -> float:
    """The exact epsilon at the mechanism's delta, for an element that changes by 1: of all discrete Gaussian noise together.

    The loss is a function of the sum of the noise of the nodes that the element is in, all of which move by 1.
    """
    noise, count = mechanism.noise, mechanism.horizon
    nodes = max(int(np.abs(released(mechanism.structure, element)).sum()) for element in np.eye(count))
    scale = math.sqrt(noise.variance)
    reach = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    law = functools.reduce(np.convolve, [noise.pmf(reach)] * nodes)  # type: ignore[attr-defined]
    still = np.zeros(nodes)
    return pair_epsilon([np.concatenate([law, still]), np.concatenate([still, law])], mechanism.delta)


def balanced_cost(mechanism: BinaryMechanism) -> float:
    """Of the element that changes by 1 at worst; infinite where the change of the nodes does not hide it."""
    count, worst = mechanism.horizon, 0.0
    for element in np.eye(count):
        moved, silent = -released(mechanism.structure, element), Chosen()
        first = mechanism.release(np.zeros(count), silent)  # type: ignore[arg-type]
        ways: tuple[Callable[..., ArrayLike], ...] = (mechanism.release, functools.partial(_steps, mechanism))
        same = (np.allclose(first, shown(element, Chosen(moved=[moved])), atol=1e-9) for shown in ways)
        worst = max(worst, cost(moved, silent.asked[0]) if all(same) else math.inf)
    return worst


def long_cost(mechanism: BinaryMechanism) -> float:
    """Of a first element that changes by 1, step by step, for noise B z of running sums A x with a triangular Toeplitz B.

    A unit of the first z shows B's first column; with B C = A it is C's first column that moves.
    """
    zeros, silent = np.zeros(mechanism.horizon), Chosen()
    rest = np.array(_steps(mechanism, zeros, silent))
    shown = np.array(_steps(mechanism, zeros, Chosen(moved=[[1.0]]))) - rest
    return cost(lfilter([1.0], shown, zeros + 1.0), silent.asked[0])


def hides_coordinates(settings: UserMean, n_dimensions: int, composition_delta: float = 0.0) -> bool:
    """Whether each coordinate has noise of its own: that of the first hides a user who goes from zeros to ones."""
    seen, draw = settings.but(clip=False), functools.partial(stream, 0, "release")
    one = coordinates.of_one(seen, n_dimensions, composition_delta)
    each = settings.samples_per_user
    users = streams.arrivals("round_robin", settings.n_users, each, settings.n_users * each, stream(0, "order"))
    before, after = list(neighbours(users, (0,)))[-1]
    moved = _moved(one, node_changes(one, users, before, after))
    runs: Any = (before, Chosen(draw())), (after, Chosen(draw(), [moved]))
    first, second = (
        coordinates.release(seen, users, np.stack([samples, *[before] * (n_dimensions - 1)], axis=1), rng, composition_delta)
        for samples, rng in runs
    )
    return np.allclose(first, second, rtol=1e-9, atol=1e-9)


def recorded_cost(settings: RecordedSums) -> float:
    """Of the element that changes by 1 at worst; infinite where the change of the blocks does not hide it."""
    count, worst = settings.n_steps, 0.0
    for element in np.eye(count):
        blocks = [element]
        while len(last := blocks[-1]) > (branching := settings.branching):
            blocks.append(np.array([last[at : at + branching].sum() for at in range(0, len(last), branching)]))
        moved, silent = -np.concatenate(blocks), Chosen()
        first = settings.release(np.zeros(count), silent)  # type: ignore[arg-type]
        second = settings.release(element, Chosen(moved=[moved]))  # type: ignore[arg-type]
        worst = max(worst, cost(moved, silent.asked[0]) if np.allclose(first, second, atol=1e-9) else math.inf)
    return worst


def _exposed(
    settings: Mean, users: ArrayLike, samples: ArrayLike, rng: Chosen | None, public: list[Exposed]
) -> list[Exposed]:
    """The streams of sums of a run; `public`: those of another, which decide what is public."""
    if isinstance(settings, Blocks):
        return blocks.exposed(settings, users, samples, rng, public)  # type: ignore[arg-type]
    arranged = arrange(settings, users, samples)
    if rng is not None:
        settings.changes(arranged, rng)  # type: ignore[arg-type]
    part = Part(settings.elements(arranged)[0], settings.sums, settings.noise)
    return [Exposed((part,), {}, np.zeros((3, 1)))]


def _shown(settings: Mean, users: ArrayLike, samples: ArrayLike, seed: int) -> tuple[list[Exposed], Chosen]:
    """A run of the mechanism, all that is public included, and what its samplers have asked for."""
    rng = Chosen(stream(seed, "release"))
    return _exposed(settings, users, samples, rng, []), rng


def node_changes(
    settings: Mean,
    users: ArrayLike,
    one: ArrayLike,
    other: ArrayLike,
    seed: int = 0,
    shown: tuple[list[Exposed], Chosen] | None = None,
) -> list[list[tuple[Array, Drawn]]]:
    """Of each stream of sums and each of its parts: the change of its node sums between two samples of one user, and its
    noise.

    All that is public is that of the first, whose run may be given as `shown`.
    """
    public, rng = shown or _shown(settings, users, one, seed)
    changed = _exposed(settings, users, other, None, public)
    return [
        [
            (released(part.sums, part.elements) - released(part.sums, moved.elements), drawn)
            for part, moved, drawn in zip(tree.parts, neighbour.parts, child.asked, strict=True)
        ]
        for tree, neighbour, child in zip(public, changed, rng.children or [rng], strict=True)
    ]


def _moved(settings: Mean, changes: list[list[tuple[Array, Drawn]]]) -> list[Any]:
    """By what a `Chosen` must move noise: a generator of its own for each stream, or one for the only one."""
    moved = [[change for change, _ in tree] for tree in changes]
    return moved if isinstance(settings, Blocks) else moved[0]


def user_mean_cost(settings: Mean, users: ArrayLike, one: ArrayLike, other: ArrayLike, seed: int = 0) -> float:
    """The `cost` of all trees together between two samples of one user."""
    return user_mean_costs(settings, users, [(one, other)], seed)[0]


def user_mean_costs(
    settings: Mean, users: ArrayLike, pairs: Iterable[tuple[ArrayLike, ArrayLike]], seed: int = 0
) -> list[float]:
    """`user_mean_cost` of each of `pairs`; the mechanism runs once for all that begin with the same samples."""
    runs: dict[bytes, tuple[list[Exposed], Chosen]] = {}
    costs = []
    for one, other in pairs:
        key = np.asarray(one).tobytes()
        runs[key] = runs.get(key) or _shown(settings, users, one, seed)
        changes = node_changes(settings, users, one, other, seed, runs[key])
        costs.append(sum(cost(*part) for tree in changes for part in tree))
    return costs


def hides(settings: Mean, users: ArrayLike, one: ArrayLike, other: ArrayLike, seed: int = 0) -> bool:
    """Whether noise that is moved by `node_changes` makes the second samples' release that of the first, at every step, all
    at once and step by step."""
    seen = settings.but(clip=False)  # clipped estimates would be the same for many
    moved = _moved(seen, node_changes(seen, users, one, other, seed))
    first, second = (
        seen.release(users, samples, Chosen(stream(seed, "release"), by)).estimate  # type: ignore[arg-type]
        for samples, by in ((one, ()), (other, moved))
    )
    told = [second]
    if isinstance(seen, UserMean):
        state, steps = seen.start(Chosen(stream(seed, "release"), moved)), []  # type: ignore[arg-type]
        for user, sample in zip(np.asarray(users).tolist(), np.asarray(other).tolist(), strict=True):
            state, release = seen.step(state, user, sample)
            steps.append(release.estimate)
        told.append(np.array(steps))
    return all(np.allclose(first, also, rtol=1e-9, atol=1e-9) for also in told)


def neighbours(
    users: ArrayLike, who: tuple[int, ...] = (0, 1), seed: int = 0
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of samples that differ in those of one user: zeros against all patterns (or ones, above 8 samples)."""
    arrived = np.asarray(users)
    background = streams.bits(0.5, len(arrived), stream(seed, "neighbours"))
    for user in who:
        places = np.flatnonzero(arrived == user)
        patterns = itertools.product((0, 1), repeat=len(places)) if len(places) <= 8 else iter([(1,) * len(places)])
        for pattern in patterns:
            one, other = background.copy(), background.copy()
            one[places], other[places] = 0, pattern
            yield one, other


def worst_user_mean_cost(settings: Mean, order: str = "round_robin", who: tuple[int, ...] = (0, 1), extra: int = 0) -> float:
    """The largest `user_mean_cost` over `neighbours` in a full stream whose users arrive in `order`, each `extra` times more
    often than the cap allows.

    Infinite where the noise that is counted does not hide the pair (`hides`).
    """
    each = settings.samples_per_user + extra
    users = streams.arrivals(order, settings.n_users, each, settings.n_users * each, stream(0, "order"))
    pairs = list(neighbours(users, who))
    costs = user_mean_costs(settings, users, pairs)
    worst = int(np.argmax(costs))
    return costs[worst] if hides(settings, users, *pairs[worst]) else math.inf
