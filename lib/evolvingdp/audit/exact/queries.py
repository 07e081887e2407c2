"""What the sparse vector technique, ThresholdMonitor and histograms answer, through the entry points that ship.

Each function runs a mechanism on a generator and returns all that everybody sees; `draws.law_of` makes laws of that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from scipy.stats import norm

from evolvingdp.audit.exact.draws import law_of, loss_of, loss_of_steps
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import baselines, shifting
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import Histogram, HistogramEveryStep
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.stable_monitor import StableMonitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitor, ThresholdMonitorEvolving

Strategy = Callable[[tuple[bool, ...]], tuple[float, float, Any]]  # answers -> user 0's value in both worlds, the others'


def answers(method: AboveThreshold, values: Sequence[float], rng: Any) -> list[bool]:
    """To queries of these values, until it halts, which it must do by itself."""
    state, told = method.start(rng), []
    for value in values:
        if state.left == 0:
            must_halt(lambda state=state, value=value: method.step(state, value, rng))  # type: ignore[misc]
            break
        before = state
        state, release = method.step(state, value, rng)
        told.append(release.above)
        if not release.above and replace(state, moves=before.moves) != before:
            raise AssertionError("a no must change nothing, or it would cost something")
        if sum(told) == method.reports and state.left:
            raise AssertionError(f"it must halt after {method.reports} reports")
    return told


def run_as_steps(monitor: ThresholdMonitorEvolving, n_queries: int = 40) -> bool:
    """Whether `run` gives the answers and the counters that as many steps give, from the same generator, twice in a row."""
    for seed in range(3):
        values = stream(seed, "values").integers(0, 2, size=(2, n_queries, 3))
        all_at_once, one_by_one = (stream(seed, "noise") for _ in range(2))
        state = other = monitor.start(3)
        for part in values:
            state, told = monitor.run(state, part, all_at_once)
            for row, above in zip(part, told.tolist(), strict=True):
                other, release = monitor.step(other, row, lambda held: held, one_by_one)
                if release.above != above:
                    return False
        if not np.array_equal(state.counted, other.counted):
            return False
    return True


def must_halt(further: Callable[[], Any]) -> None:
    """`further` asks a mechanism that has halted once more."""
    try:
        further()
    except ValueError:
        return
    raise AssertionError("it must halt where what has been paid for is over")


def threshold_loss(method: AboveThreshold, queries: int, delta: float = 0.0, moves: Sequence[int] = ()) -> float:
    """The worst over neighbours whose queries stand at the threshold in one world and are moved by one in the other: all up
    and the last one down, the opposite, in turns, or `moves`."""
    up = [1] * (queries - 1) + [-1]
    patterns = [moves] if moves else [up, [-move for move in up], [(-1) ** place for place in range(queries)]]
    still = [method.threshold] * queries
    moved = [[method.threshold + move for move in pattern] for pattern in patterns]
    return max(loss_of(lambda values, rng: answers(method, values, rng), (still, other), delta) for other in moved)


def halting_loss(method: AboveThreshold, queries: int, delta: float) -> float:
    """The same for queries in {0, 1}, half above the threshold or below, of a user who counts always, never or in turns."""
    kinds = [[1] * queries, [0] * queries, [place % 2 for place in range(queries)]]
    pairs = itertools.permutations(kinds, 2)
    return max(loss_of(lambda values, rng: answers(method, values, rng), pair, delta) for pair in pairs)


WAYS = ("step", "run", "fixed", "elements")


def alternating_loss(monitor: ThresholdMonitorEvolving, queries: int, delta: float, way: str = "step") -> float:
    """Of all answers to a user who counts in every other query, the even ones in world 0, the odd ones in world 1, by one
    of the `WAYS` to ask; and of another user who never counts (`elements`: who holds element 1)."""
    counts = [[[float(place % 2 == world), 0.0] for place in range(queries)] for world in (0, 1)]
    if way == "elements":
        return loss_of(lambda world, rng: shifting.solve(monitor, [[world, 1]] * (queries // 2), 2, rng), (0, 1), delta)
    if way == "run":
        return loss_of(lambda values, rng: monitor.run(monitor.start(2), values, rng)[1], counts, delta)
    fixed: Any = ThresholdMonitor(monitor)

    def step(world: int, state: Any, told: Any, rng: Any) -> Any:
        if len(told) == queries:
            return None
        values = counts[world][len(told)]
        if way == "fixed":
            after, release = fixed.step(state, lambda held: [one == len(told) % 2 for one in held], rng)
        else:
            after, release = monitor.step(state, values, lambda data: data, rng)
        return after, release.above

    first = (lambda world, _: fixed.start([world, 2])) if way == "fixed" else (lambda *_: monitor.start(2))
    return loss_of_steps(first, step, (0, 1), delta)


def adaptive_loss(monitor: ThresholdMonitorEvolving, strategy: Strategy, depth: int, delta: float) -> float:
    """Of all answers to `depth` queries: user 0 has the first value of `strategy` in world 0, the second in world 1."""

    def step(world: int, state: Any, told: Any, rng: Any) -> Any:
        if len(told) == depth:
            return None
        first, second, others = strategy(told)
        after, release = monitor.step(state, np.append(second if world else first, others), lambda data: data, rng)
        return after, release.above

    return loss_of_steps(lambda *_: monitor.start(3), step, (0, 1), delta)


class _Standard:
    """A generator whose draws of Laplace noise are these multiples of the scale that is asked for."""

    def __init__(self, *multiples: float) -> None:
        self._left = list(multiples)

    def laplace(self, loc: float, scale: Any, size: Any = None) -> Any:
        return loc + scale * (self._left.pop(0) if size is None else np.resize(self._left, size))


def outer_scale(noise: MonitorNoise) -> float:
    """By how much the noise that is drawn moves with its outer part: the least of `draw` and `sample`."""
    drawn = [noise.draw(_Standard(outer, 0.0)) for outer in (0.0, 1.0)]  # type: ignore[arg-type]
    sampled = [float(noise.sample(1, _Standard(outer, 0.0))[0]) for outer in (0.0, 1.0)]  # type: ignore[arg-type]
    return min(drawn[1] - drawn[0], sampled[1] - sampled[0])


def one_step(made: Histogram) -> tuple[float, float]:
    """What one step's `release` costs a user who moves two weights by one, from the chances that weights are reported:
    epsilon of each weight for Laplace noise, mu^2 of both for normal noise; and the chance to see a weight of one if one of
    none is never seen."""

    def chance(weight: int) -> float:
        return law_of(lambda rng: bool(made.release([weight], rng)[0])).get(True, 0.0)

    nobody = law_of(lambda rng: len(made.reported(np.zeros(0, dtype=np.int64), 1, rng)) > 0).get(True, 0.0)
    if not math.isclose(nobody, chance(0), rel_tol=1e-9, abs_tol=1e-300):
        return math.inf, 0.0  # what nobody holds is reported by another law
    below = max(1, math.floor(made.threshold) - 2)
    lower, upper = chance(below), chance(below + 1)
    normal = made.law == "gaussian"
    cost = 2 * (norm.isf(lower) - norm.isf(upper)) ** 2 if normal else math.log(upper / lower)
    return float(cost), 0.0 if chance(0) else chance(1)


class _Heard:
    """A generator whose first draws of noise are chosen, in units of their scale; there must be no others."""

    def __init__(self, noise: Sequence[float]) -> None:
        self._noise, self._asked = np.array(noise), False

    def laplace(self, loc: float, scale: float, size: Any = None) -> Any:
        if self._asked:
            raise AssertionError("the same weights must not be told with other noise")
        self._asked = True
        return loc + scale * (self._noise[0] if size is None else np.resize(self._noise, size))

    normal = laplace


def counted(method: HistogramEveryStep, weight: int, noise: float) -> float | None:
    """What `count` tells of an element of this weight, at the noise; None for nothing.  Another one is beside it."""
    held = np.repeat([0, 1], [weight, 3 * weight])
    rng: Any = _Heard([noise, 1e9])
    shown = method.count(method.start(len(held)), held, rng)[1]
    told = dict(zip(shown.elements.tolist(), shown.weights.tolist(), strict=True))
    if set(told) - {0} != {1}:
        raise AssertionError("what is loud must be heard, and nothing else")
    return told.get(0)


def one_count(method: HistogramEveryStep) -> tuple[float, float]:
    """As `one_step`, of `count`: what is told must be the weight plus its own noise, rounded, or nothing, so that it is
    computed from the noisy weight alone; the loss is that of the noise's scale, as it is found in what is told."""

    def least(weight: int) -> float:
        """The noise from which it is told."""
        low, high = -1e3, 1e3
        while high - low > 1e-13:
            middle = (low + high) / 2
            low, high = (low, middle) if counted(method, weight, middle) is not None else (middle, high)
        return high

    tail, normal = method.one.sf, method.one.law == "gaussian"
    below = max(1, math.floor(method.one.threshold) - 2)
    step = least(below) - least(below + 1)  # of a weight, in units of the noise
    for noise in np.linspace(least(below) + 0.01, least(below) + 7, 50).tolist():
        for weight in (below, below + 1):
            if counted(method, weight, noise) != np.rint(weight + noise / step):
                return math.inf, 0.0
    alone = float(tail(method.one.scale * least(1)))
    return (2 * step**2 if normal else step), alone


class _Loud:
    """A generator whose draws are silent, but for one of the second ones that are made together; it notes scales."""

    def __init__(self, place: int) -> None:
        self.asked: list[float] = []
        self._place = place

    def laplace(self, loc: float, scale: float, size: int | None = None) -> Any:
        self.asked.append(scale)
        loud = 1e6 * scale if len(self.asked) == 2 else 0.0
        return loud if size is None else loud * np.eye(1, size, self._place)[0]

    def standard_exponential(self, size: int | None = None) -> Any:
        return 1e300 if size is None else np.full(size, 1e300)  # nothing is reported by mistake


def asked_loss(method: AboveThreshold, queries: int) -> float:
    """What all answers cost that `baselines.ask` gives at once until the first yes: the threshold's noise moves by 1, that
    of the yes by 2.  Infinite where some query has no noise of its own."""
    for place in range(queries):
        rng: Any = _Loud(place)
        answers = baselines.ask(method, np.full(queries, method.threshold - 1.0), rng)
        if answers.tolist() != [other == place for other in range(queries)]:
            return math.inf
    shift, query = rng.asked
    return float(1 / shift + 2 / query)


def stable_loss(method: StableMonitor, others: Sequence[Sequence[int]], delta: float) -> float:
    """Of what a StableMonitor tells in steps in which the others hold these elements, and user 0 element `world`: its noise
    is heard with the probabilities that its law states, since integers are not followed."""

    def step(world: int, state: Any, told: Any, rng: Any) -> Any:
        if len(told) == len(others):
            return None
        inputs = np.array([world, *others[len(told)]])
        _, weights = np.unique(inputs[state.counters.active], return_counts=True)
        chances = method.monitor.noise.sf(method.monitor.threshold - weights).tolist()
        above = [rng.choose([chance, 1 - chance]) == 0 for chance in chances]
        own = replace(method.monitor.noise)
        vars(own)["sample"] = lambda size, rng: np.where(above, 1e15, -1e15)
        return replace(method, monitor=replace(method.monitor, noise=own)).step(state, inputs, rng)

    return loss_of_steps(lambda *_: method.start(1 + len(others[0])), step, (0, 1), delta)


def _reported(method: HistogramEveryStep | FindStep, others: Sequence[Sequence[int]], delta: float) -> float:
    """Of what is told in steps in which `others` are the weights of the other users, and user 0 holds element `world`."""
    n_users, search, start = 1 + sum(others[0]), isinstance(method, FindStep), cast(Any, method.start)

    def step(world: int, state: Any, told: Any, rng: Any) -> Any:
        if len(told) == len(others):
            return None
        weights = others[len(told)]
        held = np.append(np.repeat(np.arange(len(weights)), weights), world)
        if search and state.search.left == 0:
            must_halt(lambda: method.step(state, held, rng))
            return None
        return method.step(state, held, rng)

    return loss_of_steps(lambda _, rng: start(n_users, *[rng] * search), step, (0, 1), delta)


def reported_loss(method: HistogramEveryStep | FindStep, delta: float, steps: int = 2) -> float:
    """The most that a few adversaries learn at `delta`: the others' weights lie around the threshold, or are 0."""
    middle = math.ceil((method.one if isinstance(method, HistogramEveryStep) else method.shown).threshold)
    worst = 0.0
    for first, second in ((-2, 1), (0, -1), (-1, -1), (1, -2), (-middle, -middle), (1, -middle)):
        for same in (True, False) if first != second else (True,):
            one = [middle + first, middle + second, 1]
            others = [one, *[one if same else [one[1], one[0], one[2]]] * (steps - 1)]
            worst = max(worst, _reported(method, others, delta))
    return worst


def refused(method: HistogramEveryStep | StableMonitor, steps: Sequence[Any], name: str = "step") -> bool:
    """Whether so many steps, or what else has this name, are too many: whoever has paid for fewer must raise."""
    state: Any = method.start(len(steps[0]))
    rng = stream(0, "refused")
    try:
        for held in steps:
            state, _ = getattr(method, name)(state, held, rng)
    except ValueError:
        return True
    return False


def strategies(count: int) -> Iterator[Strategy]:
    """Adaptive adversaries with values in [0, 1], the same in every run."""
    for number in range(count):

        def strategy(answers: tuple[bool, ...], number: int = number) -> tuple[float, float, Any]:
            rng = stream(0, "adversary", number, "".join("01"[answer] for answer in answers))
            first, second = rng.integers(0, 2), rng.random()
            return float(first), (1.0 - first) * second, rng.random(2)

        yield strategy
