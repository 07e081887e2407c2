"""Simulations of shifting heavy hitters against the methods' own steps, on streams so small that both are followed.

A stream has three users and an event for each family; its neighbour has a third user in the first family's group, which so
far held an element of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from evolvingdp.audit.exact.draws import Follower, law_of, loss_of
from evolvingdp.audit.exact.laws import epsilon_at, first_of
from evolvingdp.audit.exact.simulated import alike, same_law
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import shifting
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HistogramEveryStep
from evolvingdp.sparse_vector.shifting_simulation import Outcome, crossing
from evolvingdp.sparse_vector.streams import drawn, general
from evolvingdp.sparse_vector.streams.example import Family, ShiftingStream
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Method = ThresholdMonitorEvolving | AboveThreshold | FindStep | HistogramEveryStep
USERS = 3


def small(first: int, others: tuple[int, ...] = (), horizon: int = 2, groups: int = 1) -> ShiftingStream:
    """A family with `groups` groups of `first` of the three users, and one with a group for each size of `others`."""
    sizes = {str(place): size for place, size in enumerate((first, *others))}
    n_groups = {name: groups if name == "0" else 1 for name in sizes}
    return ShiftingStream.make(
        USERS * groups, sizes, stream(0, "stream"), horizon=horizon, n_groups=n_groups,
        n_elements=USERS * groups + sum(n_groups.values()),
    )  # fmt: skip


class Lots:
    """What a simulation draws from a `Follower`: the first continuous draws, a threshold's noise, where it `keeps` them, as
    their cells; and users and steps in turns, never a pair again, as one that was refused would be refused again."""

    def __init__(self, follow: Follower, keeps: bool, n_users: int = 1, horizon: int = 1) -> None:
        self._follow, self._keeps = follow, keeps
        self._left = [list(range(horizon)) for _ in range(n_users)]
        self._user: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._follow, name)

    def _kept(self, drawn: Any) -> Any:
        if not self._keeps:
            return drawn
        self._keeps = False
        return np.array([float(one) for one in drawn.tolist()])

    def laplace(self, loc: float, scale: Any, size: Any) -> Any:
        return self._kept(self._follow.laplace(loc, scale, size))

    def normal(self, loc: float, scale: Any, size: Any) -> Any:
        return self._kept(self._follow.normal(loc, scale, size))

    def exponential(self, scale: Any, size: Any) -> Any:
        return self._kept(self._follow.exponential(scale, size))

    def standard_exponential(self, size: Any = None) -> Any:
        return self._follow.exponential(1.0, size)

    def integers(self, high: int) -> int:
        if self._user is None:
            self._user = self._follow.choose([len(steps) / sum(map(len, self._left)) for steps in self._left])
            return self._user
        steps, self._user = self._left[self._user], None
        return steps.pop(self._follow.choose([1 / len(steps)] * len(steps)))


def outcome(on: ShiftingStream, reported: list[Any]) -> Outcome:
    """What was `reported` at each step, as a simulation tells it."""
    found, absent, single = np.zeros(on.n_events, dtype=bool), 0, 0
    for step, elements in enumerate(reported):
        weights = np.bincount(on.inputs(step), minlength=on.n_elements)
        for element in np.asarray(elements).tolist():
            if element < on.n_events and weights[element]:
                found[element] = True
            else:
                absent, single = absent + (weights[element] == 0), single + (weights[element] == 1)
    return Outcome(found, int(absent), int(single))


def asked(method: Method, on: ShiftingStream, rng: Any) -> Outcome:
    """The method's own steps, until it halts."""
    inputs = [on.inputs(step) for step in range(on.horizon)]
    if isinstance(method, ThresholdMonitorEvolving):
        return outcome(on, shifting.solve(method, inputs, on.n_elements, rng))
    reported: list[Any] = []
    state: Any = method.start(rng) if isinstance(method, AboveThreshold) else None
    if isinstance(method, FindStep):
        state = method.start(on.n_users, rng)
    elif isinstance(method, HistogramEveryStep):
        state = method.start(on.n_users)
    for held in inputs:
        if isinstance(method, AboveThreshold):
            above = np.zeros(0, dtype=np.int64)
            if state.left:
                state, above = method.step_elements(state, held, on.n_elements, rng)
            reported.append(above)
        elif not isinstance(method, FindStep) or state.search.left:
            state, shown = method.step(state, held, rng)
            reported.append(shown.elements)
    return outcome(on, reported)


def shifted_loss(
    method: Method,
    simulate: Callable[[Any, ShiftingStream, Any], Outcome],
    pair: tuple[ShiftingStream, ShiftingStream],
    delta: float,
    others: tuple[ShiftingStream, ...] = (),
    keeps: bool = False,
) -> float:
    """What the number of reports tells at `delta` of a `pair` of streams; infinite where `simulate` has another law than the
    method's steps, on these streams or on `others`."""
    one, shown = method.one if isinstance(method, HistogramEveryStep) else method, list[dict[Any, float]]()
    for on in (*pair, *others):

        def steps(rng: Any, on: ShiftingStream = on) -> tuple[int, Outcome]:
            return _counted(asked(method, on, rng))

        def simulation(rng: Any, on: ShiftingStream = on) -> tuple[int, Outcome]:
            return _counted(simulate(one, on, Lots(rng, keeps, on.n_users, on.horizon)))

        law = law_of(steps)
        if not alike(law, law_of(simulation)):
            return math.inf
        if len(shown) < len(pair):
            shown.append(first_of(law))
    return epsilon_at(shown, delta)


def _counted(told: Outcome) -> tuple[int, Outcome]:
    """How many are reported, before all that is told."""
    return int(told.found.sum()) + told.absent + told.single, told


def two_users(*steps: int) -> ShiftingStream:
    """Two users who hold the same element at each of `steps` of two."""
    sizes = {str(step): 2 for step in steps}
    made = ShiftingStream.make(2, sizes, stream(0, "stream"), horizon=2, n_elements=2 + len(steps))
    return replace(made, steps=np.array(steps))


def one_family() -> ShiftingStream:
    """Two users, each alone in an event of one family, and a family without events, so that all counters are kept."""
    families = (Family("one", 1, 2, 1, 1), Family("none", 2, 0, 1, 1))
    return ShiftingStream(2, 2, 4, families, np.arange(2), np.zeros(2, dtype=np.int64), np.arange(2))


def crossing_alike(noise: Any, threshold: float) -> bool:
    """Whether `crossing` finds events of two families as independent draws of `noise` do."""
    on = small(2, (3,), horizon=3, groups=2)
    return same_law(
        lambda rng: np.asarray(on.sizes + noise.sample(on.n_events, rng) >= threshold),
        lambda rng: crossing(noise.sf, threshold, on, rng),
    )


def drawn_loss(monitor: ThresholdMonitorEvolving, delta: float) -> float:
    """What all reports tell at `delta` of a user alone, who holds one of two elements in both steps; infinite where
    `streams.drawn` has another law than steps of users who draw elements, for one user or two."""

    def steps(n_users: int, laws: NDArray[np.float64], rng: Any) -> Any:
        state, above, active = monitor.start(n_users), [], []
        for law in laws:
            state, told = monitor.step_elements(state, rng.choice(2, size=n_users, p=law), 2, rng)
            above.append(told)
            active.append(np.count_nonzero(state.active))
        return np.array(above), np.array(active)

    sure = [np.tile(law, (2, 1)) for law in np.eye(2)]
    for n_users, laws in ((1, sure[0]), (1, sure[1]), (2, np.array([[0.3, 0.7], [0.6, 0.4]]))):
        if not same_law(partial(steps, n_users, laws), partial(drawn.simulate, monitor, n_users, laws)):
            return math.inf
    return loss_of(lambda laws, rng: drawn.simulate(monitor, 1, laws, rng)[0], sure, delta)


def general_loss(monitor: ThresholdMonitorEvolving, delta: float) -> float:
    """What all reports of two steps tell at `delta` of a user who holds two elements, one or none of three; infinite where
    `streams.general` has another law than a step for each element.  Two other users hold what they hold together."""

    def held(own: list[int]) -> general.GeneralStream:
        table = np.array([[0 in own, True], [1 in own, False]], dtype=np.int64)
        present = [np.arange(2), np.arange(1)]
        return general.GeneralStream(np.array([1, 2]), tuple(present), tuple(csr_array(table[rows]) for rows in present), 3)

    def steps(own: list[int], rng: Any) -> Any:
        on, state, found, absent = held(own), monitor.start(3), [], 0
        for elements, table in zip(on.elements, on.held, strict=True):
            told = []
            for element in range(on.n_elements):
                values = np.repeat(table.toarray()[element], on.users) if element in elements else np.zeros(3)
                state, release = monitor.step(state, values, lambda data: data, rng)
                told.append(release.above)
            found.append(np.array(told[: len(elements)]))
            absent += sum(told[len(elements) :])
        return found, absent

    def simulation(own: list[int], rng: Any) -> Any:
        return general.simulate(monitor, held(own), rng)

    inputs: tuple[list[int], ...] = ([0, 1], [0], [])
    if not all(same_law(partial(steps, own), partial(simulation, own)) for own in inputs):
        return math.inf
    return loss_of(lambda own, rng: steps(own, rng)[0], inputs, delta)
