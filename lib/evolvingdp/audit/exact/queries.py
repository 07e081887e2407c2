"""Laws of the answers of the sparse vector technique and of ThresholdMonitor to an adversary, enumerated.

`monitor_laws` takes the library's own steps; `Forced` stands for the generator so that a step takes the wanted answer, and
its probability is read from the noise's distribution function.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.find_step import FindState, FindStep
from evolvingdp.sparse_vector.histograms import Histogram, HistogramEveryStep, HistogramState
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.stable_monitor import StableMonitor, StableState
from evolvingdp.sparse_vector.successors.target_charging import TargetCharging
from evolvingdp.sparse_vector.successors.values import step_with_value
from evolvingdp.sparse_vector.threshold_monitor import State, ThresholdMonitorEvolving

Array = NDArray[np.float64]
Strategy = Callable[[tuple[bool, ...]], tuple[float, float, Any]]  # answers -> user 0's value in both worlds, the others'


class Forced:
    """Stands for a generator: all noise has this sign and no end."""

    def __init__(self, above: bool) -> None:
        self.value = 1e15 if above else -1e15

    def laplace(self, *_: Any) -> float:
        return self.value


def _transcripts(
    branches: Callable[[Any, tuple[Any, ...]], Iterable[tuple[Any, float, Any]]],
    state: Any,
    probability: float = 1.0,
    so_far: tuple[Any, ...] = (),
) -> Iterator[tuple[tuple[Any, ...], float]]:
    """All sequences of answers, with probabilities: `branches(state, so_far)` has (answer, its probability, state) of each
    answer that may come next, and is empty at the end."""
    following = list(branches(state, so_far))
    for answer, share, after in following:
        yield from _transcripts(branches, after, probability * share, (*so_far, answer))
    if not following:
        yield so_far, probability


def monitor_laws(
    monitor: ThresholdMonitorEvolving, others: int, strategy: Strategy, depth: int, absent: bool = False
) -> Array:
    """Probabilities of all answers to `depth` adaptive queries in both worlds, (2, 2^depth).

    User 0 has the first value of `strategy` in world 0, the second in world 1 (0 throughout if `absent`).
    """

    def branches(state: State, answers: tuple[bool, ...], world: int) -> Iterator[tuple[bool, float, State]]:
        first, second, rest = strategy(answers)
        values = np.concatenate([[first if world == 0 else (0.0 if absent else second)], rest])
        below = monitor.threshold - float(values[state.active].sum())
        for above in (False, True) if len(answers) < depth else ():
            forced: Any = Forced(above)
            after, release = monitor.step(state, values, lambda data: data, forced)
            _check(release.above, above)
            yield above, float(monitor.noise.sf(below) if above else monitor.noise.cdf(below)), after

    start = monitor.start(1 + others)
    return np.array([[p for _, p in _transcripts(partial(branches, world=world), start)] for world in (0, 1)])


def _check(told: Any, wanted: Any) -> None:
    if told != wanted:
        raise AssertionError(f"the step answered {told} to noise that forces {wanted}")


def above_threshold_loss(method: AboveThreshold, queries: int, grid: int = 24001) -> float:
    """The worst log ratio of all answers until it halts, by integration over the threshold's noise; nothing is refreshed.

    Every query moves by one, up or down, between the worlds; queries stand at the threshold.
    """
    if method.refreshed and method.reports > 1:
        raise ValueError(f"reports must be 1 where the threshold is refreshed, got {method.reports}: compose single runs")
    worst, chance = 0.0, partial(search_probability, replace(method, threshold=0.0, refreshed=False), grid=grid)
    every = itertools.product(itertools.product((-1, 1), repeat=queries), _until_halt(queries, method.reports))
    for pairs in {tuple(sorted(zip(moves, answers, strict=False))) for moves, answers in every}:  # their order is all one
        moves, answers = zip(*pairs, strict=True)
        worst = max(worst, abs(math.log(chance([0] * len(moves), answers) / chance(moves, answers))))
    return worst


def halting_laws(method: AboveThreshold, kinds: Sequence[int]) -> Array:
    """Laws of all answers until it halts, in both worlds, (2, answers), half below the threshold: a query moves by 1 up or
    down (`kinds`)."""
    every, higher = _until_halt(len(kinds), method.reports), replace(method, threshold=0.5)
    moved = [[float(kind == move) for kind in kinds] for move in (1, -1)]
    return np.array([[search_probability(higher, values, answers) for answers in every] for values in moved])


class Scripted:
    """Stands for a generator: single draws from a list, draws of many by sign, and which of the absent are reported."""

    def __init__(self, singles: Sequence[float], many: Sequence[bool], absent: Sequence[int] = ()) -> None:
        self.singles, self.absent = iter(singles), np.array(absent, dtype=np.int64)
        self.many = np.where(many, 1e15, -1e15)

    def laplace(self, *_: Any, size: Any = None) -> Any:
        return next(self.singles) if size is None else self.many

    normal = laplace

    def binomial(self, *_: Any) -> int:
        return len(self.absent)

    poisson = binomial

    def choice(self, *_: Any, **__: Any) -> NDArray[np.int64]:
        return self.absent


def _shown(one: Histogram, weights: Sequence[int]) -> list[tuple[tuple[int, ...], float]]:
    """All lists of reported elements, each with its probability, from the noise's survival function."""
    chances = [0.0 if one.stable and w == 0 else float(one.sf(one.threshold - w)) for w in weights]
    pairs = []
    for pattern in itertools.product((False, True), repeat=len(weights)):
        probability = math.prod(p if above else 1 - p for p, above in zip(chances, pattern, strict=True))
        if probability > 0:
            pairs.append((tuple(itertools.compress(range(len(weights)), pattern)), probability))
    return pairs


def _weights(others: Sequence[Sequence[int]], world: int) -> list[list[int]]:
    """Of all users, where user 0 holds element `world` in every step."""
    return [[weight + (element == world) for element, weight in enumerate(one)] for one in others]


def _as_rows(laws: Sequence[dict[Any, float]]) -> Array:
    outcomes = sorted(set().union(*laws), key=repr)
    return np.array([[law.get(outcome, 0.0) for outcome in outcomes] for law in laws])


def histogram_laws(method: HistogramEveryStep, others: Sequence[Sequence[int]]) -> Array:
    """Laws of the reports of all steps in both worlds, (2, outcomes): user 0 holds element 0 or 1 throughout.

    `others` are the weights (elements,) of the other users in each step.
    """

    def branches(state: HistogramState, so_far: tuple[Any, ...], every: list[list[int]]) -> Iterator[tuple[Any, float, Any]]:
        for weights in every[len(so_far) : len(so_far) + 1]:
            free = [element for element, weight in enumerate(weights) if not weight]
            for reported, share in _shown(method.one, weights):
                absent = [rank for rank, element in enumerate(free) if element in reported]
                forced: Any = Scripted((), _those_held(weights, reported), absent)
                after, release = method.step(state, np.repeat(np.arange(len(weights)), weights), forced)
                _check(tuple(release.elements.tolist()), reported)
                yield reported, share, after

    start = method.start(1 + sum(others[0]))
    return _as_rows([dict(_transcripts(partial(branches, every=_weights(others, world)), start)) for world in (0, 1)])


class Told:
    """Stands for noise that is heard, or not, whatever is asked."""

    def __init__(self, above: Sequence[bool]) -> None:
        self.above = above

    def sample(self, size: int, rng: Any) -> Array:
        return np.where(self.above, 1e15, -1e15)


def stable_laws(method: StableMonitor, others: Sequence[Sequence[int]]) -> Array:
    """As `histogram_laws`, where `others` are the elements that the other users hold in each step."""
    noise, threshold = method.monitor.noise, method.monitor.threshold

    def branches(state: StableState, so_far: tuple[Any, ...], world: int) -> Iterator[tuple[Any, float, Any]]:
        for elements in others[len(so_far) : len(so_far) + 1]:
            inputs = np.array([world, *elements])
            present, weights = np.unique(inputs[state.counters.active], return_counts=True)
            chances = noise.sf(threshold - weights).tolist()
            for pattern in itertools.product((False, True), repeat=len(present)):
                share = math.prod(p if above else 1 - p for p, above in zip(chances, pattern, strict=True))
                told: Any = Told(pattern)
                forced = replace(method, monitor=replace(method.monitor, noise=told))
                after, release = forced.step(state, inputs, told)
                reported = tuple(itertools.compress(present.tolist(), pattern))
                _check(tuple(release.elements.tolist()), reported)
                yield reported, share, after

    start = method.start(1 + len(others[0]))
    return _as_rows([dict(_transcripts(partial(branches, world=world), start)) for world in (0, 1)])


class Fixed:
    """Stands for noise that is this number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def draw(self, rng: Any) -> float:
        return self.value


def value_laws(monitor: ThresholdMonitorEvolving, others: int, kinds: Sequence[int], reach: int) -> Array:
    """Laws of all answers with their values in both worlds, (2, outcomes), for integer noise up to `reach`.

    The query number i is met by all `others`, and by user 0 in world `kinds[i]`; what is out of reach is one outcome more.
    """

    def branches(state: State, so_far: tuple[Any, ...], world: int) -> Iterator[tuple[Any, float, Any]]:
        for kind in kinds[len(so_far) : len(so_far) + 1] if "far" not in so_far else ():
            values = np.array([kind == world] + [True] * others)
            total = int(np.count_nonzero(values & state.active))
            need = monitor.threshold - total
            yield "no", float(monitor.noise.cdf(need)), state
            yield "far", float(monitor.noise.sf(need + reach)), state
            for noise in np.arange(need, need + reach).tolist():
                fixed: Any = Fixed(noise)
                after, release = step_with_value(replace(monitor, noise=fixed), state, values, lambda data: data, fixed)
                _check((release.above, release.value), (True, total + noise))
                yield release.value, float(monitor.noise.sf(noise) - monitor.noise.sf(noise + 1)), after

    start = monitor.start(1 + others)
    return _as_rows([dict(_transcripts(partial(branches, world=world), start)) for world in (0, 1)])


def charged_laws(method: TargetCharging, depth: int) -> Array:
    """Laws of all outputs of up to `depth` randomized responses whose rarer, or likelier, answer is the target."""

    def branches(left: int, so_far: tuple[Any, ...], chance: float) -> Iterator[tuple[Any, float, Any]]:
        for hit in (False, True) if left and len(so_far) < depth else ():
            nothing: Any = False
            after, output = method.step(left, partial(operator.or_, hit), bool, nothing)
            yield output, chance if hit else 1 - chance, after

    rare = 1 / (1 + math.exp(method.epsilon))
    return _as_rows([dict(_transcripts(partial(branches, chance=p), method.start())) for p in (rare, 1 - rare)])


def find_step_laws(method: FindStep, others: Sequence[Sequence[int]], grid: int = 2001) -> Array:
    """As `histogram_laws`, for the answers and reports until it halts; None stands for a no."""
    answered = functools.cache(partial(search_probability, method.search, grid=grid))

    def branches(state: FindState, so_far: tuple[Any, ...], every: list[list[int]]) -> Iterator[tuple[Any, float, Any]]:
        halted = sum(one is not None for one in so_far) == method.search.reports
        for weights in every[len(so_far) : len(so_far) + 1] if not halted else ():
            for reported, share in [(None, 1.0), *_shown(method.shown, weights)]:
                noise = 1e15 if reported is not None else -1e15
                forced: Any = Scripted((noise, 0.0), _those_held(weights, reported or ()))
                after, release = method.step(state, np.repeat(np.arange(len(weights)), weights), forced)
                _check((release.above, *release.elements.tolist()), (reported is not None, *(reported or ())))
                yield reported, share, after

    fresh: Any = Scripted((0.0,), ())
    start, laws = method.start(1 + sum(others[0]), fresh), []
    for every in (_weights(others, 0), _weights(others, 1)):
        law = dict(_transcripts(partial(branches, every=every), start))
        for told, shown in law.items():  # the search's own noise is in all of its answers together
            law[told] = shown * answered(tuple(map(max, every[: len(told)])), tuple(one is not None for one in told))
        laws.append(law)
    return _as_rows(laws)


def _those_held(weights: Sequence[int], reported: Sequence[int]) -> list[bool]:
    return [element in reported for element, weight in enumerate(weights) if weight]


def search_probability(method: AboveThreshold, values: Sequence[float], answers: Sequence[int], grid: int = 2001) -> float:
    """Of these answers to the first of these values, over all of the threshold's noise, fresh after each yes if it is."""
    scale, laplace = method.threshold_scale, method.noise == "laplace"
    noise = MonitorNoise(method.query_scale / 10, 0.0)
    shifts = np.linspace(-30 * scale if laplace else 0.0, 30 * scale, grid) if scale else np.zeros(1)
    weight = np.exp(-np.abs(shifts) / scale) if scale else np.ones(1)
    weight /= weight.sum()
    probability, log = 1.0, np.zeros(len(shifts))
    for value, answer in zip(values, answers, strict=False):
        below = method.threshold + shifts - value
        if laplace:
            log = log + (noise.log_sf(below) if answer else noise.log_cdf(below))
        else:
            with np.errstate(divide="ignore"):
                log = log + np.log(method.sf(below) if answer else 1 - method.sf(below))
        if answer and method.refreshed:
            probability *= float(weight @ np.exp(log))
            log = np.zeros(len(shifts))
    return probability * float(weight @ np.exp(log))


def _until_halt(queries: int, reports: int) -> list[tuple[int, ...]]:
    """All answers that can come: up to the last allowed yes, or to the last query."""
    found: set[tuple[int, ...]] = set()
    for answers in itertools.product((0, 1), repeat=queries):
        places = [place for place, answer in enumerate(answers) if answer]
        found.add(answers[: places[reports - 1] + 1] if len(places) >= reports else answers)
    return sorted(found)
