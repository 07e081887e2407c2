"""Laws of the answers of the sparse vector technique and of ThresholdMonitor to an adversary, enumerated.

`monitor_laws` takes the library's own steps; `Forced` stands for the generator so that a step takes the wanted answer, and
its probability is read from the noise's distribution function.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.threshold_monitor import State, ThresholdMonitorEvolving

Array = NDArray[np.float64]
Strategy = Callable[[tuple[bool, ...]], tuple[float, float, Any]]  # answers -> user 0's value in both worlds, the others'


class Forced:
    """Stands for a generator: all noise has this sign and no end."""

    def __init__(self, above: bool) -> None:
        self.value = 1e15 if above else -1e15

    def laplace(self, *_: Any) -> float:
        return self.value


def monitor_laws(
    monitor: ThresholdMonitorEvolving, others: int, strategy: Strategy, depth: int, absent: bool = False
) -> Array:
    """Probabilities of all answers to `depth` adaptive queries in both worlds, (2, 2^depth).

    User 0 has the first value of `strategy` in world 0, the second in world 1 (0 throughout if `absent`).
    """
    laws = []
    for world in (0, 1):
        law: list[float] = []

        def follow(
            state: State, log_probability: float, answers: tuple[bool, ...], world: int = world, law: list[float] = law
        ) -> None:
            if len(answers) == depth:
                law.append(math.exp(log_probability))
                return
            first, second, rest = strategy(answers)
            mine = first if world == 0 else (0.0 if absent else second)
            values = np.concatenate([[mine], rest])
            below = monitor.threshold - float(values[state.active].sum())
            for above in (False, True):
                log = float(monitor.noise.log_sf(below) if above else monitor.noise.log_cdf(below))
                forced: Any = Forced(above)
                after, release = monitor.step(state, values, lambda data: data, forced)
                if release.above != above:
                    raise AssertionError(f"the step answered {release.above} to noise that forces {above}")
                follow(after, log_probability + log, (*answers, above))

        follow(monitor.start(1 + others), 0.0, ())
        laws.append(law)
    return np.array(laws)


def above_threshold_loss(method: AboveThreshold, queries: int, grid: int = 24001) -> float:
    """The worst log ratio of all answers until it halts, by integration over the threshold's noise; nothing is refreshed.

    Every query moves by one, up or down, between the worlds; queries stand at the threshold.
    """
    if method.refreshed and method.reports > 1:
        raise ValueError(f"reports must be 1 where the threshold is refreshed, got {method.reports}: compose single runs")
    reach = 30 * method.threshold_scale
    shifts = np.linspace(-reach, reach, grid)
    weight = np.exp(-np.abs(shifts) / method.threshold_scale)
    weight /= weight.sum()
    noise = MonitorNoise(method.query_scale / 10, 0.0)
    logs = {move: (noise.log_cdf(shifts - move), noise.log_sf(shifts - move)) for move in (-1, 0, 1)}
    worst = 0.0
    for moves in itertools.product((-1, 1), repeat=queries):
        for answers in _until_halt(queries, method.reports):
            pair = [
                sum((logs[world * move][answer] for move, answer in zip(moves, answers, strict=False)), np.zeros(grid))
                for world in (0, 1)
            ]
            masses = [math.log(float(weight @ np.exp(log))) for log in pair]
            worst = max(worst, abs(masses[0] - masses[1]))
    return worst


def halting_laws(method: AboveThreshold, kinds: Sequence[int]) -> Array:
    """Laws of all answers without threshold noise, in both worlds, (2, answers): a query moves by 1 up or down (`kinds`)."""
    noise = MonitorNoise(method.query_scale / 10, 0.0)
    laws: list[list[float]] = [[], []]
    for answers in itertools.product((0, 1), repeat=len(kinds)):
        for world in (0, 1):
            p, tops = 1.0, 0
            for kind, answer in zip(kinds, answers, strict=True):
                if tops == method.reports:
                    p *= answer == 0
                    continue
                above = float(noise.sf(0.5 - (kind == (1 if world == 0 else -1))))
                p *= above if answer else 1 - above
                tops += answer
            laws[world].append(p)
    return np.array(laws)


def _until_halt(queries: int, reports: int) -> list[tuple[int, ...]]:
    """All answers that can come: up to the last allowed yes, or to the last query."""
    found: set[tuple[int, ...]] = set()
    for answers in itertools.product((0, 1), repeat=queries):
        places = [place for place, answer in enumerate(answers) if answer]
        found.add(answers[: places[reports - 1] + 1] if len(places) >= reports else answers)
    return sorted(found)
