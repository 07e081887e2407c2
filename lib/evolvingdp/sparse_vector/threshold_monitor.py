"""ThresholdMonitor: which queries exceed a threshold, paying per user and not per report.

**Computes** yes or no for each of any number of adaptively chosen counting queries: whether the noisy sum of the query over
the users exceeds `threshold`. A yes counts for the users who contributed to it; whoever has counted `reports` is deleted.

**Guarantee.** That of the `Calibration` that the noise comes from: (epsilon, delta)-differential privacy of **all answers
together**, for one user in all steps, however many there are, whatever the adversary chooses and however the other users'
data evolve. `ThresholdMonitorEvolving` takes new data in every step (Definition 4.3), `ThresholdMonitor` has fixed data.
The state is **secret**, the release is public; a no leaves the state as it is.
A query's value for a user must depend on that user's data alone, as the paper's f: X -> [0, 1] does: that is the caller's
promise, no check can see it. Errors name users and values; they are for the curator, not for the analyst.

**Error.** A query at `threshold` + z or more of users not yet deleted is missed with probability `noise.cdf(-z)`; one that
nobody meets is reported with `noise.sf(threshold)`.

**Source.** Algorithms 3 and 5: `step` is line 3. Users are deleted at c >= k, and all go on counting (E-SV-7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.sparse_vector.calibration import QUERIES, Calibration
from evolvingdp.sparse_vector.noise import MonitorNoise

Query = Callable[[Any], ArrayLike]  # (n_users,) inputs -> (n_users,) values, each from the input of its user alone


@dataclass(frozen=True)
class Release:
    """What everybody sees of a query."""

    above: bool


ABOVE, BELOW = Release(True), Release(False)


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Secret. `counted` (n_users,): what each user has contributed to yes answers; `active`: not deleted."""

    counted: NDArray[np.float64]
    active: NDArray[np.bool_]

    @property
    def n_users(self) -> int:
        return len(self.active)


@dataclass(frozen=True)
class ThresholdMonitorEvolving:
    """Algorithm 5 with noise of `Calibration.noise`; `queries`: "binary" takes values in {0, 1}, "interval" in [0, 1]."""

    noise: MonitorNoise
    threshold: float
    reports: int  # k
    queries: str = "binary"

    def __post_init__(self) -> None:
        if not np.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold!r}")
        checks.integer_at_least(1, reports=self.reports)
        checks.one_of(QUERIES, queries=self.queries)

    @classmethod
    def calibrated(cls, calibration: Calibration, threshold: float) -> ThresholdMonitorEvolving:
        return cls(calibration.noise, threshold, calibration.reports, calibration.queries)

    def start(self, n_users: int) -> State:
        checks.integer_at_least(1, n_users=n_users)
        return State(np.zeros(n_users), np.ones(n_users, dtype=bool))

    def step(self, state: State, data: Any, query: Query, rng: np.random.Generator) -> tuple[State, Release]:
        """Answer `query`, which maps this step's `data` to a value for each user, from that user's data alone."""
        values = self._values(state, query(data))
        if float(values[state.active].sum()) + self.noise.draw(rng) < self.threshold:
            return state, BELOW
        return self._counted(state, values), ABOVE

    def step_users(self, state: State, users: Sequence[int], rng: np.random.Generator) -> tuple[State, Release]:
        """The same for a query in {0, 1}, given by the users (each once) for whom it is 1: no cost for the others."""
        active, below = state.active, 0
        n_users = len(active)
        if len(set(users)) != len(users):  # before any noise: a user counted twice would not be paid for
            twice = next(user for place, user in enumerate(users) if user in users[:place])
            raise ValueError(f"users must hold each user once, got user {twice} again")
        for user in users:
            if not 0 <= user < n_users:
                raise ValueError(f"users must lie in [0, {n_users}), got {user}")
            below += bool(active[user])
        if below + self.noise.draw(rng) < self.threshold:
            return state, BELOW
        values = np.bincount(np.asarray(users, dtype=np.int64), minlength=n_users).astype(float)
        return self._counted(state, values), ABOVE

    def step_elements(
        self, state: State, inputs: ArrayLike, n_elements: int, rng: np.random.Generator
    ) -> tuple[State, NDArray[np.bool_]]:
        """A time step of Theorem 4.7: all queries "holds x", x < `n_elements`, of users who hold `inputs` (n_users,).

        The same, bit for bit, as a `step` for each element in order: the queries of a step concern different users.
        """
        held = self._elements(state, inputs, n_elements)
        weights = np.bincount(held[state.active], minlength=n_elements)
        above = ~(weights + self.noise.sample(n_elements, rng) < self.threshold)
        return (self._counted(state, above[held].astype(float)) if above.any() else state), above

    def run(self, state: State, values: ArrayLike, rng: np.random.Generator) -> tuple[State, NDArray[np.bool_]]:
        """All queries with `values` (queries, n_users) one after the other: bit for bit what as many `step`s give."""
        table = np.atleast_2d(np.asarray(values, dtype=float))
        for row in table:
            self._values(state, row)
        noise = self.noise.sample(len(table), rng)
        above, first = np.zeros(len(table), dtype=bool), 0
        while first < len(table):  # from one yes to the next nobody is deleted
            sums = np.ascontiguousarray(table[first:, state.active]).sum(axis=1)  # in the order that `step` adds up
            hits = ~(sums + noise[first:] < self.threshold)
            if not hits.any():
                break
            first += int(hits.argmax())
            above[first] = True
            state = self._counted(state, table[first])
            first += 1
        return state, above

    def _counted(self, state: State, values: NDArray[np.float64]) -> State:
        counted = state.counted + values
        return State(counted, counted < self.reports)

    def _values(self, state: State, values: ArrayLike) -> NDArray[np.float64]:
        array = np.asarray(values, dtype=float)
        if array.shape != state.active.shape:
            raise ValueError(
                f"data must hold {state.n_users} users in every step, as at the start, got values of shape {array.shape}"
            )
        good = (array == 0) | (array == 1) if self.queries == "binary" else (array >= 0) & (array <= 1)
        if not good.all():
            place, range_ = int(np.argmin(good)), "{0, 1}" if self.queries == "binary" else "[0, 1]"
            raise ValueError(f"query must have values in {range_}, got {array[place]!r} for user {place}")
        return array

    def _elements(self, state: State, inputs: ArrayLike, n_elements: int) -> NDArray[np.int64]:
        checks.integer_at_least(1, n_elements=n_elements)
        if np.shape(inputs) != state.active.shape:
            raise ValueError(
                f"inputs must hold {state.n_users} users in every step, as at the start, got shape {np.shape(inputs)}"
            )
        return checks.integer_array("inputs", inputs, below=n_elements)


@dataclass(frozen=True, eq=False, repr=False)
class FixedState:
    """Secret: the counters, and the data, an entry a user."""

    counters: State
    data: Any


@dataclass(frozen=True)
class ThresholdMonitor:
    """Algorithm 3: the data are given at the start and stay."""

    evolving: ThresholdMonitorEvolving

    @classmethod
    def calibrated(cls, calibration: Calibration, threshold: float) -> ThresholdMonitor:
        return cls(ThresholdMonitorEvolving.calibrated(calibration, threshold))

    def start(self, data: Sequence[Any] | NDArray[Any]) -> FixedState:
        """The state before any query; `data` has an entry a user."""
        return FixedState(self.evolving.start(len(data)), data)

    def step(self, state: FixedState, query: Query, rng: np.random.Generator) -> tuple[FixedState, Release]:
        counters, release = self.evolving.step(state.counters, state.data, query, rng)
        return FixedState(counters, state.data), release
